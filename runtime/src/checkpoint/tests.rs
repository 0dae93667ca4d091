//! Tests that written checkpoints are read, and damaged checkpoints are rejected.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::folder::{ARRAYS, MANIFEST, UNFINISHED};
use super::*;

fn checkpoint(iterations: u64) -> Checkpoint<'static> {
    let mut checkpoint = Checkpoint {
        iterations,
        about: serde_json::json!({"experiment": "catch"}),
        ..Checkpoint::default()
    };
    let weight = Array::from_slice([2], &[iterations as f32, f32::NAN]).unwrap();
    checkpoint.insert("state.", [("policy.weight".to_owned(), weight)]);
    checkpoint.insert("", [("returns".to_owned(), Array::scalar(iterations as i32))]);
    checkpoint
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_last_ones_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().join("new"), 2);
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(error.starts_with("there is no checkpoint in `"), "{error}");
    for iterations in [5, 10, 10, 7] {
        let path = checkpoints.save(&checkpoint(iterations)).unwrap();
        let found = checkpoints.latest().unwrap();
        assert_eq!((&found.checkpoint.about, found.path), (&checkpoint(iterations).about, path));
        assert_eq!(found.checkpoint.to_host().unwrap(), checkpoint(iterations).to_host().unwrap());
        assert_eq!(found.checkpoint.iterations, iterations);
    }
    assert_eq!(names(checkpoints.folder()), ["3-10", "4-7"]);
}

/// A partial checkpoint is evaluated but not resumed, and does not take the place of a complete
/// checkpoint.
#[test]
fn a_run_goes_on_from_a_checkpoint_with_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path(), 2);
    let mut latest = Vec::new();
    for iterations in 1..=7 {
        let mut checkpoint = checkpoint(iterations);
        if iterations != 2 && iterations != 3 {
            checkpoint.leave_out("state.policy");
        }
        checkpoint.leave_out("state.absent");
        checkpoints.save(&checkpoint).unwrap();
        let evaluated = checkpoints.latest_parameters().unwrap().checkpoint;
        assert_eq!((evaluated.iterations, evaluated.partial), (iterations, checkpoint.partial));
        assert_eq!(evaluated.arrays.len(), 2 - usize::from(checkpoint.partial));
        latest.push(checkpoints.latest().ok().map(|found| found.checkpoint.iterations));
    }
    assert_eq!(latest, [None, Some(2), Some(3), Some(3), Some(3), Some(3), Some(3)]);
    assert_eq!(names(folder.path()), ["2-2", "3-3", "6-6-partial", "7-7-partial"]);
}

/// An unfinished folder, of a process that was killed half-way, is neither read nor an obstacle.
#[test]
fn what_is_unfinished_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path(), 2);
    checkpoints.save(&checkpoint(1)).unwrap();
    fs::create_dir(folder.path().join(UNFINISHED)).unwrap();
    fs::write(folder.path().join(UNFINISHED).join(ARRAYS), "half").unwrap();
    assert_eq!(checkpoints.latest().unwrap().checkpoint.iterations, 1);
    checkpoints.save(&checkpoint(2)).unwrap();
    assert_eq!(names(folder.path()), ["1-1", "2-2"]);
    assert_eq!(checkpoints.latest().unwrap().checkpoint.iterations, 2);
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let truncated = |path: &Path| {
        let file = File::options().write(true).open(path.join(ARRAYS)).unwrap();
        file.set_len(20).unwrap();
    };
    let flipped = |path: &Path| {
        let mut bytes = fs::read(path.join(ARRAYS)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path.join(ARRAYS), bytes).unwrap();
    };
    let gone = |path: &Path| fs::remove_file(path.join(MANIFEST)).unwrap();
    let cut = |path: &Path| fs::write(path.join(MANIFEST), "{\"format\": 1").unwrap();
    let edited = |path: &Path| {
        let text = fs::read_to_string(path.join(MANIFEST)).unwrap();
        fs::write(path.join(MANIFEST), text.replace("\"iterations\": ", "\"iterations\": 9"))
            .unwrap();
    };
    let edited_about = |path: &Path| {
        let text = fs::read_to_string(path.join(MANIFEST)).unwrap();
        fs::write(path.join(MANIFEST), text.replace("catch", "cache")).unwrap();
    };
    let without_checksum = |path: &Path| {
        let text = fs::read_to_string(path.join(MANIFEST)).unwrap();
        fs::write(path.join(MANIFEST), text.replace("manifest_sha256", "manifest_sha255")).unwrap();
    };
    type Damage = fn(&Path);
    let cases: [(Damage, &str); 7] = [
        (edited, "`manifest.json` has the sha256 "),
        (edited_about, "`manifest.json` has the sha256 "),
        (without_checksum, "`manifest.json` has the sha256 "),
        (truncated, "`arrays.safetensors` has 20 bytes and had "),
        (flipped, "`arrays.safetensors` has the sha256 "),
        (gone, "it has no `manifest.json`"),
        (cut, "manifest.json: EOF"),
    ];
    for (damage, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(folder.path(), 2);
        checkpoints.save(&checkpoint(1)).unwrap();
        let path = checkpoints.save(&checkpoint(2)).unwrap();
        damage(&path);
        let found = checkpoints.latest().unwrap();
        assert_eq!(found.checkpoint.iterations, 1);
        let skipped = found.skipped[0].to_string();
        assert!(skipped.contains(expected), "{skipped}");
        assert!(skipped.contains("/2-2` is damaged: "), "{skipped}");
        damage(&found.path);
        let error = checkpoints.latest().unwrap_err().to_string();
        assert!(error.contains("/2-2` is damaged: "), "{error}");
        assert!(error.contains("/1-1` is damaged: "), "{error}");
        // The following checkpoint is younger than both.
        checkpoints.save(&checkpoint(3)).unwrap();
        assert_eq!(names(folder.path()), ["2-2", "3-3"]);
    }
}

#[test]
fn another_format_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path(), 1);
    let manifest = checkpoints.save(&checkpoint(1)).unwrap().join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"format\": 2", "\"format\": 3")).unwrap();
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(error.contains("has format 3, and this podracer reads 2"), "{error}");
}

/// The format that podracer wrote before manifests had a checksum.
#[test]
fn a_checkpoint_of_format_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path(), 1);
    let manifest = checkpoints.save(&checkpoint(7)).unwrap().join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap().replace("\"format\": 2", "\"format\": 1");
    // The key's name in that format.
    let text = text.replace("\"iterations\"", "\"updates\"");
    let with_checksum = |line: &&str| !line.contains("manifest_sha256");
    fs::write(&manifest, text.lines().filter(with_checksum).collect::<String>()).unwrap();
    assert_eq!(checkpoints.latest().unwrap().checkpoint.iterations, 7);
    // A checksum is checked if it is present.
    fs::write(&manifest, text).unwrap();
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(error.contains("`manifest.json` has the sha256 "), "{error}");
}

#[test]
fn a_checkpoint_that_cannot_be_read_gives_way_to_the_one_before() {
    let replaced = |file: &Path, by: &dyn Fn(&Path)| {
        fs::remove_file(file).unwrap();
        by(file);
    };
    let link = |to: &'static str| move |file: &Path| symlink(to, file).unwrap();
    let pipe = |file: &Path| {
        assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
    };
    let folder_in_place = |file: &Path| fs::create_dir(file).unwrap();
    let not_text = |file: &Path| fs::write(file, [0xff; 9]).unwrap();
    let other_format = |file: &Path| fs::write(file, "{\"format\": 99}").unwrap();
    let huge = |file: &Path| File::create(file).unwrap().set_len(1 << 40).unwrap();
    let zero = link("/dev/zero");
    let in_circles = link("manifest.json");
    type Replace<'a> = &'a dyn Fn(&Path);
    let cases: [(Replace<'_>, &str); 7] = [
        (&zero, "`manifest.json`: it is a device and must be a regular file"),
        (&in_circles, "`manifest.json`: Too many levels of symbolic links"),
        (&pipe, "`manifest.json`: it is a pipe and must be a regular file"),
        (&folder_in_place, "`manifest.json`: it is a folder and must be a regular file"),
        (&not_text, "`manifest.json`: invalid utf-8"),
        (&other_format, "has format 99"),
        (&huge, "`manifest.json`: it has 1099511627776 bytes, and at most 67108864 are read"),
    ];
    for (by, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(folder.path(), 2);
        let first = checkpoints.save(&checkpoint(1)).unwrap();
        let second = checkpoints.save(&checkpoint(2)).unwrap();
        replaced(&second.join(MANIFEST), by);
        let found = checkpoints.latest().unwrap();
        assert_eq!(found.checkpoint.iterations, 1);
        let skipped = found.skipped[0].to_string();
        assert!(skipped.contains("/2-2` ") && skipped.contains(expected), "{skipped}");
        replaced(&first.join(MANIFEST), by);
        let error = checkpoints.latest().unwrap_err().to_string();
        assert!(error.starts_with("no checkpoint in `"), "{error}");
        assert!(error.contains("/2-2` ") && error.contains("/1-1` "), "{error}");
    }
    // The arrays are checked in the same way.
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path(), 2);
    checkpoints.save(&checkpoint(1)).unwrap();
    let second = checkpoints.save(&checkpoint(2)).unwrap();
    replaced(&second.join(ARRAYS), &zero);
    let found = checkpoints.latest().unwrap();
    assert_eq!(found.checkpoint.iterations, 1);
    let skipped = found.skipped[0].to_string();
    assert!(skipped.contains("`arrays.safetensors`: it is a device"), "{skipped}");
}

/// The error names the file, and the last checkpoint stays.
#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path(), 1);
    checkpoints.save(&checkpoint(1)).unwrap();
    fs::write(folder.path().join(UNFINISHED), "in the way").unwrap();
    let error = checkpoints.save(&checkpoint(2)).unwrap_err().to_string();
    assert!(error.starts_with("cannot remove `") && error.ends_with("/unfinished`"), "{error}");
    assert_eq!(checkpoints.latest().unwrap().checkpoint.iterations, 1);
}

#[test]
fn parts_have_the_leaves_that_are_expected() {
    let checkpoint = checkpoint(3);
    let ty = |text: &str| TensorType::new(podracer_compiler::DType::F32, [text.len()]);
    let leaf = |path: &str, ty: TensorType| (path.to_owned(), ty);
    let two = leaf("policy.weight", ty("xx"));
    let part = checkpoint.part("state.", std::slice::from_ref(&two)).unwrap();
    assert_eq!(part.len(), 1);
    for (part, expected, problem) in [
        (
            "state.",
            vec![leaf("policy.weight", ty("xxx"))],
            "`state.policy.weight` is f32[2] and must be f32[3]",
        ),
        (
            "state.",
            vec![two.clone(), leaf("policy.bias", ty("x"))],
            "it has no `state.policy.bias`",
        ),
        ("state.", vec![], "it has `state.policy.weight`, which there is no place for"),
        ("learner.", vec![two], "it has no `learner.policy.weight`"),
    ] {
        let error = checkpoint.part(part, &expected).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// Files with a prefix that belongs to a checkpoint: one file that can be linked, and one that
/// cannot.
#[test]
fn files_are_linked_or_copied_and_may_grow() {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().join("checkpoints"), 2);
    let [linked, copied] = ["linked", "copied"].map(|name| {
        let path = folder.path().join(name);
        File::options().read(true).append(true).create_new(true).open(path).unwrap()
    });
    // A file that has lost its name can never have a name again.
    fs::remove_file(folder.path().join("copied")).unwrap();
    let mut checkpoint = checkpoint(3);
    for (name, mut file) in [("state.linked", &linked), ("state.copied", &copied)] {
        file.write_all(b"first").unwrap();
        let sha256 = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e".to_owned();
        let source = FileSource::new(Arc::new(file.try_clone().unwrap()), 5, sha256);
        assert_eq!(source.found_sha256().unwrap(), source.sha256());
        checkpoint.files.insert(name.to_owned(), source);
    }
    let path = checkpoints.save(&checkpoint).unwrap();
    assert_eq!(names(&path), [ARRAYS, MANIFEST, "state.copied", "state.linked"]);
    let inode = |file: &File| file.metadata().unwrap().ino();
    assert_eq!(inode(&File::open(path.join("state.linked")).unwrap()), inode(&linked));
    assert_ne!(inode(&File::open(path.join("state.copied")).unwrap()), inode(&copied));
    (&linked).write_all(b" and more").unwrap();
    let found = checkpoints.latest().unwrap().checkpoint;
    let bytes: Vec<u64> = found.files.values().map(FileSource::bytes).collect();
    assert_eq!(bytes, [5, 5]);
    // Without the store the files are left out, and evaluation ignores them.
    let mut partial = found.clone();
    partial.leave_out("state.");
    assert!(partial.partial && partial.files.is_empty());
    fs::write(path.join("state.copied"), "firsd").unwrap();
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(error.contains("`state.copied` has the sha256 "), "{error}");
    assert!(checkpoints.latest_parameters().unwrap().checkpoint.files.is_empty());
    fs::write(path.join("state.copied"), "firs").unwrap();
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(error.contains("`state.copied` has 4 bytes and had 5"), "{error}");
    fs::remove_file(path.join("state.copied")).unwrap();
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(error.contains("cannot be read: state.copied: No such file"), "{error}");
}
