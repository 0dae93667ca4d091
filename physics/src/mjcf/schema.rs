//! The table of elements and attributes in `schema.txt`, and the check of a tree against it.

use std::sync::LazyLock;

use super::Element;
use crate::{Error, ModelResult};

/// The effect of an element or an attribute.
#[derive(Clone, Debug, PartialEq)]
enum Effect {
    /// Read by the compiler.
    Read,
    /// Without effect on the dynamics.
    Ignored,
    /// An error, unless an attribute has the given value.
    NotCovered(Option<String>),
}

/// An element: its attributes, and the indices of its children.
struct ElementRule {
    name: String,
    effect: Effect,
    /// True for an element that its parent has at most once.
    unique: bool,
    attributes: Vec<(String, Effect)>,
    children: Vec<usize>,
}

static RULES: LazyLock<Vec<ElementRule>> = LazyLock::new(|| table(include_str!("schema.txt")));

/// The rules of a table; the first is the root's.
fn table(text: &str) -> Vec<ElementRule> {
    let mut rules: Vec<ElementRule> = Vec::new();
    // Rules that the next line may be a child of, by depth; the last line's elements.
    let mut above: Vec<Vec<usize>> = Vec::new();
    let mut last: Vec<usize> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let mut words = line.split_whitespace().peekable();
        if words.next_if_eq(&"+").is_some() {
            extend(&mut rules, &last, words);
            continue;
        }
        above.truncate(depth);
        let parents = above.last().cloned().unwrap_or_default();
        let first = words.next().unwrap_or_default();
        if let Some(name) = first.strip_prefix('@') {
            let known = rules
                .iter()
                .rposition(|rule| rule.name == name)
                .expect("the table defines an element before it is named again");
            parents.iter().for_each(|&parent| rules[parent].children.push(known));
            continue;
        }
        let mut names = vec![first];
        if first.starts_with('[') {
            while !names.last().is_some_and(|name| name.ends_with(']')) {
                names.extend(words.next());
            }
        }
        last.clear();
        for name in names {
            let (word, effect) = effect(name.trim_matches(['[', ']']));
            let unique = word.ends_with('?');
            let name = word.trim_end_matches('?').to_owned();
            parents.iter().for_each(|&parent| {
                let next = rules.len();
                rules[parent].children.push(next);
            });
            last.push(rules.len());
            rules.push(ElementRule {
                name,
                effect,
                unique,
                attributes: Vec::new(),
                children: Vec::new(),
            });
        }
        extend(&mut rules, &last, words);
        above.push(last.clone());
    }
    rules
}

fn extend<'a>(rules: &mut [ElementRule], to: &[usize], words: impl Iterator<Item = &'a str>) {
    let attributes: Vec<_> = words.map(effect).collect();
    to.iter().for_each(|&rule| rules[rule].attributes.extend(attributes.iter().cloned()));
}

fn effect(word: &str) -> (String, Effect) {
    if let Some(name) = word.strip_prefix('-') {
        return (name.to_owned(), Effect::Ignored);
    }
    match word.strip_prefix('!').map(|rest| rest.split_once('=').unwrap_or((rest, ""))) {
        Some((name, "")) => (name.to_owned(), Effect::NotCovered(None)),
        Some((name, neutral)) => (name.to_owned(), Effect::NotCovered(Some(neutral.to_owned()))),
        None => (word.to_owned(), Effect::Read),
    }
}

/// Checks a root and everything in it.
pub(super) fn check(root: &Element) -> ModelResult<()> {
    check_element(root, &RULES[0])
}

fn check_element(element: &Element, rule: &ElementRule) -> ModelResult<()> {
    if rule.effect == Effect::NotCovered(None) {
        return Err(Error::NotCovered {
            place: element.place.clone(),
            what: format!("element `{}`", element.name),
            hint: String::new(),
        });
    }
    for attribute in &element.attributes {
        let known = rule.attributes.iter().find(|(name, _)| *name == attribute.name);
        let what = format!("attribute `{}` of `{}`", attribute.name, element.name);
        let Some((_, effect)) = known else {
            let names = rule.attributes.iter().map(|(name, _)| name.as_str());
            let hint = near(&attribute.name, names, "it has");
            return Err(Error::Unknown { place: attribute.place.clone(), what, hint });
        };
        let Effect::NotCovered(neutral) = effect else { continue };
        let same = |neutral: &String| match (
            neutral.parse::<f64>(),
            attribute.value.trim().parse::<f64>(),
        ) {
            (Ok(a), Ok(b)) => a == b,
            _ => attribute.value == *neutral,
        };
        if neutral.as_ref().is_some_and(same) {
            continue;
        }
        let hint = match neutral {
            Some(neutral) => format!("; leave it out, or set it to `{neutral}`"),
            None => String::new(),
        };
        return Err(Error::NotCovered { place: attribute.place.clone(), what, hint });
    }
    for child in &element.children {
        let mut rules = rule.children.iter().map(|&index| &RULES[index]);
        let Some(known) = rules.find(|rule| rule.name == child.name) else {
            let names = rule.children.iter().map(|&index| RULES[index].name.as_str());
            return Err(Error::Unknown {
                place: child.place.clone(),
                what: format!("element `{}` in `{}`", child.name, element.name),
                hint: near(&child.name, names, "it has"),
            });
        };
        if known.unique && element.all(&child.name).count() > 1 {
            let message = format!("`{}` has more than one `{}`", element.name, child.name);
            return Err(child.invalid(message));
        }
        check_element(child, known)?;
    }
    Ok(())
}

/// The most similar names, or all if none is similar.
pub(crate) fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>, all: &str) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let short: String = name.chars().take(40).collect();
    let similarity = |known: &&str| strsim::jaro_winkler(&short, known);
    let best = names.iter().copied().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    match best.filter(|best| similarity(best) > 0.75) {
        Some(best) => format!("; did you mean `{best}`?"),
        None if names.is_empty() => String::new(),
        None => format!("; {all}: {}", names.join(", ")),
    }
}
