//! Off-policy learning compared with its peers: `cargo bench --bench off_policy`.

mod dqn;
#[path = "../ppo/ours.rs"]
#[allow(dead_code, reason = "PPO's bench uses all of it")]
mod ours;
mod pqn;
mod products;
mod replay;
mod sac;
#[path = "../support/mod.rs"]
mod support;

use anyhow::Result;
use clap::Parser;
use podracer_rl::learn::RolloutShape;
use podracer_runtime::{Client, ClientOptions};
use serde_json::json;

use replay::Case;
use support::{Figures, Peer, Table, Turns, machine, say, speeds, time};

/// Least ratio of our speed to the peer's.
const TARGET: f64 = 2.0;

/// Times adding to a replay, drawing from it and setting priorities, compared with flashbax; and
/// training, compared with JAX.
#[derive(Parser)]
struct Options {
    /// Parts to measure: `replay`, `sac`, `dqn`, `pqn`.
    #[arg(long, value_delimiter = ',', default_values_t = ["replay", "sac", "dqn", "pqn"].map(str::to_owned))]
    only: Vec<String>,
    /// Settings for our trainings of DQN, as `podracer train --set`.
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    set: Vec<String>,
    /// Environments of SAC.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16])]
    environments: Vec<usize>,
    /// Environment steps of a run of SAC.
    #[arg(long, default_value_t = 4_000)]
    steps: usize,
    /// Environment steps of a run of PQN.
    #[arg(long, default_value_t = 262_144)]
    pqn_steps: usize,
    /// Steps in the store.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000])]
    items: Vec<usize>,
    /// `small`: four floats; `large`: 84 x 84 x 4 bytes, only up to 100,000 of them.
    #[arg(long, value_delimiter = ',', default_values_t = ["small".to_owned(), "large".to_owned()])]
    observations: Vec<String>,
    /// `uniform`, `prioritized`.
    #[arg(long, value_delimiter = ',', default_values_t = ["uniform".to_owned(), "prioritized".to_owned()])]
    draws: Vec<String>,
    /// Windows drawn in a round.
    #[arg(long, value_delimiter = ',', default_values_t = [32, 256])]
    batches: Vec<usize>,
    #[command(flatten)]
    turns: Turns,
}

fn main() -> Result<()> {
    let options = Options::parse();
    say(&machine());
    let client = Client::cpu(ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() })?;
    let peer = (!options.turns.alone).then(|| Peer::prepare("cpu")).transpose()?;
    let measures = |name: &str| options.only.iter().any(|only| only == name);
    if measures("replay") {
        replays(&options, &client, peer.as_ref())?;
    }
    if measures("sac") {
        sac::run(peer.as_ref(), &options.environments, options.steps, options.turns.rounds)?;
    }
    if measures("pqn") {
        pqn::run(peer.as_ref(), options.pqn_steps, options.turns.rounds)?;
    }
    if measures("dqn") {
        dqn::run(peer.as_ref(), &options.set, options.turns.rounds)?;
    }
    Ok(())
}

fn replays(options: &Options, client: &Client, peer: Option<&Peer>) -> Result<()> {
    let mut table = Table::new(&[
        "draws",
        "observation",
        "steps in the store",
        "batch",
        "ours best / median",
        "flashbax best / median",
        "ratio of bests",
        "of medians",
        "compile ours / flashbax",
    ]);
    for draws in &options.draws {
        for observation in &options.observations {
            for &items in &options.items {
                let large = observation == "large";
                if large && items > 100_000 {
                    eprintln!(
                        "bench: {items} frames of 84 x 84 x 4 bytes are left out: they are {} GB",
                        items * 28_224 / 1_000_000_000
                    );
                    continue;
                }
                for &batch in &options.batches {
                    let case = Case {
                        items,
                        large,
                        prioritized: draws == "prioritized",
                        shape: RolloutShape { lanes: 16, unroll: 4 },
                        batch,
                        length: 2,
                        rounds: if large { 50 } else { 1000 },
                    };
                    row(options, client, peer, &case, &mut table)?;
                }
            }
        }
    }
    table.print(
        "A replay: one round adds 64 steps, draws windows of two steps, and sets priorities",
    );
    Ok(())
}

fn row(
    options: &Options,
    client: &Client,
    peer: Option<&Peer>,
    case: &Case,
    table: &mut Table,
) -> Result<()> {
    let mut ours = case.compile(client)?;
    if options.turns.hlo {
        eprintln!("{}", ours.hlo()?);
    }
    // The first run touches its memory for the first time.
    ours.run(0)?;
    let observation = if case.large { "large" } else { "small" };
    let draws = if case.prioritized { "prioritized" } else { "uniform" };
    let [mut speed, mut peers, mut peer_compile] = std::array::from_fn(|_| Figures::default());
    let compiled_in = ours.compile_seconds;
    let run = |number| {
        let rounds_per_second = ours.run(number)?;
        speed.extend([rounds_per_second]);
        say(&json!({
            "bench": "replay", "draws": draws, "observation": observation, "items": case.items, "batch": case.batch,
            "rounds_per_second": rounds_per_second, "compile_seconds": compiled_in,
        }));
        Ok(())
    };
    options.turns.take(run, || {
        let Some(peer) = peer else { return Ok(()) };
        let mut arguments = vec![
            format!("--items={}", case.items),
            format!("--observation={observation}"),
            format!("--lanes={}", case.shape.lanes),
            format!("--unroll={}", case.shape.unroll),
            format!("--batch={}", case.batch),
            format!("--length={}", case.length),
            format!("--rounds={}", case.rounds),
            format!("--repeats={}", options.turns.repeats + 1),
        ];
        arguments.extend(case.prioritized.then(|| "--prioritized".to_owned()));
        let line = peer.run("replay.py", &arguments)?;
        peers.extend(speeds(&line)?.into_iter().skip(1));
        peer_compile.extend([support::number(&line, "compile_seconds")?]);
        Ok(())
    })?;
    let micros = |speed: f64| format!("{:.1} us", 1e6 / speed);
    let shown =
        [draws.to_owned(), observation.to_owned(), case.items.to_string(), case.batch.to_string()];
    let rest = [format!("{} / {}", time(compiled_in), time(peer_compile.least()))];
    table.row(shown.into_iter().chain(speed.beside(&peers, TARGET, micros)).chain(rest));
    Ok(())
}
