// SPDX-License-Identifier: GPL-2.0
//! Files of captured frames, with nanosecond time stamps.

use std::fs::File;
use std::io::{BufWriter, Write};

const MAGIC_NS: u32 = 0xa1b2_3c4d;
const MAGIC_US: u32 = 0xa1b2_c3d4;
const SNAP: u32 = 65535;
const ETHERNET: u32 = 1;
const HEADER: usize = 24;
const RECORD: usize = 16;

/// Writes frames.
#[derive(Debug)]
pub(crate) struct Recorder(BufWriter<File>);

impl Recorder {
    /// Begins a capture in an empty file.
    pub(crate) fn begin(file: File) -> std::io::Result<Self> {
        let mut file = BufWriter::new(file);
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC_NS.to_le_bytes());
        header.extend_from_slice(&2_u16.to_le_bytes());
        header.extend_from_slice(&4_u16.to_le_bytes());
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&SNAP.to_le_bytes());
        header.extend_from_slice(&ETHERNET.to_le_bytes());
        file.write_all(&header)?;
        file.flush()?;
        Ok(Self(file))
    }

    /// Adds a frame that passed at `time`, in nanoseconds since the beginning of 1970.
    pub(crate) fn record(&mut self, time: u64, frame: &[u8]) -> std::io::Result<()> {
        let length = (frame.len() as u32).to_le_bytes();
        self.0
            .write_all(&((time / 1_000_000_000) as u32).to_le_bytes())?;
        self.0
            .write_all(&((time % 1_000_000_000) as u32).to_le_bytes())?;
        self.0.write_all(&length)?;
        self.0.write_all(&length)?;
        self.0.write_all(frame)
    }

    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// The 32 bits at an offset in a file of one byte order or the other.
fn word(data: &[u8], at: usize, big: bool) -> Option<u32> {
    let bytes = data.get(at..at + 4)?.try_into().ok()?;
    Some(match big {
        true => u32::from_be_bytes(bytes),
        false => u32::from_le_bytes(bytes),
    })
}

/// The byte order of a file that begins like this, if it is a capture.
fn is_big(data: &[u8]) -> Option<bool> {
    [false, true]
        .into_iter()
        .find(|big| matches!(word(data, 0, *big), Some(MAGIC_NS | MAGIC_US)))
}

/// Whether a file that begins like this holds a capture.
pub(crate) fn is_capture(data: &[u8]) -> bool {
    is_big(data).is_some()
}

/// All frames of a file.
pub(crate) fn parse(data: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let big = is_big(data).ok_or("is no pcap file (pcapng is not read: convert it)")?;
    let word = |at| word(data, at, big);
    if word(20) != Some(ETHERNET) {
        return Err("does not hold Ethernet frames".to_owned());
    }
    let mut frames = Vec::new();
    let mut at = HEADER;
    while at < data.len() {
        let length = word(at + 8).map(|length| length as usize);
        let frame = length.and_then(|length| {
            let start = at + RECORD;
            data.get(start..start.checked_add(length)?)
        });
        let Some(frame) = frame else {
            return Err(format!("is cut off at byte {at}"));
        };
        frames.push(frame.to_vec());
        at += RECORD + frame.len();
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let path = std::env::temp_dir().join(format!("nicmodel-{}.pcap", std::process::id()));
        let frames = vec![vec![1; 60], vec![2; 1500]];
        {
            let file = File::create(&path).expect("writable");
            let mut recorder = Recorder::begin(file).expect("writable");
            for frame in &frames {
                recorder.record(5_000_000_001, frame).expect("written");
            }
            recorder.flush().expect("written");
        }
        let read = std::fs::read(&path).expect("readable");
        std::fs::remove_file(&path).expect("there");
        assert_eq!(parse(&read), Ok(frames));
    }

    #[test]
    fn broken_files_are_refused() {
        assert!(parse(b"").is_err());
        assert!(parse(&[0; 100]).is_err());
        let mut data = MAGIC_US.to_le_bytes().to_vec();
        data.extend_from_slice(&[0; 16]);
        data.extend_from_slice(&ETHERNET.to_le_bytes());
        assert_eq!(parse(&data), Ok(vec![]));
        data.extend_from_slice(&[0xff; RECORD]);
        assert!(parse(&data).expect_err("cut off").contains("byte 24"));
    }
}
