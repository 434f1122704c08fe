// SPDX-License-Identifier: GPL-2.0

//! Packets.

pub mod users;
