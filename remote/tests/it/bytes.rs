//! Bytes on the wire, counted at the server's socket.

use podracer_envs::Space;
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep};
use podracer_remote::worker::{WorkerOptions, WorkerStatus, work};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Learner, Place, run_of, zeros};

/// The steps after which environments wait for the test: bytes are counted while nothing is on its way.
const PAUSES: [usize; 2] = [20, 320];

/// Environments that show the same picture for ever. Where they pay, rewards differ, and an eighth of them ends in each step.
struct Still {
    spec: HostSpec,
    pays: bool,
    steps: usize,
    /// Notifies the test of a pause, and then waits for its permission to continue.
    pause: Arc<Mutex<(Sender<()>, Receiver<()>)>>,
}

impl HostEnvironment for Still {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }
    fn reset(&mut self, _: u64, _: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        step.begin();
        Ok(())
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.spec.check_actions(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        if PAUSES.contains(&self.steps) {
            let pause = self.pause.lock().expect("no thread panicked");
            // A test that has failed takes no word of it, and goes away.
            let _ = pause.0.send(());
            let _ = pause.1.recv();
        }
        self.steps += 1;
        step.begin();
        if self.pays {
            step.reward.iter_mut().enumerate().for_each(|(i, reward)| *reward = i as f32);
            step.terminated.iter_mut().step_by(8).for_each(|flag| *flag = 1);
        }
        Ok(())
    }
}

/// Bytes of each step on the wire, both ways, less those that open the stream.
fn bytes_of_a_step(environments: usize, observation: Space, pays: bool) -> f64 {
    let place = Place::new();
    let action = Space::discrete(6);
    let spec = HostSpec { truncates: !pays, ..HostSpec::new(environments, observation, action) };
    let learner = Learner::start(&place.options(), run_of("still", spec.clone()), zeros, false);
    let options = WorkerOptions {
        addresses: vec![place.address()],
        security: None,
        environments,
        batches: 1,
    };
    let (stop, status) = (Arc::new(AtomicBool::new(false)), Arc::<WorkerStatus>::default());
    let (flag, numbers) = (stop.clone(), status.clone());
    let ((reached, pauses), (go_on, goes_on)) = (channel(), channel());
    let pause = Arc::new(Mutex::new((reached, goes_on)));
    let working = std::thread::spawn(move || {
        let still = || Still { spec: spec.clone(), pays, steps: 0, pause: pause.clone() };
        work(&options, &|_, _| Ok(Box::new(still())), &numbers, &flag)
    });
    let seen = PAUSES.map(|step| {
        pauses.recv_timeout(Duration::from_secs(60)).expect("the environments take their steps");
        let status = learner.server().totals().status();
        assert_eq!(
            status.environment_steps as usize,
            (step + 1) * environments,
            "with the reset's"
        );
        if step == PAUSES[1] {
            stop.store(true, Ordering::Release);
        }
        go_on.send(()).expect("the environments wait");
        status.received + status.sent
    });
    working.join().expect("it does not panic").expect("it was told to stop");
    (seen[1] - seen[0]) as f64 / (PAUSES[1] - PAUSES[0]) as f64
}

#[test]
fn a_step_is_hardly_longer_than_its_arrays() {
    let check = |n: usize, observation: Space, pays: bool, arrays: usize| {
        let bytes = bytes_of_a_step(n, observation, pays);
        let ratio = bytes / (n * arrays) as f64;
        assert!((1.0..1.05).contains(&ratio), "{ratio:.4} times the arrays of {n}, pays: {pays}");
    };
    // Pictures and four floats, with actions: apart from them there is almost nothing if rewards
    // are equal and nothing ends.
    check(16, Space::pixels([84, 84, 4]), false, 84 * 84 * 4 + 4);
    check(256, Space::unbounded([4]), false, 16 + 4);
    // Rewards that differ are counted with the arrays: compared with four floats they are a fifth.
    // Flags are a bit each.
    check(16, Space::pixels([84, 84, 4]), true, 84 * 84 * 4 + 4);
    check(256, Space::unbounded([4]), true, 16 + 4 + 4);
}
