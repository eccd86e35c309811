# SPDX-License-Identifier: Apache-2.0
"""penstock.pack of files and data sets of others, with what of their packages is installed."""

import json
import contextlib
import gc
import io
import os
import pickle
import re
import subprocess
import sys
import tarfile
import unittest
import warnings

import penstock
from data_fixture import Case, image_file, np, optional, picture
from penstock.packing import importers


def quiet(*arguments, **keywords):
    return penstock.pack(*arguments, progress=False, **keywords)


class Files(Case):
    def check(self, source, rows, **keywords):
        """By one process and by two, both times these rows."""
        for workers in (0, 2):
            d = quiet(source, self.path(), num_workers=workers, overwrite=True, **keywords)
            self.assertEqual(len(d), len(rows))
            for got, wanted in zip(d, rows):
                self.assertEqual(set(got), set(wanted))
                for name in wanted:
                    np.testing.assert_array_equal(got[name], wanted[name])
        return d

    def test_npy_and_npz(self):
        a, b = np.arange(60, dtype="u2").reshape(20, 3), np.arange(20.0)
        text = np.array([f"n{i}" for i in range(20)])
        np.save(self.path("a.npy"), a)
        np.savez(self.path("a.npz"), x=a, y=b, t=text)
        d = self.check(self.path("a.npy"), [{"data": row} for row in a])
        self.assertEqual(d.schema, {"data": penstock.Field("uint16", (3,))})
        self.check(self.path("a.npz"), [{"x": p, "y": q, "t": str(t)} for p, q, t in zip(a, b, text)])
        np.savez(self.path("b.npz"), x=a, y=b[:5])
        self.assert_says(["b.npz", "x: 20", "y: 5"], quiet, self.path("b.npz"), self.path("no"))
        np.savez(self.path("c.npz"), x=np.array([{}, 1], dtype=object))
        self.assert_says(["c.npz", "objects"], quiet, self.path("c.npz"), self.path("no"))
        with open(self.path("d.npy"), "wb") as file:
            file.write(b"nothing of NumPy's")
        self.assert_says("d.npy", quiet, self.path("d.npy"), self.path("no"))
        np.savez(self.path("e.npz"), **{"a/b": a, "c": b})
        self.check(self.path("e.npz"), [{"a_b": p, "c": q} for p, q in zip(a, b)])

    def test_images_of_an_npz_become_pixels(self):
        images = np.stack([picture(i) for i in range(5)])
        np.savez(self.path("a.npz"), image=images, cls=np.arange(5))
        d = self.check(self.path("a.npz"), [{"image": images[i], "cls": i} for i in range(5)])
        self.assertEqual(d.fields["image"].encodings, {"pixels": 5})

    def test_pt(self):
        torch = optional("torch")
        x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
        for saved, rows in [
            ({"x": x, "y": y}, [{"x": x[i].numpy(), "y": i} for i in range(6)]),
            ((x, y), [{"0": x[i].numpy(), "1": i} for i in range(6)]),
            (x, [{"data": x[i].numpy()} for i in range(6)]),
            ([{"t": "a", "n": 1}, {"t": "b", "n": 2}], [{"t": "a", "n": 1}, {"t": "b", "n": 2}]),
        ]:
            torch.save(saved, self.path("a.pt"))
            self.check(self.path("a.pt"), rows)
        torch.save({"x": subprocess.Popen}, self.path("b.pt"))
        self.assert_says(["b.pt", "weights_only"], quiet, self.path("b.pt"), self.path("no"))

    def test_hdf5(self):
        h5py = optional("h5py")
        x = np.arange(6000, dtype="f4").reshape(1000, 6)
        with h5py.File(self.path("a.h5"), "w") as file:
            file.create_dataset("x", data=x, chunks=(64, 6), compression="gzip")
            file.create_dataset("group/y", data=np.arange(1000))
            file.create_dataset("t", data=[f"é{i}" for i in range(1000)], dtype=h5py.string_dtype())
            file.create_dataset("version", data=3)
            ragged = file.create_dataset("v", (1000,), dtype=h5py.vlen_dtype("i4"))
            for i in range(1000):
                ragged[i] = np.arange(i % 5)
        d = self.check(
            self.path("a.h5"),
            [{"x": x[i], "group.y": i, "t": f"é{i}", "v": np.arange(i % 5)} for i in range(1000)],
        )
        self.assertEqual(d.schema["v"], penstock.Field("int32", (None,)))
        view = pickle.loads(pickle.dumps(importers.HDF5File(self.path("a.h5"))))
        self.assertEqual([int(view[i]["group.y"]) for i in (999, 0, 500)], [999, 0, 500])
        with h5py.File(self.path("b.h5"), "w") as file:
            file.create_dataset("x", data=x)
            file.create_dataset("y", data=x[:3])
        self.assert_says(["x: 1000", "y: 3"], quiet, self.path("b.h5"), self.path("no"))

    def test_files_are_closed_without_a_collection(self):
        h5py = optional("h5py")
        with h5py.File(self.path("a.h5"), "w") as file:
            file.create_dataset("x", data=np.arange(10))

        def is_open():
            at = [os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")]
            return any(os.path.realpath(link).endswith("a.h5") for link in at)

        gc.disable()
        try:
            source = importers.opened(self.path("a.h5"))
            self.assertEqual((source[3], is_open()), ({"x": 3}, True))
            importers.close(source, source)  # the caller's own
            self.assertTrue(is_open())
            importers.close(source, self.path("a.h5"))
            self.assertFalse(is_open())
            self.assertEqual((source[4], is_open()), ({"x": 4}, True))
            del source
            self.assertFalse(is_open())
        finally:
            gc.enable()

    def test_broken_files_are_named(self):
        packages = {"npy": "numpy", "npz": "numpy", "pt": "torch", "h5": "h5py", "parquet": "pyarrow"}
        n_tried = 0
        for suffix, package in packages.items():
            try:
                optional(package)
            except unittest.SkipTest:
                continue
            for content, words in ((b"", "it is empty"), (b"PK\3\4 no file" * 40, "cannot be read as")):
                path = self.path("broken." + suffix)
                with open(path, "wb") as file:
                    file.write(content)
                with self.subTest(suffix=suffix, n=len(content)):
                    error = self.assert_says([path, words, "make or copy it anew"], importers.opened, path)
                    self.assertIsInstance(error, penstock.CorruptRecordError)  # as Dataset of one read in place
                n_tried += 1
        self.assertGreaterEqual(n_tried, 4)

    def test_parquet(self):
        pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        files = [image_file(i) for i in range(50)]
        table = pa.table(
            {
                "n": list(range(50)),
                "t": [f"t{i}" for i in range(50)],
                "ids": [list(range(i % 4)) for i in range(50)],
                "image": [{"bytes": f, "path": None} for f in files],
                "f": pa.array([i / 2 for i in range(50)]),
            }
        )
        os.mkdir(self.path("some"))
        parquet.write_table(table, self.path("a.parquet"), row_group_size=7)
        parquet.write_table(table[:20], self.path("some/0.parquet"), row_group_size=6)
        parquet.write_table(table[20:], self.path("some/1.parquet"))
        rows = [
            {"n": i, "t": f"t{i}", "ids": np.arange(i % 4), "image": files[i], "f": i / 2} for i in range(50)
        ]

        def compared(got):
            self.assertEqual([r["n"] for r in got], [r["n"] for r in rows])
            for a, b in zip(got, rows):
                self.assertEqual(
                    (a["t"], a["image"], a["f"], list(a["ids"])), (b["t"], b["image"], b["f"], list(b["ids"]))
                )

        for source in ("a.parquet", "some"):
            for workers in (0, 2):
                d = quiet(self.path(source), self.path(), num_workers=workers, overwrite=True)
                compared(d)
        self.assertEqual(d.schema["image"], penstock.Field("image"))
        view = pickle.loads(pickle.dumps(importers.ParquetFiles([self.path("a.parquet")])))
        self.assertEqual([view[i]["n"] for i in (49, 0, 7, 6)], [49, 0, 7, 6])
        parquet.write_table(table.select(["n"]), self.path("some/2.parquet"))
        words = ["2.parquet: columns are n; must be those of", "0.parquet: n, t"]
        self.assert_says(words, quiet, self.path("some"), self.path("no"))
        parquet.write_table(pa.table({"t": ["a", None]}), self.path("none.parquet"))
        self.assert_says("field t: sample 1 has a null (None)", quiet, self.path("none.parquet"), self.path("no"))

    def test_a_pattern_of_parquet_files(self):
        """is packed as their folder is, and where it is not read in place, the error says so."""
        pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        for i in range(12):
            os.makedirs(self.path("s{1}"), exist_ok=True)
            parquet.write_table(pa.table({"n": [2 * i, 2 * i + 1]}), self.path(f"s{{1}}/{i:02d}.parquet"))
        for pattern, wanted in (("*.parquet", range(24)), ("0?.parquet", range(20)), ("{09..11}.parquet", range(18, 24)),
                                ("{03,01}.parquet", (6, 7, 2, 3)), ("*", range(24)),
                                ("1*", range(20, 24))):
            path = self.path("s{1}/" + pattern)
            error = self.assert_says([f"{path} matches {len(wanted) // 2} ", "file", "not read in place"], penstock.Dataset, path)
            made = re.search(r"penstock\.pack\('.*?', OUT\)", str(error))[0]
            with self.subTest("the advice, as it is printed"):
                packed = eval(made.replace("OUT)", "OUT, overwrite=True, progress=False)"), {"penstock": penstock, "OUT": self.path("out")})
                self.assertEqual([row["n"] for row in packed], list(wanted))
        self.assert_says("cannot open " + self.path("s{1}/12.parquet"), quiet, self.path("s{1}/{09..12}.parquet"), self.path("no"))
        for many in ("{0..99999999999}", 8 * "{0..9}"):
            self.assert_says("matches more than 1048576 files", quiet, self.path("s{1}/" + many + ".parquet"), self.path("no"))
        self.assert_says("matches no file", quiet, self.path("s{1}/9?.parquet"), self.path("no"))
        self.assert_says([self.path("s{1}") + " is not a data set: ", "00.parquet", f"penstock.pack('{self.path('s{1}')}', OUT)"],
                         penstock.Dataset, self.path("s{1}"))
        self.assertEqual(len(quiet(self.path("s{1}"), self.path("all"))), 24)
        for name in ("a.h5", "b.h5"):
            open(self.path(name), "w").close()
        for function in (penstock.Dataset, lambda path: quiet(path, self.path("no"))):
            self.assert_says(["*.h5 matches 2 files, the first a.h5", f"penstock.pack('{self.path('a.h5')}', OUT)"], function, self.path("*.h5"))

    def test_a_pattern_of_parquet_tables_of_images_is_refused(self):
        pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        for i in range(2):
            with open(self.path(f"{i}.jpg"), "wb") as file:
                file.write(image_file(i))
            parquet.write_table(pa.table({"file_name": [f"{i}.jpg"]}), self.path(f"{i}.parquet"))
        self.assert_says([self.path("0.parquet") + " lists images", "pack one table"], quiet, self.path("*.parquet"), self.path("no"))
        self.assertEqual(list(quiet(self.path("0.parquet"), self.path("one")).fields), ["image", "path"])

    def test_an_index_with_a_name_is_said_to_be_left_out(self):
        pandas = optional("pandas")
        frame = pandas.DataFrame({"name": ["a", "b"], "day": [1, 2], "x": [3, 4]})
        for keys in (["name"], ["name", "day"]):
            wanted = f"penstock.pack: the index of the DataFrame ({', '.join(keys)}) is not a column and is left out"
            with self.assertWarnsRegex(UserWarning, re.escape(wanted)) as caught:
                quiet(frame.set_index(keys), self.path(), overwrite=True)
            self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(len(quiet(frame[frame.x > 3], self.path(), overwrite=True)), 1)
            quiet(frame.set_index("name", drop=False), self.path(), overwrite=True)
            quiet(frame.set_index("name"), self.path(), schema={"x": "int64", "day": "int64"}, overwrite=True)
            quiet(frame.set_index("name").reset_index(drop=True), self.path(), overwrite=True)
            made = quiet(frame.set_index("name").reset_index(), self.path(), overwrite=True)
        self.assertEqual([row["name"] for row in made], ["a", "b"])

    def test_nulls_are_named_with_their_row_and_the_ways_out(self):
        pandas, parquet = optional("pandas"), optional("pyarrow.parquet")
        table = importers.needed("pyarrow", "this test").table
        drop = "frame.dropna(subset=['x']) or frame.drop(columns='x'))"
        for values, says in ((["a", None, "b"], f"pack frame.fillna({{'x': ''}}), {drop}"),
                             ([True, None, False], f"pack frame.fillna({{'x': False}}), {drop}"),
                             ([None, None], f"as all samples that were looked at); must have a value in every sample, which is a row of a table (of a table, pack {drop}")):
            parquet.write_table(table({"x": values}), self.path("null.parquet"))
            row = values.index(None)
            for source in (self.path("null.parquet"), pandas.DataFrame({"x": pandas.Series(values, dtype="object")}), pandas.read_parquet(self.path("null.parquet"))):
                self.assert_says([f"field x: sample {row} has a null (", says], quiet, source, self.path("no"))
        for name, fill in (("x", ""), ("x", "z")):  # the ways out, as printed
            frame = pandas.DataFrame({name: ["a", None, "b"]})
            self.assertEqual([r["x"] for r in quiet(frame.fillna({"x": fill}), self.path(), overwrite=True)], ["a", fill, "b"])
        self.assertEqual([r["x"] for r in quiet(frame.dropna(subset=["x"]), self.path(), overwrite=True)], ["a", "b"])
        for missing in (float("nan"), pandas.NA, pandas.NaT):
            self.assert_says("sample 1 has a null (", quiet, {"x": ["a", missing]}, self.path("no"))
        late = ["a"] * 5000
        late[4321] = None  # the schema is found out before it
        self.assert_says(["sample 4321", "field x: value is a null (", "); must be text (of a table, pack frame.fillna({'x': ''})"],
                         quiet, pandas.DataFrame({"x": late}), self.path("no"), num_workers=0)
        self.assertEqual(len(quiet(pandas.DataFrame({"x": [1.5, None]}), self.path(), overwrite=True)), 2)  # NaN

    def test_a_frame_of_hugging_faces_images_has_what_its_file_has(self):
        pa, parquet, pandas = optional("pyarrow"), optional("pyarrow.parquet"), optional("pandas")
        with open(self.path("1.jpg"), "wb") as file:
            file.write(image_file(1))
        images = [{"bytes": image_file(0), "path": "0.jpg"}, {"bytes": None, "path": self.path("1.jpg")}]
        parquet.write_table(pa.table({"image": images, "several": [images, images[:1]]}), self.path("hf.parquet"))
        frame = pandas.read_parquet(self.path("hf.parquet"))
        for source in (self.path("hf.parquet"), frame, {"image": images}):
            with quiet(source, self.path(), overwrite=True) as made:
                self.assertEqual(made.schema["image"], penstock.Field("image"))
                self.assertEqual([made[i]["image"] for i in range(2)], [image_file(0), image_file(1)])
                if "several" in made.schema:
                    self.assertEqual([len(made[i]["several"]) for i in range(2)], [2, 1])

    def test_parquet_keeps_types_and_nulls_as_a_frame_does(self):
        pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        optional("pandas")
        types = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
        table = pa.table({**{name: pa.array([1, 2, 3], name) for name in types}, "half": np.array([1, 2, 3], "float16"),
                          "null": pa.array([1, None, 3], "int16"), "nan": pa.array([1, None, 3], "float32"),
                          "pair": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32())),
                          "some": pa.array([[], [3], [5, 6]], pa.list_(pa.int16())), "flag": [True, False, True]})
        wanted = {**{name: name for name in types}, "half": "float16", "null": "float64", "nan": "float32", "pair": "float32",
                  "some": "int16", "flag": "uint8"}
        os.mkdir(self.path("split"))
        parquet.write_table(table, self.path("a.parquet"))
        parquet.write_table(table, self.path("bare.parquet"), write_statistics=False)
        parquet.write_table(table[:1], self.path("split/0.parquet"))
        parquet.write_table(table[1:], self.path("split/1.parquet"), row_group_size=1)
        frame = table.to_pandas()
        for source in (self.path("a.parquet"), self.path("bare.parquet"), self.path("split"), frame):
            with quiet(source, self.path(), overwrite=True) as d:
                self.assertEqual({name: field.kind for name, field in d.schema.items()}, wanted)
                self.assertTrue(all(np.isnan(d[1][name]) for name in ("null", "nan")))
                self.assertEqual([d[i]["null"] for i in (0, 2)], [1, 3])
                self.assertEqual([d[i]["some"].tolist() for i in range(3)], [[], [3], [5, 6]])
        nullable = frame[["int32", "null", "float32"]].astype({"int32": "Int32", "null": "Int16", "float32": "Float32"})
        with quiet(nullable, self.path(), overwrite=True) as d:
            self.assertEqual({name: field.kind for name, field in d.schema.items()},
                             {"int32": "int32", "null": "float64", "float32": "float32"})
            self.assertTrue(np.isnan(d[1]["null"]))
        for column in (pa.array(["a", None]), pa.array([True, None])):  # no number stands for these
            parquet.write_table(pa.table({"x": column}), self.path("x.parquet"))
            for source in (self.path("x.parquet"), pa.table({"x": column}).to_pandas()):
                self.assert_says("field x: sample 1 has a null (", quiet, source, self.path("no"))

    def test_parquet_of_hugging_face_keeps_class_names(self):
        pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        table = pa.table({"label": [1, 0], "n": [1, 2]})

        def names(features):
            text = json.dumps({"info": {"features": features}}) if isinstance(features, dict) else features
            parquet.write_table(table.replace_schema_metadata({"huggingface": text}), self.path("a.parquet"))
            with quiet(self.path("a.parquet"), self.path(), overwrite=True) as d:
                return d.names

        label = {"_type": "ClassLabel", "names": ["cat", "dog"]}
        self.assertEqual(names({"label": label, "n": {"dtype": "int64", "_type": "Value"}}), ("cat", "dog"))
        for features in ({"label": label, "n": label}, {"n": {"_type": "Value"}}, {"label": {"_type": "ClassLabel"}}, "no JSON", "[1]"):
            self.assertEqual(names(features), ())

    def test_a_parquet_table_beside_other_data_is_refused_with_the_way_out(self):
        """Its rows would be packed in place of the images."""
        pandas = optional("pandas")
        optional("pyarrow")
        folder, packed = self.path("mixed"), self.path("packed")
        for name in ("a/0.jpg", "a/1.jpg", "b/0.jpg"):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "wb") as file:
                file.write(image_file())
        table = os.path.join(folder, "x.parquet")
        pandas.DataFrame({"a": [1, 2]}).to_parquet(table)
        self.assert_says([f"path: value is {folder}, which has Parquet tables, and is a data set of the format folder",
                          f"must be of one format (give {table}, or move it elsewhere"], penstock.pack, folder, packed)
        for path, n in ((table, 2), (folder, 3)):
            penstock.pack(path, packed, overwrite=True, progress=False)
            with penstock.Dataset(packed) as data:
                self.assertEqual(len(data), n)
            if path == table:
                os.remove(table)
        with self.subTest("a metadata.parquet that lists no images"):
            rows = os.path.join(folder, "metadata.parquet")
            pandas.DataFrame({"a": [1, 2]}).to_parquet(rows)
            error = self.assert_says(["is a data set of the format folder without them; must be of one format", f"give {rows}, or move"],
                                     penstock.pack, folder, packed)
            self.assertNotIn("only Python", str(error))
            error = self.assert_says([f"{rows} has no column of the images' paths", f"penstock.pack('{rows}', OUT)"], penstock.Dataset, folder)
            self.assertNotIn("pandas", str(error))
            self.assertEqual(len(penstock.pack(rows, packed, overwrite=True, progress=False)), 2)
        os.makedirs(self.path("tables"))
        for name in ("x", "y"):
            pandas.DataFrame({"a": [1, 2]}).to_parquet(self.path(f"tables/{name}.parquet"))
        with open(self.path("tables/plot.png"), "wb") as file:
            file.write(image_file())
        penstock.pack(self.path("tables"), packed, overwrite=True, progress=False)
        with penstock.Dataset(packed) as data:
            self.assertEqual(len(data), 4)

    def test_hugging_face(self):
        datasets = optional("datasets")
        files = [image_file(i) for i in range(30)]
        features = datasets.Features(
            {
                "image": datasets.Image(),
                "label": datasets.ClassLabel(names=["a", "b"]),
                "ids": datasets.Sequence(datasets.Value("int32")),
            }
        )
        made = datasets.Dataset.from_dict(
            {
                "image": [{"bytes": f, "path": None} for f in files],
                "label": [i % 2 for i in range(30)],
                "ids": [[i] * (i % 3) for i in range(30)],
            },
            features=features,
        )
        made.save_to_disk(self.path("saved"))
        for source in (made, self.path("saved")):
            for workers in (0, 2):
                d = quiet(source, self.path(), num_workers=workers, overwrite=True)
                self.assertEqual(
                    [(r["image"], r["label"], r["ids"].tolist()) for r in d],
                    [(files[i], i % 2, [i] * (i % 3)) for i in range(30)],
                )
        self.assertEqual(d.names, ("a", "b"))
        stream = quiet(made.to_iterable_dataset(), self.path("stream"))
        self.assertEqual((len(stream), stream[3]["label"]), (30, 1))

    def test_a_transform_of_hugging_face_gives_the_columns(self):
        datasets = optional("datasets")
        made = datasets.Dataset.from_dict(
            {"image": [{"bytes": image_file(i), "path": None} for i in range(4)], "label": [0, 1, 0, 1], "t t": list("abcd")},
            features=datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"]),
                                        "t t": datasets.Value("string")}))

        def tokens(rows):
            return {"token ids": [[ord(t), 7] for t in rows["t t"]], "label": rows["label"]}

        def flipped(rows):  # it gets decoded images, as it does in a loop over the data set
            return {"image": [np.asarray(one.convert("RGB"))[:, ::-1] for one in rows["image"]], "y": rows["label"]}

        d = quiet(made.with_transform(tokens), self.path(), num_workers=0)
        self.assertEqual([(r["token_ids"].tolist(), r["label"]) for r in d], [([97 + i, 7], i % 2) for i in range(4)])
        self.assertEqual((sorted(d.fields), d.names), (["label", "token_ids"], ("a", "b")))
        with quiet(made.with_transform(flipped), self.path(), num_workers=0, overwrite=True) as d:
            self.assertEqual((list(d.fields), d.names), (["image", "y"], ()))
        decoded = penstock.Dataset(self.path(), decode=True)
        for i in range(4):
            np.testing.assert_array_equal(decoded[i]["image"], np.asarray(made[i]["image"].convert("RGB"))[:, ::-1])
        def swapped(rows):
            return {"label": [1 - label for label in rows["label"]]}

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with penstock.pack(made.with_transform(swapped), self.path("swapped"), num_workers=0, progress=False) as d:
                self.assertEqual(([r["label"] for r in d], d.names), ([1, 0, 1, 0], ()))
        self.assertEqual([(str(one.message).partition(":")[0], one.filename) for one in caught],
                         [("the transform of the data set changes label", __file__)])
        gray = made.cast_column("image", datasets.Image(mode="L"))
        with self.assertWarnsRegex(UserWarning, r"column image: Image\(mode='L'\) is not applied.*give channels=") as caught:
            penstock.pack(gray, self.path("gray"), num_workers=0, progress=False)
        self.assertEqual(caught.filename, __file__)
        self.assert_says(["a b, a_b", "rename some"], quiet,
                         made.with_transform(lambda rows: {"a b": rows["label"], "a_b": rows["label"]}), self.path("no"), num_workers=0)

    def test_class_names_come_through_what_wraps_a_data_set(self):
        data = optional("torch").utils.data
        datasets = optional("datasets")

        class Named(list):
            def __init__(self, *classes):
                super().__init__({"x": i, "label": i} for i in range(2))
                if classes:
                    self.classes = list(classes)

        def hugging(*names):
            return datasets.Dataset.from_dict({"x": [0, 1], "label": [0, 1]}, features=datasets.Features(
                {"x": datasets.Value("int64"), "label": datasets.ClassLabel(names=list(names))}))

        ab = Named("a", "b")
        for source, names in (
                (data.Subset(ab, [1]), ("a", "b")), (data.Subset(data.Subset(hugging("p", "q"), [1, 0]), [0]), ("p", "q")),
                (data.random_split(ab, [1, 1])[0], ("a", "b")), (hugging("p", "q").to_iterable_dataset(), ("p", "q")),
                (data.ConcatDataset([ab, Named("a", "b")]), ("a", "b")), (data.ConcatDataset([ab, data.Subset(ab, [0])]), ("a", "b")),
                (data.ConcatDataset([ab, Named("a", "b", "c")]), ("a", "b", "c")), (data.ConcatDataset([ab, Named()]), ())):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(quiet(source, self.path(), num_workers=0, overwrite=True).names, names)
        turned = Named("a", "b")
        turned.target_transform = None
        self.assertEqual(quiet(turned, self.path(), num_workers=0, overwrite=True).names, ("a", "b"))
        turned.target_transform = lambda label: 1 - label
        with self.assertWarnsRegex(UserWarning, "target_transform of the Named changes labels: .*names="):
            self.assertEqual(quiet(data.Subset(turned, [0]), self.path(), num_workers=0, overwrite=True).names, ())
        with self.assertWarnsRegex(UserWarning, "ConcatDataset: class 0 is 'a' and 'b' in .*names=") as caught:
            self.assertEqual(quiet(data.ConcatDataset([ab, Named("b", "a")]), self.path(), num_workers=0, overwrite=True).names, ())
        self.assertEqual(caught.filename, __file__)

    def test_a_data_set_is_packed_and_unsupported_paths_are_refused(self):
        quiet([1, 2], self.path("own"))
        self.assertEqual(len(quiet(self.path("own"), self.path("copy"))), 2)
        os.mkdir(self.path("folder"))
        self.assert_says("holds no images", quiet, self.path("folder"), self.path("no"))
        with open(self.path("a.xls"), "w"):
            pass
        self.assert_says([".xls", ".npz", ".parquet"], quiet, self.path("a.xls"), self.path("no"))
        self.assertIsInstance(
            self.assert_says("no such file", quiet, self.path("none.npz"), self.path("no")), FileNotFoundError
        )

    def test_data_sets_read_in_place_are_packed_as_by_the_command(self):
        os.mkdir(self.path("tars"))
        for shard in range(2):
            with tarfile.open(self.path(f"tars/{shard:03d}.tar"), "w") as tar:
                for number in range(shard * 5, shard * 5 + 5):
                    for suffix, data in (("cls", b"%d" % number), ("jpg", image_file(number))):
                        member = tarfile.TarInfo(f"{number:03d}.{suffix}")
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))
        os.mkdir(self.path("arrays"))
        np.save(self.path("arrays/x.npy"), np.arange(6.0).reshape(3, 2))
        np.save(self.path("arrays/y.npy"), np.arange(3))
        command = os.environ["PENSTOCK_COMMAND"]
        for source, n in (("tars", 10), ("tars/{000..001}.tar", 10), ("tars/001.tar", 5), ("arrays", 3)):
            d = quiet(self.path(source), self.path("packed"), overwrite=True)
            subprocess.run([command, "pack", self.path(source), self.path("wanted"), "--overwrite"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with penstock.Dataset(self.path("wanted")) as wanted, penstock.Dataset(self.path(source)) as in_place:
                self.assertEqual((len(d), d.info.identity), (n, wanted.info.identity))
                self.assertEqual(list(d.fields), list(in_place.fields))
        self.assert_says(["schema", "read in place"], quiet, self.path("tars"), self.path("no"), schema={"jpg": "image"})

    def test_an_image_of_a_format_that_is_not_packed_is_refused_by_its_name(self):
        webp = b"RIFF\x24\0\0\0WEBPVP8 " + bytes(20)
        for check in (True, False):
            with self.assertRaisesRegex(penstock.PenstockError, "WebP"), penstock.Writer(
                self.path("w"), {"jpg": "image"}, check_images=check
            ) as writer:
                writer.add({"jpg": webp})

    def test_a_missing_package_is_named_as_pip_has_it(self):
        code = (
            "import sys, penstock\n"
            "for name in ('h5py', 'pyarrow', 'torch', 'pyarrow.parquet'): sys.modules[name] = None\n"
            "for name in ('a.h5', 'a.parquet', 'a.pt'):\n"
            "    open(sys.argv[1] + '/' + name, 'w').close()\n"
            "    try: penstock.pack(sys.argv[1] + '/' + name, sys.argv[1] + '/no')\n"
            "    except ImportError as e: assert isinstance(e, penstock.PenstockError); print(e)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, self.folder], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        for package in ("h5py", "pyarrow", "torch"):
            self.assertIn(f"pip install {package}", done.stdout)

    def test_texts_become_class_numbers(self):
        rows = [{"x": i, "animal": name} for i, name in enumerate(["dog", "cat", "eel", "cat"] * 10)]
        wanted = [{"dog": 1, "cat": 0, "eel": 2}[row["animal"]] for row in rows]
        columns = {name: [row[name] for row in rows] for name in ("x", "animal")}
        quiet(rows, self.path("own"))
        for source, more in ((rows, {}), (rows, {"num_workers": 2}), (columns, {}), (self.path("own"), {}),
                             ([tuple(row.values()) for row in rows], {"schema": {"x": "int8", "animal": "utf8"}}),
                             (rows, {"schema": {"x": "int8", "animal": "int64"}, "num_workers": 2, "context": "spawn"}),
                             (iter(rows), {"names": ["cat", "dog", "eel"]})):
            d = quiet(source, self.path(), classes="animal", overwrite=True, **more)
            self.assertEqual(([r["animal"] for r in d], d.names), (wanted, ("cat", "dog", "eel")))
            self.assertEqual(([r["x"] for r in d], d.schema["animal"].kind), (list(range(40)), "int64"))
        d = quiet(rows, self.path("given"), classes="animal", names=["eel", "dog", "cat", "fox"])
        self.assertEqual(([r["animal"] for r in d][:3], d.names), ([1, 2, 0], ("eel", "dog", "cat", "fox")))

    def test_class_names_that_cannot_be_numbered(self):
        rows = [{"x": i, "animal": "cat"} for i in range(3)] + [{"x": 3, "animal": 7}]
        for words, source, more in (
            (["sample 3", "animal", "value is of type int; must be text"], rows, {}),
            (["sample 0", "did you mean 'animal'"], rows, {"classes": "animals"}),
            (["sample 0", "value is 'cat'; must be one of the class names; did you mean 'cats'"], rows,
             {"names": ["cats"]}),
            (["names: value is None", "iterable"], iter(rows), {}),
            (["names: value has 'cat' twice"], rows, {"names": ["cat", "cat"]}),
        ):
            error = self.assert_says(words, quiet, source, self.path("no"), **{"classes": "animal", **more})
            self.assertIsInstance(error, penstock.PenstockError)
        self.assertEqual(self.left(), [])

    def test_field_names(self):
        self.assertEqual(
            importers.field_names(["a b", "c/d", "é", "ok.1"]),
            {"a b": "a_b", "c/d": "c_d", "é": "_", "ok.1": "ok.1"},
        )
        self.assert_says("columns: names are a b, a/b; must differ", importers.field_names, ["a b", "a/b"])


class Columns(Case):
    def test_a_dataframe_is_its_columns(self):
        pandas = optional("pandas")
        frame = pandas.DataFrame({
            "id": [5, 6, 7], "score": [0.5, 1.0, 2.0], "text": ["x", "y", "z"],
            "file": [image_file(i) for i in range(3)],
            "flag": [True, False, True], "vector": [np.arange(3) + i for i in range(3)], 4: [1, 2, 3]},
            index=[30, 20, 10])
        for rows in (frame, frame.astype({"score": "float32"})):
            made = quiet(rows, self.path(), num_workers=0, overwrite=True)
            self.assertEqual([f.kind for f in made.schema.values()], [
                "int64", str(rows["score"].dtype), "utf8", "image", "uint8", "int64", "int64"])
            self.assertEqual(list(made.schema), ["id", "score", "text", "file", "flag", "vector", "4"])
            self.assertEqual((made[1]["id"], made[1]["text"], made[1]["vector"].tolist()), (6, "y", [1, 2, 3]))
            self.assertEqual((made[2]["file"], made[2]["flag"]), (image_file(2), 1))
        text = pandas.DataFrame({"kind": pandas.Categorical(["a", "b", "a"])}, index=[2, 1, 0])
        self.assertEqual([r["kind"] for r in quiet(text, self.path("text"), num_workers=2)], ["a", "b", "a"])
        series = pandas.Series(["x", "y"], index=[1, 0])
        self.assertEqual([r["data"] for r in quiet(series, self.path("series"))], ["x", "y"])
        self.assertEqual([r["a"] for r in quiet({"a": series}, self.path("dict"))], ["x", "y"])
        twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
        self.assert_says("columns of one name", quiet, twice, self.path("no"))
        self.assert_says("no samples", quiet, frame[:0], self.path("no"))
        self.assert_says("sample 1", quiet, pandas.DataFrame({"a": ["x", None]}), self.path("no"))

    def test_a_dict_of_one_split_is_that_split(self):
        datasets = optional("datasets")
        one = datasets.Dataset.from_dict({"a": [1, 2, 3]})
        self.assertEqual(len(quiet(datasets.DatasetDict({"train": one}), self.path())), 3)
        with contextlib.redirect_stderr(io.StringIO()):
            datasets.DatasetDict({"train": one}).save_to_disk(self.path("saved"))
        self.assertEqual(len(quiet(self.path("saved"), self.path("again"))), 3)
        two = datasets.DatasetDict({"train": one, "test": one})
        said = self.assert_says("value has 2 splits; must have 1", quiet, two, self.path("no"))
        self.assertIn("dataset['train'], dataset['test']", str(said))
        self.assert_says("value has 0 splits", quiet, datasets.DatasetDict(), self.path("no"))

    def test_arrays_of_text_are_refused_and_single_texts_taken(self):
        made = quiet([{"a": np.array(image_file()), "b": np.array("x"), "c": np.array(b"y")}], self.path("one"))
        self.assertEqual([f.kind for f in made.schema.values()], ["image", "utf8", "bytes"])
        self.assertEqual(made[0], {"a": image_file(), "b": "x", "c": b"y"})
        listed = quiet([{"a": ["x", "yyy"]}], self.path("listed"))
        self.assertEqual((listed.schema["a"].kind, listed[0]["a"]), ("utf8_list", ["x", "yyy"]))
        listed = quiet([{"a": np.array([b"x", b"yyy"])}], self.path("array"))
        self.assertEqual((listed.schema["a"].kind, listed[0]["a"]), ("bytes_list", [b"x", b"yyy"]))
        texts = np.array([["x", "yyy"]])
        listed = quiet([{"a": texts.ravel().tolist()}], self.path("advice"))
        self.assertEqual(listed[0]["a"], ["x", "yyy"])
        for value, words in ((texts, "an array of text (<U3); must be of numbers (give a list of them"),
                             (np.array([[b"xx"]]), "an array of bytes (|S2)"), (np.zeros(3, "c8"), "complex64"),
                             (np.array("2026-01-01", "M8[D]"), "datetime64[D]"), (np.zeros(2, "V8"), "|V8"),
                             (np.zeros(2, [("x", "i4")]), "give each of its members a field of its own")):
            said = self.assert_says(["field a: sample 0 has ", words], quiet, [{"a": value}], self.path("no"))
            self.assertNotIn("no kind of field", str(said))
        self.assertEqual([penstock.Field(np.dtype(t)).kind for t in ("S5", "U5")], ["bytes", "utf8"])

    def test_an_arrow_table_is_refused_with_what_to_give(self):
        table = optional("pyarrow").table({"a": [1, 2], "b": ["x", "y"]})
        said = self.assert_says("table.to_pylist()", quiet, table, self.path("no"))
        for code in ("table.to_pylist()", "table.to_pandas()"):
            self.assertIn(code, str(said))
            rows = quiet(eval(code, {"table": table}), self.path("table"), overwrite=True)
            self.assertEqual(list(rows), [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])

    def test_an_arrow_batch_or_array_is_refused_with_what_to_give(self):
        """[i] of a batch is column i: as many rows as columns would be packed as samples."""
        pa = optional("pyarrow")
        batch, array = pa.record_batch({"a": [1, 2], "b": ["x", "y"]}), pa.array([1, 2])
        said = str(self.assert_says("value is an Arrow RecordBatch", quiet, batch, self.path("no")))
        for code in ("batch.to_pylist()", "batch.to_pandas()"):
            self.assertIn(code, said)
            rows = quiet(eval(code, {"batch": batch}), self.path("batch"), overwrite=True)
            self.assertEqual(list(rows), [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        for value in (array, pa.chunked_array([[1, 2]])):
            said = str(self.assert_says("value is an Arrow array", quiet, value, self.path("no")))
            rows = quiet(eval("{'x': array.to_pylist()}", {"array": value}), self.path("batch"), overwrite=True)
            self.assertIn("{'x': array.to_pylist()}", said)
            self.assertEqual(list(rows), [{"x": 1}, {"x": 2}])
        table = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]})
        batches = table.to_batches(max_chunksize=2)
        for value in (batches, iter(batches), table.to_reader(), [table, table]):
            said = str(self.assert_says("the sample is an Arrow", quiet, value, self.path("no")))
        code = said[said.index("(row for"):said.rindex(")")]
        rows = quiet(eval(code, {"batches": batches}), self.path("batch"), overwrite=True)
        self.assertEqual(list(rows), table.to_pylist())

    def test_a_list_of_names_of_files_is_refused_with_what_to_give(self):
        np.save(self.path("a.npy"), np.arange(3))
        np.save(self.path("b.npy"), np.arange(3))
        for name in ("0.tar", "1.tar", "c.txt", "d.txt", "e.jpg"):
            open(self.path(name), "w").close()
        pattern = repr(self.path("*.tar"))
        for names, word in ((["0.tar", "1.tar"], pattern), (["a.npy", "b.npy"], "pack each file"), (["e.jpg"], "{'image': BYTES}")):
            paths = [self.path(name) for name in names]
            for given in (paths, tuple(paths), np.array(paths)):
                said = self.assert_says(f"a list of {len(names)} names of files, the first {paths[0]}", quiet, given, self.path("no"))
                self.assertIn(word, str(said))
        for texts in ([self.path("c.txt"), self.path("d.txt")], [self.path("absent.npy")], [self.path("a.npy"), "no file"]):
            self.assertEqual([row["data"] for row in quiet(texts, self.path("texts"), overwrite=True)], texts)
        rows = quiet([{"path": self.path("a.npy")}], self.path("texts"), overwrite=True)
        self.assertEqual(rows[0]["path"], self.path("a.npy"))

    def test_a_list_of_parquet_files_is_packed_by_the_pattern_that_the_message_names(self):
        pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        for i in range(2):
            parquet.write_table(pa.table({"n": [i]}), self.path(f"{i}.parquet"))
        said = str(self.assert_says("names of files", quiet, [self.path("0.parquet"), self.path("1.parquet")], self.path("no")))
        pattern = eval(re.search("such as ('.*?')", said)[1])
        self.assertEqual([row["n"] for row in quiet(pattern, self.path("out"))], [0, 1])

    def test_classes_that_class_to_idx_contradicts_give_no_names(self):
        class Named(list):
            classes, class_to_idx = ["a", "b"], {"a": 0, "b": 1}

        rows = [{"label": 0}, {"label": 1}]
        self.assertEqual(quiet(Named(rows), self.path("one")).names, ("a", "b"))
        Named.class_to_idx = {"a": 1, "b": 0}
        with self.assertWarnsRegex(UserWarning, "Named: class 'a' is number 0 in `classes` and 1 in `class_to_idx`: .*names=") as caught:
            self.assertEqual(len(quiet(Named(rows), self.path("two")).names), 0)
        self.assertEqual(caught.filename, quiet.__code__.co_filename)
        self.assertEqual(quiet(Named(rows), self.path("three"), names=["b", "a"]).names, ("b", "a"))


class WebDataset(Case):
    """Samples as WebDataset gives them: files by their suffix, and keys of its own."""

    @staticmethod
    def sample(i, **more):
        return {"__key__": f"{i:04}", "__url__": "0.tar", "__local_path__": "0.tar", "jpg": image_file(i),
                "cls": b"%d" % i, "left.txt": b"number %d" % i, "json": b'{"a": 1}', **more}

    def warned(self, samples, **keywords):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = quiet(samples, self.path(), overwrite=True, **keywords)
        ours = [w for w in told if str(w.message).startswith("penstock")]
        self.assertEqual([w.filename for w in ours], [__file__] * len(ours))
        return made, [str(w.message) for w in ours]

    def test_its_own_keys_are_left_out_and_undecoded_files_are_named(self):
        for samples in (map(self.sample, range(20)), list(map(self.sample, range(20)))):
            made, (told,) = self.warned(samples)
            self.assertEqual(set(made.schema), {"__key__", "jpg", "cls", "left.txt", "json"})
            self.assertEqual((made[3]["__key__"], made[3]["cls"]), ("0003", b"3"))
            for part in ("__url__ and __local_path__: left out", "cls, left.txt: stored as the bytes",
                         "dataset.decode(only=['cls', 'left.txt'])", "json: stored", "dataset.decode().map("):
                self.assertIn(part, told)

    def test_decoded_files_are_values(self):
        _, (told,) = self.warned([self.sample(i, cls=i, **{"left.txt": "n", "json": [1, i]}) for i in range(3)])
        self.assertNotIn("decode", told)

    def test_a_schema_says_what_is_kept(self):
        schema = {"__url__": "utf8", "jpg": "image", "cls": "bytes", "left.txt": "bytes", "json": "bytes"}
        made, told = self.warned(map(self.sample, range(3)), schema={"__key__": "utf8", **schema})
        self.assertEqual((told, made[0]["__url__"]), ([], "0.tar"))

    def test_others_samples_keep_their_keys(self):
        made, told = self.warned([{"__url__": "a", "cls": b"1"}, {"__url__": "b", "cls": b"2"}])
        self.assertEqual((told, set(made.schema)), ([], {"__url__", "cls"}))

    def test_the_advice_is_true_of_webdataset(self):
        webdataset = optional("webdataset")
        with tarfile.open(self.path("0.tar"), "w") as tar:
            for i in range(4):
                for suffix, data in self.sample(i).items():
                    if not suffix.startswith("__"):
                        info = tarfile.TarInfo(f"{i:04}.{suffix}")
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
        dataset = webdataset.WebDataset(self.path("0.tar"), shardshuffle=False)
        _, (told,) = self.warned(dataset)
        decoded = eval(re.search(r"pack (dataset.decode\(only=[^)]*\))", told)[1])
        made, (told,) = self.warned(decoded)
        self.assertNotIn("only=", told)
        self.assertEqual((made[2]["cls"], made[2]["left.txt"]), (2, "number 2"))
        mapped = dataset.decode().map(lambda sample: {"jpg": sample["jpg"], "a": sample["json"]["a"]})
        self.assertEqual(self.warned(mapped)[0][0]["a"], 1)
