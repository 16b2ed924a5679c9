"""How fairopt writes numbers, names and lists, in messages, tables, pictures and reports alike."""

from __future__ import annotations

import difflib
import math
import re
import reprlib
import shlex
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Real

__all__ = [
    "ROUNDED",
    "SMALLER_RATIOS",
    "brief",
    "contrast",
    "did_you_mean",
    "duration",
    "enclosed",
    "exactly",
    "figure",
    "figures",
    "found",
    "fractions",
    "in_latex",
    "in_shell",
    "installing",
    "joined",
    "message_line",
    "named",
    "percent",
    "plural",
    "printable",
    "quotient",
    "residual",
    "was_and_is",
    "written",
]

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "{''}"},
    **{"`": r"\textasciigrave{}", "[": "{[}", "*": "{*}", "-": "-{}", "'": "'{}"},
}
# After a row, [ and * would belong to its end; two hyphens would be one dash, and two apostrophes a quotation mark.
_IN_LATEX = re.compile(r"""[&%$#_{}\\~^<>|"`]|^[\[*]|-(?=-)|'(?=')""")
SMALLER_RATIOS = "rescaled data (ratios above 1e12 between demands or weights cannot be resolved in double precision)"
ROUNDED = "~"  # before a decimal in the place of a fraction
_SIZES = 100  # numbers that differ by a larger factor are not written with the same decimals
_LONGEST = 200  # characters of a word that is compared, or shown
_LONG = 10**15  # a whole number in fractions that is written with all its digits is smaller
_BITS_WRITTEN = 10_000  # of numerator and denominator; Python writes no fraction with many more
_SHORT = 15  # characters of a fraction that is written as it is
_EFFORT = 100_000_000  # cubes of characters that are compared: 100,000 words of 10, a dozen of 200


def brief(text: str, most: int = _LONGEST) -> str:
    """Return text that is never too long for a message.

    >>> brief("short"), brief("x" * 300, most=10)
    ('short', 'xxxxxxx...')
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return `` (did you mean "...")`` for the closest of ``words``, or the empty string.

    To compare two words can take as long as the cube of their length, so only the first of many or long words are compared.

    >>> did_you_mean("wieght", ["weight", "tasks"])
    ' (did you mean "weight"?)'
    >>> did_you_mean("drhf", ["drf", "drfh"]), did_you_mean("zzz", ["weight", "tasks"])
    (' (did you mean "drfh"?)', '')
    """
    if len(word) > _LONGEST:  # it is no slip of the pen
        return ""
    room, compared = _EFFORT, []
    for each in words:
        room -= len(word) * len(each) * max(len(word), len(each))
        if room < 0:
            break
        compared.append(each)
    close = [each for each in compared if _swapped(word, each)] or difflib.get_close_matches(word, compared, n=1)
    return f' (did you mean "{close[0]}"?)' if close else ""


def _swapped(word: str, other: str) -> bool:
    """Return whether two words differ in the order of two neighbours, or in their case, alone."""
    word, other = word.lower(), other.lower()
    places = [j for j, (one, two) in enumerate(zip(word, other, strict=False)) if one != two]
    if len(word) != len(other) or len(places) not in (0, 2):
        return False
    return not places or (places[1] == places[0] + 1 and word[places[0]] == other[places[1]] and word[places[1]] == other[places[0]])


def found(value: object) -> str:
    """Return what stands where something else was expected.

    >>> found(None), found(True), found("4 cores"), found([1, 2]), found(-1)
    ('nothing', 'true', 'the text "4 cores"', 'a list', '-1')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'the text "{value if len(value) <= 60 else value[:57] + "..."}"'
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'mapping'}"
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number beyond 1e308"


def written(value: object) -> str:
    """Return an argument as Python writes it, never too long for a message.

    >>> written(-1), written("a"), written(10**400)
    ('-1', "'a'", 'a number beyond 1e308')
    """
    if isinstance(value, Real):
        try:
            float(value)
        except OverflowError:
            return "a number beyond 1e308"
    return brief(repr(value))


# Names and lists ------------------------------------------------------------------------------------------------------------------


def installing(extra: str) -> str:
    """Return how to install an extra. fairopt is in no package index, where its name may be somebody else's.

    >>> installing("report")
    "pip install '.[report]' in the checkout of fairopt"
    """
    return f"pip install '.[{extra}]' in the checkout of fairopt"


def joined(words: Sequence[str], most: int | None = None) -> str:
    """Return words as a sentence lists them, printable; with ``most``, only so many of them, and how many more there are.

    >>> joined(["a"]), joined(["a", "b", "c"]), joined(["a", "b", "c", "d"], 2)
    ('a', 'a, b and c', 'a, b and 2 more')
    """
    if most is not None and len(words) > most:
        words = [*words[:most], f"{len(words) - most:,} more"]
    return printable(" and ".join(filter(None, (", ".join(words[:-1]), *words[-1:]))), keep="\N{NO-BREAK SPACE}")  # of percentages


def was_and_is(word: str, old: object, new: object) -> str:
    """Say in what two requests differ; what is long is named only.

    >>> was_and_is("time_limit", 1, None), was_and_is("cluster", {"users": list(range(99))}, {})
    ('time limit was 1 and is None', 'cluster is another')
    """
    word = word.replace("_", " ")
    texts = repr(old), repr(new)
    return f"{word} is another" if max(map(len, texts)) > _LONGEST else f"{word} was {texts[0]} and is {texts[1]}"


def message_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or its type if it has none.

    >>> message_line(ValueError("\\n no route\\nto host")), message_line(ValueError())
    ('no route', 'ValueError')
    """
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def printable(text: str, keep: str = "") -> str:
    """Return text with control characters (but those to keep) as escapes, so that it cannot drive a terminal.

    >>> printable("\\x1b[31mred"), printable("two\\nlines", keep="\\n") == "two\\nlines"
    ('\\\\x1b[31mred', True)
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def named(label: str) -> str:
    """Return a label as a sentence can hold it: printable, and in quotes where it is not one plain word.

    >>> named("node-1.rack"), named("the red team"), named("")
    ('node-1.rack', '"the red team"', '""')
    """
    shown = printable(label)
    plain = all(c.isalnum() or c in "-_./:@#" for c in shown) and shown[-1:] not in ("", ".", ":", "/")
    return shown if plain else f'"{shown}"'


def in_shell(word: str) -> str:
    """Return a word as a shell takes it, for a command that is to be pasted: nothing in it runs.

    >>> print(in_shell("gpu"), in_shell("; rm x"), in_shell("$(rm x)"), in_shell("a\\x1bb"))
    gpu '; rm x' '$(rm x)' 'a\\x1bb'
    """
    return shlex.quote(brief(printable(word)))  # shortened first: a cut must not take a quotation mark


def in_latex(text: str) -> str:
    r"""Return a text in which no character has a meaning; a number keeps its minus sign.

    >>> print(in_latex("50% of $x_1"), in_latex("[a]--b"), in_latex("-1.5"))
    50\% of \$x\_1 {[}a]-{}-b $-1.5$
    """
    if re.fullmatch(r"-[0-9.]+(e-?[0-9]+)?", text):
        return f"${text}$"
    return _IN_LATEX.sub(lambda match: _LATEX[match[0]], printable(text))


# Numbers --------------------------------------------------------------------------------------------------------------------------


def figure(value: float | Fraction | None, digits: int = 3, missing: str = "") -> str:
    """Return a number in so many significant digits, and all of its digits before the point.

    A Fraction is written as it is, or, if that is too long for a sentence, as a decimal with a sign that it is rounded.

    >>> [figure(value) for value in (12583.4, 21.6667, 0.0123456, 3.0)]
    ['12,583', '21.7', '0.0123', '3']
    >>> figure(1 / 3, 6), figure(1451.8, 4), figure(None), figure(float("nan"), missing="-")
    ('0.333333', '1,452', '', '-')
    >>> figure(Fraction(60, 23)), figure(Fraction(12583)), figure(Fraction(10**30 + 1, 3 * 10**30), 6)
    ('60/23', '12,583', '~0.333333')
    """
    if isinstance(value, Fraction):
        whole = value.denominator == 1 and abs(value) < _LONG
        return f"{value.numerator:,}" if whole else fractions([value], digits=digits)[0]
    if value is None or math.isnan(value):
        return missing
    value = float(value) + 0.0  # no "-0"
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:,.{digits}g}"


def quotient(part: float | Fraction, whole: float | Fraction) -> str:
    """Return a quotient as text: "1/3" from floats, the reduced fraction from Fractions.

    >>> quotient(1.0, 3.0), quotient(Fraction(1, 3), Fraction(2, 3)), quotient(Fraction(2), Fraction(1))
    ('1/3', '1/2', '2')
    """
    if isinstance(part, Fraction) and isinstance(whole, Fraction):
        return figure(part / whole, 6)
    return f"{figure(part, 6)}/{figure(whole, 6)}"


def figures(values: Iterable[float]) -> list[str]:
    """Return a column of numbers with the same decimals: 6 significant digits of the largest, no needless zeros.

    Numbers of very different size are written each by itself.

    >>> figures([2.608695652, 3.130434783, 6.260869565])
    ['2.60870', '3.13043', '6.26087']
    >>> figures([0.0, 210.0, 12345.5]), figures([3.0, float("inf")]), figures([1e-9, 5.0])
    (['0', '210.0', '12,345.5'], ['3', 'inf'], ['1e-09', '5'])
    """
    numbers = [float(value) for value in values]
    sizes = [abs(value) for value in numbers if value and math.isfinite(value)]
    if not sizes or max(sizes) / min(sizes) >= _SIZES or not 1e-4 <= max(sizes) < 1e9:
        return [figure(value, 6) for value in numbers]
    decimals = max(0, 5 - math.floor(math.log10(max(sizes) * (1 + 1e-9))))  # 1 is 1 up to rounding
    texts = [f"{value:,.{decimals}f}" if value else "0" for value in numbers]
    fractions = [text.partition(".")[2] for text in texts]
    needless = min((len(zeros) - len(zeros.rstrip("0")) for zeros in fractions if zeros), default=0)
    return [text[: len(text) - needless].removesuffix(".") if "." in text else text for text in texts]


def fractions(values: Iterable[Fraction], longest: int = _SHORT, digits: int = 6) -> list[str]:
    """Return a column of fractions; one that is too long for a column as a decimal with a sign that it is rounded.

    >>> fractions([Fraction(60, 23), Fraction(12), Fraction(10**30 + 1, 3 * 10**30)])
    ['60/23', '12', '~0.333333']
    """
    return [text if _is_short(value) and len(text := str(value)) <= longest else f"{ROUNDED}{_decimal(value, digits)}" for value in values]


def _is_short(value: Fraction) -> bool:
    """Is a fraction one that Python writes? It writes no whole number of more than 4,300 digits."""
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= _BITS_WRITTEN


def _decimal(value: Fraction, digits: int) -> str:
    """Return a fraction as a decimal, also where it is beyond floats."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if abs(number) < _LONG and (number or not value):
        return figure(number, digits)
    return str(Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator)))


def enclosed(value: Fraction, radius: Fraction, most: int | None = None) -> str:
    """Return a number that is known to a relative radius > 0 as a decimal with its known digits, at most ``most``.

    >>> enclosed(Fraction(2, 3), Fraction(1, 10**20)), enclosed(Fraction(4), Fraction(1, 10**20)), enclosed(Fraction(1, 3), Fraction(1, 9))
    ('0.66666666666666666667', '4', '0.3')
    """
    known = max(len(str(radius.denominator // radius.numerator)) - 1, 1)
    context = Context(prec=known if most is None else min(known, most))
    return str(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def exactly(value: float) -> str:
    """Return a number in six digits, or in as many as it takes to tell it from every other number.

    >>> [exactly(value) for value in (2.0, 0.1, 0.99999999, 1e60, 1.0000001e60, 16777217.0)]
    ['2', '0.1', '0.99999999', '1e+60', '1.0000001e+60', '16777217']
    """
    short = f"{value:g}"
    return short if float(short) == value or value != value else repr(float(value)).removesuffix(".0")


def contrast(value: float | Fraction, limit: float | Fraction, form: str = "g", digits: int = 6) -> tuple[str, str]:
    """Return a value and the limit that it breaks, in as many digits as it takes to tell them apart.

    >>> contrast(13.0, 9.0), contrast(9.00000004, 9.0), contrast(1.04e-6, 1e-6, "e", 1)
    (('13', '9'), ('9.00000004', '9'), ('1.04e-06', '1.00e-06'))
    >>> contrast(Fraction(19, 2), Fraction(9)), contrast(9 + Fraction(1, 10**20), Fraction(9))
    (('19/2', '9'), ('9.00000000000000000001', '9'))
    """
    if isinstance(value, Fraction):
        return _contrast_of_fractions(value, Fraction(limit), digits)
    while True:
        shown = f"{value:.{digits}{form}}", f"{limit:.{digits}{form}}"
        if shown[0] != shown[1] or digits >= 17:
            return shown
        digits += 1


def _contrast_of_fractions(value: Fraction, limit: Fraction, digits: int) -> tuple[str, str]:
    shown = str(value), str(limit)
    if max(map(len, shown)) <= _SHORT or value == limit:
        return shown
    while True:
        decimals = (Context(prec=digits).divide(Decimal(each.numerator), Decimal(each.denominator)) for each in (value, limit))
        of_value, of_limit = map(str, decimals)
        if Decimal(of_value) != Decimal(of_limit):
            return of_value, of_limit
        digits += 1


def percent(part: float | Fraction | None, decimals: int | None = None, missing: str = "") -> str:
    """Return a part of a whole in percent: in three digits, or, for a column of a table, with so many decimals.

    A Fraction that is not a whole number of percent is written as a fraction.

    >>> percent(5 / 7), percent(1.0), percent(1.0, 1), percent(-1e-17, 1), percent(None)
    ('71.4 %', '100 %', '100.0 %', '0.0 %', '')
    >>> percent(Fraction(1, 2)), percent(Fraction(5, 7))
    ('50 %', '5/7')
    """
    if part is None or math.isnan(part):
        return missing
    if isinstance(part, Fraction) and decimals is None:
        return f"{figure(100 * part)} %" if (100 * part).denominator == 1 else figure(part)
    return f"{figure(100 * part) if decimals is None else f'{round(100 * float(part), decimals) + 0.0:,.{decimals}f}'} %"


def plural(number: float | Fraction, one: str, many: str | None = None, digits: int = 6) -> str:
    """Return a number with its noun, or with its noun and verb.

    >>> plural(1, "user"), plural(12583, "server"), plural(2.5, "task"), plural(2, "user has", "users have")
    ('1 user', '12,583 servers', '2.5 tasks', '2 users have')
    >>> plural(Fraction(1, 6), "task"), plural(Fraction(5, 3), "task")
    ('1/6 of a task', '5/3 tasks')
    """
    text = figure(number, digits)
    if isinstance(number, Fraction) and 0 < number < 1 and many is None:
        return f"{text} of a {one}"
    return f"{text} {one if text == '1' else many or one + 's'}"


def residual(value: float) -> str:
    """Return an error of rounding by its order of magnitude.

    >>> residual(1.23e-16), residual(0.0)
    ('1.2e-16', '0')
    """
    return f"{value:.1e}" if value else "0"


def duration(seconds: float) -> str:
    """Return a length of time, in the unit that suits.

    >>> [duration(length) for length in (0, 0.01234, 75.0, 900, 10_800, 20 * 86_400)]
    ['0 s', '12.3 ms', '75 s', '15 min', '3 h', '20 days']
    """
    if seconds >= 3 * 86_400:
        return plural(seconds / 86_400, "day", digits=3)
    if seconds >= 3600:
        return f"{figure(seconds / 3600)} h"
    if seconds >= 180:
        return f"{figure(seconds / 60)} min"
    return f"{figure(seconds)} s" if seconds >= 1 or not seconds else f"{figure(1000 * seconds)} ms"
