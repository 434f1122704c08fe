// SPDX-License-Identifier: GPL-2.0

//! Settings and views of a card for users of `ethtool` and of netlink, beyond those that every
//! driver has.
//!
//! C headers: [`include/linux/ethtool.h`](srctree/include/linux/ethtool.h),
//! [`include/net/netdev_queues.h`](srctree/include/net/netdev_queues.h)
//!
//! All of it is optional: a driver implements the callbacks of [`Controls`] that its card has a use
//! for, and adds them to its [`Driver::OPS`](super::Driver::OPS).

pub use super::ExtAck;

use super::{
    ops_lock::{
        Locks,
        OpsLocked, //
    },
    optional_ops::OptionalOps,
    Device,
    Driver, //
};

use crate::{
    bindings,
    error::VTABLE_DEFAULT_ERROR,
    prelude::*, //
};

mod flow_rules;
mod hardware;
mod link;
mod mac_stats;
mod messages;
mod moderation;
mod module;
mod pause;
mod queue_stats;
mod rings;
mod rss;
mod self_test;
mod wake_up;

pub use self::{
    flow_rules::{
        FlowAction,
        FlowMatch,
        FlowPackets,
        FlowRule,
        FlowRules,
        FlowTransport,
        Masked,
        PortProtocol, //
    },
    hardware::FirmwareVersion,
    link::{
        Connector,
        LinkMode,
        LinkRequest,
        LinkSettings, //
    },
    mac_stats::{
        LengthRange,
        LengthRanges,
        LengthStats,
        MacStats,
        PauseStats, //
    },
    messages::{
        Message,
        Messages, //
    },
    moderation::Moderation,
    module::ModulePlace,
    pause::Pause,
    queue_stats::{
        GsoStats,
        RxQueueStats,
        TxQueueStats, //
    },
    rss::RssChange,
    self_test::{
        SelfTest,
        TestFailure,
        TestResult, //
    }, //
};

pub use super::wake_packets::{
    WakePacket,
    WakePackets, //
};

/// Callbacks for `ethtool` and netlink.
///
/// All of them run in process context with the lock of the device's operations held, while the
/// device is up or down, but not while it is suspended. Exceptions are noted.
#[vtable]
pub trait Controls: Driver {
    /// The version of the firmware, for `ethtool -i`.
    fn firmware<'bound>(data: Pin<&Self::Data<'bound>>, version: &mut FirmwareVersion<'_>) {
        let _ = (data, version);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Number of registers that [`Controls::registers`] reads, for `ethtool -d`.
    const REGISTERS: usize = 0;

    /// The version of their layout.
    const REGISTERS_VERSION: u32 = 0;

    /// Reads [`Controls::REGISTERS`] registers, preferably those that do not change by that.
    fn registers<'bound>(
        data: Pin<&Self::Data<'bound>>,
        values: &mut [u32],
        lock: &mut OpsLocked<'bound>,
    ) {
        let _ = (data, values, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Size of the EEPROM in bytes.
    fn eeprom_len<'bound>(data: Pin<&Self::Data<'bound>>) -> usize {
        let _ = data;
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reads the EEPROM from byte `offset` on, for `ethtool -e`. The range is within its size.
    fn read_eeprom<'bound>(
        data: Pin<&Self::Data<'bound>>,
        offset: usize,
        bytes: &mut [u8],
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let _ = (data, offset, bytes, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reads the memory of the plug-in module, for `ethtool -m`. `bytes` are zero before, and the
    /// range is within a page.
    ///
    /// [`EOPNOTSUPP`] for a place that modules of this port do not have.
    fn module_eeprom<'bound>(
        data: Pin<&Self::Data<'bound>>,
        place: ModulePlace,
        bytes: &mut [u8],
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let _ = (data, place, bytes, lock, extack);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Turns the light that identifies the port on or off, or gives it back to the card with
    /// [`None`]; for `ethtool -p`.
    ///
    /// Called with `Some(true)` first, and with [`None`] last. Not called concurrently for a
    /// device, but without the lock: it is released while the light blinks.
    fn identify<'bound>(data: Pin<&Self::Data<'bound>>, on: Option<bool>) -> Result {
        let _ = (data, on);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The tests of the card, for `ethtool -t`.
    ///
    /// For offline ones, a device that is up goes down, and up again after them, as for a restart;
    /// after those of a device that is down there is [`Driver::reset`].
    const SELF_TESTS: &'static [SelfTest<Self>] = &[];

    /// The state and the abilities of the link, for `ethtool DEV`. To be used instead of
    /// [`Driver::link_speed`].
    fn link<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        lock: &mut OpsLocked<'bound>,
    ) -> LinkSettings {
        let _ = (data, dev, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Changes the settings of the link, for `ethtool -s`. The core has filled in those of
    /// [`Controls::link`] for what users do not change.
    fn set_link<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        request: LinkRequest<'_>,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let _ = (data, dev, request, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The kinds of messages that the driver logs, which users change by `ethtool -s DEV msglvl`.
    ///
    /// Any context.
    fn messages<'a>(data: &'a Self::Data<'_>) -> &'a Messages {
        let _ = data;
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Has the card wake the machine by received packets of these kinds, which users have chosen
    /// (`ethtool -s DEV wol`) among [`Info::wake`](super::Info::wake).
    ///
    /// The machine is about to sleep, or to go off. [`Driver::quiesce`] has been called if the
    /// device was up, and the card may not access memory; it needs its link, and its filter of
    /// addresses. The bus lowers its power after this, unless an image of the memory is made for
    /// hibernation. [`Driver::reset`] comes next, or the driver's data is dropped, if anything
    /// happens to it.
    fn arm_wake_up<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        packets: WakePackets,
        locks: &mut Locks<'bound>,
    ) {
        let _ = (data, dev, packets, locks);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The moderation of interrupts, for `ethtool -c`.
    fn moderation<'bound>(
        data: Pin<&Self::Data<'bound>>,
        lock: &mut OpsLocked<'bound>,
    ) -> Moderation {
        let _ = (data, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Changes the moderation of interrupts of all queue vectors, for `ethtool -C`.
    fn set_moderation<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        moderation: Moderation,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let _ = (data, dev, moderation, lock, extack);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The use of pause frames, for `ethtool -a`.
    fn pause<'bound>(data: Pin<&Self::Data<'bound>>, lock: &mut OpsLocked<'bound>) -> Pause {
        let _ = (data, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Changes the use of pause frames, for `ethtool -A`.
    fn set_pause<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        pause: Pause,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let _ = (data, dev, pause, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The counters of the MAC. The device is not suspended; this holds for the next two, too.
    fn mac_stats<'bound>(data: Pin<&Self::Data<'bound>>, lock: &mut OpsLocked<'bound>) -> MacStats {
        let _ = (data, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The counters of pause frames.
    fn pause_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        lock: &mut OpsLocked<'bound>,
    ) -> PauseStats {
        let _ = (data, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The ranges of lengths by which the card counts frames.
    const LENGTH_RANGES: LengthRanges = LengthRanges::NONE;

    /// The counters of frames by their lengths.
    fn length_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        lock: &mut OpsLocked<'bound>,
    ) -> LengthStats {
        let _ = (data, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Number of entries of the table by which received packets are spread over queues.
    const RSS_ENTRIES: usize = 0;

    /// Number of bytes of the key for the hash over received packets.
    const RSS_KEY_LEN: usize = 0;

    /// Fills in the table, [`Controls::RSS_ENTRIES`] queues, and the key of the hash, for
    /// `ethtool -x`. The device need not be reachable.
    fn rss<'bound>(
        data: Pin<&Self::Data<'bound>>,
        table: Option<&mut [u32]>,
        key: Option<&mut [u8]>,
        lock: &mut OpsLocked<'bound>,
    ) {
        let _ = (data, table, key, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Changes the table, or the key, or both, for `ethtool -X`.
    ///
    /// The queues in the table exist. If users have set a table,
    /// [`Device::is_rss_configured`] says so from then on, and the number of queues does not fall
    /// below those that are in use in it.
    fn set_rss<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        change: RssChange<'_>,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let _ = (data, dev, change, lock, extack);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Number of rules by which the card directs received packets. Their locations are less than
    /// that.
    const FLOW_RULES: u32 = 0;

    /// The rules, for `ethtool -n` and `-N`. They are kept here, and the driver has a place for
    /// them.
    ///
    /// A driver with this has [`Feature::Ntuple`](super::Feature::Ntuple), with which users switch
    /// the rules off and on: they cannot insert any while it is off, and those that there are have
    /// no effect. If it is on, [`Driver::start`] passes all of them to the card.
    fn flow_rules<'a, 'bound: 'a>(data: &'a Self::Data<'bound>) -> &'a FlowRules<'bound> {
        let _ = data;
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Inserts a rule, if the card can have it together with the others. If the device is up, it
    /// takes effect at once.
    ///
    /// The queue of the rule exists, and users cannot take it away while it has a rule. There is no
    /// `extack` for this: the log may tell the reason of a refusal.
    fn insert_flow_rule<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        rule: &FlowRule,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let _ = (data, dev, rule, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Removes a rule, which is not among the others any more.
    fn remove_flow_rule<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        rule: &FlowRule,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let _ = (data, dev, rule, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The counters of a receive queue, which may be one that is not in use now.
    ///
    /// The device may be suspended.
    fn rx_queue_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        queue: u16,
        lock: &mut OpsLocked<'bound>,
    ) -> RxQueueStats {
        let _ = (data, queue, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The counters of a transmit queue, which may be one that is not in use now.
    ///
    /// As [`Controls::rx_queue_stats`].
    fn tx_queue_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        queue: u16,
        lock: &mut OpsLocked<'bound>,
    ) -> TxQueueStats {
        let _ = (data, queue, lock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// `Some` of a callback if the driver has it.
macro_rules! if_has {
    ($has:expr, $callback:expr) => {
        if $has {
            Some($callback)
        } else {
            None
        }
    };
}

impl<T: Controls> OptionalOps<T> {
    /// Adds those callbacks of [`Controls`] that the driver implements.
    pub const fn with_controls(self) -> Self {
        // A callback that changes a setting relies on those that come with the one that reads it:
        // with `rss` comes the size of the table, for instance.
        const {
            assert!(T::HAS_RSS || !T::HAS_SET_RSS, "`set_rss` needs `rss`");
            assert!(
                T::HAS_PAUSE || !T::HAS_SET_PAUSE,
                "`set_pause` needs `pause`"
            );
            assert!(
                T::HAS_MODERATION || !T::HAS_SET_MODERATION,
                "`set_moderation` needs `moderation`"
            );
            assert!(
                T::HAS_FLOW_RULES == (T::FLOW_RULES != 0)
                    && T::HAS_FLOW_RULES == T::HAS_INSERT_FLOW_RULE
                    && T::HAS_FLOW_RULES == T::HAS_REMOVE_FLOW_RULE,
                "rules need `FLOW_RULES`, `flow_rules`, and callbacks for both changes"
            );
        }
        Self {
            ethtool: bindings::ethtool_ops {
                supported_coalesce_params: if T::HAS_MODERATION {
                    moderation::PARAMS
                } else {
                    0
                },
                get_drvinfo: if_has!(T::HAS_FIRMWARE, Self::get_drvinfo),
                get_regs_len: if_has!(T::HAS_REGISTERS, Self::get_regs_len),
                get_regs: if_has!(T::HAS_REGISTERS, Self::get_regs),
                get_eeprom_len: if_has!(T::HAS_READ_EEPROM, Self::get_eeprom_len),
                get_eeprom: if_has!(T::HAS_READ_EEPROM, Self::get_eeprom),
                get_module_eeprom_by_page: if_has!(
                    T::HAS_MODULE_EEPROM,
                    Self::get_module_eeprom_by_page
                ),
                set_phys_id: if_has!(T::HAS_IDENTIFY, Self::set_phys_id),
                self_test: if_has!(!T::SELF_TESTS.is_empty(), Self::self_test),
                get_link_ksettings: if_has!(T::HAS_LINK, Self::get_link_ksettings),
                set_link_ksettings: if_has!(T::HAS_SET_LINK, Self::set_link_ksettings),
                get_msglevel: if_has!(T::HAS_MESSAGES, Self::get_msglevel),
                set_msglevel: if_has!(T::HAS_MESSAGES, Self::set_msglevel),
                get_wol: if_has!(T::HAS_ARM_WAKE_UP, Self::get_wol),
                set_wol: if_has!(T::HAS_ARM_WAKE_UP, Self::set_wol),
                get_ringparam: if_has!(T::RINGS.is_some(), Self::get_ringparam),
                set_ringparam: if_has!(T::RINGS.is_some(), Self::set_ringparam),
                get_coalesce: if_has!(T::HAS_MODERATION, Self::get_coalesce),
                set_coalesce: if_has!(T::HAS_SET_MODERATION, Self::set_coalesce),
                get_pauseparam: if_has!(T::HAS_PAUSE, Self::get_pauseparam),
                set_pauseparam: if_has!(T::HAS_SET_PAUSE, Self::set_pauseparam),
                get_pause_stats: if_has!(T::HAS_PAUSE_STATS, Self::get_pause_stats),
                get_eth_mac_stats: if_has!(T::HAS_MAC_STATS, Self::get_eth_mac_stats),
                get_rmon_stats: if_has!(T::HAS_LENGTH_STATS, Self::get_rmon_stats),
                get_rxnfc: if_has!(T::HAS_FLOW_RULES, Self::get_rxnfc),
                set_rxnfc: if_has!(T::HAS_FLOW_RULES, Self::set_rxnfc),
                get_rx_ring_count: if_has!(T::HAS_RSS, Self::get_rx_ring_count),
                get_rxfh_key_size: if_has!(T::HAS_RSS, Self::get_rxfh_key_size),
                get_rxfh_indir_size: if_has!(T::HAS_RSS, Self::get_rxfh_indir_size),
                get_rxfh: if_has!(T::HAS_RSS, Self::get_rxfh),
                set_rxfh: if_has!(T::HAS_SET_RSS, Self::set_rxfh),
                ..self.ethtool
            },
            self_tests: T::SELF_TESTS.len(),
            name_self_tests: Self::name_self_tests,
            stat: if T::HAS_RX_QUEUE_STATS && T::HAS_TX_QUEUE_STATS {
                Some(Self::STAT)
            } else {
                None
            },
            arm_wake_up: if_has!(T::HAS_ARM_WAKE_UP, Self::arm_wake_up),
            ..self
        }
    }
}
