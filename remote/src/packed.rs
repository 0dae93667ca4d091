//! Compact rewards and flags of a step, since protocol 2: equal rewards are sent once, and flags
//! are bits, or nothing if none is set.

use bytes::Bytes;

/// Flags as bits, the first the lowest of the first byte; empty if none is set.
pub(crate) fn pack_flags(flags: &[u8]) -> Bytes {
    if flags.iter().all(|flag| *flag == 0) {
        return Bytes::new();
    }
    let bits =
        |eight: &[u8]| eight.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag != 0));
    flags.chunks(8).map(bits).collect()
}

/// `n` flags, each 0 or 1.
///
/// # Errors
/// The rest of a sentence that begins with the field's name.
pub(crate) fn unpack_flags(bits: &Bytes, n: usize) -> Result<Bytes, String> {
    if bits.is_empty() {
        return Ok(vec![0; n].into());
    }
    let expected = n.div_ceil(8);
    if bits.len() != expected {
        return Err(format!(
            "must have {expected} bytes, a bit for each of {n} flags, or none, and has {}",
            bits.len()
        ));
    }
    let beyond = bits.last().is_some_and(|last| !n.is_multiple_of(8) && last >> (n % 8) > 0);
    if beyond {
        return Err(format!("has a bit for more than {n} flags"));
    }
    Ok((0..n).map(|i| bits[i / 8] >> (i % 8) & 1).collect())
}

/// Rewards as f32, or one for all if they are equal.
pub(crate) fn pack_rewards(rewards: &[f32]) -> Bytes {
    let said = match rewards {
        [first, rest @ ..] if rest.iter().all(|one| one.to_bits() == first.to_bits()) => {
            &rewards[..1]
        }
        all => all,
    };
    said.iter().flat_map(|reward| reward.to_le_bytes()).collect()
}

/// The rewards of `n` environments, f32 `[n]`.
///
/// # Errors
/// The rest of a sentence that begins with the field's name.
pub(crate) fn unpack_rewards(said: &Bytes, n: usize) -> Result<Bytes, String> {
    match said.len() {
        length if length == 4 * n => Ok(said.clone()),
        4 => Ok(said.repeat(n).into()),
        length => Err(format!(
            "must have {} bytes for {n} environments, or 4 if all have the same reward, and has {length}",
            4 * n
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_back_from_their_bits() {
        for n in [1_usize, 2, 7, 8, 9, 16, 100] {
            for every in [1, 2, 3, 50, 1000] {
                let flags: Vec<u8> = (0..n).map(|i| u8::from(i % every == every - 1)).collect();
                let bits = pack_flags(&flags);
                let none = flags.iter().all(|flag| *flag == 0);
                assert_eq!(bits.len(), if none { 0 } else { n.div_ceil(8) });
                assert_eq!(unpack_flags(&bits, n).as_deref(), Ok(&flags[..]), "{n}, {every}");
            }
        }
        assert_eq!(pack_flags(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 1])[..], [1, 2]);
    }

    #[test]
    fn rewards_come_back() {
        for rewards in [vec![], vec![1.5], vec![1.0; 5], vec![1.0, 2.0], vec![0.0, -0.0]] {
            let packed = pack_rewards(&rewards);
            let all: Vec<u8> = rewards.iter().flat_map(|one| one.to_le_bytes()).collect();
            assert_eq!(unpack_rewards(&packed, rewards.len()).as_deref(), Ok(&all[..]));
        }
        assert_eq!(pack_rewards(&[1.0; 5]).len(), 4);
    }

    #[test]
    fn wrong_lengths_and_bits_are_told() {
        let flags = |bits: &'static [u8], n| unpack_flags(&Bytes::from_static(bits), n);
        let told = flags(&[1, 0], 8).unwrap_err();
        assert_eq!(told, "must have 1 bytes, a bit for each of 8 flags, or none, and has 2");
        assert_eq!(flags(&[4], 2).unwrap_err(), "has a bit for more than 2 flags");
        let told = unpack_rewards(&Bytes::from_static(&[0; 5]), 2).unwrap_err();
        assert!(told.starts_with("must have 8 bytes for 2 environments, or 4"), "{told}");
    }
}
