# SPDX-License-Identifier: Apache-2.0
"""penstock.recipes: lists that do what the reference scripts do, views of one image, and pictures of both."""

import subprocess
import sys

import penstock
from data_fixture import Case, image_file, np, optional
from penstock import recipes


class Recipes(Case):
    def setUp(self):
        super().setUp()
        with penstock.Writer(self.path(), {"jpg": "image", "cls": "int64", "boxes": penstock.Boxes(of="jpg")}) as writer:
            for i in range(6):
                writer.add(jpg=image_file(i), cls=i, boxes=np.array([[3, 4, 20 + i, 30]], np.float32))

    def rows(self, outputs, **settings):
        with penstock.Loader(self.path(), outputs=outputs, batch_size=6, order="sequential", framework="numpy",
                             device=penstock.Device(copy=True), **settings) as loader:
            return dict(next(iter(loader)))

    def test_every_recipe_runs(self):
        for name in recipes.names():
            with self.subTest(name):
                found = recipes.find(name)
                outputs = recipes.views("jpg", found, dtype="float32", layout="nchw")
                if name == "ssd":
                    outputs["boxes"] = penstock.boxes("boxes")
                rows = self.rows(outputs)
                self.assertEqual(list(rows), list(outputs))
                self.assertTrue(all(np.isfinite(rows[view]).all() for view in found))

    def test_evaluation_is_that_of_the_weights(self):
        models = optional("torchvision.models")
        image = optional("PIL.Image")
        weights = {"resnet50-v1": models.ResNet50_Weights.IMAGENET1K_V1,
                   "resnet50-v2": models.ResNet50_Weights.IMAGENET1K_V2,
                   "mobilenet-v3-large": models.MobileNet_V3_Large_Weights.IMAGENET1K_V1,
                   "efficientnet-v2-m": models.EfficientNet_V2_M_Weights.IMAGENET1K_V1,
                   "vit-b-16": models.ViT_B_16_Weights.IMAGENET1K_V1,
                   "vit-b-32": models.ViT_B_32_Weights.IMAGENET1K_V1}
        with penstock.Dataset(self.path(), decode=True) as dataset:
            pixels = [dataset[i]["jpg"] for i in range(6)]
        for name, its in weights.items():
            with self.subTest(name):
                ops = recipes.torchvision(name, train=False)
                rows = self.rows({"x": penstock.image("jpg", ops, layout="nchw")})["x"]
                preset = its.transforms()
                for row, pixel in zip(rows, pixels):
                    self.assertTrue(np.array_equal(row, preset(image.fromarray(pixel)).numpy()))

    def test_a_recipe_is_a_list_to_change(self):
        ops = recipes.torchvision("resnet50-v2")
        ops.insert(2, penstock.ops.RandomGrayscale(1.0))
        rows = self.rows({"x": penstock.image("jpg", ops[:-2])})["x"]
        self.assertEqual(rows.shape, (6, 176, 176, 3))
        self.assertIsNot(recipes.torchvision("resnet50-v2"), ops)

    def test_views_draw_their_own_and_one_decode_is_enough(self):
        ops = [penstock.ops.RandomResizedCrop(32)]
        rows = self.rows(recipes.views("jpg", [ops] * 3))
        self.assertEqual(list(rows), ["view_0", "view_1", "view_2"])
        self.assertFalse(np.array_equal(rows["view_0"], rows["view_1"]))
        alone = self.rows({"x": penstock.image("jpg", ops, random_group=2)})["x"]
        self.assertTrue(np.array_equal(rows["view_2"], alone))

    def test_one_crop_at_two_sizes(self):
        small, large = ([penstock.ops.RandomResizedCrop(side)] for side in (32, 64))
        outputs = {"small": penstock.image("jpg", small), "large": penstock.image("jpg", large)}
        with penstock.Loader(self.path(), outputs=outputs, batch_size=6, framework="numpy",
                             observe=penstock.Observe(report_crops=True)) as loader:
            batch = next(iter(loader))
            for a, b in zip(batch.crops["small"], batch.crops["large"]):
                self.assertEqual(a, b)

    def test_dino_has_ten_views_with_the_scripts_chances(self):
        found = recipes.dino()
        self.assertEqual(len(found), 10)
        blurs = [[op.p for op in ops if isinstance(op, penstock.ops.RandomApply)
                  and isinstance(op.transforms[0], penstock.ops.GaussianBlur)] for ops in found.values()]
        self.assertEqual(blurs, [[], [0.9], *[[0.5]] * 8])

    def test_a_timm_recipe_has_its_parts(self):
        ops = recipes.timm(192, True, auto_augment="rand-m9-mstd0.5-inc1", interpolation="random", re_prob=0.25,
                           re_mode="pixel", re_count=2)
        self.assertEqual([type(op).__name__ for op in ops],
                         ["RandomResizedCrop", "RandomFlip", "TimmRandAugment", "Normalize", "RandomErasing"])
        self.assertEqual((ops[2].fill[:3], ops[-1].value, ops[-1].count), ((124, 116, 104), "random", (1, 2)))
        timm = optional("timm.data")
        theirs = timm.create_transform(192, is_training=True, auto_augment="rand-m9-mstd0.5-inc1",
                                       interpolation="random", re_prob=0.25, re_mode="pixel", re_count=2)
        self.assertEqual([type(op).__name__ for op in theirs.transforms],
                         ["RandomResizedCropAndInterpolation", "RandomHorizontalFlip", "RandAugment", "MaybeToTensor",
                          "Normalize", "RandomErasing"])
        self.assertEqual(theirs.transforms[2].ops[0].hparams["img_mean"], ops[2].fill[:3])

    def test_wrong_names(self):
        for call, says in ((lambda: recipes.find("dinno"), "did you mean 'dino'"),
                           (lambda: recipes.torchvision("resnet50"), "did you mean"),
                           (lambda: recipes.dino(local_crops_number=63), "from 0 to 62"),
                           (lambda: recipes.timm(224, crop_mode="border"), "timm.crop_mode"),
                           (lambda: penstock.show(self.path(), recipe="mae", ops=[]), "without ops"),
                           (lambda: penstock.show(self.path(), recipe="mae", ids=[1, 2]), "must have one with recipe=")):
            with self.assertRaisesRegex(ValueError, says):
                call()


    def test_a_list_of_operations_is_no_name(self):
        for given in (recipes.dino(), recipes.mae()):
            for call in (recipes.find, lambda recipe: penstock.show(self.path(), recipe=recipe)):
                with self.assertRaisesRegex(TypeError, "must be the name of a recipe") as raised:
                    call(given)
                self.assertLess(len(str(raised.exception)), 160)
        self.assertIn("as ops=", str(raised.exception))


class Show(Case):
    def test_a_recipe_that_needs_boxes_says_so(self):
        optional("PIL.Image")
        with penstock.Writer(self.path(), {"jpg": "image"}) as writer:
            writer.add(jpg=image_file(1))
        self.assert_says(["no field of boxes of 'jpg'", "choose another recipe"], penstock.show, self.path(),
                         recipe="ssd")

    def test_boxes_and_masks_are_drawn_in(self):
        optional("PIL.Image")
        mask = np.zeros((40, 56), np.uint8)
        mask[:20] = 3
        with penstock.Writer(self.path(), {"jpg": "image", "boxes": penstock.Boxes(of="jpg"),
                                           "mask": penstock.Mask(of="jpg")}) as writer:
            writer.add(jpg=image_file(1), boxes=np.array([[10, 5, 40, 35]], np.float32), mask=mask)
        pixels = np.asarray(penstock.show(self.path(), 2, recipe="ssd", columns=2))
        red = (pixels == (255, 0, 0)).all(axis=2)
        self.assertTrue(red[:, :224].any())
        scale, top = 224 / 56, (224 - 160) // 2  # scale and top of the whole image
        self.assertTrue(red[top + round(5 * scale), round(12 * scale)])

    def test_keypoints_and_polygons_are_drawn_in(self):
        optional("PIL.Image")
        with penstock.Writer(self.path(), {
                "jpg": "image", "points": penstock.Keypoints(3), "corners": penstock.Polygons(rows="corners"),
                "n": penstock.Field("uint32", (None,), splits="corners")}) as writer:
            writer.add(jpg=image_file(1), points=[[[10, 5, 2], [20, 30, 1], [40, 30, 0]]],
                       corners=[[30, 10], [50, 10], [40, 25], [5, 20], [15, 20], [10, 35]], n=[3, 3])
        pixels = np.asarray(penstock.show(self.path(), 2, recipe="mae", columns=2))[:, :224]
        scale, top = 224 / 56, (224 - 160) // 2  # scale and top of the whole image

        def at(x, y):
            return pixels[top + round(y * scale), round(x * scale)].tolist()
        self.assertEqual([at(10, 5), at(20, 30)], [[0, 255, 0], [0, 96, 255]])
        self.assertEqual([at(40, 10), at(10, 20)], [[255, 255, 0]] * 2)  # tops of both triangles
        self.assertNotEqual(at(27, 14), [255, 255, 0])  # nothing joins them
        self.assertNotIn(at(40, 30), ([0, 255, 0], [0, 96, 255]))

    def test_the_command_draws_one_sample_and_its_augmentations(self):
        image = optional("PIL.Image")
        with penstock.Writer(self.path(), {"jpg": "image"}) as writer:
            writer.add(jpg=image_file(1))
        out = self.path("sheet.png")

        def show(*arguments):
            return subprocess.run([sys.executable, "-m", "penstock", "show", *arguments], capture_output=True, text=True)
        done = show(self.path(), "--recipe", "dino", "-o", out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("sample 0 and 15 augmentations by dino", done.stdout)
        with image.open(out) as sheet:
            self.assertEqual(sheet.width, 4 * (224 + 4) - 4)
        done = subprocess.run([sys.executable, "-m", "penstock", "show", self.path(), "--recipe=dino", "-o", "-"],
                              capture_output=True, cwd=self.path())
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(out, "rb") as sheet:
            self.assertEqual(done.stdout, sheet.read())
        taken = "it takes DATA, --recipe, --ids, --seed and --output"
        for more in (["--size", "96"], ["--json"], ["--epoch=2"]):
            done = show(self.path(), "--recipe", "mae", *more)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"does not take the option {more[0].partition('=')[0]}; {taken}", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        for arguments, status, says in (((self.path(), "--recipe", "mae", "-o", "x.jpg"), 2, "PNG file, as x.png"),
                                        ((self.path(), "--recipe", "nothing"), 2, "must be the name of a recipe"),
                                        ((self.path("none"), "--recipe=mae"), 1, "no such"),
                                        ((self.path(), "--recipe", "mae", "--ids", "7"), 2, "from 0 to 0"),
                                        ((self.path(), "--recipe", "mae", "--ids", "0..3"), 2, "one sample is shown")):
            done = show(*arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(says, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    import unittest

    unittest.main()
