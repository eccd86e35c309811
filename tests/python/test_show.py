# SPDX-License-Identifier: Apache-2.0
"""penstock.show: what a loader will deliver, as a picture, and the loader stays where it is."""

import dataclasses
import subprocess
import sys

import penstock
from data_fixture import Case, image_file, np, optional, picture
from penstock.ops import CenterCrop, Normalize, RandomFlip, RandomResizedCrop, Resize
from penstock.sheet import COLOURS

optional("PIL.Image")
GAP, LINE = 4, 14


class Show(Case):
    def setUp(self):
        super().setUp()
        with penstock.Writer(self.path(), {"image": "image", "cls": "int64"}, names=["cat", "d\u0151g"]) as w:
            for i in range(30):
                w.add(image=image_file(i) if i % 2 else picture(i), cls=i % 3)

    def tiles(self, sheet, side, columns, n):
        """Return the pictures, by where they must be."""
        pixels = np.array(sheet)
        places = [(i // columns * (side + LINE + GAP), i % columns * (side + GAP)) for i in range(n)]
        return [pixels[top : top + side, left : left + side] for top, left in places]

    def test_a_loader_shows_what_it_delivers_next_and_does_not_move(self):
        for rank, world in ((0, 1), (1, 3)):
            loader = penstock.Loader(
                self.path(),
                batch_size=4,
                seed=5,
                ranks=penstock.Ranks(rank, world),
                framework="numpy",
                outputs={
                    "x": penstock.image(
                        "image",
                        [RandomResizedCrop(32), RandomFlip(), Normalize()],
                        dtype="float32",
                        layout="nchw",
                    )
                },
            )
            plain = penstock.Loader(
                self.path(),
                batch_size=4,
                seed=5,
                ranks=penstock.Ranks(rank, world),
                framework="numpy",
                outputs={"x": penstock.image("image", [RandomResizedCrop(32), RandomFlip()])},
            )
            with loader, plain:
                batches, others = iter(loader), iter(plain)
                next(batches), next(others)
                state = loader.state_dict()
                sheet = penstock.show(loader, 4, columns=3)
                self.assertEqual(loader.state_dict(), state)
                self.assertEqual(sheet.size, (3 * 36 - GAP, 2 * (32 + LINE + GAP) - GAP))
                wanted = next(others)
                for tile, row in zip(self.tiles(sheet, 32, 3, 4), wanted["x"]):
                    np.testing.assert_array_equal(tile, row)
                self.assertEqual(next(batches).sample_ids, wanted.sample_ids)

    def test_at_the_end_of_an_epoch_a_loader_shows_the_next(self):
        with penstock.Loader(
            self.path(),
            batch_size=10,
            framework="numpy",
            outputs=[penstock.image("image", [RandomResizedCrop(32)])],
        ) as loader:
            for batch in loader:
                pass
            sheet = penstock.show(loader, 4)
            del batch
            for tile, row in zip(self.tiles(sheet, 32, 2, 4), next(iter(loader))["image"]):
                np.testing.assert_array_equal(tile, row)

    def open(self, **settings):
        outputs = {"x": penstock.image("image", [RandomResizedCrop(16), RandomFlip()])}
        return penstock.Loader(
            self.path(), batch_size=4, seed=3, outputs=outputs, framework="numpy", device=penstock.Device(copy=True), **settings
        )

    def test_a_loader_goes_on_as_if_nothing_was_shown(self):
        def batches(look):
            """Yield all that three loops over a loader see, the first of them left early."""
            with self.open(last_batch="short") as loader:
                look(loader)
                for early in (True, False, False):
                    for batch in loader:
                        yield batch.epoch, batch.sample_ids, batch["x"].tobytes()
                        look(loader)
                        if early and batch.index == 1:
                            break
                    look(loader)

        shown = list(batches(lambda loader: penstock.show(loader, 2)))
        self.assertEqual(shown, list(batches(lambda loader: None)))
        self.assertEqual([epoch for epoch, _, _ in shown], [0] * 2 + [1] * 8 + [2] * 8)

    def test_after_a_break_a_loader_shows_where_its_state_goes_on(self):
        with self.open() as loader, self.open() as other:
            for _ in loader:
                break
            sheet = penstock.show(loader, 4, columns=4)
            other.load_state_dict(loader.state_dict())
            for tile, row in zip(self.tiles(sheet, 16, 4, 4), next(iter(other))["x"]):
                np.testing.assert_array_equal(tile, row)

    def test_samples_that_a_loader_drops_are_not_shown(self):
        for last, n in (("drop", 4), ("short", 6)):  # shown, from 30 samples
            with self.open(last_batch=last) as loader:
                loader.seek(0, 24)
                self.assertEqual(penstock.show(loader, 9, columns=9).size[0], n * (16 + GAP) - GAP)

    def detection(self):
        """Return the path of a data set with a box, a triangle and a label in each image."""
        path = self.path("detection")
        schema = {"jpg": "image", "boxes": penstock.Boxes(of="jpg", rows="objects"),
                  "labels": penstock.Field("int64", (None,), rows="objects"),
                  "corners": penstock.Polygons(rows="corners"),
                  "n": penstock.Field("uint32", (None,), splits="corners")}
        with penstock.Writer(path, schema) as writer:
            for i in range(8):
                writer.add(jpg=image_file(i), boxes=np.array([[3, 4, 40, 30]], np.float32), labels=[i],
                           corners=[[30, 10], [50, 10], [40, 25]], n=[3])
        return path

    def assert_boxed(self, tile, colours=COLOURS):
        """At least 10 pixels have one of these colours; without colours none has one of any box."""
        found = sum((np.array(tile) == colour).all(axis=2).sum() for colour in colours or COLOURS)
        self.assertEqual(found >= 10 if colours else found == 0, True, found)

    def test_outputs_that_follow_an_image_are_drawn_in_it(self):
        ops = [penstock.ops.RandomIoUCrop(), Resize((64, 64)), penstock.ops.ToFloat()]
        path = self.detection()
        for settings in ({}, dict(form="cxcywh", coordinates="unit", bytes_per_batch=32)):
            outputs = {"x": penstock.image("jpg", ops), "boxes": penstock.boxes("boxes", **settings),
                       "labels": penstock.per_box("labels"), "corners": penstock.polygons("corners", boxes=False),
                       "n": penstock.ragged("n")}
            with penstock.Loader(path, batch_size=2, outputs=outputs, framework="numpy", seed=3) as loader:
                tiles = self.tiles(penstock.show(loader, 2), 64, 2, 2)
                self.assertTrue((np.array(tiles) == (255, 255, 0)).all(axis=3).any())
                batch = next(iter(loader))
                for tile, (left, _, right, bottom), label in zip(
                        tiles, [batch["boxes"][i][0] for i in range(2)], [int(batch["labels"][i][0]) for i in range(2)]):
                    if not settings:
                        at = tile[min(int(bottom), 63), int(left + right) // 2].tolist()
                        self.assertEqual(at, list(COLOURS[label]))
                    self.assert_boxed(tile, [COLOURS[label]])
                del batch
        self.assert_boxed(penstock.show(path, 2, ops=ops), COLOURS[:1])
        self.assert_boxed(penstock.show(path, 2, ops=ops), COLOURS[1:2])
        with penstock.Loader(path, batch_size=2, framework="numpy",
                             outputs={"x": penstock.image("jpg", ops[1:])}) as loader:
            self.assert_boxed(penstock.show(loader, 2), ())
        self.assert_says("has no field of boxes of 'image'", penstock.show, self.path(), ops=ops)

    def test_boxes_have_the_name_of_their_class(self):
        path, ink = self.path("named"), []
        with penstock.Writer(path, {"jpg": "image", "boxes": penstock.Boxes(of="jpg", rows="objects"),
                                    "labels": penstock.Field("int64", (None,), rows="objects")},
                             names=["i", "ii", "i" * 99]) as writer:
            for label in range(4):  # the last one has no name
                writer.add(jpg=np.full((90, 90, 3), 128, "uint8"), boxes=np.array([[10, 30, 60, 80]], np.float32),
                           labels=[label])
        sheet = np.array(penstock.show(path, ops=[Resize((90, 90))], columns=4))
        for i in range(4):
            tile = sheet[:90, i * 94 : i * 94 + 90]
            name = tile[16:30, 10:]  # above the box
            ground = np.flatnonzero((name == COLOURS[i]).all(axis=2).any(axis=0))
            self.assertEqual(ground[0], 0)
            self.assertTrue((name[:, : ground[-1]] != COLOURS[i]).any(), "its letters")
            self.assertEqual(tile[79, 40].tolist(), list(COLOURS[i]))
            ink.append(ground[-1])
        self.assertTrue(ink[0] < ink[1] < ink[2] <= 50, ink)

    def test_an_image_id_is_no_class(self):
        """A pack of COCO has it as its only integer; names[image_id] would be the class of nothing."""
        def sheet(values, names=("a", "b", "c"), **keywords):
            path = self.path("numbered")
            with penstock.Writer(path, {"image": "image", **{name: "int64" for name in values}}, overwrite=True,
                                 names=list(names)) as writer:
                for i in range(2):
                    writer.add(image=picture(i), **{name: value for name, value in values.items()})
            with penstock.Dataset(path) as dataset:
                return [np.array(penstock.show(source, 2, columns=2, **keywords)).tolist() for source in (dataset, path)]
        self.assertEqual(sheet({"image_id": 1}), sheet({}))
        self.assertEqual(sheet({"image_id": 1}, label="image_id"), sheet({"image_id": 1}, "1111", label="image_id"))
        self.assertEqual(sheet({"image_id": 1, "age": 2}), sheet({"age": 2}))
        self.assertEqual(sheet({"height": 1, "cls": 2}), sheet({"cls": 2}))
        self.assertNotEqual(sheet({"cls": 2}), sheet({}))
        self.assertEqual(sheet({"fold": 1, "label": 2}), sheet({"label": 2}))
        self.assertEqual(sheet({"user_id": 1, "class": 2}), sheet({"class": 2}))
        self.assertEqual(sheet({"fold": 1, "height": 2}), sheet({}))

    def test_the_field_jpg_is_shown_before_others(self):
        path = self.path("two")
        with penstock.Writer(path, {"depth": "image", "jpg": "image"}) as writer:
            writer.add(depth=picture(0), jpg=picture(1))
        with penstock.Dataset(path) as dataset, penstock.Dataset(path, ["depth"]) as few:
            for source in (dataset, path):
                shown = [np.array(penstock.show(source, 1, **more)).tolist() for more in ({}, {"field": "jpg"}, {"field": "depth"})]
                self.assertEqual(shown[0], shown[1])
                self.assertNotEqual(shown[0], shown[2])
            self.assertEqual(np.array(penstock.show(few, 1)).tolist(), np.array(penstock.show(dataset, 1, field="depth")).tolist())
            self.assert_says("did you mean 'depth'", penstock.show, few, field="deph")
            self.assert_says("has no image field 'jpg'", penstock.show, few, field="jpg")

    def test_erasing_after_normalize_is_shown(self):
        for value, colour in ((0, [124, 116, 104]), ("random", None), ((1.0, 1.0, 1.0), [182, 173, 161])):
            ops = [Resize((32, 32)), Normalize(), penstock.ops.RandomErasing(1, value=value)]
            outputs = {"x": penstock.image("image", ops, dtype="float16")}
            with penstock.Loader(self.path(), batch_size=2, outputs=outputs, framework="numpy") as loader:
                drawn = np.array(penstock.show(loader, 2))
                self.assertTrue(colour is None or (drawn == colour).all(axis=2).any())

    def test_mosaics_are_shown(self):
        path = self.detection()
        outputs = {"x": penstock.image("jpg", [Resize((64, 64))])}
        for world, rows in ((1, {"batch_size": 4}), (2, {"batch_size": penstock.GlobalBatch(7, uneven=True)})):
            settings = dict(**rows, framework="numpy", seed=2, ranks=penstock.Ranks(0, world), last_batch="short",
                            device=penstock.Device(copy=True))
            with penstock.Loader(path, outputs=outputs, mix=penstock.Mosaic(), **settings) as loader:
                sheet = penstock.show(loader, 6, columns=6)
                rows = [row for batch in loader for row in batch["x"][:batch.n_valid]][:6]
                tiles = [np.array(sheet)[:64, i * 68 : i * 68 + 64] for i in range(len(rows))]
                np.testing.assert_array_equal(tiles, rows)
            boxed = {**outputs, "boxes": penstock.boxes("boxes")}
            with penstock.Loader(path, outputs=boxed, mix=penstock.Mosaic(), **settings) as loader:
                self.assert_boxed(penstock.show(loader, 2))

    def test_a_path_shows_samples_as_a_loader_augments_them(self):
        ops = [Resize(24), CenterCrop(20)]
        ids = [7, 2, 29]
        sheet = penstock.show(self.path(), ids=ids, ops=ops, columns=3)
        with penstock.Loader(
            self.path(),
            batch_size=30,
            shuffle=False,
            framework="numpy",
            outputs=[penstock.image("image", ops)],
        ) as loader:
            rows = next(iter(loader))["image"]
            for tile, i in zip(self.tiles(sheet, 20, 3, 3), ids):
                np.testing.assert_array_equal(tile, rows[i])
        self.assertEqual(penstock.show(self.path()).size, (4 * 228 - GAP, 4 * (224 + LINE + GAP) - GAP))
        self.assertEqual(penstock.show(self.path(), 1).size, (224, 224 + LINE))

    def test_a_data_set_shows_whole_images(self):
        sheet = np.array(penstock.show(penstock.Dataset(self.path())[4:6], columns=2))
        self.assertEqual(sheet.shape, (224 + LINE, 2 * 228 - GAP, 3))
        top, left = (224 - 40) // 2, (224 - 56) // 2
        np.testing.assert_array_equal(sheet[top : top + 40, left : left + 56], picture(4))

    def test_a_batch_shows_its_pixels(self):
        images = np.stack([picture(i) for i in range(3)])
        images[0, 0, :2] = [[0], [255]]  # so that stretching floats to their range gives the same
        sheet = np.array(penstock.show({"x": images, "y": np.arange(3)}, columns=3))
        np.testing.assert_array_equal(sheet[:, 60:116], images[1])
        floats = np.array(penstock.show({"x": (images / 127.5 - 1).transpose(0, 3, 1, 2)}, columns=3))
        self.assertLessEqual(np.abs(floats.astype(int) - sheet).max(), 2)
        self.assert_says("source: value is a batch; must have images", penstock.show, {"y": np.arange(3)})
        torch = optional("torch")
        again = penstock.show({"x": torch.from_numpy(images).permute(0, 3, 1, 2)}, columns=3)
        np.testing.assert_array_equal(np.array(again), sheet)

    def test_a_batch_of_any_form_shows_its_pixels(self):
        @dataclasses.dataclass
        class Mine:
            y: object
            x: object

        images, numbers = np.stack([picture(i) for i in range(3)]), np.arange(3)
        wanted = np.array(penstock.show({"x": images}))
        for batch in ((numbers, images), [numbers, images], Mine(numbers, images)):
            np.testing.assert_array_equal(np.array(penstock.show(batch)), wanted)
        np.testing.assert_array_equal(np.array(penstock.show((numbers, images), field="1")), wanted)
        for form, name in (("tuple", "0"), ("dataclass", "x")):
            with self.open(form=form) as loader:
                batch = next(iter(loader))
            self.assertEqual(penstock.show(batch, 2, columns=2, field=name).size, (2 * 16 + GAP, 16))
        self.assert_says("source: value is a batch; must have images", penstock.show, (1, 2))

    def test_images_of_few_rows_or_columns_lie_as_their_output_says(self):
        sides = [(h, w) for h in (1, 3, 4, 6) for w in (1, 3, 4, 6)]
        kinds = [(layout, side) for layout in ("nhwc", "nchw", "channels_last") for side in sides]
        for channels in (1, 3, 4):
            outputs = {
                f"{i}": penstock.image(
                    "image", [Resize((h, w))], layout=layout, channels=channels
                )
                for i, (layout, (h, w)) in enumerate(kinds[::-1], -1)  # names that are other outputs' numbers
            }
            for form in ("dict", "tuple"):
                with penstock.Loader(
                    self.path(), batch_size=2, outputs=outputs, framework="numpy", form=form, device=penstock.Device(copy=True)
                ) as loader:
                    batch = next(iter(loader))
                    found = dict(zip(outputs, batch if form == "tuple" else batch.values()))
                    for i, (name, array) in enumerate(found.items()):
                        rows = array if outputs[name].layout == "nhwc" else array.transpose(0, 2, 3, 1)
                        wanted = np.concatenate([rows[0], rows[1]])[..., :3]
                        field = str(i) if form == "tuple" else name
                        with self.subTest(channels=channels, form=form, output=name):
                            sheet = np.array(penstock.show(batch, 2, columns=1, field=field))
                            height, width = rows.shape[1:3]
                            self.assertEqual(sheet.shape, (2 * height + GAP, width, 3))
                            both = np.concatenate([sheet[:height], sheet[-height:]])
                            np.testing.assert_array_equal(both, np.broadcast_to(wanted, both.shape))

    def test_a_loader_shows_images_of_few_rows_upright(self):
        for h, w in ((3, 16), (4, 16), (1, 16), (16, 3)):
            for channels in (1, 3, 4):
                for layout in ("nhwc", "nchw"):
                    ops = [Resize((h, w))]
                    output = penstock.image("image", ops, layout=layout, channels=channels)
                    with penstock.Loader(
                        self.path(), batch_size=2, outputs=[output], framework="numpy"
                    ) as loader:
                        sheet = penstock.show(loader, 2, columns=2)
                        self.assertEqual(sheet.size, (2 * w + GAP, h + LINE))

    def test_the_layout_of_a_foreign_batch_is_given_where_its_shape_leaves_it_open(self):
        gray = np.arange(2 * 3 * 9, dtype="u1").reshape(2, 3, 9, 1)  # NHWC: 3 rows of gray
        words = ["'x' has the shape (2, 3, 9, 1)", "layout='nhwc' or 'nchw'"]
        self.assert_says(words, penstock.show, {"x": gray})
        sheet = np.array(penstock.show({"x": gray}, layout="nhwc", columns=1))
        np.testing.assert_array_equal(sheet[:3], np.repeat(gray[0], 3, axis=2))
        sheet = np.array(penstock.show({"x": gray}, layout="nchw", columns=1))
        np.testing.assert_array_equal(sheet[:9], gray[0].transpose(1, 2, 0))
        self.assertEqual(penstock.show({"x": gray.reshape(2, 9, 3, 1)}, columns=1).size, (3, 2 * 9 + GAP))
        self.assert_says("layout: value is 'hwc'; must be", penstock.show, {"x": gray}, layout="hwc")
        self.assert_says("layout='nchw': 'x' has the shape", penstock.show, {"x": gray[:, :2]}, layout="nchw")
        self.assert_says("layout: value is 'nhwc'; must be None, except for a batch", penstock.show, self.path(), layout="nhwc")

    def test_a_loader_without_images_is_sent_to_its_data_set(self):
        with penstock.Loader(self.path(), batch_size=2, framework="numpy", outputs=["cls"]) as loader:
            self.assert_says("penstock.show(loader.dataset)", penstock.show, loader)
            self.assertGreater(penstock.show(loader.dataset, 1).width, 0)

    def test_wrong_arguments_of_show_are_named(self):
        for arguments, keywords, words in [
            ([self.path()], dict(field="imag"), "did you mean 'image'"),
            ([self.path()], dict(label="key"), "cls"),
            ([self.path()], dict(ids=[30]), "0 to 29"),
            ([self.path()], dict(ids=[]), "empty"),
            ([self.path()], dict(ids=5), "ids: value is 5; must be a list"),
            ([self.path()], dict(colums=2), "did you mean 'columns'?"),
            ([self.path()], dict(nrow=2), "penstock.show has no argument 'nrow': columns="),
            ([self.path(), 4, [1]], {}, "takes source, n by position"),
            ([self.path(), 0], {}, "n: value is 0; must be"),
            ([{"x": np.zeros((1, 2, 2, 3))}], dict(ids=[1]), "path or a Dataset"),
            ([5], {}, "source: value is an int; must be a Loader"),
            ([penstock.Dataset(self.path())], dict(ops=[Resize((8, 8))]), "of a Dataset give dataset.path"),
            ([{"x": np.zeros((1, 2, 2, 3))}], dict(ops=[Resize((8, 8))]), "ops: value is a list of operations; must be None"),
            ([{"x": np.zeros((1, 2, 2, 3))}], dict(label="cls"), "label: value is 'cls'; must be None for a batch"),
        ]:
            self.assert_says(words, penstock.show, *arguments, **keywords)

    def test_pillow_is_named_where_it_is_missing(self):
        code = (
            "import sys; sys.modules['PIL'] = sys.modules['PIL.Image'] = None\nimport penstock\n"
            "try: penstock.show(sys.argv[1])\nexcept ImportError as e: print(e)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, self.path()], capture_output=True, text=True, check=False
        )
        self.assertIn("pip install pillow", done.stdout, done.stderr)
