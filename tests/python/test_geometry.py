# SPDX-License-Identifier: Apache-2.0
"""Operations that fit, place and scale images: what the library draws, Pillow and torchvision make of PIL images, byte
for byte, as a loader's rows and as functions on arrays."""
import collections
import glob
import io
import os
import unittest

import penstock
from penstock import functional

from data_fixture import Case, np, optional

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


def images(n, most=90, channels=(1, 3, 4)):
    """Pictures of random pixels and sizes, with their generator."""
    rng = np.random.default_rng(11)
    for i in range(n):
        shape = (*map(int, rng.integers(1, most, 2)), int(rng.choice(channels)))
        yield i, rng, rng.integers(0, 256, shape, "u1")


def changed(ops, pixels, sample_id=0):
    for op in penstock.draw(ops, pixels.shape, seed=5, sample_id=sample_id):
        pixels = op(pixels).reshape(*op(pixels).shape[:2], -1)
    return pixels


def picture_of(pixels):
    return optional("PIL.Image").fromarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0],
                                           MODES[pixels.shape[2]])


def array_of(picture):
    found = np.asarray(picture)
    return found.reshape(*found.shape[:2], -1)


def resampling(name):
    return getattr(optional("PIL.Image").Resampling, name.upper())


def fill_for(rng, channels):
    """Return a fill for the library, and the same for Pillow."""
    fill = tuple(map(int, rng.integers(0, 256, channels)))
    return fill, fill[0] if channels == 1 else fill


def real_pictures(n):
    """Files of PENSTOCK_TEST_IMAGES, and pictures in their place where there are none."""
    folder = os.environ.get("PENSTOCK_TEST_IMAGES", "")
    found = [open(path, "rb").read() for path in sorted(glob.glob(os.path.join(folder, "*.JPEG")))[:n]] if folder else []
    for i in range(n - len(found)):
        out, (y, x) = io.BytesIO(), np.mgrid[0:130 + 7 * i, 0:210 - 9 * i]
        pixels = np.stack([(x * 3 + 5 * i) % 256, (y * 2 + x) % 256, (x * y // 40) % 256], 2).astype("u1")
        optional("PIL.Image").fromarray(pixels).save(out, "JPEG", quality=92)
        found.append(out.getvalue())
    return found


class Fixed(Case):
    def test_letterboxes_are_pillows(self):
        ops = optional("PIL.ImageOps")
        for i, rng, pixels in images(300):
            size = tuple(map(int, rng.integers(1, 70, 2)))
            fill, theirs = fill_for(rng, pixels.shape[2])
            name, is_center = str(rng.choice(FILTERS)), bool(rng.integers(2))
            op = penstock.ops.Letterbox(size, fill, "center" if is_center else "top_left", name)
            try:
                wanted = ops.pad(picture_of(pixels), size[::-1], resampling(name), theirs,
                                 (0.5, 0.5) if is_center else (0, 0))
            except ValueError:  # a side would have no pixels; here it has one
                self.assertGreater(max(pixels.shape[:2]) / min(pixels.shape[:2]), 2 * min(size) / max(size))
                continue
            with self.subTest(op=op, shape=pixels.shape):
                np.testing.assert_array_equal(changed([op], pixels, i), array_of(wanted))

    def test_the_longer_side_is_resized_as_torchvision_v2_does(self):
        v2, fix = optional("torchvision.transforms.v2"), penstock.ops.PadToSize(90, 90, "top_left")
        for i, rng, pixels in images(200):
            side, name = int(rng.integers(1, 90)), str(rng.choice(FILTERS))
            if side * min(pixels.shape[:2]) < max(pixels.shape[:2]):
                continue  # torchvision would make a side of no pixels
            wanted = array_of(v2.Resize(None, max_size=side, interpolation=name)(picture_of(pixels)))
            for op in (penstock.ops.ResizeLongest(side, name), penstock.ops.Resize(None, name, side)):
                found = changed([op, fix], pixels, i)
                np.testing.assert_array_equal(found[:wanted.shape[0], :wanted.shape[1]], wanted)
                self.assertFalse(found[wanted.shape[0]:].any() or found[:, wanted.shape[1]:].any())
            np.testing.assert_array_equal(functional.resize(pixels, None, name, side), wanted)

    def test_padding_to_a_size_is_torchvisions(self):
        F = optional("torchvision.transforms.functional")
        for i, rng, pixels in images(200, 40):
            (h, w, channels), (down, right) = pixels.shape, map(int, rng.integers(0, 9, 2))
            fill, theirs = fill_for(rng, channels)
            for position, sides in (("top_left", (0, 0, right, down)),
                                    ("center", (right // 2, down // 2, right - right // 2, down - down // 2))):
                op = penstock.ops.PadToSize(h + down, w + right, position, fill)
                wanted = array_of(F.pad(picture_of(pixels), list(sides), theirs))
                np.testing.assert_array_equal(changed([op], pixels, i), wanted)

    def test_padding_is_torchvisions(self):
        v2 = optional("torchvision.transforms.v2")
        for i, rng, pixels in images(200, 40):
            mode, most = str(rng.choice(["constant", "edge", "reflect", "symmetric"])), min(pixels.shape[:2])
            padding = [2, [1], (1, 2), (0, 1, 2, 3)][rng.integers(4)]
            fill, theirs = fill_for(rng, pixels.shape[2])
            if mode != "constant" and most < 4:
                continue  # there is nothing to mirror
            wanted = array_of(v2.Pad(padding, theirs, mode)(picture_of(pixels)))
            ops = [penstock.ops.Pad(padding, fill, mode), penstock.ops.PadToSize(*wanted.shape[:2])]
            np.testing.assert_array_equal(changed(ops, pixels, i), wanted)

    def test_five_and_ten_crops_of_arrays_are_torchvisions(self):
        F = optional("torchvision.transforms.functional")
        for _, rng, pixels in images(100, 40):
            size = [int(rng.integers(1, side + 1)) for side in pixels.shape[:2]]
            for found, wanted in ((functional.five_crop(pixels, size), F.five_crop(picture_of(pixels), size)),
                                  *((functional.ten_crop(pixels, size, flip), F.ten_crop(picture_of(pixels), size, flip))
                                    for flip in (False, True))):
                self.assertEqual(len(found), len(wanted))
                for ours, theirs in zip(found, wanted):
                    np.testing.assert_array_equal(ours, array_of(theirs))

    def test_images_that_do_not_fit_are_named(self):
        pixels = np.zeros((9, 7, 3), np.uint8)
        self.assert_says("padding to 8 x 8 pixels: the image has 9 x 7 there", penstock.draw, [penstock.ops.PadToSize(8, 8)],
                         pixels.shape)
        self.assert_says("a corner crop of 8 x 8 pixels: the image has 9 x 7 there", penstock.draw,
                         [penstock.ops.CornerCrop(8, "center")], pixels.shape)
        self.assert_says("five_crop: the image has 9 x 7 pixels; must contain the part", functional.five_crop, pixels, 8)


class Random(Case):
    """Operations with given parameters. tests/augment/test_fit.c has the distributions."""

    def test_scale_jitter_is_torchvisions(self):
        v2, fix = optional("torchvision.transforms.v2"), penstock.ops.RandomCrop(64, pad_if_needed=True, fill=7)
        for i, rng, pixels in images(150):
            target = tuple(map(int, rng.integers(1, 60, 2)))
            op = penstock.ops.ScaleJitter(target, (0.5, 2.0), "bicubic")
            resize = penstock.draw([op, fix], pixels.shape, seed=5, sample_id=i)[0]
            (height, width), factor = resize.arguments[0], min(target[1] / pixels.shape[0], target[0] / pixels.shape[1])
            self.assertLessEqual(height, 2 * factor * pixels.shape[0] + 1)
            self.assertGreater(height + 1, 0.5 * factor * pixels.shape[0])
            theirs = v2.ScaleJitter(target, (0.5, 2.0), "bicubic").transform(picture_of(pixels),
                                                                             {"size": (height, width)})
            np.testing.assert_array_equal(resize(pixels).reshape(height, width, -1), array_of(theirs))

    def test_shortest_sizes_are_torchvisions(self):
        v2, fix = optional("torchvision.transforms.v2"), penstock.ops.RandomCrop(64, pad_if_needed=True)
        for i, rng, pixels in images(400):
            side, longest = int(rng.integers(1, 60)), [None, int(rng.integers(1, 90))][rng.integers(2)]
            theirs = v2.RandomShortestSize(side, longest)
            wanted = theirs.make_params([picture_of(pixels)])["size"]
            if longest is None and max(wanted) > 16 * side:
                continue
            resize = penstock.draw([penstock.ops.RandomShortestSize(side, longest), fix], pixels.shape)[0]
            self.assertEqual(resize.arguments[0], tuple(max(v, 1) for v in wanted))
        sizes = [penstock.draw([penstock.ops.RandomShortestSize((8, 16, 24)), fix], (30, 40), sample_id=i)[0].arguments[0][0]
                 for i in range(60)]
        self.assertEqual(set(sizes), {8, 16, 24})

    def test_random_resizes_are_torchvisions(self):
        v2, fix = optional("torchvision.transforms.v2"), penstock.ops.CenterCrop(30)
        for i, _, pixels in images(100):
            resize = penstock.draw([penstock.ops.RandomResize(8, 40), fix], pixels.shape, sample_id=i)[0]
            side = resize.arguments[0]
            self.assertTrue(8 <= side < 40)
            if side * max(pixels.shape[:2]) > 16 * side * min(pixels.shape[:2]):
                continue
            wanted = v2.RandomResize(8, 40).transform(picture_of(pixels), {"size": [side]})
            np.testing.assert_array_equal(functional.resize(pixels, side), array_of(wanted))

    def test_zooming_out_is_torchvisions(self):
        v2 = optional("torchvision.transforms.v2")
        for i, rng, pixels in images(100, 40):
            h, w, channels = pixels.shape
            fill, theirs = fill_for(rng, channels)
            zoom, fix = penstock.ops.RandomZoomOut(fill, (1.0, 3.0), 1), penstock.ops.PadToSize(200, 200)
            crop = penstock.draw([zoom, fix], pixels.shape, sample_id=i)[0]
            top, left, height, width = crop.arguments[:4]
            padding = [-left, -top, width + left - w, height + top - h]
            self.assertTrue(min(padding) >= 0 and height < 3 * h + 1 and width < 3 * w + 1)
            wanted = v2.RandomZoomOut(theirs).transform(picture_of(pixels), {"padding": padding})
            np.testing.assert_array_equal(crop(pixels).reshape(height, width, -1), array_of(wanted))

    def test_rotations_about_a_centre_are_torchvisions(self):
        transforms = optional("torchvision.transforms")
        for i, rng, pixels in images(120, 60):
            fill, theirs = fill_for(rng, pixels.shape[2])
            center = [None, tuple(map(float, rng.uniform(-20, 80, 2)))][rng.integers(2)]
            expand, name = bool(rng.integers(2)), str(rng.choice(["nearest", "bilinear", "bicubic"]))
            ours = penstock.ops.RandomRotation((-180, 180), name, expand, center, fill)
            other = transforms.RandomRotation((-180, 180), transforms.InterpolationMode(name), expand, center, theirs)
            turn = penstock.draw([ours, penstock.ops.CenterCrop(8)], pixels.shape, sample_id=i)[0]
            other.get_params = lambda degrees: turn.arguments[0]
            np.testing.assert_array_equal(turn(pixels).reshape(*turn(pixels).shape[:2], -1),
                                          array_of(other(picture_of(pixels))))

    def test_affine_maps_about_a_centre_are_torchvisions(self):
        transforms = optional("torchvision.transforms")
        for i, rng, pixels in images(120, 60):
            fill, theirs = fill_for(rng, pixels.shape[2])
            center = tuple(map(float, rng.uniform(-20, 80, 2)))
            angle, scale, shear = float(rng.uniform(-90, 90)), float(rng.uniform(0.5, 2)), float(rng.uniform(-40, 40))
            name = str(rng.choice(["nearest", "bilinear", "bicubic"]))
            ours = penstock.ops.RandomAffine((angle, angle), None, (scale, scale), (shear, shear), name, fill, center)
            fix = penstock.ops.CenterCrop(pixels.shape[:2])
            warp = penstock.draw([ours, fix], pixels.shape, sample_id=i)[0]
            other = transforms.RandomAffine(0, None, None, None, transforms.InterpolationMode(name), theirs, center)
            other.get_params = lambda *_: (angle, (0, 0), scale, (shear, 0.0))
            np.testing.assert_array_equal(warp(pixels).reshape(pixels.shape), array_of(other(picture_of(pixels))))


class Loaders(Case):
    def packed(self, files):
        with penstock.Writer(self.path(), {"jpg": "image", "cls": "int64"}, overwrite=True) as writer:
            for i, data in enumerate(files):
                writer.add(jpg=data, cls=i)
        return self.path()

    def batch(self, outputs, n, **arguments):
        with penstock.Loader(self.path(), outputs=outputs, batch_size=n, shuffle=False, seed=5, form="dict",
                             framework="numpy", device=penstock.Device(copy=True), **arguments) as loader:
            return next(iter(loader))

    def test_ten_crops_are_torchvisions_on_real_images(self):
        image, transforms = optional("PIL.Image"), optional("torchvision.transforms")
        files = real_pictures(8)
        self.packed(files)
        for vertical_flip in (False, True):
            outputs = penstock.ops.ten_crop("jpg", (96, 80), vertical_flip, [penstock.ops.Resize(120)])
            self.assertEqual(list(outputs), [f"jpg_{flipped}{corner}" for flipped in ("", "flipped_") for corner in (
                "top_left", "top_right", "bottom_left", "bottom_right", "center")])
            batch = self.batch({**outputs, "label": penstock.scalar("cls")}, len(files))
            theirs = transforms.Compose([transforms.Resize(120), transforms.TenCrop((96, 80), vertical_flip)])
            for i, data in enumerate(files):
                for name, wanted in zip(outputs, theirs(image.open(io.BytesIO(data)).convert("RGB"))):
                    np.testing.assert_array_equal(batch[name][i], np.asarray(wanted))

    def test_five_crops_take_other_operations_and_arguments(self):
        self.packed(real_pictures(3))
        outputs = penstock.ops.five_crop("jpg", 64, [penstock.ops.Resize(80), penstock.ops.RandomFlip(0.5)],
                                         [penstock.ops.Normalize()], name="view", layout="nchw", dtype="float16")
        batch = self.batch(outputs, 3)
        self.assertEqual(list(batch.keys()), ["view_top_left", "view_top_right", "view_bottom_left",
                                              "view_bottom_right", "view_center"])
        self.assertEqual((batch["view_center"].shape, batch["view_center"].dtype), ((3, 3, 64, 64), np.float16))
        # The corners are of one image, flipped or not: they overlap.
        np.testing.assert_array_equal(batch["view_top_left"][:, :, 16:, :], batch["view_bottom_left"][:, :, :48, :])
        self.assert_says("five_crop.before: value is 5", penstock.ops.five_crop, "jpg", 8, 5)
        self.assert_says("penstock.image has no argument 'layuot'", penstock.ops.five_crop, "jpg", 8, layuot="nchw")

    def test_lists_on_real_images_are_those_of_pillow(self):
        image, ops = optional("PIL.Image"), optional("PIL.ImageOps")
        files = real_pictures(6)
        self.packed(files)
        pictures = [image.open(io.BytesIO(data)).convert("RGB") for data in files]
        gray = (114, 114, 114)
        boxed = [np.asarray(ops.pad(p, (160, 128), image.Resampling.BILINEAR, gray)) for p in pictures]
        turned = [b[:, ::-1] for b in boxed]
        box = penstock.ops.Letterbox((128, 160), 114)
        batch = self.batch({"box": penstock.image("jpg", [box]),
                            "turned": penstock.image("jpg", [box, penstock.ops.RandomFlip(1)]),
                            "after": penstock.image("jpg", [box, penstock.ops.RandomInvert(1)]),
                            "planes": penstock.image("jpg", [box], dtype="float32", layout="nchw"),
                            "alpha": penstock.image("jpg", [penstock.ops.Letterbox((128, 160), (1, 2, 3, 4))], channels=4),
                            "luma": penstock.image("jpg", [box, penstock.ops.RandomVerticalFlip(1)], channels=1)}, len(files))
        for i, picture in enumerate(pictures):
            alpha = ops.pad(picture.convert("RGBA"), (160, 128), image.Resampling.BILINEAR, (1, 2, 3, 4))
            luma = ops.pad(picture.convert("L"), (160, 128), image.Resampling.BILINEAR, 114)
            np.testing.assert_array_equal(batch["alpha"][i], np.asarray(alpha))
            np.testing.assert_array_equal(batch["luma"][i].reshape(128, 160), np.asarray(luma)[::-1])
            np.testing.assert_array_equal(batch["box"][i], boxed[i])
            np.testing.assert_array_equal(batch["turned"][i], turned[i])
            np.testing.assert_array_equal(batch["after"][i], 255 - boxed[i])
            np.testing.assert_array_equal(batch["planes"][i], boxed[i].transpose(2, 0, 1).astype("f4") / np.float32(255))

    def test_a_loader_does_what_is_drawn(self):
        image, files = optional("PIL.Image"), real_pictures(6)
        self.packed(files)
        pixels = [np.asarray(image.open(io.BytesIO(data)).convert("RGB")) for data in files]
        fix = penstock.ops.RandomCrop((96, 112), pad_if_needed=True, fill=(9, 99, 199))
        lists = [[penstock.ops.ScaleJitter((128, 96), (0.3, 1.5)), fix, penstock.ops.RandomFlip()],
                 [penstock.ops.RandomZoomOut((1, 2, 3), (1, 2), 0.8), penstock.ops.RandomFlip(), penstock.ops.Resize((60, 70))],
                 [penstock.ops.RandomShortestSize((64, 96, 128), 150, "bicubic"), fix, penstock.ops.ColorJitter(0.4)],
                 [penstock.ops.RandomResize(64, 128, "random"), fix],
                 [penstock.ops.RandomRotation(30, "bilinear", True, (3, 4), 77), penstock.ops.Letterbox(64, 50)],
                 [penstock.ops.ResizeLongest(90), penstock.ops.PadToSize(90, 90, fill=(5, 6, 7)), penstock.ops.Grayscale(3)],
                 [penstock.ops.Resize(40), penstock.ops.Pad((1, 2, 3, 4), 8), penstock.ops.RandomCrop(40),
                  penstock.ops.RandomAffine(9, (0.1, 0.1), center=(0, 0))]]
        batch = self.batch({f"x{k}": penstock.image("jpg", ops) for k, ops in enumerate(lists)}, len(files))
        for k, ops in enumerate(lists):
            for i, whole in enumerate(pixels):
                for op in penstock.draw(ops, whole.shape, seed=5, sample_id=i):
                    whole = op(whole)
                np.testing.assert_array_equal(batch[f"x{k}"][i], whole, f"list {k}, image {i}")

    def test_an_image_that_does_not_fit_is_a_bad_sample(self):
        self.packed(real_pictures(2))
        error = self.assert_says("padding to 20 x 20 pixels: the image has", self.batch, {
            "x": penstock.image("jpg", [penstock.ops.PadToSize(20, 20)])}, 2)
        self.assertIsInstance(error, penstock.PenstockError)


class Arguments(unittest.TestCase):
    def test_wrong_ones_are_named(self):
        p = penstock.ops
        for says, wrong in (
                ("ResizeLongest.size: value is 0; must be a whole number from 1", lambda: p.ResizeLongest(0)),
                ("PadToSize.width: value is 70000", lambda: p.PadToSize(8, 70000)),
                ("PadToSize.position: value is 'centre'; must be one of 'center', 'top_left'; did you mean 'center'?",
                 lambda: p.PadToSize(8, 8, "centre")),
                ("PadToSize.fill: value is 256", lambda: p.PadToSize(8, 8, fill=256)),
                ("Letterbox.size: value is", lambda: p.Letterbox((1, 2, 3))),
                ("Letterbox.interpolation: value is 'cubic'", lambda: p.Letterbox(8, interpolation="cubic")),
                ("Letterbox.antialias: value is False", lambda: p.Letterbox(8, antialias=False)),
                ("CornerCrop.corner: value is 'top'", lambda: p.CornerCrop(8, "top")),
                ("Pad.padding: value is (1, 2, 3)", lambda: p.Pad((1, 2, 3))),
                ("Pad.padding_mode: value is 'mirror'", lambda: p.Pad(1, 0, "mirror")),
                ("ScaleJitter.target_size: value is 8; must be two", lambda: p.ScaleJitter(8)),
                ("ScaleJitter.scale_range: value is (2, 1)", lambda: p.ScaleJitter((8, 8), (2, 1))),
                ("RandomZoomOut.side_range: value is 0.5; must be", lambda: p.RandomZoomOut(0, (0.5, 2))),
                ("RandomZoomOut.p: value is 2", lambda: p.RandomZoomOut(p=2)),
                ("RandomShortestSize.min_size: value is ()", lambda: p.RandomShortestSize(())),
                ("RandomShortestSize.max_size: value is 0", lambda: p.RandomShortestSize(8, 0)),
                ("RandomResize.max_size: value is 8; must be above min_size, 8", lambda: p.RandomResize(8, 8)),
                ("Resize.max_size: value is None", lambda: p.Resize(None)),
                ("Resize.max_size: value is 0; must be above 0", lambda: p.Resize(None, max_size=0)),
                ("RandomRotation.center: value is (1,); must be two numbers", lambda: p.RandomRotation(9, center=(1,))),
                ("RandomAffine.center: value is 'xy'", lambda: p.RandomAffine(9, center="xy"))):
            with self.assertRaises((TypeError, ValueError)) as caught:
                wrong()
            self.assertIn(says, str(caught.exception))

    def test_equal_arguments_make_equal_operations(self):
        self.assertEqual(penstock.ops.Letterbox(8, 114), penstock.ops.Letterbox((8, 8), (114, 114, 114, 114)))
        self.assertEqual(penstock.ops.Pad(3), penstock.ops.Pad((3, 3)))
        self.assertEqual(penstock.ops.RandomShortestSize(8), penstock.ops.RandomShortestSize([8]))
        counts = collections.Counter(map(hash, (penstock.ops.CornerCrop(8, "center"), penstock.ops.CornerCrop([8], "center"))))
        self.assertEqual(len(counts), 1)

    def test_sizes_that_nothing_fixes_are_refused(self):
        for op in (penstock.ops.ResizeLongest(8), penstock.ops.ScaleJitter((8, 8)), penstock.ops.RandomResize(8, 9),
                   penstock.ops.RandomRotation(8, expand=True), penstock.ops.RandomZoomOut(), penstock.ops.Pad(3)):
            with self.assertRaisesRegex(ValueError, "ops do not fix the size"):
                penstock.draw([op], (9, 9, 3))

    def test_names_of_other_libraries_are_translated(self):
        for name, says in (("LongestMaxSize", "ResizeLongest"), ("PadIfNeeded", "PadToSize"), ("LetterBox", "Letterbox"),
                           ("FiveCrop", "penstock.ops.five_crop"), ("TenCrop", "penstock.ops.ten_crop"),
                           ("SmallestMaxSize", "Resize"), ("FixedSizeCrop", "RandomCrop(size, pad_if_needed=True")):
            with self.assertRaisesRegex(AttributeError, name) as caught:
                getattr(penstock, name)
            self.assertIn(says, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
