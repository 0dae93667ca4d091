//! A profile as files for other programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use podracer_runtime::SourceLine;
use serde_json::{Value, json};

use super::{Instruction, Place, Profile};

impl Profile {
    /// Folded stacks, one line each with its microseconds: thread, program, instruction, source
    /// line. The time of a kernel with several lines is divided among them.
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

    /// A trace in the format of Chrome and Perfetto: the computations of each thread over time.
    /// Consecutive samples of one place form one slice; a thread without a sample for ten times the
    /// usual interval has waited.
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
        let (part, name, lines) = self.described(place);
        let most = lines.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        json!({
            "ph": "X", "name": name, "cat": part, "pid": 1, "tid": thread, "ts": microseconds(start),
            "dur": microseconds(end.saturating_sub(start)),
            "args": { "line": most.map(|(line, _)| line.to_string()) },
        })
    }

    /// The frames of a place from the outermost to the innermost, with the share of each if there
    /// are several stacks.
    fn frames(&self, place: &Place) -> Vec<(Vec<String>, f64)> {
        let (part, name, lines) = self.described(place);
        let frames = |line: Option<String>| {
            [part.to_owned(), name.clone()].into_iter().chain(line).collect::<Vec<String>>()
        };
        match lines {
            [] => vec![(frames(None), 1.0)],
            lines => {
                lines.iter().map(|(line, share)| (frames(Some(line.to_string())), *share)).collect()
            }
        }
    }

    /// The part of the training that a place belongs to, the place's name, and the lines of an instruction.
    fn described(&self, place: &Place) -> (&str, String, &[(SourceLine, f64)]) {
        match (self.work(place), place) {
            (Some(work), Place::Instruction(Instruction { program, .. })) => {
                (self.programs[*program].role, work.name.clone(), &work.lines)
            }
            (_, Place::Host(line)) => ("host", line.to_string(), &[]),
            (_, Place::Other(file)) => ("other", file.clone(), &[]),
            _ => ("other", "XLA's threads".to_owned(), &[]),
        }
    }
}
