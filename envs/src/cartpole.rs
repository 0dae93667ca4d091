//! CartPole: push a cart left or right so that the pole on it stays up.
//!
//! Barto, Sutton and Anderson, "Neuronlike Adaptive Elements That Can Solve Difficult Learning
//! Control Problems", 1983. Dynamics and constants equal those in `CartPole-v1` of Gymnasium and
//! gymnax: semi-explicit Euler steps of 0.02 s (position from the old velocity, velocity from the
//! old acceleration).

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Gravitational acceleration, m/s^2.
pub(crate) const GRAVITY: f64 = 9.8;
/// Mass of the pole, kg.
pub(crate) const MASS_POLE: f64 = 0.1;
/// Mass of cart and pole, kg.
pub(crate) const TOTAL_MASS: f64 = 1.0 + MASS_POLE;
/// Half of the pole's length, m.
pub(crate) const LENGTH: f64 = 0.5;
/// Product of the pole's mass and `LENGTH`, kg m.
pub(crate) const POLE_MASS_LENGTH: f64 = MASS_POLE * LENGTH;
/// Force of a push, N.
pub(crate) const FORCE: f64 = 10.0;
/// Duration of a step, s.
pub(crate) const TAU: f64 = 0.02;
/// Greatest distance of the cart from the middle, m.
pub(crate) const X_LIMIT: f64 = 2.4;
/// Greatest angle of the pole, 12 degrees in rad.
pub(crate) const THETA_LIMIT: f64 = 12.0 * 2.0 * PI / 360.0;

/// CartPole: each step pays 1. The episode is terminated when the cart leaves +-2.4 m or the pole
/// leaves +-12 degrees, and truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct CartPole {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
    /// Sine and cosine of the pole's angle: an approximation or the device's functions. Set in code only.
    #[serde(skip)]
    pub trigonometry: Trigonometry,
}

/// `CartPole-v1`: 500 steps, polynomials.
impl Default for CartPole {
    fn default() -> Self {
        CartPole { time_limit: 500, trigonometry: Trigonometry::default() }
    }
}

/// Ways to compute sine and cosine of the pole's angle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigonometry {
    /// Taylor polynomials of degree 7 and 6. A step begins within 12 degrees, where their error is
    /// below 1e-10, less than f32 resolves; within 0.5 rad it is below 1e-7. On a CPU steps are
    /// twice as fast as with `Library`.
    #[default]
    Polynomial,
    /// The device's sine and cosine, accurate at every angle, for states that are set by hand.
    Library,
}

/// The positions and speeds of cart and pole.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Position of the cart, m. `f32[]`
    pub x: Tensor,
    /// Speed of the cart, m/s. `f32[]`
    pub x_dot: Tensor,
    /// Angle of the pole, rad, 0 upright. `f32[]`
    pub theta: Tensor,
    /// Angular speed of the pole, rad/s. `f32[]`
    pub theta_dot: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl CartPole {
    fn sin_cos(&self, x: Tensor) -> (Tensor, Tensor) {
        match self.trigonometry {
            Trigonometry::Library => (x.sin(), x.cos()),
            Trigonometry::Polynomial => {
                let xx = x * x;
                let sin = x * (1.0 + xx * (-1.0 / 6.0 + xx * (1.0 / 120.0 - xx * (1.0 / 5040.0))));
                let cos = 1.0 + xx * (-1.0 / 2.0 + xx * (1.0 / 24.0 - xx * (1.0 / 720.0)));
                (sin, cos)
            }
        }
    }
}

impl Environment for CartPole {
    type State = State;
    type Observation = Tensor;

    /// Draws positions and speeds uniformly from [-0.05, 0.05).
    fn initial_state(&self, key: Key) -> State {
        let start = key.uniform_range([4], -0.05, 0.05);
        State {
            x: start.index(0),
            x_dot: start.index(1),
            theta: start.index(2),
            theta_dot: start.index(3),
            time: zeros(I32, []),
        }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let force = select(action.eq(1), FORCE, -FORCE);
        let (sin, cos) = self.sin_cos(state.theta);
        // Multiplying by reciprocals leaves only one division in a step.
        let push = (force + POLE_MASS_LENGTH * state.theta_dot.square() * sin) * (1.0 / TOTAL_MASS);
        let inertia = LENGTH * 4.0 / 3.0 - (LENGTH * MASS_POLE / TOTAL_MASS) * cos.square();
        let theta_acceleration = (GRAVITY * sin - cos * push) / inertia;
        let x_acceleration = push - (POLE_MASS_LENGTH / TOTAL_MASS) * theta_acceleration * cos;
        let state = State {
            x: state.x + TAU * state.x_dot,
            x_dot: state.x_dot + TAU * x_acceleration,
            theta: state.theta + TAU * state.theta_dot,
            theta_dot: state.theta_dot + TAU * theta_acceleration,
            time: state.time + 1,
        };
        let terminated = state.x.abs().gt(X_LIMIT) | state.theta.abs().gt(THETA_LIMIT);
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let (observation, reward) = (self.observe(state), scalar(1.0));
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    /// The vector (x, x_dot, theta, theta_dot), `f32[4]`.
    fn observe(&self, state: State) -> Tensor {
        stack(&[state.x, state.x_dot, state.theta, state.theta_dot], 0)
    }

    /// Bounds of the observation: positions reach at most twice their limits, velocities are
    /// unbounded.
    fn observation_space(&self) -> Space {
        let high = [2.0 * X_LIMIT, f64::INFINITY, 2.0 * THETA_LIMIT, f64::INFINITY];
        Space::bounded([4], high.map(|bound| -bound), high)
            .described("x (m), x_dot (m/s), theta (rad), theta_dot (rad/s)")
    }

    /// Actions 0 and 1: push to the left, push to the right.
    fn action_space(&self) -> Space {
        Space::discrete(2).named(["left", "right"])
    }

    /// The cart on its track between the limits, and the pole, which stays between the thin lines until the episode ends.
    fn render(&self, state: &State) -> Option<Tensor> {
        // Metres; the cart's joint is at (x, y).
        let (middle, y) = (2.8, 1.45);
        let x = state.x + middle;
        let pole = Shape::line((0.0, 0.0), (0.0, -2.0 * LENGTH), 0.1).rotate(state.theta);
        let limit = |side: f64| {
            let post = Shape::rectangle(middle + side * (X_LIMIT + 0.3), y + 0.12, 0.06, 0.5);
            let angle = Shape::rectangle(0.0, -1.2 * LENGTH, 0.015, 1.4 * LENGTH);
            (post, angle.rotate(side * THETA_LIMIT).translate(x, y))
        };
        let [(left, lean_left), (right, lean_right)] = [-1.0, 1.0].map(limit);
        let wheel = |side: f64| Shape::disc(x + side * 0.17, y + 0.24, 0.1);
        let wheels = || wheel(-1.0).union(wheel(1.0));
        let axles =
            Shape::disc(x - 0.17, y + 0.24, 0.035).union(Shape::disc(x + 0.17, y + 0.24, 0.035));
        let track = Shape::rectangle(middle, y + 0.37, 2.0 * middle, 0.06);
        Some(
            Canvas::new(2.1, 2.0 * middle, Colour::BOARD)
                .fill(&track, Colour::WOOD)
                .fill(&left.union(right), Colour::RED)
                .fill(&lean_left.union(lean_right), Colour::LINE)
                .fill(&Shape::rounded(x, y + 0.08, 0.62, 0.26, 0.05), Colour::BLUE)
                .fill(&wheels(), Colour::TEXT)
                .fill(&axles, Colour::LINE)
                .fill(&pole.translate(x, y), Colour::ORANGE)
                .fill(&Shape::disc(x, y, 0.045), Colour::TEXT)
                .finish(),
        )
    }
}
