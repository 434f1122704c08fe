// SPDX-License-Identifier: GPL-2.0

//! Programs, or modules, that see the frames of a device, see [`xdp`](crate::net::xdp).
//!
//! Programs take other receive buffers than the stack does. When the first one is attached, the
//! receive queues that have not got those are restarted with them, one by one, see
//! [`queue_mgmt`](super::queue_mgmt): the link stays up. If one of them cannot be, there is no
//! program, and those before it go on with the buffers that they have, as they do when a program is
//! detached. To replace a program, or to detach it, takes no more than a pointer.

mod handlers;
mod xmit;

pub use self::{
    handlers::{
        HandlerModule,
        Handlers, //
    },
    xmit::XdpXmitOps, //
};

use super::{
    attributes::Attributes,
    inner::Inner,
    ops_lock::Locks,
    optional_ops::Exclusion,
    prelude::*,
    reconfigure::restart_rx_queue,
    Feature, //
};

use crate::net::xdp::{
    hints::HintOps,
    program::takes_fragments,
    Attachment,
    HintFormat, //
};

pub mod xsk;

/// A driver whose receive queues run programs, see [`OptionalOps::xdp`].
///
/// Programs exclude LRO. Those whose frames have to be in one buffer exclude an MTU above
/// [`Self::MAX_MTU`], too: the abstraction refuses both.
pub trait XdpOps: Driver {
    /// The greatest MTU with which all frames are in one buffer of an [`XdpRing`].
    ///
    /// [`XdpRing`]: crate::net::xdp::XdpRing
    const MAX_MTU: u32;

    /// The program of the device. As long as it [is in use](Attachment::is_in_use), the receive
    /// rings that the driver makes are [`XdpRing`]s. Without queue management, the device is
    /// restarted for them, unless all of its rings are.
    ///
    /// [`XdpRing`]: crate::net::xdp::XdpRing
    fn attachment<'a>(data: &'a Self::Data<'_>) -> &'a Attachment;
}

impl<T: XdpOps> OptionalOps<T> {
    /// Adds the callback of [`XdpOps`].
    pub const fn xdp(mut self) -> Self {
        self.netdev.ndo_bpf = Some(Self::bpf);
        self.xdp_features |= bindings::netdev_xdp_act_NETDEV_XDP_ACT_BASIC
            | bindings::netdev_xdp_act_NETDEV_XDP_ACT_REDIRECT
            | bindings::netdev_xdp_act_NETDEV_XDP_ACT_RX_SG;
        // That of `xsk()` counts more.
        if self.exclusion.is_none() {
            self.exclusion = Some(Self::excluded_by_program);
        }
        self
    }

    /// The exclusion by a program.
    ///
    /// # Safety
    ///
    /// See [`OptionalOps::exclusion`].
    unsafe fn excluded_by_program(dev: &Device) -> Option<Exclusion> {
        // SAFETY: By the safety requirements.
        let attachment = T::attachment(unsafe { ops::inner::<T>(dev.as_raw()) }.data().get_ref());

        if !attachment.is_in_use() {
            return None;
        }
        Some(if attachment.is_for_one_buffer() {
            Exclusion {
                by: c"an XDP program without xdp.frags, or a handler",
                max_mtu: T::MAX_MTU,
            }
        } else {
            Exclusion {
                by: c"an XDP program",
                max_mtu: u32::MAX,
            }
        })
    }

    /// Lets programs ask for the hints of rings of this format, which the driver
    /// [offers](crate::net::xdp::XdpPolling::offer).
    pub const fn xdp_hints<F: HintFormat>(mut self) -> Self {
        self.xdp_hints = Some(HintOps::<F>::OPS);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. RTNL and the lock of the
    /// device's operations must be held. With a program comes a reference to it, unless this fails.
    unsafe extern "C" fn bpf(
        dev: *mut bindings::net_device,
        request: *mut bindings::netdev_bpf,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The device is registered, and both locks are held.
            let (inner, mut locks) = unsafe { ops::locked_rtnl::<T>(dev) };
            // SAFETY: The request is valid.
            if unsafe { (*request).command } == handlers::SETUP {
                // SAFETY: This command is ours, and has this request. RTNL is held.
                unsafe { handlers::setup(inner, &mut *request.cast(), &mut locks)? };
                return Ok(0);
            }
            // SAFETY: As above.
            let request = unsafe { &*request };
            if request.command == bindings::bpf_netdev_command_XDP_SETUP_XSK_POOL {
                let setup = T::OPS.setup_xsk.ok_or(EOPNOTSUPP)?;
                // SAFETY: These are the arguments of that command, for this device.
                unsafe {
                    let xsk = request.__bindgen_anon_1.xsk;
                    setup(inner.dev(), xsk.pool, xsk.queue_id, &mut locks)?;
                }
                return Ok(0);
            }
            if request.command != bindings::bpf_netdev_command_XDP_SETUP_PROG {
                return Err(EINVAL);
            }
            // SAFETY: These are the arguments of that command.
            let setup = unsafe { request.__bindgen_anon_1.__bindgen_anon_1 };
            let attachment = T::attachment(inner.data().get_ref());

            if attachment.has_hook() {
                if setup.prog.is_null() {
                    return Ok(0);
                }
                // SAFETY: It is null, or valid during the request.
                let extack = unsafe { &ExtAck::new(setup.extack) };
                return Err(extack.refuse(EBUSY, c"a module handles the frames"));
            }
            if !setup.prog.is_null() {
                // SAFETY: The program is valid.
                let takes_fragments = unsafe { takes_fragments(setup.prog) };
                // SAFETY: It is null, or valid during the request.
                let extack = unsafe { &ExtAck::new(setup.extack) };

                prepare(inner, takes_fragments, extack, &mut locks)?;
            }
            // SAFETY: By the safety requirements.
            unsafe { attachment.replace(setup.prog) };
            inner.orphans.take_parts(!attachment.is_for_one_buffer());
            if setup.prog.is_null() {
                xsk::without_program(inner, &mut locks);
            }
            Ok(0)
        })
    }
}

/// Gets a device ready for a program.
fn prepare<T: XdpOps>(
    inner: &Inner<T>,
    takes_fragments: bool,
    extack: &ExtAck<'_>,
    locks: &mut Locks<'static>,
) -> Result {
    let dev = inner.dev();
    let attachment = T::attachment(inner.data().get_ref());

    if dev.mtu() > T::MAX_MTU && !takes_fragments {
        let max = T::MAX_MTU;
        return Err(extack.refuse_with(
            EINVAL,
            fmt!("the MTU is more than {max}, without xdp.frags"),
        ));
    }
    if dev.features().contains(Feature::Lro) {
        return Err(extack.refuse(EINVAL, c"LRO is on"));
    }
    let took_parts = !attachment.is_for_one_buffer();
    if !takes_fragments {
        inner.orphans.take_parts(false);
        if let Err(error) = inner.check_mtu(dev.mtu(), locks) {
            inner.orphans.take_parts(took_parts);
            return Err(extack.refuse(error, c"memory of AF_XDP has shorter buffers than the MTU"));
        }
    }
    let was_in_use = attachment.is_in_use();
    attachment.expect(true);
    inner.orphans.use_pools(true);
    let result = restart_queues(inner, locks, || {
        inner.orphans.take_parts(took_parts);
        if !was_in_use {
            attachment.expect(false);
            inner.orphans.use_pools(false);
        }
    });
    attachment.expect(false);
    if result.is_err() {
        inner.orphans.take_parts(took_parts);
    }
    if result.is_err() && !attachment.is_in_use() {
        xsk::without_program(inner, locks);
    }
    result.map_err(|(queue, error)| {
        extack.refuse_with(error, fmt!("receive queue {queue} did not restart"))
    })
}

/// Restarts the receive queues whose buffers are not for programs, if the device is up. Returns the
/// number of one that did not.
fn restart_queues<T: XdpOps>(
    inner: &Inner<T>,
    locks: &mut Locks<'static>,
    undo: impl Fn(),
) -> Result<(), (u16, Error)> {
    let mut queue = 0;

    while let Some(is_ready) = is_for_programs(inner, queue, locks) {
        if !is_ready {
            restart_queue(inner, queue, locks, &undo).map_err(|error| (queue, error))?;
            if is_for_programs(inner, queue, locks) == Some(false) {
                // The driver has made other memory.
                return Err((queue, EOPNOTSUPP));
            }
        }
        queue += 1;
    }
    Ok(())
}

/// Whether programs can see the frames of a receive queue, if there is one, and the device is up.
fn is_for_programs<T: Driver>(
    inner: &Inner<T>,
    queue: u16,
    locks: &Locks<'static>,
) -> Option<bool> {
    let vector = inner.rx_vector(queue, locks.ops())?;
    // SAFETY: It exists as long as the device is up, which does not change with the locks borrowed.
    let napi = unsafe { vector.as_ref() }.napi();

    Some(napi.is_for_programs() && !inner.orphans.lacks_ring(queue))
}

/// Restarts a receive queue with other memory, or the device if the queue cannot have that before.
/// If the device cannot be up with it either, `undo` has it get the old memory.
fn restart_queue<T: Driver>(
    inner: &Inner<T>,
    queue: u16,
    locks: &mut Locks<'static>,
    undo: impl FnOnce(),
) -> Result {
    if T::OPS.queue_mgmt.is_some() {
        match restart_rx_queue(inner.dev(), queue, locks) {
            Err(error) if error == EAGAIN => (),
            result => return result,
        }
    }
    // If the driver can do that, new memory is allocated before the device goes down.
    inner.restart_or_undo(Attributes::of(inner.dev()), locks, |_| undo())
}
