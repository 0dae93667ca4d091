//! Pictures of states.

use podracer_dsl::prelude::*;
use podracer_envs::boards::snake::State as SnakeState;
use podracer_envs::boards::{ConnectFour, Othello, Snake, TicTacToe};
use podracer_envs::render::Colour;
use podracer_envs::{AnyEnvironment, CartPole, Catch, Environment, MountainCar};

use crate::run::run;

/// The picture after some actions from the first state of key 0.
fn after<E: Environment<Observation = Tensor>>(env: E, actions: &[i32]) -> Array {
    let mut results = run((), &[], |()| {
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
    results.remove(0)
}

/// The program that draws a first state, as text.
fn program<E: Environment<Observation = Tensor>>(env: &E) -> String {
    let draw = |key: Key| env.render(&env.initial_state(key)).expect("it draws");
    trace(key(), draw).expect("it traces").to_string()
}

#[test]
fn wrappers_draw_what_their_environments_draw() {
    fn check<E: Environment<Observation = Tensor>>(env: E) {
        assert_eq!(after(AnyEnvironment::new(env.clone()), &[1, 0]), after(env.clone(), &[1, 0]));
        let wrapped = env.clone().time_limit(9).scale_reward(2.0).with_statistics().auto_reset();
        let pictures = [after(env, &[]), after(wrapped, &[])];
        assert_eq!(pictures[0], pictures[1]);
    }
    check(CartPole::default());
    check(TicTacToe::default());
}

#[test]
fn every_environment_draws_a_large_picture() {
    fn check<E: Environment<Observation = Tensor>>(env: E) {
        let picture = eval_shape(key(), |key| {
            env.render(&env.initial_state(key)).expect("an environment of the list draws")
        });
        let ty = picture.expect("it traces").types().remove(0);
        let longer = ty.shape[..2].iter().max().expect("two sides");
        assert!((256..=400).contains(longer) && ty.shape[2] == 3, "{ty}");
        // The same program, whether the environment's type is known or erased.
        let (known, erased) = (program(&env), program(&AnyEnvironment::new(env.clone())));
        assert!(known == erased, "{known}\n{erased}");
    }
    every_environment!(check);
}

/// The colour at a place of a board, in cells from the upper left corner.
fn at(picture: &Array, [rows, columns]: [usize; 2], (row, column): (f64, f64)) -> Colour {
    let &[height, width, 3] = &picture.ty().shape[..] else { panic!("three axes") };
    let place = |cell: f64, cells: usize, pixels: usize| (cell * (pixels / cells) as f64) as usize;
    let pixel = place(row, rows, height) * width + place(column, columns, width);
    let values = picture.to_f64();
    Colour([0, 1, 2].map(|channel| values[3 * pixel + channel] as u8))
}

/// The mean column of the pixels with a colour.
fn column_of(picture: &Array, colour: Colour) -> f64 {
    let width = picture.ty().shape[1];
    let values = picture.to_f64();
    let pixels = values.as_chunks::<3>().0.iter().enumerate();
    let of_colour = pixels.filter(|(_, pixel)| pixel.map(|value| value as u8) == colour.0);
    let columns: Vec<f64> = of_colour.map(|(i, _)| (i % width) as f64).collect();
    columns.iter().sum::<f64>() / columns.len() as f64
}

#[test]
fn stones_have_the_colours_of_their_players() {
    let picture = after(TicTacToe::default(), &[4, 0]);
    let seen = [(1.5, 1.5), (0.5, 0.5), (0.5, 0.25), (2.5, 2.5)].map(|p| at(&picture, [3, 3], p));
    assert_eq!(seen, [Colour::BLUE, Colour::BOARD, Colour::RED, Colour::BOARD]);

    let picture = after(ConnectFour::default(), &[3, 3, 3]);
    let seen = [5.5, 4.5, 3.5, 2.5].map(|row| at(&picture, [6, 7], (row, 3.5)));
    assert_eq!(seen, [Colour::YELLOW, Colour::RED, Colour::YELLOW, Colour::BOARD]);

    let picture = after(Othello::default(), &[]);
    let seen = [(3.5, 3.5), (3.5, 4.5), (4.5, 3.5)].map(|p| at(&picture, [8, 8], p));
    assert_eq!(seen.iter().filter(|&&stone| stone == Colour::WHITE).count(), 1);
    assert_eq!(seen.iter().filter(|&&stone| stone == Colour::BLACK).count(), 2);
}

#[test]
fn things_are_drawn_where_they_move() {
    let cart = |actions: &[i32]| column_of(&after(CartPole::default(), actions), Colour::BLUE);
    assert!(cart(&[1; 8]) > cart(&[]) && cart(&[0; 8]) < cart(&[]));
    let car = |actions: &[i32]| column_of(&after(MountainCar::default(), actions), Colour::RED);
    assert!(car(&[2; 9]) > car(&[0; 9]));
    let paddle = |action: i32| column_of(&after(Catch::default(), &[action]), Colour::BLUE);
    assert!(paddle(0) < paddle(1) && paddle(1) < paddle(2));
}

#[test]
fn the_parts_of_a_snake_touch() {
    let snake = Snake { rows: 4, columns: 5, time_limit: 9 };
    let mut results = run((), &[], |()| {
        let body = [0, 0, 0, 0, 0, 0, 2, 3, 4, 0, 0, 1, 0, 5, 0, 0, 0, 0, 0, 0];
        let first = snake.initial_state(Key::new(0u32));
        let (row, column, fruit) = (scalar(2), scalar(3), scalar(0));
        let state = SnakeState { body: constant(body), row, column, fruit, ..first };
        snake.render(&state).expect("it draws")
    });
    let picture = results.remove(0);
    // On the edges between the cells (1, 1), (1, 2) and (1, 3), and on no edge between (2, 2) and others.
    let seen = [(1.5, 2.0), (1.5, 2.99), (2.0, 3.5), (2.0, 1.5), (2.0, 2.5), (2.5, 2.0)];
    let green = seen.map(|place| at(&picture, [4, 5], place) == Colour::GREEN);
    assert_eq!(green, [true, true, true, true, false, false]);
}
