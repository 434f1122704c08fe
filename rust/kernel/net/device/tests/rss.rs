// SPDX-License-Identifier: GPL-2.0

//! Tests of the table by which received packets are spread over queues.

use super::{
    super::{
        ethtool::rxfh::{
            FlowType,
            RxfhChange,
            RxfhFields,
            RxfhOps, //
        },
        ops_lock::Locks,
        registration::Registration,
        Device,
        ExtAck,
        Info,
        OpsLocked, //
    },
    nics::{
        self,
        Nic,
        Plan, //
    }, //
};

use crate::{
    bindings,
    error::to_result,
    prelude::*,
    sync::Arc, //
};

impl RxfhOps for Nic {
    const RXFH_INDIR_SIZE: usize = 2;
    const RXFH_KEY_SIZE: usize = 0;

    fn rxfh<'bound>(
        _: Pin<&Arc<Plan>>,
        _: Option<&mut [u32]>,
        _: Option<&mut [u8]>,
        _: &mut OpsLocked<'bound>,
    ) {
    }

    fn set_rxfh<'bound>(
        _: Pin<&Arc<Plan>>,
        _: &Device,
        _: RxfhChange<'_>,
        _: &mut OpsLocked<'bound>,
        _: &ExtAck<'_>,
    ) -> Result {
        Ok(())
    }

    fn rxfh_fields<'bound>(
        _: Pin<&Arc<Plan>>,
        _: FlowType,
        _: &mut OpsLocked<'bound>,
    ) -> RxfhFields {
        RxfhFields::Addresses
    }

    fn set_rxfh_fields<'bound>(
        _: Pin<&Arc<Plan>>,
        _: &Device,
        _: FlowType,
        _: RxfhFields,
        _: &mut OpsLocked<'bound>,
        _: &ExtAck<'_>,
    ) -> Result {
        Err(EOPNOTSUPP)
    }
}

/// A device with so many queues of each kind.
fn device(queues: u16) -> Result<Registration<Nic>> {
    let info = Info {
        queues,
        ..nics::info()
    };

    nics::register(&nics::plan(info)?)
}

/// Runs `f` with the operations of a device, and RTNL held.
fn locked<R>(
    device: &Registration<Nic>,
    f: impl FnOnce(&bindings::ethtool_ops, *mut bindings::net_device) -> R,
) -> R {
    let dev = device.0.as_raw();

    // SAFETY: The device is registered. Tests run in process context.
    unsafe {
        bindings::rtnl_lock();
        let result = f(&*(*dev).ethtool_ops, dev);
        bindings::rtnl_unlock();
        result
    }
}

/// The number by which the core divides.
fn count(device: &Registration<Nic>) -> Option<u32> {
    locked(device, |ops, dev| {
        let get = ops.get_rx_ring_count?;
        // SAFETY: The device is registered, and RTNL is held.
        Some(unsafe { get(dev) })
    })
}

fn set_table(device: &Registration<Nic>, mut table: [u32; 2]) -> Result {
    let mut param = bindings::ethtool_rxfh_param {
        indir: table.as_mut_ptr(),
        ..Default::default()
    };

    locked(device, |ops, dev| {
        let set = ops.set_rxfh.ok_or(EOPNOTSUPP)?;
        // SAFETY: The device is registered, RTNL is held, and the table has as many entries as that
        // of the driver.
        to_result(unsafe { set(dev, &mut param, core::ptr::null_mut()) })
    })
}

#[macros::kunit_tests(rust_net_rss)]
mod cases {
    use super::*;

    #[test]
    fn queues_in_use_count() -> Result {
        let device = device(2)?;
        let inner = device.inner();

        assert_eq!(count(&device), Some(2));
        set_table(&device, [0, 1])?;
        assert_eq!(set_table(&device, [0, 2]), Err(EINVAL));

        Locks::with(inner.dev(), |locks| {
            inner.reconfigure(|config| config.channels = 1, locks)
        })?;
        assert_eq!(count(&device), Some(1));
        set_table(&device, [0, 0])?;
        assert_eq!(set_table(&device, [0, 1]), Err(EINVAL));
        Ok(())
    }
}
