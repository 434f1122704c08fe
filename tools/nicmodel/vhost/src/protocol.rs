// SPDX-License-Identifier: GPL-2.0
//! The messages of `linux/virtio_pcidev.h`, as bytes.
//!
//! Numbers in the header are in the order of the CPU, which guest and model share.

/// Length of the header of a message.
pub const HEADER: usize = 16;

const CFG_READ: u8 = 1;
const CFG_WRITE: u8 = 2;
const MMIO_READ: u8 = 3;
const MMIO_WRITE: u8 = 4;
const MMIO_MEMSET: u8 = 5;
const MSI: u8 = 7;
const SHARE_PAGE: u8 = 9;
const UNSHARE_PAGE: u8 = 10;

/// Why a message of the guest is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than a header.
    #[error("{0} bytes are too short for a message")]
    Short(usize),
    /// Not an operation that a driver may ask for.
    #[error("operation {0} is not one of the driver's")]
    Operation(u8),
    /// More data are announced than there are.
    #[error("{announced} bytes of data are announced, {present} are there")]
    Data {
        /// In the header.
        announced: u32,
        /// Behind the header.
        present: usize,
    },
    /// Not a size for an access to configuration space.
    #[error("configuration space is not accessed by {0} bytes")]
    ConfigSize(u32),
    /// Outside of the BAR.
    #[error("{size} bytes at {address:#x} are not in BAR {bar}")]
    Outside {
        /// BAR.
        bar: u8,
        /// Offset in the BAR.
        address: u64,
        /// Length of the access.
        size: u32,
    },
    /// The buffers of the message are not in guest memory, or too many.
    #[error("the message's buffers cannot be read")]
    Buffers,
}

/// A request of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// Read configuration space.
    ConfigRead {
        /// Offset.
        address: u64,
        /// 1, 2, 4 or 8.
        size: u32,
    },
    /// Write configuration space.
    ConfigWrite {
        /// Offset.
        address: u64,
        /// The bytes to write.
        data: &'a [u8],
    },
    /// Read a BAR.
    Read {
        /// BAR.
        bar: u8,
        /// Offset.
        address: u64,
        /// Any.
        size: u32,
    },
    /// Write a BAR.
    Write {
        /// BAR.
        bar: u8,
        /// Offset.
        address: u64,
        /// The bytes to write.
        data: &'a [u8],
    },
    /// Set a part of a BAR to one byte.
    Fill {
        /// BAR.
        bar: u8,
        /// Offset.
        address: u64,
        /// Any.
        size: u32,
        /// The byte.
        value: u8,
    },
    /// Let a page of a BAR lie in guest memory.
    Share {
        /// BAR.
        bar: u8,
        /// Offset of the page.
        address: u64,
        /// Guest-physical address of the memory.
        place: u64,
    },
    /// Take such a page back.
    Unshare {
        /// BAR.
        bar: u8,
        /// Offset of the page.
        address: u64,
    },
}

impl<'a> Command<'a> {
    /// Takes a message apart. Bytes past the announced size are padding.
    pub fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let Some((header, data)) = message.split_first_chunk::<HEADER>() else {
            return Err(Malformed::Short(message.len()));
        };
        let [op, bar, _, _, s0, s1, s2, s3, address @ ..] = *header;
        let size = u32::from_ne_bytes([s0, s1, s2, s3]);
        let address = u64::from_ne_bytes(address);
        let take = |size: u32| {
            usize::try_from(size)
                .ok()
                .and_then(|size| data.get(..size))
                .ok_or(Malformed::Data {
                    announced: size,
                    present: data.len(),
                })
        };
        match op {
            CFG_READ => Ok(Self::ConfigRead {
                address,
                size: config_size(size)?,
            }),
            CFG_WRITE => Ok(Self::ConfigWrite {
                address,
                data: take(config_size(size)?)?,
            }),
            MMIO_READ => Ok(Self::Read { bar, address, size }),
            MMIO_WRITE => Ok(Self::Write {
                bar,
                address,
                data: take(size)?,
            }),
            MMIO_MEMSET => Ok(Self::Fill {
                bar,
                address,
                size,
                value: take(1)?[0],
            }),
            SHARE_PAGE => {
                let data = take(8)?;
                let place = data
                    .iter()
                    .rev()
                    .fold(0, |all, byte| all << 8 | u64::from(*byte));
                Ok(Self::Share {
                    bar,
                    address,
                    place,
                })
            }
            UNSHARE_PAGE => Ok(Self::Unshare { bar, address }),
            other => Err(Malformed::Operation(other)),
        }
    }
}

fn config_size(size: u32) -> Result<u32, Malformed> {
    match size {
        1 | 2 | 4 | 8 => Ok(size),
        other => Err(Malformed::ConfigSize(other)),
    }
}

/// A message-signalled interrupt: a 32-bit write of `data` to `address`.
pub fn interrupt(address: u64, data: u32) -> [u8; HEADER + 4] {
    let mut message = [0; HEADER + 4];
    message[0] = MSI;
    message[4..8].copy_from_slice(&4_u32.to_ne_bytes());
    message[8..16].copy_from_slice(&address.to_ne_bytes());
    message[16..].copy_from_slice(&data.to_le_bytes());
    message
}

#[cfg(test)]
mod tests;
