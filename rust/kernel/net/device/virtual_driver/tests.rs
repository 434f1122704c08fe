// SPDX-License-Identifier: GPL-2.0

//! Tests of the callbacks of a virtual device.

use super::*;

use crate::{
    error::to_result,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

use core::{
    mem::MaybeUninit,
    ptr, //
};

/// Calls of the core, and whether the device cannot be opened.
struct Log {
    opened: Atomic<u32>,
    stopped: Atomic<u32>,
    bytes: Atomic<u64>,
    is_broken: Atomic<bool>,
}

impl Log {
    fn new() -> Result<Arc<Self>> {
        let log = Self {
            opened: Atomic::new(0),
            stopped: Atomic::new(0),
            bytes: Atomic::new(0),
            is_broken: Atomic::new(false),
        };
        Ok(Arc::new(log, GFP_KERNEL)?)
    }
}

struct Driver(Arc<Log>);

#[vtable]
impl VirtualDriver for Driver {
    const NAME: &'static CStr = c"kunit%d";

    fn open(&self, dev: &Device) -> Result {
        if self.0.is_broken.load(Relaxed) {
            return Err(EIO);
        }
        self.0.opened.fetch_add(1, Relaxed);
        dev.carrier_on();
        Ok(())
    }

    fn stop(&self, dev: &Device) {
        dev.carrier_off();
        self.0.stopped.fetch_add(1, Relaxed);
    }

    fn start_xmit(&self, skb: SkBuff) {
        // Others are those of IPv6.
        if skb.len() == 10 {
            self.0.bytes.fetch_add(10, Relaxed);
        }
    }

    fn get_stats64(&self, stats: &mut Stats64<'_>) {
        stats.tx_bytes(self.0.bytes.load(Relaxed));
    }
}

struct Sink;

#[vtable]
impl VirtualDriver for Sink {
    const NAME: &'static CStr = c"kunit%d";

    fn start_xmit(&self, _skb: SkBuff) {}
}

fn registered<T: VirtualDriver>(driver: T) -> Result<DeviceOf<T>> {
    let mut device = DeviceOf::new(Ok(driver))?;

    device.register()?;
    Ok(device)
}

/// Opens or closes a device.
fn set_up<T: VirtualDriver>(device: &DeviceOf<T>, up: bool) -> Result {
    let mut result = 0;

    // SAFETY: The device is registered. Tests run in process context.
    unsafe {
        bindings::rtnl_lock();
        if up {
            result = bindings::dev_open(device.0.as_raw(), ptr::null_mut());
        } else {
            bindings::dev_close(device.0.as_raw());
        }
        bindings::rtnl_unlock();
    }
    to_result(result)
}

/// Has the driver transmit a packet of ten bytes.
fn transmit<T: VirtualDriver>(device: &DeviceOf<T>) -> Result {
    let dev = device.0.as_raw();

    // SAFETY: The device is registered.
    let start_xmit = unsafe { (*(*dev).netdev_ops).ndo_start_xmit }.ok_or(EINVAL)?;
    // SAFETY: As above.
    let skb = unsafe { bindings::__netdev_alloc_skb(dev, 64, bindings::GFP_KERNEL) };
    let skb = NonNull::new(skb).ok_or(ENOMEM)?.as_ptr();
    // SAFETY: The packet is new: it has room, and is ours to transmit.
    unsafe {
        bindings::skb_put(skb, 10);
        start_xmit(skb, dev);
    }
    Ok(())
}

fn stats<T: VirtualDriver>(device: &DeviceOf<T>) -> bindings::rtnl_link_stats64 {
    let mut stats = MaybeUninit::uninit();

    // SAFETY: The device is registered. The counters are filled in.
    unsafe {
        bindings::dev_get_stats(device.0.as_raw(), stats.as_mut_ptr());
        stats.assume_init()
    }
}

#[macros::kunit_tests(rust_net_virtual_driver)]
mod cases {
    use super::*;

    #[test]
    fn a_device_opens_transmits_and_stops() -> Result {
        let log = Log::new()?;
        let device = registered(Driver(log.clone()))?;
        // SAFETY: The device is registered.
        let dev = unsafe { Device::from_raw(device.0.as_raw()) };

        assert!(!dev.is_running() && !dev.is_carrier_ok());
        set_up(&device, true)?;
        assert!(dev.is_running() && dev.is_carrier_ok());
        transmit(&device)?;
        transmit(&device)?;
        set_up(&device, false)?;
        assert!(!dev.is_running() && !dev.is_carrier_ok());

        assert_eq!(
            (log.opened.load(Relaxed), log.stopped.load(Relaxed)),
            (1, 1)
        );
        let stats = stats(&device);
        assert_eq!((stats.tx_bytes, stats.tx_packets), (20, 0));
        Ok(())
    }

    #[test]
    fn a_device_that_goes_is_closed_before() -> Result {
        let log = Log::new()?;
        let device = registered(Driver(log.clone()))?;

        set_up(&device, true)?;
        drop(device);
        assert_eq!(
            (log.opened.load(Relaxed), log.stopped.load(Relaxed)),
            (1, 1)
        );
        assert!(Arc::into_unique_or_drop(log).is_some());
        Ok(())
    }

    #[test]
    fn an_error_of_open_reaches_users() -> Result {
        let log = Log::new()?;
        let device = registered(Driver(log.clone()))?;

        log.is_broken.store(true, Relaxed);
        assert_eq!(set_up(&device, true), Err(EIO));
        assert_eq!(log.stopped.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn callbacks_are_optional() -> Result {
        let device = registered(Sink)?;

        set_up(&device, true)?;
        transmit(&device)?;
        assert_eq!(stats(&device).tx_bytes, 0);
        set_up(&device, false)
    }

    #[test]
    fn a_device_has_a_local_address() -> Result {
        let device = registered(Sink)?;

        // SAFETY: The device is registered, and nothing changes its address.
        let first = unsafe { (*device.0.as_raw()).dev_addr.read() };
        assert_eq!(first & 3, 2);
        Ok(())
    }
}
