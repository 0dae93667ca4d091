//! Graph colouring: give each node of a graph a colour that differs from its neighbours' colours,
//! with few colours.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// GraphColoring: the nodes of a random graph are coloured one after another, each with a colour
/// that none of its neighbours has. There are as many colours as nodes.
///
/// The last node pays -1 for each colour that is used. The last node terminates the episode, and so
/// does a colour that a neighbour has, which pays -1 for each node.
///
/// The rules follow jumanji 1.1.2's GraphColoring-v1. Graphs are drawn with other random numbers:
/// each edge exists with probability `edge_probability`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GraphColoring {
    /// Nodes of the graph.
    #[schemars(range(min = 1, max = 200))]
    pub nodes: usize,
    /// Probability of an edge between two nodes.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub edge_probability: f64,
}

/// 20 nodes and edges with probability 0.8, as in jumanji.
impl Default for GraphColoring {
    fn default() -> Self {
        GraphColoring { nodes: 20, edge_probability: 0.8 }
    }
}

/// The graph and its colours.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// True for each pair of neighbours, twice. `bool[nodes, nodes]`
    pub edges: Tensor,
    /// The colour of each node, -1 for uncoloured nodes. `i32[nodes]`
    pub colours: Tensor,
    /// The node to be coloured. `i32[]`
    pub node: Tensor,
}

impl GraphColoring {
    /// True for the node to be coloured. `bool[nodes]`
    #[track_caller]
    fn here(&self, state: &State) -> Tensor {
        arange(self.nodes).eq(state.node)
    }

    /// True for each colour of each node. `bool[nodes, nodes]`
    #[track_caller]
    fn has(&self, colours: Tensor) -> Tensor {
        colours.expand_dims(1).eq(arange(self.nodes).expand_dims(0))
    }

    /// True for the colours that no neighbour of the node has. `bool[nodes]`
    #[track_caller]
    fn free(&self, state: &State) -> Tensor {
        let beside = (state.edges & self.here(state).expand_dims(1)).any_axis(0);
        !(self.has(state.colours) & beside.expand_dims(1)).any_axis(0)
    }

    /// The initial state of an episode with this graph, `bool[nodes, nodes]`.
    #[track_caller]
    pub fn at(&self, edges: Tensor) -> State {
        State { edges, colours: full([self.nodes], -1), node: scalar(0) }
    }
}

impl Environment for GraphColoring {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let square = [self.nodes, self.nodes];
        let below = iota(I32, square, 0).gt(iota(I32, square, 1));
        let edges = key.uniform(square).lt(self.edge_probability) & below;
        self.at(edges | edges.transpose())
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let is_free = (self.free(&state) & arange(self.nodes).eq(action)).any();
        let colours = select(self.here(&state), action, state.colours);
        let nodes = self.nodes as i32;
        let done = colours.ge(0).all();
        let used = self.has(colours).any_axis(0).astype(F32).sum();
        let reward = select(is_free, select(done, -used, 0.0), -f64::from(nodes));
        let state = State { colours, node: (state.node + 1).rem(nodes), ..state };
        let (observation, terminated) = (self.observe(state), done | !is_free);
        (state, TimeStep { observation, reward, terminated, truncated: constant(false) })
    }

    /// A row for each node: its neighbours, its colour (one-hot), and whether it is to be coloured.
    /// `f32[nodes, 2 * nodes + 1]`
    fn observe(&self, state: State) -> Tensor {
        let here = self.here(&state).expand_dims(1);
        concatenate(&[state.edges, self.has(state.colours), here], 1).astype(F32)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.nodes, 2 * self.nodes + 1], 0.0, 1.0)
            .described("neighbours, colour, 1 at the node to be coloured")
    }

    /// The colour of the node.
    fn action_space(&self) -> Space {
        Space::discrete(self.nodes)
    }

    /// The colours that no neighbour of the node has.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        Some(self.free(state))
    }

    /// The nodes on a circle; uncoloured nodes are white. A ring surrounds the node to be coloured, and lines join it to its neighbours.
    fn render(&self, state: &State) -> Option<Tensor> {
        let (center, around, step) = (2.0, 1.7, 2.0 * PI / self.nodes as f64);
        let here = self.here(state);
        let own = state.node.astype(F32) * step;
        let neighbours = (state.edges & here.expand_dims(1)).any_axis(0).astype(F32);
        let place = (center + around * own.sin(), center - around * own.cos());
        // The chords from a node to the others of a regular polygon are at equal angles.
        let nodes = self.nodes as i32;
        let node = state.node;
        let chords = Shape::new(move |x, y| {
            let (x, y) = (x - place.0, y - place.1);
            // From the tangent at the node.
            let angle = atan2(y * own.cos() - x * own.sin(), x * own.cos() + y * own.sin());
            let chord = (angle * (2.0 / step) + 0.5).floor();
            let other = (node + chord.astype(I32)).modulo(nodes);
            let away = select(neighbours.take(other, 0).gt(0.0), 0.0, 9.0);
            let far = (x.square() + y.square()).sqrt();
            far * (angle - chord * (0.5 * step)).sin().abs() - 0.012 + away
        });
        let radius = (3.6 / self.nodes as f64).clamp(0.03, 0.2);
        // The distance from the nearest node, which is in the direction of the pixel.
        let nearest = move |x: Tensor, y: Tensor| {
            let angle = atan2(x - center, center - y) * (1.0 / step);
            (angle + 0.5).floor()
        };
        let circle = |radius: f64| {
            Shape::new(move |x, y| {
                let angle = nearest(x, y) * step;
                let (x, y) = (x - center - angle.sin() * around, y - center + angle.cos() * around);
                (x.square() + y.square()).sqrt() - radius
            })
        };
        let all = Colour::SEVERAL.len();
        let colours = Colour::SEVERAL.map(|Colour(rgb)| rgb.map(f32::from));
        let table = concatenate(&[constant([[255.0, 255.0, 255.0]]), constant(colours)], 0);
        // A colour that comes again is lighter.
        let again = (state.colours / all as i32).maximum(0).astype(F32).expand_dims(1);
        let which = select(state.colours.ge(0), state.colours.rem(all as i32) + 1, 0);
        let colours = 255.0 - (255.0 - table.take(which, 0)) * pow(0.6, again);
        let ring = Shape::disc(place.0, place.1, radius * 1.5).when(here.any());
        let chords = chords.intersection(Shape::disc(center, center, around)).when(here.any());
        Some(
            Canvas::new(4.0, 4.0, Colour::BOARD)
                .fill(&chords, Colour::GREY)
                .fill(&ring.union(circle(radius * 1.1)), Colour::TEXT)
                .fill_with(&circle(radius), |x, y| {
                    colours.take(nearest(x, y).astype(I32).modulo(nodes), 0)
                })
                .finish(),
        )
    }
}
