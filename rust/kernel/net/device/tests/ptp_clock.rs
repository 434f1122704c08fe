// SPDX-License-Identifier: GPL-2.0

//! Tests of NICs with a clock, and of the time stamps by it.

use super::{
    super::{
        hwtstamp::{
            HwtstampConfig,
            HwtstampOps,
            RxFilter,
            TsStats, //
        },
        ops_lock::Locks,
        ptp_clock::PtpClockOps,
        Device,
        Driver,
        ExtAck,
        Immediate,
        Info,
        MacAddress,
        Opening,
        OpsCell,
        OpsLocked,
        OptionalOps, //
    },
    registered::Registered, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    error::to_result,
    net::{
        napi::{
            Poll,
            Polled, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::{
            DropReason,
            TxSkBuff, //
        }, //
    },
    prelude::*,
    ptp_clock::{
        PtpClock,
        ScaledPpm,
        SystemTimestamp, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta,
        Jiffies, //
    }, //
};

const START: u64 = 5_000_000_007;

/// The requests that a device has had.
struct Told {
    time: Atomic<u64>,
    /// The offset of the frequency, of a million.
    frequency: Atomic<u64>,
    works: Atomic<u32>,
    /// The driver does not take the times of the system.
    forgets_system: Atomic<u32>,
    /// The work of the clock finds a link.
    finds_link: Atomic<u32>,
}

struct Data<'bound> {
    clock: PtpClock,
    told: Arc<Told>,
    config: OpsCell<'bound, HwtstampConfig>,
}

/// A driver with a clock that stands still.
struct Clocked;

#[vtable]
impl Driver for Clocked {
    type Bus = device::Device<Bound>;
    type Setup = Arc<Told>;
    type Data<'bound> = Data<'bound>;
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    fn probe<'bound>(
        _bus: &'bound device::Device<Bound>,
        told: Arc<Told>,
    ) -> Result<(Info, impl PinInit<Data<'bound>, Error>)> {
        let data = Data {
            clock: PtpClock::new(),
            told,
            config: OpsCell::new(HwtstampConfig::default()),
        };

        Ok((Info::new(MacAddress::from([2, 0, 0, 0, 0, 1])), Ok(data)))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        cx.add_virtual_queue_vector(|_| Ok(((), ()))).map(|_| ())
    }

    fn start<'bound>(_: Pin<&Data<'bound>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        Ok(())
    }

    fn quiesce<'bound>(_: Pin<&Data<'bound>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        Ok(())
    }

    fn poll<'bound>(_: Pin<&Data<'bound>>, (): &mut (), _: &Poll<'_>) -> Polled {
        Polled::Idle { received: 0 }
    }

    fn rearm<'bound>(_: Pin<&Data<'bound>>, _: u16) {}

    fn start_xmit<'bound, 'call>(
        _: Pin<&Data<'bound>>,
        (): &mut (),
        _: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        _: bool,
    ) -> Xmit<'call> {
        skb.drop_with(DropReason::NotSpecified);
        Xmit::Taken
    }

    const OPS: OptionalOps<Self> = OptionalOps::NONE.ptp_clock().hwtstamp();
}

impl PtpClockOps for Clocked {
    const MAX_ADJ: i32 = 1_000_000;

    fn clock<'a>(data: &'a Data<'_>) -> &'a PtpClock {
        &data.clock
    }

    fn adjfine<'bound>(data: Pin<&Data<'bound>>, offset: ScaledPpm) -> Result {
        data.told.frequency.store(offset.adjust(1_000_000), Relaxed);
        Ok(())
    }

    fn adjtime<'bound>(data: Pin<&Data<'bound>>, nanoseconds: i64) -> Result {
        let time = data.told.time.load(Relaxed);

        data.told
            .time
            .store(time.wrapping_add_signed(nanoseconds), Relaxed);
        Ok(())
    }

    fn gettimex<'bound>(data: Pin<&Data<'bound>>, system: &mut SystemTimestamp<'_>) -> Result<u64> {
        let read = || data.told.time.load(Relaxed);

        if data.told.forgets_system.load(Relaxed) != 0 {
            return Ok(read());
        }
        Ok(system.around(read))
    }

    fn settime<'bound>(data: Pin<&Data<'bound>>, nanoseconds: u64) -> Result {
        data.told.time.store(nanoseconds, Relaxed);
        Ok(())
    }

    fn work<'bound>(data: Pin<&Data<'bound>>, dev: &Device) -> Option<Jiffies> {
        data.told.works.fetch_add(1, Relaxed);
        if data.told.finds_link.load(Relaxed) != 0 {
            dev.carrier_on();
        }
        None
    }
}

impl HwtstampOps for Clocked {
    const RX_FILTERS: &'static [RxFilter] = &[RxFilter::PtpV2Event];

    fn hwtstamp<'bound>(data: Pin<&Data<'bound>>, lock: &mut OpsLocked<'bound>) -> HwtstampConfig {
        *data.config.get(lock)
    }

    fn set_hwtstamp<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        wanted: HwtstampConfig,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result<HwtstampConfig> {
        let rx = match wanted.rx {
            RxFilter::None | RxFilter::PtpV2Event => wanted.rx,
            RxFilter::PtpV2Sync => RxFilter::PtpV2Event,
            _ => return Err(extack.refuse(ERANGE, c"no such filter")),
        };
        let config = HwtstampConfig { rx, ..wanted };

        *data.config.get_mut(lock) = config;
        Ok(config)
    }

    fn ts_stats<'bound>(data: Pin<&Data<'bound>>) -> Option<TsStats> {
        let has_frequency = data.told.frequency.load(Relaxed) != 0;

        has_frequency.then_some(TsStats {
            packets: 1,
            lost: 2,
            errors: 3,
        })
    }
}

/// A device, and what it is told.
struct Fixture {
    device: Registered<Clocked>,
    told: Arc<Told>,
}

impl Fixture {
    fn new() -> Result<Self> {
        let told = Arc::new(
            Told {
                time: Atomic::new(START),
                frequency: Atomic::new(0),
                works: Atomic::new(0),
                forgets_system: Atomic::new(0),
                finds_link: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;

        Ok(Self {
            device: Registered::new("rust_net_clock", told.clone())?,
            told,
        })
    }

    fn set_suspended(&self, suspended: bool) {
        if let Some(registration) = &self.device.registration {
            registration.inner().suspended.store(suspended, Relaxed);
        }
    }

    /// Runs `f` with what the core of clocks calls.
    fn with_info<R>(
        &self,
        f: impl FnOnce(*mut bindings::ptp_clock_info) -> Result<R>,
    ) -> Result<R> {
        let registration = self.device.registration.as_ref().ok_or(ENODEV)?;

        f(registration.inner().data().get_ref().clock.info())
    }

    /// Whether users get the times of the system around a read, where something was before.
    fn has_system_times(&self) -> Result<(bool, bool)> {
        let mut time = bindings::timespec64::default();
        let mut system = bindings::ptp_system_timestamp::default();

        (system.pre_sts.valid, system.post_sts.valid) = (1, 1);
        self.with_info(|info| {
            // SAFETY: The clock is registered.
            let get = unsafe { (*info).gettimex64 }.ok_or(EOPNOTSUPP)?;
            // SAFETY: As above.
            to_result(unsafe { get(info, &mut time, &mut system) })
        })?;
        Ok((system.pre_sts.valid != 0, system.post_sts.valid != 0))
    }

    fn time(&self) -> Result<(i64, i64)> {
        let mut time = bindings::timespec64::default();

        self.with_info(|info| {
            // SAFETY: The clock is registered.
            let get = unsafe { (*info).gettimex64 }.ok_or(EOPNOTSUPP)?;
            // SAFETY: As above.
            to_result(unsafe { get(info, &mut time, core::ptr::null_mut()) })
        })?;
        // CAST: It is less than a second.
        Ok((time.tv_sec, time.tv_nsec as i64))
    }

    fn ts_info(&self) -> Result<bindings::kernel_ethtool_ts_info> {
        let mut info = bindings::kernel_ethtool_ts_info {
            phc_index: -1,
            ..Default::default()
        };

        self.device.with_rtnl(|dev| {
            // SAFETY: The device is registered.
            let get = unsafe { (*(*dev).ethtool_ops).get_ts_info }.ok_or(EOPNOTSUPP)?;
            // SAFETY: As above.
            to_result(unsafe { get(dev, &mut info) })
        })?;
        Ok(info)
    }

    /// The counters of stamps, of which those that are not known are all ones.
    fn ts_stats(&self) -> Result<[u64; 4]> {
        let mut stats = bindings::ethtool_ts_stats::default();
        // SAFETY: Both views are plain numbers.
        let counters = unsafe { &mut stats.__bindgen_anon_1.__bindgen_anon_1 };

        counters.pkts = u64::MAX;
        counters.onestep_pkts_unconfirmed = u64::MAX;
        counters.lost = u64::MAX;
        counters.err = u64::MAX;
        self.device.with_rtnl(|dev| {
            // SAFETY: The device is registered.
            let get = unsafe { (*(*dev).ethtool_ops).get_ts_stats }.ok_or(EOPNOTSUPP)?;
            // SAFETY: As above.
            unsafe { get(dev, &mut stats) };
            Ok::<_, Error>(())
        })?;
        // SAFETY: As above.
        let counters = unsafe { &stats.__bindgen_anon_1.__bindgen_anon_1 };
        Ok([
            counters.pkts,
            counters.onestep_pkts_unconfirmed,
            counters.lost,
            counters.err,
        ])
    }

    /// Asks for time stamps, and returns those that there are.
    fn configure(&self, tx: c_int, rx: c_int) -> Result<(c_int, c_int)> {
        let mut config = bindings::kernel_hwtstamp_config {
            tx_type: tx,
            rx_filter: rx,
            ..Default::default()
        };

        self.device.with_rtnl(|dev| {
            // SAFETY: The device is registered.
            let ops = unsafe { &*(*dev).netdev_ops };
            let set = ops.ndo_hwtstamp_set.ok_or(EOPNOTSUPP)?;
            // SAFETY: As above, and RTNL is held.
            to_result(unsafe { set(dev, &mut config, core::ptr::null_mut()) })?;
            let answer = (config.tx_type, config.rx_filter);
            (config.tx_type, config.rx_filter) = (-1, -1);
            let get = ops.ndo_hwtstamp_get.ok_or(EOPNOTSUPP)?;
            // SAFETY: As above.
            to_result(unsafe { get(dev, &mut config) })?;
            if answer == (config.tx_type, config.rx_filter) {
                Ok(answer)
            } else {
                Err(EIO)
            }
        })
    }
}

#[macros::kunit_tests(rust_net_ptp_clock)]
mod cases {
    use super::*;

    #[test]
    fn users_find_it_by_the_device() -> Result {
        const HARDWARE: u32 = bindings::SOF_TIMESTAMPING_TX_HARDWARE
            | bindings::SOF_TIMESTAMPING_RX_HARDWARE
            | bindings::SOF_TIMESTAMPING_RAW_HARDWARE;
        let (one, two) = (Fixture::new()?, Fixture::new()?);
        let (first, second) = (one.ts_info()?, two.ts_info()?);

        assert!(first.phc_index >= 0 && second.phc_index >= 0);
        assert!(first.phc_index != second.phc_index);
        assert_eq!(first.so_timestamping & HARDWARE, HARDWARE);
        assert_ne!(
            first.so_timestamping & bindings::SOF_TIMESTAMPING_TX_SOFTWARE,
            0
        );
        assert_eq!(first.tx_types, 0b11);
        assert_eq!(first.rx_filters, 1 | 1 << RxFilter::PtpV2Event as u32);
        Ok(())
    }

    #[test]
    fn the_driver_reads_and_adjusts_it() -> Result {
        let device = Fixture::new()?;

        assert_eq!(device.time()?, (5, 7));
        device.with_info(|info| {
            let time = bindings::timespec64 {
                tv_sec: 9,
                tv_nsec: 1,
            };
            // SAFETY: The clock is registered.
            let limit = unsafe {
                to_result((*info).settime64.ok_or(EOPNOTSUPP)?(info, &time))?;
                to_result((*info).adjtime.ok_or(EOPNOTSUPP)?(info, -2))?;
                to_result((*info).adjfine.ok_or(EOPNOTSUPP)?(info, 3 << 16))?;
                (*info).max_adj
            };
            assert_eq!(limit, 1_000_000);
            Ok(())
        })?;
        assert_eq!(device.time()?, (8, 999_999_999));
        assert_eq!(device.told.frequency.load(Relaxed), 1_000_003);
        Ok(())
    }

    #[test]
    fn times_of_the_system_are_those_that_were_taken() -> Result {
        let device = Fixture::new()?;

        assert_eq!(device.has_system_times()?, (true, true));
        device.told.forgets_system.store(1, Relaxed);
        assert_eq!(device.has_system_times()?, (false, false));
        Ok(())
    }

    #[test]
    fn there_are_no_stamps_without_the_clock() -> Result {
        let device = Fixture::new()?;
        let event = RxFilter::PtpV2Event as c_int;

        assert_eq!(device.configure(1, event)?, (1, event));
        assert_eq!(device.configure(0, 0)?, (0, 0));
        let registration = device.device.registration.as_ref().ok_or(ENODEV)?;
        let inner = registration.inner();
        let owner = inner.dev().as_raw().cast();
        inner.data().get_ref().clock.unregister(owner);
        assert_eq!(device.configure(1, 0), Err(EOPNOTSUPP));
        assert_eq!(device.configure(0, event), Err(EOPNOTSUPP));
        assert_eq!(device.configure(0, 0)?, (0, 0));
        Ok(())
    }

    #[test]
    fn not_while_the_device_is_suspended() -> Result {
        let device = Fixture::new()?;

        device.set_suspended(true);
        assert_eq!(device.time(), Err(ENODEV));
        device.with_info(|info| {
            let works = device.told.works.load(Relaxed);
            // SAFETY: The clock is registered, and has this callback.
            let again = unsafe { (*info).do_aux_work.map(|work| work(info)) };
            // The work is done later.
            assert!(again.is_some_and(|again| again > 0));
            assert_eq!(device.told.works.load(Relaxed), works);
            Ok(())
        })?;
        assert_eq!(device.configure(1, 0), Err(ENODEV));
        device.set_suspended(false);
        assert_eq!(device.time()?, (5, 7));
        Ok(())
    }

    #[test]
    fn what_is_counted_is_told() -> Result {
        const UNKNOWN: u64 = u64::MAX;
        let device = Fixture::new()?;

        assert_eq!(device.ts_stats()?, [UNKNOWN; 4]);
        device.told.frequency.store(1, Relaxed);
        // Those that are sent in one step are not.
        assert_eq!(device.ts_stats()?, [1, UNKNOWN, 2, 3]);
        Ok(())
    }

    #[test]
    fn work_begins_and_ends_with_the_device() -> Result {
        let mut device = Fixture::new()?;

        for _ in 0..1_000 {
            if device.told.works.load(Relaxed) != 0 {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        assert_eq!(device.told.works.load(Relaxed), 1);
        device.device.registration = None;
        assert_eq!(device.told.works.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn work_gets_no_device_that_is_about_to_go() -> Result {
        let device = Fixture::new()?;
        let registration = device.device.registration.as_ref().ok_or(ENODEV)?;
        // SAFETY: The device exists as long as the registration.
        let references = || unsafe { bindings::netdev_refcnt_read(device.device.dev()) };

        device.told.finds_link.store(1, Relaxed);
        // As the registration does when it ends: the clock is still there.
        assert!(registration.0.unregister());
        assert_eq!(references(), 1);
        device.with_info(|info| {
            let works = device.told.works.load(Relaxed);
            // SAFETY: The clock is registered, and has this callback.
            let again = unsafe { (*info).do_aux_work.map(|work| work(info)) };
            // Nobody would wait for a reference.
            assert_eq!(references(), 1);
            assert!(again.is_some_and(|again| again > 0));
            assert_eq!(device.told.works.load(Relaxed), works);
            Ok(())
        })
    }

    #[test]
    fn stamps_are_those_that_the_driver_has() -> Result {
        let device = Fixture::new()?;
        let (event, sync) = (RxFilter::PtpV2Event as c_int, RxFilter::PtpV2Sync as c_int);

        assert_eq!(device.configure(1, event)?, (1, event));
        assert_eq!(device.configure(0, sync)?, (0, event));
        assert_eq!(device.configure(0, RxFilter::All as c_int), Err(ERANGE));
        assert_eq!(device.configure(2, event), Err(ERANGE));
        assert_eq!(device.configure(0, 0)?, (0, 0));
        Ok(())
    }
}
