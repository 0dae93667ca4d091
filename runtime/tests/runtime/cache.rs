//! The cache on disk: hits, misses, damage, and disks that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use podracer_runtime::{CompileOptions, ExecutableCache, Module, OptionValue};

use crate::programs::{add, buffer, client, device, kept, values};

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Compiles through the cache, checks that the program works, and says whether the cache had it.
fn cached(cache: &ExecutableCache, module: &Module, options: &CompileOptions) -> bool {
    let (executable, hit) = cache.compile(client(), module, options).unwrap();
    let x = buffer(&[2, 2], &[1.0f32; 4], &device(0));
    assert_eq!(values(&executable.execute(vec![kept([&x, &x])]).unwrap()[0][0]), [2.0; 4]);
    hit
}

#[test]
fn the_second_compilation_is_a_hit() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ExecutableCache::at(folder.path().join("new/folder"), ExecutableCache::LIMIT);
    assert!(!cached(&cache, &add(), &CompileOptions::default()));
    assert!(cached(&cache, &add(), &CompileOptions::default()));

    let mut other_text = add();
    other_text.text.push('\n');
    assert!(!cached(&cache, &other_text, &CompileOptions::default()));
    other_text.key_text = Some(add().text);
    assert!(cached(&cache, &other_text, &CompileOptions::default()));

    let width = ("xla_cpu_prefer_vector_width".to_owned(), OptionValue::Int(128));
    let options = CompileOptions { xla: vec![width], ..CompileOptions::default() };
    assert!(!cached(&cache, &add(), &options));
    assert!(cached(&cache, &add(), &options));
}

#[test]
fn a_damaged_entry_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ExecutableCache::at(folder.path(), ExecutableCache::LIMIT);
    assert!(!cached(&cache, &add(), &CompileOptions::default()));
    let [entry] = &entries(folder.path())[..] else { panic!("one entry") };
    let intact = fs::read(entry).unwrap();

    let mut flipped = intact.clone();
    flipped[intact.len() / 2] ^= 0x40;
    for damaged in [&intact[..intact.len() / 2], &[], &flipped, b"something else"] {
        fs::write(entry, damaged).unwrap();
        assert!(!cached(&cache, &add(), &CompileOptions::default()));
        assert!(cached(&cache, &add(), &CompileOptions::default()));
        assert_eq!(fs::read(entry).unwrap().len(), intact.len());
    }
}

#[test]
fn programs_whose_files_are_exchanged_are_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ExecutableCache::at(folder.path(), ExecutableCache::LIMIT);
    let difference =
        Module { text: add().text.replace("stablehlo.add", "stablehlo.subtract"), ..add() };
    let result = |module: &Module| {
        let (executable, hit) =
            cache.compile(client(), module, &CompileOptions::default()).unwrap();
        let x = buffer(&[2, 2], &[1.0f32; 4], &device(0));
        (values(&executable.execute(vec![kept([&x, &x])]).unwrap()[0][0])[0], hit)
    };
    assert_eq!([result(&add()), result(&difference)], [(2.0, false), (0.0, false)]);
    assert_eq!([result(&add()), result(&difference)], [(2.0, true), (0.0, true)]);
    let [one, other] = &entries(folder.path())[..] else { panic!("two entries") };
    let aside = folder.path().join("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(&aside, other).unwrap();
    assert_eq!([result(&add()), result(&difference)], [(2.0, false), (0.0, false)]);
}

#[test]
fn an_entry_that_others_can_write_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ExecutableCache::at(folder.path().join("new"), ExecutableCache::LIMIT);
    let compiled = || cached(&cache, &add(), &CompileOptions::default());
    assert!(!compiled());
    let [entry] = &entries(&folder.path().join("new"))[..] else { panic!("one entry") };
    let set_mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for open in [0o666, 0o664, 0o646] {
        assert!(compiled());
        set_mode(entry, open);
        assert!(!compiled(), "{open:o}");
    }
    // The new entry took its place; a user who can write the folder can put another entry in it.
    assert!(compiled());
    set_mode(entry.parent().unwrap(), 0o777);
    assert!(!compiled());
    assert!(!compiled());
}

#[test]
fn a_cache_that_cannot_be_written_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    for impossible in
        [file.join("cache"), file.clone(), PathBuf::from("/dev/full"), PathBuf::from("/dev/null/x")]
    {
        let cache = ExecutableCache::at(impossible, ExecutableCache::LIMIT);
        assert!(!cached(&cache, &add(), &CompileOptions::default()));
        assert!(!cached(&cache, &add(), &CompileOptions::default()));
    }
    assert!(!cached(&ExecutableCache::disabled(), &add(), &CompileOptions::default()));
}

#[test]
fn the_oldest_entries_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let module = |number: usize| {
        let mut module = add();
        module.key_text = Some(number.to_string());
        module
    };
    let unlimited = ExecutableCache::at(folder.path(), u64::MAX);
    assert!(!cached(&unlimited, &module(0), &CompileOptions::default()));
    let size = fs::metadata(&entries(folder.path())[0]).unwrap().len();
    let cache = ExecutableCache::at(folder.path(), 2 * size + size / 2);
    assert!(!cached(&cache, &module(1), &CompileOptions::default()));
    assert!(cached(&cache, &module(0), &CompileOptions::default()));
    // 1 was used before 0 was.
    assert!(!cached(&cache, &module(2), &CompileOptions::default()));
    assert_eq!(entries(folder.path()).len(), 2);
    assert!(cached(&cache, &module(0), &CompileOptions::default()));
    assert!(!cached(&cache, &module(1), &CompileOptions::default()));
}
