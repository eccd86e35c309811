# SPDX-License-Identifier: Apache-2.0
"""Tensors look into a slot and own it: nothing is copied, nothing is used after it is free, every slot comes
back. NumPy always; PyTorch where it is installed; devices are those of the fake, see tests/support/cuda_fake."""
import ctypes
import gc
import itertools
import os
import pickle
import threading
import unittest
import weakref

import sets
import penstock
from penstock import _c, tensors

sets.need_numpy()
import numpy as np  # noqa: E402

FAKE = os.environ.get("PENSTOCK_FAKE_LIBRARY", "")


def scalars(**keywords):
    keywords.setdefault("framework", "numpy")
    keywords.setdefault("memory", penstock.Memory(n_slots=2))
    return penstock.Loader(sets.scalars(), batch_size=10, shuffle=False, **keywords)


def vectors(**keywords):
    """Return a loader of arrays, which are views in every framework."""
    keywords.setdefault("memory", penstock.Memory(n_slots=2))
    return penstock.Loader(sets.vectors(), batch_size=10, shuffle=False, **keywords)


def all_free(test, batches):
    """Both slots of a loader can be had."""
    both = [next(batches), next(batches)]
    test.assertRaises(penstock.OutOfSlotsError, next, batches)
    both.clear()


def fill(loader, n):
    """n batches, all of which are held."""
    batches = iter(loader)
    return batches, [next(batches) for _ in range(n)]


class Lifetime(unittest.TestCase):
    """Tests that every framework has to pass: make(**keywords) opens a loader with 2 slots."""

    framework = "numpy"

    def make(self, **keywords):
        return vectors(framework=self.framework, **keywords)

    def numbers(self, tensor):
        return np.asarray(tensor).ravel().tolist()

    def test_scalars_of_a_batch_are_copies_that_hold_no_slot_and_never_change(self):
        with scalars(framework=self.framework) as loader:
            kept = [(batch["i"], batch["half"]) for batch in loader]
            self.assertEqual([n for i, _ in kept for n in self.numbers(i)], list(range(2000)))
            self.assertEqual([n for _, half in kept for n in self.numbers(half)], [i / 2 for i in range(2000)])

    def test_scalars_of_parts_hold_no_slot(self):
        with scalars(framework=self.framework) as loader:
            kept = [part["i"] for parts in loader.micro_batches(3) for part in parts]
            self.assertEqual([n for i in kept for n in self.numbers(i)], list(range(2000)))

    def test_beside_scalars_an_array_holds_the_slot(self):
        with penstock.Loader(sets.small(), batch_size=10, memory=penstock.Memory(n_slots=2), outputs=["i", "x"],
                             framework=self.framework) as loader:
            batches = iter(loader)
            scalars_alone = [next(batches)["i"] for _ in range(5)]
            self.assertEqual(len(scalars_alone), 5)
            arrays = [next(batches)["x"] for _ in range(2)]
            self.assertRaises(penstock.OutOfSlotsError, next, batches)
            del arrays

    def test_a_slot_comes_back_with_its_last_tensor(self):
        with self.make() as loader:
            batches, (first, second) = fill(loader, 2)
            self.assertRaises(penstock.OutOfSlotsError, next, batches)
            kept = first["half"]
            del first
            self.assertRaises(penstock.OutOfSlotsError, next, batches)
            self.assertEqual(self.numbers(kept)[:2], [0.0, 0.5])
            del kept
            self.assertEqual(self.numbers(next(batches)["i"])[0], 20)
            self.assertEqual(self.numbers(second["i"])[0], 10)

    def test_a_view_of_a_view_holds_the_slot(self):
        with self.make() as loader:
            batches, held = fill(loader, 2)
            view = held[0]["i"][3:][1:2]
            del held[0]
            self.assertRaises(penstock.OutOfSlotsError, next, batches)
            self.assertEqual(self.numbers(view), [4])
            del view, held
            all_free(self, batches)

    def test_out_of_slots_names_what_to_do_and_loses_no_batch(self):
        with self.make() as loader:
            batches, held = fill(loader, 2)
            for _ in range(3):
                with self.assertRaises(penstock.OutOfSlotsError) as raised:
                    next(batches)
            for part in ("all 2 slots", "n_slots", "copy=True"):
                self.assertIn(part, str(raised.exception))
            self.assertEqual(raised.exception.code, "PSTK_ENOBUFS")
            self.assertEqual(loader.state_dict()["position"], 20)
            held.clear()
            self.assertEqual(self.numbers(next(batches)["i"])[0], 20)

    def test_tensors_outlive_their_loader(self):
        loader = self.make()
        _, held = fill(loader, 2)
        loader.close()
        del loader, _
        gc.collect()
        self.assertEqual(self.numbers(held[0]["i"]), list(range(10)))
        self.assertEqual(self.numbers(held[1]["half"]), [i / 2 for i in range(10, 20)])

    def test_a_loader_that_is_dropped_stops(self):
        before = sets.n_threads_of_the_library()
        loader = self.make()
        _, held = fill(loader, 1)
        self.assertGreater(sets.n_threads_of_the_library(), before)
        gone = weakref.ref(loader)
        gc.disable()
        try:
            del loader, _
            self.assertIsNone(gone(), "a cycle of references keeps it")
        finally:
            gc.enable()
        self.assertEqual(sets.n_threads_of_the_library(), before)
        self.assertEqual(self.numbers(held[0]["i"])[9], 9)

    def test_batches_held_by_a_cycle_are_collected_before_giving_up(self):
        gc.disable()
        try:
            with self.make() as loader:
                batches = iter(loader)
                for k in range(6):
                    cycle = [next(batches)]
                    self.assertEqual(self.numbers(cycle[0]["i"])[0], 10 * k)
                    cycle.append(cycle)
        finally:
            gc.enable()

    def test_an_exception_holds_a_batch_no_longer_than_it_lives(self):
        def step(batch):
            raise ValueError(self.numbers(batch["i"])[0])

        with self.make() as loader:
            batches = iter(loader)
            for k in range(6):
                try:
                    step(next(batches))
                except ValueError as error:
                    self.assertEqual(error.args, (10 * k,))

    def test_any_thread_may_drop_the_last_tensor(self):
        with self.make(memory=penstock.Memory(n_slots=3)) as loader:
            wrong = []

            def drop(batch, first):
                if self.numbers(batch["i"])[0] != first:
                    wrong.append(first)

            for first, batch in enumerate(loader):
                thread = threading.Thread(target=drop, args=(batch, 10 * first))
                del batch
                thread.start()
                thread.join()
            self.assertEqual((first, wrong), (199, []))

    def test_threads_that_hold_batches_at_random_get_what_they_took(self):
        wrong, lock, done = [], threading.Lock(), []

        def consume(batches):
            held = []
            while True:
                with lock:
                    batch = next(batches, None)
                    if batch is not None:
                        held.append((batch.sample_ids, batch["i"]))
                    elif not done:
                        done.append(True)
                if batch is None:
                    break
                del batch
                if len(held) == 3:
                    ids, tensor = held.pop(len(done) % 2)
                    if self.numbers(tensor) != ids:
                        wrong.append(ids)
                    del tensor
            wrong.extend(ids for ids, tensor in held if self.numbers(tensor) != ids)

        with self.make(memory=penstock.Memory(n_slots=16)) as loader:
            batches = iter(loader)
            threads = [threading.Thread(target=consume, args=(batches,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_copies_hold_no_slot(self):
        with self.make(device=penstock.Device(copy=True)) as loader:
            held = list(loader)
            self.assertEqual([self.numbers(b["i"])[0] for b in held], list(range(0, 2000, 10)))

    def test_a_short_last_batch_has_fewer_rows(self):
        with penstock.Loader(sets.scalars(), batch_size=300, shuffle=False, last_batch="short",
                             framework=self.framework) as loader:
            shapes = [tuple(batch["i"].shape) for batch in loader]
        self.assertEqual(shapes, [(300,)] * 6 + [(200,)])


class TorchLifetime(Lifetime):
    """The tests of Lifetime with PyTorch's tensors, which a function in C deletes."""

    framework = "torch"

    def setUp(self):
        self.torch = sets.torch_or_skip()

    def numbers(self, tensor):
        self.assertIsInstance(tensor, self.torch.Tensor)
        return tensor.flatten().tolist()

    def test_autograd_may_hold_a_batch(self):
        torch = self.torch
        with self.make() as loader:
            weight = torch.ones(10, requires_grad=True)
            batches = iter(loader)
            for k in range(5):
                loss = (next(batches)["half"].flatten() * weight).sum()
                loss.backward()
                del loss
            self.assertEqual(weight.grad.tolist()[0], sum(5.0 * k for k in range(5)))


class OwnLifetime(Lifetime):
    """The tests of Lifetime with penstock.Tensor, which needs no other library."""

    framework = "dlpack"

    def numbers(self, tensor):
        return tensor.memoryview().cast("q" if tensor.dtype == "int64" else "f").tolist()

    test_a_view_of_a_view_holds_the_slot = None
    test_copies_hold_no_slot = None
    test_scalars_of_a_batch_are_copies_that_hold_no_slot_and_never_change = None
    test_scalars_of_parts_hold_no_slot = None
    test_beside_scalars_an_array_holds_the_slot = None

    def test_scalars_are_views_as_well(self):
        with scalars(framework="dlpack") as loader:
            batches, held = fill(loader, 2)
            held = [batch["i"] for batch in held]
            self.assertRaises(penstock.OutOfSlotsError, next, batches)
            self.assertEqual(self.numbers(held[1]), list(range(10, 20)))

    def test_copies_are_refused(self):
        self.assertRaisesRegex(penstock.SettingsError, "read", self.make, device=penstock.Device(copy=True))

    def test_it_cannot_be_pickled(self):
        with scalars(framework="dlpack") as loader:
            self.assertRaisesRegex(TypeError, "pickle a copy", pickle.dumps, next(iter(loader))["i"])

    def test_a_memoryview_holds_the_slot(self):
        with self.make() as loader:
            batches, held = fill(loader, 2)
            view = held[0]["i"].memoryview()[8:16]
            held.clear()
            next(batches)
            another = next(batches)
            self.assertRaises(penstock.OutOfSlotsError, next, batches)
            self.assertEqual(view.cast("q").tolist(), [1])
            del view, another
            all_free(self, batches)


class Content(unittest.TestCase):
    def loader(self, **keywords):
        keywords.setdefault("framework", "numpy")
        return penstock.Loader(sets.small(), batch_size=8, shuffle=False, **keywords)

    def test_nothing_is_copied(self):
        with vectors(memory=penstock.Memory(n_slots=3), framework="numpy") as loader:
            places = set()
            for batch in loader:
                places.add(batch["i"].__array_interface__["data"][0])
                self.assertTrue(batch["i"].flags.writeable)
                self.assertFalse(batch["i"].flags.owndata)
                self.assertIsInstance(batch["i"].base, penstock.Tensor)
        self.assertLessEqual(len(places), 3)
        self.assertTrue(all(place % 64 == 0 for place in places))

    def test_values_are_those_that_were_written(self):
        with self.loader(outputs={"i": "i", "x": "x", "t": "text", "p": sets.images()}) as loader:
            for batch in loader:
                ids = batch.sample_ids
                self.assertEqual(batch["i"].tolist(), ids)
                self.assertEqual(batch["x"].tolist(), [[i, i + 1, i + 2] for i in ids])
                self.assertEqual(batch["t"].tolist(), [sets.text(i).encode() for i in ids])
                self.assertEqual(bytes(batch["t"][-1]), sets.text(ids[-1]).encode())
                self.assertEqual(batch["t"].n_rows, 8)
                self.assertRaises(IndexError, lambda: batch["t"][8])
                for image, i in zip(batch["p"], ids):
                    self.assertTrue((image == i % 256).all())

    def test_every_dtype_and_layout_of_images(self):
        wanted = {}
        for dtype in ("uint8", "float32", "float16", "bfloat16"):
            for layout in ("nhwc", "nchw", "channels_last"):
                with self.subTest(dtype=dtype, layout=layout), self.loader(
                        outputs={"p": sets.images(dtype, layout)}) as loader:
                    batch = next(iter(loader))["p"]
                    if dtype == "bfloat16" and batch.dtype == np.uint16:
                        batch = (batch.astype(np.uint32) << 16).view(np.float32)
                    found = np.asarray(batch, np.float32)
                    if layout != "nhwc":
                        self.assertEqual(batch.shape, (8, 3, 16, 16))
                        found = found.transpose(0, 2, 3, 1)
                    if layout == "channels_last":
                        self.assertEqual(batch.strides[1], batch.itemsize)
                    self.assertTrue(np.array_equal(found, wanted.setdefault(dtype, found)))

    def test_torch_sees_the_same_bytes(self):
        torch = sets.torch_or_skip()
        for dtype in ("uint8", "float32", "float16", "bfloat16"):
            for layout in ("nhwc", "nchw", "channels_last"):
                outputs = {"p": sets.images(dtype, layout), "i": "i", "t": "text"}
                with self.subTest(dtype=dtype, layout=layout), self.loader(outputs=outputs) as own, \
                        self.loader(outputs=outputs, framework="torch", last_batch="short") as other:
                    mine, theirs = next(iter(own)), next(iter(other))
                    self.assertEqual(theirs["p"].dtype, getattr(torch, dtype))
                    self.assertEqual(tuple(theirs["p"].shape), mine["p"].shape)
                    self.assertEqual(theirs["p"].is_contiguous(memory_format=torch.channels_last),
                                     layout == "channels_last")
                    raw = theirs["p"].contiguous().view(torch.uint8).numpy()
                    self.assertEqual(raw.tobytes(), np.ascontiguousarray(mine["p"]).tobytes())
                    self.assertEqual(theirs["t"].tolist(), mine["t"].tolist())
                    self.assertEqual(theirs["t"].offsets.dtype, torch.int64)
                    self.assertIs(theirs["t"].offsets, theirs["t"].device_offsets)

    def test_ragged_rows(self):
        for framework in ("numpy", "dlpack", *(["torch"] if sets.has_torch() else [])):
            with self.loader(outputs=["tokens", "boxes", "text", "i"], framework=framework) as loader:
                *_, batch = loader
            tokens, boxes, words, i = (batch[name] for name in ("tokens", "boxes", "text", "i"))
            ids = batch.sample_ids
            self.assertEqual([len(part) for part in (tokens, boxes, words)], [8, 8, 8])
            self.assertEqual(tokens.tolist(), [[k] * (k % 5) for k in ids])
            self.assertEqual(boxes.tolist(), [[[float(k)] * 4] * (k % 3) for k in ids])
            self.assertEqual(words.tolist(), [sets.text(k).encode() for k in ids])
            self.assertEqual(list(boxes.data.shape), [sum(k % 3 for k in ids), 4])
            for row, k in enumerate(ids):
                self.assertEqual(tokens[row].tolist(), [k] * (k % 5))
                self.assertEqual(boxes[row - 8].tolist(), [[float(k)] * 4] * (k % 3))
            self.assertEqual([row.tolist() for row in tokens], tokens.tolist())
            self.assertIn("8 rows, int64", repr(tokens))
            self.assertRaises(IndexError, lambda: tokens[8])
            self.assertRaisesRegex(TypeError, "an index must be a whole number", lambda: tokens[0:2])
            self.assertRaisesRegex(TypeError, "an index must be a whole number", lambda: tokens["x"])
            again = tokens if framework == "dlpack" else pickle.loads(pickle.dumps(tokens))
            self.assertEqual(again.tolist(), tokens.tolist())

    def test_ragged_of_torch_moves(self):
        torch = sets.torch_or_skip()
        with self.loader(outputs=["tokens"], framework="torch") as loader:
            tokens = next(iter(loader))["tokens"]
        moved = tokens.to(torch.float64, non_blocking=True)
        self.assertEqual(moved.tolist(), tokens.tolist())
        self.assertIs(moved.data.dtype, torch.float64)

    def test_a_short_ragged_batch(self):
        for framework in ("numpy", "dlpack"):
            with self.loader(outputs=["text"], last_batch="short", framework=framework) as loader:
                *_, batch = loader
            self.assertEqual(batch["text"].n_rows, 103 % 8)
            self.assertEqual(batch["text"].tolist(), [sets.text(i).encode() for i in range(96, 103)])

    def test_ranks_without_a_row_in_the_last_batch_get_none(self):
        for framework in ("numpy", "dlpack"):
            with penstock.Loader(sets.scalars(21), batch_size=2, ranks=penstock.Ranks(9, 10), shuffle=False,
                                 last_batch="short", framework=framework) as loader:
                *_, batch = loader
            self.assertEqual((tuple(batch["i"].shape), batch.n_valid, batch.sample_ids), ((0,), 0, []))

    def test_any_consumer_of_dlpack_takes_it(self):
        with self.loader(outputs={"p": sets.images("float32", "channels_last"), "i": "i"},
                         framework="dlpack") as loader:
            batch = next(iter(loader))
            self.assertEqual(batch["p"].__dlpack_device__(), (1, 0))
            if hasattr(np, "from_dlpack"):
                found = np.from_dlpack(batch["p"])
                self.assertTrue(np.array_equal(found, np.asarray(batch["p"])))
                self.assertEqual(np.from_dlpack(batch["i"]).tolist(), list(range(8)))
            self.assertRaises(BufferError, batch["i"].__dlpack__, copy=True)
            self.assertRaises(BufferError, batch["i"].__dlpack__, dl_device=(2, 0))
            self.assertEqual(batch["i"].read(), np.arange(8).tobytes())
            self.assertIn("int64", repr(batch["i"]))

    def test_capsules_that_nobody_takes_give_back(self):
        with scalars(framework="dlpack") as loader:
            batches, held = fill(loader, 2)
            capsules = [held[0]["i"].__dlpack__() for _ in range(3)]
            held.clear()
            next(batches)
            kept = next(batches)
            self.assertRaises(penstock.OutOfSlotsError, next, batches)
            del capsules, kept
            all_free(self, batches)

    def test_a_capsule_that_cannot_be_made_is_an_error(self):
        with self.assertRaisesRegex(penstock.SettingsError, "batch is NULL"):
            tensors.Share(ctypes.POINTER(_c.Batch)())
        with scalars(framework="dlpack") as loader:
            tensor = next(iter(loader))["i"]
            tensor.index = 9
            self.assertRaisesRegex(penstock.SettingsError, "tensor: value is 9; must be below 2", tensor.__dlpack__)

    def test_an_exception_on_the_way_to_a_capsule_gives_back(self):
        """At each step of Python's in turn, as a signal's handler might raise there."""
        with scalars(framework="dlpack") as loader:
            batches, held = fill(loader, 2)
            n_steps = next(n for n in itertools.count(1) if not sets.strike(n, held[0]["half"].__dlpack__))
            self.assertGreater(n_steps, 3)
            held.clear()
            all_free(self, batches)

    def test_jax_takes_it(self):
        try:
            import jax
        except ImportError:
            self.skipTest("JAX is not installed")
        with self.loader(outputs={"x": "x", "p": sets.images()}, framework="jax") as loader:
            batch = next(iter(loader))
            self.assertIsInstance(batch["x"], jax.Array)
            self.assertEqual(batch["x"].tolist()[1], [1.0, 2.0, 3.0])
            doubled = jax.jit(lambda b: {"x": b["x"] * 2})(batch)
            self.assertEqual(doubled["x"].tolist()[1], [2.0, 4.0, 6.0])


EXIT = """
import sys, threading
import penstock
if sys.argv[2] == "torch":
    import torch
loader = penstock.Loader(sys.argv[1], batch_size=4, framework=sys.argv[2], memory=penstock.Memory(n_slots=4))
batches = iter(loader)
held = [next(batches) for _ in range(3)]
if sys.argv[2] == "dlpack":
    capsule = held[0]["i"].__dlpack__()
    view = held[1]["i"].memoryview()
if len(sys.argv) > 3:
    loader.close()
sys.keep = held, loader
class Late:
    def __del__(self, held=held):
        held.clear()
late = Late()
late.itself = late
"""


class Exit(unittest.TestCase):
    def check(self, framework):
        for closed in ([], ["closed"]):
            with self.subTest(closed=bool(closed)):
                done = sets.python(EXIT, sets.scalars(), framework, *closed)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_tensors_alive_at_exit_do_no_harm(self):
        self.check("dlpack")

    def test_arrays_alive_at_exit_do_no_harm(self):
        self.check("numpy")

    def test_tensors_of_torch_alive_at_exit_do_no_harm(self):
        sets.torch_or_skip()
        self.check("torch")


DEVICE = """
import sys
from ctypes import byref, c_void_p
import penstock
import sets
from penstock import _c

def loader(device):
    return penstock.Loader(sets.small(), batch_size=8, device=device, framework="dlpack", seed=5,
                           last_batch="short", outputs={
                               "p": sets.images("float32", "channels_last"), "t": "text", "i": "i", "boxes": "boxes"})

def compare(index, host, device, stream):
    for a, b in zip(host, device):
        assert a.sample_ids == b.sample_ids
        for name in "pi":
            assert a[name].shape == b[name].shape and a[name].strides == b[name].strides
            assert a[name].read() == b[name].read(), name
            assert b[name].__dlpack_device__() == (2, index)
            assert b[name].__cuda_array_interface__["shape"] == b[name].shape
            assert not hasattr(b[name], "__array_interface__")
            b[name].__dlpack__(stream=stream)
        assert a["t"].tolist() == b["t"].tolist()
        for mine, other in zip(a["boxes"], b["boxes"]):
            assert mine.shape == other.shape and mine.read() == other.read()
        assert b["t"].device_offsets.device == (2, index) and b["t"].offsets.device == (1, 0)
        b.record_stream(stream)
        del a, b

for index in range(2):
    with loader("cpu") as host, loader("cuda:%d" % index) as device:
        stream = c_void_p()
        _c.lib.pstk_stream_open(device._handle.pointer, byref(stream), None)
        compare(index, host, device, stream.value)
        stats = device.stats()
        assert stats.n_device_slots == 3 and "on the device" in str(stats)
        _c.lib.pstk_stream_close(device._handle.pointer, byref(stream))
print("same")
"""

LEASES = """
import threading
import penstock
import sets

loader = penstock.Loader(sets.scalars(), batch_size=10, device="cuda", framework="dlpack", shuffle=False)
batches = iter(loader)
held = [next(batches) for _ in range(3)]
def refused():
    try:
        next(batches)
    except penstock.OutOfSlotsError as error:
        return "Device.n_slots above 3" in str(error)
assert refused()
tensors = [held.pop(0)["i"]]
assert refused()
thread = threading.Thread(target=tensors.clear)
thread.start()
thread.join()
assert next(batches)["i"].read()[:8] == (30).to_bytes(8, "little")
kept = held[0]["i"]
held.clear()
loader.close()
assert kept.read()[:8] == (10).to_bytes(8, "little")
print("same")
"""

# The destructor of a capsule does what PyTorch does with a tensor that it made of one.
LAST = """
import threading
import time
import penstock
import sets
from penstock import _c

loader = penstock.Loader(sets.scalars(), batch_size=10, device="cuda", framework="dlpack")
batch = next(iter(loader))
last = batch["i"].__dlpack__(stream=-1)
_c.lib.cuda_fake_set_held(None, 1)
batch.record_stream(0)
del batch
loader.close()
n_ticks, waits = 0, threading.Event()
def tick():
    "The interpreter is free while the tensor's end waits: else this would not come to let the stream go."
    global n_ticks
    waits.wait()
    for n_ticks in range(1, 21):
        time.sleep(0.002)
    _c.lib.cuda_fake_set_held(None, 0)
thread = threading.Thread(target=tick)
thread.start()
waits.set()
del last
assert n_ticks == 20, n_ticks  # it waited
thread.join()
print("same")
"""

# PyTorch's caching allocator, as far as a loader sees of it: memory that empty_cache() gives back.
CACHE = """
import sys
import types
import penstock
import sets

def loader():
    return penstock.Loader(sets.scalars(), batch_size=1000, device="cuda", framework="dlpack")

torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(empty_cache=lambda: emptied.append(cached.close()))
emptied, cached = [], loader()
assert 20000 < cached.stats().device_memory < 40000, cached.stats().device_memory
try:
    loader()
except penstock.OutOfMemoryError as error:
    assert "MiB are free" in str(error) and "empty_cache" not in str(error), error
    assert error.native == 2
sys.modules["torch"] = torch
second = loader()
assert len(emptied) == 1
assert next(iter(second))["i"].shape == (1000,)
try:
    loader()
except penstock.OutOfMemoryError as error:
    assert "MiB are free" in str(error) and "torch.cuda.empty_cache()" in str(error), error
assert len(emptied) == 2
second.close()
print("same")
"""


@unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
class Device(unittest.TestCase):
    def on_fake(self, code, devices="devices=2,delay_us=200"):
        done = sets.python(code, PENSTOCK_LIBRARY=FAKE, PENSTOCK_FAKE_CUDA=devices)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "same\n", ""), done.stdout)

    def test_batches_on_a_device_are_those_of_the_host(self):
        self.on_fake(DEVICE)

    def test_leases_on_a_device(self):
        self.on_fake(LEASES)

    def test_a_loader_keeps_its_stream_and_copies_on_no_other(self):
        self.on_fake("""
import weakref
import penstock, sets
class Stream:
    cuda_stream = 0
stream = Stream()
gone = weakref.ref(stream)
loader = penstock.Loader(sets.scalars(), batch_size=2, device=penstock.Device("cuda", stream=stream), framework="dlpack")
del stream
next(iter(loader))
assert gone() is not None
loader.close()
del loader
assert gone() is None
try:
    penstock.Loader(sets.scalars(), batch_size=2, device=penstock.Device("cuda", stream=1.5), framework="dlpack")
except TypeError as error:
    assert "stream: value is 1.5" in str(error), error
try:
    penstock.Loader(sets.scalars(), batch_size=2, device=penstock.Device("cuda", stream=0, copy=True), framework="cupy")
except penstock.SettingsError as error:
    assert "make yours the current one" in str(error), error
print("same")
""")

    def test_the_last_release_waits_for_the_device_without_the_interpreters_lock(self):
        self.on_fake(LAST)

    def test_memory_that_pytorch_only_caches_is_freed_for_a_loader(self):
        self.on_fake(CACHE, "devices=1,memory=40000")

    def test_pytorchs_current_stream_is_asked_for_in_c(self):
        torch = sets.torch_or_skip()
        if not torch.version.cuda:
            self.skipTest("missing: a PyTorch built with CUDA")
        name = penstock.streams.current_of_threads
        self.assertTrue(name("torch"))
        self.assertFalse(name("cupy"))
        self.assertFalse(name("dlpack"))

    def test_a_stream_of_the_loaders_own_outlives_it(self):
        self.on_fake("""
import penstock, sets
loader = penstock.Loader(sets.scalars(), batch_size=2, device="cuda:1", framework="dlpack", shuffle=False)
batches = iter(loader)
next(batches)
kept = next(batches)["i"]
stream = kept.share.stream
assert stream and stream == next(batches)["i"].share.stream
loader.close()
del batches, loader
assert kept.read()[:8] == (2).to_bytes(8, "little")
del kept
print("same")
""")

    def test_numpy_is_refused_on_a_device_that_it_cannot_see(self):
        self.on_fake("""
import penstock, sets
try:
    penstock.Loader(sets.scalars(), batch_size=2, device="cuda", framework="numpy")
except penstock.SettingsError as error:
    assert "NumPy cannot see" in str(error), error
    print("same")
""")


if __name__ == "__main__":
    unittest.main()
