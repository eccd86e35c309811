# SPDX-License-Identifier: Apache-2.0
"""Paths as users write them, made paths of this machine; what cannot be one is refused with what to write."""
from __future__ import annotations

import os
import re

from .errors import SettingsError

__all__ = ["local"]


def local(path: str | bytes | os.PathLike[str]) -> str:
    """The path with the home directory in place of ~, as a shell has it. Everything in the package that takes
    a path goes through here. Refuses the address of another machine, and the manifest where its directory is
    meant. Raises TypeError, SettingsError."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"path is a {type(path).__name__}: give the name of a directory") from None
    if "\0" in name:
        raise SettingsError(f"path: {name!r} has a zero byte in it")
    if os.path.isfile(name) and os.path.basename(name) == "manifest.json":
        raise SettingsError(f"path: {name!r} is a data set's manifest: give its directory, "
                            f"{os.path.dirname(name) or '.'!r}")
    if os.path.lexists(name):
        return name
    _check_address(name)
    if not name.startswith("~"):
        return name
    home, found = name.partition("/")[0], os.path.expanduser(name)
    if found.startswith("~"):
        raise SettingsError(f"path: {name!r}: there is no home directory of {home[1:] or 'this user'!r}: write "
                            "it out")
    return local(found)


def _check_address(name: str) -> None:
    match = re.match("([A-Za-z][A-Za-z0-9+.-]+):/", name)  # pathlib makes s3:/ of s3://
    if match is None:
        return
    if match[1].lower() == "file":
        raise SettingsError(f"path: {name!r} is an address: give {re.sub('^[^/]*//*', '/', name)!r}")
    raise SettingsError(f"path: {name!r} is on another machine: copy the data to a local disk first, or mount "
                        "it here, and give that path")
