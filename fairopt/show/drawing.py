"""The way from an object to how it looks: its picture, and what a notebook shows of it.

``plot`` methods look their drawing up in `fairopt.plots` when they are called, and ``_repr_html_`` its page in
`fairopt.reporting.notebook`. So no other room imports these, and matplotlib and pandas are imported only when something is drawn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ShowsItself", "draw"]


def draw(kind: str, subject: object, **options: Any) -> Figure:
    """Return the picture of ``subject`` by ``fairopt.plots.plot_<kind>``."""
    figure: Figure = getattr(import_module("fairopt.plots"), f"plot_{kind}")(subject, **options)
    return figure


class ShowsItself:
    """Something that notebooks show as a page: tables, sentences and mathematics (`fairopt.reporting.notebook`)."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        page: str = import_module("fairopt.reporting.notebook").html_of(self)
        return page
