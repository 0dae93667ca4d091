//! `[program]`: what is done to the program on its way to XLA.

use podracer_compiler::simplify::{Group, Options};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Settings of the program's preparation before XLA compiles it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct ProgramSettings {
    /// Groups of simplifications that are switched on. They make fewer equations; that XLA compiles or runs them faster could
    /// not be measured.
    pub simplify: Vec<SimplifyGroup>,
    /// True for fewer kernels to launch: outputs of a loop's iteration are written together, short bodies run several times an iteration,
    /// and searches go down and up their trees without loops. By default so on GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<bool>,
    /// True for one kernel of each loop without products of matrices, whatever its size, and for none of those with them. By default so on CPUs for
    /// agents that search; without effect elsewhere.
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

/// A group of simplifications by its word.
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
