# SPDX-License-Identifier: Apache-2.0
"""penstock.Writer: what goes in comes out, what does not fit is refused by name, and nothing is left of a
failure."""

import array
import contextlib
import gc
import io
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import unittest

import penstock
import sets
from data_fixture import Case, image_file, np, optional, picture
from penstock.packing.schema import schema_of
from penstock.packing.values import FieldError
from penstock.packing.writer import merge


class Schemas(unittest.TestCase):
    def test_short_forms_mean_the_same_as_fields(self):
        given = schema_of(
            {
                "a": "int64",
                "b": int,
                "c": ("uint16", (4, None)),
                "d": np.float32,
                "e": str,
                "f": bytes,
                "g": "bf16",
                "h": penstock.Field("uint8", (0, 3)),
                "i": np.dtype("int8"),
                "j": bool,
            }
        )
        field = penstock.Field
        self.assertEqual(
            given,
            {
                "a": field("int64"),
                "b": field("int64"),
                "c": field("uint16", (4, None)),
                "d": field("float32"),
                "e": field("utf8"),
                "f": field("bytes"),
                "g": field("bfloat16"),
                "h": field("uint8", (None, 3)),
                "i": field("int8"),
                "j": field("uint8"),
            },
        )
        self.assertEqual(field("image").codec, "planes")
        self.assertEqual(
            repr(field("uint16", (2,), "zstd", 5)), "Field('uint16', shape=(2,), codec='zstd', level=5)"
        )

    def test_wrong_schemas_and_fields_are_named(self):
        for schema, words in [
            ({"x": "imge"}, ["x", "did you mean 'image'"]),
            ({"x": ("uint8", (-3,))}, ["x", "-3"]),
            ({"x": ("uint8", ())}, ["x", "1 to 8"]),
            ({"x": ("image", (3,))}, ["field x: shape: value is (3,); must be None"]),
            ({"a b": "int8"}, ["a b"]),
            ({}, ["0 fields"]),
            ({"x": ("uint8",)}, ["x", "(dtype, shape)"]),
            ({"x": penstock.Field("int8")}, None),
            ("image", ["dict"]),
        ]:
            if words:
                with self.assertRaises(penstock.SettingsError) as caught:
                    schema_of(schema)
                for word in words:
                    self.assertIn(word, str(caught.exception))
        for wrong in [
            dict(kind="int8", codec="zstd"),
            dict(kind="bytes", codec="planes"),
            dict(kind="bytes", codec="x"),
        ]:
            self.assertRaises(penstock.SettingsError, penstock.Field, **wrong)


class Values(Case):
    def round_trip(self, field, values):
        with penstock.Writer(self.path(), {"x": field}, overwrite=True) as w:
            for value in values:
                w.add(x=value)
        return [record["x"] for record in penstock.Dataset(self.path())]

    def test_one_that_is_open_at_the_end_of_the_interpreter_leaves_nothing(self):
        sets.torch_or_skip()  # with it, modules such as os are taken down first
        code = "import torch, sys, penstock\nkept = penstock.Writer(sys.argv[1], {'i': 'int64'})\nkept.add(i=1)"
        for more in ("", "\nimport os\nif not os.fork(): raise SystemExit\nos.wait()"):
            done = sets.python(code + more, self.path("open"))
            self.assertEqual((done.returncode, done.stderr.count("\n"), self.left()), (0, 1, []), done.stderr)
            self.assertIn("its 1 record is lost", done.stderr)

    def test_scalars_of_every_type_keep_their_limits(self):
        for bits in (8, 16, 32, 64):
            low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
            self.assertEqual(self.round_trip(f"int{bits}", [low, 0, high]), [low, 0, high])
            self.assertEqual(self.round_trip(f"uint{bits}", [0, 2**bits - 1]), [0, 2**bits - 1])
            for kind, value in (
                (f"int{bits}", low - 1),
                (f"int{bits}", high + 1),
                (f"uint{bits}", -1),
                (f"uint{bits}", 2**bits),
            ):
                with self.assertRaises(FieldError) as caught:
                    self.round_trip(kind, [value])
                self.assertEqual(caught.exception.field, "x")
        self.assertEqual(self.round_trip("float64", [0.1, 3, np.float32(0.5)]), [0.1, 3.0, 0.5])
        self.assertEqual(self.round_trip("float16", [65504.0, float("inf")]), [65504.0, float("inf")])
        self.assert_says("range", self.round_trip, "float16", [1e6])
        self.assertEqual(
            self.round_trip("uint8", [True, np.uint8(7), np.array(9), np.bool_(True)]), [1, 7, 9, 1]
        )
        for wrong in ("3", None, 1.5, [1], np.zeros(1)):
            self.assert_says("int32", self.round_trip, "int32", [wrong])

    def test_bfloat16_rounds_as_torch_does(self):
        values = [1.0, 1.00390625, 1.01171875, 3.14159, -2.7e-39, 3.3895e38, float("inf"), 0.1]
        got = self.round_trip("bfloat16", values)
        self.assertTrue(np.isnan(self.round_trip("bf16", [float("nan")])[0]))
        arrays = self.round_trip(("bfloat16", (None,)), [np.array(values, "f4"), np.array(values)])
        for found in arrays:
            self.assertEqual((found.view("<u2").astype("<u4") << 16).view("<f4").tolist(), got)
        self.assertEqual(got[:3], [1.0, 1.0, 1.015625])
        torch = optional("torch")
        self.assertEqual(got, torch.tensor(values).bfloat16().tolist())
        tensor = torch.tensor(values).bfloat16()
        stored = self.round_trip(("bfloat16", (None,)), [tensor])[0]
        self.assertEqual(stored.view("<i2").tolist(), tensor.view(torch.int16).tolist())

    def test_values_that_bfloat16_would_make_infinite_are_refused(self):
        self.assert_says("range", self.round_trip, "bfloat16", [3.4e38])
        self.assert_says("range", self.round_trip, ("bfloat16", (1,)), [np.array([-3.4e38], "f4")])

    def test_a_commit_inside_with_is_the_one(self):
        with penstock.Writer(self.path(), {"x": "int32"}) as w:
            w.add(x=1)
            w.commit()
        self.assertEqual(len(penstock.Dataset(self.path())), 1)

    def test_arrays_keep_shape_and_values(self):
        a = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
        for field, values in [
            (("int32", (2, 3, 4)), [a, a[::-1], a.tolist(), np.asfortranarray(a), a.astype(">i4")]),
            (("int32", (None, 3, 4)), [a, a[:0], np.concatenate([a, a])]),
            (("int32", (None, 3, None)), [a, a[:0], a[:, :, :1]]),
            (penstock.Field("int32", (None, None, None), "zstd"), [a] * 50),
        ]:
            for got, value in zip(self.round_trip(field, values), values):
                np.testing.assert_array_equal(got, value)
                self.assertEqual(got.dtype, np.dtype("<i4"))
                self.assertTrue(got.flags.writeable)

    def test_arrays_change_their_type_only_without_loss_of_meaning(self):
        self.assertEqual(
            self.round_trip(("uint8", (None,)), [np.array([0, 255]), [1, 2], np.array([True])])[0].tolist(),
            [0, 255],
        )
        self.assertEqual(
            self.round_trip(("float32", (None,)), [np.array([1, 2]), [0.5], []])[1].tolist(), [0.5]
        )
        for field, value, words in [
            (("uint8", (None,)), np.array([256]), "256"),
            (("uint8", (None,)), np.array([-1]), "-1"),
            (("int64", (None,)), np.array([0.5]), "float64"),
            (("float16", (None,)), np.array([1e9]), "range"),
            (("float32", (2,)), np.zeros(3), "(3,)"),
            (("float32", (2,)), np.zeros((2, 2)), "dimensions"),
            (("float32", (None,)), np.array(["a"]), "U1"),
            (("float32", (None,)), [[1], [1, 2]], "x"),
        ]:
            self.assert_says(words, self.round_trip, field, [value])

    def test_text_and_bytes(self):
        self.assertEqual(self.round_trip("utf8", ["", "é\0€😀"]), ["", "é\0€😀"])
        self.assertEqual(
            self.round_trip("bytes", [b"\0\xff", bytearray(b"a"), memoryview(b"b"), np.array([1, 2], "u1")]),
            [b"\0\xff", b"a", b"b", b"\1\2"],
        )
        self.assert_says("UTF-8", self.round_trip, "utf8", ["\ud800"])
        self.assert_says("text", self.round_trip, "utf8", [b"a"])
        self.assert_says("utf8", self.round_trip, "bytes", ["a"])

    def test_flat_arrays_need_no_numpy(self):
        code = (
            "import sys; sys.modules['numpy'] = None\nimport array, penstock\n"
            "schema = {'x': ('int16', (None,)), 's': ('int16', (None, None)), 'y': 'float32'}\n"
            "with penstock.Writer(sys.argv[1], schema) as w:\n"
            "    square = memoryview(b'\\5\\0').cast('h', [1, 1])\n"
            "    w.add(x=array.array('h', [1, -2]), s=square, y=.5)\n"
            "    w.add(x=[3], s=memoryview(b'\\1\\0').cast('h', [1, 1]), y=1)\n"
            "try: w2 = penstock.Writer(sys.argv[1] + 'b', {'x': ('int16', (None,))}); w2.add(x=[70000])\n"
            "except penstock.PenstockError as e: w2.abort(); print(e)\n"
            "try: penstock.Dataset(sys.argv[1])\nexcept ImportError as e: print(e)\n"
            "print(penstock.Dataset(sys.argv[1], ['y'])[0])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, self.path()], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("field x: value is of type list; must be of numbers for int16", done.stdout)
        self.assertIn("pip install numpy", done.stdout)
        self.assertIn("{'y': 0.5}", done.stdout)
        self.assertEqual([r["x"].tolist() for r in penstock.Dataset(self.path())], [[1, -2], [3]])
        self.assertEqual(penstock.Dataset(self.path())[0]["s"].tolist(), [[5]])

    def test_torch_tensors(self):
        torch = optional("torch")
        t = torch.arange(6).reshape(2, 3)
        self.assertEqual(
            self.round_trip(("int64", (2, None)), [t, t.T.contiguous().T])[1].tolist(), t.tolist()
        )
        self.assertEqual(self.round_trip("float32", [torch.tensor(0.5, requires_grad=True)]), [0.5])
        chw = torch.from_numpy(picture()).permute(2, 0, 1)
        for pixels in self.round_trip("image", [chw, chw.permute(1, 2, 0)]):
            np.testing.assert_array_equal(pixels, picture())


class Images(Case):
    def test_files_come_back_byte_for_byte_and_pixels_as_they_were(self):
        image = optional("PIL.Image")
        files = [image_file(1), image_file(2, "PNG")]
        gray = picture(3)[:, :, 0]
        with penstock.Writer(self.path(), {"x": "image"}) as w:
            for value in [
                *files,
                picture(4),
                picture(4)[::-1],
                image.fromarray(picture(5)),
                image.fromarray(gray),
                gray,
                gray[:, :, None],
                bytearray(files[0]),
            ]:
                w.add(x=value)
        d = penstock.Dataset(self.path())
        self.assertEqual([d[0]["x"], d[1]["x"], d[8]["x"]], [*files, files[0]])
        rgb = penstock.Dataset(self.path(), decode=True)
        for i, pixels in enumerate([picture(4), picture(4)[::-1], picture(5), gray, gray, gray]):
            np.testing.assert_array_equal(d[i + 2]["x"], pixels)
            wanted = pixels if pixels.ndim == 3 else np.repeat(gray[:, :, None], 3, 2)
            np.testing.assert_array_equal(rgb[i + 2]["x"], wanted)
        self.assertEqual(d.fields["x"].encodings, {"jpeg": 2, "png": 1, "pixels": 6})

    def test_all_images_of_a_record_may_be_pixels(self):
        with penstock.Writer(self.path(), {"a": "image", "b": "image", "c": "image"}) as w:
            w.add(a=image_file(), b=picture(1), c=picture(2, 7, 5))
        record = penstock.Dataset(self.path())[0]
        np.testing.assert_array_equal(record["b"], picture(1))
        np.testing.assert_array_equal(record["c"], picture(2, 7, 5))

    def test_pixels_of_1_3_and_4_channels_of_8_and_16_bits_come_back(self):
        rng = np.random.default_rng(3)
        shapes = [(7, 5), (7, 5, 1), (7, 5, 3), (7, 5, 4)]
        arrays = [rng.integers(0, 2**bits, shape, f"u{bits // 8}") for shape in shapes for bits in (8, 16)]
        swapped = arrays[5].astype(">u2")
        with penstock.Writer(self.path(), {"x": "image"}) as w:
            for array in [*arrays, swapped]:
                w.add(x=array)
        d, rgb = penstock.Dataset(self.path()), penstock.Dataset(self.path(), decode=True)
        for i, array in enumerate([*arrays, arrays[5]]):
            found = d[i]["x"]
            self.assertEqual(found.dtype, array.dtype)
            np.testing.assert_array_equal(found, array[:, :, 0] if array.shape[2:] == (1,) else array)
            if array.dtype == "u2" and found.ndim == 2:
                self.assertIsInstance(self.assert_says("16-bit gray", rgb.get, i, "x"), penstock.UnsupportedError)
                continue
            high = array if array.dtype == "u1" else (array >> 8).astype("u1")
            high = high[:, :, None] if high.ndim == 2 else high
            np.testing.assert_array_equal(rgb[i]["x"], np.broadcast_to(high[:, :, :3], (7, 5, 3)))

    def test_pil_images_keep_gray_and_alpha(self):
        image = optional("PIL.Image")
        rgba = image.fromarray(np.dstack([picture(1), picture(2)[:, :, 0]]), "RGBA")
        given = [rgba, rgba.convert("LA"), rgba.convert("L"), rgba.convert("1"), rgba.convert("CMYK")]
        with penstock.Writer(self.path(), {"x": "image"}) as w:
            for value in given:
                w.add(x=value)
        found = [record["x"] for record in penstock.Dataset(self.path())]
        for array, value, mode in zip(found, given, ("RGBA", "RGBA", "L", "L", "RGB")):
            np.testing.assert_array_equal(array, np.asarray(value.convert(mode)))

    def test_values_that_are_no_images_are_refused_and_the_rest_is_written(self):
        with penstock.Writer(self.path(), {"key": "utf8", "x": "image"}) as w:
            w.add(key="a", x=image_file())
            for wrong in [
                "file.jpg",
                np.zeros((4, 4, 2), np.uint8),
                np.zeros((4, 4, 3), np.int16),
                np.zeros((4, 4, 3)),
                np.zeros((0, 4, 3), np.uint8),
                5,
            ]:
                self.assertEqual(self.assert_says("field x", w.add, key="b", x=wrong).__class__, FieldError)
            self.assertIsInstance(
                self.assert_says("x", w.add, key="b", x=b"GIF89a"), penstock.CorruptRecordError
            )
            w.add(key="c", x=picture())
        self.assertEqual([r["key"] for r in penstock.Dataset(self.path())], ["a", "c"])


class Endings(Case):
    def test_nothing_replaces_no_data_set(self):
        with self.assertRaisesRegex(penstock.SettingsError, "no record was added"):
            with penstock.Writer(self.path(), {"i": "int64"}):
                pass
        self.assertFalse(os.path.exists(self.path()))
        for n in (3, 0):
            with contextlib.suppress(penstock.SettingsError), \
                    penstock.Writer(self.path(), {"i": "int64"}, overwrite=True) as writer:
                for i in range(n):
                    writer.add(i=i)
        self.assertEqual(len(penstock.Dataset(self.path())), 3)

    def test_leaving_with_an_exception_leaves_nothing(self):
        for error in (RuntimeError, KeyboardInterrupt):
            with self.assertRaises(error), penstock.Writer(self.path(), {"x": "int8"}) as w:
                w.add(x=1)
                raise error
        self.assertEqual(self.left(), [])
        w = penstock.Writer(self.path(), {"x": "int8"})
        w.abort()
        w.abort()
        self.assert_says(["aborted", "open another"], w.add, x=1)
        self.assertEqual(self.left(), [])

    def test_commit_ends_it(self):
        w = penstock.Writer(self.path(), {"x": "int8"}, note="a note", names=["no", "yes"])
        w.add({"x": 1})
        w.add({}, x=2)
        self.assertEqual(w.n_samples, 2)
        w.commit()
        w.abort()
        self.assert_says("committed", w.add, x=1)
        self.assert_says("committed", w.commit)
        d = penstock.Dataset(self.path())
        self.assertEqual((len(d), d.names), (2, ("no", "yes")))

    def test_a_data_set_is_replaced_only_when_asked_and_at_the_end(self):
        def write(value, **settings):
            with penstock.Writer(self.path(), {"x": "int8"}, **settings) as w:
                w.add(x=value)

        write(1)
        self.assertEqual(self.assert_says(["already", "overwrite=True"], write, 2).code, "PSTK_EEXIST")
        write(3, overwrite=True)
        self.assertEqual(penstock.Dataset(self.path())[0]["x"], 3)
        self.assert_says("must be from -128 to 127", write, 300, overwrite=True)
        self.assertEqual(penstock.Dataset(self.path())[0]["x"], 3)

    def test_a_manifest_of_another_program_is_no_data_set_to_replace(self):
        with penstock.Writer(self.path("part"), {"x": "int8"}) as w:
            w.add(x=1)
        os.mkdir(self.path())
        with open(self.path("data/manifest.json"), "w") as file:
            file.write('{"name": "app"}')
        for make in (
            lambda overwrite: penstock.Writer(self.path(), {"x": "int8"}, overwrite=overwrite),
            lambda overwrite: merge([self.path("part")], self.path(), overwrite=overwrite),
        ):
            for overwrite in (False, True):
                parts = [self.path(), "another program wrote its manifest.json", "directory"]
                error = self.assert_says(parts, make, overwrite)
                self.assertIsInstance(error, penstock.DataSetExistsError)
                self.assertNotIn("overwrite", str(error))

    def lost(self, code):
        """Return the stderr of a program that ends with status 0; w is a writer of x, int8."""
        done = sets.python(f"import sys, penstock\nw = penstock.Writer(sys.argv[1], {{'x': 'int8'}})\n{code}", self.path())
        self.assertEqual((done.returncode, self.left()), (0, []), done.stderr)
        return done.stderr.replace(self.path(), "PATH")

    def test_a_writer_that_is_forgotten_prints_one_line_with_path_and_count(self):
        line = ("penstock: the writer of PATH was neither committed nor used with `with`: its %s lost (call commit(), or write "
                "`with penstock.Writer(...) as w:`)\n")
        for code, what in (("for i in range(1234): w.add(x=1)", "1,234 records are"), ("w.add(x=1)", "1 record is")):
            with self.subTest("at exit"):
                self.assertEqual(self.lost(code), line % what)
        self.assertEqual(self.lost("w.add(x=1)\ndel w\nprint(3, file=sys.stderr)"), line % "1 record is" + "3\n")

    def test_a_writer_that_a_process_of_multiprocessing_forgets_prints_the_line(self):
        """Such a child that was forked ends by os._exit, and runs nothing of atexit."""
        begin = ("import multiprocessing, threading, time\nfrom concurrent.futures import ProcessPoolExecutor\nfork = multiprocessing.get_context('fork')\n"
                 "w.abort()\n"
                 "def work(_):\n    global w\n    w = penstock.Writer(sys.argv[1], {'x': 'int8'})\n    w.add(x=1)\n")
        for code in ("p = fork.Process(target=work, args=(0,))\np.start()\np.join()\nassert p.exitcode == 0",
                     "with fork.Pool(1) as p:\n    p.map(work, [0])\n    p.close()\n    p.join()",
                     "with ProcessPoolExecutor(1, mp_context=fork) as p: list(p.map(work, [0]))"):
            with self.subTest(code):
                self.assertIn("its 1 record is lost", self.lost(begin + code))

    def test_a_spawned_process_commits_what_it_registered(self):
        program = self.path("program.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write("""
import atexit, multiprocessing, sys, penstock
def work(path):
    w = penstock.Writer(path, {"x": "int8"})
    w.add(x=1)
    atexit.register(w.commit)
if __name__ == "__main__":
    p = multiprocessing.get_context("spawn").Process(target=work, args=(sys.argv[1],))
    p.start()
    p.join()
    assert p.exitcode == 0
""")
        code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        done = sets.python(code, program, self.path())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(penstock.Dataset(self.path())), 1)

    def test_a_forked_process_waits_for_no_lock_of_its_parent(self):
        sets.python("""
import multiprocessing, sys, penstock
from penstock.monitor import Webhook
hook = Webhook("http://127.0.0.1:9/x")
hook._start()
def work():
    with penstock.Writer(sys.argv[1], {"x": "int8"}) as w:
        w.add(x=1)
hook._lock.acquire()  # as while another thread hands over an alert
p = multiprocessing.get_context("fork").Process(target=work)
p.start()
hook._lock.release()
p.join(30)
assert p.exitcode == 0, p.exitcode
hook.close()
""", self.path())
        self.assertEqual(len(penstock.Dataset(self.path())), 1)

    def test_a_thread_that_outlives_the_function_of_such_a_process_commits(self):
        sets.python("""
import multiprocessing, sys, threading, time, penstock
def work():
    w = penstock.Writer(sys.argv[1], {"x": "int8"})
    def commit():
        time.sleep(0.2)
        w.add(x=1)
        w.commit()
    threading.Thread(target=commit).start()
p = multiprocessing.get_context("fork").Process(target=work)
p.start()
p.join()
""", self.path())
        self.assertEqual(len(penstock.Dataset(self.path())), 1)

    def test_a_way_out_of_with_that_python_does_not_report_prints_the_line(self):
        line = "penstock: %s left `with` of the writer of PATH: its 2 records are lost (leave `with` first)\n"
        body = "with w:\n        w.add(x=1)\n        w.add(x=2)\n        "
        self.assertEqual(self.lost("if 1:\n    " + body + "sys.exit()"), line % "SystemExit")
        self.assertEqual(self.lost("def f():\n    " + body + "yield\nfor i in f(): break"), line % "GeneratorExit")

    def test_a_writer_that_was_ended_prints_nothing(self):
        for code in ("", "w.abort()", "w.add(x=1)\nw.abort()", "import shutil\nw.add(x=1)\nw.commit()\nshutil.rmtree(w.path)"):
            self.assertEqual(self.lost(code), "")
        self.assertEqual(self.lost("w.add(x=1)\ntry:\n    with w: 1 / 0\nexcept ZeroDivisionError: pass"), "")
        self.assertEqual(self.lost("w.add(x=1)\nsys.stderr = None"), "")

    def test_a_forked_child_may_neither_write_nor_remove(self):
        w = penstock.Writer(self.path(), {"x": "int8"})
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            holder = threading.Thread(target=w._lock.acquire)  # a thread of the parent, at work as it forked
            holder.start()
            holder.join()
            try:
                w.add(x=1)
            except penstock.ForkedError:
                w.abort()
                del w
                gc.collect()
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        w.add(x=2)
        w.commit()
        self.assertEqual([r["x"] for r in penstock.Dataset(self.path())], [2])

    def test_names_of_fields(self):
        with penstock.Writer(self.path(), {"image": "bytes", "a.b": "int8"}) as w:
            self.assert_says(["imag", "did you mean 'image'"], w.add, {"imag": b"", "a.b": 1})
            self.assert_says(["a.b", "no value"], w.add, image=b"")
            self.assert_says("more", w.add, {"image": b"", "a.b": 1}, more=1)
            w.add({"image": b""}, **{"a.b": 1})

    def test_settings(self):
        for settings, words in [
            (dict(shard_size="256M"), "shard_size"),
            (dict(shard_size=5), "shard_size"),
            (dict(n_threads=-1), "n_threads"),
            (dict(part=2, n_parts=2), "part"),
            (dict(note="a\0"), "note"),
            (dict(names=[1]), "names"),
        ]:
            error = self.assert_says(words, penstock.Writer, self.path(), {"x": "int8"}, **settings)
            self.assertIsInstance(error, penstock.SettingsError)
        self.assert_says("directory", penstock.Writer, 5, {"x": "int8"})
        self.assertEqual(self.left(), [])

    def test_shards_and_parts(self):
        rows = [os.urandom(10000) for _ in range(40)]
        with penstock.Writer(self.path("whole"), {"x": "bytes"}, shard_size=1 << 16) as w:
            for row in rows:
                w.add(x=row)
        for part in (0, 1):
            with penstock.Writer(self.path(f"part{part}"), {"x": "bytes"}, part=part, n_parts=2) as w:
                for row in rows[20 * part : 20 * part + 20]:
                    w.add(x=row)
        merge([self.path("part1"), self.path("part0")], self.path("merged"))
        whole, merged = penstock.Dataset(self.path("whole")), penstock.Dataset(self.path("merged"))
        self.assertGreater(whole.info.n_shards, 4)
        self.assertEqual(whole.info.identity, merged.info.identity)
        self.assertEqual([r["x"] for r in merged], rows)
        self.assert_says("missing", merge, [self.path("part1")], self.path("again"))

        parts = [self.path("part0"), self.path("part1")]
        self.assertIsInstance(
            self.assert_says([self.path("merged"), "overwrite=True"], merge, parts, self.path("merged")),
            penstock.DataSetExistsError,
        )
        with penstock.Writer(self.path("merged"), {"x": "bytes"}, overwrite=True) as w:
            w.add(x=b"other")
        merge(parts, self.path("merged"), overwrite=True)
        self.assertEqual(penstock.Dataset(self.path("merged")).info.identity, whole.info.identity)

    def test_a_writer_commits_parts_in_place_of_records(self):
        for part in (0, 1):
            with penstock.Writer(self.path(f"part{part}"), {"x": "int64"}, part=part, n_parts=2) as w:
                w.add(x=part)
        parts = [self.path("part0"), self.path("part1")]
        with penstock.Writer(self.path(), {"x": "int64"}) as w:
            self.assert_says("another writer", merge, parts, self.path(), overwrite=True)
            w.commit_parts(parts)
        self.assertEqual([r["x"] for r in penstock.Dataset(self.path())], [0, 1])
        self.assert_says("committed", w.commit_parts, parts)
        w = penstock.Writer(self.path(), {"x": "int64"}, overwrite=True)
        w.add(x=5)
        self.assert_says("records were added", w.commit_parts, parts)
        self.assertEqual([r["x"] for r in penstock.Dataset(self.path())], [0, 1])

    def test_threads_take_turns(self):
        with penstock.Writer(self.path(), {"x": "int64", "y": ("int64", (4,))}) as w:

            def work(k):
                for i in range(300):
                    w.add(x=k * 300 + i, y=np.full(4, k * 300 + i))

            threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        records = list(penstock.Dataset(self.path()))
        self.assertEqual(sorted(r["x"] for r in records), list(range(1200)))
        self.assertTrue(all(r["y"].tolist() == [r["x"]] * 4 for r in records))

    def test_a_field_error_survives_pickling(self):
        import pickle

        error = pickle.loads(pickle.dumps(FieldError("cls", "is wrong")))
        self.assertEqual((str(error), error.field), ("field cls: is wrong", "cls"))

    def test_array_module(self):
        with penstock.Writer(self.path(), {"x": ("float64", (None,))}) as w:
            w.add(x=array.array("d", [1, 2]))
        self.assertEqual(penstock.Dataset(self.path())[0]["x"].tolist(), [1.0, 2.0])


def struck(n, what, function):
    """Call it, with `what` done at the n-th step of writer.py on the way, as a signal's handler might do.
    False: it has fewer steps."""
    left = n

    def strike(frame, _event, _argument):
        nonlocal left
        if os.path.basename(frame.f_code.co_filename) != "writer.py":
            return None
        left -= 1
        if left == 0:
            sys.settrace(None)
            what()
        return strike

    sys.settrace(strike)
    try:
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
        del strike  # strike refers to itself, and so would keep what it refers to
    return left <= 0


FAILED = "closed after a commit that failed"


def interrupt():
    raise KeyboardInterrupt


class Interrupts(Case):
    """At each step in turn."""

    def state(self, w):
        return repr(w).rpartition(": ")[2]

    def check(self, state):
        """All is there of a writer that says so, nothing of another, and the place is free."""
        self.assertEqual(os.path.exists(self.path()), state == "committed")
        if state == "committed":
            self.assertEqual([r["x"] for r in penstock.Dataset(self.path())], [1])
        penstock.Writer(self.path(), {"x": "int8"}, overwrite=True).abort()
        shutil.rmtree(self.path(), ignore_errors=True)

    def test_an_interrupt_leaves_all_or_nothing_and_a_free_place(self):
        for end, wanted in (("commit", {"aborted", "committed"}), ("abort", {"aborted"})):
            states = set()
            for n in itertools.count(1):
                w = penstock.Writer(self.path(), {"x": "int8"})
                was_struck = struck(n, interrupt, lambda w=w: (w.add(x=1), getattr(w, end)()))
                w.abort()
                states.add(self.state(w))
                self.check(self.state(w))
                if not was_struck:
                    break
            self.assertGreater(n, 10)
            self.assertEqual(states, wanted)

    def test_a_writer_that_was_interrupted_may_be_forgotten(self):
        parts = [self.path("part")]
        with penstock.Writer(parts[0], {"x": "int8"}) as w:
            w.add(x=1)
        for n in itertools.count(1):
            w = penstock.Writer(self.path(), {"x": "int8"})
            was_struck = struck(n, interrupt, lambda w=w: w.commit_parts(parts))
            state = self.state(w)
            with contextlib.redirect_stderr(io.StringIO()) as told:
                del w
            self.assertEqual(told.getvalue(), "")  # it has no records to lose
            self.check(state)
            if not was_struck:
                break
        self.assertEqual(state, "committed")

    def test_an_interrupt_while_it_opens_leaves_nothing(self):
        for n in itertools.count(1):
            made = []
            if not struck(n, interrupt, lambda: made.append(penstock.Writer(self.path(), {"x": "int8"}))):
                made.pop().abort()
                break
            self.assertEqual(made, [])
            self.check("aborted")

    def test_a_handler_may_look_and_abort(self):
        for name, wanted in (("n_samples", {"committed"}), ("abort", {"aborted", "committed", FAILED})):
            states = set()
            for n in itertools.count(1):
                w = penstock.Writer(self.path(), {"x": "int8"})

                def handle(w=w, name=name):
                    if name == "abort":
                        w.abort()
                    elif self.state(w) == "open":
                        self.assertIn(w.n_samples, (0, 1))

                was_struck = True
                try:
                    was_struck = struck(n, handle, lambda w=w: (w.add(x=1), w.commit()))
                except penstock.SettingsError as error:
                    self.assertIn("open another", str(error))
                states.add(self.state(w))
                self.check(self.state(w))
                if not was_struck:
                    break
            self.assertEqual(states, wanted)

    def test_a_handler_may_not_add_or_commit_while_the_writer_does(self):
        with penstock.Writer(self.path(), {"x": "int8"}) as w:
            append = w._append
            for inner in (lambda: w.add(x=2), w.commit, lambda: w.commit_parts([])):

                def handled(*arguments, inner=inner):
                    self.assert_says(["handler", "flag"], inner)
                    append(*arguments)

                w._append = handled
                w.add(x=1)
        self.assertEqual([r["x"] for r in penstock.Dataset(self.path())], [1, 1, 1])
