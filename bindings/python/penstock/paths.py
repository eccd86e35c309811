# SPDX-License-Identifier: Apache-2.0
"""Paths that cannot be those of a data set, told with what to write instead."""
from __future__ import annotations

import os
import re
import shlex

from .errors import SettingsError

__all__ = ["check", "shell_word"]


def shell_word(path: str) -> str:
    """A path as one word of a command line that a message offers: quoted for a shell, and no option."""
    return ("./" if path.startswith("-") else "") + shlex.quote(path)


def check(path: str) -> None:
    """Refuse the address of another machine, a ~ that no shell has replaced, and the manifest where its
    directory is meant. Raises SettingsError."""
    if os.path.isfile(path) and os.path.basename(path) == "manifest.json":
        raise SettingsError(f"path: {path!r} is a data set's manifest: give its directory, "
                            f"{os.path.dirname(path) or '.'!r}")
    if os.path.lexists(path):
        return
    if re.match("[A-Za-z][A-Za-z0-9+.-]+:/", path):  # pathlib makes s3:/ of s3://
        raise SettingsError(f"path: {path!r} is no directory of this machine: copy the data set to a local "
                            "disk first, or mount where it is")
    if path.startswith("~"):
        raise SettingsError(f"path: {path!r}: only shells replace ~: give os.path.expanduser({path!r})")
