//! Searches compared with mctx.

mod ours;

use anyhow::Result;
use clap::Parser;
use podracer_runtime::{Client, OptionValue, XlaOptions};
use serde_json::json;

use crate::support::{
    Figures, KIT, Peer, Table, Turns, machine, number, open, say, si, speeds, time,
};
use ours::{Case, Ways};

/// Least ratio of podracer's speed to mctx's, and to mctx's for 256 roots, 50 simulations, 18
/// actions.
const TARGET: f64 = 2.0;
const MAIN_TARGET: f64 = 4.0;

/// Times searches of a batch of roots, compared with mctx, with the same network.
#[derive(Parser)]
pub struct Options {
    /// `cpu`, with one device, or `cuda13`.
    #[arg(long, default_value = "cpu")]
    platform: String,
    /// `muzero`, `gumbel`.
    #[arg(long, value_delimiter = ',', default_values_t = ["muzero".to_owned(), "gumbel".to_owned()])]
    policies: Vec<String>,
    /// Numbers of roots that are searched from side by side.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32, 256, 1024])]
    batches: Vec<usize>,
    /// Numbers of simulations of a search.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 50, 200])]
    simulations: Vec<usize>,
    /// Numbers of actions of a node.
    #[arg(long, value_delimiter = ',', default_values_t = [4, 18, 362])]
    actions: Vec<usize>,
    /// Simulations of all trees in a run, about.
    #[arg(long, default_value_t = 100_000)]
    work: usize,
    /// Each root is searched by itself, and `vmap` makes the batch.
    #[arg(long)]
    by_vmap: bool,
    /// Times the network alone, as often as a search calls it.
    #[arg(long)]
    network_alone: bool,
    /// The bytes below which a loop is one kernel, in place of podracer's rule for agents that search: any without products.
    #[arg(long)]
    small_loop: Option<u64>,
    #[command(flatten)]
    turns: Turns,
}

pub fn run(options: &Options) -> Result<()> {
    say(&machine());
    let client = open(&options.platform, (options.platform == "cpu").then_some(1))?;
    let peer = (!options.turns.alone).then(|| Peer::prepare(&options.platform)).transpose()?;
    let mut table = Table::new(&[
        "policy",
        "actions",
        "simulations",
        "roots",
        "ours best / median",
        "mctx best / median",
        "ratio of bests",
        "of medians",
        "us per simulation and tree",
        "compile ours / mctx",
        "MB of the program, ours / mctx",
        "bytes of a row and a level",
    ]);
    for policy in &options.policies {
        for &actions in &options.actions {
            for &simulations in &options.simulations {
                for &batch in &options.batches {
                    let case = Case {
                        gumbel: policy == "gumbel",
                        batch,
                        simulations,
                        actions,
                        rounds: (options.work / (batch * simulations)).max(1),
                        by_vmap: options.by_vmap,
                        network_alone: options.network_alone,
                    };
                    row(options, &client, peer.as_ref(), &case, &mut table)?;
                }
            }
        }
    }
    table.print("Searches a second");
    Ok(())
}

fn row(
    options: &Options,
    client: &Client,
    peer: Option<&Peer>,
    case: &Case,
    table: &mut Table,
) -> Result<()> {
    let small = |bytes: u64| {
        let value = format!("xla_cpu_small_while_loop_byte_threshold={bytes},-disable-lsr");
        vec![("xla_backend_extra_options".to_owned(), OptionValue::String(value))]
    };
    let on_cpu = options.platform == "cpu";
    let rule = XlaOptions::for_platform(&options.platform);
    let xla = match options.small_loop {
        Some(bytes) => small(bytes),
        None if on_cpu => rule.whole_loop().pairs(),
        None => rule.pairs(),
    };
    // What `podracer train` does for agents that search.
    let ways = Ways { whole_loops: on_cpu && options.small_loop.is_none(), launches: !on_cpu };
    let ours = case.compile(client, &xla, ways)?;
    if options.turns.hlo {
        eprintln!("{}", ours.hlo()?);
    }
    ours.run()?;
    let bytes = ours.bytes()? as f64;
    let mut peer_bytes = f64::NAN;
    let policy = if case.gumbel { "gumbel" } else { "muzero" };
    let [mut speed, mut peers, mut peer_compile] = std::array::from_fn(|_| Figures::default());
    let run = |_| {
        let (searches, mean) = ours.run()?;
        speed.extend([searches]);
        say(&json!({
            "bench": "search", "policy": policy, "batch": case.batch, "simulations": case.simulations, "actions": case.actions,
            "searches_per_second": searches, "mean": mean, "compile_seconds": ours.compile_seconds,
        }));
        Ok(())
    };
    options.turns.take(run, || {
        let Some(peer) = peer else { return Ok(()) };
        let arguments = [
            format!("--policy={policy}"),
            format!("--batch={}", case.batch),
            format!("--simulations={}", case.simulations),
            format!("--actions={}", case.actions),
            format!("--rounds={}", case.rounds.div_ceil(4)),
            format!("--repeats={}", options.turns.repeats + 1),
        ];
        let line = peer.run("search.py", &arguments)?;
        peers.extend(speeds(&line)?.into_iter().skip(1));
        peer_compile.extend([number(&line, "compile_seconds")?]);
        peer_bytes = number(&line, "bytes")?;
        Ok(())
    })?;
    if KIT {
        let simulations = case.simulations as f64;
        say(&json!({"row": {
            "program": format!("simulations of {policy}, {} a search, {} actions", case.simulations, case.actions),
            "environments": case.batch, "settings": "",
            "ours": speed.greatest() * simulations, "peer": peers.greatest() * simulations,
            "ours_compile": ours.compile_seconds, "peer_compile": peer_compile.least(),
            "ours_bytes": bytes, "peer_bytes": peer_bytes,
        }}));
    }
    let main = (case.batch, case.simulations, case.actions) == (256, 50, 18);
    let target = if main { MAIN_TARGET } else { TARGET };
    let shown = [
        policy.to_owned(),
        case.actions.to_string(),
        case.simulations.to_string(),
        case.batch.to_string(),
    ];
    let rest = [
        format!("{:.2}", 1e6 / (speed.greatest() * case.simulations as f64)),
        format!("{} / {}", time(ours.compile_seconds), time(peer_compile.least())),
        format!("{:.1} / {:.1}", bytes / 1e6, peer_bytes / 1e6),
        // A simulation writes one row; a level of the backup reads one and writes one.
        format!("{} / {}", case.row_bytes(), 2 * case.row_bytes()),
    ];
    table.row(shown.into_iter().chain(speed.beside(&peers, target, si)).chain(rest));
    Ok(())
}
