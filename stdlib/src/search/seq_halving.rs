//! Sequential halving (Karnin et al. 2013, "Almost optimal exploration in multi-armed bandits").

/// The number of visits that an action must have to be considered, for each simulation, `[S]`, with
/// `m` initial actions. There is an entry for each `m` from 0 to `max_num_considered_actions`.
pub(super) fn considered_visits(
    max_num_considered_actions: usize,
    num_simulations: usize,
) -> Vec<Vec<f32>> {
    (0..=max_num_considered_actions).map(|m| sequence(m, num_simulations)).collect()
}

/// The visits of [`considered_visits`] for this number of initial actions.
pub(super) fn sequence(considered_at_first: usize, num_simulations: usize) -> Vec<f32> {
    if considered_at_first <= 1 {
        return (0..num_simulations).map(|visits| visits as f32).collect();
    }
    let phases = considered_at_first.next_power_of_two().ilog2() as usize;
    let mut considered = considered_at_first;
    let mut visits = 0;
    let mut sequence = Vec::new();
    while sequence.len() < num_simulations {
        // All actions that are still considered have been visited equally often.
        for _ in 0..(num_simulations / (phases * considered)).max(1) {
            sequence.extend(vec![visits as f32; considered]);
            visits += 1;
        }
        considered = (considered / 2).max(2);
    }
    sequence.truncate(num_simulations);
    sequence
}

#[cfg(test)]
mod tests {
    use super::sequence;

    #[test]
    fn half_of_the_actions_go_on_after_each_phase() {
        // Sixteen simulations over four actions, two phases: two rounds of four, then rounds of
        // two.
        let expected = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5].map(|visits| visits as f32);
        assert_eq!(sequence(4, 16), expected);
        assert_eq!(sequence(1, 3), [0.0, 1.0, 2.0]);
        // Too few simulations for all actions.
        assert_eq!(sequence(4, 2), [0.0, 0.0]);
    }
}
