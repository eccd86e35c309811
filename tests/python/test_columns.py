# SPDX-License-Identifier: Apache-2.0
"""Side columns: those that a Writer makes, penstock.add_column, and Dataset.column."""
import os
import pickle
import re
import uuid
import warnings

import penstock
import sets
from data_fixture import Case, image_file, np

sets.need_numpy()

N = 3000
SCHEMA = {"cls": "int16", "x": "bfloat16", "text": "utf8", "tokens": penstock.Field("uint16", [None]),
          "fixed": penstock.Field("float32", [3])}


class Columns(Case):
    def write(self, name="d", **settings):
        path = os.path.join(self.folder, name)
        with penstock.Writer(path, SCHEMA, shard_size=64 << 10, dictionary_size=1, **settings) as w:
            for i in range(N):
                w.add(cls=i % 100 - 50, x=i % 8, text="t" * (i % 11), tokens=np.arange(i % 7, dtype="u2"),
                      fixed=np.zeros(3, "f4"))
        return path

    def test_a_writer_makes_columns_of_scalars_and_sizes(self):
        with penstock.Dataset(self.write()) as d:
            self.assertGreater(d.info.n_shards, 2)
            self.assertEqual({name: (c.dtype, c.fact, c.field) for name, c in d.columns.items()},
                             {"cls": ("int16", "value", "cls"), "x": ("bfloat16", "value", "x"),
                              "text.size": ("uint32", "size", "text"),
                              "tokens.length": ("uint32", "length", "tokens")})
            cls = d.column("cls")
            self.assertEqual(cls.dtype, np.int16)
            self.assertTrue((cls == np.arange(N) % 100 - 50).all())
            self.assertTrue((d.column("tokens.length", 10, 20) == np.arange(10, 20) % 7).all())
            self.assertEqual(d.column("text.size", -1).tolist(), [(N - 1) % 11])
            self.assertEqual(len(d.column("cls", 5, 5)), 0)
            self.assertEqual(len(d.column("x")), N)

    def bare_of_few(self):
        with penstock.Writer(self.path("few"), {"cls": "int64", "w": "int32"}, columns=False) as writer:
            for i in range(50):
                writer.add(cls=i, w=i)
        return self.path("few")

    def test_a_loader_reads_numbers_as_a_smaller_dtype_that_the_column_proves(self):
        path, bare = os.path.join(self.folder, "d"), os.path.join(self.folder, "bare")
        for name, columns in ((path, True), (bare, False)):
            with penstock.Writer(name, {"cls": "int64", "big": "int64", "u": "uint64", "x": "float64"}, columns=columns) as w:
                for i in range(5000):  # more than one read
                    w.add(cls=i % 7, big=2**31 if i == 4500 else -i, u=2**63 if i == 3 else 1, x=0.5)

        def first(field, dtype, path=path):
            with penstock.Loader(path, batch_size=5000, framework="numpy", shuffle=False,
                                 outputs={"y": penstock.scalar(field, dtype)}) as loader:
                return next(iter(loader))["y"]
        for dtype in ("int32", "uint8", "int8", "uint64"):
            values = first("cls", dtype)
            self.assertEqual(values.dtype, dtype)
            self.assertTrue((values == np.arange(5000) % 7).all())
        for field, dtype, says in (
                ("big", "int32", "not every int64 of field 'big' fits int32: sample 4500 has 2147483648; choose one that"),
                ("big", "uint64", "not every int64 of field 'big' fits uint64: sample 1 has -1;"),
                ("u", "int64", "not every uint64 of field 'u' fits int64: sample 3 has 9223372036854775808;"),
                ("x", "float32", "not every float64 of field 'x' fits float32 (side columns only prove that whole numbers"),
                ("cls", "float16", "not every int64 of field 'cls' fits float16 (side columns only prove that whole numbers")):
            with self.assertRaises(penstock.SettingsError) as raised:
                first(field, dtype)
            self.assertIn(says, str(raised.exception))
        with self.assertRaisesRegex(penstock.SettingsError, "fits int32, and no side column of it proves that all values do"):
            first("cls", "int32", bare)
        other = self.path("other")
        with penstock.Writer(other, {"cls": "int64", "v": "int32"}) as writer:
            for i in range(100):
                writer.add(cls=300 if i == 9 else i % 7, v=i)
        few = self.bare_of_few()
        mixed = penstock.Mixture({path: 50, other: 1})
        values = first("cls", "int16", mixed)
        self.assertEqual((values.dtype, set(values.tolist()) - {300} <= set(range(7))), (np.int16, True))
        with self.assertRaisesRegex(penstock.SettingsError, f"fits uint8: sample 9 of {other} has 300; choose one"):
            first("cls", "uint8", mixed)
        with self.assertRaisesRegex(penstock.SettingsError, f"fits int16, and no side column of it in {few} proves that all values do"):
            first("cls", "int16", penstock.Mixture({path: 100, few: 1}))
        penstock.add_column(bare, "cls", np.zeros(5000, "i8"))  # says nothing of the records
        with self.assertRaisesRegex(penstock.SettingsError, "no side column of it proves"):
            first("cls", "int32", bare)

    def test_a_column_of_a_slice_has_the_values_of_its_records(self):
        with penstock.Dataset(self.write()) as d:
            for ids in (slice(100, 200), slice(None, None, 7), slice(None, None, -1), slice(2500, 10, -13)):
                part = d[ids]
                self.assertTrue((part.column("cls") == (np.arange(N) % 100 - 50)[ids]).all(), ids)
                self.assertEqual(part.column("cls", 1, 4).tolist(), [part.get(i, "cls") for i in range(1, 4)])
            again = pickle.loads(pickle.dumps(d))
            self.assertTrue((again.column("cls") == d.column("cls")).all())

    def test_a_column_is_added_replaced_and_removed(self):
        path = self.write()
        before = penstock.Dataset(path)
        weights = np.linspace(0, 1, N)
        penstock.add_column(path, "weight", weights)
        self.assertNotIn("weight", before.columns)
        with penstock.Dataset(path) as d:
            self.assertEqual(d.columns["weight"], penstock.ColumnInfo("weight", "float64", None, None,
                                                                      d.columns["weight"].bytes))
            self.assertTrue((d.column("weight") == weights).all())
            self.assertEqual(d.info.identity, before.info.identity)
        self.assertEqual(before[7]["cls"], -43)
        with self.assertRaisesRegex(penstock.DataSetExistsError, "set overwrite=True to replace it"):
            penstock.add_column(path, "weight", weights)
        penstock.add_column(path, "weight", weights[::-1].astype(">f4"), overwrite=True)
        with self.assertRaisesRegex(penstock.DataSetNotFoundError, "were changed while it was open"):
            d = penstock.Dataset(path)
            penstock.add_column(path, "weight", list(range(N)), overwrite=True)
            d.column("weight")
        with penstock.Dataset(path) as d:
            self.assertEqual(d.column("weight", 2000, 2002).tolist(), [2000, 2001])
        penstock.remove_column(path, "weight")
        with self.assertRaises(penstock.DataSetNotFoundError):
            penstock.remove_column(path, "weight")
        self.assertTrue((before.column("cls") == np.arange(N) % 100 - 50).all())

    def test_a_merge_names_the_columns_that_it_leaves_out(self):
        pack_id, parts = uuid.uuid4().hex, [self.path(name) for name in ("first", "second")]
        for part in parts:
            with penstock.Writer(part, {"cls": "int64"}, part=penstock.Task(pack_id, part)) as writer:
                writer.add(cls=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            penstock.merge(parts, self.path("whole"))
            penstock.add_column(parts[0], "same", np.ones(1, "f4"))
            penstock.add_column(parts[1], "same", np.ones(1, "f4"))
            penstock.merge(parts, self.path("whole"), overwrite=True)
        penstock.add_column(parts[0], "one", np.ones(1, "f4"))
        for part, dtype in zip(parts, ("f4", "f8")):
            penstock.add_column(part, "other", np.ones(1, dtype))
        wanted = (f"penstock.merge: column one is left out: not all parts have it, and {parts[0]} does; column other is left out: "
                  f"its dtype is float32 in {parts[0]} and float64 in {parts[1]}; must be the same in all parts")
        with self.assertWarnsRegex(UserWarning, f"^{re.escape(wanted)}$") as caught:
            penstock.merge(parts, self.path("whole"), overwrite=True)
        self.assertEqual(caught.filename, __file__)
        with penstock.Dataset(self.path("whole")) as data:
            self.assertEqual(sorted(data.columns), ["cls", "same"])
        for part in parts:
            penstock.remove_column(part, "other")
        penstock.remove_column(parts[0], "one")
        penstock.remove_column(parts[0], "cls")
        penstock.add_column(parts[0], "cls", np.ones(1, "i8"))
        wanted = (f"penstock.merge: column cls is left out: it is a column that was added in {parts[0]} and the value of field cls "
                  f"in {parts[1]}; must be the same in all parts")
        with self.assertWarnsRegex(UserWarning, f"^{re.escape(wanted)}$"):
            penstock.merge(parts, self.path("whole"), overwrite=True)

    def test_an_invalid_column_is_refused_with_the_reason(self):
        path = self.write(columns=False)
        for values, why in ((np.zeros(N - 1), f"has {N - 1} values; must have {N}"), (np.zeros((N, 2)), "2 dimensions"),
                            (np.zeros(N, bool), "dtype of the values is bool"), (["a"] * N, "dtype of the values is"),
                            (np.full(N, np.nan), "sample 0 is NaN")):
            with self.assertRaisesRegex(penstock.SettingsError, why):
                penstock.add_column(path, "bad", values)
        with self.assertRaisesRegex(penstock.SettingsError, "name: value is"):
            penstock.add_column(path, "a b", np.zeros(N))
        with self.assertRaises(penstock.DataSetNotFoundError):
            penstock.add_column(os.path.join(self.folder, "none"), "a", np.zeros(N))
        with penstock.Dataset(path) as d:
            self.assertEqual(d.columns, {})
            with self.assertRaisesRegex(penstock.SettingsError, "name: value is 'cls'; must be a side column of"):
                d.column("cls")

    def test_pack_makes_none_where_none_are_wanted(self):
        samples, folder = [{"cls": i, "text": "x" * i} for i in range(90)], self.path("images")
        os.makedirs(folder)
        for i in range(2):
            with open(os.path.join(folder, f"{i}.jpg"), "wb") as file:
                file.write(image_file(i))
        for source, workers in ((samples, 0), (samples, 2), (folder, None)):
            for columns in (False, True):
                with penstock.pack(source, self.path("made"), overwrite=True, progress=False, num_workers=workers, columns=columns) as made:
                    self.assertEqual(bool(made.columns), columns, (type(source), workers))

    def test_a_name_ends_at_no_zero_byte(self):
        path = self.write()
        penstock.add_column(path, "a", np.zeros(N))
        names = penstock.Dataset(path).columns.keys()
        for use in (lambda: penstock.remove_column(path, "a\0b"),
                    lambda: penstock.add_column(path, "a\0b", np.zeros(N), overwrite=True),
                    lambda: penstock.Where("a\0b", at_least=0), lambda: penstock.Weighted("a\0b"),
                    lambda: penstock.Balanced("a\0b"), lambda: penstock.Balanced("cls\0b"),
                    lambda: penstock.export(path, to="npy", out=self.path("out"), fields=["cls\0b"]),
                    lambda: penstock.export(path, to="folder", out=self.path("out"), label="cls\0b")):
            with self.assertRaisesRegex(penstock.SettingsError, r"value is '\w+\\x00b'.*without a zero byte"):
                use()
        self.assertEqual(penstock.Dataset(path).columns.keys(), names)

    def test_values_that_an_array_masks_are_refused(self):
        path, masked = self.write(), np.ma.masked_equal(np.arange(N), 7)
        for use in (lambda: penstock.add_column(path, "m", masked), lambda: penstock.Weighted(masked),
                    lambda: penstock.Ids(masked)):
            with self.assertRaisesRegex(penstock.SettingsError, f"an array that masks 1 of {N} values; .*filled"):
                use()
        with penstock.Writer(self.path("m"), {"x": penstock.Field("int64", [N])}) as writer:
            with self.assertRaisesRegex(ValueError, "field x: .* masks 1 of"):
                writer.add(x=masked)
            writer.add(x=masked.filled(0))
        with penstock.Writer(self.path("s"), {"x": "float32", "y": "float16"}) as writer:
            for hidden in (np.ma.masked, np.ma.masked_equal(np.arange(N), 7)[7], np.ma.array(3.5, mask=True)):
                with self.assertRaisesRegex(penstock.FieldError, "field y: value is a null .*; must be one number for float16"):
                    writer.add(x=1.5, y=hidden)
            writer.add(x=np.ma.array(3.5), y=np.float16("nan"))  # nothing is masked
        self.assertEqual(penstock.Dataset(self.path("s"))[0]["x"], 3.5)
        penstock.add_column(path, "m", np.ma.masked_equal(np.arange(N), -1))  # it masks none
        self.assertEqual(penstock.Dataset(path).column("m", 7, 8).tolist(), [7])

    def test_a_missing_file_fails_only_its_column(self):
        path = self.write()
        os.remove(next(os.path.join(path, f) for f in sorted(os.listdir(path)) if f.endswith(".cls.pcol")))
        with penstock.Dataset(path) as d:
            self.assertEqual(d[0]["cls"], -50)
            self.assertEqual(len(d.column("text.size")), N)
            with self.assertRaisesRegex(penstock.PenstockError, "cls.pcol"):
                d.column("cls")
