"""What all pictures share: colours, labels, axes, and how files are written.

The colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; hatches and line styles help in print. Bars of a
light colour have a dark edge, and lines a darker one of its hue. A hatch says which user it is, or which kind of allocation, with other
patterns for each, and nothing else.
"""

from __future__ import annotations

import io
import logging
import os
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairopt import wording
from fairopt.errors import Unsupported
from fairopt.files import write_files
from fairopt.plots.colours import PLACEMENTS, STYLES, ink, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure

    from fairopt.allocation import Allocation
    from fairopt.instance import Instance

__all__ = [
    "COLOURS",
    "GREY",
    "HATCHES",
    "HATCH_OF_KIND",
    "LABEL",
    "LINES",
    "LOG_FROM",
    "PLACEMENTS",
    "STYLES",
    "WHITE_TO_DARK",
    "figure_format",
    "headline",
    "looks",
    "percent_axis",
    "percent_labels",
    "renderer_of",
    "room_beside",
    "save_figure",
    "short_label",
    "short_labels",
    "size_of",
    "style",
    "wrapped",
]

log = logging.getLogger(__name__)

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
LINES = tuple(map(ink, COLOURS))  # the same colours, dark enough for lines
HATCHES = ("", "||", "", "--", "", "++", "", "----")  # of users: straight lines, and no dots, which make large files
HATCH_OF_KIND = {  # of allocations: slanted lines and dots
    "exact": "",
    "exact, whole tasks": "\\\\\\",
    "whole tasks, best found": "...",
    "greedy": "///",
    "approximate": "xxxx",
    "given": "xx",
}
GREY = "#555555"
WHITE_TO_DARK = ("#FFFFFF", "#C6DBEF", "#6BAED6", "#2171B5", "#08306B")  # from nothing to much
LABEL = 22  # longest label, in characters
LOG_FROM = 50  # with a larger ratio of the largest share to the smallest, an axis is logarithmic
_FORMATS = ("svg", "png", "pdf")
_FILES: Any = {  # fonts that a journal accepts, words that a reader of an .svg can search, and the same ids each time
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "fairopt",
}
_DATE = {"svg": "Date", "pdf": "CreationDate"}
_ROUNDING = 1e-12  # a mark closer to 0 is 0
_FAR_BEYOND = 1.5  # beyond this part of the whole, marks at every quarter would overlap
_FAR_BELOW = 0.7  # below this part of the whole, marks at every quarter would be few
_CONTEXT = 3  # characters shown before the first one in which labels differ


@contextmanager
def style() -> Iterator[None]:
    """Embed fonts as TrueType and keep text as text in the files that are written inside; the settings are as before after it.

    >>> import matplotlib
    >>> before = matplotlib.rcParams["pdf.fonttype"]
    >>> with style():
    ...     print(matplotlib.rcParams["pdf.fonttype"])
    42
    >>> matplotlib.rcParams["pdf.fonttype"] == before
    True
    """
    import matplotlib

    with matplotlib.rc_context(_FILES):
        yield


def figure_format(path: str | os.PathLike[str]) -> str:
    """Return the picture format of a file name.

    Raises
    ------
    Unsupported

    >>> figure_format("shares.PNG")
    'png'
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _FORMATS:
        raise Unsupported(f'cannot tell the format of the picture "{path}"; end its name in .svg, .png or .pdf')
    return kind


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as .svg, .png or .pdf: completely or not at all, with the same bytes each time.

    Raises
    ------
    Unsupported
        For another suffix.
    InvalidInstance
        Where the file cannot be written.
    """
    kind = figure_format(path)
    page = io.BytesIO()
    with style(), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph .* missing")
        figure.savefig(page, format=kind, dpi=150, metadata={} if kind == "png" else {_DATE[kind]: None})
    lacking = [warning for warning in caught if "missing from font" in str(warning.message)]
    for warning in caught:
        if warning not in lacking:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if lacking:
        log.warning("%s: the font lacks some characters, drawn as boxes; set matplotlib's font.family to a font that has them", path)
    write_files({Path(path): page.getvalue()})


def short_label(label: str, length: int = LABEL) -> str:
    """Shorten a label, and escape what matplotlib would read as mathematics."""
    short = label if len(label) <= length else f"{label[: length - 1]}…"
    return "".join(c if c.isprintable() else "?" for c in short).replace("$", r"\$")


def wrapped(text: str, length: int) -> str:
    """Return a title in lines of at most so many characters, none of them cut; a longer word is broken.

    >>> wrapped("What each queue holds of gpu", 20)
    'What each queue\\nholds of gpu'
    """
    return "\n".join(short_label(line, len(line)) for line in textwrap.wrap(text, length)) or short_label(text)


def short_labels(labels: Sequence[str], length: int = LABEL) -> list[str]:
    """Shorten labels so that they differ: those that would be alike are cut in the middle, up to where they differ.

    >>> short_labels(["vision", "department-of-language-001", "department-of-language-002"])
    ['vision', 'departm…f-language-001', 'departm…f-language-002']
    """
    starts = dict.fromkeys(labels, 0)
    while True:
        shown = {label: _cut(label, length, start) for label, start in starts.items()}
        alike: defaultdict[str, list[str]] = defaultdict(list)
        for label, short in shown.items():
            alike[short].append(label)
        later = {label: _alike(min(twins), max(twins)) for twins in alike.values() if len(twins) > 1 for label in twins}
        if all(start <= starts[label] for label, start in later.items()):
            return [short_label(shown[label], length) for label in labels]
        starts |= {label: max(start, starts[label]) for label, start in later.items()}


def _alike(first: str, second: str) -> int:
    """Return how many characters at the start are the same."""
    return next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))


def _cut(label: str, length: int, start: int) -> str:
    """Return a label of at most so many characters, in which the character at ``start`` is shown."""
    if len(label) <= length or not start:
        return label if len(label) <= length else f"{label[: length - 1]}…"
    head = length // 3
    room = length - head - 1
    rest = label[min(max(start - _CONTEXT, head), len(label) - room) :]
    return f"{label[:head]}…{rest if len(rest) <= room else rest[: room - 1] + '…'}"


def headline(allocation: Allocation) -> str:
    """Return the title of a picture of an allocation and its instance."""
    how = f" ({allocation.solver}, {qualifier})" if (qualifier := allocation.certificate.qualifier) else ""
    return f"{allocation.notion}{how}: {size_of(allocation.instance, allocation.sharing)}"


def size_of(instance: Instance, sharing: str = "rdm") -> str:
    """Return how many users and servers there are, and how servers are shared if their resources are not divided.

    >>> import fairopt as fo
    >>> size_of(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "tdm")
    '2 users on 1 server, by time division'
    """
    size = f"{wording.plural(instance.n_users, 'user')} on {wording.plural(instance.counts.sum(), 'server')}"
    return f"{size}, by time division" if sharing == "tdm" else size


def renderer_of(figure: Figure) -> RendererBase:
    """Return what measures the texts of a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer: RendererBase = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    return renderer


def room_beside(axes: Axes) -> float:
    """Return how far beyond the longest bar an axis goes, so that there is room for its note.

    A layout that adjusts itself leaves the room beside the axes.
    """
    figure = axes.get_figure(root=True)
    return 1.02 if figure is not None and figure.get_layout_engine() is not None else 1.4


def percent_axis(axis: Axis) -> None:
    """Mark an axis of parts at every quarter, or at a few round numbers if it goes far beyond the whole or ends far below it."""
    from matplotlib.ticker import MaxNLocator

    if not _FAR_BELOW <= axis.get_view_interval()[1] <= _FAR_BEYOND:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        percent_labels(axis)
        return
    axis.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])


def percent_labels(axis: Axis) -> None:
    """Write the marks of an axis of parts in percent, without needless digits: "2.5 %", "10 %", "0"."""
    axis.set_major_formatter(lambda part, _: "0" if abs(part) < _ROUNDING else f"{100 * part:,.6g} %".replace("-", "\N{MINUS SIGN}"))
