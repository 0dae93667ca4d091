//! Values of attributes: numbers, vectors, booleans, words of a list.

use super::Element;
use crate::{Error, ModelResult};

/// A value that an attribute's text can be read as.
pub(crate) trait FromText: Sized {
    /// The admissible texts, for messages.
    fn expected() -> String;

    /// The value of a text, if it is admissible.
    fn read(text: &str) -> Option<Self>;
}

impl FromText for f64 {
    fn expected() -> String {
        "a finite number".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        let number: f64 = text.trim().parse().ok()?;
        number.is_finite().then_some(number)
    }
}

impl FromText for i32 {
    fn expected() -> String {
        "an integer".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        text.trim().parse().ok()
    }
}

impl FromText for bool {
    fn expected() -> String {
        "`true` or `false`".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

impl<T: FromText, const N: usize> FromText for [T; N] {
    fn expected() -> String {
        format!("{N} times {}", T::expected())
    }

    fn read(text: &str) -> Option<Self> {
        let values: Option<Vec<T>> = text.split_whitespace().map(T::read).collect();
        values?.try_into().ok()
    }
}

impl<T: FromText> FromText for Vec<T> {
    fn expected() -> String {
        format!("a list, each {}", T::expected())
    }

    fn read(text: &str) -> Option<Self> {
        text.split_whitespace().map(T::read).collect()
    }
}

impl Element {
    /// The value of an attribute, `None` if the element does not have it.
    pub(crate) fn get<T: FromText>(&self, name: &str) -> ModelResult<Option<T>> {
        let Some(attribute) = self.attribute(name) else { return Ok(None) };
        T::read(&attribute.value).map(Some).ok_or_else(|| self.fault(name, &T::expected()))
    }

    /// Overwrites a value if the element has the attribute. Returns whether it has.
    pub(crate) fn set<T: FromText>(&self, name: &str, value: &mut T) -> ModelResult<bool> {
        let read = self.get(name)?;
        let has = read.is_some();
        if let Some(read) = read {
            *value = read;
        }
        Ok(has)
    }

    /// Overwrites the first values, as many as the attribute has. Returns their number.
    pub(crate) fn set_first(&self, name: &str, values: &mut [f64]) -> ModelResult<usize> {
        let Some(read) = self.get::<Vec<f64>>(name)? else { return Ok(0) };
        if read.is_empty() || read.len() > values.len() {
            return Err(self.fault(name, &format!("1 to {} finite numbers", values.len())));
        }
        values[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    /// The value of one of a list of words.
    pub(crate) fn choice<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> ModelResult<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let known = words.iter().find(|(word, _)| *word == text);
        known.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.fault(name, &format!("one of {}", words.join(", ")))
        })
    }

    /// Overwrites a value by the value of a word.
    pub(crate) fn set_choice<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
        value: &mut T,
    ) -> ModelResult<()> {
        if let Some(read) = self.choice(name, words)? {
            *value = read;
        }
        Ok(())
    }

    /// The text of an attribute that the element must have.
    pub(crate) fn needed(&self, name: &str) -> ModelResult<&str> {
        let missing = || self.invalid(format!("`{}` needs the attribute `{name}`", self.name));
        self.text(name).ok_or_else(missing)
    }

    /// An error about the value of an attribute, or about the element if it does not have the attribute.
    pub(crate) fn fault(&self, name: &str, expected: &str) -> Error {
        match self.attribute(name) {
            None => {
                self.invalid(format!("`{name}` of `{}` is missing: expected {expected}", self.name))
            }
            Some(attribute) => Error::Value {
                place: attribute.place.clone(),
                what: format!("`{name}` of `{}`", self.name),
                expected: expected.to_owned(),
                got: attribute.value.clone(),
            },
        }
    }
}
