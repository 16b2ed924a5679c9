"""The sheet that a picture is drawn on: a new figure with its panels, or axes of the caller's."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.plots.style import GREY, renderer_of, short_label, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Sheet", "is_narrow", "sheet", "untitled"]

_NARROW = 6.0  # inches
_COLUMN = 4.0  # inches: about the width of a column of a paper
_UNTITLED = ContextVar("untitled", default=False)


@contextmanager
def untitled(wanted: bool = True) -> Iterator[None]:
    """Draw the pictures inside a ``with`` statement without titles, as for papers, where a caption says what a picture shows.

    >>> import fairopt as fo
    >>> with untitled():
    ...     fo.solve(fo.Instance([[9]], [[1]]), "drfh").plot().get_suptitle()
    ''
    """
    before = _UNTITLED.set(wanted)
    try:
        yield
    finally:
        _UNTITLED.reset(before)


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Where a picture is drawn: its axes, and whether they are in a new figure or are the caller's."""

    figure: Figure
    axes: tuple[Axes, ...]
    own: bool

    def headline(self, words: str, title: str | None) -> None:
        """Write the title above everything: ``words``, or the caller's. The caller's axes take the caller's title alone."""
        title = "" if _UNTITLED.get() else title
        text = short_label(words, len(words)) if title is None else title
        if self.own:
            if text:
                size = {"fontsize": 9} if self.figure.get_figwidth() < _COLUMN else {}
                drawn = self.figure.suptitle(text, fontweight="bold", x=0.01, horizontalalignment="left", **size)
                room = 0.98 * self.figure.bbox.width / drawn.get_window_extent(renderer_of(self.figure)).width
                if room < 1 and title is None:
                    drawn.set_text(wrapped(words, max(int(room * len(words)), 20)))
        elif title is not None:
            self.axes[0].set_title(text, loc="left")

    def legend(self, *entries: Any, loc: Any, at: int = -1, **options: Any) -> None:
        """Write a legend outside the axes of a new figure, or inside one of the caller's axes, by default the last.

        It has ``ncols`` columns, or fewer if they do not fit into the figure.
        """
        if self.own:
            _fitted(self.figure, 1.0, *entries, loc=loc, **options)
        else:
            self.axes[at].legend(*entries, frameon=False, fontsize=options.get("fontsize", 9), title=options.get("title"))

    def legend_below(self, axes: Axes, ncols: int) -> None:
        """Write a legend below one of several axes side by side, clear of its lines; of fewer columns if they would push the axes apart."""
        part = 1.0 / len(self.axes) if self.own else 1.0
        _fitted(axes, part, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=ncols, fontsize=9)

    def legend_above(self, axes: Axes, ncols: int, *entries: Any) -> None:
        """Write a legend above the title of axes that are as wide as the figure; ``entries``: handles and labels, if not those drawn."""
        from matplotlib.transforms import ScaledTranslation

        above = axes.transAxes + ScaledTranslation(0.0, 20 / 72, self.figure.dpi_scale_trans)
        where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "bbox_transform": above, "borderaxespad": 0.0}
        _fitted(axes, 1.0, *entries, ncols=ncols, fontsize=9, **where)

    def caption(self, text: str) -> None:
        """Write a caption below a new figure, wrapped to its width."""
        if text and self.own:
            lines = [short_label(line, len(line)) for line in textwrap.wrap(text, int(14 * self.figure.get_figwidth()))]
            self.figure.supxlabel("\n".join(lines), x=0.01, horizontalalignment="left", fontsize=9, color=GREY)


def is_narrow(figsize: tuple[float, float] | None) -> bool:
    """Say whether a new figure is too narrow for panels side by side, as a column of a paper is."""
    return figsize is not None and figsize[0] < _NARROW


def _fitted(place: Figure | Axes, part: float, *entries: Any, ncols: int = 1, **options: Any) -> None:
    """Write a legend of ``ncols`` columns, or of as many as fit into this part of the figure."""
    figure = place.get_figure(root=True)
    assert figure is not None
    for columns in range(ncols, 0, -1):
        legend = place.legend(*entries, frameon=False, ncols=columns, **options)
        if columns == 1 or legend.get_window_extent(renderer_of(figure)).width <= part * figure.bbox.width:
            return
        legend.remove()


def sheet(
    ax: Axes | Sequence[Axes] | None,
    figsize: tuple[float, float] | None,
    default: tuple[float, float],
    panels: Sequence[str] = ("picture",),
    *,
    down: bool = False,
    mosaic: Sequence[Sequence[str]] | None = None,
    **options: Any,
) -> Sheet:
    """Return a new figure with a panel for each name, side by side or one below the other, or the caller's axes.

    Parameters
    ----------
    ax : Axes, or a sequence of as many as there are panels, or None
    figsize : (width, height) in inches, or None
        Of a new figure.
    default : (width, height)
        The size of a new figure if the caller gives none.
    panels : sequence of str
    down : bool
        The panels are one below the other.
    mosaic : rows of names of panels, optional
        Another arrangement of a new figure.
    options
        Of ``Figure.subplots``, or of ``Figure.subplot_mosaic``.

    Raises
    ------
    Unsupported
        The number of axes is not the number of panels, or ``figsize`` is given with ``ax``.

    >>> sheet(None, None, (4, 3), ("left", "right")).figure.get_size_inches().tolist()
    [4.0, 3.0]
    """
    if ax is None:
        from fairopt.plots.picture import Picture

        figure: Figure = Picture(figsize=figsize or default, layout="constrained")
        if mosaic is not None:
            named = figure.subplot_mosaic([list(row) for row in mosaic], **options)
            return Sheet(figure, tuple(named[name] for name in panels), own=True)
        shape = (len(panels), 1) if down else (1, len(panels))
        return Sheet(figure, tuple(np.ravel(figure.subplots(*shape, **options))), own=True)
    if figsize is not None:
        raise Unsupported("figsize= is the size of a new figure, and ax= is in a figure that has its size; give one of the two")
    given = tuple(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != len(panels):
        names = ", ".join(panels[:6]) + (", ..." if len(panels) > 6 else "")
        shape_of = f"figure.subplots({len(panels)}, 1)" if down else f"figure.subplots(1, {len(panels)})"
        raise Unsupported(
            f"this picture is one panel, and ax= has {len(given)}; give one"
            if len(panels) == 1
            else f"this picture has {len(panels)} panels ({names}), and ax= has {len(given)}; leave ax= out, or give {shape_of}"
        )
    found = given[0].get_figure(root=True)
    return Sheet(found, given, own=False)
