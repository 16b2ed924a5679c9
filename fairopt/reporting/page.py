"""The page: one file that holds its data, its charts and the library that draws them. It loads nothing from elsewhere.

Labels come from files and must stay text. Jinja2 escapes them in HTML, the JSON block of the data cannot contain a tag, and a content
security policy runs only the scripts whose hashes it lists. In sentences, characters that change the direction of writing are escaped.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import math
import platform
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from unicodedata import bidirectional

from fairopt.analysis.frontiers import why_none
from fairopt.analysis.owners import owners_of
from fairopt.errors import InvalidInstance, SolverUnavailable
from fairopt.instance import Instance
from fairopt.reporting.answering import answered
from fairopt.reporting.bars import PATTERN
from fairopt.reporting.data import MOST_ROWS, data
from fairopt.reporting.findings import Findings, Outcome
from fairopt.reporting.library import library
from fairopt.reporting.tables.frontiers import frontier_table
from fairopt.reporting.tables.instance import limit_table, rule_table, server_table, shared_table, user_table
from fairopt.reporting.tables.phrases import counted
from fairopt.reporting.tables.reports import (
    bound_table,
    certificate_table,
    glance_table,
    owner_table,
    price_table,
    queue_table,
    regret_table,
    share_table,
    task_table,
    use_table,
)
from fairopt.reporting.words import about_instance, about_notion, summary
from fairopt.show.html import table_html
from fairopt.show.table import Table
from fairopt.wording import installing, joined, plural

__all__ = ["require", "upright", "write_page"]

_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # bidirectional classes of Unicode
_NEEDS = ("altair", "jinja2", "vl_convert")
_VERSIONS = ("fairopt", "numpy", "scipy", "highspy", "altair", "vl-convert-python", "jinja2")


def require(*, one_page: bool = False) -> None:
    """Check, before anything is computed, that the packages of a report are installed; one page has no charts of Vega.

    Raises
    ------
    SolverUnavailable
    """
    from importlib.util import find_spec

    missing = [
        name.replace("vl_convert", "vl-convert-python") for name in (_NEEDS if not one_page else ["jinja2"]) if find_spec(name) is None
    ]
    if missing:
        raise SolverUnavailable(f"a report needs {joined(missing)}; install with: {installing('report')}")


def write_page(findings: Findings, *, title: str, date: datetime.date, commands: Sequence[str], seed: int, one_page: bool = False) -> str:
    """Return the page as HTML, the same for the same findings."""
    import jinja2
    from jinja2.utils import htmlsafe_json_dumps

    files = jinja2.PackageLoader("fairopt", "reporting")
    pages = jinja2.Environment(loader=files, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= {"tasks": lambda value: plural(value, "task", digits=4), "upright": upright, "table": _table}
    script, style = (files.get_source(pages, name)[0] for name in ("page.js", "page.css"))
    file = Outcome.of(lambda: _instance_file(findings.instance))
    both = {
        "title": title,
        "date": f"{date.day} {date:%B %Y}",
        "findings": findings,
        "answer": answered(findings, one_page=one_page),
        "pattern": PATTERN,
        "about_instance": about_instance(findings),
        "commands": commands,
        "instance_file": file.value,
        "style": style,
    }
    if one_page:
        return pages.get_template("one_page.html").render(**both, version=version("fairopt"), policy=_policy(style))
    from fairopt.reporting.charts import COLOURED, charts

    script_of_charts = library()
    users = findings.instance.users
    block = {
        "sets": data(findings),
        "charts": charts(findings),
        "notions": [found.name for found in findings.solved],
        "users": list(users) if len(users) <= COLOURED else [],
    }
    return pages.get_template("page.html").render(
        **both,
        summary=summary(findings),
        counted=counted(findings.instance),
        by_server=findings.instance.differs_by_server,
        no_line=why_none(findings.instance),
        about_notion={found.name: about_notion(found) for found in findings.notions},
        servers=server_table(findings.instance),
        shared=shared_table(findings.instance),
        users=user_table(findings.instance),
        limits=limit_table(findings.instance),
        rules=rule_table(findings.instance),
        tables=_tables(findings),
        has_regret=any(row.regret is not None for row in findings.schedules),
        legend=users if len(users) <= COLOURED else (),
        names=users if COLOURED < len(users) <= MOST_ROWS else (),
        seed=seed,
        versions=_versions(),
        no_file=file.message,
        block=htmlsafe_json_dumps(_finite(block), dumps=_json),
        library=script_of_charts,
        script=script,
        policy=_policy(style, script_of_charts, script),
    )


def _policy(style: str, *scripts: str) -> str:
    """Return the policy of a page that has this style and runs these scripts, and loads nothing."""
    rules = ["default-src 'none'", *([f"script-src {' '.join(map(_hash, scripts))}"] if scripts else []), f"style-src {_hash(style)}"]
    return "; ".join([*rules, "img-src data:", "base-uri 'none'", "form-action 'none'"])


def _table(table: Table, picked: bool = False) -> Any:
    from markupsafe import Markup

    return Markup(table_html(table, most=MOST_ROWS, picked=picked))


def _tables(findings: Findings) -> dict[str, Table]:
    tables: dict[str, Table] = {
        "glance": glance_table(findings),
        "tasks": task_table(findings),
        "shares": share_table(findings),
        "use": use_table(findings),
        "regret": regret_table(findings),
        "certificates": certificate_table(findings),
    }
    if findings.frontier.value is None:
        tables["price"] = price_table(findings)
    if findings.instance.queues and findings.solved:
        tables["queues"] = queue_table(findings)
    if (bounds := bound_table(findings)) is not None:
        tables["bounds"] = bounds
    if findings.comparison.rows and (findings.given or len(set(owners_of(findings.instance))) < findings.instance.n_users):
        tables["owners"] = owner_table(findings)
    if findings.frontier.value is not None:
        tables["frontier"] = frontier_table(findings.frontier.value, findings.points)
    return tables


def upright(text: str) -> str:
    """Return a sentence in which no line breaks before a percent sign, and no character changes the direction of writing.

    Such characters are escapes: they would turn the numbers after them, too.

    >>> upright("the share of a\\u202eb is 25 %").split(" ")
    ['the', 'share', 'of', 'a\\\\u202eb', 'is', '25\\xa0%']
    """
    plain = "".join(f"\\u{ord(c):04x}" if bidirectional(c) in _TURNS else c for c in text)
    return plain.replace(" %", "\N{NO-BREAK SPACE}%")


def _instance_file(instance: Instance) -> str:
    """Return the instance as YAML, in base 64."""
    from fairopt.formats.syntax import to_yaml

    text = to_yaml(instance.to_dict())
    try:
        return base64.b64encode(text.encode()).decode()
    except UnicodeEncodeError:
        raise InvalidInstance("a label is not text that a file can hold (half of a surrogate pair); rename it") from None


def _json(value: Any, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), **options)


def _finite(value: Any) -> Any:
    """Return the same data with null for infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _versions() -> list[str]:
    found = [f"Python {platform.python_version()}"]
    for name in _VERSIONS:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return found
