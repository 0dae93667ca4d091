//! Short names of paths.

use std::collections::BTreeMap;

/// For each path, the shortest unique suffix that begins with a letter: `ball_row` for
/// `0.sharded.environment.ball_row`.
pub(super) fn short(paths: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for end in paths.iter().flat_map(|path| ends(path)) {
        *counts.entry(end).or_default() += 1;
    }
    let short = |path: &String| {
        let is_name = |end: &&str| end.starts_with(|c: char| c.is_alphabetic()) && counts[end] == 1;
        ends(path).find(is_name).unwrap_or(path).to_owned()
    };
    paths.iter().map(short).collect()
}

/// The suffixes of a path, the shortest first.
fn ends(path: &str) -> impl Iterator<Item = &str> {
    let dots = path.rmatch_indices('.').map(|(dot, _)| &path[dot + 1..]);
    dots.chain(std::iter::once(path))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_name_is_as_short_as_it_can_be() {
        let paths =
            ["0.agent.layers[0].bias", "0.agent.layers[1].bias", "0.opt.1", "0.key", "1.key", "x"];
        let names = short(&paths.map(str::to_owned));
        assert_eq!(names, ["layers[0].bias", "layers[1].bias", "opt.1", "0.key", "1.key", "x"]);
    }
}
