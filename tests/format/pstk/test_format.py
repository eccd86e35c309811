#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_format.py: the second reader agrees with what the C writer wrote. TAP. PENSTOCK_WRITE_SAMPLE (or
the first argument) is the program tests/support/write_sample.c.

The content of each record is computed here once more, so that the values are compared and not only
their checksums.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

import second_planes
import second_reader

WRITE_SAMPLE = os.environ.get("PENSTOCK_WRITE_SAMPLE") or sys.argv[1]


def write(*arguments):
    subprocess.run([WRITE_SAMPLE, *map(str, arguments)], check=True)
    return arguments[0]


def tiny_images():
    with open(os.path.join(os.path.dirname(second_reader.__file__), "tiny_images.h")) as f:
        arrays = re.findall(r"\{([^}]*)\}", f.read())
    return [bytes(int(x, 16) for x in re.findall(r"0x(\w\w)", a)) for a in arrays]


JPEG, PNG, MASK = tiny_images()


def text(k):
    tags = "".join('"tag %d of this record", ' % (i * k % 31) for i in range(k % 13))
    return ('{"id": %d, "name": "größe №%d", "tags": [%s"end"]}' % (k, k * k, tags)).encode()


def noise(k):
    state, out = k + 1, bytearray()
    for _ in range(300):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append((state >> 16) & 0xFF)
    return bytes(out)


def shaped(shape, element):
    n = element
    for x in shape:
        n *= x
    head = b"".join(x.to_bytes(8, "little") for x in shape)
    return head + bytes((i // 2) & 0xFF for i in range(n))


def list_of(items):
    return struct.pack("<%dI" % (1 + len(items)), len(items), *map(len, items)) + b"".join(items)


def images_of(items):
    heads = {JPEG: (1, 1, 8, 0, 16, 8), PNG: (2, 3, 8, 0, 5, 3), MASK: (2, 1, 8, 2, 2, 2)}
    value = struct.pack("<I12x", len(items)) + b"".join(struct.pack("<I4B2I", len(x), *heads[x]) for x in items)
    for x in items:
        value += bytes(-len(value) % 16) + x
    return value


def objects(k):
    n, few = k % 6, k % 3
    points = [p for i in range(n) for p in range(i % 4)]
    return {
        "boxes": struct.pack("<%df" % (4 * n), *(i + d + 0.5 for i in range(n) for d in range(4))),
        "labels": struct.pack("<%dq" % n, *(k * i % 7 for i in range(n))),
        "keypoints": struct.pack("<%dd" % (6 * n), *((few if d % 3 == 2 else 1) / (1 + i)
                                                     for i in range(n) for d in range(6))),
        "points": struct.pack("<%dh" % (2 * len(points)), *(x // 2 - 2 for x in range(2 * len(points)))),
        "object_points": bytes(i % 4 for i in range(n)),
        "runs": struct.pack("<3I", 1, 13, 1) * max(n - 1, 0),
        "object_runs": struct.pack("<%dQ" % n, *(3 if i else 0 for i in range(n))),
        "captions": list_of(["größe".encode()[:i] if i < 2 else "größe".encode() for i in range(n)]),
        "pictures": images_of([(PNG, JPEG)[i % 2] for i in range(few)]),
        "blobs": list_of(["größe".encode()[:i] for i in range(few)]),
        "masks": images_of([MASK] * n),
    }


def expected(k):
    pixels = bytes((k + i * 5) & 0xFF for i in range(9 * 7 * 3))
    record = text(k)
    number = k.to_bytes(8, "little")
    half = noise(k) if k % 3 == 0 else record.ljust(200, b"\0")
    return {
        "image": pixels if k % 4 == 2 else PNG if k % 4 == 1 else JPEG,
        "image_zstd": PNG, "mask": struct.pack("<15H", *(k % 3 * 256 + i for i in range(15))),
        "bytes": noise(k)[:k % 300],
        "bytes_zstd": half[:k % 200] if k % 3 == 0 or k % 200 <= len(record) else None,
        "text": record, "text_zstd": record,
        "u8": number[:1], "i16": number[:2], "f32": number[:4], "i64": number,
        "fixed": bytes((k + i) & 0xFF for i in range(30)),
        "large": bytes((k * 7 + i * 3) & 0xFF for i in range(4800)),
        "fixed_zstd": bytes(i // 4 + k % 5 if i % 4 == 0 else 0 for i in range(256)),
        "one_variable": bytes((k ^ i) & 0xFF for i in range(k % 64 * 8)),
        "variable": shaped((k % 16, k // 2 % 16), 1),
        "variable_zstd": shaped((k % 8, 2, k % 6), 2),
        **objects(k),
    }


def check_content(data, n):
    compared = 0
    k = 0
    for m in data.m["shards"]:
        shard = second_reader.Shard(data, m)
        for i in range(shard.n):
            want = expected(k)
            for f, entry, stored in shard.fields_of(i):
                plain = shard.plain(i, f, entry, stored)
                if plain is None or want[f.name] is None:
                    continue
                assert plain == want[f.name], (k, f.name)
                compared += 1
            k += 1
    assert k == n, k
    return compared


def every_kind_of_field_reads_back(directory):
    data = second_reader.Data(write(os.path.join(directory, "kinds"), 200, 2, 256 << 10))
    data.verify()
    assert len(data.m["shards"]) > 3 and len(data.m["dictionaries"]) > 0
    assert data.m["names"] == ["cat", "dog", "größe"]
    print("# %d values compared, %d not decompressed"
          % (check_content(data, 200), data.n_not_decompressed))


def bytes_do_not_depend_on_threads(directory):
    one, many = (write(os.path.join(directory, "threads%d" % n), 120, n) for n in (1, 5))
    assert sorted(os.listdir(one)) == sorted(os.listdir(many))
    for name in os.listdir(one):
        with open(os.path.join(one, name), "rb") as a, open(os.path.join(many, name), "rb") as b:
            assert a.read() == b.read(), name


def identity_is_of_the_content(directory):
    large, small = (write(os.path.join(directory, "size%d" % n), 120, 1, n)
                    for n in (16 << 20, 64 << 10))
    one, two = second_reader.Data(large), second_reader.Data(small)
    one.verify()
    two.verify()
    assert len(one.m["shards"]) == 1 < len(two.m["shards"])
    assert one.m["identity"] == two.m["identity"]


def parts_join_to_the_whole(directory):
    whole = second_reader.Data(write(os.path.join(directory, "whole"), 90))
    paths = []
    total = second_reader.Identity()
    for i in range(3):
        part = second_reader.Data(write(os.path.join(directory, "part%d" % i), 90, 1, 256 << 10, i, 3))
        part.verify()
        paths.append(part.directory)
        assert (part.m["part"], part.m["n_parts"]) == (i, 3)
        for m in part.m["shards"]:
            shard = second_reader.Shard(part, m)
            run = second_reader.Identity()
            run.lanes, run.n = list(shard.lanes), shard.n
            total.join(run)
    assert total.text(whole.schema_crc) == whole.m["identity"]
    merged = os.path.join(directory, "merged")
    write("--merge", merged, *reversed(paths))
    data = second_reader.Data(merged)
    data.verify()
    assert data.m["identity"] == whole.m["identity"] and data.m["n_parts"] == 1
    check_content(data, 90)


def parts_of_tasks_join_in_the_order_of_the_list(directory):
    whole = second_reader.Data(write(os.path.join(directory, "whole"), 90))
    pack, keys = "0123456789abcdef" * 2, ["day=3/z", "a:1", "m"]
    paths, tags = [], []
    for i, key in enumerate(keys):
        path = os.path.join(directory, "task%d" % i)
        write("--task", pack, key, 7 * i, path, 90, 1, 64 << 10, i, 3)
        part = second_reader.Data(path)
        part.verify()
        paths.append(path)
        assert [part.m[k] for k in ("part", "n_parts", "pack", "task", "attempt")] == [0, 0, pack, key, 7 * i]
        for number, m in enumerate(part.m["shards"]):
            tags.append(second_reader.Shard(part, m).tag)
            text = "%s/%s/%d/%d/%08x" % (pack, key, 7 * i, number, content_of_first(part, m))
            assert tags[-1] == second_reader.crc32c(text.encode()), text
    assert len(set(tags)) == len(tags) > 3, tags
    merged = os.path.join(directory, "merged")
    write("--merge", merged, *paths)
    data = second_reader.Data(merged)
    data.verify()
    assert data.m["identity"] == whole.m["identity"] and data.m["n_parts"] == 1 and "task" not in data.m
    check_content(data, 90)


def content_of_first(data, m):
    """Return the content of a shard's first record as this writer's tags give it."""
    crc = b""
    for f, entry, stored in second_reader.Shard(data, m).fields_of(0):
        crc += stored if entry is None else entry[3].to_bytes(4, "little")
    return second_reader.crc32c(crc)


def index_pages_continue_each_other(directory):
    data = second_reader.Data(write(os.path.join(directory, "pages"), 1100, 2, 64 << 20))
    assert [m["n_records"] for m in data.m["shards"]] == [1100]
    assert second_reader.Shard(data, data.m["shards"][0]).n_pages == 3


def is_refused(path):
    """In this process: a Python of its own for each damaged byte takes minutes."""
    try:
        second_reader.Data(path).verify()
    except second_reader.REFUSALS:
        return True
    return False


def damage_is_refused(directory):
    path = write(os.path.join(directory, "damage"), 12)
    n_columns = 0
    for name in sorted(os.listdir(path)):
        file = os.path.join(path, name)
        with open(file, "rb") as f:
            good = f.read()
        places = [0, 9, 20, 100, len(good) // 2, len(good) - 1]
        if name.endswith(".pcol"):  # dozens of one structure: each is damaged at two places, by turns
            places, n_columns = [places[n_columns % 6], places[(n_columns + 3) % 6]], n_columns + 1
        for at in places:
            bad = bytearray(good)
            bad[at % len(good)] ^= 0x10
            with open(file, "wb") as f:
                f.write(bad)
            assert is_refused(path), (name, at)
        with open(file, "wb") as f:
            f.write(good)


def manifests_that_name_no_task_are_refused(directory):
    path = os.path.join(directory, "task")
    write("--task", "0123456789abcdef" * 2, "a", 3, path, 2)
    file = os.path.join(path, "manifest.json")
    with open(file, "rb") as f:
        good = f.read()
    for old, new in [(b'"n_parts":0', b'"n_parts":1'), (b'"part":0', b'"part":1'), (b'"task":"a"', b'"task":""'),
                     (b'"task":"a"', b'"task":"a b"'), (b'"pack":"0', b'"pack":"A'), (b'"attempt":3', b'"attempt":-3'),
                     (b'"task":"a",\n', b"")]:
        assert good.count(old) == 1, old
        bad = good.replace(old, new)[:-22]
        with open(file, "wb") as f:
            f.write(bad + b',"crc32c":"%08x"}\n' % second_reader.crc32c(bad))
        assert is_refused(path), (old, new)
        merged = subprocess.run([WRITE_SAMPLE, "--merge", path + "-m", path], stderr=subprocess.DEVNULL)
        assert merged.returncode == 1, (old, new)
    with open(file, "wb") as f:
        f.write(good)
    second_reader.Data(path).verify()


def command_gives_a_field(directory):
    path = write(os.path.join(directory, "get"), 10)
    run = subprocess.run([sys.executable, second_reader.__file__, path, "--get",
                          "7", "text"], stdout=subprocess.PIPE, check=True)
    assert run.stdout == text(7)


def built_in_tables_of_the_document_are_the_librarys(_):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../src/image/planes/sets.c")
    with open(source) as f:
        arrays = re.findall(r"uint8_t set_\d\[\] = \{([^}]*)\}", f.read())
    sets = [bytes(int(x, 16) for x in re.findall(r"0x(\w\w)", array)) for array in arrays]
    assert len(sets) == 4 and sets == second_planes.read_sets()
    for number in range(1, 5):
        assert len(second_planes.built_in_tables(number)) == 44
    try:
        second_planes.built_in_tables(5)
    except second_planes.Damaged:
        return
    raise AssertionError("a set 5")


CASES = [every_kind_of_field_reads_back, bytes_do_not_depend_on_threads,
         identity_is_of_the_content, parts_join_to_the_whole, parts_of_tasks_join_in_the_order_of_the_list,
         index_pages_continue_each_other, manifests_that_name_no_task_are_refused, damage_is_refused, command_gives_a_field,
         built_in_tables_of_the_document_are_the_librarys]


def main():
    failed = 0
    print("1..%d" % len(CASES))
    for i, case in enumerate(CASES):
        with tempfile.TemporaryDirectory() as directory:
            try:
                case(directory)
                print("ok %d - %s" % (i + 1, case.__name__), flush=True)
            except Exception as e:
                failed += 1
                print("# %s: %s" % (type(e).__name__, e))
                print("not ok %d - %s" % (i + 1, case.__name__), flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
