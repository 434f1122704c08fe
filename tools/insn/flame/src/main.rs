// SPDX-License-Identifier: GPL-2.0

//! `insn-flame`: folded stacks on standard input, a flame graph (SVG) on standard output.
//!
//! A line is a stack, outermost function first, and the instructions that ran at its end:
//! `vmlinux net_rx_action;ixgbe_rust poll 1234`. A frame is the module and the function.

use std::collections::HashSet;
use std::io::{Read, Write};

use anyhow::{Context, Result};
use clap::Parser;
use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{Options, from_lines};

/// Draws folded stacks as a flame graph.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Heading of the picture.
    #[arg(long)]
    title: String,
    /// Second line of the heading.
    #[arg(long, default_value = "")]
    note: String,
    /// Packets that the counts are of: the picture shows instructions per packet.
    #[arg(long, default_value_t = 1.0)]
    packets: f64,
}

/// The colour of a module's functions.
fn colour(module: &str) -> Color {
    let (r, g, b) = match module {
        "ixgbe_rust" => (0xe0, 0x7b, 0x39),
        "ixgbe" => (0xc9, 0xa2, 0x27),
        "vmlinux" => (0x6f, 0x9f, 0xc8),
        _ => (0xb0, 0xb0, 0xb0),
    };
    Color { r, g, b }
}

/// A colour for every frame, by its module.
fn palette(folded: &str) -> PaletteMap {
    let stacks = folded
        .lines()
        .filter_map(|line| line.trim().rsplit_once(' '));
    let frames: HashSet<&str> = stacks.flat_map(|(stack, _)| stack.split(';')).collect();
    let mut palette = PaletteMap::default();
    for frame in frames {
        let module = frame.split(' ').next().unwrap_or_default();
        palette.insert(frame, colour(module));
    }
    palette
}

fn draw(arguments: &Arguments, folded: &str, out: impl Write) -> Result<()> {
    let mut palette = palette(folded);
    let mut options = Options::default();
    options.title = arguments.title.clone();
    options.subtitle = (!arguments.note.is_empty()).then(|| arguments.note.clone());
    options.count_name = "instructions per packet".to_owned();
    options.name_type = "Function:".to_owned();
    options.factor = 1.0 / arguments.packets;
    options.palette_map = Some(&mut palette);
    // The same counts make the same picture.
    options.deterministic = true;
    from_lines(&mut options, folded.lines(), out).context("cannot draw the stacks")
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut folded = String::new();
    std::io::stdin()
        .read_to_string(&mut folded)
        .context("cannot read the stacks")?;
    draw(&arguments, &folded, std::io::stdout().lock())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACKS: &str = "\
vmlinux net_rx_action;ixgbe_rust poll 300
vmlinux net_rx_action;ixgbe_rust poll;vmlinux a<b> 600
vmlinux net_rx_action 100
";

    fn picture(folded: &str) -> Result<String> {
        let arguments = Arguments {
            title: "a & b".to_owned(),
            note: "note".to_owned(),
            packets: 10.0,
        };
        let mut out = Vec::new();
        draw(&arguments, folded, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn counts_are_per_packet_and_add_up() {
        let text = picture(STACKS).expect("drawn");
        for title in [
            "vmlinux net_rx_action (100 instructions per packet, 100.00%)",
            "ixgbe_rust poll (90 instructions per packet, 90.00%)",
            "vmlinux a&lt;b&gt; (60 instructions per packet, 60.00%)",
        ] {
            assert!(text.contains(title), "{title}: {text}");
        }
        assert!(text.contains("a &amp; b"));
    }

    #[test]
    fn a_module_has_its_colour() {
        let text = picture(STACKS).expect("drawn");
        assert!(text.contains("rgb(224,123,57)"), "the driver: {text}");
        assert!(text.contains("rgb(111,159,200)"), "the kernel");
    }

    #[test]
    fn the_same_counts_make_the_same_picture() {
        assert_eq!(
            picture(STACKS).expect("drawn"),
            picture(STACKS).expect("drawn")
        );
    }

    #[test]
    fn nothing_to_draw_is_said() {
        assert!(picture("").is_err());
    }
}
