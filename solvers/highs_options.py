"""Options of HiGHS that a user gives, checked and kept for the models that are made, and its banner, which nobody hears."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from fairopt.errors import Unsupported
from fairopt.processes.streams import unheard
from fairopt.wording import did_you_mean

__all__ = ["check_options", "given_options", "options_given", "without_banner"]

_GIVEN: ContextVar[Mapping[str, object]] = ContextVar("fairopt.solvers.highs_options")  # options of the user's, which replace ours


@cache
def without_banner() -> None:
    """Have HiGHS print its banner, if this version has one, where nobody hears it; call this before any package makes a HiGHS object.

    highspy 1.16 prints it on descriptor 1 when a process makes its first object. No option can be set before that, and later objects print
    none.
    """
    import highspy

    with unheard():
        highspy.Highs()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def given_options(options: Mapping[str, object]) -> Iterator[None]:
    """Have the models that are made inside, in this thread, take these options of HiGHS's.

    Raises
    ------
    Unsupported
        HiGHS has no such option, or not with such a value.
    """
    check_options(options)
    before = _GIVEN.set(dict(options))
    try:
        yield
    finally:
        _GIVEN.reset(before)


def options_given() -> Mapping[str, object]:
    """Return the options of `given_options` around the caller; none outside."""
    return _GIVEN.get({})


def check_options(options: Mapping[str, object]) -> None:
    """Refuse options that HiGHS does not have, or not with such a value; let it start anew with another number of threads.

    The threads of HiGHS belong to the process, and a model that asks for another number of them than there are would not be solved.
    """
    if not options:
        return
    import highspy

    without_banner()
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    names = [name for name in vars(type(highs.getOptions())) if not name.startswith("_")]
    for name, value in options.items():
        if name not in names:
            raise Unsupported(f'"highs" takes no option "{name}"{did_you_mean(name, names)}; leave it out')
        try:
            refused = highs.setOptionValue(name, value) == highspy.HighsStatus.kError
        except TypeError:
            refused = True
        if refused:
            raise Unsupported(f'"highs" does not take "{value}" for its option "{name}"; its default is {highs.getOptionValue(name)[1]}')
    if "threads" in options:
        highspy.Highs.resetGlobalScheduler(True)
