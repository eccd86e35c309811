# SPDX-License-Identifier: Apache-2.0
"""Tables of images (CSV, TSV, JSON lines) as data sets. csv and json are the oracles, with Pillow for pixels; `datasets` for a
folder with metadata."""
import contextlib
import csv
import ctypes
import decimal
import io
import json
import math
import os
import random
import shutil
import subprocess
import sys
import unittest

import penstock
from data_fixture import np, optional
from table_fixture import TableCase

COMMAND = os.environ["PENSTOCK_COMMAND"]
SMALL = penstock.image("image", [penstock.ops.Resize((16, 16))])


class Tables(TableCase):
    # ---- formats ---------------------------------------------------------------------------------------

    def test_csv_equals_the_csv_module(self):
        rows = self.rows()
        for how in ({}, {"lineterminator": "\n"}, {"quoting": csv.QUOTE_ALL}):
            path = self.put_csv(rows, **how)
            with open(path, newline="") as file:
                self.assertEqual([row["note"] for row in csv.DictReader(file)], [row["note"] for row in rows])
            dataset = self.check(path, rows)
            self.assertEqual(dataset.fields["flag"].field, penstock.Field("uint8"))
            self.assertEqual(dataset.fields["score"].field.kind, "float64")
        self.check(self.put_csv(rows, "labels.tsv", delimiter="\t"), rows)
        with open(path, "rb") as file:
            text = file.read()
        self.check(self.put(b"\xef\xbb\xbf" + text), rows)
        self.check(self.put(text.rstrip(b"\r\n")), rows)

    def test_json_lines_equal_the_json_module(self):
        rows = self.rows()
        for how in ({}, {"ensure_ascii": False}, {"separators": (",", ":")}):
            self.check(self.put_json(rows, **how), rows)
        for row in rows:
            del row["note"]
        self.check(self.put("\n".join(" " + json.dumps(row) for row in rows) + "\n \n", "labels.ndjson"), rows)

    def test_json_columns_of_no_one_type_are_json_text(self):
        rows = self.rows()
        for i, row in enumerate(rows):
            row["boxes"] = [[i, 1.5], {"a": None}]
            row["maybe"] = None if i % 3 else "x"
            if i % 2:
                row["sometimes"] = 5
        dataset = penstock.Dataset(self.put_json(rows))
        for sample, row in zip(dataset, rows):
            self.assertEqual(json.loads(sample["boxes"]), row["boxes"])
            self.assertEqual(json.loads(sample["maybe"]), row["maybe"])
            self.assertEqual(json.loads(sample["sometimes"]), row.get("sometimes"))

    def test_json_in_json_may_have_any_number_and_character(self):
        path, = self.images(1)
        texts = ["[12345678901234567890]", "[1e400, -0, -1E-999]", '["a\\u0000b"]', '{"\\u0000": "\\\\u0000"}', "[NaN, -Infinity, Infinity]",
                 '{"a": [{"b": 1.5e+3}], "c": "-1"}', "[" * 100 + "]" * 100]
        for text in texts:
            dataset = penstock.Dataset(self.put(f'{{"path": "{path}", "a": {text}}}\n', "labels.jsonl"))
            self.assertEqual(dataset[0]["a"], text)
            json.loads(text)
        for text in ("[01]", "[1.]", "[-]", "[1e]", "[+1]", "[.5]", "[1-2]", "[-NaN]", "[nan]", "[NaN.5]", '["\\u000"]', '["\\ud800"]', '["\\x"]',
                     "[1,]", "[1 2]", '{"a": 1, "a": 2}', '{1: 2}', '["a\x01"]', "[1}", "[--1]", "[0x1]"):
            self.refused(["not JSON", "line 1"], f'{{"path": "{path}", "a": {text}}}\n', "labels.jsonl")

    def test_a_json_path_must_be_a_text(self):
        path, = self.images(1)
        for value in ("null", "5", "true", "[1]"):
            for at in (2, 10002):
                self.refused([f"line {at}", f"path is '{value}'", "must be a text"],
                             f'{{"path": "{path}", "n": 1}}\n' * (at - 1) + f'{{"path": {value}, "n": 2}}\n', "labels.jsonl")

    def test_json_columns_that_come_late_can_be_given(self):
        path, = self.images(1)
        text = f'{{"path": "{path}", "n": 1}}\n' * 10001 + f'{{"path": "{path}", "n": 2, "note": "x", "r": 1.5}}\n'
        error = self.refused(["line 10002", "column note", "utf8"], text, "labels.jsonl")
        for kind, wanted in (("utf8", ("null", "x")), ("bytes", (b"null", b"x"))):
            dataset = penstock.Dataset(self.put(text, "labels.jsonl"),
                                       foreign=penstock.Foreign(fields={"note": kind, "r": "float32"}))
            self.assertEqual((dataset[0]["note"], dataset[10001]["note"]), wanted)
            self.assertTrue(math.isnan(dataset[0]["r"]))
            self.assertEqual(dataset[10001]["r"], 1.5)
        self.refused(["line 1 ", "the row has no column r", "float"], text, "labels.jsonl",
                     foreign=penstock.Foreign(fields={"note": "utf8", "r": "int64"}))
        # A column that some of the first rows lack can be given a type as well; one that all have cannot be absent later.
        some = f'{{"path": "{path}", "x": 1}}\n{{"path": "{path}"}}\n'
        dataset = penstock.Dataset(self.put(some, "labels.jsonl"), foreign=penstock.Foreign(fields={"x": "float32"}))
        self.assertEqual(dataset[0]["x"], 1)
        self.assertTrue(math.isnan(dataset[1]["x"]))
        lacking = f'{{"path": "{path}", "x": 1}}\n' * 10000 + f'{{"path": "{path}"}}\n'
        self.refused(["line 10001", "has no column x"], lacking, "labels.jsonl",
                     foreign=penstock.Foreign(fields={"x": "float32"}))

    def test_json_nulls_of_a_column_that_is_given_as_float_are_nan(self):
        path, = self.images(1)
        text = f'{{"path": "{path}", "x": 1}}\n{{"path": "{path}", "x": null}}\n'
        self.assertTrue(math.isnan(penstock.Dataset(self.put(text, "labels.jsonl"),
                                                    foreign=penstock.Foreign(fields={"x": "float64"}))[1]["x"]))
        self.refused(["line 2", "'null'", "must be an integer"], text, "labels.jsonl",
                     foreign=penstock.Foreign(fields={"x": "int64"}))

    def test_random_tables(self):
        paths = self.images(5)
        draw = random.Random(7)
        letters = 'ab,"\n\r\t \\é😀\x01{}[]:'
        for _ in range(40):
            rows = [{"path": draw.choice(paths), "note": "".join(draw.choices(letters, k=draw.randrange(12))),
                     "n": draw.randrange(-2**63, 2**63), "x": draw.choice([draw.uniform(-1e300, 1e300), draw.random() * 1e-310])}
                    for _ in range(draw.randrange(1, 30))]
            rows[0]["note"] = "text"  # not all numbers
            self.check(self.put_csv(rows), rows)
            self.check(self.put_json(rows), rows)

    def test_a_table_of_paths_alone(self):
        rows = [{"path": path} for path in self.images(3)]
        for path in (self.put_csv(rows), self.put_csv(rows, "labels.tsv", delimiter="\t"), self.put_json(rows)):
            self.assertEqual(list(self.check(path, rows).fields), ["image", "path"])
        many = "".join(json.dumps(rows[i % 3]) + "\n" for i in range(10001))
        self.refused(["line 10002", "column late is in none of the first 10000 rows"],
                     many + json.dumps({**rows[0], "late": 1}) + "\n", "labels.jsonl")

    # ---- Hugging Face's imagefolder --------------------------------------------------------------------

    def metadata_rows(self):
        rows = self.rows()
        random.Random(3).shuffle(rows)
        return [{"file_name": row.pop("path"), **row} for row in rows]

    def test_a_folder_with_metadata_is_that_table(self):
        rows = self.metadata_rows()
        path = self.put_csv(rows, "metadata.csv")
        self.check(self.path(), rows, key="file_name")
        self.put_json(rows[:5], "metadata.jsonl")
        self.assert_says(["metadata.csv and a metadata.jsonl"], penstock.Dataset, self.path())
        os.unlink(path)
        self.check(self.path(), rows[:5], key="file_name")

    def test_metadata_of_something_else_is_none(self):
        self.images()
        self.put("id,name\n1,x\n", "metadata.csv")
        self.assertEqual(sorted(penstock.Dataset(self.path()).fields), ["image", "label", "path"])

    def test_metadata_equals_datasets(self):
        datasets = optional("datasets")
        datasets.disable_progress_bars()
        for name, put in (("metadata.csv", self.put_csv), ("metadata.jsonl", self.put_json)):
            folder = "of-" + name
            rows = [{"file_name": row.pop("path"), **row} for row in self.rows(name=folder)]
            put(rows, name, folder)
            theirs = datasets.load_dataset("imagefolder", data_dir=self.path(folder), split="train",
                                           cache_dir=self.path("datasets"))
            ours = penstock.Dataset(self.path(folder), decode=True)
            self.assertEqual(len(ours), len(theirs))
            for mine, other in zip(ours, theirs):
                self.assertTrue((mine["image"] == np.asarray(other["image"].convert("RGB"))).all())
                self.assertEqual(ours.names[mine["label"]], other["label"])
                for field in ("score", "count", "flag", "note"):
                    self.assertEqual(mine[field], "" if other[field] is None else other[field])

    # ---- types -----------------------------------------------------------------------------------------

    def test_types_can_be_chosen(self):
        rows = self.rows()
        path = self.put_csv(rows)
        dataset = penstock.Dataset(path,
                                   foreign=penstock.Foreign(fields={"label": "utf8", "score": "float32", "count": "utf8",
                                                                    "flag": "int16",
                                                 "note": "bytes"}))
        self.assertEqual(list(dataset.names), [])
        for sample, row in zip(dataset, rows):
            self.assertEqual(sample["label"], row["label"])
            self.assertEqual(sample["score"], np.float32(row["score"]))
            self.assertEqual(sample["count"], str(row["count"]))
            self.assertEqual(sample["flag"], row["flag"])
            self.assertEqual(sample["note"], row["note"].encode())
        self.assertEqual(penstock.Dataset(path)[0]["count"], rows[0]["count"])  # an index of its own
        self.assert_says(["no column scroe", "score"], penstock.Dataset, path,
                         foreign=penstock.Foreign(fields={"scroe": "float32"}))
        self.assert_says("must be an integer that i8 holds", penstock.Dataset, path,
                         foreign=penstock.Foreign(fields={"count": "int8"}))
        self.assert_says("must be a scalar, utf8 or bytes", penstock.Dataset, path,
                         foreign=penstock.Foreign(fields={"note": ("float32", [3])}))

    def test_halves_are_rounded_once(self):
        """As numpy.float16 rounds float64, and as bfloat16 by exact fractions: random numbers, and those next to the
        middle between two halves, which float32 cannot hold."""
        path, = self.images(1)
        draw = random.Random(11)
        texts = ["%.17g" % (draw.uniform(-1, 1) * draw.choice([1, 1e-4, 1e-7, 60000])) for _ in range(2000)]
        for _ in range(2000):
            half = np.array([draw.randrange(0, 0x7bff)], np.uint16).view(np.float16)[0]
            middle = (float(half) + float(np.nextafter(half, np.float16(np.inf)))) / 2
            texts += [repr(middle * (1 + draw.choice([-1, 1]) * 2**-40)), str(decimal.Decimal(-middle))]  # the latter exact
        texts += ["65519.999999999", "-65519.999999999", "2.98023223876953125e-08", "1e-400", "-0.0",
                  "1.000488281250000000000000000000000000000001"]  # above a middle by less than float64 shows
        dataset = penstock.Dataset(self.put_csv([{"path": path, "x": text} for text in texts]),
                                   foreign=penstock.Foreign(fields={"x": "float16"}))
        wanted = [np.float16(float(text)) for text in texts[:-1]] + [np.float16(1 + 2**-10)]
        for text, sample, number in zip(texts, dataset, wanted):
            self.assertEqual(np.float16(sample["x"]).tobytes(), number.tobytes(), text)
        self.refused("a number that f16 holds", f"path,x\n{path},65520\n", foreign=penstock.Foreign(fields={"x": "float16"}))
        texts = []
        for _ in range(2000):
            bits = draw.randrange(0x0080, 0x7f7f) << 16
            low, high = np.array([bits, bits + 0x10000], np.uint32).view(np.float32).astype(float).tolist()
            middle = (low + high) / 2
            texts += [(str(decimal.Decimal(middle)), low if bits >> 16 & 1 == 0 else high), (repr(middle * (1 + 2**-40)), high),
                      (repr(middle * (1 - 2**-40)), low)]
        dataset = penstock.Dataset(self.put_csv([{"path": path, "x": text} for text, _ in texts]),
                                   foreign=penstock.Foreign(fields={"x": "bfloat16"}))
        for (text, number), sample in zip(texts, dataset):
            self.assertEqual(float(sample["x"]), number, text)

    def test_labels_of_numbers_are_no_classes(self):
        paths = self.images(3)
        self.check(self.put_csv([{"path": path, "label": 7 - i} for i, path in enumerate(paths)]),
                   [{"path": path, "label": 7 - i} for i, path in enumerate(paths)])
        dataset = penstock.Dataset(self.put("path,label\nimages/0.png,01\nimages/1.jpg,10\n"))
        self.assertEqual((dataset.names, [sample["label"] for sample in dataset]), (("01", "10"), [0, 1]))

    def test_labels_of_numbers_and_names_are_refused(self):
        paths = self.images(4)
        for name, comma in (("labels.csv", ","), ("labels.tsv", "\t")):
            head = f"path{comma}label\n"
            numbers = "".join(f"{paths[i % 4]}{comma}{i}\n" for i in range(12))
            names = "".join(f"{paths[i % 4]}{comma}c{i}\n" for i in range(10001))
            for text, words in ((numbers + f"{paths[0]}{comma}NA\n", ["line 14", "label is 'NA'", "that of line 2 is the number '0'"]),
                                (f"{paths[0]}{comma}NA\n" + numbers, ["line 3", "label is the number '0'", "that of line 2 is 'NA'"]),
                                (names + f"{paths[0]}{comma}1.5\n", ["line 10003", "label is the number '1.5'", "that of line 2 is 'c0'"])):
                error = self.refused([*words, "must all be numbers or all be names", "byte "], head + text, name)
                self.assertIsInstance(error, penstock.CorruptRecordError)
        self.assertEqual(penstock.Dataset(os.path.join(self.path(), "labels.csv"),
                                          foreign=penstock.Foreign(fields={"label": "utf8"}))[10001]["label"], "1.5")
        with self.subTest("numbers that would be sorted as names"):
            for labels, words in ((["01", "2", "10"], ["line 3: the label is '2', and that of line 2 is '01'", "equally long"]),
                                  (["9223372036854775808", "2", "3"], ["line 3: the label is '2'", "equally long"]),
                                  ([" 1", " 10", " 9"], ["line 2", "a number with blanks around it"]),
                                  (["1 ", "x", "y"], ["line 2", "a number with blanks around it"])):
                self.refused(words, head + "".join(f"{path}{comma}{label}\n" for path, label in zip(paths, labels)), "labels.tsv")
        with self.subTest("names that look like numbers, where none is one"):
            for labels in (["01", "10", "07"], ["nan", "naan", "inf"], ["True", "maybe", "no"]):
                rows = [{"path": path, "label": label} for path, label in zip(paths, labels)]
                self.check(self.put_csv(rows), rows)
        with self.subTest("the advice: JSON lines, where a name is in quotes"):
            rows = [{"path": path, "label": label} for path, label in zip(paths, "0A9Z")]
            self.refused(["JSON lines"], "path,label\n" + "".join(f"{row['path']},{row['label']}\n" for row in rows))
            self.check(self.put_json(rows), rows)

    def test_a_row_that_departs_is_an_error(self):
        paths = self.images(2)
        many = "".join(f"{paths[0]},{i},c{i % 2}\n" for i in range(12000))
        for row, words in ((f"{paths[1]},1.5,c1\n", ["line 12002", "column n is '1.5'", "an integer"]),
                           (f"{paths[1]},x,c1\n", ["line 12002", "column n is 'x'"]),
                           (f"{paths[1]},,c1\n", ["line 12002", "column n is ''"]),
                           (f"{paths[1]},1\n", ["line 12002", "2 columns", "must have 3"]),
                           (f"{paths[1]},1,c1,\n", ["line 12002", "4 columns"]),
                           (f"{paths[1]},1,\n", ["line 12002", "label is empty"])):
            at = len("path,n,label\n" + many)
            error = self.refused([*words, "byte "], "path,n,label\n" + many + row)
            self.assertIsInstance(error, penstock.CorruptRecordError)
            number = int(str(error).split("byte ")[1].split(")")[0])
            self.assertTrue(at <= number < at + len(row), (number, at))
        lines = "".join(json.dumps({"path": paths[0], "n": i}) + "\n" for i in range(12000))
        for row, words in (({"path": paths[0], "n": "1"}, "'\"1\"'; must be an integer"),
                           ({"path": paths[0], "n": None}, "'null'; must be an integer"),
                           ({"path": paths[0]}, "no column n"), ({"n": 1}, "no column path"),
                           ({"path": paths[0], "n": 1, "more": 2}, "column more is in none of the first 10000 rows")):
            self.refused(["line 12001", words], lines + json.dumps(row) + "\n", "labels.jsonl")
        path = self.put(lines + json.dumps({"path": paths[0], "n": 1, "more": 2}) + "\n", "labels.jsonl")
        self.assert_says("the row has no column more", penstock.Dataset, path,
                         foreign=penstock.Foreign(fields={"more": "int64"}))

    def test_columns_with_names_of_other_fields(self):
        paths = self.images(2)
        rows = [{"file_name": path, "path": i, "image": i, "a b": i, "": i} for i, path in enumerate(paths)]
        dataset = penstock.Dataset(self.put_csv(rows))
        self.assertEqual(list(dataset.fields), ["image", "path", "path_", "image_", "a_b", "column5"])
        self.assertEqual(dataset[1]["a_b"], 1)
        self.refused(["no column of the images' paths", "its columns are a;b, c"], "a;b,c\n1,2\n")
        self.refused(["has one column, path;label; separate its columns by commas"], "path;label\na.jpg;2\n")
        for name, text, reads in (("t.csv", "a,b\n1,x\n", "pandas.read_csv('%s')"), ("t.tsv", "a\tb\n1\tx\n", r"pandas.read_csv('%s', sep='\t')"),
                                  ("t.jsonl", '{"a": 1, "b": "x"}\n', "pandas.read_json('%s', lines=True)")):
            path = self.put(text, name)
            made = f"penstock.pack({reads % path}, OUT)"
            for function in (penstock.Dataset, lambda given: penstock.pack(given, self.path("no"))):
                self.assertIn(made, str(self.assert_says("no column of the images' paths", function, path)))
            with self.subTest("the advice, as it is printed"):
                pandas = optional("pandas")
                eval(made, {"penstock": penstock, "pandas": pandas, "OUT": self.path(name + ".packed")})
                self.assertEqual(penstock.Dataset(self.path(name + ".packed"))[0], {"a": 1, "b": "x"})
        self.refused("more than 63 columns", ",".join(f"c{i}" for i in range(64)) + "\n")

    def test_columns_that_would_be_one_field_are_refused(self):
        path, = self.images(1)
        long = "x" * 63
        for a, b, field in (("a b", "a_b", "a_b"), ("a_b", "a/b", "a_b"), ("a", "a", "a"), ("image", "image_", "image_"), ("path_", "path", "path_"),
                            ("", "column2", "column2"), (long + "1", long + "2", long)):
            words = [f"columns '{a[:55]}", f"' and '{b[:55]}", f"both become the field {field}; must have different names (rename one)"]
            self.refused(words, f"file_name,{a},{b}\n{path},1,2\n")
            if a != b:
                self.refused(words, json.dumps({"file_name": path, a: 1, b: 2}) + "\n", "labels.jsonl",
                             foreign=penstock.Foreign(fields={field: "float32"}))

    # ---- paths -----------------------------------------------------------------------------------------

    def test_root_path(self):
        rows = self.rows()
        path = self.put_csv(rows, folder="lists")
        error = self.assert_says(["none of the 12 images", "root_path"], penstock.Dataset, path)
        self.assertIsInstance(error, penstock.DataSetNotFoundError)
        self.check(path, rows, foreign=penstock.Foreign(root_path=self.path()))
        absolute = [{**row, "path": os.path.join(self.path(), row["path"])} for row in rows]
        dataset = penstock.Dataset(self.put_csv(absolute, folder="lists"), foreign=penstock.Foreign(root_path=self.path()))
        self.assertEqual([sample["path"] for sample in dataset], [row["path"] for row in rows])
        self.assert_says(["is absolute", "line 2"], penstock.Dataset, path)
        self.assert_says("must be a folder", penstock.Dataset, path, foreign=penstock.Foreign(root_path=path))
        self.assert_says("root_path", penstock.Dataset, path, foreign=penstock.Foreign(root_path=self.path("nothing")))
        with penstock.Loader(path, batch_size=4, device="cpu", framework="numpy", outputs={"image": SMALL},
                             foreign=penstock.Foreign(root_path=self.path())) as loader:
            self.assertEqual(sum(len(batch["image"]) for batch in loader), 12)

    def test_paths_that_lead_out_are_refused(self):
        self.images(1)
        for path, words in (("../x.jpg", "'..'"), ("images/../../x.jpg", "'..'"), ("images/../images/0.png", "'..'"),
                            ("/etc/passwd", "is absolute"), ("images/", "names no file"), ('""', "is empty"),
                            ("a" * 5000, "more than 4095")):
            self.refused([words, "line 3"], f"path,n\nimages/0.png,1\n{path},2\n")

    def test_paths_that_name_no_file_say_what_is_wrong_with_them(self):
        self.images(2)
        for name, advice in (("images\\0.png", r"its path has a \, which separates no folders here (write /)"),
                             ("file:///images/0.png", "its path is an address (write the path alone)"),
                             ("images/0.png ", "its path begins or ends with a blank (remove the blank)"),
                             ("images/e\u0301.png", "give the folder that they are below (root_path), or write names in the files' Unicode form, NFC or NFD"),
                             ("image/0.png", "give the folder that they are below (root_path)")):
            shown = name.replace("\\", "\\\\")
            self.refused(["none of the 1 images of", f"{self.path()}/{shown}'", advice], f"path,n\n{name},1\n")
            with penstock.Dataset(self.put(f"path,n\nimages/1.jpg,1\n{name},1\n")) as dataset:
                said = str(self.assert_says(["was missing when", "line 3"], lambda: dataset[1]))
                self.assertEqual(advice.startswith("its path") and advice in said, advice.startswith("its path"), said)

    def test_the_advice_is_given_in_full_below_a_long_path(self):
        deep = os.path.join(self.path(), *["d" * 150] * 4)
        os.makedirs(deep)
        with open(os.path.join(deep, "t.csv"), "w", encoding="utf-8") as file:
            file.write("path,n\n" + "e\u0301" * 80 + ".png,1\n")
        self.assert_says(["ddd.../e\u0301", "give the folder that they are below (root_path), or write names in the files' Unicode form, NFC or NFD"],
                         penstock.Dataset, os.path.join(deep, "t.csv"))

    def test_paths_that_are_not_utf8_are_bytes(self):
        self.images(1)
        shutil.copy(os.path.join(self.path(), "images/0.png"), os.path.join(os.fsencode(self.path()), b"\xff.png"))
        dataset = penstock.Dataset(self.put(b"path,n\nimages/0.png,1\n\xff.png,2\n"))
        self.assertEqual([sample["path"] for sample in dataset], [b"images/0.png", b"\xff.png"])
        self.refused(["not UTF-8", "line 2"], b"path,note\nimages/0.png,\xe9\n")
        self.refused(["not UTF-8", "line 2"], b"path,label\nimages/0.png,\xe9\n")

    def test_one_image_may_be_many_samples(self):
        paths = self.images(2)
        rows = [{"path": paths[i % 2], "label": i} for i in range(9)]
        self.check(self.put_csv(rows), rows)
        with penstock.Loader(self.put_csv(rows), batch_size=3, device="cpu", framework="numpy",
                             outputs={"image": SMALL, "label": "label"}) as loader:
            self.assertEqual(sorted(np.concatenate([batch["label"].copy() for batch in loader]).tolist()), list(range(9)))

    # ---- damage ----------------------------------------------------------------------------------------

    def test_missing_images_are_bad_samples_with_their_line(self):
        rows = self.rows()
        path = self.put_csv(rows)
        lost = os.path.join(self.path(), rows[3]["path"])
        os.rename(lost, lost + ".away")
        with open(path, newline="") as file:
            line = file.read().split(rows[3]["path"])[0].count("\n") + 1
        dataset = penstock.Dataset(path)
        self.assertEqual(dataset.get(3, "note"), rows[3]["note"])
        self.assert_says([f"line {line}", "missing", "record 3", rows[3]["path"], "touch the table"], lambda: dataset[3])
        done = subprocess.run([COMMAND, "verify", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"line {line}", done.stdout + done.stderr)
        self.assertIn(rows[3]["path"], done.stdout + done.stderr)
        with penstock.Loader(path, batch_size=4, device="cpu", framework="numpy", outputs={"image": SMALL},
                             bad_sample="replace") as loader:
            self.assertEqual(sum(len(batch["image"]) for batch in loader), 12)
        os.unlink(os.path.join(self.path(), rows[4]["path"]))  # after it was indexed
        done = subprocess.run([COMMAND, "verify", path], capture_output=True, text=True)
        self.assertIn(os.path.join(self.path(), rows[4]["path"]), done.stdout + done.stderr)
        os.rename(lost + ".away", lost)
        os.utime(path)  # as the message says
        self.assertEqual(penstock.Dataset(path)[3]["note"], rows[3]["note"])

    def test_a_table_cut_at_every_byte(self):
        paths = self.images(2)
        for name, text in (("labels.csv", f'path,n,note\r\n{paths[0]},1,"a, ""b""\r\nc"\r\n{paths[1]},2,d\r\n'),
                           ("labels.jsonl", f'{{"path": "{paths[0]}", "n": 1, "note": "\\u00e9"}}\n'
                                            f'{{"path": "{paths[1]}", "n": 2, "note": "x"}}\n')):
            whole = len(penstock.Dataset(self.put(text, name)))
            for cut in range(len(text)):
                path = self.put(text[:cut], name)
                try:
                    dataset = penstock.Dataset(path)
                except penstock.PenstockError as error:
                    self.assertIn(name, str(error))
                    continue
                self.assertLessEqual(len(dataset), whole)
                for sample in range(len(dataset)):
                    dataset.get(sample, "path")

    def test_damage(self):
        path = self.images(1)[0]
        self.refused(["NUL", "line 3"], f"path,n\n{path},1\n{path}\0,2\n")
        self.refused("NUL", f'{{"path": "{path}"}}\n\0', "labels.jsonl")
        self.refused("UTF-16", f"path,n\n{path},1\n".encode("utf-16"))
        self.refused(["no closing quote", "line 3"], f'path,n\n{path},1\n"{path},2\n')
        self.refused(["after its closing quote", "line 2"], f'path,n\n"{path}"x,1\n')
        self.refused(["carriage return", "line 1"], f"path,n\r{path},1\r{path},2\r")
        self.refused("twice", f'{{"path": "{path}", "path": "x"}}\n', "labels.jsonl")
        self.refused("no rows", "path,n\n")
        self.refused("is empty", "")
        self.refused("no rows", "\n\n", "labels.jsonl")
        self.refused(["not JSON", "line 1"], f'{{"path": "{path}", "a": {"[" * 5000}{"]" * 5000}}}\n', "labels.jsonl")
        self.refused("more than 100000 values", f'{{"path": "{path}", "a": [{"1," * 100000}1]}}\n', "labels.jsonl")

    def test_a_line_without_end_is_refused_by_its_size(self):
        for name, begin in (("labels.csv", b'path,n\nx.jpg,"'), ("labels.jsonl", b'{"path": "')):
            path = self.put(begin, name)
            os.truncate(path, 2**30)  # a hole of zeros
            error = self.assert_says(path, penstock.Dataset, path)
            with open(path, "r+b") as file:
                file.seek(len(begin))
                for _ in range(40):
                    file.write(b"a" * 2**20)
            error = self.assert_says(["more than 16 MiB", path], penstock.Dataset, path)
            self.assertNotIn("memory", str(error))
            os.unlink(path)

    def test_a_long_row_that_is_allowed(self):
        path = self.images(1)[0]
        rows = [{"path": path, "note": "ab\"" * 10**6}, {"path": path, "note": "x"}]
        self.check(self.put_csv(rows), rows)
        self.check(self.put_json(rows), rows)

    def verify(self, path, *options):
        done = subprocess.run([COMMAND, "verify", path, "--json", *options], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def in_place(self, path):
        """Flip a bit of the file's last byte, which no image has; size and times stay. Twice: it is as it was."""
        times = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([byte ^ 1]))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def test_checksums_are_of_the_images(self):
        rows = self.rows()
        path = self.put_csv(rows)
        image = os.path.join(self.path(), rows[3]["path"])
        self.tail(image)
        self.assertEqual(self.verify(path, "--checksums")["checksums"], "kept")
        self.assertEqual(self.verify(path)["checksums"], "compared")
        self.in_place(image)
        found = self.verify(path)
        self.assertEqual((found["checksums"], [bad["record"] for bad in found["bad"]]), ("compared", [3]))
        self.assertIn("the checksum that was kept", found["bad"][0]["reason"])
        self.in_place(image)
        self.assertEqual(self.verify(path)["n_bad"], 0)

    def test_checksums_of_an_index_elsewhere_are_compared(self):
        """The rows are the same wherever the index lies: its bytes are none of the samples'."""
        path = self.put_csv(self.rows())
        self.verify(path, "--checksums")
        index, = [name for name in os.listdir(self.path(".penstock")) if name.endswith(".index")]
        os.unlink(os.path.join(self.path(".penstock"), index))
        self.assertEqual(self.verify(path)["checksums"], "compared")

    def test_checksums_of_tables_of_one_name_are_apart(self):
        tables = []
        for k, name in enumerate(("a", "b")):
            rows = [{"path": row["path"], "n": k} for row in self.rows(name=name)]
            tables += [self.put_csv(rows, folder=name), self.put_csv(rows[:5], "some.csv", folder=name)]
        image = os.path.join(self.path("a"), "images/3.png")
        self.tail(image)
        for path in tables:
            self.assertEqual(self.verify(path, "--checksums")["checksums"], "kept")
        for path in tables:
            self.assertEqual(self.verify(path)["checksums"], "compared", path)
        # Files of other bytes, with the same names and sizes below another root.
        copy = shutil.copytree(self.path("a"), self.path("copy"))
        image = os.path.join(copy, "images/3.png")
        self.in_place(image)
        self.assertEqual(self.verify(tables[0], "--root-path", copy, "--checksums")["checksums"], "kept")
        for options in ((), ("--root-path", copy)):
            found = self.verify(tables[0], *options)
            self.assertEqual((found["checksums"], found["n_bad"]), ("compared", 0))
        self.in_place(image)
        self.assertEqual([bad["record"] for bad in self.verify(tables[0], "--root-path", copy)["bad"]], [3])

    def test_holes_in_images_are_reported(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long
        rows = self.rows(3)
        image = os.path.join(self.path(), rows[1]["path"])
        self.tail(image)
        path = self.put_csv(rows)
        self.assertEqual(self.verify(path)["n_bad"], 0)
        times = os.stat(image)
        with open(image, "r+b") as file:
            if libc.fallocate(file.fileno(), 3, 1 << 15, 4096):
                self.skipTest("this file system makes no holes")
        os.utime(image, ns=(times.st_atime_ns, times.st_mtime_ns))
        found = self.verify(path)
        self.assertEqual((found["n_bad"], found["n_holes"]), (0, 1))
        self.assertIn("record 1, bytes 32768 to 36863", found["note"])

    # ---- changes ---------------------------------------------------------------------------------------

    def test_a_changed_table_is_read_again(self):
        rows = self.rows()
        path = self.put_csv(rows)
        first = self.check(path, rows).info.identity
        self.assertEqual(penstock.Dataset(path).info.identity, first)
        rows[5]["label"] = "cat" if rows[5]["label"] != "cat" else "dog"
        self.put_csv(rows)
        self.assertNotEqual(self.check(path, rows).info.identity, first)
        shutil.copytree(self.path(), self.path("copy"), copy_function=shutil.copyfile)
        self.assertEqual(penstock.Dataset(os.path.join(self.path("copy"), "labels.csv")).info.identity,
                         penstock.Dataset(path).info.identity)

    def test_a_table_that_changes_during_a_run_is_refused(self):
        rows = self.rows(40)
        path = self.put_csv(rows)
        with penstock.Loader(path, batch_size=1, device="cpu", framework="numpy", outputs={"image": SMALL},
                             memory=penstock.Memory(n_slots=2), n_threads=1) as loader:
            batches = iter(loader)
            next(batches)
            self.put_csv(rows[:20])
            self.assert_says([path, "changed or replaced"], lambda: [None for _ in range(500) for _ in loader])
        dataset = penstock.Dataset(path)
        os.unlink(path)
        self.assert_says([path, "removed"], lambda: dataset[1])

    def test_an_image_that_changes_is_refused(self):
        rows = self.rows()
        path = self.put_csv(rows)
        dataset = penstock.Dataset(path)
        with open(os.path.join(self.path(), rows[2]["path"]), "ab") as file:
            file.write(b"more")
        self.assert_says([rows[2]["path"], "changed since", "remove the index"], lambda: dataset[2])

    # ---- large, and everything else --------------------------------------------------------------------

    def test_parts_of_a_large_table(self):
        """More than a part of 4 MiB: rows stay in order, lines are right, and any number of threads builds the same."""
        paths = self.images(3)
        rows = [{"path": paths[i % 3], "label": f"c{i % 1000}", "n": i, "note": "two\nlines " + "x" * (i % 50)}
                for i in range(150000)]
        path = self.put_csv(rows)
        self.assertGreater(os.path.getsize(path), 8 << 20)
        dataset = penstock.Dataset(path)
        self.assertEqual(len(dataset), len(rows))
        names = sorted({row["label"] for row in rows})
        self.assertEqual(list(dataset.names), names)
        for i in [*range(0, len(rows), 997), len(rows) - 1]:
            self.assertEqual(dataset.get(i, "n"), i)
            self.assertEqual(dataset.get(i, "note"), rows[i]["note"])
            self.assertEqual(names[dataset.get(i, "label")], rows[i]["label"])
        self.put(open(path, "rb").read() + b"no.jpg,c0,x,y\r\n")
        self.assert_says([f"line {2 * len(rows) + 2} ", "column n is 'x'"], penstock.Dataset, path)

    def test_another_that_builds_an_index(self):
        data = self.put("path,label\n" + "".join(f"{path},1\n" for path in self.images()))
        penstock.Dataset(data).close()
        own = self.path(".penstock")
        index, = (os.path.join(own, name) for name in os.listdir(own) if name.endswith(".index"))
        os.remove(index)
        script = ("import fcntl, sys, time\nlock = open(sys.argv[1] + '.lock', 'r+b')\nfcntl.flock(lock, fcntl.LOCK_EX)\n"
                  "lock.write(bytes(16) + b'process 4711 on host n2'), lock.flush(), print('ready', flush=True), time.sleep(3)\n")
        with subprocess.Popen([sys.executable, "-c", script, index], stdout=subprocess.PIPE, text=True) as other:
            self.assertEqual(other.stdout.readline(), "ready\n")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                with penstock.Loader(data, batch_size=4, outputs=[SMALL]) as loader:
                    self.assertEqual(loader.n_samples, 12)
        self.assertRegex(said.getvalue(), r"penstock: process 4711 on host n2 is building the index of .*\.index\.lock\)\n")

    def test_the_command(self):
        rows = self.rows()
        path = self.put_csv(rows)

        def run(*words):
            done = subprocess.run([COMMAND, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        self.assertIn("table", run("info", path))
        self.assertEqual(json.loads(run("info", path, "--json"))["n_samples"], 12)
        run("verify", path)
        run("show", path, "-o", self.path("show.png"))
        run("bench", path, "--seconds", "0.1")
        run("pack", path, self.path("packed"))
        packed = penstock.Dataset(self.path("packed"))
        self.check(path, rows)
        for mine, other in zip(packed, penstock.Dataset(path)):
            self.assertEqual(mine, other)
        self.assertEqual(list(packed.names), list(penstock.Dataset(path).names))
        run("export", path, self.path("out"), "--to", "webdataset")
        self.assertEqual(len(penstock.Dataset(self.path("out"))), 12)

    def test_a_table_and_a_folder_in_a_mixture(self):
        rows = self.rows()
        path = self.put_csv(rows)
        penstock.export(path, to="mds", out=self.path("mds"))
        with penstock.Loader(penstock.Mixture({path: 1, self.path("mds"): 1}), batch_size=4, device="cpu",
                             framework="numpy", outputs={"image": SMALL, "label": "label"}) as loader:
            self.assertGreater(sum(len(batch["image"]) for batch in loader), 0)

    def test_state_goes_on_where_it_was(self):
        path = self.put_csv(self.rows(40))
        how = {"batch_size": 4, "device": "cpu", "framework": "numpy", "outputs": {"count": "count"}, "seed": 5}
        with penstock.Loader(path, **how) as loader:
            seen = []
            for i, batch in enumerate(loader):
                seen.append(batch["count"].tolist())
                if i == 3:
                    state = loader.state_dict()
        with penstock.Loader(path, **how) as loader:
            loader.load_state_dict(state)
            self.assertEqual([batch["count"].tolist() for batch in loader], seen[4:])


if __name__ == "__main__":
    unittest.main()
