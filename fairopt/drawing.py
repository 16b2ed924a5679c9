"""The way from an object to its picture: ``plot`` methods look their drawing up in `fairopt.plots` when they are called.

So no room imports `fairopt.plots`, and matplotlib is imported for whoever wants a picture only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(kind: str, subject: object, **options: Any) -> Figure:
    """Return the picture of ``subject`` by ``fairopt.plots.plot_<kind>``."""
    figure: Figure = getattr(import_module("fairopt.plots"), f"plot_{kind}")(subject, **options)
    return figure
