# SPDX-License-Identifier: Apache-2.0
"""penstock.pack: any source, by one process or several, gives the same data set, or nothing."""

import collections
import contextlib
import dataclasses
import glob
import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import unittest.mock
import warnings

import penstock
import sets
from data_fixture import Case, image_file, np, optional, picture
from penstock.packing import pack as packing
from penstock.cores import n_cores
from penstock.packing.pack import PackError, SchemaError
from penstock.packing.samples import inferred_schema
from penstock.packing.schema import schema_of

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Row:
    text: str
    number: float


class Source:
    """Map-style: n records, of which one may fail, stop its process, or be of another kind."""

    def __init__(self, n=100, bad=None, how="raise"):
        self.n, self.bad, self.how = n, bad, how

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.bad:
            if self.how == "raise":
                raise KeyError("no such file")
            if self.how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "odd":
                raise Odd("a", "b")
            return {"x": "text", "a": np.zeros(3)}
        return {"x": i, "a": np.full(i % 4 + 1, i, "i4")}


class Odd(Exception):
    """Cannot be unpickled."""

    def __init__(self, a, b):
        super().__init__(a + b)
        self.b = b


def quiet(*arguments, **keywords):
    return penstock.pack(*arguments, progress=False, **keywords)


class Parallel(Case):
    def check(self, d, n=100):
        self.assertEqual([r["x"] for r in d], list(range(n)))
        self.assertTrue(all(r["a"].tolist() == [i] * (i % 4 + 1) for i, r in enumerate(d)))

    def test_the_number_of_processes_does_not_matter(self):
        found = set()
        for workers in (None, 0, 1, 2, 3, 100, 200):
            d = quiet(Source(), self.path(), num_workers=workers, overwrite=True)
            self.check(d)
            found.add(d.info.identity)
        self.assertEqual(len(found), 1)
        self.check(quiet(Source(), self.path("spawned"), num_workers=2, context="spawn"))
        self.assertEqual(self.left(), ["data", "spawned"])
        self.assertEqual(d.schema, {"x": penstock.Field("int64"), "a": penstock.Field("int32", (None,))})

    def test_an_error_names_the_sample_and_leaves_nothing(self):
        for workers in (0, 2):
            for bad in (33, 99):
                source = Source(bad=bad)
                error = self.assert_says(
                    [f"sample {bad}", "KeyError", "no such file"],
                    quiet,
                    source,
                    self.path(),
                    num_workers=workers,
                    schema={"x": int, "a": ("int32", (None,))},
                )
                self.assertIsInstance(error, PackError)
                self.assertEqual(error.sample, bad)
                self.assertIsInstance(error.__cause__, KeyError)
                self.assertEqual(self.left(), [])
        error = self.assert_says("sample 33", quiet, Source(bad=33, how="odd"), self.path(), num_workers=2)
        self.assertIn("__getitem__", str(error.__cause__))  # it says where the error was
        self.assert_says(
            ["sample 33", "field x", "str"], quiet, Source(bad=33, how="type"), self.path(), num_workers=2
        )
        self.assertEqual(self.left(), [])

    def test_a_worker_that_is_killed_is_named(self):
        error = self.assert_says(
            ["samples 0 to 49", "SIGKILL", "memory"],
            quiet,
            Source(bad=33, how="die"),
            self.path(),
            num_workers=2,
        )
        self.assertIsInstance(error, PackError)
        self.assertEqual(self.left(), [])

    def test_a_data_set_stays_until_the_new_one_is_whole(self):
        quiet(Source(7), self.path())
        os.mkdir(self.path("data/folder"))
        with open(os.path.join(self.path(), "README"), "w") as file:
            file.write("mine")
        before = sorted(os.listdir(self.path()))
        for workers in (0, 2):
            self.assertEqual(
                self.assert_says(
                    [self.path(), "already", "overwrite=True"],
                    quiet,
                    Source(),
                    self.path(),
                    num_workers=workers,
                ).code,
                "PSTK_EEXIST",
            )
            self.assert_says(
                "sample 60", quiet, Source(bad=60), self.path(), num_workers=workers, overwrite=True
            )
            self.assertEqual(sorted(os.listdir(self.path())), before)
            self.assertEqual(len(penstock.Dataset(self.path())), 7)
        for workers in (2, 0):
            self.check(quiet(Source(), self.path(), num_workers=workers, overwrite=True))
            self.assertLess({"README", "folder"}, set(os.listdir(self.path())))
            data = penstock.Dataset(self.path())
            self.assertEqual(len(os.listdir(self.path())), 3 + data.info.n_shards * (1 + len(data.columns)))
        self.assertEqual(self.left(), ["data"])

    def test_two_packs_do_not_meet(self):
        with penstock.Writer(self.path(), {"x": "int8"}) as w:
            self.assertEqual(
                self.assert_says("another writer", quiet, Source(), self.path(), num_workers=2).code,
                "PSTK_EBUSY",
            )
            w.abort()
        self.check(quiet(Source(), self.path(), num_workers=2))
        self.assertEqual(self.left(), ["data"])

    def test_only_what_a_pack_of_this_data_set_left_goes(self):
        marker = ".penstock-parts"
        # a user's, and those of packs of other data sets
        stay = [".data.parts", ".data.parts-mine", ".data.parts-abcdefgh",
                f".data.parts-x.parts-abcd_234/{marker}", f".other.parts-abcd_234/{marker}"]
        gone = [f".data.parts-abcd_234/{marker}", ".data.parts-abcd_234/part-00000",
                f".data.parts-01234567/{marker}"]
        stay.append(f"elsewhere/{marker}")
        for name in stay + gone:
            directory, name = os.path.split(name) if name.endswith(marker) else (name, None)
            os.makedirs(self.path(directory), exist_ok=True)
            if name:
                open(self.path(os.path.join(directory, name)), "x").close()
        os.symlink(self.path("elsewhere"), self.path(".data.parts-linked_1"))
        stay.append(".data.parts-linked_1")
        self.check(quiet(Source(), self.path(), num_workers=2))
        for name in stay:
            self.assertTrue(os.path.exists(self.path(name)), name)
        self.assertEqual(self.left(), sorted({name.split("/")[0] for name in stay} | {"data"}))

    def test_the_error_advises_num_workers_0_if_parts_cannot_be_made(self):
        long = self.path("x" * 250)  # the directory next to it has a longer name
        self.assert_says(["next to it", "too long", "num_workers=0"], quiet, Source(), long, num_workers=2)
        self.assertEqual(self.left(), [])
        self.check(quiet(Source(), long, num_workers=0))

    def test_a_pack_that_begins_as_another_ends_keeps_its_parts(self):
        """The other's data set is there, its parts are not gone yet."""
        commit, seen = packing.Writer.commit_parts, []

        def commit_parts(writer, parts):
            seen.append(os.path.dirname(parts[0]))
            commit(writer, parts)
            if len(seen) == 1:
                self.check(quiet(Source(), self.path(), num_workers=2, overwrite=True))
                self.assertFalse(os.path.exists(seen[0]))

        with unittest.mock.patch.object(packing.Writer, "commit_parts", commit_parts):
            self.check(quiet(Source(), self.path(), num_workers=2))
        self.assertEqual(len(set(seen)), 2)
        self.assertEqual(self.left(), ["data"])

    def stopped(self, workers, stop, context="fork"):
        """Stop a program in the midst of packing. Return its status and the seconds that took."""
        code = (
            "import os, sys, time, penstock\n"
            "class S:\n"
            "    def __len__(self): return 100000\n"
            "    def __getitem__(self, i): time.sleep(.002); return {'x': i}\n"
            "if __name__ == '__main__':\n"
            "    try: penstock.pack(S(), sys.argv[1], num_workers=int(sys.argv[2]), context=sys.argv[3])\n"
            "    except KeyboardInterrupt: sys.exit(130)\n"
        )
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(code)
            program.flush()
            process = subprocess.Popen(
                [sys.executable, program.name, self.path(), str(workers), context], start_new_session=True
            )
            wanted = self.path(f".data.parts-*/part-{workers - 1:05}") if workers else self.path()
            while not glob.glob(wanted):
                time.sleep(0.01)
                self.assertIsNone(process.poll())
            time.sleep(0.3)
            start = time.monotonic()
            stop(process)
            return process.wait(), time.monotonic() - start

    def test_ctrl_c_leaves_nothing(self):
        for workers, context in ((0, "fork"), (2, "fork"), (2, "spawn")):
            status, seconds = self.stopped(workers, lambda p: os.killpg(p.pid, signal.SIGINT), context)
            self.assertEqual(status, 130)
            self.assertLess(seconds, 30)  # some 70 ms on an idle machine; to the end it would take minutes
            self.assertEqual(self.left(), [])

    def test_after_sigkill_workers_end_and_the_next_pack_cleans_up(self):
        self.stopped(2, lambda p: p.kill())
        until = time.monotonic() + 120
        while True:  # the workers hold the lock until they are gone
            try:
                self.check(quiet(Source(), self.path(), num_workers=2))
                break
            except penstock.PenstockError as error:
                self.assertEqual(error.code, "PSTK_EBUSY")
                self.assertLess(time.monotonic(), until)
                time.sleep(0.05)
        self.assertEqual(self.left(), ["data"])

    def test_settings_are_refused_before_any_sample_is_asked_for(self):
        class Untouched(Source):
            def __getitem__(self, i):
                raise AssertionError("was asked for a sample")

        for settings, words in [
            (dict(num_workers=-1), "num_workers"),
            (dict(num_workers=2.5), "num_workers"),
            (dict(context="thread"), "spawn"),
            (dict(shard_size=1), "shard_size"),
            (dict(schema={"x": "imge"}), "image"),
        ]:
            self.assertIsInstance(
                self.assert_says(words, quiet, Untouched(), self.path(), **settings), penstock.SettingsError
            )
        with open(self.path("file"), "w"):
            pass
        self.assert_says("file", quiet, Untouched(), self.path("file"))
        self.assert_says("dataset: value has no samples", quiet, Source(0), self.path())
        self.assertEqual(self.left(), ["file"])

    def test_torch_data_sets(self):
        torch = optional("torch")
        data = torch.utils.data
        x, y = torch.arange(60.0).reshape(20, 3), torch.arange(20)
        for workers in (0, 2):
            d = quiet(
                data.Subset(data.TensorDataset(x, y), range(5, 15)),
                self.path(),
                num_workers=workers,
                overwrite=True,
            )
            self.assertEqual(
                [(r["0"].tolist(), r["1"]) for r in d], [(x[i].tolist(), i) for i in range(5, 15)]
            )

        class Stream(data.IterableDataset):
            def __iter__(self):
                return iter([{"t": torch.zeros(i, dtype=torch.bfloat16)} for i in range(5)])

            def __len__(self):
                return 5

        d = quiet(Stream(), self.path("stream"))
        self.assertEqual(d.schema, {"t": penstock.Field("bfloat16", (None,))})
        self.assertEqual(len(d), 5)
        self.assert_says("loader.dataset", quiet, data.DataLoader(data.TensorDataset(x)), self.path("no"))

    def test_an_iterable_may_fill_the_same_object_for_each_sample(self):
        def arrays():
            x = np.zeros(3, "int64")
            for i in range(12):
                x[:] = i
                yield {"x": x}

        def dicts():
            sample = {}
            for i in range(12):
                sample["x"] = i
                sample["many"] = [np.full(2, i)]
                yield sample

        for name, samples in (("arrays", arrays), ("dicts", dicts)):
            made = penstock.pack(samples(), self.path(name), progress=False)
            self.assertEqual([int(np.ravel(sample["x"])[0]) for sample in made], list(range(12)))

    def test_an_iterable_that_ends_before_its_len_is_packed_with_a_warning(self):
        class Promising:
            def __init__(self, promised):
                self.promised = promised

            def __len__(self):
                if self.promised is None:
                    raise NotImplementedError
                return self.promised

            def __iter__(self):
                return iter([{"x": 1}, {"x": 2}])

        for promised, said in ((5, "penstock.pack: the Promising gave 2 samples, and its len is 5: it may have ended early"),
                               (1, "gave 2 samples, and its len is 1: its len is wrong, or samples came twice"), (2, None), (None, None)):
            with self.subTest(promised=promised), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = penstock.pack(Promising(promised), self.path(f"promised-{promised}"), progress=False)
                self.assertEqual(len(made), 2)
                self.assertEqual(len(caught), int(said is not None))
                if said is not None:
                    self.assertIn(said, str(caught[0].message))
                    self.assertEqual(caught[0].filename, __file__)


class Forms(Case):
    def test_samples_of_every_form(self):
        jpeg = image_file()
        image = optional("PIL.Image").fromarray(picture())
        for samples, schema, first in [
            ([{"t": "a", "n": 1}, {"n": 2, "t": "b"}], {"t": "utf8", "n": "int64"}, {"t": "a", "n": 1}),
            ([(jpeg, 3)], {"image": "image", "cls": "int64"}, {"image": jpeg, "cls": 3}),
            ([(image, np.int32(3))], {"image": "image", "cls": "int32"}, None),
            (
                [(b"x", "y", 1.5)],
                {"0": "bytes", "1": "utf8", "2": "float64"},
                {"0": b"x", "1": "y", "2": 1.5},
            ),
            ([Pair(1, True)], {"left": "int64", "right": "uint8"}, {"left": 1, "right": 1}),
            ([Row("a", 1)], {"text": "utf8", "number": "int64"}, {"text": "a", "number": 1}),
            (
                [Row("a", 1), Row("b", 1.5)],
                {"text": "utf8", "number": "float64"},
                {"text": "a", "number": 1.0},
            ),
            ([jpeg], {"image": "image"}, {"image": jpeg}),
            ([5, 6], {"data": "int64"}, {"data": 5}),
            (["a"], {"data": "utf8"}, {"data": "a"}),
            ([{"p": picture()}], {"p": "image"}, None),
            ([{"l": [1, 2]}, {"l": []}], {"l": ("int64", (None,))}, None),
        ]:
            for source in (samples, iter(samples)):
                d = quiet(source, self.path(), overwrite=True)
                self.assertEqual(d.schema, schema_of(schema))
                if first is not None:
                    self.assertEqual(d[0], first)

    def test_a_schema_names_tuples_and_casts(self):
        d = quiet([(1, [1, 2]), (2, [3])], self.path(), schema={"y": "uint8", "x": ("float32", (None,))})
        self.assertEqual([(r["y"], r["x"].tolist()) for r in d], [(1, [1, 2]), (2, [3])])
        self.assert_says(
            ["sample 0", "2 values", "must have 1, one for each field: y"], quiet, [(1, 2)], self.path("b"),
            schema={"y": "uint8"},
        )

    def test_columns(self):
        d = quiet({"x": np.arange(50), "t": [str(i) for i in range(50)]}, self.path(), num_workers=2)
        self.assertEqual([(r["x"], r["t"]) for r in d], [(i, str(i)) for i in range(50)])
        self.assert_says(["x: 3", "y: 2"], quiet, {"x": np.zeros(3), "y": np.zeros(2)}, self.path("b"))
        self.assert_says("columns", quiet, {"x": 3}, self.path("b"))

    def test_our_own_data_sets_repack_with_schema_and_names(self):
        first = quiet(Source(40), self.path("a"), names=["p", "q"])
        again = quiet(first, self.path("b"), num_workers=2)
        self.assertEqual((again.info.identity, again.names), (first.info.identity, ("p", "q")))
        some = quiet(penstock.Dataset(self.path("a"), ["x"])[::2], self.path("c"))
        self.assertEqual([r["x"] for r in some], list(range(0, 40, 2)))

    def test_class_names_and_note(self):
        class Named(Source):
            classes = ["cat", "dog"]

        self.assertEqual(quiet(Named(), self.path()).names, ("cat", "dog"))
        with open(os.path.join(self.path(), "manifest.json")) as file:
            self.assertIn("penstock.pack of a Named", file.read())

    def test_schemas_that_cannot_be_found_out(self):
        for samples, words in [
            ([{"x": None}], ["field x", "sample 0 has a null (None, as all samples"]),
            ([{"x": 1}, {"x": "a"}], ["sample 0", "has int, sample 1", "has str"]),
            ([{"x": 1}, {"x": 1}, {"y": 1}], ["fields: ", "has x, sample 2", "has y; must be the same"]),
            ([{"x": np.zeros(2)}, {"x": np.zeros((2, 2))}],
             ["field x", "sample 1", "2 dimensions", "declare"]),
            ([{"x": np.zeros(2, "i4")}, {"x": np.zeros(2)}], ["field x", "has int32, sample 1", "float64"]),
            ([{"x": np.zeros(2, complex)}], ["field x", "complex"]),
            ([{"x": {}}], ["field x", "dict"]),
            ([{"x": image_file()}, {"x": b"notimage"}], ["sample 1", "b'notimage'", "schema={'x': 'bytes'"]),
            ([{"x": picture()}, {"x": picture()[:, :, :1]}], ["sample 1", "ndarray of shape (40, 56, 1)"]),
            ([(image_file(), 1), (b"notimage", 2)], ["sample 1", "first member is not an image"]),
            ([[1, 2, 3], [4, 5]], ["sample 1", "has 0, 1", "give {'tokens': [...]}"]),
        ]:
            self.assertIsInstance(self.assert_says(words, quiet, samples, self.path()), SchemaError)
        self.assertIsInstance(
            self.assert_says("a b", quiet, [{"a b": 1}], self.path()), penstock.SettingsError
        )
        self.assertEqual(self.left(), [])

    def test_samples_are_called_by_the_numbers_that_are_given(self):
        with self.assertRaisesRegex(SchemaError, "sample 3 has int, sample 90 has str"):
            inferred_schema([{"x": 1}, {"x": "a"}], [3, 90])

    def test_a_source_that_is_no_data_set_is_refused(self):
        for source, words in ((np.array(5), "without dimensions"), (5, "dataset: value is of type int; must be")):
            self.assertIsInstance(self.assert_says(words, quiet, source, self.path()), TypeError)
        with unittest.mock.patch.dict(sys.modules, {"numpy": None}):
            error = self.assert_says("pip install numpy", quiet, [{"x": [1, 2]}], self.path())
        self.assertEqual(type(error).__name__, "MissingPackageError")

    def test_damaged_images_are_found_while_packing(self):
        whole = image_file(height=300, width=300)
        samples = [{"im": whole}] * 20 + [{"im": whole[: len(whole) // 2]}] + [{"im": whole}] * 20
        for workers in (0, 2):
            error = self.assert_says(
                ["sample 20", "field im"],
                quiet,
                samples,
                self.path(),
                num_workers=workers,
                schema={"im": "image"},
            )
            self.assertIsInstance(error.__cause__, penstock.CorruptRecordError)
        self.assertEqual(len(quiet(samples, self.path(), check_images=False, schema={"im": "image"})), 41)

    def test_damaged_jpegs_are_refused_or_kept_as_pillow_shows_them(self):
        whole = image_file(height=40, width=56)
        bad = sets.damaged_jpeg(whole)
        samples = [{"im": bad if i % 10 == 3 else whole} for i in range(60)]
        for workers in (0, 2):
            error = self.assert_says(["sample 3", "field im", "damaged='accept'"], quiet, samples, self.path("no"),
                                     num_workers=workers)
            self.assertIsInstance(error.__cause__, penstock.CorruptRecordError)
            data = quiet(samples, self.path(f"kept-{workers}"), num_workers=workers, damaged="accept")
            self.assertEqual(data.fields["im"].n_damaged, 6)
            self.assertEqual((data[3]["im"], data[4]["im"]), (bad, whole))
        cut = [{"im": whole[: len(whole) // 2]}]
        self.assert_says(["sample 0", "im"], quiet, cut, self.path("no"), damaged="accept", schema={"im": "image"})
        with self.assertRaisesRegex(penstock.SettingsError, "damaged: value is 'keep'"):
            penstock.Writer(self.path("no"), {"im": "image"}, damaged="keep")
        outputs = {"im": penstock.image("im", [penstock.ops.CenterCrop((40, 56))])}
        with penstock.Loader(self.path("kept-0"), batch_size=10, framework="numpy", order="sequential",
                             outputs=outputs) as loader:
            rows = [row for batch in loader for row in np.array(batch["im"])]
            self.assertEqual(loader.stats().n_damaged_images, 6)
            self.assertIn("6 samples have an image from a damaged file", str(loader.stats()))
        for row, file in ((rows[3], bad), (rows[4], whole)):
            with optional("PIL.Image").open(io.BytesIO(file)) as image:
                self.assertEqual(row.tobytes(), image.convert("RGB").tobytes())

    def test_a_data_set_decodes_the_damaged_jpegs_that_packing_accepted(self):
        whole = image_file(height=40, width=56)
        bad = sets.damaged_jpeg(whole)
        module = optional("PIL.Image")
        with module.open(io.BytesIO(bad)) as image:
            expected = np.array(image.convert("RGB"))
        quiet([{"im": whole}, {"im": bad}], self.path("kept"), damaged="accept")
        with penstock.Dataset(self.path("kept"), decode=True) as data:
            for found in (data[1]["im"], data.get(1, "im"), data[1:][0]["im"], list(data)[1]["im"],
                          pickle.loads(pickle.dumps(data))[1]["im"]):
                np.testing.assert_array_equal(found, expected)
        with penstock.Dataset(self.path("kept")) as data:
            sheet = np.asarray(penstock.show(data, 1, ids=[1]))
            top, left = (224 - 40) // 2, (224 - 56) // 2
            np.testing.assert_array_equal(sheet[top:top + 40, left:left + 56], expected)
        with penstock.Writer(self.path("unmarked"), {"im": "image"}, check_images=False) as writer:
            writer.add(im=bad)
        with penstock.Dataset(self.path("unmarked"), decode=True) as data, \
                self.assertRaisesRegex(penstock.CorruptRecordError, "sample 0, field im"):
            data[0]

    def packed_with_warnings(self, *arguments, **keywords):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            penstock.pack(*arguments, progress=False, overwrite=True, **keywords)
        return [(str(warning.message), warning.filename) for warning in caught]

    def test_images_with_a_palette_are_counted_and_warned_of_at_the_end(self):
        path = self.path("palettes")
        files = [{"png": sets.png(3 if i % 3 == 0 else 0)} for i in range(40)]
        for workers in (0, 3):
            (said, where), = self.packed_with_warnings(files, path, num_workers=workers)
            self.assertTrue(said.startswith("14 images have a palette"), said)
            self.assertEqual(where, __file__)
        (said, _), = self.packed_with_warnings(iter(files[:2]), path)
        self.assertTrue(said.startswith("1 image has a palette"), said)
        self.assertEqual(self.packed_with_warnings(files[1:3], path), [])
        self.assertEqual(self.packed_with_warnings(files, path, schema={"png": "bytes"}), [])

    def test_pil_images_with_a_palette_are_counted(self):
        image = optional("PIL.Image")
        masks = [image.new(mode, (4, 4)) for mode in ("P", "L", "RGB", "P", "1")]
        (said, _), = self.packed_with_warnings([{"a": mask, "b": mask} for mask in masks], self.path("pil"))
        self.assertTrue(said.startswith("4 images have a palette"), said)

    def test_masks_packed_as_the_warning_advises_keep_their_numbers(self):
        image = optional("PIL.Image")
        path, file = self.path("masks"), sets.png(3)
        mask = np.asarray(image.open(io.BytesIO(file)))
        said = self.packed_with_warnings([{"array": mask, "file": file}] * 4, path,
                                         schema={"array": ("uint8", (2, 2)), "file": "bytes"})
        self.assertEqual(said, [])
        outputs = {"array": penstock.tensor("array"), "file": penstock.ragged("file")}
        with penstock.Loader(path, batch_size=4, outputs=outputs, framework="numpy") as data:
            batch = next(iter(data))
            self.assertEqual(batch["array"].tolist(), [[[0, 18], [18, 0]]] * 4)
            self.assertEqual(batch["file"].tolist(), [file] * 4)

    def test_iterables(self):
        def numbers(n, fails=False):
            for i in range(n):
                yield {"x": i}
            if fails:
                raise OSError("disk on fire")

        self.assertEqual(len(quiet(numbers(3000), self.path())), 3000)
        for schema in (None, {"x": int}):
            self.assert_says(
                ["sample 20", "disk on fire"], quiet, numbers(20, True), self.path("b"), schema=schema
            )
            self.assert_says("value has no samples", quiet, numbers(0), self.path("b"), schema=schema)
        self.assert_says("num_workers: value is 2; must be 0", quiet, numbers(3), self.path("b"), num_workers=2)
        for wrong in (5, None):
            self.assertIsInstance(
                self.assert_says("dataset: value is ", quiet, wrong, self.path("b")), TypeError
            )
        self.assertEqual(self.left(), ["data"])


    def test_images_of_formats_that_stay_bytes_are_said(self):
        image = optional("PIL.Image")
        pictures = [image.new("RGB", (8, 8), (40 * i, 0, 0)) for i in range(4)]
        for format_, name in (("GIF", "GIF"), ("BMP", "BMP"), ("WEBP", "WebP")):
            files = [io.BytesIO() for _ in pictures]
            for picture_, file in zip(pictures, files):
                picture_.save(file, format_)
            values = [file.getvalue() for file in files]
            with self.assertWarnsRegex(UserWarning, f"^penstock.pack: x: {name} images, stored as bytes, which a loader does "
                                                    "not decode .give Pillow's images, PIL.Image.open.io.BytesIO.value") as caught:
                made = quiet([{"x": value} for value in values], self.path(), overwrite=True)
            self.assertEqual((made.schema["x"].kind, caught.filename), ("bytes", __file__))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                quiet([{"x": b"P1 is no picture"}, {"x": memoryview(b"text")}, {"x": memoryview(b"text")[::2]}, {"x": bytearray(b"ab")}], self.path(), overwrite=True)
                quiet([{"x": value} for value in values], self.path(), schema={"x": "bytes"}, overwrite=True)
                quiet([{"x": value} for value in (*values, b"no image")], self.path(), overwrite=True)
                made = quiet([{"x": image.open(io.BytesIO(value)).convert("RGB")} for value in values], self.path(), overwrite=True)
            self.assertEqual(made.schema["x"].kind, "image")


class Progress(Case):
    def shown(self, is_terminal):
        from penstock import progress

        out = io.StringIO()
        out.isatty = lambda: is_terminal
        with (
            contextlib.redirect_stderr(out),
            unittest.mock.patch.dict(os.environ, TERM="xterm"),
            unittest.mock.patch.object(progress, "REDRAW_SECONDS", 0),
            unittest.mock.patch.object(progress, "QUIET_SECONDS", 0),
        ):
            penstock.pack(Source(300), self.path(), num_workers=0, overwrite=True)
        return out.getvalue()

    def test_a_bar_on_a_terminal_that_is_gone_at_the_end_and_lines_elsewhere(self):
        bar = self.shown(True)
        self.assertIn("packing [", bar)
        self.assertIn("300 samples", bar)
        self.assertTrue(bar.endswith("\r\033[K"))
        self.assertRegex(self.shown(False).splitlines()[-1], r"^penstock: packing: 300 samples, [\d ]+/s")

    def test_cores(self):
        self.assertTrue(1 <= n_cores() <= os.cpu_count())
