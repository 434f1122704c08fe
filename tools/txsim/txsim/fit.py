# SPDX-License-Identifier: GPL-2.0
"""Finds the cost with which a simulation takes a given time."""

from __future__ import annotations

from collections.abc import Callable

_STEPS = 20
_CLOSE = 0.002


def solve(ns: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """The argument in an interval at which a rising function has the value `wanted`.

    Times rise about linearly with costs, so following the line through two points
    converges fast. If the value is out of reach, the result is an end of the interval.
    """
    left, right = (low, ns(low)), (high, ns(high))
    if wanted <= left[1]:
        return low
    if wanted >= right[1]:
        return high
    middle = low
    for step in range(_STEPS):
        slope = (right[1] - left[1]) / (right[0] - left[0])
        # Alternate with bisection, or one end would never move on a curved line.
        halve = step % 2 == 1
        middle = (left[0] + right[0]) / 2 if halve else left[0] + (wanted - left[1]) / slope
        value = ns(middle)
        if abs(value / wanted - 1) < _CLOSE:
            break
        if value < wanted:
            left = (middle, value)
        else:
            right = (middle, value)
    return middle
