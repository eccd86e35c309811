# SPDX-License-Identifier: Apache-2.0
"""mutation: honest values, index pages, headers and manifests made hostile. All randomness is the caller's."""
import ctypes
import ctypes.util
import json
import struct
import zlib

from forge import reader

BYTES = (0, 1, 2, 3, 4, 8, 0x10, 0x3f, 0x40, 0x7f, 0x80, 0xc4, 0xd8, 0xda, 0xfe, 0xff)
NUMBERS = (0, 1, 2, 3, 255, 256, 32767, 32768, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
WIDE = NUMBERS + (1 << 32, 1 << 40, (1 << 44) + 1, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
# Sides above the limit of 178956970 pixels, or few pixels: what lies between may take the memory that it needs.
SIDES = ((65535, 65535), (65500, 65500), (40000, 35000), (1, 65535), (65535, 1), (1, 1), (3, 5), (0, 7), (8191, 8))


def spot(rng, size, head):
    """Return a place in `size` bytes: often among the first `head`, where formats keep their numbers."""
    return rng.randrange(max(1, min(size, head) if rng.random() < 0.6 else size))


def scramble(rng, data, donors=(), head=600):
    """Change some bytes: single ones, numbers, slices moved, cut, doubled or taken from another value."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, size = spot(rng, len(data), head), len(data)
        length = min(rng.choice((1, 2, 4, 16, 64, 500)), size - at)
        what = rng.randrange(9)
        if what == 0 and size:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1 and size:
            data[at] = rng.choice(BYTES)
        elif what == 2 and size >= 2:
            form = rng.choice((">H", "<H", "<I", ">I"))
            number = struct.pack(form, rng.choice(NUMBERS) & (0xffff if "H" in form else 0xffffffff))
            data[at:at + len(number)] = number[:size - at]
        elif what == 3:
            del data[at:at + length]
        elif what == 4:
            data[at:at] = data[at:at + length] * rng.choice((1, 2, 50))
        elif what == 5:
            data[at:at] = rng.randbytes(length)
        elif what == 6:
            del data[rng.randrange(size + 1):]
        elif what == 7:
            data[at:at + length] = bytes(length)
        elif donors:
            donor = rng.choice(donors)
            start = spot(rng, len(donor), head)
            data[at:at + length] = donor[start:start + length]
    return bytes(data)


# ---- zstd -------------------------------------------------------------------------------------------

def zstd():
    """Return a function bytes -> one frame."""
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_compressBound.restype = lib.ZSTD_compress.restype = ctypes.c_size_t
    lib.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    lib.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]

    def compress(data):
        out = ctypes.create_string_buffer(lib.ZSTD_compressBound(len(data)))
        size = lib.ZSTD_compress(out, len(out), data, len(data), 3)
        return out.raw[:size]
    return compress


def bomb(size, byte=0, window=17):
    """Return a frame of `size` equal bytes in blocks of 4 bytes, RFC 8878 3.1.1; window: its logarithm."""
    frame = struct.pack("<IBBQ", 0xFD2FB528, 0xC0, (window - 10) << 3, size)
    block = min(1 << 17, 1 << window)
    n, rest = divmod(size, block)
    sizes = [block] * n + [rest] * (rest > 0 or n == 0)
    return frame + b"".join((length << 3 | 1 << 1 | (i + 1 == len(sizes))).to_bytes(3, "little") + bytes([byte])
                            for i, length in enumerate(sizes))


def mutate_zstd(rng, value, donors):
    """Return a frame that is damaged, or says another size or window, or is followed by something."""
    what = rng.randrange(5)
    frame = value.stored
    if what == 0:
        frame = frame + rng.choice((b"\0", frame, struct.pack("<II", 0x184D2A50, 4) + b"skip"))
    elif what == 1:
        frame = struct.pack("<IBB", 0xFD2FB528, rng.randrange(256), rng.randrange(256)) + frame[6:]
    elif what == 2:
        frame = bomb(value.plain_size, rng.randrange(256), rng.choice((10, 17, 27, 31, 40)))
    else:
        frame = scramble(rng, frame, donors, 18)
    crc = value.plain_crc
    try:  # so that only the content is hostile, give it the checksum that it decompresses to
        crc = reader.crc32c(reader.ZSTD(frame, None, value.plain_size))
    except (reader.Damaged, MemoryError, OverflowError):
        pass
    return value.copy(stored=frame, plain_crc=crc)


# ---- images -----------------------------------------------------------------------------------------

def frame_of(jpeg):
    """Return the offset of the numbers in a JPEG's SOF segment, or None."""
    at = 2
    while at + 12 < len(jpeg) and jpeg[at] == 0xFF:
        if 0xC0 <= jpeg[at + 1] <= 0xCF and jpeg[at + 1] not in (0xC4, 0xC8, 0xCC):
            return at + 4
        at += 2 + struct.unpack_from(">H", jpeg, at + 2)[0]
    return None


def mutate_jpeg(rng, value, donors):
    """Return a damaged file; or one whose frame says another size, with an entry that says the same."""
    at = frame_of(value.stored)
    if at is None or rng.random() < 0.7:
        return value.copy(stored=scramble(rng, value.stored, donors))
    data, changes = bytearray(value.stored), {}
    if rng.random() < 0.5:
        width, height = rng.choice(SIDES)
        struct.pack_into(">HH", data, at + 1, height, width)
        changes = {"width": width, "height": height}
    else:
        data[at + rng.choice((0, 5, 6, 7, 8))] = rng.choice(BYTES)
    return value.copy(stored=bytes(data), **changes)


def chunks_of(png):
    at = 8
    while at + 12 <= len(png):
        length, name = struct.unpack_from(">I4s", png, at)
        yield name, png[at + 8:at + 8 + length]
        at += 12 + length


def png_of(chunks):
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I4s", len(data), name) + data
                                            + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)


def mutate_png(rng, value, donors):
    """Chunks damaged, dropped, doubled or swapped, with right checksums."""
    chunks, changes = [(name, data) for name, data in chunks_of(value.stored)], {}
    for _ in range(rng.choice((1, 1, 2, 4))):
        i = rng.randrange(len(chunks))
        name, data = chunks[i]
        what = rng.randrange(6)
        if what == 0 and name == b"IHDR" and len(data) == 13:
            width, height = rng.choice(SIDES)
            data, changes = struct.pack(">II", width, height) + data[8:], {"width": width, "height": height}
        elif what == 1:
            name = rng.choice((b"IDAT", b"PLTE", b"tRNS", b"IEND", b"IHDR", b"zTXt", b"iCCP", b"gAMA", b"abcd"))
        elif what == 2 and name == b"IDAT":
            data = zlib.compress(bytes(1 << 22))
        elif what == 3:
            chunks.insert(i, rng.choice(chunks))
        elif what == 4 and len(chunks) > 1:
            del chunks[i]
            continue
        else:
            data = scramble(rng, data, donors, 64)
        chunks[min(i, len(chunks) - 1)] = (name, data)
    return value.copy(stored=png_of(chunks), **changes)


def mutate_planes(rng, value, donors):
    """Return a damaged field; or one of another size, with an entry that says the same."""
    if rng.random() < 0.75:
        return value.copy(stored=scramble(rng, value.stored, donors, rng.choice((32, 60, 700, 4000))))
    width, height = rng.choice(SIDES)
    return value.copy(stored=value.stored[:4] + struct.pack("<HH", width, height) + value.stored[8:],
                      width=width, height=height)


def samples(rng, value):
    """Return a value of few pixels with any samples that pixels may have, of as many bytes as they need."""
    width, height = 1 + rng.randrange(9), 1 + rng.randrange(9)
    channels, depth = 1 if value.channels == 1 else rng.choice((1, 3, 4)), rng.choice((8, 16))
    return value.copy(stored=rng.randbytes(width * height * channels * depth // 8), plain_size=None, plain_crc=None,
                      channels=channels, bit_depth=depth, width=width, height=height)


def mutate_pixels(rng, value, donors):
    """Another size or other samples than the bytes have, or far more bytes than any image may have."""
    width, height = rng.choice(SIDES)
    if value.codec == 0 and rng.random() < 0.3:
        value = samples(rng, value)
    if rng.random() < 0.4:
        value = value.copy(channels=rng.choice((0, 1, 2, 3, 4, 255)), bit_depth=rng.choice((0, 1, 8, 16, 32, 255)))
        if rng.random() < 0.5:
            return value
    if value.codec == 0:
        return value.copy(width=width, height=height)
    what = rng.randrange(3)
    if what == 0:
        return mutate_zstd(rng, value, donors)
    size = width * height * value.channels * value.bit_depth // 8
    if what == 1 or not 64 < size < 1 << 32:
        return value.copy(width=width, height=height)
    # a true frame of that size: its checksum is not computed, it would take as long as the attack
    return value.copy(stored=bomb(size), plain_size=size, plain_crc=0, width=width, height=height)


# ---- other values -----------------------------------------------------------------------------------

def mutate_bytes(rng, value, donors):
    if value.codec == 1:
        return mutate_zstd(rng, value, donors)
    return value.copy(stored=scramble(rng, value.stored, donors), plain_size=None, plain_crc=None)


def mutate_text(rng, value, donors):
    if value.codec == 1:
        return mutate_zstd(rng, value, donors)
    at = rng.randrange(len(value.stored) + 1)
    hostile = rng.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\0", b"\x1b[2J"))
    return value.copy(stored=value.stored[:at] + hostile + value.stored[at:], plain_size=None, plain_crc=None)


def mutate_shape(rng, value, donors):
    """Return the head of an array whose dimensions are variable."""
    if value.codec == 1:
        return mutate_zstd(rng, value, donors)
    data = bytearray(value.stored)
    for at in range(0, min(len(data) - 7, 24), 8):
        if rng.random() < 0.6:
            struct.pack_into("<Q", data, at, rng.choice(WIDE))
    return value.copy(stored=bytes(data) if rng.random() < 0.8 else scramble(rng, data, donors, 24),
                      plain_size=None, plain_crc=None)


def mutate_list(rng, value, donors):
    """Return a list with other numbers before its items, or an entry with other sides."""
    if value.codec == 1:
        return mutate_zstd(rng, value, donors)
    if rng.random() < 0.1:
        width, height = rng.choice(SIDES)
        return value.copy(width=width, height=height)
    data = bytearray(value.stored)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(min(len(data) - 3, 120))
        if rng.random() < 0.5:  # a number; or a byte: encoding, channels, bits or flags
            struct.pack_into("<I", data, at // 4 * 4, rng.choice(NUMBERS + (5, 16, 17, len(data), len(data) - 16)) & 0xffffffff)
        else:
            data[at] = rng.choice(BYTES)
    return value.copy(stored=bytes(data) if rng.random() < 0.8 else scramble(rng, data, donors, 120),
                      plain_size=None, plain_crc=None)


def mutate_entry(rng, value, donors):
    """Change one number of the entry."""
    name = rng.choice(("plain_size", "plain_crc", "stored_size", "codec", "encoding", "channels", "bit_depth", "width",
                       "height", "flags", "zero"))
    if name in ("plain_size", "stored_size") and rng.random() < 0.9:  # the others are refused before anything is read
        size = len(value.stored) if value.plain_size is None else value.plain_size
        return value.copy(**{name: max(0, rng.choice((0, 1, size - 1, size + 1, 2 * size, size + 65536)))})
    most = {"codec": 0xff, "encoding": 0xff, "channels": 0xff, "bit_depth": 0xff, "flags": 0xffff,
            "zero": 0xffff}.get(name, 0xffffffff)
    return value.copy(**{name: rng.choice(NUMBERS) & most})


def mutate_value(rng, value, kind, donors):
    """Return a hostile copy of a value. kind: that of its field."""
    if rng.random() < 0.12:
        return mutate_entry(rng, value, donors)
    if kind in ("image", "mask"):
        if value.codec == 2:
            return mutate_planes(rng, value, donors)
        if value.codec == 1 and value.encoding != 3:
            return mutate_zstd(rng, value, donors)
        return (mutate_jpeg, mutate_png, mutate_pixels)[value.encoding - 1](rng, value, donors)
    if kind.endswith("_list"):
        return mutate_list(rng, value, donors)
    return {"utf8": mutate_text, "ndarray": mutate_shape}.get(kind, mutate_bytes)(rng, value, donors)


def mutate_head(rng):
    """Return a function that changes a record's head before its checksum."""
    at, number = rng.random(), rng.choice(WIDE)
    size = rng.choice((1, 2, 4, 8))

    def change(head):
        start = 4 + int(at * (len(head) - 4 - size))
        head[start:start + size] = (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return change


# ---- index, header, manifest ------------------------------------------------------------------------

def mutate_offsets(rng):
    """Return a function that changes a shard's offsets before the checksums of their pages."""
    number, at, step = rng.choice(WIDE), rng.random(), rng.choice((-4096, -16, -1, 1, 16, 1 << 31, 1 << 33))

    def change(offsets):
        i = int(at * len(offsets))
        offsets[i] = number if rng.random() < 0.5 else max(0, offsets[i] + step)
    return change


def mutate_header(rng):
    """Numbers of a shard's header."""
    name = rng.choice(("version", "flags", "schema", "tag", "n", "data_end", "index_offset", "size", "n_pages",
                       "index_crc", "zero", "lane0", "lane1"))
    narrow = name in ("version", "flags", "schema", "tag", "index_crc", "zero")
    return {name: rng.choice(NUMBERS if narrow else WIDE)}


HOSTILE_TEXTS = ("", ".", "..", "../../etc/passwd", "/dev/zero", "a/b", "shard-000000.pstk\0x", "x" * 100000,
                 "\x1b]0;title\x07\x1b[2J", "\x9b31m", "\u202e", "\ud800", "größe", "%s%n%d", "$(id)", "-rf", ".tmp-x",
                 "manifest.json", "con\r\nfused")
CONTROLS = ("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x00", "\x7f\x08", "\r\npenstock: all is well")
HOSTILE_VALUES = (None, True, [], {}, "text", 0.5, 1e308, -1, 1 << 64, 1 << 100, *WIDE)


def places(value, path=()):
    """Yield every place in a JSON value, as a path of keys."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


def mutate_manifest(rng, m):
    """Change one place of a manifest, or its text. Returns None, or the text."""
    path = rng.choice(list(places(m)))
    where = m
    for key in path[:-1]:
        where = where[key]
    key, what = path[-1], rng.randrange(10)
    if what == 0 and isinstance(where, dict):
        where["unknown"] = where.pop(key)
    elif what == 1:
        del where[key]
    elif what == 2 and isinstance(where, list):
        where.extend([where[key]] * rng.choice((1, 5, 3000)))
    elif what == 3:
        text = json.dumps(m)
        return scramble(rng, text.encode(), (), len(text))
    elif what == 4 and isinstance(where, dict):
        text = json.dumps(m)
        return text[:-1] + f',"{path[0]}":' + json.dumps(m[path[0]]) + "}"
    elif what == 5:
        deep = rng.choice((100, 3000, 200000))
        return json.dumps(m).replace('"note": "forged"', '"note": ' + "[" * deep + "]" * deep)
    elif isinstance(where[key], str):
        where[key] = rng.choice(HOSTILE_TEXTS)
    else:
        where[key] = rng.choice(HOSTILE_VALUES)
    return None
