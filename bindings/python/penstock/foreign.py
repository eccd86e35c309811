# SPDX-License-Identifier: Apache-2.0
"""Open data sets of other formats: with fields that the caller names, and with a folder for their indexes.

Indexes of data whose own folder cannot be written go to $PENSTOCK_CACHE, or penstock in $XDG_CACHE_HOME, or
~/.cache/penstock. Unpacked files there may take $PENSTOCK_CACHE_SIZE bytes. The library has these rules, pstk_find_cache.
"""
from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _c, errors, interrupts, paths
from .arguments import integer, switch, text
from .errors import SettingsError
from .escapes import escaped
from .hints import kind_of
from .texts import environment
from .topics import Foreign, given as topic

if TYPE_CHECKING:
    from .packing.schema import Field
    from .progress import Progress

__all__ = ["Opening", "parquet_of"]


def _cache_folder() -> str | None:
    """Return the path of that folder, which need not exist; None: no variable gives one."""
    path = ctypes.create_string_buffer(4096)
    _c.lib.pstk_find_cache(environment(), path, len(path), None, None)
    return os.fsdecode(path.value) or None


def _cache_size() -> int:
    """Return the bytes of $PENSTOCK_CACHE_SIZE; 0: it is not set. Raises SettingsError."""
    size, error = ctypes.c_uint64(), errors.new()
    if _c.lib.pstk_find_cache(environment(), None, 0, ctypes.byref(size), ctypes.byref(error)) < 0:
        raise SettingsError(escaped(error.message.decode(errors="surrogateescape")))  # it quotes the variable
    return size.value


def parquet_of(path: str) -> str | None:
    """Return the Parquet table at a path: the file itself, or metadata.parquet in the folder. None: the path has no
    such table. Raises SettingsError if the folder also has another table."""
    if path.lower().endswith((".parquet", ".pq")) and os.path.isfile(path):
        return path
    inside = os.path.join(path, "metadata.parquet")
    if not os.path.isfile(inside):
        return None
    for other in ("metadata.csv", "metadata.jsonl"):
        if os.path.isfile(os.path.join(path, other)):
            raise SettingsError(f"{path} has a metadata.parquet and a {other}: give the path of the right one, or remove the other")
    return inside


def _say(_user: Any, text: bytes) -> None:
    """Print a sentence of the library about the process that this one waits for."""
    from .progress import say
    say(text.decode(errors="replace"))


_SAY = _c.WaitFn(_say)


class _Watch:
    """The callback while an index is built: it shows the progress, and reports Ctrl-C to the library."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self.interrupts: list[int] = []  # one for each Ctrl-C while the library works
        self._progress: Progress | None = None
        self._n_total = 0

    def __call__(self, _user: Any, n_done: int, n_total: int) -> int:
        try:
            if self._progress is None or n_total != self._n_total:
                from .progress import Progress
                if self._progress is not None:  # the first bar ends: compressed files are read once before they are indexed
                    self._progress.__exit__(None, None, None)
                self._progress, self._n_total = Progress("indexing", "bytes", n_total), n_total
                self._progress.__enter__()
            self._progress.update(n_done)
        except BaseException as error:  # noqa: BLE001 - no exception may pass through the library
            self.raised = error
            return 1
        return 1 if self.interrupts else 0

    def end(self) -> None:
        """Remove the bar, and raise the exception or the KeyboardInterrupt of the callback."""
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
        if self.raised is not None:
            raise self.raised
        if self.interrupts:
            raise KeyboardInterrupt


def _parted(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Split Foreign.fields into three dicts by name: the types; the suffixes of fields that are the first of several
    members, "jpg;png"; and the defaults."""
    typed, first_of, defaults = {}, {}, {}
    for name, field in fields.items():
        if isinstance(field, tuple) and len(field) == 3:  # (dtype, shape, default)
            typed[name] = field[0] if field[1] is None or field[1] in ((), []) else field[:2]
            defaults[name] = field[2]
            continue
        given, kind = field if isinstance(field, tuple) and len(field) == 2 else (field, None)
        if isinstance(given, str) and ";" in given:
            if not isinstance(name, str) or not name.isascii():
                raise SettingsError(f"fields: value has a field named {name!r}; must have names of 1 to 63 letters, "
                                    "digits, _ . -")
            first_of[name] = given.replace(" ", "")
            if kind is not None:
                typed[name] = kind
        else:
            typed[name] = field
    return typed, first_of, defaults


def _stored(name: str, field: Field, value: Any) -> bytes:
    """Return the bytes of a default, as the field stores them. Raises FieldError."""
    from .packing.values import encoder
    if field.kind not in ("image", "mask"):  # b"" for these: the library says that they have no defaults
        encoded = encoder(name, field)(value)
        return bytes(encoded.tobytes() if hasattr(encoded, "tobytes") else encoded)
    return b""


_SPLITS = {"auto": _c.SPLIT_AUTO, "first": _c.SPLIT_FIRST, "last": _c.SPLIT_LAST}
_DAMAGES = {"refuse": _c.DAMAGED_UNCHECKED, "accept": _c.DAMAGED_ACCEPT}


class Opening:
    """A penstock.Foreign that was checked, for the library. given: the Foreign; None: its defaults. It may be pickled."""

    def __init__(self, given: Foreign | None = None) -> None:
        given = topic("foreign", given, Foreign)
        fields = given.fields
        self.fields: dict[str, Field] = {}
        self.first_of: dict[str, str] = {}
        self.defaults: dict[str, bytes] = {}
        if fields is not None:
            if not isinstance(fields, Mapping):
                raise TypeError(f"fields: value is {kind_of(fields)}; must be a dict, such as {{'cls': 'int64'}}")
            from .packing.schema import schema_of
            typed, self.first_of, defaults = _parted(fields)
            self.fields = schema_of(typed) if typed else {}
            self.defaults = {name: _stored(name, self.fields[name], value) for name, value in defaults.items()}
        self.cache_path = None if given.cache_path is None else os.path.abspath(paths.local(given.cache_path, "cache_path"))
        self.cache_size = integer("cache_size", given.cache_size)
        self.root_path = None if given.root_path is None else os.path.abspath(paths.local(given.root_path, "root_path"))
        self.split_at, self.damaged = given.split_at, given.damaged
        if not isinstance(self.split_at, str) or self.split_at not in _SPLITS:
            raise SettingsError(f"split_at: value is {self.split_at!r}; must be 'auto', 'first' or 'last'")
        self.by_content = switch("by_content", given.by_content)
        if not isinstance(self.damaged, str) or self.damaged not in _DAMAGES:
            raise SettingsError(f"damaged: value is {self.damaged!r}; must be 'refuse' or 'accept'")
        self.given = dataclasses.replace(given, cache_path=self.cache_path, root_path=self.root_path)  # with absolute paths

    def at(self, path: str) -> tuple[str, Opening]:
        """Return the path that the library opens for a path, and its Opening. A Parquet table is rewritten as JSON
        lines first."""
        table = parquet_of(path)
        if table is None:
            return path, self
        from .tables import rewritten
        local, folder, types = rewritten(table, self.cache_path or _cache_folder())
        given = self.given
        return local, Opening(dataclasses.replace(given, fields={**types, **(given.fields or {})},
                                                  root_path=given.root_path or folder))

    def to_c(self, watch: _Watch | None = None) -> _c.Foreign:
        """Return the struct for the library. It keeps alive the objects that it points to."""
        made = _c.Foreign(size=ctypes.sizeof(_c.Foreign), field_size=ctypes.sizeof(_c.Field))
        folder = self.cache_path or _cache_folder()
        made.cache_path = None if folder is None else os.fsencode(folder)
        made.cache_size = self.cache_size or _cache_size()
        made.split_at = _SPLITS[self.split_at]
        made.by_content = int(self.by_content)
        made.damaged = _DAMAGES[self.damaged]
        made.root_path = None if self.root_path is None else os.fsencode(self.root_path)
        array = (_c.Field * len(self.fields))(*(field.to_c(name) for name, field in self.fields.items()))
        for field in array:
            field.codec = 0  # data in place has no codec
            field.codec_level = 0
        made.on_wait = _SAY
        made.fields, made.n_fields = ctypes.cast(array, ctypes.POINTER(_c.Field)), len(array)
        lists = (_c.FirstOf * len(self.first_of))(
            *(_c.FirstOf(name=text("fields", name), suffixes=text(f"fields.{name}", suffixes))
              for name, suffixes in self.first_of.items()))
        made.first_of, made.n_first_of = ctypes.cast(lists, ctypes.POINTER(_c.FirstOf)), len(lists)
        values = (_c.Default * len(self.defaults))(
            *(_c.Default(name=text("fields", name), data=ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p), size=len(value))
              for name, value in self.defaults.items()))
        made.defaults, made.n_defaults = ctypes.cast(values, ctypes.POINTER(_c.Default)), len(values)
        if watch is not None:
            made.on_progress = _c.ProgressFn(watch)
        return made

    def opened(self, path: str) -> ctypes.c_void_p:
        """Open a data set; the caller closes the handle. Raises DataSetNotFoundError, CorruptRecordError and others."""
        from . import errors
        path, foreign = self.at(path)
        handle, error, watch = ctypes.c_void_p(), errors.new(), _Watch()
        settings = foreign.to_c(watch)
        with interrupts.collected() as watch.interrupts:
            code = _c.lib.pstk_dataset_open(ctypes.byref(handle), os.fsencode(path), ctypes.byref(settings), ctypes.byref(error))
        try:
            watch.end()
        except BaseException:
            _c.lib.pstk_dataset_close(ctypes.byref(handle))  # also where the handle is NULL
            raise
        errors.check(code, error)
        return handle
