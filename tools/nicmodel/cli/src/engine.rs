// SPDX-License-Identifier: GPL-2.0
//! The engine turns the fabric, in a thread that sleeps as soon as it can.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nicmodel_device::clock::Clock;
use nicmodel_device::function::{Kick, Source};
use nicmodel_wire::Fabric;

const US: u64 = 1000;
const MS: u64 = 1_000_000;
/// Nanoseconds that the thread polls without a pause after a frame or access.
const SPIN: u64 = 10 * US;
/// Nanoseconds that it goes on polling, and yields, where accesses of the guest are polled for.
const PATIENCE: u64 = 200 * US;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A model whose engine has panicked would go on and never move a frame: all of it ends.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Wakes the engine's thread.
#[derive(Debug, Default)]
pub struct Waker {
    /// The thread is about to sleep or sleeps: only then a kick costs more than a load.
    asleep: AtomicBool,
    signal: Mutex<bool>,
    changed: Condvar,
}

impl Waker {
    fn sleep(&self, nanoseconds: u64) {
        let signal = lock(&self.signal);
        let wait = Duration::from_nanos(nanoseconds);
        let changed = self
            .changed
            .wait_timeout_while(signal, wait, |signal| !*signal);
        let (mut signal, _) = changed.unwrap_or_else(PoisonError::into_inner);
        *signal = false;
    }
}

impl Kick for Waker {
    fn kick(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            *lock(&self.signal) = true;
            self.changed.notify_one();
        }
    }
}

/// Runs the fabric in a loop, and serves requests of the guest from `sources`.
///
/// The doorbells of the rings may be memory that the guest writes without telling, so the thread
/// has to look. While frames or accesses move it looks often; the longer nothing happens the
/// longer it sleeps, and any access that is trapped wakes it.
pub fn run(mut fabric: Fabric, sources: &[Arc<dyn Source>], clock: &dyn Clock, waker: &Waker) {
    let _guard = AbortOnPanic;
    // Sleeps of some microseconds are pointless with the default slack of 50.
    // SAFETY: the call changes only the calling thread's timer slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
    let mut last_busy = clock.now();
    loop {
        // Not `any`: none of them may be passed over.
        let served = sources.iter().fold(false, |any, one| one.poll() | any);
        let turn = fabric.turn();
        let now = clock.now();
        if turn.busy || served {
            last_busy = now;
            continue;
        }
        let idle = now.saturating_sub(last_busy);
        if idle < SPIN {
            std::hint::spin_loop();
            continue;
        }
        if idle < PATIENCE && !sources.is_empty() {
            // A guest that waits for an answer spins as well, and waking this thread takes longer
            // than polling; other threads that want the CPU get it here.
            std::thread::yield_now();
            continue;
        }
        let mut nap = match idle {
            0..=4_999_999 => 20 * US,
            5_000_000..=99_999_999 => 200 * US,
            _ => MS,
        };
        if turn.listening {
            nap = nap.min(200 * US);
        }
        if let Some(deadline) = turn.deadline {
            nap = nap.min(deadline.saturating_sub(now));
        }
        if nap == 0 {
            continue;
        }
        waker.asleep.store(true, Ordering::SeqCst);
        // A doorbell between the turn and the store would not have kicked, and an access before
        // its source sleeps sends no notification.
        let waiting = sources.iter().fold(false, |any, one| one.sleep() | any);
        let turn = fabric.turn();
        if turn.busy || waiting {
            last_busy = clock.now();
        } else {
            waker.sleep(nap);
        }
        waker.asleep.store(false, Ordering::SeqCst);
        for source in sources {
            source.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::sync::mpsc::channel;

    use nicmodel_device::clock::RealClock;

    use super::*;

    struct Panics;

    impl Source for Panics {
        fn poll(&self) -> bool {
            panic!("a bug of the model")
        }
        fn sleep(&self) -> bool {
            false
        }
        fn wake(&self) {}
    }

    const CHILD: &str = "NICMODEL_ENGINE_PANICS";

    #[test]
    fn a_panic_of_the_engine_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
            let fabric = Fabric::new(Vec::new(), Arc::clone(&clock), channel().1);
            run(fabric, &[Arc::new(Panics)], &*clock, &Waker::default());
        }
        let done = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "engine::tests::a_panic_of_the_engine_ends_the_process",
            ])
            .env(CHILD, "1")
            .output()
            .expect("started");
        assert_eq!(done.status.signal(), Some(libc::SIGABRT));
    }
}
