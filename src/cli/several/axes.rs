//! Settings with several values each, and their combinations.

use anyhow::Result;

use crate::settings::UsageError;

/// A setting and its values, as `--set` takes them.
pub(crate) type Axis = (String, Vec<String>);

/// Greatest number of values in a range.
const MOST_VALUES: usize = 10_000;

/// The parts of a text between its commas, ignoring commas within brackets.
fn between_commas(text: &str) -> Vec<String> {
    let mut open = 0_i32;
    let between = |c: char| {
        open += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && open <= 0
    };
    text.split(between).map(|value| value.trim().to_owned()).collect()
}

/// Parses `KEY=VALUE,VALUE`. Commas within brackets belong to a value.
pub(crate) fn axis(text: &str) -> Result<Axis> {
    let problem = || {
        UsageError::new(format!(
            "--try {text}: expected KEY=VALUE,VALUE such as sebulba.threads=1,2,4"
        ))
    };
    let (key, values) = text.split_once('=').ok_or_else(problem)?;
    let values = between_commas(values);
    if key.is_empty() || values.iter().any(String::is_empty) {
        return Err(problem().into());
    }
    Ok((key.trim().to_owned(), values))
}

/// All combinations of one value per axis; the last axis changes fastest.
pub(crate) fn combinations(axes: &[Axis]) -> Vec<Vec<String>> {
    axes.iter().fold(vec![Vec::new()], |chosen, (key, values)| {
        let with = |chosen: &Vec<String>| {
            let next = values
                .iter()
                .map(|value| [chosen.clone(), vec![format!("{key}={value}")]].concat());
            next.collect::<Vec<_>>()
        };
        chosen.iter().flat_map(with).collect()
    })
}

/// The values in a setting's text: a list (`1e-4,1e-3`), or a number of values in a range, spaced
/// evenly (`lin:0..1:5`) or by equal factors (`log:1e-4..1e-2:8`). `None` for a single value.
pub(crate) fn several(text: &str) -> Result<Option<Vec<String>>> {
    let range =
        ["lin:", "log:"].into_iter().find_map(|kind| Some((kind, text.strip_prefix(kind)?)));
    let Some((kind, range)) = range else {
        let values = between_commas(text);
        if values.iter().any(String::is_empty) {
            let problem = format!("{text}: expected values between commas, such as 1e-4,1e-3");
            return Err(UsageError::new(problem).into());
        }
        return Ok((values.len() > 1).then_some(values));
    };
    let problem = || {
        UsageError::new(format!(
            "{text}: expected `{kind}LOW..HIGH:N`, two numbers{} and how many values, at least 2, such as {kind}1e-4..1e-2:8",
            if kind == "log:" { " greater than 0" } else { "" }
        ))
    };
    let parsed = || {
        let (ends, number) = range.rsplit_once(':')?;
        let (low, high) = ends.split_once("..")?;
        Some((low.parse::<f64>().ok()?, high.parse::<f64>().ok()?, number.parse::<usize>().ok()?))
    };
    let (low, high, number) = parsed().ok_or_else(problem)?;
    let good = low.is_finite() && high.is_finite() && (2..=MOST_VALUES).contains(&number);
    if !good || (kind == "log:" && (low <= 0.0 || high <= 0.0)) {
        return Err(problem().into());
    }
    let value = |i: usize| {
        let share = i as f64 / (number - 1) as f64;
        match (i, kind) {
            (0, _) => low,
            (i, _) if i == number - 1 => high,
            (_, "lin:") => low + share * (high - low),
            _ => low * (high / low).powf(share),
        }
    };
    Ok(Some((0..number).map(|i| format!("{:e}", value(i))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_one_value() {
        let (key, values) = axis("central.actors=[0], [0, 1],[0,1,2]").expect("three lists");
        assert_eq!(
            (&key[..], &values[..]),
            ("central.actors", &["[0]", "[0, 1]", "[0,1,2]"].map(String::from)[..])
        );
    }

    #[test]
    fn values_may_be_a_range() {
        let values = |text: &str| -> Option<Vec<f64>> {
            let values = several(text).expect("it is right")?;
            Some(values.iter().map(|value| value.parse().expect("a number")).collect())
        };
        assert_eq!(values("0.1,0.2, 3"), Some(vec![0.1, 0.2, 3.0]));
        assert_eq!(values("lin:0..1:3"), Some(vec![0.0, 0.5, 1.0]));
        let rates = values("log:1e-4..1e-2:3").expect("three");
        assert!(
            (rates[1] - 1e-3).abs() < 1e-12 && rates[0] == 1e-4 && rates[2] == 1e-2,
            "{rates:?}"
        );
        assert_eq!(values("0.1"), None);
        assert_eq!(values("[64,64]"), None);
        for text in ["log:0..1:3", "log:1..2", "lin:1..2:1", "lin:a..b:3", "1,,2", "log:1..inf:2"] {
            assert!(several(text).is_err(), "{text}");
        }
    }
}
