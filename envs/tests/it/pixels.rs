//! Catch and Breakout in pixels, played from their observations.

use podracer_envs::host::{
    HostEnvironment, HostError, NativeEnvironment, PixelBreakout, PixelCatch, Pool, Random,
    StepMemory,
};

const SIDE: usize = 84;
const CELL: usize = 7;

fn shown<E: NativeEnvironment>(environment: &E, state: &E::State) -> Vec<u8> {
    let mut pixels = vec![0; environment.observation_space().elements()];
    environment.observe(state, &mut pixels);
    pixels
}

/// The cells that have this grey in a channel, as (row, column), by their first pixels.
fn cells(pixels: &[u8], channels: usize, channel: usize, grey: u8) -> Vec<(usize, usize)> {
    let at = |row: usize, column: usize| pixels[(row * SIDE + column) * channels + channel];
    let mut found = Vec::new();
    for row in 0..SIDE / CELL {
        for column in 0..SIDE / CELL {
            if at(row * CELL, column * CELL) == grey {
                found.push((row, column));
            }
        }
    }
    found
}

/// Asserts that every cell has one grey.
fn check_cells(pixels: &[u8], channels: usize) {
    for (i, pixel) in pixels.iter().enumerate() {
        let (row, rest) = (i / (SIDE * channels), i % (SIDE * channels));
        let first = (row / CELL * CELL * SIDE + rest / channels / CELL * CELL) * channels;
        assert_eq!(*pixel, pixels[first + i % channels], "pixel {i}");
    }
}

/// Plays an episode with actions by the pixels shown. Returns its return, its length and its last pixels.
fn play<E: NativeEnvironment>(
    environment: &E,
    random: &mut Random,
    mut act: impl FnMut(&[u8], &mut Random) -> i32,
) -> (f32, usize, Vec<u8>) {
    let mut state = environment.initial_state(random);
    let mut total = 0.0;
    for length in 1.. {
        let action = act(&shown(environment, &state), random);
        let outcome = environment.step(&mut state, &action.to_le_bytes(), random);
        total += outcome.reward;
        assert!(!outcome.truncated);
        if outcome.terminated {
            return (total, length, shown(environment, &state));
        }
    }
    unreachable!("episodes end")
}

/// Left, stay or right, towards a column.
fn towards(column: usize, paddle: usize) -> i32 {
    match column.cmp(&paddle) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => 1,
        std::cmp::Ordering::Greater => 2,
    }
}

#[test]
fn catch_is_won_by_going_under_the_ball() {
    let mut random = Random::of_environment(1, 0);
    let follow = |pixels: &[u8], _: &mut Random| {
        let lit = cells(pixels, 1, 0, 255);
        assert_eq!(lit.len(), 2);
        let (ball, paddle) = (lit[0], lit[1]);
        assert!(ball.0 < paddle.0 && paddle.0 == 11);
        towards(ball.1, paddle.1)
    };
    let mut columns = Vec::new();
    for _ in 0..40 {
        let (total, length, pixels) = play(&PixelCatch {}, &mut random, follow);
        assert_eq!((total, length), (1.0, 11));
        check_cells(&pixels, 1);
        columns.push(cells(&pixels, 1, 0, 255)[0].1);
    }
    columns.sort_unstable();
    columns.dedup();
    assert!(columns.len() >= 8, "{columns:?}");
    let missed = (0..40).filter(|_| {
        let (total, length, _) = play(&PixelCatch {}, &mut random, |_, _| 1);
        (total, length) == (-1.0, 11)
    });
    assert!(missed.count() > 30);
}

#[test]
fn breakout_rewards_who_follows_the_ball() {
    let mut random = Random::of_environment(2, 0);
    let mut follow = |pixels: &[u8], random: &mut Random| {
        let [before, ball] = [2, 3].map(|channel| cells(pixels, 4, channel, 255)[0]);
        // Where it lands if nothing but the sides is in its way.
        let mut landing = ball.1 as i32;
        let mut by = landing - before.1 as i32;
        for _ in ball.0..11 {
            if !(0..12).contains(&(landing + by)) {
                by = -by;
            }
            landing += by;
        }
        let paddle = cells(pixels, 4, 3, 200);
        // With the left or the right half of the paddle, by chance.
        let half = usize::from(random.below(4) == 0);
        let left = paddle.iter().map(|cell| cell.1).min().unwrap_or(0);
        towards(landing as usize, left + half)
    };
    let mut wander = |_: &[u8], random: &mut Random| random.below(3) as i32;
    let mean = |act: &mut dyn FnMut(&[u8], &mut Random) -> i32| {
        let mut random = Random::of_environment(3, 0);
        let episodes: Vec<_> =
            (0..10).map(|_| play(&PixelBreakout {}, &mut random, &mut *act)).collect();
        assert!(episodes.iter().all(|&(total, ..)| (0.0..=72.0).contains(&total)));
        episodes.iter().map(|(total, ..)| total).sum::<f32>() / 10.0
    };
    let (followed, wandered) = (mean(&mut follow), mean(&mut wander));
    assert!(wandered < 3.0, "{wandered}");
    assert!(followed > 10.0 * wandered.max(0.5), "{followed} and {wandered}");
    // At the beginning: 36 bricks, a ball, and a paddle of two cells, four times.
    let environment = PixelBreakout {};
    let pixels = shown(&environment, &environment.initial_state(&mut random));
    check_cells(&pixels, 4);
    for channel in 0..4 {
        let bricks: usize =
            [80, 110, 140].map(|grey| cells(&pixels, 4, channel, grey).len()).iter().sum();
        assert_eq!(bricks, 36);
        assert_eq!(cells(&pixels, 4, channel, 255).len(), 1);
        assert_eq!(cells(&pixels, 4, channel, 200).len(), 2);
    }
}

/// Each step the frames move one channel on.
#[test]
fn breakout_shows_its_last_four_frames() {
    let mut random = Random::of_environment(4, 0);
    let environment = PixelBreakout {};
    let mut state = environment.initial_state(&mut random);
    let mut before = shown(&environment, &state);
    for _ in 0..5 {
        environment.step(&mut state, &2i32.to_le_bytes(), &mut random);
        let now = shown(&environment, &state);
        for (before, now) in before.as_chunks::<4>().0.iter().zip(now.as_chunks::<4>().0) {
            assert_eq!(before[1..], now[..3]);
        }
        let balls = [2, 3].map(|channel| cells(&now, 4, channel, 255)[0]);
        assert_eq!(balls[0].0 + 1, balls[1].0, "the ball falls");
        before = now;
    }
}

/// Snapshots with one byte changed are refused, or restore states that play on.
#[test]
fn changed_snapshots_are_refused_or_play_on() {
    fn check<E: NativeEnvironment + Default>(bytes: usize) {
        let mut batch = Pool::new(&E::default(), 1);
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(5, 0, &mut memory.step()).unwrap();
        batch.step(&2i32.to_le_bytes(), &mut memory.step()).unwrap();
        let snapshot = batch.snapshot().unwrap().unwrap();
        let (mut refused, mut restored) = (0, 0);
        for position in 0..bytes.min(snapshot.len()) {
            for byte in [0, 1, 7, 11, 12, 61, 127, 128, 255] {
                let mut changed = snapshot.clone();
                changed[position] = byte;
                match batch.restore(&changed) {
                    Err(HostError::Snapshot(_)) => refused += 1,
                    Err(error) => panic!("{error}"),
                    Ok(()) => {
                        restored += 1;
                        for _ in 0..20 {
                            batch.step(&0i32.to_le_bytes(), &mut memory.step()).unwrap();
                        }
                    }
                }
            }
        }
        assert!(refused > 10 && restored > 10, "{refused} and {restored}");
    }
    check::<PixelCatch>(usize::MAX);
    check::<PixelBreakout>(80);
}

#[test]
fn what_was_saved_goes_on_the_same() {
    fn check<E: NativeEnvironment + Default>() {
        let mut batch = Pool::new(&E::default(), 3);
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(5, 0, &mut memory.step()).unwrap();
        let actions = [2i32, 0, 1].map(i32::to_le_bytes).concat();
        let mut play = |batch: &mut Pool<E>| -> Vec<(Vec<u8>, Vec<f32>)> {
            let mut steps = Vec::new();
            for _ in 0..30 {
                batch.step(&actions, &mut memory.step()).unwrap();
                steps.push((memory.observation().to_vec(), memory.reward().to_vec()));
            }
            steps
        };
        play(&mut batch);
        let snapshot = batch.snapshot().unwrap().unwrap();
        let mut other = Pool::new(&E::default(), 3);
        other.restore(&snapshot).unwrap();
        assert_eq!(play(&mut batch), play(&mut other));
    }
    check::<PixelCatch>();
    check::<PixelBreakout>();
}
