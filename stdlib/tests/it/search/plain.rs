//! Plain tree search as a player.

use podracer_dsl::prelude::*;
use podracer_envs::Environment;
use podracer_envs::boards::{ConnectFour, Opponent, OpponentOfAll, TicTacToe};
use podracer_rl::search::PlainMcts;

/// The actions that a player takes after these moves, by the keys of 0, 1, ..
fn chosen<E: Environment>(
    game: &E,
    moves: &[i32],
    player: &impl Opponent<E>,
    keys: usize,
) -> Vec<f64> {
    let traced = trace(key(), |key| {
        let mut state = game.initial_state(Key::new(0));
        for action in moves {
            state = game.step(state, scalar(*action), Key::new(0)).0;
        }
        vmap((key.split_n(keys), whole(state)), |(key, state)| player.choose(game, &state, key))
    });
    let results = traced.expect("it traces").eval(&[Array::key(5)]).expect("it runs");
    results[0].to_f64()
}

#[test]
fn plain_search_wins_and_blocks_in_one_move() {
    let player = PlainMcts { simulations: 100 };
    // X has the cells 0 and 1, O has 4 and 8: 2 wins.
    assert_eq!(chosen(&TicTacToe::default(), &[0, 4, 1, 8], &player, 4), [2.0; 4]);
    // X has 0 and 8, O has 4 and 3: 5 blocks.
    assert_eq!(chosen(&TicTacToe::default(), &[0, 4, 8, 3], &player, 4), [5.0; 4]);
    // X has three stones in column 3, O none that matter: X wins there, and O blocks there.
    let game = ConnectFour::default();
    assert_eq!(chosen(&game, &[3, 0, 3, 1, 3, 6], &player, 2), [3.0; 2]);
    // With seven answers to seven moves it takes longer to find a losing move.
    let longer = PlainMcts { simulations: 400 };
    assert_eq!(chosen(&game, &[3, 0, 3, 1, 3], &longer, 1), [3.0]);
    // A player who moves at random does not find them.
    let random = chosen(&game, &[3, 0, 3, 1, 3], &OpponentOfAll::Random, 8);
    assert!(random.iter().any(|action| *action != 3.0), "{random:?}");
}
