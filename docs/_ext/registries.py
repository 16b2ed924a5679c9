"""Tables of notions, placements and engines, written from the registries, so that no page can contradict the code.

``{notion} drfh``
    title, source, weights, options, and what it takes of a tree of queues;
``{promises} drfh``
    which properties theory promises, by which citation, and the numbers that papers print;
``{notions}``
    a table of all notions, each with a link to its page;
``{promised}``
    a table of notions and properties;
``{of-trees}``
    a table of notions and what they take of a tree of queues;
``{placements}``, ``{baselines}``, ``{engines}``
    tables of those.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import fairopt as fo
from fairopt.models.notion import Condition
from fairopt.papers import PAPERS, read
from fairopt.papers.references import bibtex

ALL = {**fo.NOTIONS, **fo.CRITERIA}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("notion", NotionHead)
    app.add_directive("promises", Promises)
    app.add_directive("notions", NotionTable)
    app.add_directive("promised", PromisedTable)
    app.add_directive("of-trees", TreeTable)
    app.add_directive("placements", PlacementTable)
    app.add_directive("baselines", BaselineTable)
    app.add_directive("engines", EngineTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class NotionHead(SphinxDirective):
    """What one notion is."""

    required_arguments = 1

    def text(self, kind: type[fo.Notion]) -> str:
        """Return it as Markdown."""
        return head(kind)

    def run(self) -> list[nodes.Node]:
        """Look the notion up."""
        name = self.arguments[0]
        if name not in ALL:
            raise self.error(f'there is no notion "{name}"; there are {", ".join(ALL)}')
        return self.parse_text_to_nodes(self.text(ALL[name]))


class Promises(NotionHead):
    """What theory promises of one notion, and what papers print."""

    def text(self, kind: type[fo.Notion]) -> str:
        """Return it as Markdown."""
        return promises(kind)


class NotionTable(SphinxDirective):
    """All notions."""

    def run(self) -> list[nodes.Node]:
        """Write a table as Markdown."""
        rows = ["| notion | what it is | source |", "|---|---|---|"]
        rows += [f"| [`{name}`](/explanation/notions/{name}.md) | {kind.title} | {kind.source} |" for name, kind in ALL.items()]
        return self.parse_text_to_nodes("\n".join(rows))


class PromisedTable(SphinxDirective):
    """Which notion promises what."""

    def run(self) -> list[nodes.Node]:
        """Write a table as Markdown."""
        rows = [f"| notion | {' | '.join(entry.value.replace('-', ' ') for entry in fo.Property)} |", "|---|" + ":-:|" * len(fo.Property)]
        for name, kind in fo.NOTIONS.items():
            marks = ("✓" if entry in kind.satisfies else "" for entry in fo.Property)
            rows.append(f"| [`{name}`](/explanation/notions/{name}.md) | {' | '.join(marks)} |")
        return [nodes.container("", *self.parse_text_to_nodes("\n".join(rows)), classes=["matrix"])]


class TreeTable(SphinxDirective):
    """Which notion takes what of a tree of queues."""

    def run(self) -> list[nodes.Node]:
        """Write a table as Markdown."""
        words: dict[str, list[str]] = {"all of it": [], "its limits and guarantees": [], "its limits": [], "nothing": []}
        for name, kind in fo.NOTIONS.items():
            words[taken_of_trees(kind)].append(f"[`{name}`](/explanation/notions/{name}.md)")
        rows = ["| of a tree of queues | notions |", "|---|---|", *(f"| {word} | {', '.join(names)} |" for word, names in words.items())]
        return self.parse_text_to_nodes("\n".join(rows))


class PlacementTable(SphinxDirective):
    """All placements."""

    def run(self) -> list[nodes.Node]:
        """Write a table as Markdown."""
        rows = ["| placement | which server | source |", "|---|---|---|"]
        rows += [f"| `{name}` | {kind.title} | {kind.source} |" for name, kind in fo.PLACEMENTS.items() if isinstance(kind, type)]
        return self.parse_text_to_nodes("\n".join(rows))


class BaselineTable(SphinxDirective):
    """All baselines, with what is proved of each."""

    def run(self) -> list[nodes.Node]:
        """Write a table as Markdown."""
        rows = ["| baseline, for example | what it is, and its source | what is proved |", "|---|---|---|"]
        rows += [f"| `{kind.example}` | {kind.title}. {kind.source} | {kind.guarantee} |" for kind in fo.BASELINES.values()]
        return self.parse_text_to_nodes("\n".join(rows))


class EngineTable(SphinxDirective):
    """All engines, in the order in which they are tried."""

    def run(self) -> list[nodes.Node]:
        """Write a table as Markdown."""
        rows = ["| engine | what it is | solves programs with | package |", "|---|---|---|---|"]
        for name, kind in fo.SOLVERS.items():
            can = "; ".join(sorted(feature.value for feature in kind.features))
            rows.append(f"| `{name}` | {kind.title} | {can} | {f'`{kind.package}`' if kind.package else ''} |")
        return self.parse_text_to_nodes("\n".join(rows))


def head(kind: type[fo.Notion]) -> str:
    """Return title, source, weights, options, and what it takes of a tree of queues, as Markdown.

    >>> print(head(fo.NOTIONS["efficiency"]).splitlines()[2])
    `fo.solve(instance, "efficiency")` takes one weight per user and no options.
    """
    options = [f"`{field.name}`" for field in dataclasses.fields(kind) if not field.kw_only] if dataclasses.is_dataclass(kind) else []
    weights = "one weight per user, or one per user and resource," if kind.weights_per_resource else "one weight per user"
    takes = f"{weights} and {', '.join(options) if options else 'no options'}"
    call = "schedule" if kind.name in fo.CRITERIA else "solve"
    queues = "[tree of queues](/how-to/describe-queues.md)"
    trees = {
        "all of it": f"\n\nIt takes a {queues}, with the options `guarantees` and `queue_share`.",
        "its limits and guarantees": f"\n\nOf a {queues} it takes the limits and the guarantees.",
        "its limits": f"\n\nOf a {queues} it takes the limits.",
        "nothing": f"\n\nIt takes no {queues}.",
    }
    of_trees = "" if kind.name in fo.CRITERIA else trees[taken_of_trees(kind)]
    if getattr(kind, "counts_resources", False):
        of_trees += "\n\n[`resource_weights` and `only`](/how-to/say-what-counts.md) say which resources count in a share."
    return f'*{kind.title}.* Source: {kind.source.rstrip(".")}.\n\n`fo.{call}(instance, "{kind.name}")` takes {takes}.{of_trees}'


def taken_of_trees(kind: type[fo.Notion]) -> str:
    """Return what a notion takes of a tree of queues, found out by solving trees with a weight, a guarantee and a limit.

    >>> [taken_of_trees(fo.NOTIONS[name]) for name in ("drfh", "efficiency", "bbf")]
    ['all of it', 'its limits and guarantees', 'nothing']
    """
    if _solves(kind, fo.Queue("a", weight=2)):
        return "all of it"
    if _solves(kind, fo.Queue("a", guarantee={"r": 1})):
        return "its limits and guarantees"
    return "its limits" if _solves(kind, fo.Queue("a", limit={"r": 1})) else "nothing"


def _solves(kind: type[fo.Notion], queue: fo.Queue) -> bool:
    try:
        fo.solve(fo.Instance([[2]], [[1]], resources=["r"], queues=[queue], queue_of=["a"]), kind.name)
    except fo.Unsupported:
        return False
    return True


def promises(kind: type[fo.Notion]) -> str:
    """Return a table of the properties, and one of printed numbers where there are any, as Markdown."""
    if kind.name in fo.CRITERIA:
        return "It is a criterion of schedules: it has no optimum, and theory promises nothing."
    lines = ["| property | promised | by whom, and when |", "|---|---|---|"]
    for entry in fo.Property:
        given = entry in kind.satisfies
        lines.append(f"| {entry.value} | {'yes' if given else 'no'} | {kind.satisfies.get(entry, '')} |")
    if kind.conditions:
        where = "; ".join(condition.value for condition in Condition if condition in kind.conditions)
        lines += ["", f"Proved where {where}."]
    printed = [(read(paper), result) for paper in PAPERS for result in read(paper).results if result.notion == kind.name]
    if printed:
        lines += ["", "Papers print these numbers, and `fairopt reproduce` computes them again:", ""]
        lines += ["| source | published | here |", "|---|---|---|"]
        for paper, result in printed:
            published = "none" if result.published is None else _numbers(result.published)
            why = f" ({' '.join(result.differs.split())})" if result.differs else ""
            ours = "the same" if result.ours is None else f"{_numbers(result.ours)}{why}"
            lines.append(f"| {paper.source}, {result.citation} | {published} | {ours} |")
    lines += ["", "To cite it:", "", "```bibtex", bibtex(kind.references), "```"]
    return "\n".join(lines)


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.6g}" for value in np.ravel(values))
