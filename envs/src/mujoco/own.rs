//! A robot of one's own: a model in MJCF, and a reward from terms.

use std::path::Path;
use std::rc::Rc;

use podracer_dsl::prelude::*;
use podracer_physics::model::JointType;
use podracer_physics::{Forward, Model, ModelResult, mjcf};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::interval::{Interval, inside, interval};
use super::robot::{from, squares};
use super::{Camera, State, Step, Task};

/// Greatest magnitude of observed velocities.
const FASTEST: f64 = 10.0;

/// A robot of one's own, in MuJoCo's physics, with a reward from terms: each term is a factor times a quantity of `body`.
/// An episode terminates if the body leaves the healthy ranges.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnRobot {
    /// MJCF file of the robot, relative to the experiment's file. A run keeps the text with its includes.
    pub model: RobotModel,
    /// Steps of the simulation in one step of the environment.
    #[schemars(range(min = 1, max = 1000))]
    pub frame_skip: usize,
    /// Name of the body that the terms read; empty for the first body of the model.
    pub body: String,
    /// Name of the keyframe that episodes begin at; empty for the model's reference positions.
    pub keyframe: String,
    /// Factor of the velocity along x, in m/s.
    pub forward_reward_weight: f64,
    /// Factor of the cosine between the body's z axis and the world's.
    pub upright_reward_weight: f64,
    /// Factor of the height, in metres.
    pub height_reward_weight: f64,
    /// Reward of a step after which the body is healthy.
    pub healthy_reward: f64,
    /// Cost per metre between the body and `target`.
    pub distance_cost_weight: f64,
    /// Cost per squared control.
    pub ctrl_cost_weight: f64,
    /// Cost per watt: the sum of the magnitudes of force times velocity over the joints' actuators.
    pub energy_cost_weight: f64,
    /// Place that `distance_cost_weight` is about, in metres.
    pub target: [f64; 3],
    /// True if an episode terminates when the body is not healthy.
    pub terminate_when_unhealthy: bool,
    /// Healthy heights, in metres.
    pub healthy_z_range: Interval,
    /// Healthy cosines between the body's z axis and the world's.
    pub healthy_upright_range: Interval,
    /// True if the observation lacks the horizontal positions of a robot that moves freely: x and y of a free joint, or the
    /// first slides along the floor.
    pub exclude_current_positions_from_observation: bool,
    /// Scale of the uniform noise of first states.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// Width of pictures, in metres.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub view_width: f64,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for OwnRobot {
    fn default() -> Self {
        OwnRobot {
            model: RobotModel::default(),
            frame_skip: 5,
            body: String::new(),
            keyframe: String::new(),
            forward_reward_weight: 0.0,
            upright_reward_weight: 0.0,
            height_reward_weight: 0.0,
            healthy_reward: 0.0,
            distance_cost_weight: 0.0,
            ctrl_cost_weight: 0.0,
            energy_cost_weight: 0.0,
            target: [0.0; 3],
            terminate_when_unhealthy: true,
            healthy_z_range: interval(f64::NEG_INFINITY, f64::INFINITY),
            healthy_upright_range: interval(f64::NEG_INFINITY, f64::INFINITY),
            exclude_current_positions_from_observation: true,
            reset_noise_scale: 0.01,
            view_width: 3.0,
            time_limit: 1000,
        }
    }
}

/// The model of a robot as a setting: the path of an MJCF file, or an MJCF text. It is written as the text. Included
/// files take the place of their `include`.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(transparent, extend("x-mjcf" = true))]
pub struct RobotModel {
    text: String,
    #[schemars(skip)]
    model: Option<Rc<Model>>,
}

impl RobotModel {
    /// The model of an MJCF file.
    ///
    /// # Errors
    /// As of [`Model::from_file`].
    pub fn from_file(path: impl AsRef<Path>) -> ModelResult<Self> {
        let path = path.as_ref();
        let model = Some(Rc::new(Model::from_file(path)?));
        Ok(RobotModel { text: mjcf::read_file(path)?.to_string(), model })
    }

    /// The model of an MJCF text, which may include no files.
    ///
    /// # Errors
    /// As of [`Model::from_mjcf`].
    pub fn from_mjcf(text: &str) -> ModelResult<Self> {
        Ok(RobotModel { text: text.to_owned(), model: Some(Rc::new(Model::from_mjcf(text)?)) })
    }

    /// True for the text of a model, as opposed to a path.
    #[must_use]
    pub fn is_text(value: &str) -> bool {
        value.trim_start().starts_with('<')
    }

    /// The MJCF text, without includes; empty if no model was set.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The compiled model; `None` if none was set.
    #[must_use]
    pub fn compiled(&self) -> Option<&Model> {
        self.model.as_deref()
    }
}

impl Serialize for RobotModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RobotModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = String::deserialize(deserializer)?;
        match value.as_str() {
            "" => Ok(RobotModel::default()),
            text if RobotModel::is_text(text) => RobotModel::from_mjcf(text),
            path => RobotModel::from_file(path),
        }
        .map_err(D::Error::custom)
    }
}

/// The quantities of a body that the terms of [`OwnRobot`] read.
#[derive(Tree, Clone, Copy)]
pub struct Pose {
    /// Place of the body's frame, in metres, f32 `[3]`.
    pub place: Tensor,
    /// Cosine between the body's z axis and the world's, f32 `[]`.
    pub upright: Tensor,
    /// Power of the actuators, in watts, f32 `[]`.
    pub power: Tensor,
}

impl OwnRobot {
    fn body_index(&self) -> Option<usize> {
        match self.body.as_str() {
            "" => (self.model().nbody > 1).then_some(1),
            name => self.model().body(name),
        }
    }

    fn key_index(&self) -> Option<usize> {
        self.model().key_name.iter().position(|name| *name == self.keyframe)
    }

    /// The number of positions that are not observed.
    fn hidden(&self) -> usize {
        let model = self.model();
        let of_first_body = (0..model.njnt).take_while(|&joint| model.jnt_bodyid[joint] == 1);
        let slides = of_first_body.take_while(|&joint| {
            model.jnt_type[joint] == JointType::Slide && model.jnt_axis[joint][2] == 0.0
        });
        match model.jnt_type.first() {
            _ if !self.exclude_current_positions_from_observation => 0,
            Some(JointType::Free) => 2,
            _ => slides.count(),
        }
    }
}

impl Task for OwnRobot {
    type Derived = Pose;

    fn check(&self) -> Result<(), String> {
        let Some(model) = self.model.compiled() else {
            return Err(
                "environment.model is missing: the path of the robot's MJCF file".to_owned()
            );
        };
        let expected = |names: &[String], kind: &str| {
            let names: Vec<&str> =
                names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
            match names.is_empty() {
                true => format!("the model has no {kind} with a name"),
                false => format!("expected one of {}", names.join(", ")),
            }
        };
        if self.body_index().is_none() {
            let there = expected(&model.body_name, "body");
            return Err(format!("environment.body is `{}`: {there}", self.body));
        }
        if !self.keyframe.is_empty() && self.key_index().is_none() {
            let there = expected(&model.key_name, "keyframe");
            return Err(format!("environment.keyframe is `{}`: {there}", self.keyframe));
        }
        if model.nu == 0 {
            return Err("environment.model has no actuator: an agent has nothing to control".into());
        }
        match model.actuator_ctrllimited.iter().position(|limited| !limited) {
            Some(at) => Err(format!(
                "environment.model: actuator {at} `{}` has no limits; give it a `ctrlrange`",
                model.actuator_name[at]
            )),
            None => Ok(()),
        }
    }

    fn model(&self) -> &Model {
        self.model.compiled().expect("`check` found a model")
    }

    fn frame_skip(&self) -> usize {
        self.frame_skip
    }

    fn limit(&self) -> usize {
        self.time_limit
    }

    fn first(&self, key: Key) -> [Tensor; 2] {
        let model = self.model();
        let (positions, velocities) = key.split();
        let noise = |key: Key, size: usize| {
            key.uniform_range([size], -self.reset_noise_scale, self.reset_noise_scale)
        };
        let start = |values: &[f64]| constant_of(&Array::floats(F32, [values.len()], values));
        let (qpos, qvel) = match self.key_index() {
            Some(key) if !self.keyframe.is_empty() => {
                (start(&model.key_qpos[key]), start(&model.key_qvel[key]))
            }
            _ => (start(&model.qpos0), zeros(F32, [model.nv])),
        };
        [qpos + noise(positions, model.nq), qvel + noise(velocities, model.nv)]
    }

    fn derived(&self, forward: &Forward, _first: bool) -> Pose {
        let body = self.body_index().expect("`check` found the body");
        let power = forward.qfrc_actuator() * forward.qvel();
        Pose {
            place: forward.xpos().index(body),
            upright: forward.xmat().index(body).index(8),
            power: power.abs().sum(),
        }
    }

    fn observed(&self) -> usize {
        let model = self.model();
        model.nq - self.hidden() + model.nv
    }

    fn observation(&self, state: &State<Pose>) -> Tensor {
        let velocities = state.qvel.clamp(-FASTEST, FASTEST);
        concatenate(&[from(state.qpos, self.hidden()), velocities], 0)
    }

    fn outcome(&self, step: &Step<Pose>) -> (Tensor, Tensor) {
        let Pose { place, upright, power } = step.after.derived;
        let height = place.index(2);
        let healthy =
            inside(height, self.healthy_z_range) & inside(upright, self.healthy_upright_range);
        let target = constant(self.target.map(|x| x as f32));
        // Terms without a weight add nothing to the program.
        let terms: [(f64, &dyn Fn() -> Tensor); 7] = [
            (self.forward_reward_weight, &|| step.velocity(|state| state.derived.place.index(0))),
            (self.upright_reward_weight, &|| upright),
            (self.height_reward_weight, &|| height),
            (self.healthy_reward, &|| select(healthy, 1.0, 0.0)),
            (-self.distance_cost_weight, &|| squares(place - target).sqrt()),
            (-self.ctrl_cost_weight, &|| squares(step.action)),
            (-self.energy_cost_weight, &|| power),
        ];
        let terms = terms.into_iter().filter(|(weight, _)| *weight != 0.0);
        let reward = terms.fold(scalar(0.0), |sum, (weight, term)| sum + weight * term());
        (reward, !healthy & self.terminate_when_unhealthy)
    }

    fn camera(&self) -> Camera {
        Camera::oblique(self.view_width, 0.2 * self.view_width)
    }
}
