// SPDX-License-Identifier: GPL-2.0

//! Timestamps of packets.

use super::super::prelude::*;

impl<T: Driver> OptionalOps<T> {
    /// Tells users that the times at which packets are sent can be had.
    ///
    /// For a driver whose packets go to the NIC through [`inflight`](crate::net::inflight), which
    /// takes these times for senders that ask for them (`SO_TIMESTAMPING`).
    pub const fn ts_info(mut self) -> Self {
        self.ethtool.get_ts_info = Some(bindings::ethtool_op_get_ts_info);
        self
    }
}
