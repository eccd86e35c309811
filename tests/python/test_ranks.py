# SPDX-License-Identifier: Apache-2.0
"""Which of how many processes a loader is for: rank="auto", and what was given."""
import os
import sys
import unittest
from unittest import mock

import sets
import penstock
from penstock import ranks


def loader(**keywords):
    keywords.setdefault("batch_size", 10)
    keywords.setdefault("framework", "dlpack")
    return penstock.Loader(sets.scalars(), **keywords)


class Auto(unittest.TestCase):
    """rank="auto"."""

    def find(self, **env):
        with mock.patch.dict(sys.modules, {"torch.distributed": None}):
            return ranks.find(env)[:5]

    def test_launchers(self):
        alone = ranks.Ranks()[:5]
        self.assertEqual(self.find(), alone)
        torchrun = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
        self.assertEqual(self.find(**torchrun), (5, 8, 1, 4, "torchrun"))
        srun = {"SLURM_PROCID": "9", "SLURM_STEP_NUM_TASKS": "20", "SLURM_LOCALID": "1", "SLURM_NODEID": "1",
                "SLURM_STEP_TASKS_PER_NODE": "8(x2),4", "SLURM_JOB_NAME": "train"}
        with mock.patch.object(ranks, "_bound", lambda _: False):
            self.assertEqual(self.find(**srun), (9, 20, 1, 8, "srun"))
            self.assertEqual(self.find(**dict(srun, SLURM_NODEID="2", SLURM_LOCALID="3"))[2:4], (3, 4))
        with mock.patch.object(ranks, "_bound", lambda _: True):
            self.assertEqual(self.find(**srun), (9, 20, 0, 1, "srun"))
        # torchrun inside of srun
        self.assertEqual(self.find(**dict(srun, **torchrun)), (5, 8, 1, 4, "torchrun"))
        # a batch script of one task, a shell
        self.assertEqual(self.find(SLURM_PROCID="0", SLURM_NTASKS="1"), alone)
        self.assertEqual(self.find(SLURM_PROCID="0"), alone)
        self.assertEqual(self.find(**dict(srun, SLURM_JOB_NAME="bash")), alone)
        mpi = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
               "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
        self.assertEqual(self.find(**mpi), (3, 4, 0, 1, "Open MPI"))
        self.assertEqual(self.find(PMI_RANK="1", PMI_SIZE="2"), (1, 2, 0, 1, "PMI"))

    def test_ranks_that_may_count_machines_are_refused(self):
        with self.assertRaisesRegex(penstock.SettingsError, "may count machines"):
            self.find(RANK="1", WORLD_SIZE="2")
        self.assertEqual(self.find(RANK="0", WORLD_SIZE="1")[:2], (0, 1))

    def test_a_broken_environment_is_refused_by_the_name_of_its_variable(self):
        both = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
        for parts, env in (
                (["WORLD_SIZE is 4", "RANK is not set"], {"WORLD_SIZE": "4"}),
                (["RANK is 1", "WORLD_SIZE is not set"], {"RANK": "1", "LOCAL_RANK": "1"}),
                (["LOCAL_RANK is 2", "RANK and WORLD_SIZE are not set"], {"LOCAL_RANK": "2"}),
                (["RANK is 'x'"], dict(both, RANK="x")), (["RANK is '-1'"], dict(both, RANK="-1")),
                (["RANK is ' 1'"], dict(both, RANK=" 1")), (["RANK is '\u00b2'"], dict(both, RANK="\u00b2")),
                (["RANK is '999999"], dict(both, RANK="9" * 5000)),
                (["WORLD_SIZE is not set"], {"RANK": "1", "WORLD_SIZE": ""}),
                (["WORLD_SIZE is 0"], dict(both, WORLD_SIZE="0")),
                (["RANK is 5, but WORLD_SIZE is 2"], dict(both, RANK="5", WORLD_SIZE="2")),
                (["LOCAL_RANK is 1, but LOCAL_WORLD_SIZE is 1"], dict(both, LOCAL_WORLD_SIZE="1")),
                (["SLURM_PROCID is 3", "SLURM_STEP_NUM_TASKS is not set"],
                 {"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}),
                (["OMPI_COMM_WORLD_SIZE is not set"], {"OMPI_COMM_WORLD_RANK": "0"}),
                (["PMI_RANK is not set"], {"PMI_SIZE": "2"})):
            with self.subTest(**env), self.assertRaises(penstock.SettingsError) as raised:
                self.find(**env)
            for part in [*parts, "give rank= and world="]:
                self.assertIn(part, str(raised.exception))

    def test_a_launcher_that_says_all_is_asked_before_one_that_says_half(self):
        # As a batch script has it that sets WORLD_SIZE for the processes that srun starts.
        srun = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "WORLD_SIZE": "2"}
        self.assertEqual(self.find(**srun)[:2], (1, 2))
        self.assertEqual(self.find(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1")[2:4], (1, 2))

    def test_a_batch_script_that_has_tasks_but_no_step_is_refused(self):
        batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_NAME": "train.sh"}
        with self.assertRaises(penstock.SettingsError) as raised:
            self.find(**batch)
        for part in ("SLURM_PROCID is 0", "SLURM_NTASKS is 4", "SLURM_STEP_NUM_TASKS is not set", "srun",
                     "rank=0, world=1"):
            self.assertIn(part, str(raised.exception))
        # Without it in a shell of a user's, nor where another launcher says all.
        for name in ("bash", "interactive"):
            self.assertEqual(self.find(**dict(batch, SLURM_JOB_NAME=name)), ranks.Ranks()[:5])
        for other in ({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"},
                      {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
                      {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"},
                      {"PMI_RANK": "1", "PMI_SIZE": "2"}):
            self.assertEqual(self.find(**dict(batch, **other))[:2], (1, 2))
        # What another launcher says half of comes first: it is nearer to the process.
        with self.assertRaisesRegex(penstock.SettingsError, "WORLD_SIZE is 4, but RANK is not set"):
            self.find(**dict(batch, WORLD_SIZE="4"))
        with self.assertRaisesRegex(penstock.SettingsError, "SLURM_NTASKS is 'x'; must be a whole number"):
            self.find(**dict(batch, SLURM_NTASKS="x"))

    def test_what_is_given_wins(self):
        env = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        with mock.patch.dict(os.environ, env):
            with loader(rank="auto", n_threads=2) as data:
                self.assertEqual(data.ranks, (1, 2, 1, 2, "torchrun", 1))
                self.assertEqual(len(data), 100)
            with loader(rank="auto", local_rank=0, local_world=1) as data:
                self.assertEqual(data.ranks[:4], (1, 2, 0, 1))
            with loader(rank=0, world=4) as data:
                self.assertEqual(data.ranks[:2], (0, 4))
            with self.assertWarnsRegex(UserWarning, "WORLD_SIZE"), loader() as data:
                self.assertEqual(data.ranks[:2], (0, 1))

    def test_a_world_that_the_launcher_does_not_have_is_refused(self):
        two = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        for env, world, said in (({}, 2, "world: value is 2, and rank='auto' found 1 process .alone."),
                                 (two, 4, "world: value is 4, and rank='auto' found 2 processes .torchrun."),
                                 (two, 1, "world: value is 1, and rank='auto' found 2 processes .torchrun.")):
            with mock.patch.dict(os.environ, env), self.assertRaisesRegex(penstock.SettingsError, said):
                loader(rank="auto", world=world).close()
        with mock.patch.dict(os.environ, two), loader(rank="auto", world=2, n_threads=2) as data:
            self.assertEqual(data.ranks[:2], (1, 2))

    def test_a_group_that_is_passed_over_is_warned_of(self):
        group = mock.Mock(**{"is_available.return_value": True, "is_initialized.return_value": True,
                             "get_rank.return_value": 1, "get_world_size.return_value": 2})
        with mock.patch.dict(sys.modules, {"torch.distributed": group}):
            with self.assertWarnsRegex(UserWarning, "rank='auto'"):
                loader().close()
            with loader(rank="auto", compare_ranks=False) as data:
                self.assertEqual(data.ranks[:2] + data.ranks[4:5],
                                 (1, 2, "torch.distributed"))


if __name__ == "__main__":
    unittest.main()
