//! Lines that win, opponents, and games against them.

use crate::run::run;
use podracer_dsl::prelude::*;
use podracer_envs::boards::{
    Against, Begins, ConnectFour, Opponent, OpponentOfAll, OpponentOfOthello, OpponentOfTicTacToe,
    Othello, Stones, TicTacToe,
};
use podracer_envs::{Environment, check_environment};

/// A position with these stones, of the first player's turn.
fn stones(own: Tensor, other: Tensor) -> Stones {
    Stones { own, other, player: scalar(0), over: constant(false) }
}

/// Reward and end of each case: own stones, the other's, and the action.
fn outcomes<E: Environment<State = Stones>>(
    env: &E,
    dtype: DType,
    cases: &[(u64, u64, usize)],
) -> Vec<(f64, bool)> {
    let column = |dtype, pick: fn(&(u64, u64, usize)) -> i128| {
        Array::ints(dtype, [cases.len()], &cases.iter().map(pick).collect::<Vec<_>>())
    };
    let own = column(dtype, |case| case.0.into());
    let other = column(dtype, |case| case.1.into());
    let actions = column(DType::I32, |case| case.2 as i128);
    let [first, second, third] =
        [&own, &other, &actions].map(|array| Spec::<Tensor>(array.ty().clone()));
    let results = run((first, second, third), &[own, other, actions], |cases| {
        vmap(cases, |(own, other, action)| {
            let (_, timestep) = env.step(stones(own, other), action, Key::new(0u32));
            (timestep.reward, timestep.terminated)
        })
    });
    let [rewards, ended] = [0, 1].map(|i| results[i].to_f64());
    rewards.into_iter().zip(ended).map(|(reward, ended)| (reward, ended == 1.0)).collect()
}

/// All lines of `length` cells on a board, as (row, column).
fn lines(rows: i32, columns: i32, length: i32) -> Vec<Vec<(i32, i32)>> {
    let starts = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let ways = [(0, 1), (1, 0), (1, 1), (1, -1)];
    let all = starts.flat_map(|(row, column)| {
        ways.map(|(down, right)| {
            (0..length).map(|n| (row + n * down, column + n * right)).collect::<Vec<_>>()
        })
    });
    let inside =
        |&(row, column): &(i32, i32)| (0..rows).contains(&row) && (0..columns).contains(&column);
    all.filter(|line| line.iter().all(inside)).collect()
}

#[test]
fn every_line_of_tic_tac_toe_wins_by_its_last_stone() {
    let lines = lines(3, 3, 3);
    assert_eq!(lines.len(), 8);
    let bit = |(row, column): (i32, i32)| 1u64 << (3 * row + column);
    for last in 0..3 {
        let line = |line: &Vec<(i32, i32)>| {
            let others = line.iter().enumerate().filter(|(n, _)| *n != last);
            let own = others.fold(0, |own, (_, &cell)| own | bit(cell));
            (own, 3 * line[last].0 + line[last].1)
        };
        let wins: Vec<_> =
            lines.iter().map(line).map(|(own, action)| (own, 0, action as usize)).collect();
        assert_eq!(outcomes(&TicTacToe::default(), DType::U32, &wins), [(1.0, true); 8]);
        // The other player's stones do not count.
        let no_wins: Vec<_> = wins.iter().map(|&(own, _, action)| (0, own, action)).collect();
        assert_eq!(outcomes(&TicTacToe::default(), DType::U32, &no_wins), [(0.0, false); 8]);
    }
}

#[test]
fn every_line_of_connect_four_wins_by_its_last_stone() {
    let lines = lines(6, 7, 4);
    assert_eq!(lines.len(), 69);
    // Row 0 is at the bottom here.
    let bit = |(row, column): (i32, i32)| 1u64 << (7 * column + row);
    let (mut wins, mut no_wins) = (Vec::new(), Vec::new());
    for line in &lines {
        for &(row, column) in line {
            let all = line.iter().fold(0, |own, &cell| own | bit(cell));
            let own = all & !bit((row, column));
            let below = (0..row).fold(0, |below, row| below | bit((row, column)));
            wins.push((own, below & !own, column as usize));
            for &missing in line.iter().filter(|&&cell| cell != (row, column)) {
                let own = own & !bit(missing);
                no_wins.push((own, below & !own, column as usize));
            }
        }
    }
    let won = outcomes(&ConnectFour::default(), DType::U64, &wins);
    assert!(won.iter().all(|outcome| *outcome == (1.0, true)), "{won:?}");
    let not_won = outcomes(&ConnectFour::default(), DType::U64, &no_wins);
    assert!(not_won.iter().all(|outcome| *outcome == (0.0, false)), "{not_won:?}");
}

/// Returns of games of a player against the environment's opponent, side by side.
fn returns<E, O, P>(env: Against<E, O>, player: &P, games: usize, moves: usize) -> Vec<f64>
where
    E: Environment,
    O: Opponent<E>,
    P: Opponent<E>,
{
    assert_eq!(env.players(), 1);
    check_environment(&env).unwrap_or_else(|error| panic!("{error}"));
    let results = run((), &[], |()| {
        vmap(Key::new(7u32).split_n(games), |key| {
            let [begin, steps] = key.split_into();
            let first = env.initial_state(begin);
            let carry = (first, scalar(0.0), constant(false));
            let keys = steps.split_n(moves);
            let (carry, ()) = scan(carry, keys, |(state, total, over), key| {
                let [choice, step] = key.split_into();
                let action = player.choose(&env.game, &state, choice);
                let (state, timestep) = env.step(state, action, step);
                let total = total + select(over, 0.0, timestep.reward);
                ((state, total, over | timestep.done()), ())
            });
            (carry.1, carry.2)
        })
    });
    assert!(results[1].to_f64().iter().all(|&over| over == 1.0), "all games end");
    results[0].to_f64()
}

/// Games won, drawn and lost by the player.
fn tally(returns: &[f64]) -> [usize; 3] {
    [1.0, 0.0, -1.0].map(|result| returns.iter().filter(|&&each| each == result).count())
}

#[test]
fn the_perfect_player_of_tic_tac_toe_never_loses() {
    use OpponentOfTicTacToe::{Careful, Perfect, Random};
    for begins in [Begins::Agent, Begins::Opponent, Begins::Either] {
        let env = Against::new(TicTacToe::default(), Perfect).beginning(begins);
        let [won, drawn, lost] = tally(&returns(env, &Random, 100, 5));
        assert!(won == 0 && drawn + lost == 100 && lost > 50, "{won} {drawn} {lost}");
        let [won, drawn, lost] = tally(&returns(env, &Careful, 100, 5));
        assert!(won == 0 && drawn + lost == 100 && drawn > 0, "{won} {drawn} {lost}");
        assert_eq!(tally(&returns(env, &Perfect, 60, 5)), [0, 60, 0]);
    }
}

#[test]
fn players_of_all_games_play_as_they_say() {
    use OpponentOfAll::{Careful, Random};
    let env = Against::new(ConnectFour::default(), Random);
    let [won, drawn, lost] = tally(&returns(env, &Random, 60, 21));
    assert_eq!(won + drawn + lost, 60);
    assert!(won > 15 && lost > 15, "{won} {lost}");
    let [won, _, lost] = tally(&returns(env, &Careful, 60, 21));
    assert!(won > 50 && lost < 5, "{won} {lost}");
    let othello = Against::new(Othello::default(), OpponentOfOthello::Random);
    let [won, drawn, lost] = tally(&returns(othello, &OpponentOfOthello::Greedy, 24, 34));
    assert!(won + drawn + lost == 24 && won > lost, "{won} {lost}");
}

#[test]
fn a_careful_player_wins_at_once_and_keeps_others_from_it() {
    let choose = |own: u64, other: u64| {
        let results = run((), &[], |()| {
            let state = stones(scalar(own), scalar(other));
            vmap(Key::new(1u32).split_n(20), |key| {
                OpponentOfAll::Careful.choose(&ConnectFour::default(), &state, key)
            })
        });
        let mut choices: Vec<i32> =
            results[0].to_f64().iter().map(|&column| column as i32).collect();
        choices.sort_unstable();
        choices.dedup();
        choices
    };
    // Three in a column of each player: bits 0 to 2 are column 0, bits 7 to 9 column 1.
    assert_eq!(choose(0b111, 0b111 << 7), [0]);
    assert_eq!(choose(0b11, 0b111 << 7), [1]);
    assert!(choose(0, 0).len() > 3);
}
