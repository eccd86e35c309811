# SPDX-License-Identifier: Apache-2.0
"""Tables of images that tests write, and the rows that a data set of them has to have."""
import csv
import io
import json
import math
import os

import penstock
from data_fixture import Case, image_file

CLASSES = ["dog", "cat", "été", "a \"b\", c"]
NOTES = ["", "x", "two\nlines", "crlf\r\nhere", "quote \" and , comma", "été 😀", " spaces ", "\ttab"]


class TableCase(Case):
    def setUp(self):
        super().setUp()
        self.old = os.environ.get("PENSTOCK_CACHE")
        os.environ["PENSTOCK_CACHE"] = self.path("cache")
        self.addCleanup(self.restore)

    def restore(self):
        if self.old is None:
            del os.environ["PENSTOCK_CACHE"]
        else:
            os.environ["PENSTOCK_CACHE"] = self.old

    def images(self, n=12, name="data"):
        """Make a folder with n images in images/; return their paths below it."""
        paths = []
        os.makedirs(os.path.join(self.path(name), "images"), exist_ok=True)
        for i in range(n):
            path = f"images/{i}.{'jpg' if i % 3 else 'png'}"
            with open(os.path.join(self.path(name), path), "wb") as file:
                file.write(image_file(i, "JPEG" if i % 3 else "PNG", height=20 + i))
            paths.append(path)
        return paths

    def tail(self, path):
        """Let bytes follow an image, which its decoder passes over."""
        with open(path, "ab") as file:
            file.write(bytes(1 << 16))

    def rows(self, n=12, name="data"):
        return [{"path": path, "label": CLASSES[i * 7 % len(CLASSES)], "score": i / 3 - 1, "count": (i - 5) * 10**15,
                 "flag": bool(i % 2), "note": NOTES[i % len(NOTES)]} for i, path in enumerate(self.images(n, name))]

    def put(self, text, name="labels.csv", folder="data"):
        path = os.path.join(self.path(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def put_csv(self, rows, name="labels.csv", folder="data", **how):
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, list(rows[0]), **how)
        writer.writeheader()
        writer.writerows(rows)
        return self.put(out.getvalue(), name, folder)

    def put_json(self, rows, name="labels.jsonl", folder="data", **how):
        return self.put("".join(json.dumps(row, **how) + "\n" for row in rows), name, folder)

    def check(self, path, rows, root=None, key="path", **keywords):
        """Check that the data set has these rows: texts of labels as their class, bool as 0 and 1."""
        dataset = penstock.Dataset(path, **keywords)
        has_names = isinstance(rows[0].get("label"), str)
        names = tuple(sorted({row["label"] for row in rows}, key=str.encode)) if has_names else ()
        self.assertEqual(len(dataset), len(rows))
        self.assertEqual(tuple(dataset.names), names)
        for sample, row in zip(dataset, rows):
            with open(os.path.join(root or self.path(), row[key]), "rb") as file:
                self.assertEqual(sample.pop("image"), file.read())
            self.assertEqual(sample.pop("path"), row[key])
            for name, value in row.items():
                if name == key:
                    continue
                got = sample.pop(name)
                if name == "label" and names:
                    got = names[got]
                if isinstance(value, float) and math.isnan(value):
                    self.assertTrue(math.isnan(got))
                else:
                    self.assertEqual(got, value, (name, row))
            self.assertEqual(sample, {})
        return dataset

    def refused(self, words, text, name="labels.csv", **keywords):
        """Opening a table of this text is an error that has these words, and the table's path."""
        path = self.put(text, name)
        words = [words] if isinstance(words, str) else list(words)
        return self.assert_says([*words, path], penstock.Dataset, path, **keywords)
