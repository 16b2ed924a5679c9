"""The arguments of an import or an export, kept in its result as the question of its plain data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

from fairopt.allocation import Allocation
from fairopt.allocation.records import question_of
from fairopt.clusters.exported import Export
from fairopt.clusters.imported import Import
from fairopt.results import plain

__all__ = ["keeps_question"]

P = ParamSpec("P")
R = TypeVar("R", Export, Import)


def keeps_question(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose result has its arguments, with their defaults, as its ``question``."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        found = function(*arguments, **named)
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        return replace(
            found,
            question={
                name: question_of(value) if isinstance(value, Allocation) else plain(value) for name, value in bound.arguments.items()
            },
        )

    return call
