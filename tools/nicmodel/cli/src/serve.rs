// SPDX-License-Identifier: GPL-2.0
//! Puts the pieces together and serves until it is stopped.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, bail};
use nicmodel_device::clock::{Clock, RealClock};
use nicmodel_device::function::{Kick, Source};
use nicmodel_transport::{Error, Server};
use nicmodel_wire::Fabric;
use nicmodel_wire::files::Files;

use crate::control::Control;
use crate::engine::{self, Waker};
use crate::{ServeArguments, Transport};
use crate::{ports, sigbus};

/// Signals that end the process, and the one by which the last server says that it is done.
const STOP: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// Serves.
pub fn serve(arguments: &ServeArguments) -> Result<()> {
    ports::check(arguments)?;
    // Before any thread starts, so that all inherit it and only `wait` gets the signals.
    block_signals();
    sigbus::survive();
    make_private(&arguments.dir)?;

    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let (ports, streams, mut paths) = if arguments.transport == Transport::Stream {
        let (ends, paths) = ports::streams(arguments)?;
        (Vec::new(), ends, paths)
    } else {
        (ports::open(arguments, &clock)?, Vec::new(), Vec::new())
    };
    let devices: Vec<_> = ports.iter().map(|port| Arc::clone(&port.device)).collect();
    paths.extend(ports.iter().map(|port| port.path.clone()));
    let queues: Vec<_> = ports.iter().filter_map(|p| p.commands.clone()).collect();

    let (requests, inbox) = mpsc::channel();
    let mut fabric = if devices.is_empty() {
        Fabric::of(streams, Arc::clone(&clock), inbox)
    } else {
        Fabric::new(devices.clone(), Arc::clone(&clock), inbox)
    };
    let folder = match &arguments.files {
        Some(folder) => folder,
        None => &arguments.dir.join("captures"),
    };
    let files = Files::below(folder, arguments.tap.clone())
        .with_context(|| format!("--files {}", folder.display()))?;
    fabric.set_files(files);
    let sources: Vec<_> = queues
        .iter()
        .map(|queue| Arc::clone(queue) as Arc<dyn Source>)
        .collect();
    let waker = Arc::new(Waker::default());
    let kick: Arc<dyn Kick> = waker.clone();
    spawn("engine", move || {
        engine::run(fabric, &sources, &*clock, &waker)
    })?;
    for device in &devices {
        device.set_kick(Arc::clone(&kick));
    }
    for queue in &queues {
        queue.set_kick(Arc::clone(&kick));
    }
    let socket = arguments.dir.join("control.sock");
    Control::start(&socket, arguments.ports.into(), devices, requests, kick)?;
    let servers = ports.into_iter().map(|port| port.server).collect();
    start_servers(servers)?;
    paths.push(socket);

    println!("ready");
    wait();
    for path in &paths {
        remove(path);
    }
    Ok(())
}

/// Makes the folder of the sockets, if it is not there, and all that is made from now on for this
/// user alone: whoever reaches a socket is trusted with the card and with captures.
fn make_private(folder: &Path) -> Result<()> {
    // SAFETY: the call only changes a number of this process.
    unsafe { libc::umask(0o077) };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make directory {}", folder.display()))?;
    let data = std::fs::symlink_metadata(folder)?;
    // SAFETY: the call has no conditions.
    let user = unsafe { libc::geteuid() };
    if !data.is_dir() || data.uid() != user || data.mode() & 0o022 != 0 {
        bail!(
            "{} is a link, or another user's, or others may write there: choose another --dir",
            folder.display()
        );
    }
    Ok(())
}

fn start_servers(servers: Vec<Box<dyn Server>>) -> Result<()> {
    for (i, server) in servers.into_iter().enumerate() {
        spawn(&format!("port{i}"), move || {
            loop {
                match server.serve() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error @ Error::Accept { .. }) => {
                        eprintln!("nicmodel: port {i}: {error}");
                        break;
                    }
                    Err(error) => eprintln!("nicmodel: port {i}: {error}"),
                }
            }
        })?;
    }
    Ok(())
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .with_context(|| format!("cannot start thread {name}"))?;
    Ok(())
}

fn signal_set() -> libc::sigset_t {
    // SAFETY: an all-zero set is valid memory for sigemptyset to initialise, and the numbers
    // are those of signals.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in STOP {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

fn block_signals() {
    let set = signal_set();
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

fn wait() {
    let set = signal_set();
    let mut signal = 0;
    // SAFETY: both pointers are to live variables.
    while unsafe { libc::sigwait(&raw const set, &raw mut signal) } != 0 {}
}

fn remove(path: &Path) {
    // Already gone is as good.
    let _ = std::fs::remove_file(path);
}
