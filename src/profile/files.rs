//! A profile as files that other programs show.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Instruction, Place, Profile};

impl Profile {
    /// Folded stacks, a line each with its microseconds: thread, program, instruction, line of the source. The time of a kernel of several
    /// lines is divided among them.
    pub(crate) fn folded(&self) -> String {
        let mut stacks: BTreeMap<String, f64> = BTreeMap::new();
        for moment in &self.moments {
            let thread = &self.threads[&moment.thread];
            for (frames, share) in self.frames(&moment.place) {
                *stacks.entry(format!("{thread};{}", frames.join(";"))).or_default() += share;
            }
        }
        let each = self.cpu_time.as_secs_f64() * 1e6 / self.moments.len().max(1) as f64;
        let mut text = String::new();
        for (stack, samples) in stacks {
            let _ = writeln!(text, "{stack} {:.0}", samples * each);
        }
        text
    }

    /// A trace in the format of Chrome and Perfetto: for each thread what it computed when. Samples in a row that are of one place are one
    /// slice; where a thread was not seen for ten times the usual interval, it waited.
    pub(crate) fn trace(&self) -> Value {
        let usual = self.time.checked_div(self.moments.len().max(1) as u32).unwrap_or_default();
        let longest = 10 * usual.max(Duration::from_millis(4));
        let names = self.threads.iter().map(|(thread, name)| {
            json!({ "ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": { "name": name } })
        });
        let mut events: Vec<Value> = names.collect();
        let mut open: Option<(u32, &Place, Duration, Duration)> = None;
        for moment in &self.moments {
            if let Some((thread, place, start, end)) = open {
                let goes_on =
                    thread == moment.thread && moment.time - end.min(moment.time) <= longest;
                if goes_on && *place == moment.place {
                    open = Some((thread, place, start, moment.time));
                    continue;
                }
                let end = if goes_on { moment.time } else { end + usual };
                events.push(self.slice(thread, place, start, end));
            }
            open = Some((moment.thread, &moment.place, moment.time, moment.time));
        }
        events.extend(
            open.map(|(thread, place, start, end)| self.slice(thread, place, start, end + usual)),
        );
        json!({ "displayTimeUnit": "ms", "traceEvents": events })
    }

    fn slice(&self, thread: u32, place: &Place, start: Duration, end: Duration) -> Value {
        let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
        let (name, category) = match (self.work(place), place) {
            (Some(work), Place::Instruction(Instruction { program, .. })) => {
                (work.name.clone(), self.programs[*program].role)
            }
            (_, Place::Host(line)) => (line.to_string(), "host"),
            (_, Place::Other(file)) => (file.clone(), "other"),
            (_, Place::Helper | Place::Idle | Place::Instruction(_)) => {
                ("XLA's threads".to_owned(), "other")
            }
        };
        let lines = self.work(place).map(|work| &work.lines[..]).unwrap_or_default();
        let most =
            lines.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(line, _)| line.to_string());
        json!({
            "ph": "X", "name": name, "cat": category, "pid": 1, "tid": thread, "ts": microseconds(start),
            "dur": microseconds(end.saturating_sub(start)), "args": { "line": most },
        })
    }

    /// The frames of a place from the outermost on, with the share of each where it has several.
    fn frames(&self, place: &Place) -> Vec<(Vec<String>, f64)> {
        match (self.work(place), place) {
            (Some(work), Place::Instruction(Instruction { program, .. })) => {
                let frames = |line: String| {
                    vec![self.programs[*program].role.to_owned(), work.name.clone(), line]
                };
                match &work.lines[..] {
                    [] => vec![(frames("no line".to_owned()), 1.0)],
                    lines => lines
                        .iter()
                        .map(|(line, share)| (frames(line.to_string()), *share))
                        .collect(),
                }
            }
            (_, Place::Host(line)) => vec![(vec!["host".to_owned(), line.to_string()], 1.0)],
            (_, Place::Other(file)) => vec![(vec!["other".to_owned(), file.clone()], 1.0)],
            (_, Place::Helper | Place::Idle | Place::Instruction(_)) => {
                vec![(vec!["other".to_owned(), "XLA's threads".to_owned()], 1.0)]
            }
        }
    }
}
