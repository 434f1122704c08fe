// SPDX-License-Identifier: GPL-2.0

//! Restarts a receive queue of a network device when it is loaded.
//!
//! The device is one of the network namespace of the task that loads the module, and may have any
//! driver with queue management. The result is that of loading the module.

#![forbid(unsafe_code)]

use kernel::{
    net::device::restart_rx_queue,
    prelude::*, //
};

module! {
    type: RxQueueRestart,
    name: "rust_rx_queue_restart",
    authors: ["The skbulk authors"],
    description: "Restart of a receive queue",
    license: "GPL v2",
    imports_ns: ["NETDEV_INTERNAL"],
    params: {
        ifindex: i32 {
            default: 0,
            description: "Index of the network device",
        },
        queue: u32 {
            default: 0,
            description: "Number of the receive queue",
        },
    },
}

/// Nothing: the work is done when the module has been loaded.
struct RxQueueRestart;

impl kernel::Module for RxQueueRestart {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let ifindex = module_parameters::ifindex.value();
        let queue = module_parameters::queue.value();

        restart_rx_queue(ifindex, queue)?;
        Ok(Self)
    }
}
