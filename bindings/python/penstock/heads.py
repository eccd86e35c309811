# SPDX-License-Identifier: Apache-2.0
"""Width and height of one stored image, which the library's reader of single records does not tell: read
from the record's head, as FORMAT.md has it. Only pixels need it: files of other encodings tell it
themselves."""
from __future__ import annotations

import bisect
import itertools
import json
import math
import os
import struct

from . import _c, errors
from .schema import DTYPES, Field

PAGE_SIZE = 4096
PAGE_RECORDS = 509
HEAD_START = 16
ENTRY_SIZE = 24
FIXED_MAX = 4096  # bytes: a larger array does not lie in the head


def _fixed_size(field: Field) -> int | None:
    """Bytes in the head; None: the field has an entry there instead."""
    if field.is_scalar:
        return DTYPES[field.kind].size
    if not field.shape or None in field.shape or field.codec != "none":
        return None
    size = DTYPES[field.kind].size * math.prod(n or 0 for n in field.shape)
    return size if size <= FIXED_MAX else None


def _crc(data: bytes) -> int:
    return int(_c.lib.pstk_crc32c(0, data, len(data)))


class Heads:
    """The heads of one data set's records. Any number of threads may call size."""

    def __init__(self, path: str, fields: dict[str, Field]) -> None:
        with open(os.path.join(path, "manifest.json"), "rb") as file:
            shards = json.load(file)["shards"]
        self._files = [str(shard["file"]) for shard in shards]
        self._ends = list(itertools.accumulate(int(shard["n_records"]) for shard in shards))
        self._path = path
        fixed = {name: _fixed_size(field) for name, field in fields.items()}
        with_entry = [name for name, size in fixed.items() if size is None]
        self._entry = {name: HEAD_START + ENTRY_SIZE * i for i, name in enumerate(with_entry)}
        self._head_size = HEAD_START + ENTRY_SIZE * len(with_entry) + sum(n or 0 for n in fixed.values())

    def _shard_of(self, sample_id: int) -> tuple[str, int]:
        """File name, and the record's number in it."""
        i = bisect.bisect_right(self._ends, sample_id)
        return self._files[i], sample_id - (self._ends[i - 1] if i else 0)

    def size(self, sample_id: int, name: str) -> tuple[int, int]:
        """(height, width) of an image. Raises CorruptRecordError, OSError."""
        shard, record = self._shard_of(sample_id)
        with open(os.path.join(self._path, shard), "rb") as file:
            (index_offset,) = struct.unpack("<Q", os.pread(file.fileno(), 8, 40))
            page = os.pread(file.fileno(), PAGE_SIZE, index_offset + record // PAGE_RECORDS * PAGE_SIZE)
            at = 16 + 8 * (record % PAGE_RECORDS)
            head = b""
            if len(page) == PAGE_SIZE and _crc(page[4:]) == int.from_bytes(page[:4], "little"):
                head = os.pread(file.fileno(), self._head_size, struct.unpack_from("<Q", page, at)[0])
        if len(head) != self._head_size or _crc(head[4:]) != int.from_bytes(head[:4], "little"):
            raise errors.CorruptRecordError(f"{shard}: record {record}: its head or index page is damaged; "
                                            "`penstock verify` finds all damage")
        width, height = struct.unpack_from("<HH", head, self._entry[name] + 18)
        return height, width
