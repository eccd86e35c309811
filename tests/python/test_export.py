# SPDX-License-Identifier: Apache-2.0
"""Exports hold what was packed: each target is read by a few lines that follow its layout. test_export_libraries.py
reads the same by the libraries that the targets are for."""
import io
import json
import os
import signal
import shutil
import struct
import subprocess
import tarfile
import threading
import unittest

import export_data
import penstock
import sets
from data_fixture import Case, image_file, np, optional, picture
from export_data import ARRAYS, N, NUMBERS, sample, some

sets.need_numpy()

DTYPES = {"weight": "f4", "half": "f2", "double": "f8", "brain": "f4"}


# ---- readers -------------------------------------------------------------------------------------------


def opened(data):
    return np.asarray(optional("PIL.Image").open(io.BytesIO(data)))


def crc32c(data):
    """By Castagnoli's polynomial, bit by bit in a table."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def crc_entry(i):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    return i


CRC_TABLE = [crc_entry(i) for i in range(256)]


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """Yield the records of a TFRecord file, with both checksums compared."""
    with open(path, "rb") as file:
        while head := file.read(12):
            size, crc = struct.unpack("<QI", head)
            assert masked(head[:8]) == crc, path
            data = file.read(size)
            assert len(data) == size and struct.unpack("<I", file.read(4))[0] == masked(data), path
            yield data


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 128:
            return value, at


def parts(data):
    """Return [(number, bytes)] of a message whose fields all have a length."""
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        assert tag & 7 == 2, tag
        size, at = varint(data, at)
        found.append((tag >> 3, data[at:at + size]))
        at += size
    return found


def example(data):
    """Return {name: list} of a tf.train.Example, in its order."""
    (number, features), = parts(data)
    assert number == 1
    found = {}
    for _, entry in parts(features):
        (_, name), (_, feature) = parts(entry)
        (kind, values), = parts(feature)
        items = [item for _, item in parts(values)]
        if kind == 2:
            items = np.frombuffer(b"".join(items), "<f4").tolist()
        elif kind == 3:
            packed, items, at = b"".join(items), [], 0
            while at < len(packed):
                value, at = varint(packed, at)
                items.append(value - 2**64 if value >> 63 else value)
        found[name.decode()] = items
    return found


def mds_samples(folder):
    """Yield [{column: bytes}] of a folder of MDS, by its index."""
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    assert index["version"] == 2
    for shard in index["shards"]:
        with open(os.path.join(folder, shard["raw_data"]["basename"]), "rb") as file:
            data = file.read()
        assert len(data) == shard["raw_data"]["bytes"]
        n, = struct.unpack_from("<I", data)
        offsets = struct.unpack_from("<%dI" % (n + 1), data, 4)
        config = json.loads(data[4 + 4 * (n + 1):offsets[0]])
        assert (n, offsets[n]) == (shard["samples"], len(data))
        assert all(shard[name] == config[name] for name in config), (shard, config)
        for begin, end in zip(offsets, offsets[1:]):
            yield shard, mds_sample(shard, data[begin:end])


def mds_sample(shard, data):
    n_variable = shard["column_sizes"].count(None)
    sizes, at, found = iter(struct.unpack_from("<%dI" % n_variable, data)), 4 * n_variable, {}
    for name, size in zip(shard["column_names"], shard["column_sizes"]):
        size = next(sizes) if size is None else size
        found[name] = data[at:at + size]
        at += size
    assert at == len(data)
    return found


def mds_array(encoding, data):
    _, dtype, *shape = encoding.split(":")
    if shape:
        return np.frombuffer(data, dtype).reshape([int(n) for n in shape[0].split(",")])
    n_dims, width = data[0] >> 2, 1 << (data[0] & 3)
    shape = np.frombuffer(data[1:1 + n_dims * width], f"<u{width}")
    return np.frombuffer(data[1 + n_dims * width:], dtype).reshape(shape)


def tar_samples(folder):
    """Yield [(key, {suffix: bytes})] of a folder of tar files."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".tar"):
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            assert file.read()[-1024:] == bytes(1024), path
        with tarfile.open(path) as tar:
            found = {}
            for member in tar:
                assert (member.isreg(), member.mode, member.mtime, member.uid) == (True, 0o644, 0, 0), member.name
                head, _, base = member.name.rpartition("/")
                stem, _, suffix = base.partition(".")
                of_key = found.setdefault(f"{head}/{stem}" if head else stem, {})
                assert suffix not in of_key
                of_key[suffix] = tar.extractfile(member).read()
        yield from found.items()


# ---- what they find ------------------------------------------------------------------------------------


class Export(Case):
    def setUp(self):
        super().setUp()
        self.out = self.path("out")

    def export(self, schema, to, **settings):
        data = export_data.write(self.path(), schema)
        return penstock.export(data, to=to, out=self.out, **settings)

    def assert_array(self, found, given, name):
        self.assertEqual(found.dtype, given.dtype, name)
        self.assertEqual(found.shape, given.shape, name)
        self.assertTrue((found == given).all(), name)

    def assert_image(self, found, i):
        """A file is byte for byte the one that was packed; pixels are a PNG file of them."""
        given = sample(i)["image"]
        if isinstance(given, bytes):
            self.assertEqual(found, given)
        else:
            self.assertTrue(found.startswith(b"\x89PNG"))
            self.assertTrue((opened(found) == given).all())


class WebDataset(Export):
    def test_members_hold_every_kind(self):
        schema = {name: kind for name, kind in export_data.SCHEMA.items() if name not in ("views", "files")}
        done = self.export(schema, "webdataset", shard_size=1 << 16, threads=3)
        self.assertGreater(done.n_shards, 1)
        self.assertEqual((done.n_samples, done.n_images, done.n_encoded), (N, 2 * N, N + N // 3))
        found = list(tar_samples(self.out))
        self.assertEqual([key for key, _ in found], [f"{i:09}" for i in range(N)])
        for i, (_, members) in enumerate(found):
            given = sample(i)
            self.assert_image(members.pop("image.jpg" if i % 3 == 0 else "image.png"), i)
            self.assertTrue((opened(members.pop("mask.png")) == given["mask"]).all())
            self.assertEqual(members.pop("cls"), b"%d" % given["cls"])
            self.assertEqual(members.pop("small.cls"), b"%d" % given["small"])
            large = np.load(io.BytesIO(members.pop("large.npy")))
            self.assertEqual((large.dtype, large.shape, large), (np.dtype("u8"), (), given["large"]))
            for name in ("weight", "half", "double", "brain"):
                self.assertEqual(np.dtype(DTYPES[name]).type(json.loads(members.pop(name + ".json"))),
                                 np.dtype(DTYPES[name]).type(given[name]), name)
            for name in ARRAYS:
                self.assert_array(np.load(io.BytesIO(members.pop(name + ".npy"))), given[name], name)
            self.assertEqual(members.pop("text").decode(), given["text"])
            self.assertEqual(members.pop("raw.bin"), given["raw"])
            self.assertEqual(json.loads(members.pop("captions.json")), given["captions"])
            self.assertEqual(members, {})

    def test_uint64_comes_back(self):
        values = [2**64 - 1, 0, 2**63]
        with penstock.Writer(self.path(), {"big": "uint64", "cls": "uint64", "i": "int64"}) as writer:
            for value in values:
                writer.add(big=value, cls=value, i=-1)
        penstock.export(self.path(), to="webdataset", out=self.out)
        with penstock.Dataset(self.out) as again:
            self.assertEqual({name: info.field.kind for name, info in again.fields.items()},
                             {"big.npy": "uint64", "cls.npy": "uint64", "i.cls": "int64"})
            self.assertEqual([(int(row["big.npy"]), int(row["cls.npy"]), row["i.cls"]) for row in again],
                             [(value, value, -1) for value in values])

    def test_the_files_do_not_depend_on_threads(self):
        data = export_data.write(self.path(), some("image", "text", "tokens"))
        texts = []
        for threads in (1, 4):
            out = self.path(f"out{threads}")
            penstock.export(data, to="webdataset", out=out, threads=threads, shard_size=1 << 16)
            texts.append([open(os.path.join(out, name), "rb").read() for name in sorted(os.listdir(out))])
        self.assertEqual(*texts)

    def keys_of(self, keys):
        schema = {"key": "utf8", "cls": "int32"}
        with penstock.Writer(self.path(), schema) as writer:
            for i, key in enumerate(keys):
                writer.add(key=key, cls=i)
        done = penstock.export(self.path(), to="webdataset", out=self.out)
        found = list(tar_samples(self.out))
        self.assertEqual([members["key.txt"].decode() for _, members in found], list(keys))
        return [key for key, _ in found], done.n_renamed

    def test_keys_never_leave_the_tar_and_never_meet(self):
        long = "d" * 150 + "/" + "n" * 150
        keys = ["a/b.JPEG", "a/b.png", "../../etc/passwd", "/x", "", "..", "a.b.c", "__meta__/x", "x\n\0y", long,
                "100%2e", "b" * 300, "\u00e4/\u00f6.jpg", "a/b"]
        found, n = self.keys_of(keys)
        self.assertEqual(found, ["a/b", "a/b-000000001", "%2e%2e/%2e%2e/etc/passwd", "x", "000000004", "%2e%2e", "a%2eb%2ec",
                                 "%5f_meta__/x", "x%0a%00y", long, "100%252e", "000000011", "\u00e4/\u00f6",
                                 "a/b-000000013"])
        self.assertEqual(n, 10)

    def test_fields_whose_members_would_meet_are_refused(self):
        schema = {"jpg": "image", "png": "image"}
        with penstock.Writer(self.path(), schema) as writer:
            writer.add(jpg=image_file(), png=image_file(1))
        self.assert_says(["'jpg'", "'png'", "one name"], penstock.export, self.path(), to="webdataset", out=self.out)
        self.assertEqual(self.left(), ["data"])


class TFRecord(Export):
    def test_examples_hold_every_kind(self):
        schema = {name: kind for name, kind in export_data.SCHEMA.items() if name != "double"}
        done = self.export(schema, "tfrecord", shard_size=1 << 16, threads=2)
        self.assertGreater(done.n_shards, 1)
        names = [f"{i:05}-of-{done.n_shards:05}.tfrecord" for i in range(done.n_shards)]
        self.assertEqual(sorted(os.listdir(self.out)), [*names, "penstock-export.json"])
        found = [example(record) for name in names for record in records(os.path.join(self.out, name))]
        self.assertEqual(len(found), N)
        for i, features in enumerate(found):
            given = sample(i)
            self.assertEqual([name for name in features if "/" not in name], list(schema))
            self.assert_image(features["image"][0], i)
            self.assertTrue((opened(features["mask"][0]) == given["mask"]).all())
            for name in NUMBERS:
                if name != "double":
                    self.assertEqual(features[name], [np.dtype(DTYPES.get(name, "i8")).type(given[name])], name)
            for name in ARRAYS:
                self.assertEqual(features[name], given[name].ravel().tolist(), name)
            self.assertEqual(features["grid/shape"], list(given["grid"].shape))
            self.assertEqual(features["text"], [given["text"].encode()])
            self.assertEqual(features["raw"], [given["raw"]])
            self.assertEqual(features["captions"], [text.encode() for text in given["captions"]])
            self.assertEqual(features["files"], given["files"])
            for view, file in zip(given["views"], features["views"]):
                self.assertTrue(file == view if isinstance(view, bytes) else (opened(file) == view).all())
            self.assertEqual(len(features["views"]), len(given["views"]))

    def test_values_that_a_tfrecord_list_cannot_hold_are_refused(self):
        export_data.write(self.path(), some("cls", "double"))
        self.assert_says(["field double", "float32", "fields to cls"], penstock.export, self.path(), to="tfrecord",
                         out=self.out)
        with penstock.Writer(self.path("u"), {"x": "uint64"}) as writer:
            for x in (1, 2**63):
                writer.add(x=x)
        error = self.assert_says(["sample 1: field x", str(2**63)], penstock.export, self.path("u"), to="tfrecord",
                                 out=self.out)
        self.assertEqual(error.sample_id, 1)
        self.assertEqual(self.left(), ["data", "u"])


class MDS(Export):
    ENCODINGS = {"image": "jpeg", "mask": "png", "cls": "int", "weight": "float32", "small": "int8", "large": "uint64",
                 "half": "float16", "double": "float64", "brain": "float32", "text": "str", "raw": "bytes",
                 "fixed": "ndarray:int16:2,3", "tokens": "ndarray:uint16", "grid": "ndarray:float32",
                 "boxes": "ndarray:float32", "points": "ndarray:float32", "captions": "json", "views": "list[jpeg]"}

    def test_columns_hold_every_kind(self):
        schema = {name: kind for name, kind in export_data.SCHEMA.items() if name != "files"}
        done = self.export(schema, "mds", shard_size=1 << 16)
        self.assertGreater(done.n_shards, 1)
        n = 0
        for i, (shard, columns) in enumerate(mds_samples(self.out)):
            given, n = sample(i), n + 1
            self.assertEqual(dict(zip(shard["column_names"], shard["column_encodings"])), self.ENCODINGS)
            self.assertEqual(shard["column_names"], sorted(schema))
            self.assertLessEqual(shard["raw_data"]["bytes"], 1 << 16)
            self.assert_image(columns["image"], i)
            self.assertTrue((opened(columns["mask"]) == given["mask"]).all())
            for name in NUMBERS:
                dtype = self.ENCODINGS[name].replace("int", "int64") if name == "cls" else self.ENCODINGS[name]
                self.assertEqual(columns[name], np.array(given[name], dtype).tobytes(), name)
            for name in ARRAYS:
                self.assert_array(mds_array(self.ENCODINGS[name], columns[name]), given[name], name)
            self.assertEqual(columns["text"].decode(), given["text"])
            self.assertEqual(columns["raw"], given["raw"])
            self.assertEqual(json.loads(columns["captions"]), given["captions"])
            zero, n_views = struct.unpack_from("<2I", columns["views"])
            self.assertEqual((zero, n_views), (0, len(given["views"])))
        self.assertEqual(n, N)

    def test_a_list_of_bytes_has_no_encoding(self):
        export_data.write(self.path(), some("files"))
        self.assert_says(["field files", "choose another target"], penstock.export, self.path(), to="mds", out=self.out)


class Arrays(Export):
    def test_files_are_the_arrays(self):
        names = [*NUMBERS, "fixed"]
        done = self.export(some(*names), "npy")
        self.assertEqual(done.n_files, len(names))
        for name in names:
            dtype = DTYPES.get(name) or ("i2" if name == "fixed" else export_data.SCHEMA[name])
            self.assert_array(np.load(os.path.join(self.out, name + ".npy")),
                              np.array([sample(i)[name] for i in range(N)], dtype), name)
        again = penstock.Dataset(self.out)  # and penstock opens them as they are
        self.assertEqual([again[i]["cls"] for i in range(N)], [sample(i)["cls"] for i in range(N)])

    def test_images_and_values_of_many_sizes_are_refused(self):
        data = export_data.write(self.path(), some("image", "tokens", "text", "cls"))
        for name, words in (("image", "is an image"), ("tokens", "different sizes"), ("text", "neither a number")):
            self.assert_says([f"field {name}", words, "fields to cls"], penstock.export, data, to="npy", out=self.out,
                             fields=[name, "cls"])
        self.assert_says(["choose another target"], penstock.export, data, to="npy", out=self.out, fields=["text"])
        self.assertEqual(self.left(), ["data"])


class Folder(Export):
    def metadata(self):
        with open(os.path.join(self.out, "metadata.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_other_fields_are_metadata(self):
        names = ["image", "cls", "weight", "half", "double", "brain", "large", "text", "fixed", "tokens", "grid",
                 "captions"]
        self.export(some(*names), "folder")
        for i, line in enumerate(self.metadata()):
            given = sample(i)
            with open(os.path.join(self.out, line["file_name"]), "rb") as file:
                self.assert_image(file.read(), i)
            self.assertEqual(line["file_name"], f"{i:06}.{'jpg' if i % 3 == 0 else 'png'}")
            self.assertEqual(list(line), ["file_name", *names[1:]])
            for name in names[1:]:
                if name in DTYPES:
                    kind = np.dtype(DTYPES[name]).type
                    self.assertEqual(kind(line[name]), kind(given[name]), name)
                else:
                    self.assertEqual(np.asarray(line[name]).tolist(), np.asarray(given[name]).tolist(), name)

    def test_numbers_that_json_lacks_are_those_of_python(self):
        values = (float("inf"), -float("inf"), float("nan"), 1e-45, 0.1, -0.0)
        with penstock.Writer(self.path(), {"image": "image", "x": "float32", "pair": ("float64", (2,))}) as writer:
            for x in values:
                writer.add(image=image_file(), x=x, pair=[x, 1])
        penstock.export(self.path(), to="folder", out=self.out)
        wanted = [repr(float(np.float32(x))) for x in values]
        self.assertEqual([repr(float(np.float32(line["x"]))) for line in self.metadata()], wanted)
        samples = list(penstock.Dataset(self.out))  # the reader takes what the exporter writes
        self.assertEqual([repr(float(np.float32(one["x"]))) for one in samples], wanted)
        self.assertEqual([repr(json.loads(one["pair"])) for one in samples], [repr([x, 1.0]) for x in values])

    def classes(self, records, names, **settings):
        with penstock.Writer(self.path(), {"image": "image", "label": "int32", "key": "utf8"}, names=names) as writer:
            for label, key in records:
                writer.add(image=image_file(), label=label, key=key)
        done = penstock.export(self.path(), to="folder", out=self.out, **settings)
        return sorted(os.path.relpath(os.path.join(folder, name), self.out) for folder, _, files in os.walk(self.out)
                      for name in files if name != "penstock-export.json"), done.n_renamed

    def test_names_never_leave_the_folder_and_never_meet(self):
        records = [(0, "../../x.jpg"), (1, "x"), (1, "x.jpg"), (7, "y.JPEG"), (-1, "z.bmp"), (0, "")]
        found, n = self.classes(records, ["..", "a/b"])
        self.assertEqual(found, ["%2e%2e/%2e%2e/x.jpg", "%2e%2e/000005.jpg", "-1/z.jpg", "7/y.JPEG", "a%2fb/x-000002.jpg",
                                 "a%2fb/x.jpg"])
        self.assertEqual(n, 5)  # all but 7/y.JPEG; of the last one the folder alone

    def test_any_keys_can_be_exported_and_read_back(self):
        keys = ["b.jpg", "b.jpg/c.jpg", "000001.jpg", "b.jpg/d.jpg", "e.jpg/f.jpg", "e.jpg", ".x.jpg", "d/.g/h.jpg", "%2ex.jpg", ".jpg",
                "metadata.jsonl/i.jpg", "penstock-export.json/j.jpg", "k/metadata.jsonl/l.jpg", "metadata.jsonl"]
        wanted = ["b.jpg", "000001.jpg", "000001-000002.jpg", "000003.jpg", "e.jpg/f.jpg", "e-000005.jpg", "%2ex.jpg", "d/%2eg/h.jpg",
                  "%252ex.jpg", "%2ejpg.jpg", "%6detadata.jsonl/i.jpg", "%70enstock-export.json/j.jpg", "k/metadata.jsonl/l.jpg",
                  "metadata.jsonl.jpg"]
        with penstock.Writer(self.path(), {"image": "image", "key": "utf8", "x": "float32"}) as writer:
            for i, key in enumerate(keys):
                writer.add(image=image_file(i), key=key, x=i)
        done = penstock.export(self.path(), to="folder", out=self.out)
        self.assertEqual([line["file_name"] for line in self.metadata()], wanted)
        self.assertEqual(done.n_renamed, sum(key != name for key, name in zip(keys, wanted)))
        again = penstock.Dataset(self.out)
        self.assertEqual([(one["key"], one["x"], one["image"]) for one in again],
                         [(key, i, penstock.Dataset(self.path())[i]["image"]) for i, key in enumerate(keys)])

    def test_classes_that_readers_number_anew_are_counted(self):
        names = ["b", "c", "e", "f"]
        for case, (labels, fields, n) in enumerate((([0, 1, 2, 3, 3], {}, 0), ([0, 2, 2, 3], {}, 3), ([1, 3], {}, 2), ([0, 1], {}, 0),
                                                    ([0, 2, 2, 3], {"note": "utf8"}, 3), ([0, 1, 2, 3], {"note": "utf8"}, 0),
                                                    ([0, 1, 2, 3, 7], {}, 5))):
            source, out = self.path(f"classes{case}"), self.path(f"numbered{case}")
            with penstock.Writer(source, {"image": "image", "cls": "int64", **fields}, names=names) as writer:
                for label in labels:
                    writer.add(image=image_file(), cls=label, **{field: "x" for field in fields})
            done = penstock.export(source, to="folder", out=out)
            with penstock.Dataset(out) as data:
                read = sorted(sample["label"] for sample in data)
                named = [data.names[label] for label in read]
            self.assertEqual(sorted(named), sorted(names[label] if label < 4 else str(label) for label in labels))
            moved = sum(names.index(name) != label if name in names else True for name, label in zip(named, read))
            self.assertEqual((done.n_renumbered, moved), (n, n), labels)
        for case, (names, labels, fields) in enumerate(((["3", "a"], [0, 1, 3], {}), (["b", "", "1"], [0, 1, 2], {}),
                                                        (["a", "a", "b"], [0, 1, 2], {}), (["3", "a"], [0, 1, 3], {"note": "utf8"}))):
            source, out = self.path(f"alike{case}"), self.path(f"refused{case}")
            with penstock.Writer(source, {"image": "image", "cls": "int64", **fields}, names=names) as writer:
                for label in labels:
                    writer.add(image=image_file(), cls=label, **{field: "x" for field in fields})
            with self.assertRaisesRegex(penstock.SettingsError, "field cls has class .*another class has too"):
                penstock.export(source, to="folder", out=out)
            self.assertFalse(os.path.exists(out))
            penstock.export(source, to="folder", out=out, label="")
            self.assertEqual(sorted(sample["cls"] for sample in penstock.Dataset(out)), labels)
        says = subprocess.run([os.environ["PENSTOCK_COMMAND"], "export", self.path("classes1"), "--to", "folder", self.path("said")],
                              check=True, capture_output=True, text=True).stdout
        self.assertIn("renumbered      3, whose class has another number there", says)
        with penstock.Writer(self.path("bare"), {"image": "image", "key": "utf8"}) as writer:
            writer.add(image=image_file(), key="a")
        says = subprocess.run([os.environ["PENSTOCK_COMMAND"], "export", self.path("bare"), "--to", "folder", self.path("suffix")],
                              check=True, capture_output=True, text=True).stdout
        self.assertIn("renamed         1, whose key came twice, cannot be a file's name, or lacks the suffix of its image", says)
        self.assertNotIn("renumbered", says)

    def test_files_that_readers_of_the_folder_leave_out_are_counted(self):
        cases = [(["b.jpg/c.jpg", "b.jpg", "b.jpg/c.jpg/d.jpg"], 2), (["../x.jpg", "/a.jpg", "b//c.jpg", "./d.jpg", "..", ".", "e.jpg"], 4),
                 (["metadata.csv", "metadata.csv/a.jpg"], 1), (["a.jpg", "b.jpg"], 0), (["a/b.jpg", "c/d.jpg"], 0),
                 (["a.jfif", "b.jpg", "c.jpe"], 2), (["a.jfif", "b/b.jpg", "c.jpg"], 2)]
        for i, (keys, n_left_out) in enumerate(cases):
            source = self.path(f"keys{i}")
            with penstock.Writer(source, {"image": "image", "key": "utf8"}) as writer:
                for key in keys:
                    writer.add(image=image_file(), key=key)
            done = penstock.export(source, to="folder", out=self.path(f"out{i}"))
            self.assertEqual((done.n_left_out, len(penstock.Dataset(self.path(f"out{i}")))), (n_left_out, len(keys) - n_left_out), keys)
            done = penstock.export(source, to="folder", out=self.path(f"all{i}"), key="")
            self.assertEqual((done.n_left_out, len(penstock.Dataset(self.path(f"all{i}")))), (0, len(keys)), keys)
        says = subprocess.run([os.environ["PENSTOCK_COMMAND"], "export", self.path("keys0"), "--to", "folder", self.path("said")],
                              capture_output=True, text=True, check=True).stdout
        self.assertIn("  left out        2, which readers of image folders leave out", says)
        subprocess.run([os.environ["PENSTOCK_COMMAND"], "export", self.path("keys0"), "--to", "folder", self.path("said_all"), "--key", "none"],
                       capture_output=True, check=True)
        self.assertEqual(len(penstock.Dataset(self.path("said_all"))), 3)

    def test_any_class_can_be_a_folder(self):
        found, n = self.classes([(0, "a.jpg"), (1, "b.jpg"), (2, "c.jpg"), (2, ".d/c.jpg")], ["penstock-export.json", "metadata.jsonl", ".d"])
        self.assertEqual((found, n), (["%2ed/c-000003.jpg", "%2ed/c.jpg", "%6detadata.jsonl/b.jpg", "%70enstock-export.json/a.jpg"], 4))
        self.assertEqual(len(penstock.Dataset(self.out)), 4)

    def test_a_key_below_its_class_is_the_path(self):
        records = [(0, "cat/1.jpg"), (1, "dog/deep/1.jpg"), (1, "cat/1.jpg"), (1, "dog")]
        self.assertEqual(self.classes(records, ["cat", "dog"]),
                         (["cat/1.jpg", "dog/cat/1.jpg", "dog/deep/1.jpg", "dog/dog.jpg"], 1))

    def test_numbers_replace_keys_on_request(self):
        self.assertEqual(self.classes([(0, "x.jpg"), (1, "y.jpg")], ["cat", "dog"], key=""),
                         (["cat/000000.jpg", "dog/000001.jpg", "metadata.jsonl"], 0))
        self.assertEqual([line["key"] for line in self.metadata()], ["x.jpg", "y.jpg"])

    def labels(self, names, numbers, **more):
        """Return the labels of metadata, of a data set whose class names are these; and the folder as penstock opens
        it."""
        shutil.rmtree(self.path(), ignore_errors=True)
        shutil.rmtree(self.out, ignore_errors=True)
        schema = {"image": "image", "cls": "int32", "score": "float32", **{name: "utf8" for name in more}}
        with penstock.Writer(self.path(), schema, names=names) as writer:
            for i, number in enumerate(numbers):
                writer.add(image=image_file(i), cls=number, score=i / 4, **more)
        penstock.export(self.path(), to="folder", out=self.out)
        return self.metadata(), penstock.Dataset(self.out)

    def test_labels_of_metadata_are_class_names(self):
        names = ["10", "9", "\u00e9", 'a "b"\n', "dog"]
        numbers = [4, 0, 2, 3, 1, 0]
        lines, again = self.labels(names, numbers)
        self.assertEqual([list(line) for line in lines], [["file_name", "label", "score"]] * 6)
        self.assertEqual([line["label"] for line in lines], [names[i] for i in numbers])
        self.assertEqual(again.names, tuple(sorted(names)))
        self.assertEqual([again.names[again[i]["label"]] for i in range(6)], [names[i] for i in numbers])
        again.close()
        again = penstock.Dataset(penstock.pack(self.out, self.path("again")).path)  # and packed, they are still
        self.assertEqual([again.names[again[i]["label"]] for i in range(6)], [names[i] for i in numbers])
        lines, again = self.labels(["cat", "dog"], [1, 7, -1])  # one text each: a column has one type
        self.assertEqual([line["label"] for line in lines], ["dog", "7", "-1"])
        self.assertEqual(again.names, ("-1", "7", "dog"))
        lines, _ = self.labels(["cat", "dog"], [1, 0], label="mine")
        self.assertEqual([(line["cls"], line["label"]) for line in lines], [("dog", "mine"), ("cat", "mine")])
        lines, again = self.labels(None, [1, 0])
        self.assertEqual([line["cls"] for line in lines], [1, 0])

    def test_which_image_is_asked_where_there_are_several(self):
        data = self.path()
        with penstock.Writer(data, {"a": "image", "b": "image"}) as writer:
            writer.add(a=image_file(1), b=image_file(2))
        self.assert_says(["image:", "more than one"], penstock.export, data, to="folder", out=self.out)
        self.assert_says(["field a is a second image", "fields to b"], penstock.export, data, to="folder", out=self.out,
                         image="b")
        penstock.export(data, to="folder", out=self.out, fields=["b"])
        with open(os.path.join(self.out, "000000.jpg"), "rb") as file:
            self.assertEqual(file.read(), image_file(2))
        export_data.write(self.path("d2"), some("cls"))
        self.assert_says(["have no image"], penstock.export, self.path("d2"), to="folder", out=self.path("o2"))


class Rules(Export):
    def test_settings_are_checked(self):
        data = export_data.write(self.path(), some("cls", "text"))
        for words, settings in ((["to: value is 'tar'", "webdataset"], {"to": "tar"}),
                                (["absent", "cls, text"], {"fields": ["cls", "absent"]}),
                                (["fields", "empty"], {"fields": []}),
                                (["a list of names"], {"fields": "cls"}),
                                (["key: field cls is of kind scalar"], {"key": "cls"}),
                                (["image:", "does not use it"], {"image": "cls"}),
                                (["shard_size"], {"shard_size": 5}),
                                (["no argument 'format'", "give to="], {"format": "mds"})):
            self.assert_says(words, penstock.export, data, **{"to": "webdataset", "out": self.out, **settings})
        self.assert_says(["no shards"], penstock.export, data, to="npy", out=self.out, fields=["cls"], shard_size=1 << 20)
        self.assertEqual(self.left(), ["data"])

    def test_a_subset_is_exported_in_its_order(self):
        data = export_data.write(self.path(), some("cls"))
        ids = [7, 3, 59, 0]
        done = penstock.export(data, to="npy", out=self.out, subset=penstock.Ids(ids))
        self.assertEqual(done.n_samples, 4)
        self.assertEqual(np.load(self.path("out/cls.npy")).tolist(), [sample(i)["cls"] for i in ids])
        done = penstock.export(data, to="npy", out=self.out, overwrite=True,
                               subset=[penstock.Range(10, 40), penstock.Fold(0, 3, seed=1)])
        self.assertEqual(done.n_samples, 10)
        self.assert_says("leaves none", penstock.export, data, to="npy", out=self.path("o"),
                         subset=[penstock.Range(0, 5), penstock.Where("cls", in_=[777])])

    def test_progress_counts_samples_and_an_exception_stops(self):
        data, seen = export_data.write(self.path(), some("cls")), []
        penstock.export(data, to="npy", out=self.out, on_progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen[-1], (N, N))
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            penstock.export(data, to="npy", out=self.path("o"), on_progress=lambda done, total: 1 // 0)
        self.assertEqual(self.left(), ["data", "out"])

    def test_ctrl_c_stops_and_leaves_nothing(self):
        data = export_data.write(self.path(), some("cls"))
        with self.assertRaises(KeyboardInterrupt):
            penstock.export(data, to="npy", out=self.out, on_progress=lambda *_: signal.raise_signal(signal.SIGINT))
        self.assertEqual(self.left(), ["data"])
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_another_thread_may_export(self):
        data, done = export_data.write(self.path(), some("cls")), []
        thread = threading.Thread(target=lambda: done.append(penstock.export(data, to="npy", out=self.out)))
        thread.start()
        thread.join()
        self.assertEqual(done[0].n_samples, N)

    def test_an_existing_directory_is_replaced_only_if_empty_or_an_untouched_export(self):
        data = export_data.write(self.path(), some("cls"))
        again = {"to": "npy", "out": self.out}
        penstock.export(data, **again)
        with self.assertRaisesRegex(penstock.DataSetExistsError, "set overwrite=True"):
            penstock.export(data, **again)
        penstock.export(data, **again, overwrite=True)
        with open(self.path("out/mine"), "w", encoding="utf-8"):
            pass
        self.assert_says("were added", penstock.export, data, **again, overwrite=True)
        os.remove(self.path("out/mine"))
        penstock.export(data, **again, overwrite=True)
        with open(self.path("out/cls.npy"), "ab") as file:
            file.write(b"x")
        self.assert_says("changed", penstock.export, data, **again, overwrite=True)
        self.assert_says("that no export made", penstock.export, data, to="npy", out=data, overwrite=True)
        os.mkdir(self.path("empty"))
        self.assert_says("exists already", penstock.export, data, to="npy", out=self.path("empty"))
        penstock.export(data, to="npy", out=self.path("empty"), overwrite=True)
        os.symlink("empty", self.path("link"))
        self.assert_says("not a directory", penstock.export, data, to="npy", out=self.path("link"), overwrite=True)
        self.assertEqual(self.left(), ["data", "empty", "link", "out"])

    def test_an_export_that_was_opened_is_replaced(self):
        data = export_data.write(self.path(), some("image", "cls"))
        for to in ("folder", "webdataset", "mds"):
            again = {"to": to, "out": self.path(to)}
            penstock.export(data, **again)
            self.assertEqual(len(penstock.Dataset(self.path(to))), N)
            if to == "folder":  # changed too lately for an index
                os.mkdir(self.path(f"{to}/.penstock"))
            for name in ("folder-1.index", "folder-1.index.lock", "1.points", "tar-1.checksums"):
                with open(self.path(f"{to}/.penstock/{name}"), "w", encoding="utf-8"):
                    pass
            penstock.export(data, **again, overwrite=True)
            self.assertFalse(os.path.exists(self.path(f"{to}/.penstock")))
            os.mkdir(self.path(f"{to}/.penstock"))
            for name in ("mine", "link.index"):
                path = self.path(f"{to}/.penstock/{name}")
                os.symlink("x", path) if name == "link.index" else open(path, "w", encoding="utf-8").close()
                self.assert_says("were added", penstock.export, data, **again, overwrite=True)
                os.remove(path)
        os.makedirs(self.path("none/.penstock"))
        with open(self.path("none/.penstock/tar-1.index"), "w", encoding="utf-8"):
            pass
        self.assert_says("that no export made", penstock.export, data, to="mds", out=self.path("none"), overwrite=True)

    def test_the_mark_has_the_names(self):
        with penstock.Writer(self.path(), {"cls": "int64"}, names=["a\"b", "\u00e4"]) as writer:
            writer.add(cls=1)
        penstock.export(self.path(), to="mds", out=self.out)
        with open(self.path("out/penstock-export.json"), encoding="utf-8") as file:
            mark = json.load(file)
        self.assertEqual((mark["names"], mark["target"], mark["n_samples"], mark["complete"]),
                         (["a\"b", "\u00e4"], "mds", 1, True))
        self.assertEqual(mark["identity"], penstock.Dataset(self.path()).info.identity)
        self.assertEqual(mark["fields"], [{"name": "cls", "kind": "scalar", "dtype": "i64", "shape": []}])

    def test_pixels_of_16_bits_come_back(self):
        deep = (picture().astype("u2") * 257)[..., 0]
        with penstock.Writer(self.path(), {"image": "image"}) as writer:
            writer.add(image=deep)
        done = penstock.export(self.path(), to="folder", out=self.out)
        self.assertEqual(done.n_encoded, 1)
        self.assertTrue((np.asarray(optional("PIL.Image").open(self.path("out/000000.png"))) == deep).all())


if __name__ == "__main__":
    unittest.main()
