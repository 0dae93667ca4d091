//! Levels of Sokoban that are read from text.

use crate::run::{initial, keys, run, state_spec, steps};
use podracer_dsl::prelude::*;
use podracer_envs::puzzles::{LevelError, Levels, Sokoban};
use podracer_envs::{Environment, check_environment};

const LEVELS: &str = "; 0
#####
#@$.#
#   #
#   #
#####

; 1
#####
#  .#
# $ #
#@  #
#####
";

fn read() -> Sokoban {
    let levels = Some(Levels::parse(LEVELS).expect("levels"));
    Sokoban { size: 5, boxes: 1, levels, ..Sokoban::default() }
}

#[test]
fn levels_of_a_file_are_played() {
    let env = read();
    check_environment(&env).expect("an environment");
    env.check_settings().expect("the levels fit");
    let mut firsts = [0; 2];
    for i in 0..40 {
        let first = initial(&env, &keys(40).index_leading(i));
        // The player of the first level is in the second row, the player of the second level in the
        // fourth.
        let row = first[3].to_f64()[0];
        firsts[usize::from(row == 3.0)] += 1;
        if row == 1.0 {
            let actions = Array::ints(DType::I32, [1], &[1]);
            let solved = steps(&env, &first, &actions, &keys(1));
            assert_eq!(solved.terminated.to_f64(), [1.0]);
            crate::run::close("reward", &solved.rewards, &[10.9], 1e-6);
        }
    }
    assert!(firsts.iter().all(|&count| count > 8), "{firsts:?}");
    let first = initial(&env, &keys(1).index_leading(0));
    let success = run(state_spec(&env), &first, |state| env.success(&state).expect("a share"));
    assert_eq!(success[0].to_f64(), [0.0]);
}

#[test]
fn texts_that_are_no_levels_are_errors() {
    let error = |text: &str| Levels::parse(text).unwrap_err();
    assert_eq!(error("; 0\n###\n#x#"), LevelError::Character { level: 0, row: 1, got: 'x' });
    assert_eq!(error("; 0\n\n"), LevelError::None);
    let check = |text: &str| {
        let levels = Some(Levels::parse(text).expect("levels"));
        Sokoban { size: 5, boxes: 1, levels, ..Sokoban::default() }.check_settings().unwrap_err()
    };
    assert!(check("###\n#@#\n###").contains("level 0 of environment.levels is not 5 by 5 cells"));
    assert!(
        check(&LEVELS.replace("$ ", "$$")).contains("level 1 of environment.levels has 2 boxes")
    );
    assert!(
        check(&LEVELS.replace("#@ ", "#  "))
            .contains("level 1 of environment.levels has 0 players")
    );
    assert!(check(&LEVELS.replace("# $ #", "# $  ")).contains("has a hole in the wall"));
    let missing = serde_json::from_str::<Sokoban>(r#"{"levels": "/nowhere/000.txt"}"#);
    assert!(missing.unwrap_err().to_string().contains("cannot read the levels `/nowhere/000.txt`"));
    let crowded = Sokoban { size: 6, ..Sokoban::default() }.check_settings().unwrap_err();
    assert!(crowded.contains("environment.boxes is 4 and must be at most 3"), "{crowded}");
}
