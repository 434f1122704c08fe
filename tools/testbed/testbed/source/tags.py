# SPDX-License-Identifier: GPL-2.0
"""Tags of the sender for all mails, as in TAGS="Acked-by: A <a@b>; Tested-by: B <b@c>".

As in settings.py, the standard library of Python 3.9 has to do.
"""

from __future__ import annotations

import re

from testbed.host.ui import similar

# Those of a single patch, such as Fixes, are in its message.
KNOWN = ("Acked-by", "Cc", "Reviewed-by", "Suggested-by", "Tested-by")
_PERSON = re.compile(r"[^<>]+ <[^<>@\s]+@[^<>@\s]+>")
_EXAMPLE = 'an example: TAGS="Reviewed-by: Jane Doe <jane@example.org>; Acked-by: ..."'


def split(text: str) -> tuple[str, ...]:
    """The tags, one per line of a mail; none is there twice."""
    parts = (" ".join(part.split()) for part in text.split(";"))
    return tuple(dict.fromkeys(part for part in parts if part))


def mistakes(text: str) -> list[str]:
    """The first mistake and the way out, or nothing."""
    tags = split(text)
    if not tags:
        return ["there is no tag in it", _EXAMPLE]
    return next((found for found in map(_mistake, tags) if found), [])


def _mistake(tag: str) -> list[str]:
    name, _, person = (part.strip() for part in tag.partition(":"))
    if name.lower() == "signed-off-by":
        return ["Signed-off-by is the sender's own", 'AUTHOR="Name <mail>" adds it']
    if name not in KNOWN:
        hints = *similar(name, KNOWN), f"there are {', '.join(KNOWN)}"
        return [f"{name} is no tag for all mails", *hints]
    if not _PERSON.fullmatch(person):
        return [f"{name} is followed by {person or 'nothing'}, not by a name and address", _EXAMPLE]
    return []
