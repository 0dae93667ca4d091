//! Mistakes in settings, collected so that all mistakes of a file are reported at once.

use crate::UsageError;

/// The mistakes of a layer of settings.
#[derive(Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// All mistakes as one error; `Ok` without any.
    pub(crate) fn into_result(self) -> Result<(), UsageError> {
        match self.0.as_slice() {
            [] => Ok(()),
            [one] => Err(UsageError::new(one)),
            many => {
                Err(UsageError::new(format!("{} mistakes:\n  {}", many.len(), many.join("\n  "))))
            }
        }
    }
}

/// Settings, each with its names in other libraries, reduced to letters and digits:
/// Stable-Baselines3, CleanRL, and papers.
const OTHER_NAMES: [(&str, &[&str]); 35] = [
    ("learning_rate", &["lr", "stepsize"]),
    ("actor_learning_rate", &["lr", "learningrate", "actorlr", "policylr"]),
    ("critic_learning_rate", &["lr", "learningrate", "criticlr", "qlr"]),
    ("anneal_learning_rate", &["anneallr"]),
    ("adam_epsilon", &["eps", "adameps"]),
    ("max_gradient_norm", &["maxgradnorm", "gradclip", "gradientclip"]),
    ("discount", &["gamma", "discountfactor"]),
    ("lambda", &["gae", "gaelambda", "tdlambda"]),
    ("clip", &["cliprange", "clipcoef", "clipparam", "clipeps", "clipepsilon"]),
    ("entropy_cost", &["entcoef", "entropycoef", "entropycoefficient", "entropybonus"]),
    ("value_cost", &["vfcoef", "valuecoef", "valuelosscoef", "valuecoefficient"]),
    ("epochs", &["nepochs", "numepochs", "updateepochs"]),
    ("minibatches", &["nminibatches", "numminibatches"]),
    ("hidden", &["netarch", "hiddensize", "hiddensizes", "hiddenlayers"]),
    ("normalize_observations", &["normobs", "normalizeobs"]),
    ("normalize_rewards", &["normreward", "normalizereward"]),
    ("batch", &["batchsize"]),
    ("capacity", &["buffersize", "replaysize", "memorysize", "replaycapacity"]),
    ("minimum", &["learningstarts", "warmup", "warmupsteps"]),
    ("replay_ratio", &["trainfreq", "trainfrequency", "gradientsteps", "utd", "utdratio"]),
    ("n_step", &["nsteps", "multistep", "nstepreturn"]),
    ("polyak", &["tau"]),
    ("target_period", &["targetupdateinterval", "targetnetworkfrequency", "targetupdate"]),
    ("policy_period", &["policyfrequency", "policydelay"]),
    ("exploration_noise", &["actionnoise"]),
    ("target_noise", &["policynoise", "targetpolicynoise"]),
    ("target_noise_clip", &["noiseclip"]),
    ("temperature", &["alpha", "entcoef"]),
    ("learn_temperature", &["autotune"]),
    ("epsilon_start", &["starte", "explorationinitialeps"]),
    ("epsilon_end", &["ende", "explorationfinaleps"]),
    ("epsilon_fraction", &["explorationfraction"]),
    ("environments", &["envs", "nenvs", "numenvs", "numenvironments"]),
    ("unroll", &["nsteps", "numsteps", "rolloutlength", "rolloutsteps", "unrolllength"]),
    ("steps", &["totaltimesteps", "timesteps", "totalsteps", "numtimesteps"]),
];

/// `; did you mean ...?` with at most three matching or similar names, the most similar first;
/// empty without any. A name matches by its letters (`MountainCar-v0` is `mountain-car`), or by its
/// name in another library (`lr` is `learning_rate`).
pub(crate) fn suggestion<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let lower = wrong.to_lowercase();
    // Gym's names end in a version.
    let lower = match lower.rsplit_once("-v") {
        Some((name, version)) if version.parse::<u32>().is_ok() => name,
        _ => &lower,
    };
    let letters = letters(lower);
    let score = |name: &str| {
        let others = OTHER_NAMES.iter().filter(|(ours, _)| *ours == name);
        match self::letters(name) {
            same if same == letters => 3.0,
            _ if others.flat_map(|(_, others)| *others).any(|other| *other == letters) => 2.0,
            own => match strsim::jaro_winkler(lower, name) {
                score if score > 0.8 || own.contains(&letters) => score,
                _ => 0.0,
            },
        }
    };
    let scored = names.into_iter().map(|name| (score(name), name));
    let mut near: Vec<(f64, &str)> = scored.filter(|(score, _)| *score > 0.0).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    if let Some(&(best, _)) = near.first().filter(|(best, _)| *best > 1.0) {
        near.retain(|(score, _)| *score == best);
    }
    let near: Vec<String> = near.iter().take(3).map(|(_, name)| format!("`{name}`")).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// The letters and digits of a name in lower case.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}
