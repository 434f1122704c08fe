// SPDX-License-Identifier: GPL-2.0
//! Which frames the receiver takes: addresses, multicast table, VLAN table, length.

use arbitrary_int::traits::Integer;

use crate::device::Device;
use crate::fdir::Director;
use crate::packet::{FCS, be16};
use crate::regs::bits::{
    Ctrl, Fctrl, Hlreg0, Maxfrs, Mcstctrl, Rah, Rdrxctl, Rxctrl, Rxpbsize, Vlnctrl, ral,
};
use crate::regs::file::RegisterFile;
use crate::regs::offset;
use crate::rss::Rss;

/// Largest frame with FCS, unless jumbo frames are enabled.
const STANDARD_FRAME: usize = 1518;
/// Bytes of a VLAN tag, which the limit does not count.
const TAG: usize = 4;
/// Receive addresses.
const RAR_ENTRIES: u32 = 128;

/// The receiver's configuration, read once per change.
#[derive(Debug, Clone)]
pub(crate) struct RxConfig {
    pub enabled: bool,
    pub strip_fcs: bool,
    /// Bytes of packet buffer.
    pub buffer: usize,
    pub rss: Option<Rss>,
    pub director: Option<Director>,
    max_frame: usize,
    unicast: Vec<[u8; 6]>,
    fctrl: Fctrl,
    mcstctrl: Mcstctrl,
    multicast: [u32; 128],
    vlan_filter: bool,
    vlans: [u32; 128],
}

/// Why a frame is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Wrong address or VLAN.
    Filtered,
    /// Wrong length.
    Length,
}

/// Receive address `entry`, if it is valid.
pub(crate) fn receive_address(regs: &RegisterFile, entry: u32) -> Option<[u8; 6]> {
    let high = regs.nth::<Rah>(entry);
    let l = regs.load(ral(entry)).to_le_bytes();
    let h = high.rah().to_le_bytes();
    high.av().then_some([l[0], l[1], l[2], l[3], h[0], h[1]])
}

fn is_tagged(frame: &[u8]) -> bool {
    be16(frame, 12) == 0x8100
}

impl RxConfig {
    pub(crate) fn load(device: &Device) -> Self {
        let regs = &device.regs;
        let table = |base: u32| std::array::from_fn(|i| regs.load(base + 4 * i as u32));
        let jumbo = regs.get::<Hlreg0>().jumboen();
        Self {
            enabled: regs.get::<Rxctrl>().rxen() && !regs.get::<Ctrl>().gio_dis(),
            strip_fcs: regs.get::<Rdrxctl>().crcstrip(),
            buffer: regs.get::<Rxpbsize>().size().as_usize() * 1024,
            rss: Rss::load(regs),
            director: Director::load(device),
            max_frame: if jumbo {
                usize::from(regs.get::<Maxfrs>().mfs())
            } else {
                STANDARD_FRAME
            },
            unicast: (0..RAR_ENTRIES)
                .filter_map(|i| receive_address(regs, i))
                .collect(),
            fctrl: regs.get(),
            mcstctrl: regs.get(),
            multicast: table(offset::MTA),
            vlan_filter: regs.get::<Vlnctrl>().vfe(),
            vlans: table(offset::VFTA),
        }
    }

    /// The most bytes of a frame that get to memory.
    pub(crate) fn longest(&self) -> usize {
        let fcs = if self.strip_fcs { FCS } else { 0 };
        (self.max_frame + TAG).saturating_sub(fcs)
    }

    /// Whether the receiver takes a frame.
    pub(crate) fn accept(&self, frame: &[u8]) -> Result<(), Refusal> {
        if !self.length(frame) {
            return Err(Refusal::Length);
        }
        if !self.address(frame) || !self.vlan(frame) {
            return Err(Refusal::Filtered);
        }
        Ok(())
    }

    /// Whether the length is one that the receiver takes.
    pub(crate) fn length(&self, frame: &[u8]) -> bool {
        let tag = if is_tagged(frame) { TAG } else { 0 };
        frame.len() >= crate::packet::ETH_HEADER && frame.len() + FCS <= self.max_frame + tag
    }

    /// Whether the VLAN, if there is one, is in the table, if that filters.
    pub(crate) fn vlan(&self, frame: &[u8]) -> bool {
        if !is_tagged(frame) || !self.vlan_filter {
            return true;
        }
        let id = usize::from(be16(frame, 14) & 0xfff);
        self.vlans[id >> 5] >> (id & 0x1f) & 1 != 0
    }

    /// Whether the frame is for one of the receive addresses.
    pub(crate) fn exact(&self, to: &[u8; 6]) -> bool {
        self.unicast.contains(to)
    }

    /// Whether the receiver takes frames for this address.
    pub(crate) fn address(&self, frame: &[u8]) -> bool {
        let Some(to) = frame.first_chunk::<6>() else {
            return false;
        };
        if *to == [0xff; 6] {
            return self.fctrl.bam() || self.fctrl.mpe();
        }
        if to[0] & 1 != 0 {
            return self.fctrl.mpe() || self.multicast(to) || self.exact(to);
        }
        self.fctrl.upe() || self.exact(to)
    }

    /// Twelve bits of the address, from where MCSTCTRL says, select a bit of the table.
    fn multicast(&self, to: &[u8; 6]) -> bool {
        if !self.mcstctrl.mfe() {
            return false;
        }
        let (low, high) = (u32::from(to[4]), u32::from(to[5]));
        let bits = match self.mcstctrl.mo().value() {
            0 => low >> 4 | high << 4,
            1 => low >> 3 | high << 5,
            2 => low >> 2 | high << 6,
            _ => low | high << 8,
        } & 0xfff;
        self.multicast[(bits >> 5) as usize] >> (bits & 0x1f) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regs::bits::Register;
    use crate::testing::{MAC, device, set, udp_frame};

    fn accepts(device: &Device, to: [u8; 6]) -> bool {
        let mut frame = udp_frame(60);
        frame[..6].copy_from_slice(&to);
        RxConfig::load(device).accept(&frame).is_ok()
    }

    #[test]
    fn own_address_only_until_told_otherwise() {
        let device = device();
        assert!(accepts(&device, MAC));
        assert!(!accepts(&device, [2, 9, 9, 9, 9, 9]));
        set(&device, Fctrl::ZERO.with_upe(true));
        assert!(accepts(&device, [2, 9, 9, 9, 9, 9]));
    }

    #[test]
    fn a_receive_address_without_its_valid_bit_does_not_count() {
        let device = device();
        device.register_write(offset::RAL_HIGH + 8 * 100, 0x0403_0202);
        device.register_write(offset::RAL_HIGH + 8 * 100 + 4, 0x0605);
        assert!(!accepts(&device, [2, 2, 3, 4, 5, 6]));
        device.register_write(
            offset::RAL_HIGH + 8 * 100 + 4,
            Rah::ZERO.with_av(true).with_rah(0x0605).raw(),
        );
        assert!(accepts(&device, [2, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn broadcast_needs_bam_or_mpe() {
        let device = device();
        assert!(!accepts(&device, [0xff; 6]));
        set(&device, Fctrl::ZERO.with_bam(true));
        assert!(accepts(&device, [0xff; 6]));
        set(&device, Fctrl::ZERO.with_mpe(true));
        assert!(accepts(&device, [0xff; 6]));
    }

    #[test]
    fn multicast_goes_by_the_table() {
        let device = device();
        let group = [0x01, 0, 0x5e, 0, 0, 0x01];
        assert!(!accepts(&device, group));
        // Offset 0: bits 4 to 15 of the last two bytes, here 0x010.
        device.register_write(offset::MTA, 1 << 16);
        assert!(!accepts(&device, group), "not without MFE");
        set(&device, Mcstctrl::ZERO.with_mfe(true));
        assert!(accepts(&device, group));
        assert!(!accepts(&device, [0x01, 0, 0x5e, 0, 0, 0x02]));
    }

    #[test]
    fn vlan_table() {
        let device = device();
        let mut frame = udp_frame(64);
        frame[..6].copy_from_slice(&MAC);
        frame[12..16].copy_from_slice(&[0x81, 0x00, 0x00, 0x2a]);
        assert!(RxConfig::load(&device).accept(&frame).is_ok());
        set(&device, Vlnctrl::ZERO.with_vfe(true).with_vet(0x8100));
        assert_eq!(
            RxConfig::load(&device).accept(&frame),
            Err(Refusal::Filtered)
        );
        device.register_write(offset::VFTA + 4, 1 << 10);
        assert!(RxConfig::load(&device).accept(&frame).is_ok());
    }

    #[test]
    fn length_limit_follows_jumbo_enable() {
        let device = device();
        let mut frame = udp_frame(2000);
        frame[..6].copy_from_slice(&MAC);
        assert_eq!(RxConfig::load(&device).accept(&frame), Err(Refusal::Length));
        set(&device, device.regs.get::<Hlreg0>().with_jumboen(true));
        set(&device, Maxfrs::ZERO.with_mfs(9018));
        assert!(RxConfig::load(&device).accept(&frame).is_ok());
        assert_eq!(
            RxConfig::load(&device).accept(&[0; 5]),
            Err(Refusal::Length)
        );
    }
}
