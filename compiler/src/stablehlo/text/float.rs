//! Floats as MLIR prints them.
//!
//! A float is six digits (`1.500000e+00`) if they read back as the same bits. Otherwise it is as
//! many digits as its type may need (`0.333333343`), or its bits in hexadecimal. The digits come
//! from LLVM's `APFloat`, which cuts an integer off at powers of ten by an estimate of its length.
//! It therefore rounds some last digits towards zero and the others half up.

use crate::types::DType;
use half::{bf16, f16};

/// The number of digits that is tried first.
const FEW: usize = 6;

/// The most zeros between the point and the digits of a number without an exponent.
const MOST_ZEROS: i64 = 3;

/// The text of a float of this dtype: its value, and its bits.
pub(super) fn float(dtype: DType, value: f64, bits: u64) -> String {
    if !value.is_finite() {
        return hexadecimal(bits);
    }
    let short = few_digits(value);
    if reads_back(dtype, &short, bits) {
        return short;
    }
    all_digits(dtype, value).unwrap_or_else(|| hexadecimal(bits))
}

fn hexadecimal(bits: u64) -> String {
    format!("0x{bits:X}")
}

fn reads_back(dtype: DType, text: &str, bits: u64) -> bool {
    // No 16-bit float is as near to the middle between two others as six digits are to a float.
    let Ok(value) = text.parse::<f64>() else {
        return false;
    };
    bits == match dtype {
        DType::F16 => f16::from_f64(value).to_bits().into(),
        DType::BF16 => bf16::from_f64(value).to_bits().into(),
        DType::F32 => text.parse().map_or(0, |value: f32| value.to_bits().into()),
        _ => value.to_bits(),
    }
}

/// `1.500000e+00`: one digit, a point and six decimals; the last decimal is 0.
fn few_digits(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let Decimal { digits, exponent } = Decimal::new(value, FEW);
    let (first, rest) = digits.split_at(1);
    let way = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}.{rest:0<FEW$}e{way}{:02}", exponent.abs())
}

/// `0.333333343`, `3.40282347E+38`; `None` for integers without a point, which would be read as
/// integers.
fn all_digits(dtype: DType, value: f64) -> Option<String> {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let precision = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 => 24,
        _ => 53,
    };
    let most = 2 + precision * 59 / 196;
    let Decimal { digits, exponent } = Decimal::new(value, most);
    // Zeros between the last digit and the point.
    let padding = exponent + 1 - digits.len() as i64;
    if exponent < -MOST_ZEROS || padding > MOST_ZEROS || exponent >= most as i64 {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let way = if exponent < 0 { '-' } else { '+' };
        return Some(format!("{sign}{first}.{rest}E{way}{}", exponent.abs()));
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return Some(format!("{sign}0.{zeros}{digits}"));
    }
    (padding < 0).then(|| {
        let (whole, rest) = digits.split_at(exponent as usize + 1);
        format!("{sign}{whole}.{rest}")
    })
}

/// A number `d.ddd * 10^exponent`, without trailing zeros except for 0 itself.
struct Decimal {
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// The absolute value of a finite float to at most this many digits.
    fn new(value: f64, most: usize) -> Self {
        if value == 0.0 {
            return Decimal { digits: "0".to_owned(), exponent: 0 };
        }
        // No number of twenty digits rounds up here: floats are not that near to such numbers.
        let exact = format!("{:.60e}", value.abs());
        let (mantissa, exponent) = exact.split_once('e').expect("the form has an exponent");
        let mut exponent: i64 = exponent.parse().expect("the exponent is an integer");
        let exact: Vec<u8> = mantissa.bytes().filter(|&byte| byte != b'.').collect();
        // APFloat represents the float as an integer times a power of ten, and drops digits of the
        // integer by its bits.
        let (bits, decimals) = integer_form(value);
        let required = ((most * 196).div_ceil(59)) as u64;
        let dropped = (bits.saturating_sub(required) * 59 / 196) as i64;
        let kept = (exponent + 1 + decimals - dropped).max(0) as usize;
        let mut digits: Vec<u8> = exact[..most.min(kept)].to_vec();
        if kept > most && exact[most] >= b'5' {
            while digits.last() == Some(&b'9') {
                digits.pop();
            }
            match digits.last_mut() {
                Some(last) => *last += 1,
                None => {
                    digits.push(b'1');
                    exponent += 1;
                }
            }
        }
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
        Decimal { digits: digits.into_iter().map(char::from).collect(), exponent }
    }
}

/// The float as `integer * 10^-decimals` with the fewest decimals: the bits of the integer, and the decimals.
fn integer_form(value: f64) -> (u64, i64) {
    let bits = value.to_bits();
    let (biased, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    let significand = if biased == 0 { fraction } else { fraction | 1 << 52 };
    let zeros = significand.trailing_zeros();
    let exponent = (biased.max(1) as i64) - 1075 + i64::from(zeros);
    let odd = significand >> zeros;
    if exponent >= 0 {
        return (u64::from(u64::BITS - odd.leading_zeros()) + exponent as u64, 0);
    }
    // odd * 2^-n is odd * 5^n * 10^-n.
    let mut limbs = vec![odd & 0xffff_ffff, odd >> 32];
    for _ in 0..-exponent {
        let mut carry = 0;
        for limb in &mut limbs {
            let product = *limb * 5 + carry;
            *limb = product & 0xffff_ffff;
            carry = product >> 32;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
    let top = limbs.last().map_or(0, |limb| u64::BITS - limb.leading_zeros());
    (u64::from(top) + 32 * (limbs.len() as u64 - 1), -exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32(value: f32) -> String {
        float(DType::F32, f64::from(value), value.to_bits().into())
    }

    #[test]
    fn few_digits_all_digits_or_bits() {
        assert_eq!(f32(1.5), "1.500000e+00");
        assert_eq!(f32(-0.0), "-0.000000e+00");
        assert_eq!(f32(1.0 / 3.0), "0.333333343");
        assert_eq!(f32(f32::MAX), "3.40282347E+38");
        assert_eq!(f32(-1_234_567.0), "0xC996B438");
        assert_eq!(f32(f32::NAN), "0x7FC00000");
        let least = f64::from_bits(1);
        assert_eq!(float(DType::F64, least, 1), "4.940660e-324");
    }
}
