"""The options that say how shares are counted: the rules of a tree of queues, and which resources count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import typer

import fairopt as fo
from fairopt.registry import words as parts

__all__ = ["Counted", "Shares"]


@dataclass(frozen=True)
class Counted:
    """Which resources count in a share, and how often."""

    panel: ClassVar[str] = "How shares are counted"

    resource_weights: Annotated[
        str | None,
        typer.Option(
            "--resource-weights",
            metavar="NAME=N,...",
            help="How often resources count in the shares of drf, drfh and asset, and in dominant shares of queues, as in gpu=4,cpu=0. A "
            "resource that is not named counts once.",
        ),
    ] = None
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="NAME,...",
            help="Count only these resources in the shares of drf, drfh and asset, and in dominant shares of queues. Users who demand none "
            "of them come after all others.",
        ),
    ] = None

    @cached_property
    def counted(self) -> dict[str, Any]:
        """What counts, if that was given, as options of a notion.

        >>> Shares(resource_weights="gpu=4,cpu=0").counted, Shares(only="gpu,memory").counted
        ({'resource_weights': {'gpu': 4, 'cpu': 0}}, {'only': 'gpu+memory'})
        """
        from fairopt.models import only_text, weights_mapping

        given = {"resource_weights": weights_mapping(self.resource_weights), "only": only_text(self.only)}
        return {word: value for word, value in given.items() if value is not None}


@dataclass(frozen=True)
class Shares(Counted):
    """What says how a share is counted, the same for all notions of a command."""

    guarantees: Annotated[
        Literal["surplus", "clamp"] | None,
        typer.Option(
            "--guarantees",
            help="How capacity beyond guarantees is divided. surplus (default): it is added to the guarantees, by weight. clamp: "
            "guarantees count toward the share by weight, so a queue whose guarantee exceeds its share waits for the others.",
        ),
    ] = None
    queue_share: Annotated[
        Literal["dominant", "sum"] | None,
        typer.Option(
            "--queue-share",
            help="Share of a queue. dominant (default for drf and drfh): the dominant share of everything its users hold. sum (default for "
            "the others): the sum of its users' shares.",
        ),
    ] = None

    @property
    def rules(self) -> dict[str, str]:
        """The rules of a tree that were given, as options of a notion."""
        given = {"guarantees": self.guarantees, "queue_share": self.queue_share}
        return {word: value for word, value in given.items() if value is not None}

    def refuse(self, why_no_rules: str, why_none_counts: str) -> None:
        """Refuse these options where no notion reads them."""
        for options, why in ((self.rules, why_no_rules), (self.counted, why_none_counts)):
            for word in options:
                raise typer.BadParameter(why, param_hint=_option(word))

    def of(self, notion: str) -> str:
        """Return a notion with these options."""
        return self.of_all([notion])[0]

    def of_all(self, notions: Sequence[str]) -> list[str]:
        """Return notions with these options, those that take them; all of them where none does, as their refusal says why.

        >>> Shares(guarantees="clamp").of_all(["drfh", "tsf:queue_share=dominant", "bbf"])
        ['drfh:guarantees=clamp', 'tsf:queue_share=dominant:guarantees=clamp', 'bbf']
        >>> Shares(resource_weights="gpu=4,cpu=0").of_all(["drfh", "tsf"])
        ['drfh:resource_weights=gpu=4+cpu=0', 'tsf']
        """
        from fairopt.models import weights_text

        if not notions:
            self.refuse("it is a rule of a notion; give --notions", "it is an option of notions; give --notions")
        rules = [f"{word}={value}" for word, value in self.rules.items()]
        in_trees = _with(notions, rules, [_has_rules(parts(notion)[0]) for notion in notions])
        counted = {word: weights_text(value) if isinstance(value, Mapping) else value for word, value in self.counted.items()}
        if any(":" in text for text in counted.values()):
            raise typer.BadParameter(
                "a colon separates options of a notion, so a name with a colon can be given here to solve --notion ID alone, or in Python",
                param_hint=_option(min(counted)),
            )
        return _with(in_trees, [f"{word}={text}" for word, text in counted.items()], [_counts_resources(notion) for notion in in_trees])


def _option(word: str) -> str:
    return f"--{word.replace('_', '-')}"


def _with(notions: Sequence[str], options: Sequence[str], takes: Sequence[bool]) -> list[str]:
    return [":".join([notion, *options]) if own or not any(takes) else notion for notion, own in zip(notions, takes, strict=True)]


def _has_rules(notion: str) -> bool:
    """Say whether a notion fills a tree: it is a leximin of shares."""
    import numpy as np

    from fairopt.program import Leximin

    kind = fo.NOTIONS.get(notion)
    return kind is not None and issubclass(kind, fo.ShareNotion) and isinstance(kind().goal(np.ones(1)), Leximin)


def _counts_resources(notion: str) -> bool:
    """Say whether resources count in the shares of a notion, or in those of queues under it."""
    word, *options = parts(notion)
    kind = fo.NOTIONS.get(word)
    if kind is None or not issubclass(kind, fo.ShareNotion) or not _has_rules(word):
        return False
    return kind.counts_resources or "queue_share=dominant" in options
