# SPDX-License-Identifier: Apache-2.0
"""Optional packages, imported at first use."""
from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from . import errors

__all__ = ["MissingPackageError"]


class MissingPackageError(errors.PenstockError, ImportError):
    """An optional package is not installed; the message has the name for pip."""


def needed(module: str, why: str, package: str | None = None) -> ModuleType:
    """Import a module and return it. Raises MissingPackageError: "reading HDF5 files needs h5py: pip install h5py".

    why: the beginning of that message, "reading HDF5 files".
    package: the name for pip; None: the module's.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        raise MissingPackageError(f"{why} needs {name}: pip install {name} ({error})") from error


def is_a(value: Any, module: str, *names: str) -> bool:
    """Return whether the value is an instance of one of these classes. If the module was never imported, no value is."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return False
    classes = tuple(c for c in (getattr(loaded, name, None) for name in names) if isinstance(c, type))
    return isinstance(value, classes)
