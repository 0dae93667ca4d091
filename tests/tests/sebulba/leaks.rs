//! Starting and stopping leaves nothing behind: no thread, no descriptor, no memory.

use std::fs;

use super::{ENVIRONMENTS, cartpoles, small, spec};
use crate::anakin::{is_child, run_alone};
use crate::loops;

/// Variable with the number of starts, for more of them.
const STARTS: &str = "PODRACER_TEST_STARTS";

#[derive(Debug)]
struct Held {
    threads: usize,
    descriptors: usize,
    /// Resident memory.
    bytes: usize,
}

fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").expect("Linux says it");
    let number = |name: &str| -> usize {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).expect("a number")
    };
    Held {
        threads: number("Threads:"),
        descriptors: fs::read_dir("/proc/self/fd").expect("Linux says it").count(),
        bytes: number("VmRSS:") * 1024,
    }
}

#[test]
fn runs_leave_nothing_behind() {
    if !is_child() {
        // With several arenas, or free memory at their ends, memory that the allocator keeps for
        // later looks like a leak.
        let allocator = [("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "0")];
        run_alone("sebulba::leaks::runs_leave_nothing_behind", &allocator);
        return;
    }
    let starts = std::env::var(STARTS).ok().and_then(|starts| starts.parse().ok());
    let starts: usize = starts.unwrap_or(24);
    let client = loops::client(2);
    let folder = std::env::temp_dir().join(format!("podracer-leaks-{}", std::process::id()));
    let cache = podracer_runtime::ExecutableCache::at(&folder, 1 << 30);
    // The programs come from a cache, so that XLA's compiler is not measured.
    let sebulba = small().cache(cache);
    let held_after = |starts: usize| {
        for start in 0..starts {
            let mut run = sebulba
                .start(&client, &spec(), start as u64, |_| Ok(Box::new(cartpoles(ENVIRONMENTS))))
                .expect("the run starts");
            // Stopped while it acts, while it learns, and before anything.
            run.run(start % 3).expect("some iterations");
        }
        held()
    };
    let half = starts.div_ceil(2);
    let mut before = held_after(half);
    // A leak grows each time. The allocator takes pieces now and then, depending on the threads'
    // timing: under load, 43 to 68 kB per start occurred three times in a row, where 48 starts of
    // the same program took 4 kB each.
    let mut each = usize::MAX;
    for _ in 0..8 {
        let after = held_after(half);
        eprintln!("{half} starts: {before:?}, then {after:?}");
        assert_eq!(after.threads, before.threads);
        assert_eq!(after.descriptors, before.descriptors);
        each = each.min(after.bytes.saturating_sub(before.bytes) / half);
        before = after;
        if each < 20_000 {
            break;
        }
    }
    fs::remove_dir_all(folder).expect("the cache is there");
    assert!(each < 20_000, "{each} bytes more with each start");
}
