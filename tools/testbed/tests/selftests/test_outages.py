# SPDX-License-Identifier: GPL-2.0
"""Tests of the excuses for lost datagrams."""

from __future__ import annotations

from typing import Any

from selftest_library import library

outages = library("outages")


def stream(count: int, lost: range, peer: range = range(0)) -> list[Any]:
    """A datagram each 10 ms, which takes 2 ms; some get lost, some of them behind the peer."""
    return [
        outages.Datagram(
            number,
            number / 100,
            number / 100 + 0.001 if number not in lost or number in peer else 0.0,
            number / 100 + 0.002 if number not in lost else 0.0,
        )
        for number in range(count)
    ]


def during(begin: float, end: float) -> Any:
    """An outage."""
    found = outages.Outages()
    found.begin(begin, "a request")
    found.end(end)
    return found


def test_datagrams_of_an_outage_are_excused() -> None:
    datagrams = stream(100, range(50, 60))
    assert len(outages.lost(datagrams)) == 10
    assert outages.unexcused(datagrams, during(0.5, 0.6)) == []


def test_those_under_way_at_its_begin_are_excused() -> None:
    datagrams = stream(100, range(49, 60))
    assert outages.unexcused(datagrams, during(0.491, 0.6)) == []
    # No longer than the slowest one and some more.
    assert len(outages.unexcused(datagrams, during(0.53, 0.6))) == 2


def test_those_that_wait_for_its_end_do_not_count_for_that() -> None:
    datagrams = stream(100, range(45, 60))
    datagrams[60] = outages.Datagram(60, 0.60, 0.9, 0.91)
    outage = during(0.5, 0.605)
    assert outages.slowest(datagrams, outage).took < 0.003
    assert [one.number for one in outages.unexcused(datagrams, outage)] == [45, 46, 47]


def test_others_are_not() -> None:
    datagrams = stream(100, range(50, 60))
    assert len(outages.unexcused(datagrams, outages.Outages())) == 10
    # Behind the end.
    late = outages.unexcused(datagrams, during(0.5, 0.545))
    assert [one.number for one in late] == [55, 56, 57, 58, 59]


def test_an_outage_goes_on_until_its_end() -> None:
    one = outages.Outages()
    one.begin(0.5, "a request")
    assert one.going_on
    assert one.longest() is None
    # Another request meanwhile does not begin another one.
    one.begin(0.55, "another one")
    assert outages.unexcused(stream(100, range(50, 100)), one) == []
    one.end(0.6)
    one.end(0.9)
    assert [(each.begin, each.end) for each in one.all] == [(0.5, 0.6)]
    assert one.longest().why == "a request"


def test_being_late_is_no_excuse_for_getting_lost() -> None:
    late = outages.Outages()
    late.begin(0.3, "a request that delays", loses=False)
    late.begin(0.5, "another one that loses")
    late.begin(0.55, "a third one that delays", loses=False)
    late.end(0.7)
    datagrams = stream(100, range(45, 60))
    assert [one.number for one in outages.unexcused(datagrams, late)] == [45, 46, 47]
    assert [(one.begin, one.end) for one in late.all] == [(0.3, 0.5), (0.5, 0.7)]


def test_of_many_outages_one_is_found() -> None:
    many = outages.Outages()
    for second in range(100):
        many.begin(second, f"request {second}")
        many.end(second + 0.5)
    assert many.touch(7.2, 7.3)
    assert many.touch(7.4, 8.9)
    assert many.touch(7.6, 8.0)
    assert not many.touch(7.6, 7.9)
    assert not many.touch(99.6, 99.9)
    assert not many.touch(-2, -1)


def test_gaps_are_consecutive() -> None:
    datagrams = stream(100, range(50, 60), peer=range(55, 60))
    first, *others = outages.gaps(outages.lost(datagrams))
    assert not others
    assert (first.first.number, first.last.number, first.there, first.again) == (50, 59, 5, 5)
    assert "10 from number 50" in str(first)
    two = outages.gaps([datagrams[50], datagrams[52]])
    assert [gap.first.number for gap in two] == [50, 52]
