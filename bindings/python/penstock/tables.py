# SPDX-License-Identifier: Apache-2.0
"""Parquet tables of images: rewritten once as JSON lines, in the folder for caches, which the library reads. The user's
folders stay as they are."""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from ._optional import needed
from .errors import CorruptRecordError, SettingsError, UnsupportedError

__all__ = ["rewritten"]

VERSION = 1  # of what is written: others are written again
BATCH = 4096  # rows in memory
NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
ARROW_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64", "bool": "uint8"}


def _types(schema: Any) -> dict[str, str]:
    """The dtypes of the columns of numbers, by the names of their fields: they need not be guessed."""
    found: dict[str, str] = {}
    for column in schema:
        dtype = ARROW_NAMES.get(str(column.type), str(column.type))
        name = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in column.name)[:63]
        if dtype in NUMBERS and name and name not in ("image", "path") and name not in found:
            found[name] = dtype
    return found


def _plain(value: Any) -> Any:
    """What JSON lacks. Raises TypeError."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("it holds bytes; a table must name the files of its images")
    return str(value)


def _line(row: dict[str, Any], number: int, table: str) -> str:
    for name, value in row.items():
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            row[name] = str(value)  # JSON has no word for it, and the reader of numbers takes text
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"{table}, row {number}: a column cannot be read ({error})") from error


def _lines(file: Any, table: str) -> Iterator[str]:
    number = 0
    for batch in file.iter_batches(batch_size=BATCH):
        for row in batch.to_pylist():
            yield _line(row, number, table)
            number += 1


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """One process at a time; the kernel frees the lock of a process that dies."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        with contextlib.suppress(OSError):  # where files cannot be locked, several may write the same bytes
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(file: Any, table: str, path: str) -> None:
    """Write the rows to a file that is there in full or not at all; older ones of the same table go."""
    folder = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.writelines(_lines(file, table))
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    for name in os.listdir(folder):
        if name not in ("lock", os.path.basename(path)):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def rewritten(table: str, cache: str | None) -> tuple[str, str, dict[str, str]]:
    """The JSON lines of a Parquet file, the folder of the table, and the dtypes of its columns of numbers.

    Raises MissingPackageError, CorruptRecordError, SettingsError, UnsupportedError.
    """
    table = os.path.abspath(table)
    parquet = needed("pyarrow.parquet", "reading Parquet tables", "pyarrow")
    if cache is None:
        raise SettingsError(f"cache_path: value is None, and there is no home directory; must be a folder, in which {table} is "
                            "kept as text")
    before = os.stat(table)
    key = hashlib.sha256(f"{VERSION} {before.st_size} {before.st_mtime_ns}".encode()).hexdigest()[:24]
    place = hashlib.sha256(os.fsencode(os.path.realpath(table))).hexdigest()[:24]
    made = os.path.join(cache, "tables", place, key + ".jsonl")
    try:
        with parquet.ParquetFile(table) as file:
            types = _types(file.schema_arrow)
            with _alone(os.path.dirname(made)):
                if not os.path.exists(made):
                    _write(file, table, made)
    except (ValueError, EOFError) as error:  # ArrowInvalid is a ValueError
        raise CorruptRecordError(f"{table} is no Parquet file, or is damaged ({error})") from error
    except OSError as error:
        if error.errno is None:  # pyarrow's own, of a damaged page
            raise CorruptRecordError(f"{table} is no Parquet file, or is damaged ({error})") from error
        raise
    after = os.stat(table)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise CorruptRecordError(f"{table} was changed while it was read: open it again")
    return made, os.path.dirname(table), types
