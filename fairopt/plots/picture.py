"""The figure of every picture: a matplotlib figure that embeds its fonts, whoever saves it, and that notebooks display.

>>> figure = Picture(figsize=(2, 1))
>>> figure._repr_png_()[1:4], figure._repr_svg_().strip()[-6:]
(b'PNG', '</svg>')
"""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure

from fairopt.plots.style import style

__all__ = ["Picture"]

_LONGEST = 500_000  # characters of SVG that a notebook keeps; a longer picture is kept as PNG alone


class Picture(Figure):
    """A figure whose files have TrueType fonts (PDF, PS) and text as text (SVG); the session's settings stay as they are.

    A notebook displays it as PNG and SVG, with ``%matplotlib inline`` and without: once, because pyplot does not know it.
    """

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

    def _repr_png_(self) -> bytes:
        page = io.BytesIO()
        self.savefig(page, format="png", bbox_inches="tight")
        return page.getvalue()

    def _repr_svg_(self) -> str | None:
        """Return the picture with letters as curves, because a notebook may have other fonts; None if that is too long."""
        import matplotlib

        page = io.StringIO()
        with style(), matplotlib.rc_context({"svg.fonttype": "path"}):
            super().savefig(page, format="svg", bbox_inches="tight", metadata={"Date": None})
        text = page.getvalue()
        return text if len(text) <= _LONGEST else None
