r"""The table of a study for a paper: means with intervals, paired differences, titles, and notes that say what the numbers are.

>>> import pandas as pd
>>> rows = pd.DataFrame({
...     "instance": "lab", "seed": [0, 0, 1, 1], "entry": ["drfh", "drfh:best-fit"] * 2, "kind": ["exact", "greedy"] * 2,
...     "tasks": [400.0, 380.0, 424.0, 408.0], "efficiency": [1.0, 0.95, 1.0, 0.96], "message": ""})
>>> table = study_table(rows, ["tasks", "efficiency"], reference="drfh")
>>> print(table.to_markdown())  # doctest: +ELLIPSIS
| entry | tasks | Δ tasks | efficiency (%) | Δ efficiency (%) |
| --- | ---: | ---: | ---: | ---: |
| DRFH | 412 ± 12 | reference | 100 | reference |
| DRFH, best-fit | 394 ± 14 | -18.0 ± 2.0 | 95.50 ± 0.50 | -4.50 ± 0.50 |
<BLANKLINE>
Mean ± standard error over 2 seeds. Without ±: all seeds give the same value. Δ: mean difference to DRFH on the same seed, ...
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairopt.errors import Unsupported
from fairopt.show.blocks import GAP, Block
from fairopt.show.drawing import ShowsItself
from fairopt.show.equality import ComparesItself
from fairopt.show.html import table_html, text_html
from fairopt.show.table import Column, Format, Table, ids, names
from fairopt.show.text import text_in_latex, text_in_markdown, to_latex, to_markdown
from fairopt.studies.means import SUFFIXES, Interval, Mean, Means
from fairopt.studies.measures import DEFAULT_COLUMNS, MISSING, WITH_REFERENCE, Titles, chosen_measures, is_part, notes_of
from fairopt.validation import check_whole_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StudyTable", "study_table"]

_DIGITS = 4  # of a number without an error
_MOST_DIGITS = 15


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StudyTable(ComparesItself, ShowsItself):
    """A table for a paper. Its ``repr`` is the table, and notebooks show it.

    Attributes
    ----------
    frame : DataFrame
        The numbers as they are, a row for each instance and entry: ``kind``, ``seeds`` (with an allocation), ``failed``; for each measure x
        its mean "x", half of the width of its interval ("x error" for the standard error, "x sd" or "x ci95"), and with a reference
        "x difference", "x difference error".
    table : Table
        What is printed.
    notes : tuple of str
        What the numbers are, and what is missing: sentences for the caption.
    """

    frame: pd.DataFrame
    table: Table
    notes: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers, all digits of them."""
        return self.frame

    def to_latex(self) -> str:
        r"""Return a tabular for LaTeX, and the notes below it. It needs the package booktabs.

        Put it into a document by ``\input``, inside a ``table`` with a caption, or by itself.
        """
        notes = " ".join(text_in_latex(note) for note in self.notes)
        below = f"\\par\\smallskip\n\\begin{{minipage}}{{\\linewidth}}\\footnotesize\n{notes}\n\\end{{minipage}}\n"
        table, heads = self.table, None
        if table.breaks:
            heads = {first: table.columns[0].texts[first] for first in (0, *table.breaks)}
            table = replace(table, columns=table.columns[1:])
        first, _, rest = to_latex(table, heads).partition("\n")
        return f"{first} % \\usepackage{{booktabs}} in the preamble\n{rest}{below}"

    def to_markdown(self) -> str:
        """Return a table of Markdown, and the notes below it."""
        return f"{to_markdown(self.table)}\n{' '.join(map(text_in_markdown, self.notes))}\n"

    def to_html(self) -> str:
        """Return a table of HTML, and the notes below it, without a style."""
        return f"{table_html(self.table)}\n<p>{text_html(' '.join(self.notes))}</p>\n"

    def blocks(self) -> Iterator[Block]:
        """Yield the table and the notes, for any place where they are printed."""
        columns, ends = self.table.columns, [*self.table.breaks, len(self.table)]
        for first, end in zip([0, *ends], ends, strict=False):
            if self.table.breaks:  # several instances: a table each, because a terminal repeats the first column alone
                yield Table(columns[1:], columns[0].texts[first]).part(first, end)
            else:
                yield self.table
            yield GAP
        yield from self.notes

    def __repr__(self) -> str:
        import io

        from rich.console import Console

        from fairopt.show.terminal import print_blocks

        page = io.StringIO()
        print_blocks(Console(file=page, width=120, force_terminal=False), self.blocks())
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def study_table(
    rows: pd.DataFrame,
    columns: Sequence[str] | None = None,
    *,
    digits: int | None = None,
    interval: Interval = "se",
    reference: str | None = None,
    titles: Mapping[str, str] | None = None,
) -> StudyTable:
    r"""Make a table for a paper of the rows of a study: means over the seeds, as :math:`399 \pm 12`.

    Parameters
    ----------
    rows : DataFrame
        What `fairopt.study` returned, or some rows of it.
    columns : sequence of str, optional
        Measures: names of columns of ``rows``, such as "tasks", "smallest_share", "use of gpu"; "use" for the use of every resource.
        Default: tasks, smallest share and efficiency; without a reference also Jain's index and regret of the lowest share.
    digits : int, optional
        Significant digits of each mean. Default: as many as leave two digits of the error.
    interval : {"se", "sd", "ci95"}
        What stands behind ±: the standard error of the mean, the standard deviation of the seeds, or half of the width of the 95 %
        confidence interval (Student's t).
    reference : str, optional
        An entry, such as "drfh". Each measure has one more column: the difference to this entry, seed by seed, with the interval of these
        differences.
    titles : mapping, optional
        Other titles of entries, instances and measures: ``{"drfh:best-fit": "Best fit", "tasks": "tasks run"}``.

    Returns
    -------
    StudyTable
        With ``to_latex()``, ``to_markdown()``, ``to_html()``, ``to_frame()`` and ``notes``.

    Raises
    ------
    Unsupported
        A measure, the reference or a title is not of this study, a seed is there twice, or an argument is out of its range.

    Examples
    --------
    >>> import fairopt as fo
    >>> rows = fo.study({"pairs": "kesidis:users=4"}, schedules=["drfh:best-fit"], seeds=range(3), workers=1)
    >>> table = fo.study_table(rows, ["tasks", "efficiency"], interval="ci95", reference="drfh")
    >>> print(table.to_latex().splitlines()[5])
    DRFH, best-fit & $43 \pm 16$ & $-1.28 \pm 0.82$ & $92 \pm 19$ & $-2.72 \pm 0.90$ \\
    """
    if interval not in SUFFIXES:
        raise Unsupported(f'interval is {interval!r}; give "se", "sd" or "ci95"')
    if digits is not None:
        check_whole_number("digits", digits, 1, below=_MOST_DIGITS + 1)
    means = Means(rows, interval, reference)
    default = DEFAULT_COLUMNS if reference is None else WITH_REFERENCE
    measures = chosen_measures(rows, default if columns is None else columns)
    titles_of = Titles(means, measures, titles or {})
    shown = [name for name in measures if any(means.mean(key, name).seeds for key in means.keys)]
    notes = notes_of(means, measures if columns is not None else shown, shown, titles_of)
    return StudyTable(means.frame(measures), _table(means, shown, digits, titles_of), tuple(notes))


def _table(means: Means, measures: Sequence[str], digits: int | None, titles: Titles) -> Table:
    """Return the table of these measures, with the instance before the entry if there are several, and the seeds if some are missing."""
    several = len(means.instances) > 1
    firsts = [k for k, (instance, _) in enumerate(means.keys) if not k or means.keys[k - 1][0] != instance]
    columns = []
    if several:
        shown = (titles.of(instance) if k in firsts else "" for k, (instance, _) in enumerate(means.keys))
        columns.append(names("instance", shown))
    columns.append(names("entry", (titles.of(entry) for _, entry in means.keys)))
    if any(means.solved(key) < means.seeds(key[0]) for key in means.keys):
        columns.append(ids("seeds", (f"{means.solved(key)} of {means.seeds(key[0])}" for key in means.keys)))
    for name in measures:
        columns.append(_column(titles.heading(name), [means.mean(key, name) for key in means.keys], digits, percent=is_part(name)))
        if means.has_difference(name):
            apart = [None if key[1] == means.reference else means.difference(key, name) for key in means.keys]
            columns.append(_column(f"Δ {titles.heading(name)}", apart, digits, percent=is_part(name), signed=True))
    return Table(tuple(columns), breaks=tuple(firsts[1:]) if several else ())


def _column(title: str, means: Sequence[Mean | None], digits: int | None, *, percent: bool, signed: bool = False) -> Column:
    """Return a column of means; None: the difference of the reference to itself."""
    scale = 100.0 if percent else 1.0
    values = ["reference" if mean is None else scale * mean.value for mean in means]
    errors = tuple(math.nan if mean is None else scale * mean.spread for mean in means)
    form = Format(digits or _DIGITS, signed=signed, missing=MISSING, of_mean=digits is not None)
    return Column(title, tuple(values), "numbers", form, errors)
