#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Random requests to change settings, by netlink and by ioctl, under traffic.

The requests come from the specifications of the netlink families: see
random_requests.py. Each has to be answered by success or by an error of a kind
that tells what is wrong with the request. A datagram of the stream to the peer
and back may be lost only while a request has taken the interface out of
operation that may do so.

Variables: SEED=, the number of requests COUNT=, or SECONDS= instead. To repeat a
failure, FIRST= is the number of the first request.
"""

import collections
import contextlib
import errno
import os
import time

from lib.py import EthtoolFamily, KsftFailEx, NetdevFamily, RtnlFamily, cmd
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_gt, ksft_pr, ksft_run
from lib.py.echo import Echo
from lib.py.netlink import NLM_F_ACK, Answer, Kernel
from lib.py.peer import PeerEnv
from lib.py.outages import Outages, gaps, lost, slowest, unexcused
from lib.py.random_ioctls import COMMANDS, IoctlGenerator, drops, location_of, rule
from lib.py.random_requests import Generator
from lib.py.settings import Settings
from lib.py.support import is_emulated, netdev_stat, wait_until

DEFAULT_SEED = 1
# Natively, and where instructions are emulated.
MANY, FEW = 400, 100
NETLINK_GENERIC = 16
# One request of so many is an ioctl.
IOCTLS = 4
# Attributes that would take the interface away, or change the rules of IP for it.
TABOO = ("net-ns-pid", "net-ns-fd", "target-netnsid", "ifname", "new-ifindex", "new-netnsid",
         "alt-ifname", "af-spec", "linkinfo", "master")
# Requests that may take the interface down and up again, because the card cannot change these
# settings while it is in use. Of all features, these are the rules for received packets, joined
# ones, and the loopback.
FEATURES = {"features-set", "SFEATURES", "SFLAGS"}
RX_RESTARTS = {"rings-set", "SRINGPARAM"} | FEATURES
RESTARTS = {"channels-set", "SCHANNELS", "TEST"} | RX_RESTARTS
# The same of links: another MTU may need other buffers.
LINK_RESTARTS = {"flags", "mtu"}
# Requests whose errors come with a reason, as the kernel's interface has a way to give it.
WITH_REASON = ("rings-set", "coalesce-set", "rss-set")
# Errors that mean that something does not work, rather than that the request is wrong.
DEFECTS = (errno.EIO, errno.ENXIO, errno.EFAULT, errno.ETIMEDOUT, errno.ENETDOWN, errno.EPROTO,
           errno.EILSEQ, errno.ENOTRECOVERABLE)
# A timer of a NAPI instance, in nanoseconds, that its packets wait for too long.
LONG_TIMER = 100_000_000
# A datagram that takes so long, in seconds, is worth a look.
SLOW = 1.0
# The most requests after which settings are put back that block or delay datagrams.
STAYS = 6


class Fuzz:
    """ The requests of a seed, and what came of them. """

    def __init__(self, cfg):
        self.cfg = cfg
        self.seed = int(os.environ.get("SEED", DEFAULT_SEED))
        self.first = int(os.environ.get("FIRST", 0))
        self.seconds = float(os.environ.get("SECONDS", 0))
        self.requests = int(os.environ.get("COUNT", FEW if is_emulated() else MANY))
        self.families = {"ethtool": EthtoolFamily(), "netdev": NetdevFamily(),
                         "rt-link": RtnlFamily()}
        self.kernels = {name: Kernel(*([] if name == "rt-link" else [NETLINK_GENERIC]), seconds=60)
                        for name in self.families}
        self.settings = Settings(cfg.ifname, cfg.dev["ifindex"], *self.families.values())
        self.outages = Outages()
        self.answers = collections.Counter()
        self.bad = []
        self.sent = []
        # The number of the request before which the interface is put back.
        self.due = None
        self.echo = None

    def close(self):
        """ End what runs, and leave the interface as it was to the next program. """
        if self.echo:
            self.echo.stop()
        with contextlib.suppress(Exception):
            self.settings.put_back()
        for kernel in self.kernels.values():
            kernel.close()
        self.settings.close()

    def generators(self):
        """ Return the generators for netlink and ioctl requests. """
        settings = {one.name: self.settings.device.read(one) for one in COMMANDS}
        local, remote = self.cfg.addr_v["4"], self.cfg.remote_addr_v["4"]
        rules = [rule(local, remote, port, location, queue)
                 for port, location, queue in ((6100, 0, 0), (6101, 5, 1), (9, 1 << 31, 0),
                                               (6102, 0xffffffff, 1), (6103, 3, (1 << 64) - 1))]
        return (Generator(self.seed, self.families, self.settings.start(TABOO)),
                IoctlGenerator(self.seed, settings, rules))

    def ask(self, request):
        """ Pass a request to the kernel. """
        if request.family == "ioctl":
            try:
                answer = self.settings.device.ask(request.body)
            except OSError as error:
                return Answer(error.errno)
            return Answer(0, body=answer)
        kind = request.kind
        if request.family != "rt-link":
            kind = self.families[request.family].nlproto.family_id
        return self.kernels[request.family].ask(kind, NLM_F_ACK, request.body)

    def carrier_losses(self):
        """ Return how often the interface has lost its carrier. """
        path = f"/sys/class/net/{self.cfg.ifname}/carrier_down_count"
        with open(path, encoding="utf-8") as file:
            return int(file.read())

    def is_up(self):
        """ Whether the interface is in operation. """
        try:
            with open(f"/sys/class/net/{self.cfg.ifname}/operstate", encoding="utf-8") as file:
                return file.read().strip() == "up"
        except OSError as error:
            raise KsftFailEx(f"the interface is gone: {error}") from error

    def recover(self, what):
        """ Wait until the interface passes datagrams again, which ends an outage. """
        wait_until(self.is_up, 60, f"the interface is up after {what}", sleep=0.01)
        number = self.echo.count
        wait_until(lambda: self.echo.came_back_since(number), 20,
                   f"a datagram comes back after {what}", sleep=0.002)
        self.outages.end(self.echo.came_back_since(number).sent)

    def put_back(self, what):
        """ Put back what blocks datagrams. """
        self.due = None
        if self.settings.link_changes() or self.settings.waits:
            # To put back the length of the queues, for example, drops packets as well.
            self.outages.begin(time.monotonic(), f"the link is put back after {what}")
        self.settings.put_link_back()
        self.settings.put_napi_back()
        self.cfg.know_each_other()
        self.recover(what)

    def passage(self):
        """
        Return a time whose datagrams have come back: on a busy machine, later ones may be under
        way for long. During an outage, none has to.
        """
        number = self.echo.count
        if self.outages.going_on:
            self.echo.wait()
            return time.monotonic()
        wait_until(lambda: self.echo.came_back_since(number), 20, "a datagram comes back",
                   sleep=0.002)
        return self.echo.came_back_since(number).sent

    def send(self, request):
        """ Send a request and look after the interface. """
        before = request.name in RX_RESTARTS and self.settings.of_rx_queues()
        losses, begin = self.carrier_losses(), self.passage()
        asked = time.monotonic()
        answer = self.ask(request)
        self.sent.append((asked, time.monotonic(), request, answer))
        self.answers[request.name, answer.code] += 1
        self.judge(request, answer)
        # One about a link may be granted in part, although the answer is an error.
        if answer.code and request.family != "rt-link":
            return
        if (request.name == "napi-set"
                and request.values.get("gro-flush-timeout", 0) > LONG_TIMER):
            self.settings.waits = True
        if request.name in ("channels-set", "SCHANNELS"):
            # A queue that comes back has the settings that it had.
            self.settings.put_napi_back()
        has_lost = self.carrier_losses() != losses
        if has_lost and not self.may_restart(request):
            self.bad.append(f"{request}: takes the carrier away")
        dropped = request.name == "SRXCLSRLINS" and drops(request.body)
        if dropped:
            self.settings.device.remove_rule(location_of(answer.body))
        blocks = self.settings.blocks()
        restarts = request.name in RX_RESTARTS and self.settings.of_rx_queues() != before
        loses = blocks or has_lost or dropped or restarts or self.rebuilds_queues(request)
        # Settings of NAPI delay packets.
        stays = blocks or request.name == "napi-set"
        if stays or loses:
            self.outages.begin(begin, f"{request}: {blocks}", bool(loses))
        if stays and self.due is None:
            self.due = request.number + 1 + request.number % STAYS
        if self.outages.going_on and self.due is None:
            self.recover(request)

    def may_restart(self, request):
        """ Whether a request may take the carrier away. """
        return (request.name in RESTARTS
                or (request.family == "rt-link" and LINK_RESTARTS & set(request.values)))

    @staticmethod
    def rebuilds_queues(request):
        """ Whether the stack takes its queues out of use for a request, which drops packets. """
        return request.family == "rt-link" and "txqlen" in request.values

    def judge(self, request, answer):
        """ Note what is wrong with an answer. """
        if answer.code in DEFECTS or answer.code > max(errno.errorcode):
            self.bad.append(f"{request}: error {answer.code}, {os.strerror(answer.code)}: "
                            f"{answer.text}")
        elif (answer.code and request.name in WITH_REASON and not answer.text
              and not answer.points):
            self.bad.append(f"{request}: {os.strerror(answer.code)}, without a reason")

    def run(self):
        """ Send all requests. """
        netlink, ioctls = self.generators()
        number, end = self.first, time.monotonic() + self.seconds
        while (time.monotonic() < end if self.seconds
               else number < self.first + self.requests):
            if self.due is not None and number >= self.due:
                self.put_back(f"request {number - 1}")
            generator = ioctls if number % IOCTLS == IOCTLS - 1 else netlink
            request = generator.request(number)
            try:
                self.send(request)
            except (OSError, KsftFailEx) as error:
                raise KsftFailEx(f"{request}: {error}") from error
            if not self.echo.running():
                raise KsftFailEx("the stream has ended")
            number += 1
        if self.due is not None:
            self.put_back("the last request")
        return number - self.first


def start(cfg):
    """ The stream runs, with several queues and rules for received packets. """
    cfg.know_each_other()
    fuzz = cfg.fuzz = Fuzz(cfg)
    ksft_pr(f"SEED={fuzz.seed}, "
            + (f"SECONDS={fuzz.seconds:g}" if fuzz.seconds else f"COUNT={fuzz.requests}"))
    for command in ("-L {} combined 2", "-K {} ntuple on"):
        cmd("ethtool " + command.format(cfg.ifname), fail=False)
    cfg.wait_up()
    fuzz.settings.know_napi()
    period = 0.02 if is_emulated() else 0.005
    fuzz.echo = Echo(cfg, period, fuzz.seconds + 600 if fuzz.seconds else 600)
    fuzz.recover("the start")
    fuzz.outages.all.clear()


@ksft_disruptive
def requests(cfg):
    """ Each request gets a proper answer. """
    fuzz = cfg.fuzz
    began = time.monotonic()
    count = fuzz.run()
    ksft_pr(f"{count} requests in {time.monotonic() - began:.1f} s, "
            f"{sum(n for (_, code), n in fuzz.answers.items() if not code)} of them granted, "
            f"{len(fuzz.outages.all)} outages, the longest: {fuzz.outages.longest()}")
    for name in sorted({name for name, _ in fuzz.answers}):
        found = {errno.errorcode.get(code, code) if code else "ok": n
                 for (one, code), n in sorted(fuzz.answers.items()) if one == name}
        ksft_pr(f"  {name}: {found}")
    for bad in fuzz.bad[:20]:
        ksft_pr(bad)
    ksft_eq(len(fuzz.bad), 0, "answers that are wrong")


def datagrams(cfg):
    """ No datagram is lost without an excuse. """
    fuzz = cfg.fuzz
    sent = fuzz.echo.finish()
    links = fuzz.echo.links()
    fuzz.echo = None
    missing = unexcused(sent, fuzz.outages)
    slow = slowest(sent, fuzz.outages)
    ksft_pr(f"{len(sent)} datagrams, {len(lost(sent))} lost, {len(missing)} without an excuse; "
            f"the slowest took {slow.took:.3f} s outside of outages")
    if slow.took > SLOW:
        show_around(fuzz, links, slow.sent, slow.back)
    for gap in gaps(missing)[:10]:
        ksft_pr(f"lost: {gap}")
        show_around(fuzz, links, gap.first.sent, gap.last.sent)
    ksft_eq(len(missing), 0, "datagrams lost without an excuse")
    ksft_gt(len(sent) - len(lost(sent)), len(sent) // 10, "datagrams that came back")


def show_around(fuzz, links, begin, end):
    """ Print what has happened before and during a time. """
    events = [(at, f"link {where}: {state}") for at, where, state in links]
    events += [(one.begin, f"outage begins: {one.why}") for one in fuzz.outages.all]
    events += [(one.end, "outage ends") for one in fuzz.outages.all]
    events += [(at, f"{request} -> {answer.code} {answer.text} ({done - at:.3f} s)")
               for at, done, request, answer in fuzz.sent]
    for at, text in sorted(events):
        if begin - 1.5 <= at <= end + 0.2:
            ksft_pr(f"  {at - begin:+.3f} s: {text}")


@ksft_disruptive
def settings_back(cfg):
    """ The settings of the start can be set again. """
    fuzz = cfg.fuzz
    fuzz.settings.put_back()
    # Without a link, it has no speed.
    cfg.wait_up()
    differences = fuzz.settings.differences()
    ksft_eq(differences, [], "settings that are not those of the start")


def passes_traffic(cfg):
    """ All datagrams come back. """
    cfg.know_each_other()
    fuzz = cfg.fuzz
    errors = netdev_stat(cfg.ifname, "rx_errors") + netdev_stat(cfg.ifname, "tx_errors")
    fuzz.echo = Echo(cfg, 0.005, 60)
    fuzz.recover("all requests")
    fuzz.echo.wait(100)
    sent = fuzz.echo.finish()
    fuzz.echo = None
    first = next(one.number for one in sent if one.back)
    ksft_eq([one.number for one in lost(sent) if one.number > first], [])
    ksft_eq(netdev_stat(cfg.ifname, "rx_errors") + netdev_stat(cfg.ifname, "tx_errors"), errors)


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__, v6=False,
                  drivers=("ixgbe_rust", ),
                  why="other drivers refuse settings without a reason, and restart for more of "
                      "them") as cfg:
        cfg.fuzz = None
        try:
            ksft_run(cfg.judged([start, requests, datagrams, settings_back, passes_traffic]),
                     args=(cfg, ))
        finally:
            if cfg.fuzz:
                cfg.fuzz.close()
    ksft_exit()


if __name__ == "__main__":
    main()
