//! Runs with the same settings, and names that distinguish them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use crate::cli::named_runs::{by_seed, compared, has_changed, repeated, values_of};
use crate::run_directory::RunOverview;

/// Runs of the same settings.
#[derive(Clone)]
pub(crate) struct Group {
    /// The experiment and the settings that distinguish it from other groups.
    pub(crate) name: String,
    /// The settings alone that distinguish it from other groups; empty for the only group of an
    /// experiment.
    pub(crate) settings: String,
    /// The runs, by index: one for each seed.
    pub(crate) members: Vec<usize>,
    /// Runs that repeat the seed of a member, each with that member.
    pub(crate) repeats: Vec<(usize, usize)>,
}

impl Group {
    /// True if the run at this index has the settings of the group.
    pub(crate) fn has(&self, run: usize) -> bool {
        self.members.contains(&run) || self.repeats.iter().any(|(repeat, _)| *repeat == run)
    }

    /// Warnings about the runs that repeat a seed, each with the index of its run.
    pub(crate) fn repeated(&self, runs: &[&RunOverview]) -> Vec<(usize, String)> {
        let said = |&(repeat, kept): &(usize, usize)| (repeat, repeated(runs[repeat], runs[kept]));
        self.repeats.iter().map(said).collect()
    }
}

/// A part of the names of groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    /// A setting, such as `agent.kind`.
    pub(crate) key: String,
    /// A value of the setting, and the name of the groups with this value.
    named: Option<(String, String)>,
}

impl FromStr for Label {
    type Err = String;

    /// `KEY`, or `KEY=VALUE:NAME`.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((key, rest)) = text.split_once('=') else {
            return Ok(Label { key: text.to_owned(), named: None });
        };
        let (value, name) = rest.split_once(':').ok_or_else(|| {
            format!("expected KEY or KEY=VALUE:NAME, such as `agent.kind=ppo:PPO`, got `{text}`")
        })?;
        let named = Some((value.trim().to_owned(), name.trim().to_owned()));
        Ok(Label { key: key.trim().to_owned(), named })
    }
}

/// Runs with the same settings except for the seed, in the order of their experiments and of the
/// values of their settings. Each group has a name that distinguishes it from the others: the
/// settings that differ, or the `labels`. The length of a run and the times of its checkpoints do
/// not matter. A run with settings that population-based training has changed is a separate group.
pub(crate) fn groups(runs: &[&RunOverview], labels: &[Label]) -> Vec<Group> {
    let tells = |key: &String| {
        !["train.steps", "train.checkpoint", "train.store", "train.eval", "train.record"]
            .iter()
            .any(|begin| key.starts_with(begin))
    };
    let of_run = |run: &&RunOverview| -> BTreeMap<String, String> {
        let settings = run.settings.iter().filter(|(key, _)| tells(key));
        settings.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let settings: Vec<BTreeMap<String, String>> = runs.iter().map(of_run).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for number in 0..runs.len() {
        let same = |members: &&mut Vec<usize>| settings[members[0]] == settings[number];
        match groups.iter_mut().find(same).filter(|_| !has_changed(runs[number])) {
            Some(members) => members.push(number),
            None => groups.push(vec![number]),
        }
    }
    let firsts: Vec<&RunOverview> = groups.iter().map(|members| runs[members[0]]).collect();
    let names = names(&firsts, tells, labels);
    let group = |(settings, members): (String, Vec<usize>)| {
        let experiment = &runs[members[0]].experiment;
        let name = match (&settings[..], labels) {
            ("", _) => experiment.clone(),
            (_, []) => format!("{experiment}, {settings}"),
            _ => settings.clone(),
        };
        let (members, repeats) = by_seed(members.into_iter().map(|member| (member, runs[member])));
        Group { name, settings, members, repeats }
    };
    sorted(names.into_iter().zip(groups).map(group).collect(), runs)
}

/// The runs of each experiment by the value of one setting, whatever their other settings are.
pub(crate) fn groups_by(runs: &[&RunOverview], key: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let value = run.settings.get(key).map_or("-", String::as_str);
        let settings = format!("{key} = {value}");
        let name = format!("{}, {settings}", run.experiment);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.members.push(index),
            None => {
                groups.push(Group { name, settings, members: vec![index], repeats: Vec::new() });
            }
        }
    }
    sorted(groups, runs)
}

/// The groups in the order of their experiments and of the values of their settings.
fn sorted(mut groups: Vec<Group>, runs: &[&RunOverview]) -> Vec<Group> {
    groups.sort_by(|one, other| {
        let experiment = |group: &Group| &runs[group.members[0]].experiment;
        experiment(one).cmp(experiment(other)).then(in_order(&one.settings, &other.settings))
    });
    groups
}

/// The order of two names: numbers by their values, other words by their letters.
fn in_order(one: &str, other: &str) -> Ordering {
    let words = |text: &str| -> Vec<String> {
        text.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (one, other) = (words(one), words(other));
    let pairs = one.iter().zip(&other);
    let order = |(one, other): (&String, &String)| match (one.parse::<f64>(), other.parse()) {
        (Ok(one), Ok(other)) => one.total_cmp(&other),
        _ => one.cmp(other),
    };
    let different = pairs.map(order).find(|order| order.is_ne());
    different.unwrap_or_else(|| one.len().cmp(&other.len()))
}

/// A name for each of these runs: the settings that differ within their experiment, or the
/// `labels`. Runs of one experiment with equal names also get the other settings, and then their
/// seeds.
fn names(runs: &[&RunOverview], tells: impl Fn(&String) -> bool, labels: &[Label]) -> Vec<String> {
    let mut of_experiment: BTreeMap<&str, Vec<&RunOverview>> = BTreeMap::new();
    for &run in runs {
        of_experiment.entry(&run.experiment).or_default().push(run);
    }
    let labelled = |key: &String| labels.iter().any(|label| label.key == *key);
    let keys = |(&experiment, same): (&&str, &Vec<&RunOverview>)| {
        let listed = compared(same).into_iter().filter(|key| tells(key) && !labelled(key));
        (experiment.to_owned(), listed.collect())
    };
    let keys: BTreeMap<String, BTreeSet<String>> = of_experiment.iter().map(keys).collect();
    let others = |run: &RunOverview| -> String {
        let same = &of_experiment[&*run.experiment];
        let (kinds, settings): (Vec<_>, Vec<_>) = values_of(run, &keys[&run.experiment], same)
            .into_iter()
            .partition(|(key, _)| ["agent.kind", "environment.name"].contains(key));
        // A kind needs no key: `ppo, agent.clip = 0.2`.
        let kinds = kinds.into_iter().map(|(_, kind)| kind.to_owned());
        let settings = settings.into_iter().map(|(key, value)| format!("{key} = {value}"));
        kinds.chain(settings).collect::<Vec<_>>().join(", ")
    };
    let by_label = |run: &RunOverview| -> String {
        let value = |key: &str| run.settings.get(key).map_or("-", String::as_str);
        let named = labels.iter().find_map(|label| {
            label
                .named
                .as_ref()
                .filter(|(named, _)| value(&label.key) == named)
                .map(|(_, name)| name)
        });
        let keys: BTreeSet<&str> = labels.iter().map(|label| &*label.key).collect();
        match (named, &keys.into_iter().collect::<Vec<_>>()[..]) {
            (Some(name), _) => name.clone(),
            (None, [key]) => value(key).to_owned(),
            (None, keys) => {
                let values = keys.iter().map(|key| format!("{key} = {}", value(key)));
                values.collect::<Vec<_>>().join(", ")
            }
        }
    };
    let name = |run: &&RunOverview| if labels.is_empty() { others(run) } else { by_label(run) };
    let mut names: Vec<String> = runs.iter().map(name).collect();
    let mut add_to_equal = |more: &dyn Fn(&RunOverview) -> String| {
        let whole = |(run, name): (&&RunOverview, &String)| (run.experiment.clone(), name.clone());
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        runs.iter().zip(&names).for_each(|run| *known.entry(whole(run)).or_default() += 1);
        for (run, name) in runs.iter().zip(&mut names) {
            let more = more(run);
            if known[&whole((run, name))] > 1 && !more.is_empty() {
                *name += if name.is_empty() { "" } else { ", " };
                *name += &more;
            }
        }
    };
    if !labels.is_empty() {
        add_to_equal(&others);
    }
    add_to_equal(&|run| format!("seed {}", run.seed));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names =
            ["agent.lr = 1e-2", "agent.lr = 0.0003, x = 9", "agent.lr = 0.0003, x = 10", "a2c"];
        names.sort_by(|one, other| in_order(one, other));
        assert_eq!(
            names,
            ["a2c", "agent.lr = 0.0003, x = 9", "agent.lr = 0.0003, x = 10", "agent.lr = 1e-2"]
        );
    }

    #[test]
    fn a_label_may_name_a_value() {
        assert_eq!("agent.clip".parse(), Ok(Label { key: "agent.clip".to_owned(), named: None }));
        let named = Some(("warm".to_owned(), "Ours: new".to_owned()));
        let label = Label { key: "agent.kind".to_owned(), named };
        assert_eq!("agent.kind=warm: Ours: new".parse(), Ok(label));
        assert!("agent.kind=warm".parse::<Label>().unwrap_err().contains("KEY=VALUE:NAME"));
    }
}
