//! Random-policy stepping with automatic resets, beside gymnax, beside pgx and jumanji for boards, navix for MiniGrid, and craftax for Craftax-Classic.

mod stepping;

use anyhow::Result;
use clap::Parser;
use podracer_envs::boards::{ConnectFour, Game2048, Othello, Snake, TicTacToe};
use podracer_envs::minatar::{Asterix, Breakout, Freeway, Seaquest, SpaceInvaders};
use podracer_envs::minigrid::{
    Common, DoorKey, DynamicObstacles, Empty, FourRooms, GoToDoor, KeyCorridor, LavaGap, View,
};
use podracer_envs::puzzles::{
    GraphColoring, Knapsack, Maze, Minesweeper, RubiksCube, SlidingTiles, Sokoban,
    TravellingSalesman,
};
use podracer_envs::{CartPole, Catch, Connector, CraftaxClassic};
use serde_json::json;

use crate::support::{
    Figures, KIT, Peer, Table, Turns, bytes, compile_seconds, machine, number, open, say, si,
    speeds, time,
};
use stepping::{Shape, Stepping};

/// Least ratio of our speed to the peer's.
const TARGET: f64 = 10.0;

/// The environments that pgx and jumanji have.
const BOARDS: [&str; 14] = [
    "tic-tac-toe",
    "connect-four",
    "othello",
    "2048",
    "snake",
    "connector",
    "sliding-tiles",
    "knapsack",
    "maze",
    "graph-coloring",
    "minesweeper",
    "rubiks-cube",
    "travelling-salesman",
    "sokoban",
];

/// The levels of MiniGrid that navix has.
const MINIGRID: [&str; 7] = [
    "minigrid-empty",
    "minigrid-four-rooms",
    "minigrid-door-key",
    "minigrid-key-corridor",
    "minigrid-lava-gap",
    "minigrid-dynamic-obstacles",
    "minigrid-go-to-door",
];

/// Packages whose environments step beside ours.
struct Others {
    /// The name of their Python.
    python: &'static str,
    requirements: &'static str,
    script: &'static str,
}

/// The packages that have an environment.
fn others(name: &str) -> Others {
    if BOARDS.contains(&name) {
        let requirements = "tests/golden/requirements-boards.txt";
        Others { python: "golden-boards", requirements, script: "random_boards.py" }
    } else if MINIGRID.contains(&name) {
        let requirements = "benches/peer/requirements-minigrid.txt";
        Others { python: "peer-minigrid", requirements, script: "random_minigrid.py" }
    } else if name == "craftax-classic" {
        let requirements = "tests/golden/requirements-craftax.txt";
        Others { python: "golden-craftax", requirements, script: "random_craftax.py" }
    } else {
        let requirements = "benches/peer/requirements.txt";
        Others { python: "peer", requirements, script: "random_stepping.py" }
    }
}

/// Times random-policy stepping beside gymnax, pgx, jumanji, navix and craftax.
#[derive(Parser)]
pub struct Options {
    /// `cpu` or `cuda13`.
    #[arg(long, default_value = "cpu")]
    platform: String,
    /// Environments in all.
    #[arg(long, value_delimiter = ',', default_values_t = [1024, 4096])]
    environments: Vec<usize>,
    /// `cartpole`, `catch`, a game of MinAtar, such as `breakout`, a level of MiniGrid, such as `minigrid-empty`, `craftax-classic`, or a board or puzzle: `tic-tac-toe`, `connect-four`, `othello`, `2048`, `snake`, `connector`, `sliding-tiles`, `knapsack`, `maze`, `graph-coloring`, `minesweeper`, `rubiks-cube`, `travelling-salesman`, `sokoban`.
    #[arg(long, value_delimiter = ',', default_values_t = ["cartpole".to_owned(), "catch".to_owned()])]
    envs: Vec<String>,
    /// Steps of every environment of ours in a run; the peer's do a tenth.
    #[arg(long, default_value_t = 20_480)]
    steps: usize,
    /// CPU devices; one per core by default.
    #[arg(long)]
    devices: Option<usize>,
    #[command(flatten)]
    turns: Turns,
}

pub fn run(options: &Options) -> Result<()> {
    say(&machine());
    let platform = options.platform.as_str();
    let client = open(platform, options.devices)?;
    let mut table = Table::new(&[
        "environment",
        "environments",
        "devices",
        "ours best / median",
        "peer best / median",
        "ratio of bests",
        "of medians",
        "compile ours / peer",
        "mean return ours / peer",
    ]);
    for name in &options.envs {
        for &environments in &options.environments {
            let others = others(name);
            let peer = match options.turns.alone {
                true => None,
                false => Some(Peer::with(platform, others.python, others.requirements)?),
            };
            let shape = Shape { environments, steps: options.steps };
            // The numbers that navix shows, and its limit of steps.
            let common = Common { view: View::Symbolic, time_limit: Some(100) };
            let ours = match name.as_str() {
                "cartpole" => Stepping::compile(&client, CartPole::default(), shape)?,
                "catch" => Stepping::compile(&client, Catch::default(), shape)?,
                "asterix" => Stepping::compile(&client, Asterix::default(), shape)?,
                "breakout" => Stepping::compile(&client, Breakout::default(), shape)?,
                "freeway" => Stepping::compile(&client, Freeway::default(), shape)?,
                "seaquest" => Stepping::compile(&client, Seaquest::default(), shape)?,
                "space-invaders" => Stepping::compile(&client, SpaceInvaders::default(), shape)?,
                "tic-tac-toe" => Stepping::compile(&client, TicTacToe::default(), shape)?,
                "connect-four" => Stepping::compile(&client, ConnectFour::default(), shape)?,
                "othello" => Stepping::compile(&client, Othello::default(), shape)?,
                "2048" => Stepping::compile(&client, Game2048::default(), shape)?,
                "connector" => Stepping::compile(&client, Connector::default(), shape)?,
                "craftax-classic" => Stepping::compile(&client, CraftaxClassic::default(), shape)?,
                "snake" => Stepping::compile(&client, Snake::default(), shape)?,
                "sliding-tiles" => Stepping::compile(&client, SlidingTiles::default(), shape)?,
                "maze" => Stepping::compile(&client, Maze::default(), shape)?,
                "knapsack" => Stepping::compile(&client, Knapsack::default(), shape)?,
                "graph-coloring" => Stepping::compile(&client, GraphColoring::default(), shape)?,
                "minesweeper" => Stepping::compile(&client, Minesweeper::default(), shape)?,
                "rubiks-cube" => Stepping::compile(&client, RubiksCube::default(), shape)?,
                "sokoban" => Stepping::compile(&client, Sokoban::default(), shape)?,
                "travelling-salesman" => {
                    Stepping::compile(&client, TravellingSalesman::default(), shape)?
                }
                "minigrid-empty" => {
                    Stepping::compile(&client, Empty { common, ..Empty::default() }, shape)?
                }
                "minigrid-four-rooms" => Stepping::compile(&client, FourRooms { common }, shape)?,
                "minigrid-door-key" => {
                    Stepping::compile(&client, DoorKey { common, ..DoorKey::default() }, shape)?
                }
                "minigrid-key-corridor" => {
                    let level = KeyCorridor { common, ..KeyCorridor::default() };
                    Stepping::compile(&client, level, shape)?
                }
                "minigrid-lava-gap" => {
                    Stepping::compile(&client, LavaGap { common, ..LavaGap::default() }, shape)?
                }
                "minigrid-dynamic-obstacles" => {
                    let level = DynamicObstacles { common, ..DynamicObstacles::default() };
                    Stepping::compile(&client, level, shape)?
                }
                "minigrid-go-to-door" => {
                    Stepping::compile(&client, GoToDoor { common, ..GoToDoor::default() }, shape)?
                }
                _ => anyhow::bail!(
                    "no environment `{name}`: there are cartpole, catch, craftax-classic, asterix, breakout, freeway, seaquest, space-invaders, {}, {}",
                    BOARDS.join(", "),
                    MINIGRID.join(", ")
                ),
            };
            if options.turns.hlo {
                eprintln!("{}", ours.hlo()?);
            }
            // The first run touches its memory for the first time.
            ours.run(0)?;
            let [mut speed, mut peers, mut peer_compile, mut returns, mut peer_returns] =
                std::array::from_fn(|_| Figures::default());
            let [mut peer_bytes, mut peer_kernels] = std::array::from_fn(|_| Figures::default());
            let run = |number| {
                let run = ours.run(number)?;
                let steps_per_second = ours.env_steps() as f64 / run.seconds;
                speed.extend([steps_per_second]);
                returns.extend([run.mean_return]);
                say(&json!({
                    "bench": "envs", "environment": name, "environments": environments, "devices": ours.devices(), "env_steps": ours.env_steps(),
                    "run_seconds": run.seconds, "steps_per_second": steps_per_second, "mean_return": run.mean_return,
                    "compile_seconds": ours.compile_seconds(),
                }));
                Ok(())
            };
            options.turns.take(run, || {
                let Some(peer) = &peer else { return Ok(()) };
                let steps = (options.steps / 10).max(1);
                let line = peer.run(
                    others.script,
                    &[
                        format!("--env={name}"),
                        format!("--num-envs={environments}"),
                        format!("--steps={steps}"),
                        format!("--repeats={}", options.turns.repeats),
                    ],
                )?;
                peers.extend(speeds(&line)?);
                peer_bytes.extend([number(&line, "bytes")?]);
                peer_kernels.extend([number(&line, "kernels")? / steps as f64]);
                peer_returns.extend([number(&line, "mean_return")?]);
                peer_compile.extend([compile_seconds(&line)?]);
                Ok(())
            })?;
            if KIT {
                let kernels = ours.hlo()?.kernels() as f64 / ours.steps() as f64;
                say(&json!({"row": {
                    "program": format!("random steps in {name}"), "environments": environments, "settings": "",
                    "ours": speed.greatest(), "peer": peers.greatest(), "ours_all": speed.all(), "peer_all": peers.all(),
                    "ours_compile": ours.compile_seconds(), "peer_compile": peer_compile.least(),
                    "ours_bytes": bytes(ours.compiled())?, "peer_bytes": peer_bytes.least(),
                    "ours_kernels": kernels, "peer_kernels": peer_kernels.least(),
                }}));
            }
            let shown = [name.clone(), environments.to_string(), ours.devices().to_string()];
            let rest = [
                format!("{} / {}", time(ours.compile_seconds()), time(peer_compile.least())),
                format!("{:.3} / {:.3}", returns.median(), peer_returns.median()),
            ];
            table.row(shown.into_iter().chain(speed.beside(&peers, TARGET, si)).chain(rest));
        }
    }
    table.print("Random-policy stepping, environment steps a second");
    Ok(())
}
