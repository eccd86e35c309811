# SPDX-License-Identifier: Apache-2.0
"""Processes of one group that open their loaders differently."""
import os
import subprocess
import sys
import tempfile
import unittest

import sets
from data_fixture import optional

WORLD = 3

# What each process runs. Every case is opened by all, in order.
PROGRAM = """
import datetime, sys
import torch.distributed as group
import penstock
rank, world, place, data = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
group.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=world,
                         timeout=datetime.timedelta(seconds=60))

def opened(path=data, rank="auto", **keywords):
    try:
        with penstock.Loader(path, rank=rank, framework="dlpack", n_threads=1, **{"global_batch_size": 12, **keywords}) as loader:
            print(loader.global_batch_size, len(loader), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)

opened()
opened(seed=rank // 2)
opened(path=data if rank != 1 else data + "/none")
opened(global_batch_size=12 + 3 * (rank == 2))
opened(rank=min(rank, 1), world=3)
opened(last_batch="drop" if rank else "short")
opened(seed=rank, compare_ranks=False)
opened(rank=0, world=1, seed=rank)
opened(order="sequential")
opened(order="windowed", strands=4 * (rank == 1))
opened(order="windowed" if rank else "full")
group.destroy_process_group()
"""


class Agreement(unittest.TestCase):
    def test_all_processes_say_what_differs_and_none_waits(self):
        optional("torch")
        data = sets.scalars()
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
            processes = [subprocess.Popen([sys.executable, "-c", PROGRAM, str(rank), str(WORLD), folder + "/place", data],
                                          stdout=subprocess.PIPE, text=True, env=environment) for rank in range(WORLD)]
            said = [process.communicate(timeout=200)[0].splitlines() for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * WORLD)
        cases = list(zip(*said))
        self.assertEqual(len(cases), 11, said)
        self.assertEqual(cases[0], ("12 166",) * WORLD)
        for case, says in ((1, "seed: value is 1 on process 2, and 0 on process 0; must be the same"),
                           (3, "global_batch_size: value is 15 on process 2, and 12 on process 0"),
                           (4, "rank: value is 1 on process 1 and on process 2; must be another one on each"),
                           (5, "last_batch: value is 'drop' on process 1, and 'short' on process 0"),
                           (9, "strands: value is 4 on process 1, and 1 on process 0; must be the same"),
                           (10, "order: value is 'windowed' on process 1, and 'full' on process 0; must be the same")):
            for line in cases[case]:
                self.assertTrue(line.startswith("SettingsError: " + says), line)
        self.assertTrue(cases[2][1].startswith("DataSetNotFoundError: "), cases[2])
        for rank in (0, 2):
            self.assertRegex(cases[2][rank], "SettingsError: process 1 could not open its loader: DataSetNotFoundError: ")
        self.assertEqual(cases[6], ("12 166",) * WORLD)
        self.assertEqual(cases[7], ("12 166",) * WORLD)
        self.assertEqual(cases[8], ("12 166",) * WORLD)


if __name__ == "__main__":
    unittest.main()
