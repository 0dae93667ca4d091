//! Checks of values against the types and ranges of a schema.

use toml::Value;

use super::{Kind, Range};

/// 2^53: floats represent all integers up to it.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A value that does not match its kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mistake {
    /// A value of a wrong type, with a requirement such as `must be a number`.
    Type(String),
    /// A value out of range, with a requirement such as `must be at least 1`.
    Range(String),
    /// A string that is not one of these names.
    Name(Vec<String>),
}

impl Kind {
    /// The value, with integers converted to floats if the kind is a number.
    pub(crate) fn check(&self, value: &Value) -> Result<Value, Mistake> {
        let must = |what: &str| Err(Mistake::Type(format!("must be {what}")));
        match (self, value) {
            (Kind::Boolean, Value::Boolean(_))
            | (Kind::Text, Value::String(_))
            | (Kind::Table, Value::Table(_)) => Ok(value.clone()),
            (Kind::Table, _) => must("a table"),
            (Kind::Boolean, _) => must("true or false"),
            (Kind::Text, _) => must("a string"),
            (Kind::Integer { unsigned: true, .. }, Value::Integer(..0)) => {
                must("an integer of at least 0")
            }
            (Kind::Integer { range, .. }, Value::Integer(number)) => {
                range.check_integer(*number).map(|()| value.clone())
            }
            // `1e6` is a float in TOML.
            (Kind::Integer { .. }, &Value::Float(number))
                if number.fract() == 0.0 && number.abs() <= LARGEST_EXACT =>
            {
                self.check(&Value::Integer(number as i64))
            }
            (Kind::Integer { unsigned: true, .. }, _) => must("an integer of at least 0"),
            (Kind::Integer { .. }, _) => must("an integer"),
            #[allow(clippy::cast_precision_loss, reason = "2^53 is no setting")]
            (Kind::Number(_), Value::Integer(number)) => self.check(&Value::Float(*number as f64)),
            (Kind::Number(range), Value::Float(number)) => {
                range.check(*number, "a number ")?;
                match (*number as f32).is_finite() {
                    true => Ok(value.clone()),
                    false => {
                        Err(Mistake::Range(format!("must be at most {:e} in magnitude", f32::MAX)))
                    }
                }
            }
            (Kind::Number(_), _) => must("a number"),
            (Kind::OneOf(names), Value::String(name)) => match names
                .iter()
                .any(|(one, _)| one == name)
            {
                true => Ok(value.clone()),
                false => Err(Mistake::Name(names.iter().map(|(name, _)| name.clone()).collect())),
            },
            (Kind::OneOf(_), _) => must("a string"),
            (Kind::List { element, length }, Value::Array(values)) => {
                let values =
                    values.iter().map(|value| element.check(value)).collect::<Result<_, _>>();
                let values: Vec<Value> = values.map_err(of_elements)?;
                match *length {
                    (least, most) if least == most && values.len() != most => {
                        Err(Mistake::Range(format!("must have {most} elements")))
                    }
                    (least, _) if values.len() < least => {
                        Err(Mistake::Range(format!("must have at least {least} element(s)")))
                    }
                    (_, most) if values.len() > most => {
                        Err(Mistake::Range(format!("must have at most {most} element(s)")))
                    }
                    _ => Ok(Value::Array(values)),
                }
            }
            (Kind::List { .. }, _) => must("a list"),
            (Kind::Any { expected, kinds }, value) => {
                let mut wrong = Mistake::Type(format!("must be {expected}"));
                for kind in kinds {
                    match kind.check(value) {
                        Ok(value) => return Ok(value),
                        // An error about a wrong number of the right type says more than the list
                        // of types.
                        Err(mistake @ Mistake::Range(_)) => wrong = mistake,
                        Err(_) => {}
                    }
                }
                Err(wrong)
            }
        }
    }
}

/// The error of a list with a wrong element.
fn of_elements(mistake: Mistake) -> Mistake {
    match mistake {
        Mistake::Type(must) => {
            Mistake::Type(format!("must be a list, and each of its elements {must},"))
        }
        Mistake::Range(must) => {
            Mistake::Range(format!("must be a list, and each of its elements {must},"))
        }
        Mistake::Name(names) => {
            Mistake::Range(format!("must be a list of these: {},", names.join(", ")))
        }
    }
}

impl Range {
    /// The message names only the bound that the integer violates, because the other may have many
    /// digits.
    fn check_integer(&self, number: i64) -> Result<(), Mistake> {
        let number = number as f64;
        let must = match *self {
            Range { least: Some(least), .. } if number < least => format!("at least {least}"),
            Range { above: Some(above), .. } if number <= above => format!("above {above}"),
            Range { most: Some(most), .. } if number > most => format!("at most {most}"),
            Range { .. } => return Ok(()),
        };
        Err(Mistake::Range(format!("must be {must}")))
    }

    /// `noun` comes before the bound in the message: `a number ` of at least 0.
    fn check(&self, number: f64, noun: &str) -> Result<(), Mistake> {
        let of_at_least = if noun.is_empty() { "at least" } else { "of at least" };
        let must = match *self {
            Range { least: Some(least), most: Some(most), .. } => {
                (!(least..=most).contains(&number)).then(|| format!("between {least} and {most}"))
            }
            Range { least: Some(least), .. } => (!(number.is_finite() && number >= least))
                .then(|| format!("{noun}{of_at_least} {least}")),
            Range { above: Some(above), most, .. } => {
                let wrong = !(number.is_finite() && number > above)
                    || most.is_some_and(|most| number > most);
                let most = most.map_or_else(String::new, |most| format!(" and at most {most}"));
                wrong.then(|| format!("{noun}above {above}{most}"))
            }
            Range { most: Some(most), .. } => {
                (!(number.is_finite() && number <= most)).then(|| {
                    format!("{noun}{}at most {most}", if noun.is_empty() { "" } else { "of " })
                })
            }
            Range { .. } => None,
        };
        must.map_or(Ok(()), |must| Err(Mistake::Range(format!("must be {must}"))))
    }
}
