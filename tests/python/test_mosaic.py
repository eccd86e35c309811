# SPDX-License-Identifier: Apache-2.0
"""Loader(mix=Mosaic()): batches are what a naive loop makes of the plain ones, with the draws that draw_mosaic gives."""
import collections
import os
import unittest

import forge
import penstock
import sets
from penstock import Boxes, Field, Mosaic
from penstock.ops import Normalize, RandomCrop, RandomFlip, RandomVerticalFlip, Resize

from data_fixture import Case, np

N, B, SEED = 45, 8, 11
HEIGHT, WIDTH = 24, 31
OPS = [RandomCrop((HEIGHT, WIDTH)), RandomFlip(0.5), RandomVerticalFlip(0.5)]
FAKE = os.environ.get("PENSTOCK_FAKE_LIBRARY", "")
DEVICE = """
import sys
import penstock
from penstock import Mosaic
from penstock.ops import Normalize, RandomCrop

def batches(device):
    with penstock.Loader(sys.argv[1], batch_size=8, device=device, framework="dlpack", seed=5, mix=Mosaic("x", p=0.8),
                         last_batch="pad", outputs={
            "x": penstock.image("x", [RandomCrop((24, 31)), Normalize()], dtype="float16", layout="nchw"),
            "v": penstock.image("x", [RandomCrop((24, 31)), Normalize()], random_group=1),
            "mask": penstock.mask("mask", dtype="int64", follows="x"), "y": "y",
            "boxes": penstock.boxes("boxes", coordinates="unit", follows="x"),
            "labels": penstock.per_box("labels")}) as loader:
        for b in loader:
            yield [t.read() for t in (b["x"], b["v"], b["mask"], b["y"], b["boxes"].data, b["boxes"].offsets,
                                      b["labels"].data)]

host, device = list(batches("cpu")), list(batches("cuda"))
assert len(host) == 6 and host == device
print("same")
"""


# ---- the oracle --------------------------------------------------------------------------------------------


def pixels_of(plain, rows, is_planar=False):
    """Mosaics of plain rows, pixel by pixel. is_planar: [B, C, H, W]."""
    plain = plain.transpose(0, 2, 3, 1) if is_planar else plain
    made = np.empty_like(plain)
    for i, row in enumerate(rows):
        for part in row.parts:
            for y in range(part.height):
                for x in range(part.width):
                    made[i, part.top + y, part.left + x] = plain[part.row, part.from_top + y, part.from_left + x]
    return made.transpose(0, 3, 1, 2) if is_planar else made


def in_form(box, form, coordinates):
    """x0, y0, x1, y1 as an output has it."""
    if coordinates == "unit":
        box = box / np.array([WIDTH, HEIGHT] * 2)
    lower, upper = box[:2], box[2:]
    return np.concatenate({"xyxy": (lower, upper), "xywh": (lower, upper - lower),
                           "cxcywh": ((lower + upper) / 2, upper - lower)}[form]).astype("f4")


def boxes_of(shown, whole, rows, clip=True, min_side=0, min_area=0, min_visible=0, **written):
    """Return for each mosaic its boxes, and for each box the row and number that it had; so for plain rows, before and
    after clipping."""
    made, origins = [], []
    for row in rows:
        found, origin = [], []
        for part in row.parts:
            for k in range(len(shown[part.row])):
                move = np.array([part.left - part.from_left, part.top - part.from_top] * 2, "f8")
                moved, all_of_it = shown[part.row][k] + move, whole[part.row][k] + move
                least = np.array([part.left, part.top] * 2, "f8")
                moved = moved.clip(least, least + np.array([part.width, part.height] * 2))
                width, height = moved[2:] - moved[:2]
                area = np.prod(all_of_it[2:] - all_of_it[:2])
                if (width > 0 and height > 0 and min(width, height) >= min_side and width * height >= min_area
                        and width * height >= min_visible * area):
                    found.append(in_form(moved if clip else all_of_it, **written))
                    origin.append((part.row, k))
        made.append(np.array(found, "f4").reshape(-1, 4))
        origins.append(origin)
    return made, origins


def in_bytes(batch):
    return [(t.data.tobytes(), t.offsets.tobytes()) if hasattr(t, "offsets") else t.tobytes() for t in batch]


class Mosaics(Case):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(1)
        with penstock.Writer(self.path(), {
                "x": "image", "mask": "mask", "y": "int32", "boxes": Boxes("float32", rows="objects"),
                "labels": Field("int64", (None,), rows="objects"),
                "points": Field("float32", (None, 2), rows="objects")}) as writer:
            for i in range(N):
                n = i % 5
                x, y = np.sort(rng.integers(-3, 40, (n, 2)), 1), np.sort(rng.integers(-3, 33, (n, 2)), 1)
                writer.add(x=rng.integers(0, 256, (30, 36, 3), "u1"), mask=rng.integers(0, 9, (30, 36), "u1"), y=i,
                           boxes=np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1),
                           labels=i * 10 + np.arange(n), points=rng.random((n, 2), "f4"))

    def outputs(self, ops=OPS, dtype="uint8", layout="nhwc", mask="uint8", **boxes):
        ops = ops if dtype == "uint8" else [*ops, Normalize()]
        return {"labels": penstock.per_box("labels"), "x": penstock.image("x", ops, dtype=dtype, layout=layout),
                "mask": penstock.mask("mask", dtype=mask), "y": "y", "boxes": penstock.boxes("boxes", **boxes),
                "points": penstock.per_box("points")}

    def loader(self, mix=None, outputs=None, **keywords):
        keywords = {"batch_size": B, "seed": SEED, "framework": "numpy", "device": penstock.Device(copy=True),
                    "last_batch": "short", **keywords}
        return penstock.Loader(self.path(), outputs=outputs or self.outputs(), mix=mix, **keywords)

    def batches(self, mix=None, n_epochs=1, **keywords):
        with self.loader(mix, **keywords) as loader:
            return [batch for epoch in range(n_epochs) for batch in loader.epoch(epoch)]

    @staticmethod
    def rows(mosaic, batch, rank=0):
        return penstock.draw_mosaic(mosaic, batch.n_valid, HEIGHT, WIDTH, seed=SEED, epoch=batch.epoch,
                                    position=batch.position, rank=rank)

    # ---- a naive loop --------------------------------------------------------------------------------------

    def test_images_and_masks_are_as_drawn(self):
        for dtype in ("uint8", "float16", "float32", "bfloat16"):
            for layout, mask in (("nhwc", "uint8"), ("nchw", "int64")):
                mosaic = Mosaic(p=0.8)
                outputs = self.outputs(dtype=dtype, layout=layout, mask=mask)
                plain, made = self.batches(outputs=outputs), self.batches(mosaic, outputs=outputs)
                self.assertEqual([batch.n_valid for batch in made], [8] * 5 + [5])
                for before, after in zip(plain, made):
                    rows = self.rows(mosaic, before)
                    self.assertEqual((after["x"].dtype, after["x"].shape), (before["x"].dtype, before["x"].shape))
                    want = pixels_of(before["x"], rows, layout == "nchw")
                    self.assertEqual(after["x"].tobytes(), want.tobytes())
                    self.assertEqual(after["mask"].tobytes(), pixels_of(before["mask"], rows).tobytes())
                    np.testing.assert_array_equal(after["y"], before["y"])
                    np.testing.assert_array_equal(after.sample_ids, before.sample_ids)

    def test_boxes_are_as_drawn(self):
        double = [Resize((60, 72)), RandomCrop((HEIGHT, WIDTH)), RandomFlip(0.5)]
        for ops, mosaic, limits, written in (
                (OPS, Mosaic(), {}, {}),
                (OPS, Mosaic(p=0.7, center=(0, 1)), {"min_side": 4}, {"form": "xywh"}),
                (OPS, Mosaic(center=(0.5, 0.5)), {"min_area": 30}, {"form": "cxcywh", "coordinates": "unit"}),
                (double, Mosaic(), {"min_visible": 0.3}, {"coordinates": "unit", "form": "xywh"}),
                (double, Mosaic(p=0.5), {"min_visible": 0.1, "min_side": 2, "clip": False}, {"form": "cxcywh"})):
            form = {"form": "xyxy", "coordinates": "pixels", **written}
            with self.subTest(mosaic, limits=limits, **form):
                shown = self.batches(outputs=self.outputs(ops))
                whole = self.batches(outputs=self.outputs(ops, clip=False))
                n_boxes, n_origins = 0, collections.Counter()
                with self.loader(outputs=self.outputs(ops)) as loader:
                    self.assertGreater(len(list(loader)), 0)
                    n_dropped = loader.stats().n_dropped_boxes
                with self.loader(mosaic, outputs=self.outputs(ops, **limits, **written)) as loader:
                    for before, unclipped, after in zip(shown, whole, loader):
                        rows = self.rows(mosaic, before)
                        n = before.n_valid
                        want, origins = boxes_of([before["boxes"][i] for i in range(n)],
                                                 [unclipped["boxes"][i] for i in range(n)], rows, **limits, **form)
                        self.assertEqual(after["boxes"].data.tobytes(), np.concatenate(want).tobytes())
                        self.assertEqual(after["boxes"].offsets.tolist()[:n + 1],
                                         np.cumsum([0] + [len(one) for one in want]).tolist())
                        for name in ("labels", "points"):
                            values = [before[name][row][k] for origin in origins for row, k in origin]
                            self.assertEqual(after[name].data.tobytes(), np.array(values, after[name].data.dtype).tobytes())
                            self.assertEqual(after[name].offsets.tolist(), after["boxes"].offsets.tolist())
                        n_had = sum(len(before["boxes"][part.row]) for row in rows for part in row.parts)
                        n_boxes += sum(map(len, origins))
                        n_dropped += n_had - sum(map(len, origins))
                        n_origins.update(len({row for row, _ in origin}) for origin in origins)
                    self.assertEqual(loader.stats().n_dropped_boxes, n_dropped)
                self.assertGreater(n_boxes, 10)
                self.assertGreater(n_dropped, 50)
                self.assertGreater(len(n_origins), 1)

    def test_a_row_that_stays_is_a_plain_one(self):
        outputs = self.outputs(min_side=5, min_visible=0.5, form="xywh")
        for before, after in zip(self.batches(outputs=outputs), self.batches(Mosaic(p=0), outputs=outputs)):
            self.assertEqual(in_bytes(after.values()), in_bytes(before.values()))

    def test_outputs_that_do_not_follow_keep_the_values_of_their_row(self):
        outputs = {**self.outputs(), "other": penstock.image("x", OPS), "mask": penstock.mask("mask", follows="other"),
                   "raw": penstock.ragged("labels"), "boxes": penstock.boxes("boxes", follows="other"),
                   "more": penstock.boxes("boxes", follows="x"), "labels": penstock.per_box("labels", "boxes"),
                   "points": penstock.per_box("points", "more")}
        mosaic = Mosaic("x")
        for before, after in zip(self.batches(outputs=outputs), self.batches(mosaic, outputs=outputs)):
            rows = self.rows(mosaic, before)
            for name in ("other", "mask", "y"):
                np.testing.assert_array_equal(after[name], before[name])
            for name in ("labels", "boxes", "raw"):
                self.assertEqual(after[name].data.tobytes(), before[name].data.tobytes())
            self.assertEqual(after["x"].tobytes(), pixels_of(before["x"], rows).tobytes())
            self.assertEqual(after["more"].offsets.tolist(), after["points"].offsets.tolist())
            self.assertNotEqual(after["more"].data.tobytes(), after["boxes"].data.tobytes())

    # ---- what is drawn -------------------------------------------------------------------------------------

    def test_the_parts_cover_the_picture(self):
        for n in (1, 2, 3, 4, 5, 30):
            for seed in range(20):
                for i, row in enumerate(penstock.draw_mosaic(Mosaic(center=(0, 1)), n, 9, 13, seed=seed)):
                    x, y = row.center
                    self.assertEqual(row.parts[0].row, i)
                    self.assertEqual([part[1:] for part in row.parts],
                                     [(0, 0, y, x, 9 - y, 13 - x), (0, x, y, 13 - x, 9 - y, 0),
                                      (y, 0, 9 - y, x, 0, 13 - x), (y, x, 9 - y, 13 - x, 0, 0)])
                    others = [part.row for part in row.parts]
                    self.assertTrue(set(others) <= set(range(n)))
                    if n >= 4:
                        self.assertEqual(len(set(others)), 4)
        self.assertEqual(penstock.draw_mosaic(Mosaic(p=0), 2, 9, 13)[1], (None, ((1, 0, 0, 9, 13, 0, 0),)))

    def chi_square(self, counts, n):
        want = sum(counts.values()) / n
        self.assertLessEqual(len(counts), n)
        return sum((counts.get(value, 0) - want) ** 2 / want for value in (*counts, *range(n - len(counts))))

    def test_centers_and_partners_are_uniform(self):
        """The chi-square statistic of d degrees of freedom is above d + 5 sqrt(2 d) + 12 less than once in 10^5."""
        rows = [row for seed in range(1000) for row in penstock.draw_mosaic(Mosaic(), 8, 40, 20, seed=seed)]
        xs, ys = (collections.Counter(row.center[k] for row in rows) for k in (0, 1))
        self.assertEqual((set(xs), set(ys)), (set(range(5, 16)), set(range(10, 31))))
        orders = collections.Counter(tuple((part.row - i % 8) % 8 - 1 for part in row.parts[1:])
                                     for i, row in enumerate(rows))
        few = collections.Counter(tuple(part.row for part in row.parts[1:]) for seed in range(3000)
                                  for row in penstock.draw_mosaic(Mosaic(), 2, 40, 20, seed=seed))
        for counts, n in ((xs, 11), (ys, 21), (orders, 7 * 6 * 5), (few, 8)):
            self.assertEqual(len(counts), n)
            self.assertLess(self.chi_square(counts, n), n - 1 + 5 * (2 * (n - 1)) ** 0.5 + 12)
        n_stay = sum(row.center is None for seed in range(1000)
                     for row in penstock.draw_mosaic(Mosaic(p=0.3), 8, 40, 20, seed=seed))
        self.assertLess(abs(n_stay - 5600), 4.5 * (8000 * 0.3 * 0.7) ** 0.5)  # once in 10^5

    # ---- what it depends on --------------------------------------------------------------------------------

    def test_batches_are_the_same_for_any_number_of_threads_and_kernels_and_after_a_resume(self):
        mosaic = Mosaic(p=0.9)
        wanted = [in_bytes(batch.values()) for batch in self.batches(mosaic, n_epochs=2)]
        self.assertEqual(len(wanted), 12)
        for keywords in ({"n_threads": 1}, {"n_threads": 5, "memory": penstock.Memory(n_slots=7)},
                         {"reading": penstock.Reading(kernels="c")}, {"reading": penstock.Reading(reader="threads")}):
            self.assertEqual([in_bytes(batch.values()) for batch in self.batches(mosaic, n_epochs=2, **keywords)], wanted,
                             keywords)
        with self.loader(mosaic) as loader, self.loader(mosaic) as other:
            batches = iter(loader)
            next(batches)
            next(batches)
            other.load_state_dict(loader.state_dict())
            third = next(iter(other))
        self.assertEqual(in_bytes(third.values()), wanted[2])
        self.assertNotEqual(wanted[:6], wanted[6:])

    def test_ranks_and_padded_batches(self):
        mosaic = Mosaic()
        drawn = []
        for rank in (0, 1):
            for before, after in zip(*(self.batches(mix, ranks=penstock.Ranks(rank, 2), last_batch="pad") for mix in (None, mosaic))):
                rows = self.rows(mosaic, before, rank)
                self.assertEqual(after["x"].tobytes(), pixels_of(before["x"], rows).tobytes())
            drawn.append(rows)
            for batch in self.batches(mosaic, ranks=penstock.Ranks(rank, 2), order=penstock.Order(position=N - 1)):
                self.assertEqual((batch.n_valid, len(batch["boxes"].data) > 0), ((N - 1) % 2 == rank, False))
        self.assertNotEqual(*drawn)

    def test_bad_samples(self):
        with penstock.Writer(self.path("bad"), {"x": "image", "boxes": Boxes("float32")}) as writer:
            for i in range(24):
                writer.add(x=np.full((9, 9, 3), i, "u1"), boxes=[*(i == 5) * [[3, 2, np.float32(7.3), 8]], [1, 1, 5, 5]])
        right = np.array([[3, 2, 7.3, 8], [1, 1, 5, 5]], np.float32)
        wrong = right.copy()
        wrong[0, 3] = np.nan
        forge.change(self.path("bad"), right.tobytes(), wrong.tobytes())
        outputs = {"x": penstock.image("x", [RandomCrop(8)]), "boxes": penstock.boxes("boxes")}

        def loader(mix, **keywords):
            return penstock.Loader(self.path("bad"), batch_size=4, outputs=outputs, mix=mix, shuffle=False,
                                   device=penstock.Device(copy=True),
                                   framework="numpy", **keywords)
        with loader(Mosaic()) as failing:
            batches = iter(failing)
            next(batches)
            error = self.assert_says("box 0: bottom is nan", next, batches)
            self.assertEqual(error.sample_id, 5)
        with loader(None, bad_sample="replace") as plain, loader(Mosaic(), bad_sample="replace") as made:
            for before, after in zip(plain, made):
                rows = penstock.draw_mosaic(Mosaic(), 4, 8, 8, epoch=before.epoch, position=before.position)
                self.assertEqual(after["x"].tobytes(), pixels_of(before["x"], rows).tobytes())
                self.assertEqual(before.replacements, after.replacements)
            self.assertEqual(made.stats().n_replacements, 1)

    @unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
    def test_batches_on_a_device_are_those_of_the_host(self):
        done = sets.python(DEVICE, self.path(), PENSTOCK_LIBRARY=FAKE, PENSTOCK_FAKE_CUDA="devices=1,delay_us=200")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "same\n", ""), done.stdout)

    # ---- memory --------------------------------------------------------------------------------------------

    def test_boxes_of_four_rows_fit(self):
        """Four boxes of 16 bytes are the most that a row has, and 16 what a mosaic has."""
        everything = np.array([[0, 0, 36, 30]] * 4)
        with penstock.Writer(self.path("full"), {"x": "image", "boxes": Boxes("float32")}) as writer:
            for _ in range(16):
                writer.add(x=np.zeros((30, 36, 3), "u1"), boxes=everything)

        def load(**keywords):
            outputs = {"x": penstock.image("x", OPS), "boxes": penstock.boxes("boxes", **keywords)}
            return penstock.Loader(self.path("full"), batch_size=8, outputs=outputs, mix=Mosaic(), framework="numpy")
        with load() as loader:
            for batch in loader:
                self.assertEqual(batch["boxes"].offsets.tolist(), list(range(0, 129, 16)))
        with load(bytes_per_batch=256) as loader:
            self.assert_says(["2048 bytes, more than its budget of 256", "raise bytes_per_batch"], list, loader)
        self.assert_says("outputs['boxes']: bytes_per_batch: value is 255; must be at least 256, because a mosaic",
                         load, bytes_per_batch=255)

    # ---- errors --------------------------------------------------------------------------------------------

    def test_wrong_arguments_are_refused(self):
        for says, arguments in (
                ("Mosaic.p: value is 2; must be a number from 0 to 1", {"p": 2}),
                ("Mosaic.center: value is (0.75, 0.25); must be two numbers in rising order", {"center": (0.75, 0.25)}),
                ("Mosaic.center: value is 1.5; must be", {"center": (0, 1.5)}),
                ("Mosaic.center: value is nan; must be", {"center": (float("nan"), 1)}),
                ("Mosaic.center: value is 0.5; must be two numbers", {"center": 0.5}),
                ("Mosaic.center: value is (0.5,); must be two numbers", {"center": (0.5,)}),
                ("Mosaic.image: value is 3; must be the name", {"image": 3}),
                ("no argument 'prob': it is p", {"prob": 0.5}),
                ("no argument 'imgsz': leave it out", {"imgsz": 640}),
                ("no argument 'boxes': leave it out; masks and boxes follow", {"boxes": "boxes"})):
            self.assert_says(says, lambda a=arguments: Mosaic(**a))
        self.assert_says("write it with brackets)", self.loader, Mosaic)
        self.assert_says("only one; for one of MixUp and CutMix by chance, write MixUpCutMix", self.loader,
                         [penstock.MixUp(num_classes=9), penstock.CutMix(num_classes=9)])
        self.assert_says("draw_mix.mix: value is Mosaic(", penstock.draw_mix, Mosaic(), 4)
        self.assert_says("must be penstock.Mosaic", penstock.draw_mosaic, penstock.OneHot(3), 4, 8, 8)
        self.assert_says("draw_mosaic.height: value is 0; must be", penstock.draw_mosaic, Mosaic(), 4, 0, 8)

    def test_a_mosaic_that_the_outputs_do_not_allow_is_refused(self):
        self.assert_says("mix.image: value is 'y'; must be the name of an image output: 'x'", self.loader, Mosaic("y"))
        self.assert_says("mix.image: value is 'no'; must be the name of an image output: 'x'", self.loader, Mosaic("no"))
        self.assert_says("mix.image: value is None, but no output is an image", self.loader, Mosaic(),
                         outputs={"y": "y"})
        self.assert_says("the outputs 'x', 'v' are images", self.loader, Mosaic(),
                         outputs={"x": penstock.image("x", OPS), "v": penstock.image("x", OPS)})

    def test_a_follower_that_cannot_be_combined_is_refused_by_name(self):
        with penstock.Writer(self.path("points"), {"x": "image", "points": penstock.Keypoints(3)}) as writer:
            for _ in range(B):
                writer.add(x=np.zeros((40, 40, 3), "u1"), points=np.ones((1, 3, 3)))
        outputs = {"x": penstock.image("x", OPS), "v": penstock.image("x", OPS)}
        for follows, says in (("x", "mix.image: output 'points' follows the image 'x', but a mosaic combines only"),
                              ("v", None)):
            def load(follows=follows):
                return penstock.Loader(self.path("points"), batch_size=B, framework="numpy", mix=Mosaic("x"), outputs={
                    **outputs, "points": penstock.keypoints("points", follows=follows)})
            if says:
                self.assert_says(says, load)
            else:
                with load() as loader:
                    self.assertEqual(len(next(iter(loader))["points"].data), B)

    def test_polygons_and_what_belongs_to_them_are_refused_by_name(self):
        schema = {"x": "image", "boxes": Boxes(rows="objects"), "corners": penstock.Polygons(rows="corners"),
                  "lengths": Field("int64", (None,), rows="objects", splits="corners"),
                  "marks": Field("uint8", (None,), rows="corners")}
        with penstock.Writer(self.path("polygons"), schema) as writer:
            for _ in range(B):
                writer.add(x=np.zeros((40, 40, 3), "u1"), boxes=[[1, 1, 9, 9]], lengths=[3], corners=[[1, 1], [9, 1], [9, 9]],
                           marks=[1, 2, 3])
        outputs = {"x": penstock.image("x", OPS), "boxes": penstock.boxes("boxes")}
        for maker, says in ((penstock.polygons("corners"), "output 'y' follows the image 'x', but a mosaic combines only"),
                            (penstock.per_box("marks"), "output 'y' has several items for a box")):
            self.assert_says("mix.image: " + says, penstock.Loader, self.path("polygons"), batch_size=B, framework="numpy",
                             mix=Mosaic("x"), outputs={**outputs, "y": maker})


if __name__ == "__main__":
    unittest.main()
