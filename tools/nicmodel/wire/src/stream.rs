// SPDX-License-Identifier: GPL-2.0
//! The far side of a card that QEMU models itself: the protocol of `-netdev stream`.
//!
//! QEMU connects to a socket. In both directions, each frame follows its length, in 32 bits in
//! network byte order. QEMU reads no further while its card has no room, so the socket fills.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use nicmodel_device::port::{Arrival, Loss};

/// Bytes in front of a frame.
const PREFIX: usize = 4;
/// Longer frames than this are no frames: QEMU sends none.
const LONGEST: usize = 1 << 17;
/// Bytes that wait for the socket, at most, before the port has no room.
const ROOM: usize = 16 * 1024;
/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// A port behind a socket.
#[derive(Debug)]
pub struct Stream {
    listener: UnixListener,
    socket: Option<UnixStream>,
    mac: [u8; 6],
    /// Bytes on their way to QEMU, of which the first `written` are there.
    out: Vec<u8>,
    written: usize,
    /// Bytes that came from QEMU, of which the first `taken` have been used.
    inbox: Vec<u8>,
    taken: usize,
}

impl Stream {
    /// Listens on `path` for QEMU; the card there has the address `mac`.
    pub fn bind(path: &Path, mac: [u8; 6]) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            socket: None,
            mac,
            out: Vec::new(),
            written: 0,
            inbox: Vec::new(),
            taken: 0,
        })
    }

    /// The address of the card.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Accepts QEMU's connection, if there is none.
    pub(crate) fn begin(&mut self) {
        if self.socket.is_none()
            && let Ok((socket, _)) = self.listener.accept()
            && socket.set_nonblocking(true).is_ok()
        {
            self.socket = Some(socket);
        }
    }

    /// The connection has ended; what was under way is lost.
    fn hang_up(&mut self) {
        self.socket = None;
        self.out.clear();
        self.written = 0;
        self.inbox.clear();
        self.taken = 0;
    }

    /// Whether the port takes another frame now.
    pub(crate) fn room(&self, length: usize) -> bool {
        self.out.len() - self.written + PREFIX + length <= ROOM
    }

    /// Whether frames wait for the socket.
    pub(crate) fn waiting(&self) -> bool {
        !self.out.is_empty()
    }

    /// A frame arrives from the wire.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> Arrival {
        if self.socket.is_none() {
            return Arrival::Lost(Loss::LinkDown);
        }
        if !self.room(frame.len()) && !self.out.is_empty() {
            return Arrival::Lost(Loss::NoDescriptor);
        }
        self.out
            .extend_from_slice(&(frame.len() as u32).to_be_bytes());
        self.out.extend_from_slice(frame);
        Arrival::Taken
    }

    /// Writes what waits. Returns whether anything moved.
    pub(crate) fn drain(&mut self) -> bool {
        let Some(socket) = &mut self.socket else {
            return false;
        };
        let mut moved = false;
        while self.written < self.out.len() {
            match socket.write(&self.out[self.written..]) {
                Ok(0) => break,
                Ok(length) => {
                    self.written += length;
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return moved,
                Err(_) => {
                    self.hang_up();
                    return true;
                }
            }
        }
        self.out.clear();
        self.written = 0;
        moved
    }

    /// Calls `f` with frames that leave the port, until they have `limit` bytes or there are no
    /// more. Returns whether there was any.
    pub(crate) fn transmit(&mut self, limit: usize, mut f: impl FnMut(&[u8], bool)) -> bool {
        let mut sum = 0;
        let mut filled = false;
        while sum < limit {
            match frame(&self.inbox[self.taken..]) {
                Next::Frame(length) => {
                    let start = self.taken + PREFIX;
                    f(&self.inbox[start..start + length], true);
                    self.taken = start + length;
                    sum += length.max(1);
                }
                Next::Partial if filled || !self.fill() => break,
                Next::Partial => filled = true,
                Next::Broken => {
                    self.hang_up();
                    break;
                }
            }
        }
        sum != 0
    }

    /// Reads once. Returns whether anything came.
    fn fill(&mut self) -> bool {
        let Some(socket) = &mut self.socket else {
            return false;
        };
        self.inbox.drain(..self.taken);
        self.taken = 0;
        let before = self.inbox.len();
        self.inbox.resize(before + CHUNK, 0);
        let result = socket.read(&mut self.inbox[before..]);
        self.inbox.truncate(before + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => self.hang_up(),
            Ok(_) => return true,
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(_) => self.hang_up(),
        }
        false
    }
}

/// The beginning of a buffer.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// A frame of this length, behind the prefix.
    Frame(usize),
    /// Not all of a frame.
    Partial,
    /// No frame can be that long.
    Broken,
}

fn frame(bytes: &[u8]) -> Next {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Next::Partial;
    };
    match u32::from_be_bytes(*prefix) as usize {
        length if length > LONGEST => Next::Broken,
        length if length > rest.len() => Next::Partial,
        length => Next::Frame(length),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    fn pair(name: &str) -> (Stream, UnixStream) {
        let path = std::env::temp_dir().join(format!("nicmodel-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut stream = Stream::bind(&path, [2, 0, 0, 0, 0, 1]).unwrap();
        assert_eq!(stream.receive(&[0; 60]), Arrival::Lost(Loss::LinkDown));
        let qemu = UnixStream::connect(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        stream.begin();
        (stream, qemu)
    }

    fn left(stream: &mut Stream) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        stream.transmit(usize::MAX, |frame, _| frames.push(frame.to_vec()));
        frames
    }

    #[test]
    fn frames_leave_whole_however_they_are_cut() {
        let (mut stream, mut qemu) = pair("cut");
        let mut bytes = Vec::new();
        for length in [60_usize, 1, 9018] {
            bytes.extend_from_slice(&(length as u32).to_be_bytes());
            bytes.extend(std::iter::repeat_n(length as u8, length));
        }
        let mut frames = Vec::new();
        for piece in bytes.chunks(7) {
            qemu.write_all(piece).unwrap();
            frames.append(&mut left(&mut stream));
        }
        let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!(lengths, [60, 1, 9018]);
        assert!(frames.iter().all(|f| f.iter().all(|b| *b == f.len() as u8)));
    }

    #[test]
    fn frames_arrive_behind_their_lengths() {
        let (mut stream, mut qemu) = pair("arrive");
        assert_eq!(stream.receive(b"frame"), Arrival::Taken);
        assert!(stream.drain());
        let mut bytes = [0; 9];
        qemu.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0\0\x05frame");
    }

    #[test]
    fn a_card_that_reads_nothing_leaves_no_room() {
        let (mut stream, _qemu) = pair("full");
        let mut sent = 0;
        while stream.room(1514) && sent < 100_000 {
            assert_eq!(stream.receive(&[0; 1514]), Arrival::Taken);
            stream.drain();
            sent += 1;
        }
        assert!(sent < 100_000 && stream.waiting());
    }

    #[test]
    fn a_length_that_makes_no_sense_ends_the_connection() {
        let (mut stream, mut qemu) = pair("broken");
        qemu.write_all(&[0xff; 64]).unwrap();
        assert!(left(&mut stream).is_empty());
        assert_eq!(stream.receive(&[0; 60]), Arrival::Lost(Loss::LinkDown));
    }
}
