// SPDX-License-Identifier: GPL-2.0

//! Modules that see the frames of devices, see [`Handler`].
//!
//! A device has a program, or a handler. Attaching a handler has the receive queues restarted as
//! for a program; to detach it is to take a pointer out. The driver is not involved.
//!
//! # Lifetimes
//!
//! A handler is code and data of a module, which poll functions use. The [`Handlers`] of a module
//! belong to [`module_xdp_handlers!`](crate::module_xdp_handlers), so that no module can forget
//! them: when it is unloaded, they are revoked, a grace period of RCU passes, and only then do
//! handlers and code go. A device that goes away, or leaves the network namespace, tells the
//! [`Handlers`] before, with RTNL held: its handler is revoked then, and its [`Port`]s are left
//! empty. So neither has to wait for the other, and no reference to a device is kept.
//!
//! A device has a reference to the [`Hook`] of a handler, and lets go of it when it is asked, or
//! when its driver's data is dropped. Nothing depends on when that is.

use super::{
    super::{
        inner::Inner,
        ops_lock::Locks,
        prelude::*,
        Rtnl,
        RtnlCell, //
    },
    prepare,
    XdpOps, //
};

use crate::{
    error::to_result,
    net::xdp::{
        handler::Hook,
        Handler,
        Port, //
    },
    str::CStr,
    sync::{
        Arc,
        SetOnce, //
    },
    types::Opaque, //
};

use core::ptr::{
    self,
    NonNull, //
};

/// The command by which a device is asked to attach a handler, or to detach it. Drivers in C do not
/// know it, and fail.
pub(super) const SETUP: bindings::bpf_netdev_command = bindings::bpf_netdev_command::MAX;

/// The request of that command.
#[repr(C)]
pub(super) struct Request {
    // First, as the core's requests.
    raw: bindings::netdev_bpf,
    hook: Option<Arc<Hook>>,
    /// It was understood.
    is_known: bool,
}

/// Attaches a handler to a device, or detaches the one that it has.
///
/// # Safety
///
/// RTNL must be held, and the pointers in the request be valid meanwhile, or null.
pub(super) unsafe fn setup<T: XdpOps>(
    inner: &Inner<T>,
    request: &mut Request,
    locks: &mut Locks<'static>,
) -> Result {
    let attachment = T::attachment(inner.data().get_ref());

    request.is_known = true;
    if request.hook.is_some() {
        // SAFETY: By the safety requirements.
        let extack = unsafe { &ExtAck::new(request.raw.__bindgen_anon_1.__bindgen_anon_1.extack) };

        if attachment.is_in_use() {
            return Err(extack.refuse(EBUSY, c"there is a program, or a handler"));
        }
        if inner.orphans.has_pools() {
            return Err(extack.refuse(EBUSY, c"a queue has memory of users"));
        }
        prepare(inner, false, extack, locks)?;
    } else if !attachment.has_hook() {
        return Ok(());
    }
    // No memory of users can be bound while there is a handler.
    inner.orphans.use_pools(false);
    attachment.set_hook(request.hook.take());
    Ok(())
}

/// Asks a device to attach a handler, or to detach it. A refusal is logged, with its reason.
///
/// # Safety
///
/// The device must be registered, and RTNL be held.
unsafe fn ask(dev: *mut bindings::net_device, hook: Option<Arc<Hook>>) -> Result {
    let mut extack = bindings::netlink_ext_ack::default();
    let mut request = Request {
        raw: bindings::netdev_bpf {
            command: SETUP,
            __bindgen_anon_1: bindings::netdev_bpf__bindgen_ty_1 {
                __bindgen_anon_1: bindings::netdev_bpf__bindgen_ty_1__bindgen_ty_1 {
                    flags: 0,
                    prog: ptr::null_mut(),
                    extack: &mut extack,
                },
            },
        },
        hook,
        is_known: false,
    };
    // SAFETY: By the safety requirements. The lock is not held, as the core calls for this neither
    // notifiers nor modules that are loaded with it.
    let result = unsafe {
        bindings::netdev_lock_ops(dev);
        let result = match (*(*dev).netdev_ops).ndo_bpf {
            // The whole request, of which C knows the beginning.
            Some(bpf) => bpf(dev, (&raw mut request).cast()),
            None => EOPNOTSUPP.to_errno(),
        };
        bindings::netdev_unlock_ops(dev);
        to_result(result)
    };

    // SAFETY: The device is registered.
    let device = unsafe { Device::from_raw(dev) };
    if !request.is_known {
        crate::netdev_err!(device, "no handler: the driver does not know of them\n");
        return Err(EOPNOTSUPP);
    }
    result.inspect_err(|error| {
        let reason = if extack._msg.is_null() {
            c"no memory"
        } else {
            // SAFETY: The reason is static, or in `extack`.
            unsafe { CStr::from_char_ptr(extack._msg) }
        };
        crate::netdev_err!(device, "no handler: {reason}: {error:?}\n");
    })
}

/// A port, and the handler of its device.
struct Entry {
    port: Arc<Port>,
    hook: Option<Arc<Hook>>,
    /// The reference to the handler, whose type is not known here.
    _handler: Option<KBox<dyn Send>>,
}

/// The part of [`Handlers`] that C knows.
///
/// # Invariants
///
/// `notifier` is registered. Hooks that are not revoked are those of entries whose ports have a
/// device.
#[pin_data(PinnedDrop)]
#[repr(C)]
struct Watch {
    // First, so that a pointer to it is a pointer to the whole.
    #[pin]
    notifier: Opaque<bindings::notifier_block>,
    entries: RtnlCell<KVec<Entry>>,
}

// SAFETY: C has a lock for the notifier. The entries are `Send`, and RTNL protects them.
unsafe impl Send for Watch {}

// SAFETY: As above.
unsafe impl Sync for Watch {}

impl Watch {
    fn new() -> Result<Pin<KBox<Self>>> {
        let this = KBox::pin_init(
            pin_init!(Self {
                notifier: Opaque::new(bindings::notifier_block {
                    notifier_call: Some(notify),
                    ..Default::default()
                }),
                entries: RtnlCell::new(KVec::new()),
            }),
            GFP_KERNEL,
        )?;

        // If this fails, C does not find it when it is dropped, and does nothing.
        //
        // SAFETY: The notifier is pinned, and unregistered before it is freed. This is process
        // context, and RTNL is not held.
        to_result(unsafe { bindings::register_netdevice_notifier(this.notifier.get()) })?;
        // INVARIANT: It is registered, and there are no entries.
        Ok(this)
    }
}

#[pinned_drop]
impl PinnedDrop for Watch {
    fn drop(self: Pin<&mut Self>) {
        // C tells the notifier of each device as if it went away, so all hooks are revoked. Poll
        // functions that have found one before have ended when a grace period has passed.
        //
        // SAFETY: Process context, and RTNL is not held.
        unsafe {
            bindings::unregister_netdevice_notifier(self.notifier.get());
            bindings::synchronize_net();
        }
    }
}

/// A device goes away: detaches its handlers, and leaves its ports.
///
/// # Safety
///
/// To be called by C with RTNL held, for the notifier of a [`Watch`].
unsafe extern "C" fn notify(
    notifier: *mut bindings::notifier_block,
    event: c_ulong,
    info: *mut c_void,
) -> c_int {
    if event == bindings::netdev_cmd_NETDEV_UNREGISTER as c_ulong {
        // SAFETY: By the safety requirements. RTNL is held, by a caller that has no token: neither
        // the core nor `Handlers` lend one to this.
        let (watch, dev, rtnl) = unsafe {
            (
                &*notifier.cast_const().cast::<Watch>(),
                (*info.cast::<bindings::netdev_notifier_info>()).dev,
                &mut Rtnl::assume_held(),
            )
        };

        let mut is_attached = false;
        for entry in watch.entries.get_mut(rtnl) {
            if entry.port.dev() == dev {
                if let Some(hook) = &entry.hook {
                    // INVARIANT: The port loses its device.
                    hook.revoke();
                    is_attached = true;
                }
                entry.port.leave();
            }
        }
        if is_attached {
            // SAFETY: The device exists, and RTNL is held. It cannot refuse this.
            let _ = unsafe { ask(dev, None) };
        }
    }
    // CAST: A small number.
    bindings::NOTIFY_DONE as c_int
}

/// The handlers of a module, and the devices that they forward frames to.
///
/// They belong to the module, and are detached when it is unloaded, or could not be initialised.
pub struct Handlers(Pin<KBox<Watch>>);

impl Handlers {
    /// Initialises the handlers of module `T`, once; `EBUSY` after that.
    ///
    /// # Safety
    ///
    /// The first call with this `is_loaded` must be that of the module's loader, which drops the
    /// result before the code of `T` goes.
    #[doc(hidden)]
    pub unsafe fn new<T: HandlerModule>(is_loaded: &SetOnce<()>) -> Result<Self> {
        if !is_loaded.populate(()) {
            return Err(EBUSY);
        }
        let mut handlers = Self::empty()?;
        T::init(&mut handlers)?;
        Ok(handlers)
    }

    /// None.
    pub(in super::super) fn empty() -> Result<Self> {
        Ok(Self(Watch::new()?))
    }

    /// Finds a device of the first network namespace by its index (`ip -o link`).
    ///
    /// # Errors
    ///
    /// [`ENODEV`] if there is none; [`ENOMEM`].
    pub fn port(&mut self, index: u32) -> Result<Arc<Port>> {
        let index = c_int::try_from(index)?;

        self.find(|net| {
            // SAFETY: The namespace always exists, and RTNL is held.
            unsafe { bindings::__dev_get_by_index(net, index) }
        })
    }

    /// As [`Self::port`], by its name.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn port_by_name(&mut self, name: &CStr) -> Result<Arc<Port>> {
        self.find(|net| {
            // SAFETY: The namespace always exists, and RTNL is held.
            unsafe { bindings::__dev_get_by_name(net, name.as_char_ptr()) }
        })
    }

    /// Makes a port for the device that `f` finds with RTNL held.
    fn find(
        &mut self,
        f: impl FnOnce(*mut bindings::net) -> *mut bindings::net_device,
    ) -> Result<Arc<Port>> {
        Rtnl::with(|rtnl| {
            let dev = NonNull::new(f(&raw mut bindings::init_net)).ok_or(ENODEV)?;
            // SAFETY: Devices that are found with RTNL held are registered. `notify()` calls
            // `leave()`, to which the core adds a grace period.
            let port = Arc::new(unsafe { Port::new(dev) }, GFP_KERNEL)?;
            let entry = Entry {
                port: port.clone(),
                hook: None,
                _handler: None,
            };

            self.0.entries.get_mut(rtnl).push(entry, GFP_KERNEL)?;
            Ok(port)
        })
    }

    /// Attaches a handler to the device of a port that [`Self::port`] has found: it sees what the
    /// device receives, in place of a program. One handler can be attached to several devices.
    ///
    /// # Errors
    ///
    /// A refusal of the device is logged with the reason: [`EOPNOTSUPP`] if its driver knows no
    /// handlers; [`EBUSY`] if it has a program, a handler, or memory of users; [`EINVAL`] if the
    /// MTU or a feature does not allow it; [`ENOMEM`] if a receive queue did not restart, or
    /// another error for that. [`ENODEV`] if the device is gone.
    pub fn attach<H: Handler>(&mut self, port: &Arc<Port>, handler: Arc<H>) -> Result {
        // SAFETY: If a device gets the hook, `attach_hook()` keeps the handler in `self`, which is
        // dropped before the module's code goes, and revokes the hook before that.
        let hook = Arc::new(unsafe { Hook::new(&*handler) }, GFP_KERNEL)?;

        self.attach_hook(port, hook, KBox::new(handler, GFP_KERNEL)?)
    }

    fn attach_hook(
        &mut self,
        port: &Arc<Port>,
        hook: Arc<Hook>,
        handler: KBox<dyn Send>,
    ) -> Result {
        Rtnl::with(|rtnl| {
            let dev = port.dev();
            let entries = self.0.entries.get(rtnl);
            let Some(place) = entries.iter().position(|one| Arc::ptr_eq(&one.port, port)) else {
                return Err(EINVAL);
            };

            if dev.is_null() {
                return Err(ENODEV);
            }
            if entries.get(place).is_some_and(|one| one.hook.is_some()) {
                return Err(EBUSY);
            }
            // SAFETY: The device is registered, and RTNL is held.
            let result = unsafe { ask(dev, Some(hook.clone())) };
            if result.is_err() {
                hook.revoke();
            } else if let Some(entry) = self.0.entries.get_mut(rtnl).get_mut(place) {
                // INVARIANT: The port has its device, as RTNL was held meanwhile.
                entry.hook = Some(hook);
                entry._handler = Some(handler);
            }
            result
        })
    }
}

/// A module with handlers, see [`module_xdp_handlers!`](crate::module_xdp_handlers).
pub trait HandlerModule {
    /// Finds ports, and attaches handlers. Called when the module is loaded, in process context,
    /// without RTNL.
    fn init(handlers: &mut Handlers) -> Result;
}

/// Declares a module whose handlers a [`HandlerModule`](crate::net::device::xdp::HandlerModule)
/// attaches.
///
/// # Examples
///
/// ```ignore
/// kernel::module_xdp_handlers! {
///     type: Reflector,
///     name: "reflector",
///     authors: ["Author name"],
///     description: "Description",
///     license: "GPL v2",
/// }
/// ```
#[macro_export]
macro_rules! module_xdp_handlers {
    (type: $type:ty, $($f:tt)*) => {
        struct XdpHandlersModule {
            _handlers: $crate::net::device::xdp::Handlers,
        }

        impl $crate::Module for XdpHandlersModule {
            fn init(_module: &'static $crate::ThisModule) -> $crate::error::Result<Self> {
                static IS_LOADED: $crate::sync::SetOnce<()> = $crate::sync::SetOnce::new();

                // SAFETY: No code of a module runs before the loader calls this. That keeps the
                // result in a static, and drops it as the last thing that it does with the module.
                let _handlers = unsafe {
                    $crate::net::device::xdp::Handlers::new::<$type>(&IS_LOADED)?
                };
                Ok(Self { _handlers })
            }
        }

        $crate::prelude::module! {
            type: XdpHandlersModule,
            $($f)*
        }
    }
}
