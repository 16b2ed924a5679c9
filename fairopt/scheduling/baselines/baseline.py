"""What a baseline is: an approximation that papers compare with, declared once as a class with its options, its source and its guarantee.

A baseline is asked about a `Case` and answers in tasks, (users, servers). It claims no optimum: the limits of its answer are checked
(`fairopt.scheduling.baselines.approximating`), and nothing else.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.models import Notion, ShareNotion, Sharing
from fairopt.program import Feature, Program
from fairopt.solving.answer import unexpanded
from fairopt.validation import is_number, is_whole_number

__all__ = ["Baseline", "Case"]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What a baseline is asked about.

    Attributes
    ----------
    instance : Instance
        A flat list of users, without rules.
    notion : Notion
        That the baseline approximates.
    sharing : {"rdm", "tdm"}
    program : Program
        The program of the notion for the instance.
    """

    instance: Instance
    notion: Notion
    sharing: Sharing
    program: Program

    @classmethod
    def of(cls, instance: Instance, notion: Notion, sharing: Sharing) -> Case:
        """Return the case of a notion that has been checked for the instance."""
        return cls(instance, notion, sharing, notion.formulate(instance, sharing=sharing, integral=False))

    def tasks(self, x: FloatArray) -> FloatArray:
        """Return the tasks, (users, servers), that a value for each column of the program stands for."""
        rows = np.arange(self.instance.n_servers)
        return self.notion.in_tasks(self.instance, unexpanded(self.instance, self.program.table(x), rows, self.notion.utility))

    def columns(self, tasks: FloatArray) -> FloatArray:
        """Return the tasks, (users, servers), as a value for each column of the program."""
        found: FloatArray = tasks[self.program.pair_users, self.program.pair_servers]
        return found

    @property
    def weights(self) -> FloatArray:
        """Weights by which levels are divided, (users,): 1 where the share has the weights in it."""
        weights = self.instance.weights
        return weights if weights.ndim == 1 else np.ones(self.instance.n_users)

    @property
    def level_of_all_tasks(self) -> FloatArray:
        """The level at which each user has all its tasks, (users,), on the servers where they are worth most; inf without a task limit."""
        best = np.zeros(self.instance.n_users)
        np.maximum.at(best, self.program.pair_users, self.program.utilities)
        limited = np.isfinite(self.instance.tasks)
        return np.where(limited, best * np.where(limited, self.instance.tasks, 0.0) / self.weights, np.inf)

    def levels(self, x: FloatArray) -> FloatArray:
        """Return U[n] / phi[n], (users,)."""
        level: FloatArray = self.program.per_user(self.program.utilities * x) / self.weights
        return level


class Baseline(ABC):
    """An approximation that papers compare with.

    A subclass is a frozen dataclass. Its fields are its options, which it checks in ``__post_init__``.

    Class attributes: ``name`` (the identifier), ``title``, ``source`` (citation), ``example`` (how it is asked for), ``guarantee`` (what is
    proved of it, and where; what is not), ``whole`` (does it place whole tasks?).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    example: ClassVar[str]
    guarantee: ClassVar[str]
    whole: ClassVar[bool] = False
    needs_levels: ClassVar[bool] = False
    """Does it approximate the leximin of a share, and nothing else?"""

    @abstractmethod
    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return the tasks, (users, servers), and what else is to be said (the ``details`` of the allocation)."""

    def check(self, notion: Notion) -> None:
        """Refuse notions that the baseline cannot follow. Subclasses extend it.

        Raises
        ------
        Unsupported
        """
        if self.needs_levels and not (isinstance(notion, ShareNotion) and notion.goal(np.ones(1)).feature is Feature.LEXIMIN):
            raise Unsupported(
                f'"{self.name}" approximates a leximin of shares, and "{notion.name}" is none here; '
                'use a notion such as "drfh", "tsf" or "max-min"'
            )

    @property
    def options(self) -> dict[str, Any]:
        """The options with their values, by name."""
        return {each: getattr(self, each) for each in self.option_names()}

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names of the options."""
        return [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []

    def require_whole_number(self, option: str, least: int, most: int, instead: str = "") -> None:
        """Refuse an option that is no whole number from ``least`` to ``most``; ``instead`` ends the message."""
        value = getattr(self, option)
        if not is_whole_number(value) or not least <= value <= most:
            self._refuse(option, f"a whole number from {least} to {most}{instead}")

    def require_number(self, option: str, least: float, most: float) -> None:
        """Refuse an option that is no number from ``least`` to ``most``."""
        value = getattr(self, option)
        if not is_number(value) or not least <= value <= most:
            self._refuse(option, f"a number from {least:g} to {most:g}")

    def require_more(self, option: str, than: float) -> None:
        """Refuse an option that is no finite number above ``than``."""
        value = getattr(self, option)
        if not is_number(value) or not value > than:
            self._refuse(option, f"a number above {than:g}")

    def _refuse(self, option: str, wanted: str) -> None:
        raise Unsupported(f'the option {option} of "{self.name}" is {getattr(self, option)!r}; give {wanted}')
