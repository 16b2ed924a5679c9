"""In which form a result is printed or written; what cannot be written is refused before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

import typer

from fairopt.files import is_device
from fairopt.formats import FILES
from fairopt.formats.results import KINDS, Kind, require

__all__ = ["Form", "check_file", "check_folder", "check_instance", "check_page", "check_picture", "choose_form", "table_form"]

Form: TypeAlias = Literal["json", "csv", "parquet", "xlsx", "md", "tex", "text"]


def choose_form(
    output: Path | None,
    plot: Path | None = None,
    *,
    as_json: bool = False,
    as_csv: bool = False,
    kinds: tuple[Form, ...] = ("json", *KINDS),
) -> Form:
    """Return the form of a result: as the options say, else by the ending of its file.

    A file that cannot be written is refused here, before anything is computed.
    """
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv", param_hint="--csv")
    check_file(output, "--output")
    check_picture(plot, "--plot")
    asked: Form | None = "json" if as_json else "csv" if as_csv else None
    suffix = "" if output is None or is_device(output) else output.suffix.lower()
    endings: dict[str, Form] = {**{f".{kind}": kind for kind in kinds}, ".txt": "text"}
    if asked is not None and endings.get(suffix, asked) != asked:
        raise typer.BadParameter(f"{output} ends in {suffix}; leave --{asked} out, or end the name in .{asked}", param_hint="--output")
    if asked is None and suffix and suffix not in endings:
        known = " or ".join([", ".join([*endings][:-1]), [*endings][-1]])
        raise typer.BadParameter(f"cannot tell what to write into {output}; end its name in {known}", param_hint="--output")
    form = asked or endings.get(suffix, "text")
    require(form, str(output))
    return form


def check_folder(path: Path | None, option: str) -> None:
    """Refuse a file in a folder that is not there. A pipe or a device needs no folder."""
    if path is None or is_device(path):
        return
    folder = Path(os.path.realpath(path)).parent
    shown = folder if path.is_symlink() else path.parent
    if not folder.is_dir():  # refused before an hour of solving, not after
        raise typer.BadParameter(f"there is no folder {shown}; make it first", param_hint=option)
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"the folder {shown} is not writable", param_hint=option)


def check_file(path: Path | None, option: str) -> None:
    """Refuse a folder where a file is to be written, and a file in a folder that is not there."""
    check_folder(path, option)
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; give the name of a file", param_hint=option)


def check_picture(path: Path | None, option: str) -> None:
    """Refuse a picture of an unknown kind."""
    check_file(path, option)
    if path is not None:
        from fairopt.plots import figure_format

        figure_format(path)


def check_page(path: Path | None, option: str) -> None:
    """Refuse a page whose name does not end in .html."""
    check_file(path, option)
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{path} would be a web page; end its name in .html", param_hint=option)


def table_form(path: Path | None, option: str, *more: Kind) -> Kind:
    """Return the kind of table that a file will hold, by its ending; without one, CSV. An ending of something else is refused.

    ``more`` are kinds that this command alone writes.
    """
    check_file(path, option)
    kind = "" if path is None or is_device(path) else path.suffix.lower().removeprefix(".")
    kinds = (*KINDS, *more)
    for known in kinds:
        if kind in ("", known):
            require(known if kind else "csv", str(path))
            return known if kind else "csv"
    raise typer.BadParameter(f"{path} would hold a table; end its name in .{', .'.join(kinds[:-1])} or .{kinds[-1]}", param_hint=option)


def check_instance(path: Path | None, option: str) -> None:
    """Refuse an instance in a file of an unknown kind."""
    check_folder(path, option)
    if path is not None and path.suffix.lower() not in ("", ".parquet", *FILES) and not path.is_dir():
        raise typer.BadParameter(f"{path.name}: give a name that ends in .yaml or .json (or .xlsx), or a folder", param_hint=option)
    if path is not None and path.suffix.lower() == ".xlsx":
        from fairopt.tables.workbooks import require_openpyxl

        require_openpyxl(f"writing {path}")
