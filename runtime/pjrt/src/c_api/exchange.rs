//! The calls that exchange values between the replicas of several processes on the host's
//! processor. The replicas of a process meet, and the last replica to arrive exchanges with the
//! other processes for the whole process.
//!
//! Sums are computed in the order of the replicas within a process, and in MPI's order between
//! processes. So they are equal in every process, and in every run with the same numbers of
//! replicas and processes.

use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use podracer_compiler::DType;
use podracer_compiler::ops::exchange;
use podracer_mpi::{Combine, MpiError, Number, World};

use super::handler::{Call, CallFrame, Operand, answer, register};
use super::plugin::Plugin;
use crate::RuntimeError;

/// The world of this process's programs.
static WORLD: OnceLock<World> = OnceLock::new();

/// Lets a plugin's programs exchange with the other processes of the world. There is one world in a process.
pub(super) fn join(plugin: Plugin, world: World) -> Result<(), RuntimeError> {
    if WORLD.set(world).is_err() {
        return Ok(());
    }
    register(plugin, exchange::INDEX, index)?;
    register(plugin, exchange::SUM, sum)?;
    register(plugin, exchange::MAX, max)?;
    register(plugin, exchange::MIN, min)?;
    register(plugin, exchange::GATHER, gather)
}

unsafe extern "C" fn index(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: XLA made the call.
    unsafe {
        answer(frame, |call| {
            let Parts { world, mine, local, result, .. } = Parts::of(call)?;
            let index = (world.rank() * local + mine) as i32;
            result.bytes.copy_from_slice(&index.to_le_bytes());
            Ok(())
        })
    }
}

unsafe extern "C" fn sum(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: XLA made the call.
    unsafe { answer(frame, |call| Parts::of(call)?.combine(Combine::Sum)) }
}

unsafe extern "C" fn max(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: XLA made the call.
    unsafe { answer(frame, |call| Parts::of(call)?.combine(Combine::Max)) }
}

unsafe extern "C" fn min(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: XLA made the call.
    unsafe { answer(frame, |call| Parts::of(call)?.combine(Combine::Min)) }
}

unsafe extern "C" fn gather(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: XLA made the call.
    unsafe { answer(frame, |call| Parts::of(call)?.gather()) }
}

/// A call's operands and result by name.
struct Parts<'a> {
    world: World,
    /// This replica's number in its process.
    mine: usize,
    /// The replicas of a process.
    local: usize,
    operand: Operand<'a>,
    result: Operand<'a>,
}

impl<'a> Parts<'a> {
    fn of(call: Call<'a>) -> Result<Self, String> {
        let world = *WORLD.get().ok_or("this process is one of no world")?;
        let mut arguments = call.arguments.into_iter();
        let (Some(mine), Some(local)) = (arguments.next(), arguments.next()) else {
            return Err("expected this replica's number and how many there are".to_owned());
        };
        let operand = arguments.next().unwrap_or(Operand { dtype: DType::U8, bytes: &mut [] });
        let result = call.results.into_iter().next().ok_or("expected a result")?;
        Ok(Parts { world, mine: mine.scalar()?, local: local.scalar()?, operand, result })
    }

    fn combine(self, how: Combine) -> Result<(), String> {
        let Parts { world, mine, local, operand, result } = self;
        let dtype = operand.dtype;
        let number = number(dtype).ok_or_else(|| format!("{dtype} is not combined by MPI"))?;
        if operand.bytes.len() != result.bytes.len() {
            return Err("expected a result of the operand's type".to_owned());
        }
        meet((mine, local), [operand.bytes, result.bytes], &mut |replicas| {
            let ([from, into], others) = replicas.split_first_mut().ok_or("nobody met")?;
            // MPI says nothing of the greater of a number and a NaN, which is NaN here.
            let extremum = dtype.is_float() && how != Combine::Sum;
            if others.is_empty() && !extremum {
                return world.all_reduce((number, how), Some(from), into).map_err(message);
            }
            // Operands stay as they are: the program may read them again.
            into.copy_from_slice(from);
            others.iter().for_each(|[other, _]| fold(number, how, other, into));
            if extremum {
                let mut all = vec![0; world.size() * into.len()];
                world.all_gather(into, &mut all).map_err(message)?;
                all.chunks(into.len().max(1)).for_each(|one| fold(number, how, one, into));
            } else {
                world.all_reduce((number, how), None, into).map_err(message)?;
            }
            others.iter_mut().for_each(|[_, other]| other.copy_from_slice(into));
            Ok(())
        })
    }

    fn gather(self) -> Result<(), String> {
        let Parts { world, mine, local, operand, result } = self;
        if result.bytes.len() != world.size() * local * operand.bytes.len() {
            return Err("expected a result with every replica's operands".to_owned());
        }
        meet((mine, local), [operand.bytes, result.bytes], &mut |replicas| {
            let own: Vec<u8> = replicas.iter().flat_map(|[own, _]| own.iter().copied()).collect();
            let ([_, all], others) = replicas.split_first_mut().ok_or("nobody met")?;
            world.all_gather(&own, all).map_err(message)?;
            others.iter_mut().for_each(|[_, other]| other.copy_from_slice(all));
            Ok(())
        })
    }
}

/// An operand and a result.
type Pair<'a> = [&'a mut [u8]; 2];

/// The work of the last replica to arrive, on behalf of the process: it gets every replica's pair,
/// in order.
type Work<'w> = dyn FnMut(&mut [Pair<'_>]) -> Result<(), String> + 'w;

/// The place where a process's replicas meet.
#[derive(Default)]
struct Meeting {
    /// The number of meetings before.
    round: u64,
    /// The pairs of those who have come.
    came: Vec<Option<RawPair>>,
    /// The outcome of the previous meeting. The next outcome is stored after every replica has left
    /// this meeting.
    outcome: Option<String>,
}

/// A replica's operand and result, which stay where they are until the meeting is over.
struct RawPair([(*mut u8, usize); 2]);

// SAFETY: the replica that brought the pointers waits, and does not touch them, until the meeting
// is over.
unsafe impl Send for RawPair {}

static MEETING: Mutex<Meeting> = Mutex::new(Meeting { round: 0, came: Vec::new(), outcome: None });
static OVER: Condvar = Condvar::new();

/// The longest time that a replica of a process waits for another. They run the same program, so a
/// longer wait means that a replica has failed.
const LONGEST: Duration = Duration::from_secs(300);

/// Waits for all replicas of this process; the last to come does the work for all.
fn meet(
    (mine, local): (usize, usize),
    mut pair: Pair<'_>,
    work: &mut Work<'_>,
) -> Result<(), String> {
    if local == 1 {
        return work(std::slice::from_mut(&mut pair));
    }
    let mut meeting: MutexGuard<'_, Meeting> =
        MEETING.lock().unwrap_or_else(PoisonError::into_inner);
    let round = meeting.round;
    meeting.came.resize_with(local, || None);
    meeting.came[mine] = Some(RawPair(pair.map(|bytes| (bytes.as_mut_ptr(), bytes.len()))));
    if meeting.came.iter().all(Option::is_some) {
        let own = |(start, size)| {
            // SAFETY: the buffers of different replicas are different, and their owners wait below, or are here.
            unsafe { std::slice::from_raw_parts_mut(start, size) }
        };
        let came = meeting.came.drain(..).flatten();
        let mut pairs: Vec<Pair<'_>> = came.map(|RawPair(pair)| pair.map(own)).collect();
        meeting.outcome = work(&mut pairs).err();
        meeting.round += 1;
        OVER.notify_all();
    } else {
        let waiting = |meeting: &mut Meeting| meeting.round == round;
        let waited = OVER.wait_timeout_while(meeting, LONGEST, waiting);
        let (returned, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        meeting = returned;
        if timeout.timed_out() {
            meeting.came[mine] = None;
            return Err(format!(
                "another device of this process did not come to exchange values within {} s",
                LONGEST.as_secs()
            ));
        }
    }
    meeting.outcome.clone().map_or(Ok(()), Err)
}

/// The words of an error in the program that the user sees.
fn message(error: MpiError) -> String {
    format!("an exchange with the other processes: {error}")
}

fn number(dtype: DType) -> Option<Number> {
    Some(match dtype {
        DType::I8 => Number::I8,
        DType::I16 => Number::I16,
        DType::I32 => Number::I32,
        DType::I64 => Number::I64,
        DType::U8 => Number::U8,
        DType::U16 => Number::U16,
        DType::U32 => Number::U32,
        DType::U64 => Number::U64,
        DType::F32 => Number::F32,
        DType::F64 => Number::F64,
        _ => return None,
    })
}

/// Combines numbers into others, element by element. An extremum of a NaN is NaN.
fn fold(number: Number, how: Combine, from: &[u8], into: &mut [u8]) {
    macro_rules! fold {
        ($ty:ty, $add:expr) => {{
            let combine = |a: $ty, b: $ty| match how {
                Combine::Sum => $add(a, b),
                // The comparison with itself is false for a NaN only.
                #[allow(clippy::eq_op)]
                Combine::Max if a > b || a != a => a,
                #[allow(clippy::eq_op)]
                Combine::Min if a < b || a != a => a,
                Combine::Max | Combine::Min => b,
            };
            let (from, _) = from.as_chunks();
            let (into, _) = into.as_chunks_mut();
            for (into, from) in into.iter_mut().zip(from) {
                *into =
                    combine(<$ty>::from_ne_bytes(*into), <$ty>::from_ne_bytes(*from)).to_ne_bytes();
            }
        }};
    }
    match number {
        Number::I8 => fold!(i8, i8::wrapping_add),
        Number::I16 => fold!(i16, i16::wrapping_add),
        Number::I32 => fold!(i32, i32::wrapping_add),
        Number::I64 => fold!(i64, i64::wrapping_add),
        Number::U8 => fold!(u8, u8::wrapping_add),
        Number::U16 => fold!(u16, u16::wrapping_add),
        Number::U32 => fold!(u32, u32::wrapping_add),
        Number::U64 => fold!(u64, u64::wrapping_add),
        Number::F32 => fold!(f32, |a, b| a + b),
        Number::F64 => fold!(f64, |a, b| a + b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(how: Combine, from: &[f32], into: &[f32]) -> Vec<f32> {
        let bytes = |values: &[f32]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_ne_bytes()).collect()
        };
        let mut into = bytes(into);
        fold(Number::F32, how, &bytes(from), &mut into);
        into.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
    }

    #[test]
    fn numbers_are_combined_and_a_nan_stays() {
        assert_eq!(folded(Combine::Sum, &[1.0, 2.0], &[3.0, -5.0]), [4.0, -3.0]);
        assert_eq!(folded(Combine::Max, &[1.0, 2.0], &[3.0, -5.0]), [3.0, 2.0]);
        assert_eq!(folded(Combine::Min, &[1.0, 2.0], &[3.0, -5.0]), [1.0, -5.0]);
        for how in [Combine::Max, Combine::Min] {
            let both = folded(how, &[f32::NAN, 1.0], &[1.0, f32::NAN]);
            assert!(both.iter().all(|value| value.is_nan()), "{how:?}: {both:?}");
        }
    }

    #[test]
    fn the_last_to_come_works_for_all_and_all_get_its_error() {
        for error in [None, Some("it failed".to_owned())] {
            let results: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3)
                    .map(|mine| {
                        let error = error.clone();
                        scope.spawn(move || {
                            let (mut operand, mut result) = ([mine as u8 + 1], [0]);
                            let met = meet((mine, 3), [&mut operand, &mut result], &mut |pairs| {
                                let all: u8 = pairs.iter().map(|[operand, _]| operand[0]).sum();
                                pairs.iter_mut().for_each(|[_, result]| result[0] = all);
                                error.clone().map_or(Ok(()), Err)
                            });
                            (met, result[0])
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let expected = (error.map_or(Ok(()), Err), 6);
            assert_eq!(results, vec![expected; 3]);
        }
    }
}
