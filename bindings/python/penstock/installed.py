# SPDX-License-Identifier: Apache-2.0
"""Find the headers and the library, for programs in C that use this installation."""
from __future__ import annotations

import ctypes
import pathlib

from . import _c

__all__ = ["get_include", "get_library"]


def get_include() -> str:
    """Return the folder for a compiler's -I option; it has penstock/penstock.h.

    Raises FileNotFoundError if the headers are not installed.
    """
    here = pathlib.Path(__file__).resolve().parent
    # A wheel has the headers in the package. Otherwise they are below the package's prefix, or in the sources.
    for folder in (here, *here.parents):
        if (folder / "include/penstock/penstock.h").exists():
            return str(folder / "include")
    raise FileNotFoundError(f"no include/penstock/penstock.h above {here}: install the library's headers "
                            "(meson install -C build), or a wheel, which has them")


def get_library() -> str:
    """Return the file of the library that this package has loaded. Link with it by this path, and give -Wl,-rpath its
    folder, so that the program finds it at run time."""
    address = ctypes.cast(_c.lib.pstk_version, ctypes.c_void_p).value or 0
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        begin, end = (int(word, 16) for word in words[0].split("-"))
        if begin <= address < end:
            return words[5]
    raise FileNotFoundError(f"{_c.lib._name} is loaded, and /proc/self/maps has no file of it")
