# SPDX-License-Identifier: Apache-2.0
"""penstock.masks gives the masks that pycocotools gives, of a packed file of COCO, too, and refuses what is no mask."""
import json
import subprocess
import unittest

import penstock
from data_fixture import Case, image_file, np

from penstock import masks
from penstock.__main__ import command

try:
    from pycocotools import _mask as coco_polygons, mask as coco
except ImportError:
    coco = None

N_POLYGONS, N_RUNS = 4000, 600


def polygon(random, number, height, width):
    """Corners inside and outside of the image; whole, halves, tenths and any; some twice."""
    n, side = random.integers(1, 12), max(height, width)
    points = (random.uniform(-20, side + 20, 2 * n), random.integers(-3, side + 3, 2 * n).astype(float),
              np.round(random.uniform(0, side, 2 * n), 2), random.integers(-10, 10 * side, 2 * n) / 10,
              random.integers(-2, 2 * side, 2 * n) / 2)[number % 5]
    if number % 7 == 0 and n > 1:
        points[2:4] = points[:2]
    return points


class Masks(Case):
    @unittest.skipUnless(coco, "missing: pycocotools")
    def test_polygons_are_pycocotools(self):
        random = np.random.default_rng(1)
        for number in range(N_POLYGONS):
            height, width = (int(side) for side in random.integers(1, 60, 2))
            points = polygon(random, number, height, width)
            wanted = coco.decode(coco_polygons.frPoly([points.tolist()], height, width))[:, :, 0]
            found = masks.polygon_mask([points], (height, width))
            self.assertTrue((found == wanted).all(), f"{height} x {width}: {points.tolist()}")

    @unittest.skipUnless(coco, "missing: pycocotools")
    def test_several_polygons_are_their_union(self):
        random = np.random.default_rng(2)
        for number in range(300):
            height, width = (int(side) for side in random.integers(1, 60, 2))
            some = [polygon(random, number, height, width).tolist() for _ in range(number % 4 + 1)]
            some = [points for points in some if len(points) >= 6] or [[0, 0, 1, 0, 1, 1]]
            wanted = coco.decode(coco.merge(coco.frPyObjects(some, height, width)))
            self.assertTrue((masks.polygon_mask(some, (height, width)) == wanted).all(), some)

    @unittest.skipUnless(coco, "missing: pycocotools")
    def test_runs_of_both_forms_are_pycocotools(self):
        random = np.random.default_rng(3)
        for number in range(N_RUNS):
            height, width = (int(side) for side in random.integers(1, 90, 2))
            mask = (random.random((height, width)) < (0, 0.02, 0.5, 0.98, 1)[number % 5]).astype(np.uint8)
            text = coco.encode(np.asfortranarray(mask))["counts"]
            counts = masks.rle_counts(text)
            self.assertEqual(counts.sum(), mask.size)
            for form in (text, text.decode(), counts, counts.tolist()):
                self.assertTrue((masks.rle_decode(form, (height, width)) == mask).all())
            again = coco.frPyObjects({"counts": counts.tolist(), "size": [height, width]}, height, width)
            self.assertEqual(again["counts"], text)

    def test_masks_of_known_shapes(self):
        square = masks.polygon_mask([[1, 1, 4, 1, 4, 3, 1, 3]], (5, 6))
        self.assertEqual(square.tolist(), [[0] * 6, [0, 1, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0], [0] * 6, [0] * 6])
        self.assertEqual(square.dtype, np.uint8)
        self.assertFalse(masks.polygon_mask([], (3, 4)).any())
        self.assertFalse(masks.polygon_mask([[]], (3, 4)).any())
        self.assertFalse(masks.polygon_mask([[1, 1]], (3, 4)).any())  # a point
        self.assertTrue(masks.polygon_mask([[[-9, -9], [99, -9], [99, 99], [-9, 99]]], (3, 4)).all())
        self.assertEqual(masks.rle_decode([2, 3, 1], (3, 2)).tolist(), [[0, 1], [0, 1], [1, 0]])
        self.assertEqual(masks.rle_decode([0, 6], (3, 2)).tolist(), [[1, 1]] * 3)
        self.assertEqual(masks.rle_counts(b"231").tolist(), [2, 3, 1])

    def test_invalid_masks_are_refused(self):
        for call, says in (
                (lambda: masks.rle_decode([2, 3], (3, 2)), "sum is 5; must be 6, the pixels of 3 x 2"),
                (lambda: masks.rle_decode([2, 2**32 - 1, 7], (3, 2)), "or more; must be 6"),
                (lambda: masks.rle_decode("2~", (3, 2)), "byte 1 of 2 is not of a compressed mask"),
                (lambda: masks.rle_counts("oooooooooo"), "byte 7 of 10"),
                (lambda: masks.rle_counts("P"), "byte 1 of 1"),
                (lambda: masks.rle_counts("O"), "run 0, at byte 0, is -1; must be 0 to 4294967295"),
                (lambda: masks.polygon_mask([[0, 0, 1, float("nan")]], (3, 2)),
                 "corner 1 of polygon 0 has y nan"),
                (lambda: masks.polygon_mask([[0, 0, 1e9, 0]], (3, 2)), "has x 1e\\+09; must be -1048576 to")):
            with self.assertRaisesRegex(penstock.PenstockError, says):
                call()
        for call, says in (
                (lambda: masks.rle_decode([6], 6), r"size: value is 6; must be \(height, width\)"),
                (lambda: masks.rle_decode([0], (0, 2)), "height"),
                (lambda: masks.rle_decode([-1, 7], (3, 2)), "values are -1 to 7"),
                (lambda: masks.rle_decode([1.5], (3, 2)), "whole numbers"),
                (lambda: masks.rle_counts([1]), "must be str or bytes"),
                (lambda: masks.rle_decode({"counts": [6], "size": [3, 2]}, (3, 2)), r"rle_decode\(rle\['counts'\], rle\['size'\]\)"),
                (lambda: masks.polygon_mask({"counts": [6]}, (3, 2)), r"rle_decode\(rle\['counts'\], rle\['size'\]\)"),
                (lambda: masks.polygon_mask([0, 0, 1, 1, 1, 0], (3, 2)), r"the number 0\.0 .* write \[polygon\] for one"),
                (lambda: masks.polygon_mask(np.eye(3, 2), (3, 2)), r"3 polygons of one corner each; .* write \[polygon\]"),
                (lambda: masks.polygon_mask([["a", "b"]], (3, 2)), "must be numbers"),
                (lambda: masks.polygon_mask(None, (3, 2)), "value is of NoneType; must be a list of polygons"),
                (lambda: masks.polygon_mask([[0, 0, 1]], (3, 2)), r"shape \(3,\); must be \(points, 2\)")):
            with self.assertRaisesRegex((TypeError, ValueError), says):
                call()


N_IMAGES, SIZE = 12, (70, 90)


def segmentation(random, number):
    """Polygons of two decimals, as COCO's; or runs, of each form."""
    if number % 4 < 2:
        return [np.round(random.uniform(-5, 95, 2 * random.integers(3, 12)), 2).tolist() for _ in range(number % 3 + 1)]
    runs = coco.encode(np.asfortranarray((random.random(SIZE) < 0.4).astype(np.uint8)))
    counts = runs["counts"].decode()
    return {"size": SIZE, "counts": counts if number % 4 == 2 else masks.rle_counts(counts).tolist()}


def mask_of(shape):
    """As pycocotools.coco.COCO.annToMask."""
    if isinstance(shape, list):
        shape = coco.merge(coco.frPyObjects(shape, *SIZE))
    elif isinstance(shape["counts"], list):
        shape = coco.frPyObjects(shape, *SIZE)
    return coco.decode(shape)


def masks_of(record):
    """Yield the mask of each object, as docs/how-to/coco.md draws it."""
    points = np.round(record["points"].astype(np.float64), 2)
    polygons = np.split(points, np.cumsum(record["polygon_points"])[:-1])
    numbers = np.split(np.arange(len(polygons)), np.cumsum(record["object_polygons"])[:-1])
    runs = np.split(record["runs"], np.cumsum(record["object_runs"])[:-1])
    for some, counts in zip(numbers, runs):
        yield masks.rle_decode(counts, SIZE) if len(counts) else masks.polygon_mask([polygons[i] for i in some], SIZE)


class PackedMasks(Case):
    @unittest.skipUnless(coco, "missing: pycocotools")
    def test_masks_of_a_packed_file_are_pycocotools(self):
        random, shapes = np.random.default_rng(4), {}
        whole = {"images": [], "categories": [{"id": 1, "name": "x"}], "annotations": []}
        for number in range(N_IMAGES):
            with open(self.path(f"{number}.jpg"), "wb") as file:
                file.write(image_file(number, height=SIZE[0], width=SIZE[1]))
            whole["images"].append({"id": number, "file_name": f"{number}.jpg", "height": SIZE[0], "width": SIZE[1]})
        for number in range(10 * N_IMAGES):
            shapes[number] = segmentation(random, number)
            whole["annotations"].append({"id": number, "image_id": int(random.integers(N_IMAGES)), "category_id": 1,
                                         "bbox": [0, 0, 1, 1], "segmentation": shapes[number]})
        with open(self.path("coco.json"), "w", encoding="utf-8") as file:
            json.dump(whole, file)
        subprocess.run([command(), "pack", "--coco", self.path("coco.json"), self.folder, self.path()], check=True,
                       stdout=subprocess.DEVNULL)
        n = 0
        with penstock.Dataset(self.path()) as dataset:
            for record in dataset:
                for found, number in zip(masks_of(record), record["annotation_id"]):
                    self.assertTrue((found == mask_of(shapes[number])).all(), shapes[number])
                    n += 1
        self.assertEqual(n, 10 * N_IMAGES)

    def test_two_decimals_come_back_from_float32(self):
        wanted = np.arange(-1000000, 6553600) / 100
        self.assertTrue((np.round(wanted.astype(np.float32).astype(np.float64), 2) == wanted).all())


if __name__ == "__main__":
    unittest.main()
