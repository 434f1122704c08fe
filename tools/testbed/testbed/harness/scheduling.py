# SPDX-License-Identifier: GPL-2.0
"""The scheduler of groups, for xdist."""

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class GroupsInOrder(LoadGroupScheduling):
    """Hands out groups in the order of their first tests; xdist's own is by their numbers.

    A lane has one test in hand beside the one that it runs, and not two: what it has in hand, no
    other lane can take.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        places: dict[str, int] = {}
        for place, test in enumerate(self.collection or ()):
            places.setdefault(self._split_scope(test), place)
        first = min(self.workqueue, key=places.__getitem__)
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        waits = self._pending_of(self.assigned_work[node]) > 1
        if node.shutting_down or not (waits and self.workqueue):
            super()._reschedule(node)
