//! Catch and Breakout in pixels, played from what they show.

use podracer_envs::Space;
use podracer_envs::host::{NativeEnvironment, Outcome, PixelBreakout, PixelCatch, Random};

const SIDE: usize = 84;
const CELL: usize = 7;

fn shown(environment: &impl NativeEnvironment) -> Vec<u8> {
    let mut pixels = vec![0; environment.observation_space().elements()];
    environment.observe(&mut pixels);
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

/// That every cell is of one grey.
fn check_cells(pixels: &[u8], channels: usize) {
    for (i, pixel) in pixels.iter().enumerate() {
        let (row, rest) = (i / (SIDE * channels), i % (SIDE * channels));
        let first = (row / CELL * CELL * SIDE + rest / channels / CELL * CELL) * channels;
        assert_eq!(*pixel, pixels[first + i % channels], "pixel {i}");
    }
}

/// Plays an episode: its return and length.
fn play<E: NativeEnvironment>(
    environment: &mut E,
    random: &mut Random,
    mut act: impl FnMut(&E, &mut Random) -> i32,
) -> (f32, usize) {
    environment.reset(random);
    let mut total = 0.0;
    for length in 1.. {
        let action = act(environment, random);
        let outcome = environment.step(&action.to_le_bytes(), random);
        total += outcome.reward;
        assert!(!outcome.truncated);
        if outcome.terminated {
            return (total, length);
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
    let follow = |environment: &PixelCatch, _: &mut Random| {
        let pixels = shown(environment);
        let lit = cells(&pixels, 1, 0, 255);
        assert_eq!(lit.len(), 2);
        let (ball, paddle) = (lit[0], lit[1]);
        assert!(ball.0 < paddle.0 && paddle.0 == 11);
        towards(ball.1, paddle.1)
    };
    let mut columns = Vec::new();
    for _ in 0..40 {
        let mut environment = PixelCatch::default();
        assert_eq!(play(&mut environment, &mut random, follow), (1.0, 11));
        check_cells(&shown(&environment), 1);
        columns.push(cells(&shown(&environment), 1, 0, 255)[0].1);
    }
    columns.sort_unstable();
    columns.dedup();
    assert!(columns.len() >= 8, "{columns:?}");
    let stay = |_: &PixelCatch, _: &mut Random| 1;
    let missed =
        (0..40).filter(|_| play(&mut PixelCatch::default(), &mut random, stay) == (-1.0, 11));
    assert!(missed.count() > 30);
}

#[test]
fn breakout_rewards_who_follows_the_ball() {
    let mut random = Random::of_environment(2, 0);
    let mut follow = |environment: &PixelBreakout, random: &mut Random| {
        let pixels = shown(environment);
        let [before, ball] = [2, 3].map(|channel| cells(&pixels, 4, channel, 255)[0]);
        // Where it lands if nothing but the sides is in its way.
        let mut landing = ball.1 as i32;
        let mut by = landing - before.1 as i32;
        for _ in ball.0..11 {
            if !(0..12).contains(&(landing + by)) {
                by = -by;
            }
            landing += by;
        }
        let paddle = cells(&pixels, 4, 3, 200);
        // With the left or the right half of the paddle, by chance.
        let half = usize::from(random.below(4) == 0);
        let left = paddle.iter().map(|cell| cell.1).min().unwrap_or(0);
        towards(landing as usize, left + half)
    };
    let mut wander = |_: &PixelBreakout, random: &mut Random| random.below(3) as i32;
    let mean = |act: &mut dyn FnMut(&PixelBreakout, &mut Random) -> i32| {
        let mut random = Random::of_environment(3, 0);
        let episodes: Vec<_> =
            (0..10).map(|_| play(&mut PixelBreakout::default(), &mut random, &mut *act)).collect();
        assert!(episodes.iter().all(|&(total, _)| (0.0..=72.0).contains(&total)));
        episodes.iter().map(|(total, _)| total).sum::<f32>() / 10.0
    };
    let (followed, wandered) = (mean(&mut follow), mean(&mut wander));
    assert!(wandered < 3.0, "{wandered}");
    assert!(followed > 10.0 * wandered.max(0.5), "{followed} and {wandered}");
    // At the beginning: 36 bricks, a ball, and a paddle of two cells, four times.
    let mut environment = PixelBreakout::default();
    environment.reset(&mut random);
    let pixels = shown(&environment);
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
    let mut environment = PixelBreakout::default();
    environment.reset(&mut random);
    let mut before = shown(&environment);
    for _ in 0..5 {
        environment.step(&2i32.to_le_bytes(), &mut random);
        let now = shown(&environment);
        for (before, now) in before.as_chunks::<4>().0.iter().zip(now.as_chunks::<4>().0) {
            assert_eq!(before[1..], now[..3]);
        }
        let balls = [2, 3].map(|channel| cells(&now, 4, channel, 255)[0]);
        assert_eq!(balls[0].0 + 1, balls[1].0, "the ball falls");
        before = now;
    }
}

#[test]
fn what_was_saved_goes_on_the_same() {
    fn check<E: NativeEnvironment>(mut environment: E) {
        let mut random = Random::of_environment(5, 0);
        environment.reset(&mut random);
        environment.step(&2i32.to_le_bytes(), &mut random);
        let mut saved = Vec::new();
        environment.save(&mut saved);
        let mut other = environment.clone();
        other.reset(&mut random);
        other.load(&mut &saved[..]).unwrap();
        for _ in 0..8 {
            let outcomes: [Outcome; 2] = [&mut environment, &mut other]
                .map(|one| one.step(&0i32.to_le_bytes(), &mut random.clone()));
            assert_eq!(outcomes[0], outcomes[1]);
            assert_eq!(shown(&environment), shown(&other));
        }
        assert!(other.load(&mut &saved[1..]).is_err());
        assert!(matches!(other.observation_space(), Space::Pixels { .. }));
    }
    check(PixelCatch::default());
    check(PixelBreakout::default());
}
