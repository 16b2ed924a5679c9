"""What can be seen on white paper: 3 to 1 for what is drawn, 4.5 to 1 for text (WCAG 2.2, 1.4.11 and 1.4.3); and what hatches mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from plots.test_style import ONE_PANEL, PANELS

import fairopt as fo
from fairopt import plots
from fairopt.plots.colours import NOTIONS, PLACEMENTS, SCHEDULERS, STYLES, contrast, edge, ink, looks, notion_colour
from fairopt.plots.style import COLOURS, HATCH_OF_KIND, HATCHES, LINES, wrapped

BEHIND = {"#EEEEEE", "#DDDDDD", "#F2F2F2", "#E5E5E5", "#E4E4E4"}  # the ground of bars, lines of a grid, the other users of a small panel


def many(users: int) -> fo.Allocation:
    """Return an allocation of users in queues on several kinds of servers."""
    return fo.solve(fo.generate("gpus", users=users, servers=4, queues=4, guarantees=0.5, limits=0.5, seed=1), "drfh")


PICTURES: dict[str, Callable[..., Figure]] = {
    **ONE_PANEL,
    **PANELS,
    "eight users": lambda: many(8).plot(),
    "many users": lambda: many(40).plot(),
    "queues with guarantees": lambda: plots.plot_queues(many(8)),
    "queues compared": lambda: fo.compare(many(8).instance, schedules=["drfh:best-fit", "drfh:first-fit"]).plot("queue"),
    "envy of twelve": lambda: plots.plot_envy(np.arange(144.0).reshape(12, 12), list("abcdefghijkl")),
}


def on_white(colour: object, alpha: float | None) -> str:
    """Return a colour as it is seen on white."""
    red, green, blue, own = to_rgba(colour, alpha)  # type: ignore[arg-type]
    return to_hex((own * red + 1 - own, own * green + 1 - own, own * blue + 1 - own)).upper()


def faint(figure: Figure) -> Iterator[str]:
    """Yield what is drawn in a figure and cannot be seen well."""
    for axes in figure.axes:
        for bar in axes.patches:
            fill = on_white(bar.get_facecolor(), None)
            outline = on_white(bar.get_edgecolor(), None) if bar.get_linewidth() else fill
            if isinstance(bar, Rectangle) and bar.get_width() and fill not in BEHIND and max(map(contrast, (fill, outline))) < 3:
                yield f"bar {fill} {outline}"
        for line in axes.lines:
            colours = [line.get_color(), line.get_markeredgecolor()] if line.get_marker() not in ("None", "", None) else [line.get_color()]
            seen = [on_white(colour, line.get_alpha()) for colour in colours]
            if isinstance(line, Line2D) and not set(seen) & BEHIND and max(map(contrast, seen)) < 3:
                yield f"line {seen}"
    for text in figure.findobj(Text):
        inside = text.axes is not None and bool(text.axes.images)
        if isinstance(text, Text) and text.get_text() and text.get_visible() and not inside:
            colour = on_white(text.get_color(), text.get_alpha())
            if contrast(colour) < 4.5:
                yield f"text {colour} {text.get_text()}"


@pytest.mark.parametrize("picture", PICTURES)
def test_all_that_is_drawn_can_be_seen(picture: str) -> None:
    """Bars by their colour or their edge, lines and marks by their colour, text by its own."""
    figure = PICTURES[picture]()
    figure.draw_without_rendering()
    assert list(faint(figure)) == []


def test_what_is_faint_is_found() -> None:
    """The check itself: a yellow bar, a yellow line and grey text; not a yellow bar with an edge."""
    figure = Figure()
    axes = figure.subplots()
    axes.bar([0], [1], color="#F0E442")
    axes.bar([1], [1], color="#F0E442", edgecolor=edge("#F0E442"))
    axes.plot([0, 1], color="#F0E442")
    figure.text(0.5, 0.5, "grey", color="#AAAAAA")
    assert [each.split()[0] for each in faint(figure)] == ["bar", "line", "text"]


def test_contrast_is_that_of_the_standard() -> None:
    """Black on white is 21 to 1; #767676 is the lightest grey for text, at 4.54."""
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#FFFFFF", "#767676") == pytest.approx(4.54, abs=0.005)
    assert contrast("#123456", "#123456") == 1


def test_every_colour_is_one_for_lines() -> None:
    """Of notions, placements and schedulers, of one's own and of their variants; users have darker ones of the same hue for lines."""
    named = [*NOTIONS.values(), *PLACEMENTS.values(), *SCHEDULERS.values(), *(notion_colour(f"mine-{k}") for k in range(40))]
    variants = [look.colour for name in NOTIONS for look in looks(f"{name}:option={k}" for k in range(5)).values()]
    assert min(map(contrast, [*named, *variants, *LINES])) >= 3
    assert [ink(colour) for colour in COLOURS] == list(LINES)
    assert all(contrast(edge(colour) if edge(colour) != "white" else "#FFFFFF", colour) >= 3 for colour in COLOURS)
    assert len(set(STYLES)) == len(STYLES)


def test_a_hatch_has_one_meaning() -> None:
    """No pattern is both of a user and of a kind of allocation, and no two kinds share theirs."""
    kinds = [hatch for hatch in HATCH_OF_KIND.values() if hatch]
    assert len(set(kinds)) == len(kinds)
    assert not set("".join(kinds)) & set("".join(HATCHES))
    users = [hatch for hatch in HATCHES if hatch]
    assert len(set(users)) == len(users)


def test_numbers_in_cells_have_the_better_of_two_colours() -> None:
    """Black or white, whichever has more contrast to the cell."""
    figure = plots.plot_envy(np.arange(144.0).reshape(12, 12), list("abcdefghijkl"))
    (image,) = figure.axes[0].images
    values = image.get_array()
    assert values is not None
    for text in figure.axes[0].texts:
        m, n = (round(part) for part in text.get_position())
        cell = to_hex(image.to_rgba(values[n, m]))  # type: ignore[arg-type]
        own = contrast(to_hex(text.get_color()), cell)
        assert own >= 0.99 * max(contrast("#FFFFFF", cell), contrast("#000000", cell))


def test_titles_are_broken_and_not_cut() -> None:
    """Of a queue of a resource with a long name, of a notion with many options, and above a small figure."""
    long = "accelerators of the newest kind, with the most memory that there is to buy in this year"
    lab = fo.Instance([[9]], [[1]], resources=[long], queues=[fo.Queue("q", guarantee={long: 2})], queue_of=["q"])
    axes = fo.solve(lab, "drfh").plot(by="queue").axes[0]
    for text in (axes.get_title(loc="left"), axes.get_xlabel()):
        assert long in text.replace("\n", " ")
        assert max(map(len, text.split("\n"))) <= 70
    figure = many(8).plot(figsize=(1.5, 3))
    assert figure.get_suptitle().replace("\n", " ") == many(8).plot(figsize=(20, 3)).get_suptitle()
    assert "\n" in figure.get_suptitle()
    assert wrapped("", 10) == ""
    assert wrapped("x" * 25, 10) == "\n".join(["x" * 10, "x" * 10, "x" * 5])


def test_the_legend_of_queues_is_not_among_the_data() -> None:
    """Below the axes of a new figure; inside axes of the caller, which the figure cannot move."""
    figure = plots.plot_queues(many(8))
    assert figure.axes[0].get_legend() is None
    (legend,) = figure.legends
    figure.draw_without_rendering()
    assert legend.get_window_extent().y1 <= figure.axes[0].get_window_extent().y0
    axes = Figure().subplots()
    plots.plot_queues(many(8), ax=axes)
    assert axes.get_legend() is not None


def test_levels_stand_apart() -> None:
    """No note of a level is crossed by the line of the next one."""
    instance = fo.Instance([[100.0]], [[1.0]] * 40, tasks=[1 + n / 20 for n in range(40)])
    axes = plots.plot_shares(fo.solve(instance, "drfh")).axes[0]
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    heights = np.sort(axes.transData.transform([(0.0, float(np.asarray(line.get_ydata())[0])) for line in axes.lines])[:, 1])
    assert len(heights) > 1
    assert min(np.diff(heights)) > 14 * matplotlib.rcParams["figure.dpi"] / 100
