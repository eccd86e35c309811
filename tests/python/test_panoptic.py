# SPDX-License-Identifier: Apache-2.0
"""`penstock pack --coco` of a panoptic file: the masks, boxes and classes that a loop over its PNG files makes."""
import json
import os
import struct
import subprocess
import unittest
import zlib

import penstock
from penstock.ops import RandomFlip, Resize
from penstock.__main__ import command

from data_fixture import Case, image_file, np, optional

optional("PIL.Image")
CATEGORIES = [{"id": 90, "name": "toothbrush", "isthing": 1}, {"id": 2, "name": "bicycle", "isthing": 1},
              {"id": 184, "name": "tree", "isthing": 0}, {"id": 200, "name": "rug", "isthing": 0}]
CLASSES = [2, 90, 184, 200]  # by id
IDS = [1, 255, 256, 65535, 65536, 0xfffffe, 0xffffff]  # ids of segments, next to random ones
N_IMAGES = 14


def size_of(number):
    return 37 + 5 * number, 50 + 3 * number  # height, width


def id_to_colour(ids):
    """As panopticapi.utils.id2rgb."""
    return np.stack([ids % 256, ids // 256 % 256, ids // 65536], 2).astype(np.uint8)


def interlaced(pixels):
    """Return a PNG file of seven passes, which Pillow reads and does not write."""
    height, width, _ = pixels.shape
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    rows = b"".join(b"\0" + row.tobytes() for y, x, down, right in passes for row in pixels[y::down, x::right] if row.size)
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
                                          for name, data in chunks)


def wanted_masks(colours, segments, classes=None):
    """Return the masks of an image, the slow way: one segment after another."""
    classes = CLASSES if classes is None else classes
    ids = colours[..., 0] + 256 * colours[..., 1].astype(np.int64) + 65536 * colours[..., 2].astype(np.int64)
    dtype = np.uint8 if len(classes) < 256 else np.uint16
    numbers, labels = np.zeros(ids.shape, np.uint16), np.full(ids.shape, np.iinfo(dtype).max, dtype)
    for position, segment in enumerate(segments):
        numbers[ids == segment["id"]] = position + 1
        labels[ids == segment["id"]] = classes.index(segment["category_id"])
    return numbers, labels


class Panoptic(Case):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        os.makedirs(self.path("images"))
        os.makedirs(self.path("panoptic_x/sub"))
        self.whole = {"images": [], "annotations": [], "categories": CATEGORIES}
        self.colours = {}
        for number in range(N_IMAGES):
            height, width = size_of(number)
            with open(self.path(f"images/{number}.jpg"), "wb") as file:
                file.write(image_file(number, height=height, width=width))
            self.whole["images"].append({"id": 500 - number, "file_name": f"{number}.jpg", "height": height, "width": width})
            self.add_annotation(random, number)
        self.whole["annotations"].reverse()

    def add_annotation(self, random, number):
        height, width = size_of(number)
        n = number % 7  # an image without segments is fine
        ids = random.permutation(np.unique(np.concatenate([IDS, random.integers(1, 1 << 24, 9)])))[:n]
        areas = np.repeat(np.repeat(random.integers(0, n + 1, (9, 10)), 20, 0), 20, 1)[:height, :width]
        self.colours[number] = id_to_colour(np.concatenate([[0], ids]).astype(np.int64)[areas])
        segments = [{"id": int(one), "category_id": int(random.choice(CLASSES)), "area": int((areas == i + 1).sum()),
                     "bbox": random.integers(0, 30, 4).tolist(), "iscrowd": i % 2} for i, one in enumerate(ids)]
        name = f"{'sub/' if number % 3 == 0 else ''}{number}.png"
        self.whole["annotations"].append({"image_id": 500 - number, "file_name": name, "segments_info": segments})
        self.save_mask(number)

    def annotation(self, number):
        return next(one for one in self.whole["annotations"] if one["image_id"] == 500 - number)

    def save_mask(self, number, pixels=None, folder="panoptic_x", **options):
        pixels = self.colours[number] if pixels is None else pixels
        image = optional("PIL.Image").fromarray(pixels)
        image.save(os.path.join(self.path(folder), self.annotation(number)["file_name"]), **options)

    def pack(self, *options, out="data", name="panoptic_x.json", status=0):
        """Return what pack said: its summary; or its messages, where it fails."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(self.whole, file)
        done = subprocess.run([command(), "pack", "--json", "--overwrite", "--coco", self.path(name), *options,
                               self.path("images"), self.path(out)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else json.loads(done.stdout)

    def check(self, out="data", classes=None):
        with penstock.Dataset(self.path(out)) as dataset:
            for record in dataset:
                number = 500 - int(record["image_id"])
                segments = self.annotation(number)["segments_info"]
                numbers, labels = wanted_masks(self.colours[number], segments, classes)
                for found, wanted in ((record["segment_mask"], numbers), (record["class_mask"], labels)):
                    self.assertEqual(found.dtype, wanted.dtype)
                    np.testing.assert_array_equal(found, wanted)
                for name, wanted in self.wanted_fields(segments, classes).items():
                    np.testing.assert_array_equal(record[name], wanted, name)
            return len(dataset)

    def identity(self, out):
        with open(self.path(os.path.join(out, "manifest.json")), encoding="utf-8") as file:
            return json.load(file)["identity"]

    @staticmethod
    def wanted_fields(segments, classes):
        ids = [one["category_id"] for one in segments]
        things = {one["id"]: one.get("isthing") for one in CATEGORIES}
        return {"segment": np.arange(len(segments)) + 1, "segment_id": [one["id"] for one in segments],
                "boxes": np.reshape([one["bbox"] for one in segments], (-1, 4)), "category_id": ids,
                "labels": [(classes or CLASSES).index(one) for one in ids], "area": [one["area"] for one in segments],
                "iscrowd": [one["iscrowd"] for one in segments], **({} if classes else {"isthing": [things[one] for one in ids]})}

    def test_masks_and_segments_are_those_of_a_loop(self):
        told = self.pack()
        self.assertEqual(self.check(), N_IMAGES)
        wanted = sum(len(one["segments_info"]) for one in self.whole["annotations"])
        self.assertEqual((told["annotations"]["n_annotations"], told["annotations"]["n_empty_images"]), (wanted, 2))
        for number in range(N_IMAGES):  # other PNG files of the same colours
            height, width = size_of(number)
            alpha = np.dstack([self.colours[number], np.full((height, width), number, np.uint8)])
            self.save_mask(number, alpha if number % 2 else None, compress_level=number % 10)
            if number % 3 == 2:
                with open(self.path(f"panoptic_x/{number}.png"), "wb") as file:
                    file.write(interlaced(self.colours[number]))
                np.testing.assert_array_equal(np.array(optional("PIL.Image").open(file.name)), self.colours[number])
        os.rename(self.path("panoptic_x"), self.path("elsewhere"))
        self.pack("--panoptic-masks", self.path("elsewhere"), "--threads", "3", out="again")
        self.check("again")
        self.assertEqual(*(self.identity(out) for out in ("data", "again")))

    def test_a_loader_gives_masks_that_follow_the_image(self):
        self.pack()
        names = ("boxes", "labels", "segment", "isthing")
        with penstock.Loader(self.path(), batch_size=7, framework="numpy", order="sequential", outputs={
                "image": penstock.image("jpg", [RandomFlip(1.0), Resize((20, 30))]),
                "segments": penstock.mask("segment_mask", dtype="int32", ignore=0), "classes": penstock.mask("class_mask"),
                "boxes": penstock.boxes("boxes"), **{name: penstock.per_box(name) for name in names[1:]}}) as loader:
            rows = [{name: batch[name][i].copy() for name in (*names, "segments", "classes")}
                    for batch in loader for i in range(batch.n_valid)]
        self.assertEqual(len(rows), N_IMAGES)
        image = optional("PIL.Image")
        for row, number in zip(rows, reversed(range(N_IMAGES))):
            segments = self.annotation(number)["segments_info"]
            numbers, _ = wanted_masks(self.colours[number], segments)
            flipped = image.fromarray(numbers[:, ::-1].astype(np.int32)).resize((30, 20), image.Resampling.NEAREST)
            self.assertEqual(row["segments"].dtype, np.int32)
            np.testing.assert_array_equal(row["segments"], np.array(flipped))
            for label, segment in zip(row["labels"], row["segment"]):  # for the boxes that are left
                self.assertEqual(label, CLASSES.index(segments[segment - 1]["category_id"]))
                self.assertTrue((row["classes"][row["segments"] == segment] == label).all())
            self.assertTrue((row["classes"][row["segments"] == 0] == 255).all())

    def test_images_without_annotation_have_no_segments(self):
        self.whole["annotations"] = [one for one in self.whole["annotations"] if one["image_id"] != 499]
        told = self.pack()
        self.assertEqual(told["annotations"]["n_empty_images"], 3)
        with penstock.Dataset(self.path()) as dataset:
            record = next(record for record in dataset if record["image_id"] == 499)
            self.assertEqual(record["segment_mask"].shape, size_of(1))
            self.assertTrue((record["segment_mask"] == 0).all() and (record["class_mask"] == 255).all())
        self.assertEqual(self.pack("--skip-empty")["n_samples"], N_IMAGES - 3)
        for one in self.whole["images"]:
            del one["width"]
        self.assertIn("image 499 has neither an annotation nor a width and a height", self.pack(status=1))

    def test_many_classes_and_segments(self):
        height, width = 300, 250
        with open(self.path("images/many.jpg"), "wb") as file:
            file.write(image_file(3, height=height, width=width))
        ids = np.arange(1, height * width + 1).reshape(height, width) * 200 % 0xffffff + 1
        ids[ids > np.sort(ids.ravel())[65534]] = 0
        used = [int(one) for one in np.unique(ids) if one]
        self.assertEqual(len(used), 65535)
        classes = list(range(7, 307))
        self.whole = {"images": [{"id": 400, "file_name": "many.jpg"}], "categories": [{"id": one, "name": "c"} for one in classes],
                      "annotations": [{"image_id": 400, "file_name": "many.png", "segments_info": [
                          {"id": one, "category_id": 7 + one % 300, "bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 0} for one in used]}]}
        self.colours[100] = id_to_colour(ids)
        self.save_mask(100)
        self.pack()
        self.check(classes=classes)
        self.whole["annotations"][0]["segments_info"].append({"id": 0xffffff, "category_id": 7, "bbox": [0, 0, 1, 1]})
        self.assertIn("segments_info: it has 65536 segments; must be at most 65535", self.pack(status=1))

    def test_masks_that_do_not_fit_are_named(self):
        height, width = size_of(5)
        wrong = self.colours[5].copy()
        wrong[23:30, 31:40] = wrong[23, 60:] = id_to_colour(np.array([[12345]]))[0, 0]
        self.save_mask(5, wrong)
        self.assertIn("panoptic_x/5.png: the mask of image 495: the pixel at x 31, y 23 has the id 12345; "
                      "must be 0 or the id of one of segments_info", self.pack(status=1))
        self.assertEqual(self.pack("--skip-bad")["n_samples"], N_IMAGES - 1)
        file = self.path("panoptic_x/5.png")
        gray = np.zeros((height, width), np.uint8)
        for pixels, says in ((self.colours[5][1:], f"the mask of image 495 has {width} x {height - 1} pixels; must have {width} x {height}"),
                             (gray, "the PNG file has 1 channel of 8 bits; must be RGB of 8 bits"),
                             (gray.astype(np.uint16), "the PNG file is gray of 16 bits; must be RGB of 8 bits"),
                             (np.zeros((height, width, 2), np.uint8), "has 2 channels of 8 bits; must be RGB")):
            self.save_mask(5, pixels)
            self.assertIn(says, self.pack(status=1))
        image = next(image for image in self.whole["images"] if image["id"] == 495)
        self.save_mask(5, self.colours[5][1:])
        del image["height"]  # the writer sees it where the JSON file has no size
        self.assertIn(f"field segment_mask: the mask has {width} x {height - 1} pixels; must have {width} x {height}", self.pack(status=1))
        image["height"] = height
        self.save_mask(5)
        with open(file, "rb") as good:
            whole = good.read()
        for data, says in ((whole[:-40], "the mask of image 495: PNG: "), (b"", "not a PNG file"), (image_file(), "not a PNG file")):
            with open(file, "wb") as bad:
                bad.write(data)
            self.assertIn(says, self.pack(status=1))
        os.remove(file)
        self.assertIn(f"{file}: the mask of image 495 is missing, but the annotations list it", self.pack(status=1))

    def test_mistakes_in_the_file_are_named(self):
        one = self.annotation(5)
        where = f"annotations[{self.whole['annotations'].index(one)}]"
        segment = one["segments_info"][1]
        for change, says in (({"id": 0}, "segments_info[1], at byte "), ({"id": 0}, "id: value is 0; must be 1 to 16777215"),
                             ({"id": 1 << 24}, "id: value is 16777216; must be 1 to"), ({"bbox": [1, 2]}, f"{where}.segments_info[1]"),
                             ({"area": -1}, "area: value is -1"), ({"iscrowd": 2}, "iscrowd: value is 2"),
                             ({"category_id": 91}, "image 495, at byte "), ({"category_id": 91}, "category_id: value is 91; must be the id of one of"),
                             ({"id": one["segments_info"][0]["id"]}, "segments_info: two segments have the id")):
            kept = dict(segment)
            segment.update(change)
            self.assertIn(says, self.pack(status=1))
            segment.update(kept)
        for change, says in (({"file_name": "../x.png"}, "file_name: value is '../x.png', a path that leaves the folder"),
                             ({"file_name": 7}, "file_name: value is 7; must be a text"), ({"image_id": 3}, "image_id: value is 3; must be the id"),
                             ({"segments_info": 7}, "segments_info: value is 7; must be a list"), ({"segments_info": [7]}, "it is 7; must be an object"),
                             ({"image_id": 496}, "two of 'annotations' have the image_id 496")):
            kept = dict(one)
            one.update(change)
            self.assertIn(says, self.pack(status=1))
            one.update(kept)
        self.whole["annotations"].append({"id": 1, "image_id": 490, "category_id": 2, "bbox": [0, 0, 1, 1]})
        self.assertIn("annotation 1, at byte ", self.pack(status=1))
        self.whole["annotations"].pop()
        self.whole["categories"][0]["isthing"] = 2
        self.addCleanup(CATEGORIES[0].update, isthing=1)
        self.assertIn("isthing: value is 2; must be 0 to 1", self.pack(status=1))

    def test_whole_numbers_may_be_real_ones_and_flags_words(self):
        wanted = self.pack()["identity"]
        for image in self.whole["images"]:
            image.update({name: float(image[name]) for name in ("id", "width", "height")})
        for one in self.whole["annotations"]:
            one["image_id"] = float(one["image_id"])
            for segment in one["segments_info"]:
                segment.update(id=float(segment["id"]), category_id=float(segment["category_id"]), iscrowd=bool(segment["iscrowd"]))
        self.whole["categories"] = [{**one, "id": float(one["id"]), "isthing": bool(one["isthing"])} for one in CATEGORIES]
        self.assertEqual(self.pack()["identity"], wanted)

    def test_the_image_of_a_bad_annotation_is_listed_and_skipped(self):
        one = self.annotation(5)
        segment = one["segments_info"][1]
        for change, says in (({"id": 0}, "id: value is 0; must be 1 to 16777215"), ({"bbox": [1, 2]}, "bbox: value is a list of 2")):
            kept = dict(segment)
            segment.update(change)
            skipped = self.pack("--skip-bad")["skipped"]
            self.assertEqual([one["path"] for one in skipped], ["5.jpg"])
            self.assertIn(says, skipped[0]["reason"])
            segment.update(kept)
        self.assertEqual(self.check(), N_IMAGES - 1)
        for change, says in (({"image_id": "x"}, "image_id: value is a text"), ({"segments_info": None}, "id: value is missing")):
            kept = dict(one)
            one.update(change)
            self.assertIn(says, self.pack("--skip-bad", status=1))  # nothing says which image has no segments
            one.update(kept)

    def test_the_folder_of_the_masks_is_asked_for(self):
        self.assertIn("cannot open the folder /absent (set --panoptic-masks to the folder", self.pack("--panoptic-masks", "/absent", status=2))
        self.assertIn("its name does not end in .json (set --panoptic-masks to", self.pack(name="x.txt", status=2))
        self.assertIn("cannot open the folder", self.pack(name="y.json", status=2))
        self.whole["annotations"] = []
        self.assertIn("is not panoptic: its annotations have no segments_info", self.pack("--panoptic-masks", self.path("panoptic_x"), status=2))


if __name__ == "__main__":
    unittest.main()
