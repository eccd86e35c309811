# SPDX-License-Identifier: Apache-2.0
"""A directory of FIELD.npy arrays as a data set. NumPy is the oracle: row i of each file is sample i."""
import io
import json
import os
import struct
import subprocess
import time

import penstock
from data_fixture import Case, np

N = 301  # a prime number: no batch size divides it
DTYPES = ("?", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8")
SHAPES = ((), (1,), (7,), (2, 3), (5, 1, 3), (2,) * 8, (4099,))


def values(dtype, shape, n=N, seed=0):
    """Any bits that the dtype has: of floats also NaN and infinities."""
    random = np.random.default_rng(seed)
    if dtype == "?":
        return random.random((n, *shape)) < 0.5
    size = int(np.prod((n, *shape))) * np.dtype(dtype).itemsize
    return np.frombuffer(random.bytes(size), dtype).reshape((n, *shape))


def head(text, version=(1, 0), body=b""):
    """Return a .npy file with any text in its head."""
    text = text if isinstance(text, bytes) else text.encode()
    size = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + body


def same_bytes(got, wanted):
    got, wanted = np.ascontiguousarray(got), np.ascontiguousarray(wanted)
    return got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == wanted.tobytes()


class Arrays(Case):
    def save(self, arrays, name="data"):
        """Write each array as FIELD.npy; returns the directory."""
        path = self.path(name)
        os.makedirs(path, exist_ok=True)
        for field, array in arrays.items():
            np.save(os.path.join(path, field + ".npy"), array)
        return path

    def put(self, data, field="x", name="data"):
        """Write the bytes of one file; returns the directory."""
        os.makedirs(self.path(name), exist_ok=True)
        with open(os.path.join(self.path(name), field + ".npy"), "wb") as file:
            file.write(data)
        return self.path(name)

    def plain(self, array):
        """As it is delivered: bool is u8."""
        return array.astype("u1") if array.dtype == bool else array

    def check_epochs(self, path, arrays, epochs=(0,), **keywords):
        """Check that every row of every field is NumPy's, and that every sample comes once. Return the ids in order."""
        keywords = dict({"batch_size": 32, "framework": "numpy", "last_batch": "short", "device": "cpu"}, **keywords)
        order = []
        with penstock.Loader(path, **keywords) as loader:
            for epoch in epochs:
                ids = []
                for batch in loader.epoch(epoch):
                    rows = np.asarray(batch.sample_ids)
                    for field, array in arrays.items():
                        self.assertTrue(same_bytes(batch[field], self.plain(array)[rows]), field)
                    ids += rows.tolist()
                order.append(ids)
        return order

    def command(self, *arguments, status=0, out=False):
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], *arguments], capture_output=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout if status == 0 or out else done.stderr.decode()

    def refuse(self, path, *words):
        """Neither a loader, nor a Dataset, nor the command opens it; each says so in these words."""
        for opening in (penstock.Dataset, lambda p: penstock.Loader(p, batch_size=1)):
            self.assert_says(words, opening, path)
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "info", path], capture_output=True, check=False)
        self.assertIn(done.returncode, (1, 2))
        for word in words:
            self.assertIn(word, done.stderr.decode())


class Right(Arrays):
    def test_every_dtype_and_shape_is_read_bit_for_bit(self):
        arrays = {f"a{i}-{d}": values(dtype, shape, seed=i * 100 + d) for i, dtype in enumerate(DTYPES)
                  for d, shape in enumerate(SHAPES) if d < 6 or dtype == "<u2"}
        few = dict(list(arrays.items())[:64])
        rest = dict(list(arrays.items())[64:])
        for part in (few, rest):
            path = self.save(part, f"data{len(part)}")
            self.check_epochs(path, part)
            with penstock.Dataset(path) as data:
                for field, array in part.items():
                    self.assertTrue(same_bytes(np.asarray(data[17][field]).astype(self.plain(array).dtype),
                                               self.plain(array)[17]), field)

    def test_the_schema_is_that_of_the_arrays(self):
        path = self.save({"image": values("u1", (4, 5, 3)), "flag": values("?", ()), "label": values("<i8", ())})
        with penstock.Dataset(path) as data:
            self.assertEqual(data.info.n_samples, N)
            self.assertEqual(data.info.format, "npy")
            self.assertFalse(data.info.has_checksums)
        fields = {field["name"]: field for field in json.loads(self.command("info", path, "--json"))["fields"]}
        self.assertEqual(fields["image"]["kind"], "ndarray")
        self.assertEqual(fields["image"]["shape"], [4, 5, 3])
        self.assertEqual((fields["flag"]["kind"], fields["flag"]["dtype"]), ("scalar", "u8"))
        self.assertEqual((fields["label"]["kind"], fields["label"]["dtype"]), ("scalar", "i64"))

    def test_threads_readers_orders_and_batch_sizes_do_not_change_a_byte(self):
        arrays = {"x": values("<f4", (33,)), "y": values("<i8", ()), "z": values("u1", (5000,))}
        path = self.save(arrays)
        wanted = {}
        for order in ("full", "sequential"):
            for threads in (1, 3):
                for reader in ("io_uring", "threads"):
                    for size in (1, 64, 301):
                        if size == 1 and (threads, order) != (3, "full"):
                            continue
                        ids = self.check_epochs(path, arrays, (0, 1), order=order, n_threads=threads,
                                                reading=penstock.Reading(reader=reader), batch_size=size, seed=5)
                        self.assertEqual(sorted(ids[0]), list(range(N)))
                        self.assertEqual(wanted.setdefault(order, ids), ids)
        self.assertEqual(wanted["sequential"][0], list(range(N)))
        self.assertNotEqual(wanted["full"][0], wanted["full"][1])

    def test_direct_reads(self):
        arrays = {"x": values("<f4", (33,)), "y": values("<i8", ()), "z": values("u1", (5000,))}
        path = self.save(arrays)
        for order in ("full", "sequential"):
            self.check_epochs(path, arrays, order=order, reading=penstock.Reading(io="auto"))
            try:
                self.check_epochs(path, arrays, order=order, reading=penstock.Reading(io="direct"))
            except penstock.UnsupportedError as error:
                self.assertIn("O_DIRECT", str(error))

    def test_rows_past_the_io_memory_take_the_slow_path(self):
        arrays = {"x": values("u1", (300000,), 9), "y": values("<i8", (), 9)}
        self.check_epochs(self.save(arrays), arrays, memory=penstock.Memory(io_memory=1 << 19), batch_size=2)

    def test_one_field_alone_reads_no_other_file(self):
        arrays = {"x": values("<f4", (3,)), "y": values("<i8", ())}
        path = self.save(arrays)
        with penstock.Loader(path, batch_size=10, framework="numpy", outputs={"y": penstock.scalar("y")}) as loader:
            os.rename(os.path.join(path, "x.npy"), self.path("gone"))
            seen = sum(len(np.asarray(batch["y"])) for batch in loader.epoch(0))
            self.assertEqual(seen, 300)

    def test_rows_of_all_files_over_max_record_size_are_refused_until_it_is_raised(self):
        path = self.save({"x": values("<f4", (3,)), "y": values("<i8", ())})
        penstock.Loader(path, batch_size=10, framework="numpy", memory=penstock.Memory(max_record_size=20)).close()
        with self.assertRaises(penstock.SettingsError) as caught:
            penstock.Loader(path, batch_size=10, framework="numpy", memory=penstock.Memory(max_record_size=19))
        self.assertEqual(caught.exception.code, "PSTK_EFBIG")
        self.assertIn("has records of up to 20 bytes, more than max_record_size (19): raise it", str(caught.exception))

    def test_a_row_of_all_files_is_at_most_4_gib_where_nothing_else_is_set(self):
        path = self.save({"y": values("<i8", (), 1)})
        outputs = {"y": penstock.scalar("y")}
        for size, fits in ((2**32 - 1 - 8, True), (2**32 - 8, False)):
            for field, n in (("a", size // 2), ("b", size - size // 2)):
                np.save(os.path.join(path, f"{field}.npy"), np.empty((0, n), "u1"))
                with open(os.path.join(path, f"{field}.npy"), "r+b") as file:
                    text = file.read().replace(b"(0,", b"(1,")
                    file.seek(0)
                    file.write(text)
                    file.truncate(len(text) + n)  # a hole
            for most in (0, size + 8):
                with self.subTest(size=size, max_record_size=most):
                    keywords = dict(batch_size=1, framework="numpy", outputs=outputs,
                                    memory=penstock.Memory(max_record_size=most))
                    if not fits and not most:
                        self.assertRaisesRegex(penstock.SettingsError, "than max_record_size .4294967295.: raise it",
                                               penstock.Loader, path, **keywords)
                        continue
                    with penstock.Loader(path, **keywords) as loader:
                        self.assertEqual(len(list(loader.epoch(0))), 1)

    def test_every_kind_of_output(self):
        arrays = {"x": values("<u2", (6,)), "y": values("<i4", ())}
        path = self.save(arrays)
        outputs = {"wide": penstock.tensor("x", dtype="int32"), "raw": penstock.ragged("x"),
                   "label": penstock.scalar("y", dtype="int64"), "again": penstock.tensor("x")}
        with penstock.Loader(path, batch_size=16, framework="numpy", outputs=outputs) as loader:
            for batch in loader.epoch(0):
                rows = np.asarray(batch.sample_ids)
                self.assertTrue(same_bytes(batch["wide"], arrays["x"][rows].astype("i4")))
                self.assertTrue(same_bytes(batch["label"], arrays["y"][rows].astype("i8")))
                self.assertTrue(same_bytes(batch["again"], arrays["x"][rows]))
                self.assertEqual([bytes(row) for row in batch["raw"]], [row.tobytes() for row in arrays["x"][rows]])

    def test_ranks_share_the_samples(self):
        arrays = {"y": values("<i8", (3,)), "z": values("u1", ())}
        path = self.save(arrays)
        seen = []
        for rank in range(3):
            seen += self.check_epochs(path, arrays, ranks=penstock.Ranks(rank, 3), last_batch="short")[0]
        self.assertEqual(sorted(set(seen)), list(range(N)))

    def test_resume_goes_on_where_it_was(self):
        arrays = {"x": values("<f8", (2,)), "y": values("<i8", ())}
        path = self.save(arrays)

        def ids(loader, n):
            return [np.asarray(next(loader).sample_ids).tolist() for _ in range(n)]

        with penstock.Loader(path, batch_size=16, framework="numpy", seed=3) as first:
            stream = iter(first)
            before = ids(stream, 7)
            state = first.state_dict()
            wanted = ids(stream, 5)
        with penstock.Loader(path, batch_size=16, framework="numpy", seed=3) as second:
            second.load_state_dict(state)
            self.assertEqual(ids(iter(second), 5), wanted)
        self.assertEqual(len(before), 7)

    def test_identity_is_of_names_types_shapes_sizes_and_times(self):
        array = values("<i4", (4,))
        path = self.save({"x": array})

        def identity():
            with penstock.Dataset(path) as data:
                return data.info.identity

        seen = [identity()]
        self.assertEqual(identity(), seen[0])
        file = os.path.join(path, "x.npy")
        os.rename(path, self.path("moved"))  # the path is no part of the identity
        path = self.path("moved")
        self.assertEqual(identity(), seen[0])
        file = os.path.join(path, "x.npy")
        os.utime(file, ns=(1, 1))
        seen.append(identity())
        for other in (array.astype("<u4"), array.reshape(N, 2, 2), array[:-1], array):
            np.save(file, other)
            os.utime(file, ns=(1, 1))
            seen.append(identity())
        self.assertEqual(seen[-1], seen[1])  # the same facts again, whatever was between
        os.rename(file, os.path.join(path, "y.npy"))
        seen.append(identity())
        self.assertEqual(len(set(seen)), len(seen) - 1)
        for text in seen:
            self.assertRegex(text, "^[0-9a-f]{32}$")

    def test_heads_of_all_versions_and_spellings(self):
        array = values("<i2", (3,), 5)
        body = array.tobytes()
        right = [head("{'descr': '<i2', 'fortran_order': False, 'shape': (5, 3), }\n", (v, 0), body) for v in (1, 2, 3)]
        right.append(head("{\"shape\":(5,3),\"fortran_order\":False,\"descr\":\"<i2\"}", body=body))
        right.append(head("{'descr': '=i2', 'fortran_order': False, 'shape': (5L, 3L,)} \n\t ", body=body))
        for version in ((1, 0), (2, 0), (3, 0)):
            out = io.BytesIO()
            np.lib.format.write_array(out, array, version)
            right.append(out.getvalue())
        for data in right:
            path = self.put(data)
            self.check_epochs(path, {"x": array}, batch_size=2)
        # rows of one element, and one row: Fortran's order is that of C
        for shape in ("(15,)", "(15, 1)", "(1, 15)", "(1, 15, 1)"):
            path = self.put(head(f"{{'descr': '<i2', 'fortran_order': True, 'shape': {shape}}}", body=body))
            self.check_epochs(path, {"x": array.reshape(eval(shape))}, batch_size=1)
        # one byte has no order
        path = self.put(head("{'descr': '>u1', 'fortran_order': False, 'shape': (30,)}", body=body))
        self.check_epochs(path, {"x": np.frombuffer(body, "u1")}, batch_size=2)

    def test_other_files_in_the_directory_are_left_alone(self):
        array = values("<i4", ())
        path = self.save({"x": array})
        for name in ("README", "x.npz.bak", ".x.npy", ".y.npz", "._x.npy", ".npy", "x.npy.bak"):
            with open(os.path.join(path, name), "wb") as file:
                file.write(b"\0")
        os.mkdir(os.path.join(path, "folder"))
        self.check_epochs(path, {"x": array})

    def test_a_manifest_of_penstock_makes_it_a_data_set_of_penstock(self):
        array = values("<i4", ())
        path = self.save({"x": array})

        def write(text):
            with open(os.path.join(path, "manifest.json"), "w", encoding="ascii") as file:
                file.write(text)

        for text in ("{}", ""):  # another program's
            write(text)
            self.check_epochs(path, {"x": array})
        write('{"format":"penstock",')
        self.refuse(path, "manifest.json")


class Refused(Arrays):
    def test_arrays_not_readable_in_place_are_refused_with_advice(self):
        def file(array, **keywords):
            out = io.BytesIO()
            np.save(out, array, **keywords)
            return out.getvalue()

        text = "{{'descr': {}, 'fortran_order': {}, 'shape': {}}}"
        for data, words in (
                (file(np.array([{}, 1], object), allow_pickle=True), ["Python objects", "pickle", "penstock.Writer"]),
                (b"\x80\x04\x95" + bytes(40), ["a pickle", "numpy.save"]),
                (b"PK\x03\x04" + bytes(40), ["archive (.npz)", "numpy.save"]),
                (file(np.zeros((4, 5), order="F")), ["Fortran", "numpy.ascontiguousarray"]),
                (file(np.zeros(4, ">f4")), ["big-endian", "array.astype('<f4')"]),
                (file(np.zeros(())), ["has no dimensions", "reshape(1)"]),
                (file(np.zeros((0, 4))), ["0 rows"]),
                (file(np.zeros((4, 0))), ["dimension 1 is 0", "remove the file"]),
                (file(np.zeros(3, "c8")), ["'<c8'", "array.astype"]),
                (file(np.zeros(3, "S5")), ["'|S5'", "array.astype"]),
                (file(np.zeros(3, "U5")), ["'<U5'", "array.astype", "texts with penstock.Writer"]),
                (file(np.zeros(3, "M8[s]")), ["'<M8[s]'", "array.astype"]),
                (file(np.zeros(3, [("a", "i4")])), ["structured dtype", "array['FIELD']"]),
                (head(text.format("'<f16'", False, "(3,)")), ["'<f16'", "array.astype"]),
                (head(text.format("'<i4'", False, "(3, 4294967295)")), ["2^32-1 bytes", "split the array"]),
                (head(text.format("'u1'", False, "(18446744073709551615,)")), ["split the array"]),
                (head(text.format("'u1'", False, "(99999999999999999999,)")), ["2^64"]),
                (head(text.format("'u1'", False, "(" + "1," * 10 + ")")), ["more than 9 dimensions", "reshape"]),
                (head(text.format("'u1'", False, "(3,)"), (4, 0)), ["the .npy format is 4.0", "1.0, 2.0 or 3.0"]),
                (head(b" " * 70000, (2, 0)), ["70000 bytes"]),
                (head(text.format("'u1'", False, "(3,)"), body=b"ab"), ["cut short", "write it again"]),
                (head(text.format("'u1'", False, "(3,)"), body=b"abcd"), ["1 bytes after its array"]),
                (b"", ["cut short"]), (b"\x93NUMPY\x01\x00", ["cut short"]), (b"\x93NUMPY\x01\x00\x10\x00{", ["cut short"])):
            with self.subTest(words=words):
                self.refuse(self.put(data), "x.npy" if words != ["0 rows"] else "data", *words)

    def test_nothing_of_a_head_is_evaluated(self):
        for text in ("{'descr': '<i4', 'fortran_order': False, 'shape': (__import__('os').getpid(),)}",
                     "{'descr': '<i4', 'fortran_order': 0, 'shape': (3,)}", "dict(descr='<i4')", "{'descr': '<i4'}",
                     "{'descr': '<i4', 'fortran_order': False, 'shape': (3)}{", "{", "", "[]",
                     "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (3,)}",
                     "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
                     "{'descr': '<i4\0', 'fortran_order': False, 'shape': (3,)}",
                     "{'descr': '<i4', 'fortran_order': False, 'shape\0': (3,)}",
                     "{'descr': '', 'fortran_order': False, 'shape': (3,)}",
                     "{'descr': '<i4', 'fortran_order': False, 'shape': (-3,)}", "{'descr': '" + "i" * 60 + "'}"):
            with self.subTest(text=text):
                self.refuse(self.put(head(text, body=bytes(12))), "x.npy", "write it again")

    def test_a_shape_that_is_no_tuple_is_refused_as_numpy_does(self):
        for shape in ("(3)", "( 3 )", "(3L)"):
            data = head(f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}}}", body=bytes(12))
            self.assertRaises(ValueError, np.load, io.BytesIO(data))
            self.refuse(self.put(data), "x.npy", "shape is (3), a number", "must be a tuple, as (3,)")
        data = head("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", body=bytes(12))
        self.check_epochs(self.put(data), {"x": np.zeros(3, "i4")}, batch_size=1)

    def test_arrays_of_other_lengths_are_named(self):
        path = self.save({"x": values("<i4", (), 10), "y": values("<i4", (), 11)})
        self.refuse(path, "x.npy has 10 rows, y.npy has 11")

    def test_directories_that_hold_no_data_set(self):
        os.mkdir(self.path())
        self.refuse(self.path(), "not a data set: it is empty", ".pstk shards", ".npz or .safetensors arrays")
        self.save({"x": values("<i4", ())})
        with open(self.path("x.txt"), "wb"):
            pass
        self.refuse(self.path("x.txt"), "is a file", ".npz or .safetensors arrays", "or a .npy, .npz or .safetensors file")
        os.mkdir(os.path.join(self.path(), "y.npy"))
        self.refuse(self.path(), "y.npy", "a directory", "restore the file, or remove what is there")
        os.rmdir(os.path.join(self.path(), "y.npy"))
        os.symlink(self.path("nowhere"), os.path.join(self.path(), "y.npy"))
        self.refuse(self.path(), "y.npy", "a link to a missing file")

    def test_names_that_are_no_fields(self):
        for name in ("a b", "ä", "x" * 64):
            path = self.save({name: values("<i4", (), 3)}, "d" + str(len(name)))
            self.refuse(path, "not the name of a field", "rename it")
        path = self.save({f"f{i}": np.zeros(2) for i in range(65)}, "many")
        self.refuse(path, "more than 64")

    def test_merge_refuses_it_by_its_format(self):
        path = self.save({"x": values("<i4", ())})
        text = self.command("merge", path, self.path("out"), status=2)
        self.assertIn("the format arrays, which has no parts", text)


class Changed(Arrays):
    """Files that change while they are open."""

    def setUp(self):
        super().setUp()
        self.arrays = {"x": values("<f4", (1000,)), "y": values("<i8", ())}
        self.data = self.save(self.arrays)

    def test_a_file_cut_short_after_open_is_an_error_with_the_sample(self):
        data = penstock.Dataset(self.data)
        self.addCleanup(data.close)
        self.assertEqual(data[0]["y"], self.arrays["y"][0])
        self.assertTrue(same_bytes(data[N - 1]["x"], self.arrays["x"][N - 1]))  # its file is open
        os.truncate(os.path.join(self.data, "x.npy"), 128 + 4000 * 100 + 50)
        error = self.assert_says(["x.npy", "record 100", "ends at byte 400178"], lambda: data[100])
        self.assertIsInstance(error, penstock.CorruptRecordError)
        self.assertTrue(same_bytes(data[99]["x"], self.arrays["x"][99]))

    def test_a_loader_meets_the_cut_in_order(self):
        with penstock.Loader(self.data, batch_size=10, order="sequential", framework="numpy",
                             memory=penstock.Memory(n_slots=2)) as loader:
            stream = iter(loader)
            next(stream)
            os.truncate(os.path.join(self.data, "x.npy"), 128 + 4000 * 250)
            n = 1
            with self.assertRaises(penstock.CorruptRecordError) as caught:
                for _ in range(29):
                    batch = next(stream)
                    rows = np.asarray(batch.sample_ids)
                    self.assertTrue(same_bytes(batch["x"], self.arrays["x"][rows]))
                    n += 1
            self.assertGreaterEqual(n, 25)  # more where they were read before the cut
            words = ("x.npy was changed or replaced since the data set was opened: "
                     "it has 1000128 bytes, and had 1204128")
            self.assertIn(words, str(caught.exception))
            self.assertEqual(caught.exception.sample_id, 10 * n)

    def test_a_file_changed_before_it_is_read_is_named_as_changed(self):
        file = os.path.join(self.data, "x.npy")
        same, short = np.zeros_like(self.arrays["x"]), self.arrays["x"][:-1]
        for array, words in ((same, ["its time of change differs"]), (short, ["has 1200128 bytes, and had 1204128"])):
            words = ["x.npy was changed or replaced since the data set was opened", "open the data set again", *words]
            np.save(file, self.arrays["x"])
            with penstock.Dataset(self.data) as data:
                opened = os.stat(file).st_mtime_ns
                while os.stat(file).st_mtime_ns == opened:  # a file system's clock may be coarse
                    time.sleep(0.01)
                    np.save(file, array)
                self.assertIsInstance(self.assert_says(words, lambda: data[5]), penstock.CorruptRecordError)

    def test_a_file_removed_before_it_is_read_is_not_found(self):
        words = [os.path.join(self.data, "x.npy"), "removed or renamed while the data set was open",
                 "open the data set again"]
        with penstock.Dataset(self.data) as data:
            os.unlink(os.path.join(self.data, "x.npy"))
            self.assertIsInstance(self.assert_says(words, lambda: data[5]), penstock.DataSetNotFoundError)
        with penstock.Dataset(self.data) as data:  # again
            self.assertEqual(list(data[1]), ["y"])

    def test_a_file_that_became_something_else_is_no_shard(self):
        with penstock.Dataset(self.data) as data:
            os.unlink(os.path.join(self.data, "x.npy"))
            os.mkdir(os.path.join(self.data, "x.npy"))
            error = self.assert_says(["file " + self.data, "x.npy is a directory, not a regular file"], lambda: data[5])
        self.assertNotIn("copy", str(error))
        self.assertNotIn("shard /", str(error))

    def test_the_files_of_one_sample_stay_open(self):
        arrays = {f"f{i}": values("<i2", (), seed=i) for i in range(64)}
        path = self.save(arrays, "many")
        with penstock.Dataset(path) as data:
            for field, array in arrays.items():
                self.assertEqual(data[0][field], array[0])
            os.rename(path, self.path("moved"))
            for field, array in arrays.items():
                self.assertEqual(data[N - 1][field], array[N - 1])

    def test_files_of_any_time_are_read(self):
        for time_of_change in (-(1 << 33), 1 << 33, 1 << 34):
            os.utime(os.path.join(self.data, "x.npy"), (0, time_of_change))
            with penstock.Dataset(self.data) as data:
                self.assertEqual(data[1]["y"], self.arrays["y"][1])
                self.assertTrue(same_bytes(data[1]["x"], self.arrays["x"][1]))

    def test_a_state_of_other_arrays_is_refused(self):
        with penstock.Loader(self.data, batch_size=16, framework="numpy") as loader:
            next(iter(loader))
            state = loader.state_dict()
        os.utime(os.path.join(self.data, "x.npy"), ns=(5, 5))
        with penstock.Loader(self.data, batch_size=16, framework="numpy") as loader, \
                self.assertRaises(penstock.SettingsError):
            loader.load_state_dict(state)


class Command(Arrays):
    def test_get_and_info(self):
        array = values("<f4", (3, 2))
        path = self.save({"x": array, "y": values("<i8", ())})
        self.assertEqual(self.command("get", path, "17", "x"), array[17].tobytes())
        self.assertIn(b"npy, which has no checksums", self.command("info", path))
        info = json.loads(self.command("info", path, "--json"))
        self.assertEqual((info["format"], info["has_checksums"], info["format_version"]), ("npy", False, 0))

    def test_verify_reads_everything_and_says_that_there_are_no_checksums(self):
        path = self.save({"x": values("<f4", (3, 2)), "y": values("<i8", ())})
        self.assertIn(b"no checksums", self.command("verify", path))
        report = json.loads(self.command("verify", path, "--json"))
        self.assertEqual((report["n_bad"], report["has_checksums"]), (0, False))
        os.truncate(os.path.join(path, "x.npy"), 1000)
        self.assertIn("cut short", self.command("verify", path, status=1))
