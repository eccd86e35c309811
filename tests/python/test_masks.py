# SPDX-License-Identifier: Apache-2.0
"""Masks that follow an image: Pillow, by NEAREST and with the ignored class as fill, makes the same of the operations
that were drawn for the image, byte for byte."""
import io
import unittest

import penstock
from penstock.ops import (AugMix, CenterCrop, ColorJitter, GaussianBlur, Normalize, RandomAffine, RandomApply, RandomCrop,
                          RandomErasing, RandomFlip, RandomGrayscale, RandomPerspective, RandomResizedCrop, RandomRotation,
                          RandomVerticalFlip, Resize, TimmAugMix, TrivialAugmentWide)

from data_fixture import Case, np, optional

IGNORE = 255


# ---- the oracle ----------------------------------------------------------------------------------------


def _crop(mask, ignore, top, left, height, width):
    image = optional("PIL.Image")
    out = image.new(mask.mode, (width, height), ignore)
    out.paste(mask, (-left, -top))
    return out


def _center_crop(mask, ignore, size):
    height, width = size
    left = -((width - mask.width) // 2) if width > mask.width else round((mask.width - width) / 2)
    top = -((height - mask.height) // 2) if height > mask.height else round((mask.height - height) / 2)
    return _crop(mask, ignore, top, left, height, width)


def _changed(mask, op, ignore):
    """Return a mask after an operation."""
    image, functional = optional("PIL.Image"), optional("torchvision.transforms.functional")
    nearest, name, args = image.Resampling.NEAREST, op.name, op.arguments
    mode = optional("torchvision.transforms").InterpolationMode.NEAREST
    if name == "resize":
        return functional.resize(mask, args[0], mode, *args[2:])
    if name == "resized_crop":
        return functional.resized_crop(mask, *args[:5], mode)
    if name == "crop":
        return _crop(mask, ignore, *args[:4])
    if name == "center_crop":
        return _center_crop(mask, ignore, args[0])
    if name in ("hflip", "vflip"):
        return getattr(functional, name)(mask)
    if name == "pad":
        return functional.pad(mask, list(args[0]), ignore, args[2])
    if name == "transform":
        kind = image.Transform.AFFINE if len(args[0]) == 6 else image.Transform.PERSPECTIVE
        return mask.transform(mask.size, kind, args[0], nearest, fillcolor=ignore)
    if name == "rotate":
        return mask.rotate(args[0], nearest, args[2], fillcolor=ignore)
    return mask


def expected(mask, ops, ignore, dtype, turn=None, **key):
    """Return the mask after the operations that a loader draws for its image. turn: an EXIF orientation."""
    image = optional("PIL.Image")
    made = image.fromarray(mask if mask.dtype == np.uint8 else mask.astype(np.int32))
    if turn is not None:
        made = made.transpose(turn)
    for op in penstock.draw(ops, (made.height, made.width, 3), **key):
        made = _changed(made, op, ignore)
    return np.asarray(made).astype(dtype)


# ---- lists ---------------------------------------------------------------------------------------------


def any_op(rng):
    """Return an operation at random."""
    size = tuple(int(v) for v in rng.integers(1, 40, 2))
    filters = ["nearest", "bilinear", "bicubic"]
    return [
        lambda: RandomResizedCrop(size, interpolation=str(rng.choice(filters))),
        lambda: Resize(size, interpolation=str(rng.choice(filters))),
        lambda: Resize(int(rng.integers(1, 40))),
        lambda: Resize(int(rng.integers(1, 20)), max_size=int(rng.integers(20, 60))),
        lambda: CenterCrop(size),
        lambda: RandomCrop(size, padding=int(rng.integers(5)), pad_if_needed=True, fill=int(rng.integers(256)),
                           padding_mode=str(rng.choice(["constant", "edge", "reflect", "symmetric"]))),
        lambda: RandomFlip(0.5),
        lambda: RandomVerticalFlip(0.5),
        lambda: RandomRotation(180, interpolation=str(rng.choice(filters)), fill=3),
        lambda: RandomAffine(30, (0.2, 0.2), (0.5, 1.5), (-20, 20, -20, 20), interpolation=str(rng.choice(filters))),
        lambda: RandomPerspective(0.5, 0.8, fill=9),
        lambda: ColorJitter(0.4, 0.4, 0.4, 0.1),
        lambda: RandomGrayscale(0.5),
        lambda: GaussianBlur(1),
        lambda: TrivialAugmentWide(fill=7),
        lambda: RandomApply([RandomFlip(1.0), RandomRotation(20)], 0.5),
        lambda: RandomApply([AugMix(fill=7)], 0.9),
        lambda: TimmAugMix(magnitude=9),
    ][rng.integers(18)]()


def any_list(rng):
    """Operations at random, which end with a size of their own."""
    ops = [any_op(rng) for _ in range(rng.integers(6))]
    size = tuple(int(v) for v in rng.integers(1, 40, 2))
    ops.append(CenterCrop(size) if rng.integers(2) else Resize(size))
    if rng.integers(3) == 0:
        ops += [Normalize(), RandomErasing(0.5)]
    return ops


def png(mask, palette=False):
    made, file = optional("PIL.Image").fromarray(mask), io.BytesIO()
    if palette:
        made.putpalette(list(range(255, -1, -1)) * 3)
    made.save(file, "PNG")
    return file.getvalue()


class Masks(Case):
    def pack(self, masks, name="data", images=None, **fields):
        with penstock.Writer(self.path(name), {"image": "image", "mask": "mask"}) as writer:
            for i, mask in enumerate(masks):
                height, width = np.shape(mask)[:2] if isinstance(mask, np.ndarray) else (20, 30)
                writer.add(image=images[i] if images else np.full((height, width, 3), i, np.uint8), mask=mask)

    def load(self, outputs, name="data", **keywords):
        return penstock.Loader(self.path(name), batch_size=keywords.pop("batch_size", 1), framework="numpy",
                               outputs=outputs, last_batch="short", **keywords)

    def test_masks_are_what_pillow_makes_of_the_drawn_operations(self):
        optional("torchvision.transforms.functional")
        rng = np.random.default_rng(3)
        masks = [rng.integers(0, 30, (int(rng.integers(1, 50)), int(rng.integers(1, 50))), "u1") for _ in range(6)]
        files = [png(m, palette=i % 3 == 1) if i % 3 else m for i, m in enumerate(masks)]
        images = [np.zeros((*m.shape, 3), np.uint8) for m in masks]
        self.pack(files, images=images)
        n_filled = 0
        for case in range(150):
            ops = any_list(rng)
            with self.subTest(case, ops=ops):
                with self.load({"mask": penstock.mask("mask", ignore=IGNORE), "x": penstock.image("image", ops)},
                               seed=case, reading=penstock.Reading(kernels=["auto", "c"][case % 2])) as loader:
                    for batch in loader:
                        i = int(batch.sample_ids[0])
                        want = expected(masks[i], ops, IGNORE, np.uint8, seed=case, sample_id=i)
                        np.testing.assert_array_equal(batch["mask"][0], want, str(i))
                        n_filled += int((want == IGNORE).sum())
        self.assertGreater(n_filled, 1000)

    def test_masks_of_16_bits_and_wide_dtypes(self):
        optional("torchvision.transforms.functional")
        rng = np.random.default_rng(4)
        masks = [rng.integers(0, [200, 60000][i % 2], (int(rng.integers(5, 50)), int(rng.integers(5, 50))),
                              ["u1", "u2"][i % 2]) for i in range(6)]
        self.pack([m if i % 3 else png(m) for i, m in enumerate(masks)],
                  images=[np.zeros((*m.shape, 3), np.uint8) for m in masks])
        for case in range(60):
            ops, ignore = any_list(rng), [65535, 255, 300][case % 3]
            dtype = ["uint16", "int32", "int64", "float32"][case % 4]
            with self.subTest(case, ops=ops, dtype=dtype, ignore=ignore):
                with self.load({"mask": penstock.mask("mask", ignore=ignore, dtype=dtype),
                                "x": penstock.image("image", ops)}, seed=case) as loader:
                    for batch in loader:
                        i = int(batch.sample_ids[0])
                        want = expected(masks[i].astype("u2"), ops, ignore, dtype, seed=case, sample_id=i)
                        self.assertEqual(batch["mask"].dtype, np.dtype(dtype))
                        np.testing.assert_array_equal(batch["mask"][0], want, str(i))
        with self.load({"mask": penstock.mask("mask"), "x": penstock.image("image", [Resize((8, 8))])}) as loader:
            found = self.assert_says("samples of 16 bits, which the dtype of output 'mask' does not hold; set one that does",
                                     list, loader)
            self.assertNotIsInstance(found, penstock.CorruptRecordError)

    def test_masks_turn_with_their_image(self):
        image = optional("PIL.Image")
        mask = np.arange(20 * 30, dtype=np.uint8).reshape(20, 30) % 200
        turns = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270",
                 7: "TRANSVERSE", 8: "ROTATE_90"}
        files = []
        for orientation in range(1, 9):
            exif, file = image.Exif(), io.BytesIO()
            exif[0x0112] = orientation
            image.new("RGB", (30, 20)).save(file, "JPEG", exif=exif)
            files.append(file.getvalue())
        self.pack([mask] * 8, images=files)
        ops = [RandomResizedCrop((17, 13)), RandomFlip(0.5), RandomRotation(30)]
        outputs = {"x": penstock.image("image", ops, exif_orientation=True), "y": penstock.image("image", ops),
                   "turned": penstock.mask("mask", follows="x"), "mask": penstock.mask("mask", follows="y")}
        with self.load(outputs, seed=5) as loader:
            for batch in loader:
                i = int(batch.sample_ids[0])
                turn = getattr(image.Transpose, turns[i + 1]) if i else None
                for name, by in (("turned", turn), ("mask", None)):
                    want = expected(mask, ops, IGNORE, np.uint8, by, seed=5, sample_id=i)
                    np.testing.assert_array_equal(batch[name][0], want, f"{name} {i + 1}")

    def test_follows_names_an_image(self):
        mask = np.zeros((20, 30), np.uint8)
        with penstock.Writer(self.path(), {"a": "image", "b": "image", "mask": penstock.Mask(of="a"),
                                           "n": "int64"}) as writer:
            writer.add(a=np.zeros((20, 30, 3), np.uint8), b=np.zeros((20, 30, 3), np.uint8), mask=mask, n=1)
        ops = [Resize((8, 8))]
        x = penstock.image("a", ops)
        for words, outputs in (
                ("there is no image output of field 'a' to follow", {"y": penstock.image("b", ops)}),
                ("there are 2 image outputs of field 'a'", {"x": x, "z": x}),
                ("value is 'nobody'; must be the name of an image output", {"x": x, "follows": "nobody"}),
                ("output 'n' is not an image", {"x": x, "n": "n", "follows": "n"}),
                ("output 'y' is of another image; field 'mask' belongs to 'a'",
                 {"x": x, "y": penstock.image("b", ops), "follows": "y"})):
            follows = outputs.pop("follows", None)
            self.assert_says([words, "mask"], self.load, {"mask": penstock.mask("mask", follows=follows), **outputs})
        self.assert_says("mask.ignore: value is 256; must be from 0 to 255", penstock.mask, "mask", ignore=256)
        self.assert_says("write 255, and ignore_index=255 of the loss", penstock.mask, "mask", ignore=-100)
        self.assert_says("mask.follows: value is 3", penstock.mask, "mask", follows=3)
        self.assert_says("must be penstock.mask('mask')", self.load, {"x": penstock.image("mask", ops)})
        self.assertEqual(repr(penstock.mask("m", follows="x")), "mask('m', dtype='uint8', ignore=255, follows='x')")

    def test_a_mask_of_another_size_is_refused(self):
        image = np.zeros((20, 30, 3), np.uint8)
        self.assert_says("the mask has 21 x 31 pixels; must have 30 x 20", self.pack,
                         [np.zeros((31, 21), np.uint8)], images=[image])  # so none gets into a data set

    def test_bytes_do_not_depend_on_threads(self):
        rng = np.random.default_rng(6)
        masks = [rng.integers(0, 20, (int(rng.integers(5, 50)), int(rng.integers(5, 50))), "u1") for _ in range(40)]
        self.pack([png(m) for m in masks], images=[np.zeros((*m.shape, 3), np.uint8) for m in masks])
        outputs = {"x": penstock.image("image", [RandomResizedCrop(16), RandomRotation(30)]),
                   "mask": penstock.mask("mask")}
        found = []
        for n_threads in (1, 2, 5):
            with self.load(outputs, batch_size=7, n_threads=n_threads, seed=1) as loader:
                found.append([batch["mask"].tobytes() for batch in loader])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])


if __name__ == "__main__":
    unittest.main()
