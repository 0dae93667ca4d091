//! Environments that do nothing in environment servers, which share memory with the learner's process: no message carries an observation.

use std::path::Path;
use std::time::{Duration, Instant};

use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, StepMemory};
use serde_json::json;

use crate::{Figures, PER_WORKER, Result, cpu_seconds};

/// A server of environments that show the same for ever.
const STILL: &str = r#"
import json, runpy, sys
server = runpy.run_path(json.loads(sys.argv[1])["server"])

class Still:
    def __init__(self, configuration):
        shape = configuration["shape"]
        box = {"kind": "box", "low": None, "high": None}
        observation = {**(box if len(shape) == 1 else {"kind": "pixels"}), "shape": shape}
        self.spec = {"observation": observation, "action": {"kind": "discrete", "n": 6}, "truncates": False,
                     "skips": False, "about": "still"}
    def attach(self, memory, layout):
        pass
    def reset(self, seeds, slot):
        pass
    def step(self, slot):
        pass

server["main"]({"still": Still})
"#;

/// Steps `batch` environments in servers of as many as a worker has, all at once. Their processes are the workers.
pub fn measure(shape: &[usize], batch: usize, seconds: f64, python: &Path) -> Result<Figures> {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../envs/src/host/server/server.py");
    let configuration = json!({ "name": "still", "server": server, "shape": shape });
    let options = ServerOptions::new(python, &configuration)?
        .source(STILL)
        .servers(batch / PER_WORKER)
        .start_timeout(Duration::from_secs(20));
    let mut servers = Servers::start(&options, batch)?;
    let mut memory = StepMemory::new(servers.spec());
    servers.reset(0, 0, &mut memory.step())?;
    let actions = vec![0; 4 * batch];
    for _ in 0..100 {
        servers.step(&actions, &mut memory.step())?;
    }
    let processes: Vec<u32> = servers.processes().collect();
    let used = || -> Result<(f64, f64)> {
        let all = processes.iter().map(|process| cpu_seconds(*process));
        Ok((all.sum::<Result<f64>>()?, cpu_seconds(std::process::id())?))
    };
    let (before, begun, mut latencies) = (used()?, Instant::now(), Vec::new());
    while begun.elapsed().as_secs_f64() < seconds {
        let since = Instant::now();
        servers.step(&actions, &mut memory.step())?;
        std::hint::black_box(memory.observation());
        latencies.push(since.elapsed().as_secs_f64());
    }
    let (elapsed, after) = (begun.elapsed().as_secs_f64(), used()?);
    let observations = (latencies.len() * batch) as f64;
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| 1e3 * latencies[(latencies.len() as f64 * share) as usize];
    Ok(Figures {
        observations: observations / elapsed,
        p50: at(0.5),
        p99: at(0.99),
        worker_cpu: (after.0 - before.0) / observations * 1e6,
        learner_cpu: (after.1 - before.1) / observations * 1e6,
    })
}
