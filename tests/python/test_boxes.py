# SPDX-License-Identifier: Apache-2.0
"""Boxes that follow an image: torchvision.transforms.v2 makes the same of the operations that were drawn for the
image, within TOLERANCE: it computes in float32, the library in float64, rounded once."""
import io
import os
import unittest
import warnings

import forge
import penstock
import sets
from penstock import Boxes, Field
from penstock.ops import (AugMix, CenterCrop, ColorJitter, RandomAffine, RandomCrop, RandomFlip, RandomIoUCrop, RandomPerspective,
                          RandomResizedCrop, RandomRotation, RandomVerticalFlip, Resize)

from data_fixture import Case, np, optional

TOLERANCE = 2e-3  # pixels, of sides up to 60: some steps of float32 apart, more behind a perspective


# ---- the oracle ----------------------------------------------------------------------------------------


def _moved(functional, boxes, op):
    """Move boxes by torchvision's function for an operation on images."""
    name, args = op.name, op.arguments
    mode = optional("torchvision.transforms").InterpolationMode.NEAREST
    if name == "resize":
        size = list(args[0]) if isinstance(args[0], tuple) else [args[0]]
        return functional.resize(boxes, size, max_size=args[2] if len(args) > 2 else None)
    if name == "resized_crop":
        return functional.resized_crop(boxes, *args[:4], list(args[4]))
    if name == "crop":
        return functional.crop(boxes, *args[:4])
    if name == "center_crop":  # if it pads an odd number of rows, torchvision's boxes leave its images by a pixel
        (height, width), (had_height, had_width) = args[0], boxes.canvas_size
        top, left = (-((want - had) // 2) if want > had else round((had - want) / 2)
                     for want, had in ((height, had_height), (width, had_width)))
        return functional.crop(boxes, top, left, height, width)
    if name == "hflip":
        return functional.horizontal_flip(boxes)
    if name == "vflip":
        return functional.vertical_flip(boxes)
    if name == "pad":
        return functional.pad(boxes, list(args[0]))
    if name == "rotate":
        return functional.rotate(boxes, args[0], mode, expand=args[2])
    if name == "transform" and len(args[0]) == 8:
        return functional.perspective(boxes, None, None, coefficients=list(args[0]))
    if name == "transform":
        return _affine(boxes, args[0])
    return boxes


def _affine(boxes, matrix):
    """Move boxes by a matrix with NumPy, because torchvision's function takes none."""
    torch, tv_tensors = optional("torch"), optional("torchvision.tv_tensors")
    inverse = np.linalg.inv(np.array([*matrix, 0, 0, 1]).reshape(3, 3))
    out = []
    for x0, y0, x1, y1 in boxes.tolist():
        p = inverse @ np.array([[x0, x1, x1, x0], [y0, y0, y1, y1], [1, 1, 1, 1]])
        out.append([p[0].min(), p[1].min(), p[0].max(), p[1].max()])
    made = torch.tensor(np.array(out, np.float64).reshape(-1, 4))
    return optional("torchvision.transforms.v2.functional").clamp_bounding_boxes(
        tv_tensors.BoundingBoxes(made, format="XYXY", canvas_size=boxes.canvas_size))


def expected(boxes, size, ops):
    """Return the boxes and numbers of those that are left; of (height, width). A box without area is gone for good."""
    torch, tv_tensors = optional("torch"), optional("torchvision.tv_tensors")
    functional = optional("torchvision.transforms.v2.functional")
    found = tv_tensors.BoundingBoxes(torch.tensor(boxes, dtype=torch.float64).reshape(-1, 4), format="XYXY",
                                     canvas_size=size)
    found, left = functional.clamp_bounding_boxes(found), np.arange(len(boxes))
    for op in [None, *ops]:
        found = _moved(functional, found, op) if op else found
        array = found.numpy()
        keep = (array[:, 2] - array[:, 0] > 1e-9) & (array[:, 3] - array[:, 1] > 1e-9)
        left = left[keep]
        found = tv_tensors.wrap(found[torch.tensor(keep)], like=found)
    return found.numpy(), left


def any_op(rng):
    size = tuple(int(v) for v in rng.integers(5, 60, 2))
    return [
        lambda: RandomResizedCrop(size),
        lambda: Resize(size),
        lambda: Resize(int(rng.integers(5, 40))),
        lambda: CenterCrop(size),
        lambda: RandomCrop(size, padding=int(rng.integers(5)), pad_if_needed=True),
        lambda: RandomFlip(0.5),
        lambda: RandomVerticalFlip(0.5),
        lambda: RandomRotation(180),
        lambda: RandomAffine(30, (0.2, 0.2), (0.7, 1.5), (-20, 20, -20, 20)),
        lambda: RandomPerspective(0.4, 0.8),
        lambda: ColorJitter(0.4, 0.4, 0.4, 0.1),
        lambda: AugMix(),
    ][rng.integers(12)]()


def any_list(rng):
    size = tuple(int(v) for v in rng.integers(5, 60, 2))
    return [any_op(rng) for _ in range(rng.integers(5))] + [CenterCrop(size) if rng.integers(2) else Resize(size)]


def any_boxes(rng, n, size):
    """Some reach outside."""
    height, width = size
    x, y = np.sort(rng.uniform(-8, width + 8, (n, 2)), 1), np.sort(rng.uniform(-8, height + 8, (n, 2)), 1)
    return np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1).astype(np.float32)


FAKE = os.environ.get("PENSTOCK_FAKE_LIBRARY", "")
DEVICE = """
import sys
import numpy as np
import penstock
from penstock import Boxes, Field
from penstock.ops import Normalize, RandomIoUCrop, RandomRotation, Resize
rng = np.random.default_rng(1)
with penstock.Writer(sys.argv[1], {"image": "image", "mask": "mask", "boxes": Boxes(rows="objects"),
                                   "labels": Field("int64", (None,), rows="objects")}) as writer:
    for i in range(40):
        corner = rng.uniform(0, 20, (i % 4, 2))
        writer.add(image=rng.integers(0, 256, (20, 30, 3), "u1"), mask=rng.integers(0, 9, (20, 30), "u1"),
                   boxes=np.concatenate([corner, corner + 9], 1), labels=np.arange(i % 4))

def batches(device):
    ops = [RandomIoUCrop(), RandomRotation(20), Resize((8, 8)), Normalize()]
    with penstock.Loader(sys.argv[1], batch_size=8, device=device, framework="dlpack", seed=5, outputs={
            "x": penstock.image("image", ops), "mask": penstock.mask("mask", dtype="int64"),
            "boxes": penstock.boxes("boxes"), "labels": penstock.per_box("labels")}) as loader:
        for b in loader:
            yield [t.read() for t in (b["x"], b["mask"], b["boxes"].data, b["boxes"].offsets, b["labels"].data)]

host, device = list(batches("cpu")), list(batches("cuda"))
assert len(host) == 5 and host == device
print("same")
"""


class Boxed(Case):
    def pack(self, boxes, sizes, name="data", dtype="float32", **kind):
        with penstock.Writer(self.path(name), {
                "image": "image", "boxes": Boxes(dtype, rows="objects", **kind),
                "labels": Field("int64", (None,), rows="objects"),
                "points": Field("float32", (None, 2), rows="objects")}) as writer:
            for given, size in zip(boxes, sizes):
                labels = np.arange(len(given))
                writer.add(image=np.zeros((*size, 3), np.uint8), boxes=given, labels=labels,
                           points=np.stack([labels, -labels], 1))

    def load(self, ops, name="data", batch_size=1, boxes=None, image=None, **keywords):
        outputs = {"labels": penstock.per_box("labels"), "x": penstock.image("image", ops, **(image or {})),
                   "boxes": penstock.boxes("boxes", **(boxes or {})), "points": penstock.per_box("points", "boxes")}
        return penstock.Loader(self.path(name), batch_size=batch_size, framework="numpy", outputs=outputs,
                               last_batch="short", **keywords)


class Followers(Boxed):
    def test_boxes_are_what_torchvision_makes_of_the_drawn_operations(self):
        optional("torchvision.transforms.v2.functional")
        rng = np.random.default_rng(3)
        sizes = [tuple(int(v) for v in rng.integers(10, 60, 2)) for _ in range(6)]
        boxes = [any_boxes(rng, i * 3, size) for i, size in enumerate(sizes)]
        self.pack(boxes, sizes)
        n_left = n_dropped = 0
        for case in range(60):
            ops = any_list(rng)
            with self.subTest(case, ops=ops), self.load(ops, seed=case) as loader:
                for batch in loader:
                    i = int(batch.sample_ids[0])
                    drawn = penstock.draw(ops, (*sizes[i], 3), seed=case, sample_id=i)
                    want, left = expected(boxes[i], sizes[i], drawn)
                    found, labels = batch["boxes"][0], batch["labels"][0]
                    if len(found) != len(want):  # a hair's breadth of area, on one side
                        self.assertLessEqual(abs(len(found) - len(want)), 1)
                        continue
                    self.assertEqual(labels.tolist(), left.tolist())
                    self.assertEqual(batch["points"][0].tolist(), [[n, -n] for n in left])
                    np.testing.assert_allclose(found, want, rtol=0, atol=TOLERANCE)
                    n_left, n_dropped = n_left + len(left), n_dropped + len(boxes[i]) - len(left)
        self.assertGreater(n_left, 500)
        self.assertGreater(n_dropped, 500)

    def test_rows_do_not_depend_on_threads(self):
        rng = np.random.default_rng(8)
        sizes = [tuple(int(v) for v in rng.integers(10, 60, 2)) for _ in range(40)]
        self.pack([any_boxes(rng, i % 7, size) for i, size in enumerate(sizes)], sizes)
        found = []
        for n_threads in (1, 2, 5):
            with self.load([RandomIoUCrop(), RandomRotation(20), Resize((16, 16))], batch_size=7, seed=3,
                           n_threads=n_threads) as loader:
                found.append([(batch["boxes"].data.tobytes(), batch["boxes"].offsets.tobytes(),
                               batch["labels"].data.tobytes(), batch["x"].tobytes()) for batch in loader])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    @unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
    def test_batches_on_a_device_are_those_of_the_host(self):
        done = sets.python(DEVICE, self.path(), PENSTOCK_LIBRARY=FAKE, PENSTOCK_FAKE_CUDA="devices=1,delay_us=200")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "same\n", ""), done.stdout)

    def test_forms_and_coordinates(self):
        boxes = np.array([[4, 8, 24, 18], [0, 0, 40, 20]], np.float32)  # in an image of 20 x 40
        size = np.array([40, 20, 40, 20], np.float32)
        stored = {"xyxy": boxes, "xywh": np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1),
                  "cxcywh": np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1)}
        for form, values in stored.items():
            for dtype, coordinates in (("float32", "pixels"), ("float64", "unit"), ("int64", "pixels"),
                                       ("float16", "pixels"), ("uint16", "pixels")):
                name = f"{form}-{dtype}"
                given = values / size if coordinates == "unit" else values
                self.pack([given.astype(dtype)], [(20, 40)], name, dtype, form=form, coordinates=coordinates)
                for wanted, want in stored.items():
                    with self.load([Resize((40, 20))], name, boxes={"form": wanted, "coordinates": "unit"}) as loader:
                        found = next(iter(loader))["boxes"][0]
                        np.testing.assert_allclose(found, want / size, atol=1e-6)
                    with self.load([Resize((40, 20))], name, boxes={"form": wanted}) as loader:
                        found = next(iter(loader))["boxes"][0]
                        np.testing.assert_allclose(found, want * np.array([0.5, 2, 0.5, 2], np.float32), rtol=1e-6)

    def test_boxes_outside_or_below_the_minima_are_dropped(self):
        boxes = np.array([[0, 0, 8, 8], [-5, 0, 5, 8], [-10, -10, 0, 5], [2, 2, 3, 30], [4, 4, 4, 9]], np.float32)
        self.pack([boxes], [(20, 30)])
        for keywords, left in (({}, [0, 1, 3]), ({"min_side": 2}, [0, 1]), ({"min_area": 20}, [0, 1]),
                               ({"min_area": 41}, [0]), ({"min_visible": 0.6}, [0, 3]), ({"min_visible": 0.7}, [0])):
            with self.subTest(keywords), self.load([Resize((20, 30))], boxes=keywords) as loader:
                for batch in loader:
                    self.assertEqual(batch["labels"][0].tolist(), left)
                self.assertEqual(loader.stats().n_dropped_boxes, 5 - len(left))
        with self.load([Resize((20, 30))], boxes={"clip": False}) as loader:
            np.testing.assert_array_equal(next(iter(loader))["boxes"][0], boxes[[0, 1, 3]])

    def test_boxes_turn_with_their_image(self):
        image = optional("PIL.Image")
        with penstock.Writer(self.path(), {"image": "image", "boxes": Boxes(form="xywh")}) as writer:
            for orientation in range(1, 9):
                exif, file = image.Exif(), io.BytesIO()
                exif[0x0112] = orientation
                image.new("RGB", (26, 15)).save(file, "JPEG", exif=exif)
                writer.add(image=file.getvalue(), boxes=[[2, 3, 2, 2]])
        outputs = {"x": penstock.image("image", [CenterCrop((26, 26))], exif_orientation=True),
                   "boxes": penstock.boxes("boxes")}
        with penstock.Loader(self.path(), batch_size=1, framework="numpy", outputs=outputs, shuffle=False) as loader:
            for orientation, batch in enumerate(loader, 1):
                padding = np.array([0, 5] * 2 if orientation < 5 else [5, 0] * 2)
                np.testing.assert_array_equal(batch["boxes"][0][0], self.turned(orientation) + padding, str(orientation))

    def turned(self, orientation):
        """Return the box [2, 3, 4, 5] of 26 x 15 pixels, found in the pixels that Pillow turns."""
        image, ops = optional("PIL.Image"), optional("PIL.ImageOps")
        mask = np.zeros((15, 26), np.uint8)
        mask[3:5, 2:4] = 1
        exif = image.Exif()
        exif[0x0112] = orientation
        made = image.fromarray(mask)
        made.info["exif"] = exif.tobytes()
        y, x = np.nonzero(np.asarray(ops.exif_transpose(made)))
        return np.array([x.min(), y.min(), x.max() + 1, y.max() + 1], np.float32)

    WRONG = (("xyxy", [1, 2, np.nan, 4], "box 1: right is nan; must be finite"),
             ("xyxy", [1, np.inf, 3, 4], "box 1: top is inf; must be finite"),
             ("xyxy", [5, 2, 3, 4], "box 1: right is 3; must be at least left, 5"),
             ("xyxy", [1, 7, 3, 4], "box 1: bottom is 4; must be at least top, 7"),
             ("xywh", [1, 7, -3, 4], "box 1: width is -3; must be at least 0"),
             ("cxcywh", [1, -np.inf, 3, 4], "box 1: y is -inf; must be finite"))

    def test_a_writer_refuses_wrong_boxes(self):
        for form, box, words in self.WRONG:
            kind = Boxes("float64" if form == "xyxy" else "float16", form=form)
            with self.subTest(words), penstock.Writer(self.path(words), {"image": "image", "boxes": kind}) as writer:
                writer.add(image=np.zeros((9, 9, 3), np.uint8), boxes=[[1, 2, 30, 40]])
                found = self.assert_says(["field boxes: " + words], writer.add, image=np.zeros((9, 9, 3), np.uint8),
                                         boxes=[[1, 1, 5, 5], box])
                self.assertIsInstance(found, ValueError)
                writer.add(image=np.zeros((9, 9, 3), np.uint8), boxes=[[1, 1, 1, 1], [-9, -9, 99, 99]])
            self.assertEqual(len(penstock.Dataset(self.path(words))), 2)

    def test_wrong_boxes_are_errors_of_their_sample(self):
        """In data sets of earlier writers."""
        right = np.array([[1, 1, 5, 5], [1.25, 7.5, 300, 400], [0, 0, 1, 17]], np.float32)
        for form, box, words in self.WRONG:
            name = words.replace(" ", "-")
            self.pack([[[1, 1, 5, 5]], right], [(20, 20), (20, 20)], name, form=form)
            forge.change(self.path(name), right.tobytes(), np.array([right[0], box, right[2]], np.float32).tobytes())
            with self.load([Resize((8, 8))], name, shuffle=False) as loader:
                found = self.assert_says([words, "boxes"], list, loader)
                self.assertEqual((type(found), found.sample_id), (penstock.CorruptRecordError, 1))

    def test_settings_are_checked(self):
        self.pack([[[1, 1, 5, 5]]], [(20, 20)])
        x, boxes = penstock.image("image", [Resize((8, 8))]), penstock.boxes("boxes")
        for words, outputs in (
                ("there is no image output of field 'image' to follow", {"boxes": boxes}),
                ("there is no output of boxes; add one of field 'boxes'", {"x": x, "labels": penstock.per_box("labels")}),
                ("there are 2 outputs of boxes", {"x": x, "a": boxes, "b": boxes, "labels": penstock.per_box("labels")}),
                ("value is 'x'; must be the name of an output of boxes",
                 {"x": x, "a": boxes, "labels": penstock.per_box("labels", "x")}),
                ("field 'boxes' has boxes", {"x": x, "a": boxes, "labels": penstock.per_box("boxes")}),
                ("must be penstock.ragged('labels')", {"x": x, "a": penstock.boxes("labels")}),
                ("needs boxes", {"x": penstock.image("image", [RandomIoUCrop(), Resize((8, 8))])}),
                ("do not fix the size", {"x": penstock.image("image", [RandomIoUCrop()]), "boxes": boxes})):
            with self.subTest(words):
                self.assert_says(words, penstock.Loader, self.path(), batch_size=1, outputs=outputs)
        for words, keywords in (("boxes.form: value is 'yxyx'; must be one of xyxy, xywh, cxcywh", {"form": "yxyx"}),
                                ("must be one of xyxy, xywh, cxcywh (write form='xywh')", {"form": "coco"}),
                                ("boxes.min_visible: value is 2; must be a number from 0 to 1", {"min_visible": 2}),
                                ("boxes.clip: value is 3", {"clip": 3}), ("write form", {"format": "xyxy"}),
                                ("boxes.follows: value is ''", {"follows": ""})):
            self.assert_says(words, penstock.boxes, "boxes", **keywords)
        self.assert_says("(of boxes: write form='cxcywh', coordinates='unit')", Boxes, "yolo")
        self.assert_says("(write form='xyxy')", Boxes, form="pascal_voc")
        self.assertEqual(repr(penstock.boxes("b", min_side=2, clip=False)),
                         "boxes('b', form='xyxy', coordinates='pixels', clip=False, min_side=2)")


class Where(Boxed):
    """Boxes that a condition on another field chooses, and what goes with them."""

    CROWD = [0, 1, 0, 3, 1]

    def pack_objects(self, **columns):
        made = {"image": "image", "boxes": Boxes(rows="objects"), "labels": Field("int64", (None,), rows="objects"),
                "points": penstock.Keypoints(1, rows="objects"), "lengths": Field("uint32", (None,), rows="objects", splits="corners"),
                "corners": penstock.Polygons(rows="corners"), "weights": Field("float32", (None,)), "pairs": Field("int64", (None, 2)),
                "crowd": Field("uint8", (None,), "zstd", rows="objects"), "other": Field("int64", (None,), rows="others")}
        n = len(self.CROWD)
        corner = np.stack([np.arange(n) * 4, np.zeros(n)], 1)
        record = {"image": np.zeros((20, 30, 3), np.uint8), "boxes": np.concatenate([corner, corner + 4], 1), "labels": np.arange(n),
                  "points": np.concatenate([corner + 1, np.full((n, 1), 2)], 1)[:, None], "lengths": np.arange(n),
                  "corners": np.repeat(corner, np.arange(n), 0), "weights": np.array([0.5, -1, np.nan, 2, 2]),
                  "pairs": np.zeros((n, 2), np.int64), "crowd": self.CROWD, "other": [1, 2]}
        with penstock.Writer(self.path(), made) as writer:
            writer.add(**record)
            writer.add(**{name: value if name == "image" else value[:0] for name, value in record.items()})
        return record

    def outputs(self, where, ops=(Resize((20, 30)),)):
        return {"labels": penstock.per_box("labels"), "x": penstock.image("image", list(ops)), "boxes": penstock.boxes("boxes", where=where),
                "points": penstock.keypoints("points"), "corners": penstock.polygons("corners"), "lengths": penstock.per_box("lengths")}

    def test_boxes_and_what_follows_them_are_chosen(self):
        record = self.pack_objects()
        for where, left in ((None, range(5)), ("crowd == 0", [0, 2]), ("crowd==0", [0, 2]), (" crowd  !=  1 ", [0, 2, 3]),
                            ("crowd < 1", [0, 2]), ("crowd <= 1", [0, 1, 2, 4]), ("crowd > 1", [3]), ("crowd >= 1", [1, 3, 4]),
                            ("crowd > -1", range(5)), ("crowd == 300", []), ("weights >= 1", [3, 4]), ("weights != 2", [0, 1, 2]),
                            ("weights < 2", [0, 1]), ("labels > +2", [3, 4])):
            left = list(left)
            with self.subTest(where), penstock.Loader(self.path(), batch_size=2, framework="numpy", shuffle=False,
                                                      outputs=self.outputs(where)) as loader:
                batch = next(iter(loader))
                self.assertEqual(batch["labels"][0].tolist(), left)
                np.testing.assert_array_equal(batch["boxes"][0], record["boxes"][left])
                np.testing.assert_array_equal(batch["points"][0], record["points"][left])
                self.assertEqual(batch["lengths"][0].tolist(), left)
                np.testing.assert_array_equal(batch["corners"][0], np.repeat(record["boxes"][left, :2], left, 0))
                self.assertEqual([len(batch[name][1]) for name in ("boxes", "labels", "points", "corners")], [0] * 4)
                self.assertEqual(loader.stats().n_dropped_boxes, 0)

    def test_a_crop_looks_at_those_that_are_left_and_the_dropped_are_counted(self):
        self.pack_objects()
        ops = [penstock.ops.RandomIoUCrop(sampler_options=[0.3]), Resize((20, 30))]
        n_dropped = n_seen = 0
        with penstock.Loader(self.path(), batch_size=2, framework="numpy", outputs=self.outputs("labels == 3", ops)) as loader:
            for epoch in range(20):
                for batch in loader:
                    labels = [label for row in batch["labels"] for label in row.tolist()]
                    self.assertIn(labels, ([3], []))
                    n_seen += len(labels)
                    n_dropped += 1 - len(labels)
            self.assertEqual(loader.stats().n_dropped_boxes, n_dropped)
        self.assertGreater(n_seen, 0)

    def test_a_mosaic_has_those_that_are_left(self):
        self.pack_objects()
        outputs = {name: output for name, output in self.outputs("crowd == 0").items() if name in ("x", "boxes", "labels")}
        outputs["labels"] = penstock.per_box("labels", add=10)
        with penstock.Loader(self.path(), batch_size=2, framework="numpy", outputs=outputs,
                             mix=penstock.Mosaic("x")) as loader:
            seen = set()
            for _ in range(5):
                for batch in loader:
                    for boxes, labels in zip(batch["boxes"], batch["labels"]):
                        self.assertEqual(len(boxes), len(labels))
                        seen |= set(labels.tolist())
            self.assertEqual(seen, {10, 12})

    def test_an_invalid_condition_is_refused(self):
        self.pack_objects()
        form = "must be a field, one of == != < <= > >=, and a whole number, as 'iscrowd == 0'"
        for where, words in (("crowd", form), ("crowd = 0", form), ("== 0", form), ("crowd == ", form), ("crowd == 1.5", form),
                             ("crowd == x", form), ("crowd == 0 and labels == 1", form), ("crowd == 99999999999999999999", form),
                             ("", form), ("crowd == 1 2", form), ("crowd =! 1", form), ("x" * 300 + " == 1", form),
                             ("absent == 0", "'absent' must be a field with a number for each box: labels, weights, crowd"),
                             ("pairs == 0", "'pairs' must be a field with a number for each box"),
                             ("other == 0", "'other' must be"), ("image == 0", "'image' must be"), ("lengths == 0", "'lengths' must be")):
            with self.subTest(where):
                self.assert_says(["where: value is '" + where[:20], words], penstock.Loader, self.path(), batch_size=1,
                                 outputs=self.outputs(where))
        for wrong in (7, b"crowd == 0", "crowd\0 == 0"):
            self.assert_says("boxes.where: value is", penstock.boxes, "boxes", where=wrong)
        self.assertIn("where='crowd == 0'", repr(penstock.boxes("boxes", where="crowd == 0")))

    def test_a_field_of_another_length_is_an_error_of_its_sample(self):
        with penstock.Writer(self.path(), {"image": "image", "boxes": Boxes(), "crowd": Field("uint8", (None,))}) as writer:
            writer.add(image=np.zeros((9, 9, 3), np.uint8), boxes=[[1, 1, 5, 5]], crowd=[0, 1])
        outputs = {"x": penstock.image("image", [Resize((8, 8))]), "boxes": penstock.boxes("boxes", where="crowd == 0")}
        with penstock.Loader(self.path(), batch_size=1, outputs=outputs, framework="numpy") as loader:
            self.assert_says("has 2 items for the 1 boxes of output 'boxes'", next, iter(loader))


class OddBoxes(Boxed):
    """Boxes whose numbers are not what their field says."""

    def warned(self, words, make):
        """Make a data set, and return the warnings that have these words."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            make()
        return [one for one in said if words in str(one.message)]

    def test_fractions_that_are_pixels_are_counted_with_a_warning(self):
        for boxes, n in (([[0, 0, 1, 1], [-0.1, 0, 1.2, 2]], 0), ([[4, 4, 9, 9], [0, 0, 0.5, 1]], 1), ([[4, 4, 9, 9], [0, 0, 30, 30]], 2)):
            self.check("unit", boxes, n, "a number above 2; coordinates='unit' are", "another")

    def test_pixels_that_are_fractions_are_counted_with_a_warning(self):
        for boxes, n in (([[0, 0, 1, 1], [0, 0, 0, 0], [4.5, 4, 9, 9], [0.5, 0.5, 1.5, 2]], 0), ([[0.1, 0.1, 0.5, 0.5], [4, 4, 9, 9]], 1),
                         ([[0.1, 0.1, 0.5, 0.5], [0, 0, 1, 0.25]], 2)):
            for form in ("xyxy", "xywh", "cxcywh"):
                self.check("pixels", boxes, n, "only numbers from 0 to 1, not all whole; coordinates='pixels' count", form, form)

    def check(self, coordinates, boxes, n, words, name, form="xyxy"):
        with self.subTest(boxes=boxes, coordinates=coordinates, form=form):
            said = self.warned("field boxes", lambda: self.pack([boxes], [(20, 20)], f"{n}-{coordinates}-{name}", form=form, coordinates=coordinates))
            wanted = [f"{n} box{'es have' if n > 1 else ' has'} {words}"] * (n > 0)
            self.assertEqual([one for one in said if not any(want in str(one.message) for want in wanted)], [])
            self.assertEqual(len(said), len(wanted))

    def test_the_warning_is_one_and_of_the_line_that_packs(self):
        samples = [{"jpg": np.zeros((20, 20, 3), "uint8"), "boxes": np.array([[0.1, 0.1, 0.5, 0.5]], "float32")}] * 70
        schema = {"jpg": "image", "boxes": penstock.Boxes()}

        def write():
            with penstock.Writer(self.path("w"), schema) as writer:
                for sample in samples:
                    writer.add(sample)

        def commit():
            writer = penstock.Writer(self.path("c"), schema)
            for sample in samples:
                writer.add(sample)
            writer.commit()

        for make in (lambda: penstock.pack(samples, self.path("0"), schema=schema, num_workers=0, progress=False),
                     lambda: penstock.pack(samples, self.path("2"), schema=schema, num_workers=2, progress=False), write, commit):
            said = self.warned("only numbers from 0 to 1", make)
            self.assertEqual([os.path.basename(one.filename) for one in said], ["test_boxes.py"])
            self.assertIn("field boxes: 70 boxes have", str(said[0].message))


class Added(Boxed):
    def test_a_number_is_added_to_the_items_that_are_left(self):
        values = {"int64": [-5, 2**40], "int32": [-5, 7], "uint8": [0, 200], "int8": [-128, 100], "uint32": [0, 2**31]}
        schema = {"image": "image", "boxes": Boxes(rows="objects"), **{name: Field(name, (None,), rows="objects") for name in values},
                  "pairs": Field("int16", (None, 2), rows="objects")}
        with penstock.Writer(self.path(), schema) as writer:
            writer.add(image=np.zeros((9, 9, 3), np.uint8), boxes=[[1, 1, 5, 5], [20, 20, 30, 30]], pairs=[[1, 2], [3, 4]], **values)
        for add in (0, 1, -3):
            outputs = {"x": penstock.image("image", [Resize((9, 9))]), "boxes": penstock.boxes("boxes"),
                       "pairs": penstock.per_box("pairs", add=add),
                       **{name: penstock.per_box(name, add=add) for name in values if add >= 0 or name in ("int64", "int32")}}
            with penstock.Loader(self.path(), batch_size=1, outputs=outputs, framework="numpy") as loader:
                batch = next(iter(loader))
                for name in set(values) & set(outputs):
                    self.assertEqual((batch[name][0].tolist(), str(batch[name][0].dtype)), ([values[name][0] + add], name))
                self.assertEqual(batch["pairs"][0].tolist(), [[1 + add, 2 + add]])

    def test_sums_that_do_not_fit_are_errors_of_their_sample(self):
        with penstock.Writer(self.path(), {"image": "image", "boxes": Boxes(), "a": Field("uint8", (None,)), "b": Field("int64", (None,)),
                                           "real": Field("float32", (None,)), "huge": Field("uint64", (None,))}) as writer:
            writer.add(image=np.zeros((9, 9, 3), np.uint8), boxes=[[1, 1, 5, 5]], a=[255], b=[2**63 - 1], real=[1], huge=[1])
        def outputs(name, add):
            return {"x": penstock.image("image", [Resize((9, 9))]), "boxes": penstock.boxes("boxes"), name: penstock.per_box(name, add=add)}
        for name, add in (("a", 1), ("a", -256), ("b", 1)):
            with penstock.Loader(self.path(), batch_size=1, outputs=outputs(name, add), framework="numpy") as loader:
                self.assert_says([f"has a number to which {name} cannot add {add}"], next, iter(loader))
        for name in ("real", "huge"):
            self.assert_says("add: value is 1; must be 0 for a field of dtype", penstock.Loader, self.path(), batch_size=1,
                             outputs=outputs(name, 1))
        for wrong in (1.5, "1", None):
            self.assert_says("per_box.add: value is", penstock.per_box, "a", add=wrong)
        self.assert_says("from -2**63", penstock.per_box, "a", add=2**63)


class BareNames(Case):
    def test_names_of_fields_that_would_not_follow_are_refused(self):
        with penstock.Writer(self.path(), {
                "image": "image", "other": "image", "boxes": Boxes(rows="objects", of="image"),
                "mask": Field("mask", of="image"), "points": penstock.Keypoints(2, rows="objects", of="image"),
                "runs": penstock.Rle(of="other"), "labels": Field("int64", (None,), rows="objects"),
                "texts": Field("utf8_list", rows="objects"), "weights": Field("float32", (None,)), "i": "int64"}) as writer:
            writer.add(image=np.zeros((9, 9, 3), np.uint8), other=np.zeros((9, 9, 3), np.uint8), boxes=[[0, 0, 4, 4]],
                       mask=np.zeros((9, 9), np.uint8), points=np.ones((1, 2, 3)), runs=[81], labels=[3], texts=["a"],
                       weights=[1.0], i=4)
        x, boxes = penstock.image("image", [Resize((8, 8))]), penstock.boxes("boxes")
        for words, outputs in (
                ("outputs['b']: value is 'boxes', a field of kind boxes of image 'image', whose operations would not move "
                 "its values; must be penstock.boxes('boxes') to follow it, or penstock.ragged('boxes') for the stored",
                 {"x": x, "b": "boxes"}),
                ("must be penstock.mask('mask') to follow it", [x, "mask"]),
                ("must be penstock.keypoints('points') to follow it", {"points": "points", "x": x}),
                ("must be penstock.ragged('runs')", {"x": penstock.image("other", [Resize((8, 8))]), "runs": "runs"}),
                ("outputs['labels']: value is 'labels', which has items for the boxes of output 'b', also for those that "
                 "are dropped; must be penstock.per_box('labels') without", {"x": x, "b": boxes, "labels": "labels"}),
                ("must be penstock.ragged('texts')", {"x": x, "b": boxes, "t": "texts"})):
            with self.subTest(words):
                self.assert_says(words, penstock.Loader, self.path(), batch_size=1, outputs=outputs)
        for outputs in (["boxes", "mask", "points", "labels"], [x, "runs", "i", "labels", "weights"],
                        {"x": x, "b": penstock.ragged("boxes")}, {"x": x, "b": boxes, "i": "i", "weights": "weights"}):
            with penstock.Loader(self.path(), batch_size=1, outputs=outputs, last_batch="short", framework="numpy") as loader:
                self.assertEqual(len(list(loader)), 1)


class IoUCrops(Boxed):
    def test_a_crop_keeps_the_boxes_whose_centres_it_has(self):
        rng = np.random.default_rng(5)
        sizes = [tuple(int(v) for v in rng.integers(20, 60, 2)) for _ in range(200)]
        boxes = [any_boxes(rng, int(rng.integers(0, 5)), size) for size in sizes]
        self.pack(boxes, sizes)
        functional = optional("torchvision.transforms.v2.functional")
        box_iou = optional("torchvision.ops").box_iou
        torch, tv_tensors = optional("torch"), optional("torchvision.tv_tensors")
        n_cropped = 0
        with self.load([RandomIoUCrop(sampler_options=[0.3]), RandomFlip(0.5), Resize((32, 48))], batch_size=1,
                       observe=penstock.Observe(report_crops=True), seed=2, shuffle=False) as loader:
            for i, batch in enumerate(loader):
                (height, width), crop = sizes[i], batch.crops["x"][0]
                given = boxes[i].clip(0, [width, height, width, height])
                area = (given[:, 2] > given[:, 0]) & (given[:, 3] > given[:, 1])
                found = tv_tensors.BoundingBoxes(torch.tensor(given), format="XYXY", canvas_size=sizes[i])
                keep = area
                if (crop.height, crop.width) != (height, width):
                    n_cropped += 1
                    centre = (given[:, :2] + given[:, 2:]) / 2 - [crop.left, crop.top]
                    keep = area & (centre > 0).all(1) & (centre < [crop.width, crop.height]).all(1)
                    ious = box_iou(torch.tensor(given[keep]), torch.tensor(
                        [[crop.left, crop.top, crop.left + crop.width, crop.top + crop.height]], dtype=torch.float32))
                    self.assertTrue(0.3 - 1e-6 <= float(ious.max()))
                    self.assertTrue(0.5 <= crop.width / crop.height <= 2)
                    self.assertTrue(crop.width >= int(0.3 * width) and crop.height >= int(0.3 * height))
                    found = functional.crop(found, crop.top, crop.left, crop.height, crop.width)
                found = functional.horizontal_flip(found) if crop.flip else found
                found = functional.resize(found, [32, 48])
                self.assertEqual(batch["labels"][0].tolist(), np.flatnonzero(keep).tolist())
                np.testing.assert_allclose(batch["boxes"][0], found.numpy()[keep], rtol=0, atol=TOLERANCE)
        self.assertGreater(n_cropped, 100)

    def test_options_and_places_are_drawn_evenly(self):
        """A box that fills the image: every crop has its centre or not. Of options 0 and 1 each comes half of the
        time: chi-square with 1 degree, error probability 1e-4."""
        n = 2000
        self.pack([np.array([[0, 0, 40, 40]], np.float32)] * n, [(40, 40)] * n)
        with self.load([RandomIoUCrop(sampler_options=[0, 1]), Resize((8, 8))], batch_size=1,
                       observe=penstock.Observe(report_crops=True),
                       seed=9) as loader:
            crops = [batch.crops["x"][0] for batch in loader]
        whole = sum((c.height, c.width) == (40, 40) for c in crops)
        self.assertLess((whole - n / 2) ** 2 / (n / 4), 15.2)

    def test_arguments(self):
        for words, keywords in (("min_scale: value is 0.0", {"min_scale": 0}), ("max_scale: value is 2", {"max_scale": 2}),
                                ("trials: value is 0", {"trials": 0}), ("sampler_options", {"sampler_options": []}),
                                ("sampler_options", {"sampler_options": [0.1] * 8}),
                                ("min_aspect_ratio: value is 3.0", {"min_aspect_ratio": 3})):
            self.assert_says("RandomIoUCrop." + words, RandomIoUCrop, **keywords)


if __name__ == "__main__":
    unittest.main()
