"""What is said of a command line that cannot be understood: one line, as for any other error, in plain words."""

from __future__ import annotations

import re
from typing import Any

from fairopt.wording import did_you_mean

__all__ = ["choices_of", "in_plain_words", "show_values", "shown"]

_CHOICE = re.compile(r"(?:Value error, )?'(?P<given>.*)' is not one of (?P<choices>'.*')\.?", re.DOTALL)
_LONGEST = 28  # characters of words to choose from in front of a sentence of help
_COMMAND = re.compile(r"No such command '(.*?)'\..*", re.DOTALL)
_EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)\.?", re.DOTALL)
_LEAST = re.compile(r"Input should be greater than or equal to (-?[\d.]+)|.* is not in the range x>=(-?[\d.]+)\.?")
_MOST = re.compile(r"Input should be less than or equal to (-?[\d.]+)|.* is not in the range .*x<=(-?[\d.]+)\.?")
_BETWEEN = re.compile(r"(-?[\d.]+) is not in the range (-?[\d.]+)<=x<=(-?[\d.]+)\.?")
_WHOLE = re.compile(r"Input should be a valid integer.*|.* is not a valid int(eger)?\.?( range\.?)?")
_NUMBER = re.compile(r"Input should be a valid number.*|.* is not a valid float\.?( range\.?)?")


def in_plain_words(error: Any) -> str:
    """Return the message of a usage error of typer: the option, what is wrong with it, and what to write instead."""
    if (option := getattr(error, "option_name", None)) is not None and type(error).__name__ == "NoSuchOption":
        return f"No such option: {option}{_did_you_mean_option(option, _options(error.ctx))}"
    if (match := _COMMAND.fullmatch(str(getattr(error, "message", "")))) and error.ctx is not None:
        return f"No such command '{match[1]}'{did_you_mean(match[1], error.ctx.command.list_commands(error.ctx))}"
    if match := _EXTRA.fullmatch(str(getattr(error, "message", ""))):
        return f"there is no argument for {match[1]}; leave it out, or put quotes around a value that has spaces"
    if not hasattr(error, "param_hint") or type(error).__name__ == "MissingParameter":
        return str(error.format_message()).rstrip(".")
    option = error.param_hint or ("" if error.param is None else _name(error.param))
    said = ": ".join(filter(None, [str(option).replace("'", ""), _of_value(str(error.message))]))
    return said.rstrip(".")


def _did_you_mean_option(option: str, options: list[str]) -> str:
    """Return a hint at the closest option. The dashes do not count: with them, any two would be alike."""
    bare = {word.lstrip("-"): word for word in options}
    return re.sub('"(.*)"', lambda found: f'"{bare[found[1]]}"', did_you_mean(option.lstrip("-"), bare))


def _options(context: Any) -> list[str]:
    """Return the options of the command that is read, those of help last."""
    parts = [] if context is None else context.command.get_params(context)
    return [word for part in parts if part.param_type_name == "option" and not part.hidden for word in part.opts if word != "--help"]


def _name(part: Any) -> str:
    if part.param_type_name == "argument":
        return str(part.metavar or part.human_readable_name).strip("[]")
    return " / ".join(part.opts)


def show_values(command: Any) -> None:
    """Let the help of a command show what each option takes (see `shown`), and its sentences as paragraphs of any width."""
    if command.help:
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in command.help.split("\n\n"))
    given = command.get_params
    command.get_params = lambda context: shown(given(context))


def shown(parts: list[Any]) -> list[Any]:
    """Return options and arguments whose help shows nothing behind a flag, words to choose from, and no type behind an argument's name."""
    for part in parts:
        if part.param_type_name == "argument":
            part.display_type_rich = _nothing
            if part.hidden:
                part.get_usage_pieces = _no_pieces
        elif part.is_flag:
            part.metavar = ""
        elif part.metavar is None and choices_of(part):
            part.metavar = "|".join(choices_of(part))
            if len(part.metavar) > _LONGEST:  # it would leave no room for the sentences of all options
                part.help, part.metavar = f"{part.help} One of: {', '.join(choices_of(part))}.", "WORD"
    return parts


def choices_of(part: Any) -> list[str]:
    """Return the words that an option chooses from, none if it takes any. Newer versions of typer have them in a descriptor of the type."""
    kind = getattr(part, "type_descriptor", None)
    if kind is None:
        return [*map(str, getattr(part.type, "choices", None) or ())]
    return [*map(str, kind.choices)] if kind.is_choice else []


def _nothing(ctx: Any) -> str:
    return ""


def _no_pieces(ctx: Any) -> list[str]:
    return []


def _of_value(message: str) -> str:
    if match := _CHOICE.fullmatch(message):
        choices = re.findall("'(.*?)'", match["choices"])
        use = " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))
        return f'there is no "{match["given"]}"{did_you_mean(match["given"], choices)}; use {use}'
    if match := _BETWEEN.fullmatch(message):
        return f"give a number >= {match[2]}" if float(match[1]) < float(match[2]) else f"give a number <= {match[3]}"
    for pattern, sign in ((_LEAST, ">="), (_MOST, "<=")):
        if match := pattern.fullmatch(message):
            return f"give a number {sign} {match[1] or match[2]}"
    if _WHOLE.fullmatch(message):
        return "give a whole number"
    return "give a number" if _NUMBER.fullmatch(message) else message
