//! An environment that the learner does not know: workers provide it.

use anyhow::Result;
use podracer_envs::host::HostSpec;
use podracer_envs::{Bounds, Space};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::batches::Batches;
use super::{EnvironmentEntry, Registry, parse};
use crate::settings::UsageError;

/// The forms of a space, as messages show them.
const FORMS: &str = "`box([4])`, `box([2], -1, 1)`, `box([2], [-1, 0], [1, inf])`, `pixels([84, 84, 4])`, `discrete(16)` or \
                     `multi_discrete([3, 2])`";

/// Registers the environment.
pub(super) fn register(registry: &mut Registry) {
    registry.add_environment(EnvironmentEntry::new::<Remote>("remote", batches).map(|remote| {
        EnvironmentEntry {
            check: |table| parse::<Remote>(table, "environment")?.spec(1).map(|_| ()),
            ..remote
        }
    }));
}

/// An environment that workers bring along, of which the learner knows the spaces alone: a simulator on another machine, written in any
/// language. It is for `podracer serve`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
struct Remote {
    /// Space of the observations of one environment: `box([4])` for unbounded f32 numbers;
    /// `box([2], -1, 1)` with bounds for all elements, or with bounds for each, `box([2], [-1, 0],
    /// [1, inf])`; `pixels([84, 84, 4])` for bytes; `discrete(16)`; `multi_discrete([3, 2])`.
    observation: String,
    /// Space of the actions of one environment, written in the same way.
    action: String,
    /// True if an episode may be cut off without a terminal state.
    truncates: bool,
    /// True if a step may do nothing but begin the next episode.
    skips: bool,
    /// True if steps report which of the discrete actions are legal.
    masks: bool,
    /// True if steps that end an episode report the share of its task that was done: the metric
    /// `episode_success`.
    succeeds: bool,
}

impl Remote {
    /// The spec for `environments` environments with the declared spaces.
    fn spec(&self, environments: usize) -> Result<HostSpec, String> {
        let space = |name: &str, text: &str| {
            space(text).map_err(|problem| match text.is_empty() {
                true => format!(
                    "environment.{name} must say the space that the workers' environments have: expected {FORMS}"
                ),
                false => format!("environment.{name} = {text:?}: {problem}"),
            })
        };
        let observation = space("observation", &self.observation)?;
        let action = space("action", &self.action)?;
        action
            .validate_action()
            .map_err(|problem| format!("environment.action = {:?}: {problem}", self.action))?;
        if self.masks && action.counts().is_empty() {
            return Err(format!(
                "environment.masks = true is for discrete actions: environment.action is {:?}",
                self.action
            ));
        }
        Ok(HostSpec {
            truncates: self.truncates,
            skips: self.skips,
            masks: self.masks,
            succeeds: self.succeeds,
            ..HostSpec::new(environments, observation, action)
        })
    }
}

fn batches(table: &Table, lanes: usize, _: usize) -> Result<Batches> {
    let remote: Remote = parse(table, "environment").map_err(UsageError::new)?;
    let spec = remote.spec(lanes).map_err(UsageError::new)?;
    Ok(Batches::elsewhere(
        spec,
        "environment.name = remote steps at workers that bring it along: train with `podracer serve`, and connect workers of your own \
         (docs/worker-protocol.md), or `podracer work --environment NAME`",
    ))
}

/// Parses a space.
fn space(text: &str) -> Result<Space, String> {
    let unknown = || format!("expected {FORMS}");
    let (form, arguments) =
        text.trim().strip_suffix(')').and_then(|text| text.split_once('(')).ok_or_else(unknown)?;
    let arguments: Table = format!("given = [{arguments}]").parse().map_err(|_| unknown())?;
    let arguments = arguments.get("given").and_then(Value::as_array).cloned().unwrap_or_default();
    let space = match (form.trim(), &arguments[..]) {
        ("box", [shape]) => Space::unbounded(sizes(shape).ok_or_else(unknown)?),
        ("box", [shape, low, high]) => Space::bounded(
            sizes(shape).ok_or_else(unknown)?,
            bounds(low).ok_or_else(unknown)?,
            bounds(high).ok_or_else(unknown)?,
        ),
        ("pixels", [shape]) => Space::pixels(sizes(shape).ok_or_else(unknown)?),
        ("discrete", [n]) => Space::discrete(size(n).ok_or_else(unknown)?),
        ("multi_discrete", [counts]) => Space::multi_discrete(sizes(counts).ok_or_else(unknown)?),
        _ => return Err(unknown()),
    };
    space.validate().map_err(|error| error.to_string())?;
    Ok(space)
}

fn size(value: &Value) -> Option<usize> {
    value.as_integer().and_then(|size| usize::try_from(size).ok())
}

fn sizes(value: &Value) -> Option<Vec<usize>> {
    value.as_array()?.iter().map(size).collect()
}

fn bounds(value: &Value) -> Option<Bounds> {
    let number = |value: &Value| value.as_float().or_else(|| Some(value.as_integer()? as f64));
    match value {
        Value::Array(each) => each.iter().map(number).collect::<Option<_>>().map(Bounds::Each),
        one => number(one).map(Bounds::Shared),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_read_as_they_are_written() {
        for (text, expected) in [
            ("box([4])", Space::unbounded([4])),
            ("box([])", Space::unbounded([])),
            ("box([2], -1, 1.5)", Space::bounded([2], -1.0, 1.5)),
            (
                " box( [2], [-1, 0], [1, inf] ) ",
                Space::bounded([2], [-1.0, 0.0], [1.0, f64::INFINITY]),
            ),
            ("pixels([84, 84, 4])", Space::pixels([84, 84, 4])),
            ("discrete(16)", Space::discrete(16)),
            ("multi_discrete([3, 2])", Space::multi_discrete([3, 2])),
        ] {
            assert_eq!(space(text).as_ref(), Ok(&expected), "{text}");
        }
        for text in
            ["", "box", "box([2], 1)", "discrete(-1)", "discrete([2])", "box([2)", "sphere(3)"]
        {
            let problem = space(text).expect_err(text);
            assert!(problem.contains("expected `box([4])`"), "{problem}");
        }
        assert!(space("discrete(0)").expect_err("it is empty").contains("at least one value"));
        for text in ["box([0])", "pixels([0, 0, 0])", "box([4294967296, 4294967296])"] {
            let problem = space(text).expect_err(text);
            assert!(problem.contains("has no elements, or too many"), "{problem}");
        }
        assert!(space("box([4], 1e39, 1e40)").expect_err("f32").contains("no number of f32"));
        let (observation, action) = ("box([4])".to_owned(), "pixels([8, 8, 1])".to_owned());
        let pixels = Remote { observation, action, ..Remote::default() };
        let problem = pixels.spec(1).expect_err("an image is no action");
        assert!(problem.starts_with("environment.action = \"pixels([8, 8, 1])\": "), "{problem}");
        assert!(space("box([2], 1, 0)").is_err() && space("box([2], [0], [1, 1])").is_err());
    }
}
