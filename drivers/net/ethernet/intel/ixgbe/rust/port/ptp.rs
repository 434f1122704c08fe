// SPDX-License-Identifier: GPL-2.0

//! The clock of a port for its users.

use kernel::{
    net::device::{
        hwtstamp::{
            HwtstampConfig,
            HwtstampOps,
            RxFilter,
            TsStats, //
        },
        ptp_clock::PtpClockOps,
        Device,
        ExtAck,
        OpsLocked, //
    },
    prelude::*,
    ptp_clock::{
        PtpClock,
        ScaledPpm,
        SystemTimestamp, //
    },
    time::Jiffies, //
};

use crate::ptp;

use super::{
    Port,
    PortDriver, //
};

impl PtpClockOps for PortDriver {
    const MAX_ADJ: i32 = ptp::MAX_ADJ;

    fn clock<'a>(port: &'a Port<'_>) -> &'a PtpClock {
        &port.ptp.clock
    }

    fn adjfine<'bound>(port: Pin<&Port<'bound>>, offset: ScaledPpm) -> Result {
        port.ptp.adjust_frequency(&port.bar, offset);
        Ok(())
    }

    fn adjtime<'bound>(port: Pin<&Port<'bound>>, nanoseconds: i64) -> Result {
        port.ptp.adjust(nanoseconds);
        Ok(())
    }

    fn gettimex<'bound>(port: Pin<&Port<'bound>>, system: &mut SystemTimestamp<'_>) -> Result<u64> {
        port.ptp.get(&port.bar, system)
    }

    fn settime<'bound>(port: Pin<&Port<'bound>>, nanoseconds: u64) -> Result {
        port.ptp.set(&port.bar, nanoseconds)
    }

    fn work<'bound>(port: Pin<&Port<'bound>>, dev: &Device) -> Option<Jiffies> {
        port.ptp.work(&port.bar, dev)
    }
}

impl HwtstampOps for PortDriver {
    const RX_FILTERS: &'static [RxFilter] = ptp::RX_FILTERS;

    fn hwtstamp<'bound>(port: Pin<&Port<'bound>>, lock: &mut OpsLocked<'bound>) -> HwtstampConfig {
        *port.stamped.get(lock)
    }

    fn set_hwtstamp<'bound>(
        port: Pin<&Port<'bound>>,
        _dev: &Device,
        wanted: HwtstampConfig,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result<HwtstampConfig> {
        // A device that is down gets it once more when it starts.
        let config = port.ptp.configure(&port.bar, wanted).map_err(|error| {
            extack.refuse(
                error,
                c"the NIC stamps Sync or Delay_Req of PTPv1, or PTPv2 events",
            )
        })?;

        *port.stamped.get_mut(lock) = config;
        Ok(config)
    }

    fn ts_stats<'bound>(port: Pin<&Port<'bound>>) -> Option<TsStats> {
        let counters = &port.ptp.counters;

        Some(TsStats {
            packets: counters.tx_hwtstamps.get(),
            lost: counters.tx_hwtstamp_timeouts.get(),
            errors: counters.tx_hwtstamp_invalid.get() + counters.tx_hwtstamp_skipped.get(),
        })
    }
}
