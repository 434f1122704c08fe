// SPDX-License-Identifier: GPL-2.0

//! Counters.

use kernel::{
    net::device::{
        ethtool::{
            mac_stats::{
                MacStats,
                MacStatsOps, //
            },
            rmon_stats::{
                RmonHistRanges,
                RmonStats,
                RmonStatsOps, //
            },
            statistics::{
                Statistics,
                StatisticsOps, //
            }, //
        },
        queue_stats::{
            QueueStatsOps,
            RxQueueStats,
            TxQueueStats, //
        },
        Device,
        OpsLocked, //
    },
    prelude::*, //
};

use crate::{
    port::{
        Port,
        PortDriver, //
    },
    stats, //
};

impl MacStatsOps for PortDriver {
    fn mac_stats<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> MacStats {
        let (hw, mac) = port.stats.mac(&port.bar);
        mac.mac(hw)
    }
}

impl RmonStatsOps for PortDriver {
    const RMON_RANGES: RmonHistRanges = stats::RMON_RANGES;

    fn rmon_stats<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> RmonStats {
        let (hw, mac) = port.stats.mac(&port.bar);
        mac.rmon(hw)
    }
}

impl QueueStatsOps for PortDriver {
    fn rx_queue_stats<'bound>(
        port: Pin<&Port<'bound>>,
        queue: u16,
        _lock: &mut OpsLocked<'bound>,
    ) -> RxQueueStats {
        port.stats.rx_queue(queue)
    }

    fn tx_queue_stats<'bound>(
        port: Pin<&Port<'bound>>,
        queue: u16,
        _lock: &mut OpsLocked<'bound>,
    ) -> TxQueueStats {
        port.stats.tx_queue(queue)
    }
}

impl StatisticsOps for PortDriver {
    fn statistics<'bound>(
        port: Pin<&Port<'bound>>,
        _dev: &Device,
        statistics: &mut Statistics<'_>,
        _lock: &mut OpsLocked<'bound>,
    ) {
        port.stats.list(&port.bar, &port.ptp.counters, statistics);
    }
}
