// SPDX-License-Identifier: GPL-2.0

//! Time stamps of packets by the clock of the NIC.

use super::{
    prelude::*,
    ptp_clock::PtpClockOps, //
};

/// The packets that get a time stamp when they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum TxType {
    /// None.
    #[default]
    Off = bindings::hwtstamp_tx_types_HWTSTAMP_TX_OFF,
    /// Those whose senders ask for it.
    On = bindings::hwtstamp_tx_types_HWTSTAMP_TX_ON,
}

/// The packets that get a time stamp when they are received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum RxFilter {
    /// None.
    #[default]
    None = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_NONE,
    /// All.
    All = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_ALL,
    /// Those that are asked for, and others: an answer only.
    Some = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_SOME,
    /// PTP version 1 over UDP: events.
    PtpV1L4Event = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V1_L4_EVENT,
    /// PTP version 1 over UDP: Sync.
    PtpV1L4Sync = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V1_L4_SYNC,
    /// PTP version 1 over UDP: Delay_Req.
    PtpV1L4DelayReq = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V1_L4_DELAY_REQ,
    /// PTP version 2 over UDP: events.
    PtpV2L4Event = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L4_EVENT,
    /// PTP version 2 over UDP: Sync.
    PtpV2L4Sync = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L4_SYNC,
    /// PTP version 2 over UDP: Delay_Req.
    PtpV2L4DelayReq = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L4_DELAY_REQ,
    /// PTP version 2 over Ethernet: events.
    PtpV2L2Event = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L2_EVENT,
    /// PTP version 2 over Ethernet: Sync.
    PtpV2L2Sync = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L2_SYNC,
    /// PTP version 2 over Ethernet: Delay_Req.
    PtpV2L2DelayReq = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L2_DELAY_REQ,
    /// PTP version 2: events.
    PtpV2Event = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_EVENT,
    /// PTP version 2: Sync.
    PtpV2Sync = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_SYNC,
    /// PTP version 2: Delay_Req.
    PtpV2DelayReq = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_DELAY_REQ,
    /// NTP.
    NtpAll = bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_NTP_ALL,
}

impl TxType {
    const ALL: [Self; 2] = [Self::Off, Self::On];
}

impl RxFilter {
    const ALL: [Self; 16] = [
        Self::None,
        Self::All,
        Self::Some,
        Self::PtpV1L4Event,
        Self::PtpV1L4Sync,
        Self::PtpV1L4DelayReq,
        Self::PtpV2L4Event,
        Self::PtpV2L4Sync,
        Self::PtpV2L4DelayReq,
        Self::PtpV2L2Event,
        Self::PtpV2L2Sync,
        Self::PtpV2L2DelayReq,
        Self::PtpV2Event,
        Self::PtpV2Sync,
        Self::PtpV2DelayReq,
        Self::NtpAll,
    ];
}

/// The packets that get time stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HwtstampConfig {
    /// When they are sent.
    pub tx: TxType,
    /// When they are received.
    pub rx: RxFilter,
}

impl HwtstampConfig {
    /// From the form of C. [`ERANGE`] if no driver has that.
    fn from_raw(raw: &bindings::kernel_hwtstamp_config) -> Result<Self> {
        // CAST: They are not negative, and compared with what fits.
        let (tx, rx) = (raw.tx_type as u32, raw.rx_filter as u32);

        Ok(Self {
            tx: *TxType::ALL
                .iter()
                .find(|kind| **kind as u32 == tx)
                .ok_or(ERANGE)?,
            rx: *RxFilter::ALL
                .iter()
                .find(|kind| **kind as u32 == rx)
                .ok_or(ERANGE)?,
        })
    }

    fn fill(self, raw: &mut bindings::kernel_hwtstamp_config) {
        // CAST: They are small.
        raw.tx_type = self.tx as c_int;
        raw.rx_filter = self.rx as c_int;
    }
}

/// Counters of packets whose senders have asked for a time stamp (`ethtool -I -T DEV`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TsStats {
    /// Those that got it.
    pub packets: u64,
    /// Those whose stamp has not come.
    pub lost: u64,
    /// Those that got none for another reason: the NIC could not take it, or it was wrong.
    pub errors: u64,
}

/// A driver of a NIC that takes time stamps of packets, see [`OptionalOps::hwtstamp`].
///
/// A packet that is sent gets its time by a [`TxTimestamp`], and one that was received by
/// [`UniqueSkBuff::set_timestamp`].
///
/// [`TxTimestamp`]: crate::net::skbuff::TxTimestamp
/// [`UniqueSkBuff::set_timestamp`]: crate::net::skbuff::UniqueSkBuff::set_timestamp
pub trait HwtstampOps: PtpClockOps {
    /// The filters that the NIC has, beside [`RxFilter::None`].
    const RX_FILTERS: &'static [RxFilter];

    /// Returns which packets get time stamps. The device may be up or down.
    fn hwtstamp<'bound>(
        data: Pin<&Self::Data<'bound>>,
        lock: &mut OpsLocked<'bound>,
    ) -> HwtstampConfig;

    /// Chooses which packets get time stamps, and returns which do: more than were asked for, if
    /// the NIC does not tell them apart. The device may be up or down.
    fn set_hwtstamp<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        wanted: HwtstampConfig,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result<HwtstampConfig>;

    /// Returns the counters, if there are any. The device may be up or down, or suspended.
    fn ts_stats<'bound>(data: Pin<&Self::Data<'bound>>) -> Option<TsStats> {
        let _ = data;
        None
    }
}

impl<T: HwtstampOps> OptionalOps<T> {
    /// Adds the callbacks of [`HwtstampOps`], and tells users of those time stamps, and of the ones
    /// in software that [`Self::ts_info`] is about.
    pub const fn hwtstamp(mut self) -> Self {
        self.netdev.ndo_hwtstamp_get = Some(Self::hwtstamp_get);
        self.netdev.ndo_hwtstamp_set = Some(Self::hwtstamp_set);
        self.ethtool.get_ts_info = Some(Self::get_ts_info);
        self.ethtool.get_ts_stats = Some(Self::get_ts_stats);
        self
    }

    const RX_FILTERS: u32 = {
        let (mut bits, mut index) = (1 << RxFilter::None as u32, 0);

        while index < T::RX_FILTERS.len() {
            bits |= 1 << T::RX_FILTERS[index] as u32;
            index += 1;
        }
        bits
    };

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. The lock of its operations must
    /// be held, and `config` be valid for writing.
    unsafe extern "C" fn hwtstamp_get(
        dev: *mut bindings::net_device,
        config: *mut bindings::kernel_hwtstamp_config,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let config = unsafe { &mut *config };

        T::hwtstamp(inner.data(), &mut lock).fill(config);
        0
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. The lock of its operations must
    /// be held, `config` be valid, and `extack` as well, or null.
    unsafe extern "C" fn hwtstamp_set(
        dev: *mut bindings::net_device,
        config: *mut bindings::kernel_hwtstamp_config,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let (config, extack) = unsafe { (&mut *config, ExtAck::new(extack)) };

        inner.if_reachable(|| {
            let wanted = HwtstampConfig::from_raw(config)
                .map_err(|error| extack.refuse(error, c"tx_type or rx_filter is not supported"))?;

            // Nobody could tell what the stamps mean, and the driver's work is not done.
            if wanted != HwtstampConfig::default()
                && T::clock(inner.data().get_ref()).index().is_none()
            {
                return Err(extack.refuse(EOPNOTSUPP, c"the clock is not registered"));
            }
            T::set_hwtstamp(inner.data(), inner.dev(), wanted, &mut lock, &extack)?.fill(config);
            Ok(())
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `info`.
    unsafe extern "C" fn get_ts_info(
        dev: *mut bindings::net_device,
        info: *mut bindings::kernel_ethtool_ts_info,
    ) -> c_int {
        const HARDWARE: u32 = bindings::SOF_TIMESTAMPING_TX_HARDWARE
            | bindings::SOF_TIMESTAMPING_RX_HARDWARE
            | bindings::SOF_TIMESTAMPING_RAW_HARDWARE;

        // SAFETY: By the safety requirements.
        let result = unsafe { bindings::ethtool_op_get_ts_info(dev, info) };
        // SAFETY: As above.
        let (inner, info) = unsafe { (ops::inner::<T>(dev), &mut *info) };

        if let Some(index) = T::clock(inner.data().get_ref()).index() {
            info.so_timestamping |= HARDWARE;
            // CAST: C has the same number, with a sign.
            info.phc_index = index as c_int;
            info.tx_types = 1 << TxType::Off as u32 | 1 << TxType::On as u32;
            info.rx_filters = Self::RX_FILTERS;
        }
        result
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats`.
    unsafe extern "C" fn get_ts_stats(
        dev: *mut bindings::net_device,
        stats: *mut bindings::ethtool_ts_stats,
    ) {
        // SAFETY: By the safety requirements.
        let inner = unsafe { ops::inner::<T>(dev) };
        // SAFETY: As above. Both views are plain numbers.
        let to = unsafe { &mut (*stats).__bindgen_anon_1.__bindgen_anon_1 };

        // The core has set all of them to "not known".
        if let Some(from) = T::ts_stats(inner.data()) {
            to.pkts = from.packets;
            to.lost = from.lost;
            to.err = from.errors;
        }
    }
}

#[macros::kunit_tests(rust_net_hwtstamp)]
mod tests {
    use super::*;

    #[test]
    fn what_no_driver_has_is_refused() {
        let mut raw = bindings::kernel_hwtstamp_config::default();

        for filter in RxFilter::ALL {
            let config = HwtstampConfig {
                tx: TxType::On,
                rx: filter,
            };
            config.fill(&mut raw);
            assert_eq!(HwtstampConfig::from_raw(&raw), Ok(config));
        }
        raw.rx_filter = RxFilter::ALL.len() as c_int;
        assert_eq!(HwtstampConfig::from_raw(&raw), Err(ERANGE));
        raw.rx_filter = -1;
        assert_eq!(HwtstampConfig::from_raw(&raw), Err(ERANGE));
        raw.rx_filter = 0;
        // One step.
        raw.tx_type = 2;
        assert_eq!(HwtstampConfig::from_raw(&raw), Err(ERANGE));
    }
}
