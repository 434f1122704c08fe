// SPDX-License-Identifier: GPL-2.0

//! Tests of a network device whose bus device is unbound from its driver.

use super::{
    super::register,
    dummy::{
        Dummy,
        Event,
        Log, //
    },
    fixture::own_name,
    irq::Irq,
    UP, //
};

use crate::{
    bindings,
    device::{
        Core,
        CoreInternal,
        Device, //
    },
    driver::{
        self,
        registrations::{
            self,
            Shutdown,
            Suspension, //
        }, //
    },
    error::{
        from_err_ptr,
        to_result, //
    },
    platform,
    prelude::*,
    softirq::BhGuard,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    },
    LocalModule,
    ModuleMetadata,
    ThisModule, //
};

use core::ptr;

pub(super) const QUIET: &[Event] = &[
    Event::Quiesce,
    Event::TxDropped,
    Event::PollerDropped,
    Event::ResourceGone,
];
const MODULE: &ThisModule = &<LocalModule as ModuleMetadata>::THIS_MODULE;

/// The log of all devices of these tests, which run one after the other.
static LOG: SetOnce<Arc<Log>> = SetOnce::new();

/// Whether the driver of the bus device gives up after it has registered the network device.
static FAIL: Atomic<u32> = Atomic::new(0);

/// Whether it registers a second one.
static TWO: Atomic<u32> = Atomic::new(0);

/// The driver of the bus device.
struct BusDriver;

/// The private data of that driver.
struct BusData;

impl Drop for BusData {
    fn drop(&mut self) {
        if let Some(log) = LOG.as_ref() {
            log.add(Event::BusDataDropped);
        }
    }
}

impl platform::Driver for BusDriver {
    type IdInfo = ();
    type Data<'bound> = BusData;

    fn probe<'bound>(
        pdev: &'bound platform::Device<Core<'_>>,
        _info: Option<&'bound ()>,
    ) -> impl PinInit<BusData, Error> + 'bound {
        pin_init::pin_init_scope(move || {
            let log = LOG.as_ref().ok_or(ENODEV)?;

            register::<Dummy>(pdev.as_ref(), log.clone())?;
            if TWO.load(Relaxed) != 0 {
                register::<Dummy>(pdev.as_ref(), log.clone())?;
            }
            if FAIL.load(Relaxed) != 0 {
                return Err(EIO);
            }
            Ok(Ok::<_, Error>(BusData))
        })
    }
}

/// A bus device.
pub(super) struct BusDevice(*mut bindings::platform_device);

impl BusDevice {
    fn new(name: &CStr) -> Result<Self> {
        let info = bindings::platform_device_info {
            name: name.as_char_ptr(),
            id: bindings::PLATFORM_DEVID_NONE,
            ..pin_init::zeroed()
        };

        // SAFETY: What `info` does not have is zero.
        from_err_ptr(unsafe { bindings::platform_device_register_full(&info) }).map(Self)
    }

    /// The first network device, if there is one. It must not be used when the bus device is gone.
    fn child(&self) -> Option<*mut bindings::net_device> {
        // SAFETY: The device is registered.
        let child = unsafe {
            bindings::device_find_child(
                &raw mut (*self.0).dev,
                ptr::null(),
                Some(bindings::device_match_any),
            )
        };
        if child.is_null() {
            return None;
        }
        // SAFETY: This returns the reference from above. The bus device keeps its child.
        unsafe { bindings::put_device(child) };
        // SAFETY: All children of this device are network devices.
        Some(unsafe { crate::container_of!(child, bindings::net_device, dev) })
    }
}

impl Drop for BusDevice {
    fn drop(&mut self) {
        // SAFETY: We have registered the device.
        unsafe { bindings::platform_device_unregister(self.0) };
    }
}

/// In front of the name of our driver.
const NAME: &str = "rust_net_unbind";

/// Logs probes of our driver that have failed, while it is registered with the bus.
struct FailedProbes(KBox<bindings::notifier_block>);

impl FailedProbes {
    fn log() -> Result<Self> {
        let mut notifier = KBox::new(
            bindings::notifier_block {
                notifier_call: Some(Self::notify),
                ..pin_init::zeroed()
            },
            GFP_KERNEL,
        )?;

        // SAFETY: Both are valid until `drop()` undoes this.
        to_result(unsafe {
            bindings::bus_register_notifier(&raw const bindings::platform_bus_type, &mut *notifier)
        })?;
        Ok(Self(notifier))
    }

    /// # Safety
    ///
    /// To be called by the core, as a notifier of a bus.
    unsafe extern "C" fn notify(
        _notifier: *mut bindings::notifier_block,
        event: c_ulong,
        dev: *mut c_void,
    ) -> c_int {
        let has_failed = event as u32 == bindings::bus_notifier_event_BUS_NOTIFY_DRIVER_NOT_BOUND;
        let dev = dev.cast::<bindings::device>();

        if !has_failed {
            return 0;
        }
        // SAFETY: A device whose probe has failed still has the driver, and that its name. The core
        // is about to let go of it.
        let name = unsafe { CStr::from_char_ptr((*(*dev).driver).name) };
        if name.to_bytes().starts_with(NAME.as_bytes()) {
            if let Some(log) = LOG.as_ref() {
                log.add(Event::ProbeFailed);
            }
        }
        0
    }
}

impl Drop for FailedProbes {
    fn drop(&mut self) {
        // SAFETY: It was registered.
        unsafe {
            bindings::bus_unregister_notifier(&raw const bindings::platform_bus_type, &mut *self.0)
        };
    }
}

/// A bus device with its driver.
pub(super) struct Fixture {
    // In this order.
    pub(super) bus: BusDevice,
    _driver: Pin<KBox<driver::Registration<platform::Adapter<BusDriver>>>>,
    irq: Irq,
    pub(super) log: &'static Arc<Log>,
    _name: CString,
}

impl Fixture {
    pub(super) fn new() -> Result<Self> {
        if LOG.as_ref().is_none() {
            LOG.populate(Log::new()?);
        }
        let log = LOG.as_ref().ok_or(ENODEV)?;
        let irq = Irq::new()?;
        let name = own_name(NAME)?;
        // SAFETY: The name is dropped after the driver, which alone keeps the reference.
        let theirs: &'static CStr = unsafe { &*ptr::from_ref(&*name) };

        log.take(&[]);
        log.irq[0].store(irq.0, Relaxed);
        log.resource.store(1, Relaxed);
        Ok(Self {
            _driver: KBox::pin_init(driver::Registration::new(theirs, MODULE), GFP_KERNEL)?,
            bus: BusDevice::new(theirs)?,
            irq,
            log,
            _name: name,
        })
    }

    pub(super) fn up(&self) -> Result {
        let dev = self.bus.child().ok_or(ENODEV)?;

        // SAFETY: The device is registered. Tests run in process context.
        unsafe {
            // IPv6 would send packets of its own.
            bindings::netdev_add_priv_flags(dev, bindings::netdev_priv_flags_IFF_NO_ADDRCONF);
            bindings::rtnl_lock();
            let result = to_result(bindings::dev_open(dev, ptr::null_mut()));
            bindings::rtnl_unlock();
            result
        }
    }
}

impl Fixture {
    /// Reads the counters of the network device.
    fn read_stats(&self) -> Result {
        let mut stats = bindings::rtnl_link_stats64::default();

        self.with_ethtool(|dev, _| {
            // SAFETY: The device is registered.
            unsafe { bindings::dev_get_stats(dev, &mut stats) };
            Ok(())
        })
    }

    /// The bus device.
    pub(super) fn parent(&self) -> *mut bindings::device {
        // SAFETY: The device is registered. This only takes an address.
        unsafe { &raw mut (*self.bus.0).dev }
    }

    /// Runs `f` with the `ethtool` operations of the network device, and RTNL held.
    pub(super) fn with_ethtool<R>(
        &self,
        f: impl FnOnce(*mut bindings::net_device, &bindings::ethtool_ops) -> Result<R>,
    ) -> Result<R> {
        let dev = self.bus.child().ok_or(ENODEV)?;

        // SAFETY: The device is registered. Tests run in process context.
        unsafe {
            bindings::rtnl_lock();
            let result = f(dev, &*(*dev).ethtool_ops);
            bindings::rtnl_unlock();
            result
        }
    }
}

impl BusDevice {
    /// The device in callbacks of the bus.
    fn device(&self) -> &Device<CoreInternal<'_>> {
        // SAFETY: The device is registered. The tests do not do anything else with it meanwhile, as
        // if it were locked.
        unsafe { Device::from_raw(&raw mut (*self.0).dev) }
    }

    /// The bus's part of unbinding the device, after which the core lets go of its DMA. The bus
    /// does the same again when the device is unbound.
    fn remove(&self) -> Result {
        let dev = self.device().as_raw();
        // SAFETY: The device is registered.
        let remove = unsafe { (*(*dev).bus).remove }.ok_or(ENODEV)?;

        // SAFETY: The device is bound, and there are no other callbacks meanwhile.
        unsafe { remove(dev) };
        Ok(())
    }

    /// The bus's part of a shutdown of the system.
    pub(super) fn shut_down(&self, why: Shutdown) -> bool {
        registrations::shutdown_all(self.device(), why)
    }

    pub(super) fn suspend(&self, why: Suspension) -> Result {
        registrations::suspend_all(self.device(), why)
    }

    fn reset(&self, why: Suspension) -> Result {
        registrations::reset_all(self.device(), why)
    }

    pub(super) fn resume(&self, why: Suspension) -> Result {
        registrations::resume_all(self.device(), why)
    }
}

#[macros::kunit_tests(rust_net_unbind)]
mod cases {
    use super::*;

    #[test]
    fn unbinding_unregisters() -> Result {
        let device = Fixture::new()?;
        let log = device.log;

        assert!(log.take(&[]));
        drop(device);
        assert!(log.take(&[Event::DataDropped, Event::BusDataDropped]));
        Ok(())
    }

    /// As where a case has failed, and left its devices.
    #[test]
    fn devices_do_not_need_the_names_of_others() -> Result {
        let left = Fixture::new()?;
        let device = Fixture::new()?;

        assert!(left.bus.child().is_some() && device.bus.child().is_some());
        Ok(())
    }

    #[test]
    fn a_probe_that_fails_unregisters() -> Result {
        FAIL.store(1, Relaxed);
        let device = Fixture::new();
        FAIL.store(0, Relaxed);

        let device = device?;
        assert!(device.bus.child().is_none());
        assert!(device.log.take(&[Event::DataDropped]));
        Ok(())
    }

    #[test]
    fn the_bus_unregisters() -> Result {
        let device = Fixture::new()?;
        let log = device.log;

        device.up()?;
        assert!(log.take(UP));
        device.bus.remove()?;
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::ResourceGone,
            Event::DataDropped
        ]));
        drop(device);
        assert!(log.take(&[Event::BusDataDropped]));
        Ok(())
    }

    #[test]
    fn the_bus_unregisters_if_a_probe_fails() -> Result {
        let _probes = FailedProbes::log()?;

        FAIL.store(1, Relaxed);
        let device = Fixture::new();
        FAIL.store(0, Relaxed);
        assert!(device?.log.take(&[Event::DataDropped, Event::ProbeFailed]));
        Ok(())
    }

    /// A reset by one of them disturbs no other.
    #[test]
    fn all_have_ended_before_one_goes() -> Result {
        TWO.store(1, Relaxed);
        let device = Fixture::new();
        TWO.store(0, Relaxed);
        let device = device?;
        let log = device.log;

        // The older one; the other one stays down.
        device.up()?;
        assert!(log.take(UP));
        device.bus.remove()?;
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::ResourceGone,
            Event::DataDropped,
            Event::DataDropped
        ]));
        drop(device);
        assert!(log.take(&[Event::BusDataDropped]));
        Ok(())
    }

    #[test]
    fn resources_outlive_the_callbacks() -> Result {
        let device = Fixture::new()?;
        let log = device.log;

        device.up()?;
        assert!(log.take(UP));
        {
            let _bh = BhGuard::new();
            device.irq.raise();
        }
        // SAFETY: Tests run in process context.
        unsafe { bindings::synchronize_net() };
        assert!(log.take(&[Event::Poll, Event::ResourceUsed, Event::Rearm]));

        // The resource is newer than the network device, and was added while that was up.
        drop(device);
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::ResourceGone,
            Event::DataDropped,
            Event::BusDataDropped
        ]));
        Ok(())
    }
    #[test]
    fn nothing_moves_after_a_shutdown() -> Result {
        let device = Fixture::new()?;
        let log = device.log;

        device.up()?;
        assert!(log.take(UP));
        for _ in 0..2 {
            assert!(!device.bus.shut_down(Shutdown::PowerOff));
        }
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::ResourceGone
        ]));
        assert_eq!(device.up(), Err(ENODEV));
        // The NIC may sleep (D3).
        let unreachable = log.unreachable.load(Relaxed);
        device.read_stats()?;
        assert_eq!(log.unreachable.load(Relaxed), unreachable + 1);

        drop(device);
        assert!(log.take(&[Event::DataDropped, Event::BusDataDropped]));
        Ok(())
    }

    #[test]
    fn sleep_outlasts_an_error() -> Result {
        let device = Fixture::new()?;
        let (bus, log) = (&device.bus, device.log);

        device.up()?;
        assert!(log.take(UP));
        bus.suspend(Suspension::Sleep)?;
        assert!(log.take(QUIET));

        // The device is away already, and stays so.
        bus.suspend(Suspension::Failure)?;
        bus.reset(Suspension::Error)?;
        bus.resume(Suspension::Error)?;
        assert!(log.take(&[]));

        bus.resume(Suspension::Sleep)?;
        assert!(log.take(&[Event::Reset, Event::Open, Event::Start]));
        // Nor is it resumed twice.
        bus.resume(Suspension::Sleep)?;
        assert!(log.take(&[]));
        Ok(())
    }

    #[test]
    fn a_slot_is_reset_before_users_return() -> Result {
        let device = Fixture::new()?;
        let (bus, log) = (&device.bus, device.log);

        device.up()?;
        assert!(log.take(UP));
        bus.suspend(Suspension::Error)?;
        assert!(log.take(QUIET));
        bus.reset(Suspension::Error)?;
        assert!(log.take(&[Event::Reset]));
        bus.resume(Suspension::Error)?;
        assert!(log.take(UP));
        Ok(())
    }

    #[test]
    fn all_are_reset_before_one_is_resumed() -> Result {
        TWO.store(1, Relaxed);
        let device = Fixture::new();
        TWO.store(0, Relaxed);
        let device = device?;
        let (bus, log) = (&device.bus, device.log);

        // The older one; the other one stays down.
        device.up()?;
        assert!(log.take(UP));
        for why in [Suspension::Sleep, Suspension::Reset, Suspension::Error] {
            bus.suspend(why)?;
            assert!(log.take(QUIET));
            bus.resume(why)?;
            assert!(log.take(&[Event::Reset, Event::Reset, Event::Open, Event::Start]));
        }
        Ok(())
    }

    #[test]
    fn unbinding_while_suspended_unregisters() -> Result {
        let device = Fixture::new()?;
        let log = device.log;

        device.up()?;
        assert!(log.take(UP));
        device.bus.suspend(Suspension::Error)?;
        assert!(log.take(QUIET));
        drop(device);
        assert!(log.take(&[Event::DataDropped, Event::BusDataDropped]));
        Ok(())
    }
}
