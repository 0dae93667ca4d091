//! Tests of a robot of the user's in an experiment: its file is found, read once and kept.

use std::fs;
use std::path::Path;

use crate::UsageError;
use crate::loading::{Overrides, load};

const ROBOT: &str = r#"<mujoco>
  <include file="arm.xml"/>
  <actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator>
</mujoco>
"#;
const ARM: &str = r#"<mujoco>
  <worldbody>
    <body name="arm &amp; hand"><joint name="hinge"/><geom size="0.1" pos="0 0 1"/></body>
  </worldbody>
</mujoco>
"#;

/// An experiment with a robot in a folder.
fn write(folder: &Path, arm: &str) -> String {
    fs::write(folder.join("robot.xml"), ROBOT).unwrap();
    fs::write(folder.join("arm.xml"), arm).unwrap();
    let path = folder.join("arm.toml");
    let text = "base = 'pendulum-ppo'\n[environment]\nname = 'robot'\nmodel = 'robot.xml'\n";
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A path is relative to the experiment. A run's own settings have the text with its includes: later changes to the files do
/// not change the run.
#[test]
fn a_run_keeps_its_robot() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), ARM);
    let settings = load(&path, &Overrides::default()).unwrap();
    let model = settings.environment["model"].as_str().unwrap();
    assert!(model.contains("name=\"arm &amp; hand\"") && !model.contains("include"), "{model}");

    let kept = tempfile::tempdir().unwrap();
    let path = kept.path().join("config.toml");
    fs::write(&path, settings.to_toml().unwrap()).unwrap();
    drop(folder);
    let again = load(path.to_str().unwrap(), &Overrides::default()).unwrap();
    assert_eq!(again.environment, settings.environment);
}

#[test]
fn mistakes_in_a_robot_are_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let told = |path: &str, set: &[&str]| {
        let set = set.iter().map(|&one| one.to_owned()).collect();
        let error = load(path, &Overrides { set, ..Overrides::default() }).unwrap_err();
        assert!(error.downcast_ref::<UsageError>().is_some(), "{error:#}");
        format!("{error:#}")
    };
    let path = write(folder.path(), &ARM.replace("size", "siz"));
    let error = told(&path, &[]);
    let expected = "arm.xml:3:60: attribute `siz` of `geom` is unknown; did you mean `size`?";
    assert!(error.contains("environment.model: ") && error.contains(expected), "{error}");

    let path = write(folder.path(), ARM);
    for (set, expected) in [
        (&["environment.model=none.xml"][..], "environment.model: none.xml: No such file"),
        (&["environment.model=<mujoco>"], "environment.model: <text>:1:1: not well-formed XML"),
        (&["environment.model=''"], "environment.model is missing"),
        (&["environment.body=leg"], "environment.body is `leg`: expected one of world, arm & hand"),
        (&["environment.model=3"], "`environment.model` must be a string and is `3`"),
    ] {
        let error = told(&path, set);
        assert!(error.contains(expected), "{error}");
    }
}
