//@ error: E0521 borrowed data escapes outside of associated function
// SPDX-License-Identifier: GPL-2.0

//! The virtual devices of a module are made while it is loaded. A callback that runs with RTNL held
//! would wait for itself if it made or ended one.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        device::{
            Device,
            VirtualDevices,
            VirtualDriver,
            VirtualModule, //
        },
        skbuff::SkBuff, //
    },
    new_mutex,
    prelude::*,
    sync::Mutex, //
};

kernel::module_virtual_devices! {
    type: Ports,
    name: "ports",
    license: "GPL",
}

#[pin_data]
struct Port {
    #[pin]
    devices: Mutex<Option<&'static mut VirtualDevices>>,
}

impl Port {
    fn new(devices: Option<&'static mut VirtualDevices>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self { devices <- new_mutex!(devices) })
    }
}

#[vtable]
impl VirtualDriver for Port {
    const NAME: &'static CStr = c"port%d";

    fn open(&self, _dev: &Device) -> Result {
        match &mut *self.devices.lock() {
            Some(devices) => devices.add(Port::new(None)),
            None => Ok(()),
        }
    }

    fn start_xmit(&self, _skb: SkBuff) {}
}

struct Ports;

impl VirtualModule for Ports {
    fn init(devices: &mut VirtualDevices) -> Result {
        devices.add(Port::new(None))?;
        //~ let port = Port::new(None);
        let port = Port::new(Some(devices));
        KBox::pin_init(port, GFP_KERNEL).map(drop)
    }
}
