# SPDX-License-Identifier: Apache-2.0
"""penstock.Dataset: records by number, from any thread and process."""

import contextlib
import copy
import gc
import glob
import mmap
import multiprocessing
import os
import pickle
import re
import shutil
import struct
import subprocess
import threading
import unittest
from unittest import mock

import forge
import penstock
import sets
from data_fixture import Case, image_file, np, optional, picture
from penstock import Field

N = 1100  # more than two index pages' worth


def _same(dataset, i):
    return dataset[i]["x"] == i and bool((dataset[i]["a"] == i % 100).all())


def available_memory():
    with open("/proc/meminfo", encoding="ascii") as file:
        free = int(re.search(r"MemAvailable: *(\d+)", file.read())[1]) << 10
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError), open(name, encoding="ascii") as file:
            free = min(free, int(file.read()))
    return free


class Records(Case):
    def setUp(self):
        super().setUp()
        with penstock.Writer(
            self.path(),
            {"x": "int64", "a": ("uint8", (None, 2)), "im": "image"},
            shard_size=1 << 16,
            names=["zero", "one"],
        ) as w:
            for i in range(N):
                pixels = picture(i, 3 + i % 4, 2 + i % 3)
                w.add(x=i, a=np.full((i % 5, 2), i % 100, np.uint8), im=pixels if i else image_file())
        self.data = penstock.Dataset(self.path())

    def test_numbers_slices_and_ends(self):
        d = self.data
        self.assertEqual(
            (len(d), d[0]["x"], d[-1]["x"], d[np.int64(7)]["x"], d.get(-N, "x")), (N, 0, N - 1, 7, 0)
        )
        for wrong in (N, -N - 1):
            self.assertRaises(IndexError, d.__getitem__, wrong)
        self.assert_says("whole number", d.__getitem__, "x")
        part = d[10:50:10]
        self.assertEqual([r["x"] for r in part], [10, 20, 30, 40])
        self.assertEqual([r["x"] for r in part[::-1][:2]], [40, 30])
        self.assertEqual((len(part), part[-1]["x"], len(d[5:5])), (4, 40, 0))
        self.assertRaises(IndexError, part.__getitem__, 4)
        self.assertEqual(sum(1 for _ in d), N)

    def test_stored_pixels_keep_their_size_in_every_shard_and_page(self):
        self.assertGreater(self.data.info.n_shards, 1)
        for i in range(1, N):
            np.testing.assert_array_equal(self.data.get(i, "im"), picture(i, 3 + i % 4, 2 + i % 3))

    def test_decode_gives_pillows_pixels(self):
        image = optional("PIL.Image")
        import io

        with penstock.Writer(self.path("b"), {"im": "image"}) as w:
            for kind in ("JPEG", "PNG"):
                w.add(im=image_file(3, kind, height=61, width=47))
        for record, file in zip(
            penstock.Dataset(self.path("b"), decode=True), penstock.Dataset(self.path("b"))
        ):
            wanted = np.array(image.open(io.BytesIO(file["im"])).convert("RGB"))
            np.testing.assert_array_equal(record["im"], wanted)
            self.assertTrue(record["im"].flags.writeable)

    def test_info_schema_and_repr_describe_the_data_set(self):
        d = self.data
        self.assertEqual((d.info.n_samples, d.names, list(d.fields)), (N, ("zero", "one"), ["x", "a", "im"]))
        self.assertEqual(d.schema["a"], penstock.Field("uint8", (None, 2)))
        self.assertEqual({f.name: f.field for f in d.fields.values()}, d.schema)
        self.assertEqual(d.fields["im"].encodings, {"jpeg": 1, "pixels": N - 1})
        self.assertEqual((d.fields["im"].max_height, d.fields["im"].max_width), (40, 56))
        self.assertIn("1100 records, x: Field('int64')", repr(d))
        self.assertIn("4 of 1100", repr(d[:4]))

    def test_some_fields_only(self):
        d = penstock.Dataset(self.path(), ["a", "x"])
        self.assertEqual(list(d[3]), ["a", "x"])
        self.assertEqual(list(penstock.Dataset(self.path(), "x")[3]), ["x"])
        self.assert_says("value is 'y'; must be a field", penstock.Dataset, self.path(), ["y"])
        self.assert_says("did you mean 'im'", self.data.get, 0, "imm")
        self.assert_says("empty", penstock.Dataset, self.path(), [])
        self.assertIsInstance(self.assert_says("", penstock.Dataset, self.path("none")), FileNotFoundError)

    def test_one_that_is_open_at_the_end_of_the_interpreter_closes_in_silence(self):
        sets.torch_or_skip()  # with it, modules such as os are taken down first
        done = sets.python("import torch, sys, penstock\nkept = penstock.Dataset(sys.argv[1])", self.path())
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_value_of_more_than_2_gib(self):
        if available_memory() < 12 << 30:
            self.skipTest("missing: 12 GiB of memory")
        size = (2 << 30) + 5
        value = mmap.mmap(-1, size)  # zeros, of which none is there until it is written
        value[size - 1] = 7
        with penstock.Writer(self.path("large"), {"x": penstock.Field("bytes", codec="zstd")}) as w:
            w.add(x=memoryview(value))
        found = penstock.Dataset(self.path("large"))[0]["x"]
        self.assertEqual((len(found), found[-1], found.count(0)), (size, 7, size - 1))

    def test_threads(self):
        wrong = []

        def work(k):
            wrong.extend(i for i in range(k, N, 3) if not _same(self.data, i))

        threads = [threading.Thread(target=work, args=(k % 3,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_closing_while_threads_read_is_an_error_of_theirs_only(self):
        errors, go = [], threading.Event()

        def work():
            go.set()
            try:
                for i in range(10**9):
                    self.data.get(i % N, "a")
            except penstock.SettingsError as error:
                errors.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        go.wait()
        part = self.data[3:9]
        self.data.close()
        for t in threads:
            t.join()
        self.assertEqual(len(errors), 4)
        self.assertIn("closed", errors[0])
        self.assertEqual(part[0]["x"], 3)
        self.assertEqual(len(self.data), N)
        with penstock.Dataset(self.path()) as d:
            pass
        self.assertRaises(penstock.SettingsError, d.__getitem__, 0)

    def test_pickles_and_copies_open_it_again(self):
        for again in (
            pickle.loads(pickle.dumps(self.data[5:20])),
            copy.deepcopy(self.data[5:20]),
            copy.copy(self.data[5:20]),
        ):
            self.assertEqual([r["x"] for r in again], list(range(5, 20)))
        text = pickle.dumps(self.data)
        with penstock.Writer(self.path(), {"x": "int64"}, overwrite=True) as w:
            w.add(x=1)
        self.assert_says(["replaced", self.data.info.identity], pickle.loads, text)

    def test_a_data_set_that_is_replaced_while_it_is_open(self):
        self.data[1]
        for replaced_by_a_writer in (True, False):
            if not replaced_by_a_writer:  # shards of the same names
                shutil.rmtree(self.path())
            with penstock.Writer(self.path(), {"im": "image"}, overwrite=True) as w:
                for i in range(N):
                    w.add(im=picture(i, 50, 60))
            # Its shard is held open: what is read is still the old data set's.
            np.testing.assert_array_equal(self.data.get(2, "im"), picture(2, 5, 4))
            error = self.assert_says(
                [self.path(), "replaced", "open it again"], self.data.__getitem__, N - 1
            )
            self.assertIsInstance(error, penstock.DataSetNotFoundError)
            self.assertEqual(error.sample_id, N - 1)

    def test_processes_by_fork_and_spawn(self):
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.starmap(_same, [(self.data, i) for i in (0, 3, N - 1)]), [True] * 3)
        child = os.fork()
        if child == 0:
            os._exit(0 if _same(self.data, 77) and _same(self.data[70:], 7 - 7) is False else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_torch_loads_it(self):
        torch = optional("torch")
        d = penstock.Dataset(self.path(), ["x"])
        for workers in (0, 2):
            loader = torch.utils.data.DataLoader(d, batch_size=100, num_workers=workers)
            got = [i for batch in loader for i in batch["x"].tolist()]
            self.assertEqual(got, list(range(N)))

    def test_damage_is_reported_with_its_place(self):
        shard = sorted(glob.glob(self.path() + "/*.pstk"))[0]
        with open(shard, "r+b") as file:
            file.seek(4096 + 40)
            byte = file.read(1)
            file.seek(4096 + 40)
            file.write(bytes([byte[0] ^ 1]))
        error = self.assert_says(os.path.basename(shard), self.data.__getitem__, 0)
        self.assertIsInstance(error, penstock.CorruptRecordError)
        self.assertEqual((error.sample_id, error.record, error.shard), (0, 0, os.path.basename(shard)))

    def test_bytes_of_right_checksums_that_are_no_value_are_named(self):
        numbers = np.arange(1000, 1006, dtype="<i8").reshape(2, 3)
        stored = struct.pack("<2Q", 2, 3) + numbers.tobytes()
        wrong = [(Field("utf8"), "abcdefghijkl", b"abcdefghijkl", b"\xff\xfeabcdefghij", "its 12 bytes are no value of its type")]
        wrong += [(Field("int64", shape=(None, None), codec="none"), numbers, stored, struct.pack("<2Q", *shape) + stored[16:],
                   "its 64 bytes are no value of its type") for shape in ((2**63, 2), (3, 3), (2**64 - 1, 2**64 - 1))]
        for k, (field, value, old, new, says) in enumerate(wrong):
            path = self.path(f"forged{k}")
            with penstock.Writer(path, {"t": field}) as writer:
                writer.add({"t": value})
            forge.change(path, old, new)
            with penstock.Dataset(path) as data, self.assertRaisesRegex(penstock.CorruptRecordError, "sample 0, field t: " + says):
                data[0]


@unittest.skipUnless(os.environ.get("PENSTOCK_WRITE_SAMPLE"), "missing: PENSTOCK_WRITE_SAMPLE")
class EveryKind(Case):
    def test_data_written_in_c_is_read_and_repacked_with_the_same_values(self):
        subprocess.run(
            [os.environ["PENSTOCK_WRITE_SAMPLE"], self.path(), "60"], check=True, stdout=subprocess.DEVNULL
        )
        d = penstock.Dataset(self.path())
        schema = d.schema
        # Python writes the second of two images of pixels as PNG, and reads bfloat16 arrays as bits.
        names = [n for n, f in schema.items() if f.kind not in ("image", "bfloat16")]
        some = penstock.Dataset(self.path(), names)
        with penstock.Writer(self.path("again"), some.schema) as w:
            for record in some:
                w.add(record)
        again = penstock.Dataset(self.path("again"))
        self.assertEqual(again.schema, some.schema)
        for a, b in zip(some, again):
            for name in names:
                np.testing.assert_array_equal(a[name], b[name])
        self.assertEqual(len(d), 60)
        for record in d:
            self.assertEqual(set(record), set(schema))


class OfALoader(unittest.TestCase):
    """loader.dataset."""

    def open(self, **keywords):
        return penstock.Loader(sets.scalars(), batch_size=10, framework="numpy", **keywords)

    def test_its_length_is_the_number_of_samples_on_every_rank(self):
        for more in ({}, {"ranks": penstock.Ranks(1, 3)}):
            with self.open(**more) as data:
                self.assertEqual(len(data.dataset), 2000)
                self.assertIsInstance(data.dataset, penstock.Dataset)
                self.assertIs(data.dataset, data.dataset)
                self.assertEqual(data.dataset[7], {"i": 7, "half": 3.5})

    def test_it_is_opened_when_asked_for(self):
        with self.open() as data, mock.patch("penstock.dataset.Dataset.__init__", side_effect=ZeroDivisionError):
            next(iter(data))
            self.assertRaises(ZeroDivisionError, lambda: data.dataset)

    def test_it_is_closed_with_the_loader(self):
        data = self.open()
        found, part = data.dataset, data.dataset[:3]
        data.close()
        data.close()
        self.assertRaisesRegex(penstock.PenstockError, "closed", lambda: found[0])
        self.assertRaisesRegex(penstock.PenstockError, "closed", lambda: data.dataset)
        self.assertEqual((len(found), part[2]["i"]), (2000, 2))

    def test_it_is_closed_with_a_loader_that_is_dropped(self):
        data = self.open()
        found = data.dataset
        del data
        gc.collect()
        self.assertRaisesRegex(penstock.PenstockError, "closed", lambda: found[0])

    def test_another_data_set_at_the_same_path_is_refused(self):
        path = os.path.join(sets.ROOT, "replaced")
        for i in range(2):
            with penstock.Writer(path, {"i": "int64"}, overwrite=i > 0) as writer:
                for k in range(8):
                    writer.add(i=i + k)
            if i == 0:
                data = penstock.Loader(path, batch_size=2, framework="numpy")
        with data, self.assertRaisesRegex(penstock.DataSetNotFoundError, "replaced"):
            data.dataset

    def test_a_forks_child_is_refused(self):
        with self.open() as data:
            child = os.fork()
            if child == 0:
                try:
                    data.dataset
                    os._exit(1)
                except penstock.ForkedError:
                    os._exit(0)
                except BaseException:
                    os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
