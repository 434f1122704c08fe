// SPDX-License-Identifier: GPL-2.0
//! Transmit offloads: checksums, and cutting a large send into frames.

use arbitrary_int::traits::Integer;

use crate::checksum::{finish, insert_ipv4, sctp, sum};
use crate::descriptor::{Transport, TxContextHigh, TxContextLow};
use crate::packet::{be16, put_be16};
use crate::tx::{MAX_FRAME, MIN_MSS};

/// A context descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub vlan: u16,
    pub mac_len: usize,
    pub ip_len: usize,
    pub l4_len: usize,
    pub mss: usize,
    pub ipv4: bool,
    pub transport: Transport,
}

impl Context {
    pub(crate) fn decode(low: TxContextLow, high: TxContextHigh) -> Self {
        Self {
            vlan: low.vlan(),
            mac_len: low.maclen().as_usize(),
            ip_len: low.iplen().as_usize(),
            l4_len: usize::from(high.l4len()),
            mss: usize::from(high.mss()),
            ipv4: high.ipv4(),
            transport: high.l4t(),
        }
    }

    fn l4(&self) -> usize {
        self.mac_len + self.ip_len
    }

    pub(crate) fn headers(&self) -> usize {
        self.l4() + self.l4_len
    }
}

/// The offload that was asked for does not fit the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonsense;

/// Inserts the checksums that a data descriptor asks for.
pub(crate) fn checksums(
    frame: &mut [u8],
    context: &Context,
    ip: bool,
    transport: bool,
) -> Result<(), Nonsense> {
    if ip {
        if context.ip_len < 20 || context.l4() > frame.len() {
            return Err(Nonsense);
        }
        insert_ipv4(frame, context.mac_len, context.ip_len);
    }
    if transport {
        let l4 = context.l4();
        match context.transport {
            Transport::Tcp => insert_internet(frame, l4, 16, 0, false),
            Transport::Udp => insert_internet(frame, l4, 6, 0, true),
            Transport::Sctp => insert_sctp(frame, l4),
            Transport::Reserved => Err(Nonsense),
        }?;
    }
    Ok(())
}

/// Sums from `l4` to the end; the driver left the sum of the pseudo header in the field.
fn insert_internet(
    frame: &mut [u8],
    l4: usize,
    field: usize,
    extra: u32,
    never_zero: bool,
) -> Result<(), Nonsense> {
    if l4 + field + 2 > frame.len() {
        return Err(Nonsense);
    }
    let value = match finish(sum(&frame[l4..], extra)) {
        0 if never_zero => 0xffff,
        value => value,
    };
    put_be16(frame, l4 + field, value);
    Ok(())
}

fn insert_sctp(frame: &mut [u8], l4: usize) -> Result<(), Nonsense> {
    if l4 + 12 > frame.len() {
        return Err(Nonsense);
    }
    let crc = sctp(&frame[l4..]);
    frame[l4 + 8..l4 + 12].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Masks for the TCP flags of the first, the middle and the last segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlagMasks {
    pub first: u16,
    pub middle: u16,
    pub last: u16,
}

/// Cuts `send` into frames of at most `mss` bytes of payload each.
pub(crate) fn segment(
    send: &[u8],
    context: &Context,
    masks: FlagMasks,
    scratch: &mut Vec<u8>,
    mut out: impl FnMut(&mut Vec<u8>),
) -> Result<(), Nonsense> {
    let headers = context.headers();
    let l4 = context.l4();
    let (min_l4, checksum_at) = match context.transport {
        Transport::Tcp => (20, 16),
        Transport::Udp => (8, 6),
        Transport::Sctp | Transport::Reserved => return Err(Nonsense),
    };
    let min_ip = if context.ipv4 { 20 } else { 40 };
    if context.mss < MIN_MSS
        || headers + context.mss.min(send.len()) > MAX_FRAME
        || context.mac_len < 12
        || context.ip_len < min_ip
        || context.l4_len < min_l4
        || headers >= send.len()
    {
        return Err(Nonsense);
    }
    let (header, payload) = send.split_at(headers);
    let count = payload.len().div_ceil(context.mss);
    for (i, chunk) in payload.chunks(context.mss).enumerate() {
        scratch.clear();
        scratch.extend_from_slice(header);
        scratch.extend_from_slice(chunk);
        let frame = scratch.as_mut_slice();
        let l4_total = context.l4_len + chunk.len();
        let l3 = context.mac_len;
        if context.ipv4 {
            put_be16(frame, l3 + 2, (context.ip_len + l4_total) as u16);
            let id = be16(frame, l3 + 4).wrapping_add(i as u16);
            put_be16(frame, l3 + 4, id);
            // The field counts as the driver left it: in a tunnel, it cancels the further headers.
            let value = finish(sum(&frame[l3..l4], 0));
            put_be16(frame, l3 + 10, value);
        } else {
            put_be16(frame, l3 + 4, (context.ip_len - 40 + l4_total) as u16);
        }
        if context.transport == Transport::Tcp {
            tcp_header(frame, l4, i * context.mss, flag_mask(masks, i, count));
        } else {
            put_be16(frame, l4 + 4, l4_total as u16);
        }
        // The driver left the pseudo header without its length in the field.
        let never_zero = context.transport == Transport::Udp;
        insert_internet(frame, l4, checksum_at, l4_total as u32, never_zero)?;
        out(scratch);
    }
    Ok(())
}

fn flag_mask(masks: FlagMasks, i: usize, count: usize) -> u16 {
    if i + 1 == count {
        // A lone segment is the last one: its flags stay.
        if i == 0 { 0xfff } else { masks.last }
    } else if i == 0 {
        masks.first
    } else {
        masks.middle
    }
}

fn tcp_header(frame: &mut [u8], l4: usize, advance: usize, mask: u16) {
    let sequence = u32::from(be16(frame, l4 + 4)) << 16 | u32::from(be16(frame, l4 + 6));
    let sequence = sequence.wrapping_add(advance as u32);
    put_be16(frame, l4 + 4, (sequence >> 16) as u16);
    put_be16(frame, l4 + 6, sequence as u16);
    let word = be16(frame, l4 + 12);
    put_be16(frame, l4 + 12, word & 0xf000 | word & 0x0fff & mask);
}

#[cfg(test)]
mod tests;
