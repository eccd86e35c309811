# SPDX-License-Identifier: Apache-2.0
"""Run the penstock command as `python -m penstock`, or as the `penstock` script of a wheel: the command in the package,
or else the installed one."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys


def command() -> str:
    """Return the path of the `penstock` command: the value of PENSTOCK_COMMAND, else the package's command, else the
    one in PATH.

    Raises FileNotFoundError if there is none.
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
    """Run the command in place of this process, with its arguments. `show --recipe` is run here, because only the
    package has recipes."""
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
