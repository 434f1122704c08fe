// SPDX-License-Identifier: GPL-2.0
//! The wires that a port may have.

use crate::files::Files;
use crate::pcap::{Recorder, parse};
use crate::spec::Plug;
use crate::tap::Tap;

/// The wire of one port.
#[derive(Debug, Default)]
pub(crate) enum Wire {
    /// Frames end here, once the checkers have seen them.
    #[default]
    Sink,
    /// The other end is a port.
    Cable(usize),
    /// Frames are recorded; others may be played.
    Pcap(Box<PcapWire>),
    /// The other end is a TAP device of the host.
    Tap(Box<Tap>),
}

/// A recorder and a player.
#[derive(Debug, Default)]
pub(crate) struct PcapWire {
    recorder: Option<Recorder>,
    replay: Vec<Vec<u8>>,
    played: usize,
    dirty: bool,
    error: Option<String>,
}

impl PcapWire {
    pub(crate) fn record(&mut self, time: u64, frame: &[u8]) {
        self.dirty = true;
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.record(time, frame)
        {
            self.error = Some(error.to_string());
            self.recorder = None;
        }
    }

    /// Flushes the recording, so that the file is complete whenever the model is idle.
    pub(crate) fn settle(&mut self) {
        if std::mem::take(&mut self.dirty)
            && let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.flush()
        {
            self.error = Some(error.to_string());
            self.recorder = None;
        }
    }

    /// The next frame to play.
    pub(crate) fn peek(&self) -> Option<&[u8]> {
        self.replay.get(self.played).map(Vec::as_slice)
    }

    pub(crate) fn advance(&mut self) {
        self.played += 1;
    }

    /// Why recording has ended early.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

impl Wire {
    /// Creates the wire that a request describes.
    pub(crate) fn new(
        plug: &Plug,
        port: usize,
        ports: usize,
        files: &Files,
    ) -> Result<Self, String> {
        match plug {
            Plug::Sink {} => Ok(Self::Sink),
            Plug::Cable { peer } if *peer >= ports => Err(format!(
                "peer: there is no port {peer}, only 0 to {}",
                ports - 1
            )),
            Plug::Cable { peer } if *peer == port => {
                Err("peer: a cable has two ends; give the other port".to_owned())
            }
            Plug::Cable { peer } => Ok(Self::Cable(*peer)),
            Plug::Pcap {
                path: None,
                replay: None,
            } => Err("pcap needs a path to record to, a replay to play, or both".to_owned()),
            Plug::Pcap { path, replay } => {
                // Read first: to record to the file that is played would empty it.
                let replay = replay.as_ref().map_or(Ok(Vec::new()), |path| {
                    let data = files.read(path)?;
                    parse(&data).map_err(|why| format!("{}: {why}", path.display()))
                });
                let replay = replay.map_err(|error| format!("replay: {error}"))?;
                let recorder = path.as_ref().map(|path| {
                    Recorder::begin(files.write(path)?).map_err(|error| error.to_string())
                });
                let recorder = recorder.transpose();
                Ok(Self::Pcap(Box::new(PcapWire {
                    recorder: recorder.map_err(|error| format!("path: {error}"))?,
                    replay,
                    ..PcapWire::default()
                })))
            }
            Plug::Tap { path } => files
                .check_tap(path)
                .and_then(|()| Tap::attach(path))
                .map(|tap| Self::Tap(Box::new(tap))),
        }
    }
}
