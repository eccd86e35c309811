# SPDX-License-Identifier: Apache-2.0
"""Turn a path that a user wrote into a path of this machine, or refuse it with advice."""
from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO

from .errors import SettingsError
from .hints import kind_of

__all__ = ["check_plain", "local", "naming", "regular"]

_DIRECTORY = "the name of a directory"
_PATH = (str, bytes, os.PathLike)
MAX_SHOWN = 60  # characters of a path in a message
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def local(path: str | bytes | os.PathLike[str], setting: str = "path", what: str = _DIRECTORY) -> str:
    """Return the path with ~ replaced by the home directory, as in a shell. Every function of the package that takes a
    path calls this. It refuses an empty path, an address of another machine, and a manifest in place of its directory.
    Raises TypeError, SettingsError.

    setting: name of the argument.
    what: what the path must be, for messages.
    """
    name = _decoded(path, setting, what)
    if not name:  # os.path.abspath would make it the current directory
        here = " (write '.' for the current directory)" if what == _DIRECTORY else ""
        raise SettingsError(f"{setting}: value is empty; must be a path{here}")
    if what == _DIRECTORY and os.path.isfile(name) and os.path.basename(name) == "manifest.json":
        raise SettingsError(f"{setting}: value is {name!r}, a manifest; must be the data set's directory (give "
                            f"{os.path.dirname(name) or '.'!r})")
    if _exists(name, setting):
        return name
    _check_address(name, setting, what)
    if not name.startswith("~"):
        return name
    home, found = name.partition("/")[0], os.path.expanduser(name)
    if found.startswith("~"):
        raise SettingsError(f"{setting}: value is {name!r}; {home[1:] or 'this user'!r} has no home directory (write "
                            "the whole path)")
    return local(found, setting, what)


def _decoded(path: Any, setting: str, what: str) -> str:
    """Return the path as text that the system accepts. Raises TypeError, SettingsError."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"{setting}: value is {kind_of(path)}; must be {what}{_advice(path, what)}") from None
    if "\0" in name:
        raise SettingsError(f"{setting}: value is {name!r}; must have no zero byte")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise SettingsError(f"{setting}: value is {name!r}; must be text that UTF-8 can hold") from None
    return name


def _exists(name: str, setting: str) -> bool:
    """Return whether there is a file, directory or link of this name."""
    try:
        os.lstat(name)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise SettingsError(f"{setting}: value is {name[:MAX_SHOWN]!r}..., {len(os.fsencode(name)):,} bytes long; must be a "
                                "path that the system does not find too long (choose shorter names)") from None
        return False
    return True


@contextlib.contextmanager
def naming(setting: str, verb: str, path: str | bytes, advice: str = "") -> Iterator[None]:
    """Return a context manager: an error of the system about a file then names the argument. verb: the failed action,
    for messages."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, f"{setting}: cannot {verb} the file: {error.strerror}{advice}", os.fsdecode(path)) from None


def regular(path: str, setting: str, must: str, advice: str = "") -> BinaryIO:
    """Open a regular file to read. Other kinds are refused: they may have no end, and opening a named pipe waits for
    its writer. Raises SettingsError, OSError.

    must: what the file must be, for messages.
    advice: what to do if there is no such file.
    """
    with naming(setting, "read", path, advice):
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY))
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise SettingsError(f"{setting}: value is {path!r}, which is not a regular file; must be {must}")


def check_plain(path: str | bytes, setting: str) -> None:
    """Raise SettingsError if a file for plain JSON has the name of a compressed file."""
    name = os.fsdecode(path)
    for end in _COMPRESSED:
        if name.lower().endswith(end):
            raise SettingsError(f"{setting}: value is {name!r}; must not end in {end}, because it is written as plain JSON "
                                "(compress the file afterwards)")


def _advice(value: Any, what: str) -> str:
    """Return the advice on a value that is no path. what: what it must be."""
    kind = type(value)
    if what == _DIRECTORY and isinstance(value, (list, tuple)) and all(isinstance(one, _PATH) for one in value):
        return (" (a pattern names several files of one data set, 'shards-{000..127}.tar' or 'shards-*.tar'; a penstock.Mixture "
                "takes several data sets)")
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0] and isinstance(getattr(value, "path", None), str):
        more = getattr(value, "_path_lacks", "")  # a slice of a Dataset has more to say
        return f" (give {kind.__name__.lower()}.path{more})"
    is_data = hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (list, tuple, dict))
    return " (penstock.pack(value, OUT) packs what a data set or a table holds; then give OUT)" * is_data


def _check_address(name: str, setting: str, what: str) -> None:
    match = re.match("([A-Za-z][A-Za-z0-9+.-]+):/", name)  # pathlib makes s3:/ of s3://
    if match is None:
        return
    if match[1].lower() == "file":
        raise SettingsError(f"{setting}: value is {name!r}; must be a path, not an address (give "
                            f"{re.sub('^[^/]*//*', '/', name)!r})")
    do = "copy the data to a local disk, or mount it, and give that path" if what == _DIRECTORY else "give the path of a local file"
    raise SettingsError(f"{setting}: value is {name!r}, on another machine; must be a path on this one ({do})")
