# SPDX-License-Identifier: GPL-2.0
"""The scheduler of lanes, for xdist."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

from testbed.harness.lanes import LANES


class LanesInOrder(LoadGroupScheduling):
    """Hands out lanes in their order; xdist's own order is by the number of tests."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        first = min(self.workqueue, key=LANES.index)
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
