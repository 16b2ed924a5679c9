"""One cell: the number or the label that it means, and what is said of one that means none.

>>> no_number("16 gpu", "16 gpu", None, "", "tasks", of_resource=False)
'expected a number, found the text "16 gpu"; this column counts tasks, not gpu'
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

import numpy as np

from fairopt.instance.numerals import Numeral
from fairopt.instance.quantities import advice, plain, read
from fairopt.wording import brief

__all__ = ["float_of", "is_number", "label_of", "no_number", "only_text"]


def no_number(shown: str, cell: str, both: Numeral | None, resource: str, counts: str, *, of_resource: bool) -> str:
    """Return why a cell is no number, and what to write.

    Parameters
    ----------
    shown, cell : str
        As it is written, and with a decimal point.
    both : Numeral or None
        Its two readings, if it has two.
    resource, counts : str
        The resource that its column is about, or what it counts.
    of_resource : bool
        It is an amount.
    """
    if both is not None:
        return f"{shown} may be {both.grouped} or {both.plain}; write {both.grouped}, or {_longer(both.plain)} if you mean {both.plain}"
    told = advice(cell, of_resource=of_resource)
    number = re.fullmatch(r"([\d.]+)\s*([^\W\d_]+)", cell)
    if number is not None and told.startswith(f"{number[2]} is no unit; the units"):
        if of_resource and number[2].casefold().rstrip("s") == resource.casefold().rstrip("s"):
            told = f"write {number[1]}"
        elif counts:
            told = f"this column counts {counts}, not {number[2]}"
    return f'expected a number, found the text "{brief(shown, 60)}"; {told}'


def float_of(cell: str, *, of_resource: bool) -> tuple[float, bool, bool]:
    """Return the number that a cell means, nan if it is none; whether it has a byte unit; and whether it is a number."""
    try:
        return float(cell), False, True
    except ValueError:
        number = plain(cell, of_resource=of_resource)
    return (np.nan, False, False) if number is None else (float(number), plain(cell, of_resource=False) is None, True)


def is_number(cell: str) -> bool:
    """Is this a finite number, or a quantity with a unit?"""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        pass
    try:
        read(cell)
    except ValueError:
        return False
    return True


def label_of(cell: str, known: Collection[str]) -> str:
    """Return the label that a cell stands for: spaces around it count only where a label has them."""
    return cell if cell in known else cell.strip()


def only_text(cells: Sequence[str]) -> str:
    """Return the first text of a column in which no cell begins as a number does; "" where one does, or all are empty.

    >>> only_text(["", "R1", "R2"]), only_text(["R1", "64 GB (per job)"]), only_text(["-3", ".5"])
    ('R1', '', '')
    """
    texts = [cell for cell in cells if cell]
    return "" if any(re.match(r"\W*\d", cell) for cell in texts) else next(iter(texts), "")


def _longer(decimal: str) -> str:
    """Return a number of three decimals such that it has one reading.

    >>> _longer("1.024"), _longer("1.024 GiB")
    ('1.0240', '1.0240 GiB')
    """
    return re.sub(r"(\.\d+)", r"\g<1>0", decimal, count=1)
