//! `podracer ir opt` and `podracer ir diff`: passes over, and differences of, programs given as text.

use std::fs::File;
use std::io::{self, Read};

use anyhow::{Context, Result};
use clap::Args;
use podracer_compiler::ir::verify;
use podracer_compiler::simplify::Group;
use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};
use podracer_compiler::transform::passes;
use podracer_compiler::{Func, text};

use crate::cli::console::Console;
use crate::cli::program::FAILURE;
use crate::settings::UsageError;

/// Greatest length of a program in bytes.
const LARGEST: u64 = 1 << 30;

/// Output forms of `podracer ir opt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Print {
    /// The IR, which `podracer ir opt` reads
    Ir,
    /// The IR with locations in the source
    Located,
    /// The program as StableHLO
    Stablehlo,
}

/// The passes, one per line.
pub(super) fn passes_help() -> String {
    let lines = passes::PASSES.iter().map(|pass| {
        let form = pass.to_string();
        format!("  {form:<28}  {}\n", pass.help)
    });
    format!(
        "Passes:\n{}\nPARAMETER is the number of a parameter. Without numbers a pass is about all of them, or all floats.\n\
         GROUP is one of {}. Without groups `simplify` uses all.",
        lines.collect::<String>(),
        Group::ALL.iter().map(|group| group.word()).collect::<Vec<_>>().join(", ")
    )
}

#[derive(Args, Debug)]
pub(crate) struct OptArguments {
    /// The file; `-` for standard input
    file: String,
    /// A pass, see below [repeatable, in order]
    #[arg(long, value_name = "PASS")]
    pass: Vec<String>,
    /// The form in which the result is printed
    #[arg(long, value_enum, default_value_t = Print::Ir)]
    print: Print,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// A file; `-` for standard input
    left: String,
    /// The file to compare it with; `-` for standard input
    right: String,
}

pub(super) fn opt(args: &OptArguments, console: &mut Console<'_>) -> Result<u8> {
    let mut func = read(&args.file)?;
    for pass in &args.pass {
        func = passes::run(&func, pass).map_err(|error| UsageError::new(error.to_string()))?;
        verify(&func).with_context(|| format!("after {pass}"))?;
    }
    let mut text = match args.print {
        Print::Ir => func.to_string(),
        Print::Located => format!("{func:#}"),
        Print::Stablehlo => stablehlo(&func, &ModuleSpec::new(func.name.clone(), &func))?.text,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    console.print(&text)?;
    Ok(0)
}

pub(super) fn diff(args: &DiffArguments, console: &mut Console<'_>) -> Result<u8> {
    match text::diff(&read(&args.left)?, &read(&args.right)?) {
        None => Ok(0),
        Some(difference) => {
            console.print(&format!("{difference}\n"))?;
            Ok(FAILURE)
        }
    }
}

/// The program in a file, or in standard input if the file is `-`.
fn read(file: &str) -> Result<Func> {
    // The file may be a pipe: `podracer ir diff <(..) <(..)`.
    let (file, read) = match file {
        "-" => ("standard input", bounded(std::io::stdin())),
        file => (file, File::open(file).and_then(bounded)),
    };
    let problem = match read.map(String::from_utf8) {
        Err(error) => format!("cannot read {file}: {error}"),
        Ok(Err(_)) => format!("{file} is no text: it has bytes that are not UTF-8"),
        Ok(Ok(program)) => match text::parse(&program) {
            Ok(func) => return Ok(func),
            Err(error) => format!("{file}:{error}"),
        },
    };
    Err(UsageError::new(problem).into())
}

/// Reads to the end, with at most [`LARGEST`] bytes.
fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it has more than {LARGEST} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use crate::cli::fake::podracer;
    use std::fs;

    const SQUARE: &str =
        "func square(%0: f32[]) -> (f32[]) {\n  %1: f32[] = multiply %0 %0\n  return %1\n}\n";

    /// A folder with the square in a file, and the file's name.
    fn square() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("square.pir");
        fs::write(&file, format!("// A comment.\n{SQUARE}")).unwrap();
        let name = file.to_str().unwrap().to_owned();
        (folder, name)
    }

    #[test]
    fn without_passes_the_program_is_printed_anew() {
        let (_folder, file) = square();
        let printed = podracer(&["ir", "opt", &file]);
        assert_eq!((printed.code, &*printed.out), (0, SQUARE), "{}", printed.err);
    }

    #[test]
    fn passes_run_in_order() {
        let (_folder, file) = square();
        let passes = ["--pass", "grad", "--pass", "cse", "--pass", "vmap=4"];
        let printed = podracer(&[&["ir", "opt", &file][..], &passes].concat());
        assert_eq!(printed.code, 0, "{}", printed.err);
        assert!(printed.out.starts_with("func square(%0: f32[4]) -> (f32[4]) {"));
    }

    #[test]
    fn a_program_is_printed_as_stablehlo_or_with_its_places() {
        let (_folder, file) = square();
        let printed = podracer(&["ir", "opt", &file, "--print", "stablehlo"]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        assert!(printed.out.contains("stablehlo.multiply"), "{}", printed.out);
        fs::write(&file, SQUARE.replace("%0\n", "%0 loc(\"a.rs\":1:2)\n")).unwrap();
        let printed = podracer(&["ir", "opt", &file, "--print", "located"]);
        assert!(printed.out.contains("multiply %0 %0 loc(\"a.rs\":1:2)"));
    }

    #[test]
    fn mistakes_name_the_file_the_line_and_the_pass() {
        let (_folder, file) = square();
        fs::write(&file, SQUARE.replace("multiply", "multipy")).unwrap();
        let printed = podracer(&["ir", "opt", &file]);
        assert_eq!(printed.code, 2);
        let expected =
            format!("error: {file}:2:15: there is no op `multipy`; did you mean `multiply`?\n");
        assert_eq!(printed.err, expected);
        fs::write(&file, SQUARE).unwrap();
        let printed = podracer(&["ir", "opt", &file, "--pass", "vmap"]);
        assert_eq!(printed.code, 2);
        assert!(printed.err.contains("vmap=SIZE"), "{}", printed.err);
        fs::write(&file, [0xff]).unwrap();
        assert!(podracer(&["ir", "opt", &file]).err.contains("not UTF-8"));
        assert_eq!(podracer(&["ir", "opt", "no such file"]).code, 2);
    }

    #[test]
    fn a_program_is_simplified_by_all_groups_or_by_some() {
        let (_folder, file) = square();
        let doubled = "func f(%0: f32[]) -> (f32[]) {\n  %1: f32[] = negate %0\n  %2: f32[] = negate %1\n  return %2\n}\n";
        fs::write(&file, doubled).unwrap();
        let simple = "func f(%0: f32[]) -> (f32[]) {\n  return %0\n}\n";
        for (pass, expected) in
            [("simplify", simple), ("simplify=shape,algebra", simple), ("simplify=shape", doubled)]
        {
            let printed = podracer(&["ir", "opt", &file, "--pass", pass]);
            assert_eq!((printed.code, &*printed.out), (0, expected), "{}", printed.err);
        }
        let printed = podracer(&["ir", "opt", &file, "--pass", "simplify=algebra,everything"]);
        assert_eq!(printed.code, 2);
        assert_eq!(
            printed.err,
            "error: simplify[=GROUP,...]: expected one of algebra, select, shape, fold, sink, loops, got `everything`\n"
        );
    }

    #[test]
    fn the_help_has_the_passes() {
        let printed = podracer(&["ir", "opt", "--help"]);
        assert!(printed.out.contains("transpose[=PARAMETER,...]"), "{}", printed.out);
    }

    #[test]
    fn a_difference_is_named_and_is_the_exit_code() {
        let (folder, file) = square();
        let other = folder.path().join("other.pir");
        let renamed = SQUARE.replace("square", "other").replace("%1", "%y");
        fs::write(&other, renamed).unwrap();
        let same = podracer(&["ir", "diff", &file, other.to_str().unwrap()]);
        assert_eq!((same.code, &*same.out), (0, ""), "{}", same.err);
        fs::write(&other, SQUARE.replace("multiply", "add")).unwrap();
        let different = podracer(&["ir", "diff", &file, other.to_str().unwrap()]);
        assert_eq!(different.code, 1);
        assert_eq!(different.out, "equation 0 (multiply): the op: multiply against add\n");
        assert_eq!(podracer(&["ir", "diff", &file, "no such file"]).code, 2);
    }
}
