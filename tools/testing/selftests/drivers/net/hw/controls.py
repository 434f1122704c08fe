#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Settings of the card: what ethtool shows is what the card has, what it sets
gets there, and what it refuses says why.
"""

import mmap
import socket
import struct
import subprocess
import time
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, NetdevFamily, bkg, cmd
from lib.py import defer, ethtool, ip, ksft_disruptive, ksft_eq, ksft_exit
from lib.py import ksft_ge, ksft_in, ksft_lt, ksft_raises, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import SOL_PACKET, kernel_log, sum16, wait_until

# The order of registers in the dump: see dump.rs of the driver.
GENERAL = ["CTRL", "STATUS", "CTRL_EXT", "ESDP", "LEDCTL", "EEC", "EIAC", "EIMS", "GPIE",
           "IVAR_MISC", "HLREG0", "MAXFRS", "AUTOC", "AUTOC2", "RXCSUM", "FCTRL", "MRQC",
           "RDRXCTL", "RXCTRL", "DMATXCTL", "MFLCN", "FCCFG", "FCRTL", "FCRTH",
           "WUC", "WUFC", "PCS1GANA"]
PAIR = ["EITR", "RDBAL", "RDBAH", "RDLEN", "RDH", "RDT", "RXDCTL", "SRRCTL", "TDLEN", "TDH",
        "TDT", "TXDCTL"]
PAIRS = 16
EEPROM_WORDS = 0x40
# Pause frames in the advertisement at 1 Gb/s: in both directions, in one.
SYM, ASM = 1 << 7, 1 << 8
LED2_ON, LED2_OFF, LED2_ACTIVITY = 0xe, 0xf, 4
KEY = bytes(range(40))

# In AUTOC2.
LINK_OFF_IN_D3 = 5 << 28
# APME and APMPME of WUC.
WAKES_BY_ITSELF = 0b1001
RFCE, TFCE = 1 << 3, 1 << 3
HASH_TCP4 = 1 << 16
# Of RXDCTL.
VME = 1 << 30

PACKET_RX_RING, PACKET_VERSION, TPACKET_V3 = 5, 10, 2
FILL_RXHASH = 1


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


def _registers(cfg):
    """ Return the registers of the port, and those of each queue pair. """
    raw = subprocess.check_output(["ethtool", "-d", cfg.ifname, "raw", "on"])
    words = [word for (word, ) in struct.iter_unpack("=I", raw)]
    general, rest = words[:len(GENERAL)], words[len(GENERAL):]
    pairs = [dict(zip(PAIR, rest[at:at + len(PAIR)], strict=True))
             for at in range(0, len(rest), len(PAIR))]
    return dict(zip(GENERAL, general, strict=True)), pairs


def registers(cfg):
    """ The registers are those of the card. """
    general, pairs = _registers(cfg)
    ksft_eq(len(pairs), PAIRS)
    ksft_eq(general["MAXFRS"] >> 16, 1518)
    ksft_eq(general["DMATXCTL"] & 1, 1, "transmission is enabled")
    ksft_eq(pairs[0]["RDLEN"], 512 * 16)
    ksft_eq(pairs[1]["RDLEN"], 0, "a queue that is not in use")
    ip(f"link set {cfg.ifname} mtu 9000")
    defer(ip, f"link set {cfg.ifname} mtu 1500")
    ksft_eq(_registers(cfg)[0]["MAXFRS"] >> 16, 9018)


@ksft_disruptive
def stays_asleep(cfg):
    """ The card neither wakes the machine nor keeps its link meanwhile. """
    def state():
        general = _registers(cfg)[0]
        return general["WUC"] & WAKES_BY_ITSELF, general["WUFC"], general["AUTOC2"] & LINK_OFF_IN_D3

    ksft_eq(state(), (0, 0, 0))
    cfg.both("down")
    ksft_eq(state(), (0, 0, LINK_OFF_IN_D3))
    cfg.set_up()
    ksft_eq(state(), (0, 0, 0))


def _eeprom(cfg, *part):
    return subprocess.check_output(["ethtool", "-e", cfg.ifname, "raw", "on", *part])


def eeprom(cfg):
    """ The EEPROM can be read, as a whole and in parts. """
    whole = _eeprom(cfg)
    ksft_ge(len(whole), 2 * EEPROM_WORDS)
    ksft_eq(_eeprom(cfg, "offset", "3", "length", "5"), whole[3:8])
    ksft_eq(_eeprom(cfg, "offset", str(len(whole) - 1), "length", "1"), whole[-1:])
    low, high = struct.unpack_from("<HH", whole, 2 * 0x2d)
    info = ethtool(f"-i {cfg.ifname}").stdout
    ksft_in(f"firmware-version: 0x{high << 16 | low:08x}", info)


def eeprom_words(cfg):
    """ Each word is read once. """
    def reads(length):
        before = cfg.model.writes(0, "EERD")
        _eeprom(cfg, "offset", "3", "length", str(length))
        return cfg.model.writes(0, "EERD") - before

    cfg.model.ask("trace", port=0, phase="eeprom")
    defer(cfg.model.ask, "trace", port=0)
    # The version of the firmware is read, too.
    first = reads(1)
    ksft_eq(reads(7) - first, 3)


def identify(cfg):
    """ The LED is on and off in turns, and then what it was before. """
    def mode():
        return _registers(cfg)[0]["LEDCTL"] >> 16 & 0xf

    with bkg(f"ethtool -p {cfg.ifname} 60"):
        for state in (LED2_ON, LED2_OFF, LED2_ON):
            wait_until(lambda state=state: mode() == state, 20, f"the LED is in mode {state}", 0)
    ksft_eq(mode(), LED2_ACTIVITY)


def link(cfg):
    """ The link has its speed and its modes. """
    said = ethtool(cfg.ifname).stdout
    ksft_in("Speed: 10000Mb/s", said)
    ksft_in("Duplex: Full", said)
    ksft_in("10000base", said)


def link_as_it_is(cfg):
    """ A request for the settings that the link has anyway changes nothing. """
    negotiates = "Auto-negotiation: on" in ethtool(cfg.ifname).stdout
    ethtool(f"-s {cfg.ifname} "
            + ("autoneg on" if negotiates else "speed 10000 duplex full autoneg off"))
    link(cfg)


def _refused_by_log(command, reason):
    """ Check that a command is refused, and that the log has the reason, for want of a reply. """
    before = len(kernel_log())
    with ksft_raises(CmdExitFailure):
        ethtool(command)
    ksft_in(reason, kernel_log()[before:])


MEDIUM, FIXED = "the medium decides", "cannot be changed"


@ksft_variants([KsftNamedVariant("speed", "speed 1000", MEDIUM),
                KsftNamedVariant("duplex", "duplex half", MEDIUM),
                KsftNamedVariant("modes", "advertise 0x20", MEDIUM),
                KsftNamedVariant("port", "port mii", FIXED),
                KsftNamedVariant("phy", "phyad 1", FIXED),
                KsftNamedVariant("mdix", "mdix on", FIXED)])
def link_refused(cfg, what, reason):
    """ Settings that the port does not have are refused with the reason, and the link stays. """
    down = cfg.ports[0].attr("carrier_down_count")
    _refused_by_log(f"-s {cfg.ifname} {what}", reason)
    ksft_eq(cfg.ports[0].attr("carrier_down_count"), down)
    link(cfg)


def _says(cfg):
    """ Return the kinds of messages that are logged. """
    said = ethtool(cfg.ifname).stdout
    return said.split("Current message level:")[1].splitlines()[1].split()


def _link_messages(cfg):
    """ Let the link go down and up. Return the number of messages about it. """
    mark = f"controls: messages about the link, {time.monotonic()}"
    Path("/dev/kmsg").write_text(f"{mark}\n", encoding="utf-8")
    for state in (False, True):
        cfg.model.link(0, state)
        wait_until(lambda state=state: cfg.ports[0].attr("carrier") == str(int(state)), 60,
                   "the link", 0.02)
    return sum("link is" in line and f"{cfg.ifname}: " in line
               for line in kernel_log().split(mark)[-1].splitlines())


@ksft_disruptive
def messages(cfg):
    """ Users choose the kinds of messages that are logged. """
    kinds = _says(cfg)
    ksft_in("link", kinds)
    ksft_eq(_link_messages(cfg), 2)
    defer(ethtool, f"-s {cfg.ifname} msglvl link on")
    ethtool(f"-s {cfg.ifname} msglvl link off")
    ksft_eq(_says(cfg), [kind for kind in kinds if kind != "link"])
    ksft_eq(_link_messages(cfg), 0)


def messages_of_no_kind(cfg):
    """ A kind of which there are no messages cannot be chosen, and the log says so. """
    kinds = _says(cfg)
    defer(ethtool, f"-s {cfg.ifname} msglvl drv off pktdata off")
    before = len(kernel_log())
    ethtool(f"-s {cfg.ifname} msglvl drv on pktdata on")
    ksft_eq(_says(cfg), kinds)
    ksft_in("no messages of kind 0x1001", kernel_log()[before:])


def _moderation(cfg):
    return ethtool(f"-c {cfg.ifname}", json=True)[0]


def _interval(cfg, pair=0):
    """ Return the interval between interrupts, in us. """
    return (_registers(cfg)[1][pair]["EITR"] >> 3 & 0x1ff) * 2


def _adapt_again(cfg):
    ethtool(f"-C {cfg.ifname} adaptive-rx on")


def moderation_adapts(cfg):
    """ The moderation adapts by default. """
    ksft_eq(_moderation(cfg)["adaptive-rx"], True)


@ksft_variants([0, 20, 100, 1022])
def moderation_fixed(cfg, usecs):
    """ A fixed interval gets to the card, and traffic does not change it. """
    ethtool(f"-C {cfg.ifname} adaptive-rx off rx-usecs {usecs}")
    defer(_adapt_again, cfg)
    ksft_eq(_interval(cfg), usecs)
    cfg.check_forwarded(3000)
    ksft_eq(_interval(cfg), usecs)
    said = _moderation(cfg)
    ksft_eq((said["adaptive-rx"], said["rx-usecs"]), (False, usecs))


@ksft_disruptive
def moderation_survives(cfg):
    """ A fixed interval is in effect after down and up. """
    ethtool(f"-C {cfg.ifname} adaptive-rx off rx-usecs 60")
    defer(_adapt_again, cfg)
    cfg.both("down")
    cfg.set_up()
    ksft_eq(_interval(cfg), 60)


def _refused(command, reason):
    """ Check that a command is refused with a reason. """
    try:
        ethtool(command)
    except CmdExitFailure as error:
        ksft_in(reason, error.cmd.stderr)
    else:
        ksft_eq(True, False, f"refused: ethtool {command}")


def moderation_refused(cfg):
    """ An interval that the card does not have is refused with the reason. """
    before = _moderation(cfg)
    _refused(f"-C {cfg.ifname} adaptive-rx off rx-usecs 1023", "must not exceed 1022")
    ksft_eq(_moderation(cfg), before)


def moderation_that_adapts_is_not_set(cfg):
    """ An interval that would have no effect is refused with the reason, and stays as it was. """
    before = _moderation(cfg)
    for more in ("", " adaptive-rx on"):
        _refused(f"-C {cfg.ifname} rx-usecs 1000{more}", "no effect with adaptive-rx")
        ksft_eq(_moderation(cfg), before)
    # This is the way out.
    defer(_adapt_again, cfg)
    ethtool(f"-C {cfg.ifname} adaptive-rx off rx-usecs 1000")
    ksft_eq(_interval(cfg), 1000)
    # The same if it is to adapt from now on.
    _refused(f"-C {cfg.ifname} adaptive-rx on rx-usecs 20", "no effect with adaptive-rx")
    ksft_eq((_interval(cfg), _moderation(cfg)["adaptive-rx"]), (1000, False))


def _pause(cfg):
    """ Return the use of pause frames, as ethtool tells it, and as the card has it. """
    told = ethtool(f"-a {cfg.ifname}", json=True)[0]
    general = _registers(cfg)[0]
    return ((told["rx"], told["tx"]),
            (bool(general["MFLCN"] & RFCE), bool(general["FCCFG"] & TFCE)))


@ksft_variants([KsftNamedVariant("rx", True, False), KsftNamedVariant("tx", False, True),
                KsftNamedVariant("none", False, False), KsftNamedVariant("both", True, True)])
@ksft_disruptive
def pause(cfg, rx, tx):
    """ The use of pause frames gets to the card, and survives that the port is down. """
    word = {True: "on", False: "off"}
    # It fails if nothing changes.
    cmd(f"ethtool -A {cfg.ifname} rx {word[rx]} tx {word[tx]}", fail=False)
    ksft_eq(_pause(cfg), ((rx, tx), (rx, tx)))
    general = _registers(cfg)[0]
    ksft_eq(general["FCRTH"] >> 31, int(tx), "the card watches its packet buffer")
    ksft_eq(general["PCS1GANA"] & (SYM | ASM), SYM * rx | ASM * (rx or tx))
    # Asked to pause with room for some frames, and to go on when there is room again.
    high, low = ((general[name] & 0x7ffff) // 1024 for name in ("FCRTH", "FCRTL"))
    ksft_in(high, range(256, 512 - 32))
    ksft_in(low, range(16, high))
    cfg.both("down")
    cfg.set_up()
    ksft_eq(_pause(cfg), ((rx, tx), (rx, tx)))


def pause_refused(cfg):
    """ Nothing is negotiated over a fibre. """
    _refused_by_log(f"-A {cfg.ifname} autoneg on", "not negotiated")


def channels_refused(cfg):
    """ The vector for events cannot be given away. """
    _refused_by_log(f"-L {cfg.ifname} other 0", "cannot be changed")


def _rss(cfg):
    return ethtool(f"-x {cfg.ifname}", json=True)[0]


@ksft_disruptive
def two_queues(cfg):
    """ The port gets two queues. """
    ethtool(f"-L {cfg.ifname} combined 2")
    # The flows of the generator differ in their ports.
    ethtool(f"-N {cfg.ifname} rx-flow-hash udp4 sdfn")
    cfg.set_up()
    ksft_eq(_rss(cfg)["rss-indirection-table"], [0, 1] * 64, "both have equal shares")


@ksft_variants([KsftNamedVariant("drop", False), KsftNamedVariant("pause", True)])
@ksft_disruptive
def pause_or_drop(cfg, tx):
    """ A full queue of several drops, unless the link partner is asked to pause. """
    def drops():
        return [pair["SRRCTL"] >> 28 & 1 for pair in _registers(cfg)[1][:2]]

    before = drops()
    ksft_eq(before, [int(tx)] * 2, "dropping before the change")
    ethtool(f"-A {cfg.ifname} tx {'on' if tx else 'off'}")
    ksft_eq(drops(), [int(not tx)] * 2)
    cfg.both("down")
    cfg.set_up()
    ksft_eq(drops(), [int(not tx)] * 2, "after down and up")


def _per_queue(cfg):
    """ Return the packets that each queue has received. """
    stats = cfg.netnl.qstats_get({"ifindex": cfg.ifindex, "scope": {"queue"}}, dump=True)
    return {one["queue-id"]: one["rx-packets"] for one in stats if one["queue-type"] == "rx"}


def _spread(cfg, count=400):
    """
    Send flows, no more frames than a ring has descriptors, and return the
    packets that each queue has received.
    """
    before = _per_queue(cfg)
    cfg.check_forwarded(count, flows=64)
    # A poll counts its packets at its end, when they have left already.
    wait_until(lambda: sum(_per_queue(cfg).values()) - sum(before.values()) >= count, 60,
               "all packets are counted", 0.02)
    after = _per_queue(cfg)
    return {queue: after[queue] - before[queue] for queue in after}


def _default_table(cfg):
    ethtool(f"-X {cfg.ifname} default")


def _set_key(cfg, key):
    ethtool(f"-X {cfg.ifname} hkey " + ":".join(f"{byte:02x}" for byte in key))


def _use_known_key(cfg):
    defer(_set_key, cfg, _rss(cfg)["rss-hash-key"])
    _set_key(cfg, KEY)


def rss_spreads(cfg):
    """ Both queues receive. """
    # The flows differ in six bits. One in 64 random keys has the same parity for all of them.
    _use_known_key(cfg)
    found = _spread(cfg)
    ksft_ge(min(found.values()), 60, f"{found}")


@ksft_variants([KsftNamedVariant("first", 0), KsftNamedVariant("second", 1)])
def rss_table(cfg, queue):
    """ All flows go where the table says, and that queue interrupts. """
    weights = ["0", "0"]
    weights[queue] = "1"
    ethtool(f"-X {cfg.ifname} weight {' '.join(weights)}")
    defer(_default_table, cfg)
    ksft_eq(_rss(cfg)["rss-indirection-table"], [queue] * 128)
    ksft_eq(_spread(cfg)[1 - queue], 0, "packets of the other queue")
    # Without an interrupt, each would wait for the check-up of the driver.
    answer = cfg.check_forwarded(20, window=1)
    ksft_lt(answer["seconds"], 10, answer)


@ksft_disruptive
def rss_table_survives(cfg):
    """ A table of the user is in effect after down and up. """
    ethtool(f"-X {cfg.ifname} weight 0 1")
    defer(_default_table, cfg)
    cfg.both("down")
    cfg.set_up()
    ksft_eq(_spread(cfg)[0], 0, "packets of the first queue")
    _refused(f"-L {cfg.ifname} combined 1", "")


def rss_refused(cfg):
    """ A queue that is not there, and another hash, are refused. """
    before = _rss(cfg)
    _refused(f"-X {cfg.ifname} weight 1 1 1", "")
    _refused(f"-X {cfg.ifname} hfunc xor", "")
    ksft_eq(_rss(cfg), before)


@ksft_variants(["udp4", "udp6"])
def fragments_may_be_reordered(cfg, flow):
    """ Users who have ports of UDP hashed learn what this does to fragments. """
    def told(fields):
        before = len(kernel_log())
        ethtool(f"-N {cfg.ifname} rx-flow-hash {flow} {fields}")
        return "fragments of UDP may arrive" in kernel_log()[before:]

    was = f"-N {cfg.ifname} rx-flow-hash {flow} " + ("sdfn" if flow == "udp4" else "sd")
    defer(ethtool, was)
    ksft_eq([told(fields) for fields in ("sd", "sdfn", "sdfn", "sd")],
            [False, True, False, False])


@ksft_disruptive
def settings_while_down(cfg):
    """ Settings that are made while the port is down are in effect when it is up. """
    settings = (("ethtool -C {} adaptive-rx off rx-usecs 100", "ethtool -C {} adaptive-rx on"),
                ("ethtool -A {} rx off tx off", "ethtool -A {} rx on tx on"),
                ("ethtool -G {} rx 128 tx 256", "ethtool -G {} rx 512 tx 512"),
                ("ethtool -K {} rxvlan off", "ethtool -K {} rxvlan on"),
                ("ethtool -N {} rx-flow-hash tcp4 sd", "ethtool -N {} rx-flow-hash tcp4 sdfn"),
                ("ip link set {} mtu 9000", "ip link set {} mtu 1500"))

    def found():
        general, pairs = _registers(cfg)
        return ([_interval(cfg, pair) for pair in (0, 1)],
                (general["MFLCN"] & RFCE, general["FCCFG"] & TFCE),
                [(pair["RDLEN"] // 16, pair["TDLEN"] // 16) for pair in pairs[:2]],
                [pair["RXDCTL"] & VME for pair in pairs[:2]],
                general["MRQC"] & HASH_TCP4, general["MAXFRS"] >> 16)

    defer(cfg.set_up)
    cfg.both("down")
    for setting, back in settings:
        cmd(setting.format(cfg.ifname))
        defer(cmd, back.format(cfg.ifname))
    cfg.set_up()
    ksft_eq(found(), ([100, 100], (0, 0), [(128, 256)] * 2, [0, 0], 0, 9018))


def _toeplitz(key, data):
    """ Return the hash of the bytes with a key. """
    window, bits, result = int.from_bytes(key, "big"), len(key) * 8, 0
    for number in range(len(data) * 8):
        if data[number // 8] >> (7 - number % 8) & 1:
            result ^= window >> (bits - 32 - number) & 0xffffffff
    return result


def _hash_of(cfg, frame):
    """ Inject a frame, and return the hash that the stack has for it. """
    size = 1 << 16
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as sock:
        sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V3)
        sock.setsockopt(SOL_PACKET, PACKET_RX_RING,
                        struct.pack("=IIIIIII", size, 1, 2048, size // 2048, 10, 0, FILL_RXHASH))
        sock.bind((cfg.ifname, 0x0800))
        with mmap.mmap(sock.fileno(), size, flags=mmap.MAP_SHARED) as ring:
            cfg.model.inject(0, frame)
            wait_until(lambda: struct.unpack_from("=I", ring, 8)[0] & 1, 60, "the frame arrives",
                       0.02)
            first = struct.unpack_from("=I", ring, 16)[0]
            return struct.unpack_from("=I", ring, first + 28)[0]


def rx_hash(cfg):
    """ Packets have the hash of the card, with the key that was set. """
    _use_known_key(cfg)
    addresses = bytes((10, 0, 0, 2, 10, 0, 1, 2))
    ports = struct.pack("!HH", 1234, 5678)
    mac = bytes.fromhex(cfg.ports[0].mac().replace(":", ""))
    header = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, socket.IPPROTO_TCP, 0) + addresses
    header = header[:10] + struct.pack("!H", 0xffff - sum16(header)) + header[12:]
    frame = (mac + bytes.fromhex("0200000000020800") + header + ports
             + struct.pack("!IIBBHHH", 1, 0, 0x50, 2, 100, 0, 0)).ljust(60, b"\0")
    expected = _toeplitz(KEY, addresses + ports)
    ksft_eq(_hash_of(cfg, frame), expected)
    # Without ports. The stack computes another hash then, for which it takes them.
    ksft_eq(_registers(cfg)[0]["MRQC"] & HASH_TCP4, HASH_TCP4)
    ethtool(f"-N {cfg.ifname} rx-flow-hash tcp4 sd")
    without = _registers(cfg)[0]["MRQC"], _hash_of(cfg, frame)
    ethtool(f"-N {cfg.ifname} rx-flow-hash tcp4 sdfn")
    ksft_eq((without[0] & HASH_TCP4, without[1] == expected), (0, False))
    ksft_eq(_hash_of(cfg, frame), expected)
    ethtool(f"-K {cfg.ifname} rxhash off")
    defer(ethtool, f"-K {cfg.ifname} rxhash on")
    ksft_eq(_hash_of(cfg, frame) == expected, False, "the hash of the card, switched off")


@ksft_disruptive
def one_queue(cfg):
    """ The port gets one queue again. """
    ethtool(f"-N {cfg.ifname} rx-flow-hash udp4 sd")
    ethtool(f"-L {cfg.ifname} combined 1")
    cfg.set_up()
    ksft_eq(_rss(cfg)["rss-indirection-table"], [0] * 128)


def queue_stats(cfg):
    """ The counters of the queues, and of those before, are those of the port. """
    total = {}

    def they_agree():
        nonlocal total
        total = cfg.netnl.qstats_get({"ifindex": cfg.ifindex}, dump=True)[0]
        return [total["rx-packets"], total["tx-packets"]] == [
            cfg.ports[0].stat(name) for name in ("rx_packets", "tx_packets")]

    # A neighbour may send something between the two.
    wait_until(they_agree, 60, "the queues have the packets of the port")
    for name in ("tx-hw-gso-packets", "tx-hw-gso-wire-packets", "rx-alloc-fail", "tx-stop"):
        ksft_in(name, total)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=("ixgbe_rust", ),
                     why="the layout of the dump is that of ixgbe_rust") as cfg:
        cfg.netnl = NetdevFamily()
        ksft_run(judged([set_up, registers, stays_asleep, eeprom, eeprom_words, identify, link,
                         link_as_it_is, link_refused, messages, messages_of_no_kind,
                         moderation_adapts, moderation_fixed, moderation_survives,
                         moderation_refused, moderation_that_adapts_is_not_set, pause,
                         pause_refused, channels_refused, two_queues, pause_or_drop, rss_spreads,
                         rss_table, rss_table_survives, rss_refused, fragments_may_be_reordered,
                         settings_while_down, rx_hash, one_queue, queue_stats,
                         forwards_after("settings")]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
