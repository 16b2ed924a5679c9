"""Random trials, and the comparison of their means with published means.

Trial j of a setting has its own random numbers, so the results do not depend on the number of workers. Two means agree if their difference
is within its 99.9 % confidence interval, by the pooled variance of both samples. Two standard deviations are compared likewise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Row", "Run", "Verdict", "Z", "compared", "deviation_interval", "interval", "sample"]

Z = 3.2905267314918945  # 99.9 % of a normal distribution are within Z standard deviations; strict, because many means are compared
_BATCH = 25  # trials that a worker takes at a time


class Verdict(Enum):
    """The result of comparing a row with the paper."""

    AGREES = "agrees"
    KNOWN = "known difference"
    SILENT = "not printed"  # the paper prints no number; ours equals the stored result
    DIFFERS = "differs"
    NOT_RUN = "not run"  # a package that the row needs is not installed


@dataclass(frozen=True, slots=True)
class Row:
    """One published result and the result of fairopt.

    Attributes
    ----------
    id, what, citation : str
    published : list of numbers (nested, for several rows) or None
        As printed; None: the paper prints no numbers.
    ours : list of numbers
        In a run in fractions: text such as "18/5".
    tolerance : float
        Half a unit of the last printed digit, or the half-width of the confidence interval of the difference of two means. For several
        means it is the largest half-width; each mean is compared by its own.
    mean : bool
        Whether the result is a mean of random trials.
    verdict : Verdict
    note : str
        The reason of a difference.
    kind : str
        What is claimed of ours: "exact", "greedy" or "approximate" of allocations, "cluster", "memory" or
        "decentralised" of simulations (`fairopt.simulation.schedulers.KINDS`); "" where it is no allocation.
    residual : float or None
        The largest relative error by which an exact allocation is proved; None: several allocations, or nothing is proved.
    """

    id: str
    what: str
    citation: str
    published: list[Any] | None
    ours: list[Any]
    tolerance: float
    mean: bool
    verdict: Verdict
    note: str = ""
    kind: str = ""
    residual: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Options of a run.

    Attributes
    ----------
    quick : bool
        Run fewer trials, and use a part of a trace.
    workers : int
        Number of workers; -1: one worker on each core.
    done : function of an int
        Called with the number of trials finished since the last call.
    data : path, optional
        Folder of public traces.
    draw : function of a name and a function that returns a figure
        Called for each figure of an experiment. Default: no figure is drawn.
    exact : bool
        Answer the small examples in fractions.
    """

    quick: bool = False
    workers: int = 1
    done: Callable[[int], object] = lambda trials: None
    data: Path | None = None
    draw: Callable[[str, Callable[[], Figure]], object] = lambda name, figure: None
    exact: bool = False


def compared(
    id: str,
    what: str,
    citation: str,
    *,
    published: list[Any] | None,
    ours: list[Any],
    tolerance: float,
    mean: bool = False,
    holds: bool | None,
    as_known: bool = False,
    differs: str = "",
    kind: str = "",
    residual: float | None = None,
) -> Row:
    """Return the row of a result, with its verdict.

    Parameters
    ----------
    holds : bool or None
        Whether the result agrees with the paper. None: the paper prints no number.
    as_known : bool
        Whether the result equals the stored result of fairopt; read only if it does not agree with the paper.
    differs : str
        The reason of a known difference; printed below the table if the result differs.
    kind, residual
        As in the row.

    >>> compared("a", "tasks", "table I", published=[3], ours=[4], tolerance=0.5, holds=False, as_known=True, differs="A tie.").note
    'A tie.'
    """
    if holds:
        verdict = Verdict.AGREES
    elif as_known:
        verdict = Verdict.SILENT if holds is None else Verdict.KNOWN
    else:
        verdict = Verdict.DIFFERS
    note = {Verdict.KNOWN: differs, Verdict.DIFFERS: "Unexpected: please report it."}.get(verdict, "")
    return Row(id, what, citation, published, ours, tolerance, mean, verdict, note, kind, residual)


def sample(trial: Callable[[np.random.Generator], FloatArray], name: str, trials: int, run: Run, batch_size: int = _BATCH) -> FloatArray:
    """Return the outcomes of independent trials, (trials, quantities); ``name`` seeds them, number j the j-th one."""
    from joblib import Parallel, delayed

    seed = zlib.crc32(name.encode())

    def batch(numbers: range) -> list[FloatArray]:
        outcomes = [trial(np.random.default_rng([seed, j])) for j in numbers]
        run.done(len(numbers))
        return outcomes

    batches = [range(first, min(first + batch_size, trials)) for first in range(0, trials, batch_size)]
    # Threads suffice: numpy and compiled code release the interpreter lock, and threads start without copying data.
    done = Parallel(n_jobs=run.workers, prefer="threads")(delayed(batch)(numbers) for numbers in batches)
    return np.array([outcome for outcomes in done for outcome in outcomes])


def interval(outcomes: FloatArray, deviation: float, trials: int) -> float:
    """Return the half-width of the 99.9 % interval of the difference of two means: the mean of ``outcomes`` and a published mean.

    >>> round(interval(np.array([1.0, 2, 3, 4]), 1.0, 4), 3)
    2.85
    """
    n = outcomes.size
    squares = float(((outcomes - outcomes.mean()) ** 2).sum()) + trials * deviation**2
    return float(Z * np.sqrt(squares / max(n + trials - 2, 1) * (1 / n + 1 / trials)))


def deviation_interval(outcomes: FloatArray, trials: int) -> float:
    """Return the half-width of the 99.9 % interval of the difference of the standard deviations of two samples of one distribution.

    Let k be the kurtosis of the outcomes. The variance of the standard deviation s of n outcomes is about s^2 (k - 1) / 4n.

    >>> round(deviation_interval(np.array([1.0, 2, 3, 4]), 4), 3)
    1.202
    """
    centred = outcomes - outcomes.mean()
    variance = float((centred**2).mean())
    if variance == 0:
        return 0.0
    kurtosis = float((centred**4).mean()) / variance**2
    deviation = float(outcomes.std(ddof=1))
    return Z * deviation * float(np.sqrt((kurtosis - 1) / 4 * (1 / outcomes.size + 1 / trials)))
