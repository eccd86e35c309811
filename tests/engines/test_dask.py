# SPDX-License-Identifier: Apache-2.0
"""Packing a bag of Dask with two worker processes: workers that are killed, tasks that fail, a driver that is killed."""
import functools
import os
import unittest

import bags
import penstock
from data_fixture import image_file, optional
from packing_case import HERE, PackingCase

optional("dask.bag")
dask = optional("dask")
distributed = optional("distributed")
SCHEMA = bags.SCHEMA


def bag_of(make, n=bags.N):
    return optional("dask.bag").from_sequence(range(n), npartitions=6).map(make)


def image_of(i):
    return {"image": image_file(i), "cls": i % 3}


class Bags(PackingCase):
    @classmethod
    def setUpClass(cls):
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(HERE), str(HERE.parent / "python")])
        with dask.config.set({"distributed.nanny.pre-spawn-environ.PYTHONPATH": path}):
            cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        cls.addClassCleanup(cluster.close)
        client = distributed.Client(cluster)
        cls.addClassCleanup(client.close)

    def write(self, make, **keywords):
        return penstock.dask.write(bag_of(make), self.path(), **keywords)

    def test_a_bag_by_every_scheduler(self):
        self.check(self.write(bags.record))
        for scheduler in ("sync", "threads", "processes"):
            with dask.config.set(scheduler=scheduler):
                self.check(self.write(bags.record, schema=SCHEMA, overwrite=True))

    def test_images_are_planes(self):
        data = penstock.dask.write(bag_of(image_of, 12), self.path())
        self.assertEqual({name: field.field.kind for name, field in data.fields.items()}, {"image": "image", "cls": "int64"})
        self.assertEqual(data.fields["image"].field.codec, "planes")
        self.assertEqual(list(data), [image_of(i) for i in range(12)])

    def test_a_worker_that_is_killed_in_the_middle(self):
        flag = self.flag()
        self.check(self.write(functools.partial(bags.killed_once, flag), schema=SCHEMA))
        self.assertTrue(os.path.exists(flag))

    def test_a_task_that_fails_leaves_the_old_data_set(self):
        self.old()
        error = self.assert_says("record 77 cannot be made", self.write, bags.failing, schema=SCHEMA, overwrite=True)
        self.assertIsInstance(error, ValueError)
        wrong = {**SCHEMA, "x": "uint8", "data": "int64"}
        self.assert_says(["sample 0", "field data"], self.write, bags.record, schema=wrong, overwrite=True)
        self.check_old()
        self.assertEqual(self.left(), ["data"])

    def test_a_folder_that_is_not_shared(self):
        make = functools.partial(bags.unshared, self.folder)
        self.assert_says("must be in a folder that all machines mount", self.write, make, schema=SCHEMA)
        self.assertEqual(self.left(), [])

    def test_a_driver_that_is_killed(self):
        self.old()
        self.kill_driver("dask")
        self.check(self.write(bags.record, overwrite=True))

    def test_other_values_than_bags_and_existing_data_sets_are_refused(self):
        self.assert_says("must be a dask.bag.Bag (dask.bag.from_sequence(...))", penstock.dask.write, [1], self.path())
        self.assert_says("did you mean 'overwrite'?", self.write, bags.failing, overwite=True)
        self.assert_says("schema: value is None", penstock.dask.write,
                         bag_of(bags.record).filter(lambda r: r["x"] > 30), self.path())
        self.old()
        self.assert_says("overwrite=True", self.write, bags.failing)
        self.assertEqual(self.left(), ["data"])


if __name__ == "__main__":
    unittest.main()
