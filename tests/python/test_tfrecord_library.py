# SPDX-License-Identifier: Apache-2.0
"""TFRecords of the package tfrecord, whose Examples Google's protobuf codes, and ours as that package reads them."""
import os
import random
import unittest

import penstock
import tfrecords
from data_fixture import Case, np, optional

tfrecord = optional("tfrecord")


def datum(n):
    chance = random.Random(n)
    return {"image/encoded": (chance.randbytes(chance.randrange(300)), "byte"), "image/class/label": (n - 7, "int"),
            "ids": ([chance.randrange(-2**63, 2**63) for _ in range(n % 5)], "int"), "pair": ([n, -n], "int"),
            "score": (n / 8, "float"), "vector": ([n / 2, -1.0, 0.25], "float"), "floats": ([0.5] * (n % 3), "float"),
            "texts": ([b"x" * i for i in range(n % 4)], "byte")}


class Library(Case):
    def write(self, name, numbers, **more):
        writer = tfrecord.TFRecordWriter(self.path(name))
        for n in numbers:
            writer.write(datum(n), **more)
        writer.close()
        return self.path(name)

    def test_files_that_the_library_writes_are_read(self):
        os.mkdir(self.path("data"))
        for k in range(3):
            self.write(f"data/{k}.tfrecord", range(400 * k, 400 * k + 400))
        with penstock.Dataset(self.path("data")) as data:
            self.assertEqual(len(data), 1200)
            for n in range(1200):
                sample = data[n]
                for key, (value, _) in datum(n).items():
                    found = sample[key.replace("/", ".")]
                    self.assertEqual(found.tolist() if isinstance(found, np.ndarray) else found, value, (n, key))
        with penstock.Loader(self.path("data"), batch_size=64, framework="numpy", outputs=["image.class.label", "vector"]) as loader:
            for batch in loader:
                self.assertEqual(batch["image.class.label"].tolist(), [n - 7 for n in batch.sample_ids])
                self.assertEqual(batch["vector"][:, 0].tolist(), [n / 2 for n in batch.sample_ids])

    def test_the_library_reads_the_files_that_we_write(self):
        records = [{key: value for key, (value, _) in datum(n).items() if value != []} for n in range(100)]
        for packed in (True, False):
            tfrecords.write(self.path("0.tfrecord"), [tfrecords.example(one, packed) for one in records])
            found = list(tfrecord.tfrecord_loader(self.path("0.tfrecord"), None))
            self.assertEqual(len(found), 100)
            for one, wanted in zip(found, records, strict=True):
                self.assertEqual(set(one), set(wanted))
                self.assertEqual(one["pair"].tolist(), wanted["pair"])
                self.assertEqual(one["score"].tolist(), [wanted["score"]])
                self.assertEqual(bytes(one["image/encoded"]), wanted["image/encoded"])

    def test_a_sequence_example_is_refused_or_one_field(self):
        path = self.write("0.tfrecord", range(3), sequence_datum={"steps": ([[1], [2, 3]], "int")})
        with self.assertRaisesRegex(penstock.UnsupportedError, 'tf.train.SequenceExample: .*fields={"data": "bytes"}'):
            penstock.Dataset(path)
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"data": "bytes"})) as data:
            self.assertEqual(list(data[0]), ["data"])
            found = tfrecord.example_pb2.SequenceExample.FromString(data[1]["data"])
            self.assertEqual(found.context.feature["pair"].int64_list.value, [1, -1])


if __name__ == "__main__":
    unittest.main()
