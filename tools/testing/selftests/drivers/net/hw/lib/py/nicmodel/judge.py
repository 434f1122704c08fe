# SPDX-License-Identifier: GPL-2.0

"""
The judge of the modelled card: it counts what the driver does although the data
sheet forbids it. A case during which it has counted something fails.
"""

import contextlib
import functools

from net.lib.py.ksft import KsftCaseFunction
from lib.py import KsftFailEx


def _broken(model):
    """ Return the breaches so far by port, queue and rule. """
    if not model.can("judge"):
        return {}
    answer = model.ask("judge", accesses=False)
    return {(one["port"], one["queue"], one["rule"]): one
            for one in answer["breaches"] if not one["excused"]}


def _check(model, before):
    """ Fail if there are breaches that were not there before. """
    found = []
    for key, one in _broken(model).items():
        count = one["count"] - before.get(key, {"count": 0})["count"]
        if count:
            where = f"port {one['port']}" + (f", {one['queue']}" if one["queue"] else "")
            found.append(f"{one['rule']} ({one['source']}), {where}, {count} times: "
                         f"{one['about']}: {one['detail']}")
    if found:
        raise KsftFailEx("the driver has broken rules: " + "; ".join(found))


def _judged(func):
    @functools.wraps(func)
    def case(cfg, *args):
        before = _broken(cfg.card.model)
        func(cfg, *args)
        _check(cfg.card.model, before)
    return case


def judged(cases):
    """ Return the cases such that each fails if a rule was broken in it. """
    return [one._replace(original_func=_judged(one.original_func))
            if isinstance(one, KsftCaseFunction) else _judged(one)
            for one in cases]


@contextlib.contextmanager
def looks_away(model):
    """ Let the judge look away from what no driver may do. """
    if not model.can("judge"):
        yield
        return
    model.ask("judge", pause=True)
    try:
        yield
    finally:
        model.ask("judge", pause=False)
