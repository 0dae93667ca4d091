//! The protocol between client and server: lines, and the layout of the shared memory. The head of `server.py` describes
//! it as a whole.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::super::{HostSpec, Random};
use crate::space::MOST_ELEMENTS;
use crate::wrappers::flat_space;
use crate::{Bounds, Space};

/// Version of the protocol; both sides must have the same.
pub(super) const PROTOCOL: u32 = 1;

/// The first line that a server sends.
#[derive(Debug, Deserialize)]
struct Hello {
    protocol: u32,
    environments: usize,
    observation: SpaceMessage,
    action: SpaceMessage,
    truncates: bool,
    #[serde(default)]
    skips: bool,
    about: String,
    #[serde(default)]
    picture: PictureMessage,
}

/// Height and width of a server's pictures, or why it has none.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PictureMessage {
    Size([usize; 2]),
    Missing(String),
}

impl Default for PictureMessage {
    fn default() -> Self {
        Self::Missing("its server draws none".to_owned())
    }
}

/// Introduction of a server, in its first line.
#[derive(Debug)]
pub(super) struct Introduction {
    /// Number and spaces of its environments.
    pub(super) spec: HostSpec,
    /// Its packages with their versions, and its environment.
    pub(super) about: String,
    /// Height and width of its pictures, or why it has none.
    pub(super) picture: Result<[usize; 2], String>,
}

/// A space in the form of its JSON.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum SpaceMessage {
    Discrete {
        n: usize,
    },
    MultiDiscrete {
        counts: Vec<usize>,
    },
    Box {
        shape: Vec<usize>,
        low: BoundsMessage,
        high: BoundsMessage,
    },
    Pixels {
        shape: Vec<usize>,
    },
    /// An observation of several leaves, which the server makes one vector of.
    Tree {
        leaves: Vec<LeafMessage>,
    },
}

/// A leaf of an observation, by its key path.
#[derive(Debug, Deserialize)]
struct LeafMessage {
    path: String,
    space: SpaceMessage,
}

/// One bound for all elements, or one for each; null is infinite.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum BoundsMessage {
    Shared(Option<f64>),
    Each(Vec<Option<f64>>),
}

impl BoundsMessage {
    fn into_bounds(self, infinite: f64) -> Bounds {
        let bound = |bound: Option<f64>| bound.unwrap_or(infinite);
        match self {
            Self::Shared(shared) => Bounds::Shared(bound(shared)),
            Self::Each(each) => Bounds::Each(each.into_iter().map(bound).collect()),
        }
    }
}

impl SpaceMessage {
    /// The space of an observation: that of one vector for a tree.
    fn into_space(self) -> Result<Space, String> {
        match self {
            Self::Tree { leaves } => checked(flat_space(&named(leaves)?)),
            leaf => leaf.into_leaf(),
        }
    }

    /// The space of an action: a dict for a tree.
    fn into_action(self) -> Result<Space, String> {
        match self {
            Self::Tree { leaves } => checked(Space::dict(named(leaves)?)),
            leaf => {
                let space = leaf.into_leaf()?;
                space.validate_action().map_err(|error| error.to_string())?;
                Ok(space)
            }
        }
    }

    fn into_leaf(self) -> Result<Space, String> {
        checked(match self {
            Self::Discrete { n } => Space::discrete(n),
            Self::MultiDiscrete { counts } => Space::multi_discrete(counts),
            Self::Pixels { shape } => Space::pixels(shape),
            Self::Box { shape, low, high } => Space::bounded(
                shape,
                low.into_bounds(f64::NEG_INFINITY),
                high.into_bounds(f64::INFINITY),
            ),
            Self::Tree { .. } => return Err("a leaf is a tree".to_owned()),
        })
    }
}

/// The spaces of a tree's leaves with their key paths.
fn named(leaves: Vec<LeafMessage>) -> Result<Vec<(String, Space)>, String> {
    let named = leaves.into_iter().map(|LeafMessage { path, space }| {
        let space = space.into_leaf().map_err(|error| format!("`{path}`: {error}"))?;
        Ok((path, space))
    });
    named.collect()
}

/// The space, if it is well formed.
fn checked(space: Space) -> Result<Space, String> {
    space.validate().map_err(|error| error.to_string())?;
    Ok(space)
}

/// Reads the first line of a server with this number of environments.
pub(super) fn read_hello(line: &str, environments: usize) -> Result<Introduction, String> {
    let complain =
        |problem: String| format!("its first line is wrong ({problem}): {}", shortened(line));
    // A server of another protocol may say the rest in other words.
    #[derive(Deserialize)]
    struct Version {
        protocol: u32,
    }
    let version: Version =
        serde_json::from_str(line).map_err(|error| complain(error.to_string()))?;
    if version.protocol != PROTOCOL {
        return Err(format!(
            "it speaks protocol {} where {PROTOCOL} is spoken here",
            version.protocol
        ));
    }
    let hello: Hello = serde_json::from_str(line).map_err(|error| complain(error.to_string()))?;
    debug_assert_eq!(hello.protocol, PROTOCOL);
    if hello.environments != environments {
        return Err(format!(
            "it has {} environments where {environments} were asked for",
            hello.environments
        ));
    }
    let spec = HostSpec {
        truncates: hello.truncates,
        skips: hello.skips,
        ..HostSpec::new(
            environments,
            hello.observation.into_space().map_err(complain)?,
            hello.action.into_action().map_err(complain)?,
        )
    };
    let picture = match hello.picture {
        PictureMessage::Size([height, width]) => {
            let elements = height.checked_mul(width).and_then(|pixels| pixels.checked_mul(3));
            if !elements.is_some_and(|elements| (1..=MOST_ELEMENTS).contains(&elements)) {
                return Err(complain(format!("a picture of {height} by {width} pixels")));
            }
            Ok([height, width])
        }
        PictureMessage::Missing(why) => Err(why),
    };
    Ok(Introduction { spec, about: hello.about, picture })
}

/// A server's line, cut to a length that fits into a message.
pub(super) fn shortened(line: &str) -> String {
    const MOST: usize = 200;
    match line.char_indices().nth(MOST) {
        None => format!("`{line}`"),
        Some((at, _)) => format!("`{}...`", &line[..at]),
    }
}

/// The error that a line of a server reports; `None` for any other line.
pub(super) fn read_failure(line: &str) -> Option<String> {
    let error = line.strip_prefix("failed ")?;
    Some(serde_json::from_str(error).unwrap_or_else(|_| shortened(error)))
}

/// The line that asks for new episodes, of environments from the global index `first` on.
pub(super) fn reset_line(seeds: &[u32], first: usize) -> String {
    format!("reset {}", serde_json::json!({ "seeds": seeds, "first": first }))
}

/// Seeds of environments, by the run's seed, their global indices and the number of restarts of their server. They are
/// below 2^31, for packages that take signed seeds.
pub(super) fn seeds(seed: u64, environments: Range<usize>, restarts: usize) -> Vec<u32> {
    let seed_of = |index| {
        let mut random = Random::of_environment(seed, index);
        let bits = (0..=restarts).fold(0, |_, _| random.bits());
        (bits >> 33) as u32
    };
    environments.map(seed_of).collect()
}

/// Offsets in the shared memory, in bytes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Layout {
    pub(super) bytes: usize,
    pub(super) action: usize,
    /// Two pictures, one behind the other; `None` for a server without any.
    pub(super) picture: Option<usize>,
    /// The step of number `k` is in slot `k % 2`.
    pub(super) slots: [SlotLayout; 2],
}

/// Offsets of the parts of a step; `next_observation` is `None` if the spec never truncates.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SlotLayout {
    pub(super) observation: usize,
    pub(super) next_observation: Option<usize>,
    pub(super) reward: usize,
    pub(super) terminated: usize,
    pub(super) truncated: usize,
}

impl Layout {
    pub(super) fn of(spec: &HostSpec, picture: Option<[usize; 2]>) -> Self {
        let mut bytes = 0;
        let mut place = |size: usize| {
            let start = bytes;
            // Fields do not share cache lines.
            bytes += size.next_multiple_of(64);
            start
        };
        let (n, observation) = (spec.environments, spec.observation_type().bytes());
        let action = place(spec.action_type().bytes());
        let picture = picture.map(|size| place(2 * picture_bytes(size)));
        let slots = [(); 2].map(|()| SlotLayout {
            observation: place(observation),
            next_observation: spec.truncates.then(|| place(observation)),
            reward: place(4 * n),
            terminated: place(n),
            truncated: place(n),
        });
        Layout { bytes, action, picture, slots }
    }
}

/// Bytes of a picture of this height and width.
pub(super) fn picture_bytes([height, width]: [usize; 2]) -> usize {
    3 * height * width
}

/// The end of a server's output.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    /// Greatest number of bytes that are kept.
    const MOST: usize = 4096;

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.drain(..self.0.len().saturating_sub(Self::MOST));
    }

    /// The end of the output as text; if earlier output was dropped, from the first whole line on.
    pub(super) fn text(&self) -> String {
        let (front, back) = self.0.as_slices();
        let text = String::from_utf8_lossy(&[front, back].concat()).into_owned();
        let cut = self.0.len() == Self::MOST;
        let whole = text.split_once('\n').filter(|_| cut);
        whole.map_or(text.as_str(), |(_, rest)| rest).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(change: impl Fn(&mut serde_json::Value)) -> Result<Introduction, String> {
        let mut message = serde_json::json!({
            "protocol": 1, "environments": 3, "truncates": true, "about": "test",
            "observation": {"kind": "box", "shape": [2], "low": [null, -1.0], "high": null},
            "action": {"kind": "discrete", "n": 4},
        });
        change(&mut message);
        read_hello(&message.to_string(), 3)
    }

    #[test]
    fn a_server_says_its_spaces() {
        let Introduction { spec, about, picture } = hello(|_| ()).unwrap();
        assert_eq!((&about[..], picture), ("test", Err("its server draws none".to_owned())));
        assert_eq!(spec.environments, 3);
        let observation = Space::bounded([2], vec![f64::NEG_INFINITY, -1.0], f64::INFINITY);
        assert_eq!(spec.observation, observation);
        assert_eq!(spec.action, Space::discrete(4));
        assert!(spec.truncates && !spec.skips);
        let drawn = hello(|hello| hello["picture"] = serde_json::json!([4, 6])).unwrap();
        assert_eq!(drawn.picture, Ok([4, 6]));
    }

    #[test]
    fn nonsense_in_the_first_line_is_named() {
        let pixels = |side: u64| serde_json::json!({"kind": "pixels", "shape": [side, side]});
        for (key, value, expected) in [
            ("protocol", 7.into(), "it speaks protocol 7 where 1 is spoken here"),
            ("environments", 2.into(), "it has 2 environments where 3 were asked for"),
            ("truncates", 7.into(), "its first line is wrong"),
            ("action", serde_json::json!({"kind": "discrete", "n": 0}), "needs at least one value"),
            ("action", serde_json::json!({"kind": "text"}), "unknown variant `text`"),
            (
                "action",
                serde_json::json!({"kind": "multi-discrete", "counts": [3, 0]}),
                "element 1: each element of a multi-discrete space needs at least one value",
            ),
            (
                "observation",
                serde_json::json!({"kind": "box", "shape": [2], "low": [0.0], "high": null}),
                "needs 2 bounds or one shared, got 1",
            ),
            (
                "observation",
                serde_json::json!({"kind": "tree", "leaves": [
                    {"path": "hand.card", "space": {"kind": "discrete", "n": 0}},
                ]}),
                "`hand.card`: a discrete space needs at least one value",
            ),
            ("observation", serde_json::json!({"kind": "tree", "leaves": []}), "has no elements"),
            ("action", serde_json::json!({"kind": "tree", "leaves": []}), "at least one part"),
            (
                "action",
                serde_json::json!({"kind": "tree", "leaves": [
                    {"path": "picture", "space": {"kind": "pixels", "shape": [2, 2, 1]}},
                ]}),
                "part `picture`: the parts of a dict are discrete, multi-discrete or boxes",
            ),
            ("action", pixels(8), "an action is a choice, a box of numbers or a dict of these"),
            ("observation", pixels(1 << 40), "has no elements, or too many"),
            ("observation", pixels(0), "has no elements, or too many"),
            ("picture", serde_json::json!([0, 9]), "a picture of 0 by 9 pixels"),
            (
                "picture",
                serde_json::json!([1u64 << 40, 1u64 << 40]),
                "a picture of 1099511627776 by",
            ),
            ("picture", serde_json::json!([9]), "did not match any variant"),
        ] {
            let message = hello(|hello| hello[key] = value.clone()).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        let message = hello(|hello| *hello = 1.into()).unwrap_err();
        assert!(message.contains("its first line is wrong"), "{message}");
    }

    #[test]
    fn fields_do_not_overlap() {
        for (truncates, picture) in [(false, None), (true, Some([7, 3]))] {
            let spec = HostSpec {
                truncates,
                ..HostSpec::new(5, Space::unbounded([3]), Space::unbounded([2]))
            };
            let layout = Layout::of(&spec, picture);
            let mut fields = vec![(layout.action, 40)];
            assert_eq!(layout.picture.is_some(), picture.is_some());
            fields.extend(layout.picture.map(|place| (place, 2 * 63)));
            for slot in &layout.slots {
                fields.extend([(slot.observation, 60), (slot.reward, 20)]);
                fields.extend([(slot.terminated, 5), (slot.truncated, 5)]);
                fields.extend(slot.next_observation.map(|place| (place, 60)));
                assert_eq!(slot.next_observation.is_some(), truncates);
            }
            fields.sort_unstable();
            fields.push((layout.bytes, 0));
            assert!(fields.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0));
        }
    }

    #[test]
    fn seeds_depend_on_the_global_index_and_on_restarts() {
        let all = seeds(3, 0..8, 0);
        assert_eq!(seeds(3, 4..8, 0), all[4..]);
        let mut different = [all, seeds(4, 0..8, 0), seeds(3, 0..8, 1), seeds(3, 0..8, 2)].concat();
        assert!(different.iter().all(|&seed| seed < 1 << 31));
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 32);
    }

    #[test]
    fn of_long_output_the_end_is_kept() {
        let mut tail = Tail::default();
        tail.push(b"short\n");
        assert_eq!(tail.text(), "short");
        for line in 0..1000 {
            tail.push(format!("line {line}\n").as_bytes());
        }
        assert!(tail.text().starts_with("line "), "{}", tail.text());
        assert!(tail.text().ends_with("line 998\nline 999"));
    }
}
