//! Games of two players who take turns: in MuZero and AlphaZero values are for the player to move,
//! and rewards for the player who moved.

use crate::golden::{close, floats, run};
use crate::muzero::{input, small, steps};
use podracer_dsl::prelude::*;
use podracer_envs::boards::{ConnectFour, Othello, TicTacToe};
use podracer_envs::{AnyEnvironment, Environment};
use podracer_rl::agents::{
    AlphaZeroSettings, MuZero, MuZeroNetwork, MuZeroSettings, PlanExtras, PlannedStep,
};
use podracer_rl::learn::{Agent, AgentSettings, LearnFromReplay, Mode, Task};
use podracer_rl::returns::TxPair;

/// The task of a game, with the game itself as the model.
fn task<E: Environment<Observation = Tensor> + Clone>(game: &E) -> Task {
    let (observation, action) = (game.observation_space(), game.action_space());
    Task { observation, action, iterations: 1, model: Some(AnyEnvironment::new(game.clone())) }
}

/// MuZero's small networks for a game, with these simulations and a discount of 1.
fn muzero<E: Environment<Observation = Tensor> + Clone>(game: &E, simulations: usize) -> MuZero {
    let mut settings =
        MuZeroSettings { discount: 1.0.into(), rescaling: TxPair::Identity, ..small() };
    settings.planning.search.simulations = simulations;
    MuZero::for_task(&settings, &task(game)).expect("settings that fit")
}

/// The stones in observations, after random moves, equal the state's, and step like it. In Othello
/// they do not show whether one pass or two end a game without moves for either player: the
/// recovered state has the outcome at once.
#[test]
fn states_follow_from_observations() {
    fn check<E: Environment<Observation = Tensor>>(
        environment: &E,
        moves: usize,
        last_pass: impl Fn(&E::State, &E::State) -> Tensor,
    ) {
        let results = run((), &[], |()| {
            let [first, keys] = Key::new(7).split_into();
            let state = environment.initial_state(first);
            let (_, same) = scan(state, keys.split_n(moves), |state, key| {
                let legal = environment.legal_actions(&state).expect("a mask");
                let action = select(legal, 0.0, f64::NEG_INFINITY);
                let [draw, step] = key.split_into();
                let action = draw.categorical(action);
                let told = environment.state_of(environment.observe(state.clone()));
                let told = told.expect("a state");
                let ends = last_pass(&told, &state);
                let mask = environment.legal_actions(&told).expect("a mask").eq(legal).all();
                let (_, told) = environment.step(told, action, step.again());
                let (next, own) = environment.step(state, action, step);
                let same = |a: Tensor, b: Tensor| a.eq(b).all();
                let same = same(told.observation, own.observation)
                    & same(told.reward, own.reward)
                    & same(told.terminated, own.terminated);
                let (again, _) = (environment.initial_state(Key::new(0)), ());
                let same = mask & select(ends, told.terminated, same);
                (tree_select(own.terminated, &again, &next), same)
            });
            same.all()
        });
        assert_eq!(results[0].to_f64(), [1.0]);
    }
    check(&TicTacToe::default(), 60, |_, _| constant(false));
    check(&ConnectFour::default(), 120, |_, _| constant(false));
    check(&Othello::default(), 600, |told, state| told.passed & !state.passed);
}

/// Six moves of tic-tac-toe: the player who makes the third move wins with it, and the next game
/// continues.
fn two_games() -> PlannedStep {
    PlannedStep {
        observation: zeros(F32, [6]),
        action: zeros(I32, [6]),
        reward: constant([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
        terminated: constant([false, false, true, false, false, false]),
        truncated: zeros(BOOL, [6]),
        skipped: None,
        plan: PlanExtras { policy: zeros(F32, [6, 9]), value: full([6], 0.5) },
    }
}

/// In a game of two players, one player's win is the other's loss: the value of the step before is
/// its negative.
#[test]
fn outcomes_change_their_sign_with_each_move() {
    let results = run((), &[], |()| two_games().value_targets(100, -1.0));
    // The unfinished game is bootstrapped from the search's value of its last step.
    close("targets", &results[0], &floats(&[6], &[1.0, -1.0, 1.0, 0.5, -0.5, 0.5]), 1e-7);
}

/// A game of three moves that the first player wins, and an unfinished game: the targets of
/// MuZero's unrolled states equal those computed by hand, and AlphaZero's.
#[test]
fn targets_of_muzero_change_their_sign_with_each_move() {
    let mut agent = muzero(&TicTacToe::default(), 4);
    (agent.settings.n_step, agent.settings.model_unroll) = (100, 2);
    let results = run((), &[], |()| {
        let targets = agent.targets(&two_games(), 3);
        let [first, second, third] = [0, 1, 2].map(|k| targets[k].value);
        (first, second, third, targets[1].reward, targets[2].reward)
    });
    let wanted: [[f64; 3]; 5] =
        [[1.0, -1.0, 1.0], [-1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]];
    for (k, wanted) in wanted.iter().enumerate() {
        close("targets", &results[k], &floats(&[3], wanted), 1e-6);
    }
    // Random steps, which end anywhere.
    let results = run((), &[], |()| {
        let steps = tree_map(&steps(Key::new(5), 12, 1), |leaf| leaf.index_axis(1, 0));
        (agent.targets(&steps, 12)[0].value, steps.value_targets(100, -1.0))
    });
    close("targets", &results[0], &results[1], 1e-6);
}

/// With a network that values every position by `v` and no rewards, the mean over a search's visits
/// is `v` for one player. For two it is `(v - v) / 2` after one simulation, and `(v - v + v) / 3`
/// after another simulation below it.
#[test]
fn values_in_a_search_of_muzero_change_their_sign_with_each_move() {
    for (players, simulations, wanted) in [(1, 1, 0.5), (1, 2, 0.5), (2, 1, 0.0), (2, 2, 0.5 / 3.0)]
    {
        let mut agent = muzero(&TicTacToe::default(), simulations);
        agent.players = players;
        let results = run((), &[], |()| {
            let mut net = agent.params(&LearnFromReplay::init(&agent, Key::new(0)));
            let MuZeroNetwork::Dense { value, .. } = &mut net else {
                unreachable!("the network is dense");
            };
            let head = value.layers.last_mut().expect("a layer");
            // Half of the probability is on the bin of 0, and half on the bin of 1.
            head.bias = constant([-1e9, -1e9, 0.0, 0.0, -1e9]);
            let legal = arange(9).eq(4);
            let seen = input(zeros(F32, [3, 3, 2]), Some(legal));
            agent.act(&net, None, seen, Mode::Greedy, Key::new(1)).extras.value
        });
        close("value", &results[0], &floats(&[], &[wanted]), 1e-5);
    }
}

/// If neither player of Othello can move, the observation does not show whether the other player
/// has just passed. In both cases the outcome follows from the stones.
#[test]
fn the_last_pass_of_othello_has_the_outcome_of_the_stones() {
    let game = Othello::default();
    let results = run((), &[], |()| {
        // Two stones of the player to move in one corner, and one of the other player in another corner.
        let cell = |cells: [i32; 2]| arange(64).eq(cells[0]) | arange(64).eq(cells[1]);
        let planes = stack(&[cell([0, 1]), cell([63, 63])], 1).astype(F32).reshape([8, 8, 2]);
        let state = game.state_of(planes).expect("a state");
        let legal = game.legal_actions(&state).expect("a mask");
        let (_, step) = game.step(state, scalar(64), Key::new(0));
        (legal.eq(arange(65).eq(64)).all(), step.reward, step.terminated)
    });
    let values: Vec<Vec<f64>> = results.iter().map(|array| array.to_f64()).collect();
    assert_eq!(values, [[1.0], [1.0], [1.0]]);
}

#[test]
fn alphazero_accepts_othello() {
    assert!(AlphaZeroSettings::default().agent(&task(&Othello::default())).is_ok());
}
