# SPDX-License-Identifier: Apache-2.0
"""Find and load libpenstock: the file that PENSTOCK_LIBRARY names, else the file next to this one (in a wheel), else
the system's. Its version must be this package's."""
from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ._version import __version__

NAME = "libpenstock.so"


class MissingLibraryError(ImportError):
    """libpenstock was not found, could not be loaded, or is of another version."""


def _candidates() -> Iterator[str]:
    named = os.environ.get("PENSTOCK_LIBRARY")
    if named:
        yield named
        return
    here = os.path.dirname(os.path.abspath(__file__))
    yield from sorted(glob.glob(os.path.join(glob.escape(here), "lib", NAME + "*")))
    yield NAME + ".0"
    yield NAME


def _open() -> ctypes.CDLL:
    tried = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            tried.append(str(error))
    raise MissingLibraryError(
        "libpenstock was not found: install the package with its library (pip install . in the sources), or "
        "install the library (meson install -C build, then ldconfig), or set PENSTOCK_LIBRARY to the path of "
        f"{NAME}. Tried: " + "; ".join(tried))


def load(functions: Mapping[str, tuple[Any, list[Any]]]) -> ctypes.CDLL:
    """Load the library, check its version, declare its functions."""
    library = _open()
    try:
        library.pstk_version.restype = ctypes.c_char_p
        version = library.pstk_version().decode()
        for name, (result, arguments) in functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise MissingLibraryError(f"{library._name} is not a penstock of this version: {error}") from None
    if version != __version__:
        raise MissingLibraryError(
            f"{library._name} is penstock {version}, but this package is {__version__}: install library and "
            "package of one version, or set PENSTOCK_LIBRARY")
    return library
