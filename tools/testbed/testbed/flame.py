# SPDX-License-Identifier: GPL-2.0
"""Draws instruction counts by call stack as a flame graph, in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

_WIDTH = 1200
_ROW = 17
_MARGIN = 10
# A box narrower than this is left out, and one narrower than that has no text.
_NARROW = 0.4
_TEXT = 30
_LETTER = 6.4
_COLOURS = {"ixgbe_rust": "#e07b39", "ixgbe": "#c9a227", "vmlinux": "#6f9fc8"}
_OTHER = "#b0b0b0"


@dataclass
class Frame:
    """A function as it was called on one path, with what it called."""

    name: str
    own: float = 0.0
    children: dict[str, Frame] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """What ran here and below."""
        return self.own + sum(child.total for child in self.children.values())

    @property
    def depth(self) -> int:
        """How many boxes stand on each other."""
        return 1 + max((child.depth for child in self.children.values()), default=0)

    def add(self, stack: Sequence[str], amount: float) -> None:
        """Count something that ran at the end of a stack, outermost function first."""
        frame = self
        for name in stack:
            frame = frame.children.setdefault(name, Frame(name))
        frame.own += amount


def build(stacks: Iterable[tuple[Sequence[str], float]], root: str) -> Frame:
    """Adds up stacks."""
    frame = Frame(root)
    for stack, amount in stacks:
        frame.add(stack, amount)
    return frame


def svg(root: Frame, title: str, note: str) -> str:
    """The graph as text; the outermost functions are at the bottom."""
    depth = root.depth
    height = depth * _ROW + 4 * _MARGIN + 2 * _ROW
    total = root.total or 1.0
    scale = (_WIDTH - 2 * _MARGIN) / total
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN + 12}" font-size="14">{escape(title)}</text>',
        f'<text x="{_MARGIN}" y="{_MARGIN + 28}" fill="#555555">{escape(note)}</text>',
    ]
    bottom = height - _MARGIN - _ROW
    # Deep recursion cannot happen: stacks of the kernel are short.
    work = [(root, float(_MARGIN), 0)]
    while work:
        frame, left, level = work.pop()
        width = frame.total * scale
        if width < _NARROW:
            continue
        lines.append(_box(frame, (left, bottom - level * _ROW, width), total))
        at = left
        for child in sorted(frame.children.values(), key=lambda each: each.name):
            work.append((child, at, level + 1))
            at += child.total * scale
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def _box(frame: Frame, place: tuple[float, float, float], total: float) -> str:
    left, top, width = place
    module, _, function = frame.name.partition(" ")
    text = function or module
    tip = f"{frame.name}: {frame.total:,.1f} instructions per packet ({frame.total / total:.1%})"
    parts = [
        f"<g><title>{escape(tip)}</title>",
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_ROW - 1}" '
        f'fill="{_COLOURS.get(module, _OTHER)}" stroke="#ffffff" stroke-width="0.5"/>',
    ]
    if width >= _TEXT:
        room = int((width - 4) / _LETTER)
        shown = text if len(text) <= room else "…" + text[len(text) - room + 1 :]
        parts.append(f'<text x="{left + 2:.1f}" y="{top + 12:.1f}">{escape(shown)}</text>')
    return "".join(parts) + "</g>"
