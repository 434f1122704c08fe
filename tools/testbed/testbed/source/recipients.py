# SPDX-License-Identifier: GPL-2.0
"""Recipients of the mails, by the kernel's own scripts/get_maintainer.pl.

It reads MAINTAINERS as it is after the mail, as netdev's checks do: lists of an entry that
the mail adds get it, too. git's history is not asked: the source need not have any.

The script compiles all patterns anew for each file, and all keywords for each line, so it
gets no entries that cannot match: that makes it more than ten times as fast.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import formataddr, parseaddr
from functools import cache
from itertools import chain
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure
from testbed.settings import child_environment

_SCRIPT = "scripts/get_maintainer.pl"
_OPTIONS = ("--nogit", "--nogit-fallback", "--roles", "--norolestats")
# Entries that match alike come in the order of perl's hashes, which is random otherwise.
_ENVIRONMENT = {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
# Jane Doe <jane@example.org> (maintainer:NETWORKING,reviewer:SLAB), or a list's address alone.
_LINE = re.compile(r"(?P<address>.*@[^\s>]+>?) \((?P<roles>.+)\)")


@dataclass(frozen=True)
class Recipients:
    """Addresses of maintainers, and of lists and reviewers."""

    maintainers: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, maintainers: Iterable[str], others: Iterable[str]) -> Recipients:
        """Each address once."""
        first, second = _once(maintainers), _once(others)
        return cls(
            tuple(first.values()),
            tuple(one for mail, one in second.items() if mail not in first),
        )

    def headers(self) -> str:
        """The header lines. A mail that nobody maintains goes to the lists."""
        to, cc = (self.maintainers, self.others) if self.maintainers else (self.others, ())
        both = (("To", ",\n\t".join(to)), ("Cc", ",\n\t".join(cc)))
        return "".join(f"{name}: {addresses}\n" for name, addresses in both if addresses)


def parse(text: str, sender: str = "") -> Recipients:
    """Recipients from the script's lines, without the sender."""
    maintainers: list[str] = []
    others: list[str] = []
    for line in text.splitlines():
        found = _LINE.fullmatch(line.strip())
        if found is None or _mail(found["address"]) == _mail(sender):
            continue
        # Names that are not in ASCII need another form in a mail.
        address = formataddr(parseaddr(found["address"]))
        (maintainers if "maintainer:" in found["roles"] else others).append(address)
    return Recipients.of(maintainers, others)


def add(
    base: Path, cover: Path, mails: Sequence[Path], listings: Sequence[bytes], sender: str
) -> None:
    """Add headers to the mails of a series, each with its own MAINTAINERS, and to the cover."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [*pool.map(lambda mail, listing: _ask(base, mail, listing, sender),
                           mails, listings)]  # fmt: skip
    for mail, recipients in zip(mails, found, strict=True):
        _insert(mail, recipients)
    _insert(cover, union(found))


def union(some: Sequence[Recipients]) -> Recipients:
    """The recipients of all of them."""
    return Recipients.of(
        chain.from_iterable(one.maintainers for one in some),
        chain.from_iterable(one.others for one in some),
    )


def _once(addresses: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for address in addresses:
        found.setdefault(_mail(address), address)
    return found


def _mail(address: str) -> str:
    return parseaddr(address)[1].lower()


def _ask(base: Path, mail: Path, listing: bytes, sender: str) -> Recipients:
    with tempfile.NamedTemporaryFile(prefix="skbulk-maintainers-") as file:
        file.write(shortened(listing, mail.read_bytes()))
        file.flush()
        # The tree may lack the files that earlier mails add, but the script asks for none.
        done = proc.capture(
            ["perl", base / _SCRIPT, *_OPTIONS, f"--mpath={file.name}", mail.absolute()],
            cwd=base, stderr=subprocess.PIPE, env=child_environment(**_ENVIRONMENT),
        )  # fmt: skip
    if done.returncode != 0:
        raise Failure(f"{_SCRIPT} fails for {mail.name}", *done.stderr.strip().splitlines()[-5:])
    return parse(done.stdout, sender)


def shortened(listing: bytes, mail: bytes) -> bytes:
    """MAINTAINERS without the entries and the keywords that cannot be about the mail."""
    files = set(re.findall(rb"^(?:---|\+\+\+) [ab]/(\S+)", mail, re.M))
    keywords = {one: one.search(mail) is not None for one in _keywords(listing)}

    def has(line: re.Match[bytes]) -> bytes:
        wider = _wider(line[1])
        return line[0] if wider is None or keywords[wider] else b""

    kept = [re.sub(rb"^K:[ \t]*(.*)\n?", has, block, flags=re.M)
            for block in listing.split(b"\n\n")
            if any(file.startswith(_heads(block)) for file in files)
            or re.search(rb"^[KN]:", block, re.M)]  # fmt: skip
    return b"\n\n".join([*(block.rstrip(b"\n") for block in kept), b""])


@cache
def _keywords(listing: bytes) -> frozenset[re.Pattern[bytes]]:
    found = (_wider(one) for one in re.findall(rb"^K:[ \t]*(.*)", listing, re.M))
    return frozenset(one for one in found if one is not None)


@cache
def _wider(keyword: bytes) -> re.Pattern[bytes] | None:
    """A pattern that matches at least as much, and is quicker; None if only perl knows."""
    try:
        return re.compile(re.sub(rb"\(\?:\\b\|_\)|\\b", b"", keyword), re.X)
    except re.error:
        return None


@cache
def _heads(block: bytes) -> tuple[bytes, ...]:
    """Plain text at the beginning of the patterns of an entry's files."""
    patterns = re.findall(rb"^F:[ \t]*(\S+)", block, re.M)
    return tuple(re.split(rb"[^\w/.,-]", one, maxsplit=1)[0] for one in patterns)


def _insert(mail: Path, recipients: Recipients) -> None:
    """Put the headers behind those that are there."""
    head, _, body = mail.read_bytes().partition(b"\n\n")
    mail.write_bytes(b"%s\n%s\n%s" % (head, recipients.headers().encode(), body))
