// SPDX-License-Identifier: GPL-2.0
//! The ports: each a device behind a socket of the transport that was asked for.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nicmodel_device::clock::Clock;
use nicmodel_device::device::{Device, Identity};
use nicmodel_device::function::PciFunction;
use nicmodel_device::judge::{Judge, Settings};
use nicmodel_device::regs::file::RegisterFile;
use nicmodel_transport::Server;
use nicmodel_vfio::{Layout, SharedRegisters};
use nicmodel_vhost::{Commands, SharedPages};
use nicmodel_wire::{End, Stream};

use crate::{ServeArguments, Transport};

/// User-Mode Linux has room for so many devices.
const UML_DEVICES: u8 = 8;

/// A port, and how a guest gets to it.
pub struct Port {
    /// The card.
    pub device: Arc<Device>,
    /// Its socket.
    pub server: Box<dyn Server>,
    /// Where the socket is.
    pub path: PathBuf,
    /// The guest's accesses, if they are polled for.
    pub commands: Option<Arc<Commands>>,
}

/// Whether the arguments fit together.
pub fn check(arguments: &ServeArguments) -> Result<()> {
    if arguments.transport == Transport::Stream && arguments.trap {
        bail!("--trap is for the modelled card, not for --transport stream");
    }
    if arguments.transport == Transport::Vhost && arguments.ports > UML_DEVICES {
        bail!(
            "--ports {}: User-Mode Linux has room for {UML_DEVICES} PCI devices",
            arguments.ports
        );
    }
    Ok(())
}

/// The MAC address of a port: locally administered, the port in the last byte.
fn mac(port: u8) -> [u8; 6] {
    [0x02, 0x82, 0x59, 0x90, 0x00, port]
}

/// Makes the ports that the arguments ask for, listening.
pub fn open(arguments: &ServeArguments, clock: &Arc<dyn Clock>) -> Result<Vec<Port>> {
    (0..arguments.ports)
        .map(|port| match arguments.transport {
            Transport::Vfio => vfio(arguments, port, clock),
            Transport::Vhost => vhost(arguments, port, clock),
            Transport::Stream => bail!("a stream has no card"),
        })
        .collect()
}

/// Makes sockets for cards that QEMU models, listening.
pub fn streams(arguments: &ServeArguments) -> Result<(Vec<End>, Vec<PathBuf>)> {
    let mut ends = Vec::new();
    let mut paths = Vec::new();
    for port in 0..arguments.ports {
        let path = path(arguments, port);
        nicmodel_transport::make_free(&path)?;
        let stream = Stream::bind(&path, mac(port))
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        ends.push(End::Stream(stream));
        paths.push(path);
    }
    Ok((ends, paths))
}

fn path(arguments: &ServeArguments, port: u8) -> PathBuf {
    arguments.dir.join(format!("port{port}.sock"))
}

fn identity(arguments: &ServeArguments, port: u8, mapped: bool) -> Identity {
    Identity {
        device_id: arguments.device_id,
        mac: mac(port),
        mapped,
    }
}

/// A device, with a judge if one was asked for.
fn device(
    arguments: &ServeArguments,
    port: u8,
    mapped: bool,
    registers: RegisterFile,
    clock: &Arc<dyn Clock>,
) -> Arc<Device> {
    let identity = identity(arguments, port, mapped);
    let device = Device::new(identity, registers, Arc::clone(clock));
    Arc::new(if arguments.judge {
        device.judged(Judge::new(Settings {
            port: usize::from(port),
            seed: arguments.seed,
            excused: arguments.excuse,
            conventions: arguments.conventions,
        }))
    } else {
        device
    })
}

/// The pages that a guest may reach without the card's seeing it.
fn layout(arguments: &ServeArguments) -> Layout {
    if arguments.trap {
        Layout::trapped()
    } else {
        Layout::mapped()
    }
}

fn vfio(arguments: &ServeArguments, port: u8, clock: &Arc<dyn Clock>) -> Result<Port> {
    let layout = layout(arguments);
    let (registers, shared) =
        SharedRegisters::create().context("cannot make memory for the registers")?;
    let device = device(arguments, port, !arguments.trap, registers, clock);
    let path = path(arguments, port);
    let function = Arc::clone(&device) as Arc<dyn PciFunction>;
    let memory = device.memory.clone();
    let server = nicmodel_vfio::Server::bind(&path, function, memory, Some(shared), &layout)?;
    Ok(Port {
        device,
        server: Box::new(server),
        path,
        commands: None,
    })
}

fn vhost(arguments: &ServeArguments, port: u8, clock: &Arc<dyn Clock>) -> Result<Port> {
    let offered = layout(arguments);
    let (registers, pages) =
        SharedPages::create(offered.pages()).context("cannot make memory for the registers")?;
    // Until the guest asks for pages, every access is a message.
    let device = device(arguments, port, false, registers, clock);
    let path = path(arguments, port);
    let function = Arc::clone(&device) as Arc<dyn PciFunction>;
    let server = nicmodel_vhost::Server::bind(&path, function, pages)?;
    let commands = Some(server.commands());
    Ok(Port {
        device,
        server: Box::new(server),
        path,
        commands,
    })
}
