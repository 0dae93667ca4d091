//! The code that a thread runs outside compiled programs, found by the addresses in its registers
//! and on its stack.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use podracer_runtime::SourceLine;
use podracer_sampler::{REGISTERS, Region};

use super::Place;

/// The files with the code of a process.
pub(super) struct HostCode {
    files: Vec<File>,
    own: PathBuf,
    plugin: PathBuf,
    lines: HashMap<u64, Option<SourceLine>>,
}

struct File {
    path: PathBuf,
    /// Address of the file's mapping.
    base: u64,
    code: Vec<Range<u64>>,
    /// Its symbols and lines; `None` if it cannot be read.
    loader: OnceCell<Option<Loader>>,
}

/// Parts of the names of functions in which a thread of XLA's pool looks for work.
const IDLE: [&str; 3] = ["ThreadPoolTempl", "RunQueue", "EventCount"];

impl HostCode {
    pub(super) fn new(regions: &[Region], plugin: &Path) -> Self {
        let mut files: Vec<File> = Vec::new();
        for region in regions.iter().filter(|region| region.path.starts_with('/')) {
            let path = Path::new(&region.path);
            let code = region.executable.then(|| region.addresses.clone());
            match files.iter_mut().find(|file| file.path == path) {
                Some(file) => file.code.extend(code),
                None => files.push(File {
                    path: path.to_owned(),
                    base: region.addresses.start,
                    code: code.into_iter().collect(),
                    loader: OnceCell::new(),
                }),
            }
        }
        HostCode {
            files,
            own: std::env::current_exe().unwrap_or_default(),
            plugin: plugin.to_owned(),
            lines: HashMap::new(),
        }
    }

    /// The innermost line of this program in a sample. Without such a line: if the plugin's code is
    /// innermost, the pool's thread computes for another thread or waits. Otherwise the place is
    /// the file's name.
    pub(super) fn place(&mut self, words: &[u64]) -> Place {
        // A return address belongs to the line after the call: the byte before it belongs to the
        // call.
        let stack = words.iter().skip(REGISTERS).map(|word| word.wrapping_sub(1));
        let addresses = || words.first().copied().into_iter().chain(stack.clone());
        let mut wrapper = None;
        for address in addresses() {
            let Some(line) = self.line(address) else { continue };
            // The caller of XLA says more than the call itself.
            if line.file.contains("/pjrt/src/") {
                wrapper = wrapper.or(Some(line));
                continue;
            }
            return Place::Host(line);
        }
        if let Some(line) = wrapper {
            return Place::Host(line);
        }
        let plugin = self.files.iter().find(|file| file.path == self.plugin);
        let inside = plugin.zip(addresses().find(|&one| plugin.is_some_and(|file| file.has(one))));
        match inside {
            Some((file, address)) => {
                let symbol = file.loader().and_then(|one| one.find_symbol(address - file.base));
                let idle = symbol.is_some_and(|symbol| IDLE.iter().any(|one| symbol.contains(one)));
                if idle { Place::Idle } else { Place::Helper }
            }
            None => {
                let file = words.first().and_then(|&pointer| {
                    self.files.iter().find(|file| file.has(pointer))?.path.file_name()
                });
                Place::Other(file.unwrap_or_default().to_string_lossy().into_owned())
            }
        }
    }

    /// The line of this program's code, without Rust's library and other crates.
    fn line(&mut self, address: u64) -> Option<SourceLine> {
        let own = self.files.iter().find(|file| file.path == self.own && file.has(address))?;
        let read = || line(own.loader()?, address - own.base);
        self.lines.entry(address).or_insert_with(read).clone()
    }
}

impl File {
    fn has(&self, address: u64) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }

    fn loader(&self) -> Option<&Loader> {
        self.loader.get_or_init(|| Loader::new(&self.path).ok()).as_ref()
    }
}

fn line(loader: &Loader, address: u64) -> Option<SourceLine> {
    let mut frames = loader.find_frames(address).ok()?;
    while let Some(frame) = frames.next().ok()? {
        let place = frame.location.and_then(|place| Some((place.file?, place.line?)));
        let others = |file: &str| {
            file.starts_with("/rustc/")
                || (file.contains("/registry/src/") && !file.contains("/podracer"))
        };
        if let Some((file, line)) = place.filter(|(file, _)| !others(file)) {
            // Programs name files relative to the folder where they were compiled.
            let here = std::env::current_dir().unwrap_or_default();
            let file = Path::new(file).strip_prefix(here).unwrap_or(Path::new(file));
            return Some(SourceLine { file: file.display().to_string(), line });
        }
    }
    None
}
