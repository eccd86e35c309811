# SPDX-License-Identifier: Apache-2.0
"""The processes that a loader is for: ranks="auto", and given ranks."""
import ctypes
import os
import sys
import unittest
import warnings
from unittest import mock

import sets
import penstock
from penstock import _c, agreement, ranks


def loader(**keywords):
    keywords.setdefault("batch_size", 10)
    keywords.setdefault("framework", "dlpack")
    return penstock.Loader(sets.scalars(), **keywords)


class Auto(unittest.TestCase):
    """ranks="auto"."""

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
        self.assertEqual(self.find(**srun), (9, 20, 1, 8, "srun"))
        self.assertEqual(self.find(**dict(srun, SLURM_NODEID="2", SLURM_LOCALID="3"))[2:4], (3, 4))
        # torchrun inside of srun
        self.assertEqual(self.find(**dict(srun, **torchrun)), (5, 8, 1, 4, "torchrun"))
        # a batch script of one task
        self.assertEqual(self.find(SLURM_PROCID="0", SLURM_NTASKS="1"), alone)
        self.assertEqual(self.find(SLURM_PROCID="0"), alone)
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
            for part in [*parts, "give ranks=penstock.Ranks(RANK, WORLD)"]:
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
                     "ranks=penstock.Ranks(0, 1)"):
            self.assertIn(part, str(raised.exception))
        # Without it in a shell of a user's, nor where another launcher says all.
        for name in ("bash", "interactive"):
            self.assertEqual(self.find(**dict(batch, SLURM_JOB_NAME=name)), ranks.Ranks()[:5])
        for other in ({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"},
                      {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
                      {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"},
                      {"PMI_RANK": "1", "PMI_SIZE": "2"}):
            self.assertEqual(self.find(**dict(batch, **other))[:2], (1, 2))
        # Incomplete variables of another launcher come first, because it is nearer to the process.
        with self.assertRaisesRegex(penstock.SettingsError, "WORLD_SIZE is 4, but RANK is not set"):
            self.find(**dict(batch, WORLD_SIZE="4"))
        with self.assertRaisesRegex(penstock.SettingsError, "SLURM_NTASKS is 'x'; must be a whole number"):
            self.find(**dict(batch, SLURM_NTASKS="x"))

    def test_given_ranks_override_the_environment(self):
        env = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        with mock.patch.dict(os.environ, env):
            with loader(ranks="auto", n_threads=2) as data:
                self.assertEqual(data.ranks, (1, 2, 1, 2, "torchrun", 1, False, True))
                self.assertEqual(len(data), 100)
            with loader(ranks=penstock.Ranks("auto", local_rank=0, local_world=1)) as data:
                self.assertEqual(data.ranks[:4], (1, 2, 0, 1))
            with loader(ranks=penstock.Ranks(0, 4)) as data:
                self.assertEqual(data.ranks[:2], (0, 4))
            with self.assertWarnsRegex(UserWarning, "WORLD_SIZE"), loader() as data:
                self.assertEqual(data.ranks[:2], (0, 1))

    def test_a_world_that_the_launcher_does_not_have_is_refused(self):
        two = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        for env, world, said in (({}, 2, "world: value is 2, and rank 'auto' found 1 process .alone."),
                                 (two, 4, "world: value is 4, and rank 'auto' found 2 processes .torchrun."),
                                 (two, 1, "world: value is 1, and rank 'auto' found 2 processes .torchrun.")):
            with mock.patch.dict(os.environ, env), self.assertRaisesRegex(penstock.SettingsError, said):
                loader(ranks=penstock.Ranks("auto", world)).close()
        with mock.patch.dict(os.environ, two), loader(ranks=penstock.Ranks("auto", 2), n_threads=2) as data:
            self.assertEqual(data.ranks[:2], (1, 2))

    def test_a_group_that_is_passed_over_is_warned_of(self):
        group = mock.Mock(**{"is_available.return_value": True, "is_initialized.return_value": True,
                             "get_rank.return_value": 1, "get_world_size.return_value": 2})
        with mock.patch.dict(sys.modules, {"torch.distributed": group}):
            with self.assertWarnsRegex(UserWarning, "ranks='auto'"):
                loader().close()
            with loader(ranks=penstock.Ranks("auto", compare=False)) as data:
                self.assertEqual(data.ranks[:2] + data.ranks[4:5],
                                 (1, 2, "torch.distributed"))


class Uncompared(unittest.TestCase):
    """Loaders of several processes that are in no group."""

    def warned(self, **keywords):
        with warnings.catch_warnings(record=True) as caught, loader(n_threads=1, **keywords) as data:
            warnings.simplefilter("always")
            next(iter(data))
            next(iter(data))
        return [str(one.message) for one in caught]

    def test_the_first_rank_warns_once_at_its_first_batch(self):
        with mock.patch.object(agreement, "_warned", False):
            self.assertEqual(self.warned(ranks=penstock.Ranks(1, 2)), [])
            self.assertEqual(self.warned(ranks=penstock.Ranks(0, 1)), [])
            self.assertEqual(self.warned(ranks=penstock.Ranks(0, 2, compare=False)), [])
            message, = self.warned(ranks=penstock.Ranks(0, 2))
            self.assertRegex(message, r"^penstock: world is 2, and nothing has compared .*loader.state_dict\(\) of all processes")
            self.assertEqual(self.warned(ranks=penstock.Ranks(0, 2)), [])

    def test_a_group_of_another_number_of_processes_compares_nothing(self):
        group = mock.Mock(**{"is_available.return_value": True, "is_initialized.return_value": True,
                             "get_rank.return_value": 0, "get_world_size.return_value": 3})
        c10d = mock.Mock()
        with mock.patch.dict(sys.modules, {"torch.distributed": group, "torch.distributed.distributed_c10d": c10d}), \
                mock.patch.object(agreement, "_warned", False):
            self.assertEqual(len(self.warned(ranks=penstock.Ranks(0, 2))), 1)
            group.get_world_size.return_value = 2  # such a group, but without a store
            c10d._get_default_store.return_value = None
            with mock.patch.object(agreement, "_warned", False):
                self.assertEqual(len(self.warned(ranks=penstock.Ranks(0, 2))), 1)


def torchrun(rank, world, local_rank=0, local_world=1):
    return dict(zip(("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
                    map(str, (rank, world, local_rank, local_world))))


def mpi(rank, world, prefix="OMPI_COMM_WORLD_"):
    return {prefix + "RANK": str(rank), prefix + "SIZE": str(world)}


def srun(rank, world, **more):
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(world), "SLURM_NTASKS": str(world),
            "SLURM_LOCALID": str(rank), "SLURM_STEP_TASKS_PER_NODE": str(world), **more}


BATCH = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_NAME": "train.sh"}
JAX_JOB = {"PROCESS_ID": "3", "NUM_PROCESSES": "5", "COORDINATOR_ADDRESS": "leader"}


class Traps(unittest.TestCase):
    """Launchers inside of launchers, and variables that do not mean what they seem to."""

    def find(self, *parts, **modules):
        env = {name: value for part in parts for name, value in part.items()}
        hidden = dict.fromkeys(("torch.distributed", "jax", "ray.train"))
        hidden.update({name.replace("_", "."): module for name, module in modules.items()})
        with mock.patch.dict(sys.modules, hidden):
            return ranks.find(env)

    def refused(self, says, *parts, **modules):
        with self.assertRaises(penstock.SettingsError) as raised:
            self.find(*parts, **modules)
        for part in says:
            self.assertIn(part, str(raised.exception))

    def group(self, rank, world):
        return mock.Mock(**{"is_available.return_value": True, "is_initialized.return_value": True,
                            "get_rank.return_value": rank, "get_world_size.return_value": world})

    def jax(self, rank, world):
        return mock.Mock(**{"distributed.is_initialized.return_value": world > 0, "process_index.return_value": rank,
                            "process_count.return_value": world})

    def ray(self, rank, world):
        context = mock.Mock(**{"get_world_rank.return_value": rank, "get_world_size.return_value": world,
                               "get_local_rank.return_value": rank, "get_local_world_size.return_value": world})
        return mock.Mock(**{"get_context.return_value": context})

    def test_the_innermost_launcher_wins(self):
        # From the inside out: each is found where all the outer ones are set, too.
        chain = [("torch.distributed", {}, {"torch_distributed": self.group(1, 9)}, (1, 9)),
                 ("Ray Train", {}, {"ray_train": self.ray(2, 8)}, (2, 8)),
                 ("torchrun", torchrun(3, 7, 1, 2), {}, (3, 7)), ("Open MPI", mpi(4, 6), {}, (4, 6)),
                 ("srun", srun(2, 5), {}, (2, 5)), ("Kubeflow JAXJob", JAX_JOB, {}, (3, 5))]
        for first, (source, _, _, numbers) in enumerate(chain):
            parts = [env for name, env, _, _ in chain[first:] if (source, name) != ("Ray Train", "torchrun")]
            modules = {name: module for *_, found, _ in chain[first:] for name, module in found.items()}
            found = self.find(*parts, **modules)
            self.assertEqual((found.source, found[:2]), (source, numbers))

    def test_torchrun_inside_of_one_task(self):
        self.assertEqual(self.find(srun(0, 1), torchrun(3, 4, 3, 4))[:5], (3, 4, 3, 4, "torchrun"))
        self.assertEqual(self.find(mpi(0, 1), torchrun(3, 4, 3, 4)).source, "torchrun")

    def test_mpirun_inside_of_a_step_and_of_a_batch_script(self):
        self.assertEqual(self.find(srun(0, 1), mpi(2, 3))[:2], (2, 3))
        self.assertEqual(self.find(BATCH, mpi(2, 3)).source, "Open MPI")
        self.assertEqual(self.find(BATCH, mpi(2, 3, "MV2_COMM_WORLD_")).source, "MVAPICH")
        self.assertEqual(self.find(BATCH, mpi(2, 3, "PMI_")).source, "PMI")

    def test_every_launcher_alone(self):
        for env, wanted in (
                (torchrun(1, 2), (1, 2, 0, 1, "torchrun")),
                (dict(mpi(5, 8), OMPI_COMM_WORLD_LOCAL_RANK="1", OMPI_COMM_WORLD_LOCAL_SIZE="4"),
                 (5, 8, 1, 4, "Open MPI")),
                (dict(mpi(5, 8, "PMI_"), MPI_LOCALRANKID="1", MPI_LOCALNRANKS="4"), (5, 8, 1, 4, "PMI")),
                (JAX_JOB, (3, 5, 0, 1, "Kubeflow JAXJob")),
                ({"LWS_WORKER_INDEX": "1", "LWS_GROUP_SIZE": "3"}, (1, 3, 0, 1, "LeaderWorkerSet")),
                ({"PROCESS_ID": "3", "NUM_PROCESSES": "5"}, (0, 1, 0, 1, "alone"))):  # common words
            self.assertEqual(self.find(env)[:5], wanted)

    def test_libraries(self):
        self.assertEqual(self.find(jax=self.jax(2, 3))[:5], (2, 3, 0, 1, "jax.distributed"))
        self.assertEqual(self.find(torchrun(1, 2), jax=self.jax(0, 0)).source, "torchrun")  # not initialised
        self.assertEqual(self.find(ray_train=self.ray(2, 3))[:5], (2, 3, 2, 3, "Ray Train"))
        driver = mock.Mock(**{"get_context.side_effect": RuntimeError("not in a worker")})
        self.assertEqual(self.find(ray_train=driver).source, "alone")
        self.assertEqual(self.find(ray_train=self.ray(None, None)).source, "alone")
        both = {"torch_distributed": self.group(1, 4), "jax": self.jax(1, 4)}
        self.assertEqual(self.find(**both).source, "torch.distributed")

    def test_two_of_one_level_that_disagree_are_refused(self):
        self.refused(["torch.distributed reports rank 1 of 4", "jax.distributed rank 0 of 4", "unset"],
                     torch_distributed=self.group(1, 4), jax=self.jax(0, 4))
        self.refused(["Ray Train reports rank 0 of 2", "torchrun rank 1 of 4"], torchrun(1, 4), ray_train=self.ray(0, 2))
        self.refused(["Open MPI reports rank 1 of 4", "PMI rank 0 of 2"], mpi(1, 4), mpi(0, 2, "PMI_"))
        self.assertEqual(self.find(mpi(1, 4), mpi(1, 4, "PMI_")).source, "Open MPI")
        # the report of an inner level counts before that
        self.assertEqual(self.find(torchrun(1, 2), mpi(1, 4), mpi(0, 2, "PMI_")).source, "torchrun")

    def test_pmix_has_no_size(self):
        self.assertEqual(self.find({"PMIX_RANK": "1"}, srun(1, 2)).source, "srun")  # srun --mpi=pmix
        self.assertEqual(self.find({"PMIX_RANK": "1"}, mpi(1, 2)).source, "Open MPI")
        self.refused(["PMIX_RANK is 1, but the number of processes is in no variable"], {"PMIX_RANK": "1"})
        self.refused(["PMIX_RANK is 1, but srun reports rank 0", "unset PMIX_RANK"], {"PMIX_RANK": "1"}, srun(0, 2))

    def test_an_inner_launcher_that_contradicts_by_half_is_refused(self):
        self.assertEqual(self.find({"WORLD_SIZE": "2"}, srun(1, 2)).source, "srun")
        self.refused(["WORLD_SIZE is 8 and RANK is not set, but srun reports a size of 2", "unset WORLD_SIZE"],
                     {"WORLD_SIZE": "8"}, srun(1, 2))
        self.refused(["RANK is 0 and WORLD_SIZE is not set, but Open MPI reports rank 1"], {"RANK": "0"}, mpi(1, 2))

    def test_a_node_rank_is_not_a_process_rank(self):
        node = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1", "KUBERNETES_PORT": "x"}
        self.refused(["may count machines"], node)
        self.assertEqual(self.find(node, {"PET_NPROC_PER_NODE": "1"})[:2], (1, 2))
        self.refused(["may count machines"], node, {"PET_NPROC_PER_NODE": "8"})
        for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"):
            self.assertEqual(self.find(node, {name: "1" if name != "LOCAL_WORLD_SIZE" else "2"})[:2], (1, 2))
        # a script that copies the numbers of mpirun, or of srun
        self.assertEqual(self.find(node, mpi(1, 2)).source, "torchrun")
        self.assertEqual(self.find(node, srun(1, 2))[2:5], (1, 2, "torchrun"))
        self.refused(["may count machines"], node, srun(1, 16))

    def test_numbers_of_one_process_that_were_left_are_refused(self):
        left = {"RANK": "0", "WORLD_SIZE": "1"}
        for source, outer in (("srun", srun(1, 4)), ("Open MPI", mpi(1, 4)), ("PMI", mpi(1, 4, "PMI_"))):
            self.refused(["RANK is 0 and WORLD_SIZE is 1, but LOCAL_RANK is not set, and " + source + " reports rank 1 of 4",
                          "unset RANK and WORLD_SIZE"], left, outer)
            self.assertEqual(self.find(left, {"LOCAL_RANK": "0"}, outer)[:2], (0, 1))  # torchrun in each task
        self.assertEqual(self.find(left, srun(0, 1))[:2], (0, 1))
        # A process group of the program's is nearer than they are.
        self.assertEqual(self.find(left, srun(1, 4), torch_distributed=self.group(1, 4))[:2], (1, 4))

    def test_a_job_of_kubernetes_does_not_say_how_many_pods_it_has(self):
        self.refused(["JOB_COMPLETION_INDEX is 2, but the number of processes is in no variable"],
                     {"JOB_COMPLETION_INDEX": "2"})
        self.assertEqual(self.find({"JOB_COMPLETION_INDEX": "1"}, torchrun(9, 16, 1, 8))[:2], (9, 16))

    def test_a_shell_in_an_allocation(self):
        for name in ("bash", "interactive"):
            task = srun(1, 2, SLURM_JOB_NAME=name)
            with mock.patch.object(ranks.launchers, "_TERMINAL", _c.TERMINAL_OWN):
                self.assertEqual(self.find(task).source, "alone")  # srun -n 2 --pty bash
            with mock.patch.object(ranks.launchers, "_TERMINAL", _c.TERMINAL_NONE):
                self.assertEqual(self.find(task)[:2], (1, 2))  # srun from such a shell; srun -n 2 bash -c ...

    def test_local_numbers_come_from_whoever_has_them(self):
        self.assertEqual(self.find(srun(3, 4), mpi(3, 4, "PMI_"))[2:5], (3, 4, "PMI"))  # srun --mpi=pmi2
        self.assertEqual(self.find(srun(0, 1), mpi(3, 4, "PMI_"))[2:4], (0, 1))
        self.assertEqual(self.find(srun(3, 4), torch_distributed=self.group(3, 4))[2:4], (3, 4))
        self.assertEqual(self.find({"LOCAL_RANK": "1"}, torch_distributed=self.group(3, 4))[2:4], (1, 2))
        self.assertEqual(self.find({"LOCAL_RANK": "x"}, torch_distributed=self.group(3, 4))[2:4], (0, 1))

    def test_absurd_numbers(self):
        self.refused(["SLURM_STEP_NUM_TASKS is 0"], srun(0, 0))
        self.refused(["OMPI_COMM_WORLD_RANK is 4, but OMPI_COMM_WORLD_SIZE is 4"], mpi(4, 4))
        self.refused(["NUM_PROCESSES is 'many'"], dict(JAX_JOB, NUM_PROCESSES="many"))
        long = srun(0, 2, SLURM_STEP_TASKS_PER_NODE="2(x999999999)")
        self.assertEqual(self.find(long)[2:4], (0, 2))


class Bound(unittest.TestCase):
    """Cores that a launcher has divided are not divided again; memory is. tests/machine/test_bound.c has the rule."""

    def test_settings(self):
        machine = _c.Machine(size=_c.Machine.io_uring.offset)
        self.assertEqual(_c.lib.pstk_get_machine(None, ctypes.byref(machine), None), 0)
        known = ranks.Ranks(5, 8, 1, 4)._replace(source="srun", is_bound=True)
        self.assertEqual(ranks.numbers(known, 0), {"rank": 5, "world": 8, "local_rank": 0, "local_world": 1,
                                                   "max_memory": machine.memory // 4 * 3 // 4})
        self.assertEqual(ranks.numbers(known, 7)["max_memory"], 7)
        self.assertEqual(ranks.numbers(known._replace(is_bound=False), 0),
                         {"rank": 5, "world": 8, "local_rank": 1, "local_world": 4, "max_memory": 0})

    def test_local_numbers_that_are_given_divide(self):
        cores = os.sched_getaffinity(0)
        if len(cores) < 2:
            self.skipTest("one core")
        self.addCleanup(os.sched_setaffinity, 0, cores)
        env = dict(mpi(1, 2), OMPI_COMM_WORLD_LOCAL_RANK="1", OMPI_COMM_WORLD_LOCAL_SIZE="2")
        with mock.patch.dict(os.environ, env):
            self.assertFalse(ranks.chosen("auto").is_bound)
            os.sched_setaffinity(0, {min(cores)})
            self.assertTrue(ranks.chosen("auto").is_bound)
            self.assertFalse(ranks.Ranks("auto", local_rank=1, local_world=2).is_bound)


if __name__ == "__main__":
    unittest.main()
