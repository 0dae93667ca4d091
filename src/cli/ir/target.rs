//! The machines that `podracer check` compiles for: `tpu:v5e:2x4`.

use anyhow::{Context, Result};
use podracer_runtime::{Plugin, Topology};

use crate::settings::{UsageError, suggestion};

/// The generations that the `tpu` plugin knows, each with the number of extents.
const GENERATIONS: [(&str, usize); 7] =
    [("v2", 2), ("v3", 2), ("v4", 3), ("v5e", 2), ("v5p", 3), ("v6e", 2), ("tpu7x", 3)];

/// A machine to compile for, which need not be present.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    topology: String,
}

impl Target {
    pub(crate) fn parse(text: &str) -> Result<Self, UsageError> {
        let wrong = |problem: String| {
            UsageError::new(format!(
                "the target `{text}` {problem}; a target is `tpu:GENERATION:AxB` with A x B chips, such as tpu:v5e:2x4 or tpu:v3:32x32 \
                 (three extents, AxBxC, for v4, v5p and tpu7x)"
            ))
        };
        let Some((platform, topology)) = text.split_once(':') else {
            return Err(wrong("names no topology".to_owned()));
        };
        if platform != "tpu" {
            return Err(wrong(format!(
                "is for `{platform}`: only TPUs can be compiled for from afar"
            )));
        }
        let Some((generation, extents)) = topology.split_once(':') else {
            return Err(wrong("names no number of chips".to_owned()));
        };
        let Some(&(_, rank)) = GENERATIONS.iter().find(|(name, _)| *name == generation) else {
            let names = GENERATIONS.map(|(name, _)| name);
            let near = suggestion(generation, names);
            return Err(wrong(format!(
                "names the generation `{generation}`, and there are {}{near}",
                names.join(", ")
            )));
        };
        let counted =
            extents.split('x').map(|extent| extent.parse().ok().filter(|&extent: &u32| extent > 0));
        let counted: Option<Vec<u32>> = counted.collect();
        if counted.is_none_or(|counted| counted.len() != rank) {
            return Err(wrong(format!(
                "has the chips `{extents}`, and {generation} takes {rank} extents"
            )));
        }
        Ok(Self { topology: topology.to_owned() })
    }

    pub(crate) fn open(&self) -> Result<Topology> {
        Topology::new(Plugin::load("tpu")?, &self.topology, &[])
            .with_context(|| format!("the plugin `tpu` has no topology `{}`", self.topology))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_are_none_say_what_one_is() {
        let target = Target::parse("tpu:v3:32x32").unwrap();
        assert_eq!(target, Target { topology: "v3:32x32".to_owned() });
        for (text, expected) in [
            ("tpu", "names no topology"),
            ("cuda:h100:8", "only TPUs"),
            ("tpu:v5e", "names no number of chips"),
            ("tpu:v5:2x4", "there are v2, v3, v4"),
            ("tpu:v5e:2", "v5e takes 2 extents"),
            ("tpu:v5e:0x4", "v5e takes 2 extents"),
            ("tpu:v4:2x2", "v4 takes 3 extents"),
        ] {
            let message = Target::parse(text).unwrap_err().to_string();
            assert!(
                message.contains(expected) && message.contains("such as tpu:v5e:2x4"),
                "{message}"
            );
        }
    }
}
