// SPDX-License-Identifier: GPL-2.0

//! The trait that the driver of a NIC implements.
//!
//! It calls [`register`](super::register) when it is bound to a device. From then on the
//! abstraction owns the driver's data, the queue vectors with their NAPI instances and interrupts,
//! and the transmit queues, and takes them down in the right order when the device is closed, or
//! unbound while it is open. There is no registration object that a driver could drop too late or
//! forget. A [`Doorbell`] decides when the tail register is written for packets in the ring.
//!
//! Documentation/rust/netdev.rst has two drivers to start from, the order of locks, and a table of
//! the objects with their owners.

use super::{
    bus::Parent,
    doorbell::Doorbell,
    info::Info,
    ops_lock::Locks,
    optional_ops::OptionalOps,
    rx_mode::RxMode,
    stats::Stats64,
    Device,
    MacAddress,
    Rtnl, //
};

use crate::{
    error::VTABLE_DEFAULT_ERROR,
    net::{
        napi::{
            Poll,
            Polled,
            RxClosed, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::TxSkBuff, //
    },
    prelude::*, //
};

use core::marker::PhantomData;

mod opening;

pub use self::opening::Opening;
pub(super) use self::opening::OpeningFor;

/// How a driver wants a new MTU to take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuChange {
    /// It is in effect already, or with the next packet.
    Live,
    /// The device has to be stopped and started again if it is up.
    Restart,
}

/// The result of [`Driver::watchdog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogAction {
    /// The device goes on.
    Continue,
    /// The device has to be restarted, as after [`Driver::tx_timeout`].
    Restart,
}

/// The proof that a device does no DMA, during a call of [`Driver::closed`].
pub struct DmaStopped<'a> {
    pub(in crate::net) dev: &'a Device,
    rx: RxClosed<'a>,
    // It proves nothing elsewhere.
    _not_send: PhantomData<*mut ()>,
}

impl<'a> DmaStopped<'a> {
    /// # Safety
    ///
    /// `dev` must not do DMA during `'a`.
    pub(in crate::net) unsafe fn new(dev: &'a Device, rx: RxClosed<'a>) -> Self {
        Self {
            dev,
            rx,
            _not_send: PhantomData,
        }
    }

    /// The proof for the receive queue of the vector.
    #[inline]
    pub fn rx(&self) -> &RxClosed<'a> {
        &self.rx
    }
}

/// A network device driver.
///
/// The implementing type is a marker: it holds nothing. The state of a driver is split by the
/// context that may access it, and owned by the abstraction, which lends each part to the callbacks
/// of that context:
///
/// | part | one per | lent to | context |
/// | --- | --- | --- | --- |
/// | [`Data`] | device | every callback, shared | any |
/// | [`Poller`] | queue vector | [`poll`], exclusively | softirq |
/// | [`Tx`] | transmit queue | [`start_xmit`], exclusively | bottom halves off, queue locked |
///
/// [`Data`] lives from [`register`](super::register) until the device is unbound; [`probe`] creates
/// it. [`Poller`] and [`Tx`] live from [`open`], which creates them, until the device goes down.
///
/// Callbacks that the core calls with RTNL held get its token, [`Rtnl`], and those that it calls
/// with the lock of the device's operations held get an [`OpsLocked`], or both, as [`Locks`]. What
/// only the holders of a lock use can be in an [`RtnlCell`](super::RtnlCell) or an
/// [`OpsCell`](super::OpsCell), without a lock of its own.
///
/// The lifetime `'bound` stands for the time during which the parent device is bound to its driver.
/// All callbacks run within it, and all of the parts above are dropped within it, even if the NIC
/// may still access memory: that belongs to the NAPI instances, and these parts have handles to it.
/// DMA memory that a driver allocates by itself has to belong to them, too, see
/// [`Napi::keep_dma`](crate::net::napi::Napi::keep_dma). Since the callbacks are generic in it,
/// nothing with a shorter lifetime can be stored in them.
///
/// # Going up and down
///
/// Up: [`open`] (adds the vectors) -> NAPI enabled -> interrupts requested -> transmit queues
/// usable -> [`start`]. Down, also if one of these fails: last [`watchdog`] -> event interrupt
/// freed -> transmit queues unusable -> NAPI disabled -> [`quiesce`] -> [`Tx`] dropped -> queue
/// interrupts freed -> [`closed`] or [`Poller`] dropped. So:
///
/// - [`start`] has the NIC for itself: what interrupts call that come before it has returned,
///   [`poll`] and [`event`], follows after that.
/// - [`quiesce`] is the last callback to access the NIC: neither [`rearm`] nor [`event`] nor
///   [`start_xmit`] can undo its effects.
/// - the memory of rings and buffers, which the NIC knows, is freed after [`quiesce`] has
///   succeeded, or after the NIC was reset: also if [`open`] has failed, and even if [`Tx`] or
///   [`Poller`] have dropped their handles to it before.
///
/// # Suspension
///
/// A NIC that sleeps, or is reset with its bus, has lost its state when it can be reached again. A
/// device whose driver has [`reset`] takes these steps, whether it is up or not:
///
/// Suspended: marked as absent, so no user can open or configure it -> down as above, if it is up
/// -> the NIC may not access memory -> [`suspend`] of the bus driver. Resumed: [`resume`] of the
/// bus driver -> [`reset`] -> the NIC may access memory -> up as above, if it was up -> marked as
/// present -> [`set_rx_mode`]. If the device cannot go up, it is closed, with a message.
///
/// In between there are no callbacks, except for [`get_stats64`] and others that do not access the
/// NIC. If the NIC cannot be reached when it is suspended, since its bus has failed,
/// [`quiesce`] is left out; rings and buffers are freed after [`reset`].
///
/// [`Data`]: Driver::Data
/// [`Poller`]: Driver::Poller
/// [`Tx`]: Driver::Tx
/// [`watchdog`]: Driver::watchdog
/// [`closed`]: Driver::closed
/// [`event`]: Driver::event
/// [`open`]: Driver::open
/// [`OpsLocked`]: super::OpsLocked
/// [`poll`]: Driver::poll
/// [`probe`]: Driver::probe
/// [`quiesce`]: Driver::quiesce
/// [`get_stats64`]: Driver::get_stats64
/// [`rearm`]: Driver::rearm
/// [`reset`]: Driver::reset
/// [`resume`]: crate::pci::Suspend::resume
/// [`set_rx_mode`]: Driver::set_rx_mode
/// [`start_xmit`]: Driver::start_xmit
/// [`start`]: Driver::start
/// [`suspend`]: crate::pci::Suspend::suspend
#[vtable]
pub trait Driver: Sized + 'static {
    /// The parent device: `pci::Device<Bound>`, or that of another bus.
    type Bus: Parent;

    /// An argument that [`register`](super::register) passes through to [`Driver::probe`].
    type Setup;

    /// Private data of the device, shared by all callbacks.
    type Data<'bound>: Send + Sync + 'bound;

    /// State of a queue vector that belongs to its poll function alone.
    type Poller<'bound>: Send + 'bound;

    /// State of a transmit queue that belongs to the holder of the queue's lock alone.
    type Tx<'bound>: Send + 'bound;

    /// When the doorbells of transmit queues are rung: [`Immediate`](super::Immediate), unless
    /// there is a reason for another one.
    type Doorbell: Doorbell;

    /// Resets the NIC, and describes the device.
    ///
    /// A NIC on a PCI bus may access memory (bus mastering) when this has succeeded. Before, it
    /// may know of memory that belonged to another driver. Process context, before the device is
    /// visible to the stack or to users.
    fn probe<'bound>(
        bus: &'bound Self::Bus,
        setup: Self::Setup,
    ) -> Result<(Info, impl PinInit<Self::Data<'bound>, Error>)>;

    /// Creates the resources of an open device: the rings, with [`Opening::add_queue_vector`], and
    /// optionally an interrupt for other events, with [`Opening::add_event_vector`].
    ///
    /// To add are [`Opening::queues`] queue vectors. If this fails, [`Driver::quiesce`] is called
    /// nevertheless, unless the device [stays up](Driver::OPEN_WHILE_UP). Process context, RTNL
    /// held.
    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result;

    /// Whether [`Driver::open`] can be called while the device is up: it neither accesses the NIC
    /// nor changes what the other callbacks use before [`Driver::start`].
    ///
    /// Then the number of queues, the lengths of rings, the MTU and features change without a risk
    /// for the device: the new vectors are made first, and only then it goes down, and up with
    /// them. If there is no memory for them, the device has not noticed. Else it has to go down
    /// first.
    ///
    /// The NIC must not know of rings that `open()` has made before `start()`, which no type
    /// ensures: if `open()` fails while the device is up, they are freed, and the NIC is not
    /// stopped for that. Users get the error then, and no packet is lost.
    const OPEN_WHILE_UP: bool = false;

    /// Turns on the NIC: rings and interrupts are in place. An interrupt that comes before this
    /// has returned is not lost: its callbacks are called after that.
    ///
    /// If this fails, [`Driver::quiesce`] is called nevertheless. Process context, RTNL held.
    fn start<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        locks: &mut Locks<'bound>,
    ) -> Result;

    /// Turns off the NIC: masks its interrupts, stops DMA in both directions and waits until it
    /// has stopped.
    ///
    /// If DMA did not stop, this fails. Then bus mastering is turned off, and rings and buffers are
    /// not freed before [`Driver::reset`]. Without a reset, the device cannot go up again before
    /// the NIC is bound anew: when it is unbound, the bus resets it, or that memory is lost.
    ///
    /// All ones are no sign that it has stopped: if reads return them, this fails, also if only
    /// one was lost, see `pci::CheckedBar`. A NIC of which the bus knows that it was removed has
    /// stopped. Process context, RTNL held.
    fn quiesce<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        locks: &mut Locks<'bound>,
    ) -> Result;

    /// Resets the NIC, which can be reached again after it has lost its state, to the one in which
    /// [`Driver::probe`] has left it.
    ///
    /// The NIC must not know of any memory after that. Without this callback, the system does not
    /// go to sleep while the driver is bound, and a device whose bus was reset has to be bound
    /// anew. Process context, RTNL held, while the device is suspended.
    fn reset<'bound>(_data: Pin<&Self::Data<'bound>>, _dev: &Device, _rtnl: &mut Rtnl) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Does the work of one queue vector: completes transmitted packets, receives up to
    /// [`Poll::budget`], refills.
    ///
    /// Softirq context; see [`Poll`].
    fn poll<'bound>(
        data: Pin<&Self::Data<'bound>>,
        poller: &mut Self::Poller<'bound>,
        cx: &Poll<'_>,
    ) -> Polled;

    /// Turns the interrupt of queue vector number `vector` on again after [`Polled::Idle`].
    ///
    /// The poll function may already run again, on another CPU; hence no poller is lent here.
    /// Softirq context.
    fn rearm<'bound>(data: Pin<&Self::Data<'bound>>, vector: u16);

    /// Puts a packet into the ring of `queue`.
    ///
    /// `more` promises that another call follows at once, so the doorbell need not be rung yet, see
    /// [`TxQueue::sent`]. Bottom halves off, queue locked; with netpoll, in hard interrupt context.
    fn start_xmit<'bound, 'call>(
        data: Pin<&Self::Data<'bound>>,
        tx: &mut Self::Tx<'bound>,
        queue: &TxQueue<'_, Self::Doorbell>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call>;

    /// Rings the doorbell of a queue: tells the NIC of all packets for which [`TxQueue::sent`] has
    /// returned `false` since that was done last.
    ///
    /// A [`Driver::Doorbell`] that may put it off needs this. Bottom halves off, queue locked.
    fn kick<'bound>(_data: Pin<&Self::Data<'bound>>, _tx: &mut Self::Tx<'bound>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Takes back the state of a queue vector when the device goes down, after
    /// [`Driver::quiesce`] and after the transmit queues' state was dropped.
    ///
    /// The place to account for packets that were in flight. Without this callback, the state is
    /// dropped, as is one whose vector never ran: of a device that could not be opened, or of other
    /// rings that could not be made while it is up. If the NIC may still access memory, this is
    /// called after [`Driver::reset`], or after that of the bus. Process context, RTNL held.
    fn closed<'bound>(
        _data: Pin<&Self::Data<'bound>>,
        _poller: Self::Poller<'bound>,
        _stopped: &DmaStopped<'_>,
    ) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Handles the event interrupt, see [`Opening::add_event_vector`].
    ///
    /// Process context (interrupt thread), between [`Driver::start`] and [`Driver::quiesce`] and,
    /// once, possibly during [`Driver::start`]. Without locks: going down waits for this with RTNL
    /// and the lock of the operations held.
    fn event<'bound>(_data: Pin<&Self::Data<'bound>>, _dev: &Device) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Called once a second, to check for conditions that raise no interrupt, and for lost
    /// interrupts. Not the watchdog of the core, which calls [`Driver::tx_timeout`].
    ///
    /// Process context without RTNL and the lock of the operations, as going down waits for this
    /// with both of them held, from [`Driver::start`] until before [`Driver::quiesce`].
    fn watchdog<'bound>(_data: Pin<&Self::Data<'bound>>, _dev: &Device) -> WatchdogAction {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Applies the receive filter: the addresses whose packets the device is to receive.
    ///
    /// Process context, RTNL held, while the device is up.
    fn set_rx_mode<'bound>(
        _data: Pin<&Self::Data<'bound>>,
        _dev: &Device,
        _mode: &RxMode<'_>,
        _rtnl: &mut Rtnl,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Applies a new, valid unicast address. [`Device::mac_address`] changes if this succeeds.
    ///
    /// Process context, RTNL held; the device may be up or down.
    fn set_mac_address<'bound>(
        _data: Pin<&Self::Data<'bound>>,
        _dev: &Device,
        _address: MacAddress,
        _rtnl: &mut Rtnl,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Checks or applies a new MTU within the limits of [`Info`]. [`Device::mtu`] changes if this
    /// succeeds, and before the device is started again if it asks for [`MtuChange::Restart`].
    ///
    /// If the device does not come up with the new MTU, the old one is tried: this is called with
    /// it, for a device that is about to go up. Process context, both locks held; the device may be
    /// up or down.
    fn change_mtu<'bound>(
        _data: Pin<&Self::Data<'bound>>,
        _dev: &Device,
        _mtu: u32,
        _locks: &mut Locks<'bound>,
    ) -> Result<MtuChange> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Fills in the device's counters.
    ///
    /// Those of the NIC can be read if that `is_reachable`. Else it sleeps or is being reset, and
    /// what the driver has read before counts. Any context that does not sleep; the device may be
    /// up or down.
    fn get_stats64<'bound>(
        _data: Pin<&Self::Data<'bound>>,
        _stats: &mut Stats64<'_>,
        _is_reachable: bool,
    ) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reports that a transmit queue has been stopped for too long. The device is restarted after
    /// this, and without this callback, too.
    ///
    /// The place to log why the queue hangs, if the NIC can tell. Softirq context.
    fn tx_timeout<'bound>(_data: Pin<&Self::Data<'bound>>, _dev: &Device, _queue: u16) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The core calls the device's operations under a lock of the device, not only under RTNL, see
    /// [`OpsLocked`](super::OpsLocked). `ethtool` commands then do not wait for those of other
    /// devices.
    const OPS_LOCK: bool = false;

    /// The callbacks beyond these, of the traits that the driver has: those in
    /// [`features`](super::features), [`features_check`](super::features_check),
    /// [`vlan_filter`](super::vlan_filter), [`queue_stats`](super::queue_stats),
    /// [`queue_mgmt`](super::queue_mgmt), [`xdp`](super::xdp) and [`ethtool`](super::ethtool).
    const OPS: OptionalOps<Self> = OptionalOps::NONE;
}
