# SPDX-License-Identifier: Apache-2.0
"""forge: data sets of any content whose every checksum is right, written by FORMAT.md alone.

A Record is a list of values, one a field; a Value is what an entry says and the stored bytes. Whoever forges may set
each number of an entry, a record head, an index page, a header or the manifest to anything: the checksums are
computed after it.
"""
import ctypes
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import second_reader as reader  # noqa: E402  the identity, and a reader of what honest writers wrote

PAGE = reader.PAGE
HEADER = "<8sIIIIQQQQQIIQQ"
HEADER_NAMES = ("magic", "version", "flags", "schema", "tag", "n", "data_end", "index_offset", "size", "n_pages",
                "index_crc", "zero", "lane0", "lane1")


class Checksum:
    """CRC32C by the library, and for second_reader as well, whose own is slow."""

    def __init__(self, library):
        self.function = ctypes.CDLL(library).pstk_crc32c
        self.function.restype = ctypes.c_uint32
        self.function.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64]
        reader.crc32c = self

    def __call__(self, data):
        data = bytes(data)
        return self.function(0, data, len(data))


class Value:
    """One field of one record. Fixed fields have only `stored`."""

    def __init__(self, stored, plain_size=None, plain_crc=None, codec=0, encoding=0, channels=0, bit_depth=0, width=0,
                 height=0, flags=0, zero=0):
        self.stored, self.plain_size, self.plain_crc = bytes(stored), plain_size, plain_crc
        self.codec, self.encoding, self.channels, self.bit_depth = codec, encoding, channels, bit_depth
        self.width, self.height, self.flags, self.zero = width, height, flags, zero
        self.stored_size = None  # None: the true one

    def copy(self, **changes):
        other = Value(self.stored)
        other.__dict__.update({**self.__dict__, **changes})
        return other


class Field:
    """A field of the schema, as the manifest has it; the maxima are found when the data set is written."""

    def __init__(self, name, kind, dtype=None, shape=None, codec="none", level=0, **attributes):
        self.name, self.kind, self.dtype, self.shape, self.codec, self.level = name, kind, dtype, shape, codec, level
        self.attributes = attributes

    def manifest(self):
        m = {"name": self.name, "kind": self.kind}
        if self.dtype:
            m["dtype"] = self.dtype
        if self.kind in reader.ARRAYS:
            m["shape"] = list(self.shape)  # a copy: a change of the manifest changes no schema
        m.update(self.attributes)
        m.update(codec=self.codec, level=self.level, max_stored=0, max_plain=0, stored_bytes=0, plain_bytes=0)
        if self.kind in reader.WITH_SIDES:
            m.update(max_width=0, max_height=0)
        if self.kind == "image":
            m["damaged"] = 0
        m.update(encodings={}, codecs={})
        if self.codec == "planes":
            m["equivalent"] = 0
        return m


class Forge:
    """One data set in the making. `shape` may be changed between the steps of write."""

    def __init__(self, crc, fields, records, dictionaries=()):
        """dictionaries: (name of the field, bytes), used by every record of the field that is compressed."""
        self.crc, self.fields, self.records, self.note = crc, fields, records, "forged"
        self.dictionaries = list(dictionaries)
        self.names = ["a", "b", "c"]
        self.read = [reader.Field(f.manifest()) for f in fields]
        self.head_size = reader.aligned(16 + sum(f.fixed_size if f.fixed else reader.ENTRY_SIZE for f in self.read))
        self.schema_crc = crc("".join(f.schema_line() for f in self.read).encode())
        self.tag = 0x5eed
        self.change_head = {}    # record: function(bytearray head), before its checksum
        self.change_offsets = None  # function(list of offsets)
        self.change_header = {}  # name in HEADER_NAMES: number
        self.change_manifest = None  # function(manifest as a dictionary) -> None, or its text

    def write_record(self, k, values):
        head, fixed, data, words = bytearray(16), b"", b"", []
        for f, value in zip(self.read, values):
            if f.fixed:
                fixed += value.stored
                words += reader.fixed_words(value.stored)
                f.count(len(value.stored), len(value.stored), "none", "none", 0, 0)
                continue
            crc = self.crc(value.stored)
            plain_size = len(value.stored) if value.plain_size is None else value.plain_size
            plain_crc = crc if value.plain_crc is None else value.plain_crc
            stored_size = len(value.stored) if value.stored_size is None else value.stored_size
            entry = (stored_size & 0xFFFFFFFF, plain_size & 0xFFFFFFFF, crc, plain_crc, value.codec, value.encoding,
                     value.channels, value.bit_depth, value.width, value.height, value.flags, value.zero)
            head += struct.pack(reader.ENTRY, *entry)
            words += reader.entry_words(entry)
            f.count(stored_size, plain_size, reader.CODECS.get(value.codec, "none"),
                    reader.ENCODINGS.get(value.encoding, "none"), value.width, value.height, value.flags)
            data += value.stored.ljust(reader.aligned(len(value.stored)), b"\0")
        head += fixed.ljust(self.head_size - len(head), b"\0")
        struct.pack_into("<IQ", head, 4, self.tag, k)
        if k in self.change_head:
            self.change_head[k](head)
        struct.pack_into("<I", head, 0, self.crc(head[4:]))
        return bytes(head) + data, words

    def write_index(self, offsets):
        pages, crcs = b"", b""
        for p in range(0, -(-len(self.records) // reader.PAGE_RECORDS)):
            some = offsets[p * reader.PAGE_RECORDS:(p + 1) * reader.PAGE_RECORDS + 1]
            page = struct.pack("<3I", p, self.tag, len(some) - 1) + struct.pack(f"<{len(some)}Q", *some)
            page = page.ljust(PAGE - 4, b"\0")
            crcs += struct.pack("<I", self.crc(page))
            pages += crcs[-4:] + page
        return pages, self.crc(crcs)

    def write_header(self, data_end, index_offset, n_pages, index_crc, lanes):
        values = dict(zip(HEADER_NAMES, (b"PSTKSHRD", 2, 0, self.schema_crc, self.tag, len(self.records), data_end,
                                         index_offset, index_offset + n_pages * PAGE, n_pages, index_crc, 0, *lanes)))
        values.update(self.change_header)
        header = struct.pack(HEADER, *values.values()).ljust(PAGE - 4, b"\0")
        return header + struct.pack("<I", self.crc(header))

    def write_dictionaries(self, folder):
        """Write the dictionaries; return what the manifest says of them."""
        said = []
        for i, (name, data) in enumerate(self.dictionaries):
            (folder / f"{i}.zdict").write_bytes(data)
            said.append({"file": f"{i}.zdict", "field": name, "bytes": len(data), "crc32c": f"{self.crc(data):08x}"})
        return said

    def manifest(self, total, n_bytes, header_crc, index_crc, dictionaries):
        fields = []
        for f, read in zip(self.fields, self.read):
            m = f.manifest()
            m.update((key, value) for key, value in read.found.items() if key in m)
            fields.append(m)
        shard = {"file": "shard-000000.pstk", "n_records": len(self.records), "bytes": n_bytes,
                 "header_crc32c": f"{header_crc:08x}", "index_crc32c": f"{index_crc:08x}",
                 "dictionaries": list(range(len(dictionaries)))}
        n_all = n_bytes + sum(d["bytes"] for d in dictionaries)
        return {"format": "penstock", "version": 2, "identity": total.text(self.schema_crc),
                "n_samples": len(self.records), "n_shards": 1, "bytes": n_all, "part": 0, "n_parts": 1,
                "note": self.note, "requires": [], "uses": [], "fields": fields, "names": self.names, "dictionaries": dictionaries,
                "shards": [shard]}

    def write(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True)
        identity, data, offsets = reader.Identity(), [], [PAGE]
        for k, values in enumerate(self.records):
            record, words = self.write_record(k, values)
            identity.add(words)
            data.append(record)
            offsets.append(offsets[-1] + len(record))
        data_end = offsets[-1]
        index_offset = -(-data_end // PAGE) * PAGE
        if self.change_offsets:
            self.change_offsets(offsets)
        pages, index_crc = self.write_index(offsets)
        header = self.write_header(data_end, index_offset, len(pages) // PAGE, index_crc, identity.lanes)
        shard = header + b"".join(data).ljust(index_offset - PAGE, b"\0") + pages
        (folder / "shard-000000.pstk").write_bytes(shard)
        total = reader.Identity()
        total.join(identity)
        m = self.manifest(total, len(shard), struct.unpack("<I", header[-4:])[0], index_crc,
                          self.write_dictionaries(folder))
        text = self.change_manifest(m) if self.change_manifest else None
        write_manifest(folder, text or json.dumps(m, ensure_ascii=False, separators=(",", ":")), self.crc)
        return folder


def write_manifest(folder, text, crc):
    """Write the text of one JSON object with its checksum as the last member."""
    body = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    body = body.rstrip()
    body = body[:-1] if body.endswith(b"}") else body
    (pathlib.Path(folder) / "manifest.json").write_bytes(body + b',"crc32c":"%08x"}\n' % crc(body))


def values_of(folder):
    """Return the fields, records and dictionaries of a data set that an honest writer wrote."""
    data = reader.Data(folder)
    fields = [Field(f.name, f.kind, f.m.get("dtype"), f.m.get("shape"), f.codec, f.m["level"],
                    **{key: f.m[key] for key in reader.ATTRIBUTES if key in f.m}) for f in data.fields]
    records = []
    for m in data.m["shards"]:
        shard = reader.Shard(data, m)
        for k in range(shard.n):
            values = []
            for f, entry, stored in shard.fields_of(k):
                if entry is None:
                    values.append(Value(stored))
                    continue
                _, plain_size, _, plain_crc, *others = entry
                values.append(Value(stored, plain_size, plain_crc, *others))
            records.append(values)
    return fields, records, [(m["field"], bytes(d)) for m, d in zip(data.m["dictionaries"], data.dictionaries)]
