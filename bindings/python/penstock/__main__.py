# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock`, and the `penstock` script of a wheel: run the command in the package, or else the
installed one."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys


def command() -> str:
    """The path of the `penstock` command: what PENSTOCK_COMMAND names, else the package's, else that of PATH.

    Raises FileNotFoundError where there is none.
    """
    named = os.environ.get("PENSTOCK_COMMAND")
    if named:
        return named
    bundled = pathlib.Path(__file__).parent / "bin/penstock"
    found = str(bundled) if bundled.exists() else shutil.which("penstock")
    if found is None:
        raise FileNotFoundError(
            "the penstock command is not in this package and not in PATH; install it (meson install -C "
            "build), put build/src/cli into PATH, or set PENSTOCK_COMMAND to its path")
    return found


def main() -> None:
    """Run the command in place of this process, with its arguments; draw recipes, which only the package has."""
    if sys.argv[1:2] == ["show"] and any(argument.split("=")[0] == "--recipe" for argument in sys.argv):
        from .show_recipe import main as show_recipe
        sys.exit(show_recipe(sys.argv[1:]))
    try:
        path = command()
        os.execv(path, ["penstock" if shutil.which("penstock") else path, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"penstock: {error}")


if __name__ == "__main__":
    main()
