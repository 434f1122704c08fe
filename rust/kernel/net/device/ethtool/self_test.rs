// SPDX-License-Identifier: GPL-2.0

//! Self-tests (`ethtool -t`).

use super::{
    super::{
        inner::Inner,
        ops,
        ops_lock::{
            Locks,
            OpsLocked, //
        },
        optional_ops::OptionalOps,
        Device,
        Driver,
        Rtnl, //
    },
    strings::{
        Statistics,
        StringSet, //
    }, //
};

use crate::{
    bindings,
    prelude::*, //
};

use core::slice;

#[cfg(CONFIG_NET_SELFTESTS)]
mod loopback;

// ETHTOOL_OP_NEEDS_RTNL_TEST: `bindgen` does not see through `BIT()`. The helpers in C check the
// value.
const NEEDS_RTNL: u32 = 1 << 9;

const OFFLINE: u32 = bindings::ethtool_test_flags_ETH_TEST_FL_OFFLINE;
const FAILED: u32 = bindings::ethtool_test_flags_ETH_TEST_FL_FAILED;

/// A test has failed. Users see the code, which is not zero: a number of the driver's that tells
/// where to look, or that of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestFailure(u64);

impl TestFailure {
    /// A failure with this code; zero stands for success, and becomes one.
    #[inline]
    pub fn with_code(code: u32) -> Self {
        Self(u64::from(code.max(1)))
    }
}

impl From<Error> for TestFailure {
    fn from(error: Error) -> Self {
        Self::with_code(error.to_errno().unsigned_abs())
    }
}

/// The result of a test.
pub type TestResult = Result<(), TestFailure>;

/// A function that makes a test.
type Run<T> = for<'a, 'bound> fn(
    Pin<&'a <T as Driver>::Data<'bound>>,
    &'a Device,
    &'a mut OpsLocked<'bound>,
) -> TestResult;

/// A function that puts a NIC into loopback, or takes it out again.
#[cfg(CONFIG_NET_SELFTESTS)]
type Switch<T> = for<'a, 'bound> fn(
    Pin<&'a <T as Driver>::Data<'bound>>,
    &'a Device,
    bool,
    &'a mut Locks<'bound>,
) -> Result;

/// The way in which a test is made.
#[cfg(CONFIG_NET_SELFTESTS)]
type Loopback<T> = fn(&Inner<T>, Switch<T>, &mut Locks<'static>) -> TestResult;

enum Kind<T: Driver> {
    Online(Run<T>),
    Offline(Run<T>),
    #[cfg(CONFIG_NET_SELFTESTS)]
    // With the function that makes the test: only drivers that have it refer to the kernel's.
    Loopback(Switch<T>, Loopback<T>),
}

/// A test of a NIC for `ethtool -t`, see [`SelfTestOps::SELF_TESTS`].
pub struct SelfTest<T: Driver> {
    /// Its name, without a remark on whether it is made offline.
    name: &'static str,
    kind: Kind<T>,
}

impl<T: Driver> SelfTest<T> {
    /// A test that does not disturb traffic. It always runs, whether the device is up or down.
    pub const fn online(name: &'static str, run: Run<T>) -> Self {
        Self {
            name,
            kind: Kind::Online(run),
        }
    }

    /// A test that needs the NIC for itself. It runs if users ask for all tests, while the device
    /// is down: [`Driver::quiesce`] has stopped the NIC, and it knows of no memory.
    pub const fn offline(name: &'static str, run: Run<T>) -> Self {
        Self {
            name,
            kind: Kind::Offline(run),
        }
    }

    /// An offline test of frames that come back to the NIC. For it, the device goes up, out of
    /// reach of the stack, and `switch` puts the NIC into loopback (`true`): what it sends it
    /// receives, through its filters, and nothing leaves or comes from elsewhere, whether there is
    /// a link or not. A driver that reports the carrier leaves that off meanwhile.
    ///
    /// The rest is done here: each transmit queue sends frames of several lengths to the address
    /// of the device, which have to come back, undamaged, to any receive queue, and by GRO. Then
    /// the device goes down, and `switch` takes the NIC out of loopback (`false`), also if it
    /// could not put it there. That has no queues then, and need not undo what
    /// [`Driver::start`] and [`Driver::reset`] do anyway.
    ///
    /// The code of a failure is the number of an error, plus 65536 times that of the transmit
    /// queue that fails, if any, counted from 1: `ETIMEDOUT` if a frame has not come back,
    /// `EBADMSG` if it was damaged, `EEXIST` if it has come twice.
    #[cfg(CONFIG_NET_SELFTESTS)]
    pub const fn loopback(name: &'static str, switch: Switch<T>) -> Self {
        Self {
            name,
            kind: Kind::Loopback(switch, loopback::run),
        }
    }

    const fn is_offline(&self) -> bool {
        !matches!(self.kind, Kind::Online(_))
    }

    /// Makes the test. The device is down if it is one of those for that.
    fn run(&self, inner: &Inner<T>, locks: &mut Locks<'static>) -> TestResult {
        match self.kind {
            Kind::Online(run) | Kind::Offline(run) => {
                run(inner.data(), inner.dev(), locks.ops_mut())
            }
            #[cfg(CONFIG_NET_SELFTESTS)]
            Kind::Loopback(switch, run) => run(inner, switch, locks),
        }
    }
}

/// Makes all tests of a kind. Returns whether one of them has failed.
fn run_all<T: SelfTestOps>(
    is_offline: bool,
    codes: &mut [u64],
    mut run: impl FnMut(&SelfTest<T>) -> TestResult,
) -> bool {
    let mut has_failed = false;

    for (test, code) in T::SELF_TESTS.iter().zip(codes) {
        if test.is_offline() != is_offline {
            continue;
        }
        *code = match run(test) {
            Ok(()) => 0,
            Err(TestFailure(code)) => {
                has_failed = true;
                code
            }
        };
    }
    has_failed
}

/// Lets the queueing disciplines of a device that runs go on. Without a carrier, they do so when
/// that comes.
fn start_disciplines(dev: &Device, _rtnl: &mut Rtnl) {
    // SAFETY: The device is registered, and RTNL is held.
    unsafe { bindings::dev_activate(dev.as_raw()) };
}

/// Takes the device down, makes the offline tests, and takes it up again. Returns whether something
/// has failed.
fn run_offline<T: SelfTestOps>(
    inner: &Inner<T>,
    codes: &mut [u64],
    locks: &mut Locks<'static>,
) -> bool {
    let was_up = inner.dev().is_running();

    inner.go_down(locks);
    let mut has_failed = run_all::<T>(true, codes, |test| {
        if inner.is_stuck(locks) {
            Err(EIO.into())
        } else {
            test.run(inner, locks)
        }
    });

    // Either resets the NIC.
    if was_up {
        match inner.restart_or_close(locks) {
            Ok(()) => start_disciplines(inner.dev(), locks),
            Err(_) => has_failed = true,
        }
    } else if !inner.is_stuck(locks) {
        if let Err(error) = T::reset(inner.data(), inner.dev(), locks) {
            crate::netdev_err!(inner.dev(), "reset after the self-test failed: {error:?}\n");
            has_failed = true;
        }
    }
    has_failed
}

/// A driver with tests of its NIC, see [`OptionalOps::self_test`].
pub trait SelfTestOps: Driver {
    /// The tests of the NIC, at least one, for `ethtool -t`.
    ///
    /// Online ones are made whatever the device does. For offline ones, a device that is up goes
    /// down, and up again after them, as for a restart: they have the NIC for themselves. After
    /// those of a device that is down there is [`Driver::reset`].
    const SELF_TESTS: &'static [SelfTest<Self>];
}

impl<T: SelfTestOps> OptionalOps<T> {
    /// Adds the tests of [`SelfTestOps`].
    pub const fn self_test(mut self) -> Self {
        const {
            // The core warns of a set of no names.
            assert!(!T::SELF_TESTS.is_empty());
            assert!(
                T::HAS_RESET || !has_offline::<T>(T::SELF_TESTS),
                "offline tests need `reset`"
            );
        }
        self.ethtool.self_test = Some(Self::run_self_tests);
        self.ethtool.op_needs_rtnl |= NEEDS_RTNL;
        self.strings[bindings::ethtool_stringset_ETH_SS_TEST as usize] = Some(StringSet {
            // CAST: There are few.
            count: |_dev| T::SELF_TESTS.len() as c_int,
            names: Self::name_self_tests,
        });
        self
    }

    /// # Safety
    ///
    /// See [`StringSet`].
    unsafe fn name_self_tests(_dev: *mut bindings::net_device, data: *mut u8) {
        // SAFETY: By the safety requirements.
        let mut names = unsafe { Statistics::names(data, T::SELF_TESTS.len()) };

        for test in T::SELF_TESTS {
            let when = if test.is_offline() { "off" } else { "on/off" };

            names.add(fmt!("{} ({}line)", test.name, when), 0);
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `test`. `codes`
    /// must have room for as many values as the driver has tests.
    unsafe extern "C" fn run_self_tests(
        dev: *mut bindings::net_device,
        test: *mut bindings::ethtool_test,
        codes: *mut u64,
    ) {
        // SAFETY: The core calls us for a registered device. It holds the lock of its operations,
        // and RTNL: if the lock is another one, `op_needs_rtnl` asks for that.
        let (inner, mut locks) = unsafe { ops::locked_rtnl::<T>(dev) };
        // SAFETY: `test` is valid.
        let test = unsafe { &mut *test };
        // SAFETY: The core has allocated `codes` for as many tests as `get_sset_count()` has
        // returned, zeroed.
        let codes = unsafe { slice::from_raw_parts_mut(codes, T::SELF_TESTS.len()) };

        if let Err(error) = inner.check_reachable() {
            codes.fill(TestFailure::from(error).0);
            test.flags |= FAILED;
            return;
        }
        // The state of the link, for instance, is that before the device goes down.
        let mut has_failed = run_all::<T>(false, codes, |test| test.run(inner, &mut locks));
        if test.flags & OFFLINE != 0 && const { has_offline::<T>(T::SELF_TESTS) } {
            has_failed |= run_offline(inner, codes, &mut locks);
        }
        if has_failed {
            test.flags |= FAILED;
        }
    }
}

/// Whether there are offline tests among these.
const fn has_offline<T: Driver>(tests: &[SelfTest<T>]) -> bool {
    let mut index = 0;

    while index < tests.len() {
        if tests[index].is_offline() {
            return true;
        }
        index += 1;
    }
    false
}
