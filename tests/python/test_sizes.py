# SPDX-License-Identifier: Apache-2.0
"""Batches of several sizes: each batch is, byte for byte, that of a loader whose images have this size alone."""
import os
import unittest

import own_functions
import penstock
import sets
from penstock import Boxes, CutMix, Field, MixUpCutMix
from penstock.ops import (CenterCrop, ColorJitter, GaussianBlur, Grayscale, Letterbox, Normalize, PadToSize, RandomCrop,
                          RandomErasing, RandomFlip, RandomIoUCrop, RandomResizedCrop, RandomRotation, Resize, ResizeLongest)

from data_fixture import Case, image_file, np, optional, picture

N, B, SEED = 60, 8, 3
SIZES = [16, (24, 20), 33, (20, 24)]
FAKE = os.environ.get("PENSTOCK_FAKE_LIBRARY", "")


def write(path, n=N):
    """Images, half of them JPEGs, with masks, boxes and labels."""
    rng = np.random.default_rng(5)
    with penstock.Writer(path, {"image": "image", "mask": "mask", "boxes": Boxes(rows="objects"),
                                "labels": Field("int64", (None,), rows="objects"), "y": "int32"}) as writer:
        for i in range(n):
            size = {"height": int(rng.integers(20, 60)), "width": int(rng.integers(20, 60))}
            corner = rng.uniform(0, 20, (i % 4, 2))
            image = picture(i, **size) if i % 2 else image_file(i, **size)
            writer.add(image=image, mask=rng.integers(0, 9, (size["height"], size["width"]), "u1"), y=i % 10,
                       boxes=np.concatenate([corner, corner + 9], 1), labels=np.arange(i % 4))


def everything(size):
    """Outputs of every kind that has a size. size: of all batches, or SIZES: then its images have sizes."""
    def made(make, **keywords):
        if size is SIZES:
            return penstock.image("image", make, sizes=SIZES, every=2, **keywords)
        return penstock.image("image", make(size), **keywords)

    def small(s):
        return [Resize(s if isinstance(s, int) else list(s)), CenterCrop(s // 2 if isinstance(s, int) else s[0] // 2)]
    return {"x": made(lambda s: [RandomResizedCrop(s), RandomFlip(), ColorJitter(0.4), Normalize()], layout="nchw"),
            "bytes": made(lambda s: [RandomIoUCrop(), RandomRotation(20), Letterbox(s)], layout="channels_last"),
            "small": made(small, random_group=1, channels=1),
            "half": made(lambda s: [RandomResizedCrop(s), Normalize(), RandomErasing(0.5)], dtype="float16"),
            "fixed": penstock.image("image", [RandomResizedCrop(10), GaussianBlur(3)]),
            "mask": penstock.mask("mask", follows="x"), "wide": penstock.mask("mask", follows="bytes", dtype="int64"),
            "boxes": penstock.boxes("boxes", follows="bytes"),
            "unit": penstock.boxes("boxes", follows="x", coordinates="unit"),
            "labels": penstock.per_box("labels", "boxes"), "y": "y"}


def read(value):
    """Dtype, shape and bytes of a tensor."""
    if isinstance(value, penstock.Ragged):
        return read(value.data), read(value.offsets)
    return str(value.dtype), value.shape, value.tobytes()


DEVICE = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})
import penstock
import test_sizes

def batches(device, size, **keywords):
    outputs = test_sizes.everything(size)
    with penstock.Loader(sys.argv[1], batch_size=8, device=device, framework="dlpack", seed=5, outputs=outputs,
                         last_batch="pad", memory=penstock.Memory(n_slots=2), **keywords) as loader:
        for b in (b for epoch in range(6) for b in loader.epoch(epoch)):
            for name in ("boxes", "unit", "labels"):
                b[name] = b[name].data
            yield b.size_index, [(t.dtype, t.shape, t.strides, t.read()) for t in b.values()]

found = list(batches("cuda", test_sizes.SIZES))
assert len({{v for v, _ in found}}) == 4
for v, size in enumerate(test_sizes.SIZES):
    for got, (_, want) in zip(found, batches("cpu", size)):
        assert got[0] != v or got[1] == want, v
print("same")
"""


class Sized(Case):
    def setUp(self):
        super().setUp()
        write(self.path())

    def loader(self, outputs, **keywords):
        keywords = {"batch_size": B, "seed": SEED, "framework": "numpy", "device": penstock.Device(copy=True),
                    "last_batch": "short",
                    "ranks": penstock.Ranks(0, 1), **keywords}
        return penstock.Loader(self.path(), outputs=outputs, **keywords)

    def batches(self, outputs, n_epochs=1, **keywords):
        """Return for some epochs (size_index, what each tensor has)."""
        with self.loader(outputs, **keywords) as loader:
            return [(batch.size_index, {name: read(batch[name]) for name in batch.keys()})
                    for epoch in range(n_epochs) for batch in loader.epoch(epoch)]

    def indexes(self, outputs=None, n_epochs=1, **keywords):
        with self.loader(outputs or {"x": penstock.image("image", [Resize((8, 8))], sizes=[8, 9, 10, 11])},
                         **keywords) as loader:
            return [batch.size_index for epoch in range(n_epochs) for batch in loader.epoch(epoch)]


class EveryBatch(Sized):
    def assert_is_of_single_sizes(self, found, alone):
        self.assertEqual({v for v, _ in found}, set(range(len(alone))))
        for k, (v, batch) in enumerate(found):
            for name, value in batch.items():
                self.assertEqual(value, alone[v][k][1][name], f"batch {k}, {name}, size {v}")

    def test_is_that_of_a_loader_with_its_size_alone(self):
        alone = [self.batches(everything(size), 3) for size in SIZES]
        self.assertEqual({v for batches in alone for v, _ in batches}, {0})
        for keywords in ({}, {"n_threads": 1, "memory": penstock.Memory(n_slots=2)},
                         {"n_threads": 5, "reading": penstock.Reading(reader="threads"), "memory": penstock.Memory(n_slots=3)},
                         {"reading": penstock.Reading(kernels="c")}):
            with self.subTest(keywords):
                found = self.batches(everything(SIZES), 3, **keywords)
                self.assertEqual(len(found), 3 * 8)
                self.assertEqual(found[7][1]["x"][1][0], N % B)  # the last batch is short
                self.assert_is_of_single_sizes(found, alone)

    def test_is_mixed_at_its_size(self):
        def outputs(size):
            names = ("x", "mask", "y")
            return {name: output for name, output in everything(size).items() if name in names}
        for mix in (CutMix(num_classes=10), MixUpCutMix(0.8, 1.0, num_classes=10, mode="elem", targets="pairs")):
            alone = [self.batches(outputs(size), 3, mix=mix) for size in SIZES]
            self.assert_is_of_single_sizes(self.batches(outputs(SIZES), 3, mix=mix), alone)

    def test_has_rows_of_functions_that_do_not_change(self):
        pixels = penstock.image("image", [RandomResizedCrop(6)])
        functions = {"f": penstock.python(own_functions.same, pixels, shape=(6, 6, 3), dtype="uint8", processes=2),
                     "g": penstock.python(own_functions.doubled, "y", shape=(), dtype="int32", processes=1)}
        alone = [self.batches({**functions, "x": penstock.image("image", [RandomResizedCrop(size)])}) for size in SIZES]
        sized = penstock.image("image", [RandomResizedCrop(8)], sizes=SIZES)
        self.assert_is_of_single_sizes(self.batches({**functions, "x": sized}), alone)

    @unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
    def test_on_a_device_is_that_of_the_host(self):
        done = sets.python(DEVICE.format(tests=os.path.dirname(os.path.abspath(__file__))), self.path(),
                           PENSTOCK_LIBRARY=FAKE, PENSTOCK_FAKE_CUDA="devices=1,delay_us=200")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "same\n", ""), done.stdout)

    def test_is_a_view_of_its_shape(self):
        outputs = {"x": penstock.image("image", [RandomResizedCrop(8), Normalize()], sizes=SIZES, layout="nchw"),
                   "last": penstock.image("image", [RandomResizedCrop(8)], sizes=SIZES, layout="channels_last")}
        shapes = [(n, n) if isinstance(n, int) else n for n in SIZES]
        frameworks = ["numpy", "dlpack"] + (["torch"] if sets.has_torch() else [])
        seen = set()
        for framework in frameworks:
            with self.loader(outputs, framework=framework, device=penstock.Device(copy=False)) as loader:
                for batch in loader:
                    height, width = shapes[batch.size_index]
                    seen.add((framework, batch.size_index))
                    self.assertEqual(tuple(batch["x"].shape), (batch.n_valid, 3, height, width))
                    self.assertEqual(tuple(batch["last"].shape), (batch.n_valid, 3, height, width))
                    if framework == "torch":
                        torch = optional("torch")
                        self.assertTrue(batch["x"].is_contiguous())
                        self.assertTrue(batch["last"].is_contiguous(memory_format=torch.channels_last))
                    elif framework == "numpy":
                        self.assertTrue(batch["x"].flags.c_contiguous)
        self.assertGreater(len(seen), 2 * len(frameworks))

    def test_held_batches_keep_their_shapes_while_slots_turn(self):
        outputs = {"x": penstock.image("image", [RandomResizedCrop(8)], sizes=SIZES)}
        with self.loader(outputs) as loader:
            want = [batch["x"] for batch in loader]
        with self.loader(outputs, device=penstock.Device(copy=False), memory=penstock.Memory(n_slots=4)) as loader:
            held = []
            for k, batch in enumerate(loader):
                held = [*held[-2:], (k, batch["x"])]
                for number, x in held:
                    np.testing.assert_array_equal(x, want[number])

    def test_needs_the_memory_of_the_largest(self):
        def memory(outputs):
            with self.loader(outputs, memory=penstock.Memory(n_slots=3)) as loader:
                return loader.stats().slot_memory
        self.assertEqual(memory({"x": penstock.image("image", [RandomCrop(8)], sizes=[16, 64, 32])}),
                         memory({"x": penstock.image("image", [RandomCrop(64)])}))


class Draw(Sized):
    def test_every_batches_in_a_row_have_one_size(self):
        for every in (1, 3, 8, 100):
            outputs = {"x": penstock.image("image", [Resize((8, 8))], sizes=[8, 9, 10, 11], every=every)}
            found = self.indexes(outputs, 40)
            for epoch in range(40):
                of_epoch = found[8 * epoch:8 * epoch + 8]
                for begin in range(0, 8, every):
                    self.assertEqual(len(set(of_epoch[begin:begin + every])), 1)
            if every == 1:
                self.assertGreater(sum(a != b for a, b in zip(found, found[1:])), len(found) // 2)

    def test_sizes_are_equally_likely(self):
        found = self.indexes(None, 60, batch_size=4)
        counts = np.bincount(found, minlength=4)
        expected = len(found) / 4
        # chi-square with 3 degrees of freedom is above 16.3 with a probability of 0.001; the seed is fixed
        self.assertLess(float(((counts - expected) ** 2 / expected).sum()), 16.3, counts)
        follows = np.bincount([4 * a + b for a, b in zip(found, found[1:])], minlength=16)
        self.assertGreater(follows.min(), 0.5 * len(found) / 16)

    def test_follows_from_seed_and_epoch(self):
        self.assertEqual(self.indexes(n_epochs=4), self.indexes(n_epochs=4, n_threads=1, memory=penstock.Memory(n_slots=2)))
        self.assertNotEqual(self.indexes(n_epochs=4), self.indexes(n_epochs=4, seed=SEED + 1))
        found = self.indexes(n_epochs=4)
        self.assertGreater(len({tuple(found[8 * e:8 * e + 8]) for e in range(4)}), 1)

    def test_ranks_have_the_same_size_in_a_step(self):
        ranks = [self.indexes(n_epochs=4, ranks=penstock.Ranks(rank, 3), batch_size=3) for rank in range(3)]
        self.assertEqual(len(set(ranks[0])), 4)
        self.assertEqual(ranks[0], ranks[1])
        self.assertEqual(ranks[0], ranks[2])

    def test_resumes_in_the_middle(self):
        outputs = {"x": penstock.image("image", [RandomResizedCrop(8)], sizes=SIZES, every=3)}
        with self.loader(outputs) as loader:
            whole = [read(batch["x"]) for batch in loader]
        for cut in range(1, len(whole)):
            with self.loader(outputs) as loader:
                batches = iter(loader)
                for _ in range(cut):
                    next(batches)
                state = loader.state_dict()
            with self.loader(outputs) as loader:
                loader.load_state_dict(state)
                self.assertEqual([read(batch["x"]) for batch in loader], whole[cut:])


class Arguments(Sized):
    def test_a_list_gives_its_one_size_away(self):
        rest = [RandomFlip(), Normalize()]
        for op, want in ((RandomResizedCrop(8, scale=(0.5, 1)), RandomResizedCrop((9, 7), scale=(0.5, 1))),
                         (PadToSize(8, 8, position="top_left"), PadToSize(9, 7, position="top_left")),
                         (Resize([8, 8], interpolation="bicubic"), Resize([9, 7], interpolation="bicubic"))):
            made = penstock.image("image", [op, *rest], sizes=[(9, 7)])
            self.assertEqual(made.size_ops, ((want, *rest),))
        made = penstock.image("image", lambda size: [Resize(size + 2), CenterCrop(size)], sizes=[5, 6], every=2)
        self.assertEqual(made.size_ops, ((Resize(7), CenterCrop(5)), (Resize(8), CenterCrop(6))))
        self.assertIn("sizes=[5, 6], every=2", repr(made))

    def test_one_size_is_as_good_as_none(self):
        self.assertEqual(self.batches({"x": penstock.image("image", [RandomResizedCrop(8)], sizes=[12])}),
                         self.batches({"x": penstock.image("image", [RandomResizedCrop(12)])}))

    def test_bad_ones_are_refused(self):
        def image(*ops, **keywords):
            return penstock.image("image", list(ops), **keywords)
        for words, call in (
                ("image.sizes: value has 0 sizes; must have from 1 to 64", lambda: image(Resize((8, 8)), sizes=[])),
                ("value has 65 sizes", lambda: image(Resize((8, 8)), sizes=range(8, 73))),
                ("image.sizes: value is 8", lambda: image(Resize((8, 8)), sizes=8)),
                ("RandomCrop.size: value is 0; must be at least 1 pixel", lambda: image(RandomCrop(8), sizes=[8, 0])),
                ("PadToSize.height: value is 'a'", lambda: image(PadToSize(8, 8), sizes=[8, "a"])),
                ("image.every: value is 0; must be at least 1", lambda: image(RandomCrop(8), sizes=[8], every=0)),
                ("image.every: value is 5; must be None without sizes", lambda: image(RandomCrop(8), every=5)),
                ("have a size are Resize, CenterCrop; must be one",
                 lambda: image(Resize(8), CenterCrop(8), sizes=[8, 9])),
                ("have a size are ResizeLongest, PadToSize; must be one",
                 lambda: image(ResizeLongest(8), PadToSize(8, 8), sizes=[8, 9])),
                ("have a size are none; must be one", lambda: image(Normalize(), sizes=[8, 9])),
                ("image.ops(9): value is 9; must be an operation",
                 lambda: penstock.image("image", lambda size: [size], sizes=[9])),
                ("the function makes images of the same size for 64 and 96",
                 lambda: penstock.image("image", lambda size: [Resize(size), CenterCrop(64)], sizes=[64, 96])),
                ("a function gets a size of sizes (give sizes=[...])", lambda: penstock.image("image", lambda size: [])),
                ("must be an image without sizes",
                 lambda: penstock.python(len, image(RandomCrop(8), sizes=[8]), shape=(8,), dtype="uint8"))):
            with self.subTest(words):
                self.assert_says(words, call)

    def test_lists_that_do_not_go_together_are_refused(self):
        def x(make, sizes, **keywords):
            return {"x": penstock.image("image", make, sizes=sizes, **keywords)}
        for words, outputs in (
                (["outputs['x'], size 9: ops do not fix the size"], x(lambda s: [Resize(s)], [9])),
                (["outputs['x'], size 8: ops", "fix the size"],
                 x(lambda s: [Resize((9, 9))] if s == 9 else [Resize(s)], [9, 8])),
                (["outputs['x'], size 8", "the images have 1 channels; must have 3"],
                 x(lambda s: [Resize((s, s))] + [Grayscale()] * (s == 8), [9, 8])),
                (["outputs['x'], size 8, operation 2 (Normalize)", "uint8"],
                 x(lambda s: [Resize((s, s))] + [Normalize()] * (s == 8), [9, 8], dtype="uint8")),
                (["outputs['z']: sizes: there are 3; must be 2, as of outputs['x']"],
                 {**x([RandomCrop(8)], [8, 9]), "z": penstock.image("image", [RandomCrop(8)], sizes=[1, 2, 3])}),
                (["outputs['z']: every: value is 4; must be 1, as of outputs['x']"],
                 {**x([RandomCrop(8)], [8, 9]), "z": penstock.image("image", [RandomCrop(8)], sizes=[1, 2],
                                                                    every=4)})):
            with self.subTest(words):
                self.assert_says(words, self.loader, outputs)

    @unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
    def test_a_device_finishes_all_sizes_or_none(self):
        code = """
import sys, penstock
from penstock.ops import *
def ops(size):
    return [Resize((size, size)), Normalize()] + [RandomErasing()] * (size == 8)
try:
    penstock.Loader(sys.argv[1], batch_size=8, device="cuda", framework="dlpack",
                    outputs={"x": penstock.image("image", ops, sizes=[9, 8])})
except penstock.SettingsError as error:
    print(error)
"""
        done = sets.python(code, self.path(), PENSTOCK_LIBRARY=FAKE, PENSTOCK_FAKE_CUDA="devices=1")
        self.assertIn("outputs['x'], size 8: ops: the last one erases; must end like", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
