# SPDX-License-Identifier: Apache-2.0
"""Values that no writer takes, in a data set: a stored value is changed so that its CRC-32C stays what it was."""
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
