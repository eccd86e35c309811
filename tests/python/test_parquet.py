# SPDX-License-Identifier: Apache-2.0
"""Parquet tables of images, which the package rewrites as text. pyarrow is the oracle."""
import contextlib
import io
import json
import math
import os
import subprocess
import sys
import time
import unittest

import penstock
from data_fixture import image_file, np, optional
from table_fixture import TableCase

COMMAND = os.environ["PENSTOCK_COMMAND"]


class Parquet(TableCase):
    def test_parquet_equals_pyarrow(self):
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        rows = self.rows()
        for i, row in enumerate(rows):
            row["score"] = [math.nan, 1.5, math.inf, -0.25][i % 4]
        table = arrow.Table.from_pylist(rows)
        small = table.append_column("small", arrow.array([i for i in range(12)], arrow.uint8()))
        small = small.append_column("half", arrow.array([i / 3 for i in range(12)], arrow.float32()))
        path = os.path.join(self.path(), "labels.parquet")
        parquet.write_table(small, path)
        before = self.left(), sorted(os.listdir(self.path()))
        dataset = self.check(path, small.to_pylist())
        self.assertEqual(sorted(os.listdir(self.path())), before[1])
        self.assertEqual({name: dataset.fields[name].field.kind for name in ("small", "half", "count", "flag")},
                         {"small": "uint8", "half": "float32", "count": "int64", "flag": "uint8"})
        with penstock.Loader(path, batch_size=12, device="cpu", framework="numpy",
                             outputs={"small": "small", "label": "label"}) as loader:
            self.assertEqual(sorted(next(iter(loader))["small"].tolist()), list(range(12)))
        parquet.write_table(table.slice(0, 5), path)
        os.utime(path, ns=(1, 1))
        self.check(path, rows[:5])

    def test_files_that_a_killed_rewrite_left_are_removed_by_the_next(self):
        table = self.put_parquet({"n": [1, 2, 3, 4]})
        penstock.Dataset(table)
        folder = os.path.dirname(self.made()[0])
        code = f"import sys, penstock.tables as t\nwith t._whole({folder!r} + '/x'): print('ready', flush=True), sys.stdin.read()\n"
        line = [sys.executable, "-c", code]
        with subprocess.Popen(line, stdin=-1, stdout=-1) as writer, subprocess.Popen(line, stdin=-1, stdout=-1) as killed:
            self.assertEqual([process.stdout.readline() for process in (writer, killed)], [b"ready\n"] * 2)
            killed.kill(), killed.wait()
            writing = lambda: [name for name in os.listdir(folder) if name.startswith(".writing-")]  # noqa: E731
            for n_left, age in ((2, 0), (2, 590), (1, 610)):  # young ones may be another node's; one is locked here
                for name in writing():
                    os.utime(os.path.join(folder, name), (time.time() - age,) * 2)
                list(map(os.remove, self.made()))
                self.assertEqual(penstock.Dataset(table)[3]["n"], 4)
                self.assertEqual(len(writing()), n_left, age)
            writer.communicate(b"")

    def put_parquet(self, columns, name="labels.parquet", n=4):
        """Return a table of n images and these columns."""
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        path = os.path.join(self.path(), name)
        parquet.write_table(arrow.table({"file_name": self.images(n), **columns}), path)
        return path

    def made(self):
        """Return the files of rewritten tables."""
        return sorted(os.path.join(at, name) for at, _, names in os.walk(self.path("cache/tables")) for name in names
                      if name.endswith((".jsonl", ".fields")))

    def test_parquet_columns_have_the_names_of_the_library(self):
        arrow = optional("pyarrow")
        ints = arrow.array([1, 2, 3, 4], arrow.int8())
        for columns, wanted in (
                ({"größe": ints}, {"gr____e": "int8"}),
                ({"a b": ["01", "x", "y", "z"], "a_c": arrow.array([1, 2, 3, 4], arrow.uint16())},
                 {"a_b": "utf8", "a_c": "uint16"}),
                ({"": ints, "image": ints, "path": arrow.array([.5, 1, 2, 3], arrow.float32())},
                 {"column2": "int8", "image_": "int8", "path_": "float32"}),
                ({"x" * 62 + "é": ints}, {"x" * 62 + "_": "int8"})):
            dataset = penstock.Dataset(self.put_parquet(columns))
            self.assertEqual({name: dataset.fields[name].field.kind for name in list(dataset.fields)[2:]}, wanted)
        for columns in ({"a b": ints, "a_b": ["01", "x", "y", "z"]}, {"image_": ints, "image": ints}):
            path = self.put_parquet(columns)
            self.assert_says(["columns '%s' and '%s' of " % tuple(columns) + path, "both become the field", "rename one"], penstock.Dataset, path)
        again = penstock.Dataset(self.put_parquet({"größe": ints}), foreign=penstock.Foreign(fields={"gr____e": "float64"}))
        self.assertEqual(again[1]["gr____e"], 2.0)
        twice = self.put_parquet({"a": ints})
        table = optional("pyarrow.parquet").read_table(twice)
        optional("pyarrow.parquet").write_table(table.rename_columns(["a", "a"]), twice)
        self.assert_says([twice, "must have different names"], penstock.Dataset, twice)

    def test_errors_name_the_parquet_file_and_not_its_copy(self):
        path = self.put_parquet({"a": ["x", "1", "2", "3"], "b": [1, 2, 3, 4]})
        for columns, fields, words in ((None, {"a": "int64"}, 'column a is'), (None, {"absent": "int64"}, "absent"),
                                       ({"file_name": ["no.jpg"] * 4}, None, "none of the 4 images of " + path)):
            if columns:
                path = self.put_parquet(columns)
            for opened in (lambda **how: list(penstock.Dataset(path, **how)),
                           lambda **how: list(penstock.Loader(path, batch_size=1, outputs={"image": penstock.image(
                               "image", [penstock.ops.Resize(8)])}, **how))):
                error = self.assert_says([words], opened, **({"foreign": penstock.Foreign(fields=fields)} if fields else {}))
                self.assertNotIn("jsonl", str(error))

    def test_errors_name_the_row_of_a_parquet_file_as_pandas_counts_and_no_line_or_byte(self):
        images = self.images(4)
        for row in (0, 3):
            name = images.copy()
            name[row] = "../x.jpg"
            for columns, fields, says in (({"file_name": name}, {}, "the path has a part '..'"),
                                          ({"a": [*["1"] * row, "cat", *["1"] * (3 - row)]}, {"a": "int64"}, "column a is 'cat'; must be an integer")):
                path = self.put_parquet(columns, n=4)
                error = self.assert_says([f"{path}, row {row} (counted from 0): {says}"],
                                         lambda: list(penstock.Dataset(path, foreign=penstock.Foreign(fields=fields or None))))
                self.assertNotRegex(str(error), "line |byte ")
                self.assertIsNone(error.offset)
        path = self.put_parquet({}, n=4)
        os.rename(os.path.join(self.path(), images[2]), self.path("moved.jpg"))
        with open(os.path.join(self.path(), images[2]), "wb"):
            pass
        with penstock.Dataset(path) as dataset:
            self.assert_says(["which has it in row 2 (counted from 0); once it is there"], lambda: dataset[2])

    def test_a_parquet_file_of_images_says_how_it_is_packed(self):
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        path = self.path("bytes.parquet")
        for image in ({"bytes": image_file(0), "path": None}, image_file(0)):
            parquet.write_table(arrow.table({"image": [image], "label": [1]}), path)
            self.assert_says([f"{path}, row 0 (counted from 0): ", "penstock.pack(path, out)"], penstock.Dataset, path)
            self.assertEqual(penstock.pack(path, self.path("packed"), progress=False, overwrite=True)[0]["label"], 1)

    def test_parquet_nulls(self):
        arrow = optional("pyarrow")
        dataset = penstock.Dataset(self.put_parquet({
            "x": arrow.array([1.5, None, math.inf, math.nan], arrow.float32()), "h": arrow.array([None] * 4, arrow.float64()),
            "n": [1, None, 3, 4], "b": [True, None, False, True], "t": ["a", "b", None, "null"], "label": ["a", None, "b", "c"],
            "all": arrow.nulls(4), "list": [[1.0, math.nan], None, [-math.inf], []],
            "whole": arrow.array([1, 2, 3, 4], arrow.uint8()), "code": arrow.array([5, 6, None, 7]).dictionary_encode()}))
        self.assertEqual({name: field.field.kind for name, field in dataset.fields.items()},
                         {"image": "image", "path": "utf8", "x": "float32", "h": "float64", "n": "utf8", "b": "utf8",
                          "t": "utf8", "label": "utf8", "all": "utf8", "list": "utf8", "whole": "uint8", "code": "utf8"})
        rows = list(dataset)
        np.testing.assert_array_equal([row["x"] for row in rows], [1.5, math.nan, math.inf, math.nan])
        self.assertTrue(all(math.isnan(row["h"]) for row in rows))
        for name, wanted in (("n", ["1", "null", "3", "4"]), ("b", ["true", "null", "false", "true"]),
                             ("t", ["a", "b", "null", "null"]), ("label", ["a", "null", "b", "c"]), ("all", ["null"] * 4),
                             ("list", ["[1.0, NaN]", "null", "[-Infinity]", "[]"]), ("whole", [1, 2, 3, 4]),
                             ("code", ["5", "6", "null", "7"])):
            self.assertEqual([row[name] for row in rows], wanted, name)
        path = self.put_parquet({}, n=4)
        optional("pyarrow.parquet").write_table(arrow.table({"file_name": [*self.images(2), None]}), path)
        error = self.assert_says([f"{path}, row 2 (counted from 0): column file_name is null"], penstock.Dataset, path)
        self.assertIsInstance(error, penstock.CorruptRecordError)

    def test_parquet_nulls_after_the_first_rows(self):
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        paths = self.images(2)
        path = os.path.join(self.path(), "labels.parquet")
        parquet.write_table(arrow.table({"file_name": [paths[i % 2] for i in range(11001)], "n": [*range(11000), None],
                                         "t": ["x"] * 11000 + [None]}), path)
        sample = penstock.Dataset(path)[11000]
        self.assertEqual((sample["n"], sample["t"]), ("null", "null"))

    def test_a_parquet_table_that_changes_leaves_jobs_what_they_read(self):
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        path = self.put_parquet({"n": arrow.array([1, 2, 3, 4])})
        first = penstock.Dataset(path)
        parquet.write_table(parquet.read_table(path).set_column(1, "n", arrow.array([5, 6, 7, 8])), path)
        os.utime(path, ns=(1, 1))
        second = penstock.Dataset(path)
        self.assertEqual([sample["n"] for sample in first], [1, 2, 3, 4])
        self.assertEqual([sample["n"] for sample in second], [5, 6, 7, 8])

        def cache(*options):
            done = subprocess.run([COMMAND, "cache", self.path("cache"), "--json", *options], capture_output=True, text=True,
                                  check=True)
            return json.loads(done.stdout)
        third = penstock.Dataset(path)  # has opened no image yet
        sizes = sum(os.path.getsize(name) for name in self.made())
        before = cache()
        self.assertEqual(len(self.made()), 4)
        for found in (before, cache("--clear")):
            self.assertGreaterEqual(found["n_indexes"], 2)
            self.assertGreaterEqual(found["index_bytes"], sizes)
        self.assertEqual((self.made(), cache()["n_indexes"], cache()["index_bytes"]), ([], 0, 0))
        self.assert_says(self.path("cache/tables"), lambda: third[0])
        self.assertEqual(penstock.Dataset(path)[0]["n"], 5)

    def test_a_parquet_table_is_as_readable_as_the_umask_says(self):
        path = self.put_parquet({})
        old = os.umask(0o027)
        try:
            penstock.Dataset(path)
        finally:
            os.umask(old)
        self.assertEqual([os.stat(name).st_mode & 0o777 for name in self.made()], [0o640] * 2)

    def test_a_cache_of_a_parquet_table_that_cannot_be_written_to(self):
        path = self.put_parquet({})
        penstock.Dataset(path)
        place = os.path.dirname(self.made()[0])

        def unwritable(mode):
            for at, _, names in os.walk(self.folder):
                for name in names:
                    os.chmod(os.path.join(at, name), 0o444)
                os.chmod(at, mode)
        # Only root may read root's Python: what is imported late is imported first.
        code = ("import os, sys, penstock.dataset, penstock.packing.schema, penstock.progress, penstock.tables, pyarrow.parquet\n"
                "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
                f"try: print(len(penstock.Dataset({path!r})))\nexcept penstock.SettingsError as error: print(error)")

        def opened():
            return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        unwritable(0o555)
        try:
            done = opened()
            self.assertEqual((done.stdout, done.stderr), ("4\n", ""))
            os.chmod(place, 0o755)
            for name in self.made():
                os.unlink(name)
            os.chmod(place, 0o555)
            done = opened()
            self.assertIn("cache_path: " + path, done.stdout + done.stderr)
            self.assertIn("cannot be written to", done.stdout)
        finally:
            unwritable(0o755)

    def test_pack_of_a_parquet_table_has_its_images(self):
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        rows = [{"file_name": row["path"], "label": row["label"], "count": row["count"]} for row in self.rows()]
        parquet.write_table(arrow.Table.from_pylist(rows), os.path.join(self.path(), "metadata.parquet"))
        for path in (self.path(), os.path.join(self.path(), "metadata.parquet")):
            dataset = penstock.Dataset(path)
            packed = penstock.pack(path, self.path("packed"), overwrite=True)
            self.assertEqual(tuple(packed.names), tuple(dataset.names))
            self.assertEqual({name: field.field.kind for name, field in packed.fields.items()},
                             {name: field.field.kind for name, field in dataset.fields.items()})
            self.assertEqual(list(packed), list(dataset))
        os.unlink(os.path.join(self.path(), rows[0]["file_name"]))  # names no file: rows of something else
        packed = penstock.pack(os.path.join(self.path(), "metadata.parquet"), self.path("rows"))
        self.assertEqual(list(packed.fields), ["file_name", "label", "count"])

    def test_pack_of_a_parquet_table_has_the_images_of_each_column_of_paths(self):
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        paths = self.images(3)
        table = os.path.join(self.path(), "images.parquet")
        for name in ("file_name", "path", "filename", "file", "image"):
            parquet.write_table(arrow.table({name: paths, "label": ["b", "a", "b"], "n": [1, 2, 3]}), table)
            dataset, packed = penstock.Dataset(table), penstock.pack(table, self.path("packed"), overwrite=True)
            self.assertEqual((packed.names, list(packed)), (dataset.names, list(dataset)), name)
            self.assertEqual((packed.names, [row["label"] for row in packed]), (("a", "b"), [1, 0, 1]), name)
        with open(os.path.join(self.path(), paths[0]), "rb") as file:
            data = file.read()
        for images in ([data] * 3, [{"bytes": data, "path": "0.jpg"}] * 3):  # the rows have images of their own
            parquet.write_table(arrow.table({"file_name": paths, "image": images}), table)
            packed = penstock.pack(table, self.path("packed"), overwrite=True)
            self.assertEqual((packed[2]["file_name"], packed[2]["image"]), (paths[2], data))

    def class_folders(self):
        """Folders `a` and `b` with two images each."""
        for i, path in enumerate(self.images(4)):
            folder = os.path.join(self.path(), "ab"[i % 2])
            os.makedirs(folder, exist_ok=True)
            os.rename(os.path.join(self.path(), path), os.path.join(folder, os.path.basename(path)))
        os.rmdir(os.path.join(self.path(), "images"))
        return self.path()

    def test_commands_without_parquet_refuse_a_folder_with_a_parquet_table(self):
        """It would read the images of the class folders, with other labels."""
        pandas = optional("pandas")
        folder = self.class_folders()
        table = os.path.join(folder, "metadata.parquet")
        pandas.DataFrame({"file_name": ["a/0.png", "b/1.jpg", "a/2.jpg"], "label": ["z", "k", "z"]}).to_parquet(table)
        wanted = [1, 0, 1]
        dataset = penstock.Dataset(folder)
        self.assertEqual((dataset.names, [sample["label"] for sample in dataset]), (("k", "z"), wanted))
        self.assertEqual([sample["label"] for sample in penstock.pack(folder, self.path("packed"), progress=False)], wanted)
        other = os.path.join(folder, "metadata.csv")

        def refused(*line):
            done = subprocess.run([COMMAND, *line], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{folder} has a metadata.parquet, which only Python reads", done.stderr)
            self.assertIn("write the table as metadata.csv or metadata.jsonl, and remove metadata.parquet", done.stderr)
        lines = (("pack", folder, self.path("out")), ("info", folder), ("verify", folder),
                 ("order", folder, "--batch-size", "1", "--order", "sequential"))
        for line in lines:
            refused(*line)
        pandas.read_parquet(table).to_csv(other, index=False)
        for line in lines:
            refused(*line)
        for function in (penstock.Dataset, lambda path: penstock.pack(path, self.path("no"))):
            self.assert_says([folder, "has a metadata.parquet and a metadata.csv: ", "remove the other"], function, folder)
        os.remove(table)
        for line in lines:
            subprocess.run([COMMAND, *line], check=True, capture_output=True)
        self.assertEqual([sample["label"] for sample in penstock.Dataset(self.path("out"))], wanted)

    def test_parquet_that_is_none(self):
        optional("pyarrow")
        self.images(1)
        self.assert_says("is not a Parquet file", penstock.Dataset, self.put(b"PAR1 no PAR1", "x.parquet"))

    def test_parquet_without_pyarrow(self):
        self.images(1)
        path = self.put(b"PAR1", "x.parquet")
        code = ("import sys; sys.modules['pyarrow'] = sys.modules['pyarrow.parquet'] = None\n"
                f"import penstock\npenstock.Dataset({path!r})")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("reading Parquet tables needs pyarrow: pip install pyarrow", done.stderr)

    def test_a_parquet_table_of_paths_alone(self):
        arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        rows = [{"path": path} for path in self.images(3)]
        path = os.path.join(self.path(), "labels.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
        self.check(path, rows)

    def test_another_that_rewrites_a_table(self):
        """is waited for as long as it writes, and named."""
        pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
        from penstock import tables
        table = os.path.join(self.path("data"), "t.parquet")
        parquet.write_table(pa.table({"path": self.images()}), table)
        folder = os.path.dirname(tables.rewritten(table, self.path("cache"))[0])
        for name in os.listdir(folder):
            if name != "lock":
                os.remove(os.path.join(folder, name))
        script = ("import fcntl, os, sys, time\n"
                  "lock = open(sys.argv[1] + '/lock', 'r+')\n"
                  "fcntl.flock(lock, fcntl.LOCK_EX)\n"
                  "lock.truncate(0), lock.write('process 4711 on host n2'), lock.flush(), print('ready', flush=True)\n"
                  "with open(sys.argv[1] + '/.writing-1', 'w') as file:\n"
                  "    for _ in range(int(sys.argv[2])): file.write('x'), file.flush(), time.sleep(0.1)\n"
                  "sys.stdin.read() if sys.argv[2] == '1' else None\n")
        old, tables.PATIENCE_SECONDS = tables.PATIENCE_SECONDS, 0.9
        self.addCleanup(setattr, tables, "PATIENCE_SECONDS", old)
        for n_writes in (20, 1):
            with subprocess.Popen([sys.executable, "-c", script, folder, str(n_writes)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as other:
                self.assertEqual(other.stdout.readline(), "ready\n")
                said = io.StringIO()
                with contextlib.redirect_stderr(said):
                    if n_writes == 20:
                        self.assertEqual(len(penstock.Dataset(table)), 12)
                    else:
                        with self.assertRaisesRegex(penstock.TimedOutError, "process 4711 on host n2 is rewriting it .*/lock, and open"):
                            penstock.Dataset(table)
                other.stdin.close()
            self.assertRegex(said.getvalue(), r"^penstock: process 4711 on host n2 is rewriting .*/t\.parquet as text; .*/lock\)\n$")
            for name in os.listdir(folder):
                if name != "lock":
                    os.remove(os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
