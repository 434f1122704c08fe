// SPDX-License-Identifier: GPL-2.0
//! Files of captured frames, with nanosecond time stamps.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

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
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let fail = |error| format!("cannot write {}: {error}", path.display());
        let mut file = BufWriter::new(File::create(path).map_err(fail)?);
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC_NS.to_le_bytes());
        header.extend_from_slice(&2_u16.to_le_bytes());
        header.extend_from_slice(&4_u16.to_le_bytes());
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&SNAP.to_le_bytes());
        header.extend_from_slice(&ETHERNET.to_le_bytes());
        file.write_all(&header).map_err(fail)?;
        file.flush().map_err(fail)?;
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

/// Reads all frames of a file.
pub(crate) fn load(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let mut data = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut data))
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(&data).map_err(|why| format!("{}: {why}", path.display()))
}

fn parse(data: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let word = |at: usize, big: bool| -> Option<u32> {
        let bytes: [u8; 4] = data.get(at..at + 4)?.try_into().ok()?;
        Some(if big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    };
    let known = |magic| magic == MAGIC_NS || magic == MAGIC_US;
    let big = match (word(0, false), word(0, true)) {
        (Some(magic), _) if known(magic) => false,
        (_, Some(magic)) if known(magic) => true,
        _ => return Err("is no pcap file (pcapng is not read: convert it)".to_owned()),
    };
    if word(20, big) != Some(ETHERNET) {
        return Err("does not hold Ethernet frames".to_owned());
    }
    let mut frames = Vec::new();
    let mut at = HEADER;
    while at < data.len() {
        let length = word(at + 8, big).map(|length| length as usize);
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
            let mut recorder = Recorder::create(&path).expect("writable");
            for frame in &frames {
                recorder.record(5_000_000_001, frame).expect("written");
            }
            recorder.flush().expect("written");
        }
        let read = load(&path);
        std::fs::remove_file(&path).expect("there");
        assert_eq!(read, Ok(frames));
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
