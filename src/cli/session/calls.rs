//! Messages about a call of the compiled loop: its long duration, and the prints of its programs.

use podracer_dsl::Report;

use crate::cli::console::Console;
use crate::format::plural;
use crate::run_directory::MessageKind;
use crate::settings::Settings;

/// Length of a call in seconds, beyond which the user is warned about its effect on stopping.
const LONG: f64 = 60.0;

/// A warning about a call that took `seconds` seconds, if that is long.
pub(crate) fn long_call(settings: &Settings, seconds: f64) -> Option<String> {
    let section = settings.training_loop.section();
    let iterations = settings.training_loop.iterations_per_call();
    let shorter = match iterations {
        1 => format!(
            "a smaller {section}.unroll, or less learning in an iteration, makes calls shorter"
        ),
        _ => format!(
            "`--set {section}.iterations_per_call={}` makes calls shorter",
            iterations.div_ceil(10)
        ),
    };
    (seconds > LONG).then(|| {
        format!(
            "a call of {} took {seconds:.0} s: progress, checkpoints and a stop wait for its end (a second signal stops at once, and what \
             came after the last checkpoint is lost); {shorter}",
            plural(iterations, "iteration")
        )
    })
}

/// The greatest number of prints shown per call.
const SHOWN: usize = 20;

/// Shows the output of the call's programs with `debug_print`.
pub(crate) fn show(printed: &[&Report], console: &mut Console<'_>) {
    for report in printed.iter().take(SHOWN) {
        let text = report.to_string();
        console.say(&text);
        console.keep(MessageKind::Print, &text);
    }
    if printed.len() > SHOWN {
        console.say(&format!("and {} more in this call", printed.len() - SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use podracer_dsl::Loc;

    use super::*;

    #[test]
    fn a_call_of_more_than_a_minute_is_warned_of() {
        let settings =
            crate::loading::load("cartpole-ppo", &crate::loading::Overrides::default()).unwrap();
        assert_eq!(long_call(&settings, 59.0), None);
        let warning = long_call(&settings, 75.2).unwrap();
        let iterations = settings.training_loop.iterations_per_call();
        assert!(
            warning.starts_with(&format!("a call of {iterations} iterations took 75 s: ")),
            "{warning}"
        );
        let shorter =
            format!("`--set anakin.iterations_per_call={}` makes", iterations.div_ceil(10));
        assert!(warning.contains(&shorter), "{warning}");
    }

    #[test]
    fn prints_of_a_call_are_shown() {
        let report = |number: usize| Report {
            is_check: false,
            text: format!("number {number}"),
            loc: Loc::NONE,
            at: vec![number],
            count: 1,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(&mut out, &mut err, false);
        let prints: Vec<Report> = (0..SHOWN + 3).map(report).collect();
        show(&prints.iter().collect::<Vec<_>>(), &mut console);
        let said = String::from_utf8(err).unwrap();
        assert!(said.starts_with("number 0\nnumber 1\n"), "{said}");
        assert!(said.ends_with("number 19\nand 3 more in this call\n"), "{said}");
    }
}
