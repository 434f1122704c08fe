# SPDX-License-Identifier: GPL-2.0
"""Recipients of the mails, by the kernel's own scripts/get_maintainer.pl.

It reads MAINTAINERS as it is after the series: lists of an entry that the series adds get it,
too. git's history is not asked: the source need not have any.

The script compiles all patterns anew for each file, and all keywords for each line, so it
gets no entries that cannot match: that makes it more than ten times as fast.
"""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formataddr, parseaddr
from functools import cache
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

    def headers(self) -> str:
        """The header lines. A mail that nobody maintains goes to the lists."""
        to, cc = (self.maintainers, self.others) if self.maintainers else (self.others, ())
        both = (("To", ",\n\t".join(to)), ("Cc", ",\n\t".join(cc)))
        return "".join(f"{name}: {addresses}\n" for name, addresses in both if addresses)


def parse(text: str, sender: str = "") -> Recipients:
    """Recipients from the script's lines, without the sender; each is there once."""
    found: dict[str, tuple[str, bool]] = {}
    for line in filter(None, map(_LINE.fullmatch, text.split("\n"))):
        # Names that are not in ASCII need another form in a mail.
        address = formataddr(parseaddr(line["address"]))
        mail = parseaddr(address)[1].lower()
        before, maintains = found.get(mail, (address, False))
        found[mail] = before, maintains or "maintainer:" in line["roles"]
    found.pop(parseaddr(sender)[1].lower(), None)
    return Recipients(
        tuple(address for address, maintains in found.values() if maintains),
        tuple(address for address, maintains in found.values() if not maintains),
    )


def add(base: Path, cover: Path, mails: Sequence[Path], listing: bytes, sender: str) -> None:
    """Add headers to the mails of a series and to its cover: all go to all of its recipients."""
    with tempfile.NamedTemporaryFile(prefix="skbulk-maintainers-") as file:
        file.write(shortened(listing, b"".join(mail.read_bytes() for mail in mails)))
        file.flush()
        # The tree may lack the files that the series adds, but the script asks for none.
        done = proc.capture(
            ["perl", base / _SCRIPT, *_OPTIONS, f"--mpath={file.name}",
             *(mail.absolute() for mail in mails)],
            cwd=base, stderr=subprocess.PIPE, env=child_environment(**_ENVIRONMENT),
        )  # fmt: skip
    if done.returncode != 0:
        raise Failure(f"{_SCRIPT} fails for {cover.parent.name}",
                      *done.stderr.strip().splitlines()[-5:])  # fmt: skip
    headers = parse(done.stdout, sender).headers().encode()
    for mail in (cover, *mails):
        head, _, body = mail.read_bytes().partition(b"\n\n")
        mail.write_bytes(b"%s\n%s\n%s" % (head, headers, body))


def shortened(listing: bytes, mails: bytes) -> bytes:
    """MAINTAINERS without the entries and the keywords that cannot be about the mails."""
    files = set(re.findall(rb"^(?:---|\+\+\+) [ab]/(\S+)", mails, re.M))
    keywords = {one: one.search(mails) is not None for one in _keywords(listing)}

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
