# SPDX-License-Identifier: Apache-2.0
"""A loader's state: resuming gives what would have come, after a kill as well; states that do not fit are
refused with both sides named."""
import copy
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import sets
import penstock

sets.need_numpy()


def loader(**keywords):
    keywords.setdefault("batch_size", 8)
    keywords.setdefault("outputs", {"p": sets.images(), "i": "i", "t": "text"})
    keywords.setdefault("last_batch", "short")
    return penstock.Loader(sets.small(), framework="numpy", seed=11, **keywords)


def digests(batches):
    return [sets.digest([batch]) for batch in batches]


class Resume(unittest.TestCase):
    def test_it_goes_on_where_it_was(self):
        with loader() as data:
            whole = [digests(data) for _ in range(3)]
        for stop in (0, 1, 5, 12, 13):
            with self.subTest(stop=stop), loader() as data:
                digests(data)
                batches = iter(data)
                for _ in range(stop):
                    next(batches)
                saved = json.loads(json.dumps(data.state_dict()))
                with loader() as other:
                    other.load_state_dict(saved)
                    self.assertEqual(other.state_dict(), saved)
                    if stop < 13:
                        self.assertEqual(digests(other), whole[1][stop:])
                    self.assertEqual(digests(other), whole[2])

    def test_prefetched_batches_do_not_count_in_the_state(self):
        with loader(memory=penstock.Memory(n_slots=8)) as data:
            batches = iter(data)
            next(batches)
            time.sleep(0.1)
            self.assertEqual(data.state_dict()["position"], 8)

    def test_the_state_after_an_earlier_batch_has_its_position(self):
        with loader() as data:
            batches = iter(data)
            first = next(batches)
            next(batches)
            next(batches)
            saved = data.state_dict(after=first)
            self.assertEqual((saved["epoch"], saved["position"]), (0, 8))

    def test_the_state_after_a_batch_of_another_loader_is_refused(self):
        with loader() as data, loader() as validation:
            first = next(iter(data))
            for batch in validation:
                last = batch
            for after in (last, last.info, copy.copy(last.info)):
                with self.assertRaisesRegex(penstock.SettingsError, "after: value is a batch of another loader"):
                    data.state_dict(after=after)
            self.assertEqual(data.state_dict(after=copy.copy(first.info))["position"], 8)

    def test_epoch_goes_on_in_the_epoch_of_the_state_only(self):
        with loader() as data:
            whole = [digests(data) for _ in range(3)]
        with loader() as data:
            batches = data.epoch(1)
            next(batches)
            saved = data.state_dict()
        for go in (lambda data, e: data.epoch(e), lambda data, e: data.set_epoch(e) or iter(data)):
            with loader() as data:
                data.load_state_dict(saved)
                self.assertEqual(data.current_epoch, 1)
                self.assertEqual(digests(go(data, 1)), whole[1][1:])
                self.assertEqual(digests(go(data, 1)), whole[1])
                data.load_state_dict(saved)
                self.assertEqual(digests(go(data, 2)), whole[2])
                self.assertEqual(digests(go(data, 1)), whole[1])

    def test_a_state_at_the_end_of_an_epoch(self):
        """Behind the last batch, before the loop noticed: the epoch has nothing left, the next is whole."""
        with loader() as data:
            whole = [digests(data) for _ in range(2)]
        with loader() as data:
            for batch in data:
                saved = data.state_dict()
        self.assertEqual((saved["epoch"], saved["position"]), (0, 103))
        with loader() as data:
            data.load_state_dict(saved)
            self.assertEqual(digests(data.epoch(0)), [])
            self.assertEqual(digests(data), whole[1])
            data.load_state_dict(saved)
            self.assertEqual(digests(data), whole[1])

    def test_resuming_on_other_ranks_and_batch_sizes_misses_and_repeats_nothing(self):
        def ids(**keywords):
            with loader(outputs=["i"], **keywords) as data:
                if saved:
                    data.load_state_dict(saved)
                return [i for batch in data for i in batch.sample_ids]

        saved = None
        whole = ids()
        before = []
        for rank in range(2):
            with loader(outputs=["i"], ranks=penstock.Ranks(rank, 2)) as data:
                batches = iter(data)
                before += next(batches).sample_ids + next(batches).sample_ids
                told = data.state_dict()
        saved = told
        self.assertEqual((saved["position"], saved["world"]), (32, 2))
        after = sum((ids(ranks=penstock.Ranks(rank, 3), batch_size=5) for rank in range(3)), [])
        self.assertEqual(sorted(before), sorted(whole[:32]))
        self.assertEqual(sorted(after), sorted(whole[32:]))

    def test_torchdata_and_others_find_the_protocol(self):
        with loader() as data:
            self.assertTrue(callable(data.state_dict) and callable(data.load_state_dict))
            try:
                from torchdata.stateful_dataloader import Stateful
            except ImportError:
                self.skipTest("torchdata is not installed")
            self.assertIsInstance(data, Stateful)


class Refused(unittest.TestCase):
    def load(self, part, error=penstock.SettingsError, **changes):
        with loader() as data:
            next(iter(data))
            saved = dict(data.state_dict(), **changes)
            with self.assertRaisesRegex(error, part):
                data.load_state_dict(saved)
            self.assertEqual(data.cursor, (0, 8))

    def test_states_that_do_not_fit_are_named(self):
        own = "data_set is 'abc', but this loader's is '[0-9a-f]{32}'"
        self.load(own, data_set="abc")
        self.load("seed is 12, but this loader's is 11 \\(open the loader with seed=12\\)", seed=12)
        self.load("order is 'sequential', but this loader's is 'full'", order="sequential")
        self.load("order_version is 2, but this loader's is 1", order_version=2)
        self.load("version is 2; must be at most 1 \\(update", version=2)
        self.load("position is 104; must be at most 103", position=104)
        self.load("position is -1", position=-1)
        self.load("epoch is '1'", epoch="1")
        self.load("must be a whole number, 0 or more", version=None)
        self.load("version is 0; must be at least 1", version=0)
        self.load("position is True", position=True)
        for epoch in (2**63, 2**64, 10**400):
            self.load(f"epoch is {epoch}; must be a whole number, 0 or more and below 2\\^63", epoch=epoch)

    def test_epochs_that_the_library_cannot_count_are_refused(self):
        with loader() as data:
            for epoch in (2**63, 2**64, -1):
                for call in (data.seek, data.set_epoch, data.epoch):
                    with self.assertRaisesRegex(penstock.SettingsError, f"epoch: value is {epoch}; must be "):
                        call(epoch)
            self.assertEqual(data.cursor, (0, 0))
            data.seek(2**63 - 1)
            self.assertEqual(next(iter(data)).epoch, 2**63 - 1)

    def test_a_state_without_a_member_is_named(self):
        with loader() as data:
            whole = data.state_dict()
            for name in ("position", "seed", "data_set", "version"):
                part = {key: value for key, value in whole.items() if key != name}
                with self.assertRaisesRegex(penstock.SettingsError, f"value has no '{name}'"):
                    data.load_state_dict(part)

    def test_a_key_that_no_state_has_is_named(self):
        with loader() as data:
            saved = data.state_dict()
            for key, says in (("step", "state: value has 'step', which no state of penstock"), ("positon", "did you mean 'position'"),
                              (7, "state: value has 7")):
                with self.assertRaises(penstock.SettingsError) as caught:
                    data.load_state_dict({**saved, key: 5})
                self.assertIn(says, str(caught.exception))
            data.load_state_dict(saved)
        for more in ({"order": penstock.Order("windowed", window=10)}, {"batch_size": {0: 8, 5: 4}},
                     {"subset": penstock.Range(0, 50)}, {"batch_size": penstock.GlobalBatch(8)}):
            keywords = {"batch_size": None, **more} if "global_batch_size" in more else more
            with loader(**keywords) as data:
                data.load_state_dict(data.state_dict())

    def test_numbers_of_arrays_are_numbers(self):
        with loader() as data:
            numpy = sets.numpy
            made = {name: numpy.int64(value) if isinstance(value, int) else value
                    for name, value in dict(data.state_dict(), position=16).items()}
            for position in (made["position"], numpy.array(16)):
                data.load_state_dict(dict(made, position=position))
                self.assertEqual(data.cursor, (0, 16))

    def test_a_value_that_is_no_state_is_refused(self):
        with loader() as data:
            self.assertRaises(TypeError, data.load_state_dict, [1])
            self.assertRaises(penstock.SettingsError, data.load_state_dict, {})

    def test_a_sequential_loader_has_its_seed_too(self):
        with loader(shuffle=False) as data:  # crops and flips follow from it
            self.assertRaises(penstock.SettingsError, data.load_state_dict, dict(data.state_dict(), seed=99))

    def test_a_state_after_the_last_batch_trains_no_epoch_twice(self):
        with loader() as data:
            for batch in data.epoch(0):
                saved = data.state_dict()
        with loader() as data:
            data.load_state_dict(saved)
            seen = []
            for e in range(3):
                data.set_epoch(e)
                seen += sorted({batch.epoch for batch in data})
            self.assertEqual(seen, [1, 2])
        with loader() as data:
            data.load_state_dict(saved)
            self.assertEqual(data.current_epoch, 1)
            self.assertEqual([{batch.epoch for batch in data} for _ in range(data.current_epoch, 3)], [{1}, {2}])
        with loader() as data:
            data.load_state_dict(saved)
            self.assertEqual([sum(1 for _ in data.epoch(e)) > 0 for e in range(2)],
                             [False, True])

    def test_a_closed_loader_loads_none(self):
        data = loader()
        saved = data.state_dict()
        data.close()
        self.assertRaises(penstock.PenstockError, data.load_state_dict, saved)


TRAIN = """
import json, os, sys, time
import penstock
import sets
path, journal, epochs, most = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
data = penstock.Loader(path, batch_size=8, seed=11, framework="numpy", last_batch="short",
                       outputs={"p": sets.images(), "i": "i", "t": "text"})
lines = []
if os.path.exists(journal):
    with open(journal) as file:
        lines = [json.loads(line) for line in file if line.endswith("}}\\n")]
    if lines:
        data.load_state_dict(lines[-1]["state"])
while data.current_epoch < epochs:
    for batch in data:
        digest = sets.digest([batch])
        # One write: the checkpoint of a step has its result and the state behind it.
        with open(journal, "a") as file:
            file.write(json.dumps({"digest": digest, "state": data.state_dict()}) + "\\n")
        most -= 1
        if most == 0:
            time.sleep(600)  # for who kills it, and is late
"""


class Killed(unittest.TestCase):
    def start(self, journal, most):
        """Return a trainer that stands still after so many batches, 0: never."""
        here = os.path.dirname(os.path.abspath(__file__))
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(
            [os.path.dirname(os.path.dirname(penstock.__file__)), here]))
        return subprocess.Popen([sys.executable, "-c", TRAIN, sets.small(), journal, "4", str(most)],
                                env=env)

    def read(self, journal):
        try:
            with open(journal, encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("}}\n")]
        except FileNotFoundError:
            return []

    def test_killed_and_resumed_gives_the_bytes_of_never_having_stopped(self):
        with loader() as data:
            wanted = [digest for _ in range(4) for digest in digests(data)]
        journal, n_kills = os.path.join(sets.ROOT, "journal"), 0
        while len(self.read(journal)) < len(wanted):
            n_steps = 7 + 5 * n_kills
            process = self.start(journal, n_steps + 3 if n_kills < 4 else 0)
            goal = len(self.read(journal)) + n_steps
            while process.poll() is None and len(self.read(journal)) < goal and n_kills < 4:
                time.sleep(0.002)
            if n_kills < 4:
                process.send_signal(signal.SIGKILL)
                n_kills += 1
            process.wait()
            self.assertIn(process.returncode, (0, -signal.SIGKILL))
        self.assertGreater(n_kills, 1)
        told = [line["digest"] for line in self.read(journal)]
        self.assertEqual(hashlib.sha256("".join(told).encode()).hexdigest(),
                         hashlib.sha256("".join(wanted).encode()).hexdigest())


if __name__ == "__main__":
    unittest.main()
