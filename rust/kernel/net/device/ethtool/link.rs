// SPDX-License-Identifier: GPL-2.0

//! State and abilities of the link.

use super::super::prelude::*;

use crate::error::VTABLE_DEFAULT_ERROR;

/// The kind of connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Connector {
    /// Twisted pair.
    TwistedPair = bindings::PORT_TP as u8,
    /// A fibre, or a cage for modules.
    Fibre = bindings::PORT_FIBRE as u8,
    /// A cable that is attached to its modules.
    DirectAttach = bindings::PORT_DA as u8,
    /// None: a backplane, for instance.
    None = bindings::PORT_NONE as u8,
    /// Another one.
    Other = bindings::PORT_OTHER as u8,
}

/// A mode in which a link can be, or another ability of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LinkMode {
    /// Negotiates the mode with its partner.
    Autoneg = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_Autoneg_BIT,
    /// Has a connector for twisted pair.
    TwistedPair = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_TP_BIT,
    /// Has a connector for a fibre.
    Fibre = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_FIBRE_BIT,
    /// Is a backplane.
    Backplane = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_Backplane_BIT,
    /// Pauses, and asks its partner to.
    Pause = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_Pause_BIT,
    /// 1 Gb/s over twisted pair, also for ports whose medium is not known.
    Base1000T = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_1000baseT_Full_BIT,
    /// 1 Gb/s over a backplane.
    Base1000Kx = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_1000baseKX_Full_BIT,
    /// 1 Gb/s over a fibre.
    Base1000X = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_1000baseX_Full_BIT,
    /// 10 Gb/s over twisted pair, also for ports whose medium is not known.
    Base10000T = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10000baseT_Full_BIT,
    /// 10 Gb/s over a cable that is attached to its modules.
    Base10000Cr = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10000baseCR_Full_BIT,
    /// 10 Gb/s over a fibre, for short distances.
    Base10000Sr = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10000baseSR_Full_BIT,
    /// 10 Gb/s over a fibre, for long distances.
    Base10000Lr = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10000baseLR_Full_BIT,
    /// 10 Gb/s over a fibre, for very long distances.
    Base10000Er = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10000baseER_Full_BIT,
    /// 10 Gb/s over four lanes of a backplane.
    Base10000Kx4 = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10000baseKX4_Full_BIT,
    /// 10 Gb/s over one lane of a backplane.
    Base10000Kr = bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10000baseKR_Full_BIT,
}

/// The settings of a link, see [`LinkOps::link`].
#[derive(Clone, Copy, Debug)]
pub struct LinkSettings {
    /// The speed in Mb/s, if the link is up. It is full duplex.
    pub speed: Option<u32>,
    /// The connector.
    pub connector: Connector,
    /// The mode is negotiated.
    pub autoneg: bool,
    /// The modes that the port supports.
    pub supported: &'static [LinkMode],
    /// Those that it advertises.
    pub advertised: &'static [LinkMode],
}

impl LinkSettings {
    /// Those of a link that has this speed, if it is up, and of which no more is known.
    pub const fn new(speed: Option<u32>) -> Self {
        Self {
            speed,
            connector: Connector::Other,
            autoneg: false,
            supported: &[],
            advertised: &[],
        }
    }
}

/// A user's wish for a link, see [`LinkOps::set_link`].
#[derive(Clone, Copy, Debug)]
pub struct LinkRequest<'a> {
    /// The speed in Mb/s; [`None`] if it is not known.
    pub speed: Option<u32>,
    /// To send and to receive at a time.
    pub full_duplex: bool,
    /// Negotiate the mode.
    pub autoneg: bool,
    advertised: &'a [c_ulong],
}

impl LinkRequest<'_> {
    /// Whether the modes to advertise are these, and no others.
    pub fn advertises(&self, modes: &[LinkMode]) -> bool {
        let mut bitmap = BITMAP;

        set(&mut bitmap, modes);
        self.advertised == bitmap
    }
}

/// An empty bitmap of link modes, as long as those of the core.
const BITMAP: [c_ulong; LINK_MODES.div_ceil(c_ulong::BITS as usize)] =
    [0; LINK_MODES.div_ceil(c_ulong::BITS as usize)];

const LINK_MODES: usize =
    bindings::ethtool_link_mode_bit_indices___ETHTOOL_LINK_MODE_MASK_NBITS as usize;

/// Sets bits in a bitmap of link modes.
fn set(bitmap: &mut [c_ulong], modes: &[LinkMode]) {
    for mode in modes {
        let bit = *mode as u32;

        if let Some(word) = bitmap.get_mut((bit / c_ulong::BITS) as usize) {
            *word |= 1 << (bit % c_ulong::BITS);
        }
    }
}

/// A driver that knows of its link, see [`OptionalOps::link`].
#[vtable]
pub trait LinkOps: Driver {
    /// The state and the abilities of the link, for `ethtool DEV` and the core.
    fn link<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        lock: &mut OpsLocked<'bound>,
    ) -> LinkSettings;

    /// Changes the settings of the link, for `ethtool -s`. The core has filled in those of
    /// [`LinkOps::link`] for what users do not change. By [`Device::refuse`], they get to know why
    /// not.
    fn set_link<'bound>(
        _data: Pin<&Self::Data<'bound>>,
        _dev: &Device,
        _request: LinkRequest<'_>,
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: LinkOps> OptionalOps<T> {
    /// Adds the callbacks of [`LinkOps`].
    pub const fn link(mut self) -> Self {
        self.ethtool.get_link_ksettings = Some(Self::get_link_ksettings);
        if T::HAS_SET_LINK {
            self.ethtool.set_link_ksettings = Some(Self::set_link_ksettings);
        }
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `settings`.
    unsafe extern "C" fn get_link_ksettings(
        dev: *mut bindings::net_device,
        settings: *mut bindings::ethtool_link_ksettings,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, gives us `settings` to fill in,
        // zeroed, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let settings = unsafe { &mut *settings };
        if let Err(error) = inner.check_reachable() {
            return error.to_errno();
        }
        let link = T::link(inner.data(), inner.dev(), &mut lock);

        let base = &mut settings.base;
        // CAST: The constants are -1 and 255, and small numbers.
        (base.speed, base.duplex) = match link.speed {
            Some(speed) => (speed, bindings::DUPLEX_FULL as u8),
            None => (u32::MAX, bindings::DUPLEX_UNKNOWN as u8),
        };
        base.port = link.connector as u8;
        base.autoneg = link.autoneg.into();
        set(&mut settings.link_modes.supported, link.supported);
        set(&mut settings.link_modes.advertising, link.advertised);
        0
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `settings`.
    unsafe extern "C" fn set_link_ksettings(
        dev: *mut bindings::net_device,
        settings: *const bindings::ethtool_link_ksettings,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, with valid `settings`, and holds
        // its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let settings = unsafe { &*settings };
        let base = &settings.base;
        let request = LinkRequest {
            speed: (base.speed != u32::MAX).then_some(base.speed),
            // While the link is down, that is not known either.
            full_duplex: u32::from(base.duplex) != bindings::DUPLEX_HALF,
            autoneg: base.autoneg != 0,
            advertised: &settings.link_modes.advertising,
        };

        inner.if_reachable(|| {
            // No driver has a choice of these. The core adds what the user does not mention.
            let link = T::link(inner.data(), inner.dev(), &mut lock);
            if base.port != link.connector as u8
                || base.phy_address != 0
                || base.eth_tp_mdix_ctrl != 0
            {
                return Err(inner.dev().refuse(
                    EINVAL,
                    "link: port, PHY address and MDI-X cannot be changed",
                ));
            }
            T::set_link(inner.data(), inner.dev(), request, &mut lock)
        })
    }
}

#[macros::kunit_tests(rust_net_link_settings)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_bits() {
        let mut bitmap = [0; 2];

        set(&mut bitmap, &[LinkMode::Autoneg, LinkMode::Base10000T]);
        assert_eq!(bitmap, [1 << 6 | 1 << 12, 0]);
        // A bitmap that is too short.
        set(&mut [], &[LinkMode::Pause]);
    }

    #[test]
    fn requests_are_compared_as_a_whole() {
        let mut bitmap = BITMAP;

        set(&mut bitmap, &[LinkMode::Fibre, LinkMode::Base10000T]);
        let request = LinkRequest {
            speed: None,
            full_duplex: true,
            autoneg: false,
            advertised: &bitmap,
        };
        assert!(request.advertises(&[LinkMode::Base10000T, LinkMode::Fibre]));
        assert!(!request.advertises(&[LinkMode::Base10000T]));
        assert!(!request.advertises(&[LinkMode::Base10000T, LinkMode::Fibre, LinkMode::Pause]));
    }
}
