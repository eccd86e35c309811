# SPDX-License-Identifier: Apache-2.0
"""Rewrite Parquet tables of images once as JSON lines, which the library reads. The lines are in the folder for caches;
the user's folders stay as they are.

A table has a folder there, whose name follows from the table's path. The folder has KEY.jsonl, the rows, and
KEY.fields, the types of their fields. KEY follows from the size of the table and the time of its last change. A file
appears only when it is complete, and never changes. It stays when the table changes, because running jobs read it.
`penstock cache --clear` removes it.
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

from . import errors
from ._optional import needed
from .errors import CorruptRecordError, SettingsError, TimedOutError, UnsupportedError
from .progress import say

__all__ = ["is_of_images", "rewritten"]

VERSION = 2  # version of the files; those of other versions are written again
BATCH = 4096  # rows in memory
LOOK_SECONDS = 0.1  # seconds between two looks of a process that waits for another
PATIENCE_SECONDS = 60.0  # longest time in which the other writes nothing; a pause of a disk is shorter
QUIET_SECONDS = 600.0  # least time without writes after which a file may have no writer; locks of other nodes are not seen here
LEFT_SECONDS = 86400.0  # the same where files cannot be locked
FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}  # by Arrow's names
INTEGERS = {name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}
INTEGERS["bool"] = "uint8"
# The first of these that is a column has the paths. Together with _field_names it must do the same as
# src/format/table/columns.c: change both.
PATHS = ("file_name", "path", "filename", "file", "image")
MAX_NAME = 63  # bytes
LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


# ---- fields ------------------------------------------------------------------------------------------------


def _path_of(columns: Sequence[str]) -> str | None:
    """Return the name of the column with the images' paths; None: there is none."""
    return next((key for key in PATHS if key in columns), None)


def _field_names(columns: Sequence[str]) -> dict[str, str]:
    """Return the field that the library makes of each column, except the column of paths."""
    names: dict[str, str] = {}
    path = _path_of(columns)
    for number, column in enumerate(columns, 1):
        if column == path:
            continue
        name = "".join(chr(byte) if byte in LETTERS else "_" for byte in column.encode()[:MAX_NAME]) or f"column{number}"
        names[column] = name + "_" if name in ("image", "path") else name  # the library refuses two columns with the same name
    return names


def _value_type(column: Any) -> str:
    return str(getattr(column.type, "value_type", column.type) if str(column.type).startswith("dictionary<") else column.type)


def _types(schema: Any, nested: set[str], with_nulls: set[str]) -> dict[str, str]:
    """Return the types of fields that need not be guessed, or that the first rows do not show."""
    found: dict[str, str] = {}
    names = _field_names(schema.names)
    for column in schema:
        name, kind = names.get(column.name), _value_type(column)
        if name is None:
            continue
        if kind in FLOATS:
            found[name] = FLOATS[kind]
        elif column.name in nested or column.name in with_nulls:
            found[name] = "utf8"
        elif kind in INTEGERS:
            found[name] = INTEGERS[kind]
    return found


# ---- rows --------------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Return text for a value that JSON lacks. Raises TypeError."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("it holds bytes; a table must name the files of its images (pack the rows of this one: "
                        "penstock.pack(path, out))")
    return str(value)


def _line(row: dict[str, Any], floats: Sequence[str], nested: set[str]) -> str:
    for name in floats:
        value = row[name]
        if value is None or not math.isfinite(value):  # JSON has no word for it, and the reader of numbers takes text
            row[name] = "nan" if value is None else str(value)
    for name, value in row.items():
        if name in nested or isinstance(value, (list, tuple, dict)):
            row[name] = json.dumps(value, ensure_ascii=False, default=_plain)  # it may have NaN and Infinity
    return json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"


def _lines(file: Any, table: str, nested: set[str], with_nulls: set[str]) -> Iterator[str]:
    """Yield the rows as lines of JSON. Columns with nulls are added to with_nulls. Raises CorruptRecordError,
    UnsupportedError."""
    schema, number = file.schema_arrow, 0
    floats = [column.name for column in schema if _value_type(column) in FLOATS]
    path = _path_of(schema.names)
    for batch in file.iter_batches(batch_size=BATCH):
        with_nulls.update(name for name, column in zip(batch.schema.names, batch.columns) if column.null_count)
        for row in batch.to_pylist():
            if path is not None and row[path] is None:
                raise CorruptRecordError(f"{table}, row {number} (counted from 0): column {path} is null; must be the path of an image")
            try:
                yield _line(row, floats, nested)
            except (TypeError, ValueError) as error:
                raise UnsupportedError(f"{table}, row {number} (counted from 0): a column cannot be read ({error})") from error
            number += 1


# ---- files -------------------------------------------------------------------------------------------------


def _motion(folder: str) -> list[tuple[str, int, int]]:
    """Return values that change while a process writes in the folder: name, size and time of each file."""
    found = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):  # the file was renamed meanwhile
            status = os.stat(os.path.join(folder, name))
            found.append((name, status.st_size, status.st_mtime_ns))
    return sorted(found)


def _lock(lock: int, folder: str, table: str) -> None:
    """Wait for the lock of the folder, as long as its holder writes; src/store/index/lock.c does the same. Raises
    TimedOutError, and OSError if files cannot be locked there."""
    idle, has_said, motion = 0.0, False, None
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        now = _motion(folder)
        idle, motion = (idle + LOOK_SECONDS if now == motion else 0.0), now
        holder = os.pread(lock, 128, 0).decode(errors="replace") .strip() or "another process"
        path = os.path.join(folder, "lock")
        if idle >= PATIENCE_SECONDS:
            raise TimedOutError(f"{table}: {holder} is rewriting it as text, but has written nothing for {idle:.0f} s; continue or "
                                f"end that process, or remove its lock {path}, and open the data set again")
        if not has_said:
            say(f"{holder} is rewriting {table} as text; this process waits for it (lock: {path})")
        has_said = True
        time.sleep(LOOK_SECONDS)


@contextlib.contextmanager
def _alone(folder: str, table: str) -> Iterator[None]:
    """Return a context manager that admits one process at a time. The kernel frees the lock of a process that dies.
    Where files cannot be locked, several processes may write the same bytes."""
    lock = -1
    try:
        with contextlib.suppress(OSError):
            lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if lock >= 0:
            try:
                _lock(lock, folder, table)
                os.pwrite(lock, f"process {os.getpid()} on host {os.uname().nodename}".ljust(128).encode(), 0)
            except TimedOutError:
                raise
            except OSError:
                pass
        yield
    finally:
        if lock >= 0:
            os.close(lock)


@contextlib.contextmanager
def _whole(path: str) -> Iterator[Any]:
    """Return a context manager with a file that gets its name once it is complete, with the permissions of the umask."""
    with _temporary(os.path.dirname(path)) as out:
        try:
            yield out
            out.flush()
            os.fsync(out.fileno())
            os.replace(out.name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(out.name)
            raise


def _temporary(folder: str) -> Any:
    """Return a new file, which is locked while it is open. The kernel frees the lock of a process that dies."""
    while True:
        out = open(os.path.join(folder, f".writing-{secrets.token_hex(8)}"), "x", encoding="utf-8", newline="\n")
        with contextlib.suppress(OSError):  # raised where files cannot be locked
            fcntl.flock(out, fcntl.LOCK_EX)
        if os.path.exists(out.name):
            return out
        out.close()  # another process removed it by _remove_left before it was locked


def _is_left(file: Any) -> bool:
    """Return whether no process writes the file. It must be old and lockable, or very old where files cannot be locked.
    A lock alone proves nothing: some network file systems keep locks on their node."""
    quiet = time.time() - os.fstat(file.fileno()).st_mtime
    if quiet < QUIET_SECONDS:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return quiet > LEFT_SECONDS
    return True


def _remove_left(folder: str) -> None:
    """Remove the files of writers that died."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            if name.startswith(".writing-"):
                with open(path, "rb") as file:
                    if _is_left(file):
                        os.unlink(path)


def _write(file: Any, table: str, before: os.stat_result, made: str) -> None:
    """Write the rows and the types. The types get their name first."""
    import pyarrow
    schema = file.schema_arrow
    if len(set(schema.names)) != len(schema.names):
        raise UnsupportedError(f"{table}: columns are {', '.join(schema.names)}; must have different names (rename some)")
    nested = {column.name for column in schema if pyarrow.types.is_nested(column.type)}
    with_nulls: set[str] = set()
    _remove_left(os.path.dirname(made))
    with _whole(made + ".jsonl") as out:
        out.writelines(_lines(file, table, nested, with_nulls))
        after = os.stat(table)
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise CorruptRecordError(f"{table} was changed while it was read: open it again")
        with _whole(made + ".fields") as fields:
            json.dump(_types(schema, nested, with_nulls), fields)


def _made_types(made: str) -> dict[str, str] | None:
    """Return the types of a table that was rewritten; None: it was not, or not completely."""
    try:
        with open(made + ".fields", encoding="utf-8") as file:
            types = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    is_known = isinstance(types, dict) and all(isinstance(kind, str) for kind in types.values())
    return types if is_known and os.path.exists(made + ".jsonl") else None


def _make(table: str, before: os.stat_result, made: str) -> dict[str, str]:
    """Rewrite the table, unless another process has done so, and return the types. Raises MissingPackageError,
    CorruptRecordError, SettingsError, TimedOutError, UnsupportedError."""
    parquet = needed("pyarrow.parquet", "reading Parquet tables", "pyarrow")
    folder = os.path.dirname(made)
    try:
        with parquet.ParquetFile(table) as file:
            os.makedirs(folder, exist_ok=True)
            with _alone(folder, table):
                types = _made_types(made)
                if types is None:
                    _write(file, table, before, made)
                    types = _made_types(made)
    except (SettingsError, CorruptRecordError, TimedOutError, UnsupportedError):
        raise
    except (ValueError, EOFError) as error:  # ArrowInvalid is a ValueError
        raise CorruptRecordError(f"{table} is not a Parquet file, or is damaged ({error})") from error
    except OSError as error:
        if error.errno is None:  # an error of pyarrow's, about a damaged page
            raise CorruptRecordError(f"{table} is not a Parquet file, or is damaged ({error})") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and error.filename != table:
            raise SettingsError(f"cache_path: {table} is to be kept as text in {folder}, which cannot be written to "
                                f"({error.strerror}); must be a folder that this process can write to") from error
        raise
    if types is None:
        raise CorruptRecordError(f"{made}.jsonl was removed while it was written: open {table} again")
    return types


def rewritten(table: str, cache: str | None) -> tuple[str, str, dict[str, str]]:
    """Rewrite a Parquet table if that was not done before. Returns the path of its JSON lines, the folder of the table,
    and the types of fields.

    Raises MissingPackageError, CorruptRecordError, SettingsError, TimedOutError, UnsupportedError.
    """
    table = os.path.abspath(table)
    if cache is None:
        raise SettingsError(f"cache_path: value is None, and there is no home directory; must be a folder, in which {table} is "
                            "kept as text")
    before = os.stat(table)
    key = hashlib.sha256(f"{VERSION} {before.st_size} {before.st_mtime_ns}".encode()).hexdigest()[:24]
    place = hashlib.sha256(os.fsencode(os.path.realpath(table))).hexdigest()[:24]
    made = os.path.join(cache, "tables", place, key)
    types = _made_types(made)
    if types is None:
        types = _make(table, before, made)
    errors.say(made + ".jsonl", table)
    return made + ".jsonl", os.path.dirname(table), types


def is_of_images(table: str) -> bool:
    """Return True if the Parquet file lists images, as metadata.parquet does: it has a column of paths, its first row
    names a file below the table's folder, and it has no columns of bytes. Raises MissingPackageError."""
    parquet = needed("pyarrow.parquet", "reading Parquet tables", "pyarrow")
    try:
        with parquet.ParquetFile(table) as file:
            path = _path_of(file.schema_arrow.names)
            if path is None or any("binary" in str(kind) for kind in file.schema_arrow.types):
                return False
            first = next(iter(file.iter_batches(batch_size=1, columns=[path])), None)
    except (ValueError, EOFError, OSError):
        return False  # the reader of the file reports the error
    name = first.column(0)[0].as_py() if first is not None and len(first) else None
    return isinstance(name, str) and os.path.isfile(os.path.join(os.path.dirname(os.path.abspath(table)), name))
