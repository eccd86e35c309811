# SPDX-License-Identifier: Apache-2.0
"""`penstock show DATA --recipe NAME` of the package: one sample, and 15 of its augmentations, as a picture."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import recipes
from ._optional import MissingPackageError
from .errors import PenstockError
from .sheet import show

__all__ = ["main"]

DEFAULT_OUTPUT = "penstock-show.png"  # as the command's


def _one_id(text: str) -> int:
    """Parse a sample's id: argparse names the option, and says what this raises."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"value is {text!r}; must be the id of one sample, as 7: with --recipe one "
                                         "sample is shown")
    return int(text)


def main(arguments: Sequence[str]) -> int:
    """Draw, and print where. Return the exit status: 2 for wrong usage, 1 for what cannot be read or written,
    130 after Ctrl-C."""
    parser = argparse.ArgumentParser("penstock show", description="Write a picture of one sample, and of 15 of its "
                                     "augmentations by a recipe, epoch after epoch.")
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("--recipe", required=True, metavar="NAME", help=", ".join(recipes.names()))
    parser.add_argument("--ids", type=_one_id, default=0, metavar="ID", help="the sample (default: 0)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of all random choices (default: 0)")
    parser.add_argument("-o", "--output", default=DEFAULT_OUTPUT, metavar="FILE",
                        help=f"PNG file to write (default: {DEFAULT_OUTPUT})")
    given = parser.parse_args(arguments[1:])
    try:
        sheet = show(given.data, recipe=given.recipe, ids=[given.ids], seed=given.seed)
        sheet.save(given.output, "PNG")
    except (ValueError, MissingPackageError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except (OSError, PenstockError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    print(f"{given.output}: sample {given.ids} and 15 augmentations by {given.recipe}, "
          f"{sheet.width} x {sheet.height} pixels")
    return 0
