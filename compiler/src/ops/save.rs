//! The policies of `checkpoint`.

use crate::attributes::{Attribute, AttributeValue};

/// The values that a checkpointed function keeps for its backward pass, in addition to its
/// arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Save {
    /// All values that the backward pass reads, as without `checkpoint`.
    Everything,
    /// No value: every value is recomputed.
    Nothing,
    /// The results of `dot_general`: the rest is cheap to compute from them.
    Dots,
    /// The values that [`Named`](super::Named) gave one of these names.
    Names(Vec<String>),
}

impl AttributeValue for Save {
    fn to_attribute(&self) -> Attribute {
        Attribute::Word(match self {
            Save::Everything => "everything".to_string(),
            Save::Nothing => "nothing".to_string(),
            Save::Dots => "dots".to_string(),
            Save::Names(names) => format!("names:{}", names.join(":")),
        })
    }

    fn from_attribute(attribute: &Attribute) -> Option<Self> {
        let Attribute::Word(word) = attribute else {
            return None;
        };
        match (word.as_str(), word.strip_prefix("names:")) {
            ("everything", _) => Some(Save::Everything),
            ("nothing", _) => Some(Save::Nothing),
            ("dots", _) => Some(Save::Dots),
            (_, Some(names)) => Some(Save::Names(names.split(':').map(str::to_string).collect())),
            _ => None,
        }
    }

    fn expected() -> String {
        "`everything`, `nothing`, `dots` or `names:a:b`".to_string()
    }
}
