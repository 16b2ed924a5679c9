"""The measures of a study as a paper names them: chosen by name, with titles, and with notes that say what they are and what is missing.

>>> import pandas as pd
>>> chosen_measures(pd.DataFrame(columns=["tasks", "use of gpu", "use of cpu", "price of fairness"]), ["use", "price_of_fairness"])
['use of gpu', 'use of cpu', 'price of fairness']
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from fairopt.errors import Unsupported
from fairopt.studies.means import Interval, Key, Means
from fairopt.studies.rows import MEASURES
from fairopt.studies.titles import entry_title, instance_title, long_title
from fairopt.wording import brief, did_you_mean, joined, plural, printable

__all__ = ["DEFAULT_COLUMNS", "MISSING", "WITH_REFERENCE", "Titles", "chosen_measures", "is_part", "notes_of"]

DEFAULT_COLUMNS = ("tasks", "smallest_share", "efficiency", "jain", "regret level")
"""The columns of a table for a paper, unless others are asked for; those that no entry has are left out."""
WITH_REFERENCE = DEFAULT_COLUMNS[:3]
"""The same of a table with a reference, where each column has its differences beside it."""
MISSING = "n/a"
"""In the place of a mean that there is not."""

_USE = "use of "
_REASONS = 5  # failures that are told with their reason
_ROUNDED = 1e-12  # relative: a smaller spread is a rounding error
_TITLES = {
    "smallest_share": "min share",
    "jain": "Jain's index",
    "regret level": "regret of the lowest share",
    "regret worst": "worst regret",
    "seconds": "time (s)",
}
_MEANINGS = {
    "efficiency": "weighted tasks, in % of the most possible with divisible tasks",
    "price of fairness": "100 % less the efficiency, so of weighted tasks",
    "smallest_share": "smallest weighted dominant share",
    "jain": "of the weighted dominant shares; 1: all are equal",
    "envy": "the largest, in tasks",
    "regret level": "shortfall of the lowest share from the exact allocation, in % of it",
    "regret worst": "largest shortfall of the sorted shares from the exact allocation; for other notions, of the goal or of the condition",
    "seconds": "of computing",
}
_ALIASES = {
    "min share": "smallest_share",
    "smallest share": "smallest_share",
    "jain's index": "jain",
    "time s": "seconds",
    "time (s)": "seconds",
}
_SPREADS: Mapping[Interval, str] = {
    "se": "standard error",
    "sd": "standard deviation",
    "ci95": "95 % confidence interval",
}


def chosen_measures(rows: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the columns of rows that are meant.

    Raises
    ------
    Unsupported
    """
    known = [str(name) for name in rows.columns if name in MEASURES or str(name).startswith(_USE)]
    by_word = {_plain(name.removeprefix(_USE)): name for name in known}
    by_word |= {_plain(name): name for name in known} | {_plain(word): name for word, name in _ALIASES.items() if name in known}
    words = ["min-share" if name == "smallest_share" else name.replace(" ", "-") for name in known]  # one word each, for a command line
    chosen: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        word = _plain(str(name))
        if word in by_word:
            chosen.append(by_word[word])
        elif word == "use":
            chosen += [each for each in known if each.startswith(_USE)]
        elif names is not DEFAULT_COLUMNS and names is not WITH_REFERENCE:
            raise Unsupported(f'no measure "{brief(str(name))}"{did_you_mean(str(name), words)}; choose from {", ".join(words)}')
    if not chosen:
        raise Unsupported(f"there is no column; choose from {', '.join(words)}")
    return list(dict.fromkeys(chosen))


def _plain(name: str) -> str:
    """Return a name as people may write it: without capitals, hyphens and underscores."""
    return re.sub("[-_ :]+", " ", name).strip().lower()


def is_part(measure: str) -> bool:
    """Say whether a measure is a part of a whole, and is written in percent."""
    return measure in ("efficiency", "price of fairness") or measure.startswith((_USE, "regret "))


class Titles:
    """What entries, instances and measures are called."""

    def __init__(self, means: Means, measures: Sequence[str], given: Mapping[str, str]) -> None:
        known = [*means.entries, *means.instances, *measures]
        for name in given:
            if name not in known:
                raise Unsupported(
                    f'a title is of "{brief(name)}"{did_you_mean(name, known)}, which is not in the table; choose from {", ".join(known)}'
                )
        self._given = dict(given)
        self._of = {name: instance_title(name) for name in means.instances} | {name: entry_title(name) for name in means.entries}

    def of(self, name: str) -> str:
        """Return the title of an entry or an instance."""
        return self._given.get(name, self._of[name])

    def full(self, entry: str) -> str:
        """Return the long title of an entry whose short one is shown, as "DRFH: ..."; "" if there is none."""
        word = entry_title(entry.split(":")[0].split(",")[0])
        return f"{word}: {title[0].lower()}{title[1:]}" if entry not in self._given and (title := long_title(entry)) else ""

    def measure(self, name: str) -> str:
        """Return what a measure is called in a sentence."""
        return self._given.get(name) or _TITLES.get(name) or (f"{name.removeprefix(_USE)} in use" if name.startswith(_USE) else name)

    def heading(self, name: str) -> str:
        """Return what stands above its column."""
        return self._given.get(name) or self.measure(name) + (" (%)" if is_part(name) else "")


def notes_of(means: Means, asked: Sequence[str], shown: Sequence[str], titles: Titles) -> list[str]:
    """Return the sentences below a table: what the numbers are, what is missing, and what the words mean."""
    return [*_statistics(means, shown, titles), *_missing(means, asked, shown, titles), *_words(means, shown, titles)]


def _statistics(means: Means, shown: Sequence[str], titles: Titles) -> Iterator[str]:
    cells = [means.mean(key, name) for key in means.keys for name in shown]
    seeds = sorted({means.seeds(instance) for instance in means.instances})
    number = plural(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    if seeds[-1] == 1:
        yield "Values of one seed, so there is no interval."
    else:
        alike = len({cell.seeds for cell in cells if cell.seeds}) <= 1
        degrees = f"{seeds[0] - 1}" if alike and len(seeds) == 1 else "n - 1"
        of_student = f" (Student's t with {degrees} degrees of freedom)" if means.interval == "ci95" else ""
        yield f"Mean ± {_SPREADS[means.interval]} over {number}{of_student}."
        if any(cell.seeds > 1 and not cell.spread > _ROUNDED * abs(cell.value) for cell in cells):
            yield "Without ±: all seeds give the same value."
    if means.reference is not None:
        points = ", in percentage points where the measure is in percent" if any(map(is_part, shown)) else ""
        pairs = f"; the seeds are paired, and ± is the {_SPREADS[means.interval]} of their differences" if seeds[-1] > 1 else ""
        yield f"Δ: mean difference to {titles.of(means.reference)} on the same seed{points}{pairs}."
        if means.interval == "ci95" and seeds[-1] > 1:
            yield "A Δ whose interval does not contain 0 is significant at 5 % (paired t-test, not corrected for several comparisons)."


def _missing(means: Means, asked: Sequence[str], shown: Sequence[str], titles: Titles) -> Iterator[str]:
    """Yield what has no number: failures, seeds without a row, and measures that some seeds or all do not have."""

    def place(key: Key) -> str:
        return titles.of(key[1]) + (f" ({titles.of(key[0])})" if len(means.instances) > 1 else "")

    told = 0
    for key in means.keys:
        lost, absent = means.failed(key), means.absent(key)
        if len(lost):
            reason = str(lost["message"].iloc[0]) if "message" in lost and told < _REASONS else ""
            told += 1
            why = f" ({brief(printable(reason))})" if reason else ""
            yield f"{place(key)}: {len(lost)} of {plural(means.seeds(key[0]), 'seed')} without an allocation{why}, left out of its means."
        if absent:
            yield f"{place(key)}: no row of {absent} of {plural(means.seeds(key[0]), 'seed')}, left out of its means."
        for name in shown:
            mean = means.mean(key, name)
            if 0 < mean.seeds < means.solved(key):
                yield f"{place(key)}: {titles.measure(name)} of {mean.seeds} of {plural(means.seeds(key[0]), 'seed')}."
            pairs = means.difference(key, name).seeds
            if means.reference not in (None, key[1]) and 0 < pairs < mean.seeds:
                yield f"{place(key)}: Δ {titles.measure(name)} of {plural(pairs, 'pair')} of seeds."
    if any(not means.mean(key, name).seeds for key in means.keys for name in shown):
        yield f"{MISSING}: the measure does not apply, or no seed has it."
    if means.reference is not None and (without := [titles.measure(name) for name in shown if not means.has_difference(name)]):
        yield f"No Δ of {joined(without)}: {titles.of(means.reference)} has none."
    if gone := [titles.measure(name) for name in asked if name not in shown]:
        yield f"No seed has a value of {joined(gone)}."


def _words(means: Means, shown: Sequence[str], titles: Titles) -> Iterator[str]:
    for name in shown:
        if name in _MEANINGS:
            yield f"{titles.measure(name)}: {_MEANINGS[name]}."
    yield from (f"{text}." for text in dict.fromkeys(map(titles.full, means.entries)) if text)
