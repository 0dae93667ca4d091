//! The load of the machine while a training runs, from Linux's `/proc`.

use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::machine::memory_of;

/// Least time between two samples. A sample reads three short files.
const BETWEEN: Duration = Duration::from_secs(1);

/// A sample of the load. The shares are means since the sample before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineLoad {
    /// Time of the sample in seconds since 1970.
    pub time: f64,
    /// Share of the machine's processor time that any process took, 0 to 1.
    pub cpu: f64,
    /// Share of the machine's processor time that this process took, 0 to 1.
    pub process_cpu: f64,
    /// Memory of this process in bytes.
    pub process_memory: u64,
}

impl MachineLoad {
    /// The load by the names of its metrics.
    #[must_use]
    pub fn metrics(&self) -> [(&'static str, f64); 3] {
        [
            ("machine/cpu", self.cpu),
            ("machine/process_cpu", self.process_cpu),
            ("machine/process_memory", self.process_memory as f64),
        ]
    }
}

/// Times since the start of the machine and of the process, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// Time of the machine's processors, idle or not.
    all: u64,
    /// Time of the machine's processors without their idle time.
    busy: u64,
    /// Time that this process took.
    process: u64,
}

impl Ticks {
    /// The times in `/proc/stat` and `/proc/self/stat`; `None` for texts in another format.
    fn of(machine: &str, process: &str) -> Option<Self> {
        // `cpu  user nice system idle iowait irq softirq steal guest ..`: guests are part of user.
        let times = machine.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let times: Vec<u64> = times.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let (all, idle) = (times.iter().sum::<u64>(), times.iter().skip(3).take(2).sum::<u64>());
        // The second field is a name in parentheses, which may have spaces. The fourteenth and the
        // fifteenth are the times in user mode and in the kernel.
        let mut fields = process.rsplit_once(')')?.1.split_whitespace().skip(11);
        let [user, kernel] = [fields.next()?.parse::<u64>().ok()?, fields.next()?.parse().ok()?];
        Some(Ticks { all, busy: all - idle, process: user + kernel })
    }

    fn now() -> Option<Self> {
        let [machine, process] = ["/proc/stat", "/proc/self/stat"].map(fs::read_to_string);
        Ticks::of(&machine.ok()?, &process.ok()?)
    }

    /// The shares of the machine's time that any process and this process took since `before`; `None`
    /// if no time has passed.
    fn shares(self, before: Self) -> Option<(f64, f64)> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        // Linux rounds the times of a process and of the machine separately.
        let share =
            |now: u64, before: u64| (now.saturating_sub(before) as f64 / all as f64).min(1.0);
        Some((share(self.busy, before.busy), share(self.process, before.process)))
    }
}

/// A meter of the load, with at most one sample a second.
#[derive(Debug)]
pub struct LoadMeter {
    /// The last sample: its time, and the times that it read.
    last: (Instant, Option<Ticks>),
}

impl LoadMeter {
    /// A meter with its first sample due a second after `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        LoadMeter { last: (now, Ticks::now()) }
    }

    /// A sample, if one is due at `now`; `None` on systems without `/proc`.
    pub fn sample(&mut self, now: Instant) -> Option<MachineLoad> {
        if now.saturating_duration_since(self.last.0) < BETWEEN {
            return None;
        }
        let ticks = Ticks::now();
        let before = std::mem::replace(&mut self.last, (now, ticks)).1;
        let (cpu, process_cpu) = ticks?.shares(before?)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
        Some(MachineLoad { time, cpu, process_cpu, process_memory: memory_of("self")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_processors() {
        let machine = |user: u64, idle: u64| {
            format!("cpu  {user} 10 20 {idle} 30 0 5 0 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
        };
        let process = |user: u64, kernel: u64| {
            format!("42 (a (name) of 3) R 1 42 42 0 -1 0 9 9 9 9 {user} {kernel} 8 8 20 0 4 0 77")
        };
        let before = Ticks::of(&machine(100, 400), &process(50, 5)).unwrap();
        assert_eq!(before, Ticks { all: 565, busy: 135, process: 55 });
        let after = Ticks::of(&machine(250, 450), &process(90, 15)).unwrap();
        assert_eq!(after.shares(before), Some((0.75, 0.25)));
        assert_eq!(before.shares(before), None);
        assert_eq!(Ticks::of("intr 5", &process(1, 1)), None);
        assert_eq!(Ticks::of(&machine(1, 1), "42 (name"), None);
    }

    #[test]
    fn a_sample_is_due_after_a_second() {
        let start = Instant::now();
        let mut meter = LoadMeter::new(start);
        // Some work, so that the times of the machine differ.
        let work = |from: Instant| while from.elapsed() < Duration::from_millis(50) {};
        work(start);
        assert_eq!(meter.sample(start + Duration::from_millis(999)), None);
        let sample = meter.sample(start + BETWEEN).expect("a sample");
        assert!(sample.cpu > 0.0 && sample.cpu <= 1.0, "{sample:?}");
        assert!((0.0..=1.0).contains(&sample.process_cpu), "{sample:?}");
        assert!(sample.process_memory > 1 << 20, "{sample:?}");
        assert_eq!(meter.sample(start + BETWEEN), None);
    }
}
