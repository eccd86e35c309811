# SPDX-License-Identifier: Apache-2.0
"""`penstock show DATA --recipe NAME`, which only the package has: one sample, and 15 of its augmentations, as a
picture."""
from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import recipes
from ._optional import MissingPackageError
from .errors import PenstockError
from .escapes import escaped
from .sheet import show

__all__ = ["main"]

DEFAULT_OUTPUT = "penstock-show.png"  # the command's default
OTHER_FORMATS = (".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".pdf")


def _one_id(text: str) -> int:
    """Return a sample's id. argparse names the option in front of the error."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"value is {text!r}; must be the id of one sample, as 7: with --recipe one "
                                         "sample is shown")
    return int(text)


def _refuse(message: str) -> int:
    print(escaped(f"penstock: {message}"), file=sys.stderr)
    return 2


def _given(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed arguments, and those that this command does not know."""
    parser = argparse.ArgumentParser("penstock show", description="Write a picture of one sample, and of 15 of its "
                                     "augmentations by a recipe, epoch after epoch.", allow_abbrev=False)
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("--recipe", required=True, metavar="NAME", help=", ".join(recipes.names()))
    parser.add_argument("--ids", type=_one_id, default=0, metavar="ID", help="the sample (default: 0)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of all random choices (default: 0)")
    parser.add_argument("-o", "--output", default=DEFAULT_OUTPUT, metavar="FILE",
                        help=f"PNG file to write, - for standard output (default: {DEFAULT_OUTPUT})")
    return parser.parse_known_args(arguments[1:])


def _wrong(given: argparse.Namespace, others: Sequence[str]) -> str | None:
    """Return the message about wrong arguments; None: they are right."""
    options = [other.partition("=")[0] for other in others if other.startswith("-")]
    if others:
        what = f"the option {options[0]}" if options else f"the argument {others[0]!r}"
        return f"show --recipe does not take {what}; it takes DATA, --recipe, --ids, --seed and --output"
    if given.output == "-" and sys.stdout.isatty():
        return ("--output: value is -; must be a file, for standard output is a terminal (name a file, or write into a "
                "pipe)")
    if given.output.lower().endswith(OTHER_FORMATS):
        return f"--output: value is {given.output!r}; must be a PNG file, as {os.path.splitext(given.output)[0]}.png"
    return None


def _write(sheet: Any, output: str) -> None:
    if output != "-":
        sheet.save(output, "PNG")
        return
    png = io.BytesIO()
    sheet.save(png, "PNG")
    with open(sys.stdout.fileno(), "wb", closefd=False) as out:
        out.write(png.getbuffer())


def main(arguments: Sequence[str]) -> int:
    """Draw the picture, and print its path unless it goes to standard output. Return the exit status: 2 for wrong
    usage, 1 for a file that cannot be read or written, 130 after Ctrl-C."""
    given, others = _given(arguments)
    wrong = _wrong(given, others)
    if wrong is not None:
        return _refuse(wrong)
    try:
        sheet = show(given.data, recipe=given.recipe, ids=[given.ids], seed=given.seed)
        _write(sheet, given.output)
    except (ValueError, MissingPackageError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    except (OSError, PenstockError) as error:
        print(escaped(f"penstock: {error}"), file=sys.stderr)
        return 1
    if given.output != "-":
        print(escaped(f"{given.output}: sample {given.ids} and 15 augmentations by {given.recipe}, "
                      f"{sheet.width} x {sheet.height} pixels"))
    return 0
