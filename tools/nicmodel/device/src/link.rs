// SPDX-License-Identifier: GPL-2.0
//! The link of a port: the cable, its far end, the module, and what the driver makes of them.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::irq::{CAUSE_LIGHT, CAUSE_LSC, CAUSE_MODULE};
use crate::module::{Answers, Module};
use crate::regs::bits::{Autoc, Esdp, Gpie, LinkMode};

mod lanes;

pub use self::lanes::Lane;
use self::lanes::Lanes;

/// PCI id of the card that has a cage for modules.
const WITH_CAGE: u16 = 0x10fb;

/// Speed of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Speed {
    /// 1 Gb/s.
    One = 1,
    /// 10 Gb/s.
    Ten = 2,
}

impl Speed {
    fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            2 => Some(Self::Ten),
            _ => None,
        }
    }
}

/// State of a link.
#[derive(Debug)]
pub(crate) struct Link {
    cable: AtomicBool,
    /// The only speed of the far end, by its number.
    far_end: AtomicU8,
    /// Of a port without a cage.
    lanes: Lanes,
    /// The speed of the link, by its number.
    speed: AtomicU8,
    /// The module was set up since it was put in.
    set_up: AtomicBool,
    /// The link was started since then.
    started: AtomicBool,
    /// Changes of the link, and those of them of which the driver knows.
    changes: AtomicU64,
    known: AtomicU64,
    /// Held by a thread that changes something.
    change: Mutex<()>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            cable: AtomicBool::new(true),
            far_end: AtomicU8::new(0),
            lanes: Lanes::default(),
            speed: AtomicU8::new(Speed::Ten as u8),
            set_up: AtomicBool::new(false),
            started: AtomicBool::new(false),
            // That it is there at first is one that the driver has yet to learn.
            changes: AtomicU64::new(1),
            known: AtomicU64::new(0),
            change: Mutex::new(()),
        }
    }
}

impl Device {
    /// Whether the link is up.
    pub fn link(&self) -> bool {
        self.link.speed.load(Ordering::Acquire) != 0
    }

    /// The speed of the link, if it is up.
    pub fn speed(&self) -> Option<Speed> {
        Speed::from_number(self.link.speed.load(Ordering::Acquire))
    }

    /// Whether the link is up as the MAC sees it, which can be told to see one (AUTOC.FLU).
    pub(crate) fn mac_link(&self) -> bool {
        self.link() || self.regs.get::<Autoc>().flu()
    }

    /// The speed of a link that the MAC was told to see.
    pub(crate) fn forced_speed(&self) -> Speed {
        match self.regs.get::<Autoc>().lms() {
            Ok(LinkMode::Gigabit | LinkMode::GigabitNegotiated) => Speed::One,
            Ok(LinkMode::Serial10G | LinkMode::Parallel10G | LinkMode::Backplane) | Err(_) => {
                Speed::Ten
            }
        }
    }

    pub(crate) fn has_cage(&self) -> bool {
        self.identity.device_id == WITH_CAGE
    }

    /// Plugs the cable in or out.
    pub fn set_link(&self, up: bool) {
        self.set_far_end(up, None);
    }

    /// Plugs the cable in or out; its far end has one speed only, or any.
    pub fn set_far_end(&self, up: bool, speed: Option<Speed>) {
        let was = self.link.cable.load(Ordering::Acquire);
        self.watch_link(|| {
            self.link.cable.store(up, Ordering::Release);
            let number = speed.map_or(0, |speed| speed as u8);
            self.link.far_end.store(number, Ordering::Release);
        });
        if was != up && self.regs.get::<Gpie>().sdp1_gpien() && self.slow().sfp.module().is_some() {
            self.pin_rises(CAUSE_LIGHT);
        }
    }

    /// Pulls the module out of the cage, and puts another one in, if any. The same one stays where
    /// it is.
    pub fn set_module(&self, module: Option<Module>) {
        if self.slow().sfp.module() == module.as_ref() {
            return;
        }
        let now = self.clock.now();
        self.watch_link(|| self.slow().sfp.insert(None, now));
        self.link.set_up.store(false, Ordering::Release);
        self.link.started.store(false, Ordering::Release);
        if module.is_none() {
            return;
        }
        self.watch_link(|| self.slow().sfp.insert(module, now));
        if self.regs.get::<Gpie>().sdp2_gpien() {
            self.pin_rises(CAUSE_MODULE);
        }
    }

    fn pin_rises(&self, cause: u32) {
        self.irq.raise_other(cause);
        self.deliver();
        self.kick();
    }

    /// The settings of the EEPROM for the module have got to the physical layer.
    pub(crate) fn note_set_up(&self) {
        self.link.set_up.store(true, Ordering::Release);
    }

    /// Whether a module that works lacks its settings, if it has any.
    pub(crate) fn lacks_set_up(&self) -> bool {
        !self.link.set_up.load(Ordering::Acquire)
            && self
                .slow()
                .sfp
                .module()
                .is_some_and(|module| module.answers != Answers::Never && module.has_settings())
    }

    /// Whether the driver can know of the module in the cage: no pin tells it in time that one was
    /// exchanged.
    pub(crate) fn knows_module(&self) -> bool {
        self.slow().sfp.is_known()
    }

    /// The driver has started the link.
    pub(crate) fn note_start(&self) {
        if !self.lacks_set_up() {
            self.link.started.store(true, Ordering::Release);
        }
    }

    /// The number of changes of the link so far, for [`Self::note_known`].
    pub(crate) fn link_changes(&self) -> u64 {
        self.link.changes.load(Ordering::Acquire)
    }

    /// The driver has read the state of the link as it is after so many changes.
    pub(crate) fn note_known(&self, changes: u64) {
        self.link.known.store(changes, Ordering::Release);
    }

    /// Whether the link is up as the driver has started it, over the module that is in the cage
    /// now if there is one, and the driver has read so.
    pub fn is_link_settled(&self) -> bool {
        let _guard = self.changing();
        self.link()
            && self.link.known.load(Ordering::Acquire) == self.link_changes()
            && (!self.has_cage()
                || self.link.started.load(Ordering::Acquire) && !self.lacks_set_up())
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        let change = self.link.change.lock();
        change.unwrap_or_else(PoisonError::into_inner)
    }

    /// The speed at which there is a link now.
    fn find_speed(&self) -> Option<Speed> {
        if !self.link.cable.load(Ordering::Acquire) {
            return None;
        }
        if !self.has_cage() {
            return self.backplane_speed();
        }
        let slow = self.slow();
        let module = slow.sfp.module()?;
        let (ten, one) = (module.ten(), module.one());
        if self.judge().is_none() {
            // The driver leaves the speed to the module.
            return if ten {
                Some(Speed::Ten)
            } else {
                one.then_some(Speed::One)
            };
        }
        let esdp = self.regs.get::<Esdp>();
        if esdp.sdp3_data() {
            return None;
        }
        let speed = match self.regs.get::<Autoc>().lms() {
            Ok(LinkMode::Serial10G) => Speed::Ten,
            Ok(LinkMode::Gigabit | LinkMode::GigabitNegotiated) => Speed::One,
            Ok(LinkMode::Parallel10G | LinkMode::Backplane) | Err(_) => return None,
        };
        let selected = match (ten, one) {
            // The rate select of the module is low unless the card drives it.
            (true, true) if esdp.sdp5_dir() && esdp.sdp5_data() => Speed::Ten,
            (true, true) => Speed::One,
            (true, false) => Speed::Ten,
            (false, true) => Speed::One,
            (false, false) => return None,
        };
        let far_end = Speed::from_number(self.link.far_end.load(Ordering::Acquire));
        (speed == selected && far_end.is_none_or(|far| far == speed)).then_some(speed)
    }

    /// Makes a change after which the link may have come or gone.
    pub(crate) fn watch_link(&self, change: impl FnOnce()) {
        let guard = self.changing();
        let was_up = self.mac_link();
        self.settle_systim();
        change();
        let number = self.find_speed().map_or(0, |speed| speed as u8);
        let was = self.link.speed.swap(number, Ordering::AcqRel);
        let is_up = self.mac_link();
        if was == number && was_up == is_up {
            return;
        }
        self.link.changes.fetch_add(1, Ordering::AcqRel);
        drop(guard);
        if was != number {
            self.feel_link();
        }
        if let Some(judge) = self.judge() {
            judge.link_changes(self, is_up);
        }
        self.irq.raise_other(CAUSE_LSC);
        self.deliver();
        self.kick();
    }
}

#[cfg(test)]
mod tests;
