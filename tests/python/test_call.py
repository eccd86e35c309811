# SPDX-License-Identifier: Apache-2.0
"""penstock.ops.Call calls a compiled function between operations: the rows are those of its steps, for any number of threads;
what it refuses; and what becomes of a sample whose function fails."""
import ctypes
import os
import shutil
import subprocess
import unittest

import sets
import penstock
from penstock import functional
from penstock.ops import Call, CenterCrop, RandomApply, RandomChoice, RandomFlip, RandomResizedCrop, Resize

sets.need_numpy()
import numpy  # noqa: E402

SOURCE = r"""
#include <penstock/ops.h>
#include <stdio.h>
#include <string.h>

struct level { int32_t add; };

int shift(void *user, uint8_t *pixels, const struct pstk_shape *shape, const uint64_t *random, void *scratch)
{
    const struct level *level = user;
    const size_t n = (size_t)shape->height * shape->width * shape->channels;
    memcpy(scratch, random, 16);
    for (size_t i = 0; i < n; i++)
        pixels[i] = (uint8_t)(pixels[i] + ((uint8_t *)scratch)[i % 16] + (level ? level->add : 0));
    return 0;
}

int fails_on_dark(void *user, uint8_t *pixels, const struct pstk_shape *shape, const uint64_t *random, void *scratch,
                  struct pstk_error *error)
{
    if (pixels[0] >= 100)
        return 0;
    snprintf(error->message, sizeof error->message, "the first byte is %d, below 100", pixels[0]);
    return 42;
}

int too_far(void *user, uint8_t *pixels, const struct pstk_shape *shape, const uint64_t *random, void *scratch)
{
    pixels[(size_t)shape->height * shape->width * shape->channels] = 1;
    return 0;
}
"""
N = 10


class Level(ctypes.Structure):
    _fields_ = [("add", ctypes.c_int32)]


def compiled():
    compiler = shutil.which("cc")
    if compiler is None:
        raise unittest.SkipTest("missing: a C compiler")
    include = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "include")
    source, library = os.path.join(sets.ROOT, "functions.c"), os.path.join(sets.ROOT, "functions.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-I", include, "-o", library, source], check=True)
    return ctypes.CDLL(library)


def shifted(pixels, random, add=0):
    """Return the result that `shift` must have."""
    some = numpy.array(random, "<u8").view("u1")
    flat = pixels.reshape(-1)
    return (flat + some[numpy.arange(flat.size) % 16] + add).astype("uint8").reshape(pixels.shape)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = compiled()
        cls.path = os.path.join(sets.ROOT, "called")
        random = numpy.random.default_rng(1)
        cls.pictures = [numpy.full((30 + i, 40 - i, 3), 20 * i, "uint8") + random.integers(0, 9, 3, numpy.uint8)
                        for i in range(N)]
        if not os.path.exists(cls.path):
            with penstock.Writer(cls.path, {"image": "image", "cls": "int64"}) as writer:
                for i, pixels in enumerate(cls.pictures):
                    writer.add(image=pixels, cls=i)

    def loader(self, ops, **keywords):
        image = penstock.image("image", ops)
        return penstock.Loader(self.path, batch_size=5, seed=3, framework="numpy", outputs={"image": image}, **keywords)

    def rows(self, ops, **keywords):
        with self.loader(ops, **keywords) as loader:
            return {int(i): row.copy() for batch in loader for i, row in zip(batch.sample_ids, batch["image"])}


class Rows(Case):
    def test_rows_are_those_of_the_steps_for_any_number_of_threads(self):
        call = Call(self.c.shift, scratch=16)
        for ops in ([RandomResizedCrop(20), call, RandomFlip()], [call, Resize((11, 12))],
                    [Resize((20, 20)), RandomApply([call], 0.5)], [RandomChoice([call, RandomFlip(1)]), CenterCrop(9)],
                    [Resize((20, 20)), call, call, CenterCrop((9, 10)), call]):
            n_calls, found = 0, [self.rows(ops, n_threads=n) for n in (1, 3)]
            for i, row in found[0].items():
                self.assertTrue((row == found[1][i]).all())
                pixels = self.pictures[i]
                for op in penstock.draw(ops, pixels.shape, seed=3, sample_id=i):
                    n_calls += op.name == "call"
                    pixels = shifted(pixels, op.arguments[1]) if op.name == "call" else op(pixels)
                self.assertTrue((row == pixels).all(), (ops, i))
            self.assertGreater(n_calls, 0)

    def test_two_outputs_of_one_field_have_draws_of_their_own_group(self):
        call = Call(self.c.shift, 16)
        outputs = {name: penstock.image("image", [Resize((6, 6)), call], random_group=group)
                   for name, group in (("a", 0), ("b", 0), ("c", 1))}
        with penstock.Loader(self.path, batch_size=N, framework="numpy", outputs=outputs) as loader:
            batch = next(iter(loader))
            self.assertTrue((batch["a"] == batch["b"]).all())
            self.assertFalse((batch["a"] == batch["c"]).all())

    def test_epochs_and_samples_have_different_bits(self):
        ops = [Resize((8, 8)), Call(self.c.shift, 16)]
        bits = {penstock.draw(ops, (8, 8, 3), seed=seed, epoch=epoch, sample_id=i)[1].arguments[1]
                for seed in range(3) for epoch in range(3) for i in range(20)}
        self.assertEqual(len(bits), 180)
        ones = sum(bin(word).count("1") for pair in bits for word in pair)
        self.assertLess(abs(ones - 180 * 64), 5 * (180 * 128) ** 0.5 / 2)

    def test_the_function_gets_what_user_points_to(self):
        level = Level(7)
        for user in (level, ctypes.addressof(level), numpy.array([7], "int32")):
            for row in (self.rows([Resize((4, 4)), Call(self.c.shift, 16, user)]).values()):
                self.assertEqual(row.shape, (4, 4, 3))
            found = functional.call(self.pictures[1], self.c.shift, (1, 2), 16, user)
            self.assertTrue((found == shifted(self.pictures[1], (1, 2), 7)).all())

    def test_a_function_of_numba_gives_the_same(self):
        try:
            from numba import cfunc, types
        except ImportError:
            self.skipTest("missing: numba")

        @cfunc(types.int32(types.voidptr, types.CPointer(types.uint8), types.CPointer(types.uint32),
                           types.CPointer(types.uint64), types.voidptr))
        def shift(user, pixels, shape, random, scratch):
            for i in range(shape[0] * shape[1] * shape[2]):
                pixels[i] = (pixels[i] + (random[i % 16 // 8] >> 8 * (i % 8))) & 255
            return 0

        ours, theirs = ([Resize((20, 20)), RandomFlip(), Call(function, 16)] for function in (shift, self.c.shift))
        for i, row in self.rows(ours, n_threads=2).items():
            self.assertTrue((row == self.rows(theirs)[i]).all())
        narrow = cfunc(types.int32(types.voidptr))(lambda user: 0)
        with self.assertRaisesRegex(ValueError, "takes 1 arguments; must take 5 or 6: user, pixels, shape, random, scratch, "
                                                "error"):
            Call(narrow)

    def test_the_loader_keeps_what_it_calls(self):
        class Function:
            def __init__(self, address):
                self.address = address
        import gc
        import weakref
        function = Function(ctypes.cast(self.c.shift, ctypes.c_void_p).value)
        level = numpy.array([7], "int32")
        kept = weakref.ref(function), weakref.ref(level)
        loader = self.loader([Resize((4, 4)), Call(function, 16, level)])
        del function, level
        gc.collect()
        self.assertTrue(all(each() is not None for each in kept))
        loader.close()
        del loader
        gc.collect()
        self.assertTrue(all(each() is None for each in kept))
        level = numpy.array([7], "int32")
        kept, drawn = weakref.ref(level), penstock.draw([Resize((4, 4)), Call(self.c.shift, 16, level)], (8, 8, 3))
        del level
        gc.collect()
        self.assertIsNotNone(kept())
        self.assertEqual(drawn[1](numpy.zeros((4, 4, 3), numpy.uint8)).shape, (4, 4, 3))
        del drawn
        gc.collect()
        self.assertIsNone(kept())


class Failures(Case):
    def test_a_result_names_the_sample(self):
        with self.assertRaises(penstock.FunctionError) as caught:
            self.rows([Resize((4, 4)), Call(self.c.fails_on_dark)], shuffle=False)
        first = self.rows([Resize((4, 4))], shuffle=False)[0][0, 0, 0]
        self.assertIn("output 'image', sample 0: the function of a call returned 42: the first byte is "
                      f"{first}, below 100", str(caught.exception))
        with self.assertRaisesRegex(penstock.FunctionError, "call: the function of a call returned 42: the first byte is 7,"):
            functional.call(numpy.full((2, 2, 3), 7, "uint8"), self.c.fails_on_dark)

    def test_another_sample_replaces_it(self):
        with self.loader([Resize((4, 4)), Call(self.c.fails_on_dark)], bad_sample="replace", shuffle=False) as loader:
            rows = [row for batch in loader for row in batch["image"]]
            self.assertGreater(loader.stats().n_replacements, 3)
        self.assertTrue(all(row[0, 0, 0] >= 100 for row in rows))

    def test_a_write_past_the_pixels_is_found(self):
        with self.assertRaisesRegex(penstock.FunctionError, "the function of a call wrote past the end of its pixels"):
            self.rows([Resize((4, 4)), Call(self.c.too_far)])
        with self.assertRaisesRegex(penstock.FunctionError, "call: the function of a call wrote past the end"):
            functional.call(self.pictures[0], self.c.too_far)

    def test_functions_of_python_are_refused(self):
        of_python = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
        for value in (len, lambda: 0, of_python, 12345, None, "shift", type("Has", (), {"address": "x"})()):
            with self.assertRaisesRegex(TypeError, r"Call.function: value is .*; must be a compiled function.*penstock.python"):
                Call(value)
        with self.assertRaisesRegex(ValueError, "whose address is 0"):
            Call(type("Has", (), {"address": 0})())

    def test_an_address_has_advice_that_works(self):
        address = ctypes.cast(self.c.shift, ctypes.c_void_p).value
        with self.assertRaisesRegex(TypeError, "of an address: (.*)") as caught:
            Call(address)
        function = eval(str(caught.exception).partition("of an address: ")[2], {"ctypes": ctypes, "address": address})
        ours, theirs = (self.rows([Resize((20, 20)), Call(each, 16)]) for each in (function, self.c.shift))
        self.assertTrue(all((row == theirs[i]).all() for i, row in ours.items()))

    def test_wrong_arguments_are_named(self):
        for arguments, kind, words in (((-1,), ValueError, "Call.scratch: value is -1"),
                                       ((2**32 + 1,), ValueError, "Call.scratch: value is 4294967297"),
                                       ((1.5,), TypeError, "Call.scratch: value is 1.5"),
                                       ((0, "x"), TypeError, "Call.user: value is 'x'; must be None, an address")):
            with self.assertRaises(kind) as caught:
                Call(self.c.shift, *arguments)
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "call.random: value is"):
            functional.call(self.pictures[0], self.c.shift, (1, 2**64), 16)


if __name__ == "__main__":
    unittest.main()
