// SPDX-License-Identifier: GPL-2.0

//! The table, the key and the fields by which received frames are spread over queues.

use kernel::{
    net::device::{
        ethtool::rxfh::{
            FlowType,
            RxfhChange,
            RxfhFields,
            RxfhOps, //
        },
        Device,
        ExtAck,
        OpsLocked, //
    },
    netdev_notice,
    prelude::*,
    sync::atomic::Relaxed, //
};

use crate::{
    port::{
        Port,
        PortDriver, //
    },
    rss, //
};

impl RxfhOps for PortDriver {
    const RXFH_INDIR_SIZE: usize = rss::ENTRIES;
    const RXFH_KEY_SIZE: usize = rss::KEY_LEN;

    fn rxfh<'bound>(
        port: Pin<&Port<'bound>>,
        table: Option<&mut [u32]>,
        key: Option<&mut [u8]>,
        lock: &mut OpsLocked<'bound>,
    ) {
        let spread = port.spread.get(lock);

        if let Some(table) = table {
            for (to, from) in table.iter_mut().zip(spread.table()) {
                *to = u32::from(*from);
            }
        }
        if let Some(key) = key {
            for (to, from) in key.iter_mut().zip(spread.key()) {
                *to = *from;
            }
        }
    }

    fn set_rxfh<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        change: RxfhChange<'_>,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let spread = port.spread.get_mut(lock);

        if let Some(table) = change.table {
            spread
                .set_table(table)
                .map_err(|error| extack.refuse(error, c"entries must be less than 16"))?;
        }
        if let Some(key) = change.key {
            spread.set_key(key);
        }
        // If the device is down, `start()` passes it to the NIC.
        if dev.is_running() {
            spread.apply(&port.bar);
            let pairs = port.pairs(lock);
            port.filters
                .spread_is_even
                .store(port.spread.get(lock).is_even(pairs), Relaxed);
        }
        Ok(())
    }

    fn rxfh_fields<'bound>(
        port: Pin<&Port<'bound>>,
        flow: FlowType,
        _lock: &mut OpsLocked<'bound>,
    ) -> RxfhFields {
        port.hashing.get(flow)
    }

    fn set_rxfh_fields<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        flow: FlowType,
        fields: RxfhFields,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let before = port.hashing.get(flow);

        port.hashing
            .set(flow, fields)
            .map_err(|error| extack.refuse(error, c"ports are hashed for TCP and UDP only"))?;
        if before != fields && rss::separates_fragments(flow, fields) {
            netdev_notice!(
                dev,
                "fragments of UDP may arrive on another queue, out of order\n"
            );
        }
        // If the device is down, `start()` passes it to the NIC.
        if dev.is_running() {
            port.hashing.apply(&port.bar, port.pairs(lock));
        }
        Ok(())
    }
}
