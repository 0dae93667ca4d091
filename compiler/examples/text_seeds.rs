//! Seed texts for fuzzing: a function for each sample of each op, in the given folder, and a
//! dictionary of the texts' words next to it.

use podracer_compiler::ops::registry;
use podracer_compiler::{Builder, DType};
use std::{env, fs, path::PathBuf};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(env::args().nth(1).expect("usage: seeds FOLDER"));
    fs::create_dir_all(&folder)?;
    let mut words: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    words.extend(["func", "return", "splat", "loc(\\\"f\\\":1:1)", "true", "nan", "-inf", "->"]);
    words.extend(["18446744073709551615", "9223372036854775807", "-9223372036854775808"]);
    for entry in registry::all() {
        words.push(entry.mnemonic);
        words.extend(entry.attributes);
        for (number, sample) in (entry.samples)().into_iter().enumerate() {
            let mut b = Builder::new();
            let params: Vec<_> = sample.inputs.iter().map(|x| b.param(x.ty().clone())).collect();
            let results = b.emit_ref(sample.op, &params);
            let text = b.finish("sample", results).to_string();
            if text.len() < 4096 {
                fs::write(folder.join(format!("{}-{number}", entry.mnemonic)), text)?;
            }
        }
    }
    words.sort_unstable();
    words.dedup();
    let lines: String = words.iter().map(|word| format!("\"{word}\"\n")).collect();
    fs::write(folder.with_extension("dict"), lines)
}
