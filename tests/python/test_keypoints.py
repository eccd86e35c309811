# SPDX-License-Identifier: Apache-2.0
"""Keypoints that follow an image: a loop of NumPy, point by point, makes the same of the operations that were drawn
for the image; and torchvision.transforms.v2 does, within TOLERANCE."""
import io
import math
import os
import unittest

import forge
import penstock
import sets
from penstock import Boxes, Field, Keypoints
from penstock.ops import (CenterCrop, ColorJitter, RandomAffine, RandomCrop, RandomFlip, RandomIoUCrop, RandomPerspective,
                          RandomResizedCrop, RandomRotation, RandomVerticalFlip, RandomZoomOut, Resize)

from data_fixture import Case, np, optional

TOLERANCE = 2e-3  # pixels: torchvision computes in float32
PAIRS = [(1, 2), (3, 4)]
N_POINTS = 5


# ---- the oracle ----------------------------------------------------------------------------------------


def _centre_crop(size, wanted):
    (height, width), (had_height, had_width) = wanted, size
    return [-((want - had) // 2) if want > had else round((had - want) / 2)
            for want, had in ((height, had_height), (width, had_width))]


def _resized(size, args):
    if isinstance(args[0], tuple):
        return args[0]
    most = args[2] if len(args) > 2 else None
    short, long = min(size), max(size)
    new_short, new_long = args[0], int(args[0] * long / short)
    if most is not None and new_long > most:
        new_short, new_long = int(most * new_short / new_long), most
    return (new_short, new_long) if size[0] <= size[1] else (new_long, new_short)


def _rotated(size, args):
    """Return the inverse matrix and the size of a rotation about the centre."""
    (height, width), angle = size, math.radians(args[0])
    to = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    centre, new = np.array([width / 2, height / 2]), size
    if args[2]:
        raise NotImplementedError("expand")
    return lambda p: to @ (p - centre) + centre, new


def moved(p, size, op):
    """Return the point to which an operation moves a point, and the size after it."""
    name, args = op.name, op.arguments
    height, width = size
    if name == "resize":
        new = _resized(size, args)
        return p * [new[1] / width, new[0] / height], new
    if name == "resized_crop":
        top, left, crop_height, crop_width, new = args[:5]
        return (p - [left, top]) * [new[1] / crop_width, new[0] / crop_height], tuple(new)
    if name == "crop":
        return p - [args[1], args[0]], tuple(args[2:4])
    if name == "center_crop":
        top, left = _centre_crop(size, args[0])
        return p - [left, top], tuple(args[0])
    if name == "hflip":
        return np.array([width - p[0], p[1]]), size
    if name == "vflip":
        return np.array([p[0], height - p[1]]), size
    if name == "pad":
        left, top, right, bottom = args[0]
        return p + [left, top], (height + top + bottom, width + left + right)
    if name == "rotate":
        move, new = _rotated(size, args)
        return move(p), new
    if name == "transform":
        matrix = np.linalg.inv(np.array([*args[0], *([0, 0] if len(args[0]) == 6 else []), 1]).reshape(3, 3))
        x, y, w = matrix @ [*p, 1]
        return np.array([x, y]) / w if w > 0 else np.array([np.nan, np.nan]), size
    return p, size


def expected(row, size, ops, pairs=(), keep_outside=False, move=moved):
    """Return a row [k, 3] of points of an image of (height, width), moved one by one."""
    out, mirrors = np.zeros((len(row), 3)), sum(op.name in ("hflip", "vflip") for op in ops) % 2
    partner = {**{a: b for a, b in pairs}, **{b: a for a, b in pairs}}
    for j, (x, y, visibility) in enumerate(row):
        p, now = np.array([x, y], np.float64), size
        inside = 0 <= x <= size[1] and 0 <= y <= size[0]
        for op in ops:
            p, now = move(p, now, op)
            inside = inside and 0 <= p[0] <= now[1] and 0 <= p[1] <= now[0]
        if visibility and not np.isnan(p[0]) and (inside or keep_outside):
            out[partner.get(j, j) if mirrors else j] = [*p, visibility]
    return out


def _by_torchvision(p, size, op):
    torch, tv_tensors = optional("torch"), optional("torchvision.tv_tensors")
    functional = optional("torchvision.transforms.v2.functional")
    mode = optional("torchvision.transforms").InterpolationMode.NEAREST
    name, args = op.name, op.arguments
    points = tv_tensors.KeyPoints(torch.tensor(p, dtype=torch.float64).reshape(1, 2), canvas_size=size)
    if name == "resize":
        points = functional.resize(points, list(_resized(size, args)))
    elif name == "resized_crop":
        points = functional.resized_crop(points, *args[:4], list(args[4]))
    elif name == "crop":
        points = functional.crop(points, *args[:4])
    elif name == "hflip":  # it counts from the centres of pixels there, from their edges elsewhere
        points = functional.horizontal_flip(points) + torch.tensor([1.0, 0.0], dtype=torch.float64)
    elif name == "vflip":
        points = functional.vertical_flip(points) + torch.tensor([0.0, 1.0], dtype=torch.float64)
    elif name == "pad":
        points = functional.pad(points, list(args[0]))
    elif name == "rotate":
        points = functional.rotate(points, args[0], mode, expand=args[2])
    elif name == "transform" and len(args[0]) == 8:
        points = functional.perspective(points, None, None, coefficients=list(args[0]))
    else:
        return moved(p, size, op)
    return points.numpy().reshape(2), moved(p, size, op)[1]


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
        lambda: RandomZoomOut(p=0.5),
        lambda: ColorJitter(0.4, 0.4, 0.4, 0.1),
    ][rng.integers(12)]()


def any_list(rng):
    size = tuple(int(v) for v in rng.integers(5, 60, 2))
    return [any_op(rng) for _ in range(rng.integers(5))] + [CenterCrop(size) if rng.integers(2) else Resize(size)]


def any_points(rng, n, size, n_points=N_POINTS):
    """Some are absent, some outside."""
    height, width = size
    return np.stack([rng.uniform(-4, width + 4, (n, n_points)), rng.uniform(-4, height + 4, (n, n_points)),
                     rng.integers(0, 3, (n, n_points))], 2).astype(np.float32)


FAKE = os.environ.get("PENSTOCK_FAKE_LIBRARY", "")
DEVICE = """
import sys
import numpy as np
import penstock
from penstock.ops import Normalize, RandomFlip, RandomRotation, Resize

def batches(device):
    ops = [RandomFlip(), RandomRotation(20), Resize((8, 8)), Normalize()]
    with penstock.Loader(sys.argv[1], batch_size=4, device=device, framework="dlpack", seed=5, outputs={
            "x": penstock.image("image", ops), "points": penstock.keypoints("points", flip_pairs=[(1, 2)])}) as loader:
        for b in loader:
            yield [t.read() for t in (b["x"], b["points"].data, b["points"].offsets)]

host, device = list(batches("cpu")), list(batches("cuda"))
assert len(host) == 5 and host == device
print("same")
"""


class Pointed(Case):
    def pack(self, points, sizes, name="data", boxes=None, dtype="float32", kind=None, **keywords):
        schema = {"image": "image", "points": kind or Keypoints(N_POINTS, dtype, rows="objects", **keywords),
                  "labels": Field("int64", (None,), rows="objects")}
        if boxes is not None:
            schema["boxes"] = Boxes(rows="objects")
        with penstock.Writer(self.path(name), schema) as writer:
            for i, (given, size) in enumerate(zip(points, sizes)):
                more = {} if boxes is None else {"boxes": boxes[i]}
                writer.add(image=np.zeros((*size, 3), np.uint8), points=given, labels=np.arange(len(given)), **more)

    def load(self, ops, name="data", batch_size=1, image=None, more=None, seed=0, **keywords):
        outputs = {"points": penstock.keypoints("points", **keywords), "x": penstock.image("image", ops, **(image or {})),
                   **(more or {})}
        return penstock.Loader(self.path(name), batch_size=batch_size, framework="numpy", outputs=outputs,
                               last_batch="short", shuffle=False, seed=seed)

    def compare(self, seed, n_cases, move):
        rng = np.random.default_rng(seed)
        sizes = [tuple(int(v) for v in rng.integers(10, 60, 2)) for _ in range(6)]
        points = [any_points(rng, i * 2, size) for i, size in enumerate(sizes)]
        self.pack(points, sizes)
        n = {0: 0, 1: 0, 2: 0}
        for case in range(n_cases):
            ops, keep_outside = any_list(rng), bool(rng.integers(2))
            with self.subTest(case, ops=ops), self.load(ops, seed=case, flip_pairs=PAIRS,
                                                        keep_outside=keep_outside) as loader:
                for i, batch in enumerate(loader):
                    drawn = penstock.draw(ops, (*sizes[i], 3), seed=case, sample_id=i)
                    want = np.array([expected(row, sizes[i], drawn, PAIRS, keep_outside, move) for row in points[i]])
                    found = batch["points"][0]
                    self.assertEqual((found.shape, found.dtype), ((len(points[i]), N_POINTS, 3), np.float32))
                    same = found[..., 2] == want.reshape(found.shape)[..., 2]
                    self.assertGreaterEqual(same.sum(), same.size - 1)  # a hair's breadth from the edge
                    np.testing.assert_allclose(found[same], want.reshape(found.shape)[same], rtol=1e-5, atol=TOLERANCE)
                    for visibility in n:
                        n[visibility] += int((found[..., 2] == visibility).sum())
        self.assertGreater(min(n.values()), 200)


class Followers(Pointed):
    def test_points_are_what_a_loop_makes_of_the_drawn_operations(self):
        self.compare(3, 60, moved)

    def test_points_are_what_torchvision_makes_of_the_drawn_operations(self):
        if not hasattr(optional("torchvision.tv_tensors"), "KeyPoints"):
            self.skipTest("torchvision has no KeyPoints")
        self.compare(4, 30, _by_torchvision)

    def test_a_point_moves_with_its_pixel(self):
        """The oracle is the image itself: one bright pixel, its centre the point."""
        rng = np.random.default_rng(6)
        ops = [RandomFlip(), RandomVerticalFlip(), RandomCrop((30, 34), padding=4), CenterCrop((24, 24))]
        places = [tuple(int(v) for v in rng.integers(0, 30, 2)) for _ in range(60)]
        with penstock.Writer(self.path(), {"image": "image", "points": Keypoints(1)}) as writer:
            for y, x in places:
                pixels = np.zeros((30, 30, 3), np.uint8)
                pixels[y, x] = 255
                writer.add(image=pixels, points=[[[x, y, 2]]])
        n = 0
        with self.load(ops, origin="center") as loader:
            for batch in loader:
                y, x = np.nonzero(batch["x"][0][..., 0])
                found = batch["points"][0][0, 0]
                if len(x):
                    self.assertEqual(found.tolist(), [x[0], y[0], 2])
                    n += 1
                else:
                    self.assertEqual(found.tolist(), [0, 0, 0])
        self.assertTrue(10 < n < 60)

    def test_rows_do_not_depend_on_threads(self):
        rng = np.random.default_rng(8)
        sizes = [tuple(int(v) for v in rng.integers(10, 60, 2)) for _ in range(40)]
        self.pack([any_points(rng, i % 7, size) for i, size in enumerate(sizes)], sizes)
        found = []
        for n_threads in (1, 2, 5):
            outputs = {"x": penstock.image("image", [RandomFlip(), RandomRotation(20), Resize((16, 16))]),
                       "points": penstock.keypoints("points", flip_pairs=PAIRS)}
            with penstock.Loader(self.path(), batch_size=7, framework="numpy", outputs=outputs, seed=3,
                                 n_threads=n_threads) as loader:
                found.append([(batch["points"].data.tobytes(), batch["points"].offsets.tobytes()) for batch in loader])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    @unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
    def test_batches_on_a_device_are_those_of_the_host(self):
        rng = np.random.default_rng(1)
        self.pack([any_points(rng, i % 4, (20, 30)) for i in range(20)], [(20, 30)] * 20)
        done = sets.python(DEVICE, self.path(), PENSTOCK_LIBRARY=FAKE, PENSTOCK_FAKE_CUDA="devices=1,delay_us=200")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "same\n", ""), done.stdout)

    def test_pairs_change_places_where_the_image_is_mirrored(self):
        row = np.array([[[1, 2, 2], [3, 4, 1], [5, 6, 2], [7, 8, 1], [9, 10, 0]]], np.float32)
        self.pack([row], [(20, 30)])
        flip, turn = np.array([30, 0]), np.array([30, 20])
        for ops, order, place in (
                ([RandomFlip(1), Resize((20, 30))], [0, 2, 1, 4, 3], lambda p: p * [-1, 1] + flip),
                ([RandomVerticalFlip(1), Resize((20, 30))], [0, 2, 1, 4, 3], lambda p: p * [1, -1] + [0, 20]),
                ([RandomFlip(1), RandomVerticalFlip(1), Resize((20, 30))], [0, 1, 2, 3, 4], lambda p: turn - p),
                ([RandomRotation((180, 180)), Resize((20, 30))], [0, 1, 2, 3, 4], lambda p: turn - p)):
            with self.subTest(ops), self.load(ops, flip_pairs=PAIRS) as loader:
                found = next(iter(loader))["points"][0][0]
                want = np.concatenate([place(row[0, :, :2]), row[0, :, 2:]], 1)[order]
                want[want[:, 2] == 0] = 0
                np.testing.assert_allclose(found, want, atol=1e-5)

    def test_fields_of_any_dtype_form_and_coordinates(self):
        row = np.array([[[4, 8, 1], [24, 18, 2]]], np.float64)  # in an image of 20 x 40
        for dtype, coordinates in (("float32", "pixels"), ("float64", "unit"), ("int16", "pixels"), ("uint64", "pixels"),
                                   ("float16", "pixels")):
            for visibility in (True, False):
                name = f"{dtype}-{visibility}"
                given = row / [40, 20, 1] if coordinates == "unit" else row
                kind = Keypoints(2, dtype, coordinates=coordinates, visibility=visibility, codec="zstd")
                with penstock.Writer(self.path(name), {"image": "image", "points": kind}) as writer:
                    writer.add(image=np.zeros((20, 40, 3), np.uint8), points=given[..., :3 if visibility else 2].astype(dtype))
                want = row if visibility else row * [1, 1, 0] + [0, 0, 2]
                with self.load([Resize((40, 20))], name) as loader:
                    np.testing.assert_allclose(next(iter(loader))["points"][0], want * [0.5, 2, 1], rtol=1e-6)
                with self.load([Resize((40, 20))], name, coordinates="unit") as loader:
                    np.testing.assert_allclose(next(iter(loader))["points"][0], want / [40, 20, 1], rtol=1e-6)

    def test_points_turn_with_their_image(self):
        image, image_ops = optional("PIL.Image"), optional("PIL.ImageOps")
        with penstock.Writer(self.path(), {"image": "image", "points": Keypoints(1)}) as writer:
            for orientation in range(1, 9):
                exif, file = image.Exif(), io.BytesIO()
                exif[0x0112] = orientation
                image.new("RGB", (26, 15)).save(file, "JPEG", exif=exif)
                writer.add(image=file.getvalue(), points=[[[2, 3, 2]]])
        with self.load([CenterCrop((26, 26))], origin="center", image={"exif_orientation": True}) as loader:
            for orientation, batch in enumerate(loader, 1):
                pixels, exif = np.zeros((15, 26), np.uint8), image.Exif()
                pixels[3, 2] = 1
                exif[0x0112] = orientation
                made = image.fromarray(pixels)
                made.info["exif"] = exif.tobytes()
                y, x = np.nonzero(np.asarray(image_ops.exif_transpose(made)))
                padding = [0, 5] if orientation < 5 else [5, 0]
                self.assertEqual(batch["points"][0][0, 0].tolist(), [x[0] + padding[0], y[0] + padding[1], 2], orientation)


class WithBoxes(Pointed):
    def test_rows_are_dropped_with_their_boxes(self):
        rng = np.random.default_rng(5)
        sizes = [(40, 50)] * 40
        points = [any_points(rng, int(rng.integers(0, 5)), size) for size in sizes]
        corners = [rng.uniform(0, 30, (len(row), 2)) for row in points]
        self.pack(points, sizes, boxes=[np.concatenate([c, c + 8], 1) for c in corners])
        ops = [RandomIoUCrop(), RandomFlip(), Resize((32, 32))]
        more = {"boxes": penstock.boxes("boxes", min_visible=0.5), "labels": penstock.per_box("labels")}
        for boxes in (None, "boxes"):
            n_left = n_all = 0
            with self.load(ops, more=more, boxes=boxes) as loader, self.load(ops, more=more, boxes=False) as whole:
                for batch, every in zip(loader, whole):
                    left = batch["labels"][0]
                    self.assertEqual(len(batch["points"][0]), len(batch["boxes"][0]))
                    np.testing.assert_array_equal(batch["points"][0], every["points"][0][left])
                    n_left, n_all = n_left + len(left), n_all + len(every["points"][0])
            self.assertEqual(n_all, sum(map(len, points)))
            self.assertTrue(0 < n_left < n_all - 10)

    def test_rows_of_another_axis_stay(self):
        with penstock.Writer(self.path(), {"image": "image", "boxes": Boxes(rows="objects"),
                                           "points": Keypoints(1, rows="people")}) as writer:
            writer.add(image=np.zeros((20, 20, 3), np.uint8), boxes=[[0, 0, 9, 9], [30, 30, 40, 40]], points=[[[4, 5, 2]]])
        with self.load([Resize((20, 20))], more={"boxes": penstock.boxes("boxes")}) as loader:
            batch = next(iter(loader))
            self.assertEqual((len(batch["boxes"][0]), batch["points"][0].tolist()), (1, [[[4, 5, 2]]]))
        with self.load([Resize((20, 20))], more={"boxes": penstock.boxes("boxes")}, boxes="boxes") as loader:
            self.assert_says("has 1 items for the 2 boxes of output 'boxes'", list, loader)


class Refused(Pointed):
    def test_a_writer_refuses_wrong_points(self):
        rows = np.ones((2, N_POINTS, 3))
        for point, words in (([np.nan, 1, 2], "point 3 of row 1: x is nan; must be finite, or its visibility 0"),
                             ([1, -np.inf, 1], "point 3 of row 1: y is -inf; must be finite, or its visibility 0"),
                             ([1, 1, np.nan], "point 3 of row 1: visibility is nan; must be 0 (absent) or more"),
                             ([1, 1, -1], "point 3 of row 1: visibility is -1; must be 0 (absent) or more")):
            with self.subTest(words), penstock.Writer(self.path(words), {"image": "image", "p": Keypoints(N_POINTS)}) as writer:
                wrong = rows.copy()
                wrong[1, 3] = point
                self.assert_says("field p: " + words, writer.add, image=np.zeros((9, 9, 3), np.uint8), p=wrong)
                wrong[1, 3] = np.nan, np.nan, 0
                writer.add(image=np.zeros((9, 9, 3), np.uint8), p=wrong)
            with penstock.Loader(self.path(words), batch_size=1, framework="numpy", outputs={
                    "x": penstock.image("image", [Resize((8, 8))]), "p": penstock.keypoints("p", keep_outside=True)}) as loader:
                self.assertEqual(next(iter(loader))["p"][0][1, 3].tolist(), [0, 0, 0])
        with penstock.Writer(self.path(), {"image": "image", "p": Keypoints(1, visibility=False)}) as writer:
            self.assert_says("point 0 of row 0: y is nan; must be finite", writer.add, image=np.zeros((9, 9, 3), np.uint8),
                             p=[[[1, np.nan]]])
            writer.add(image=np.zeros((9, 9, 3), np.uint8), p=[[[-1, 99]]])

    def test_wrong_points_are_errors_of_their_sample(self):
        """In data sets of earlier writers."""
        right = np.arange(2.0, 2 + 3 * N_POINTS, dtype=np.float32).reshape(1, N_POINTS, 3)
        self.pack([right * 0, right], [(20, 20), (20, 20)])
        wrong = right.copy()
        wrong[0, 2, 1] = np.inf
        forge.change(self.path(), right.tobytes(), wrong.tobytes())
        with self.load([Resize((8, 8))]) as loader:
            found = self.assert_says("point 2 of row 0: y is inf; must be finite, or its visibility 0", list, loader)
            self.assertEqual((type(found), found.sample_id), (penstock.CorruptRecordError, 1))

    def test_settings_are_checked(self):
        self.pack([np.ones((1, N_POINTS, 3))], [(20, 20)], boxes=[[[0, 0, 5, 5]]])
        self.pack([np.ones((1, N_POINTS, 3)) / 2], [(20, 20)], "unit", coordinates="unit")
        x, points, boxes = penstock.image("image", [Resize((8, 8))]), penstock.keypoints("points"), penstock.boxes("boxes")
        for words, outputs in (
                ("there is no image output of field 'image' to follow", {"points": points}),
                ("there are 2 image outputs of field 'image'; must be the name of one: x, y", {"x": x, "y": x, "p": points}),
                ("must be the name of an image output: x", {"x": x, "p": penstock.keypoints("points", follows="y")}),
                ("there are 2 outputs of boxes that follow 'x'", {"x": x, "a": boxes, "b": boxes, "p": points}),
                ("value is 'c'; must be the name of an output of boxes",
                 {"x": x, "a": boxes, "p": penstock.keypoints("points", boxes="c")}),
                ("follows image output 'y'; must follow 'x'",
                 {"x": x, "y": x, "a": penstock.boxes("boxes", follows="y"),
                  "p": penstock.keypoints("points", boxes="a", follows="x")}),
                ("field 'points' has keypoints, which follow", {"x": x, "a": boxes, "p": penstock.per_box("points")}),
                ("must be penstock.ragged('labels')", {"x": x, "a": penstock.keypoints("labels")}),
                ("flip_pairs[1]: point 5 does not exist; must be from 0 to 4",
                 {"x": x, "p": penstock.keypoints("points", flip_pairs=[(0, 1), (2, 5)])}),
                ("flip_pairs[1]: point 1 is named twice",
                 {"x": x, "p": penstock.keypoints("points", flip_pairs=[(0, 1), (1, 2)])}),
                ("flip_pairs[0]: point 3 is named twice", {"x": x, "p": penstock.keypoints("points", flip_pairs=[(3, 3)])}),
                ("must be 0 for coordinates unit",
                 {"x": x, "p": penstock.keypoints("points", origin="center", coordinates="unit")})):
            with self.subTest(words):
                self.assert_says(words, penstock.Loader, self.path(), batch_size=1, outputs=outputs)
        self.assert_says("must be 0 for coordinates unit", self.load, [Resize((8, 8))], "unit", origin="center")
        for words, keywords in (("keypoints.origin: value is 'centre'; must be corner or center", {"origin": "centre"}),
                                ("keypoints.keep_outside: value is 3", {"keep_outside": 3}),
                                ("keypoints.coordinates: value is 'units'", {"coordinates": "units"}),
                                ("keypoints.flip_pairs: value has 1; must be pairs", {"flip_pairs": [1, 2]}),
                                ("keypoints.flip_pairs: value is -1", {"flip_pairs": [(-1, 2)]}),
                                ("keypoints.boxes: value is True", {"boxes": True}),
                                ("keypoints.follows: value is ''", {"follows": ""})):
            self.assert_says(words, penstock.keypoints, "points", **keywords)
        self.assertEqual(repr(penstock.keypoints("p", flip_pairs=np.array(PAIRS), origin="center", boxes=False)),
                         "keypoints('p', flip_pairs=[(1, 2), (3, 4)], coordinates='pixels', origin='center', boxes=False)")


if __name__ == "__main__":
    unittest.main()
