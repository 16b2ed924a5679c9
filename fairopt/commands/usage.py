"""What help shows of options, and what is said of a command line that cannot be understood: one line, as for any other error.

What is wrong with a value is derived from the option that refuses it: its words to choose from, its kind of number, its range. So the
sentences do not depend on those of a version of typer.

>>> refusal("usr", ["user", "queue"])
'there is no "usr" (did you mean "user"?); use user or queue'
>>> refusal("70000", number=int, low=0, high=65535), refusal("many", number=int), refusal("8", number=int)
('give a number <= 65535', 'give a whole number', None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, get_args

import typer

from fairopt.wording import did_you_mean

__all__ = [
    "ERRORS",
    "choices_of",
    "flowing",
    "in_panels",
    "in_plain_words",
    "is_usage_error",
    "refuse_extra",
    "shown",
    "with_plain_refusals",
]

ERRORS: Any = import_module(typer.BadParameter.__module__)
"""The exceptions of the parser. Typer brings its own copy of click, and names few of them itself."""
_LONGEST = 28  # characters of words to choose from in front of a sentence of help

_ONE_PANEL = 15  # options that are read as one list
_PANELS = {
    "How it is computed": (
        *("--solver", "--solver-option", "--digits", "--tolerance", "--time-limit", "--allow-gap"),
        *("--tries", "--effort", "--seed", "--placement-time-limit", "--workers", "--backend", "--address", "--resume", "--part"),
        *("--lenient", "--max-bytes"),
    ),
    "What is printed or written": (
        *("--json", "--csv", "--all", "--show", "--sort", "--top", "--by", "--output"),
        *("--current", "--report", "--instance", "--held", "--due", "--undo", "--names", "--force"),
    ),
    "Pictures": ("--plot", "--plot-envy", "--plot-queues", "--plot-path", "--plot-polytope", "--no-title"),
}
_PANEL_OF = {word: panel for panel, words in _PANELS.items() for word in words}
"""The purpose of options that many commands have: the panel of long help where it is. A group of options of one command states its own."""

# Errors --------------------------------------------------------------------------------------------------------------------------


def is_usage_error(error: BaseException) -> bool:
    """Is something wrong with the command line? A group without a command is not: it shows its help."""
    return isinstance(error, ERRORS.UsageError) and not isinstance(error, ERRORS.NoArgsIsHelpError)


def in_plain_words(error: Any) -> str:
    """Return the message of a usage error: the option, what is wrong with it, and what to write instead."""
    if isinstance(error, ERRORS.NoSuchOption):
        return f"No such option: {error.option_name}{_did_you_mean_option(error.option_name, _options(error.ctx))}"
    if isinstance(error, ERRORS.BadOptionUsage) and error.ctx is not None:
        return f"{error.option_name}: {_number_of_values(error.option_name, error.ctx)}"
    if not isinstance(error, ERRORS.BadParameter) or isinstance(error, ERRORS.MissingParameter):
        return str(error.format_message()).rstrip(".")
    option = error.param_hint or ("" if error.param is None else _name(error.param))
    return ": ".join(filter(None, [str(option).replace("'", ""), str(error.message)])).rstrip(".")


def _number_of_values(option: str, context: Any) -> str:
    """Return what to do about an option with too few values, or with a value that it does not take."""
    part = next(part for part in context.command.params if option in part.opts)
    if part.is_flag:
        return "it takes no value; leave the value out"
    return "give a value" if part.nargs == 1 else f"give {part.nargs} values"


def _did_you_mean_option(option: str, options: Iterable[str]) -> str:
    """Return a hint at the closest option. The dashes do not count: with them, any two would be alike."""
    bare = {word.lstrip("-"): word for word in options}
    hint = did_you_mean(option.lstrip("-"), bare)
    return next((hint.replace(f'"{name}"', f'"{word}"') for name, word in bare.items() if f'"{name}"' in hint), hint)


def _options(context: Any) -> list[str]:
    """Return the options of the command that is read, without that of help."""
    parts = [] if context is None else context.command.get_params(context)
    return [word for part in parts if part.param_type_name == "option" and not part.hidden for word in part.opts if word != "--help"]


def _name(part: Any) -> str:
    if part.param_type_name == "argument":
        return str(part.metavar or part.human_readable_name).strip("[]")
    return " / ".join(part.opts)


def refuse_extra(words: Sequence[str], context: Any) -> None:
    """Refuse words that no argument takes."""
    if words and not context.resilient_parsing:
        context.fail(f"there is no argument for {' '.join(words)}; leave it out, or put quotes around a value that has spaces")


# Values --------------------------------------------------------------------------------------------------------------------------


def with_plain_refusals(part: Any) -> None:
    """Let an option or an argument say in plain words why it refuses a value."""
    process: Callable[[Any, Any], Any] = part.process_value

    def process_value(context: Any, value: Any) -> Any:
        try:
            return process(context, value)
        except typer.BadParameter as error:
            each = value if isinstance(value, list | tuple) else [value]
            known = (refusal(one, choices_of(part), **_number_of(part)) for one in each if isinstance(one, str))
            why = next(filter(None, known), None)
            if why is None:  # the option is missing, or its callback has refused the value
                raise
            raise typer.BadParameter(why, ctx=error.ctx, param=part) from None

    part.process_value = process_value


def refusal(
    given: str, choices: Sequence[str] = (), number: type | None = None, low: float | None = None, high: float | None = None
) -> str | None:
    """Return what is wrong with a value: it is not one of the words to choose from, no number, or out of the range; None if it is right."""
    if choices:
        use = " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))
        return None if given in choices else f'there is no "{given}"{did_you_mean(given, choices)}; use {use}'
    if number is None:
        return None
    try:
        value = number(given)
    except ValueError:
        return "give a whole number" if number is int else "give a number"
    if low is not None and value < low:
        return f"give a number >= {low}"
    return f"give a number <= {high}" if high is not None and value > high else None


def choices_of(part: Any) -> list[str]:
    """Return the words that an option chooses from, none if it takes any. Newer versions of typer have them in a descriptor of the type."""
    kind = getattr(part, "type_descriptor", None)
    if kind is None:
        return [*map(str, getattr(part.type, "choices", None) or ())]
    return [*map(str, kind.choices)] if kind.is_choice else []


def _number_of(part: Any) -> dict[str, Any]:
    """Return which numbers an option takes, as arguments of `refusal`; none if it takes none."""
    kind = getattr(part, "type_descriptor", None)
    if kind is None:  # older versions of typer
        each = getattr(part.type, "types", [part.type])[0]
        number = {"integer": int, "float": float}.get(each.name.removesuffix(" range"))
        return {"number": number, "low": getattr(each, "min", None), "high": getattr(each, "max", None)}
    inside = [each for each in (kind.annotation, *get_args(kind.annotation)) if each in (int, float)]
    info = kind.parameter_info
    return {"number": inside[0], "low": info.min, "high": info.max} if inside else {}


# Help ----------------------------------------------------------------------------------------------------------------------------


def flowing(help: str | None) -> str | None:
    """Return the sentences of a help with each paragraph on one line, which a terminal of any width breaks."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in help.split("\n\n")) if help else help


def shown(parts: list[Any]) -> list[Any]:
    """Return options and arguments whose help shows nothing behind a flag, words to choose from, and no type behind an argument's name."""
    for part in parts:
        if part.param_type_name == "argument":
            part.display_type_rich = _nothing
            part.get_usage_pieces = partial(_pieces, part)
        elif part.is_flag:
            part.metavar = ""
        elif part.metavar is None and choices_of(part):
            part.metavar = "|".join(choices_of(part))
            if len(part.metavar) > _LONGEST:  # it would leave no room for the sentences of all options
                part.help, part.metavar = f"{part.help} One of: {', '.join(choices_of(part))}.", "WORD"
    return parts


def in_panels(parts: list[Any]) -> list[Any]:
    """Return options, each in a panel of the help by its purpose, where all together fill more than a screen."""
    options = [part for part in parts if part.param_type_name == "option" and not part.hidden]
    if len(options) > _ONE_PANEL:
        for part in options:
            part.rich_help_panel = part.rich_help_panel or _PANEL_OF.get(max(part.opts, key=len))
    return parts


def _nothing(ctx: Any) -> str:
    return ""


def _pieces(part: Any, ctx: Any) -> list[str]:
    """Return an argument in the line of the usage: FILE, [FILE] if it can be left out, FILE... if it can be repeated."""
    name = (part.metavar or part.name.upper()).removesuffix("...").strip("[]")
    return [] if part.hidden else [f"{name if part.required else f'[{name}]'}{'' if part.nargs == 1 else '...'}"]
