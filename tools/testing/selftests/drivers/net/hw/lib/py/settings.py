# SPDX-License-Identifier: GPL-2.0

"""
The settings of an interface as netlink tells them: what they are at the start,
and back to that.
"""

import contextlib
from pathlib import Path

from lib.py import NlError, cmd, ip

from .random_ioctls import Device
from .random_requests import Start, getter_of, is_setter

# By the operation that reads them, the attributes that are put back. The order counts: a table for
# several queues needs them, for instance, and rules keep the queues that they are about.
NUMBERS = {
    "channels": ("combined-count",),
    "rings": ("rx", "tx"),
    "coalesce": ("use-adaptive-rx", "use-adaptive-tx", "rx-usecs", "tx-usecs"),
    "pause": ("autoneg", "rx", "tx"),
}
BITS = {"features": "wanted", "privflags": "flags", "debug": "msgmask"}
NAPI = ("defer-hard-irqs", "gro-flush-timeout", "irq-suspend-timeout", "threaded")
# Those of the link, by their names in the options of ip.
LINK = {"mtu": "mtu", "address": "address", "broadcast": "broadcast", "txqlen": "txqueuelen",
        "group": "group", "gso_max_size": "gso_max_size", "gso_max_segs": "gso_max_segs",
        "gro_max_size": "gro_max_size", "gso_ipv4_max_size": "gso_ipv4_max_size",
        "gro_ipv4_max_size": "gro_ipv4_max_size"}
# Those that a request about a link may change, of all that there are.
LINK_ATTRIBUTES = ("address", "broadcast", "mtu", "txqlen", "group", "operstate", "linkmode",
                   "ifalias", "gso-max-size", "gso-max-segs", "gro-max-size", "gso-ipv4-max-size",
                   "gro-ipv4-max-size", "num-vf", "vfinfo-list", "carrier", "proto-down", "xdp")
FLAGS = {"NOARP": ("arp off", "arp on"), "MULTICAST": ("multicast on", "multicast off"),
         "PROMISC": ("promisc on", "promisc off"),
         "ALLMULTI": ("allmulticast on", "allmulticast off"),
         "DYNAMIC": ("dynamic on", "dynamic off"), "UP": ("up", "down")}
# These keep the interface from sending or receiving datagrams of the usual length. A short queue
# drops some.
IFF_UP, IFF_NOARP = 1 << 0, 1 << 7
# They do not pass by themselves.
OPERSTATES = ("dormant", "testing")
LEAST_MTU, LEAST_QUEUE = 576, 100


def bits_of(answer):
    """ Return the names of the bits that are set in a set of bits. """
    return sorted(bit["name"] for bit in answer.get("bits", {}).get("bit", [])
                  if "value" in bit or answer.get("nomask"))


class Settings:
    """ The settings of an interface. """

    def __init__(self, ifname, ifindex, ethnl, netnl, rtnl):
        self.ifname = ifname
        self.ifindex = ifindex
        self._families = {"ethtool": ethnl, "netdev": netnl, "rt-link": rtnl}
        self.device = Device(ifname)
        self.first = self._read()
        self.link = self._link()
        self.napi = []
        # An instance may wait for a timer much longer than it should by the settings of the start.
        self.waits = False
        self.know_napi()
        self._sysfs = self._files()

    def close(self):
        """ Close the socket. """
        self.device.close()

    def _ask(self, name, **attributes):
        """ Return what an operation of ethtool reads; None if the device has no such settings. """
        request = {"header": {"dev-index": self.ifindex}} | attributes
        try:
            return self._families["ethtool"].do(name, request)
        except NlError:
            return None

    def _read(self):
        """ Read all settings that a setter of ethtool changes. """
        spec = self._families["ethtool"]
        names = {getter_of(one.name) for one in spec.ops.values() if is_setter(one)}
        return {name: self._ask(name) for name in sorted(names & spec.ops.keys())}

    def _link(self):
        return ip(f"-d link show dev {self.ifname}", json=True)[0]

    def know_napi(self):
        """ Take the settings of NAPI instances that there are now for those of the start. """
        self.napi = self._napi()

    def _napi(self):
        return self._families["netdev"].napi_get({"ifindex": self.ifindex}, dump=True)

    def _files(self):
        path = Path("/sys/class/net") / self.ifname
        return {name: (path / name).read_text(encoding="utf-8").strip()
                for name in ("address", "broadcast", "mtu", "link_mode", "flags", "tx_queue_len",
                             "operstate")}

    def start(self, taboo):
        """ Return what the generator of requests wants to know. """
        rtnl = self._families["rt-link"]
        link = rtnl.getlink({"ifi-index": self.ifindex, "ext-mask": 0})
        settings = dict(self.first) | {
            "getlink": {key: bytes.fromhex(value.replace(":", ""))
                        if key in ("address", "broadcast") else value
                        for key, value in link.items()},
            "napi-get": self.napi[0] if self.napi else None,
        }
        names = {"dev-index": [self.ifindex], "dev-name": [self.ifname],
                 "ifindex": [self.ifindex], "id": [one["id"] for one in self.napi]}
        return Start(settings, names, self._takes(), taboo, self.ifindex)

    def _takes(self):
        """ Return the attributes that the kernel takes, by operation. """
        found = {"setlink": LINK_ATTRIBUTES, "newlink": LINK_ATTRIBUTES}
        for name in ("ethtool", "netdev"):
            family = self._families[name]
            for one in family.ops.values():
                if is_setter(one):
                    # The library has an exception of its own if the kernel lacks an operation.
                    with contextlib.suppress(Exception):
                        policy = family.get_policy(one.name, "do")
                        found[one.name] = tuple(policy.keys()) if policy else ()
        return found

    def _has(self, feature):
        features = self._ask("features-get")
        return features is not None and feature in bits_of(features["active"])

    def of_rx_queues(self):
        """ Return the settings for which receive queues are restarted, which the link survives. """
        return self._has("rx-vlan-hw-parse"), (self._ask("rings-get") or {}).get("rx")

    def blocks(self):
        """ Return the reason why the interface does not pass datagrams, or none. """
        now = self._files()
        flags = int(now["flags"], 16)
        if not flags & IFF_UP:
            return "it is down"
        if now["operstate"] in OPERSTATES:
            return f"it is {now['operstate']}"
        if flags & IFF_NOARP:
            return "it does not resolve addresses"
        for name in ("address", "broadcast", "link_mode"):
            if now[name] != self._sysfs[name]:
                return f"its {name} is {now[name]}"
        if int(now["mtu"]) < LEAST_MTU:
            return f"its MTU is {now['mtu']}"
        if int(now["tx_queue_len"]) < LEAST_QUEUE:
            return f"its queue takes {now['tx_queue_len']} packets"
        if self._has("loopback"):
            return "it is in loopback"
        return ""

    def link_changes(self):
        """ Return the words for ip that put the link back. """
        was, now = self.link, self._link()
        words = [f"{option} {was[name]}" for name, option in LINK.items()
                 if name in was and was[name] != now.get(name)]
        if was.get("linkmode") != now.get("linkmode"):
            words.append(f"mode {was['linkmode'].lower()}")
        if was.get("ifalias") != now.get("ifalias"):
            words.append(f"alias {was.get('ifalias') or chr(34) * 2}")
        if now["operstate"].lower() in OPERSTATES:
            words.append("state up")
        words += [words_of[flag not in was["flags"]] for flag, words_of in FLAGS.items()
                  if (flag in was["flags"]) != (flag in now["flags"])]
        return words

    def put_link_back(self):
        """ Put the link back, but for features with which it passes datagrams. """
        if self._has("loopback"):
            cmd(f"ethtool -K {self.ifname} loopback off")
        for words in self.link_changes():
            cmd(f"ip link set dev {self.ifname} {words}")

    def put_napi_back(self):
        """
        Put the settings of NAPI instances back.

        The timer of an instance goes on as it was started, whatever is set then: only the end
        of the instance ends it.
        """
        now = {one["id"]: one for one in self._napi()}
        for was in self.napi:
            changed = {key: was.get(key, 0) for key in NAPI
                       if was.get(key) != now.get(was["id"], {}).get(key)}
            if was["id"] in now and changed:
                self._families["netdev"].napi_set({"id": was["id"]} | changed)
        if self.waits:
            self.waits = False
            for state in ("down", "up"):
                ip(f"link set {self.ifname} {state}")

    def remove_rules(self):
        """ Remove all rules for received packets. """
        with contextlib.suppress(OSError):
            for location in self.device.locations():
                self.device.remove_rule(location)

    def put_back(self):
        """ Put all settings back. """
        self.put_link_back()
        self.remove_rules()
        cmd(f"ethtool -X {self.ifname} default", fail=False)
        if (self.first["coalesce-get"] or {}).get("use-adaptive-rx") is not None:
            # A time that is adapted cannot be set.
            self._put("coalesce", {"use-adaptive-rx": 0})
        for name, keys in NUMBERS.items():
            self._put(name, {key: self.first[f"{name}-get"].get(key)
                             for key in keys if self.first[f"{name}-get"]})
        for name, key in BITS.items():
            if self.first[f"{name}-get"]:
                self._put(name, {key: self.first[f"{name}-get"].get(key, {})})
        rss = self.first["rss-get"] or {}
        self._put("rss", {key: rss[key] for key in ("hkey", "flow-hash") if key in rss})
        self.put_napi_back()

    def _put(self, name, wanted):
        """ Put settings back that have changed. """
        now = self._ask(f"{name}-get") or {}
        if name in BITS:
            changed = {}
            for key, value in wanted.items():
                was, is_now = set(bits_of(value)), set(bits_of(now.get(key, {})))
                bits = [{"name": bit, "value": bit in was} for bit in sorted(was ^ is_now)
                        if name != "features" or bit in bits_of(now["hw"])]
                if bits:
                    changed[key] = {"bits": {"bit": bits}}
        else:
            changed = {key: value for key, value in wanted.items()
                       if value is not None and value != now.get(key)}
        if changed:
            self._families["ethtool"].do(f"{name}-set",
                                         {"header": {"dev-index": self.ifindex}} | changed)

    def differences(self):
        """ Return the settings that are not what they were, in words. """
        now = self._read()
        found = []
        for name, was in self.first.items():
            if was != now[name]:
                keys = [key for key in was or now[name]
                        if (was or {}).get(key) != (now[name] or {}).get(key)]
                found += [f"{name} {key}: {(was or {}).get(key)} -> {(now[name] or {}).get(key)}"
                          for key in keys]
        return found
