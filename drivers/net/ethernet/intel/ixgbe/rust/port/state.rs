// SPDX-License-Identifier: GPL-2.0

//! The state of a port, and bringing the NIC up and down.

use kernel::{
    device::{
        self,
        Bound, //
    },
    net::{
        device::{
            deferring::Deferring,
            ethtool::{
                msglevel::{
                    MsgClass,
                    MsgLevel, //
                },
                pause::Pause,
                rxnfc::FlowRules, //
            },
            hwtstamp::HwtstampConfig,
            online_cpus,
            Device,
            Feature,
            Features,
            Info,
            Locks,
            OpsCell,
            OpsLocked,
            RtnlCell, //
        },
        xdp::Attachment, //
    },
    pci::{
        self,
        IrqType,
        IrqTypes,
        IrqVectorRegistration, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        new_mutex,
        new_spinlock,
        Arc,
        Mutex,
        SpinLock, //
    }, //
};

use core::mem;

use crate::{
    atr,
    board,
    eeprom,
    filter,
    firmware::{
        self,
        Firmware, //
    },
    flow,
    flow_director::{
        self,
        Mode, //
    },
    hw,
    irq,
    link,
    media::Media,
    mmio::{
        self,
        Bar0, //
    },
    moderation::Setting,
    ptp::Ptp,
    regs::{
        medium::*,
        queue::MAX_PAIRS,
        STATUS, //
    },
    rss::{
        Hashing,
        Spread, //
    },
    rx::{
        FrameLimit,
        RxRegisters, //
    },
    stats::PortStats,
    tx::TxRegisters,
    vlan::{
        self,
        Members, //
    }, //
};

use super::cage::{
    Cage,
    Kr, //
};

/// The maximum MTU, the same as the C driver's.
const MAX_MTU: u32 = 9710;

/// The most bytes of a packet that the NIC splits: the length without headers has 18 bits.
const MAX_SEGMENTED_LEN: u32 = (1 << 18) - 1;

/// The bytes that byte queue limits let the NIC have at least: as many packets as share a
/// doorbell, of 1514 bytes each, which take 39 µs at 10 Gb/s. With less, a queue stops and goes on
/// many times at the start of a burst, which fills the qdisc meanwhile.
const TX_LIMIT_MIN: u16 = Deferring::MAX_PACKETS as u16 * 1514;

/// No value of LEDCTL, of which several bits are reserved.
pub(crate) const NO_LIGHTS: u32 = u32::MAX;

/// The register values that describe the rings of a queue pair.
pub(super) struct PairRegisters {
    pub(super) rx: RxRegisters,
    pub(super) tx: TxRegisters,
    /// Those of the ring for frames that are redirected to the port.
    pub(super) xmit: TxRegisters,
}

/// The rings of a port that is open, or of one that is not.
#[derive(Default)]
pub(super) struct Running {
    /// The number of queue pairs.
    pub(super) pairs: u16,
    /// The NIC aggregates frames.
    pub(super) lro: bool,
    /// The highest limit since the NIC was reset.
    pub(super) limit: FrameLimit,
    /// The longest frames that there is room for in memory of users, by queue pair.
    pub(super) longest: [u16; MAX_PAIRS as usize],
}

/// The state that all callbacks of a port share.
///
/// Fields are dropped in order: the interrupt vectors are freed before the registers are unmapped.
/// By then the network device is unregistered and closed, so the NIC does no DMA.
#[pin_data]
pub(crate) struct Port<'bound> {
    #[pin]
    pub(crate) stats: PortStats,
    /// The rings that are in use, if the port is open.
    pub(super) running: OpsCell<'bound, Running>,
    /// Those that it is started with next. Meanwhile it may be open with others.
    pub(super) opened: OpsCell<'bound, KVec<PairRegisters>>,
    /// The cage and the link. Held while that is set up, up to a second.
    #[pin]
    pub(super) cage: Mutex<Cage>,
    /// Number of entries of the exact filter in use.
    pub(super) unicast_entries: RtnlCell<usize>,
    pub(crate) hashing: Hashing,
    /// The VLANs whose frames are received.
    pub(super) vlans: RtnlCell<Members>,
    pub(crate) spread: OpsCell<'bound, Spread>,
    /// The rules for the flow director.
    pub(crate) flow_rules: FlowRules<'bound>,
    /// The program that sees received frames.
    pub(super) program: Arc<Attachment>,
    /// The filters that transmit functions add to the flow director.
    pub(crate) filters: atr::Table,
    /// Held while one of them does so.
    #[pin]
    pub(crate) director: SpinLock<()>,
    pub(crate) moderation: Setting,
    /// LEDCTL as it was before one of the lights was to identify the port, else [`NO_LIGHTS`].
    pub(crate) lights: Atomic<u32>,
    /// The kinds of messages that are logged while the port is in use.
    pub(crate) msglevel: MsgLevel,
    /// The use of pause frames.
    pub(crate) pause: OpsCell<'bound, Pause>,
    /// The clock, and the stamps by it.
    #[pin]
    pub(crate) ptp: Ptp,
    /// The packets that are stamped.
    pub(super) stamped: OpsCell<'bound, HwtstampConfig>,
    pub(crate) media: Media,
    pub(super) firmware: Firmware,
    /// A memory of the NIC has had an error since it was reset. Nothing in it can be trusted.
    pub(super) memory_error: Atomic<bool>,
    /// The queue vectors that were masked at the last run of the watchdog.
    pub(super) masked: Atomic<u32>,
    /// Which port of the NIC this is.
    pub(super) number: u32,
    pub(super) vectors: IrqVectorRegistration<'bound>,
    pub(crate) bar: Bar0<'bound>,
    pub(super) pdev: &'bound pci::Device<Bound>,
}

impl<'bound> Port<'bound> {
    /// Resets the NIC, and returns the parameters of its network device and its state.
    pub(super) fn new(
        pdev: &'bound pci::Device<Bound>,
        media: Option<Media>,
    ) -> Result<(Info, impl PinInit<Port<'bound>, Error>)> {
        let dev = pdev.as_ref();
        let bar = mmio::map(pdev)?;

        if bar.is_gone() {
            dev_err!(dev, "device does not respond; is it powered?\n");
            return Err(ENODEV);
        }
        hw::reset(dev, &bar)?;
        eeprom::check(dev, &bar)?;
        let media = media.unwrap_or_else(|| {
            let media = Media::of(bar.read(AUTOC), bar.read(AUTOC2));
            dev_info!(dev, "unknown device ID, assuming {}\n", media);
            media
        });
        if media == Media::SfpPlus {
            // The reset has turned it on. A port that is down must not look like a link partner.
            link::laser_off(&bar);
        }
        let firmware = Firmware::read(dev, &bar, media);
        if firmware.link_sleeps {
            link::turn_off_in_d3(&bar);
        }
        let kr = Kr::of(bar.try_read(AUTOC)?, firmware.lesm);
        let number = bar.read(STATUS).lan_id().get();

        let address = filter::permanent_address(&bar);
        if !address.is_valid_unicast() {
            dev_err!(dev, "no valid MAC address in the EEPROM\n");
            return Err(EADDRNOTAVAIL);
        }

        // One pair per CPU if there are enough of them, and at least one.
        let wanted = online_cpus().min(MAX_PAIRS);
        let min_vectors = 1 + irq::OTHER_VECTORS;
        let vectors = pdev
            .alloc_irq_vectors(
                min_vectors.into(),
                (wanted + irq::OTHER_VECTORS).into(),
                IrqTypes::default().with(IrqType::MsiX),
            )
            .inspect_err(|_| dev_err!(dev, "failed to allocate {} MSI-X vectors\n", min_vectors))?;
        let pairs = max_pairs(&vectors);
        if pairs < wanted {
            dev_info!(
                dev,
                "using {} of {} queue pairs, limited by MSI-X vectors\n",
                pairs,
                wanted
            );
        }

        let mut info = Info::new(address);
        info.queues = pairs;
        // With several queues, a full one stalls the others, or drops.
        info.default_queues = 1;
        info.max_mtu = MAX_MTU;
        info.features = Features::NONE
            .with(Feature::ScatterGather)
            .with(Feature::HighDma)
            // Of TCP and UDP behind any headers, see `features_check()`. Without this, the stack
            // would not leave it packets with extension headers of IPv6.
            .with(Feature::ChecksumAny)
            .with(Feature::ChecksumSctp)
            .with(Feature::RxChecksum)
            .with(Feature::RxHash)
            .with(Feature::VlanInsert)
            .with(Feature::VlanStrip)
            .with(Feature::VlanFilter)
            .with(Feature::Tso)
            .with(Feature::Tso6)
            .with(Feature::Uso);
        // With rules, there is no ATR. LRO is for hosts that do not forward.
        info.features_off = Features::NONE
            .with(Feature::Ntuple)
            .with(Feature::Lro)
            .with(Feature::Loopback);
        // The NIC has a network header of up to 511 bytes, whatever is in it.
        info.tunnels = Features::NONE
            .with(Feature::TunnelGre)
            .with(Feature::TunnelGreChecksum)
            .with(Feature::TunnelIpv4)
            .with(Feature::TunnelIpv6)
            .with(Feature::TunnelUdp)
            .with(Feature::TunnelUdpChecksum);
        info.sender_fcs = true;
        info.max_segmented_len = MAX_SEGMENTED_LEN;
        info.tx_limit_min = TX_LIMIT_MIN;
        info.wake = board::wake_packets(pdev, firmware::is_first(&bar, number));
        info.default_wake = board::WAKE_PACKETS;

        let stats = PortStats::new(pairs)?;
        Ok((
            info,
            try_pin_init!(Port {
                stats <- stats,
                running: OpsCell::new(Running::default()),
                opened: OpsCell::new(KVec::new()),
                cage <- new_mutex!(Cage::new(kr), "ixgbe_rust::cage"),
                unicast_entries: RtnlCell::new(1),
                hashing: Hashing::new(),
                vlans: RtnlCell::new(Members::new()),
                spread: OpsCell::new(Spread::new()),
                flow_rules: FlowRules::new(),
                program: Arc::new(Attachment::new(), GFP_KERNEL)?,
                filters: atr::Table::new(),
                director <- new_spinlock!((), "ixgbe_rust::director"),
                moderation: Setting::new(),
                lights: Atomic::new(NO_LIGHTS),
                msglevel: MsgLevel::new(&[MsgClass::Link, MsgClass::TxError, MsgClass::Hardware]),
                pause: OpsCell::new(flow::DEFAULT),
                ptp <- Ptp::new(),
                stamped: OpsCell::new(HwtstampConfig::default()),
                media,
                firmware,
                memory_error: Atomic::new(false),
                masked: Atomic::new(0),
                number,
                vectors,
                bar,
                pdev,
            }),
        ))
    }
}

impl<'bound> Port<'bound> {
    /// Returns the bus device.
    pub(crate) fn device(&self) -> &device::Device<Bound> {
        self.pdev.as_ref()
    }

    /// Returns the event vector, which follows those of all possible queue pairs.
    pub(crate) fn event_vector(&self) -> u16 {
        max_pairs(&self.vectors)
    }

    /// Returns the number of queue pairs, if the port is open.
    pub(crate) fn pairs(&self, lock: &OpsLocked<'bound>) -> u16 {
        self.running.get(lock).pairs
    }

    /// Configures the NIC and starts all rings.
    pub(super) fn start(&self, netdev: &Device, locks: &mut Locks<'bound>) -> Result {
        let dev = self.pdev.as_ref();
        let bar = &self.bar;
        // `filter::init()` leaves one.
        *self.unicast_entries.get_mut(locks) = 1;
        let rings = mem::take(self.opened.get_mut(locks.ops_mut()));
        // CAST: There are no more than `MAX_PAIRS`.
        let pairs = rings.len() as u16;
        let lro = rings.iter().any(|pair| pair.rx.lro());
        let limit = FrameLimit::of_mtu(netdev.mtu());
        let mut longest = [u16::MAX; MAX_PAIRS as usize];
        for (place, pair) in longest.iter_mut().zip(&rings) {
            *place = pair.rx.longest_of_users();
        }
        *self.running.get_mut(locks.ops_mut()) = Running {
            pairs,
            lro,
            limit,
            longest,
        };
        if !netdev.is_rxfh_configured(locks.ops()) {
            self.spread.get_mut(locks.ops_mut()).even(pairs);
        }

        self.ptp.hold(bar);
        hw::reset(dev, bar)?;
        self.ptp.count(bar);
        self.memory_error.store(false, Relaxed);
        let mode = Mode::of(netdev, pairs);
        hw::configure(bar, mode, lro)?;
        let spread = self.spread.get(locks.ops());
        spread.apply(bar);
        self.filters
            .spread_is_even
            .store(spread.is_even(pairs), Relaxed);
        self.hashing.apply(bar, pairs);
        filter::init(bar, &netdev.mac_address());
        self.vlans.get(locks).apply(bar);
        vlan::filter(bar, netdev.features().contains(Feature::VlanFilter))?;
        if !rings.iter().all(|pair| pair.rx.takes(limit)) {
            // They were made for another MTU, which does not happen.
            return Err(EINVAL);
        }
        hw::set_frame_limit(bar, limit)?;
        let pause = *self.pause.get(locks.ops());
        flow::apply(bar, pause, mode)?;
        flow_director::start(dev, bar, mode, pairs, self.flow_rules.iter(locks.ops()))?;
        self.filters.is_open.store(mode == Mode::Flows, Relaxed);
        let cage = self.media == Media::SfpPlus;
        self.ptp.configure(bar, *self.stamped.get(locks.ops()))?;
        irq::configure(bar, &self.moderation, pairs, self.event_vector(), cage);

        hw::enable_tx(bar)?;
        for pair in rings {
            pair.tx.start(dev, bar)?;
            pair.xmit.start(dev, bar)?;
            pair.rx.start(dev, bar, flow::drops(pause, pairs))?;
        }
        hw::enable_rx(bar)?;

        hw::set_driver_loaded(bar, true)?;
        self.start_link(netdev);
        irq::enable(bar, pairs);
        // From now on, interrupts report changes.
        self.update_link(netdev);
        Ok(())
    }

    /// Stops the NIC, so that it does no DMA.
    pub(super) fn quiesce(&self, locks: &mut Locks<'bound>) -> Result {
        let bar = &self.bar;

        // The NIC may have to be reset, and nothing follows the speed of its link meanwhile.
        self.ptp.hold(bar);
        let stopped = hw::stop(self.pdev.as_ref(), bar);
        self.filters.is_open.store(false, Relaxed);
        self.stats.save_hw(bar);
        *self.running.get_mut(locks.ops_mut()) = Running::default();
        self.stop_link();
        // The firmware only knows less than it could.
        let _ = hw::set_driver_loaded(bar, false);
        stopped
    }

    /// Handles the causes of the event vector.
    pub(super) fn handle_events(&self, netdev: &Device) {
        let events = irq::take_events(&self.bar);

        if events.memory_error {
            irq::mask_memory_errors(&self.bar);
            // The cause stays until the reset, and other causes may come before that.
            let is_known = self.memory_error.load(Relaxed);
            if !is_known && self.msglevel.has(MsgClass::Hardware) {
                dev_err!(self.pdev, "uncorrectable ECC error, restarting\n");
            }
            // The next run of the watchdog does so.
            self.memory_error.store(true, Relaxed);
        }
        if events.module {
            self.check_cage(netdev, true);
        }
        if events.light {
            self.light_changed(netdev);
        }
        if events.link || events.module || events.light {
            self.update_link(netdev);
        }
        irq::rearm_events(&self.bar);
    }
}

/// Returns the number of queue pairs that these vectors allow.
fn max_pairs(vectors: &IrqVectorRegistration<'_>) -> u16 {
    u16::try_from(vectors.len())
        .unwrap_or(u16::MAX)
        .saturating_sub(irq::OTHER_VECTORS)
        .min(MAX_PAIRS)
}
