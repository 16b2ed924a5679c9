r"""The exact allocation with a memory: the leximin of cumulative shares, which fade with a half-life.

    C[u] = integral of s[u](v) 2^(-(now - v) / h) dv          what user u has had, s[u] its share, h the half-life (inf: nothing fades)

At each event, and every ``period`` seconds between events, the allocation is the leximin of what C[u] / phi[u] will be a period later if
it is kept so long:

    leximin over u of (C[u] 2^(-P / h) + a s[u]) / phi[u],     a = h / ln 2 (1 - 2^(-P / h)),     P = period; a = P for h = inf.

So the past is an offset of the goal (`fairopt.program.past`): users who have had little come first, until they have caught up. With
h = inf and a period of one round this is dynamic DRF (G. Fikioris, R. Agarwal and E. Tardos, Incentives in dominant resource fair
allocation under dynamic demands, 2021). It looks at nothing but the past: neither ends of jobs nor later submissions are known to it.

Where demands or speeds differ by server, s[u] is the share of its work. An owner with several streams divides its weight, and its past,
equally among those that have tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.certificate import Certificate, allocation_excess, certify
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion
from fairopt.models.share_notion import ShareNotion
from fairopt.program import Feature
from fairopt.simulation.baselines.options import UNKNOWN, Known
from fairopt.simulation.baselines.usage import FadingUsage, fading
from fairopt.simulation.baselines.windows import targets
from fairopt.simulation.flow_state import SECTION
from fairopt.simulation.fluid import Optimum, instance_at, stream_weights, tasks_of
from fairopt.simulation.keeping import State, part_of, prefixed
from fairopt.simulation.streams import Streams
from fairopt.solvers import RememberedLevels, candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find
from fairopt.wording import named

__all__ = ["Memory", "RememberedOptimum", "worth_everywhere"]

_GOOD = 1e-9  # a residual that needs no other engine


@dataclass(frozen=True, slots=True)
class Memory:
    """A notion with a memory.

    Attributes
    ----------
    notion : ShareNotion
    half_life : float
        Seconds; inf: nothing fades.
    period : float or None
        Seconds; None: a hundredth of the half-life, and of an infinite one a thousandth of the time over which jobs are submitted.
    known : Known
        The usage at the beginning. What the whole cluster is billed in a second is a share of 1 for a second: exact where the billing is
        the dominant share (``max:`` with the weights 1 / capacity), approximate otherwise.
    """

    notion: ShareNotion
    half_life: float
    period: float | None
    known: Known = UNKNOWN

    @classmethod
    def of(cls, notion: Notion, half_life: float, period: float | None) -> Memory:
        """Return the notion with this half-life and period.

        Raises
        ------
        Unsupported
            The notion is no leximin of shares.
        """
        if not isinstance(notion, ShareNotion) or notion.goal(np.ones(1)).feature is not Feature.LEXIMIN:
            raise Unsupported(
                f'{named(notion.name)} is no leximin of shares that add up over time; a memory is that of "drfh", "asset", "tsf" and other '
                "max-min notions: leave half_life out, or use one of these"
            )
        return cls(notion, half_life, period)

    def period_of(self, streams: Streams) -> float:
        """Return the period in seconds."""
        return streams.period(self.half_life) if self.period is None else self.period

    def past_of(self, streams: Streams) -> FloatArray:
        """Return the cumulative share of each user at the beginning, (users,); that of a queue is divided among the users below it."""
        past = self.known.past
        if past is None:
            return np.zeros(len(streams.users))
        users, queues = past.faded(self.half_life)
        tree, weights = streams.weighted_tree
        return past.divided(users, queues, tree, targets(tree, weights)) / self.known.billed(streams.instance)


class RememberedOptimum(Optimum):
    """The leximin of cumulative shares, recomputed at every event and after each period."""

    def __init__(self, streams: Streams, memory: Memory) -> None:
        super().__init__(streams, memory.notion)
        self.memory, self.period = memory, memory.period_of(streams)
        self.usage = FadingUsage(len(streams.users), memory.half_life)
        self.usage.begin(memory.past_of(streams))
        self.kept, self.gain = fading(self.period, memory.half_life)
        self.levels: RememberedLevels | None = None
        self.worth = np.zeros(streams.owner.size)

    def at(self, jobs: IntArray, counts: FloatArray, now: float = -np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the tasks of each stream and the usage of each row of servers from now on."""
        streams = self.streams
        past = self.usage.at(now)
        self.limits = tasks_of(streams, jobs)
        self._clear()
        active = np.flatnonzero(self.limits)
        if active.size and (counts > 0).any():
            self._remember(active, counts, past)
        work = self.x if self.pace is None else self.x * self.pace
        held = np.bincount(streams.owner, weights=work * self.worth, minlength=past.size)
        self.usage.rate = np.asarray(held, float)
        return self.x, self.rows

    @property
    def is_afresh(self) -> bool:
        """Does the next solve, if any, start without the basis of the last one?"""
        return self.solved % SECTION == 0 or self.levels is None

    def state(self) -> State:
        """Return the state, for `restore`."""
        return super().state() | prefixed("usage", self.usage.state())

    def restore(self, state: State) -> None:
        """Go back to a state."""
        super().restore(state)
        self.usage.restore(part_of(state, "usage"))

    def again(self, now: float, unfinished: bool) -> float:
        """Return when the allocation is to be computed again though nothing happens; inf: not before the next event."""
        return now + self.period if unfinished and self.x.any() else np.inf

    def _remember(self, active: IntArray, counts: FloatArray, past: FloatArray) -> None:
        streams = self.streams
        if self.levels is None or self.repeats_at != counts.tobytes() or self.solved % SECTION == 0:
            self._formulate(counts)
        assert self.levels is not None
        weights = np.array(streams.weights[streams.owner])
        weights[active] = stream_weights(streams, active)
        part = weights / streams.weights[streams.owner]
        offsets = np.where(self.limits > 0, past[streams.owner] * part * self.kept / self.gain, 0.0)
        program, solution = self.levels.solve_again(self.limits, weights, offsets)
        certificate = certify(program, solution)
        if certificate.worst > _GOOD:
            found = find(program, candidates(program, None), CERTIFIED, Deadline(None))
            solution, certificate = found.solution, found.certificate
        tasks = np.zeros((streams.owner.size, self.first.size + 1))
        tasks[program.pair_users, program.pair_servers] = solution.x
        excess = Certificate(allocation_excess(self.instance, tasks[:, :-1], "rdm"), 0.0, 0.0)
        certificate = Certificate.combine([certificate, excess])
        certificate.require(CERTIFIED, self.notion.name, "highs")
        self.residual = max(self.residual, certificate.worst)
        self._take(tasks[:, :-1], counts)

    def _formulate(self, counts: FloatArray) -> None:
        """Build the program of all streams on these servers. Absent ones have the task limit 0."""
        streams = self.streams
        everybody = np.arange(streams.owner.size)
        most = np.maximum(tasks_of(streams, np.arange(streams.trace.n_jobs)), 1.0)
        instance = instance_at(streams, everybody, most, counts, self.group, self.first)
        chosen = self.notion.restricted(streams.owner, self.first)
        chosen.check(instance, "rdm")
        assert isinstance(chosen, ShareNotion)
        chosen.refuse_last(instance, "a memory compares what all users had; give every resource a weight > 0 in resource_weights")
        self.worth = worth_everywhere(chosen, instance)
        self.levels = RememberedLevels(chosen.formulate(instance, sharing="rdm", integral=False))
        self.instance = instance.replace(tasks=None)
        self.repeats_at = counts.tobytes()


def worth_everywhere(notion: ShareNotion, instance: Instance) -> FloatArray:
    """Return the share of a task of each user, (users,), which must be the same on all servers where it may run.

    Raises
    ------
    Unsupported
        It differs: shares of different times then do not add up.
    """
    worth = notion.share_per_task(instance)
    if worth.ndim == 1:
        return worth
    most: FloatArray = np.asarray(worth.max(axis=1, initial=0.0, where=instance.eligibility))
    if (instance.eligibility & (worth != most[:, None])).any():
        raise Unsupported(
            f'the share of a task under "{notion.name}" depends on the server, so that shares of different times do not add up; '
            'use "drfh", "asset" or "tsf" with a half_life'
        )
    return most
