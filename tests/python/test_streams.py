# SPDX-License-Identifier: Apache-2.0
"""Streams that use a batch besides the one that it was taken on: what is in them ends before the slot is
overwritten. Devices are those of the fake, see tests/support/cuda_fake; PyTorch's tensors on them are played."""
import os
import unittest

import sets

FAKE = os.environ.get("PENSTOCK_FAKE_LIBRARY", "")

BEGIN = """
import contextlib, gc
from ctypes import byref, c_void_p
import penstock, sets
from penstock import _c, streams

def opened(path=sets.scalars(), stream=None, **keywords):
    device = penstock.Device("cuda", n_slots=2, stream=stream)
    return penstock.Loader(path, batch_size=10, device=device, framework="dlpack", shuffle=False, **keywords)

def stream_of(loader):
    found = c_void_p()
    assert _c.lib.pstk_stream_open(loader._handle.pointer, byref(found), None) == 0
    return found.value

@contextlib.contextmanager
def held(stream):
    "The stream's work does not go on meanwhile."
    _c.lib.cuda_fake_set_held(c_void_p(stream), 1)
    try:
        yield
    finally:
        _c.lib.cuda_fake_set_held(c_void_p(stream), 0)

TIMEOUT = 0.25  # seconds that the loader waits for a batch
LONG = 100  # seconds, for what must come: no machine is so slow

def take(batches, seconds):
    "The next batch, or None where none comes within so long."
    for _ in range(int(seconds / TIMEOUT)):
        with contextlib.suppress(penstock.TimedOutError):
            return next(batches)

def is_waited_for(use, n_seconds=TIMEOUT, **keywords):
    "Does what comes into a side stream after use(batch, stream) keep the slot? Else it is overwritten in time."
    with opened(reading=penstock.Reading(timeout=TIMEOUT), **keywords) as loader:
        side, batches = stream_of(loader), iter(loader)
        batch = take(batches, LONG)
        other = take(batches, LONG)  # has the other slot
        kept = use(batch, side)
        with held(side):
            del batch, kept
            third = take(batches, n_seconds)
            waited = third is None
        third = third or take(batches, LONG)  # once the stream goes on
        third["i"].read()
        del other, third
        _c.lib.pstk_stream_close(loader._handle.pointer, byref(c_void_p(side)))
    return waited

class Stream:  # as PyTorch's
    def __init__(self, handle):
        self.cuda_stream = handle

class Torch:  # as PyTorch's tensors: a view of one that goes by its address alone
    is_cuda = True

    def __init__(self, tensor, skip=0):
        self._held, self._address, self.streams = tensor.__dlpack__(stream=-1), tensor.address + skip, []

    def data_ptr(self):
        return self._address

    def record_stream(self, stream):
        self.streams.append(stream)

"""


@unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
class Streams(unittest.TestCase):
    def on_fake(self, code):
        done = sets.python(BEGIN + code + "print('same')", PENSTOCK_LIBRARY=FAKE,
                           PENSTOCK_FAKE_CUDA="devices=2")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "same\n", ""), done.stdout)

    def test_a_slot_without_other_streams_is_overwritten_at_once(self):
        self.on_fake("assert not is_waited_for(lambda batch, side: None, LONG)\n")

    def test_a_stream_that_dlpack_exported_to_is_waited_for(self):
        self.on_fake('assert is_waited_for(lambda batch, side: batch["i"].__dlpack__(stream=side))\n')

    def test_a_batchs_record_stream_counts_what_comes_after_it(self):
        self.on_fake("""
assert is_waited_for(lambda batch, side: batch.record_stream(side))
assert is_waited_for(lambda batch, side: batch.info.record_stream(Stream(side)))
assert is_waited_for(lambda batch, side: penstock.record_stream(batch, side))
assert is_waited_for(lambda batch, side: penstock.record_stream(list(batch), side))
""")

    def test_a_single_tensors_record_stream_keeps_the_slot(self):
        self.on_fake("""
assert is_waited_for(lambda batch, side: batch["i"].record_stream(side))
assert is_waited_for(lambda batch, side: batch["i"][2:3].record_stream(Stream(side)))
assert is_waited_for(lambda batch, side: penstock.record_stream([{"half": batch["half"]}], side))
""")

    def test_a_ragged_ones_record_stream_keeps_the_slot(self):
        sets.need_numpy()
        self.on_fake("""
ragged = dict(path=sets.small(), outputs=["tokens", "i"], last_batch="short")
assert is_waited_for(lambda batch, side: batch["tokens"].record_stream(side), **ragged)
""")

    def test_a_batch_takes_64_further_streams_and_the_65th_is_an_error_of_its_own(self):
        self.on_fake("""
with opened() as loader:
    batch = next(iter(loader))
    further = [stream_of(loader) for _ in range(65)]
    for _ in range(2):
        for stream in further[:64]:
            batch.record_stream(stream)
    try:
        batch["i"].record_stream(further[64])
    except penstock.SettingsError as error:
        assert error.code == "PSTK_EFBIG", error.code
        assert "stream: value is a stream other than the 64 that use the batch; must be one of them" in str(error), error
    else:
        raise AssertionError("no error")
    del batch
    for stream in further:
        _c.lib.pstk_stream_close(loader._handle.pointer, byref(c_void_p(stream)))
""")

    def test_a_tensor_of_pytorch_is_found_by_its_address(self):
        self.on_fake("""
def use(make):
    def used(batch, side):
        tensor = make(batch)
        penstock.record_stream(tensor, Stream(side))
        assert tensor.streams == [], "PyTorch's record_stream has no effect on it"
        return tensor
    return used

assert is_waited_for(use(lambda batch: Torch(batch["i"])))
assert is_waited_for(use(lambda batch: Torch(batch["half"], 4 * 9)))
""")

    def test_a_tensor_of_pytorchs_own_memory_gets_pytorchs_record_stream(self):
        self.on_fake("""
with opened() as loader:
    batch = next(iter(loader))
    stream = Stream(5)
    for skip in (-8, 80 * 1024 * 1024):
        tensor = Torch(batch["i"], skip)
        penstock.record_stream(tensor, stream)
        penstock.record_stream(penstock.Batch(a=tensor), stream)
        assert tensor.streams == [stream] * 2
    inside = Torch(batch["i"])
penstock.record_stream(inside, stream)  # of a closed loader: its slots are overwritten no more
assert inside.streams == [stream] and not streams._open
""")

    def test_an_array_of_another_library_is_found_or_refused(self):
        self.on_fake("""
class Array:
    shape = (10,)
    def __init__(self, address):
        self.__cuda_array_interface__ = {"data": (address, False)}

def use(batch, side):
    penstock.record_stream(Array(batch["i"].address + 72), side)
    return batch["i"]

assert is_waited_for(use)
for wrong, kind in ((Array(8), penstock.UnsupportedError), (3, TypeError), ("x", TypeError)):
    try:
        penstock.record_stream(wrong, 5)
    except kind as error:
        assert str(error).startswith("record_stream: "), error
    else:
        raise AssertionError(wrong)
""")

    def test_the_tensor_lookup_is_bounded_by_slots_and_ends_with_the_loader(self):
        self.on_fake("""
loader = opened()
for batch in loader:
    del batch
assert len(loader._leases._of_slots) == 2 and len(streams._open) == 1
loader.close()
assert not streams._open
dropped = opened()
iter(dropped)
del dropped
gc.collect()
assert not streams._open
""")

    def test_a_loader_on_a_stream_of_its_own_ends_with_its_last_reference(self):
        self.on_fake("""
gc.disable()
loader = opened()
batch = next(iter(loader))
del loader
assert not streams._open, "something of the loader's refers to it"
""")

    def test_an_exception_at_any_step_leaves_the_loaders_own_stream_whole(self):
        self.on_fake("""
import itertools
for step in itertools.count(1):
    with opened() as loader:
        batches = iter(loader)
        struck = sets.strike(step, lambda: next(batches))
        at = loader.cursor[1]
        assert [next(batches).position for _ in range(4)] == [at + 10 * i for i in range(4)], step
    if not struck:
        break
assert step > 50
""")

    def test_a_batch_of_copies_holds_no_slot(self):
        sets.need_numpy()
        self.on_fake("""
from penstock import loader as loaders, settings, tensors
tensors._CONVERTERS["jax"] = lambda: lambda tensor: tensor.read()  # a copy, as JAX gets on a GPU
loaders._REGISTER.clear()
with penstock.Loader(sets.scalars(), batch_size=10, device=penstock.Device("cuda", n_slots=2), framework="jax") as loader:
    batches = iter(loader)
    kept = [next(batches) for _ in range(5)]
    kept[0].info.record_stream(5)  # nothing is to be recorded
assert len({batch["i"] for batch in kept}) == 5
""")

    def test_the_cuda_array_interface_names_the_stream_of_the_lease(self):
        self.on_fake("""
with opened(stream=0) as loader:
    assert next(iter(loader))["i"].__cuda_array_interface__["stream"] == 1
with opened() as loader:
    batches = iter(loader)
    assert next(batches)["i"].__cuda_array_interface__["stream"] == loader._own.value > 2
    side = stream_of(loader)
    loader._stream = lambda: side
    batch = next(batches)
    for tensor in (batch["i"], batch["half"][1:2]):
        assert tensor.__cuda_array_interface__["stream"] == side
    del batch, tensor
    next(batches)
    _c.lib.pstk_stream_close(loader._handle.pointer, byref(c_void_p(side)))
""")

    def test_the_stream_of_each_thread_is_refused_in_words(self):
        self.on_fake("""
with opened() as loader:
    batch = next(iter(loader))
    for use in (lambda: batch["i"].__dlpack__(stream=2), lambda: batch.record_stream(2)):
        try:
            use()
        except penstock.SettingsError as error:
            assert "cudaStreamPerThread" in str(error), error
        else:
            raise AssertionError("taken")
""")

    def test_the_stream_that_is_current_where_the_last_tensor_goes_is_waited_for(self):
        self.on_fake("""
current = []

@_c.CurrentStreamFn
def current_stream(device, out):
    out[0] = current[-1] if current else None
    return 0 if current else 1

streams.current_of_threads = lambda framework: current_stream
assert is_waited_for(lambda batch, side: current.append(side))
current.clear()
assert not is_waited_for(lambda batch, side: None, LONG)
""")

    def test_a_batch_that_was_moved_holds_no_slot(self):
        self.on_fake("""
penstock.Tensor.to = lambda tensor, device, non_blocking: memoryview(tensor.read())
with opened() as loader:
    batches = iter(loader)
    moved = [next(batches).to("cpu") for _ in range(4)]
    assert [batch["i"].cast("q")[0] for batch in moved] == [0, 10, 20, 30]
    assert [batch.position for batch in moved] == [0, 10, 20, 30]
    moved[0].record_stream(5)
""")


class Host(unittest.TestCase):
    def test_on_the_host_nothing_is_to_be_recorded(self):
        import penstock
        sets.need_numpy()
        for framework in ("dlpack", "numpy", *(["torch"] if sets.has_torch() else [])):
            with penstock.Loader(sets.small(), batch_size=4, framework=framework,
                                 outputs=["i", "tokens"]) as loader:
                batch = next(iter(loader))
            for what in (batch, batch["i"], batch["tokens"], [batch["i"]], {"a": batch["tokens"]}, batch.info):
                penstock.record_stream(what, 5)


if __name__ == "__main__":
    unittest.main()
