# SPDX-License-Identifier: Apache-2.0
"""penstock.GlobalBatch: the batches of all processes together, for any number of processes."""
import unittest

import sets
import penstock


UNEVEN = penstock.GlobalBatch(96, uneven=True)


def loader(rank=0, world=1, batch_size=penstock.GlobalBatch(96), **keywords):
    return penstock.Loader(sets.scalars(), batch_size=batch_size, ranks=penstock.Ranks(rank, world), framework="dlpack",
                           n_threads=1, **keywords)


def epoch_of(world, state=None, n_batches=None, **keywords):
    """Return the ids of each global batch of an epoch, sorted, from all ranks; and the state after the last."""
    found, after = [], None
    for rank in range(world):
        with loader(rank, world, **keywords) as data:
            if state is not None:
                data.load_state_dict(state)
            for i, batch in enumerate(data):
                if i == n_batches:
                    break
                if rank == 0:
                    found.append([])
                found[i] += batch.sample_ids
                after = data.state_dict(batch)
    return [sorted(ids) for ids in found], after


class Sets(unittest.TestCase):
    def test_global_batches_are_the_same_sets_for_any_number_of_processes(self):
        for last_batch in ("drop", "short"):
            wanted, _ = epoch_of(1, last_batch=last_batch)
            self.assertEqual(len(wanted), 20 if last_batch == "drop" else 21)  # the data set has 2000 samples
            for world in (2, 6, 32):
                self.assertEqual(epoch_of(world, last_batch=last_batch)[0], wanted)
            for world in (5, 7, 36):
                self.assertEqual(epoch_of(world, last_batch=last_batch, batch_size=UNEVEN)[0], wanted)

    def test_a_run_goes_on_with_another_number_of_processes(self):
        wanted, _ = epoch_of(1, last_batch="short")
        first, state = epoch_of(8, n_batches=7, last_batch="short")
        second, state = epoch_of(5, state, 3, last_batch="short", batch_size=UNEVEN)
        rest, _ = epoch_of(6, state, last_batch="short")
        self.assertEqual(first + second + rest, wanted)

    def test_uneven_rows(self):
        with loader(0, 7, UNEVEN) as data:
            self.assertEqual((data.batch_size, data.global_batch_size, len(data)), (14, 96, 20))
            rows = [batch.n_valid for batch in data]
            self.assertEqual(set(rows), {13, 14})
        counts = []
        for rank in range(7):
            with loader(rank, 7, UNEVEN) as data:
                counts.append([(batch.index, batch.n_valid, batch["i"].shape[0]) for batch in data])
        for i, batches in enumerate(zip(*counts)):
            self.assertEqual({index for index, *_ in batches}, {i})
            self.assertEqual(sum(n for _, n, _ in batches), 96)
            self.assertTrue(all(n == length for _, n, length in batches))
        ends = [sum(n for _, n, _ in batches) for batches in counts]
        self.assertLessEqual(max(ends) - min(ends), 1)  # the process that has one more is not always the same

    def test_the_last_batch_padded(self):
        found, _ = epoch_of(7, last_batch="pad", batch_size=UNEVEN)
        wanted, _ = epoch_of(1, last_batch="pad")
        self.assertEqual(found, wanted)
        self.assertEqual([len(ids) for ids in found], 21 * [96])

    def test_state_and_text(self):
        with loader(1, 4) as data:
            self.assertEqual((data.batch_size, data.global_batch_size), (24, 96))
            state = data.state_dict()
            self.assertEqual([state[name] for name in ("batch_size", "global_batch_size", "world")], [24, 96, 4])
        with penstock.Loader(sets.scalars(), batch_size=10, ranks=penstock.Ranks(0, 3), framework="dlpack") as data:
            self.assertEqual(data.global_batch_size, 30)


class Refused(unittest.TestCase):
    def test_wrong_arguments(self):
        for world, rows, says in (
                (5, penstock.GlobalBatch(96),
                 "value is 96, and world is 5; must be a multiple of it, as 95 and 100 are .or give uneven"),
                (97, UNEVEN, "value is 96, and world is 97; must be at least world"),
                (1, penstock.GlobalBatch(0), "global_batch_size: value is 0; must be from 1"),
                (1, penstock.GlobalBatch(4096), "global_batch_size: 4096 rows are more than the 2000 samples"),
                (1, penstock.GlobalBatch(None), "GlobalBatch.rows: value is None; must be a number of rows")):
            with self.subTest(world=world, rows=rows), self.assertRaisesRegex(penstock.SettingsError, says):
                loader(0, world, rows).close()
        for rows, says in ((None, "batch_size: must be given, .* or penstock.GlobalBatch"),
                           (penstock.GlobalBatch(96, uneven=2), "uneven: value is 2; must be True or False"),
                           (penstock.GlobalBatch(9.5), "global_batch_size: value is 9.5; must be a whole")):
            with self.subTest(rows=rows), self.assertRaisesRegex(TypeError, says):
                loader(batch_size=rows).close()

    def test_the_memory_limit_names_the_setting_that_was_given(self):
        with self.assertRaisesRegex(penstock.OutOfMemoryError, "lower .*global_batch_size"):
            loader(memory=penstock.Memory(max_memory=64 << 20, n_slots=4000), batch_size=penstock.GlobalBatch(2000)).close()


if __name__ == "__main__":
    unittest.main()
