//! Feeds any text to the parser: it must not panic, and a function that it reads must print and read back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podracer_compiler::text::parse;

fuzz_target!(|text: &str| {
    let Ok(func) = parse(text) else {
        return;
    };
    for printed in [func.to_string(), format!("{func:#}")] {
        match parse(&printed) {
            Ok(again) => assert!(
                again == func && [again.to_string(), format!("{again:#}")].contains(&printed),
                "{printed}\nread back as\n{again:#}"
            ),
            Err(error) => panic!("{error} in\n{printed}"),
        }
    }
});
