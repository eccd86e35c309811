#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second reader of the penstock record format, written from FORMAT.md and from nothing else.

    second_reader.py DATA [--json] [--planes]   check every byte; print what there is
    second_reader.py DATA --get ID FIELD    that field's plain bytes to standard output
    second_reader.py DATA --column NAME FIRST N    the bytes of these values of a column

Standard library only. Fields stored with zstd are decompressed where a zstd is to be had (a module,
or libzstd through ctypes), and files stored as planes are rebuilt with --planes (second_planes.py); otherwise their
stored checksum is what is checked, and the summary says so. Exit status: 0 whole, 1 damaged, 2 usage.
"""
import argparse
import functools
import json
import os
import re
import struct
import sys

import second_planes

HEADER = PAGE = 4096
PAGE_RECORDS = 509
FIXED_MAX = 4096
ALIGN = 16
ELEMENT = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8,
           "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
CODECS = {0: "none", 1: "zstd", 2: "planes"}
ENTRY = "<4I4B2I2H"
ENTRY_SIZE = struct.calcsize(ENTRY)
EQUIVALENT, PALETTE, DAMAGED = 1, 2, 4  # entry flags
ENCODINGS = {0: "none", 1: "jpeg", 2: "png", 3: "pixels"}  # 4 to 9 are reserved
# (channels, has palette): bit depths that an image of an encoding can have
SAMPLES = {0: {(0, False): (0,)},
           1: {(1, False): (8,), (3, False): (8,), (4, False): (8,)},
           2: {(1, False): (1, 2, 4, 8, 16), (2, False): (8, 16), (3, False): (8, 16), (4, False): (8, 16),
               (1, True): (1, 2, 4, 8)},
           3: {(1, False): (8, 16), (3, False): (8, 16), (4, False): (8, 16)}}
KINDS = ("bytes utf8 image scalar ndarray mask boxes keypoints polygons rle utf8_list image_list bytes_list "
         "mask_list").split()
LISTS = [k for k in KINDS if k.endswith("_list")]
ARRAYS = ("ndarray", "boxes", "keypoints", "polygons", "rle")
WITH_OF = ("mask", "boxes", "keypoints", "polygons", "rle", "mask_list")
WITH_COORDINATES = ("boxes", "keypoints", "polygons")
WITH_SIDES = ("image", "mask", "image_list", "mask_list")
SHAPES = {"boxes": r"0,4", "keypoints": r"0,[1-9]\d*,[23]", "polygons": r"0,2", "rle": r"0"}
ATTRIBUTES = ("of", "rows", "splits", "form", "coordinates")
INTEGERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q"}
MASK = (1 << 64) - 1


class Damaged(Exception):
    pass


def aligned(n):
    return -(-n // ALIGN) * ALIGN


def need(condition, *what):
    if not condition:
        raise Damaged(" ".join(str(w) for w in what))


# ---- checksum --------------------------------------------------------------------------------

def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc_table()


def crc32c(data):
    return crc32c_of_bytes(bytes(data))


@functools.lru_cache(maxsize=1 << 14)  # a test reads the same records many times
def crc32c_of_bytes(data):
    crc, table = 0xFFFFFFFF, TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


# ---- identity --------------------------------------------------------------------------------

P = (1 << 61) - 1
SEED = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
BASE = (0x0FD3B5A9C1E57E2B % P, 0x1B873593CC9E2D51 % P)


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def hash_words(words, lane):
    h = SEED[lane]
    for w in words:
        h = (mix(h ^ w) + SEED[lane]) & MASK
    return h % P


class Identity:
    def __init__(self):
        self.lanes, self.n = [0, 0], 0

    def add(self, words):
        for lane in (0, 1):
            self.lanes[lane] = (self.lanes[lane] * BASE[lane] + hash_words(words, lane) + 1) % P
        self.n += 1

    def join(self, other):
        for lane in (0, 1):
            self.lanes[lane] = (self.lanes[lane] * pow(BASE[lane], other.n, P)
                                + other.lanes[lane]) % P
        self.n += other.n

    def text(self, schema_crc):
        return "%016x%016x" % (mix(self.lanes[0] ^ mix(self.n)),
                               mix(self.lanes[1] ^ mix(schema_crc)))


def fixed_words(data):
    words = [len(data)]
    for i in range(0, len(data), 8):
        words.append(int.from_bytes(data[i:i + 8].ljust(8, b"\0"), "little"))
    return words


def entry_words(entry):
    _, plain_size, _, plain_crc, _, encoding, channels, depth, w, h, flags, _ = entry
    return [plain_size | plain_crc << 32,
            encoding | channels << 8 | depth << 16 | bool(flags & PALETTE) << 24, w | h << 32]


# ---- zstd, where there is one ----------------------------------------------------------------

def find_zstd():
    """Return a function (data, dictionary or None, plain size) -> bytes, or None."""
    try:
        from compression import zstd

        def decompress(data, dictionary, size):
            is_raw = bool(dictionary) and dictionary[:4] != b"\x37\xa4\x30\xec"
            return zstd.decompress(data, zstd.ZstdDict(dictionary, is_raw=is_raw) if dictionary else None)
        return decompress
    except ImportError:
        pass
    import ctypes
    import ctypes.util
    try:
        lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
        lib.ZSTD_createDCtx.restype = ctypes.c_void_p
        lib.ZSTD_decompress_usingDict.restype = ctypes.c_size_t
        lib.ZSTD_decompress_usingDict.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
            ctypes.c_char_p, ctypes.c_size_t]
        context = lib.ZSTD_createDCtx()
    except (OSError, AttributeError):
        return None

    def decompress(data, dictionary, size):
        out = ctypes.create_string_buffer(size + 1)
        n = lib.ZSTD_decompress_usingDict(context, out, size, bytes(data), len(data), dictionary,
                                          len(dictionary) if dictionary else 0)
        need(n == size, "zstd gives", n, "bytes instead of", size)
        return out.raw[:size]
    return decompress


ZSTD = find_zstd()

# ---- manifest --------------------------------------------------------------------------------


def check_keys(what, value, required, optional=()):
    need(isinstance(value, dict), what, "is no object")
    missing, unknown = set(required) - set(value), set(value) - set(required) - set(optional)
    need(not missing, what, "lacks", sorted(missing))
    need(not unknown, what, "has unknown", sorted(unknown))


def no_duplicates(pairs):
    keys = [k for k, _ in pairs]
    need(len(keys) == len(set(keys)), "duplicate key among", keys)
    return dict(pairs)


def check_numbers(key, value):
    need(not isinstance(value, (float, bool)), key, "is", value)
    need(not isinstance(value, int) or (-131072 <= value <= 22 if key == "level" else 0 <= value < 1 << 63), key, value)
    need(not isinstance(value, str) or "\0" not in value, key, "has a NUL")
    for inner in value if isinstance(value, list) else ():
        check_numbers(key, inner)
    for name, inner in value.items() if isinstance(value, dict) else ():
        check_numbers(name, inner)


def load_manifest(directory):
    with open(os.path.join(directory, "manifest.json"), "rb") as f:
        raw = f.read()
    end = re.fullmatch(rb',"crc32c":"([0-9a-f]{8})"}\n', raw[-22:])
    need(end, "manifest.json does not end with its checksum")
    need(int(end[1], 16) == crc32c(raw[:-22]), "manifest.json: checksum")
    m = json.loads(raw.decode("utf-8"), object_pairs_hook=no_duplicates)
    check_numbers("manifest.json", {key: value for key, value in m.items() if key != "extra"})
    need(m.get("format") == "penstock", "manifest.json: format", m.get("format"))
    need(m.get("version") == 2, "manifest.json: version", m.get("version"))
    check_features(m)
    check_keys("manifest.json", m,
               "format version identity n_samples n_shards bytes part n_parts note requires uses fields names "
               "dictionaries shards crc32c".split() + ["pack", "task", "attempt"] * (m.get("n_parts") == 0),
               ["extra"] + ["pack"] * (m.get("n_parts", 0) > 1))
    check_part(m)
    need(isinstance(m.get("extra", {}), dict), "manifest.json: extra", m.get("extra"))
    check_columns(m)
    return m


def check_part(m):
    part, n_parts = m["part"], m["n_parts"]
    need(isinstance(part, int) and isinstance(n_parts, int) and 0 <= part < max(n_parts, 1), "manifest.json: part", part)
    if "pack" in m:
        need(re.fullmatch("[0-9a-f]{32}", m["pack"]), "manifest.json: pack", m["pack"])
    if n_parts == 0:
        need(re.fullmatch("[A-Za-z0-9_.:=/-]{1,200}", m["task"]), "manifest.json: task", m["task"])
        need(isinstance(m["attempt"], int) and 0 <= m["attempt"] < 1 << 32, "manifest.json: attempt", m["attempt"])


TEXT = "[A-Za-z0-9_.-]"


def columns_of(m):
    return m["extra"]["columns"] if "columns" in m["uses"] else []


def check_columns(m):
    need("columns" not in m["uses"] or isinstance(m.get("extra", {}).get("columns"), list), "manifest.json: columns")
    columns = columns_of(m)
    need(len(columns) <= 256, "manifest.json:", len(columns), "columns")
    fields = {f["name"]: f for f in m["fields"]}
    for c in columns:
        has_fact = ["field", "fact"] if "fact" in c else []
        check_keys("column", c, ["name", "dtype", "files", "header_crc32c"] + has_fact)
        need(re.fullmatch(TEXT + "{1,79}", c["name"]) and re.fullmatch(TEXT + "{1,95}", c["files"]), "column", c)
        need(c["dtype"] in ELEMENT and len(c["header_crc32c"]) == len(m["shards"]), "column", c["name"])
        need(all(re.fullmatch("[0-9a-f]{8}", crc) for crc in c["header_crc32c"]), "column", c["name"])
        need(all(len(column_file(c, s)) <= 239 for s in m["shards"]), "column", c["name"], "file name")
        need(not has_fact or c["field"] in fields, "column", c["name"], "field")
        need(not has_fact or fact_ok(fields[c["field"]], c), "column", c["name"], "fact")
    for key in ("name", "files"):
        need(len({c[key] for c in columns}) == len(columns), "two columns of one", key)


def fact_ok(field, c):
    kind, n_variable = field["kind"], field.get("shape", []).count(0)
    varies = kind != "scalar" and (kind not in ARRAYS or n_variable > 0)
    return {"value": kind == "scalar", "size": varies and n_variable != 1, "length": n_variable == 1,
            "width": kind == "image", "height": kind == "image"}.get(c["fact"], False) and \
        c["dtype"] == (field["dtype"] if c["fact"] == "value" else "u32")


def column_file(c, shard):
    stem = shard["file"]
    return (stem[:-5] if stem.endswith(".pstk") and len(stem) > 5 else stem) + "." + c["files"] + ".pcol"


def check_features(m):
    names = []
    for key in ("requires", "uses"):
        need(isinstance(m.get(key), list) and len(m[key]) <= 64, "manifest.json:", key, m.get(key))
        names += m[key]
    for name in names:
        need(isinstance(name, str) and re.fullmatch("[a-z0-9_-]{1,63}", name), "manifest.json: feature", name)
    need(len(names) == len(set(names)), "manifest.json: a feature stands twice among", names)
    need(not m["requires"], "manifest.json: requires", m["requires"])


class Field:
    def __init__(self, m):
        self.kind = m.get("kind")
        need(self.kind in KINDS, "kind", self.kind)
        has_dtype = self.kind == "scalar" or self.kind in ARRAYS
        check_keys("field", m, ["name", "kind", "codec", "level", "max_stored", "max_plain",
                                "stored_bytes", "plain_bytes", "encodings", "codecs"]
                   + ["dtype"] * has_dtype + ["shape"] * (self.kind in ARRAYS)
                   + ["max_width", "max_height"] * (self.kind in WITH_SIDES)
                   + ["damaged"] * (self.kind == "image")
                   + ["equivalent"] * (m.get("codec") == "planes")
                   + ["of"] * (self.kind in WITH_OF) + ["form"] * (self.kind == "boxes")
                   + ["coordinates"] * (self.kind in WITH_COORDINATES),
                   ["rows"] * (self.kind in ARRAYS or self.kind in LISTS) + ["splits"] * (self.kind == "ndarray"))
        self.m, self.name, self.codec = m, m["name"], m["codec"]
        need(re.fullmatch(r"[A-Za-z0-9_.-]{1,63}", self.name), "field name", self.name)
        need(self.codec in CODECS.values(), "codec", self.codec)
        self.dtype = m.get("dtype", "-")
        self.shape = m.get("shape", [])
        need(not has_dtype or self.dtype in ELEMENT, "dtype", self.dtype)
        need(self.codec != "planes" or self.kind == "image", "planes of", self.kind)
        need(self.codec == "none" or self.kind not in ("scalar", "image_list", "mask_list"), "codec of", self.kind)
        self.of, self.rows, self.splits = m.get("of"), m.get("rows"), m.get("splits")
        self.check_attributes()
        self.fixed_size = self.find_fixed_size()
        self.fixed = self.fixed_size is not None
        self.found = dict(max_stored=0, max_plain=0, stored_bytes=0, plain_bytes=0, encodings={},
                          codecs={}, max_width=0, max_height=0, equivalent=0, damaged=0)

    def check_attributes(self):
        m, shape = self.m, ",".join(str(n) for n in self.shape)
        need(re.fullmatch(SHAPES.get(self.kind, ".*"), shape), self.name, "shape", shape)
        need(self.kind != "rle" or self.dtype == "u32", self.name, "dtype", self.dtype)
        need(m.get("form", "xyxy") in ("xyxy", "xywh", "cxcywh"), self.name, "form", m.get("form"))
        need(m.get("coordinates", "unit") in ("pixels", "unit"), self.name, "coordinates")
        need(m.get("coordinates") != "unit" or self.dtype not in INTEGERS, self.name, "coordinates of", self.dtype)
        for name in (self.rows, self.splits):
            need(name is None or re.fullmatch(r"[A-Za-z0-9_.-]{1,63}", name), self.name, "axis", name)
        need(not self.rows or self.kind in LISTS or (self.shape[0] == 0 and 0 not in self.shape[1:]), self.name, "rows")
        need(not self.splits or (self.shape == [0] and self.dtype in INTEGERS), self.name, "splits")

    def find_fixed_size(self):
        if self.kind == "scalar":
            return ELEMENT[self.dtype]
        if self.kind != "ndarray" or self.codec != "none" or 0 in self.shape:
            return None
        size = ELEMENT[self.dtype]
        for n in self.shape:
            size *= n
        return size if size <= FIXED_MAX else None

    def schema_line(self):
        shape = ",".join(str(n) for n in self.shape) or "-"
        attributes = "".join(f" {key}={self.m[key]}" for key in ATTRIBUTES if key in self.m)
        return f"{self.name} {self.kind} {self.dtype} {self.codec} {shape}{attributes}\n"

    def count(self, stored, plain, codec, encoding, width, height, flags=0):
        f = self.found
        f["equivalent"] += flags & EQUIVALENT
        f["damaged"] += flags & DAMAGED != 0
        for key, value in (("max_stored", stored), ("max_plain", plain), ("max_width", width),
                           ("max_height", height)):
            f[key] = max(f[key], value)
        f["stored_bytes"] += stored
        f["plain_bytes"] += plain
        for key, name in (("codecs", codec), ("encodings", encoding)):
            f[key][name] = f[key].get(name, 0) + 1

    def check_found(self):
        for key, value in self.found.items():
            if key in self.m:
                need(self.m[key] == value, "manifest.json: field", self.name, key, self.m[key],
                     "but found", value)

    def check_value(self, data):
        if self.kind == "utf8":
            data.decode("utf-8")
        if self.kind in LISTS:
            self.items(data)
        if self.kind not in ARRAYS:
            return
        shape, element = list(self.shape), ELEMENT[self.dtype]
        n_variable = shape.count(0)
        if n_variable == 1:
            unit = element
            for n in shape:
                unit *= n or 1
            need(len(data) % unit == 0, self.name, "is no whole number of rows")
            return
        if n_variable > 1:
            head = 8 * len(shape)
            need(len(data) >= head, self.name, "has no room for its shape")
            stored = struct.unpack_from("<%dQ" % len(shape), data)
            for a, b in zip(shape, stored):
                need(a in (0, b), self.name, "has another shape than the schema")
            shape, data = stored, data[head:]
        size = element
        for n in shape:
            size *= n
        need(size == len(data), self.name, "has", len(data), "bytes, its shape", size)

    def items(self, data):
        """Return [(item's bytes, its head or None)] of a list."""
        found = []
        n, = struct.unpack_from("<I", data)
        if self.kind in WITH_SIDES:
            need(len(data) >= 16 + 16 * n and not any(data[4:16]), self.name, "heads")
            heads = [struct.unpack_from("<I4B2I", data, 16 + 16 * i) for i in range(n)]
            at = 16 + 16 * n
        else:
            heads, at = [(size,) for size in struct.unpack_from("<%dI" % n, data, 4)], 4 + 4 * n
        for head in heads:
            begin = aligned(at) if self.kind in WITH_SIDES else at
            need(not any(data[at:begin]), self.name, "gap of a list")
            at = begin + head[0]
            need(at <= len(data), self.name, "items")
            found.append((data[begin:at], head if len(head) > 1 else None))
        need(at == len(data), self.name, "bytes after the last item")
        for item, head in found:
            if self.kind == "utf8_list":
                item.decode("utf-8")
        return found

    def n_rows(self, data):
        if self.kind in LISTS:
            return struct.unpack_from("<I", data)[0]
        unit = ELEMENT[self.dtype]
        for n in self.shape[1:]:
            unit *= n
        return len(data) // unit

    def integers(self, data):
        return struct.unpack("<%d%s" % (len(data) // ELEMENT[self.dtype], INTEGERS[self.dtype]), data)


# ---- shards ----------------------------------------------------------------------------------

class Data:
    def __init__(self, directory, planes=False):
        self.directory, self.planes = directory, planes
        m = self.m = load_manifest(directory)
        self.fields = [Field(f) for f in m["fields"]]
        names = [f.name for f in self.fields]
        need(names and len(set(names)) == len(names), "field names", names)
        self.schema_crc = crc32c("".join(f.schema_line() for f in self.fields).encode())
        self.entries = [f for f in self.fields if not f.fixed]
        self.entry_end = 16 + ENTRY_SIZE * len(self.entries)
        self.fixed_end = self.entry_end + sum(f.fixed_size for f in self.fields if f.fixed)
        self.head_size = aligned(self.fixed_end)
        self.check_lists()
        self.check_references()
        self.dictionaries = [self.load_dictionary(d) for d in m["dictionaries"]]
        self.n_not_decompressed = 0

    def check_lists(self):
        m = self.m
        for s in m["shards"]:
            check_keys("shard", s, ["file", "n_records", "bytes", "header_crc32c", "index_crc32c",
                                    "dictionaries"])
        for d in m["dictionaries"]:
            check_keys("dictionary", d, ["file", "field", "bytes", "crc32c"])
        files = [x["file"] for x in m["shards"] + m["dictionaries"]]
        need(len(set(files)) == len(files), "a file is listed twice")
        for name in files:
            need(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", name), "file name", name)
        need(m["n_shards"] == len(m["shards"]), "manifest.json: n_shards")
        need(m["n_samples"] == sum(s["n_records"] for s in m["shards"]), "manifest.json: n_samples")
        need(m["bytes"] == sum(x["bytes"] for x in m["shards"] + m["dictionaries"]),
             "manifest.json: bytes")

    def check_references(self):
        axes = {f.rows for f in self.fields if f.rows}
        split = [f.splits for f in self.fields if f.splits]
        need(len(set(split)) == len(split), "two fields split one axis of", split)
        for f in self.fields:
            need(f.of is None or f.of in [g.name for g in self.fields if g.kind == "image"], f.name, "of", f.of)
            need(f.splits is None or (f.splits in axes and f.splits != f.rows), f.name, "splits", f.splits)

    def check_axes(self, where, values, sides):
        """Check the axes that the fields of a record share. values: plain bytes by name; sides: of images."""
        rows = {}
        for f in self.fields:
            if f.rows and values[f.name] is not None:
                n = f.n_rows(values[f.name])
                need(rows.setdefault(f.rows, n) == n, where, "field", f.name, "has", n, "rows, others", rows[f.rows])
        for f in self.fields:
            if not f.splits or values[f.name] is None:
                continue
            lengths = f.integers(values[f.name])
            need(min(lengths, default=0) >= 0, where, "field", f.name, "has a negative length")
            need(sum(lengths) == rows.get(f.splits, sum(lengths)), where, "field", f.name, "sums to", sum(lengths))
        for f in self.fields:
            if f.kind == "rle" and values[f.name] is not None:
                self.check_runs(where, f, values, sides[f.of])
            need(f.kind != "mask" or sides[f.name] == sides[f.of], where, "mask", f.name, "of", sides[f.name])

    def check_runs(self, where, f, values, sides):
        runs, lengths = f.integers(values[f.name]), None
        for g in self.fields:
            if g.splits and g.splits == f.rows:
                lengths = g.integers(values[g.name]) if values[g.name] is not None else []
        at = 0
        for n in [len(runs)] if lengths is None else lengths:
            need(n == 0 or sum(runs[at:at + n]) == sides[0] * sides[1], where, "field", f.name, "mask at run", at)
            at += n

    def load_dictionary(self, d):
        with open(os.path.join(self.directory, d["file"]), "rb") as f:
            data = f.read()
        need(len(data) == d["bytes"], d["file"], "size")
        need("%08x" % crc32c(data) == d["crc32c"], d["file"], "checksum")
        need(d["field"] in [f.name for f in self.fields if f.codec == "zstd"], d["file"], "field", d["field"])
        need(data[:4] == b"\x37\xa4\x30\xec" and any(data[4:8]), d["file"], "is no zstd dictionary with an ID")
        return data

    def verify(self):
        total = Identity()
        for i, s in enumerate(self.m["shards"]):
            shard = Shard(self, s)
            total.join(shard.verify())
            for c in columns_of(self.m):
                column = Column(self.directory, c, i, s)
                column.need(column.tag == shard.tag, "tag")
                values = column.read()
                column.need("fact" not in c or values == shard.facts(c), "is not what the records have")
        for f in self.fields:
            f.check_found()
        need(total.n == self.m["n_samples"], "number of records")
        need(total.text(self.schema_crc) == self.m["identity"], "identity is",
             total.text(self.schema_crc), "not", self.m["identity"])

    def column(self, name, first, n):
        c = [c for c in columns_of(self.m) if c["name"] == name][0]
        values = b"".join(Column(self.directory, c, i, s).read() for i, s in enumerate(self.m["shards"]))
        size = ELEMENT[c["dtype"]]
        return values[first * size:(first + n) * size]

    def get(self, sample_id, name):
        need(0 <= sample_id < self.m["n_samples"], "no sample", sample_id)
        need(name in [f.name for f in self.fields], "no field", name)
        for s in self.m["shards"]:
            if sample_id < s["n_records"]:
                return Shard(self, s).get(sample_id, name)
            sample_id -= s["n_records"]


class Column:
    """A column's file beside a shard."""

    def __init__(self, directory, c, i, shard):
        self.c, self.file, self.size = c, column_file(c, shard), ELEMENT[c["dtype"]]
        with open(os.path.join(directory, self.file), "rb") as f:
            self.bytes = b = f.read()
        self.per_page = 4080 // self.size
        self.need(len(b) >= HEADER, "size")
        (magic, version, flags, self.tag, shard_crc, self.n, dtype, self.pages_crc, n_pages, size, zero) = \
            struct.unpack_from("<8s4IQ2I3Q", b)
        crc, = struct.unpack_from("<I", b, 4092)
        self.need(magic == b"PSTKCOLM" and version == 2 and flags == 0 and zero == 0, "kind")
        self.need(crc == crc32c(b[:4092]) and "%08x" % crc == c["header_crc32c"][i], "header checksum")
        self.need("%08x" % shard_crc == shard["header_crc32c"] and self.n == shard["n_records"], "another shard")
        self.need(list(ELEMENT)[dtype - 1] == c["dtype"], "dtype")
        self.need(b[64:144] == c["name"].encode().ljust(80, b"\0") and not any(b[144:4092]), "name or zeros")
        self.need(n_pages == -(-self.n // self.per_page) and size == len(b) == PAGE * (1 + n_pages), "size")
        self.page_tag = crc32c(b"%08x/%s/%s" % (self.tag, c["name"].encode(), c["dtype"].encode()))

    def need(self, condition, *what):
        need(condition, self.file + ":", *what)

    def read(self):
        values, crcs = b"", b""
        for p in range(len(self.bytes) // PAGE - 1):
            page = self.bytes[PAGE * (1 + p):][:PAGE]
            crc, number, tag, n = struct.unpack_from("<4I", page)
            self.need(crc == crc32c(page[4:]), "page", p, "checksum")
            self.need(number == p and tag == self.page_tag, "page", p, "number or tag")
            self.need(n == min(self.per_page, self.n - p * self.per_page), "page", p, "count")
            self.need(not any(page[16 + n * self.size:]), "page", p, "zeros")
            values += page[16:16 + n * self.size]
            crcs += page[:4]
        self.need(crc32c(crcs) == self.pages_crc, "pages checksum")
        return values


class Shard:
    def __init__(self, data, m):
        self.data, self.m, self.file = data, m, m["file"]
        with open(os.path.join(data.directory, self.file), "rb") as f:
            self.bytes = f.read()
        self.dictionary = {}
        for i in m["dictionaries"]:
            name = data.m["dictionaries"][i]["field"]
            need(name not in self.dictionary, self.file, "two dictionaries for", name)
            self.dictionary[name] = data.dictionaries[i]
        self.read_header()
        self.read_index()

    def need(self, condition, *what):
        need(condition, self.file + ":", *what)

    def read_header(self):
        b, m = self.bytes, self.m
        self.need(len(b) == m["bytes"] and len(b) >= HEADER + PAGE, "size", len(b))
        (magic, version, flags, schema, self.tag, self.n, self.data_end, self.index_offset, size,
         self.n_pages, self.index_crc, zero, lane0, lane1) = struct.unpack_from(
             "<8sIIIIQQQQQIIQQ", b)
        crc, = struct.unpack_from("<I", b, 4092)
        self.lanes = [lane0, lane1]
        self.need(magic == b"PSTKSHRD", "magic")
        self.need(crc == crc32c(b[:4092]), "header checksum")
        self.need("%08x" % crc == m["header_crc32c"], "header checksum in the manifest")
        self.need(version == 2 and flags == 0 and zero == 0, "version or flags")
        self.need(not any(b[88:4092]), "header zeros")
        self.need(schema == self.data.schema_crc, "schema checksum")
        self.need(self.n == m["n_records"] and 1 <= self.n < 1 << 32, "n_records")
        self.need(self.n_pages == -(-self.n // PAGE_RECORDS), "n_pages")
        self.need(self.index_offset == -(-self.data_end // PAGE) * PAGE, "index_offset")
        self.need(size == len(b) == self.index_offset + self.n_pages * PAGE, "file_size")
        self.need(not any(b[self.data_end:self.index_offset]), "padding")
        self.need("%08x" % self.index_crc == m["index_crc32c"], "index checksum in the manifest")

    def read_index(self):
        self.offsets, crcs = [HEADER], b""
        for p in range(self.n_pages):
            page = self.bytes[self.index_offset + p * PAGE:][:PAGE]
            crc, number, tag, n = struct.unpack_from("<4I", page)
            self.need(crc == crc32c(page[4:]), "page", p, "checksum")
            self.need(number == p and tag == self.tag, "page", p, "number or tag")
            self.need(n == min(PAGE_RECORDS, self.n - p * PAGE_RECORDS), "page", p, "count")
            offsets = struct.unpack_from("<510Q", page, 16)
            self.need(not any(offsets[n + 1:]), "page", p, "zeros")
            self.need(offsets[0] == self.offsets[-1], "page", p, "continues the one before")
            self.offsets += offsets[1:n + 1]
            crcs += page[:4]
        self.need(crc32c(crcs) == self.index_crc, "index checksum")
        self.need(self.offsets[-1] == self.data_end, "end of the last record")
        for a, b in zip(self.offsets, self.offsets[1:]):
            self.need(self.data.head_size <= b - a < 1 << 32, "record at", a, "has", b - a, "bytes")
            self.need(a % ALIGN == 0 and b % ALIGN == 0, "record at", a, "is not aligned")

    def fields_of(self, k):
        """Yield (field, entry or None, stored bytes) of record k, head checked."""
        record = self.bytes[self.offsets[k]:self.offsets[k + 1]]
        crc, tag, number = struct.unpack_from("<IIQ", record)
        self.need(crc == crc32c(record[4:self.data.head_size]), "record", k, "head checksum")
        self.need(tag == self.tag and number == k, "record", k, "tag or number")
        self.need(not any(record[self.data.fixed_end:self.data.head_size]), "record", k, "end of the head")
        at_entry, at_fixed, at_data = 16, self.data.entry_end, self.data.head_size
        for f in self.data.fields:
            if f.fixed:
                yield f, None, record[at_fixed:at_fixed + f.fixed_size]
                at_fixed += f.fixed_size
                continue
            entry = struct.unpack_from(ENTRY, record, at_entry)
            at_entry += ENTRY_SIZE
            end = at_data + entry[0]
            yield f, entry, record[at_data:end]
            at_data = aligned(end)
            self.need(not any(record[end:at_data]), "record", k, "gap after field", f.name)
        self.need(at_data == len(record), "record", k, "size")

    def plain(self, k, f, entry, stored):
        """Plain bytes of a field, checked; None where they cannot be had here."""
        if entry is None:
            return stored
        stored_size, plain_size, stored_crc, plain_crc, codec, encoding, channels, depth, w, h, flags, zero = entry
        where = "record %d field %s" % (k, f.name)
        self.need(len(stored) == stored_size, where, "stored size")
        self.need(crc32c(stored) == stored_crc, where, "stored checksum")
        self.need(codec in CODECS and encoding in ENCODINGS, where, "entry")
        self.need(codec == 0 or f.codec == CODECS[codec], where, "codec", codec)
        known = (codec == 2 and EQUIVALENT) | (encoding == 2 and PALETTE) | (codec == 0 and encoding == 1 and DAMAGED)
        self.need(flags & ~known == 0 and zero == 0, where, "flags", flags, zero)
        self.need(depth in SAMPLES[encoding].get((channels, bool(flags & PALETTE)), ()), where, "channels", channels,
                  "bit depth", depth)
        self.need(codec != 2 or encoding == 1, where, "planes of encoding", encoding)
        self.need((encoding != 0) == (f.kind in ("image", "mask")), where, "encoding", encoding)
        self.need(f.kind != "mask" or (encoding in (2, 3) and channels == 1), where, "is no mask", encoding, channels)
        self.need((w != 0 and h != 0) if encoding else (w == h == 0 or f.kind in WITH_SIDES), where, "width and height")
        if codec == 0:
            self.need(plain_size == stored_size and plain_crc == stored_crc, where, "plain size")
            return stored
        plain = None
        if codec == 2 and ZSTD and self.data.planes:
            plain = second_planes.Planes(stored).rebuild(ZSTD)
        elif codec == 1 and ZSTD:
            plain = ZSTD(stored, self.dictionary.get(f.name), plain_size)
        if plain is None:
            self.data.n_not_decompressed += 1
            return None
        self.need(len(plain) == plain_size and crc32c(plain) == plain_crc, where, "plain checksum")
        return plain

    def check_items(self, k, f, entry, plain):
        where, sides = "record %d field %s" % (k, f.name), [0, 0]
        for item, (size, encoding, channels, depth, flags, w, h) in f.items(plain):
            self.need(encoding in (1, 2, 3) and w and h, where, "item", encoding, w, h)
            self.need(flags & ~(PALETTE if encoding == 2 else 0) == 0, where, "flags of an item", flags)
            self.need(depth in SAMPLES[encoding].get((channels, bool(flags & PALETTE)), ()), where, "item's samples")
            self.need(f.kind == "image_list" or (channels == 1 and encoding != 1), where, "item is no mask")
            self.check_image(k, f, (0, 0, 0, 0, 0, encoding, channels, depth, w, h, flags), item)
            sides = [max(sides[0], w), max(sides[1], h)]
        self.need(sides == list(entry[8:10]), where, "largest item", sides)

    def facts(self, c):
        """Return the values of a column that the records give."""
        made = b""
        for k in range(self.n):
            f, entry, stored = [x for x in self.fields_of(k) if x[0].name == c["field"]][0]
            if c["fact"] == "value":
                made += stored
                continue
            row = ELEMENT.get(f.dtype, 1)
            for n in f.shape:
                row *= n or 1
            made += struct.pack("<I", {"size": entry[1], "length": entry[1] // row, "width": entry[8],
                                       "height": entry[9]}[c["fact"]])
        return made

    def check_image(self, k, f, entry, plain):
        encoding, channels, depth, w, h, flags = entry[5:11]
        where = "record %d field %s" % (k, f.name)
        if encoding == 3:
            self.need(len(plain) == w * h * channels * depth // 8, where, "pixels")
        elif encoding == 2:
            self.need(plain[:8] == b"\x89PNG\r\n\x1a\n", where, "PNG signature")
            self.need(struct.unpack_from(">II", plain, 16) == (w, h), where, "PNG size")
            colour = {(1, False): 0, (3, False): 2, (1, True): 3, (2, False): 4, (4, False): 6}
            self.need(tuple(plain[24:26]) == (depth, colour[channels, bool(flags & PALETTE)]), where, "PNG samples")
        else:
            self.need(plain[:2] == b"\xff\xd8", where, "JPEG signature")
            found = jpeg_frame(plain)
            self.need(found == (w, h, channels, depth), where, "JPEG frame", found)

    def verify(self):
        identity = Identity()
        for k in range(self.n):
            words, values, sides = [], {}, {}
            for f, entry, stored in self.fields_of(k):
                plain = values[f.name] = self.plain(k, f, entry, stored)
                sides[f.name] = entry[8:10] if entry else None
                if plain is not None:
                    f.check_value(plain)
                if entry is None:
                    words += fixed_words(stored)
                    f.count(len(stored), len(stored), "none", "none", 0, 0)
                    continue
                if plain is not None and entry[5]:
                    self.check_image(k, f, entry, plain)
                if plain is not None and f.kind in WITH_SIDES and f.kind in LISTS:
                    self.check_items(k, f, entry, plain)
                words += entry_words(entry)
                f.count(entry[0], entry[1], CODECS[entry[4]], ENCODINGS[entry[5]], entry[8],
                        entry[9], entry[10])
            self.data.check_axes("record %d" % k, values, sides)
            identity.add(words)
        self.need(identity.lanes == self.lanes, "identity lanes")
        return identity

    def get(self, k, name):
        for f, entry, stored in self.fields_of(k):
            if f.name == name:
                plain = self.plain(k, f, entry, stored)
                need(plain is not None, "field", name, "is compressed by what is not read here")
                return plain


def jpeg_frame(data):
    """Return (width, height, components, bits)"""
    at = 2
    while at + 10 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            depth, h, w, n = struct.unpack_from(">BHHB", data, at + 4)
            return w, h, n, depth
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None


# ---- command ---------------------------------------------------------------------------------

def summary(data):
    m = data.m
    return {"n_samples": m["n_samples"], "n_shards": m["n_shards"], "bytes": m["bytes"],
            "identity": m["identity"], "note": m["note"], "names": m["names"],
            "schema_crc": "%08x" % data.schema_crc, "n_dictionaries": len(m["dictionaries"]),
            "columns": {c["name"]: c["dtype"] for c in columns_of(m)},
            "fields": [f.m for f in data.fields], "n_not_decompressed": data.n_not_decompressed}


# Exceptions of a reader of damaged or wrong bytes; any other one is a fault of the reader.
REFUSALS = (Damaged, OSError, ValueError, KeyError, TypeError, IndexError, struct.error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--get", nargs=2, metavar=("ID", "FIELD"))
    parser.add_argument("--column", nargs=3, metavar=("NAME", "FIRST", "N"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--planes", action="store_true", help="rebuild the files stored as planes; slow")
    args = parser.parse_args()
    try:
        data = Data(args.data, args.planes)
        if args.get:
            sys.stdout.buffer.write(data.get(int(args.get[0]), args.get[1]))
            return 0
        if args.column:
            sys.stdout.buffer.write(data.column(args.column[0], int(args.column[1]), int(args.column[2])))
            return 0
        data.verify()
    except REFUSALS as e:
        print(f"{args.data}: {type(e).__name__}: {e}", file=sys.stderr)
        return 1
    found = summary(data)
    if args.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        print("%(n_samples)d samples in %(n_shards)d shards, %(bytes)d bytes, identity %(identity)s"
              % found)
        if data.n_not_decompressed:
            print(data.n_not_decompressed, "values: their stored checksum alone was checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
