# SPDX-License-Identifier: Apache-2.0
"""Ranks that several processes have: those of one tensor-, pipeline- or context-parallel group."""
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import sets
import template
import penstock
from data_fixture import needs
from penstock import ranks

# The program of four processes, a mesh of 2 x 2: data by tensor parallel. All of them open every case, in order.
PROGRAM = """
import datetime, hashlib, json, sys
import torch.distributed as group
from torch.distributed.device_mesh import init_device_mesh
import penstock
process, place, data = int(sys.argv[1]), sys.argv[2], sys.argv[3]
group.init_process_group("gloo", init_method="file://" + place, rank=process, world_size=4,
                         timeout=datetime.timedelta(seconds=60))
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
deep = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("dp_replicate", "dp_shard", "tp"))

def opened(seed=0, **keywords):
    try:
        with penstock.Loader(data, batch_size=10, framework="dlpack", n_threads=1, seed=seed, **keywords) as loader:
            ids = [batch.sample_ids for batch in loader.epoch(0)]
            print(json.dumps([list(loader.ranks), ids]), flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)

dp = penstock.ranks.from_mesh(mesh, "dp")
opened(ranks=dp)
opened(ranks=penstock.ranks.from_mesh(mesh["tp"]))
opened(ranks=penstock.ranks.from_mesh(deep, ("dp_replicate", "dp_shard")))
opened(ranks=penstock.Ranks(process // 2, 2))
opened(ranks=penstock.Ranks(min(process, 1), 2))
opened(ranks=dp, seed=int(process == 3))
opened(ranks=dp._replace(rank=0, world=1, n_replicas=4), seed=int(process == 3))
opened(ranks=penstock.Ranks(0, 1), seed=process)
opened(ranks=penstock.Ranks(process % 2, 2 if process else 4))
opened(ranks=penstock.Ranks(process, 2))
opened(ranks=penstock.Ranks(process % 3, 3))
try:
    penstock.ranks.from_mesh(mesh, "data")
except penstock.SettingsError as error:
    print(json.dumps(str(error)), flush=True)
try:
    penstock.ranks.from_mesh(init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp")))
except penstock.SettingsError as error:
    print(json.dumps(str(error)), flush=True)
group.destroy_process_group()
"""


class Processes(unittest.TestCase):
    """Four processes of gloo."""

    @classmethod
    def setUpClass(cls):
        needs("torch")
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
            processes = [subprocess.Popen([template.python(), "-c", PROGRAM, str(process), folder + "/place", sets.scalars()],
                                          stdout=subprocess.PIPE, text=True,
                                          env={**environment, "LOCAL_RANK": str(process), "LOCAL_WORLD_SIZE": "4"})
                         for process in range(4)]
            said = [process.communicate(timeout=300)[0].splitlines() for process in processes]
        assert [process.returncode for process in processes] == [0] * 4, said
        cls.cases = [[json.loads(line) for line in lines] for lines in zip(*said)]
        assert len(cls.cases) == 13, said

    def part(self, rank, world):
        with penstock.Loader(sets.scalars(), batch_size=10, ranks=penstock.Ranks(rank, world), framework="dlpack",
                             n_threads=1) as data:
            return [list(batch.sample_ids) for batch in data.epoch(0)]

    def test_processes_of_a_group_get_the_batches_of_their_data_parallel_rank(self):
        wanted = [self.part(rank, 2) for rank in range(2)]
        self.assertFalse(set(sum(wanted[0], [])) & set(sum(wanted[1], [])))
        for case, source, rank_of in ((0, "DeviceMesh dp", (0, 0, 1, 1)), (1, "DeviceMesh", (0, 1, 0, 1)),
                                      (2, "DeviceMesh dp_replicate dp_shard", (0, 0, 1, 1)), (3, "given", (0, 0, 1, 1))):
            for process, (found, ids) in enumerate(self.cases[case]):
                n_replicas = 1 if source == "given" else 2
                self.assertEqual(found, [rank_of[process], 2, process, 4, source, n_replicas, False, True])
                self.assertEqual(ids, wanted[rank_of[process]])

    def test_a_rank_that_one_process_too_many_has_is_refused(self):
        for line in self.cases[4]:
            self.assertTrue(line.startswith("SettingsError: rank: value is 1 on process 1 and on process 2 and on process 3; "
                                            "must be so on 2 of 4 processes, for world=2 (give ranks=penstock.ranks"), line)
        for line in self.cases[9]:
            self.assertEqual(line, "SettingsError: rank: value is 2 on process 2; must be below world, 2")

    def test_settings_that_differ_between_replicas_are_refused(self):
        for case in (5, 6):
            for line in self.cases[case]:
                self.assertTrue(line.startswith("SettingsError: seed: value is 1 on process 3, and 0 on process 0"), line)
        for line in self.cases[8]:
            self.assertTrue(line.startswith("SettingsError: world: value is 2 on process 1, and 4 on process 0"), line)

    def test_loaders_for_other_processes_ask_nobody(self):
        for case, world in ((7, 1), (10, 3)):
            for process, (found, ids) in enumerate(self.cases[case]):
                self.assertEqual(found[:2], [0 if world == 1 else process % 3, world])

    def test_names_that_the_mesh_lacks_are_refused(self):
        for line in self.cases[11]:
            self.assertRegex(line, r"dim: value is 'data'; must be one or several .*\('dp', 'tp'\)")
        for line in self.cases[12]:
            self.assertRegex(line, r"dim: value is None, and the mesh has 2 dimensions; must name .*\('dp', 'tp'\)")


def mesh(coordinate, shape=(2, 2), names=("dp", "tp")):
    """Return an object with the parts of a DeviceMesh that from_mesh uses."""
    def get(_, wanted):
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        kept = [names.index(name) for name in wanted]  # ValueError: no such name
        return mesh([coordinate[i] for i in kept], tuple(shape[i] for i in kept), tuple(wanted))
    kind = type("DeviceMesh", (), {"__getitem__": get})
    found = kind()
    found.mesh_dim_names, found.ndim, found.shape = names, len(shape), shape
    found.get_coordinate = lambda: coordinate
    return found


class Alone(unittest.TestCase):
    """Without processes: no mesh, no Megatron, numbers."""

    def setUp(self):
        hidden = mock.patch.dict(sys.modules, {"torch.distributed": None})
        hidden.start()
        self.addCleanup(hidden.stop)
        environment = mock.patch.dict(os.environ, {}, clear=True)
        environment.start()
        self.addCleanup(environment.stop)

    def test_mesh(self):
        self.assertEqual(ranks.from_mesh(mesh([1, 0]), "dp")[:5], (1, 2, 0, 1, "DeviceMesh dp"))
        three = mesh([2, 1, 3], (4, 2, 8), ("pp", "dp_replicate", "dp_shard"))
        self.assertEqual(ranks.from_mesh(three, ("dp_replicate", "dp_shard"))[:2], (11, 16))
        self.assertEqual(ranks.from_mesh(mesh([3], (5,), None))[:2], (3, 5))
        for dim in ("", (), ("dp", "dp"), (1,), "x"):
            with self.subTest(dim=dim), self.assertRaisesRegex(penstock.SettingsError, "dim: value is"):
                ranks.from_mesh(mesh([1, 0]), dim)
        with self.assertRaisesRegex(penstock.SettingsError, "mesh: this process is not part of it"):
            ranks.from_mesh(mesh(None), "dp")
        with self.assertRaisesRegex(TypeError, "mesh: value is 3; must be a torch.distributed"):
            ranks.from_mesh(3, "dp")

    def test_megatron(self):
        state = types.SimpleNamespace(get_data_parallel_rank=lambda: 3, get_data_parallel_world_size=lambda: 4)
        self.assertEqual(ranks.from_megatron(state), (3, 4, 0, 1, "Megatron", 1, False, True))
        with mock.patch.dict(os.environ, {"RANK": "13", "WORLD_SIZE": "16", "LOCAL_RANK": "5", "LOCAL_WORLD_SIZE": "8"}):
            self.assertEqual(ranks.from_megatron(state)[:4], (3, 4, 5, 8))
        module = types.ModuleType("megatron.core.parallel_state")
        vars(module).update(vars(state))
        with mock.patch.dict(sys.modules, {"megatron.core.parallel_state": module}):
            self.assertEqual(ranks.from_megatron()[:2], (3, 4))
            module.model_parallel_is_initialized = lambda: False
            with self.assertRaisesRegex(penstock.SettingsError, "must be initialised before a loader opens .call parallel_state.init"):
                ranks.from_megatron()
        with mock.patch.dict(sys.modules, {"megatron": None}), \
                self.assertRaisesRegex(ImportError, "ranks: megatron.core.parallel_state cannot be imported: .*install megatron-core"):
            ranks.from_megatron()
        for rank, world, says in ((4, 4, "rank 4 of 4; must be from 0 to 3"), (-1, 4, "must be from 0 to 3"),
                                  (None, 4, "rank None of 4; must be whole numbers")):
            state = types.SimpleNamespace(get_data_parallel_rank=lambda: rank, get_data_parallel_world_size=lambda: world)
            with self.assertRaisesRegex(penstock.SettingsError, says):
                ranks.from_megatron(state)
        with self.assertRaisesRegex(TypeError, "has no get_data_parallel_rank"):
            ranks.from_megatron(object())

    def test_the_processes_of_a_group_that_ranks_do_not_divide(self):
        group = mock.Mock(**{"is_available.return_value": True, "is_initialized.return_value": True,
                             "get_rank.return_value": 1, "get_world_size.return_value": 6})
        with mock.patch.dict(sys.modules, {"torch.distributed": group}), \
                self.assertRaisesRegex(penstock.SettingsError, "has 4 ranks among 6 processes; must divide them"):
            ranks.from_mesh(mesh([1, 0], (4, 2)), "dp")

    def open(self, **keywords):
        with penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack", n_threads=1, **keywords) as loader:
            return loader.ranks

    def test_arguments(self):
        dp = ranks.from_mesh(mesh([1, 0]), "dp")
        self.assertEqual(self.open(ranks=dp), dp)
        self.assertEqual(self.open(ranks=dp._replace(local_rank=2, local_world=4))[:4], (1, 2, 2, 4))
        with self.assertRaisesRegex(TypeError, "ranks: value is .1, 2.; must be 'auto', a penstock.Ranks, or what penstock.ranks.from_mesh"):
            self.open(ranks=(1, 2))

    def test_numbers_that_are_given_keep_the_cores_and_memory_of_the_process(self):
        with mock.patch.dict(os.environ, {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}):
            self.assertEqual(self.open(ranks=penstock.Ranks(2, 4)), (2, 4, 1, 4, "given", 1, False, True))
            self.assertEqual(self.open(ranks=penstock.Ranks(2, 4, local_world=1))[:4], (2, 4, 0, 1))
        with mock.patch.dict(os.environ, {"RANK": "x"}):
            self.assertEqual(self.open(ranks=penstock.Ranks(2, 4)), (2, 4, 0, 1, "given", 1, False, True))


if __name__ == "__main__":
    unittest.main()
