//! Travelling salesman: visit all cities on a short route.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TravellingSalesman: cities in the unit square are visited one after another, each once.
///
/// A step pays the negative distance from the previous city. The first step pays nothing, and the
/// last step includes the way back to the first city. The episode is terminated by the last city,
/// and by a city that was visited before, which pays `-cities * sqrt(2)`.
///
/// The rules follow jumanji 1.1.2's TSP-v1. Cities are drawn with other random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TravellingSalesman {
    /// Number of cities.
    #[schemars(range(min = 2, max = 500))]
    pub cities: usize,
}

/// 20 cities, as in jumanji.
impl Default for TravellingSalesman {
    fn default() -> Self {
        TravellingSalesman { cities: 20 }
    }
}

/// The cities and the route so far.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Coordinates of the cities, from 0 to 1. `f32[cities, 2]`
    pub cities: Tensor,
    /// The position of each city on the route, -1 for unvisited cities. `i32[cities]`
    pub order: Tensor,
    /// Number of visited cities. `i32[]`
    pub visited: Tensor,
}

impl TravellingSalesman {
    /// The initial state of an episode with these cities, `f32[cities, 2]`.
    #[track_caller]
    pub fn at(&self, cities: Tensor) -> State {
        State { cities, order: full([self.cities], -1), visited: scalar(0) }
    }

    /// The distance of two cities, which two masks `bool[cities]` select. `f32[]`
    #[track_caller]
    fn distance(&self, cities: Tensor, one: Tensor, other: Tensor) -> Tensor {
        let place = |mask: Tensor| select(mask.expand_dims(1), cities, 0.0).sum_axis(0);
        (place(one) - place(other)).square().sum().sqrt()
    }
}

impl Environment for TravellingSalesman {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        self.at(key.uniform([self.cities, 2]))
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let there = arange(self.cities).eq(action);
        let is_new = !(there & state.order.ge(0)).any();
        let (here, first) = (state.order.eq(state.visited - 1), state.order.eq(0));
        let way = self.distance(state.cities, here, there);
        let back = self.distance(state.cities, select(is_new, there, here), first);
        let begins = state.visited.eq(0);
        let visited = state.visited + is_new.astype(I32);
        let order = select(there & is_new, state.visited, state.order);
        let done = visited.eq(self.cities as i32);
        let twice = -(self.cities as f64) * std::f64::consts::SQRT_2;
        let step = select(begins, 0.0, select(is_new, -way, twice));
        let reward = step - select(done, back, 0.0);
        let state = State { order, visited, ..state };
        let (observation, terminated) = (self.observe(state), done | !is_new);
        (state, TimeStep { observation, reward, terminated, truncated: constant(false) })
    }

    /// A row for each city: its coordinates, and 1 if it is visited, if it is the last on the
    /// route, if it is the first. `f32[cities, 5]`
    fn observe(&self, state: State) -> Tensor {
        let last = state.order.eq(state.visited - 1) & state.order.ge(0);
        let marks = stack(&[state.order.ge(0), last, state.order.eq(0)], 1).astype(F32);
        concatenate(&[state.cities, marks], 1)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.cities, 5], 0.0, 1.0)
            .described("coordinates, 1 if visited, 1 at the last city, 1 at the first")
    }

    /// The city to visit.
    fn action_space(&self) -> Space {
        Space::discrete(self.cities)
    }

    /// The unvisited cities.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        Some(state.order.lt(0))
    }

    /// The cities, the route in blue with the cities between its first and its last city.
    fn render(&self, state: &State) -> Option<Tensor> {
        let order = state.order;
        let places = state.cities + 0.06;
        // The city before each on the route, or the city itself; the first city follows the last of a whole route.
        let whole = state.visited.eq(self.cities as i32);
        let before_first = select(whole, self.cities as i32 - 1, -2);
        let follows = select(order.eq(0), before_first, order - 1).expand_dims(1);
        let before = order.expand_dims(0).eq(follows) & order.ge(0).expand_dims(1);
        let from = before.astype(F32).matmul(places);
        let from = select(before.any_axis(1).expand_dims(1), from, places);
        // Of each way its middle, its direction and half its length.
        let (middle, way) = (0.5 * (from + places), places - from);
        let length = way.square().sum_axis(keepdims(1)).sqrt();
        // A way without length has a direction, too: it covers no more than its city.
        let direction = select(length.gt(1e-6), way / length.maximum(1e-6), 0.7);
        let rows = concatenate(&[middle, direction, 0.5 * length], 1);
        let ways = Shape::any(rows, |row| {
            let [x0, y0, right, down, half] = [0, 1, 2, 3, 4].map(|i| row.index(i));
            Shape::new(move |x, y| {
                let (x, y) = (x - x0, y - y0);
                let (along, across) = (x * right + y * down, y * right - x * down);
                (along.abs() - half).maximum(across.abs() - 0.007)
            })
        });
        let disc = |row: Tensor| Shape::disc(row.index(0), row.index(1), 0.016);
        let cities = Shape::any(places, disc);
        // Unvisited cities are outside the picture.
        let on_route = select(order.ge(0).expand_dims(1), places, -9.0);
        let on_route = Shape::any(on_route, disc);
        let one = |these: Tensor| {
            let place = select(these.expand_dims(1), places, 0.0).sum_axis(0);
            let place = select(these.any(), place, -9.0);
            Shape::disc(place.index(0), place.index(1), 0.026)
        };
        let last = order.eq(state.visited - 1) & order.gt(0);
        let canvas = Canvas::new(1.22, 1.12, Colour::BOARD)
            .fill(&ways, Colour::BLUE)
            .fill(&cities, Colour::TEXT)
            .fill(&on_route, Colour::BLUE)
            .fill(&one(order.eq(0)), Colour::GREEN)
            .fill(&one(last), Colour::ORANGE);
        let names = [
            ("first", Colour::GREEN),
            ("between", Colour::BLUE),
            ("last", Colour::ORANGE),
            ("unvisited", Colour::TEXT),
        ];
        Some(scenery::legend(canvas, &names, (0.06, 1.16), 0.035, 0.27).finish())
    }
}
