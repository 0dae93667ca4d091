//! `XLA_FLAGS`, which XLA reads itself and ends the process over.
//!
//! XLA aborts on an unknown name and on a value that it cannot read, and there is no list of the
//! names that a plugin knows. So only a short list of flags is accepted: flags that only make sense
//! for a whole process. Everything else belongs in [`crate::CompileOptions::xla`], where XLA's
//! complaint is an ordinary error.

use std::env;

use crate::RuntimeError;

/// The form that a flag's value must have.
#[derive(Clone, Copy)]
enum FlagForm {
    Text,
    Bool,
    Integer,
    /// A list of options, see [`EXTRA_KNOWN`].
    Extra,
}

const KNOWN: [(&str, FlagForm); 15] = [
    ("xla_dump_to", FlagForm::Text),
    ("xla_dump_hlo_as_text", FlagForm::Bool),
    ("xla_dump_hlo_as_proto", FlagForm::Bool),
    ("xla_dump_hlo_as_dot", FlagForm::Bool),
    ("xla_dump_hlo_as_html", FlagForm::Bool),
    ("xla_dump_hlo_pass_re", FlagForm::Text),
    ("xla_dump_hlo_module_re", FlagForm::Text),
    ("xla_dump_max_hlo_modules", FlagForm::Integer),
    ("xla_gpu_cuda_data_dir", FlagForm::Text),
    ("xla_cpu_prefer_vector_width", FlagForm::Integer),
    ("xla_cpu_enable_fast_math", FlagForm::Bool),
    ("xla_embed_ir_in_executable", FlagForm::Bool),
    ("xla_backend_optimization_level", FlagForm::Integer),
    ("xla_cpu_use_fusion_emitters", FlagForm::Bool),
    ("xla_backend_extra_options", FlagForm::Extra),
];

/// Names that `xla_backend_extra_options` may contain. XLA:CPU hands names that it does not know to LLVM's reader of command
/// lines, which ends the process over those that it does not know either.
const EXTRA_KNOWN: [(&str, FlagForm); 3] = [
    ("-disable-lsr", FlagForm::Bool),
    ("xla_cpu_small_while_loop_byte_threshold", FlagForm::Integer),
    ("xla_cpu_use_multi_output_fusion", FlagForm::Bool),
];

/// Checks the environment's `XLA_FLAGS`.
pub(crate) fn check_environment() -> Result<(), RuntimeError> {
    check(&environment())
}

/// `XLA_FLAGS` as set, which is an input of every compilation.
pub(crate) fn environment() -> String {
    env::var_os("XLA_FLAGS").map(|flags| flags.to_string_lossy().into_owned()).unwrap_or_default()
}

fn check(flags: &str) -> Result<(), RuntimeError> {
    for flag in flags.split_ascii_whitespace() {
        let problem = match flag.strip_prefix("--") {
            Some(body) => problem_in(body, &KNOWN),
            None => Some("which does not start with `--`".to_owned()),
        };
        if let Some(problem) = problem {
            return Err(RuntimeError::XlaFlags { flag: flag.to_owned(), problem });
        }
    }
    Ok(())
}

/// The mistake in one entry of `xla_backend_extra_options`, if there is one.
pub(crate) fn extra_problem(entry: &str) -> Option<String> {
    problem_in(entry, &EXTRA_KNOWN)
}

fn problem_in(body: &str, known: &[(&str, FlagForm)]) -> Option<String> {
    let (name, value) =
        body.split_once('=').map_or((body, None), |(name, value)| (name, Some(value)));
    let Some((_, kind)) = known.iter().find(|(known, _)| *known == name) else {
        let names = known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Some(format!("which is none of those that are let through ({names})"));
    };
    let (good, wanted) = match kind {
        // XLA's reader understands quotes around values; this check does not look inside them.
        FlagForm::Text => (
            value.is_some_and(|value| !value.is_empty() && !value.contains(['"', '\''])),
            "`=` and a value without quotes",
        ),
        FlagForm::Bool => (
            value.is_none_or(|value| ["true", "false", "1", "0"].contains(&value)),
            "no value, or `=true` or `=false`",
        ),
        FlagForm::Integer => {
            (value.is_some_and(|value| value.parse::<i64>().is_ok()), "`=` and a whole number")
        }
        FlagForm::Extra => {
            let entries = value.unwrap_or_default().split(',');
            let problem = entries.filter_map(|entry| Some((entry, extra_problem(entry)?))).next();
            return problem.map(|(entry, problem)| format!("with `{entry}`, {problem}"));
        }
    };
    (!good).then(|| format!("which needs {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_flags_known_to_be_good_pass() {
        check("").unwrap();
        check("--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=9,xla_cpu_use_multi_output_fusion=true")
            .unwrap();
        check("--xla_backend_extra_options=-disable-lsr").unwrap();
        check("--xla_dump_to=dump  --xla_dump_hlo_as_text --xla_cpu_prefer_vector_width=512")
            .unwrap();
        for bad in [
            "--xla_nonsense=1",
            "flags.txt",
            "--xla_cpu_prefer_vector_width=wide",
            "--xla_cpu_prefer_vector_width",
            "--xla_dump_to",
            "--xla_dump_hlo_as_text=yes",
            "--xla_dump_to=\"a b\"",
            "--xla_backend_extra_options=a=1",
            "--xla_backend_extra_options",
            "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=many",
            "--xla_dump_to=dump --xla_force_host_platform_device_count=4",
        ] {
            check(bad).unwrap_err();
        }
    }
}
