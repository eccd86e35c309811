# SPDX-License-Identifier: Apache-2.0
"""penstock.masks gives the masks that pycocotools gives, and refuses what is no mask."""
import unittest

import penstock
from data_fixture import Case, np

from penstock import masks

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

    def test_what_is_no_mask_is_refused(self):
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
                (lambda: masks.polygon_mask([[0, 0, 1]], (3, 2)), r"shape \(3,\); must be \(points, 2\)")):
            with self.assertRaisesRegex((TypeError, ValueError), says):
                call()


if __name__ == "__main__":
    unittest.main()
