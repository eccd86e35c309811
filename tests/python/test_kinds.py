# SPDX-License-Identifier: Apache-2.0
"""Kinds of fields for what belongs to images, and lists: they come back as they were given, and records whose fields
do not belong together are refused."""

import io
import json
import os
import pathlib
import pickle
import subprocess
import typing
import unittest

import penstock
import sets
from data_fixture import Case, image_file, np, optional
from penstock import Boxes, Field, Keypoints, Polygons, Rle
from penstock.packing.schema import schema_of
from penstock.packing.values import FieldError

COCO = {
    "image": "image",
    "boxes": Boxes(form="xywh", rows="objects"),
    "labels": Field("int64", (None,), rows="objects"),
    "crowd": Field("uint8", (None,), rows="objects"),
    "object_polygons": Field("uint32", (None,), rows="objects", splits="polygons"),
    "polygon_points": Field("uint32", (None,), rows="polygons", splits="points"),
    "points": Polygons(rows="points", codec="zstd"),
    "object_runs": Field("uint32", (None,), rows="objects", splits="runs"),
    "runs": Rle(rows="runs"),
    "masks": Field("mask_list", rows="objects"),
    "captions": ["utf8"],
}


def png_of(array):
    """Return a gray PNG file."""
    image = optional("PIL.Image")
    file = io.BytesIO()
    image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def coco(n=3):
    """Return two objects with polygons, of which the first has two, and a crowd with runs; the first n of them."""
    masks = np.arange(3 * 4 * 6).reshape(3, 4, 6) % 2
    return {
        "image": png_of(np.zeros((4, 6), "u1")),
        "boxes": np.array([[0, 0, 6, 3], [2, 1, 3.5, 2], [0, 0, 6, 4]], "f4")[:n],
        "labels": np.array([17, 1, 1])[:n],
        "crowd": np.array([0, 0, 1], "u1")[:n],
        "object_polygons": np.array([2, 1, 0], "u4")[:n],
        "polygon_points": np.array([3, 4, 3], "u4")[:(0, 2, 3, 3)[n]],
        "points": (np.arange(20).reshape(10, 2) / 4).astype("f4")[:(0, 7, 10, 10)[n]],
        "object_runs": np.array([0, 0, 3], "u4")[:n],
        "runs": np.array([1, 20, 3], "u4")[:3 if n == 3 else 0],
        "masks": list(masks.astype("u1")[:n]),
        "captions": ["a cat", "", "zwei Vögel"][:n],
    }


class Records(Case):
    def assert_same(self, found, given):
        self.assertEqual(set(found), set(given))
        for name, value in given.items():
            if isinstance(value, np.ndarray):
                self.assertEqual(found[name].dtype, value.dtype, name)
                self.assertEqual(found[name].shape, value.shape, name)
            self.assertEqual([np.asarray(x).tolist() for x in found[name]], [np.asarray(x).tolist() for x in value], name)

    def test_coco_comes_back(self):
        with penstock.Writer(self.path(), COCO) as writer:
            for n in (3, 0, 2, 1):
                writer.add(coco(n))
        with penstock.Dataset(self.path()) as dataset:
            for i, n in enumerate((3, 0, 2, 1)):
                self.assert_same(dataset[i], coco(n))
            self.assertEqual(dataset.schema, schema_of(COCO))
            self.assertEqual(pickle.loads(pickle.dumps(dataset.schema)), dataset.schema)
            self.assertEqual(dataset.schema["boxes"].of, "image")
            self.assertEqual(eval(repr(dataset.schema["boxes"]), {"Field": Field}), dataset.schema["boxes"])
            some = penstock.Dataset(self.path(), ["boxes", "masks", "object_polygons"]).schema
            self.assertEqual(some, {"boxes": Field("float32", (None, 4), rows="objects"),
                                    "masks": Field("image_list", rows="objects"),
                                    "object_polygons": Field("uint32", (None,), rows="objects")})
            again = self.path("again")
            penstock.pack(dataset, again, schema=dataset.schema)
        with penstock.Dataset(again) as dataset:
            self.assert_same(dataset[0], coco(3))
        manifest = json.loads(pathlib.Path(again, "manifest.json").read_text())
        self.assertEqual({key: manifest["fields"][1][key] for key in ("kind", "of", "rows", "form", "coordinates")},
                         {"kind": "boxes", "of": "image", "rows": "objects", "form": "xywh", "coordinates": "pixels"})

    def test_doctor_asks_for_no_class_numbers_where_images_have_boxes(self):
        command = os.environ.get("PENSTOCK_COMMAND")
        if not command:
            raise unittest.SkipTest("PENSTOCK_COMMAND names no program")
        for name, schema, level in (("plain", {"image": "image"}, "note"),
                                    ("boxes", {"image": "image", "boxes": Boxes()}, "ok")):
            with penstock.Writer(self.path(name), schema) as writer:
                writer.add({"image": np.zeros((4, 6), "u1"), "boxes": [[0, 0, 1, 1]]} if name == "boxes" else
                           {"image": np.zeros((4, 6), "u1")})
            done = subprocess.run([command, "doctor", self.path(name), "--json"], capture_output=True, check=True)
            found = json.loads(done.stdout)["data_set"]
            self.assertEqual([x["level"] for x in found if x["what"] == "labels"], [level], name)

    def test_voc_and_keypoints_come_back(self):
        classes = np.array([[0, 20, 255], [1, 1, 0]], "u1")
        voc = {"image": png_of(classes), "boxes": np.array([[1, 1, 3, 2]], "u2"), "names": ["dog"],
               "difficult": np.array([1], "u1"), "classes": [classes], "deep": [classes.astype("u2") * 257]}
        people = {"image": png_of(classes), "boxes": np.array([[.5, .5, 1, .75]], "f4"),
                  "keypoints": np.arange(51, dtype="f2").reshape(1, 17, 3) / 64}
        voc_schema = {"image": "image", "boxes": Boxes("uint16", rows="objects"), "names": Field(list[str], rows="objects"),
                      "difficult": Field("uint8", (None,), rows="objects"), "classes": ["mask"], "deep": ["mask"]}
        people_schema = {"image": "image", "boxes": Boxes(form="cxcywh", coordinates="unit", rows="people"),
                         "keypoints": Keypoints(17, "float16", coordinates="unit", rows="people")}
        for name, schema, record in (("voc", voc_schema, voc), ("people", people_schema, people)):
            with penstock.Writer(self.path(name), schema) as writer:
                writer.add(record)
            with penstock.Dataset(self.path(name)) as dataset:
                self.assert_same(dataset[0], record)

    def test_records_whose_fields_do_not_belong_together_are_refused(self):
        wrong = {
            "labels": ([1, 2], "rows: value is 2; must be 3, as field boxes has on the axis objects"),
            "captions": (["a", 1], "item 1: value is of type int; must be text"),
            "object_polygons": ([1, 1, 0], "splits: sum is 2; must be 3, the rows of field polygon_points"),
            "polygon_points": ([3, 4, 4], "splits: lengths 0 to 2"),
            "runs": ([1, 20, 4], "runs 0 to 2: sum is 25; must be 24, the pixels of field image"),
            "masks": (coco(2)["masks"], "rows: value is 2; must be 3"),
        }
        with penstock.Writer(self.path(), COCO) as writer:
            for name, (value, says) in wrong.items():
                error = self.assert_says([f"field {name}: {says}"], writer.add, {**coco(), name: value})
                self.assertIsInstance(error, FieldError)
                self.assertEqual(error.field, name)
            self.assertEqual(writer.n_samples, 0)
            writer.add(coco())


class Lists(Case):
    def test_items_of_every_kind_come_back(self):
        gray, image = np.arange(6, dtype="u1").reshape(2, 3), optional("PIL.Image")
        palette = image.fromarray(gray).convert("P")
        palette.putdata([0, 5, 2, 1, 1, 0])
        schema = {"texts": ["utf8"], "blobs": list[bytes], "images": Field(["image"]), "more": typing.List[str],
                  "masks": Field("mask_list", of="image"), "image": "image"}
        record = {"image": gray, "texts": ("a", "größe", ""), "blobs": [b"", bytearray(b"ab")], "more": [],
                  "images": [png_of(gray), gray, image.new("RGB", (3, 2), (1, 2, 3))],
                  "masks": [palette, gray > 2, np.full((2, 3), 300, "u2"), image.fromarray(gray), png_of(gray)]}
        with penstock.Writer(self.path(), schema) as writer:
            writer.add(record)
        with penstock.Dataset(self.path()) as dataset:
            found = dataset[0]
            self.assertEqual(found["texts"], ["a", "größe", ""])
            self.assertEqual((found["blobs"], found["more"]), ([b"", b"ab"], []))
            self.assertEqual(found["images"][0], png_of(gray))
            self.assertEqual(found["images"][1].tolist(), gray.tolist())
            self.assertEqual(found["images"][2].tolist(), [[[1, 2, 3]] * 3] * 2)
            self.assertEqual(found["masks"][0].tolist(), [[0, 5, 2], [1, 1, 0]])
            self.assertEqual(found["masks"][1].tolist(), [[0, 0, 0], [1, 1, 1]])
            self.assertEqual(found["masks"][2].tolist(), [[300] * 3] * 2)
            self.assertEqual(found["masks"][3].tolist(), gray.tolist())
            self.assertEqual(dataset.fields["images"].max_width, 3)
        with penstock.Dataset(self.path(), decode=True) as dataset:
            self.assertEqual([x.shape for x in dataset[0]["images"]], [(2, 3, 3)] * 3)

    def test_a_damaged_image_of_a_list_is_found_where_images_are_checked(self):
        whole, schema = image_file(0), {"images": ["image"]}
        damaged = sets.damaged_jpeg(whole)
        for settings in (dict(check_images=True), dict(damaged="accept")):
            with self.assertRaisesRegex(penstock.CorruptRecordError, "images: item 1: JPEG: .*cannot be marked"), \
                    penstock.Writer(self.path("bad"), schema, **settings) as writer:
                writer.add(images=[whole, damaged])
        with penstock.Writer(self.path("whole"), schema, check_images=True) as writer:
            writer.add(images=[whole, np.zeros((2, 3, 3), "u1")])
        with penstock.Writer(self.path("unchecked"), schema) as writer:
            writer.add(images=[damaged])

    def test_masks_that_are_files_come_back_as_class_numbers(self):
        image = optional("PIL.Image")
        given = [np.array([[0, 5, 2], [1, 1, 0]], "u1"), np.array([[0, 1, 300], [7, 65535, 2]], "u2")]
        palette, file = image.fromarray(given[0]).convert("P"), io.BytesIO()
        palette.putdata(given[0].ravel().tolist())
        palette.save(file, "PNG")
        files = [file.getvalue(), png_of(given[0]), png_of(given[1])]
        with penstock.Writer(self.path(), {"image": "image", "masks": ["mask"]}) as writer:
            writer.add(image=given[0], masks=files)
        wanted = [given[0], given[0], given[1]]
        with penstock.Loader(self.path(), batch_size=1, outputs=["masks"], last_batch="short") as loader:
            (of_batch,) = next(iter(loader))["masks"].tolist()
        for decode in (False, True):
            for found in (penstock.Dataset(self.path(), decode=decode)[0]["masks"], of_batch):
                self.assertEqual([mask.dtype for mask in found], ["u1", "u1", "u2"])
                self.assertEqual([mask.tolist() for mask in found], [mask.tolist() for mask in wanted])
                self.assertTrue(all(mask.flags.writeable for mask in found))

    def test_a_loader_gives_lists(self):
        schema = {"texts": ["utf8"], "files": ["image"], "boxes": Boxes(of="image"), "image": "image"}
        with penstock.Writer(self.path(), schema) as writer:
            for i in range(8):
                writer.add(texts=[f"{i}-{k}" for k in range(i % 3)], files=[sets.png(0)] * (i % 2), image=sets.png(0),
                           boxes=np.full((i % 4, 4), i))
        outputs = ["texts", "files", "boxes"]
        texts, files, boxes = [], [], []
        with penstock.Loader(self.path(), batch_size=4, outputs=outputs, order="sequential") as loader:
            for batch in loader:
                texts += batch["texts"].tolist()
                files += batch["files"].tolist()
                boxes += [np.asarray(row).tolist() for row in batch["boxes"]]
        self.assertEqual(texts, [[f"{i}-{k}" for k in range(i % 3)] for i in range(8)])
        self.assertEqual(files, [[sets.png(0)] * (i % 2) for i in range(8)])
        self.assertEqual(boxes, [[[float(i)] * 4] * (i % 4) for i in range(8)])

    def test_pack_finds_lists_by_itself(self):
        rows = [{"captions": ["a", "b"], "shots": [sets.png(0)] * 2, "parts": [b"x"]},
                {"captions": [], "shots": [], "parts": []}]
        penstock.pack(rows, self.path())
        with penstock.Dataset(self.path()) as dataset:
            self.assertEqual({name: field.kind for name, field in dataset.schema.items()},
                             {"captions": "utf8_list", "shots": "image_list", "parts": "bytes_list"})
            self.assertEqual(list(dataset), rows)
        self.assert_says(["field x", "must be lists of text, of bytes, or of images alone"], penstock.pack,
                         [{"x": ["a", b"b"]}], self.path("mixed"))

    def test_lists_of_hugging_face_come_back(self):
        datasets = optional("datasets")
        rows = {"captions": [["a", "b"], []], "shots": [[{"bytes": sets.png(0), "path": None}], []]}
        features = datasets.Features({"captions": datasets.Sequence(datasets.Value("string")),
                                      "shots": datasets.Sequence(datasets.Image())})
        penstock.pack(datasets.Dataset.from_dict(rows, features=features), self.path())
        with penstock.Dataset(self.path()) as dataset:
            self.assertEqual(list(dataset), [{"captions": ["a", "b"], "shots": [sets.png(0)]},
                                             {"captions": [], "shots": []}])


class Schemas(Case):
    def test_invalid_schemas_and_fields_are_refused(self):
        image = {"image": "image"}
        for schema, *says in (
                ({"boxes": Boxes()}, "of: value is None", "which this schema lacks"),
                ({**image, "other": "image", "boxes": Boxes()}, "of: value is None", "image, other"),
                ({**image, "boxes": Boxes(of="imag")}, "of: value is 'imag'"),
                ({**image, "masks": Field("mask_list", of="masks")}, "of: value is 'masks'"),
                ({"x": ["int64"]}, "value is a list of int64", "('int64', (None,))"),
                ({"x": list[int]}, "value is a list of int64")):
            self.assert_says(list(says), schema_of, schema)
        for make, says in (
                (lambda: Boxes(form="xyxi"), "form: value is 'xyxi'; must be one of xyxy, xywh, cxcywh"),
                (lambda: Boxes(coordinates="metres"), "coordinates: value is 'metres'; must be one of pixels, unit"),
                (lambda: Boxes(rows="a b"), "rows: value is 'a b'"),
                (lambda: Field("utf8", form="xyxy"), "form: value is 'xyxy'; must be None for a field of utf8"),
                (lambda: Field("utf8", of="image"), "of: value is 'image'; must be None"),
                (lambda: Field("float32", (None, 4), meaning="box"), "meaning: value is 'box'")):
            self.assert_says([says], make)

    def refusal(self, schema, **values):
        """Return the writer's message about a record."""
        with self.assertRaises(FieldError) as caught, penstock.Writer(self.path("refused"), schema, overwrite=True) as writer:
            writer.add(image=png_of(np.zeros((4, 6), "u1")), **values)
        return str(caught.exception)

    def test_a_wrong_shape_gets_advice_that_helps(self):
        flat = {"boxes": (Boxes(), [1, 2, 3, 4], (-1, 4)), "points": (Polygons(), [[1, 2, 3, 4, 5, 6]], (-1, 2)),
                "people": (Keypoints(17), np.zeros((2, 51)), (-1, 17, 3))}
        for name, (field, value, shape) in flat.items():
            schema = {"image": "image", name: field}
            self.assertIn(f"numpy.reshape(value, {shape})", self.refusal(schema, **{name: value}))
            with penstock.Writer(self.path("taken"), schema, overwrite=True) as writer:
                writer.add(image=png_of(np.zeros((4, 6), "u1")), **{name: np.reshape(value, shape)})
        boxes = {"image": "image", "boxes": Boxes()}
        self.assertIn("(each row has 4 numbers)", self.refusal(boxes, boxes=np.zeros((2, 5))))
        self.assertIn("COCO's counts", self.refusal({"image": "image", "runs": Rle()}, runs={"counts": [24]}))
        masks = {"image": "image", "masks": ["mask"]}
        self.assertIn("list(array)", self.refusal(masks, masks=np.zeros((2, 4, 6), "u1")))

    def test_outputs_of_other_kinds_name_those_that_fit(self):
        schema = {"image": "image", "plain": ("float32", (None, 4)), "boxes": Boxes(), "points": Keypoints(1),
                  "corners": Polygons(), "masks": ["mask"]}
        with penstock.Writer(self.path(), schema) as writer:
            writer.add(image=np.zeros((3, 3, 3), "uint8"), plain=[], boxes=[], points=[], corners=[], masks=[])
        for output, words in (
                (penstock.boxes("plain"), ["must be penstock.ragged('plain')", "must be packed as penstock.Boxes(...)"]),
                (penstock.polygons("boxes"), ["of kind 'boxes'; must be penstock.boxes('boxes')"]),
                (penstock.keypoints("corners"), ["must be penstock.polygons('corners')"]),
                (penstock.scalar("points"), ["must be penstock.keypoints('points')"]),
                (penstock.mask("masks"), ["must be penstock.ragged('masks')", "penstock.Dataset decodes them"])):
            with self.subTest(words):
                self.assert_says(words, penstock.Loader, self.path(), batch_size=1, outputs=[output])

    def test_advice_for_arguments_that_are_elsewhere(self):
        for words, call in (("it is form", lambda: Boxes(format="xyxy")),
                            ("penstock.keypoints(field, flip_pairs=", lambda: Keypoints(3, flip_pairs=[(1, 2)])),
                            ("Keypoints.n: value is 0; must be", lambda: Keypoints(0)),
                            ("Keypoints.n: value is -1; must be", lambda: Keypoints(-1)),
                            ("Keypoints.n: value is True; must be", lambda: Keypoints(True))):
            self.assert_says(words, call)
        writer = penstock.Writer(self.path(), {"image": "image"})
        self.assert_says("it is commit()", lambda: writer.close())
        self.assert_says("pathlib.Path(path).read_bytes()", writer.add, image="a.jpg")
        self.assert_says("give path.read_bytes()", writer.add, image=pathlib.Path("a.jpg"))
        writer.abort()

    def test_a_kind_that_is_a_function_is_named(self):
        for kind, call in (("boxes", "Boxes()"), (Boxes, "Boxes()"), (penstock.Mask, "Mask()"), ("rle", "Rle()")):
            with self.assertRaisesRegex(penstock.SettingsError, rf"write penstock\.{call[:-2]}\(\)"):
                schema_of({"image": "image", "field": kind})

    def test_the_library_refuses_the_rest_by_name(self):
        image = {"image": "image"}
        for field, says in (
                (Field("int64", rows="objects"), "rows: value is objects; must be left out"),
                (Field("float32", (None,), splits="objects"), "splits: value is"),
                (Field("uint8", (None,), splits="nothing"), "splits: value is"),
                (Field("float32", (None, 5), meaning="boxes", form="xyxy", coordinates="unit"), "must be 0,4 for boxes"),
                (Boxes("int32", coordinates="unit"), "dtype: value is i32")):
            self.assert_says(["x", says], penstock.Writer, self.path("no"), {**image, "x": field})
