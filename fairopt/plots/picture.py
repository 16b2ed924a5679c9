"""The figure of every picture: a matplotlib figure that embeds its fonts, whoever saves it."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from fairopt.plots.style import style

__all__ = ["Picture"]


class Picture(Figure):
    """A figure whose files have TrueType fonts (PDF, PS) and text as text (SVG); the session's settings stay as they are."""

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Write the figure as `matplotlib.figure.Figure.savefig` does, under `fairopt.plots.style.style`.

        >>> import io
        >>> page = io.StringIO()
        >>> figure = Picture()
        >>> _ = figure.text(0.5, 0.5, "vision")
        >>> figure.savefig(page, format="svg")
        >>> ">vision</text>" in page.getvalue()
        True
        """
        with style():
            super().savefig(*arguments, **options)
