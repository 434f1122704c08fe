// SPDX-License-Identifier: GPL-2.0

//! Tests of statistics.

use super::fixture::Fixture;

use crate::{
    prelude::*,
    sync::atomic::Relaxed, //
};

#[macros::kunit_tests(rust_net_ethtool)]
mod cases {
    use super::*;

    #[test]
    fn statistics_stay_in_their_buffers() -> Result {
        let device = Fixture::new(1)?;

        assert_eq!(device.count_statistics(), Some(2));

        // The driver adds more than were counted. The third element is behind the buffer.
        device.log.statistics.store(3, Relaxed);
        let names = device.statistic_names([[0x55; _]; 3]);
        assert!(names[1].starts_with(b"statistic_1\0"));
        assert_eq!(names[2][0], 0x55);

        let values = device.statistic_values(2, [7; 3]);
        assert_eq!(values, [1, 2, 7]);
        Ok(())
    }

    #[test]
    fn no_statistics_are_not_supported_for_the_moment() -> Result {
        let device = Fixture::new(1)?;

        device.log.statistics.store(0, Relaxed);
        assert_eq!(device.count_statistics(), Some(EOPNOTSUPP.to_errno()));
        device.log.statistics.store(2, Relaxed);
        // Nobody has room for those that have not been counted.
        assert_eq!(device.statistic_values(2, [7; 2]), [7; 2]);
        assert_eq!(device.statistic_names([[0x55; _]; 1])[0][0], 0x55);
        assert_eq!(device.count_statistics(), Some(2));
        assert_eq!(device.statistic_values(2, [7; 2]), [1, 2]);
        Ok(())
    }

    #[test]
    fn no_driver_gets_a_device_without_references() -> Result {
        let device = Fixture::new(1)?;

        assert_eq!(device.count_statistics(), Some(2));
        assert_eq!(device.statistic_values(2, [0; 2]), [1, 2]);
        assert_eq!(device.log.uninitialized.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn the_number_of_statistics_stays() -> Result {
        let device = Fixture::new(1)?;

        assert_eq!(device.count_statistics(), Some(2));

        // A user of the callbacks allocates buffers for that many, and then counts again, as DSA
        // does: that must not make the buffers larger.
        device.log.statistics.store(3, Relaxed);
        assert_eq!(device.count_statistics(), Some(2));
        let names = device.statistic_names([[0x55; _]; 3]);
        assert!(names[1].starts_with(b"statistic_1\0"));
        assert_eq!(names[2][0], 0x55);

        // The entries behind belong to that user, even if `n_stats` counts it.
        assert_eq!(device.statistic_values(3, [7; 3]), [1, 2, 7]);

        // Those that are missing stay as the core has made them.
        device.log.statistics.store(1, Relaxed);
        assert_eq!(device.count_statistics(), Some(2));
        assert_eq!(device.statistic_values(2, [0; 3]), [1, 0, 0]);
        Ok(())
    }
}
