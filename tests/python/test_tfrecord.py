# SPDX-License-Identifier: Apache-2.0
"""TFRecord files as data sets: every sample is what was written, and damage of every kind is named."""
import contextlib
import ctypes
import gzip
import io
import json
import os
import pickle
import random
import struct
import subprocess
import time
import unittest
import zlib

import forge
import penstock
import tfrecords
from data_fixture import Case, image_file, np
from penstock.__main__ import command
from penstock.foreign import Opening
from tfrecords import Raw, example, example_class, frame

EMPTY = {"floats": Raw(b"\x12\x00"), "ints": Raw(b"\x1a\x00"), "texts": Raw(b"\x0a\x00")}  # lists of no value


def features(n, jpeg=None):
    """Return the features of sample n, in the form that a Dataset gives."""
    chance = random.Random(n)
    made = {"label": n * 7919 - 50, "large": chance.randrange(-2**63, 2**63), "score": n / 8, "pair": [n, -n],
            "vector": [n / 2, -1.0, 1e30], "text": f"text {n} é".encode(), "ints": [chance.randrange(-9, 2**40) for _ in range(n % 5)],
            "floats": [float(i) for i in range(n % 4)], "texts": [b"x" * i for i in range(n % 3)],
            "image/encoded": jpeg or bytes(n % 9)}
    return made


def data_of(n, packed=True, **more):
    """Return the Example of sample n."""
    made = {key: value if value != [] else EMPTY[key] for key, value in features(n, **more).items()}
    return example(made, packed)


class Tfrecord(Case):
    def put(self, files, name="data"):
        """Write {file name: bytes or records}; returns the folder."""
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        for file, data in files.items():
            with open(os.path.join(folder, file), "wb") as out:
                out.write(data if isinstance(data, bytes) else b"".join(frame(one) for one in data))
        return folder

    def check(self, got, n, **more):
        wanted = features(n, **more)
        self.assertEqual(set(got), {key.replace("/", ".") for key in wanted})
        for key, value in wanted.items():
            found = got[key.replace("/", ".")]
            if isinstance(found, np.ndarray):
                self.assertEqual(found.dtype, np.float32 if key in ("vector", "floats") else np.int64)
                self.assertEqual(found.tolist(), np.array(value, found.dtype).tolist(), key)
            else:
                self.assertEqual(found, value, key)

    def refused(self, path, *words, kind=penstock.CorruptRecordError, **more):
        with self.assertRaises(kind) as caught:
            penstock.Dataset(path, **more)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def unreadable(self, data, n, *words, field=None):
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            if field:
                data.get(n, field)
            else:
                data[n]
        for word in words:
            self.assertIn(word, str(caught.exception))


class Right(Tfrecord):
    jpeg = image_file()

    def test_the_frame_is_that_of_tensorflow(self):
        self.assertEqual(frame(b"").hex(), "0000000000000000" "29039807" "d8ea82a2")

    def test_every_feature_is_what_was_written(self):
        for packed in (True, False):
            files = {f"t.tfrecord-{k:05d}-of-00003": [data_of(n, packed, jpeg=self.jpeg) for n in range(100 * k, 100 * k + 100)]
                     for k in range(3)}
            folder = self.put(files, f"packed{packed}")
            for path, first, size in ((folder, 0, 300), (folder + "/t.tfrecord-{00000..00002}-of-00003", 0, 300),
                                      (folder + "/t.tfrecord-*", 0, 300), (folder + "/t.tfrecord-00001-of-00003", 100, 100)):
                with penstock.Dataset(path) as data:
                    self.assertEqual((len(data), data.info.format, data.info.has_checksums), (size, "tfrecord", True))
                    for i in range(0, size, 1 if path == folder else 17):
                        self.check(data[i], first + i, jpeg=self.jpeg)

    def test_a_loader_has_each_sample_once_an_epoch_in_every_order(self):
        folder = self.put({f"{k}.tfrecord": [data_of(n, jpeg=self.jpeg) for n in range(101 * k, 101 * k + 101)] for k in range(3)})
        keys = [key for key in features(0) if key != "image/encoded"]
        for keywords in ({"order": "full"}, {"order": "sequential"}, {"order": penstock.Order("windowed", ways=1)},
                         {"reading": penstock.Reading(reader="threads"), "order": "full"},
                         {"reading": penstock.Reading(io="direct"), "order": "full"}):
            with penstock.Loader(folder, batch_size=32, framework="numpy", last_batch="short", outputs=keys, **keywords) as loader:
                for epoch in (0, 1):
                    ids = []
                    for batch in loader.epoch(epoch):
                        for i, n in enumerate(int(i) for i in batch.sample_ids):
                            wanted = features(n)
                            for key in keys:
                                value, row = wanted[key], batch[key][i]
                                if key == "texts":
                                    sizes = [len(item) for item in value]
                                    self.assertEqual(bytes(row), struct.pack(f"<I{len(sizes)}I", len(sizes), *sizes) + b"".join(value))
                                elif key == "text":
                                    self.assertEqual(bytes(row), value)
                                else:
                                    self.assertEqual(np.asarray(row).tolist(), np.array(value, np.asarray(row).dtype).tolist(), key)
                            ids.append(n)
                    self.assertEqual(sorted(ids), list(range(303)))

    def test_images_are_decoded(self):
        folder = self.put({"0.tfrecord": [example({"image/encoded": image_file(n), "label": n}) for n in range(20)]})
        with penstock.Loader(folder, batch_size=20, framework="numpy", order="sequential",
                             outputs={"image": penstock.image("image.encoded", [penstock.ops.CenterCrop(32)])}) as loader:
            batch = next(iter(loader))
            self.assertEqual(batch["image"].shape[0], 20)
            self.assertGreater(np.asarray(batch["image"]).std(), 1)

    def test_records_that_are_no_example_are_one_field(self):
        chance = random.Random(3)
        records = [chance.randbytes(chance.choice((0, 1, 100, 2000, 70000))) for _ in range(60)]
        folder = self.put({"0.tfrecord": records})
        with penstock.Dataset(folder) as data:
            self.assertEqual([data[i]["data"] for i in range(60)], records)
        with penstock.Loader(folder, batch_size=7, framework="numpy", last_batch="short") as loader:
            got = {int(n): bytes(row) for batch in loader for n, row in zip(batch.sample_ids, batch["data"], strict=True)}
        self.assertEqual(got, dict(enumerate(records)))

    def test_an_example_may_be_read_whole(self):
        records = [data_of(n) for n in range(9)]
        folder = self.put({"0.tfrecord": records})
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields={"data": "bytes"})) as data:
            self.assertEqual([data[i] for i in range(9)], [{"data": one} for one in records])
        many = [example({f"feature {i}": [i] for i in range(70)}), example({"a/b": [1], "a.b": [2]}), example({"k" * 64: [1]})]
        for i, (one, words) in enumerate(zip(many, ("more than 64", "become the field name a.b", "has 64 bytes"), strict=True)):
            folder = self.put({"0.tfrecord": [one]}, f"many{i}")
            self.refused(folder, words, 'fields={"data": "bytes"}', kind=penstock.UnsupportedError)
            self.assertEqual(penstock.Dataset(folder, foreign=penstock.Foreign(fields={"data": "bytes"}))[0], {"data": one})
        folder = self.put({"0.tfrecord": [example({"data": [5], "x": [6]})]}, "named")
        self.assertEqual(penstock.Dataset(folder, foreign=penstock.Foreign(fields={"data": "int32"}))[0], {"data": 5, "x": 6})

    def test_fields_may_be_named(self):
        folder = self.put({"0.tfrecord": [example({"i": [n], "n": [n, n + 1, n + 2, n + 3], "f": [n / 2] * 6, "b": [b"abcdefgh"],
                                                   "l": [b"x"] * (n % 3 + 1)}) for n in range(20)]})
        fields = {"i": "uint8", "n": ("int16", (2, 2)), "f": ("float32", (None, 3)),
                  "b": ("uint16", (4,)), "l": "utf8_list"}
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields=fields)) as data:
            sample = data[5]
            self.assertEqual((sample["i"], sample["n"].tolist(), sample["f"].shape, sample["l"]),
                             (5, [[5, 6], [7, 8]], (2, 3), ["x"] * 3))
            self.assertEqual(sample["b"].tobytes(), b"abcdefgh")
        self.assertEqual(penstock.Dataset(folder, foreign=penstock.Foreign(fields={"b": "utf8"}))[0]["b"], "abcdefgh")
        with penstock.Loader(folder, foreign=penstock.Foreign(fields={"i": "int16"}), outputs=["i"], batch_size=5,
                             framework="numpy") as loader:
            self.assertEqual(next(iter(loader))["i"].dtype, np.int16)
        for field, kind, words in (("i", "float32", "an int64_list"), ("f", "float64", "a float_list"), ("b", "int64", "a bytes_list"),
                                   ("n", ("int64", (None, None)), "one variable dimension")):
            self.refused(folder, f"field {field}", words, kind=penstock.UnsupportedError,
                         foreign=penstock.Foreign(fields={field: kind}))
        data = penstock.Dataset(self.put({"0.tfrecord": [example({"i": [n]}) for n in (5, 300, -1)]}, "range"),
                                foreign=penstock.Foreign(fields={"i": "uint8"}))
        self.unreadable(data, 1, "record 1", "300", "does not fit in u8")
        self.unreadable(data, 2, "-1")

    def test_large_values_are_measured_without_their_bytes(self):
        sizes = (65000, 65500, 65536, 70000, 300000, 5)
        records = [example({"before": [n], "image": b"\xff\xd8\xff" + bytes(size), "tokens": list(range(size // 10)), "after": [1.5] * 9})
                   for n, size in enumerate(sizes)]
        folder = self.put({"0.tfrecord": records})
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields={"image": "bytes"})) as data:
            for n, size in enumerate(sizes):
                self.assertEqual(len(data[n]["image"]), 3 + size)
                self.assertEqual(data[n]["tokens"].tolist(), list(range(size // 10)))
        out = subprocess.run([os.environ["PENSTOCK_COMMAND"], "info", folder, "--json"], capture_output=True, text=True, check=True)
        found = {field["name"]: field for field in json.loads(out.stdout)["fields"]}
        self.assertEqual(found["image"]["max_stored_size"], 300003)

    def test_resume_goes_on_where_it_was(self):
        folder = self.put({"0.tfrecord": [data_of(n) for n in range(200)]})
        keywords = {"batch_size": 16, "framework": "numpy", "seed": 3, "outputs": ["label"]}
        with penstock.Loader(folder, **keywords) as loader:
            batches = iter(loader.epoch(0))
            for _ in range(5):
                next(batches)
            state = loader.state_dict()
            wanted = [list(map(int, batch.sample_ids)) for batch in batches]
        with penstock.Loader(folder, **keywords) as loader:
            loader.load_state_dict(state)
            self.assertEqual([list(map(int, batch.sample_ids)) for batch in loader], wanted)

    def test_folders_are_known_by_names_or_by_their_bytes(self):
        record = [example({"a": [1]})]
        for i, names in enumerate((["x.tfrecords"], ["x.tfrec"], ["train-00000-of-00002", "train-00001-of-00002"], ["part-r-00000"],
                                   ["a.tfrecord-00000-of-00002", "a.tfrecord-00001-of-00002"])):
            folder = self.put({name: record for name in [*names]}, f"names{i}")
            with open(folder + "/x.tfrecord-00000-of-00002.idx", "w", encoding="ascii") as other:
                other.write("0 20\n")
            self.assertEqual(len(penstock.Dataset(folder)), len(names))
            self.assertEqual(len(penstock.Dataset(f"{folder}/{names[0]}")), 1)
        self.assertEqual(len(penstock.Dataset(self.put({"any": record}, "any.tfrecord") + "/any")), 1)
        self.assertEqual(len(penstock.Dataset(self.put({"x-{0}": record, "x-1": record}, "patterns") + "/x-?")), 1)
        self.refused(self.put({"model.data-00000-of-00001": b"weights" * 9}, "weights"), "is not a data set", kind=penstock.PenstockError)

    def test_of_a_pattern_the_missing_file_is_named(self):
        folder = self.put({f"train-0000{k}-of-00004": [data_of(k)] for k in (1, 3)}, "missing")
        for pattern, file in (("train-{00000..00003}-of-00004", "train-00000-of-00004"), ("train-{00003,00002}-of-00004", "train-00002-of-00004"),
                              ("none-{a,b}", "none-a"), ("none-{1..3}.tfrecord", "none-1.tfrecord")):
            self.refused(f"{folder}/{pattern}", f"cannot open {folder}/{file}: No such file", kind=penstock.DataSetNotFoundError)
        self.refused(folder + "/none-*", "matches no file", kind=penstock.DataSetNotFoundError)
        with open(folder + "/x1.txt", "w"):
            pass
        self.refused(folder + "/x*.txt", "matches 1 file that no reader recognises", "x1.txt", kind=penstock.UnsupportedError)

    def test_files_compressed_by_gzip_are_read_whatever_their_names(self):
        records = b"".join(frame(data_of(n)) for n in range(900))
        packed = gzip.compress(records)
        for name in ("0.tfrecord", "0.tfrecord.gz", "x.tfrecord-00000-of-00001", "x.tfrecord-00000-of-00001.gz",
                     "train-00000-of-00001"):
            with penstock.Dataset(self.put({name: packed}, "gz" + name)) as data:
                self.assertEqual(len(data), 900)
                for n in (0, 899, *random.Random(3).sample(range(900), 40)):
                    self.check(data[n], n)
        with penstock.Dataset(self.put({"any.bin": packed}, "any") + "/any.bin") as data:
            self.check(data[7], 7)
        self.refused(self.put({"0.tfrecord": packed[:-3]}, "cut"), "0.tfrecord", "cut short")
        self.refused(self.put({"0.tfrecord": records, "1.tfrecord": packed}, "both"), "1.tfrecord", "gunzip",
                     kind=penstock.UnsupportedError)

    def test_a_plain_file_that_begins_as_a_gzip_file_is_plain(self):
        length = 0x088b1f  # the first bytes of such a file, and a right checksum
        data = self.put({"0.tfrecord": [bytes(length), b"x"]})
        with penstock.Dataset(data) as data_set:
            self.assertEqual([len(data_set[i]["data"]) for i in range(2)], [length, 1])

    def test_zlib_compressed_files_are_refused_with_advice(self):
        packed = zlib.compress(b"".join(frame(data_of(n)) for n in range(9)))
        self.refused(self.put({"0.tfrecord": packed}, "zlib"), "0.tfrecord", "zlib", "pigz", kind=penstock.UnsupportedError)

    def test_mixtures_and_identities(self):
        a = self.put({"0.tfrecord": [data_of(n) for n in range(40)]}, "a")
        b = self.put({"0.tfrecord": [data_of(n) for n in range(40, 100)]}, "b")
        self.assertNotEqual(penstock.Dataset(a).info.identity, penstock.Dataset(b).info.identity)
        with penstock.Loader(penstock.Mixture({a: 1, b: 1}), batch_size=8, framework="numpy", outputs=["label", "text"]) as loader:
            for batch in loader:
                for i, n in enumerate(batch["label"]):
                    self.assertEqual(bytes(batch["text"][i]), features((int(n) + 50) // 7919)["text"])


class Optional(Tfrecord):
    """A feature that only some records have."""

    def put_some(self, n=12):
        """Write records: each has `id`, and each third one lacks the others."""
        return self.put({"0.tfrecord": [example({"id": i} if i % 3 == 1 else {
            "id": i, "label": i, "box": [0.5, 0.25, i / 8, 1.0], "text": b"t%d" % i, "jpeg": image_file(i)}) for i in range(n)]})

    def got(self, folder, field, *more):
        """Return the command's output for record 1100."""
        return subprocess.run([command(), "get", folder, "1100", field, *more], capture_output=True, encoding="utf-8")

    def test_it_is_inferred_as_variable_and_absent_values_are_empty(self):
        with penstock.Dataset(self.put_some()) as data:
            for i in range(12):
                sample = {name: data.get(i, name) for name in ("id", "label", "box", "text")}
                has = i % 3 != 1
                self.assertEqual((sample["id"], sample["text"]), (i, [b"t%d" % i] if has else []))
                self.assertEqual((sample["label"].dtype, sample["label"].tolist()), (np.int64, [i] if has else []))
                self.assertEqual((sample["box"].dtype, sample["box"].tolist()), (np.float32, [0.5, 0.25, i / 8, 1.0] if has else []))
            self.assertEqual(data.get(0, "jpeg"), image_file(0))
            self.unreadable(data, 1, "absent from this record", field="jpeg")  # no image is empty

    def test_replace_drops_none_of_the_records_without_it(self):
        bad, seen = [], {}
        with penstock.Loader(self.put_some(), batch_size=4, framework="numpy", outputs=["id", "label", "box"], order="sequential",
                             bad_sample=lambda error, other: bad.append(error.sample_id)) as loader:
            for batch in loader:
                for i, label, box in zip(batch["id"], batch["label"], batch["box"], strict=True):
                    seen[int(i)] = (np.asarray(label).tolist(), len(np.asarray(box)))
        self.assertEqual(bad, [])
        self.assertEqual(seen, {i: ([], 0) if i % 3 == 1 else ([i], 4) for i in range(12)})

    def test_declared_as_variable_it_is_empty_where_it_is_absent(self):
        first = [example({"i": [n], "label": [n], "f": [0.5], "t": [b"x"], "pair": [n, n]}) for n in range(1100)]
        folder = self.put({"0.tfrecord": [*first, example({"i": 7})]})
        with penstock.Dataset(folder) as data:  # the records that give the kinds all have it
            self.unreadable(data, 1100, 'fields={"label": ("int64", (), 0)}) reads 0, and (None,) none there', field="label")
            self.unreadable(data, 1100, 'fields={"f": ("float32", (), 0)}) reads 0', field="f")
            self.unreadable(data, 1100, 'fields={"pair": ("int64", (None,))}) reads none there', field="pair")
            self.unreadable(data, 1100, 'fields={"t": ["bytes"]}', field="t")
        with self.assertRaises(penstock.PenstockError) as caught:
            penstock.pack(folder, self.path("packed"))
        self.assertRegex(str(caught.exception), r'fields=\{"(label|f|pair|t)": (\("\w+", (\(\), 0|\(None,\))\)|\["bytes"\])\}\) reads ')
        for field, option in (("label", "label=int64=0"), ("f", "f=float32=0"), ("pair", "'pair=int64[*]'"), ("t", "t=bytes_list")):
            self.assertIn(f"; --field {option} reads", self.got(folder, field).stderr)
            self.assertEqual(self.got(folder, field, "--field", option.strip("'")).returncode, 0)
        fields = {"label": ("int64", (None,)), "f": ("float32", (None, 1)), "t": ["bytes"], "pair": ("int64", (None,))}
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields=fields)) as data:
            sample = data[1100]
            self.assertEqual((sample["i"], sample["label"].tolist(), sample["f"].shape, sample["t"]), (7, [], (0, 1), []))
            self.assertEqual((data[5]["label"].tolist(), data[5]["t"]), ([5], [b"x"]))

    def test_a_feature_without_a_list_and_an_empty_record(self):
        with penstock.Dataset(self.put({"0.tfrecord": [example({"i": 5, "x": [3]}), example({"i": 6, "x": None})]}, "no list")) as data:
            self.assertEqual([data[i]["x"].tolist() for i in range(2)], [[3], []])


class Default(Tfrecord):
    """The value of a field in records without it, if the caller gives one."""
    fields = {"label": ("int64", (), -3), "small": ("uint8", (), 255), "score": ("float32", (), 0.5), "pair": ("int64", (2,), [7, 8]),
              "text": ("utf8", (), "none"), "raw": ("bytes", (), b"a\0b"), "tags": ["utf8"]}
    absent = {"label": -3, "small": 255, "score": 0.5, "pair": [7, 8], "text": "none", "raw": b"a\0b", "tags": []}

    def features(self, i):
        """Return the features of record i; None: a feature without a list, which is none for TensorFlow, too."""
        if i % 3 == 1:
            return {"id": i}
        if i % 3 == 2:
            return {"id": i, **dict.fromkeys(self.absent)}
        return {"id": i, "label": i, "small": i, "score": i / 4, "pair": [i, -i], "text": f"t{i}", "raw": b"r", "tags": ["a", "b"]}

    def wanted(self, i):
        return self.features(i) if i % 3 == 0 else {"id": i, **self.absent}

    def put_some(self, n=12, name="data"):
        return self.put({"0.tfrecord": [example(self.features(i)) for i in range(n)]}, name)

    def plain(self, sample):
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in sample.items()}

    def test_packing_counts_the_defaults_of_samples_that_it_takes(self):
        folder = self.put({"0.tfrecord": [example({"id": i, "text": b"bad \xff" if i % 4 == 1 else b"good", "label": None if i % 2 else i})
                                          for i in range(12)]}, "refused")
        command = [os.environ["PENSTOCK_COMMAND"], "pack", folder, self.path("taken"), "--field=id=int64", "--field=text=utf8",
                   "--field=label=int64=-3", "--skip-bad", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        self.assertEqual((told["n_samples"], len(told["skipped"])), (9, 3))
        self.assertEqual(told["absent"], {"label": 3})  # records 3, 7 and 11
        with penstock.Dataset(self.path("taken")) as data:
            self.assertEqual(sum(sample["label"] == -3 for sample in data), 3)

    def test_records_without_a_field_have_its_default_and_are_counted(self):
        folder = self.put_some()
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields=self.fields)) as data:
            again = pickle.loads(pickle.dumps(data))
            for i in range(12):
                self.assertEqual(self.plain(data[i]), self.wanted(i))
                self.assertEqual(self.plain(again[i]), self.wanted(i))
            self.assertEqual({name: field.n_absent for name, field in data.fields.items()}, {"id": 0, **dict.fromkeys(self.absent, 8)})
            other = penstock.Dataset(folder, foreign=penstock.Foreign(fields={**self.fields, "label": ("int64", (), 4)}))
            self.assertNotEqual(data.info.identity, other.info.identity)
            self.assertEqual(other[1]["label"], 4)
        bad, seen = [], {}
        with penstock.Loader(folder, foreign=penstock.Foreign(fields=self.fields), batch_size=4, framework="numpy",
                             order="sequential", bad_sample=lambda error, other: bad.append(error),
                             outputs=["id", "label", "small", "score", "pair"]) as loader:
            for batch in loader:
                for row in zip(*(np.asarray(batch[name]).tolist() for name in ("id", "label", "small", "score", "pair")), strict=True):
                    seen[row[0]] = row
        self.assertEqual(bad, [])
        self.assertEqual(seen, {i: tuple(self.wanted(i)[name] for name in ("id", "label", "small", "score", "pair")) for i in range(12)})

    def test_a_default_counts_where_only_late_records_lack_the_field(self):
        records = [example({"i": n, "label": n, "large": bytes(9)}) for n in range(1100)] + [example({"i": 7, "large": bytes(70000)})]
        folder = self.put({"0.tfrecord": records})
        with penstock.Dataset(folder) as data:
            self.assertEqual(data.fields["label"].n_absent, 1)
            self.unreadable(data, 1100, "absent from this record", field="label")
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields={"label": ("int64", (), 9)})) as data:
            self.assertEqual((data[1100]["label"], data[1099]["label"], len(data[1100]["large"])), (9, 1099, 70000))

    def test_a_list_of_no_values_is_no_absent_feature_nor_is_one_of_another_type(self):
        folder = self.put({"0.tfrecord": [example({"x": 5}), example({"x": EMPTY["ints"]}), example({"y": 1}), example({"x": 5, "y": 1})]})
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields={"x": ("int64", (), 1), "y": ("int64", (), 2)})) as data:
            self.assertEqual([data.get(i, "x") for i in (0, 2, 3)], [5, 1, 5])
            self.unreadable(data, 1, "has 0 values; must have 1", field="x")
            self.assertEqual((data.fields["x"].n_absent, data.fields["y"].n_absent), (1, 2))
        records = [example({"x": 5}) for _ in range(1000)] + [example({"x": b"text"})]
        with penstock.Dataset(self.put({"0.tfrecord": records}, "other"),
                              foreign=penstock.Foreign(fields={"x": ("int64", (), 1)})) as data:
            self.assertEqual(data.fields["x"].n_absent, 0)
            self.unreadable(data, 1000, "is a bytes_list in this record", field="x")

    def test_invalid_defaults_are_refused(self):
        folder = self.put_some()
        for field, words, kind in (
                (("int64", (), "x"), "field label", penstock.FieldError), (("int64", (), 0.5), "field label", penstock.FieldError),
                (("uint8", (), 256), "must be from 0 to 255 for uint8", penstock.FieldError),
                (("int64", (2,), 0), "must be of shape (2,)", penstock.FieldError),
                (("int64", (None,), [1]), "'label'; must be without one: it is variable", penstock.UnsupportedError)):
            self.refused(folder, words, foreign=penstock.Foreign(fields={"label": field}), kind=kind)
        self.refused(folder, "which no sample of", foreign=penstock.Foreign(fields={"lable": ("int64", (), 0)}),
                     kind=penstock.SettingsError)
        images = self.put({"0.tfrecord": [example({"x": image_file()})]}, "images")
        self.refused(images, "'x'; must be without one: it is an image",
                     foreign=penstock.Foreign(fields={"x": ("image", (), b"")}), kind=penstock.UnsupportedError)
        self.refused(folder, "'data'; must be without one: every record has it",
                     foreign=penstock.Foreign(fields={"data": ("bytes", (), b"")}),
                     kind=penstock.UnsupportedError)
        np.save(self.path("x.npy"), np.arange(4))
        self.refused(self.path("x.npy"), "'x'; must have none", "only fields of TFRecord files",
                     foreign=penstock.Foreign(fields={"x": ("int64", (), 0)}),
                     kind=penstock.UnsupportedError)

    def test_the_library_checks_defaults_by_itself(self):
        folder = self.put_some()
        wide, narrow = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"\xff")
        place = ctypes.cast(wide, ctypes.c_void_p)
        one = penstock._c.Default(name=b"label", data=place, size=8)
        for defaults, n, words in (
                ([one], 65, "foreign.n_defaults: value is 65; must be at most 64"), ([one, one], 2, "two defaults for 'label'"),
                ([penstock._c.Default(name=None, data=place, size=8)], 1, "foreign.defaults[0]: name or data is missing"),
                ([penstock._c.Default(name=b"label", data=None, size=8)], 1, "foreign.defaults[0]: name or data is missing"),
                ([penstock._c.Default(name=b"label", data=place, size=4)], 1, "a wrong default for 'label': 4 bytes; a i64 has 8"),
                ([penstock._c.Default(name=b"text", data=ctypes.cast(narrow, ctypes.c_void_p), size=1)], 1,
                 "a wrong default for 'text': not UTF-8 at byte 0"),
                ([penstock._c.Default(name=b"lable", data=place, size=8)], 1, "a default for 'lable'; must be a field"),
                ([one], 1, None)):
            made = Opening(penstock.Foreign(fields={"label": "int64", "text": "utf8"})).to_c()
            array = (penstock._c.Default * len(defaults))(*defaults)
            made.defaults, made.n_defaults = array, n
            handle, error = ctypes.c_void_p(), penstock.errors.new()
            code = penstock._c.lib.pstk_dataset_open(ctypes.byref(handle), os.fsencode(folder), ctypes.byref(made), ctypes.byref(error))
            penstock._c.lib.pstk_dataset_close(ctypes.byref(handle))
            self.assertEqual((code, words in error.message.decode() if words else True),
                             (penstock._c.EINVAL if words else 0, True), error.message)

    def test_packing_writes_the_default_and_counts(self):
        folder = self.put_some()
        fields = {name: field for name, field in self.fields.items() if name not in ("pair", "raw")}
        there = {"tags", "pair", "raw"}  # variable, and so empty

        def check(data):
            for i in range(12):
                self.assertEqual({name: value for name, value in self.plain(data[i]).items() if name not in there},
                                 {name: value for name, value in self.wanted(i).items() if name not in there})
                self.assertEqual((data[i]["pair"].tolist(), data[i]["raw"], data[i]["tags"]),
                                 ([i, -i], [b"r"], ["a", "b"]) if i % 3 == 0 else ([], [], []))

        with penstock.Dataset(folder, foreign=penstock.Foreign(fields=fields)) as data:
            for n_workers in (0, 2):
                with contextlib.redirect_stderr(io.StringIO()) as said:
                    check(penstock.pack(data, self.path(f"samples{n_workers}"), num_workers=n_workers))
                self.assertIn("8 samples have no field label: packed with its default\n", said.getvalue())
                self.assertIn("8 samples have no field pair: packed with an empty value\n", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as said:
            check(penstock.pack(folder, self.path("by path"), foreign=penstock.Foreign(fields=fields)))
        self.assertIn("8 samples have no field label: packed with its default\n", said.getvalue())
        options = ["--field=label=int64=-3", "--field=small=uint8=255", "--field=score=float32=0.5", "--field=text=utf8=none",
                   "--field=tags=utf8_list"]
        command = [os.environ["PENSTOCK_COMMAND"], "pack", folder, *options]
        done = subprocess.run([*command, self.path("command")], capture_output=True, text=True, check=True)
        self.assertIn("8 samples have no field label: packed with its default\n", done.stderr)
        check(penstock.Dataset(self.path("command")))
        done = subprocess.run([*command, self.path("part"), "--part=1/4", "--json"], capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(done.stdout)["absent"], dict.fromkeys(self.absent, 2))  # records 3, 4 and 5
        info = subprocess.run([command[0], "info", folder, *options], capture_output=True, text=True, check=True).stdout
        self.assertRegex(info, "label +scalar i64 .* absent from 8")

    def test_of_a_mixture_fields_hold_for_each_and_a_packed_one_has_its_own(self):
        first, second = self.put_some(), self.put_some(9, "second")
        fields = {"label": ("int64", (), -3)}
        with contextlib.redirect_stderr(io.StringIO()):
            packed = penstock.pack(second, self.path("packed"),
                                   foreign=penstock.Foreign(fields={"label": ("int64", (), 7)})).path
        for other, default in ((second, -3), (packed, 7)):
            mixture = penstock.Mixture({first: 1, other: 1}, exhaustion="drop")
            with penstock.Loader(mixture, foreign=penstock.Foreign(fields=fields), batch_size=3, framework="numpy",
                                 order="sequential", outputs=["id", "label"]) as loader:
                for batch in loader:
                    for i, label, which in zip(batch["id"].tolist(), batch["label"].tolist(), batch.data_sets, strict=True):
                        self.assertEqual(label, i if i % 3 == 0 else (-3, default)[which])

    def test_each_float_is_a_default(self):
        folder = self.put_some()
        for value in (0.1, -0.0, 1e-40, 2**-149, 3.4028234663852886e38, float("inf"), float("nan")):
            with contextlib.redirect_stderr(io.StringIO()):
                found = penstock.pack(folder, self.path("out"),
                                      foreign=penstock.Foreign(fields={"score": ("float32", (), value)}),
                                      overwrite=True)[1]["score"]
            self.assertEqual(struct.pack("f", found), struct.pack("f", value), value)
        for text in ("1e-60", "1e60"):
            done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "info", folder, "--field", f"score=float32={text}"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, "the default must be a number that the type can hold" in done.stderr), (2, True), done.stderr)

    def test_the_command_refuses_what_no_default_can_be(self):
        folder = self.put_some()
        for given, words in (("label=uint8=256", "the default must be a number that the type can hold"),
                             ("label=int8=-129", "the default must be a number"), ("label=int64=", "the default must be a number"),
                             ("label=int64= 1", "the default must be a number"), ("score=float32=x", "the default must be a number"),
                             ("pair=int64[2]=1", "that of an array can be given in Python"),
                             ("tags=utf8_list=x", "--field: value has a default for 'tags'; must be without one: it is a list")):
            done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "info", folder, "--field", given], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, words in done.stderr), (2, True), done.stderr)
        with self.assertRaisesRegex(penstock.SettingsError, r"pair.*penstock.pack\(penstock.Dataset\(path"):
            penstock.pack(folder, self.path("out"), foreign=penstock.Foreign(fields=self.fields))
        for kind in ("float16", "bfloat16", "float64"):
            with self.assertRaisesRegex(penstock.SettingsError, f"fields: value has the type '{kind}' for 'score'; must be 'float32' with a default"):
                penstock.pack(folder, self.path("out"), foreign=penstock.Foreign(fields={"score": (kind, (), 0.5)}))
            done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "info", folder, "--field", f"score={kind}=0.5"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, "the type must be float32 with a default" in done.stderr), (2, True), done.stderr)
        with self.assertRaisesRegex(penstock.SettingsError, "fields: value is given; must be left out"):
            penstock.pack([1, 2], self.path("out"), foreign=penstock.Foreign(fields=self.fields))


class Odd(Tfrecord):
    """Forms of a tf.train.Example that other writers make, and bytes that are no Example."""
    advice = 'fields={"data": "bytes"}'

    def entries(self, n):
        """Features as protobuf allows them: the value before the key, and fields that the message does not have."""
        value = tfrecords.message(2, tfrecords.feature(n) + tfrecords.message(9, b"more"))
        return (tfrecords.message(1, value + tfrecords.message(1, b"label")) +
                tfrecords.message(1, tfrecords.message(1, b"text") + b"\x20\x05" +
                                  tfrecords.message(2, tfrecords.feature(b"t%d" % n))) + tfrecords.message(5, b"other"))

    def test_value_before_key_and_unknown_fields_are_read(self):
        for pad in (0, 70000):  # a large record is measured in pieces
            more = tfrecords.message(15, b"unknown" + bytes(pad)) + b"\x39" + bytes(8) + b"\x45" + bytes(4) + b"\x48\x96\x01"
            image = tfrecords.message(1, tfrecords.message(2, tfrecords.feature(bytes(pad))) + tfrecords.message(1, b"pixels"))
            records = [more + tfrecords.message(1, self.entries(n) + image) + more for n in range(20)]
            with penstock.Dataset(self.put({"0.tfrecord": records}, f"odd{pad}")) as data:
                for n in range(20):
                    self.assertEqual(data[n], {"label": n, "text": b"t%d" % n, "pixels": bytes(pad)})

    def test_merged_and_unknown_fields_are_read_as_protobuf_reads_them(self):
        """protobuf's own parser is the oracle, with TensorFlow's descriptor."""
        parse = example_class().FromString
        for pad in (0, 70000):  # a large record is measured in pieces
            group = b"\x1b" * 3 + b"\x08\x96\x01" + tfrecords.message(9, bytes(pad // 2)) + b"\x1c" * 3
            big, last = {"pixels": b"x" + bytes(pad)}, {"label": 7, "text": b"late", "ints": [4, 5]}
            made = [example({"label": 1, **big}) + example(last),  # the later entries count
                    group + example({**last, **big}) + group,
                    example({"label": 2, "text": b"early", "ints": [1, 2], **big}) + group + example({"text": None}),
                    example({**last, **big}) + example({"pixels": b"short"}),
                    tfrecords.message(1, group + example({**last, **big})[len(tfrecords.varint(10)):][self.head(example({**last, **big})):] + group)]
            folder = self.put({"0.tfrecord": made * 2}, f"merged{pad}")
            with penstock.Dataset(folder,
                                  foreign=penstock.Foreign(fields={"label": ("int64", (), -1), "text": ("bytes", (), b"none"),
                                                                   "ints": ("int64", (None,))})) as data:
                absent = dict.fromkeys(data.fields, 0)
                for n, record in enumerate(made * 2):
                    theirs = parse(record).features.feature
                    mine = data[n]
                    for name, one in (("label", "int64_list"), ("ints", "int64_list"), ("text", "bytes_list"), ("pixels", "bytes_list")):
                        values = list(getattr(theirs[name], one).value) if name in theirs else []
                        has = name in theirs and theirs[name].WhichOneof("kind") is not None
                        absent[name] += not has
                        wanted = {"label": -1, "text": b"none", "ints": []}.get(name) if not has else \
                            values if name == "ints" else values[0]
                        self.assertEqual(mine[name].tolist() if name == "ints" else mine[name], wanted, (pad, n, name))
                self.assertEqual({name: field.n_absent for name, field in data.fields.items()}, absent)

    def head(self, data):
        """Return bytes of the size of a message, after its tag of one byte."""
        return next(i for i, byte in enumerate(data[1:]) if byte < 128) + 1

    def sequence(self, n):
        """Return a tf.train.SequenceExample."""
        frames = b"".join(tfrecords.message(1, tfrecords.feature(i)) for i in range(n))
        return example({"length": n}) + tfrecords.message(2, tfrecords.message(1, tfrecords.message(1, b"words") + tfrecords.message(2, frames)))

    def test_a_sequence_example_is_refused_and_may_be_read_whole(self):
        records = [self.sequence(n) for n in range(1, 4)]
        for i, some in enumerate((records, [example({"a": 1}), *records], [one[len(example({"length": 1})):] for one in records])):
            folder = self.put({"0.tfrecord": some}, f"sequences{i}")
            self.refused(folder, "0.tfrecord", f"record {int(i == 1)} ", "tf.train.SequenceExample", self.advice, kind=penstock.UnsupportedError)
            with penstock.Dataset(folder, foreign=penstock.Foreign(fields={"data": "bytes"})) as data:
                self.assertEqual([data[j]["data"] for j in range(len(some))], some)
            told = subprocess.run([command(), "info", folder], capture_output=True, encoding="utf-8").stderr
            self.assertTrue(told.endswith(" ask for --field data=bytes\n"), told)
            self.assert_says(self.advice, penstock.pack, folder, self.path("packed"))  # says it in Python, though the command packs
        late = self.put({"0.tfrecord": [*[example({"length": 1}) for _ in range(1000)], records[0]]}, "late")
        self.unreadable(penstock.Dataset(late), 1000, "not a tf.train.Example")

    def test_records_that_are_nearly_examples_are_refused(self):
        usual = example({"i": 5})
        for i, (records, words) in enumerate((
                ([usual + b"\x1b"], "a tf.train.Example only at its beginning"),
                ([usual + b"\x1b" * 101 + b"\x1c" * 101], "a tf.train.Example only at its beginning"),
                ([example({"i": 5, "x": Raw(b"\x1a\x02\x08\xff")})], "a tf.train.Example only at its beginning"),
                ([example({"i": Raw(b"\x22\x00")})], "a tf.train.Example only at its beginning"),
                ([usual, b"no example"], "record 1 "), ([b"no example", usual], "record 1 "))):
            folder = self.put({"0.tfrecord": records}, f"nearly{i}")
            self.refused(folder, "0.tfrecord", words, self.advice, kind=penstock.UnsupportedError)
            self.assertEqual(penstock.Dataset(folder, foreign=penstock.Foreign(fields={"data": "bytes"}))[0]["data"],
                             records[0])


class Departing(Tfrecord):
    def test_an_absent_feature_is_an_error_of_its_field_alone(self):
        folder = self.put({"0.tfrecord": [example({"a": [n]} if n == 4 else {"a": [n], "b": [b"x"]}) for n in range(9)]})
        data = penstock.Dataset(folder, foreign=penstock.Foreign(fields={"b": "bytes"}))
        self.assertEqual(data.get(4, "a"), 4)
        self.unreadable(data, 4, "0.tfrecord", "record 4", "absent", field="b")
        with penstock.Loader(folder, batch_size=9, framework="numpy", outputs=["a"]) as loader:
            self.assertEqual(sorted(next(iter(loader))["a"]), list(range(9)))
        bad = []
        with penstock.Loader(folder, foreign=penstock.Foreign(fields={"b": "bytes"}), batch_size=9, framework="numpy",
                             bad_sample=lambda error, other: bad.append(error.sample_id), order="sequential") as loader:
            self.assertEqual(sum(len(batch["a"]) for batch in loader), 9)
        self.assertEqual(bad, [4])

    def test_an_image_that_is_none_spoils_its_field_alone(self):
        records = [example({"image": image_file(n) if n != 3 else b"\xff\xd8\xff no image", "label": n}) for n in range(9)]
        data = penstock.Dataset(self.put({"0.tfrecord": records}))
        self.assertEqual((data.get(3, "label"), data.get(4, "image")), (3, image_file(4)))
        self.unreadable(data, 3, "0.tfrecord", "record 3", "field image", field="image")
        data = penstock.Dataset(self.put({"0.tfrecord": [example({"t": [b"ok"]}), example({"t": [b"\xff"]})]}, "utf8"),
                                foreign=penstock.Foreign(fields={"t": "utf8"}))
        self.unreadable(data, 1, "not UTF-8 from byte 0")

    def test_a_value_of_another_type_or_number_is_named(self):
        usual = [example({"i": [n], "v": [1.0, 2.0], "b": [b"x"]}) for n in range(1200)]
        for i, (one, field, words) in enumerate((
                (example({"i": [1.0], "v": [1.0, 2.0], "b": [b"x"]}), "i", "is a float_list in this record; must be an int64_list"),
                (example({"i": [1, 2], "v": [1.0, 2.0], "b": [b"x"]}), "i", "has 2 values; must have 1"),
                (example({"i": [1], "v": [1.0], "b": [b"x"]}), "v", "has 1 values; must have 2"),
                (example({"i": [1], "v": [1.0, 2.0], "b": [b"x", b"y"]}), "b", "has 2 values"),
                (example({"i": Raw(b"\x1a\x02\x08\xff"), "v": [1.0, 2.0], "b": [b"x"]}), "i", "not coded as protobuf"),
                (example({"i": None, "v": [1.0, 2.0], "b": [b"x"]}), "i", "absent"))):
            data = penstock.Dataset(self.put({"0.tfrecord": [*usual, one]}, f"data{i}"))
            self.unreadable(data, 1200, "0.tfrecord", "record 1200", f"field {field}", words)
            self.assertEqual(data[1199]["i"], 1199)

    def test_a_record_that_is_no_example_among_others_is_named(self):
        data = penstock.Dataset(self.put({"0.tfrecord": [*[example({"i": [n]}) for n in range(1200)], b"no example"]}))
        self.unreadable(data, 1200, "0.tfrecord", "record 1200", "not a tf.train.Example")

    def test_a_key_that_comes_late_is_named(self):
        folder = self.put({"0.tfrecord": [*[example({"i": [n]}) for n in range(1500)], example({"i": [1], "a/late": [b"x"]})]})
        self.refused(folder, "0.tfrecord", "record 1500", "a.late", "name that in fields")
        with penstock.Dataset(folder, foreign=penstock.Foreign(fields={"a.late": "utf8"})) as data:
            self.assertEqual(data[1500], {"i": 1, "a.late": "x"})
            self.unreadable(data, 7, "absent", field="a.late")

    def test_empty_records_and_files(self):
        folder = self.put({"0.tfrecord": b"", "1.tfrecord": [b"", example({"i": [5]}), b""], "2.tfrecord": b""})
        data = penstock.Dataset(folder)
        self.assertEqual((len(data), data[1]), (3, {"i": 5}))
        self.unreadable(data, 0, "absent")
        self.assertEqual(penstock.Dataset(self.put({"0.tfrecord": [b"", b""]}, "whole"))[1], {"data": b""})
        self.refused(self.put({"0.tfrecord": b""}, "none"), "no samples", kind=penstock.PenstockError)
        self.refused(self.path("e") + "/{0..3}.tfrecord", "0.tfrecord", kind=penstock.DataSetNotFoundError)


class Damage(Tfrecord):
    def records(self):
        return [example({"i": [n], "b": [bytes(200 * n)]}) for n in range(6)]

    def test_a_file_cut_anywhere_is_refused(self):
        records = self.records()
        whole, edges = b"".join(frame(one) for one in records), [0]
        for one in records:
            edges.append(edges[-1] + len(frame(one)))
        sizes = {*range(0, len(whole), 512), *(edge + i for edge in edges for i in range(-20, 21))}
        for size in sorted(size for size in sizes if 0 <= size <= len(whole)):
            folder = self.put({"0.tfrecord": whole[:size], "1.tfrecord": whole})
            if size in edges:  # a whole file of fewer records
                self.assertEqual(len(penstock.Dataset(folder)), edges.index(size) + 6)
            else:
                record = max(i for i, edge in enumerate(edges) if edge < size)
                self.refused(folder, "0.tfrecord", f"record {record} (byte {edges[record]})", "cut short")

    def test_every_flipped_bit_is_found(self):
        for whole in (False, True):
            records = [b"some bytes", b"", b"others"] if whole else [example({"i": [n, 3], "b": [b"some"]}) for n in range(3)]
            good = b"".join(frame(one) for one in records)
            begin, end = len(frame(records[0])), len(frame(records[0])) + len(frame(records[1]))
            for bit in range(8 * begin, 8 * end):
                damaged = bytearray(good)
                damaged[bit // 8] ^= 1 << bit % 8
                folder = self.put({"0.tfrecord": bytes(damaged)})
                if bit // 8 - begin < 12:
                    self.refused(folder, "0.tfrecord", f"record 1 (byte {begin})", "checksum of its length")
                    continue
                with penstock.Dataset(folder) as data:
                    self.assertEqual(len(data), 3)
                    self.unreadable(data, 1, "0.tfrecord", "record 1", "damaged")
                    self.assertEqual(len(data[0]), len(data[2]))

    def test_a_damaged_record_of_many_keys_is_read_once(self):
        """With its checksum made again for each key, this takes minutes."""
        few = [frame(example({"i": [n]})) for n in range(1000)]
        many = bytearray(frame(example({"u": [1]}) * 250_000))
        many[-1] ^= 1
        folder = self.put({"0.tfrecord": b"".join([*few, many, frame(example({"i": [7]}))])})
        start = time.monotonic()
        with penstock.Dataset(folder) as data:
            self.assertLess(time.monotonic() - start, 20)
            self.unreadable(data, 1000, "record 1000", "damaged")
            self.assertEqual((len(data), data[1001]), (1002, {"i": 7}))
        late = self.put({"0.tfrecord": b"".join([*few, many, frame(example({"late": [7]}))])}, "late")
        self.refused(late, "record 1001", "feature late")

    def test_damage_after_open_is_found_by_a_run(self):
        for whole in (False, True):
            records = [bytes([n]) * 50 for n in range(30)] if whole else [example({"b": [bytes([n]) * 50]}) for n in range(30)]
            size = len(frame(records[0]))
            for at in (3, 9, 30, size - 2):
                folder = self.put({"0.tfrecord": records})
                path = folder + "/0.tfrecord"
                with penstock.Dataset(folder) as data:
                    times = os.stat(path)
                    with open(path, "r+b") as file:
                        file.seek(size * 17 + at)
                        byte = file.read(1)[0]
                        file.seek(size * 17 + at)
                        file.write(bytes([byte ^ 4]))
                    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                    self.unreadable(data, 17, "0.tfrecord", "record 17", "damaged")
                    with penstock.Loader(folder, batch_size=30, framework="numpy") as loader, \
                            self.assertRaises(penstock.CorruptRecordError) as caught:
                        next(iter(loader))
                    self.assertEqual((caught.exception.sample_id, caught.exception.record), (17, 17))

    def test_a_length_that_lies_is_refused(self):
        records = self.records()
        for wrong, words in ((0, "no record begins here"), (10, "no record begins here"), (500, "no record begins here"),
                             (2**40, "cut short"), (2**64 - 1, "cut short"), (2**64 - 16, "cut short")):
            length = struct.pack("<Q", wrong)
            lying = length + struct.pack("<I", tfrecords.masked(length)) + frame(records[2])[12:]
            self.refused(self.put({"0.tfrecord": frame(records[0]) + lying + frame(records[1])}), "0.tfrecord", words)

    def test_trailing_bytes_and_files_without_records_are_refused(self):
        whole = b"".join(frame(one) for one in self.records())
        self.refused(self.put({"0.tfrecord": whole + bytes(64)}), "record 6", f"byte {len(whole)}", "no record begins here")
        self.refused(self.put({"0.tfrecord": whole + b"x" * 3}), "record 6", "cut short")
        self.refused(self.put({"0.tfrecord": b"text, not a record"}), "this is not a TFRecord file")
        self.refused(self.put({"0.tfrecord": whole, "1.tfrecord": b"text, not a record"}), "1.tfrecord", "this is not a TFRecord file")

    def test_a_file_that_changes_is_refused_and_indexed_again(self):
        folder = self.put({f"{k}.tfrecord": [data_of(n) for n in range(300)] for k in range(3)})
        path = folder + "/1.tfrecord"
        for change in ("shrink", "replace", "remove"):
            self.put({"1.tfrecord": [data_of(n) for n in range(300)]})
            data = penstock.Dataset(folder)
            self.check(data[310], 10)
            if change == "shrink":
                os.truncate(path, 5000)
                self.unreadable(data, 599, "1.tfrecord")
            elif change == "replace":
                os.remove(path)
                self.put({"1.tfrecord": [data_of(n) for n in range(7)]})
                self.check(data[599], 299)  # the old file, which is still open
                data.close()
                self.assertEqual(len(penstock.Dataset(folder)), 607)
            else:
                os.remove(path)
                self.assertEqual(len(penstock.Dataset(folder)), 600)
        self.put({"1.tfrecord": [data_of(n) for n in range(300)]})
        with penstock.Loader(folder, batch_size=10, framework="numpy", memory=penstock.Memory(n_slots=2),
                             outputs=["label"]) as loader:
            os.truncate(path, 5000)
            with self.assertRaises(penstock.CorruptRecordError) as caught:
                for _ in loader:
                    pass
            self.assertIn("1.tfrecord", str(caught.exception))

    def test_an_index_of_bytes_that_are_not_there_is_named(self):
        folder = self.put({"a.tfrecord": [b"x" * i for i in range(9)]})
        penstock.Dataset(folder).close()
        index = forge.move_rows(folder + "/.penstock")
        self.assert_says(["a.tfrecord: record 3 (bytes ", "): the file does not have these bytes; remove the index " + index +
                          ", and it is built again"], lambda: penstock.Dataset(folder)[3])

    def test_verify_lists_what_is_damaged(self):
        records = [example({"i": [n], "b": [image_file(n)]} if n != 3 else {"i": [n]}) for n in range(9)]
        whole = bytearray(b"".join(frame(one) for one in records))
        whole[-6] ^= 1
        folder = self.put({"0.tfrecord": bytes(whole)})
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", folder, "--json"], capture_output=True, text=True)
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["n_bad"], found["has_checksums"]), (1, 2, True))
        self.assertEqual([bad["record"] for bad in found["bad"]], [3, 8])


if __name__ == "__main__":
    unittest.main()
