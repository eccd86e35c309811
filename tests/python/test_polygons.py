# SPDX-License-Identifier: Apache-2.0
"""Polygons that follow an image, and the lengths and runs of objects: the oracle moves corner by corner
(test_keypoints.py), and drops the objects whose boxes are dropped."""
import unittest

import forge
import penstock
from penstock import Boxes, Field, Polygons, Rle, masks
from penstock.ops import RandomFlip, RandomIoUCrop, RandomResizedCrop, Resize

from data_fixture import Case, np
from test_keypoints import any_list, moved

TOLERANCE = 2e-3  # pixels


def any_objects(rng, n, size):
    """Return the objects of one image: for each a list of polygons, none in some, and runs where it has none."""
    height, width = size
    return [[rng.uniform(-4, [width + 4, height + 4], (int(rng.integers(3, 90)), 2)).astype(np.float32)
             for _ in range(rng.integers(0, 4))] for _ in range(n)]


def box_of(polygons):
    corners = np.concatenate([np.zeros((1, 2), np.float32), *polygons]) if not polygons else np.concatenate(polygons)
    return [*corners.min(0), *(corners.max(0) + 0.5)]


def fields_of(objects, size):
    runs = [[] if polygons else [3, size[0] * size[1] - 3] for polygons in objects]
    return {"boxes": np.array([box_of(polygons) for polygons in objects], np.float32).reshape(-1, 4),
            "labels": np.arange(len(objects)), "object_polygons": [len(polygons) for polygons in objects],
            "polygon_points": [len(corners) for polygons in objects for corners in polygons],
            "corners": np.concatenate([np.zeros((0, 2)), *(c for polygons in objects for c in polygons)]),
            "object_runs": [len(some) for some in runs], "runs": [n for some in runs for n in some]}


def schema(codec="none", **kind):
    return {"image": "image", "boxes": Boxes(rows="objects"), "labels": Field("int64", (None,), rows="objects"),
            "object_polygons": Field("uint32", (None,), codec, rows="objects", splits="polygons"),
            "polygon_points": Field("int64", (None,), codec, rows="polygons", splits="corners"),
            "corners": Polygons(rows="corners", codec=codec, **kind),
            "object_runs": Field("uint16", (None,), codec, rows="objects", splits="runs"), "runs": Rle(rows="runs")}


class Followers(Case):
    def pack(self, images, sizes, name="data", codec="none"):
        with penstock.Writer(self.path(name), schema(codec)) as writer:
            for objects, size in zip(images, sizes):
                writer.add(image=np.zeros((*size, 3), np.uint8), **fields_of(objects, size))

    def outputs(self, ops, **keywords):
        return {"corners": penstock.polygons("corners", **keywords), "polygon_points": penstock.per_box("polygon_points"),
                "object_polygons": penstock.per_box("object_polygons"), "object_runs": penstock.per_box("object_runs"),
                "runs": penstock.per_box("runs"), "labels": penstock.per_box("labels"), "boxes": penstock.boxes("boxes"),
                "x": penstock.image("image", ops)}

    def load(self, ops, name="data", outputs=None, batch_size=1, **keywords):
        return penstock.Loader(self.path(name), batch_size=batch_size, framework="numpy", last_batch="short",
                               outputs=outputs or self.outputs(ops), **keywords)

    def test_corners_of_boxes_that_are_left_are_moved(self):
        rng = np.random.default_rng(2)
        sizes = [tuple(int(v) for v in rng.integers(10, 60, 2)) for _ in range(8)]
        images = [any_objects(rng, i, size) for i, size in enumerate(sizes)]
        n_left = n_dropped = 0
        for codec in ("none", "zstd"):
            self.pack(images, sizes, codec, codec)
            for case in range(20):
                ops = any_list(rng)
                with self.subTest(case, ops=ops), self.load(ops, codec, seed=case, shuffle=False) as loader:
                    for i, batch in enumerate(loader):
                        drawn = penstock.draw(ops, (*sizes[i], 3), seed=case, sample_id=i)
                        left = batch["labels"][0].tolist()
                        wanted = [images[i][k] for k in left]
                        want = fields_of(wanted, sizes[i])
                        for name in ("polygon_points", "object_polygons", "object_runs", "runs"):
                            self.assertEqual(batch[name][0].tolist(), list(want[name]), name)
                        corners = []
                        for corner in want["corners"]:
                            p, size = corner.astype(np.float64), sizes[i]
                            for op in drawn:
                                p, size = moved(p, size, op)
                            corners.append(p)
                        found = batch["corners"][0]
                        self.assertEqual((found.shape, found.dtype), ((len(corners), 2), np.float32))
                        near = np.abs(found) < 1e4  # far behind a perspective rounding is magnified
                        np.testing.assert_allclose(found[near], np.reshape(corners, (-1, 2))[near], rtol=1e-5, atol=TOLERANCE)
                        n_left, n_dropped = n_left + len(left), n_dropped + len(images[i]) - len(left)
        self.assertGreater(n_left, 100)
        self.assertGreater(n_dropped, 50)

    def test_masks_of_moved_polygons_are_moved_masks(self):
        """polygon_mask takes corners outside: what it draws after a crop and a flip is the crop of what it drew before."""
        polygon = np.array([[5, 5], [45, 9], [30, 55], [9, 40]], np.float32)
        whole = masks.polygon_mask([polygon], (60, 50)).astype(bool)
        with penstock.Writer(self.path(), {"image": "image", "corners": Polygons(), "mask": "mask"}) as writer:
            writer.add(image=np.zeros((60, 50, 3), np.uint8), corners=polygon, mask=whole.astype(np.uint8))
        ops = [penstock.ops.RandomCrop((32, 32)), RandomFlip(), penstock.ops.RandomVerticalFlip()]
        outputs = {"x": penstock.image("image", ops), "corners": penstock.polygons("corners"), "mask": penstock.mask("mask")}
        with self.load(ops, outputs=outputs) as loader:
            for _ in range(30):
                for batch in loader:
                    drawn = masks.polygon_mask([batch["corners"][0]], (32, 32))
                    self.assertLessEqual(int((drawn != batch["mask"][0]).sum()), 64)  # its rule is not symmetric: the edge
                    self.assertGreater(int(drawn.sum()), 100)

    def test_without_boxes_all_polygons_stay(self):
        rng = np.random.default_rng(4)
        objects = any_objects(rng, 5, (30, 40))
        self.pack([objects], [(30, 40)])
        corners = fields_of(objects, (30, 40))["corners"]
        x = penstock.image("image", [Resize((60, 20))])
        for outputs in ({"x": x, "corners": penstock.polygons("corners"), "polygon_points": "polygon_points"},
                        {"x": x, "boxes": penstock.boxes("boxes", min_side=1000),
                         "corners": penstock.polygons("corners", boxes=False)}):
            with self.load(None, outputs=outputs) as loader:
                np.testing.assert_allclose(next(iter(loader))["corners"][0], corners * [0.5, 2], rtol=1e-6)
        outputs = {"x": x, "corners": penstock.polygons("corners", coordinates="unit")}
        with self.load(None, outputs=outputs) as loader:
            np.testing.assert_allclose(next(iter(loader))["corners"][0], corners / [40, 30], rtol=1e-6)

    def test_rows_do_not_depend_on_threads(self):
        rng = np.random.default_rng(8)
        sizes = [tuple(int(v) for v in rng.integers(10, 60, 2)) for _ in range(40)]
        self.pack([any_objects(rng, i % 6, size) for i, size in enumerate(sizes)], sizes, codec="zstd")
        ops, found = [RandomIoUCrop(), RandomResizedCrop(24), RandomFlip()], []
        for n_threads in (1, 2, 5):
            with self.load(ops, batch_size=7, n_threads=n_threads, seed=4) as loader:
                found.append([[batch[name].data.tobytes() for name in ("corners", "polygon_points", "runs", "labels")]
                              for batch in loader])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])


class Refused(Case):
    def test_settings_are_checked(self):
        with penstock.Writer(self.path(), {**schema(), "free": Polygons()}) as writer:
            writer.add(image=np.zeros((9, 9, 3), np.uint8), free=[[1, 1]], **fields_of([[]], (9, 9)))
        x, boxes = penstock.image("image", [Resize((8, 8))]), penstock.boxes("boxes")
        for words, outputs in (
                ("there is no image output of field 'image' to follow", {"p": penstock.polygons("corners")}),
                ("must be penstock.ragged('labels')", {"x": x, "p": penstock.polygons("labels")}),
                ("the corners of field 'free' do not belong to boxes of output 'b'",
                 {"x": x, "b": boxes, "p": penstock.polygons("free", boxes="b")}),
                ("field 'corners' has polygons, which follow", {"x": x, "b": boxes, "p": penstock.per_box("corners")}),
                ("must be penstock.polygons('corners') to follow it", {"x": x, "p": "corners"}),
                ("must be penstock.per_box('polygon_points')", {"x": x, "b": boxes, "p": "polygon_points"})):
            with self.subTest(words):
                self.assert_says(words, penstock.Loader, self.path(), batch_size=1, outputs=outputs)
        with penstock.Loader(self.path(), batch_size=1, framework="numpy", outputs={
                "x": x, "b": boxes, "free": penstock.polygons("free"), "p": penstock.polygons("corners")}) as loader:
            self.assertEqual(next(iter(loader))["free"][0].shape, (1, 2))
        for words, keywords in (("polygons.coordinates: value is 'cm'", {"coordinates": "cm"}),
                                ("polygons.boxes: value is True", {"boxes": True}),
                                ("polygons are not clipped", {"clip": True})):
            self.assert_says(words, penstock.polygons, "p", **keywords)

    def test_lengths_that_do_not_add_up_are_errors_of_their_sample(self):
        """In data sets that no writer of penstock made."""
        rng = np.random.default_rng(6)
        objects = [[rng.uniform(0, 9, (5 + k, 2)).astype(np.float32)] for k in range(6)]
        given = np.array([5, 6, 7, 8, 9, 10], np.int64)
        ops = [Resize((8, 8))]
        for k, lengths in enumerate(([5, 6, 7, 8, 11], [2**40, 6, 7, 8, 9], [-1, 6, 7, 8, 9])):
            with penstock.Writer(self.path(str(k)), schema()) as writer:
                writer.add(image=np.zeros((9, 9, 3), np.uint8), **fields_of(objects, (9, 9)))
            wrong = np.array([*lengths, 0], np.int64)
            forge.change(self.path(str(k)), given.tobytes(), wrong.tobytes())
            with penstock.Loader(self.path(str(k)), batch_size=1, framework="numpy", last_batch="short", outputs={
                    "x": penstock.image("image", ops), "b": penstock.boxes("boxes"),
                    "p": penstock.polygons("corners")}) as loader:
                found = self.assert_says(["has 45 items, but the lengths of the 6 boxes of output 'b' add up to another number"],
                                         list, loader)
                self.assertEqual((type(found), found.sample_id), (penstock.CorruptRecordError, 0))


if __name__ == "__main__":
    unittest.main()
