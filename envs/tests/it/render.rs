//! Pictures of states.

use podracer_dsl::prelude::*;
use podracer_envs::boards::{ConnectFour, Game2048, Othello, Snake, TicTacToe};
use podracer_envs::minatar::{Asterix, Breakout, Freeway, Seaquest, SpaceInvaders};
use podracer_envs::render::{Canvas, Colour, planes};
use podracer_envs::{
    Acrobot, AnyEnvironment, CartPole, Catch, DeepSea, DiscountingChain, Environment, GridWorld,
    MemoryChain, MountainCar, MountainCarContinuous, Pendulum, SimpleBandit, UmbrellaChain,
};

use crate::run::run;

/// A letter for each colour; others are `*`.
const LETTERS: [(Colour, char); 12] = [
    (Colour::BLACK, '.'),
    (Colour::WHITE, 'W'),
    (Colour::GREY, 'g'),
    (Colour::RED, 'R'),
    (Colour::GREEN, 'G'),
    (Colour::BLUE, 'B'),
    (Colour::YELLOW, 'Y'),
    (Colour::CYAN, 'C'),
    (Colour::MAGENTA, 'M'),
    (Colour::ORANGE, 'O'),
    (Colour::SKY, 's'),
    (Colour::GROUND, '_'),
];

/// The letters of a picture, a line for each row.
fn letters(picture: &Array) -> String {
    let pixels: Vec<u8> = picture.to_f64().into_iter().map(|value| value as u8).collect();
    let letter = |pixel: &[u8]| {
        let known = LETTERS.iter().find(|(colour, _)| colour.0 == *pixel);
        known.map_or('*', |(_, letter)| *letter)
    };
    let rows = pixels.chunks_exact(3 * picture.ty().shape[1]);
    rows.map(|row| row.chunks_exact(3).map(letter).chain(['\n']).collect::<String>()).collect()
}

/// The picture after some actions from the first state of key 0.
fn after<E: Environment<Observation = Tensor>>(env: E, actions: &[i32]) -> String {
    let results = run((), &[], |()| {
        let first = env.initial_state(Key::new(0u32));
        let state = actions.iter().enumerate().fold(first, |state, (step, &action)| {
            let action = match &env.action_space().shape()[..] {
                [] => scalar(action),
                shape => full(shape.to_vec(), action as f32).astype(env.action_space().ty().dtype),
            };
            env.step(state, action, Key::new(step as u32 + 1)).0
        });
        env.render(&state).expect("it draws")
    });
    letters(&results[0])
}

#[test]
fn shapes_cover_the_pixels_whose_centers_they_contain() {
    let picture = run((), &[], |()| {
        let point = |x: f64, y: f64| (scalar(x), scalar(y));
        Canvas::new(6, 8, Colour::BLACK)
            .rectangle(point(0.0, 0.0), point(3.0, 2.0), Colour::BLUE)
            .disc(point(6.5, 1.5), 1.0, Colour::RED)
            .segment(point(0.5, 3.5), point(4.5, 3.5), 0.4, Colour::GREEN)
            .segment(point(7.5, 5.5), point(7.5, 5.5), 0.4, Colour::YELLOW)
            .cell(5, 0, Colour::WHITE)
            .cell(6, 0, Colour::WHITE)
            .finish()
    });
    let expected = "BBB...R.\nBBB..RRR\n......R.\nGGGGG...\n........\nW......Y\n";
    assert_eq!(letters(&picture[0]), expected);
    let board = run(bool([2, 2]), &[Array::bools([2, 2], &[true, true, false, false])], |mask| {
        planes(2, 2, &[(mask, Colour::RED), (mask.transpose(), Colour::BLUE)])
    });
    assert_eq!(letters(&board[0]), "BR\nB.\n");
}

#[test]
fn every_environment_draws_what_any_environment_draws() {
    fn check<E: Environment<Observation = Tensor>>(env: E) {
        assert_eq!(after(AnyEnvironment::new(env.clone()), &[1, 0]), after(env.clone(), &[1, 0]));
        let wrapped = env.clone().time_limit(9).scale_reward(2.0).with_statistics().auto_reset();
        let pictures = [after(env, &[]), after(wrapped, &[])];
        assert_eq!(pictures[0], pictures[1]);
    }
    every_environment!(check);
}

#[test]
fn states_look_as_they_did() {
    let pictures = [
        ("acrobot", after(Acrobot::default(), &[0, 0, 2])),
        ("bandit", after(SimpleBandit::default(), &[4])),
        ("cartpole", after(CartPole::default(), &[1; 8])),
        ("catch", after(Catch::default(), &[0, 1])),
        ("deep sea", after(DeepSea { size: 6, ..DeepSea::default() }, &[1, 1])),
        ("discounting chain", after(DiscountingChain::default(), &[3, 0, 0, 0])),
        ("gridworld", after(GridWorld::default(), &[2])),
        ("memory chain", after(MemoryChain { length: 4, bits: 3 }, &[0, 0, 0, 0])),
        ("mountain car", after(MountainCar::default(), &[2, 2, 2])),
        ("continuous mountain car", after(MountainCarContinuous::default(), &[-1])),
        ("pendulum", after(Pendulum::default(), &[1, 1])),
        ("umbrella chain", after(UmbrellaChain::default(), &[1, 0, 0])),
        ("tic-tac-toe", after(TicTacToe::default(), &[4, 0, 8])),
        ("connect four", after(ConnectFour::default(), &[3, 3, 3, 2, 0])),
        ("othello", after(Othello::default(), &[19, 18, 17])),
        ("2048", after(Game2048::default(), &[0, 1, 0, 1, 0, 1, 2, 1, 0])),
        ("snake", after(Snake { rows: 4, columns: 5, time_limit: 9 }, &[1, 0])),
        ("asterix", after(Asterix::default(), &[1; 24])),
        ("breakout", after(Breakout::default(), &[1, 1, 1, 1])),
        ("freeway", after(Freeway::default(), &[1; 9])),
        (
            "seaquest",
            after(
                Seaquest::default(),
                &[
                    4, 4, 4, 3, 3, 5, 0, 5, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0,
                    0, 0, 0, 0, 0, 0, 0,
                ],
            ),
        ),
        (
            "space invaders",
            after(SpaceInvaders::default(), &[3, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0]),
        ),
    ];
    let text: String =
        pictures.iter().map(|(name, picture)| format!("{name}\n{picture}\n")).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/pictures.txt");
    // `PODRACER_BLESS=1` writes the pictures down anew.
    if std::env::var_os("PODRACER_BLESS").is_some() {
        std::fs::write(path, &text).expect("the file is writable");
    }
    let expected = std::fs::read_to_string(path).expect("the file is checked in");
    for (new, old) in text.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(new, old, "got\n{new}\nexpected\n{old}");
    }
    assert_eq!(text.len(), expected.len());
}
