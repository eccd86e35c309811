# SPDX-License-Identifier: Apache-2.0
"""Processes of one group that open their loaders differently."""
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import penstock
import sets
import template
from data_fixture import needs
from penstock import agreement
from penstock.ranks import Ranks
from test_tar_fields import archive

WORLD = 3

# The program of each process. All of them open every case, in order.
PROGRAM = """
import datetime, os, sys, warnings
import torch.distributed as group
import penstock
from penstock import agreement, exchange
rank, world, place, data = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]

def early(**keywords):
    return penstock.Loader(data, batch_size=4, ranks=penstock.Ranks(rank, world), framework="dlpack", n_threads=1, **keywords)

def taken(name, *loaders):
    print(f"#{name} ", end="")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for loader in loaders:
                next(iter(loader))
            print("taken", end="")
        except Exception as error:
            print(f"{type(error).__name__}: {error}", end="")
    print("".join(f" | {os.path.basename(one.filename)}: {one.message}" for one in caught), flush=True)

if rank < 2:  # a process that joins later
    group.init_process_group("gloo", init_method="file://" + place + "-of-two", rank=rank, world_size=2)
    penstock.Loader(data, batch_size=4, ranks="auto", framework="dlpack", n_threads=1).close()
    group.destroy_process_group()
if rank == 0:
    early(seed=9).close()
    unused = early(seed=8)
pair = [early(), early(order="sequential", last_batch="short")]
if rank == 1:
    pair = [early(order="sequential", last_batch="short"), early()]
differing, lazy = early(seed=5 + rank), early(seed=5, order=penstock.Order(epoch=rank // 2))
taken("before", pair[0], pair[1], pair[0])
group.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=world,
                         timeout=datetime.timedelta(seconds=60))

os.environ["GLOO_SOCKET_IFNAME"] = "nowhere"  # the comparison makes no group of its own
agreement.SECONDS, agreement._AGAIN, exchange._READ_SECONDS = 60, 0, 0.5
taken("pair", *pair)
taken("differing", differing)
taken("again", differing)
agreement.SECONDS = 2
if rank < 2:
    taken("waits", lazy)
    taken("goes_on", lazy)
    group.barrier()
    group.barrier()
else:
    group.barrier()
    taken("late", lazy)
    group.barrier()
taken("found", lazy)
agreement.SECONDS = 60

def opened(path=data, ranks="auto", **keywords):
    try:
        with penstock.Loader(path, ranks=ranks, framework="dlpack", n_threads=1,
                             **{"batch_size": penstock.GlobalBatch(12), **keywords}) as loader:
            print(loader.global_batch_size, len(loader), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)

opened()
opened(seed=rank // 2)
opened(path=data if rank != 1 else data + "/none")
opened(batch_size=penstock.GlobalBatch(12 + 3 * (rank == 2)))
opened(ranks=penstock.Ranks(min(rank, 1), 3))
opened(last_batch="drop" if rank else "short")
opened(seed=rank, ranks=penstock.Ranks("auto", compare=False))
opened(ranks=penstock.Ranks(0, 1), seed=rank)
opened(order="sequential")
opened(order=penstock.Order("windowed", ways=4 * (rank == 1)))
opened(order="windowed" if rank else "full")
for case in ("same", "longer", "larger", "changed"):
    opened(path=f"{sys.argv[5]}/{case}-{rank}/{{000..001}}.tar")
agreement.SECONDS = 2
print("#left ", end="", flush=True)
if rank < 2:
    opened()
else:
    print()

class Ended:
    def set(self, key, value):
        raise RuntimeError("Connection reset by peer")

exchange._store = lambda torch: Ended()
print("#ended ", end="", flush=True)
opened()
group.destroy_process_group()
"""


def copies(folder):
    """Copies of a data set of two archives for each process; process 2 has another one."""
    def put(case, rank, samples):
        os.makedirs(f"{folder}/{case}-{rank}")
        for shard in range(2):
            with open(f"{folder}/{case}-{rank}/{shard:03d}.tar", "wb") as out:
                out.write(archive(samples[shard::2]))
    whole = [(f"{n:04d}", {"txt": b"t" * (n % 9)}) for n in range(200)]
    for rank in range(WORLD):
        put("same", rank, whole)
        put("longer", rank, whole + [("9999", {"txt": b""})] * (rank == 2))  # a sample more
        put("larger", rank, whole[:-1] + [(whole[-1][0], {"txt": b"t" * (600 if rank == 2 else 1)})])  # a block more
        put("changed", rank, [(key, {"txt": b"four" if rank == 2 and key == "0007" else has["txt"]}) for key, has in whole])


class Failing:
    """An exchange whose first report fails, or in which all have reported and nobody gave the verdict."""
    process, n = 0, 3

    def __init__(self, fails=True):
        self.fails, self.reports, self.decided = fails, 0, None

    def report(self, own, judge):
        self.reports += 1
        if self.fails:
            self.fails = False
            raise penstock.PenstockError("Connection reset by peer")

    def wait(self, seconds, check=None):
        return False

    def missing(self):
        return []

    def decide(self, verdict):
        self.decided = verdict

    def verdict(self):
        return self.decided


class OneProcess(unittest.TestCase):
    def test_a_report_that_failed_is_made_again_in_the_same_exchange(self):
        made = []

        def exchange(torch, subject):
            made.append(Failing())
            return made[-1]
        one = agreement.Agreement(Ranks(0, 3), True)
        with unittest.mock.patch.object(agreement, "_comparing", lambda ranks: object()), \
                unittest.mock.patch.object(agreement, "_exchange", exchange), warnings.catch_warnings():
            warnings.simplefilter("error")  # nobody is missing, so that no process is named
            self.assertRaisesRegex(penstock.PenstockError, "reset by peer", one.is_over, lambda: None)
            self.assertFalse(one.is_over(lambda: None))
        self.assertEqual([exchange.reports for exchange in made], [2])

    def test_a_verdict_that_does_not_come_names_no_empty_list_of_processes(self):
        with unittest.mock.patch.object(agreement, "SECONDS", 0):
            said = agreement._judged(Failing(), "open a loader", "give each penstock.Ranks compare=False")
        self.assertEqual(said["problem"], "rank: all 3 processes did open a loader, and the last one ended before it compared what "
                         "they reported; must go on (see its log)")


class Agreement(unittest.TestCase):
    def test_all_processes_say_what_differs_and_none_waits(self):
        needs("torch")
        data = sets.scalars()
        with tempfile.TemporaryDirectory() as folder:
            copies(folder + "/copies")
            environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
            processes = [subprocess.Popen([template.python(), "-c", PROGRAM, str(rank), str(WORLD), folder + "/place", data,
                                           folder + "/copies"],
                                          stdout=subprocess.PIPE, text=True, env=environment) for rank in range(WORLD)]
            said = [process.communicate(timeout=200)[0].splitlines() for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * WORLD)
        self.check_loaders_that_were_open_before_the_group(
            [dict(line[1:].split(" ", 1) for line in lines if line.startswith("#")) for lines in said])
        cases = list(zip(*([line for line in lines if not line.startswith("#")] for lines in said)))
        self.assertEqual(len(cases), 15, said)
        self.assertEqual(cases[0], ("12 166",) * WORLD)
        for case, says in ((1, "seed: value is 1 on process 2, and 0 on process 0; must be the same"),
                           (3, "global_batch_size: value is 15 on process 2, and 12 on process 0"),
                           (4, "rank: value is 1 on process 1 and on process 2; must be another one on each"),
                           (5, "last_batch: value is 'drop' on process 1, and 'short' on process 0"),
                           (9, "ways: value is 4 on process 1, and 1 on process 0; must be the same"),
                           (10, "order: value is 'windowed' on process 1, and 'full' on process 0; must be the same")):
            for line in cases[case]:
                self.assertTrue(line.startswith("SettingsError: " + says), line)
        self.assertEqual(cases[11], ("12 16",) * WORLD)
        for case, name, n in ((12, "longer", 201), (13, "larger", 200), (14, "changed", 200)):
            for line in cases[case]:
                self.assertRegex(line, "^SettingsError: data_set: value is '[0-9a-f]{32}' "
                                 rf"\(.*/{name}-2/.*: {n} samples and \d+ bytes in 2 shards\) on process 2, and '[0-9a-f]{{32}}' "
                                 rf"\(.*/{name}-0/.*: 200 samples and \d+ bytes in 2 shards\) on process 0; must be the same on all "
                                 r"processes \(if they read copies")
        self.assertTrue(cases[2][1].startswith("DataSetNotFoundError: "), cases[2])
        for rank in (0, 2):
            self.assertRegex(cases[2][rank], "SettingsError: process 1 could not open its loader: DataSetNotFoundError: ")
        self.assertEqual(cases[6], ("12 166",) * WORLD)
        self.assertEqual(cases[7], ("12 166",) * WORLD)
        self.assertEqual(cases[8], ("12 166",) * WORLD)

    def check_loaders_that_were_open_before_the_group(self, said):
        """said: of each process, by what it did."""
        self.assertRegex(said[0]["before"], r"^taken \| <string>: penstock: world is 3, and nothing has compared the loaders of "
                         r"these processes: .*compare loader.state_dict\(\) of all processes yourself, and "
                         r"give penstock.Ranks compare=False\)$")
        for rank in range(WORLD):
            if rank:
                self.assertEqual(said[rank]["before"], "taken")
            self.assertEqual(said[rank]["pair"], "taken")
            for name in ("differing", "again"):
                self.assertEqual(said[rank][name], "SettingsError: seed: value is 6 on process 1, and 5 on process 0; must be the "
                                 "same on all processes")
            self.assertEqual(said[rank]["found"], "SettingsError: epoch: value is 1 on process 2, and 0 on process 0; must be the "
                             "same on all processes")
            self.assertRegex(said[rank]["ended"], "^PenstockError: ranks: penstock could not reach the store of "
                             r"torch.distributed, .*\(Connection reset by peer\).*\(or give ranks=penstock.Ranks\(RANK, WORLD, compare=False\)\)$")
        self.assertRegex(said[0]["waits"], r"^taken \| <string>: penstock: process 2 of 3 took no batch within 2 s after the others, "
                         r".*\(give penstock.Ranks compare=False for a loader that only some processes use\)$")
        self.assertEqual((said[1]["waits"], said[0]["goes_on"], said[1]["goes_on"]), ("taken",) * 3)
        self.assertEqual(said[2]["late"], said[2]["found"])
        for rank in range(2):
            self.assertEqual(said[rank]["left"], "TimedOutError: rank: process 2 did not open a loader within 2 s, as the others of "
                             "3 did; must do so (open one in each, or give each penstock.Ranks compare=False)")


if __name__ == "__main__":
    unittest.main()
