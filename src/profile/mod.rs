//! The time of a training by source line, from samples of its threads.
//!
//! - [`thunks`] finds the instruction of a compiled program that a thread computes, from its stack.
//! - [`host`] finds the line of this program for a thread outside compiled programs.
//! - [`Recorder`] finds the place of each sample while the training runs, [`Profile`] sums over the
//!   places, and [`files`] writes the profile for other programs.
//!
//! An instruction's lines come from [`podracer_runtime::HloModule::work`].

mod files;
mod host;
mod thunks;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use podracer_runtime::{HloModule, SourceLine, Work};
use podracer_sampler::Sampler;

use host::HostCode;
use thunks::Thunks;

/// A compiled program of a training.
pub(crate) struct Compiled {
    /// The program's role in its loop.
    pub(crate) role: &'static str,
    /// XLA's name of its module.
    module: String,
    work: Vec<Work>,
}

impl Compiled {
    pub(crate) fn new(role: &'static str, module: &HloModule) -> Self {
        Compiled { role, module: module.name().to_owned(), work: module.work() }
    }
}

/// An instruction, by the numbers of its program and of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instruction {
    program: usize,
    work: usize,
}

/// The place of a sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// An instruction of a compiled program.
    Instruction(Instruction),
    /// A line of this program.
    Host(SourceLine),
    /// Code of XLA in a thread of its pool, for an instruction of another thread.
    Helper,
    /// XLA's pool looking for work.
    Idle,
    /// The file with the code; empty for code without a file.
    Other(String),
}

/// A sample of a thread.
struct Moment {
    thread: u32,
    time: Duration,
    place: Place,
}

/// Places of a training's threads over time.
pub(crate) struct Profile {
    programs: Vec<Compiled>,
    moments: Vec<Moment>,
    /// Names of threads, by number.
    threads: BTreeMap<u32, String>,
    /// Time over which samples were taken.
    pub(crate) time: Duration,
    /// Total CPU time of the threads during that time.
    pub(crate) cpu_time: Duration,
}

/// Time by line, and the work of the compiled programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LineTime {
    /// Share of the time of all samples.
    pub(crate) share: f64,
    /// Kernels per execution of each program, each counted for the line that takes most of its
    /// time.
    pub(crate) kernels: f64,
    /// Arithmetic operations per execution of each program.
    pub(crate) operations: f64,
    /// Bytes read and written per execution.
    pub(crate) bytes: f64,
}

/// Sampler of a training in a child process.
pub(crate) struct Recorder {
    sampler: Sampler,
    thunks: Thunks,
    host: HostCode,
    /// Samples so far; its times are the start times.
    profile: Profile,
    start: Instant,
}

impl Recorder {
    /// A recorder of a process that runs this program, and that has loaded `programs` with the
    /// plugin in the file `library`.
    ///
    /// # Errors An error if the system does not give access to the process.
    pub(crate) fn new(process: u32, programs: Vec<Compiled>, library: &Path) -> Result<Self> {
        let sampler = Sampler::new(process)?;
        let regions = sampler.memory().regions()?;
        Ok(Recorder {
            thunks: Thunks::new(&regions, library, &programs),
            host: HostCode::new(&regions, library),
            profile: Profile {
                programs,
                moments: Vec::new(),
                threads: BTreeMap::new(),
                time: Duration::ZERO,
                cpu_time: sampler.cpu_time()?,
            },
            start: Instant::now(),
            sampler,
        })
    }

    /// Takes a sample of each running thread.
    ///
    /// # Errors
    /// As [`Recorder::new`], and if the process has ended.
    pub(crate) fn sample(&mut self) -> Result<()> {
        let Recorder { sampler, thunks, host, profile, start } = self;
        let time = start.elapsed();
        let mut seen = Vec::new();
        sampler.sample(|thread, words| seen.push((thread, words.to_vec())))?;
        for (thread, _) in &seen {
            // The thread may end before the others.
            profile.threads.entry(*thread).or_insert_with(|| sampler.name(*thread));
        }
        let memory = sampler.memory();
        profile.moments.extend(seen.into_iter().map(|(thread, words)| {
            let instruction = thunks.find(memory, &words);
            let place = instruction.map_or_else(|| host.place(&words), Place::Instruction);
            Moment { thread, time, place }
        }));
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// As [`Recorder::sample`].
    pub(crate) fn finish(self) -> Result<Profile> {
        let Recorder { sampler, mut profile, start, .. } = self;
        profile.time = start.elapsed();
        profile.cpu_time = sampler.cpu_time()?.saturating_sub(profile.cpu_time);
        // Looking for work is the same as waiting.
        profile.moments.retain(|moment| moment.place != Place::Idle);
        help(&mut profile.moments);
        profile.moments.sort_by_key(|moment| (moment.thread, moment.time));
        Ok(profile)
    }
}

/// Attributes the computation of helpers to an instruction of another thread: the instruction in
/// the same sample, or otherwise the last instruction before. `moments` are ordered by time.
fn help(moments: &mut [Moment]) {
    let mut start = 0;
    let mut latest = None;
    while start < moments.len() {
        let time = moments[start].time;
        let same = moments[start..].iter().take_while(|moment| moment.time == time).count();
        let look = &mut moments[start..start + same];
        let runs = look.iter().find(|moment| matches!(moment.place, Place::Instruction(_)));
        latest = runs.map(|moment| moment.place.clone()).or(latest);
        for moment in look.iter_mut().filter(|moment| moment.place == Place::Helper) {
            if let Some(place) = &latest {
                moment.place = place.clone();
            }
        }
        start += same;
    }
}

impl Profile {
    /// Number of samples.
    pub(crate) fn samples(&self) -> usize {
        self.moments.len()
    }

    /// Time and work by line, and the time without a line, by its kind.
    pub(crate) fn lines(&self) -> (BTreeMap<SourceLine, LineTime>, BTreeMap<String, f64>) {
        let mut lines: BTreeMap<SourceLine, LineTime> = BTreeMap::new();
        let mut others: BTreeMap<String, f64> = BTreeMap::new();
        let each = 1.0 / self.moments.len().max(1) as f64;
        for moment in &self.moments {
            match &moment.place {
                Place::Instruction(_) => {
                    let work = self.work(&moment.place);
                    for (line, share) in work.iter().flat_map(|work| &work.lines) {
                        lines.entry(line.clone()).or_default().share += each * share;
                    }
                    if let Some(work) = work.filter(|work| work.lines.is_empty()) {
                        *others.entry(format!("XLA's `{}`", work.opcode)).or_default() += each;
                    }
                }
                Place::Host(line) => lines.entry(line.clone()).or_default().share += each,
                Place::Helper | Place::Idle => {
                    *others.entry("XLA's threads".to_owned()).or_default() += each;
                }
                Place::Other(what) => *others.entry(what.clone()).or_default() += each,
            }
        }
        for work in self.programs.iter().flat_map(|program| &program.work) {
            let mut most: Option<(&SourceLine, f64)> = None;
            for (line, share) in &work.lines {
                let sum = lines.entry(line.clone()).or_default();
                sum.operations += share * work.operations * work.executions;
                sum.bytes += share * work.bytes * work.executions;
                most = most.filter(|(_, before)| before >= share).or(Some((line, *share)));
            }
            if let Some((line, _)) = most.filter(|_| work.kernel) {
                lines.entry(line.clone()).or_default().kernels += work.executions;
            }
        }
        (lines, others)
    }

    /// The work of a place's instruction.
    fn work(&self, place: &Place) -> Option<&Work> {
        match place {
            Place::Instruction(Instruction { program, work }) => {
                self.programs.get(*program)?.work.get(*work)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_compute_for_the_instruction_that_runs() {
        let run = |work| Place::Instruction(Instruction { program: 0, work });
        let moment =
            |(thread, time, place)| Moment { thread, time: Duration::from_millis(time), place };
        let other = || Place::Other("libc.so.6".to_owned());
        let mut moments = [
            (1, 0, Place::Helper),
            (1, 5, Place::Helper),
            (2, 5, run(3)),
            (3, 5, other()),
            (1, 10, Place::Helper),
            (2, 15, run(4)),
            (1, 15, Place::Helper),
        ]
        .map(moment);
        help(&mut moments);
        let places = moments.map(|moment| moment.place);
        let expected = [Place::Helper, run(3), run(3), other(), run(3), run(4), run(4)];
        assert_eq!(places, expected);
    }
}
