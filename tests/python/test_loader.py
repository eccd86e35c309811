# SPDX-License-Identifier: Apache-2.0
"""penstock.Loader: what it takes, the order of what it gives, and how it ends."""
import collections.abc
import dataclasses
import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import sets
import slow
import penstock

sets.need_numpy()
import numpy as np  # noqa: E402


def loader(**keywords):
    keywords.setdefault("batch_size", 10)
    keywords.setdefault("framework", "numpy")
    return penstock.Loader(sets.scalars(), **keywords)


def ids(batches):
    return [i for batch in batches for i in batch.sample_ids]


class Epochs(unittest.TestCase):
    def test_each_epoch_is_a_permutation_of_its_own(self):
        with loader() as data:
            self.assertEqual(len(data), 200)
            epochs = [ids(data) for _ in range(3)]
        self.assertEqual([sorted(e) for e in epochs], [list(range(2000))] * 3)
        self.assertEqual(len({tuple(e) for e in epochs}), 3)

    def test_an_epoch_asked_for_is_the_same_each_time(self):
        with loader() as data:
            later = [ids(data.epoch(e)) for e in (4, 2, 4)]
            self.assertEqual(later[0], later[2])
            self.assertNotEqual(later[0], later[1])
        with loader(order=penstock.Order(epoch=4)) as data:
            self.assertEqual(ids(data), later[0])

    def test_shuffle_false_is_sequential(self):
        for keywords in ({"shuffle": False}, {"order": "sequential"},
                         {"shuffle": False, "order": "sequential"}):
            with loader(**keywords) as data:
                self.assertEqual(ids(data), list(range(2000)))
        with loader(shuffle=True) as one, loader(order="full") as other:
            self.assertEqual(ids(one), ids(other))

    def test_a_pass_that_was_left_early_is_followed_by_the_next_epoch(self):
        with loader() as data:
            for k, _ in enumerate(data):
                if k == 7:
                    break
            self.assertEqual({batch.epoch for batch in data}, {1})
            next(iter(data))
            self.assertEqual(data.current_epoch, 2)
            self.assertEqual({batch.epoch for batch in data}, {3})
            self.assertEqual(len(ids(data)), 2000)

    def test_leaving_at_the_very_end_skips_nothing(self):
        with loader() as data:
            for k, _ in enumerate(data):
                if k == 199:
                    break
            self.assertEqual(next(iter(data)).epoch, 1)

    def test_an_iterator_that_has_not_begun_takes_no_epoch(self):
        with loader() as data:
            iter(data)
            iter(data)
            self.assertEqual(next(iter(data)).epoch, 0)

    def test_a_loader_is_an_iterable_and_no_iterator(self):
        with loader() as data:  # frameworks would call next() of an iterator, and begin no epoch
            self.assertIsInstance(data, collections.abc.Iterable)
            self.assertNotIsInstance(data, collections.abc.Iterator)
            self.assertFalse(hasattr(data, "__next__"))
            self.assertIsInstance(iter(data), collections.abc.Iterator)
            with self.assertRaisesRegex(TypeError, "'Loader' object is not an iterator"):
                next(data)
            with self.assertRaisesRegex(AttributeError, "no attribute .next.: `.*`, or ") as caught:
                data.next()
            self.assertEqual(eval(str(caught.exception).split("`")[1], {"loader": data}).epoch, 0)

    def test_set_epoch_and_seek(self):
        with loader() as data:
            data.set_epoch(5)
            self.assertEqual({batch.epoch for batch in data}, {5})
            self.assertEqual({batch.epoch for batch in data}, {6})
            whole = ids(data.epoch(7))
            data.seek(7, 500)
            self.assertEqual(ids(data), whole[500:])

    def test_a_pass_knows_how_many_batches_it_has(self):
        with loader(last_batch="short", batch_size=30) as data:
            self.assertEqual((len(data), len(iter(data))), (67, 67))
            data.seek(0, 600)
            left = iter(data)
            self.assertEqual(len(left), 47)
            self.assertEqual(sum(1 for _ in left), 47)
        self.assertEqual(list(left), [])

    def test_an_older_pass_says_that_it_is_over(self):
        with loader() as data:
            older = iter(data)
            next(older)
            next(iter(data))
            self.assertRaisesRegex(penstock.PenstockError, "this pass is over", next, older)
            newer = iter(data)
            next(newer)
            data.seek(0)
            self.assertRaisesRegex(penstock.PenstockError, "this pass is over", next, newer)

    def test_a_place_that_is_none_changes_nothing(self):
        with loader() as data:
            batches = iter(data)
            next(batches)
            self.assertRaises(penstock.PenstockError, data.seek, 0, 2001)
            self.assertEqual(data.cursor, (0, 10))
            self.assertEqual(next(batches).position, 10)

    def test_rows_that_fill_up_the_last_batch_are_counted(self):
        for last, rows in (("pad", [8, 8, 8]), ("short", [8, 8, 4]), ("drop", [8, 8])):
            with penstock.Loader(sets.scalars(20), batch_size=8, last_batch=last, framework="dlpack") as data:
                self.assertEqual([batch.n_valid for batch in data], rows)

    def test_ranks_share_every_epoch(self):
        parts = []
        for rank in range(3):
            with loader(ranks=penstock.Ranks(rank, 3), last_batch="short", batch_size=7) as data:
                parts.append(ids(data))
                self.assertEqual(len(data), 96)
        self.assertEqual(sorted(sum(parts, [])), list(range(2000)))

    def test_results_do_not_depend_on_threads_and_slots(self):
        digests = set()
        outputs = {"p": sets.images("float32", "nchw"), "i": "i", "t": "text"}
        for keywords in ({}, {"n_threads": 1, "memory": penstock.Memory(n_slots=2)},
                         {"n_threads": 5, "memory": penstock.Memory(n_slots=9), "reading": penstock.Reading(reader="threads")}):
            with penstock.Loader(sets.small(), batch_size=8, framework="numpy", seed=3, last_batch="short",
                                 outputs=outputs, **keywords) as data:
                digests.add(sets.digest(data))
        self.assertEqual(len(digests), 1)


@dataclasses.dataclass
class Pair:
    i: np.ndarray
    half: np.ndarray


@dataclasses.dataclass
class Further:
    i: object
    half: object
    more: object


@dataclasses.dataclass(frozen=True)
class FrozenPair:
    i: np.ndarray
    half: np.ndarray
    info: object = None


class Forms(unittest.TestCase):
    def first(self, **keywords):
        with loader(shuffle=False, **keywords) as data:
            return next(iter(data))

    def test_a_batch_is_a_dict(self):
        batch = self.first()
        self.assertEqual(list(batch.keys()), ["i", "half"])
        self.assertIsInstance(batch, dict)
        self.assertEqual(batch["half"][3], 1.5)
        self.assertEqual((batch.epoch, batch.position, batch.next_position, batch.index, batch.n_valid),
                         (0, 0, 10, 0, 10))
        self.assertEqual((batch.sample_ids, batch.replacements), (list(range(10)), {}))
        batch.record_stream(None)
        self.assertIn("i: int64 [10]", repr(batch))

    def test_a_batch_is_a_tuple(self):
        batch = self.first(form="tuple")
        i, half = batch
        self.assertEqual((i[3], half[3], batch.sample_ids[3], batch.epoch), (3, 1.5, 3, 0))
        self.assertIsInstance(batch, tuple)
        self.assertIn("int64 [10]", repr(batch))

    def test_a_batch_is_a_dataclass(self):
        batch = self.first(form="dataclass")
        self.assertEqual((batch.i[3], batch.half[3], batch.sample_ids[3], batch.n_valid), (3, 1.5, 3, 10))
        self.assertEqual([field.name for field in dataclasses.fields(batch)], ["i", "half"])
        for form in (Pair, FrozenPair):
            batch = self.first(form=form)
            self.assertIsInstance(batch, form)
            self.assertEqual((batch.i[3], batch.info.sample_ids[3]), (3, 3))

    def test_forms_that_cannot_be_are_refused(self):
        for form, part in (("list", "must be 'dict'"), (3, "must be 'dict'"), (dict, "must be 'dict'")):
            with self.assertRaisesRegex(penstock.SettingsError, part):
                self.first(form=form)
        with self.assertRaisesRegex(penstock.SettingsError, "Pair has no field for other"):
            self.first(form=Pair, outputs={"i": "i", "half": "half", "other": "half"})
        with self.assertRaisesRegex(penstock.SettingsError, "Further needs more, and no output has that name"):
            self.first(form=Further)
        if sys.version_info >= (3, 10):
            slots = dataclasses.make_dataclass("Slots", ["i", "half"], slots=True)
            with self.assertRaisesRegex(penstock.SettingsError, "add the field `info"):
                self.first(form=slots)
            slots = dataclasses.make_dataclass("Slots", ["i", "half", "info"], slots=True)
            self.assertEqual(self.first(form=slots).info.index, 0)
        for name in ("a-b", "epoch", "class"):
            with self.assertRaisesRegex(penstock.SettingsError, "cannot be an attribute"):
                self.first(form="dataclass", outputs={name: "i"})

    def test_a_batch_made_from_another_has_only_the_tensors(self):
        batch = self.first()
        other = type(batch)({name: value + 1 for name, value in batch.items()})
        self.assertEqual(other["i"][0], 1)
        with self.assertRaisesRegex(AttributeError, "as they come from a loader"):
            other.sample_ids
        self.assertFalse(hasattr(other, "epoch"))
        self.assertEqual(len(type(self.first(form="tuple"))([1, 2])), 2)
        self.assertIn("penstock.Batch", repr(other))

    def test_batches_can_be_pickled(self):
        first_of = {"dict": lambda batch: batch["i"], "tuple": lambda batch: batch[0]}
        for form in ("dict", "tuple", "dataclass", Pair):
            batch = self.first(form=form)
            again = pickle.loads(pickle.dumps(batch))
            told, was = (again.info, batch.info) if form is Pair else (again, batch)
            self.assertEqual((told.sample_ids, told.epoch), (was.sample_ids, 0))
            self.assertEqual(first_of.get(form, lambda batch: batch.i)(again).tolist(), list(range(10)))

    def test_crops_tell_where_rows_were_cut(self):
        crop = penstock.image("image", [penstock.ops.CenterCrop((10, 12))])
        outputs = {"a": crop, "b": sets.images(), "i": "i"}
        with penstock.Loader(sets.small(), batch_size=8, framework="numpy", observe=penstock.Observe(report_crops=True),
                             outputs=outputs) as data:
            batch = next(iter(data))
        self.assertEqual({name: len(crops) for name, crops in batch.crops.items()}, {"a": 8, "b": 8})
        for i, crop in zip(batch.sample_ids, batch.crops["a"]):
            height = 24 + i % 3
            self.assertEqual(crop[2:], (10, 12, height, 30, False, False))
            self.assertAlmostEqual(crop.top, (height - 10) / 2, delta=0.5)


class Outputs(unittest.TestCase):
    def open(self, outputs, **keywords):
        with penstock.Loader(sets.small(), batch_size=4, framework="numpy", outputs=outputs, shuffle=False,
                             **keywords) as data:
            return next(iter(data))

    def test_without_outputs_every_field_comes_by_its_kind(self):
        with loader(shuffle=False) as data:
            self.assertEqual(data.outputs, {"i": penstock.scalar("i"), "half": penstock.scalar("half")})
        with self.assertRaisesRegex(penstock.SettingsError, "'image', an image field.*RandomResizedCrop"):
            self.open(None)
        with self.assertRaisesRegex(penstock.SettingsError, "'image', an image field"):
            self.open(["image"])

    def test_ways_to_name_outputs(self):
        for outputs in (["i", "x"], {"i": "i", "x": penstock.tensor("x")},
                        [penstock.scalar("i"), penstock.tensor("x")]):
            batch = self.open(outputs)
            self.assertEqual((list(batch.keys()), batch["x"].shape), (["i", "x"], (4, 3)))
        self.assertEqual(list(self.open("i").keys()), ["i"])
        self.assertEqual(list(self.open(penstock.scalar("i")).keys()), ["i"])

    def test_dtypes_of_any_library(self):
        for dtype in ("float64", "f64", "double", np.float64, np.dtype("f8"), "torch.float64"):
            self.assertEqual(self.open({"x": penstock.tensor("x", dtype)})["x"].dtype, np.float64)
        try:
            import torch
        except ImportError:
            return
        self.assertEqual(penstock.scalar("i", torch.bfloat16), penstock.scalar("i", "bfloat16"))

    def test_a_field_that_is_not_there_lists_those_that_are(self):
        for outputs in ({"a": penstock.scalar("nope")}, ["nope"]):
            with self.assertRaisesRegex(penstock.SettingsError, "value is 'nope'; must be a field of the data set: image, text, i, x"):
                self.open(outputs)

    def test_wrong_outputs_are_refused_in_words(self):
        crop = penstock.ops.CenterCrop(8)
        for outputs, error, part in (
                ({}, penstock.SettingsError, "must have at least 1"),
                ({"a": 3}, TypeError, "must be an output"),
                ({3: "i"}, penstock.SettingsError, "name is 3; must be text"),
                (["i", "i"], penstock.SettingsError, "must have a name for each"),
                ({"a": penstock.scalar("x")}, penstock.SettingsError, "must be penstock.tensor"),
                ({"a": penstock.scalar("i", "float16")}, penstock.SettingsError, "choose one that holds them all"),
                ({"a": penstock.image("i", [crop])}, penstock.SettingsError, "must be penstock.scalar"),
                ({"a": penstock.image("image", [])}, penstock.SettingsError, "size"),
                ({"a": penstock.image("image", [crop], dtype="int32")}, penstock.SettingsError,
                 "for an image")):
            with self.subTest(outputs=outputs), self.assertRaisesRegex(error, part):
                self.open(outputs)
        self.assertRaisesRegex(penstock.SettingsError, "one of uint8", penstock.scalar, "i", "flota32")
        self.assertRaisesRegex(penstock.SettingsError, "channels_last", penstock.image, "i", [crop],
                               layout="x")
        self.assertRaisesRegex(TypeError, "must be an operation", penstock.image, "image", ["crop"])
        self.assertRaisesRegex(TypeError, "name of a field", penstock.scalar, 3)

    def test_ops_take_what_torchvision_takes(self):
        self.assertEqual(penstock.ops.RandomResizedCrop(224), penstock.ops.RandomResizedCrop((224, 224)))
        self.assertEqual(penstock.ops.RandomResizedCrop(224).scale, (0.08, 1.0))
        self.assertEqual(penstock.ops.RandomResizedCrop(8, ratio=[1, 2]).ratio, (1.0, 2.0))
        self.assertEqual(penstock.ops.CenterCrop([8]), penstock.ops.CenterCrop(8))
        self.assertNotEqual(penstock.ops.Resize(8), penstock.ops.Resize((8, 8)))
        self.assertEqual(penstock.ops.Resize([8]), penstock.ops.Resize(8))
        self.assertIs(penstock.ops.RandomHorizontalFlip, penstock.ops.RandomFlip)
        self.assertEqual(penstock.ops.RandomFlip(), penstock.ops.RandomFlip(p=0.5))
        for wrong in (lambda: penstock.ops.CenterCrop("8"), lambda: penstock.ops.CenterCrop(8.5),
                      lambda: penstock.ops.RandomResizedCrop(8, scale=3), lambda: penstock.ops.Normalize("abc")):
            self.assertRaises(TypeError, wrong)
        for wrong in (lambda: penstock.ops.CenterCrop(0), lambda: penstock.ops.CenterCrop((1, 2, 3)),
                      lambda: penstock.ops.RandomFlip(1.5), lambda: penstock.ops.Normalize([0, 0]),
                      lambda: penstock.ops.Normalize(std=[0, 1, 1]), lambda: penstock.ops.RandomFlip(float("nan"))):
            self.assertRaises(ValueError, wrong)

    def test_resize_sizes(self):
        ops = [penstock.ops.Resize(12), penstock.ops.CenterCrop((10, 14))]
        shorter = self.open({"a": penstock.image("image", ops)})
        self.assertEqual(shorter["a"].shape, (4, 10, 14, 3))
        exact = self.open({"a": penstock.image("image", [penstock.ops.Resize((5, 6)), penstock.ops.RandomFlip(1)])})
        self.assertEqual(exact["a"].shape, (4, 5, 6, 3))
        whitened = self.open({"a": penstock.image("image", [penstock.ops.Resize((5, 6)), penstock.ops.Normalize(
            (0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255))], dtype="float32")})
        self.assertTrue(np.allclose(whitened["a"][3], 3))


class Waiting(unittest.TestCase):
    def setUp(self):
        self.held = slow.held()
        self.data = loader(outputs={"a": self.held, "i": "i"}, shuffle=False, memory=penstock.Memory(n_slots=2))
        self.addCleanup(self.data.close)
        self.addCleanup(self.held.let.set)

        self.waits = threading.Event()  # set once the library waits for a batch
        wait_long = penstock.handle.Handle._wait_long

        def waits_long(handle, stream):
            self.waits.set()
            return wait_long(handle, stream)

        patch = mock.patch.object(penstock.handle.Handle, "_wait_long", waits_long)
        patch.start()
        self.addCleanup(patch.stop)

    def later(self, function):
        """Call it in another thread as soon as this one waits for a batch."""
        def call():
            self.waits.wait(slow.GIVE_UP)
            time.sleep(0.02)
            function()

        self.waits.clear()
        thread = threading.Thread(target=call)
        thread.start()
        self.addCleanup(thread.join)

    def test_the_interpreter_is_free_while_it_waits(self):
        ticks = []
        self.later(lambda: (ticks.append(1), self.held.let.set()))
        self.assertEqual(next(iter(self.data))["a"].tolist(), [7] * 10)
        self.assertEqual(ticks, [1])

    def test_a_timeout(self):
        self.held.let.set()
        held = slow.held()
        with loader(outputs={"a": held}, reading=penstock.Reading(timeout=0.12)) as data:
            start = time.monotonic()
            self.assertRaisesRegex(penstock.TimedOutError, r"loader.stats\(\) shows which stage", next, iter(data))
            self.assertRaises(TimeoutError, next, iter(data))
            self.assertTrue(0.2 < time.monotonic() - start < slow.GIVE_UP)
            held.let.set()
            self.assertEqual(sets.patiently(lambda: next(iter(data)), penstock.TimedOutError).position, 0)

    def test_control_c_ends_a_wait_within_100_ms_and_loses_nothing(self):
        sent, took = [], []

        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        batches = iter(self.data)
        while not took or min(took) >= 0.1 and len(took) < 50:  # a machine that is busy is late at times
            self.later(interrupt)
            try:
                next(batches)
                self.fail("nothing was there")
            except KeyboardInterrupt:
                took.append(time.monotonic() - sent[-1])
        self.assertLess(min(took), 0.1, took)
        self.held.let.set()
        self.assertEqual(next(batches)["i"].tolist(), list(range(10)))

    def test_interrupt_ends_a_wait(self):
        self.later(self.data.interrupt)
        batches = iter(self.data)
        self.assertRaises(penstock.InterruptedLoaderError, next, batches)
        self.held.let.set()
        self.assertEqual(next(batches).position, 0)

    def test_close_in_another_thread_ends_a_wait(self):
        def close():
            threading.Timer(0.1, self.held.let.set).start()  # close waits for what workers are at
            self.data.close()

        thread = threading.Thread(target=close)
        batches = iter(self.data)
        thread.start()
        self.assertRaisesRegex(penstock.PenstockError, "closed", next, batches)
        thread.join()
        self.assertTrue(self.data.closed)

    def test_close_in_a_signals_handler(self):
        def handler(_number, _frame):
            self.held.let.set()
            self.data.close()

        old = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, old)
        self.later(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        self.assertRaises(penstock.InterruptedLoaderError, next, iter(self.data))

    def test_seeking_in_a_signal_handler_is_refused_with_advice(self):
        def handler(_number, _frame):
            self.held.let.set()
            self.data.seek(3)

        old = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, old)
        self.later(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        batches = iter(self.data)
        self.assertRaisesRegex(penstock.PenstockError, "set a flag there", next, batches)
        self.assertEqual(next(batches).position, 0)

    def test_others_may_ask_while_one_waits(self):
        told = []

        def ask():
            start = time.monotonic()
            told.append((self.data.stats().n_batches, len(self.data), repr(self.data)))
            told.append(time.monotonic() - start)
            self.held.let.set()

        self.later(ask)
        next(iter(self.data))
        self.assertEqual(told[0][:2], (0, 200))
        self.assertLess(told[1], slow.GIVE_UP)  # a thread that waits with the other waits so long


    def test_others_may_ask_while_the_data_set_is_opened(self):
        opening, go_on, found = threading.Event(), threading.Event(), []
        opened = penstock.Loader._opened_dataset

        def slow_one(data):
            opening.set()
            go_on.wait(slow.GIVE_UP)
            return opened(data)

        with mock.patch.object(penstock.Loader, "_opened_dataset", slow_one):
            threads = [threading.Thread(target=lambda: found.append(self.data.dataset)) for _ in range(2)]
            for thread in threads:
                thread.start()
            opening.wait(slow.GIVE_UP)
            start = time.monotonic()
            self.assertEqual((self.data.stats().n_batches, len(self.data)), (0, 200))
            self.assertLess(time.monotonic() - start, slow.GIVE_UP)
            go_on.set()
            for thread in threads:
                thread.join()
            self.assertIs(found[0], found[1])
            self.assertEqual(found[0][3]["i"], 3)
            self.held.let.set()
            self.data.close()
            self.assertRaisesRegex(penstock.PenstockError, "closed", lambda: self.data.dataset)


class Signals(unittest.TestCase):
    """A timer's handler raises, wherever it strikes; what was handed out is what the cursor says."""

    def test_exceptions_at_any_step_lose_no_batch_and_no_slot(self):
        self.check("numpy")

    def test_exceptions_at_any_step_with_torch(self):
        sets.torch_or_skip()
        self.check("torch")

    def check(self, framework):
        class Struck(Exception):
            pass

        armed = []

        def strike(_number, _frame):
            if armed:
                raise Struck

        old = signal.signal(signal.SIGALRM, strike)
        self.addCleanup(signal.signal, signal.SIGALRM, old)
        data = loader(memory=penstock.Memory(n_slots=2), shuffle=False, batch_size=2, framework=framework)
        self.addCleanup(data.close)
        n_struck, unraisable = 0, []
        hook = mock.patch.object(sys, "unraisablehook", unraisable.append)
        hook.start()
        self.addCleanup(hook.stop)
        end, last = time.monotonic() + 1, time.monotonic() + 100  # the last is for a defect
        while time.monotonic() < (end if n_struck > 50 else last):
            data.seek(0)
            batches = iter(data)
            while data.cursor[0] == 0 and time.monotonic() < last:
                at, got = data.cursor, None
                try:
                    # Longer from time to time, so that a slow machine gets a batch, too.
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (20 + n_struck % 150) * (1 + n_struck // 1000))
                    armed.append(True)
                    # Behind next() a handler may raise before its result has a name; in a loop it cannot.
                    for got in batches:  # noqa: B007
                        break
                    armed.clear()
                except Struck:
                    armed.clear()
                    n_struck += 1
                except penstock.OutOfSlotsError:
                    self.fail("a slot was lost after %d strikes" % n_struck)
                if got is not None:
                    self.assertEqual((got.epoch, got.position), at)
                    self.assertEqual(got["i"].tolist(), got.sample_ids)
                    at = (got.epoch, got.next_position)
                if sys.version_info >= (3, 10) and data.cursor[0] == 0:
                    self.assertEqual(data.cursor, at)
                if time.monotonic() > end and n_struck > 50:
                    break
        self.assertLess(time.monotonic(), last, "no batch ever comes through")
        self.assertGreater(n_struck, 50)
        self.assertEqual(unraisable, [], "an exception was lost")


    def test_a_close_that_was_interrupted_is_finished_by_the_next(self):
        before = sets.n_threads_of_the_library()
        for step in itertools.count(1):
            data = loader(n_threads=1)
            struck = sets.strike(step, data.close)
            data.close()
            self.assertTrue(data.closed)
            self.assertEqual(sets.n_threads_of_the_library(), before, "step %d" % step)
            if not struck:
                break
        self.assertGreater(step, 10)

    def test_a_seek_that_was_interrupted_can_be_done_again(self):
        with loader(shuffle=False) as data:
            for step in itertools.count(1):
                data.seek(0, 500)
                next(iter(data))
                struck = sets.strike(step, lambda: data.seek(0, 40))
                for batch in data.epoch(data.cursor[0]):
                    self.assertIn(batch.position, (0, 40))
                    self.assertEqual(batch["i"][0], batch.position)
                    break
                data.seek(0, 40)
                self.assertEqual(next(data.epoch(0)).position, 40)
                if not struck:
                    break

    def test_a_place_that_was_loaded_stays_until_a_batch_was_handed_out(self):
        with loader() as data:
            for step in itertools.count(1):
                data.load_state_dict({**data.state_dict(), "epoch": 0, "position": 40})
                struck = sets.strike(step, lambda: data.epoch(0))
                self.assertEqual(len(data.epoch(0)), 196)
                self.assertEqual(next(data.epoch(0)).position, 40)
                self.assertEqual(next(data.epoch(0)).position, 0)
                if not struck:
                    break


class Ending(unittest.TestCase):
    def test_close_leaves_no_thread(self):
        before = sets.n_threads_of_the_library()
        data = loader()
        next(iter(data))
        self.assertGreater(sets.n_threads_of_the_library(), before)
        self.assertFalse(data.closed)
        data.close()
        data.close()
        self.assertTrue(data.closed)
        self.assertEqual(sets.n_threads_of_the_library(), before)
        for use in (data.metrics, lambda: next(iter(data)), lambda: len(data), lambda: data.epoch(1)):
            self.assertRaisesRegex(penstock.PenstockError, "closed \\(open another", use)
        self.assertIn("closed", repr(data))
        data.interrupt()

    def test_a_daemon_thread_at_exit_says_nothing(self):
        done = sets.python("""
import atexit, sys, threading, time
atexit.register(time.sleep, 0.2)  # behind the loader's own: the thread has time to say something
import penstock
data = penstock.Loader(sys.argv[1], batch_size=10, framework="dlpack")
def forever():
    while True:
        for _ in data:
            pass
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
""", sets.scalars())
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_pass_after_close_says_so(self):
        data = loader()
        batches = iter(data)
        data.close()
        self.assertRaisesRegex(penstock.PenstockError, "closed", next, batches)

    def test_memory_stays_over_epochs(self):
        def resident():
            with open("/proc/self/statm", encoding="utf-8") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        with penstock.Loader(sets.small(), batch_size=8, framework="numpy", outputs={
                "p": sets.images(), "i": "i", "t": "text"}) as data:
            for epoch in range(100):
                for _ in data:
                    pass
                if epoch == 20:
                    gc.collect()
                    before = resident()
            gc.collect()
            self.assertLess(resident() - before, 1 << 20)

    def test_a_loader_cannot_be_sent_to_another_process(self):
        with loader() as data:
            self.assertRaisesRegex(TypeError, "open it in the process that uses it", pickle.dumps, data)
            with self.assertRaisesRegex(TypeError, "without a DataLoader around it"):
                data[0]


FORKED = """
import os, sys
import penstock
import sets
data = penstock.Loader(sys.argv[1], batch_size=10, framework="dlpack", shuffle=False)
batches = iter(data)
first = next(batches)
data._handle.turn.acquire()  # as a thread would have that is not in the child
pid = os.fork()
if pid == 0:
    status = 0
    for use in (lambda: next(batches), data.stats, lambda: len(data), lambda: iter(data),
                lambda: data.seek(0)):
        try:
            use()
            status = 1
        except penstock.ForkedError as error:
            assert "opened before fork: open one in the child, or start the child by spawn" in str(error)
    data.interrupt()
    assert first["i"].read()[8:16] == (1).to_bytes(8, "little")
    del first
    data.close()
    with penstock.Loader(sys.argv[1], batch_size=10, framework="dlpack") as own:
        status |= next(iter(own)).n_valid != 10
    sys.exit(status)
data._handle.turn.release()
assert os.waitpid(pid, 0)[1] == 0
assert first["i"].read()[8:16] == (1).to_bytes(8, "little")
assert sum(1 for _ in batches) == 199
print("same")
"""

SPAWNED = """
import multiprocessing, sys
import penstock
import sets

def count(path):
    with penstock.Loader(path, batch_size=10, framework="dlpack") as data:
        return sum(batch.n_valid for batch in data)

if __name__ == "__main__":
    with penstock.Loader(sys.argv[1], batch_size=10, framework="dlpack") as data:
        next(iter(data))
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            assert pool.map(count, [sys.argv[1]] * 2) == [2000, 2000]
    print("same")
"""


class Words(unittest.TestCase):
    def test_words_of_other_loaders_are_explained(self):
        for word, answer in (("num_workers", "n_threads"), ("pin_memory", "page-locked"), ("drop_last", "last_batch=")):
            with self.assertRaisesRegex(TypeError, answer):
                penstock.Loader(sets.small(), batch_size=4, **{word: 1})

    def test_a_world_without_a_rank_is_refused(self):
        with self.assertRaisesRegex(penstock.SettingsError, "ranks='auto'"):
            penstock.Loader(sets.small(), batch_size=4, ranks=penstock.Ranks(world=2))

    def test_a_copy_has_the_order_of_its_view(self):
        outputs = {"p": sets.images("float32", "channels_last")}
        found = []
        for copy in (False, True):
            with penstock.Loader(sets.small(), batch_size=4, outputs=outputs, framework="numpy",
                                 device=penstock.Device(copy=copy)) as data:
                found.append(next(iter(data))["p"].strides)
        self.assertEqual(*found)


class Processes(unittest.TestCase):
    def test_a_forked_child_gets_an_error_with_advice(self):
        done = sets.python(FORKED, sets.scalars())
        self.assertEqual((done.returncode, done.stdout), (0, "same\n"), done.stderr)

    def test_spawn_works(self):
        path = os.path.join(sets.ROOT, "spawned.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SPAWNED)
        done = sets.python("import runpy, sys; sys.argv[0] = %r; runpy.run_path(%r, run_name='__main__')"
                           % (path, path), sets.scalars())
        if done.returncode:  # pickles need the functions of a file that is __main__
            env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
            done = subprocess.run([sys.executable, path, sets.scalars()], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, universal_newlines=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "same\n"), done.stderr)

    def test_a_dataloader_around_a_loader_is_refused_with_advice(self):
        sets.torch_or_skip()
        from torch.utils.data import DataLoader
        with loader() as data:
            for n in (0, 1):
                with self.assertRaisesRegex(Exception, "without a DataLoader around it"):
                    next(iter(DataLoader(data, batch_size=None, num_workers=n)))


class Settings(unittest.TestCase):
    def test_a_wrong_keyword_is_reported_with_the_nearest_one(self):
        for wrong, part in (("batchsize", "did you mean 'batch_size'"),
                            ("num_threads", "n_threads= is the number"),
                            ("shufle", "did you mean 'shuffle'"), ("zzz", "it has: path, batch_size")):
            with self.assertRaisesRegex(TypeError, part):
                loader(**{wrong: 1})
        with self.assertRaisesRegex(TypeError, "batch_size"):
            penstock.Loader(sets.scalars())

    def test_wrong_values_are_refused_by_name_before_anything_is_started(self):
        before = sets.n_threads_of_the_library()
        for keywords, error in (
                ({"batch_size": "8"}, TypeError), ({"batch_size": 8.0}, TypeError),
                ({"batch_size": 0}, penstock.SettingsError), ({"batch_size": -1}, penstock.SettingsError),
                ({"batch_size": 3000}, penstock.SettingsError), ({"seed": 2**64}, penstock.SettingsError),
                ({"n_threads": 2**32}, penstock.SettingsError), ({"n_threads": None}, TypeError),
                ({"order": "random"}, penstock.SettingsError), ({"last_batch": "dorp"}, penstock.SettingsError),
                ({"reading": penstock.Reading(io="fast")}, penstock.SettingsError), ({"bad_sample": 1}, TypeError),
                ({"ranks": penstock.Ranks(3, 3)}, penstock.SettingsError),
                ({"ranks": penstock.Ranks(1)}, penstock.SettingsError),
                ({"device": "gpu"}, penstock.SettingsError), ({"device": "cpu:1"}, penstock.SettingsError),
                ({"framework": "tensorflow"}, penstock.SettingsError),
                ({"order": penstock.Order(position=2001)}, penstock.SettingsError),
                ({"reading": penstock.Reading(topology="nonsense")}, penstock.SettingsError)):
            (name, value), *_ = keywords.items()
            name = getattr(value, "_fields", [name])[0] if isinstance(value, tuple) else name  # a topic's member
            if isinstance(value, (penstock.Reading, penstock.Order)):
                name = repr(value).partition("(")[2].partition("=")[0]
            with self.subTest(**keywords), self.assertRaisesRegex(error, name):
                loader(**keywords)
        with self.assertRaisesRegex(penstock.SettingsError, "did you mean 'drop'"):
            loader(last_batch="dorp")
        with self.assertRaisesRegex(penstock.SettingsError, "shuffle"):
            loader(shuffle=True, order="sequential")
        self.assertEqual(sets.n_threads_of_the_library(), before)

    def test_whole_numbers_of_numpy_are_whole_numbers(self):
        with loader(batch_size=np.int64(20), seed=np.uint8(3), memory=penstock.Memory(n_slots=True + 2)) as data:
            self.assertEqual(data.batch_size, 20)

    def test_settings_reach_the_library(self):
        with loader(n_threads=1, memory=penstock.Memory(n_slots=5, max_memory=1 << 30, index_memory=1 << 20),
                    reading=penstock.Reading(reader="threads", io="buffered", queue_depth=16, kernels="c",
                                             pin_threads=False)) as data:
            next(iter(data))
            stats = data.stats()
        self.assertEqual((stats.n_threads, stats.n_slots, stats.reader, stats.queue_depth, stats.kernels),
                         (1, 5, "threads", 16, "c"))

    def test_a_data_set_that_is_not_there(self):
        with self.assertRaises(penstock.DataSetNotFoundError) as raised:
            penstock.Loader("/nowhere/at/all", batch_size=1)
        self.assertIsInstance(raised.exception, FileNotFoundError)
        self.assertIn("/nowhere/at/all", str(raised.exception))
        self.assertRaises(TypeError, penstock.Loader, 3, batch_size=1)
        self.assertRaises(penstock.SettingsError, penstock.Loader, "a\0b", batch_size=1)

    def test_a_device_without_a_driver_is_the_librarys_message(self):
        done = sets.python("""
import sys, penstock
try:
    penstock.Loader(sys.argv[1], batch_size=2, device="cuda", framework="dlpack")
except penstock.UnsupportedError as error:
    print(error)
""", sets.scalars(), PENSTOCK_FAKE_CUDA="devices=1,no_driver=35",
                           PENSTOCK_LIBRARY=os.environ.get("PENSTOCK_FAKE_LIBRARY")
                           or os.environ.get("PENSTOCK_LIBRARY", ""))
        self.assertIn("device", done.stdout, done.stderr)

    def test_torch_without_cuda_is_refused_with_advice(self):
        torch = sets.torch_or_skip()
        fake = os.environ.get("PENSTOCK_FAKE_LIBRARY")
        if not fake or torch.cuda.is_available():
            self.skipTest("there is no fake device, or a real one")
        done = sets.python("""
import sys, torch, penstock
try:
    penstock.Loader(sys.argv[1], batch_size=2, device="cuda")
except penstock.UnsupportedError as error:
    print(error)
""", sets.scalars(), PENSTOCK_FAKE_CUDA="devices=1", PENSTOCK_LIBRARY=fake)
        self.assertIn("install a build for CUDA", done.stdout, done.stderr)

    def test_repr_says_what_it_is(self):
        with loader(ranks=penstock.Ranks(1, 2)) as data:
            for part in ("2,000 samples", "batches of 10", "full order", "seed 0", "numpy on cpu",
                         "rank 1 of 2", "i: scalar('i')"):
                self.assertIn(part, repr(data))

    def test_auto_takes_torch_where_it_is_imported(self):
        code = ("import sys%s; import penstock; loader = penstock.Loader(sys.argv[1], batch_size=2); next(iter(loader)); "
                "print(loader._framework)")
        self.assertEqual(sets.python(code % "", sets.scalars()).stdout, "numpy\n")
        sets.torch_or_skip()
        self.assertEqual(sets.python(code % ", torch", sets.scalars()).stdout, "torch\n")


if __name__ == "__main__":
    unittest.main()
