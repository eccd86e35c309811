# SPDX-License-Identifier: Apache-2.0
"""Batches, loaders and data sets in a notebook: small tables of text, in which no name is HTML."""
import html.parser
import os
import pickle
import unittest

import sets
import penstock
from penstock import notebook

EVIL = "<script>alert('x')</script>&\"\n\u202e"
TAGS = {"b", "br", "table", "thead", "tbody", "tr", "th", "td"}
# Title, lines and rows of at most 6 cells, each character at most 6 bytes long ("&quot;").
MOST = (1 + 4 + 6 * (notebook.MAX_ROWS + 2)) * (6 * notebook.MAX_TEXT + len("<td></td>"))


class Page(html.parser.HTMLParser):
    """The tags of a page, its text, and the cells of its rows."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.text, self.rows = [], "", []
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def loader(**keywords):
    return penstock.Loader(sets.scalars(), **{"batch_size": 10, "shuffle": False, "framework": "dlpack", **keywords})


class Case(unittest.TestCase):
    def page(self, shown):
        """Return the page of an object, which is small, and HTML of ours alone."""
        source = shown._repr_html_()
        self.assertLess(len(source), MOST)
        source.encode()
        page = Page(source)
        self.assertLessEqual(set(page.tags), TAGS)
        self.assertLessEqual(len(page.rows), notebook.MAX_ROWS + 2)
        return page


class Names(Case):
    def test_a_name_is_text_and_no_html(self):
        escaped = "<script>alert('x')</script>&\"\ufffd\ufffd"
        self.assertEqual(self.page(penstock.Batch({EVIL + "\ud800\0": 1})).rows[1][0], escaped + "\ufffd\ufffd")
        self.assertIn(escaped, self.page(type(EVIL, (penstock.Batch,), {})()).text)
        self.assertIn(escaped, self.page(penstock.Batch(a=type(EVIL, (), {})())).rows[1][1])
        with loader(outputs={EVIL: "i"}) as data:
            self.assertEqual(self.page(data).rows[1][0], escaped)
            self.assertEqual(self.page(next(iter(data))).rows[1][0], escaped)

    def test_class_names_and_paths_are_text_and_no_html(self):
        path = os.path.join(sets.ROOT, "<b>bold")
        names = ["<script>", "a" * 10000, *map(str, range(5000))]
        with penstock.Writer(path, {"i": "int64"}, names=names) as writer:
            writer.add(i=1)
        page = self.page(penstock.Dataset(path))
        self.assertIn("5,002 classes: <script>, aaaaa", page.text)
        self.assertIn("<b>bold", page.text)
        with penstock.Loader(path, batch_size=1, framework="dlpack") as data:
            self.assertIn("<b>bold", self.page(data).text)

    def test_thousands_of_rows_are_counted_and_not_shown(self):
        page = self.page(penstock.Batch({f"{i} " + "<" * 500: 1 for i in range(5000)}))
        self.assertEqual(page.rows[-1], ["and 4,980 more"])
        self.assertEqual(len(page.rows), 1 + notebook.MAX_ROWS + 1)
        exact = self.page(penstock.TupleBatch(range(notebook.MAX_ROWS)))
        self.assertEqual(exact.rows[-1][:2], [str(notebook.MAX_ROWS - 1), "int"])

    def test_a_data_set_of_many_fields_has_a_small_table(self):
        path = os.path.join(sets.ROOT, "wide")
        names = [f"f{i}." + "x" * 57 for i in range(64)]
        with penstock.Writer(path, dict.fromkeys(names, "uint8")) as writer:
            writer.add(dict.fromkeys(names, 1))
        with penstock.Dataset(path) as data:
            self.assertEqual(self.page(data).rows[-1], ["and 44 more"])
        with penstock.Loader(path, batch_size=1, framework="dlpack") as data:
            self.assertEqual(self.page(data).rows[-1], ["and 44 more"])


class Batches(Case):
    def test_every_form_has_name_dtype_shape_and_device_of_each_tensor(self):
        for form, names in (("dict", ["i", "half"]), ("tuple", ["0", "1"]), ("dataclass", ["i", "half"])):
            with loader(form=form) as data:
                batches = iter(data)
                next(batches)
                page = self.page(next(batches))
            self.assertEqual(page.rows, [["name", "kind", "dtype", "shape", "device"],
                                         [names[0], "Tensor", "int64", "[10]", "cpu"],
                                         [names[1], "Tensor", "float32", "[10]", "cpu"]])
            self.assertIn("epoch 0, batch 1, 10 rows; position 10, next 20", page.text)

    def test_batches_not_from_a_loader_and_other_values_are_shown(self):
        page = self.page(penstock.Batch(a=None, b=[1, 2], c=penstock.Batch()))
        self.assertEqual([row[:2] for row in page.rows[1:]], [["a", "NoneType"], ["b", "list"], ["c", "Batch"]])
        self.assertEqual(self.page(penstock.Batch()).rows, [["name", "kind", "dtype", "shape", "device"]])

    def test_a_batch_is_shown_after_close_and_after_pickle(self):
        with loader() as data:
            batch = next(iter(data))
        self.assertEqual(len(self.page(batch).rows), 3)
        plain = penstock.Batch(i=[1])
        plain.info = batch.info
        again = pickle.loads(pickle.dumps(plain))
        self.assertEqual(again._repr_html_(), plain._repr_html_())

    def test_tensors_of_frameworks_and_ragged_ones_are_shown(self):
        sets.need_numpy()
        torch = sets.torch_or_skip()
        with penstock.Loader(sets.small(), batch_size=4, shuffle=False, framework="torch",
                             outputs=["x", "tokens"]) as data:
            batch = next(iter(data))
        self.assertEqual(self.page(batch).rows[1:], [["x", "Tensor", "float32", "[4, 3]", "cpu"],
                                                     ["tokens", "ragged, 4 rows", "int64", "[6]", "cpu"]])
        self.assertEqual(self.page(batch.to("meta")).rows[1][-1], "meta")
        self.assertEqual(self.page(penstock.Batch(a=torch.zeros(2, 3))).rows[1][2:4], ["float32", "[2, 3]"])

    def test_values_are_not_read(self):
        class Unreadable:
            shape, dtype, device = (2,), "float32", "cuda:0"

            def refuse(self, *_):
                raise AssertionError("it was read")

            __array__ = __dlpack__ = __iter__ = __len__ = __getitem__ = __float__ = __str__ = __repr__ = refuse

        self.assertEqual(self.page(penstock.Batch(a=Unreadable())).rows[1],
                         ["a", "Unreadable", "float32", "[2]", "cuda:0"])


class Loaders(Case):
    def test_a_loader_shows_its_outputs_and_does_not_move(self):
        with loader(outputs={"a": "i", "b": penstock.scalar("half", "float64")}) as data:
            page = self.page(data)
            self.assertEqual(page.rows[1:], [["a", "scalar", "i", "int64", "[10]", ""],
                                             ["b", "scalar", "half", "float64", "[10]", ""]])
            self.assertIn("2,000 samples, batches of 10, sequential order", page.text)
            self.assertEqual((data.cursor, data.stats().n_batches), ((0, 0), 0))
            self.assertEqual(next(iter(data)).sample_ids, list(range(10)))
            self.assertIn("at epoch 0, position 10", self.page(data).text)
        self.assertIn("closed", self.page(data).text)
        self.assertEqual(self.page(data).rows, page.rows)

    def test_a_loader_that_did_not_open_has_no_table(self):
        self.assertIsNone(penstock.Loader.__new__(penstock.Loader)._repr_html_())

    def test_shapes_are_those_of_its_batches(self):
        sets.need_numpy()
        sizes = [[penstock.ops.RandomResizedCrop(8)], [penstock.ops.Resize(9), penstock.ops.CenterCrop((6, 7))],
                 [penstock.ops.Resize((5, 4)), penstock.ops.RandomFlip()]]
        outputs = {}
        for layout in ("nhwc", "nchw", "channels_last"):
            for i, ops in enumerate(sizes):
                for channels in (1, 3, 4):
                    outputs[f"{layout} {i} {channels}"] = penstock.image("image", ops, layout=layout, channels=channels)
                for n in (1, 3):
                    gray = [*ops, penstock.ops.Grayscale(n)]
                    outputs[f"{layout} {i} gray {n}"] = penstock.image("image", gray, layout=layout)
        for names in (list(outputs)[:20], list(outputs)[20:40], list(outputs)[40:]):
            with penstock.Loader(sets.small(), batch_size=2, framework="numpy",
                                 outputs={name: outputs[name] for name in names}) as data:
                rows, batch = self.page(data).rows[1:], next(iter(data))
            self.assertEqual({row[0]: row[4] for row in rows},
                             {name: str(list(array.shape)) for name, array in batch.items()})

    def test_ragged_outputs_name_what_differs(self):
        sets.need_numpy()
        outputs = ["x", "boxes", "text", "tokens", penstock.image("image", [penstock.ops.RandomResizedCrop(8)])]
        with penstock.Loader(sets.small(), batch_size=2, framework="numpy", outputs=outputs) as data:
            rows = {row[0]: row[1:] for row in self.page(data).rows[1:]}
            batch = next(iter(data))
        self.assertEqual(rows, {"x": ["tensor", "x", "float32", "[2, 3]", ""],
                                "boxes": ["ragged", "boxes", "float32", "[items, 4]", ""],
                                "text": ["ragged", "text", "uint8", "[bytes]", ""],
                                "tokens": ["ragged", "tokens", "int64", "[items]", ""],
                                "image": ["image", "image", "uint8", "[2, 8, 8, 3]", "RandomResizedCrop"]})
        for name in ("boxes", "text", "tokens"):
            self.assertEqual(str(batch[name].data.dtype), rows[name][2])


class Datasets(Case):
    def test_a_data_set_shows_its_fields_also_closed_or_in_part(self):
        with penstock.Dataset(sets.scalars()) as data:
            page = self.page(data)
            self.assertEqual(page.rows, [["field", "kind", "shape", "codec", "bytes stored"],
                                         ["i", "int64", "", "none", "16,000"],
                                         ["half", "float32", "", "none", "8,000"]])
            self.assertIn("2,000 records, 1 shard,", page.text)
            self.assertIn("10 of 2,000 records", self.page(data[:10]).text)
        self.assertEqual(self.page(data).rows, page.rows)
        self.assertIn("closed", self.page(data).text)

    def test_only_the_fields_that_are_read_are_shown(self):
        with penstock.Dataset(sets.scalars(), ["half"]) as data:
            self.assertEqual([row[0] for row in self.page(data).rows], ["field", "half"])


if __name__ == "__main__":
    unittest.main()
