"""A report: every analysis of an instance on one HTML page that needs no network.

The page opens with who gets what, against guarantee and weight, and with the complaints. It holds its data, its charts (Vega-Lite) and the
library that draws them. Sections: who gets what, summary, the instance, allocations under each
notion, their properties, what fairness costs, schedules and their regret, explanations, the programs, and how to reproduce all of it. If
a part fails, the page says why in its place and shows the rest. The same input and date give the same page, byte by byte.

>>> import tempfile
>>> from pathlib import Path
>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])
>>> with tempfile.TemporaryDirectory() as folder:
...     written = report(instance, Path(folder, "report.html"), notions=["drfh"])
...     written.path.read_text()[:15], written.path.stat().st_size < 5_000_000
('<!DOCTYPE html>', True)
"""

# Jinja2 and Altair are imported when a report is written, so that ``import fairopt`` stays light.

from __future__ import annotations

import datetime
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fairopt.allocation import Allocation
from fairopt.errors import FairoptError, InvalidInstance, Unsupported
from fairopt.files import write_files
from fairopt.instance import Instance, require_instance
from fairopt.models import Sharing
from fairopt.reporting.findings import Findings, study
from fairopt.reporting.page import require, write_page
from fairopt.results import plain, result
from fairopt.solving import formulate
from fairopt.specs import NotionSpec, ScheduleSpec
from fairopt.wording import plural

__all__ = ["NOTIONS", "Report", "check_date", "check_page", "default_notions", "report"]

NOTIONS = ("drfh", "tsf", "psdsf", "proportional")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report:
    """A report that was written.

    Attributes
    ----------
    path : Path
    findings : Findings
        Its content: the comparison; the program, audit and explanations of each notion; the frontier.
    question : mapping
        The arguments of `fairopt.report`, as plain data.
    """

    path: Path
    findings: Findings
    question: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: where the page is, its size, and which notions were solved."""
        solved, asked = ([each.row.name for each in group] for group in (self.findings.solved, self.findings.notions))
        found = {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "solved": solved,
            "unsolved": [name for name in asked if name not in solved],
        }
        return result("report", self.question, self.findings.instance.units, found)

    def __repr__(self) -> str:
        solved, asked = len(self.findings.solved), len(self.findings.notions)
        return f"Report({self.path}: {solved} of {plural(asked, 'notion')}, {plural(len(self.findings.schedules), 'schedule')})"


def report(
    instance: Instance,
    output: str | os.PathLike[str],
    *,
    notions: Sequence[NotionSpec] | None = None,
    schedules: Sequence[ScheduleSpec] = (),
    allocations: Mapping[str, npt.ArrayLike | Allocation | str | os.PathLike[str]] | None = None,
    explain: Sequence[str] = (),
    sharing: Sharing | None = None,
    effort: int = 50,
    seed: int = 0,
    time_limit: float | None = 60.0,
    title: str = "Fair shares of a cluster",
    date: datetime.date | str | None = None,
    one_page: bool = False,
    done: Callable[[str], object] | None = None,
) -> Report:
    """Study an instance and write the report as one HTML file. The file is replaced only when the report is complete.

    Parameters
    ----------
    instance : Instance
    output : path
        Its name ends in .html.
    notions, schedules : sequences, optional
        As `fairopt.compare` takes them. The default is no schedule, and those of drfh, tsf, psdsf and proportional that take the queues and
        guarantees of the instance.
    allocations : mapping, optional
        Your own allocations, by name, as `fairopt.compare` takes them: what runs now, or before and after a change. They are audited too,
        and shown side by side with the exact ones, by user and by owner.
    explain : sequence of str
        Users whose allocation is explained, under every notion.
    sharing : {"rdm", "tdm"}, optional
    effort : int
        The most lies to try, and the most users to remove, in each audit.
    seed : int
        Seed of the random lies.
    time_limit : float, optional
        Seconds for each allocation, each property and the frontier. The page says which parts reached the limit; it may then differ from
        run to run. None: no limit, but the steps of each search of an audit (`fairopt.audit`).
    title : str
    date : date or str, optional
        What the page is dated, as "2026-11-26". The default is today.
    one_page : bool
        Write only who gets what, on one page for print, without scripts: of the first notion with an allocation, beside the tasks under the
        others. Nothing else is computed.
    done : function, optional
        Called with the name of each part when it is finished.

    Returns
    -------
    Report
        Where it is, and what was found.

    Raises
    ------
    SolverUnavailable
        The packages of the extra ``report`` are missing.
    InvalidInstance, Unsupported
        A notion, placement or user does not exist, or the file cannot be written. Every other failure is reported on the page.
    """
    require_instance(instance)
    path, day = check_page(output, one_page=one_page), check_date(date)
    if notions is None:
        notions = default_notions(instance)[: 1 if one_page else None]
    found = study(
        instance,
        [notions] if isinstance(notions, str) else notions,
        [schedules] if isinstance(schedules, str) else schedules,
        [explain] if isinstance(explain, str) else explain,
        allocations=allocations or {},
        sharing=sharing,
        effort=effort,
        seed=seed,
        time_limit=time_limit,
        done=done or (lambda name: None),
        one_page=one_page,
    )
    commands = _commands(found, explain, effort, seed, time_limit, title, day, one_page)
    page = write_page(found, title=title, date=day, commands=commands, seed=seed, one_page=one_page)
    write_files({path: page.encode(errors="replace")})
    question = {
        "notions": [notions] if isinstance(notions, str) else notions,
        "schedules": [schedules] if isinstance(schedules, str) else schedules,
        "allocations": list(allocations or {}),
        "explain": [explain] if isinstance(explain, str) else explain,
        "sharing": found.comparison.sharing,
        "effort": effort,
        "seed": seed,
        "time_limit_s": time_limit,
        "title": title,
        "date": day.isoformat(),
        "one_page": one_page,
    }
    return Report(path, found, plain(question))


def default_notions(instance: Instance) -> tuple[str, ...]:
    """Return the notions of a report that names none: without those that do not take the queues and guarantees of the instance."""

    def takes(notion: str) -> bool:
        try:
            return bool(formulate(instance, notion))
        except FairoptError:
            return False

    if not instance.queues and not instance.guarantees.any():
        return NOTIONS
    return tuple(notion for notion in NOTIONS if takes(notion)) or NOTIONS


def check_date(date: datetime.date | str | None) -> datetime.date:
    """Return a date, today for None.

    Raises
    ------
    Unsupported

    >>> check_date("2026-11-26")
    datetime.date(2026, 11, 26)
    """
    if date is None:
        return datetime.date.today()
    if isinstance(date, datetime.date):
        return date
    try:
        return datetime.date.fromisoformat(date)
    except (TypeError, ValueError):
        raise Unsupported(f"the date is {date!r}; write it as 2026-11-26") from None


def check_page(output: str | os.PathLike[str], *, one_page: bool = False) -> Path:
    """Check, before anything is computed, that the page can be written.

    Raises
    ------
    InvalidInstance, SolverUnavailable, Unsupported
    """
    path = Path(output)
    if path.suffix.lower() not in (".html", ".htm"):
        raise Unsupported(f"{path} would be a web page; end its name in .html")
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise InvalidInstance(f"{path} cannot be written: there is no folder {path.parent}; make it first")
    require(one_page=one_page)
    return path


def _commands(
    found: Findings,
    explain: Sequence[str],
    effort: int,
    seed: int,
    time_limit: float | None,
    title: str,
    day: datetime.date,
    one_page: bool,
) -> list[str]:
    """Return the command lines that compute the same. A notion or schedule that the caller defined appears by its name."""
    names = ",".join(each.name for each in found.notions)
    greedy = ",".join(row.name for row in found.schedules if row not in found.given)
    given = [word for row in found.given for word in ("--allocation", f"{row.name}.csv")]
    how = ["--sharing", found.comparison.sharing] + ([] if time_limit is None else ["--time-limit", f"{time_limit:g}"])
    both = ["--notions", names, *(["--schedules", greedy] if greedy else []), *given]
    tries = ["--effort", str(effort), "--seed", str(seed)]
    brief = ["--one-page"] if one_page else []
    users = [word for user in explain for word in ("--explain", user)]
    lines = [["report", *both, *users, *tries, "--title", title, "--date", day.isoformat(), *how, *brief, "-o", "report.html"]]
    if one_page:
        return _in_shell([*lines, ["solve", "--notion", (found.solved or found.notions)[0].name, *how]])
    lines.append(["compare", *both, *how])
    for each in found.notions:
        lines.append(["audit", "--notion", each.name, *tries, *how])
        lines += [["explain", "--user", user, "--notion", each.name, *how] for user in explain]
    lines += [["audit", "--allocation", f"{row.name}.csv", *tries, *how] for row in found.given]
    if found.frontier.value is not None:
        lines.append(["frontier", "--notions", "", *how])
    return _in_shell(lines)


def _in_shell(lines: list[list[str]]) -> list[str]:
    return [shlex.join(["fairopt", line[0], "instance.yaml", *line[1:]]) for line in lines]
