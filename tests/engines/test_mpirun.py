# SPDX-License-Identifier: Apache-2.0
"""mpirun of Open MPI: mpi4py knows the same ranks, and processes that it binds keep their cores."""
import os
import shutil
import sys
import unittest

import sets
from data_fixture import optional
from engine import EPOCH, EngineCase, environment, run

optional("mpi4py")
if not shutil.which("mpirun"):
    raise unittest.SkipTest("missing: mpirun (apt-get install openmpi-bin)")
# Processes find each other on this machine alone, and may be more than cores.
MPIRUN = ["mpirun", "--allow-run-as-root", "--mca", "btl", "self,vader", "--mca", "plm", "isolated"]


class Epoch(EngineCase):
    def check(self, world, *words, inner=()):
        run([*MPIRUN, *words, "-n", str(world), *inner, sys.executable, EPOCH, sets.scalars(), self.out, "mpi"])
        seen = self.check_epoch(world, "Open MPI")
        for rank, one in enumerate(seen):
            self.assertEqual(one["mpi"], [rank, world])
            self.assertEqual((one["ranks"]["local_rank"], one["ranks"]["local_world"]), (rank, world))
        return seen

    def test_processes_without_cores_of_their_own(self):
        for one in self.check(3, "--oversubscribe", "--bind-to", "none"):
            self.assertFalse(one["ranks"]["is_bound"])

    def test_processes_that_are_bound(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one core")
        for one in self.check(2, "--bind-to", "core"):
            self.assertLess(one["cores"], len(os.sched_getaffinity(0)))
            self.assertTrue(one["ranks"]["is_bound"])

    def test_torchrun_inside_of_mpirun(self):
        optional("torch")
        run([*MPIRUN, "-n", "1", sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", EPOCH,
             sets.scalars(), self.out])
        self.check_epoch(2, "torchrun")


if __name__ == "__main__":
    unittest.main()
