//! Numbers as arguments of the command line: counts of steps, and positive counts.

use std::num::NonZero;

use clap::builder::RangedU64ValueParser;

/// The greatest integer that TOML can write.
const LARGEST: u128 = i64::MAX as u128;

/// Parses a number of steps: `1000000`, `1_000_000`, `1e6`, `2.5M`, `300k`.
pub(super) fn steps(text: &str) -> Result<u64, String> {
    match whole(text) {
        None => Err("expected a whole number of steps, such as 300000, 1_000_000, 300k, 2.5M, 1G \
                     or 1e6"
            .to_owned()),
        Some(0) => Err("expected at least 1 step".to_owned()),
        Some(steps) if steps > LARGEST => Err(format!("expected at most {LARGEST} steps")),
        Some(steps) => Ok(steps as u64),
    }
}

/// Parser of a count that must be at least one.
pub(super) fn at_least_one(
    thing: &'static str,
) -> impl Fn(&str) -> Result<NonZero<usize>, String> + Clone {
    move |text| {
        let number = text.parse().ok().and_then(NonZero::new);
        number.ok_or_else(|| match text.parse::<i128>() {
            Ok(1..) => format!("expected at most {}", usize::MAX),
            Ok(_) => format!("expected at least 1 {thing}"),
            Err(_) => format!("expected a whole number, at least 1 {thing}"),
        })
    }
}

/// The numbers that TOML can write.
pub(super) fn number() -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(..=i64::MAX as u64)
}

/// The integer in a text, with or without a fraction, an exponent and a unit. `None` for other
/// texts, for numbers with a fractional part, and for numbers above 10^37.
fn whole(text: &str) -> Option<u128> {
    // An underscore must be between two digits.
    let digit = |part: Option<&str>, end: fn(&str) -> Option<char>| {
        part.and_then(end).is_some_and(|c| c.is_ascii_digit())
    };
    let parts: Vec<&str> = text.split('_').collect();
    let between = |pair: &[&str]| {
        digit(pair.first().copied(), |part| part.chars().last())
            && digit(pair.get(1).copied(), |part| part.chars().next())
    };
    if !parts.windows(2).all(between) {
        return None;
    }
    let text = parts.concat();
    let (number, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 3),
        (at, 'm' | 'M') => (&text[..at], 6),
        (at, 'g' | 'G') => (&text[..at], 9),
        _ => (&*text, 0),
    };
    let (number, exponent) = match number.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i8>().ok()?),
        None => (number, 0),
    };
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    let after = after.trim_end_matches('0');
    let digits = format!("{before}{after}");
    if before.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let digits: u128 = digits.parse().ok()?;
    let power = i32::from(exponent) + unit - i32::try_from(after.len()).ok()?;
    let scale = 10_u128.checked_pow(power.unsigned_abs())?;
    match power {
        0.. => digits.checked_mul(scale),
        _ => digits.is_multiple_of(scale).then_some(digits / scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_may_have_units_and_exponents() {
        for (text, expected) in [
            ("1", 1),
            ("1000000", 1_000_000),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("1.5E+3", 1_500),
            ("2.5M", 2_500_000),
            ("300k", 300_000),
            ("1.00", 1),
            ("10e-1", 1),
            ("3g", 3_000_000_000),
            ("9223372036854775807", u64::MAX / 2),
        ] {
            assert_eq!(steps(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("many", "expected a whole number of steps, such as "),
            ("", "expected a whole number"),
            ("k", "expected a whole number"),
            (".5M", "expected a whole number"),
            ("1.5", "expected a whole number"),
            ("0.0123k", "expected a whole number"),
            ("-1", "expected a whole number"),
            ("1__0", "expected a whole number"),
            ("_1", "expected a whole number"),
            ("1_k", "expected a whole number"),
            ("1kk", "expected a whole number"),
            ("1e1e1", "expected a whole number"),
            ("1e999", "expected a whole number"),
            ("inf", "expected a whole number"),
            ("١", "expected a whole number"),
            ("0", "expected at least 1 step"),
            ("0e9", "expected at least 1 step"),
            ("9223372036854775808", "expected at most 9223372036854775807 steps"),
            ("1e20", "expected at most 9223372036854775807 steps"),
        ] {
            let said = steps(text).unwrap_err();
            assert!(said.starts_with(expected), "{text}: {said}");
        }
    }

    #[test]
    fn a_number_of_things_begins_at_one() {
        let episodes = at_least_one("episode");
        assert_eq!(episodes("3").map(NonZero::get), Ok(3));
        for (text, expected) in [
            ("0", "expected at least 1 episode"),
            ("-2", "expected at least 1 episode"),
            ("few", "expected a whole number, at least 1 episode"),
            ("1.5", "expected a whole number, at least 1 episode"),
            ("99999999999999999999", "expected at most 18446744073709551615"),
        ] {
            assert_eq!(episodes(text).unwrap_err(), expected);
        }
    }
}
