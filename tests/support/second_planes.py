# SPDX-License-Identifier: Apache-2.0
"""Planes for the second reader, written from FORMAT.md and ITU T.81: a field's coefficients, and the
JPEG file that it was made of, where its scans are Huffman-coded and sequential.
"""
import functools
import os
import re
import struct

WIDE = -128
STANDARD_DC = bytes(range(12))
K5 = bytes.fromhex(
    "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728"
    "292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a83848586878889"
    "8a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2"
    "e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa")
K6 = bytes.fromhex(
    "000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a26"
    "2728292a35363738393a434445464748494a535455565758595a636465666768696a737475767778797a828384858687"
    "88898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9da"
    "e2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa")
COUNTS = [bytes.fromhex(hexadecimal) for hexadecimal in (
    "00010501010101010100000000000000", "0002010303020403050504040000017d",
    "00030101010101010101010000000000", "00020102040403040705040400010277")]
APP0 = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"


class Damaged(ValueError):
    pass


def need(condition, *what):
    if not condition:
        raise Damaged(" ".join(["planes:", *map(str, what)]))


def dht(number, counts, values):
    return b"\xff\xc4" + struct.pack(">HB", 19 + len(values), number) + counts + values


def segment(marker, data):
    return b"\xff" + bytes([marker]) + struct.pack(">H", 2 + len(data)) + data


def dqt(number, quant):
    wide = max(quant) > 255
    entries = [quant[y * 8 + x] for x, y in ZIGZAG]
    return segment(0xdb, bytes([wide << 4 | number]) + struct.pack(">64H" if wide else "64B", *entries))


def usual_skeleton(planes):
    """Return the skeleton that follows from the header."""
    components, tables = planes.components, []
    frame = struct.pack(">B2HB", 8, planes.height, planes.width, len(components))
    for i, c in enumerate(components):
        first = 1 if planes.color in (2, 5) and i in (1, 2) else 0
        if c.table not in tables[first:]:
            tables.append(c.table)
        frame += bytes([c.id, c.h << 4 | c.v, tables.index(c.table, first)])
    scan = b"".join(bytes([c.id, 0x11 if c is not components[0] else 0]) for c in components)
    scan = bytes([len(components)]) + scan + b"\x00\x3f\x00"
    codes = list(zip((0x00, 0x10, 0x01, 0x11), COUNTS, (STANDARD_DC, K5, STANDARD_DC, K6)))
    return b"".join([b"\xff\xd8", APP0, *(dqt(*table) for table in enumerate(tables)), segment(0xc0, frame),
                     *(dht(*code) for code in codes[:4 if len(components) > 1 else 2]),
                     segment(0xda, scan), b"\xff\xd9"])


def ceil(a, b):
    return -(-a // b)


# ---- quantisation ------------------------------------------------------------------------------

K1 = (16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
      14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
      49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99)
K2 = (17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
      47, 66, *[99] * 38)
# Places (x, y) of the zigzag order: diagonals, up and down in turn.
ZIGZAG = sorted(((x, y) for x in range(8) for y in range(8)),
                key=lambda p: (sum(p), p[0] if sum(p) % 2 == 0 else p[1]))


def read_quant(field, at):
    """Return a quantisation table in natural order, and where it ends."""
    form = field[at] if at < len(field) else 4
    end = at + (1 + (64 << form) if form < 2 else 2)
    need(form < 4 and end <= len(field), "quantisation table")
    if form < 2:
        return list(struct.unpack_from("<64H" if form else "64B", field, at + 1)), end
    quality = field[at + 1]
    need(1 <= quality <= 100, "quality", quality)
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    return [min(max((q * percent + 50) // 100, 1), 255) for q in (K1, K2)[form - 2]], end


# ---- contexts ------------------------------------------------------------------------------------

DEPTHS = ((1, 0), (3, 2), (6, 4), (10, 5), (14, 9), (25, 11), (28, 13), (36, 15), (49, 16))
FREQUENCIES = [0, *range(1, 9), *((5 + m) << (o + 1) for o in range(7) for m in range(4))]


def level(count, z):
    depth = [d for first, d in DEPTHS if z >= first][-1]
    return min(max(0, 2 * count + 6 - depth) // 3, 7)


LEVELS = [[level(count, z) if z else 0 for z in range(64)] for count in range(9)]


def unzigzag(high, low):
    v = high << 8 | low
    return -(v + 1) // 2 if v & 1 else v // 2


def to_i16(v):
    return (v + 0x8000) % 0x10000 - 0x8000


# ---- tables ------------------------------------------------------------------------------------

def read_table(data, signed):
    """Return a list of 1024 slots: (symbol, frequency, slot - the symbol's first)."""
    nibbles = [n for byte in data for n in (byte & 15, byte >> 4)]
    order = [0, *(s for v in range(1, 128) for s in (v, 256 - v)), 128] if signed else range(256)
    at, place, now, found = 0, 0, 8, []
    while place < 256:
        need(at < len(nibbles), "a table was cut off")
        nibble, at = nibbles[at], at + 1
        if nibble == 15:
            break
        need(at + (nibble == 13) + 2 * (nibble == 14) <= len(nibbles), "a table was cut off")
        if nibble == 13:
            place, at = place + nibbles[at] + 1, at + 1
            need(place <= 256, "a table of more than 256 symbols")
            continue
        if nibble == 14:
            now, at = nibbles[at] << 4 | nibbles[at + 1], at + 2
        else:
            now += nibble - 6
        need(1 <= now <= 36, "level", now)
        found.append((order[place], now))
        place += 1
    need(len(nibbles) - at < 2 and not any(nibbles[at:]), "a table of another size")
    need(found, "a table without symbols")
    frequencies = [FREQUENCIES[lv] for _, lv in found]
    top = max(range(len(found)), key=lambda i: (found[i][1], -i))
    frequencies[top] = 0
    frequencies[top] = 1024 - sum(frequencies)
    need(frequencies[top] > 0, "frequencies above 1024")
    return [(s, f, k) for (s, _), f in zip(found, frequencies) for k in range(f)]


def read_models(data, built_in=None):
    """Return the table of each context. built_in: those of the set, or None."""
    if built_in and not data:
        return built_in
    joined, at = int.from_bytes(data[:6], "little"), 9 if built_in else 6
    need(len(data) >= at and joined & 1 == 0 and joined >> 44 == 0, "bits of joined contexts")
    first = [c for c in range(44) if not joined >> c & 1]
    need(len(first) <= 24, len(first), "tables")
    own = int.from_bytes(data[6:9], "little") if built_in else (1 << len(first)) - 1
    need(own >> len(first) == 0, "bits of own tables")
    is_own = [own >> i & 1 for i in range(len(first))]
    sizes = data[at:at + 2 * sum(is_own)]
    at += 2 * sum(is_own)
    need(len(data) >= at, "models too short")
    sizes = iter(struct.unpack("<%dH" % sum(is_own), sizes))
    tables = []
    for context, mine, end in zip(first, is_own, [*first[1:], 44]):
        size = next(sizes) if mine else 0
        need(at + size <= len(data), "sizes of tables")
        table = read_table(data[at:at + size], 18 <= context < 34) if mine else built_in[context]
        tables += [table] * (end - context)
        at += size
    need(at == len(data), "sizes of tables")
    return tables


def read_sets():
    """Return the bytes of the built-in sets, from the appendix of FORMAT.md."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "spec", "FORMAT.md")
    with open(path, encoding="utf-8") as f:
        found = re.findall(r"^Set (\d+), (\d+) bytes:\n```\n([0-9a-f\n]+)```$", f.read(), re.M)
    sets = [bytes.fromhex(digits) for _, _, digits in found]
    listed = [(int(number), int(size)) for number, size, _ in found]
    need(listed == [(i, len(data)) for i, data in enumerate(sets, 1)], "sets")
    return sets


@functools.lru_cache(maxsize=None)
def built_in_tables(number):
    """Return the tables of a set, by context; None: there is no set."""
    if number == 0:
        return None
    sets = read_sets()
    need(number <= len(sets), "set", number)
    return read_models(sets[number - 1])


# ---- the coder ---------------------------------------------------------------------------------

class Coder:
    def __init__(self, data, n_lanes):
        need(len(data) % 2 == 0 and len(data) >= 4 * n_lanes, "size of a strip")
        self.n = n_lanes
        self.states = list(struct.unpack_from("<%dI" % n_lanes, data))
        need(min(self.states) >= 1 << 16, "a state below 2^16")
        words = data[4 * n_lanes:]
        self.words = list(struct.unpack("<%dH" % (len(words) // 2), words))[::-1]
        quarter = n_lanes // 4
        self.order = [4 * (j % quarter) + j // quarter for j in range(n_lanes)]

    def run(self, tables):
        """Return a symbol for each of these tables."""
        out = bytearray(len(tables))
        for group in range(0, len(tables), self.n):
            for lane, place in enumerate(self.order):
                i = group + place
                if i >= len(tables):
                    continue
                state = self.states[lane]
                out[i], frequency, behind = tables[i][state & 1023]
                state = frequency * (state >> 10) + behind
                if state < 1 << 16:
                    need(self.words, "words are used up")
                    state = state << 16 | self.words.pop()
                self.states[lane] = state
        return out

    def end(self):
        need(not self.words and set(self.states) == {1 << 16}, "a strip does not end as it must")


# ---- the field ---------------------------------------------------------------------------------

class Component:
    def __init__(self, field, at, frame):
        self.id, factors, self.quant, zero = field[at:at + 4]
        self.h, self.v = factors & 15, factors >> 4
        need(1 <= self.h <= 4 and 1 <= self.v <= 4 and zero == 0, "component")
        need(self.quant < frame.n_quant, "quantisation table of a component")

    def lay_out(self, frame):
        self.width = ceil(ceil(frame.width * self.h, frame.h), 8)
        self.height = ceil(ceil(frame.height * self.v, frame.v), 8)
        single = len(frame.components) == 1
        self.step = 1 if single else self.v
        self.columns = self.width if single else ceil(self.width, self.h) * self.h
        self.rows = self.height if single else ceil(self.height, self.v) * self.v
        self.blocks = [[None] * self.columns for _ in range(self.rows)]


class Planes:
    def __init__(self, field):
        need(len(field) >= 32, "shorter than its header")
        self.field = field
        (version, n, self.color, orientation, self.width, self.height, self.method, self.n_quant,
         self.n_lanes, self.set, self.parameters, self.strip_height, self.n_strips, models, skeleton,
         self.plain_skeleton) = struct.unpack_from("<4B2H4BI2H3I", field)
        need(version == 2, "version", version)
        need(n in {1: (1,), 2: (3,), 3: (3,), 4: (4,), 5: (4,)}.get(self.color, ()), "components, colour")
        need(1 <= orientation <= 8 and self.width and self.height, "orientation or size")
        need(self.method in (1, 2) and 1 <= self.n_quant <= 4, "header")
        need(self.n_lanes in (4, 16, 64), self.n_lanes, "lanes")
        at = 32 + 4 * n
        need(len(field) >= at, "shorter than its components")
        self.components = [Component(field, 32 + 4 * c, self) for c in range(n)]
        self.h, self.v = max(c.h for c in self.components), max(c.v for c in self.components)
        for component in self.components:
            component.lay_out(self)
        at = self.read_list(at)
        tables = []
        for _ in range(self.n_quant):
            table, at = read_quant(field, at)
            tables.append(table)
        for component in self.components:
            component.table = tables[component.quant]
        self.models = field[at:at + models]
        at = self.skip_zeros(at + models)
        self.strips = []
        for size, n_values in self.list:
            self.strips.append((field[at:at + size], n_values))
            at = self.skip_zeros(at + size)
        self.skeleton = field[at:]
        need(at <= len(field) and len(self.skeleton) == skeleton, "sizes do not add up")

    def skip_zeros(self, at):
        end = ceil(at, 4) * 4
        need(not any(self.field[at:end]), "bytes between that are not zero")
        return end

    def read_list(self, at):
        n_rows = self.components[0].rows // self.components[0].step
        need(0 < self.strip_height <= n_rows and self.n_strips == ceil(n_rows, self.strip_height), "strips")
        end = at + 8 * self.n_strips
        need(end <= len(self.field), "shorter than its list of strips")
        self.list = list(struct.iter_unpack("<2I", self.field[at:end]))
        for strip, (_, n_values) in enumerate(self.list):
            n_blocks = sum(len(rows) * c.columns for c, rows in self.strip_rows(strip))
            need(n_blocks <= 16384 or self.strip_height == 1, "strips of", n_blocks, "blocks")
            need(n_values <= 63 * n_blocks, "strip", strip, "of", n_values, "values")
        return end

    def strip_rows(self, strip):
        """Yield each component with its rows of a strip."""
        for c in self.components:
            height = self.strip_height * c.step
            yield c, range(strip * height, min(c.rows, (strip + 1) * height))

    def decode(self):
        """Give each component its blocks, of 64 coefficients in zigzag order."""
        tables = read_models(self.models, built_in_tables(self.set))
        for strip, (data, n_values) in enumerate(self.strips):
            self.decode_strip(strip, Coder(data, self.n_lanes), n_values, tables)

    def decode_strip(self, strip, coder, n_values, tables):
        places = [(c, y, x) for c, rows in self.strip_rows(strip) for y in rows for x in range(c.columns)]
        chroma = [c is not self.components[0] for c, _, _ in places]
        counts = coder.run([tables[k] for k in chroma])
        need(max(counts) <= 8, "a count above 8")
        found = coder.run([tables[17 - i if k else 2 + i] for k, n in zip(chroma, counts) for i in range(n)])
        maps, at = [], 0
        for n in counts:
            bits = int.from_bytes(found[at:at + n], "little")
            maps.append([z for z in range(64) if bits >> z & 1])
            at += n
        need(all(not m or m[0] for m in maps), "a map with bit 0")
        need(sum(map(len, maps)) == n_values, "another number of values than listed")
        contexts = [33 - LEVELS[n][z] if k else 18 + LEVELS[n][z]
                    for k, n, m in zip(chroma, counts, maps) for z in m]
        values = [v - 256 if v > 127 else v for v in coder.run([tables[c] for c in contexts])]
        high = coder.run([tables[34 + k] for k in chroma])
        low = coder.run([tables[(38 if h else 36) + k] for k, h in zip(chroma, high)])
        wide = [c > 25 for c, v in zip(contexts, values) if v == WIDE]
        wides = iter(list(zip(coder.run([tables[40 + k] for k in wide]),
                              coder.run([tables[42 + k] for k in wide]))))
        coder.end()
        values = iter([unzigzag(*next(wides)) if v == WIDE else v for v in values])
        first = {}
        for (c, y, x), m, h, lo in zip(places, maps, high, low):
            block = c.blocks[y][x] = [0] * 64
            for z in m:
                block[z] = next(values)
            before = c.blocks[y][x - 1][0] if x else first.get(c, 0)
            block[0] = to_i16(before + unzigzag(h, lo))
            first[c] = first.get(c, 0) if x else block[0]

    def rebuild(self, zstd):
        """Return the file; None where this reader does not code its scans anew."""
        skeleton = usual = usual_skeleton(self)
        if self.skeleton:
            skeleton = zstd(self.skeleton, usual, self.plain_skeleton)
        need(len(skeleton) == self.plain_skeleton, "size of the skeleton")
        self.decode()
        return File(self, skeleton).write() if self.method == 1 else None


# ---- scans -------------------------------------------------------------------------------------

class Bits:
    """A scan's bits; a byte of ff is followed by 00."""

    def __init__(self, fill):
        self.out, self.held, self.n, self.fill = bytearray(), 0, 0, fill

    def put(self, value, n):
        self.held, self.n = self.held << n | value & ((1 << n) - 1), self.n + n
        while self.n >= 8:
            self.n -= 8
            byte = self.held >> self.n & 255
            self.out += b"\xff\x00" if byte == 255 else bytes([byte])
        self.held &= (1 << self.n) - 1

    def put_number(self, code, run, v):
        """A Huffman code of run and category, then the category's bits."""
        n = abs(v).bit_length()
        self.put(*code[run << 4 | n])
        self.put(v if v > 0 else v - 1, n)

    def put_block(self, block, before, dc, ac):
        self.put_number(dc, 0, block[0] - before)
        run = 0
        for v in block[1:]:
            if not v:
                run += 1
                continue
            for _ in range(run // 16):
                self.put(*ac[0xf0])
            self.put_number(ac, run % 16, v)
            run = 0
        if run:
            self.put(*ac[0])

    def fill_up(self, marker):
        if self.n:
            self.put(255 if self.fill else 0, 8 - self.n)
        self.out += marker


def codes(counts, values):
    """Return (code, length) by value."""
    out, code, values = {}, 0, iter(values)
    for length, count in enumerate(counts, 1):
        for _ in range(count):
            out[next(values)] = (code, length)
            code += 1
        code <<= 1
    return out


class File:
    def __init__(self, planes, skeleton):
        self.planes, self.skeleton = planes, skeleton
        self.tables, self.interval = {}, 0

    def read_tables(self, data):
        at = 0
        while at < len(data):
            counts = data[at + 1:at + 17]
            end = at + 17 + sum(counts)
            self.tables[data[at]] = codes(counts, data[at + 17:end])
            at = end

    def write(self):
        """Return None where a scan is not Huffman-coded and sequential."""
        data, out, at, copied = self.skeleton, b"", 2, 0
        while at + 1 < len(data) and data[at:at + 2] != b"\xff\xd9":
            if data[at] != 0xff or data[at + 1] in (0x00, 0xff):  # bytes that a decoder passes over
                at += 1
                continue
            size, = struct.unpack_from(">H", data, at + 2)
            segment, marker, at = data[at + 4:at + 2 + size], data[at + 1], at + 2 + size
            if marker in (0xc2, 0xc9, 0xca):
                return None
            if marker == 0xc4:
                self.read_tables(segment)
            elif marker == 0xdd:
                self.interval, = struct.unpack(">H", segment)
            elif marker == 0xda:
                out, copied = out + data[copied:at] + self.scan(segment), at
        return out + data[copied:]

    def scan(self, segment):
        parts = []
        for i in range(segment[0]):
            number, tables = segment[1 + 2 * i:3 + 2 * i]
            component = next(c for c in self.planes.components if c.id == number)
            parts.append((component, self.tables[tables >> 4], self.tables[16 | tables & 15]))
        bits = Bits(not self.planes.parameters & 1)
        before = [0] * len(parts)
        for k, unit in enumerate(units([c for c, _, _ in parts])):
            if self.interval and k and k % self.interval == 0:
                bits.fill_up(bytes([0xff, 0xd0 + (k // self.interval - 1) % 8]))
                before = [0] * len(parts)
            for part, block in unit:
                bits.put_block(block, before[part], *parts[part][1:])
                before[part] = block[0]
        bits.fill_up(b"")
        return bytes(bits.out)


def units(components):
    """Yield the units of a scan, each a list of (number in the scan, block)."""
    if len(components) == 1:
        c = components[0]
        for y in range(c.height):
            for x in range(c.width):
                yield [(0, c.blocks[y][x])]
        return
    for y in range(components[0].rows // components[0].v):
        for x in range(components[0].columns // components[0].h):
            yield [(i, c.blocks[y * c.v + v][x * c.h + h]) for i, c in enumerate(components)
                   for v in range(c.v) for h in range(c.h)]
