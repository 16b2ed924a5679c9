"""A report: everything that fairopt knows of an instance, on one page that needs no network.

The page holds its data, its charts (Vega-Lite) and the library that draws them. Sections: summary, the instance, allocations under each
notion, their properties, what fairness costs, schedules and their regret, explanations, the programs, and how to reproduce all of it. A
study that fails says why in its place, and the rest stands. The same question gives the same page, byte by byte.

>>> import tempfile
>>> from pathlib import Path
>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])
>>> with tempfile.TemporaryDirectory() as folder:
...     written = report(instance, Path(folder, "report.html"), notions=["drfh"])
...     written.path.read_text()[:15], written.path.stat().st_size < 5_000_000
('<!DOCTYPE html>', True)
"""

# What draws and fills in the page is imported when a report is asked for: ``import fairopt`` stays light.

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.files import write_files
from fairopt.instance import Instance, require_instance
from fairopt.models import Sharing
from fairopt.reporting.findings import Findings, study
from fairopt.reporting.page import require, write_page
from fairopt.specs import NotionSpec, ScheduleSpec
from fairopt.wording import plural

__all__ = ["NOTIONS", "Report", "check_page", "report"]

NOTIONS = ("drfh", "tsf", "psdsf", "proportional")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report:
    """A report that was written.

    Attributes
    ----------
    path : Path
    findings : Findings
        What it tells: the comparison, and of each notion its program, audit and explanations; the frontier.
    """

    path: Path
    findings: Findings

    def __repr__(self) -> str:
        solved, asked = len(self.findings.solved), len(self.findings.notions)
        return f"Report({self.path}: {solved} of {plural(asked, 'notion')}, {plural(len(self.findings.schedules), 'schedule')})"


def report(
    instance: Instance,
    output: str | os.PathLike[str],
    *,
    notions: Sequence[NotionSpec] = NOTIONS,
    schedules: Sequence[ScheduleSpec] = (),
    explain: Sequence[str] = (),
    sharing: Sharing | None = None,
    effort: int = 50,
    seed: int = 0,
    time_limit: float | None = 60.0,
    title: str = "Fair shares of a cluster",
    done: Callable[[str], object] | None = None,
) -> Report:
    """Study an instance and write the report, one HTML file that is either complete or as it was.

    Parameters
    ----------
    instance : Instance
    output : path
        Ends in .html.
    notions, schedules : sequences
        As `fairopt.compare` takes them.
    explain : sequence of str
        Users whose allocation is explained, under every notion.
    sharing : {"rdm", "tdm"}, optional
    effort : int
        Lies, and users who leave, that each audit tries.
    seed : int
        Of the lies.
    time_limit : float, optional
        Seconds for each allocation, each property and the frontier; None for no limit. What passes it says so, and the page is then not
        the same each time.
    title : str
    done : function, optional
        Called with the name of each study when it is finished.

    Returns
    -------
    Report
        Where it is, and what was found.

    Raises
    ------
    SolverUnavailable
        Without the extra: ``pip install 'fairopt[report]'``.
    InvalidInstance, Unsupported
        For what does not exist, or a file that cannot be written. All else is said on the page.
    """
    require_instance(instance)
    path = check_page(output)
    found = study(
        instance,
        [notions] if isinstance(notions, str) else notions,
        [schedules] if isinstance(schedules, str) else schedules,
        [explain] if isinstance(explain, str) else explain,
        sharing=sharing,
        effort=effort,
        seed=seed,
        time_limit=time_limit,
        done=done or (lambda name: None),
    )
    page = write_page(found, title=title, commands=_commands(found, explain, effort, seed, time_limit, title), seed=seed)
    write_files({path: page.encode(errors="replace")})
    return Report(path, found)


def check_page(output: str | os.PathLike[str]) -> Path:
    """Refuse, before anything is computed, what could not be written.

    Raises
    ------
    InvalidInstance, SolverUnavailable, Unsupported
    """
    path = Path(output)
    if path.suffix.lower() not in (".html", ".htm"):
        raise Unsupported(f"{path} is to be a web page; end its name in .html")
    if not path.resolve().parent.is_dir():
        raise InvalidInstance(f"{path} cannot be written: there is no folder {path.parent}; make it first")
    require()
    return path


def _commands(found: Findings, explain: Sequence[str], effort: int, seed: int, time_limit: float | None, title: str) -> list[str]:
    """Return the command lines that compute the same; a notion or schedule of the caller's own stands there by its name."""
    names = ",".join(each.name for each in found.notions)
    greedy = ",".join(row.name for row in found.schedules)
    how = ["--sharing", found.comparison.sharing] + ([] if time_limit is None else ["--time-limit", f"{time_limit:g}"])
    both = ["--notions", names, *(["--schedules", greedy] if greedy else [])]
    tries = ["--effort", str(effort), "--seed", str(seed)]
    users = [word for user in explain for word in ("--explain", user)]
    lines = [["report", *both, *users, *tries, "--title", title, *how, "-o", "report.html"], ["compare", *both, *how]]
    for each in found.notions:
        lines.append(["audit", "--notion", each.name, *tries, *how])
        lines += [["explain", "--user", user, "--notion", each.name, *how] for user in explain]
    lines.append(["frontier", "--notions", "", *how])
    return [shlex.join(["fairopt", line[0], "instance.yaml", *line[1:]]) for line in lines]
