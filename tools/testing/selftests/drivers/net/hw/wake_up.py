#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Packets wake the machine: users choose which (ethtool -s wol), and while the
machine sleeps, the card looks for these and for no others.

The kernel goes through all steps of a suspend, but wakes up by itself after a
second (pm_test). The model tells whether the card has asked for that before.
"""

import threading
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, KsftSkipEx, defer, ethtool, ip
from lib.py import ksft_disruptive
from lib.py import ksft_eq, ksft_exit, ksft_in, ksft_raises, ksft_run, ksft_variants
from lib.py.nicmodel import NicModel
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import skip_program
from power import offers_sleep, sleep

KNOWN = "umbg"
SENDER = "020000000001"


def _wol(cfg, word):
    """ Return the kinds of packets that ethtool shows behind a word. """
    for line in ethtool(cfg.ifname).stdout.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == word:
            return value.strip()
    return None


def _choose(cfg, kinds):
    ethtool(f"-s {cfg.ifname} wol {kinds}")


def _sysfs(cfg):
    return Path(f"/sys/class/net/{cfg.ifname}/device/power/wakeup")


def magic_at_first(cfg):
    """ A card that can wakes the machine by magic packets, until users choose. """
    ksft_eq(_wol(cfg, "Supports Wake-on"), KNOWN)
    ksft_eq(_wol(cfg, "Wake-on"), "g")
    ksft_eq(_sysfs(cfg).read_text(encoding="utf-8").strip(), "enabled")


@ksft_disruptive
def choice(cfg):
    """ Each choice is shown, here and in sysfs. """
    defer(_choose, cfg, "g")
    for kinds in (*KNOWN, "ub", KNOWN, "d", "mg"):
        _choose(cfg, kinds)
        ksft_eq(_wol(cfg, "Wake-on"), kinds)
        ksft_eq(_sysfs(cfg).read_text(encoding="utf-8").strip(),
                "disabled" if kinds == "d" else "enabled")


@ksft_disruptive
def unknown_kinds_are_refused(cfg):
    """ Kinds that the card does not look for are refused, and change nothing. """
    for kind in "pasf":
        with ksft_raises(CmdExitFailure):
            _choose(cfg, f"g{kind}")
        ksft_eq(_wol(cfg, "Wake-on"), "g")


class Frame(threading.Thread):
    """ A frame that arrives as soon as the card sleeps. """

    def __init__(self, data):
        super().__init__(daemon=True)
        self._model = NicModel()
        self._data = data
        self.answer = None
        self.start()

    def run(self):
        self.answer = self._model.ask("inject", port=0, hex=self._data, asleep=True)
        self._model.close()


def _frame(to, payload=""):
    return to + SENDER + "88b5" + payload.ljust(92, "0")


def _magic(mac):
    """ Return a magic packet to all, with something before and behind. """
    return _frame("ff" * 6, "0800" + "ff" * 6 + 16 * mac + "0102")


def _sleep_with(cfg, frame):
    """ Return how often the card has woken the machine while it slept. """
    before = cfg.model.stats(0)["wake_ups"]
    arrives = Frame(frame)
    sleep()
    arrives.join(30)
    ksft_in("ok", arrives.answer or {}, "the card has slept")
    return cfg.model.stats(0)["wake_ups"] - before


def _arrivals(mac):
    almost = mac[:10] + f"{int(mac[10:], 16) ^ 1:02x}"
    return {
        "magic": _magic(mac),
        # Another address; fifteen times only, and one that is almost the same.
        "other": _magic("02feedfeedfe"),
        "almost": _frame("ff" * 6, "ff" * 6 + 15 * mac + almost),
        "unicast": _frame(mac),
        "to_other": _frame("02feedfeedfe"),
        "multicast": _frame("01005e000001"),
        "broadcast": _frame("ff" * 6),
    }


def _wakes():
    """ Return variants: kinds that are chosen, a frame, and whether it wakes the machine. """
    for kinds, waking in (("g", ("magic",)), ("u", ("unicast",)), ("m", ("multicast",)),
                          ("b", ("broadcast", "magic", "other", "almost")), ("d", ())):
        frames = ("magic", "other", "almost", "unicast", "to_other", "multicast", "broadcast")
        if kinds != "g":
            # Each by a frame that does, and by the most likely one that must not.
            frames = (*waking[:1], {"u": "to_other", "m": "broadcast", "b": "multicast",
                                    "d": "magic"}[kinds])
        for frame in frames:
            yield KsftNamedVariant(f"{kinds}_{frame}", kinds, frame, frame in waking)


@ksft_variants(list(_wakes()))
@ksft_disruptive
def wakes(cfg, kinds, frame, is_woken):
    """ The machine is woken by what was chosen, and by nothing else. """
    defer(_choose, cfg, "g")
    _choose(cfg, kinds)
    mac = cfg.ports[0].mac().replace(":", "")
    ksft_eq(_sleep_with(cfg, _arrivals(mac)[frame]), int(is_woken))


@ksft_disruptive
def off_in_sysfs(cfg):
    """ The choice of sysfs counts as well. """
    if cfg.driver == "ixgbe":
        raise KsftSkipEx("ixgbe turns it on again before it sleeps")
    wakeup = _sysfs(cfg)
    defer(wakeup.write_text, "enabled", encoding="utf-8")
    _choose(cfg, "g")
    wakeup.write_text("disabled", encoding="utf-8")
    mac = cfg.ports[0].mac().replace(":", "")
    ksft_eq(_sleep_with(cfg, _magic(mac)), 0)


@ksft_disruptive
def interface_is_down(cfg):
    """ A card whose interface is down wakes the machine, and is down after that. """
    defer(cfg.set_up)
    ip(f"link set {cfg.ifname} down")
    mac = cfg.ports[0].mac().replace(":", "")
    ksft_eq(_sleep_with(cfg, _magic(mac)), 1)
    ksft_eq(cfg.ports[0].attr("operstate"), "down")


@ksft_disruptive
def own_address(cfg):
    """ The address that counts is the one that users have set. """
    old, new = cfg.ports[0].mac(), "02:00:00:00:aa:01"
    defer(cfg.set_up)
    defer(ip, f"link set {cfg.ifname} address {old}")
    ip(f"link set {cfg.ifname} address {new}")
    ksft_eq(_sleep_with(cfg, _magic(old.replace(":", ""))), 0)
    ksft_eq(_sleep_with(cfg, _magic(new.replace(":", ""))), 1)


@ksft_disruptive
def in_loopback(cfg):
    """ A card in the loopback of its users listens to the wire while it sleeps. """
    if ethtool(f"-k {cfg.ifname}", json=True)[0]["loopback"]["fixed"]:
        raise KsftSkipEx("the driver has no such feature")
    defer(cfg.set_up)
    defer(ethtool, f"-K {cfg.ifname} loopback off")
    ethtool(f"-K {cfg.ifname} loopback on")
    mac = cfg.ports[0].mac().replace(":", "")
    ksft_eq(_sleep_with(cfg, _magic(mac)), 1)


def main():
    """ Ksft boiler plate main """

    if not offers_sleep():
        skip_program("needs a kernel that can sleep (CONFIG_PM_SLEEP_DEBUG)")
    with NicModelEnv(__file__, drivers=["ixgbe_rust", "ixgbe"],
                     why="the driver is not under test") as cfg:
        if _wol(cfg, "Supports Wake-on") in (None, "d"):
            skip_program("needs a card that can wake the machine")
        cfg.set_up()
        ksft_run(judged([magic_at_first, choice, unknown_kinds_are_refused, wakes, off_in_sysfs,
                         interface_is_down, own_address, in_loopback,
                         forwards_after("wake_up")]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
