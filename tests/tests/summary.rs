//! The summary that `make test` ends with: what cannot run here never counts as passed.

use std::process::Command;

use podracer_tests::workspace;

/// Output of `scripts/test-summary` for this log and these records, and true if it succeeds.
fn summary(log: &str, skipped: &str) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it is writable");
        path
    };
    let output = Command::new(workspace::root().join("scripts/test-summary"))
        .args([file("log", log), file("skipped", skipped)])
        .output()
        .expect("the script runs");
    (String::from_utf8(output.stdout).expect("UTF-8"), output.status.success())
}

const NEXTEST: &str = "
    Finished `test` profile [optimized] target(s) in 5m 30s
    Starting 4 tests across 2 binaries
        PASS [   0.012s] (1/4) podracer-dsl::it keys::split
        SLOW [> 60.000s] (─────) podracer-dsl::it keys::slow
        \x1b[32mPASS\x1b[0m [  61.012s] (2/4) podracer-dsl::it keys::slow
        FAIL [   0.100s] (3/4) podracer-tests::main servers::atari
     SIGABRT [   0.100s] (4/4) podracer-tests::main servers::mujoco
     Summary [  61.1s] 4 tests run: 2 passed, 2 failed, 0 skipped
        FAIL [   0.100s] (3/4) podracer-tests::main servers::atari
error: test run failed
";

const CARGO: &str = "
     Running unittests src/lib.rs (target/debug/deps/podracer-0123)
test keys::split ... ok
test keys::wrong - should panic ... ok
     Running tests/main.rs (target/debug/deps/main-4567)
test keys::split ... ok
test servers::mujoco ... ok
test servers::atari ... ok
test heavy ... ignored, takes 2 GB
test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 3.05s
   Doc-tests podracer_dsl
test dsl/src/lib.rs - a (line 3) ... ok
test dsl/src/lib.rs - b (line 9) - compile fail ... ok
";

#[test]
fn tests_that_skipped_themselves_are_not_among_those_that_passed() {
    // One test that says it twice; another of the same name in another binary.
    let skipped = "main-4567\tservers::mujoco\tno mujoco\nmain-4567\tservers::mujoco\tno mujoco\n\
                   main-4567\tkeys::split\tno mujoco\n";
    let expected = "\n5 passed, 0 failed, 3 skipped\n  skipped 1: marked `ignore`, takes 2 GB\n  skipped 2: no mujoco\n";
    let (printed, success) = summary(CARGO, skipped);
    assert!(printed.ends_with(expected) && success, "{printed}");
}

#[test]
fn a_test_that_failed_is_not_skipped() {
    let skipped = "podracer-tests::main\tservers::atari\tno atari\npodracer-dsl::it\tkeys::slow\tit is slow\n";
    let expected = "\n1 passed, 2 failed, 1 skipped\n  skipped 1: it is slow\n  \
                    FAILED podracer-tests::main servers::atari\n  FAILED podracer-tests::main servers::mujoco\n";
    let (printed, success) = summary(NEXTEST, skipped);
    assert!(printed.ends_with(expected) && !success, "{printed}");
}

#[test]
fn where_the_time_went_is_printed() {
    let expected = "
slowest tests, in seconds
     61.0  podracer-dsl::it keys::slow
      0.1  podracer-tests::main servers::atari
      0.1  podracer-tests::main servers::mujoco
      0.0  podracer-dsl::it keys::split

seconds by binary, of all its tests one after another
     61.0  podracer-dsl::it
      0.2  podracer-tests::main
    330.0  compiling
";
    let (printed, _) = summary(NEXTEST, "");
    assert!(printed.starts_with(expected), "{printed}");
    let many: String = (1..=20).map(|n| format!("    PASS [ {n}.000s] a::b test_{n}\n")).collect();
    let (printed, _) = summary(&many, "");
    let mut slowest = printed.lines().filter(|line| line.contains("a::b test_"));
    assert_eq!(slowest.clone().count(), 10, "{printed}");
    assert_eq!(slowest.next_back().map(str::trim), Some("11.0  a::b test_11"));
    // Tests of cargo have no times of their own.
    let expected =
        "\nseconds by binary, of all its tests one after another\n      3.0  main-4567\n";
    let (printed, _) = summary(CARGO, "");
    assert!(printed.starts_with(expected), "{printed}");
}

#[test]
fn a_log_without_tests_is_a_failure() {
    let broken = "error[E0425]: cannot find value `x`\n";
    assert_eq!(summary("", ""), ("\n0 passed, 0 failed, 0 skipped\n".to_owned(), false));
    assert!(!summary(&(CARGO.to_owned() + broken), "").1);
}
