// SPDX-License-Identifier: GPL-2.0
//! `nicmodel`: the model of the 82599 as a process.

mod control;
mod engine;
mod module;
mod ports;
mod protocol;
mod rules;
mod serve;
mod sigbus;
mod trace;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use nicmodel_device::judge::exceptions;

#[derive(Debug, Parser)]
#[command(
    version,
    about = "Model of the Intel 82599 for QEMU and User-Mode Linux"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve ports until SIGTERM.
    Serve(ServeArguments),
    /// Print the rules of --judge, and the exceptions, as a table.
    Rules,
}

/// How a guest reaches the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// vfio-user, for QEMU.
    Vfio,
    /// vhost-user PCI, for User-Mode Linux (`virtio_uml.device=SOCKET:ID`).
    Vhost,
    /// No card: frames of a card that QEMU models itself (`-netdev stream`).
    Stream,
}

/// Arguments of `serve`.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArguments {
    /// Folder of the sockets; made if it is not there.
    #[arg(long)]
    pub dir: PathBuf,
    /// The guest's transport: vfio for QEMU, vhost for User-Mode Linux, stream for the frames of
    /// another card.
    #[arg(long, value_enum, default_value_t = Transport::Vfio)]
    pub transport: Transport,
    /// Number of ports; User-Mode Linux takes up to 8.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub ports: u8,
    /// Folder for pcap files, made if it is not there: requests name files in it and below only.
    /// By default it is captures in the folder of the sockets.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// TAP device that requests may attach a port to, made if it is not there. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub tap: Vec<String>,
    /// PCI device id: that of a card with a cage for a module (10fb), or that needs none.
    #[arg(long, default_value = "10fb", value_parser =
        PossibleValuesParser::new(["10fb", "10fc", "10f7"]).try_map(|id| u16::from_str_radix(&id, 16)))]
    pub device_id: u16,
    /// Judge the driver: refuse and count all that the datasheet forbids, and be as slow and
    /// undefined as it allows.
    #[arg(long)]
    pub judge: bool,
    /// Draws the judge's decisions; a run with the same accesses repeats.
    #[arg(long, default_value_t = 1, requires = "judge")]
    pub seed: u64,
    /// Driver whose known breaches are counted apart.
    #[arg(long, value_name = "DRIVER", requires = "judge", value_parser = rules::driver)]
    pub excuse: Option<&'static exceptions::Driver>,
    /// Judge by what ixgbe alone does, too: a driver may do well without.
    #[arg(long, requires = "judge")]
    pub conventions: bool,
    /// Trap every access; per-queue counters then clear on read as on hardware.
    #[arg(long)]
    pub trap: bool,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Rules => {
            print!("{}", rules::table());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nicmodel: {error:#}");
            ExitCode::FAILURE
        }
    }
}
