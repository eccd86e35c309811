# SPDX-License-Identifier: Apache-2.0
"""Ray Data on a cluster of this machine: packing with workers that are killed, tasks that fail, a driver that is killed;
and reading back."""
import functools
import os
import unittest

import bags
import penstock
from bags import SCHEMA
from data_fixture import image_file, np, optional, picture
from packing_case import HERE, PackingCase

ray = optional("ray")
optional("ray.data")


def image_row(row):
    i = int(row["id"])
    return {"image": image_file(i), "pixels": picture(i, 16, 16), "tokens": np.arange(i % 4, dtype="uint16"), "n": i % 3,
            "words": [f"a{i}", "b"]}


class RayData(PackingCase):
    @classmethod
    def setUpClass(cls):
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(HERE), str(HERE.parent / "python")])
        variables = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 runtime_env={"env_vars": variables})
        cls.addClassCleanup(ray.shutdown)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False

    def write(self, make, schema=SCHEMA, **keywords):
        sink = penstock.ray.Datasink(self.path(), schema, **keywords)
        ray.data.range(bags.N, override_num_blocks=6).map(functools.partial(bags.of_row, make)).write_datasink(sink)
        return sink.dataset

    def test_types_make_the_schema(self):
        self.check(self.write(bags.record, None))
        ray.data.range(12, override_num_blocks=2).map(image_row).write_datasink(
            penstock.ray.Datasink(self.path(), overwrite=True))
        data = penstock.Dataset(self.path())
        kinds = {name: (field.kind, field.shape) for name, field in data.schema.items()}
        self.assertEqual(kinds, {"image": ("bytes", None), "pixels": ("image", None), "tokens": ("uint16", (None,)),
                                 "n": ("int64", None), "words": ("utf8_list", None)})
        self.assertEqual(data.fields["pixels"].encodings, {"pixels": 12})
        self.check_images(data)

    def check_images(self, data):
        for i in range(12):
            wanted, found = image_row({"id": i}), data[i]
            for name, value in wanted.items():
                self.assertEqual(np.asarray(found[name]).tolist(), np.asarray(value).tolist(), name)

    def test_a_schema_and_reading_back(self):
        schema = {"image": "image", "pixels": ("uint8", (16, 16, 3)), "tokens": ("uint16", (None,)), "n": "uint8",
                  "words": ["utf8"]}
        sink = penstock.ray.Datasink(self.path(), schema)
        ray.data.range(12, override_num_blocks=3).map(image_row).write_datasink(sink)
        self.assertEqual(sink.dataset.fields["image"].field.codec, "planes")
        rows = ray.data.read_datasource(penstock.ray.Datasource(self.path()), override_num_blocks=4).take_all()
        self.check_images(rows)
        source = penstock.ray.Datasource(self.path(), ["n", "image"], decode=True)
        rows = ray.data.read_datasource(source, override_num_blocks=5).take_all()
        decoded = penstock.Dataset(self.path(), decode=True)
        for i, row in enumerate(rows):
            self.assertEqual(list(row), ["n", "image"])
            self.assertEqual(row["n"], i % 3)
            self.assertTrue((row["image"] == decoded[i]["image"]).all())
        self.assertEqual(len(rows), 12)
        self.assertEqual(ray.data.read_datasource(source).count(), 12)
        self.assert_says("did you mean 'image'?", penstock.ray.Datasource, self.path(), ["imag"])

    def test_a_worker_that_is_killed_in_the_middle(self):
        flag = self.flag()
        self.check(self.write(functools.partial(bags.killed_once, flag)))
        self.assertTrue(os.path.exists(flag))

    def test_a_task_that_fails_leaves_the_old_data_set(self):
        self.old()
        self.assert_says("record 77 cannot be made", self.write, bags.failing, overwrite=True)
        self.assert_says(["task", "field data"], self.write, bags.record, {**SCHEMA, "data": "int64"}, overwrite=True)
        self.check_old()
        self.assertEqual(self.left(), ["data"])

    def test_a_folder_that_is_not_shared(self):
        make = functools.partial(bags.unshared, self.folder)
        self.assert_says("must be in a folder that all machines mount", self.write, make)
        self.assertEqual(self.left(), [])

    def test_a_driver_that_is_killed(self):
        self.old()
        self.kill_driver("ray")
        self.check(self.write(bags.record, overwrite=True))

    def test_unpackable_rows_and_wrong_settings_are_refused(self):
        empty = ray.data.range(10).filter(lambda row: False)
        self.assert_says("no samples", empty.write_datasink, penstock.ray.Datasink(self.path(), {"id": "int64"}))
        times = ray.data.range(2).map(lambda row: {"t": np.datetime64("2026-01-01", "s")})
        self.assert_says(["column t", "timestamp"], times.write_datasink, penstock.ray.Datasink(self.path()))
        self.assert_says("did you mean 'overwrite'?", penstock.ray.Datasink, self.path(), overwite=True)
        self.old()
        self.assert_says("overwrite=True", penstock.ray.Datasink, self.path(), SCHEMA)
        self.assertEqual(self.left(), ["data"])


if __name__ == "__main__":
    unittest.main()
