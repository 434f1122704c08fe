# SPDX-License-Identifier: GPL-2.0

"""
Tests of a modelled network card.

The model of an Intel 82599 (tools/nicmodel of the skbulk project) generates
frames into one port and checks each frame that leaves the other port, connects
ports by a cable, and injects faults on request. Without a control line to it
the whole program is skipped. The model may also be the far side of a card that
others have modelled: then cases that need something of the card itself, such as
faults or a change of the link, are skipped.

Tests that need no more than a port and its peer have ../peer.py instead.
"""

from .cable import CABLE_V4, Cable
from .card import RUST, Card
from .control_line import NicModel
from .env import INFLIGHT, PATIENCE_MS, PEERS, NicModelEnv, forwards_after, traffic_intact
from .judge import judged, looks_away

__all__ = ["CABLE_V4", "INFLIGHT", "PATIENCE_MS", "PEERS", "RUST", "Cable", "Card", "NicModel",
           "NicModelEnv", "forwards_after", "judged", "looks_away", "traffic_intact"]
