//! `[program]`: preparation of the program for XLA.

use podracer_compiler::simplify::{Group, Options};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Settings of the program's preparation before XLA compiles it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct ProgramSettings {
    /// Groups of simplifications that are switched on. They reduce the number of equations; faster
    /// compilation or execution by XLA could not be measured.
    pub simplify: Vec<SimplifyGroup>,
    /// True for fewer kernel launches: outputs of a loop's iteration are written together, short
    /// bodies run several times per iteration, and searches descend and back up their trees without
    /// loops. True by default on GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<bool>,
    /// True for one kernel per loop without matrix products, at any size, and for none per loop
    /// with matrix products. True by default on CPUs for agents that search; without effect on
    /// other platforms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_loops: Option<bool>,
}

impl ProgramSettings {
    /// The settings as the compiler takes them, for a platform (`cpu`, `cuda13`, `tpu`) and an agent that searches or does not.
    #[must_use]
    pub fn options(&self, platform: &str, searches: bool) -> Options {
        let groups = self.simplify.iter().map(|group| group.0);
        let mut options = groups.fold(Options::default(), Options::with);
        options.launches = self.launches.unwrap_or(platform.starts_with("cuda"));
        options.whole_loops = self.whole_loops.unwrap_or(searches) && platform == "cpu";
        options
    }
}

/// A group of simplifications, by its name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct SimplifyGroup(pub Group);

impl From<SimplifyGroup> for String {
    fn from(SimplifyGroup(group): SimplifyGroup) -> String {
        group.word().to_owned()
    }
}

impl TryFrom<String> for SimplifyGroup {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let group = Group::ALL.iter().find(|group| group.word() == word);
        group.map(|&group| SimplifyGroup(group)).ok_or(format!("there is no group `{word}`"))
    }
}

impl JsonSchema for SimplifyGroup {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SimplifyGroup".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = Group::ALL.iter().map(|group| group.word()).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}
