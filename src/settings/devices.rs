//! Devices of a run as the user names them: `2` (the first two), `"all"`, or `[0, 3]` (by index).

use std::borrow::Cow;

use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use toml::Value;

use super::UsageError;
use podracer_runtime::MOST_DEVICES;

/// Devices as the user names them, not yet checked against the machine's.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Devices {
    /// The first devices, this many.
    Count(usize),
    /// Every device of the platform.
    All,
    /// The devices with these indices.
    List(Vec<usize>),
}

/// The ways to name devices, for error messages.
pub(super) const EXPECTED: &str =
    "a number of devices (`2`), `\"all\"` or a list of device indices (`[0, 3]`)";

impl Devices {
    /// Parses devices of the command line: `2`, `all`, `0,3` or `[0, 3]`.
    ///
    /// # Errors
    /// Returns the ways to name devices.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "all" {
            return Ok(Self::All);
        }
        if let Ok(count) = text.parse() {
            return Ok(Self::Count(count));
        }
        let list = text.trim_start_matches('[').trim_end_matches(']');
        let indices: Result<_, _> = list.split(',').map(|index| index.trim().parse()).collect();
        indices.map(Self::List).map_err(|_| format!("expected {EXPECTED}"))
    }

    /// Least number of devices of a machine that has all named devices; 0 for [`Devices::All`].
    #[must_use]
    pub fn named(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Count(count) => *count,
            Self::List(indices) => up_to(indices),
        }
    }

    /// The indices on a machine of `available` devices.
    ///
    /// # Errors
    /// Returns an error for no device, a device that does not exist, or a device named twice.
    pub fn resolve(&self, available: usize, platform: &str) -> Result<Vec<usize>, UsageError> {
        let there_are = match available {
            1 => format!("there is 1 {platform} device, number 0"),
            _ => format!(
                "there are {available} {platform} devices, numbers 0 to {}",
                available.saturating_sub(1)
            ),
        };
        let indices = match self {
            Self::All => (0..available).collect(),
            Self::Count(count) if *count > available => {
                return Err(UsageError::new(format!(
                    "{count} devices are asked for and {there_are}"
                )));
            }
            Self::Count(count) => (0..*count).collect(),
            Self::List(indices) => indices.clone(),
        };
        if indices.is_empty() {
            return Err(UsageError::new(format!("a run needs at least one device: {there_are}")));
        }
        for (position, index) in indices.iter().enumerate() {
            if *index >= available {
                return Err(UsageError::new(format!("device {index} does not exist: {there_are}")));
            }
            if indices[..position].contains(index) {
                return Err(UsageError::new(format!("device {index} is named twice")));
            }
        }
        Ok(indices)
    }
}

/// Least number of devices of a machine that has these indices.
pub(super) fn up_to<'a>(indices: impl IntoIterator<Item = &'a usize>) -> usize {
    let counts = indices.into_iter().map(|&index| index.saturating_add(1));
    counts.max().unwrap_or(0)
}

impl TryFrom<Value> for Devices {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let index = |value: &Value| usize::try_from(value.as_integer()?).ok();
        let devices = match &value {
            Value::Integer(_) => index(&value).map(Self::Count),
            Value::String(text) if text == "all" => Some(Self::All),
            Value::Array(indices) => {
                indices.iter().map(index).collect::<Option<_>>().map(Self::List)
            }
            _ => None,
        };
        devices.ok_or_else(|| format!("expected {EXPECTED}"))
    }
}

impl From<Devices> for Value {
    fn from(devices: Devices) -> Self {
        let integer = |index: usize| Value::Integer(i64::try_from(index).unwrap_or(i64::MAX));
        match devices {
            Devices::Count(count) => integer(count),
            Devices::All => Value::String("all".to_owned()),
            Devices::List(indices) => Value::Array(indices.into_iter().map(integer).collect()),
        }
    }
}

impl JsonSchema for Devices {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Devices".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        json_schema!({
            "x-expected": EXPECTED,
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": MOST_DEVICES },
                { "type": "string", "const": "all" },
                {
                    "type": "array",
                    "items": { "type": "integer", "minimum": 0, "maximum": MOST_DEVICES - 1 },
                    "minItems": 1,
                    "maxItems": MOST_DEVICES,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_ways_to_name_devices() {
        assert_eq!(Devices::parse("2"), Ok(Devices::Count(2)));
        assert_eq!(Devices::parse("all"), Ok(Devices::All));
        assert_eq!(Devices::parse("0,3"), Ok(Devices::List(vec![0, 3])));
        assert_eq!(Devices::parse("[0, 3]"), Ok(Devices::List(vec![0, 3])));
        assert!(Devices::parse("two").unwrap_err().contains("`2`"));
        assert_eq!(Devices::All.resolve(2, "cpu").unwrap(), [0, 1]);
        assert_eq!(Devices::List(vec![1]).resolve(2, "cpu").unwrap(), [1]);
    }

    #[test]
    fn devices_that_cannot_be_say_which_there_are() {
        let error = |devices: Devices, available| {
            devices.resolve(available, "cpu").unwrap_err().to_string()
        };
        assert_eq!(
            error(Devices::Count(3), 2),
            "3 devices are asked for and there are 2 cpu devices, numbers 0 to 1"
        );
        assert_eq!(
            error(Devices::List(vec![2]), 1),
            "device 2 does not exist: there is 1 cpu device, number 0"
        );
        assert_eq!(
            error(Devices::Count(0), 1),
            "a run needs at least one device: there is 1 cpu device, number 0"
        );
        assert_eq!(error(Devices::List(vec![0, 0]), 2), "device 0 is named twice");
    }
}
