# SPDX-License-Identifier: Apache-2.0
"""Data sets that no writer writes: a stored value is changed so that its CRC-32C stays what it was, or an index with right checksums
names bytes that its data set does not have."""
import pathlib

from penstock import _c


def _crc(data):
    return _c.lib.pstk_crc32c(0, bytes(data), len(data))


def _solution(columns, target):
    """Bits whose columns add up to the target, over GF(2)."""
    by_top, chosen, left = {}, 0, target
    for i, value in enumerate(columns):
        bits = 1 << i
        while value and value.bit_length() in by_top:
            other, others = by_top[value.bit_length()]
            value, bits = value ^ other, bits ^ others
        if value:
            by_top[value.bit_length()] = value, bits
    while left:
        value, bits = by_top[left.bit_length()]
        left, chosen = left ^ value, chosen ^ bits
    return chosen


def change(path, old, new):
    """Replace the value `old`, stored plain in one place of the data set, by `new`, of equally many bytes, except its
    last 4, which become what the checksum needs."""
    old, new = bytes(old), bytearray(new)
    n = len(old)
    assert n == len(new) and n >= 4
    new[-4:] = bytes(4)
    zeros = bytes(n)
    columns = [_crc(zeros[:-4] + (1 << i).to_bytes(4, "little")) ^ _crc(zeros) for i in range(32)]
    new[-4:] = _solution(columns, _crc(old) ^ _crc(new)).to_bytes(4, "little")
    assert _crc(old) == _crc(new)
    found = [(file, file.read_bytes()) for file in sorted(pathlib.Path(path).rglob("*")) if file.is_file()]
    holders = [(file, data) for file, data in found if old in data]
    assert len(holders) == 1 and holders[0][1].count(old) == 1
    file, data = holders[0]
    file.write_bytes(data.replace(old, bytes(new)))


def move_rows(folder):
    """Move what the one index in a folder names in its column 0 by 4 TiB. Returns the path of the index."""
    (index,) = (str(path) for path in pathlib.Path(folder).glob("*.index"))
    with open(index, "r+b") as file:
        data = bytearray(file.read())
        for at in range(4096, len(data) - 4095, 4096):
            page = data[at:at + 4096]  # CRC, shard, page, rows, and the least of column 0 in 8 bytes: src/store/index/table.c
            if _crc(page[4:]) == int.from_bytes(page[:4], "little"):
                page[16:24] = (int.from_bytes(page[16:24], "little") + (1 << 42)).to_bytes(8, "little")
                page[:4] = _crc(page[4:]).to_bytes(4, "little")
                data[at:at + 4096] = page
        file.seek(0)
        file.write(data)
    return index
