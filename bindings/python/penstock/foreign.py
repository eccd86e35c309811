# SPDX-License-Identifier: Apache-2.0
"""How data sets of other formats are read: fields that the caller names, and where their indexes go.

The folder for indexes of data that cannot be written to is $PENSTOCK_CACHE, or penstock in $XDG_CACHE_HOME, or
~/.cache/penstock; what is unpacked there may have $PENSTOCK_CACHE_SIZE bytes. The command has the same rules, in
src/cli/opening.c.
"""
from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _c, paths
from .settings import integer

if TYPE_CHECKING:
    from .packing.schema import Field
    from .progress import Progress

__all__ = ["Foreign"]


def _cache_folder() -> str | None:
    """The folder, whether it exists or not; None: there is none."""
    own, xdg, home = (os.environ.get(name, "") for name in ("PENSTOCK_CACHE", "XDG_CACHE_HOME", "HOME"))
    if own:
        return own
    if xdg.startswith("/"):
        return os.path.join(xdg, "penstock")
    return os.path.join(home, ".cache", "penstock") if home.startswith("/") else None


def _cache_size() -> int:
    """Bytes, from 500M or 2T, with powers of 1024; 0: not set."""
    text = os.environ.get("PENSTOCK_CACHE_SIZE", "")
    match = re.fullmatch(r"(\d{1,18})([KMGT]?)", text, re.ASCII | re.IGNORECASE)
    size = int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ") if match else 0
    if text not in ("", "0") and not 1 << 20 <= size < 1 << 63:
        from .errors import SettingsError
        raise SettingsError(f"PENSTOCK_CACHE_SIZE: value is {text!r}; must be a size such as 256M, at least 1M")
    return size


class _Watch:
    """Shows the progress of an index that is being built, and passes Ctrl-C on."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self._progress: Progress | None = None
        self._n_total = 0

    def __call__(self, _user: Any, n_done: int, n_total: int) -> int:
        try:
            if self._progress is None or n_total != self._n_total:
                from .progress import Progress
                if self._progress is not None:  # compressed files are read through first
                    self._progress.__exit__(None, None, None)
                self._progress, self._n_total = Progress("indexing", "bytes", n_total), n_total
                self._progress.__enter__()
            self._progress.update(n_done)
        except BaseException as error:  # noqa: BLE001 - no exception may pass through the library
            self.raised = error
            return 1
        return 0

    def end(self) -> None:
        """Remove the bar; raise what was raised."""
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
        if self.raised is not None:
            raise self.raised


class Foreign:
    """fields: {name: field} in place of those found in the data, as in a schema. cache_path: a folder for indexes and
    what is unpacked. cache_size: bytes that the latter may have; 0: $PENSTOCK_CACHE_SIZE, or half of the free disk.

    It may be pickled.
    """

    def __init__(self, fields: Mapping[str, Any] | None = None, cache_path: str | os.PathLike[str] | None = None,
                 cache_size: int = 0) -> None:
        self.fields: dict[str, Field] = {}
        if fields is not None and fields != {}:
            if not isinstance(fields, Mapping):
                raise TypeError(f"fields: value is a {type(fields).__name__}; must be a dict, such as {{'cls': 'int64'}}")
            from .packing.schema import schema_of
            self.fields = schema_of(fields)
        self.cache_path = None if cache_path is None else os.path.abspath(paths.local(cache_path))
        self.cache_size = integer("cache_size", cache_size)

    def to_c(self, watch: _Watch | None = None) -> _c.Foreign:
        """The struct of the library, which keeps alive what it points to."""
        made = _c.Foreign(size=ctypes.sizeof(_c.Foreign), field_size=ctypes.sizeof(_c.Field))
        folder = self.cache_path or _cache_folder()
        made.cache_path = None if folder is None else os.fsencode(folder)
        made.cache_size = self.cache_size or _cache_size()
        array = (_c.Field * len(self.fields))(*(field.to_c(name) for name, field in self.fields.items()))
        for field in array:
            field.codec = 0  # nothing is compressed
            field.codec_level = 0
        made.fields, made.n_fields = ctypes.cast(array, ctypes.POINTER(_c.Field)), len(array)
        if watch is not None:
            made.on_progress = _c.ProgressFn(watch)
        return made

    def opened(self, path: str) -> ctypes.c_void_p:
        """Open a data set; the caller closes the handle. Raises DataSetNotFoundError, CorruptRecordError and others."""
        from . import errors
        handle, error, watch = ctypes.c_void_p(), errors.new(), _Watch()
        settings = self.to_c(watch)
        code = _c.lib.pstk_dataset_open_foreign(ctypes.byref(handle), os.fsencode(path), ctypes.byref(settings),
                                                ctypes.byref(error))
        watch.end()
        errors.check(code, error)
        return handle
