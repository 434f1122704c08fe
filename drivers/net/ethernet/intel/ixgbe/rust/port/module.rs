// SPDX-License-Identifier: GPL-2.0

//! The link of a port, over a backplane or over the module in its cage, which may change at any
//! time.

use kernel::{
    net::device::{
        ethtool::msglevel::MsgClass,
        Device,
        Feature, //
    },
    netdev_err,
    netdev_info,
    netdev_notice,
    netdev_warn,
    prelude::*, //
};

use crate::{
    i2c::{
        self,
        Page,
        Transfer, //
    },
    link::{
        self,
        Link, //
    },
    media::Media,
    mmio::Bar0,
    module_parameters,
    regs::ESDP,
    sfp::{
        self,
        Module,
        Speed, //
    }, //
};

use super::{
    cage::{
        Cage,
        Content,
        Kr,
        Loopback, //
    },
    Port, //
};

/// Runs of the watchdog in which a module that has just been plugged in need not respond.
const PATIENCE: u8 = 3;

impl Port<'_> {
    /// Returns whether the cage is full, as far as the NIC can tell.
    fn is_cage_full(&self) -> bool {
        !self.firmware.doubts_link || self.bar.read(ESDP).sdp2_data()
    }

    /// Starts the link after a reset, or the loopback that users want instead.
    pub(super) fn start_link(&self, netdev: &Device) {
        let mut cage = self.cage.lock();

        self.begin(netdev, &mut cage);
        self.follow_loopback(netdev, &mut cage);
    }

    /// Puts the NIC into the loopback that users want, or takes it out of one that they no longer
    /// want. While the firmware has the link, that may fail: the next run of the watchdog tries
    /// again.
    fn follow_loopback(&self, netdev: &Device, cage: &mut Cage) {
        let wanted = netdev.features().contains(Feature::Loopback);
        let loops = wanted && link::loops(&self.bar);

        if loops || !wanted && cage.loopback != Loopback::OfStack {
            return;
        }
        cage.loopback = Loopback::OfStack;
        match link::loop_back(&self.bar, &self.firmware, wanted) {
            Ok(()) if wanted => cage.fails = false,
            Ok(()) => cage.loopback = Loopback::Off,
            Err(error) => {
                if !cage.fails {
                    netdev_warn!(netdev, "failed to switch loopback: {:?}\n", error);
                }
                cage.fails = true;
            }
        }
    }

    /// Starts the link for packets that are to wake the machine: as it was, if it was started.
    ///
    /// The watchdog does not run meanwhile: it would find another speed.
    pub(super) fn keep_link(&self, netdev: &Device) {
        let mut cage = self.cage.lock();

        if let Content::Ready(module) = cage.content {
            // A port that is down may have been reset since. If the firmware does not let go, the
            // settings that there are have to do.
            let _ = sfp::set_up(&self.bar, self.number, &module);
            self.start_at(netdev, &mut cage, module);
        } else {
            self.begin(netdev, &mut cage);
        }
    }

    /// Starts the link of which nothing is known.
    fn begin(&self, netdev: &Device, cage: &mut Cage) {
        cage.fails = false;
        match self.media {
            Media::Backplane => {
                cage.waited = 0;
                if cage.kr == Kr::Off {
                    cage.kr = Kr::On;
                }
                self.start_backplane(netdev, cage)
            }
            Media::SfpPlus if self.is_cage_full() => self.look(netdev, cage),
            Media::SfpPlus => self.empty(netdev, cage),
        }
    }

    /// Starts the link of a backplane.
    fn start_backplane(&self, netdev: &Device, cage: &mut Cage) {
        let kr = match cage.kr {
            Kr::AsIs => None,
            Kr::On => Some(true),
            Kr::Off => Some(false),
        };
        let started = link::start_backplane(&self.bar, &self.firmware, kr);

        if let Err(error) = started {
            if !cage.fails {
                netdev_warn!(netdev, "failed to start the link: {:?}\n", error);
            }
        }
        // As in `start_at()`: the next run of the watchdog tries again, but for this.
        cage.fails = started.is_err_and(|error| error != ETIMEDOUT);
    }

    /// Stops the link.
    pub(super) fn stop_link(&self) {
        let mut cage = self.cage.lock();

        // If the firmware has the link, the next start tries again.
        if cage.loopback == Loopback::OfStack
            && link::loop_back(&self.bar, &self.firmware, false).is_ok()
        {
            cage.loopback = Loopback::Off;
        }
        if self.media == Media::SfpPlus {
            link::laser_off(&self.bar);
        }
        if self.firmware.link_sleeps {
            link::turn_off_in_d3(&self.bar);
        }
    }

    /// Looks what is in the cage, and starts the link over it.
    fn look(&self, netdev: &Device, cage: &mut Cage) {
        let looks = match cage.content {
            Content::Silent(looks) => looks,
            _ => 0,
        };

        cage.content = match sfp::identify(&self.bar, self.number, &mut cage.transfer) {
            Ok(module) if module.is_untested() && !self.allows_untested() => {
                if cage.content != Content::Unusable {
                    netdev_err!(
                        netdev,
                        "SFP+ module not qualified by Intel: {}; see allow_unsupported_sfp\n",
                        module
                    );
                }
                cage.told = None;
                Content::Unusable
            }
            Ok(module) => {
                if cage.told != Some(module) {
                    cage.told = Some(module);
                    tell(netdev, &module, cage.transfer);
                }
                Content::Identified(module)
            }
            Err(error) if error == EOPNOTSUPP => {
                if cage.content != Content::Unusable {
                    netdev_err!(netdev, "unsupported SFP+ module type\n");
                }
                cage.told = None;
                Content::Unusable
            }
            // Nothing else tells on this NIC whether the cage is full.
            Err(error) if error == ENXIO && !self.firmware.doubts_link => {
                return self.empty(netdev, cage);
            }
            Err(error) => {
                if looks + 1 == PATIENCE {
                    if error == EBUSY {
                        netdev_err!(netdev, "firmware does not release the bus of the cage\n");
                    } else {
                        netdev_err!(netdev, "SFP+ module does not respond: {:?}\n", error);
                    }
                }
                Content::Silent(looks.saturating_add(1).min(PATIENCE))
            }
        };
        match cage.content {
            Content::Identified(module) => self.set_up(netdev, cage, module),
            _ => link::laser_off(&self.bar),
        }
    }

    /// Returns whether users, or the EEPROM, allow modules that Intel has not tested.
    fn allows_untested(&self) -> bool {
        self.firmware.any_module || module_parameters::allow_unsupported_sfp.value()
    }

    /// Sets up the physical layer for a module, and starts the link.
    fn set_up(&self, netdev: &Device, cage: &mut Cage, module: Module) {
        match sfp::set_up(&self.bar, self.number, &module) {
            Ok(()) => cage.content = Content::Ready(module),
            Err(error) if error == EOPNOTSUPP || error == EINVAL => {
                netdev_err!(
                    netdev,
                    "no EEPROM settings for this SFP+ module type: {:?}\n",
                    error
                );
                cage.content = Content::Unusable;
                link::laser_off(&self.bar);
                return;
            }
            // The next run of the watchdog tries again.
            Err(error) => {
                if !cage.fails {
                    netdev_warn!(netdev, "failed to set up the SFP+ module: {:?}\n", error);
                }
                cage.fails = true;
                return;
            }
        }

        cage.speed = module.speed();
        if module.is_dual {
            // A link partner that has settled on another speed looks for a new one.
            link::laser_off(&self.bar);
        }
        self.start_at(netdev, cage, module);
    }

    /// Starts the link at the speed whose turn it is.
    fn start_at(&self, netdev: &Device, cage: &mut Cage, module: Module) {
        cage.waited = 0;
        let started = link::start_serial(&self.bar, &self.firmware, cage.speed, module.is_dual);
        if let Err(error) = started {
            if !cage.fails {
                netdev_warn!(netdev, "failed to start the link: {:?}\n", error);
            }
            // The mode is in effect even if negotiation does not show that the pipeline was reset:
            // the link may come up. Else the next run of the watchdog tries again.
            if error != ETIMEDOUT {
                cage.content = Content::Identified(module);
            }
        }
        cage.fails = started.is_err();
    }

    /// Starts a link that negotiates anew, so that the link partner gets to know a new setting.
    pub(crate) fn negotiate_anew(&self, netdev: &Device) {
        let mut cage = self.cage.lock();

        if cage.loopback != Loopback::Off {
            return;
        }
        if let (Some(module), Speed::One) = (cage.module(), cage.speed) {
            self.start_at(netdev, &mut cage, module);
        }
    }

    fn empty(&self, netdev: &Device, cage: &mut Cage) {
        if cage.told.take().is_some() {
            netdev_info!(netdev, "SFP+ module removed\n");
        }
        cage.content = Content::Empty;
        link::laser_off(&self.bar);
    }

    /// Looks after the cage, or the link of a port without one. `inserted`: the NIC has said that
    /// there is a new module.
    pub(super) fn check_cage(&self, netdev: &Device, inserted: bool) {
        let mut cage = self.cage.lock();
        let was = cage.content;

        match cage.loopback {
            Loopback::Off => (),
            Loopback::OfStack => return self.follow_loopback(netdev, &mut cage),
            Loopback::OfTest => return,
        }
        if self.media == Media::Backplane {
            // One that is there by itself need not be started.
            let has_link = self.link_state(&cage) != Link::Down;
            let tries = cage.try_other_lanes(has_link);
            if !has_link && (cage.fails || tries) {
                self.start_backplane(netdev, &mut cage);
            }
            return;
        }
        if inserted {
            return self.look(netdev, &mut cage);
        }
        // A NIC that does not know whether the cage is full has to ask the module.
        let full = if self.firmware.doubts_link {
            self.is_cage_full()
        } else {
            match was {
                Content::Empty | Content::Silent(_) | Content::Identified(_) => true,
                Content::Unusable => sfp::may_be_there(&self.bar, self.number),
                // A link needs a module. The bus may fail while the link is well, and the firmware
                // may use it.
                Content::Ready(_) => {
                    self.link_state(&cage) != Link::Down
                        || sfp::may_be_there(&self.bar, self.number)
                }
            }
        };

        match was {
            Content::Empty if !full => (),
            _ if !full => self.empty(netdev, &mut cage),
            Content::Empty | Content::Silent(_) => self.look(netdev, &mut cage),
            Content::Identified(module) => self.set_up(netdev, &mut cage, module),
            Content::Unusable => (),
            Content::Ready(module) => {
                if module.is_dual && self.link_state(&cage) == Link::Down && cage.try_other_speed()
                {
                    self.start_at(netdev, &mut cage, module);
                }
            }
        }
    }

    /// Starts the link anew: the light from the link partner has come or gone.
    pub(super) fn light_changed(&self, netdev: &Device) {
        let mut cage = self.cage.lock();

        if cage.loopback != Loopback::Off {
            return;
        }
        // The others have one speed, at which the link comes by itself.
        if let Some(module) = cage.module().filter(|module| module.is_dual) {
            if self.link_state(&cage) == Link::Down {
                cage.speed = module.speed();
                self.start_at(netdev, &mut cage, module);
            }
        }
    }

    /// Returns the state of the link. The NIC may mistake noise for a link.
    fn link_state(&self, cage: &Cage) -> Link {
        let possible = match self.media {
            _ if cage.loopback == Loopback::OfStack => true,
            Media::Backplane => true,
            Media::SfpPlus => cage.module().is_some() && self.is_cage_full(),
        };

        if possible {
            link::state(&self.bar)
        } else {
            Link::Down
        }
    }

    /// Reads the link state and reports it to the stack.
    pub(super) fn update_link(&self, dev: &Device) {
        // Serializes this, so that the last report is current.
        let cage = self.cage.lock();
        if cage.loopback == Loopback::OfTest {
            return;
        }
        let mut state = self.link_state(&cage);

        if state != Link::Down && !dev.is_carrier_ok() && self.firmware.doubts_link {
            state = link::confirm(&self.bar);
        }
        self.ptp.set_link(&self.bar, state);
        match state {
            Link::Up(speed) if !dev.is_carrier_ok() => {
                if self.msglevel.has(MsgClass::Link) {
                    netdev_info!(dev, "link is up at {} Mb/s\n", speed);
                }
                dev.carrier_on();
            }
            Link::Down if dev.is_carrier_ok() => {
                if self.msglevel.has(MsgClass::Link) {
                    netdev_info!(dev, "link is down\n");
                }
                dev.carrier_off();
            }
            Link::Up(_) | Link::Down => (),
        }
    }

    /// Puts the NIC into loopback for a test, or takes it out again.
    pub(crate) fn loop_back(&self, on: bool) -> Result {
        let mut cage = self.cage.lock();

        cage.loopback = if on { Loopback::OfTest } else { Loopback::Off };
        link::loop_back(&self.bar, &self.firmware, on)
    }

    /// Returns whether a test has the NIC in loopback.
    pub(super) fn is_tested(&self) -> bool {
        self.cage.lock().loopback == Loopback::OfTest
    }

    /// Returns the module in the cage, if it can be used.
    pub(crate) fn module(&self) -> Option<Module> {
        self.cage.lock().module()
    }

    /// Lets `read` read the EEPROM, of which the NIC reads one word at a time. The settings of a
    /// module come from there, too, with the cage locked.
    pub(crate) fn with_eeprom<R>(&self, read: impl FnOnce(&Bar0<'_>) -> R) -> R {
        let _cage = self.cage.lock();

        read(&self.bar)
    }

    /// Reads a page of the module.
    pub(crate) fn read_module(&self, page: Page, offset: u8, bytes: &mut [u8]) -> Result {
        if self.media != Media::SfpPlus {
            return Err(EOPNOTSUPP);
        }
        let cage = self.cage.lock();

        i2c::read(&self.bar, self.number, page, offset, bytes, cage.transfer)
    }
}

/// Logs what is known about a module.
fn tell(netdev: &Device, module: &Module, transfer: Transfer) {
    netdev_info!(netdev, "SFP+ module: {}\n", module);
    if module.is_untested() {
        netdev_notice!(netdev, "SFP+ module not qualified by Intel\n");
    }
    if module.is_damaged {
        netdev_warn!(netdev, "bad checksum of the SFP+ EEPROM\n");
    }
    if transfer == Transfer::Alone {
        netdev_info!(netdev, "SFP+ EEPROM is read byte by byte\n");
    }
}
