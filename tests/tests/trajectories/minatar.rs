//! The games of MinAtar do what gymnax's do, draw for draw.

use super::{Start, pays_from, records};
use podracer_dsl::prelude::*;
use podracer_envs::Environment;
use podracer_envs::minatar::{Asterix, Breakout, Freeway, Seaquest, SpaceInvaders};

/// Compares all records of a game. `make` makes it with a time limit, and `renamed` gives our name of a field of gymnax's state.
fn all<E: Environment<Observation = Tensor>>(
    game: &str,
    make: impl Fn(Option<usize>) -> E,
    renamed: impl Fn(&str) -> &'static str,
) {
    for record in records("minatar.json", game) {
        let limit = record["params"]["max_steps_in_episode"].as_u64().map(|limit| limit as usize);
        let start = record["start"].as_object().expect("an object");
        let start: Start = start
            .iter()
            .map(|(name, value)| {
                let number = value.as_i64().or_else(|| value.as_bool().map(i64::from));
                (renamed(name), number.expect("a number"))
            })
            .collect();
        pays_from(make(limit), &record, &start);
    }
}

fn same(name: &str) -> &'static str {
    panic!("no record starts with another `{name}`")
}

#[test]
fn breakout_follows_gymnax() {
    let make = |limit| match limit {
        Some(time_limit) => Breakout { time_limit, ..Breakout::default() },
        None => Breakout::default(),
    };
    all("Breakout-MinAtar", make, same);
}

#[test]
fn asterix_follows_gymnax() {
    all(
        "Asterix-MinAtar",
        |_| Asterix::default(),
        |name| match name {
            "spawn_speed" => "spawn_speed",
            "spawn_timer" => "spawn_timer",
            "move_speed" => "move_speed",
            other => same(other),
        },
    );
}

#[test]
fn freeway_follows_gymnax() {
    let make = |limit| match limit {
        Some(time_limit) => Freeway { time_limit, ..Freeway::default() },
        None => Freeway::default(),
    };
    all("Freeway-MinAtar", make, same);
}

#[test]
fn space_invaders_follows_gymnax() {
    all("SpaceInvaders-MinAtar", |_| SpaceInvaders::default(), same);
}

#[test]
fn seaquest_follows_gymnax() {
    all(
        "Seaquest-MinAtar",
        |_| Seaquest::default(),
        |name| match name {
            "e_spawn_speed" => "spawn_speed",
            "e_spawn_timer" => "spawn_timer",
            "move_speed" => "move_speed",
            "sub_y" => "row",
            "surface" => "surfaced",
            "diver_count" => "rescued",
            "oxygen" => "oxygen",
            other => same(other),
        },
    );
}
