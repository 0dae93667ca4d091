//! Texts that are no models, and their messages.

use std::fs;

use podracer_physics::mjcf::{self, Element};
use podracer_physics::{Error, Model};

/// The message about a text, which is no model.
fn message(text: &str) -> String {
    match Model::from_mjcf(text) {
        Ok(_) => panic!("a model: {text}"),
        Err(error) => error.to_string(),
    }
}

/// The message about a body with this content.
fn in_body(content: &str) -> String {
    message(&format!("<mujoco><worldbody>\n<body>{content}</body></worldbody></mujoco>"))
}

#[test]
fn faults_name_place_expectation_and_remedy() {
    let cases: &[(&str, &str)] = &[
        (
            "<geom siz='1'/>",
            "<text>:2:13: attribute `siz` of `geom` is unknown; did you mean `size`?",
        ),
        (
            "<goem size='1'/>",
            "<text>:2:7: element `goem` in `body` is unknown; did you mean `geom`?",
        ),
        (
            "<geom size='1' pos='1 2'/>",
            "<text>:2:22: `pos` of `geom` is \"1 2\": expected 3 times a finite number",
        ),
        (
            "<geom size='1 x'/>",
            "<text>:2:13: `size` of `geom` is \"1 x\": expected a list, each a finite number",
        ),
        ("<geom/>", "`size` of `geom` is missing: expected 1 positive numbers for this type"),
        (
            "<geom type='mesh' mesh='m'/>",
            "type `mesh` of `geom` is not covered; a mesh is covered if `contype`",
        ),
        (
            "<geom type='hfield'/>",
            "<text>:2:13: type `hfield` of `geom` is not covered; use plane, sphere, capsule, ellipsoid, cylinder or box",
        ),
        (
            "<geom size='1' fluidshape='ellipsoid'/>",
            "attribute `fluidshape` of `geom` is not covered; leave it out, or set it to `none`",
        ),
        (
            "<geom size='1' quat='1 0 0 0' euler='0 0 0'/>",
            "`quat` and `euler` both turn the frame: leave one out",
        ),
        ("<geom size='1' class='c'/>", "default class `c` is unknown"),
        ("<joint/>", "the body moves without mass or inertia"),
        ("<joint/><joint/><geom size='1'/>", "another joint moves it in the same way"),
        ("<joint axis='0 0 0'/><geom size='1'/>", "expected a vector of positive length"),
        ("<joint range='1 0'/><geom size='1'/>", "expected two numbers, the smaller first"),
        (
            "<joint limited='yes'/>",
            "`limited` of `joint` is \"yes\": expected one of false, true, auto",
        ),
        (
            "<inertial pos='0 0 0' mass='1' diaginertia='1 1 3'/>",
            "or set `balanceinertia` of `compiler`",
        ),
        ("<body><freejoint/></body>", "a free joint belongs to a child of `worldbody`"),
        (
            "<geom name='a' size='1'/><geom name='a' size='1'/>",
            "expected a name that no other element of its kind has",
        ),
        ("<flexcomp name='f'/>", "element `flexcomp` is not covered"),
        ("<joint/><geom type='plane' size='1 1 1'/>", "a plane belongs to `worldbody`"),
    ];
    for (content, expected) in cases {
        let message = in_body(content);
        assert!(message.contains(expected), "{content}: {message}");
    }
}

#[test]
fn sections_that_are_not_covered_are_faults() {
    let cases: &[(&str, &str)] = &[
        ("<actuator><muscle joint='j'/></actuator>", "element `muscle` is not covered"),
        ("<actuator><motor site='s'/></actuator>", "attribute `site` of `motor` is not covered"),
        ("<actuator><motor joint='k'/></actuator>", "joint `k` is unknown"),
        (
            "<actuator><motor/></actuator>",
            "`motor` needs one of `joint`, `jointinparent`, `tendon`",
        ),
        ("<asset><hfield file='m.png'/></asset>", "element `hfield` is not covered"),
        ("<extension/>", "element `extension` is not covered"),
        ("<compiler coordinate='global'/>", "expected one of local"),
        (
            "<option integrator='RK5'/>",
            "expected one of Euler, RK4, implicit, implicitfast, discrete",
        ),
        ("<include file='a.xml'/>", "a text includes no files"),
        ("<default class='other'/>", "expected `main` for a class outside of others"),
        ("<keyframe><key qpos='1'/></keyframe>", "expected 0 finite numbers"),
        ("<size nkey='1000000000'/>", "expected 0 to 10000"),
    ];
    for (content, expected) in cases {
        let message = message(&format!("<mujoco>{content}</mujoco>"));
        assert!(message.contains(expected), "{content}: {message}");
    }
    assert!(message("<robot/>").contains("expected `mujoco`"));
    assert!(message("<mujoco>").contains("not well-formed XML"));
    assert!(message("<!DOCTYPE a [<!ENTITY b 'c'>]><mujoco/>").contains("not well-formed XML"));
}

#[test]
fn includes_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    write("inner/part.xml", "<mujoco><option timestep='0.5'/></mujoco>");
    write("outside.xml", "<mujoco/>");
    let cases = [
        ("<include file='part.xml'/>", None),
        (
            "<include file='part.xml'/><include file='./part.xml'/>",
            Some("a file that is not included yet"),
        ),
        ("<include file='../outside.xml'/>", Some("a file in the folder of the model")),
        ("<include file='missing.xml'/>", Some("a file that exists")),
        ("<include file='model.xml'/>", Some("a file that is not included yet")),
        ("<include/>", Some("`include` needs the attribute `file`")),
    ];
    for (content, expected) in cases {
        write("inner/model.xml", &format!("<mujoco>{content}</mujoco>"));
        match (Model::from_file(folder.path().join("inner/model.xml")), expected) {
            (Ok(model), None) => assert_eq!(model.opt.timestep, 0.5),
            (Err(error), Some(expected)) => {
                assert!(error.to_string().contains(expected), "{content}: {error}");
            }
            (result, _) => panic!("{content}: {result:?}"),
        }
    }
    // A fault in an included file names that file.
    write("inner/part.xml", "<mujoco>\n <option timestep='x'/></mujoco>");
    write("inner/model.xml", "<mujoco><include file='part.xml'/></mujoco>");
    let error = Model::from_file(folder.path().join("inner/model.xml")).unwrap_err();
    assert!(error.to_string().contains("part.xml:2:10"), "{error}");
    let missing = Model::from_file(folder.path().join("none.xml")).unwrap_err();
    assert!(matches!(missing, Error::File { .. }));
}

/// A mesh without contacts and mass is a part of pictures. All other meshes are faults.
#[test]
fn a_mesh_of_pictures_changes_nothing() {
    let text = |geom: &str, inertial: &str| {
        format!(
            "<mujoco><default><default class='visual'><geom type='mesh' contype='0' conaffinity='0'/></default></default>
              <asset><mesh name='m' file='m.obj'/></asset>
              <worldbody><body>{inertial}{geom}<joint/><geom size='0.1 0.2' type='capsule'/></body></worldbody></mujoco>"
        )
    };
    let inertial = "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>";
    for (geom, inertial) in [
        ("<geom class='visual' mesh='m' mass='0'/>", ""),
        ("<geom class='visual' mesh='m' density='0'/>", ""),
        ("<geom class='visual' mesh='m'/>", inertial),
    ] {
        let with = Model::from_mjcf(&text(geom, inertial)).unwrap();
        let without = Model::from_mjcf(&text("", inertial)).unwrap();
        assert_eq!(with.fields(), without.fields(), "{geom}");
    }
    for (geom, inertial, expected) in [
        ("<geom class='visual' mesh='m'/>", "", "its mass is not computed"),
        ("<geom class='visual' mesh='m' contype='1'/>", inertial, "`contype` and `conaffinity`"),
        ("<geom type='mesh' mesh='m'/>", inertial, "`contype` and `conaffinity`"),
        ("<geom type='sphere' mesh='m'/>", inertial, "a shape that is fitted to a mesh"),
    ] {
        let error = Model::from_mjcf(&text(geom, inertial)).unwrap_err().to_string();
        assert!(error.contains(expected), "{geom}: {error}");
    }
}

/// An element is written as it was read, with its includes.
#[test]
fn what_is_written_is_read_again() {
    let text = "<mujoco model=\"a &amp; &quot;b&lt;\"><worldbody><body name='x'><geom size='1'/></body></worldbody></mujoco>";
    let strip = |mut element: Element| {
        fn clear(element: &mut Element) {
            element.place.line = 0;
            element.place.column = 0;
            element.attributes.iter_mut().for_each(|a| (a.place.line, a.place.column) = (0, 0));
            element.children.iter_mut().for_each(clear);
        }
        clear(&mut element);
        element
    };
    let first = mjcf::read(text).unwrap();
    let again = mjcf::read(&first.to_string()).unwrap();
    assert_eq!(strip(first), strip(again));
}
