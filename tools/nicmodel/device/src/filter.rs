// SPDX-License-Identifier: GPL-2.0
//! Which frames the receiver takes: addresses, multicast table, VLAN table, length.

use arbitrary_int::traits::Integer;

use crate::device::Device;
use crate::fdir::Director;
use crate::packet::{FCS, be16};
use crate::regs::bits::{
    Ctrl, Fctrl, Hlreg0, Maxfrs, Mcstctrl, Rah, Rxctrl, Rxpbsize, Vlnctrl, ral,
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
        let hlreg0 = regs.get::<Hlreg0>();
        Self {
            enabled: regs.get::<Rxctrl>().rxen() && !regs.get::<Ctrl>().gio_dis(),
            strip_fcs: hlreg0.rxcrcstrp(),
            buffer: regs.get::<Rxpbsize>().size().as_usize() * 1024,
            rss: Rss::load(regs),
            director: Director::load(device),
            max_frame: if hlreg0.jumboen() {
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
mod tests;
