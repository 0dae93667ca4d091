//! Drawings of a search tree as SVG.

use std::fmt::Write;

/// Extents of a node and the space between nodes, in pixels.
const WIDTH: f64 = 66.0;
const HEIGHT: f64 = 34.0;
const BESIDE: f64 = 76.0;
const BELOW: f64 = 76.0;

/// One tree, as slices of [`SearchTree`](super::SearchTree)'s fields on the host.
#[derive(Clone, Copy, Debug)]
pub struct TreePicture<'a> {
    /// The parent of each node, -1 for the root and for nodes that were never added.
    pub parents: &'a [i32],
    /// The action from the parent to each node.
    pub action_from_parent: &'a [i32],
    /// Number of visits of each node.
    pub node_visits: &'a [i32],
    /// Value of each node.
    pub node_values: &'a [f32],
}

/// A node's position: the middle of its upper edge.
#[derive(Clone, Copy, Default)]
struct NodePlace {
    x: f64,
    y: f64,
}

impl TreePicture<'_> {
    /// The tree as SVG. Each node shows visits and value, and each edge its action. The width of an
    /// edge is its share of visits. For each node the `most_children` most visited children are
    /// drawn. `action_name` names an action.
    ///
    /// # Errors
    /// Returns an error for slices of different lengths, or without a root.
    pub fn svg(
        &self,
        most_children: usize,
        action_name: &dyn Fn(i32) -> String,
    ) -> Result<String, String> {
        let count = self.parents.len();
        let lengths =
            [count, self.action_from_parent.len(), self.node_visits.len(), self.node_values.len()];
        if count == 0 || lengths.iter().any(|&length| length != count) {
            return Err(format!(
                "expected slices of one node and more, all as long, got {lengths:?}"
            ));
        }
        let children = self.children(most_children);
        let mut places = vec![None; count];
        let mut right = 0.0;
        let mut deepest = 0.0_f64;
        // Each node comes after its children, centred above them.
        let mut open = vec![(0, 0.0, false)];
        while let Some((node, depth, seen)) = open.pop() {
            let below: &[usize] = &children[node];
            if !seen && !below.is_empty() {
                open.push((node, depth, true));
                open.extend(below.iter().rev().map(|&child| (child, depth + 1.0, false)));
                continue;
            }
            let ends =
                [below.first(), below.last()].map(|child| child.and_then(|&child| places[child]));
            let x = match ends {
                [Some(NodePlace { x: first, .. }), Some(NodePlace { x: last, .. })] => {
                    (first + last) / 2.0
                }
                _ => {
                    right += BESIDE;
                    right - BESIDE / 2.0
                }
            };
            places[node] = Some(NodePlace { x, y: 10.0 + depth * BELOW });
            deepest = deepest.max(depth);
        }
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\" font-family=\"sans-serif\" \
             font-size=\"11\" text-anchor=\"middle\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            right,
            20.0 + deepest * BELOW + HEIGHT
        );
        for (node, place) in places.iter().enumerate() {
            let Some(place) = *place else { continue };
            for &child in &children[node] {
                self.edge(
                    &mut svg,
                    node,
                    child,
                    (place, places[child].unwrap_or_default()),
                    action_name,
                );
            }
        }
        for (node, place) in places.iter().enumerate() {
            if let Some(place) = *place {
                self.node(&mut svg, node, place);
            }
        }
        svg.push_str("</svg>\n");
        Ok(svg)
    }

    /// The children of each node to draw, ordered by action.
    fn children(&self, most: usize) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.parents.len()];
        for (node, &parent) in self.parents.iter().enumerate().skip(1) {
            if let Some(of) = usize::try_from(parent).ok().and_then(|at| children.get_mut(at)) {
                of.push(node);
            }
        }
        for of in &mut children {
            of.sort_by_key(|&node| std::cmp::Reverse(self.node_visits[node]));
            of.truncate(most);
            of.sort_by_key(|&node| self.action_from_parent[node]);
        }
        children
    }

    fn edge(
        &self,
        svg: &mut String,
        node: usize,
        child: usize,
        (from, to): (NodePlace, NodePlace),
        action_name: &dyn Fn(i32) -> String,
    ) {
        let share = f64::from(self.node_visits[child]) / f64::from(self.node_visits[node].max(1));
        let from = NodePlace { y: from.y + HEIGHT, ..from };
        let name = escaped(&action_name(self.action_from_parent[child]));
        let _ = writeln!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#666\" stroke-width=\"{:.1}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#333\">{name}</text>",
            from.x,
            from.y,
            to.x,
            to.y,
            0.8 + 4.0 * share,
            (from.x + 2.0 * to.x) / 3.0,
            (from.y + 2.0 * to.y) / 3.0
        );
    }

    fn node(&self, svg: &mut String, node: usize, place: NodePlace) {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" fill=\"#eef3fb\" stroke=\"#446\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n<text x=\"{:.1}\" y=\"{:.1}\">{:.3}</text>",
            place.x - WIDTH / 2.0,
            place.y,
            place.x,
            place.y + 14.0,
            self.node_visits[node],
            place.x,
            place.y + 28.0,
            self.node_values[node]
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::TreePicture;

    #[test]
    fn a_tree_is_drawn_with_its_most_visited_children() {
        let picture = TreePicture {
            parents: &[-1, 0, 0, 0, 1, -1],
            action_from_parent: &[-1, 2, 0, 1, 0, -1],
            node_visits: &[5, 2, 1, 3, 1, 0],
            node_values: &[0.5, 0.25, 0.0, 1.0, -1.0, 0.0],
        };
        let svg = picture.svg(2, &|action| format!("<{action}>")).expect("it is a tree");
        // The root's two most visited children of three, and one child below them; the node that
        // was never added is omitted.
        assert_eq!(svg.matches("<line").count(), 3);
        assert_eq!(svg.matches("rx=").count(), 4);
        assert!(
            svg.contains("&lt;2&gt;") && svg.contains("1.000") && !svg.contains("0.000"),
            "{svg}"
        );
        let short = TreePicture { node_values: &[0.0], ..picture };
        assert_eq!(
            short.svg(2, &|action| action.to_string()).unwrap_err(),
            "expected slices of one node and more, all as long, got [6, 6, 6, 1]"
        );
    }
}
