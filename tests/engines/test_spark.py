# SPDX-License-Identifier: Apache-2.0
"""Spark on this machine: packing with Python workers that are killed, tasks that fail, a driver that is killed; and
reading back."""
import functools
import os
import shutil
import unittest

import bags
import penstock
from bags import SCHEMA
from data_fixture import image_file, optional
from packing_case import HERE, PackingCase

optional("pyspark.sql")
optional("pyarrow")
if shutil.which("java") is None:
    raise unittest.SkipTest("missing: java")


class Frames(PackingCase):
    @classmethod
    def setUpClass(cls):
        os.environ["PYTHONPATH"] = os.pathsep.join([os.environ["PYTHONPATH"], str(HERE), str(HERE.parent / "python")])
        cls.session = bags.spark_session()
        cls.session.sparkContext.setLogLevel("OFF")
        cls.addClassCleanup(cls.session.stop)

    def write(self, make, schema=SCHEMA, **keywords):
        return penstock.spark.write(bags.frame(self.session, make), self.path(), schema, **keywords)

    def test_types_make_the_schema(self):
        self.check(self.write(bags.record, None))
        self.assertEqual({name: field.kind for name, field in penstock.Dataset(self.path()).schema.items()}, SCHEMA)

    def test_images_and_reading_back(self):
        rows = [(bytearray(image_file(i)), [float(i)] * (i % 3), [f"a{i}"], i % 2 == 0) for i in range(12)]
        frame = self.session.createDataFrame(rows, "image binary, v array<float>, w array<string>, b boolean")
        data = penstock.spark.write(frame.coalesce(2), self.path(), {
            "image": "image", "v": ("float32", (None,)), "w": ["utf8"], "b": "uint8"})
        self.assertEqual(data.fields["image"].field.codec, "planes")
        back = penstock.spark.read(self.session, self.path(), num_partitions=5)
        self.assertEqual([tuple(row) for row in back.collect()], [(*row[:3], int(row[3])) for row in rows])
        self.assertEqual(back.columns, ["image", "v", "w", "b"])
        self.assertEqual(penstock.spark.read(self.session, self.path(), ["b"]).count(), 12)
        self.assert_says("did you mean 'image'?", penstock.spark.read, self.session, self.path(), ["imag"])

    def test_workers_that_are_killed_in_the_middle(self):
        flag = self.flag()
        self.check(self.write(functools.partial(bags.killed_together, flag)))
        self.assertTrue(os.path.exists(flag))

    def test_a_task_that_fails_leaves_the_old_data_set(self):
        self.old()
        self.assert_says("record 77 cannot be made", self.write, bags.failing, overwrite=True)
        make = functools.partial(bags.unshared, self.folder)
        self.assert_says("must be in a folder that all machines mount", self.write, make, overwrite=True)
        self.check_old()
        self.assertEqual(self.left(), ["data"])

    def test_a_driver_that_is_killed(self):
        self.old()
        self.kill_driver("spark")
        self.check(self.write(bags.record, overwrite=True))

    def test_invalid_frames_and_schemas_are_refused(self):
        frame = bags.frame(self.session, bags.failing)
        for schema, words in (({**SCHEMA, "y": "int8"}, "field y is not a column"), ({"x": "int64"}, "no field text")):
            self.assert_says(words, penstock.spark.write, frame, self.path(), schema)
        times = self.session.sql("select timestamp'2026-01-01' as t")
        self.assert_says(["column t", "timestamp"], penstock.spark.write, times, self.path())
        self.assert_says("must be a pyspark.sql.DataFrame", penstock.spark.write, [1], self.path())
        self.assert_says("no samples", penstock.spark.write, self.session.range(0), self.path())
        self.old()
        self.assert_says("overwrite=True", penstock.spark.write, frame, self.path())
        self.assertEqual(self.left(), ["data"])


if __name__ == "__main__":
    unittest.main()
