# SPDX-License-Identifier: Apache-2.0
"""Batches that change their size between two of them."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

import sets
import template
import penstock
from data_fixture import needs, optional

N = 2000  # samples


def loader(**keywords):
    keywords.setdefault("batch_size", 32)
    keywords.setdefault("memory", penstock.Memory(max_batch_size=100))
    keywords.setdefault("framework", "dlpack")
    return penstock.Loader(sets.scalars(), n_threads=1, **keywords)


def order_of(seed, epoch):
    """Return the ids of an epoch, from batches of one row."""
    with penstock.Loader(sets.scalars(), batch_size=1, seed=seed, order=penstock.Order(epoch=epoch),
                         framework="dlpack") as data:
        return [batch.sample_ids[0] for batch in data]


class Changed(unittest.TestCase):
    def test_the_next_batch_has_it_and_every_sample_comes_once(self):
        chance = random.Random(1)
        for last_batch in ("short", "drop", "pad"):
            with loader(last_batch=last_batch, seed=3) as data:
                for epoch in range(2):
                    wanted, position, n, left = order_of(3, epoch), 0, 0, -1
                    for batch in data.epoch(epoch):
                        rows = data.batch_size
                        self.assertEqual((batch.position, batch.n_valid, len(batch.sample_ids)),
                                         (position, batch["i"].shape[0], batch.n_valid))
                        ids = wanted[position:position + rows]
                        if last_batch == "pad":
                            ids += wanted[:rows - len(ids)]
                        self.assertEqual(batch.sample_ids, ids)
                        self.assertEqual(batch["i"].tolist(), ids)
                        position, n = min(position + rows, N), n + 1
                        if chance.random() < 0.3:
                            data.batch_size = chance.randrange(1, 101)
                        left = N - position
                    self.assertTrue(left < data.batch_size if last_batch == "drop" else left == 0)

    def test_lengths_follow(self):
        with loader(last_batch="short") as data:
            batches = iter(data)
            self.assertEqual((len(batches), len(data), data.n_batches_left), (63, 63, 63))
            for _ in range(10):
                next(batches)
            data.batch_size = 100
            self.assertEqual((data.batch_size, data.global_batch_size), (100, 100))
            self.assertEqual((len(data), data.n_batches_left, len(batches)), (20, 17, 27))
            next(batches)
            data.batch_size = 20
            self.assertEqual((data.n_batches_left, len(batches)), (79, 90))
            self.assertEqual(11 + sum(1 for _ in batches), 90)
            self.assertEqual(len(batches), 90)
            self.assertEqual(len(iter(data)), 100)

    def test_all_frameworks_get_the_shape(self):
        for framework in ("numpy", "torch"):
            optional(framework)
            with loader(framework=framework, device=penstock.Device(copy=True)) as data:
                batches = iter(data)
                for rows in (32, 7, 100, 1, 32):
                    data.batch_size = rows
                    self.assertEqual(tuple(next(batches)["i"].shape), (rows,))

    def test_batches_that_are_held_stay(self):
        with loader(memory=penstock.Memory(n_slots=4, max_batch_size=100)) as data:
            batches = iter(data)
            first = next(batches)
            ids = first["i"].tolist()
            data.batch_size = 50
            second = next(batches)
            self.assertEqual(second.sample_ids, second["i"].tolist())
            self.assertEqual(first["i"].tolist(), ids)

    def test_without_max_batch_size_batches_may_shrink(self):
        with loader(memory=penstock.Memory(max_batch_size=None)) as data:
            data.batch_size = 8
            self.assertEqual(next(iter(data)).n_valid, 8)
            data.batch_size = 32
            with self.assertRaisesRegex(penstock.SettingsError, "batch_size: value is 33; must be at most 32, what slots have "
                                        "room for .open the loader with memory=penstock.Memory.max_batch_size=33"):
                data.batch_size = 33
            self.assertEqual(data.batch_size, 32)

    def test_several_ranks_unchecked(self):
        seen = [[], []]
        for rank in range(2):
            with loader(ranks=penstock.Ranks(rank, 2), last_batch="short", seed=5) as data:
                for i, batch in enumerate(data):
                    seen[rank] += batch.sample_ids
                    data.set_batch_size(1 + i * 13 % 100, unchecked=True)
        self.assertEqual(sorted(seen[0] + seen[1]), list(range(N)))

    def test_global_batches(self):
        for world, uneven in ((1, False), (4, False), (3, True)):
            found = []
            for rank in range(world):
                with loader(batch_size=penstock.GlobalBatch(96, uneven=uneven), ranks=penstock.Ranks(rank, world),
                            memory=penstock.Memory(max_batch_size=200), last_batch="short", seed=5) as data:
                    for i, batch in enumerate(data):
                        if rank == 0:
                            found.append([])
                        found[i] += batch.sample_ids
                        data.set_global_batch_size(40 + i * 36 % 160, unchecked=True)
                        self.assertEqual(data.global_batch_size, 40 + i * 36 % 160)
                        self.assertEqual(data.batch_size, -(-data.global_batch_size // world))
            if world == 1:
                wanted = [sorted(ids) for ids in found]
            self.assertEqual([sorted(ids) for ids in found], wanted)


class Resumed(unittest.TestCase):
    def test_a_state_restores_the_size(self):
        with loader(last_batch="short", seed=2) as data:
            batches = iter(data)
            next(batches)
            data.batch_size = 77
            next(batches)
            state = json.loads(json.dumps(data.state_dict()))
            rest = [batch.sample_ids for batch in batches]
        with loader(last_batch="short", seed=2) as data:
            data.load_state_dict(state)
            self.assertEqual(data.batch_size, 77)
            self.assertEqual([batch.sample_ids for batch in data], rest)
        with loader(last_batch="short", seed=2, memory=penstock.Memory(max_batch_size=None), batch_size=10) as data:
            data.load_state_dict(state)
            self.assertEqual(data.batch_size, 10)
            self.assertEqual(sum((batch.sample_ids for batch in data), []), sum(rest, []))
        with loader(memory=penstock.Memory(max_batch_size=70), seed=2) as data:
            data.batch_size = 12
            with self.assertRaisesRegex(penstock.SettingsError, "state: batch_size: value is 77; must be at most 70"):
                data.load_state_dict(state)
            self.assertEqual((data.cursor, data.batch_size), ((0, 0), 12))

    def test_another_world_restores_the_global_size(self):
        common = dict(batch_size=penstock.GlobalBatch(96), last_batch="short", seed=2)
        with loader(**common, ranks=penstock.Ranks(0, 2)) as data:
            next(iter(data))
            data.set_global_batch_size(120, unchecked=True)
            state = data.state_dict()
        with loader(**common, ranks=penstock.Ranks(1, 3)) as data:
            data.load_state_dict(state)
            self.assertEqual((data.batch_size, data.global_batch_size), (40, 120))

    def test_resume_between_changes_anywhere(self):
        chance = random.Random(3)
        for last_batch in ("short", "drop"):
            state, seen, epoch = None, [], 0
            while True:
                with loader(last_batch=last_batch, seed=9) as data:
                    if state is not None:
                        data.load_state_dict(state)
                    for k, batch in enumerate(data):
                        seen += batch.sample_ids
                        state = data.state_dict(batch)
                        data.batch_size = chance.randrange(1, 101)
                        state = {**state, "batch_size": data.batch_size}
                        if k == 5:
                            break
                    else:
                        break
            wanted = order_of(9, 0)
            self.assertEqual(seen, wanted[:len(seen)])
            self.assertGreater(len(seen), N - 101)


class Refused(unittest.TestCase):
    def test_wrong_sizes(self):
        with loader() as data:
            for value, says in ((0, "batch_size: value is 0; must be from 1"), (101, "value is 101; must be at most 100"),
                                (-1, "value is -1; must be from 1")):
                with self.assertRaisesRegex(ValueError, says):
                    data.batch_size = value
            for value in (2.5, None, "8"):
                with self.assertRaisesRegex(TypeError, "batch_size: value is .*; must be a whole number"):
                    data.batch_size = value
            with self.assertRaisesRegex(penstock.SettingsError, "global_batch_size: value is 8; must not be set, because the "
                                        "loader was opened with batch_size .set loader.batch_size"):
                data.global_batch_size = 8
            self.assertEqual((data.batch_size, len(data)), (32, 62))
            with self.assertRaisesRegex(TypeError, "unchecked: value is 3"):
                data.set_batch_size(8, unchecked=3)
        with self.assertRaisesRegex(penstock.PenstockError, "closed"):
            data.batch_size = 8
        with loader(batch_size=penstock.GlobalBatch(96)) as data:
            with self.assertRaisesRegex(penstock.SettingsError, "opened with global_batch_size .set loader.global_batch_size"):
                data.batch_size = 8
        with loader(memory=penstock.Memory(max_batch_size=4000)) as data:
            with self.assertRaisesRegex(penstock.SettingsError, "batch_size: 2001 rows .* are more than the 2000 samples"):
                data.batch_size = 2001
            self.assertEqual(data.batch_size, 32)
            data.batch_size = 2000
            self.assertEqual([batch.n_valid for batch in data], [2000])

    def test_wrong_maxima(self):
        for value, says in ((31, "max_batch_size: value is 31; must be at least the rows of this process's batches, which are 32"),
                            (0, "max_batch_size: value is 0; must be from 1")):
            with self.assertRaisesRegex(penstock.SettingsError, says):
                loader(memory=penstock.Memory(max_batch_size=value)).close()
        with self.assertRaisesRegex(TypeError, "max_batch_size: value is 1.5; must be a whole"):
            loader(memory=penstock.Memory(max_batch_size=1.5)).close()
        with self.assertRaisesRegex(penstock.OutOfMemoryError, "max_batch_size"):
            loader(memory=penstock.Memory(max_batch_size=2**30)).close()

    def test_several_processes_that_nothing_compares(self):
        with loader(ranks=penstock.Ranks(1, 2)) as data:
            with self.assertRaisesRegex(penstock.SettingsError, "batch_size: value is 8, and world is 2; every process must .*"
                                        "set_batch_size.8, unchecked=True"):
                data.batch_size = 8
            self.assertEqual(data.batch_size, 32)

    def test_in_a_callback(self):
        with loader() as data:
            def change(*_):
                data.batch_size = 4
            data._on_bad_sample = change
            data._report, report = (lambda batch: change()), data._report
            with self.assertRaisesRegex(penstock.PenstockError, "already in a call of the loader"):
                next(iter(data))
            data._report = report
            self.assertEqual(next(iter(data)).n_valid, 32)


class Scheduled(unittest.TestCase):
    SIZES = {0: 32, 20: 100, 45: 7, 300: 64}

    def walk(self, sizes, n, n_steps, last_batch="short"):
        """Return the (epoch, position, rows) of each step, from the first one on."""
        epoch, position, found = 0, 0, []
        for step in range(n_steps):
            rows = sizes[max(first for first in sizes if first <= step)]
            if position == n or (last_batch == "drop" and n - position < rows):
                epoch, position = epoch + 1, 0
            found.append((epoch, position, min(rows, n - position)))
            position += min(rows, n - position)
        return found

    def test_each_step_has_its_size_and_every_sample_comes_once(self):
        for last_batch in ("short", "drop"):
            with loader(batch_size=self.SIZES, memory=penstock.Memory(max_batch_size=None), last_batch=last_batch,
                        seed=3) as data:
                steps = iter(self.walk(self.SIZES, N, 400, last_batch))
                for epoch in range(3):
                    wanted, ids, batches = order_of(3, epoch), [], data.epoch(epoch)
                    n, length = 0, len(batches)
                    self.assertEqual((len(data), data.n_batches_left), (length, length))
                    for batch in batches:
                        self.assertEqual((batch.epoch, batch.position, batch.n_valid), next(steps))
                        self.assertEqual((batch.index, data.n_batches_left), (n, length - n - 1))
                        ids, n = ids + batch.sample_ids, n + 1
                        self.assertEqual(batch["i"].tolist(), batch.sample_ids)
                    self.assertEqual((n, ids), (length, wanted[:len(ids)]))

    def test_resume_at_any_step(self):
        steps = self.walk(self.SIZES, N, 330)
        for at in (0, 19, 20, 44, 45, 200, 299, 300, 320):
            epoch, position, rows = steps[at]
            with loader(batch_size=self.SIZES, memory=penstock.Memory(max_batch_size=None), last_batch="short",
                        order=penstock.Order(epoch=epoch, position=position)) as data:
                self.assertEqual(data.batch_size, self.SIZES[max(first for first in self.SIZES if first <= at)])
                state = json.loads(json.dumps(data.state_dict()))
                self.assertEqual(state["batch_schedule"], [[0, 32], [20, 100], [45, 7], [300, 64]])
            with loader(batch_size=self.SIZES, memory=penstock.Memory(max_batch_size=None), last_batch="short") as data:
                data.load_state_dict(state)
                batch = next(iter(data))
                self.assertEqual((batch.epoch, batch.position, batch.n_valid), (epoch, position, rows))

    def test_global_batches_of_any_number_of_processes(self):
        sizes = {0: 96, 5: 24, 30: 144}
        wanted = self.walk(sizes, N, 60)
        for world in (1, 2, 6):
            found = [[] for _ in range(60)]
            for rank in range(world):
                with loader(batch_size=penstock.GlobalBatch(sizes), memory=penstock.Memory(max_batch_size=None),
                            last_batch="short", ranks=penstock.Ranks(rank, world), seed=1) as data:
                    steps = (batch for epoch in range(9) for batch in data.epoch(epoch))
                    for step, batch in zip(range(60), steps):
                        found[step] += batch.sample_ids
            orders = {epoch: order_of(1, epoch) for epoch in range(3)}
            self.assertEqual([sorted(ids) for ids in found],
                             [sorted(orders[epoch][position:position + rows]) for epoch, position, rows in wanted])

    def test_states_and_processes_must_agree(self):
        with loader(batch_size={0: 32, 5: 40}, memory=penstock.Memory(max_batch_size=None)) as data:
            state = data.state_dict()
            with self.assertRaisesRegex(penstock.SettingsError, "batch_size: value is 8; must not be set, because the loader was "
                                        "opened with a schedule"):
                data.batch_size = 8
        for keywords in (dict(batch_size=32), *(dict(batch_size=sizes, memory=penstock.Memory(max_batch_size=None))
                                                for sizes in ({0: 32, 6: 40}, {0: 8, 5: 40}))):
            with loader(**keywords) as data:
                with self.assertRaisesRegex(penstock.SettingsError, r"state: batch_schedule is \[\[0, 32\], \[5, 40\]\], but this loader's is"):
                    data.load_state_dict(state)

    def test_a_state_says_what_its_schedule_counts(self):
        sizes = {0: 32, 5: 40}
        by_name = {"batch_size": {"batch_size": sizes}, "global_batch_size": {"batch_size": penstock.GlobalBatch(sizes)}}
        for name, other in (("batch_size", "global_batch_size"), ("global_batch_size", "batch_size")):
            with loader(**by_name[name], memory=penstock.Memory(max_batch_size=None)) as data:
                state = data.state_dict()
                self.assertEqual(state["batch_schedule_of"], name)
            with loader(**by_name[other], memory=penstock.Memory(max_batch_size=None)) as data:
                with self.assertRaisesRegex(penstock.SettingsError, f"batch_schedule_of is '{name}', but this loader's is '{other}'"):
                    data.load_state_dict(state)
                del state["batch_schedule_of"]  # as states were before
                data.load_state_dict(state)

    def test_a_state_without_global_batches(self):
        with loader(batch_size=penstock.GlobalBatch(32), memory=penstock.Memory(max_batch_size=64)) as data:
            state = data.state_dict()
            del state["global_batch_size"]  # as states were before
            data.load_state_dict(state)
            self.assertEqual(data.global_batch_size, 32)

    def test_wrong_schedules(self):
        for sizes, kind, says in (
                ({}, penstock.SettingsError, "batch_size: value is {}; must have the rows of step 0"),
                ({5: 8}, penstock.SettingsError, "must have the rows of step 0"),
                ({0: 8, 5: 0}, penstock.SettingsError, "batch_size: value is 0; must be from 1 .*from step 5"),
                ({0: 8, 5: 2.5}, TypeError, "batch_size: value is 2.5; must be a whole number .from step 5"),
                ({0: 8, "a": 4}, TypeError, "batch_size: a step is 'a'; must be a whole number"),
                ({0: 8, 2**62: 4}, penstock.SettingsError, "must be below 2..62"),
                ({0: 8, 5: 4000}, penstock.SettingsError, "batch_schedule.0..rows: 4000 rows of all ranks are more than the 2000"),
                ({i: 1 + i % 9 for i in range(1026)}, penstock.SettingsError, "value has 1026 sizes; must have at most")):
            with self.subTest(says), self.assertRaisesRegex(kind, says):
                loader(batch_size=sizes, memory=penstock.Memory(max_batch_size=None)).close()
        with self.assertRaisesRegex(penstock.SettingsError, "max_batch_size: value is 9; must be at least the most rows of the "
                                    "schedule, which are 40"):
            loader(batch_size={0: 8, 5: 40}, memory=penstock.Memory(max_batch_size=9)).close()
        with self.assertRaisesRegex(penstock.SettingsError, "global_batch_size: value is 10, and world is 4; .*from step 5"):
            loader(batch_size=penstock.GlobalBatch({0: 8, 5: 10}), memory=penstock.Memory(max_batch_size=None),
                   ranks=penstock.Ranks(0, 4)).close()


class Example(unittest.TestCase):
    def test_the_largest_batch_is_found(self):
        optional("torch")
        data = sets.photos()
        example = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "largest_batch.py")
        found = {}
        for limit in (1, 3_000_000, 10**12):
            done = subprocess.run([sys.executable, example, data, "--most", "20", "--size", "32", "--limit", str(limit)],
                                  env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
                                  stdout=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(done.returncode, 0)
            found[limit] = int(done.stdout.split()[2])
        # Bytes that one row keeps: the image, two copies of the first convolution's output, the squared result.
        row = 4 * (3 * 32 * 32 + 2 * 32 * 30 * 30 + 32 * 28 * 28)
        weights = 4 * (32 * 3 * 9 + 32 * 32 * 9)
        self.assertEqual((found[1], found[10**12]), (0, 20))
        self.assertAlmostEqual(found[3_000_000], (3_000_000 - weights) // row, delta=1)


# The program of each process. All of them run every case, in order.
PROGRAM = """
import datetime, sys
import torch.distributed as group
import penstock
rank, world, place, data = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
group.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=world,
                         timeout=datetime.timedelta(seconds=60))

def attempt(change):
    try:
        change()
        print(loader.batch_size, loader.global_batch_size, flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)

def opened(ranks="auto", **keywords):
    return penstock.Loader(data, ranks=ranks, framework="dlpack", n_threads=1, memory=penstock.Memory(max_batch_size=100),
                           last_batch="short", **keywords)

with opened(batch_size=32) as loader:
    batches, ids = iter(loader), []
    ids += next(batches).sample_ids
    attempt(lambda: loader.set_batch_size(50))
    ids += next(batches).sample_ids
    attempt(lambda: loader.set_batch_size(20 + rank))
    attempt(lambda: loader.set_batch_size(20 if rank != 1 else 101))
    if rank == 2:
        ids += next(batches).sample_ids
    attempt(lambda: loader.set_batch_size(20))
    if rank != 2:
        ids += next(batches).sample_ids
    attempt(lambda: loader.set_batch_size(20))
    for batch in batches:
        ids += batch.sample_ids
        loader.batch_size = 1 + batch.index % 90
    everyone = [None] * world
    group.all_gather_object(everyone, ids)
    print(sorted(sum(everyone, [])) == list(range(loader.n_samples)), flush=True)
with opened(batch_size=penstock.GlobalBatch(96)) as loader:
    attempt(lambda: loader.set_global_batch_size(150))
    attempt(lambda: loader.set_global_batch_size(151))
with opened(batch_size=32, ranks=penstock.Ranks("auto", compare=False)) as loader:
    attempt(lambda: loader.set_batch_size(50))
    attempt(lambda: loader.set_batch_size(50, unchecked=True))
group.destroy_process_group()
"""


class Agreement(unittest.TestCase):
    def test_processes_compare_size_and_cursor(self):
        needs("torch")
        world, data = 3, sets.scalars()
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
            processes = [subprocess.Popen([template.python(), "-c", PROGRAM, str(rank), str(world), folder + "/place", data],
                                          stdout=subprocess.PIPE, text=True, env=environment) for rank in range(world)]
            said = [process.communicate(timeout=200)[0].splitlines() for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * world)
        cases = list(zip(*said))
        self.assertEqual(len(cases), 10, said)
        for case, line in ((0, "50 150"), (4, "20 60"), (5, "True"), (6, "50 150"), (9, "50 150")):
            self.assertEqual(cases[case], (line,) * world, said)
        for line in cases[1]:
            self.assertIn("SettingsError: batch_size: value is 21 on process 1, and 20 on process 0; must be the same", line)
        self.assertRegex(cases[2][1], "SettingsError: batch_size: value is 101; must be at most 100")
        for rank in (0, 2):
            self.assertRegex(cases[2][rank], "SettingsError: process 1 could not set batch_size: SettingsError: batch_size: ")
        for line in cases[3]:
            self.assertRegex(line, r"SettingsError: the cursor: value is \(0, 396\) on process 2, and \(0, 246\) on process 0")
        for line in cases[7]:
            self.assertIn("must be a multiple of it", line)
        for line in cases[8]:
            self.assertIn("nothing here compares them", line)


if __name__ == "__main__":
    unittest.main()
