"""Parameters that several generators take: sizes, factors, the largest weight."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.validation import check_whole_number, is_number
from fairopt.wording import written

__all__ = ["Seed", "check_parameters", "weights_of"]

Seed: TypeAlias = "int | list[int] | np.random.Generator"


def check_parameters(**given: Any) -> None:
    """Refuse a value that its parameter does not allow.

    Raises
    ------
    Unsupported
    """
    for word, value in given.items():
        if word in ("users", "servers", "resources"):
            check_whole_number(word, value, 1)
        elif not is_number(value) or not {"size": value > 0, "load": value > 0, "weights": value >= 1, "rho": -1 <= value <= 1}[word]:
            meaning = {
                "size": "a number > 0",
                "load": "a number > 0",
                "weights": "the largest weight, >= 1",
                "rho": "a rank correlation, from -1 to 1",
            }[word]
            raise Unsupported(f"{word} is {written(value)}; give {meaning}")


def weights_of(users: int, largest: float, rng: np.random.Generator) -> FloatArray | None:
    """Return weights U[1, ``largest``], (users,); None if ``largest`` is 1."""
    return None if largest == 1 else rng.uniform(1.0, largest, users)
