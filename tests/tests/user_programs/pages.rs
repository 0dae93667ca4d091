//! The pages of the design, as far as a test can run them: an environment, a loss with a gradient
//! through it, and the loop run on devices.

use podracer::prelude::*;
use podracer::rl::returns::gae;
use podracer_runtime::{Placement, lower};
use podracer_tests::compare::differences;

/// Catch (bsuite, Osband et al. 2020): a ball falls one row a step; be under it when it lands.
#[derive(Clone)]
pub struct Catch {
    pub rows: usize,
    pub columns: usize,
}

#[derive(Tree, Clone, Copy)]
pub struct State {
    ball_row: Tensor,
    ball_column: Tensor,
    paddle: Tensor,
} // i32 []

impl Environment for Catch {
    type State = State;
    type Observation = Tensor; // f32 [rows * columns]

    fn initial_state(&self, key: Key) -> State {
        State {
            ball_row: zeros(I32, []),
            ball_column: key.randint([], 0..self.columns),
            paddle: scalar(self.columns as i32 / 2),
        }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let paddle = (state.paddle + action - 1).clamp(0, self.columns as i32 - 1);
        let ball_row = state.ball_row + 1;
        let landed = ball_row.eq(self.rows as i32 - 1);
        let reward = select(landed, select(paddle.eq(state.ball_column), 1.0, -1.0), 0.0);
        let state = State { ball_row, paddle, ..state };
        (
            state,
            TimeStep {
                observation: self.observe(state),
                reward,
                terminated: landed,
                truncated: constant(false),
            },
        )
    }

    fn observe(&self, state: State) -> Tensor {
        let cells = self.rows * self.columns;
        one_hot(state.ball_row * self.columns + state.ball_column, cells)
            + one_hot(state.paddle + (self.rows - 1) * self.columns, cells)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.rows * self.columns], 0.0, 1.0)
    }
    fn action_space(&self) -> Space {
        Space::discrete(3)
    }
    fn truncates(&self) -> bool {
        false
    }
}

const CATCH: Catch = Catch { rows: 4, columns: 3 };

#[test]
fn the_environment_of_the_page_is_catch() {
    podracer::envs::check_environment(&CATCH).expect("a sound environment");
    let play = |name: &str, steps: Traced<(Key,), (Tensor, Tensor)>| {
        let results = steps.eval(&[Array::ints(U32, [2], &[0, 3])]);
        results.unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    fn steps<E: Environment<Observation = Tensor>>(env: E) -> Traced<(Key,), (Tensor, Tensor)> {
        let env = env.auto_reset();
        let steps = trace((key(),), |(key,)| {
            let (first, rest) = key.split();
            let state = env.initial_state(first);
            let (_, seen) = scan(state, rest.split_n(12), |state, key| {
                let (state, timestep) = env.step(state, scalar(2), key);
                // Where ball and paddle meet the page's observation says 2, the library's 1.
                (state, (timestep.observation.flatten().minimum(1.0), timestep.reward))
            });
            seen
        });
        steps.expect("it traces")
    }
    let ours = play("the page's", steps(CATCH));
    let library = podracer::envs::Catch { rows: 4, columns: 3 };
    assert_eq!(differences(&play("the library's", steps(library)), &ours, 0.0), None);
}

#[derive(Tree, Clone, Copy)]
struct Params {
    policy: Tensor,
    value: Tensor,
}

/// `[T]` steps of an agent with a linear policy, the loss over them, its gradient.
fn loss_and_gradient(env: Catch) -> Traced<(Spec2, Key), (Tensor, State, Params)> {
    const T: usize = 6;
    let lambda = 0.9;
    let cells = env.rows * env.columns;
    let spec = ((f32([cells, 3]), f32([cells])), key());
    let traced = trace(spec, |((policy, value), key)| {
        let (first, key) = key.split();
        let env = env.clone().auto_reset();
        let state = env.initial_state(first);
        let params = Params { policy, value };
        let ((loss, state), grads) = value_and_grad(params, |params| {
            let ((state, _), (log_prob, v_tm1, r_t, discount_t, v_t)) =
                scan((state, key), 0..T, |(state, key), _t| {
                    let [key, act, step] = key.split_into();
                    let observation = env.observe(state);
                    let logits = dot(observation, params.policy);
                    let action = act.categorical(logits);
                    let log_prob = logits.log_softmax(-1).take(action, 0);
                    let (state, timestep) = env.step(state, action, step);
                    let v_t = stop_gradient(dot(timestep.observation, params.value));
                    (
                        (state, key),
                        (
                            log_prob,
                            dot(observation, params.value),
                            timestep.reward,
                            timestep.discount(0.99),
                            v_t,
                        ),
                    )
                });
            let advantage = gae(r_t, discount_t, v_tm1, v_t, lambda);
            let loss = -(log_prob * stop_gradient(advantage)).mean()
                + 0.5 * (v_tm1 - stop_gradient(v_tm1 + advantage)).square().mean();
            (loss, state)
        });
        let grads = pmean(grads, Replicas);
        (loss, state, grads)
    });
    traced.expect("it traces")
}

type Spec2 = (Tensor, Tensor);

#[test]
fn the_gradient_flows_through_scan_and_environment() {
    let traced = loss_and_gradient(CATCH);
    assert_eq!(traced.warnings(), []);
    assert_eq!(
        traced.results().to_string(),
        "{0: f32[], 1.ball_row: i32[], 1.ball_column: i32[], 1.paddle: i32[], 2.policy: f32[12,3], 2.value: f32[12]}"
    );
    let mut at = 0.0;
    let mut some = |ty: &TensorType| {
        let mut next = |_: &[usize]| {
            at += 1.0;
            podracer_compiler::Scalar::Float(f64::sin(at))
        };
        Array::from_fn(ty.clone(), &mut next)
    };
    let types = traced.arguments().types();
    let arguments = [some(&types[0]), some(&types[1]), Array::ints(U32, [2], &[0, 5])];
    let expected = traced.eval(&arguments).expect("arguments fit");
    assert!(expected[4].to_f64().iter().any(|g| g.abs() > 1e-2));
    let got = podracer_tests::xla::run(traced.func(), &arguments).expect("XLA runs it");
    assert_eq!(differences(&expected, &got, 1e-5), None);
}

#[test]
fn what_was_generated_can_be_looked_at() -> anyhow::Result<()> {
    let state = eval_shape(key(), |key| CATCH.initial_state(key))?;
    let step =
        trace((&state, i32([]), key()), |(state, action, key)| CATCH.step(state, action, key))?;
    assert!(step.to_string().starts_with("func main("), "{step}");
    let batched = step.vmap(16);
    assert_eq!(batched.arguments().to_string().matches("i32[16]").count(), 4);
    let stablehlo = lower("step", &batched, 1)?.module.text;
    assert!(stablehlo.contains("tensor<16xi32>"), "{stablehlo}");
    // Every op knows the line that wrote it.
    assert!(stablehlo.contains(file!()), "{stablehlo}");
    Ok(())
}

#[test]
fn the_loop_runs_on_every_device() -> anyhow::Result<()> {
    let client = Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
    let devices = client.devices().len();
    let mut agent = Ppo::new(CATCH.observation_space(), CATCH.action_space());
    agent.settings.networks.hidden = vec![4];
    (agent.settings.minibatches, agent.settings.epochs) = (1, 1);
    let agent_loop = AgentLoop::new(CATCH, agent, 8 / devices, 6);
    let traced = AnakinLoop::trace(
        "catch",
        devices,
        2,
        |key| agent_loop.init(key),
        |state| agent_loop.iterate(state),
    )?;
    let mut options = crate::loops::options(devices);
    options.compile.xla.clear();
    let anakin = traced.compile(&client, &options)?;
    let mut state = anakin.init(0)?;
    for _ in 0..2 {
        let metrics;
        (state, metrics) = anakin.run(state)?;
        assert_eq!(metrics.replicated.loss.to_vec::<f32>()?.len(), 2);
        let episodes: i32 = metrics.sharded.count.to_vec::<i32>()?.iter().sum();
        assert_eq!(episodes, 2 * 8 * 2);
    }
    // A field of the state on the devices is a tree on the devices again.
    let nets: &Device<podracer::rl::net::ActorCritic> = &state.replicated.agent.params;
    let weight = &nets.actor.layers[0].weight;
    assert_eq!(weight.placement(), Placement::Replicated);
    assert_eq!(weight.to_host()?.ty().to_string(), "f32[12,4]");
    Ok(())
}
