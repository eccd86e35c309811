# SPDX-License-Identifier: Apache-2.0
"""penstock.python(batched=True): functions of whole batches; outputs that share processes."""
import time
import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("NumPy is not installed") from None

import own_functions as own
import penstock
from own_case import Case, N, children, wait_for
from penstock import python

SIZE = 8  # rows of a batch; Case.loader has it


def batches_of(array, size=SIZE):
    return [array[i:i + size] for i in range(0, len(array), size)]


class BatchCase(Case):
    def of_batches(self, function, shape=(3, 4, 6), dtype="uint8", field="a", **more):
        return python(function, field, shape=shape, dtype=dtype, batched=True, **more)


class Rows(BatchCase):
    def test_a_function_gets_all_rows_and_gives_all(self):
        found = self.rows(self.of_batches(own.mirrored, processes=2))
        self.assertTrue((found == self.arrays[:, :, ::-1]).all())
        found = self.rows(self.of_batches(own.centred, dtype="float32", processes=1))
        for rows, batch in zip(batches_of(found), batches_of(self.arrays)):
            self.assertTrue((rows == own.centred(batch, None)).all())

    def test_fields_of_one_size(self):
        found = self.rows(self.of_batches(own.same, (), "float64", "s", processes=1))
        self.assertEqual(found.tolist(), [i * 0.5 for i in range(N)])
        image = penstock.image("img", [penstock.ops.RandomResizedCrop((5, 7)), penstock.ops.RandomFlip()], channels=1)
        both = {"x": self.of_batches(own.same, (5, 7, 1), field=image, processes=2), "plain": image}
        with self.loader(both, shuffle=True) as loader:
            for batch in loader:
                self.assertTrue((batch["x"] == batch["plain"]).all())

    def test_a_short_last_batch_is_given_as_it_is(self):
        for last, expected in (("short", [16, 16, 8]), ("drop", [16, 16]), ("pad", [16, 16, 16])):
            output = self.of_batches(own.sizes, (4,), "int64", processes=1)
            with self.loader(output, batch_size=16, last_batch=last) as loader:
                found = [batch["x"].copy() for batch in loader]
            self.assertEqual([len(rows) for rows in found], expected)
            for rows in found:
                self.assertEqual(rows.tolist(), [[len(rows), 3, 4, 6]] * len(rows))

    def test_ranks_without_rows_are_not_asked(self):
        found = []
        for rank in range(3):
            outputs = {"x": self.of_batches(own.sizes, (4,), "int64", processes=1), "s": "s"}
            with self.loader(outputs, batch_size=13, ranks=penstock.Ranks(rank, 3)) as loader:
                batches = [(batch["x"].tolist(), len(batch["s"])) for batch in loader]
            for sizes, n in batches:
                self.assertEqual(sizes, [[n, 3, 4, 6]] * n)
            found.append([n for _, n in batches])
        self.assertEqual(found, [[13, 1], [13, 0], [13, 0]])

    def test_draws_depend_on_the_batch_and_not_on_processes(self):
        def draws(n, **more):
            return self.rows(self.of_batches(own.batch_draws, (4,), "uint64", processes=n), **more)
        one = draws(1)
        self.assertTrue((one == draws(3)).all() and (one == draws(2, n_threads=1)).all())
        self.assertEqual(len({tuple(row) for row in one.tolist()}), N)
        self.assertFalse((one == draws(1, order=penstock.Order(epoch=1))).any() or (one == draws(1, seed=1)).any())
        self.assertFalse((one[:16] == draws(1, ranks=penstock.Ranks(1, 2))[:16]).any())
        with self.loader(self.of_batches(own.batch_draws, (4,), "uint64", processes=1),
                         order=penstock.Order(position=24)) as loader:
            self.assertTrue((next(iter(loader))["x"] == one[24:32]).all())

    def test_outputs_of_one_group_draw_alike(self):
        image = penstock.image("img", [penstock.ops.Resize((2, 2))])
        other = penstock.image("img", [penstock.ops.Resize((2, 2))], random_group=1)
        outputs = {name: self.of_batches(own.batch_draws, (4,), "uint64", field=field, processes=1)
                   for name, field in (("x", image), ("same", "a"), ("other", other))}
        with self.loader(outputs) as loader:
            for batch in loader:
                self.assertTrue((batch["x"] == batch["same"]).all())
                self.assertFalse((batch["x"] == batch["other"]).any())

    def test_bytes_are_the_same_for_threads_processes_and_slots(self):
        image = penstock.image("img", [penstock.ops.RandomResizedCrop((9, 9))])
        expected = None
        for threads, processes, slots in ((1, 1, 2), (1, 3, 5), (4, 1, 2), (3, 2, 4), (5, 5, 3)):
            outputs = {"x": self.of_batches(own.shuffled, (9, 9, 3), field=image, processes=processes),
                       "y": python(own.noisy, image, shape=(9, 9, 3), dtype="uint8", processes=processes)}
            with self.loader(outputs, shuffle=True, n_threads=threads, memory=penstock.Memory(n_slots=slots)) as loader:
                found = [(batch["x"].tobytes(), batch["y"].tobytes()) for batch in loader]
            expected = expected or found
            self.assertEqual(found, expected)


class Failures(BatchCase):
    def message(self, output, **more):
        with self.assertRaises(penstock.FunctionError) as caught:
            self.rows(output, **more)
        self.assertEqual(children(), [])
        return caught.exception

    def test_a_failure_names_the_batch(self):
        for policy in ("error", "replace"):
            error = self.message(self.of_batches(own.batch_raises, processes=2), bad_sample=policy,
                                 order=penstock.Order(epoch=3))
            self.assertIn("the function of output 'x' failed for the batch at epoch 3, position 0, of 8 samples (first "
                          "0, last 7): KeyError: 'a batch with number five' (own_functions.py, line ", str(error))
            self.assertTrue(str(error).endswith("(a whole batch is not replaced; seek to position 8 to go past it)"), error)
            self.assertEqual((error.sample_id, error.epoch, error.position), (None, 3, 0))

    def test_wrong_results(self):
        for function, words in ((own.batch_of_other_shape, "of shape (7, 3, 4, 6) and dtype uint8; must be of shape "
                                                           "(8, 3, 4, 6)"),
                                (own.batch_of_other_dtype, "and dtype int32; must be of shape (8, 3, 4, 6)")):
            self.assertIn(words, str(self.message(self.of_batches(function, processes=1))))

    def test_processes_that_die_or_take_too_long(self):
        self.assertIn("was killed by signal 11 (SIGSEGV) while it made the rows",
                      str(self.message(self.of_batches(own.batch_dies, processes=1))))
        self.assertIn("longer than the timeout of 0.5 s",
                      str(self.message(self.of_batches(own.batch_hangs, processes=1, timeout=0.5))))

    def test_a_loop_goes_on_past_a_batch_that_failed(self):
        with self.loader(self.of_batches(own.batch_dies, processes=1)) as loader:
            for _ in range(2):
                with self.assertRaisesRegex(penstock.FunctionError, f"seek to position {SIZE} to"):
                    next(iter(loader))
            loader.seek(0, SIZE)
            self.assertEqual([len(batch["x"]) for batch in loader], [SIZE] * (N // SIZE - 1))

    def test_closing_does_not_wait_for_a_function(self):
        loader = self.loader(self.of_batches(own.always_hangs, processes=2))
        wait_for(lambda: len(children()) == 2)
        begin = time.monotonic()
        loader.close()
        self.assertLess(time.monotonic() - begin, 5)

    def test_a_bad_sample_is_replaced_before_its_batch_is_made(self):
        outputs = {"x": self.of_batches(own.same, processes=1),
                   "y": python(own.raises, "a", shape=(3, 4, 6), dtype="uint8", processes=1)}
        for names in (("x", "y"), ("y", "x")):
            with self.loader({name: outputs[name] for name in names}, bad_sample="replace") as loader:
                for batch in loader:
                    self.assertTrue((batch["x"] == batch["y"]).all())

    def test_fields_without_one_size_are_refused(self):
        cases = ((("t", (1,)), "kind utf8"), (("v", (1,)), "variable shape"), (("img", (1,)), "must fix the size"),
                 ((penstock.image("img", [penstock.ops.RandomFlip()]), (1,)), "must fix the size"))
        for (field, shape), words in cases:
            with self.assertRaisesRegex(penstock.SettingsError, words):
                self.rows(self.of_batches(own.same, shape, field=field))
        with self.assertRaisesRegex(TypeError, "python.batched"):
            python(own.same, "a", shape=(1,), dtype="uint8", batched="yes")


class Sharing(BatchCase):
    def outputs(self, **more):
        return {"own": self.of_batches(own.batch_pid, (), "int64", **more),
                "each": python(own.pid, "s", shape=(), dtype="int64", **more),
                "same": self.of_arrays(own.same, **more)}

    def test_outputs_share_processes(self):
        with self.loader(self.outputs(processes=2)) as loader:
            found = [{name: batch[name].copy() for name in batch.keys()} for batch in loader]
            wait_for(lambda: len(children()) == 2)
        pids = {int(pid) for batch in found for name in ("own", "each") for pid in batch[name]}
        self.assertLessEqual(len(pids), 2)
        self.assertTrue((numpy.concatenate([batch["same"] for batch in found]) == self.arrays).all())

    def test_outputs_with_another_number_have_their_own(self):
        outputs = {**self.outputs(processes=2), "three": self.of_arrays(own.same, processes=3)}
        with self.loader(outputs) as loader:
            next(iter(loader))
            wait_for(lambda: len(children()) == 5)

    def test_each_has_its_timeout(self):
        outputs = {"slow": self.of_batches(own.batch_hangs, processes=1, timeout=0.6),
                   "fast": self.of_arrays(own.same, processes=1, timeout=500)}
        with self.loader(outputs) as loader, self.assertRaisesRegex(penstock.FunctionError, "timeout of 0.6 s"):
            next(iter(loader))

    def test_an_import_error_names_all_outputs_that_share_the_processes(self):
        outputs = {"good": self.of_arrays(own.same, processes=1), "bad": self.of_arrays(own.FailsInChild(), processes=1)}
        with self.loader(outputs) as loader, \
                self.assertRaisesRegex(penstock.FunctionError, "outputs 'good', 'bad': .* of output 'bad': ValueError"):
            next(iter(loader))


if __name__ == "__main__":
    unittest.main()
