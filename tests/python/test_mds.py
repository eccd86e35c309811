# SPDX-License-Identifier: Apache-2.0
"""Data sets of MosaicML streaming read in place. This file writes the published layout by itself: it is the oracle."""
import bz2
import gzip
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import time
import unittest.mock

import forge
import penstock
from data_fixture import Case, image_file, np, optional, picture

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/mds"
N = 101  # a prime number: no batch size divides it
CODES = {"uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "float16": 18, "uint32": 32, "int32": 33, "float32": 34,
         "uint64": 64, "int64": 65, "float64": 66}


def array(values, has_dtype=True, width=None):
    """Return the encoding "ndarray"; without has_dtype that of "ndarray:DTYPE"."""
    if width is None:
        width = sum(max(values.shape) >= limit for limit in (1 << 8, 1 << 16, 1 << 32))
    head = bytes([CODES[values.dtype.name]]) if has_dtype else b""
    return head + bytes([values.ndim << 2 | width]) + np.array(values.shape, f"<u{1 << width}").tobytes() + values.tobytes()


def pil(values, mode):
    height, width = values.shape[:2]
    return struct.pack("<III", width, height, len(mode)) + mode.encode() + values.tobytes()


def image_list(files, placeholder):
    return bytes(4 * placeholder) + struct.pack(f"<I{len(files)}I", len(files), *map(len, files)) + b"".join(files)


def shard(columns, samples):
    """Return the bytes of a shard. columns: (name, encoding, size or None); samples: lists of encoded values."""
    config = b'{"version": 2}'
    bodies = [b"".join(struct.pack("<I", len(v)) for v, c in zip(sample, columns) if c[2] is None) + b"".join(sample)
              for sample in samples]
    offsets = np.cumsum([4 + 4 * (len(bodies) + 1) + len(config), *map(len, bodies)])
    return struct.pack("<I", len(bodies)) + offsets.astype("<u4").tobytes() + config + b"".join(bodies)


def entry(columns, name, data, n, **more):
    """Return the entry of a shard in index.json."""
    return dict({"column_names": [c[0] for c in columns], "column_encodings": [c[1] for c in columns],
                 "column_sizes": [c[2] for c in columns], "compression": None, "format": "mds", "hashes": [],
                 "raw_data": {"basename": name, "bytes": len(data), "hashes": {}}, "samples": n,
                 "size_limit": 1 << 26, "version": 2, "zip_data": None}, **more)


def every_encoding(i):
    """Return {column: (encoding, size, encoded, decoded)} of sample i."""
    random = np.random.default_rng(i)
    out = {"bytes": ("bytes", None, random.bytes(i % 7), None), "str": ("str", None, f"é {i}".encode(), f"é {i}"),
           "int": ("int", 8, struct.pack("<q", -i), -i), "json": ("json", None, b'{"i": %d}' % i, '{"i": %d}' % i),
           "str_int": ("str_int", None, str(-i * 10**15).encode(), -i * 10**15),
           "str_float": ("str_float", None, b"1.5e-07", "1.5e-07"),
           "str_decimal": ("str_decimal", None, b"0.10", "0.10")}
    out["bytes"] = (*out["bytes"][:3], out["bytes"][2])
    for dtype in CODES:
        value = np.frombuffer(random.bytes(8), dtype)[0] if dtype[0] != "f" else np.dtype(dtype).type(random.random())
        out[dtype] = (dtype, value.nbytes, value.tobytes(), value.item())
        ragged = np.frombuffer(random.bytes(8 * (1 + i % 5)), dtype)
        out[f"of-{dtype}"] = ("ndarray", None, array(ragged), ragged)
    cube = random.integers(0, 1000, (i % 3 + 1, 4, i % 300 + 1), dtype="int32")
    out["cube"] = ("ndarray:int32", None, array(cube, False), cube)
    fixed = random.random((2, 3)).astype("float32")
    out["fixed"] = ("ndarray:float32:2,3", 24, fixed.tobytes(), fixed)
    return out


def every_image(i):
    gray, rgb = picture(i)[:, :, 0].copy(), picture(i)
    rgba = np.concatenate([rgb, gray[:, :, None]], 2)
    jpegs, pngs = [image_file(i + k) for k in range(i % 3)], [image_file(i + k, "PNG") for k in range(1 + i % 2)]
    return {"jpeg": ("jpeg", None, image_file(i), image_file(i)), "png": ("png", None, image_file(i, "PNG"), image_file(i, "PNG")),
            "pil": ("pil", None, *[(pil(gray, "L"), gray), (pil(rgb, "RGB"), rgb), (pil(rgba, "RGBA"), rgba)][i % 3]),
            "jpeg_array": ("jpeg_array", None, image_list(jpegs, 0), jpegs),
            "jpegarray": ("jpegarray", None, image_list(jpegs, 0), jpegs),
            "jpegs": ("list[jpeg]", None, image_list(jpegs, 1), jpegs), "pngs": ("list[png]", None, image_list(pngs, 1), pngs)}


class Mds(Case):
    def write(self, samples, sizes=(30, 1, 40, 30), name="data", folders=("",) * 9, **more):
        """samples: dicts as above; sizes: samples of each shard. Returns the folder."""
        path = self.path(name)
        names = sorted(samples[0])
        columns = [(c, *samples[0][c][:2]) for c in names]
        shards, first = [], 0
        for k, n in enumerate(sizes):
            part = samples[first:first + n]
            first += n
            data = shard(columns, [[sample[c][2] for c in names] for sample in part])
            basename = os.path.join(folders[k], f"shard.{k:05}.mds")
            os.makedirs(os.path.dirname(os.path.join(path, basename)), exist_ok=True)
            with open(os.path.join(path, basename), "wb") as file:
                file.write(data)
            shards.append(entry(columns, basename, data, len(part), **more))
        self.put_index(shards, path)
        return path

    def put_index(self, shards, path=None):
        with open(os.path.join(path or self.path(), "index.json"), "w", encoding="ascii") as file:
            file.write(shards if isinstance(shards, str) else json.dumps({"version": 2, "shards": shards}, sort_keys=True))

    def index(self):
        with open(os.path.join(self.path(), "index.json"), encoding="ascii") as file:
            return json.load(file)["shards"]

    def small(self, n=N, **keywords):
        return self.write([{"a": ("int", 8, struct.pack("<q", i), i), "b": ("str", None, b"x" * (i % 90), "x" * (i % 90)),
                            "c": ("bytes", None, bytes([i] * 40), bytes([i] * 40))} for i in range(n)], **keywords)

    def assert_same(self, got, wanted, what):
        if isinstance(wanted, np.ndarray):
            self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape), what)
            self.assertEqual(got.tobytes(), wanted.tobytes(), what)
        elif isinstance(wanted, list):
            self.assertEqual([bytes(item) for item in got], wanted, what)
        else:
            self.assertEqual(got, wanted, what)

    def check(self, path, samples):
        with penstock.Dataset(path) as data:
            self.assertEqual((len(data), data.info.format, data.info.has_checksums), (len(samples), "mds", False))
            for i, sample in enumerate(samples):
                got = data[i]
                self.assertEqual(sorted(got), sorted(sample))
                for name, value in sample.items():
                    self.assert_same(got[name], value[3], (i, name))
                    self.assert_same(data.get(i, name), value[3], (i, name))


class Right(Mds):
    def test_every_encoding_without_images(self):
        samples = [every_encoding(i) for i in range(N)]
        path = self.write(samples)
        self.check(path, samples)
        with penstock.Dataset(path) as data:
            self.assertEqual((data.schema["of-int16"].kind, data.schema["fixed"].shape, data.schema["cube"].shape),
                             ("int16", (2, 3), (None, None, None)))

    def test_data_written_by_the_real_library_is_read(self):
        """tests/golden/mds: test_mds_streaming.py says how it was made."""
        shutil.copytree(GOLDEN, self.path())
        self.check(self.path(), [every_encoding(i) for i in range(5)])

    def test_every_encoding_of_images(self):
        optional("PIL.Image")
        samples = [every_image(i) for i in range(13)]
        path = self.write(samples, (13,))
        self.check(path, samples)
        outputs = {name: penstock.image(name, [penstock.ops.Resize((16, 16))])
                   for name in ("jpeg", "png", "pil")}
        with penstock.Loader(path, batch_size=13, order="sequential", framework="numpy", outputs=outputs) as loader:
            batch = next(iter(loader.epoch(0)))
            for i in range(13):
                if i % 3:
                    self.assertEqual(np.asarray(batch["pil"])[i].tobytes(), np.asarray(batch["png"])[i].tobytes())

    def test_pixels_of_16_bits(self):
        samples = [{"x": ("pil", None, pil(values, "I;16"), values)} for values in
                   (np.arange(i, i + 35, dtype="uint16").reshape(5, 7) * 1000 for i in range(5))]
        self.check(self.write(samples, (5,)), samples)

    def test_loaders_give_the_same_values(self):
        samples = [every_encoding(i) for i in range(N)]
        path = self.write(samples)
        outputs = {"int": penstock.scalar("int"), "str_int": penstock.scalar("str_int"), "fixed": penstock.tensor("fixed"),
                   "ragged": penstock.ragged("of-int16"), "f16": penstock.scalar("float16")}
        orders = {}
        for keywords in ({"order": "sequential"}, {"order": "full", "seed": 3}):
            for threads, reader, size in ((1, "threads", 1), (3, "io_uring", 32), (2, "threads", N)):
                ids = []
                with penstock.Loader(path, batch_size=size, framework="numpy", outputs=outputs, last_batch="short",
                                     n_threads=threads, reading=penstock.Reading(reader=reader), device="cpu",
                                     **keywords) as loader:
                    for batch in loader.epoch(0):
                        rows = np.asarray(batch.sample_ids).tolist()
                        ids += rows
                        ragged = batch["ragged"]
                        for k, i in enumerate(rows):
                            self.assertEqual(batch["int"][k], samples[i]["int"][3])
                            self.assertEqual(batch["str_int"][k], samples[i]["str_int"][3])
                            self.assertEqual(batch["f16"][k], samples[i]["float16"][3])
                            self.assert_same(np.asarray(batch["fixed"][k]), samples[i]["fixed"][3], i)
                            self.assertEqual(bytes(memoryview(np.ascontiguousarray(ragged[k])).cast("B")),
                                             samples[i]["of-int16"][3].tobytes())
                self.assertEqual(sorted(ids), list(range(N)))
                self.assertEqual(orders.setdefault(keywords["order"], ids), ids)

    def test_values_far_apart_are_read_alone(self):
        samples = [{"a": ("int", 8, struct.pack("<q", i), i), "b": ("bytes", None, bytes([i]) * 40000, bytes([i]) * 40000),
                    "c": ("str", None, b"c" * i, "c" * i), "d": ("bytes", None, b"d" * 30000, b"d" * 30000),
                    "e": ("int32", 4, struct.pack("<i", -i), -i)} for i in range(40)]
        path = self.write(samples, (20, 20))
        self.check(path, samples)
        for wanted in ("ae", "e", "a"):
            with self.subTest(wanted=wanted):
                outputs = {c: penstock.scalar(c) for c in wanted}
                with penstock.Loader(path, batch_size=10, framework="numpy", outputs=outputs, device="cpu") as loader:
                    for batch in loader.epoch(0):
                        for k, i in enumerate(np.asarray(batch.sample_ids).tolist()):
                            for c in outputs:
                                self.assertEqual(batch[c][k], samples[i][c][3])

    def test_mixtures_join_data_sets_that_are_read_in_one_piece_and_in_several(self):
        def samples(size, first):
            return [{"a": ("int", 8, struct.pack("<q", first + i), None), "b": ("bytes", None, bytes(size), None),
                     "c": ("int32", 4, struct.pack("<i", -first - i), None)} for i in range(30)]

        near, far = self.write(samples(10, 0), (30,), "near"), self.write(samples(40000, 100), (10, 20), "far")
        seen = set()
        with penstock.Loader(penstock.Mixture({near: 0.5, far: 0.5}), batch_size=10, framework="numpy", device="cpu",
                             outputs={"a": penstock.scalar("a"), "c": penstock.scalar("c")}) as loader:
            for _, batch in zip(range(12), loader):
                a, ids = np.asarray(batch["a"]).tolist(), np.asarray(batch.sample_ids).tolist()
                self.assertEqual(np.asarray(batch["c"]).tolist(), [-value for value in a])
                self.assertEqual([value % 100 for value in a], ids)
                seen |= set(a)
        self.assertEqual(seen, {*range(30), *range(100, 130)})

    def test_columns_of_fixed_size_alone(self):
        samples = [{"a": ("int", 8, struct.pack("<q", i), i), "x": ("ndarray:uint8:40000", 40000, bytes([i]) * 40000,
                                                                  np.full(40000, i, "u1")),
                    "y": ("uint8", 1, bytes([i]), i)} for i in range(11)]
        path = self.write(samples, (11,))
        self.check(path, samples)
        with penstock.Loader(path, batch_size=3, framework="numpy", outputs={"y": penstock.scalar("y")},
                             device="cpu") as loader:
            for batch in loader.epoch(0):
                self.assertEqual(np.asarray(batch["y"]).tolist(), np.asarray(batch.sample_ids).tolist())

    def test_pickles_are_left_out(self):
        samples = [{"a": ("int", 8, struct.pack("<q", i), i), "p": ("pkl", None, b"\x80\x04N." * i, None),
                    "u": ("my own", None, b"?" * (i % 5), None), "z": ("str", None, b"z" * i, "z" * i)} for i in range(20)]
        path = self.write(samples, (20,))
        self.check(path, [{c: sample[c] for c in "az"} for sample in samples])
        only = [{"p": sample["p"]} for sample in samples]
        self.write(only, (20,), "pickles")
        self.assert_says(["column 'p'", "never loads a pickle", "name a column in fields"], penstock.Dataset, self.path("pickles"))

    def test_names_become_names_of_fields(self):
        value = ("int8", 1, b"\1", 1)
        path = self.write([{"a b/ç": value, "x-1_2.y": value}], (1,))
        with penstock.Dataset(path) as data:
            self.assertEqual(data[0], {"a.b..": 1, "x-1_2.y": 1})
        for names, words in ((("a b", "a/b"), "two columns named 'a.b'"), (("x" * 64,), "longer than 63"), (("",), "empty")):
            with self.subTest(names=names):
                self.write([dict.fromkeys(names, value)], (1,))
                self.assert_says(words, penstock.Dataset, path)

    def test_merged_folders_and_empty_shards(self):
        samples = [every_encoding(i) for i in range(9)]
        path = self.write(samples, (4, 0, 5), folders=("0", "1/x", "..data"))
        self.check(path, samples)

    def test_a_new_index_json_is_seen(self):
        path = self.small(20, sizes=(20,))
        with penstock.Dataset(path) as data:
            self.assertEqual(sorted(data[0]), ["a", "b", "c"])
        shards = self.index()
        shards[0]["column_names"] = ["a", "b", "other"]
        self.put_index(shards)
        with penstock.Dataset(path) as data:
            self.assertEqual(sorted(data[0]), ["a", "b", "other"])

    def test_other_index_json_files_are_left_to_other_formats(self):
        os.makedirs(self.path())
        self.put_index('{"chunks": [], "config": {}}')
        self.assert_says("is not a data set", penstock.Dataset, self.path())


class Refused(Mds):
    def refuse(self, *words):
        for opening in (penstock.Dataset, lambda path: penstock.Loader(path, batch_size=1)):
            self.assert_says(words, opening, self.path())

    def test_index_json_of_every_wrong_kind(self):
        self.small(20, sizes=(10, 10))
        right = self.index()

        def changed(k=1, **values):
            shards = json.loads(json.dumps(right))
            for key, value in values.items():
                shards[k][key] = value
            return shards

        def without(key):
            shards = changed()
            del shards[1][key]
            return shards

        text = json.dumps({"version": 2, "shards": right})
        bytes_of = right[0]["raw_data"]["bytes"]
        for index, words in (
                ("", ["index.json"]), ("{", ["is not JSON", "copy the file again"]), ("nonsense", ["is not JSON"]),
                (text[:-1], ["is not JSON"]), (text[:400], ["is not JSON"]), (text + "x", ["is not JSON"]),
                ("[]", ["is not JSON"]), ('{"version": 2}', ["lacks 'shards'"]), ('{"shards": 3}', ["is not JSON"]),
                ('{"shards": [], "version": 2}', ["lists no shards"]), ('{"shards": [3]}', ["shards[0] is not an object"]),
                ('{"shards": [{"a": 1, "a": 2}]}', ["shards[0] is not JSON", "duplicate"]),
                (text.replace('"samples"', "samples"), ["shards[0] is not JSON"]),
                (text.replace('"version": 2, "shards"', '"version": 1, "shards"'), ["is of version 1"]),
                (text[:-1] + ', "shards": []}', ["'shards' twice"]),
                (changed(format="json"), ["shards[1]", "the format 'json'", "convert it to MDS"]),
                (changed(version=3), ["shards[1] is of version 3"]), (changed(samples=-1), ["shards[1]", "'samples' of -1"]),
                (changed(samples="x"), ["shards[1] has 'samples' that is not a whole number"]),
                (changed(samples=1 << 40), ["must be from 0 to 2^32 - 1"]), (without("raw_data"), ["lacks 'raw_data'"]),
                (without("column_names"), ["lacks 'column_names'"]), (without("format"), ["lacks 'format'"]),
                (changed(column_names=["a", "b", "d"]), ["shards[1] has other column_names than shards[0]"]),
                (changed(column_sizes=[8, None, 3]), ["other column_sizes"]),
                (changed(0, column_names=["a", "b"]), ["2 column_names, but 3 column_encodings"]),
                (changed(0, column_names=["a", "b", "b"]), ["two columns named 'b'"]),
                (changed(0, column_names=["a", "b", 3]), ["column 2"]), (changed(0, column_sizes=[8, None, 0]), ["column 2"]),
                (changed(0, column_sizes=[4, None, None]), ["column 'a'", "needs 8"]),
                (changed(0, column_sizes=[8, None, 1 << 32]), ["4 GiB"]),
                (changed(raw_data={"basename": "../shard.00001.mds", "bytes": bytes_of}), ["'..'"]),
                (changed(raw_data={"basename": "a/../../x.mds", "bytes": bytes_of}), ["'..'"]),
                (changed(raw_data={"basename": "..", "bytes": bytes_of}), ["'..'"]),
                (changed(raw_data={"basename": "/etc/passwd", "bytes": bytes_of}), ["absolute"]),
                (changed(raw_data={"basename": "", "bytes": bytes_of}), ["empty"]),
                (changed(raw_data={"basename": "a\x1b[31m", "bytes": bytes_of}), ["control characters"]),
                (changed(raw_data={"basename": "x" * 2000, "bytes": bytes_of}), ["1024"]),
                (changed(raw_data={"basename": "gone.mds", "bytes": bytes_of}), ["gone.mds is missing", "copy"]),
                (changed(raw_data={"basename": "shard.00001.mds", "bytes": 77}), ["77 bytes", "copy it again"]),
                (changed(samples=11), ["the shard has 10 samples", "gives it 11"]),
                ('{"shards": ' + "[" * 100000, ["is not JSON"])):
            with self.subTest(words=words):
                self.put_index(index)
                self.refuse(*words)
        many = ["c%d" % i for i in range(65)]
        self.put_index([dict(right[0], column_names=many, column_encodings=["str"] * 65, column_sizes=[None] * 65)])
        self.refuse("more than 64 columns")

    def test_an_index_of_bytes_that_are_not_there_is_named(self):
        path = self.small()
        penstock.Dataset(path).close()
        index = forge.move_rows(path + "/.penstock")
        self.assert_says(["shard.00000.mds: record 3 (bytes ", "): the file does not have these bytes; remove the index " + index +
                          ", and it is built again"], lambda: penstock.Dataset(path)[3])

    def test_an_empty_data_set(self):
        self.write([every_encoding(0)], (0,))
        self.refuse("is empty")


class Compressed(Mds):
    """Shards as streaming compresses them, by the libraries that it uses."""
    @staticmethod
    def packers():
        """Return {compression: (ending, function)}: those whose library is there."""
        out = {"gz": (".gz", gzip.compress), "bz2:9": (".bz2", bz2.compress)}
        for compression, ending, library, name in (("zstd:7", ".zstd", "zstandard", "compress"), ("br:5", ".br", "brotli", "compress"),
                                                   ("snappy", ".snappy", "snappy", "compress")):
            try:
                out[compression] = (ending, getattr(__import__(library), name))
            except ImportError:
                continue
        return out

    def pack(self, compression, change=lambda data: data):
        """Make a data set of one raw shard, and others that are compressed. Return the folder and all samples."""
        ending, function = self.packers()[compression]
        samples = [every_encoding(i) for i in range(N)]
        path = self.write(samples, name=compression.partition(":")[0], compression=compression)
        for name in sorted(os.listdir(path))[2:]:
            if name.endswith(".mds"):
                with open(os.path.join(path, name), "rb") as file:
                    data = file.read()
                os.remove(os.path.join(path, name))
                with open(os.path.join(path, name + ending), "wb") as file:
                    file.write(change(function(data)))
        return path, samples

    def open(self, path, **more):
        return penstock.Dataset(path, foreign=penstock.Foreign(cache_path=self.path("cache")), **more)

    def test_every_compression_gives_the_samples_of_raw_shards(self):
        raw = self.write([every_encoding(i) for i in range(N)], name="raw")
        with penstock.Dataset(raw) as plain:
            wanted = [plain[i] for i in range(N)]
        for compression in self.packers():
            with self.subTest(compression):
                path, _ = self.pack(compression)
                for _ in range(2):
                    with self.open(path) as data:
                        self.assertEqual(repr([data[i] for i in range(N)]), repr(wanted))
                with penstock.Loader(path, batch_size=10, framework="numpy", outputs=["int"],
                                     foreign=penstock.Foreign(cache_path=self.path("cache")),
                                     last_batch="short") as loader:
                    rows = {int(i): int(n) for batch in loader.epoch(0) for i, n in zip(batch.sample_ids, batch["int"])}
                self.assertEqual(rows, {i: -i for i in range(N)})

    def entries(self):
        place = self.path("cache/entries")
        return [os.path.join(place, name) for name in os.listdir(place)] if os.path.isdir(place) else []

    def test_data_counts_as_checked_where_its_compression_has_checksums(self):
        for compression, (ending, function) in self.packers().items():
            with self.subTest(compression):
                path, _ = self.pack(compression)
                raw = os.path.join(path, "shard.00000.mds")
                with open(raw, "rb") as file, open(raw + ending, "wb") as out:
                    out.write(function(file.read()))
                os.remove(raw)
                done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", path, "--json"], check=True, capture_output=True,
                                      env={**os.environ, "PENSTOCK_CACHE": self.path("cache")})
                self.assertEqual(json.loads(done.stdout)["checksums"], "own" if compression in ("gz", "bz2:9") else "without")

    def test_an_entry_that_left_the_cache_is_made_again(self):
        path, samples = self.pack("bz2:9")
        with self.open(path) as data:
            for i in (0, 50, 100):
                self.assertEqual(data[i]["int"], -i)
        self.assertTrue(self.entries())
        shutil.rmtree(self.path("cache/entries"))
        with self.open(path) as data:
            for i in range(N):
                self.assertEqual(data[i]["int"], -i)

    def verify(self, path, status):
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", path, "--json"], capture_output=True, timeout=60,
                              env={**os.environ, "PENSTOCK_CACHE": self.path("cache")})
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def test_a_damaged_shard_without_an_entry_is_unpacked_once(self):
        """Its 20,000 samples are reported, at once."""
        n = 20_000
        samples = [{"x": ("bytes", None, random.Random(i).randbytes(200), None)} for i in range(n)]
        path = self.write(samples, (n,), compression="bz2")
        raw = os.path.join(path, "shard.00000.mds")
        with open(raw, "rb") as file, open(raw + ".bz2", "wb") as out:
            out.write(bz2.compress(file.read()))
        os.remove(raw)
        self.assertEqual(self.verify(path, 0)["n_samples"], n)
        shutil.rmtree(self.path("cache/entries"))
        before = os.stat(raw + ".bz2")
        with open(raw + ".bz2", "r+b") as file:
            file.seek(before.st_size - 3000)
            byte = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([byte[0] ^ 16]))
        os.utime(raw + ".bz2", ns=(before.st_atime_ns, before.st_mtime_ns))
        begin = time.monotonic()
        found = self.verify(path, 1)
        self.assertGreater(found["n_bad"], 0)
        self.assertIn("shard.00000.mds.bz2", found["bad"][0]["reason"])
        self.assertLess(time.monotonic() - begin, 40)

    def test_hashes_of_compressed_shards_are_checked(self):
        """The hashes are those of the raw shards, even if their compression has checksums of its own."""
        path, _ = self.pack("bz2:9")
        file = os.path.join(path, "shard.00001.mds.bz2")
        with open(file, "rb") as packed:
            right = hashlib.sha1(bz2.decompress(packed.read())).hexdigest()
        raw = os.path.join(path, "shard.00000.mds")
        with open(raw, "rb") as data, open(raw + ".bz2", "wb") as out:
            out.write(bz2.compress(data.read()))
        os.remove(raw)
        for digits, n_bad in ((right, 0), ("0" * 40, 1)):
            with open(os.path.join(path, "index.json"), encoding="utf-8") as text:
                index = json.load(text)
            index["shards"][1]["hashes"] = ["sha1"]
            index["shards"][1]["raw_data"]["hashes"] = {"sha1": digits}
            with open(os.path.join(path, "index.json"), "w", encoding="utf-8") as text:
                json.dump(index, text)
            found = self.verify(path, n_bad)
            if found["note"]:
                self.skipTest("missing: libmd, when this was built")
            self.assertEqual((found["n_bad"], found["checksums"]), (n_bad, "own"))

    def test_a_damaged_entry_is_made_again(self):
        path, samples = self.pack("bz2:9")
        self.open(path).close()
        for file in self.entries():
            if os.path.getsize(file) > 4096:
                with open(file, "r+b") as out:
                    out.seek(os.path.getsize(file) // 2)
                    out.write(b"damage")
        with self.open(path) as data:
            for i in range(N):
                self.assertEqual(data[i]["int"], -i)
                self.assertEqual(data[i]["bytes"], samples[i]["bytes"][2])

    def test_a_shard_that_changes_during_a_run_is_refused(self):
        path, _ = self.pack("bz2:9")
        with self.open(path) as data:
            with open(os.path.join(path, "shard.00002.mds.bz2"), "ab") as out:
                out.write(bytes(9))
            with self.assertRaises(penstock.CorruptRecordError) as caught:
                for i in range(N):
                    _ = data[i]
            self.assertIn("shard.00002.mds.bz2 was changed", str(caught.exception))

    def test_without_a_folder_for_caches_the_message_says_what_to_do(self):
        path, _ = self.pack("bz2:9")
        with unittest.mock.patch("penstock.foreign._cache_folder", return_value=None):
            error = self.assert_says("set cache_path", penstock.Dataset, path)
        self.assertIn("shard.00001.mds.bz2", str(error))

    def test_a_cache_that_is_too_small_is_an_error_that_says_so(self):
        big = [{"x": ("bytes", None, os.urandom(400_000), None)} for _ in range(4)]
        path = self.write(big, (1, 3), compression="bz2")
        raw = os.path.join(path, "shard.00001.mds")
        with open(raw, "rb") as file:
            data = file.read()
        os.remove(raw)
        with open(raw + ".bz2", "wb") as file:
            file.write(bz2.compress(data))
        error = self.assert_says("cache", penstock.Dataset, path,
                                 foreign=penstock.Foreign(cache_path=self.path("cache"), cache_size=1 << 20))
        self.assertIn("cache_size", str(error))
        told = subprocess.run([os.environ["PENSTOCK_COMMAND"], "info", path], text=True, stderr=subprocess.PIPE, check=False,
                              env={**os.environ, "PENSTOCK_CACHE": self.path("cache"), "PENSTOCK_CACHE_SIZE": "1M"}).stderr
        self.assertIn("raise $PENSTOCK_CACHE_SIZE", told)
        self.assertNotIn("cache_size", told)

    def test_a_shape_that_a_column_does_not_have_is_named(self):
        path = self.write([{"x": ("ndarray:uint16:4", 8, bytes(8), None)}] * 3, (3,))
        self.assert_says("type ndarray u16 [4], which cannot be read as ndarray u16 [5]", penstock.Dataset, path,
                         foreign=penstock.Foreign(fields={"x": ("uint16", (5,))}))

    def test_a_cache_that_cannot_be_made_is_a_wrong_setting(self):
        path, _ = self.pack("bz2:9")
        with open(self.path("file"), "w"):
            pass
        with self.assertRaisesRegex(penstock.SettingsError, "set cache_path to a folder") as caught:
            penstock.Dataset(path, foreign=penstock.Foreign(cache_path=self.path("file/below")))
        self.assertEqual(str(caught.exception).count("errno"), 1)

    def test_damaged_and_lying_shards_are_refused_with_their_bytes(self):
        for compression in self.packers():
            with self.subTest(compression):
                path, _ = self.pack(compression, lambda data: data[:-5])
                self.refuse_packed(path)
        for compression in self.packers():
            if compression[:2] in ("br", "sn", "zs"):
                continue  # they have no checksum, zstd unless it is asked for one
            with self.subTest(compression):
                path, _ = self.pack(compression, lambda data: data[:200] + bytes([data[200] ^ 4]) + data[201:])
                self.refuse_packed(path)
        ending, function = self.packers()["bz2:9"]
        path, _ = self.pack("bz2:9", lambda data: function(bz2.decompress(data) + b"more"))
        self.refuse_packed(path, "more than the")
        path, _ = self.pack("bz2:9", lambda data: function(bz2.decompress(data)[:-1]))
        self.refuse_packed(path, "fewer than the")

    def refuse_packed(self, path, *words):
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            with self.open(path) as data:
                for i in range(N):
                    _ = data[i]
        for word in ("shard.0000", "byte ", *words):
            self.assertIn(word, str(caught.exception))


class Damaged(Mds):
    def read_all(self, path):
        """Return every value of every sample, or the error."""
        try:
            with penstock.Dataset(path) as data:
                return [data[i] for i in range(len(data))]
        except penstock.PenstockError as error:
            return error

    def test_cut_at_every_512_bytes(self):
        path = self.small(sizes=(N,))
        name = os.path.join(path, "shard.00000.mds")
        with open(name, "rb") as file:
            data = file.read()
        shards = self.index()
        for size in [0, 1, 3, 4, *range(512, len(data), 512), len(data) - 1]:
            with open(name, "wb") as file:
                file.write(data[:size])
            self.put_index(shards)
            self.assert_says([f"byte {size}", "cut short"], penstock.Dataset, path)
            shards[0]["raw_data"]["bytes"] = size  # a list that lies, too
            self.put_index(shards)
            error = self.read_all(path)
            self.assertIsInstance(error, penstock.CorruptRecordError)
            self.assertIn("shard.00000.mds", str(error))
            shards[0]["raw_data"]["bytes"] = len(data)

    def test_every_bit_of_the_offsets_and_heads(self):
        """Before the index is built, and after it was: with the same size and time of change."""
        n = 9
        path = self.small(n, sizes=(n,))
        name = os.path.join(path, "shard.00000.mds")
        with open(name, "rb") as file:
            right = file.read()
        wanted = self.read_all(path)
        offsets = np.frombuffer(right, "<u4", n + 1, 4)
        places = [*range(4 + 4 * (n + 1))]
        for at in offsets[:n]:
            places += range(at, at + 8)  # the sizes of b and c
        for place in places:
            for bit in (0, 3, 7):
                bad = bytearray(right)
                bad[place] ^= 1 << bit
                shutil.rmtree(os.path.join(path, ".penstock"), ignore_errors=True)
                with open(name, "wb") as file:
                    file.write(bad)
                error = self.read_all(path)
                self.assertIsInstance(error, penstock.PenstockError, (place, bit))
                self.assertEqual(error.code, "PSTK_EBADMSG")
                self.assertIn("shard.00000.mds: ", str(error))
        with open(name, "wb") as file:
            file.write(right)
        self.assertEqual(self.read_all(path), wanted)
        time = os.stat(name).st_mtime_ns
        for place in places[4 + 4 * (n + 1):]:
            for bit in range(8):
                with open(name, "r+b") as file:
                    file.seek(place)
                    file.write(bytes([right[place] ^ 1 << bit]))
                os.utime(name, ns=(time, time))
                error = self.read_all(path)
                with open(name, "r+b") as file:
                    file.seek(place)
                    file.write(right[place:place + 1])
                os.utime(name, ns=(time, time))
                self.assertIsInstance(error, penstock.PenstockError, (place, bit))
                self.assertIn("shard.00000.mds: record ", str(error))
        self.assertEqual(self.read_all(path), wanted)

    def test_a_head_that_changes_in_place_is_found_by_the_index(self):
        path = self.small(9, sizes=(9,))
        name = os.path.join(path, "shard.00000.mds")
        with open(name, "rb") as file:
            right = file.read()
        offsets = np.frombuffer(right, "<u4", 10, 4)
        with penstock.Dataset(path) as data:
            wanted = [data[i] for i in range(9)]
            for i in range(9):
                for place in range(offsets[i], offsets[i] + 8):
                    with open(name, "r+b") as file:
                        file.seek(place)
                        file.write(bytes([right[place] ^ 1 << i % 8]))
                    self.assert_says([f"record {i} ", "its head and the index give its values different sizes"], data.__getitem__, i)
                    for field in "abc":  # a value whose place does not depend on that size is right
                        try:
                            self.assertEqual(data.get(i, field), wanted[i][field])
                        except penstock.CorruptRecordError as error:
                            self.assertIn("its head and the index give its values different sizes", str(error))
                    with open(name, "r+b") as file:
                        file.write(right)
            self.assertEqual([data[i] for i in range(9)], wanted)

    def test_lying_values(self):
        optional("PIL.Image")
        good = np.arange(6, dtype="int16")
        jpeg = image_file()

        def refuse(encoding, first, bad, *words):
            with self.subTest(encoding=encoding, words=words):
                shutil.rmtree(self.path(), ignore_errors=True)
                path = self.write([{"x": (encoding, None, value, None)} for value in (first, first, bad)], (3,))
                try:
                    with penstock.Dataset(path) as data:
                        data[0]
                        error = self.assert_says(words, data.__getitem__, 2)
                except penstock.PenstockError as at_open:
                    error = at_open
                    for word in words:
                        self.assertIn(word, str(error))
                self.assertEqual(error.code, "PSTK_EBADMSG")
                self.assertRegex(str(error), "shard.00000.mds: record 2[: ]")

        head = array(good)[:3]
        refuse("ndarray", array(good), b"", "too few for an array")
        refuse("ndarray", array(good), array(good)[:1], "too few for an array")
        refuse("ndarray", array(good), array(good)[:2], "too few for an array of 1 dimensions")
        refuse("ndarray", array(good), array(good)[:-1], "11 bytes of elements, but its shape needs 12")
        refuse("ndarray", array(good), array(good) + b"x", "13 bytes of elements, but its shape needs 12")
        refuse("ndarray", array(good), b"\7" + head[1:], "dtype 7, which does not exist")
        refuse("ndarray", array(good), array(good.astype("int32")), "is an array of i32 with 1 dimensions; must be of i16")
        refuse("ndarray", array(good), array(good.reshape(2, 3)), "with 2 dimensions")
        refuse("ndarray:int16", array(good, False), b"\xff" + bytes(100), "too few for an array of 63 dimensions")
        refuse("ndarray:int16", array(good.reshape(2, 3), False), b"\x0b" + struct.pack("<QQ", 1 << 63, 1 << 63), "its shape needs")
        refuse("str", b"x", b"\xff", "is not UTF-8")
        refuse("str_int", b"1", b"1.5", "must be an integer")
        refuse("jpeg", jpeg, jpeg[:20], "")
        refuse("jpeg", jpeg, b"", "")
        gray = picture()[:, :, 0].copy()
        refuse("pil", pil(gray, "L"), pil(gray, "L")[:-1], "width x height")
        refuse("pil", pil(gray, "L"), pil(gray, "P"), "of mode 'P'", "read it as bytes")
        refuse("pil", pil(gray, "L"), pil(gray, "\x1b[1m"), "of mode '?[1m'")
        refuse("pil", pil(gray, "L"), struct.pack("<III", 1, 1, 0xffffffff), "too few for an image")
        refuse("pil", pil(gray, "L"), struct.pack("<III", 0, 0, 1) + b"L", "without width")
        refuse("pil", pil(gray, "L"), struct.pack("<III", 65536, 1, 1) + b"L" + bytes(65536), "65535")
        for encoding, n in (("jpeg_array", 0), ("list[jpeg]", 1)):
            first = image_list([jpeg, jpeg], n)
            refuse(encoding, first, first[:-1], "add up to")
            refuse(encoding, first, first + b"x", "add up to")
            refuse(encoding, first, bytes(4 * n) + b"\xff\xff\xff\xff" + first[4 * n + 4:], "fewer bytes than the sizes")
            refuse(encoding, first, bytes(4 * n) + struct.pack("<III", 2, 0xffffffff, 0xffffffff), "add up to")
            refuse(encoding, first, image_list([b"nonsense"], n), "item 0")
        refuse("list[jpeg]", image_list([jpeg], 1), b"\1" + image_list([jpeg], 1)[1:], "4 bytes of 0")
        refuse("list[jpeg]", image_list([jpeg], 1), b"", "4 bytes of 0")

    def test_a_shard_that_changes_while_the_data_set_is_open(self):
        path = self.small(sizes=(50, 51))
        name = os.path.join(path, "shard.00001.mds")
        with open(name, "rb") as file:
            data = file.read()

        def shrink():
            os.truncate(name, len(data) // 2)

        def replace():
            with open(name + ".new", "wb") as file:
                file.write(data[::-1])
            os.replace(name + ".new", name)

        for change, words in ((shrink, "shard.00001.mds"), (replace, "changed or replaced"), (lambda: os.remove(name), "shard.00001.mds")):
            with open(name, "wb") as file:
                file.write(data)
            with penstock.Loader(path, batch_size=5, framework="numpy", order="sequential", memory=penstock.Memory(n_slots=2),
                                 outputs={"a": penstock.scalar("a")}, device="cpu") as loader:
                change()
                with self.assertRaises(penstock.PenstockError) as caught:
                    for batch in loader.epoch(0):
                        self.assertEqual(np.asarray(batch["a"]).tolist(), np.asarray(batch.sample_ids).tolist())
                self.assertIn(words, str(caught.exception))
