# SPDX-License-Identifier: Apache-2.0
"""order="windowed": its arguments, its samples, its state."""
import json
import unittest

import sets
import penstock

N = 2000  # samples of sets.scalars()


def loader(rank=0, world=1, **keywords):
    keywords.setdefault("order", "windowed")
    keywords.setdefault("batch_size", penstock.GlobalBatch(40))
    return penstock.Loader(sets.scalars(), ranks=penstock.Ranks(rank, world), framework="dlpack", n_threads=1, **keywords)


def ids(**keywords):
    with loader(**keywords) as data:
        return [i for batch in data for i in batch.sample_ids]


class Samples(unittest.TestCase):
    def test_an_epoch_has_every_sample_once_and_another_order_than_the_last(self):
        with loader(order=penstock.Order("windowed", ways=3, block=7, window=2), last_batch="short") as data:
            epochs = [[i for batch in data.epoch(e) for i in batch.sample_ids] for e in range(2)]
        for epoch in epochs:
            self.assertEqual(sorted(epoch), list(range(N)))
        self.assertNotEqual(*epochs)
        self.assertNotEqual(epochs[0], ids(order="full", last_batch="short"))
        self.assertNotEqual(epochs[0], ids(order=penstock.Order("windowed", ways=3, block=7, window=2), last_batch="short", seed=1))

    def test_a_block_is_needed_during_two_windows_at_most(self):
        """So a reader that keeps a way's blocks for two windows reads each of them once."""
        for ways, block, window in ((1, 64, 4), (4, 10, 3), (6, 16, 1), (48, 5, 2)):
            found = ids(order=penstock.Order("windowed", ways=ways, block=block, window=window), last_batch="short")
            for way in range(ways):
                own = found[way::ways]
                places = {}
                for at, i in enumerate(own):
                    places.setdefault(i // block, []).append(at)
                self.assertLess(max(max(at) - min(at) for at in places.values()), 2 * window * block)
                self.assertGreater(len(places), 1)

    def test_global_batches_are_the_same_sets_for_any_number_of_processes(self):
        def batches(world):
            found = []
            for rank in range(world):
                with loader(rank, world, order=penstock.Order("windowed", ways=4, block=10)) as data:
                    for i, batch in enumerate(data):
                        found += [[]] if rank == 0 else []
                        found[i] += batch.sample_ids
            return [sorted(batch) for batch in found]

        wanted = batches(1)
        self.assertEqual(len(wanted), 50)
        for world in (2, 4, 5, 8):
            self.assertEqual(batches(world), wanted)

    def test_ranks_that_divide_the_ways_share_no_block(self):
        for world in (2, 4):  # 500 samples of a way are 50 whole blocks
            blocks = [{i // 10 for i in ids(rank=rank, world=world,
                                            order=penstock.Order("windowed", ways=4, block=10))} for rank in range(world)]
            self.assertEqual(sum(map(len, blocks)), N // 10)
            self.assertEqual(set.union(*blocks), set(range(N // 10)))
        blocks = [{i // 10 for i in ids(rank=rank, world=5, order=penstock.Order("windowed", ways=4, block=10))} for rank in range(5)]
        self.assertGreater(sum(map(len, blocks)), 3 * N // 10)  # 5 does not divide 4


class Arguments(unittest.TestCase):
    def test_values_that_the_library_chose_can_be_read(self):
        with loader() as data:
            self.assertEqual((data.ways, data.block, data.window), (1, 64, 4))
            self.assertIn("windowed order (1 way, blocks of 64, windows of 4), seed 0", repr(data))
        with loader(order=penstock.Order("windowed", ways=8, block=16)) as data:
            self.assertEqual((data.ways, data.block, data.window), (8, 16, 4))
            self.assertIn("windowed order (8 ways, blocks of 16, windows of 4)", repr(data))
        with loader(order="full") as data:
            self.assertEqual((data.ways, data.block, data.window), (None, None, None))
            self.assertIn("full order, seed 0", repr(data))

    def test_shuffle(self):
        self.assertEqual(ids(shuffle=True), ids())
        with self.assertRaisesRegex(penstock.SettingsError, "shuffle: value is False, and order is 'windowed'; must agree"):
            loader(shuffle=False)
        with self.assertRaisesRegex(penstock.SettingsError, "shuffle: value is True, and order is 'sequential'"):
            loader(shuffle=True, order="sequential")

    def test_invalid_window_settings_are_refused(self):
        for order in ("full", "sequential", None):
            for name in ("ways", "block", "window"):
                said = f"^{name}: value is 8, and order is '{order or 'full'}'; must be left out unless order is 'windowed'"
                with self.assertRaisesRegex(penstock.SettingsError, said):
                    loader(order=penstock.Order(order, **{name: 8}))
        for name, most in (("ways", 65536), ("block", 1048576), ("window", 4096)):
            with self.assertRaisesRegex(penstock.SettingsError,
                                        f"^{name}: value is {most + 1}; must be from 0 to {most}$"):
                loader(order=penstock.Order("windowed", **{name: most + 1}))
            with self.assertRaisesRegex(penstock.SettingsError, f"^{name}: value is -1; must be from 0"):
                loader(order=penstock.Order("windowed", **{name: -1}))
            with self.assertRaisesRegex(TypeError, f"^{name}: value is '4'; must be a whole number"):
                loader(order=penstock.Order("windowed", **{name: "4"}))

    def test_keywords_of_other_loaders(self):
        for name in ("shuffle_buffer_size", "buffer_size", "shuffle_block_size", "initial_fill"):
            with self.assertRaisesRegex(TypeError, "order='windowed' mixes inside windows of blocks"):
                loader(**{name: 1000})

    def test_more_ways_and_larger_blocks_than_samples(self):
        for keywords in ({"order": penstock.Order("windowed", ways=N + 1)}, {"order": penstock.Order("windowed", block=N + 1)},
                         {"order": penstock.Order("windowed", block=1048576, window=4096)}, {"order": penstock.Order("windowed", ways=65536)}):
            with self.subTest(keywords):
                self.assertEqual(sorted(ids(last_batch="short", **keywords)), list(range(N)))


class State(unittest.TestCase):
    def test_it_resumes_on_other_numbers_of_processes(self):
        keywords = {"order": penstock.Order("windowed", ways=4, block=10, window=2, epoch=3), "last_batch": "short"}
        wanted = ids(**keywords)
        for world in (2, 3):
            found, state = [], None
            for rank in range(world):
                with loader(rank, world, batch_size=20 // world, **keywords) as data:
                    batches = iter(data)
                    for _ in range(11):
                        found += next(batches).sample_ids
                    state = json.loads(json.dumps(data.state_dict()))
            with loader(order=penstock.Order("windowed", ways=4, block=10, window=2), last_batch="short") as data:
                data.load_state_dict(state)
                rest = [i for batch in data for i in batch.sample_ids]
            self.assertEqual(sorted(found + rest), list(range(N)))
            self.assertEqual(rest, wanted[len(found):])

    def test_only_a_windowed_state_has_the_window_settings(self):
        common = {"version": 1, "epoch": 0, "position": 0, "seed": 0}
        rest = {"n_samples": N, "batch_size": 40, "global_batch_size": 40, "world": 1}
        with loader(order=penstock.Order("windowed", ways=8)) as data:
            state = data.state_dict()
            identity = state["data_set"]
            self.assertEqual(state, {**common, "order": "windowed", "order_version": 1, "ways": 8, "block": 64,
                                     "window": 4, "data_set": identity, **rest})
        with loader(order="full") as data:  # byte for byte as before there were windows
            self.assertEqual(json.dumps(data.state_dict()), json.dumps({
                **common, "order": "full", "order_version": 1, "data_set": identity, **rest}))

    def test_its_largest_is_below_512_bytes(self):
        largest = {"epoch": 2**64 - 1, "position": 2**62, "seed": 2**64 - 1, "ways": 65536, "block": 1048576,
                   "window": 4096, "n_samples": 2**62, "batch_size": 2**32 - 1, "global_batch_size": 2**62,
                   "world": 2**32 - 1, "order_version": 2**32 - 1}
        with loader() as data:
            state = data.state_dict()
        self.assertLessEqual(set(largest), set(state))
        self.assertLess(len(json.dumps({**state, **largest})), 512)

    def test_other_numbers_are_refused(self):
        with loader(order=penstock.Order("windowed", ways=8, block=16, window=2)) as data:
            state = data.state_dict()
            for name, value in (("ways", 12), ("block", 32), ("window", 4)):
                wrong = dict(state, **{name: value})
                give = ", ".join(f"{key}={wrong[key]}" for key in ("ways", "block", "window"))
                with self.assertRaisesRegex(penstock.SettingsError,
                                            f"^state: {name} is {value}, but this loader's is {state[name]} "
                                            f"\\(open the loader with order=penstock.Order\\('windowed', {give}\\)\\)$"):
                    data.load_state_dict(wrong)
                del wrong[name]
                with self.assertRaisesRegex(penstock.SettingsError, f"^state: value has no '{name}'"):
                    data.load_state_dict(wrong)
            with self.assertRaisesRegex(penstock.SettingsError, "order_version is 2, but this loader's is 1"):
                data.load_state_dict(dict(state, order_version=2))
            self.assertEqual(data.cursor, (0, 0))
        with loader() as data:  # this loader chose 1, 64 and 4 by itself
            with self.assertRaisesRegex(penstock.SettingsError, "ways is 8, but this loader's is 1 \\(open the loader "
                                        "with order=penstock.Order\\('windowed', ways=8, block=16, window=2\\)\\)$"):
                data.load_state_dict(state)
        with loader(order="full") as data:
            with self.assertRaisesRegex(penstock.SettingsError, "order is 'windowed', but this loader's is 'full'"):
                data.load_state_dict(dict(state, order_version=2))
            full = data.state_dict()
        with loader() as data:
            with self.assertRaisesRegex(penstock.SettingsError, "order is 'full', but this loader's is 'windowed'"):
                data.load_state_dict(full)


if __name__ == "__main__":
    unittest.main()
