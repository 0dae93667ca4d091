//! The gain of each group of simplifications: `cargo bench --bench simplify`.
//!
//! Equations, the time of the pass, the compile time with it, and the speed of the result, for
//! whole training loops: with none of the groups, with each alone, with all, and with all except
//! each. The programs alternate within a round, so that a busy minute affects all of them; the
//! result is the ratio to none.

mod programs;
#[path = "../support/mod.rs"]
mod support;

use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use podracer_compiler::simplify::{Group, Options, simplify};
use podracer_runtime::{Client, ClientOptions};
use serde_json::json;

use support::{Figures, Table, machine, say, time};

/// Measures the simplifications on training loops.
#[derive(Parser)]
struct Arguments {
    /// Names of the loops to measure.
    #[arg(long, value_delimiter = ',', default_values = programs::NAMES, value_parser = programs::NAMES)]
    programs: Vec<String>,
    /// Number of times that each variant is compiled.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Number of runs after each compilation; 0 to compile only.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// The groups, alone and left out, compared with none and all; `--groups=` for no more than
    /// these.
    #[arg(long, value_delimiter = ',')]
    groups: Option<Vec<String>>,
    /// Only counts: nothing is compiled.
    #[arg(long)]
    counts: bool,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A choice of groups, and its measurements.
struct Variant {
    name: String,
    options: Options,
    equations: usize,
    pass: Figures,
    compile: Figures,
    run: Figures,
}

fn variants(groups: Option<&[String]>) -> Vec<Variant> {
    let mut all = vec![("none".to_owned(), Options::default()), ("all".to_owned(), Options::all())];
    let wanted =
        |group: &&Group| groups.is_none_or(|words| words.iter().any(|word| word == group.word()));
    for &group in Group::ALL.iter().filter(wanted) {
        all.push((group.word().to_owned(), Options::default().with(group)));
        let name = format!("all but {}", group.word());
        all.push((name, Options::all().without(group)));
    }
    let new = |(name, options)| Variant {
        name,
        options,
        equations: 0,
        pass: Figures::default(),
        compile: Figures::default(),
        run: Figures::default(),
    };
    all.into_iter().map(new).collect()
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    say(&machine());
    let client = Client::cpu(ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() })?;
    for name in &arguments.programs {
        let program = programs::find(name)?;
        let mut variants = variants(arguments.groups.as_deref());
        for _ in 0..arguments.rounds {
            for variant in &mut variants {
                let (seconds, equations) = program.simplify(&variant.options);
                variant.pass.extend([seconds]);
                variant.equations = equations;
                if arguments.counts {
                    continue;
                }
                let figures = program.compile(&client, &variant.options, arguments.runs)?;
                variant.compile.extend([figures.compile_seconds]);
                variant.run.extend(figures.run_seconds);
                eprintln!("{name}: {}: {:.3} s", variant.name, figures.compile_seconds);
            }
        }
        print(name, &variants);
    }
    let mut table = Table::new(&["equations", "left", "pass"]);
    for rounds in [2_000, 20_000] {
        let chain = programs::chain(rounds);
        let start = Instant::now();
        let left = simplify(&chain, &Options::all()).eqn_count();
        let seconds = start.elapsed().as_secs_f64();
        say(
            &json!({ "bench": "simplify", "program": "chain", "equations": chain.eqn_count(), "left": left, "pass_seconds": seconds }),
        );
        table.row([chain.eqn_count().to_string(), left.to_string(), time(seconds)]);
    }
    table.print("One long region");
    Ok(())
}

fn print(program: &str, variants: &[Variant]) {
    let mut table = Table::new(&[
        "groups",
        "equations",
        "pass",
        "compiling, passes included, least",
        "ratio",
        "a call, least",
        "ratio",
    ]);
    let none = &variants[0];
    for variant in variants {
        let ratio = |of: fn(&Variant) -> &Figures| of(variant).least() / of(none).least();
        let (compile, run) = (ratio(|variant| &variant.compile), ratio(|variant| &variant.run));
        say(&json!({
            "bench": "simplify", "program": program, "groups": variant.name, "equations": variant.equations,
            "pass_seconds": variant.pass.least(), "compile_seconds": variant.compile.least(), "run_seconds": variant.run.least(),
        }));
        table.row([
            variant.name.clone(),
            variant.equations.to_string(),
            time(variant.pass.least()),
            time(variant.compile.least()),
            format!("{compile:.3}"),
            time(variant.run.least()),
            format!("{run:.3}"),
        ]);
    }
    table.print(program);
}
