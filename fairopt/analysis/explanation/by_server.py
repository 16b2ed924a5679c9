"""What a task takes and does on each kind of server, in an explanation: where demands or speeds of the user differ.

>>> import fairopt as fo
>>> lab = fo.Instance(
...     [[8], [8]], [[[1], [2]], [[1], [1]]], speeds=[[1, 0.9], [1, 1]],
...     users=["train", "infer"], servers=["rack-a100", "rack-v100"], resources=["gpu"])
>>> for sentence in by_server(fo.solve(lab, "max-min"), 0):
...     print(sentence)
On rack-a100 its task takes 1 gpu, on rack-v100 its task takes 2 gpu and does 0.9 of the work.
Its tasks do the work of 8 tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import number
from fairopt.analysis.explanation.phrases import NAMES, some
from fairopt.instance import FloatArray, Instance
from fairopt.instance.by_server import work_in_words
from fairopt.wording import figure, joined, named

__all__ = ["by_server"]


def by_server(allocation: Allocation, user: int) -> list[str]:
    """Return the sentences on what a task of a user takes and does where it may run, and on the work of its tasks; none if all is equal."""
    instance = allocation.instance
    own = np.flatnonzero(instance.eligibility[user] & (instance.counts > 0))
    demand, speeds = instance.demands_by_row(user)[own], instance.speeds[user, own]
    differ = (demand != demand[:1]).any(axis=0)
    if not differ.any() and (speeds == 1).all():
        return []
    kinds: dict[Any, list[int]] = {}
    for i, row, speed in zip(own.tolist(), demand.tolist(), speeds.tolist(), strict=True):
        kinds.setdefault((*row, speed), []).append(i)
    fastest = sorted(kinds.values(), key=lambda rows: (-instance.speeds[user, rows[0]], -allocation.tasks[user, rows].sum()))
    told = [f"on {some([named(instance.servers[i]) for i in rows])} {_task(instance, user, rows[0], differ)}" for rows in fastest[:NAMES]]
    rest = f", and something else on {sum(map(len, fastest[NAMES:]))} more" if len(fastest) > NAMES else ""
    sentence = f"{', '.join(told)}{rest}."
    work = [] if (speeds == 1).all() else [f"Its tasks do {work_in_words(instance, number(allocation.work[user]), 3)}."]
    return [sentence[0].upper() + sentence[1:], *work]


def _task(instance: Instance, user: int, server: int, differ: FloatArray) -> str:
    """Return what a task takes on a server of the resources that differ, and what it does there if that is not the work of one task."""
    demand, speed = instance.demands_by_row(user)[server], instance.speeds[user, server]
    takes = joined([instance.amount(number(demand[r]), instance.resources[r]) for r in np.flatnonzero(differ)])
    does = f"does {figure(number(speed))} of the work" if speed < 1 else f"does {figure(number(speed))} times the work" if speed > 1 else ""
    parts = [*([f"takes {takes}"] if takes else []), *([does] if does else [])]
    return f"its task {' and '.join(parts) or 'does the work of one'}"
