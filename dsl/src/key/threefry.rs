//! The cipher: threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

use crate::tensor::{Tensor, create};
use crate::trace::called_opaquely;

const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// The constant that keeps a zero key from being weak.
const PARITY: u32 = 0x1BD1_1BDA;

/// Encrypts counters, element by element, under the key of two u32 scalars. A counter that is `None` is 0.
#[track_caller]
pub(super) fn threefry2x32(
    a: Tensor,
    b: Tensor,
    high: Option<Tensor>,
    low: Option<Tensor>,
) -> (Tensor, Tensor) {
    let _call = called_opaquely("threefry2x32");
    let schedule = [a, b, a ^ b ^ PARITY];
    let mut x = high.map_or(a, |high| high + a);
    let mut y = low.map_or(b, |low| low + b);
    for group in 0..5 {
        for &bits in &ROTATIONS[group % 2] {
            x += y;
            y = y.rotate_left(bits) ^ x;
        }
        x += schedule[(group + 1) % 3];
        y = y + schedule[(group + 2) % 3] + (group as u32 + 1);
    }
    (x, y)
}

/// Splits a key into `N`: the encrypted counters `0..N`, two words each. They are computed one by
/// one, so that each key is computed where it is used; slices of a vector of keys would keep XLA
/// from fusing.
#[track_caller]
pub(super) fn halves_split<const N: usize>((a, b): (Tensor, Tensor)) -> [(Tensor, Tensor); N] {
    let mut keys = Vec::with_capacity(N);
    for i in 0..N as u32 {
        let counter = if i == 0 { None } else { Some(create::scalar(i)) };
        keys.push(threefry2x32(a, b, None, counter));
    }
    std::array::from_fn(|i| keys[i])
}

#[cfg(test)]
mod tests {
    use super::threefry2x32;
    use crate::prelude::*;
    use serde_json::Value;

    #[test]
    fn the_cipher_gives_the_known_answers() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/random.json");
        let text = std::fs::read_to_string(path).expect("the golden file");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let words = |record: &Value| -> Vec<i128> {
            let words = record["data"].as_array().expect("words").iter();
            words.map(|word| word.as_u64().expect("a word").into()).collect()
        };
        let records = file["records"].as_array().expect("records").iter();
        let mut count = 0;
        for record in records.filter(|record| record["op"] == "threefry2x32") {
            let [key, counter] = [0, 1].map(|i| words(&record["inputs"][i]));
            let arguments = [key, counter].map(|words| Array::ints(DType::U32, [2], &words));
            let traced = trace((u32([2]), u32([2])), |(key, counter)| {
                let halves = [key.index(0), key.index(1)];
                let [high, low] = [counter.index(0), counter.index(1)];
                threefry2x32(halves[0], halves[1], Some(high), Some(low))
            });
            let got = traced.expect("it traces").eval(&arguments).expect("they fit");
            let got: Vec<i128> = got.iter().map(|word| word.to_f64()[0] as i128).collect();
            assert_eq!(got, words(&record["outputs"][0]));
            count += 1;
        }
        assert!(count > 0, "there are no records");
    }
}
