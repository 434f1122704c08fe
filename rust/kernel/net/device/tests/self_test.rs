// SPDX-License-Identifier: GPL-2.0

//! Tests of self-tests.

use super::plain::{
    PlainDevice,
    Plan,
    Step, //
};

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed, //
};

const NAME: usize = bindings::ETH_GSTRING_LEN as usize;
const SET: u32 = bindings::ethtool_stringset_ETH_SS_TEST;
const OFFLINE: u32 = bindings::ethtool_test_flags_ETH_TEST_FL_OFFLINE;
const FAILED: u32 = bindings::ethtool_test_flags_ETH_TEST_FL_FAILED;

impl PlainDevice<false> {
    fn test_names(&self) -> (Option<c_int>, [[u8; NAME]; 3]) {
        let mut names = [[0x55; NAME]; 3];

        let count = self.with_rtnl(|dev| {
            // SAFETY: The device is registered, RTNL is held, and there is room for more names than
            // the driver has tests.
            unsafe {
                let ops = &*(*dev).ethtool_ops;
                ops.get_strings?(dev, SET, names.as_mut_ptr().cast());
                Some(ops.get_sset_count?(dev, SET as c_int))
            }
        });
        (count, names)
    }

    /// Makes the tests. Returns whether one has failed, and the codes.
    fn test(&self, flags: u32) -> (bool, [u64; 3]) {
        let mut codes = [0, 0, 9];
        let mut test = bindings::ethtool_test {
            flags,
            ..Default::default()
        };

        self.with_rtnl(|dev| {
            // SAFETY: As above.
            unsafe {
                if let Some(self_test) = (*(*dev).ethtool_ops).self_test {
                    self_test(dev, &mut test, codes.as_mut_ptr());
                }
            }
        });
        (test.flags & FAILED != 0, codes)
    }
}

#[macros::kunit_tests(rust_net_self_test)]
mod cases {
    use super::*;

    #[test]
    fn tests_have_names_that_tell_when_they_are_made() -> Result {
        let (count, names) = PlainDevice::<false>::new(Plan::new(1))?.test_names();

        assert_eq!(count, Some(2));
        assert!(names[0].starts_with(b"Second (offline)\0"));
        assert!(names[1].starts_with(b"First (on/offline)\0"));
        assert_eq!(names[2][0], 0x55);
        Ok(())
    }

    #[test]
    fn online_tests_leave_the_device_up() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(1))?;
        let plan = &device.plan;

        device.up()?;
        plan.steps();
        assert_eq!(device.test(0), (false, [0, 0, 9]));
        assert_eq!(plan.steps(), [Step::OnlineTest].into());

        // Each failure shows, but those of tests that are not made.
        plan.codes[0].store(5, Relaxed);
        assert_eq!(device.test(0), (false, [0, 0, 9]));
        plan.codes[1].store(7, Relaxed);
        assert_eq!(device.test(0), (true, [0, 7, 9]));
        Ok(())
    }

    #[test]
    fn offline_tests_have_the_nic_for_themselves() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(2))?;
        let plan = &device.plan;

        device.up()?;
        plan.steps();
        assert_eq!(device.test(OFFLINE), (false, [0, 0, 9]));
        let all = [
            Step::OnlineTest,
            Step::Quiesce,
            Step::OfflineTest,
            Step::Open,
            Step::Start,
        ];
        assert_eq!(plan.steps(), all.into());
        assert!(device.is_linked());
        device.transmit(1)?;

        plan.codes[0].store(5, Relaxed);
        assert_eq!(device.test(OFFLINE), (true, [5, 0, 9]));
        assert!(device.is_linked());
        Ok(())
    }

    #[test]
    fn a_nic_that_is_down_is_reset() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(1))?;
        let plan = &device.plan;

        assert_eq!(device.test(OFFLINE), (false, [0, 0, 9]));
        let all = [Step::OnlineTest, Step::OfflineTest, Step::Reset];
        assert_eq!(plan.steps(), all.into());
        device.up()
    }

    #[test]
    fn a_device_that_does_not_go_up_again_has_failed() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(1))?;
        let plan = &device.plan;

        device.up()?;
        plan.fail_start.store(1, Relaxed);
        assert_eq!(device.test(OFFLINE), (true, [0, 0, 9]));
        assert!(!device.is_linked());
        device.up()?;
        assert!(device.is_linked());
        Ok(())
    }
}
