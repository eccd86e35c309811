# SPDX-License-Identifier: Apache-2.0
"""Values that TensorFlow writes are read unchanged, and TensorFlow reads what `penstock export` writes.

tests/golden/tfrecord was written by write_golden with tensorflow 2.21.0, and is always compared. Where TensorFlow is
installed (scripts/environment tensorflow, by `make test-more`), it writes the same files again, byte for byte.
"""
import os
import pathlib
import shutil
import unittest

import export_data
import penstock
import tfrecords
from data_fixture import Case, np, optional

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/tfrecord"
N = 12
FILES = ("packed.tfrecord", "unpacked.tfrecord", "raw.tfrecord")
LISTS = {"bytes": "bytes_list", "float": "float_list", "int64": "int64_list"}
EXPORTED = {"cls": "int64", "small": "int64", "half": "float32", "weight": "float32", "text": "string", "raw": "string",
            "fixed": "int64", "tokens": "int64", "captions": "string", "files": "string"}  # by TensorFlow's types
LARGEST = 1.7014117331926443e38  # the largest of many floats that float32 holds


def features(n):
    """Return the features of record n by key: the kind of list, and its values. Floats are such that float32 holds
    them."""
    return {"image/encoded": ("bytes", [bytes(range(n)) + b"\0\xff"]), "image/class/label": ("int64", [n - 5]),
            "image/class/text": ("bytes", ["Köln".encode() * (n % 3)]), "score": ("float", [n / 8 - 0.5]),
            "pair": ("int64", [-n, 2**40 + n]), "extremes": ("int64", [2**63 - 1, -2**63, 0]),
            "vector": ("float", [0.25 * n, -LARGEST, 2.0**-149]), "ids": ("int64", [(-1)**k * 7**(k * n % 21) for k in range(n % 5)]),
            "floats": ("float", [k / 4 for k in range(n % 4)]), "texts": ("bytes", [b"t" * k for k in range(n % 4)]),
            "long": ("int64", list(range(-8, 160)))}


def raw(n):
    """Records that are no Examples: of no bytes, of some, and of more than a page."""
    return bytes((7 * i + n) % 256 for i in range(5000 if n == N - 1 else n * n))


def example(n):
    """TensorFlow's own Example, in the bytes that are the same each time."""
    tf = optional("tensorflow")
    made = tf.train.Example()
    for key, (kind, values) in features(n).items():
        getattr(made.features.feature[key], LISTS[kind]).value.extend(values)
    return made.SerializeToString(deterministic=True)


def unpacked(n):
    """Return an Example whose lists of numbers are not packed, as old writers wrote them. TensorFlow reads it, too."""
    tf = optional("tensorflow")
    data = tfrecords.example({key: values if values else tfrecords.Raw(empty(kind))
                              for key, (kind, values) in features(n).items()}, packed=False)
    assert tf.train.Example.FromString(data) == tf.train.Example.FromString(example(n)), n
    return data


def empty(kind):
    """Return a Feature with a list of no values."""
    return tfrecords.message({"bytes": tfrecords.BYTES, "float": tfrecords.FLOAT, "int64": tfrecords.INT64}[kind], b"")


def write(path, records):
    with optional("tensorflow").io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)


def write_golden(folder):
    os.makedirs(folder, exist_ok=True)
    for name, record in zip(FILES, (example, unpacked, raw), strict=True):
        write(pathlib.Path(folder, name), [record(n) for n in range(N)])


def plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


class Copied(Case):
    """Has the golden files in its own folder: their index is written next to them."""

    def setUp(self):
        super().setUp()
        for name in FILES:
            shutil.copyfile(GOLDEN / name, self.path(name))


class Golden(Copied):
    def check(self, path):
        with penstock.Dataset(path) as data:
            self.assertEqual(len(data), N)
            for n in range(N):
                sample = data[n]
                for key, (_, values) in features(n).items():
                    found = plain(sample[key.replace("/", ".")])
                    found = found if isinstance(found, (list, tuple)) else [found]
                    found = [one.encode() if isinstance(one, str) else one for one in found]
                    self.assertEqual(found, values, (path, n, key))
                self.assertEqual(len(sample), len(features(n)))

    def test_examples_are_read_as_they_were_given(self):
        for name in FILES[:2]:
            self.check(self.path(name))

    def test_numbers_of_one_length_are_rows_of_a_loader(self):
        for name in FILES[:2]:
            with penstock.Loader(self.path(name), batch_size=4, framework="numpy", device="cpu",
                                 outputs=["pair", "vector", "extremes", "image.class.label", "long"]) as loader:
                n_rows = 0
                for batch in loader.epoch(0):
                    for row, n in enumerate(np.asarray(batch.sample_ids).tolist()):
                        n_rows += 1
                        for key in ("pair", "vector", "extremes", "image/class/label", "long"):
                            found, wanted = batch[key.replace("/", ".")][row].tolist(), features(n)[key][1]
                            self.assertEqual(found if isinstance(found, list) else [found], wanted, (name, n, key))
            self.assertEqual(n_rows, N)

    def test_other_records_are_bytes(self):
        with penstock.Dataset(self.path("raw.tfrecord")) as data:
            self.assertEqual([data[n]["data"] for n in range(len(data))], [raw(n) for n in range(N)])


class TensorFlow(Copied):
    def setUp(self):
        super().setUp()
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        self.tf = optional("tensorflow")

    def test_it_writes_the_golden_files_again(self):
        write_golden(self.path("again"))
        for name in FILES:
            self.assertEqual(pathlib.Path(self.path("again"), name).read_bytes(), (GOLDEN / name).read_bytes(), name)

    def test_defaults_are_those_of_its_parser(self):
        tf, F = self.tf, self.tf.train.Feature
        text, numbers = tf.train.BytesList(value=[b"t"]), tf.train.Int64List(value=[3, 4])
        cases = [{}, {"label": F()}, {"label": F(int64_list=tf.train.Int64List(value=[5]))},
                 {"label": F(int64_list=tf.train.Int64List())},
                 {"text": F(bytes_list=text), "pair": F(int64_list=numbers), "score": F(float_list=tf.train.FloatList(value=[2.5]))},
                 {"text": F(), "pair": F(), "score": F(), "tags": F()}, {"tags": F(int64_list=numbers)},
                 {"label": F(int64_list=tf.train.Int64List(value=[6])), "text": F(bytes_list=text)}]
        records = [tf.train.Example(features=tf.train.Features(feature=one)).SerializeToString() for one in cases]
        write(self.path("some.tfrecord"), records)
        kinds = {"label": tf.io.FixedLenFeature([], tf.int64, -1), "pair": tf.io.FixedLenFeature([2], tf.int64, [7, 8]),
                 "score": tf.io.FixedLenFeature([], tf.float32, 0.5), "text": tf.io.FixedLenFeature([], tf.string, b"none"),
                 "tags": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
        fields = {"label": ("int64", (), -1), "pair": ("int64", (2,), [7, 8]), "score": ("float32", (), 0.5),
                  "text": ("bytes", (), b"none"), "tags": ("int64", (None,))}
        with penstock.Dataset(self.path("some.tfrecord"), foreign=penstock.Foreign(fields=fields)) as data:
            for n, record in enumerate(records):
                for name, kind in kinds.items():
                    try:
                        wanted = tf.io.parse_single_example(record, {name: kind})[name].numpy()
                    except tf.errors.InvalidArgumentError:
                        with self.assertRaises(penstock.CorruptRecordError, msg=(n, name)):
                            data.get(n, name)
                    else:
                        self.assertEqual(plain(data.get(n, name)), plain(wanted) if hasattr(wanted, "tolist") else wanted, (n, name))

    def exported(self, data):
        """Return the records of an export of this data set, as tf.data gives them."""
        penstock.export(data, to="tfrecord", out=self.path("out"), shard_size=1 << 16, overwrite=True)
        files = sorted(str(path) for path in pathlib.Path(self.path("out")).glob("*.tfrecord"))
        return [one.numpy() for one in self.tf.data.TFRecordDataset(files)]

    def test_tf_data_reads_what_is_exported(self):
        data = export_data.write(self.path(), {name: export_data.SCHEMA[name] for name in EXPORTED})
        kinds = {name: self.tf.io.VarLenFeature(getattr(self.tf, kind)) for name, kind in EXPORTED.items()}
        records = self.exported(data)
        self.assertEqual(len(records), export_data.N)
        for i, record in enumerate(records):
            parsed = self.tf.io.parse_single_example(record, kinds)
            for name, kind in EXPORTED.items():
                wanted = export_data.sample(i)[name]
                if kind == "string":
                    wanted = [one.encode() if isinstance(one, str) else one for one in (wanted if isinstance(wanted, list) else [wanted])]
                else:
                    wanted = np.asarray(wanted, kind).ravel().tolist()
                self.assertEqual(parsed[name].values.numpy().tolist(), wanted, (i, name))

    def test_its_own_records_are_the_same_after_an_export(self):
        for name in FILES[:2]:
            records = self.exported(self.path(name))
            self.assertEqual(len(records), N)
            for n, record in enumerate(records):
                found = self.tf.train.Example.FromString(record).features.feature
                for key, (kind, values) in features(n).items():
                    self.assertEqual(list(getattr(found[key.replace("/", ".")], LISTS[kind]).value), values, (name, n, key))


if __name__ == "__main__":
    unittest.main()
