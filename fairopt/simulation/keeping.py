"""The state of a simulation in a file, from which a stopped simulation continues.

The state is plain arrays by name: the next event of the trace, the jobs that wait, the tasks that run, the memory of the scheduler, the
samples so far, and the state of random numbers. A continued simulation has the same results, bit for bit, as one without a stop. An exact
scheduler starts each linear program from the last one, except after every `SECTION` solves (`fairopt.simulation.flow_state`); its state is
the last one before such a start.

A file records which simulation it belongs to. It may be damaged, or come from somebody else: what is no such file is refused, and so is a
state with which the simulation fails. It is refused if the trace, the cluster, the scheduler, an option or the version of fairopt
differs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.files.stores import Pace, Store, packed
from fairopt.instance import Instance
from fairopt.registry import contents
from fairopt.trace import Trace

__all__ = ["Keeper", "Request", "State", "digest_of", "part_of", "prefixed", "state_part"]

State = dict[str, Any]  # arrays and numbers by name

_SECONDS = 8.0  # between two states that are written
_EFFORT = 20.0  # within the next two bounds, the time between two writes is also at least this multiple of the time of one
_PART = 0.02  # a killed simulation loses at most this fraction of the time so far
_MOST = 8.0  # or this many seconds


def digest_of(*parts: object) -> str:
    """Return a digest of these objects; of a `Trace` or an `Instance`, of its arrays and labels, without units."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Trace | Instance):
            left_out = ("_units", "selections")  # no answer depends on units; what limits select, the limits say
            values = [getattr(part, name, None) for name in part.__slots__ if name not in left_out]
            values += [limit.to_dict() for limit in getattr(part, "limits", ())]
        else:
            values = [part]
        for value in values:
            digest.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return digest.hexdigest()[:16]


def state_part(scheduler: str) -> str:
    """Return the part of a store that is the state of a scheduler.

    >>> state_part("fairtree:half_life=7d")
    'fairtree-half-life-7d-01e9.state'
    """
    word = "".join(letter if letter.isalnum() else "-" for letter in scheduler)[:40]
    return f"{word}-{digest_of(scheduler)[:4]}.state"


@dataclass(frozen=True, slots=True)
class Request:
    """The identity of a simulation: its version, scheduler and options, and digests of its trace and cluster."""

    version: str
    trace: str
    cluster: str
    scheduler: str
    options: str

    @classmethod
    def of(cls, trace: Trace, cluster: Instance, scheduler: str, options: tuple[object, ...]) -> Request:
        """Return the request of a simulation."""
        version = str(sys.modules["fairopt"].__version__)
        return cls(version, digest_of(trace), digest_of(cluster), f"{scheduler} {contents(scheduler)}".strip(), repr(options))

    def check(self, kept: Mapping[str, str], path: Path) -> None:
        """Refuse the state of another simulation.

        Raises
        ------
        InvalidInstance
        """
        if kept.get("version") != self.version:
            raise InvalidInstance(
                f"{path} keeps a simulation that fairopt {kept.get('version')} began, and this is fairopt {self.version}; delete it, and "
                "the simulation begins anew"
            )
        for field in fields(self):
            if kept.get(field.name) != getattr(self, field.name):
                what = "with other options" if field.name == "options" else f"of another {field.name}"
                raise InvalidInstance(
                    f"{path} keeps a simulation {what}; give another folder, or delete the file, and the simulation begins anew"
                )


class Keeper:
    """Writes the state of a simulation from time to time; without a store, never. As a context manager, it alone writes that state.

    Attributes
    ----------
    path : Path or None
    found : State or None
        From which the simulation goes on, as soon as the context is entered.
    went_on : bool
        Has it gone on so long that a later state was written on the way? Then what fails is not the fault of the state found.
    """

    def __init__(self, store: Store | None = None, part: str = "", request: Request | None = None) -> None:
        self._store, self._part, self._request = store, part, request
        self.path = None if store is None else store.path(part)
        self.found: State | None = None
        self._pace = Pace(_SECONDS, _EFFORT, _PART, _MOST)
        self.went_on = False
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Keeper:
        if self._store is not None:
            with contextlib.ExitStack() as stack:
                stack.enter_context(self._store.writing(self._part, "simulation"))
                self.found = self._read(self._store)
                self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def is_due(self) -> bool:
        """Is it time to write a state?"""
        return self._store is not None and time.monotonic() >= self._pace.due

    def offer(self, state: Callable[[], State], at_once: bool = False) -> None:
        """Write what the function returns, if it is time to, or ``at_once``: completely or not at all."""
        if self._store is None or not (at_once or self.is_due):
            return
        with self._pace.write():
            request = {} if self._request is None else asdict(self._request)
            self._store.write(self._part, packed({"request": json.dumps(request), **state()}))
        self.went_on |= not at_once

    def refusal(self, error: Exception) -> InvalidInstance:
        """Return the refusal of a state from which a simulation cannot go on, for the reason that it failed."""
        why = str(error).partition("\n")[0]
        return InvalidInstance(f"{self.path} holds no state of a simulation: {why}; delete it, and the simulation begins anew")

    def _read(self, store: Store) -> State | None:
        try:
            found = store.arrays(self._part)
            if found is None:
                return None
            request = json.loads(str(found.pop("request")))
            if not isinstance(request, dict):
                raise ValueError("it does not say of which simulation it is")
        except (ValueError, KeyError, RecursionError) as error:
            raise self.refusal(error) from error
        if self._request is not None:
            self._request.check(request, store.path(self._part))
        return found


def prefixed(prefix: str, state: State) -> State:
    """Return a state with a prefix before each name.

    >>> prefixed("usage", {"time": 1.0})
    {'usage.time': 1.0}
    """
    return {f"{prefix}.{name}": value for name, value in state.items()}


def part_of(state: State, prefix: str) -> State:
    """Return the entries of a state that have this prefix, under names without it.

    >>> part_of({"usage.time": 1.0, "now": 2.0}, "usage")
    {'time': 1.0}
    """
    return {name.removeprefix(f"{prefix}."): value for name, value in state.items() if name.startswith(f"{prefix}.")}
