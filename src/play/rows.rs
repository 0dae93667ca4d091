//! The agent's view of a state, as rows of numbers and bars.

use crate::evaluation::AgentView;
use crate::format::count;

/// Greatest number of rows on a terminal.
const LINES: usize = 10;
/// Characters of a bar in a terminal.
const BAR: usize = 20;
/// Characters of a line in a terminal, so that each line covers the previous one.
const COLUMNS: usize = 48;

/// An action, or an element of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) label: String,
    /// Length of the bar, from 0 to 1: the action's probability, or its value scaled between the
    /// least and the greatest value.
    pub(super) bar: f64,
    /// Probability and value, if the agent has them.
    pub(super) number: String,
    /// True for the action that the agent takes.
    pub(super) taken: bool,
}

/// A row for each action. Of more than `most` actions, the most probable, or those with the
/// greatest values. For actions that are not discrete, a row for each element of the action.
pub(super) fn rows(view: &AgentView, most: usize) -> Vec<Row> {
    let AgentView { action, discrete, names, probabilities, action_values, .. } = view;
    let weights = if probabilities.is_empty() { action_values } else { probabilities };
    if weights.is_empty() {
        let elements = action.iter().take(most).enumerate();
        let row = |(element, &number): (usize, &f64)| {
            let (name, other) = match discrete {
                true => (names.get(number as usize), "action".to_owned()),
                false => (names.get(element), format!("action[{element}]")),
            };
            // The name of a discrete action says which it is.
            let taken = *discrete && name.is_some();
            let number = if taken { String::new() } else { count(number) };
            Row { label: name.cloned().unwrap_or(other), bar: 0.0, number, taken }
        };
        return elements.map(row).collect();
    }
    let mut order: Vec<usize> = (0..weights.len()).collect();
    if order.len() > most {
        order.sort_by(|&one, &other| weights[other].total_cmp(&weights[one]));
        order.truncate(most);
    }
    let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let row = |i: usize| {
        let probability = probabilities.get(i);
        let value = action_values.get(i).map(|&value| count(value));
        let shown = probability.map(|share| format!("{share:.2}"));
        Row {
            label: names.get(i).cloned().unwrap_or_else(|| i.to_string()),
            bar: match probability {
                Some(&probability) => probability,
                None => (weights[i] - least) / (greatest - least).max(f64::MIN_POSITIVE),
            },
            number: shown.into_iter().chain(value).collect::<Vec<_>>().join("  "),
            taken: *discrete && action.first() == Some(&(i as f64)),
        }
    };
    order.into_iter().map(row).collect()
}

/// Views as lines of a terminal; each view has as many lines as the first.
#[derive(Debug, Default)]
pub struct Lines {
    count: usize,
}

impl Lines {
    /// The lines of a view; empty lines for a state without a view.
    pub fn text(&mut self, view: Option<&AgentView>) -> String {
        let mut lines = Vec::new();
        if let Some(view) = view {
            lines.extend(view.value.map(|value| format!("value {}", count(value))));
            let rows = rows(view, LINES);
            let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).max(4);
            lines.extend(rows.into_iter().map(|row| {
                let bar = "#".repeat((row.bar.clamp(0.0, 1.0) * BAR as f64).round() as usize);
                let mark = if row.taken { '>' } else { ' ' };
                format!("{mark}{:>width$} {bar:<BAR$} {}", row.label, row.number)
            }));
        }
        self.count = self.count.max(lines.len());
        lines.resize(self.count, String::new());
        lines.iter().map(|line| format!("{line:<COLUMNS$}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> AgentView {
        AgentView {
            action: vec![1.0],
            discrete: true,
            value: Some(2.5),
            probabilities: vec![0.25, 0.75],
            ..AgentView::default()
        }
    }

    #[test]
    fn a_policy_is_a_bar_for_each_action() {
        let text = Lines::default().text(Some(&view()));
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let (five, fifteen) = ("#".repeat(5), "#".repeat(15));
        let expected =
            ["value 2.50", &format!("    0 {five:<20} 0.25"), &format!(">   1 {fifteen:<20} 0.75")];
        assert_eq!(lines, expected);
    }

    #[test]
    fn every_state_has_as_many_lines() {
        let mut lines = Lines::default();
        let first = lines.text(Some(&view()));
        let last = lines.text(None);
        assert_eq!((first.lines().count(), last.lines().count()), (3, 3));
        assert!(last.trim().is_empty() && last.len() == first.len());
    }

    #[test]
    fn the_best_of_many_actions_are_shown() {
        let values = AgentView {
            probabilities: Vec::new(),
            action_values: vec![-1.0, 3.0, 1.0, 0.0],
            ..view()
        };
        let shown = rows(&values, 2);
        let row = |label: &str, bar, number: &str, taken| Row {
            label: label.to_owned(),
            bar,
            number: number.to_owned(),
            taken,
        };
        assert_eq!(shown, [row("1", 1.0, "3", true), row("2", 0.5, "1", false)]);
        let continuous = AgentView {
            action: vec![0.5, -2.0],
            discrete: false,
            probabilities: Vec::new(),
            ..view()
        };
        let named = AgentView { names: ["a", "b", "c", "d"].map(str::to_owned).to_vec(), ..values };
        assert_eq!(rows(&named, 1)[0].label, "b");
        let labels = rows(&continuous, 9).into_iter().map(|row| (row.label, row.number));
        let expected = [("action[0]", "0.50"), ("action[1]", "-2")];
        assert!(labels.eq(expected.map(|(label, number)| (label.to_owned(), number.to_owned()))));
    }
}
