#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock pack --coco` and `--voc`: what the annotations say comes back, and mistakes in them are named.
usage: test_annotations.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys

import numpy as np
from test_command import PENSTOCK, Skip, expect, main, run, run_json, run_raw, write_picture
from PIL import Image

TESTS = []
CATEGORIES = [{"id": 90, "name": "toothbrush"}, {"id": 2, "name": "bicycle", "supercategory": "x"},
              {"id": 3, "name": "größe"}, {"id": 4, "name": "never"}]
CLASSES = [2, 3, 4, 90]  # by id
N_IMAGES = 23
EVERY = int(os.environ.get("PENSTOCK_TEST_EVERY", "1"))  # one of so many images is read: tests/meson.build
OBJECTS = {"boxes": ("f4", (-1, 4)), "labels": ("i8", (-1,)), "category_id": ("i8", (-1,)),
           "annotation_id": ("i8", (-1,)), "area": ("f8", (-1,)), "iscrowd": ("u1", (-1,)),
           "object_polygons": ("u4", (-1,)), "polygon_points": ("u4", (-1,)), "points": ("f4", (-1, 2)),
           "object_runs": ("u4", (-1,)), "runs": ("u4", (-1,))}


def test(function):
    TESTS.append(function)
    return function


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    return path


def array(data, i, field, dtype, shape):
    return np.frombuffer(run_raw("get", data, i, field)[0], dtype).reshape(shape)


# ---- COCO ------------------------------------------------------------------------------------------

def sizes(number):
    return 40 + 3 * number, 30 + number  # width, height


def compressed(runs):
    """COCO's compressed counts: maskApi.c, rleToString."""
    text = ""
    for i, run_ in enumerate(runs):
        x = run_ - runs[i - 2] if i > 2 else run_
        while True:
            c, x = x & 31, x >> 5
            more = x != (-1 if c & 16 else 0)
            text += chr((c | 32 if more else c) + 48)
            if not more:
                break
    return text


def segmentation(rng, number, kind):
    width, height = sizes(number)
    if kind == 0:
        return [[round(rng.uniform(0, 40), 2) for _ in range(2 * rng.randrange(3, 9))] for _ in range(rng.randrange(1, 4))]
    cuts = sorted(rng.randrange(width * height + 1) for _ in range(rng.randrange(1, 9)))
    runs = [b - a for a, b in zip([0] + cuts, cuts + [width * height])]
    return {"size": [height, width], "counts": runs if kind == 1 else compressed(runs)}


def coco_of(world, *, keypoints=False):
    """Return a folder of images and a dict as COCO's files have it, in no order."""
    folder, rng = world.path("coco-images"), random.Random(5)
    images, annotations = [], []
    for number in range(N_IMAGES):
        name = ("sub/" if number % 5 == 4 else "") + "%03d.%s" % (number, "png" if number % 7 == 6 else "jpg")
        if not os.path.exists(os.path.join(folder, name)):
            write_picture(os.path.join(folder, name), "png" if number % 7 == 6 else "420", number, *sizes(number))
        width, height = sizes(number)
        images.append({"id": 1000 - 7 * number, "file_name": name, "width": width, "height": height, "license": 1})
    for i in range(60):
        number = rng.randrange(1, N_IMAGES)  # image 0 has none
        one = {"id": 500 + (37 * i) % 60, "image_id": images[number]["id"], "iscrowd": i % 2,
               "category_id": rng.choice((2, 3, 90)), "area": rng.uniform(0, 999),
               "bbox": [round(rng.uniform(0, 20), 2) for _ in range(4)],
               "segmentation": segmentation(rng, number, i % 3)}
        if keypoints and i % 4:
            one["keypoints"] = [n if k % 3 < 2 else n % 3 for k, n in enumerate(rng.choices(range(30), k=15))]
        annotations.append(one)
    rng.shuffle(images)
    rng.shuffle(annotations)
    whole = {"info": {"text": "]}\\\"", "list": [[1], {}]}, "licenses": [], "annotations": annotations,
             "images": images, "categories": CATEGORIES}
    return folder, whole


def save(world, whole, name="coco.json", **options):
    return write(world.path(name), json.dumps(whole, **options))


def wanted_fields(annotations):
    """Return the values of an image's fields, made the slow way."""
    found = {name: [] for name in OBJECTS}
    for one in annotations:
        shape = one["segmentation"]
        polygons = shape if isinstance(shape, list) else []
        found["boxes"] += one["bbox"]
        found["labels"].append(CLASSES.index(one["category_id"]))
        found["category_id"].append(one["category_id"])
        found["annotation_id"].append(one["id"])
        found["area"].append(one["area"])
        found["iscrowd"].append(one["iscrowd"])
        found["object_polygons"].append(len(polygons))
        found["polygon_points"] += [len(polygon) // 2 for polygon in polygons]
        found["points"] += [number for polygon in polygons for number in polygon]
        if isinstance(shape, dict):
            runs = shape["counts"] if isinstance(shape["counts"], list) else runs_of(shape["counts"])
            found["runs"] += runs
        found["object_runs"].append(len(runs) if isinstance(shape, dict) else 0)
    return {name: np.array(values, OBJECTS[name][0]).reshape(OBJECTS[name][1]) for name, values in found.items()}


def runs_of(text):
    """maskApi.c, rleFrString."""
    runs, at = [], 0
    while at < len(text):
        x = k = 0
        more = True
        while more:
            c = ord(text[at]) - 48
            x |= (c & 31) << 5 * k
            more = bool(c & 32)
            at, k = at + 1, k + 1
            if not more and c & 16:
                x |= -1 << 5 * k
        runs.append(x + runs[-2] if len(runs) > 2 else x)
    return runs


@test
def objects_of_coco_come_back_by_image_id(world):
    folder, whole = coco_of(world)
    packed = []
    for indent in (None, 1):
        out = world.fresh("coco")
        told = run_json("pack", "--coco", save(world, whole, indent=indent), folder, out)
        packed.append(contents(out))
        images = sorted(whole["images"], key=lambda image: image["id"])
        expect(run_json("info", out)["classes"], ["bicycle", "größe", "never", "toothbrush"])
        expect(told["annotations"]["category_ids"], CLASSES)
        assert told["note"].endswith("annotations=coco category_ids=2-4,90"), told["note"]
        n_empty = len({image["id"] for image in images} - {one["image_id"] for one in whole["annotations"]})
        expect([told["annotations"][key] for key in ("n_images", "n_annotations", "n_empty_images")],
               [N_IMAGES, 60, n_empty])
        expect(run_json("verify", out, "--decode")["n_bad"], 0)
    assert packed[0] == packed[1]  # so that the values of one are the values of both
    for i, image in list(enumerate(images))[::EVERY]:
        expect(array(out, i, "image_id", "i8", ()), image["id"])
        expect(run("get", out, i, "file_name")[0], image["file_name"])
        with open(os.path.join(folder, image["file_name"]), "rb") as f:
            expect(run_raw("get", out, i, "jpg")[0], f.read())
        wanted = wanted_fields([one for one in whole["annotations"] if one["image_id"] == image["id"]])
        for name, values in wanted.items():
            found = array(out, i, name, *OBJECTS[name])
            assert found.shape == values.shape and (found == values).all(), (i, name, found, values)


@test
def keypoints_have_rows_for_all_objects(world):
    folder, whole = coco_of(world, keypoints=True)
    out = world.fresh("keypoints")
    run("pack", "--coco", save(world, whole), folder, out)
    for i, image in enumerate(sorted(whole["images"], key=lambda image: image["id"])):
        wanted = [one.get("keypoints", [0] * 15) for one in whole["annotations"] if one["image_id"] == image["id"]]
        found = array(out, i, "keypoints", "f4", (-1, 5, 3))
        assert (found == np.array(wanted, "f4").reshape(-1, 5, 3)).all(), (i, found)


@test
def captions_become_lists_of_texts(world):
    folder, whole = coco_of(world)
    texts = ["a cat", "", "zwei Vögel", "\"quoted\" ☃"]
    whole["annotations"] = [{"id": i, "image_id": whole["images"][i % 3]["id"], "caption": texts[i % 4]} for i in range(9)]
    del whole["categories"]
    out = world.fresh("captions")
    told = run_json("pack", "--coco", save(world, whole, "captions.json", ensure_ascii=False), folder, out, "--skip-empty")
    expect(told["annotations"]["n_annotations"], 9)
    expect(told["annotations"]["n_empty_images"], N_IMAGES - 3)
    expect(told["n_samples"], 3)
    images = sorted(whole["images"][:3], key=lambda image: image["id"])
    for i, image in enumerate(images):
        wanted = [one["caption"] for one in whole["annotations"] if one["image_id"] == image["id"]]
        found = run_raw("get", out, i, "captions")[0].decode()
        assert found.endswith("".join(wanted)), (found, wanted)


@test
def coco_does_not_depend_on_threads_shards_or_parts(world):
    folder, whole = coco_of(world)
    file, wanted = save(world, whole), None
    for options in ([], ["--threads", 1], ["--threads", 7], ["--shard-size", "64K"]):
        out = world.fresh("threads")
        run("pack", "--coco", file, folder, out, *options)
        found = (run_json("info", out)["identity"], [] if "--shard-size" in options else contents(out))
        wanted = wanted or found
        expect(found[0], wanted[0], options)
        expect(found[1] or wanted[1], wanted[1], options)
    parts = [world.fresh("coco-part%d" % i) for i in range(3)]
    for i in (2, 0, 1):
        run("pack", "--coco", file, folder, parts[i], "--part", "%d/3" % i)
    run("merge", *parts, world.fresh("coco-merged"))
    expect(run_json("info", world.path("coco-merged"))["identity"], wanted[0])


def contents(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


@test
def boxes_are_kept_and_odd_ones_counted(world):
    folder, whole = coco_of(world)
    one, image = whole["annotations"][0], whole["images"][0]
    boxes = [[-5, 0, 9, 9], [0, 0, 0, 9], [0, 0, 999, 999], [-0.5, 0, image["width"] + 1, 3], [1, 1, 2, 0]]
    whole["annotations"] = [{"id": i, "image_id": image["id"], "category_id": 2, "bbox": box} for i, box in enumerate(boxes)]
    out = world.fresh("odd")
    told = run_json("pack", "--coco", save(world, whole, "odd.json"), folder, out, "--skip-empty")["annotations"]
    expect((told["n_boxes_outside"], told["n_boxes_flat"], told["n_images"]), (2, 2, 1))
    expect(array(out, 0, "boxes", "f4", (-1, 4)).tolist(), boxes)
    expect(array(out, 0, "area", "f8", -1).tolist(), [box[2] * box[3] for box in boxes])
    expect(array(out, 0, "iscrowd", "u1", -1).tolist(), [0] * 5)
    text, _ = run("pack", "--coco", world.path("odd.json"), folder, out, "--overwrite")
    assert "boxes: 2 leave their image, 2 have no area; all are kept unchanged\n" in text, text
    assert "annotations: 5 of 23 images; 22 images without any are packed\n" in text, text


@test
def boxes_that_are_fractions_are_kept_and_counted_with_a_warning(world):
    folder, whole = coco_of(world)
    one, image = whole["annotations"][0], whole["images"][0]
    for boxes, n in (([[0, 0, 1, 1], [0.5, 0.5, 9, 9], [0.5, 0.5, 0, 0.2], [0, 0, 0, 0]], 0), ([[0.1, 0.1, 0.5, 0.5]] * 3 + [[5, 5, 9, 9]], 3), ([[0.1, 0, 0.9, 1]], 1)):
        file = save(world, {**whole, "annotations": [{"id": i, "image_id": image["id"], "category_id": 2, "bbox": box} for i, box in enumerate(boxes)]}, "unit.json")
        told = run_json("pack", "--coco", file, folder, world.fresh("unit"))
        expect(told["annotations"]["n_boxes_of_fractions"], n, boxes)
        _, err = run("pack", "--coco", file, folder, world.path("unit"), "--overwrite")
        wanted = "warning: %d box%s in the first pixel of %s image: boxes of COCO are in pixels" % (n, "es lie" if n > 1 else " lies", "their" if n > 1 else "its")
        expect(wanted in err, n > 0, err)
    root = voc_of(world, "voc-unit")
    box = OBJECT % ("dog", "Left", 0, 0, 0, 0, 1, 1)
    for tag, value in (("xmin", 0.1), ("ymin", 0.1), ("xmax", 0.5), ("ymax", 0.5)):
        box = re.sub("<%s>[^<]*" % tag, "<%s>%s" % (tag, value), box)
    write(os.path.join(root, "Annotations", "2007_000033.xml"), "<annotation>%s</annotation>" % (box * 2))
    _, err = run("pack", "--voc", root, world.fresh("voc-unit-out"))
    assert "warning: 2 boxes lie in the first pixel of their image: boxes of VOC are in pixels" in err, err


def refused(world, whole, says, folder, status=1):
    file = save(world, whole, "bad.json") if isinstance(whole, dict) else write(world.path("bad.json"), whole)
    out, err = run("pack", "--coco", file, folder, world.fresh("refused"), status=status)
    assert says in err and err.count("\n") == 1 and not os.path.exists(world.path("refused")), (says, err)


def changed(whole, **members):
    """Return the file with one annotation that has other members; None: without it."""
    one = {**whole["annotations"][0], **members}
    one = {key: value for key, value in one.items() if value is not None}
    return {**whole, "annotations": [one] + whole["annotations"][1:]}


@test
def mistakes_in_an_annotation_are_named(world):
    folder, whole = coco_of(world)
    for members, says in (
            ({"bbox": None}, "annotations[0], at byte "), ({"bbox": None}, "bbox: value is missing; must be a list of 4"),
            ({"bbox": [1, 2, 3]}, "bbox: value is a list of 3; must be a list of 4"), ({"bbox": [1, 2, -3, 4]}, "bbox: number 2 is -3; must be 0 to"),
            ({"bbox": [1, 2, 1e39, 4]}, "bbox: number 2 is 1e+39"), ({"bbox": [1, float("nan"), 3, 4]}, "JSON has neither NaN nor"),
            ({"bbox": [1, float("inf"), 3, 4]}, "'Infinity'"), ({"bbox": [1, "2", 3, 4]}, "number 1 is a text"),
            ({"image_id": 4}, "image_id: value is 4; must be the id of one of 'images' (or leave it out with --skip-bad)"),
            ({"image_id": 4.5}, "image_id: value is 4.5; must be a whole number"), ({"id": 2.0**60}, "id: value is 1.152"),
            ({"id": True}, "id: value is true; must be a whole"), ({"iscrowd": 0.5}, "iscrowd: value is 0.5; must be 0 to 1"),
            ({"segmentation": {"counts": [4.5, 4.5], "size": [3, 3]}}, "segmentation.counts: run 0 is 4.5"),
            ({"image_id": "x"}, "image_id: value is a text; must be a whole number"),
            ({"category_id": 5}, "category_id: value is 5; must be the id of one of 'categories'"),
            ({"category_id": None}, "category_id: value is missing"), ({"id": 1.5}, "id: value is 1.5"),
            ({"id": 2**63}, "is too large; must be -2^63 to 2^63 - 1 if it is whole, else -1.8e+308 to"), ({"area": -1}, "area: value is -1"), ({"iscrowd": 2}, "iscrowd: value is 2"),
            ({"segmentation": [[1, 2, 3]]}, "segmentation: polygon 0 has 3 numbers; must be a list of an even"),
            ({"segmentation": [[1, None]]}, "segmentation: number 1 of polygon 0 is null"),
            ({"segmentation": 7}, "segmentation: value is 7"), ({"segmentation": [1, 2, 3, 4]}, "polygon 0 is 1; must be a list of numbers: x, y, x, y, ... (of one polygon write [[...]])"),
            ({"segmentation": {"counts": [5, 7], "size": [3, 3]}}, "segmentation.counts: sum is 12 or more; must be 9"),
            ({"segmentation": {"counts": [5, 3], "size": [3, 3]}}, "segmentation.counts: sum is 8; must be 9"),
            ({"segmentation": {"counts": [-1, 10], "size": [3, 3]}}, "segmentation.counts: run 0 is -1"),
            ({"segmentation": {"counts": "~", "size": [3, 3]}}, "segmentation.counts: byte 0 of 1 is not of a compressed"),
            ({"segmentation": {"counts": [9]}}, "segmentation.size: number 0 is missing"),
            ({"segmentation": {"counts": [9], "size": [3, 70000]}}, "segmentation.size: number 1 is 70000"),
            ({"segmentation": {"size": [3, 3]}}, "segmentation.counts: value is missing"),
            ({"keypoints": [1, 2]}, "keypoints: value is a list of 2"), ({"keypoints": [1, 2, 3]}, "a visibility, is 3"),
            ({"segments_info": []}, "file_name: value is missing"),
            ({"segments_info": [], "file_name": "x.png"}, "panoptic"), ({"caption": "x"}, "it has a caption and 'bbox'; must be a caption, or an object")):
        refused(world, changed(whole, **members), says, folder, status=(1, 2))


@test
def mistakes_in_a_file_are_named_with_their_byte(world):
    folder, whole = coco_of(world)
    text = json.dumps(whole)
    refused(world, "", "is empty; must begin with '{'", folder)
    for cut in (1, 10, 100, len(text) // 2, len(text) - 3, len(text) - 1):
        refused(world, text[:cut], "ends at byte %d" % cut, folder)
    for bad, says in ((text + "x", "byte %d is 'x'; must be the end of the file" % len(text)), ("[]", "byte 0 is '['; must be '{'"),
                      ('{"images": 7}', "byte 11 is '7'; must be '[', a list"), ('{"images": [7]}', "images[0], at byte 12: it is not"),
                      ('{"images": [{}]}', "id: value is missing; must be a whole number"),
                      ('{"images": [{"id": 1}]}', "file_name: value is missing"), ('{"images": [], "images": []}', "twice"),
                      ('{"images": []', "ends at byte 13"), ('{"images" []}', "must be ':'"), ('{7: []}', "must be the key"),
                      ('{"x": ' + "[" * 100 + "]" * 100 + "}", "lists and objects nested more than 64 deep"),
                      ('{"images": [{"id": 1, "file_name": "../x"}]}', "a path that leaves the folder"),
                      ('{"images": [{"id": 1, "file_name": "/etc/x"}]}', "an absolute path"),
                      ('{"images": [{"id": 1, "file_name": "x", "width": 65536.0}]}', "width: value is 65536; must be 1 to 65535"),
                      ('{"images": [{"id": 1, "file_name": "x", "width": 1e20}]}', "width: value is 1e+20; must be 1 to 65535"),
                      ('{"images": [{"id": 1, "file_name": "x", "height": 65535.5}]}', "height: value is 65535.5; must be 1 to 65535"),
                      ('{"images": [{"id": 1, "file_name": "x", "width": "64"}]}', "width: value is a text; must be 1 to 65535"),
                      ('{}', "has no 'images'"), ('{"images": [], "annotations": [], "categories": []}', "has no images")):
        refused(world, bad, says, folder)
    for section in ("images", "annotations", "categories"):
        refused(world, {**whole, section: whole[section] + whole[section][-1:]}, "two of '%s' have the id" % section, folder)
    wide = [{**image, "width": 5} for image in whole["images"]]
    _, err = run("pack", "--coco", save(world, {**whole, "images": wide}, "wide.json"), folder, world.fresh("wide"), status=1)
    assert "segmentation.size: value is" in err and "height and width of image" in err, err


def as_pandas_writes_it(value):
    """Whole numbers as real ones; texts and names as they are."""
    if isinstance(value, dict):
        return {key: as_pandas_writes_it(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_pandas_writes_it(one) for one in value]
    return float(value) if isinstance(value, int) else value


@test
def files_of_other_programs_say_the_same(world):
    folder, whole = coco_of(world, keypoints=True)
    run("pack", "--coco", save(world, whole), folder, world.fresh("plain"))
    wanted = run_json("info", world.path("plain"))["identity"]
    with_mark = world.path("mark.json")
    with open(with_mark, "w", encoding="utf-8-sig") as f:
        json.dump(whole, f)
    flags = {**whole, "annotations": [{**one, "iscrowd": bool(one["iscrowd"]), "keypoints": one.get("keypoints", [])}
                                      for one in whole["annotations"]]}
    nothing = {**flags, "annotations": [{**one, "iscrowd": one["iscrowd"] or None, "keypoints": one["keypoints"] or None}
                                        for one in flags["annotations"]]}
    for file in (with_mark, save(world, as_pandas_writes_it(whole), "real.json"), save(world, flags, "flags.json"),
                 save(world, nothing, "null.json")):
        run("pack", "--coco", file, folder, world.fresh("theirs"))
        expect(run_json("info", world.path("theirs"))["identity"], wanted, file)


@test
def a_size_that_is_unknown_is_written_in_many_ways(world):
    folder, whole = coco_of(world)
    for one in whole["annotations"]:
        one["area"] = None
        del one["segmentation"]
    wanted = None
    for size in ({}, {"width": -1, "height": -1}, {"width": 0, "height": 0.0}, {"width": None, "height": None},
                 {"width": 64.5, "height": 0.5}, {"width": -0.5, "height": -1e300}):
        images = [{"id": image["id"], "file_name": image["file_name"], **size} for image in whole["images"]]
        told = run_json("pack", "--coco", save(world, {**whole, "images": images}, "unknown.json"), folder, world.fresh("unknown"))
        expect(told["annotations"]["n_images_of_another_size"], 0)
        wanted = wanted or told["identity"]
        expect(told["identity"], wanted)


@test
def bad_annotations_may_be_left_out_and_are_counted(world):
    folder, whole = coco_of(world)
    run("pack", "--coco", save(world, whole), folder, world.fresh("good"))
    wanted = run_json("info", world.path("good"))["identity"]
    one = {**whole["annotations"][0], "id": 9000}
    bad = [{**one, "bbox": [1, 2, -3, 4]}, {**one, "bbox": [float("nan"), 2, 3, 4]}, {**one, "image_id": 4}, {**one, "category_id": 77},
           whole["annotations"][3], {**one, "id": 1.5}, {**one, "image_id": 4, "caption": "x"}, {**one, "keypoints": [1, 2]}, 7,
           {**one, "segmentation": {"counts": [5, 3], "size": [3, 3]}, "keypoints": [1, 2, 0]}]
    file = save(world, {**whole, "annotations": bad[:1] + whole["annotations"] + bad[1:]}, "some-bad.json")
    out = world.fresh("some-bad")
    _, err = run("pack", "--coco", file, folder, out, "--skip-bad")
    assert "warning: 10 bad annotations are left out (an annotation, or one of 'images' with its annotations); the first: %s: annotations[0], at byte " % file in err, err
    assert "bbox: number 2 is -3" in err, err
    told = run_json("pack", "--coco", file, folder, out, "--skip-bad", "--overwrite")
    expect((told["annotations"]["n_bad"], told["annotations"]["n_annotations"], told["skipped"]), (10, 60, []))
    expect(run_json("info", out)["identity"], wanted)
    for some in (bad[:4], bad[2:3]):
        refused_options = ("pack", "--coco", save(world, {**whole, "annotations": some}, "all-bad.json"), folder, world.fresh("all-bad"), "--skip-bad")
        _, err = run(*refused_options, status=1)
        assert "--skip-bad: no annotation is left, all %d are bad; the first: " % len(some) in err, err


@test
def bad_images_may_be_left_out_and_are_counted_with_their_annotations(world):
    folder, whole = coco_of(world)
    images, annotations = whole["images"], whole["annotations"]
    victim = max((image["id"] for image in images), key=lambda i: sum(one["image_id"] == i for one in annotations))
    its = [one for one in annotations if one["image_id"] == victim]
    at = [image["id"] for image in images].index(victim)
    rest = {**whole, "images": images[:at] + images[at + 1:], "annotations": [one for one in annotations if one not in its]}
    run("pack", "--coco", save(world, rest), folder, world.fresh("good"))
    wanted = run_json("info", world.path("good"))["identity"]
    for members in ({"id": str(victim)}, {"width": "64"}, {"file_name": None}, {"file_name": "../x"}, {"id": 2**63}):
        broken = {**whole, "images": images[:at] + [{**images[at], **members}] + images[at + 1:]}
        refused(world, broken, "images[%d], at byte " % at, folder)
        refused(world, broken, "(or leave it out with --skip-bad)", folder)
        file = save(world, broken, "bad-image.json")
        told = run_json("pack", "--coco", file, folder, world.fresh("skipped"), "--skip-bad")
        expect((told["annotations"]["n_bad"], told["n_samples"], told["identity"]), (1 + len(its), len(images) - 1, wanted), members)
        _, err = run("pack", "--coco", file, folder, world.path("skipped"), "--skip-bad", "--overwrite")
        assert "; the first: %s: images[%d], at byte " % (file, at) in err, err
    none = {**whole, "images": [{**image, "id": None} for image in images]}
    _, err = run("pack", "--coco", save(world, none, "none.json"), folder, world.fresh("none"), "--skip-bad", status=1)
    assert "--skip-bad: no image is left, all %d are bad; the first: " % len(images) in err, err
    bare = {**whole, "images": [*images, {"id": "x"}], "annotations": []}
    told = run_json("pack", "--coco", save(world, bare, "bare.json"), folder, world.fresh("bare"), "--skip-bad")
    expect((told["annotations"]["n_bad"], told["n_samples"]), (1, len(images)))


@test
def of_two_images_of_one_id_one_is_left_out_if_they_are_the_same(world):
    folder, whole = coco_of(world)
    run("pack", "--coco", save(world, whole), folder, world.fresh("good"))
    wanted = run_json("info", world.path("good"))["identity"]
    one, other = whole["images"][0], whole["images"][1]
    twice = {**whole, "images": [one, *whole["images"], one]}
    refused(world, twice, "two of 'images' have the id %d; must be different (or leave it out with --skip-bad)" % one["id"], folder)
    told = run_json("pack", "--coco", save(world, twice, "twice.json"), folder, world.fresh("twice"), "--skip-bad")
    expect((told["annotations"]["n_bad"], told["identity"]), (2, wanted))
    for image in ({**other, "id": one["id"]}, {**one, "width": one["width"] + 1}):  # nothing says to which image the annotations belong
        file = save(world, {**whole, "images": [*whole["images"], image]}, "twice.json")
        _, err = run("pack", "--coco", file, folder, world.fresh("twice"), "--skip-bad", status=1)
        assert err.endswith("two of 'images' have the id %d; must be different\n" % one["id"]), err


@test
def files_that_lack_a_section_say_the_way_out(world):
    folder, whole = coco_of(world)
    without = {key: value for key, value in whole.items() if key != "annotations"}  # as COCO's image_info_test
    refused(world, without, "has no 'annotations'; must have images,", folder)
    refused(world, without, "(to pack the images alone: penstock pack FOLDER DATA)", folder)
    alone = os.path.join(world.fresh("test2017"), "1.jpg")
    write_picture(alone, "444", 5, 40, 30)
    expect(run_json("pack", os.path.dirname(alone), world.fresh("alone"))["n_samples"], 1)
    without = {key: value for key, value in whole.items() if key != "categories"}
    refused(world, without, "(add to categories an object with id and name for each category_id)", folder)


@test
def limits_of_the_reader_are_not_called_wrong_json(world):
    folder, whole = coco_of(world)
    text = json.dumps(whole)
    bbox = text.index('"bbox": [') + len('"bbox": [')
    for bad, says in ((text.replace('"id": ', '"id": 1, "id": ', 1), "duplicate object key near '\"id\"' (byte "),
                      (text.replace('"id": ', '"id": 1, "id": ', 1), "must have each key once in an object (remove one)"),
                      (text[:bbox] + "1e999, " + text[bbox:], "is too large; must be"),
                      (text.replace('"file_name": "', '"file_name": "\\u0000', 1), "has \\u0000; must be without")):
        refused(world, bad, says, folder)
        _, err = run("pack", "--coco", write(world.path("bad.json"), bad), folder, world.fresh("refused"), status=1)
        assert "not JSON" not in err, err


@test
def a_bad_annotation_decides_nothing_about_good_ones(world):
    folder, whole = coco_of(world, keypoints=True)
    run("pack", "--coco", save(world, whole), folder, world.fresh("good"))
    wanted = run_json("info", world.path("good"))["identity"]
    one = {**whole["annotations"][0], "id": 1}  # the first by id, too
    for bad in ({**one, "image_id": 4, "keypoints": [1, 2, 0]}, {**one, "category_id": 77, "keypoints": [1, 2, 0] * 30},
                {**one, "image_id": 4, "caption": "x"}, {"image_id": 4, "segments_info": [], "file_name": "x.png"},
                {**one, "segments_info": None, "bbox": [1, 2]}, {**one, "segments_info": 7}):
        for annotations in ([bad] + whole["annotations"], whole["annotations"] + [bad]):
            told = run_json("pack", "--coco", save(world, {**whole, "annotations": annotations}, "first.json"), folder, world.fresh("first"), "--skip-bad")
            expect((told["annotations"]["n_bad"], told["annotations"]["n_annotations"], told["identity"]), (1, 60, wanted), bad)


@test
def a_caption_with_an_objects_members_is_bad(world):
    folder, whole = coco_of(world)
    for name, value in (("bbox", [1, 1, 4, 4]), ("segmentation", [[1, 1, 5, 1, 5, 5]]), ("keypoints", [1, 2, 0])):
        captions = [{"id": 1000 + i, "image_id": image["id"], "caption": "x"} for i, image in enumerate(whole["images"])]
        captions[3][name] = value
        file = save(world, {**whole, "annotations": captions}, "both.json")
        _, err = run("pack", "--coco", file, folder, world.fresh("both"), status=1)
        assert "annotations[3], at byte " in err and f"it has a caption and '{name}'; must be a caption, or an object" in err, err
        told = run_json("pack", "--coco", file, folder, world.fresh("both"), "--skip-bad")
        expect(told["annotations"]["n_bad"], 1, name)
        captions[3][name], captions[4][name] = None, []
        run("pack", "--coco", save(world, {**whole, "annotations": captions}, "both.json"), folder, world.fresh("both"))


@test
def objects_among_captions_need_categories(world):
    folder, whole = coco_of(world)
    captions = [{"id": 1000 + i, "image_id": image["id"], "caption": "x"} for i, image in enumerate(whole["images"])]
    del whole["categories"]
    for more in ([], ["--skip-bad"]):
        file = save(world, {**whole, "annotations": captions + whole["annotations"][:2]}, "mixed.json")
        _, err = run("pack", "--coco", file, folder, world.fresh("mixed"), *more, status=1)
        assert "has no 'categories', and 2 objects among its captions" in err and not os.path.exists(world.path("mixed")), err
    run("pack", "--coco", save(world, {**whole, "annotations": captions}, "mixed.json"), folder, world.fresh("mixed"))


@test
def good_annotations_that_contradict_one_another_are_never_left_out(world):
    folder, whole = coco_of(world, keypoints=True)
    one = {**whole["annotations"][0], "id": 1}
    caption = {"id": 1, "image_id": one["image_id"], "caption": "x"}
    for other, says in ((caption, "is an object; must be a caption, as annotation 1, at byte %d "),
                        ({**one, "keypoints": [1, 2, 0]}, "has 5 keypoints; must have 1, as annotation 1, at byte %d "),
                        ({**one, "segments_info": [], "file_name": "x.png"}, "must be ")):
        for annotations in ([other] + whole["annotations"], whole["annotations"] + [other]):
            file = save(world, {**whole, "annotations": annotations}, "contrary.json")
            with open(file) as f:
                at = f.read().find('{"id": 1,')
            _, err = run("pack", "--coco", file, folder, world.fresh("contrary"), "--skip-bad", status=1)
            assert (says % at if "%" in says else says) in err and "(--skip-bad leaves out neither;" in err, err
            assert not os.path.exists(world.path("contrary"))


@test
def images_that_are_missing_or_broken_are_listed_and_may_be_skipped(world):
    folder, whole = coco_of(world)
    whole["images"].append({"id": 1, "file_name": "missing.jpg"})
    whole["images"].append({"id": 2, "file_name": "broken.jpg"})
    write(os.path.join(folder, "broken.jpg"), "no image")
    file, out = save(world, whole, "missing.json"), world.fresh("missing")
    _, err = run("pack", "--coco", file, folder, out, status=1)
    assert "  missing.jpg: missing, but the annotations list it\n  broken.jpg: " in err, err
    assert not os.path.exists(out)
    told = run_json("pack", "--coco", file, folder, out, "--skip-bad")
    expect([one["path"] for one in told["skipped"]], ["missing.jpg", "broken.jpg"])
    expect(told["n_samples"], N_IMAGES)
    whole["images"][-2]["file_name"] = "sub\\missing.jpg"
    _, err = run("pack", "--coco", save(world, whole, "missing.json"), folder, world.fresh("missing"), status=1)
    assert "missing.jpg: missing, but the annotations list it; its path has a \\, which separates no folders here (write /)\n" in err, err
    os.remove(os.path.join(folder, "broken.jpg"))


@test
def images_of_another_size_are_counted_and_warned_of(world):
    folder, whole = coco_of(world)
    for one in whole["annotations"]:
        del one["segmentation"]
    turned = [{**image, "width": image["height"], "height": image["width"]} if i % 8 == 0 else
              {key: value for key, value in image.items() if key != "width"} if i % 8 == 1 else image
              for i, image in enumerate(whole["images"])]
    first = min(turned[::8], key=lambda image: image["id"])
    out = world.fresh("turned")
    told = run_json("pack", "--coco", save(world, {**whole, "images": turned}, "turned.json"), folder, out)
    expect(told["annotations"]["n_images_of_another_size"], 3)
    _, err = run("pack", "--coco", world.path("turned.json"), folder, out, "--overwrite")
    size = (first["file_name"], first["height"], first["width"], first["width"], first["height"])
    assert "warning: 3 images have another size than the annotations say" in err and "%s: %d x %d, not %d x %d" % size in err, err
    expect(run_json("pack", "--coco", save(world, whole), folder, out, "--overwrite")
           ["annotations"]["n_images_of_another_size"], 0)


@test
def options_that_contradict_are_refused(world):
    folder, whole = coco_of(world)
    file = save(world, whole)
    for options, says in ((["--coco", file, "--voc"], "takes one of them"), (["--voc-offset", 0], "are for --voc"),
                          (["--skip-empty"], "is for --coco and --voc"), (["--coco", file, "--pixels", 8], "--pixels resizes"),
                          (["--coco", file, "--max-side", 8], "--max-side resizes images, and boxes"),
                          (["--voc", "--voc-offset", 2], "--voc-offset"), (["--coco", "absent.json"], "absent.json"),
                          (["--coco", folder], "not a regular file"), (["--voc"], "Annotations")):
        _, err = run("pack", *options, folder, world.fresh("contradict"), status=(1, 2))
        assert says in err, (options, err)


# ---- VOC -------------------------------------------------------------------------------------------

OBJECT = """<object><name>%s</name><pose>%s</pose><truncated>%d</truncated><difficult>%d</difficult>
<bndbox><xmin>%s</xmin><ymin>%s</ymin><xmax>%s</xmax><ymax>%s</ymax></bndbox>
<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part></object>"""
VOC = [("2007_000032", [("dog", "Left", 0, 1, 1, 1, 50, 40), ("person & child", "", 1, 0, "3.5", 4, "20.25", 30)]),
       ("2007_000033", []), ("2008_000001", [("aeroplane", "Frontal", 0, 0, 10, 11, 12, 13)])]


def voc_of(world, name="voc", masks=0):
    """Return a folder of VOC's; the first `masks` images have masks."""
    root = world.fresh(name)
    for i, (stem, objects) in enumerate(VOC):
        write_picture(os.path.join(root, "JPEGImages", stem + ".jpg"), "420", i, 50, 40)
        text = "".join(OBJECT % (one[0].replace("&", "&amp;"), *one[1:]) for one in objects)
        write(os.path.join(root, "Annotations", stem + ".xml"),
              "<annotation>\n<folder>VOC2012</folder><filename>%s.jpg</filename><source><database>x</database></source>\n"
              "<size><width>50</width><height>40</height><depth>3</depth></size>%s</annotation>\n" % (stem, text))
        for folder in ("SegmentationClass", "SegmentationObject")[:2 if i < masks else 0]:
            mask = Image.fromarray(np.full((40, 50), i + 1, np.uint8)).convert("P")
            os.makedirs(os.path.join(root, folder), exist_ok=True)
            mask.putdata([(i + x) % 21 for x in range(2000)])
            mask.save(os.path.join(root, folder, stem + ".png"))
    write(os.path.join(root, "ImageSets", "Main", "train.txt"), "2008_000001\n2007_000032\n")
    write(os.path.join(root, "ImageSets", "Segmentation", "val.txt"), "2007_000033\r\n")
    write(os.path.join(root, "ImageSets", "Main", "dog_train.txt"), "2008_000001 -1\n2007_000032  1\n")
    return root


@test
def boxes_of_voc_that_count_from_0_are_reported(world):
    for box, n in (((0, 1, 50, 40), 1), ((1, 0, 50, 40), 1), ((0.5, 0.5, 49.5, 39.5), 1), ((1, 1, 50, 40), 0), ((-3, -2, 9, 9), 0)):
        root = voc_of(world, "voc-zero")
        objects = (OBJECT % ("dog", "Left", 0, 0, *box)) * 2
        write(os.path.join(root, "Annotations", "2007_000033.xml"), "<annotation>%s</annotation>" % objects)
        told = run_json("pack", "--voc", root, world.fresh("voc-zero-out"))
        expect(told["annotations"]["n_boxes_from_zero"], 2 * n, box)
        _, err = run("pack", "--voc", root, world.path("voc-zero-out"), "--overwrite")
        wanted = "warning: 2 boxes have an xmin or ymin from 0 to 1, and VOC counts pixels from 1: these files seem to count from 0"
        expect(wanted in err and "(pack with --voc-offset 0" in err, n > 0, err)
        told = run_json("pack", "--voc", "--voc-offset", 0, root, world.path("voc-zero-out"), "--overwrite")
        expect(told["annotations"]["n_boxes_from_zero"], 0, box)
        expect(array(world.path("voc-zero-out"), 1, "boxes", "f4", (-1, 4)).tolist(), [list(box)] * 2)


@test
def what_voc_leaves_out_is_reported(world):
    root, out = voc_of(world, "voc-left"), world.fresh("voc-left-out")
    annotations, pictures = os.path.join(root, "Annotations"), os.path.join(root, "JPEGImages")
    counts = ["n_pictures_without_xml", "n_xml_not_read"]
    told = run_json("pack", "--voc", root, out)
    expect([told["annotations"][name] for name in counts], [0, 0])
    _, err = run("pack", "--voc", root, out, "--overwrite")
    assert "left out" not in err and "not read" not in err, err
    shutil.copy(os.path.join(pictures, "2007_000032.jpg"), os.path.join(pictures, "alone.jpg"))
    shutil.copy(os.path.join(pictures, "2007_000032.jpg"), os.path.join(pictures, "2007_000033.png"))  # it has an XML file
    write(os.path.join(pictures, "readme.txt"), "x")
    os.makedirs(os.path.join(pictures, "deep"))
    os.rename(os.path.join(pictures, "2008_000001.jpg"), os.path.join(pictures, "deep", "2008_000001.JPEG"))
    os.makedirs(os.path.join(annotations, "deep", "deeper"))
    os.rename(os.path.join(annotations, "2008_000001.xml"), os.path.join(annotations, "deep", "deeper", "2008_000001.xml"))
    for options, n in (([], [2, 1]), (["--skip-empty"], [2, 1]), (["--image-set", "Segmentation/val"], [0, 0])):
        told = run_json("pack", "--voc", *options, root, out, "--overwrite")
        expect([told["annotations"][name] for name in counts], n)
    expect(told["n_samples"], 1)
    _, err = run("pack", "--voc", root, out, "--overwrite")
    assert "warning: 2 pictures of JPEGImages are left out: no XML file that is read has their name" in err, err
    assert "warning: 1 XML file below Annotations is not read: it is in a folder, or does not end in .xml" in err, err
    os.rename(os.path.join(annotations, "2007_000033.xml"), os.path.join(annotations, "2007_000033.XML"))
    expect(run_json("pack", "--voc", root, out, "--overwrite")["annotations"]["n_xml_not_read"], 2)
    os.rename(os.path.join(annotations, "2007_000032.xml"), os.path.join(annotations, "deep", "2007_000032.xml"))
    _, err = run("pack", "--voc", root, world.fresh("voc-refused"), status=1)
    assert "Annotations has no .xml file, but 3 in its folders or with the suffix .XML (move them into it" in err, err


@test
def folders_of_voc_that_cannot_be_read_stop_no_pack(world):
    """Their contents are no images of the data set, as in the lost+found of a disk whose root is JPEGImages."""
    root = voc_of(world, "voc-closed")
    closed = [os.path.join(root, name, "lost+found") for name in ("Annotations", "JPEGImages")]
    for folder in closed:
        os.makedirs(folder)
        os.chmod(folder, 0)
    user = [] if os.geteuid() else [shutil.which("setpriv"), "--bounding-set=-dac_override,-dac_read_search"]
    if None in user:
        raise Skip("missing: setpriv")
    done = subprocess.run([*user, PENSTOCK, "pack", "--voc", root, world.fresh("voc-closed-out")], stderr=subprocess.PIPE, timeout=120)
    for folder in closed:
        os.rmdir(folder)
    expect((done.returncode, done.stderr.decode()), (0, ""))


@test
def objects_of_voc_come_back_by_name(world):
    root, classes = voc_of(world), ["aeroplane", "dog", "person & child"]
    for offset in (1, 0):
        out = world.fresh("voc-out")
        told = run_json("pack", "--voc", root, out, *([] if offset else ["--voc-offset", 0]))
        assert told["note"].endswith("annotations=voc voc_offset=%d" % offset), told["note"]
        expect(run_json("info", out)["classes"], classes)
        expect((told["annotations"]["n_annotations"], told["annotations"]["n_empty_images"]), (3, 1))
        expect(run_json("verify", out, "--decode")["n_bad"], 0)
        for i, (stem, objects) in enumerate(VOC):
            expect(run("get", out, i, "file_name")[0], stem + ".jpg")
            boxes = [[float(one[4]) - offset, float(one[5]) - offset, float(one[6]), float(one[7])] for one in objects]
            expect(array(out, i, "boxes", "f4", (-1, 4)).tolist(), boxes)
            expect(array(out, i, "labels", "i8", -1).tolist(), [classes.index(one[0]) for one in objects])
            expect(array(out, i, "truncated", "u1", -1).tolist(), [one[2] for one in objects])
            expect(array(out, i, "difficult", "u1", -1).tolist(), [one[3] for one in objects])
            assert run_raw("get", out, i, "pose")[0].decode().endswith("".join(one[1] for one in objects))


@test
def messages_name_options(world):
    root = voc_of(world, "voc-options")
    for stem, _ in VOC:
        write(os.path.join(root, "Annotations", stem + ".xml"), "<annotation/>")
    folder, whole = coco_of(world)
    objects = save(world, whole)
    none = save(world, {**whole, "annotations": []}, "none.json")
    for options, path, says in ((["--voc", "--skip-empty"], root, "--skip-empty: no image is left, none of %s has annotations (do not set --skip-empty)" % root),
                                (["--coco", none, "--skip-empty"], folder, "--skip-empty: no image is left, none of %s has" % none),
                                (["--coco", objects, "--panoptic-masks", folder], folder, "--panoptic-masks: value is '%s'" % folder)):
        _, err = run("pack", *options, path, world.fresh("voc-bad"), status=(1, 2))
        assert says in err and not re.search("skip_empty|panoptic_masks", err), err


@test
def sets_of_voc_choose_images_in_their_order(world):
    root, out = voc_of(world), world.fresh("voc-set")
    run("pack", "--voc", "--image-set", "train", root, out)
    expect([run("get", out, i, "file_name")[0] for i in range(2)], ["2008_000001.jpg", "2007_000032.jpg"])
    expect(run_json("pack", "--voc", "--image-set", "Segmentation/val", root, out, "--overwrite")["n_samples"], 1)
    expect(run_json("pack", "--voc", "--skip-empty", root, out, "--overwrite")["n_samples"], 2)
    for name, says in (("dog_train", "line 1 is '2008_000001 -1'"), ("absent", "absent.txt"), ("../Main/train", ": --image-set: value")):
        _, err = run("pack", "--voc", "--image-set", name, root, world.fresh("voc-bad"), status=(1, 2))
        assert says in err, err
    write(os.path.join(root, "ImageSets", "Main", "empty.txt"), "")
    _, err = run("pack", "--voc", "--image-set", "empty", root, world.fresh("voc-bad"), status=1)
    assert "empty.txt lists no images" in err, err
    for text, line, says in (("2007_000032\n\n2008_000001.jpg\n", 3, "'2008_000001.jpg'; must be the name of one image without its suffix (2008_000001)"),
                             ("2008_000001.xml\n", 1, "'2008_000001.xml'; must be the name of one image without its suffix (2008_000001)"),
                             ("2007_000032\nabsent\n", 2, "'absent', and Annotations/absent.xml is missing"),
                             ("absent.png\n", 1, "'absent.png', and Annotations/absent.png.xml is missing")):
        write(os.path.join(root, "ImageSets", "Main", "wrong.txt"), text)
        _, err = run("pack", "--voc", "--image-set", "wrong", root, world.fresh("voc-bad"), status=(1, 2))
        assert "wrong.txt: line %d is %s" % (line, says) in err, err
    write(os.path.join(root, "ImageSets", "Main", "bom.txt"), "\ufeff2008_000001\n2007_000032\n")
    expect(run_json("pack", "--voc", "--image-set", "bom", root, out, "--overwrite")["n_samples"], 2)
    for folder, suffix in (("Annotations", ".xml"), ("JPEGImages", ".jpg")):
        shutil.copy(os.path.join(root, folder, "2007_000032" + suffix), os.path.join(root, folder, "größe" + suffix))
    write(os.path.join(root, "ImageSets", "Main", "bom.txt"), "größe\n2007_000032\n")
    run("pack", "--voc", "--image-set", "bom", root, out, "--overwrite")
    expect(run("get", out, 0, "file_name")[0], "größe.jpg")
    write(os.path.join(root, "ImageSets", "Main", "twice.txt"), "2007_000033\n2007_000032\n2007_000033\n")
    _, err = run("pack", "--voc", "--image-set", "twice", root, world.fresh("voc-bad"), status=1)
    assert "2007_000033 is listed twice" in err, err


@test
def masks_of_voc_are_a_field_or_a_list(world):
    for n, names in ((0, []), (2, ["masks", "object_masks"]), (3, ["mask", "object_mask"])):
        root, out = voc_of(world, "voc-masks", masks=n), world.fresh("voc-masks-out")
        run("pack", "--voc", root, out)
        fields = {field["name"]: field["kind"] for field in run_json("info", out)["fields"]}
        expect([name for name in fields if "mask" in name], names)
        expect(run_json("verify", out, "--decode")["n_bad"], 0)
        for i, (stem, _) in enumerate(VOC):
            for name, folder in zip(names, ("SegmentationClass", "SegmentationObject")):
                found, path = run_raw("get", out, i, name)[0], os.path.join(root, folder, stem + ".png")
                if os.path.exists(path):
                    with open(path, "rb") as f:
                        expect(found[-os.path.getsize(path):], f.read())
                else:
                    assert len(found) < 32, found
    shutil.rmtree(root)


@test
def mistakes_in_voc_are_named_with_their_line(world):
    root = voc_of(world, "voc-bad-files")
    path = os.path.join(root, "Annotations", "2007_000033.xml")
    good = OBJECT % ("dog", "Left", 0, 1, 1, 1, 50, 40)
    for text, says in (("", "line 1: it is not XML"), ("<annotation>\n<object>", "line 2: it is not XML"),
                       ("<a/>", "the first element is a; must be annotation"),
                       ("<annotation><object></object></annotation>", "object: it has no name"),
                       ("<annotation><object><name>x</name></object></annotation>", "object x: bndbox must have xmin"),
                       ("<annotation>%s</annotation>" % good.replace("<xmax>50", "<xmax>0.5"), "xmax and ymax must be at least"),
                       ("<annotation>%s</annotation>" % good.replace("<xmax>50", "<xmax>nan"), "bndbox/xmax: value is 'nan'"),
                       ("<annotation>%s</annotation>" % good.replace("<xmax>50", "<xmax>1e60"), "value is '1e60'"),
                       ("<annotation>%s</annotation>" % good.replace("<xmax>50", "<xmax>0x5"), "value is '0x5'"),
                       ("<annotation>%s</annotation>" % good.replace("<truncated>0", "<truncated>2"), "truncated: value is '2'"),
                       ("<annotation>%s</annotation>" % good.replace("<ymin>", "<xmin>2</xmin><ymin>", 1), "object/bndbox/xmin: it appears twice"),
                       ("<annotation>%s</annotation>" % good.replace("dog", "d" * 300), "object/name: value is longer"),
                       ("<annotation>" + "<x>" * 70, "elements are nested more than 64 deep"),
                       ('<!DOCTYPE a [<!ENTITY x "y">]><annotation/>', "DOCTYPE")):
        write(path, text)
        _, err = run("pack", "--voc", root, world.fresh("voc-refused"), status=1)
        assert says in err and err.count("\n") == 1, (says, err)
    write(path, "<annotation/>")
    os.remove(os.path.join(root, "JPEGImages", "2007_000033.jpg"))
    _, err = run("pack", "--voc", root, world.fresh("voc-refused"), status=1)
    assert "JPEGImages/2007_000033.jpg: missing, but the annotations list it" in err, err


@test
def bad_objects_and_files_of_voc_may_be_left_out_and_are_counted(world):
    root = voc_of(world, "voc-skip")
    path = os.path.join(root, "Annotations", "2007_000033.xml")
    write(path, "<annotation><object><name>x</name></object></annotation>")
    _, err = run("pack", "--voc", root, world.fresh("voc-skipped"), status=1)
    assert err.endswith("bndbox must have xmin, ymin, xmax and ymax (or leave it out with --skip-bad)\n"), err
    _, err = run("pack", "--voc", root, world.fresh("voc-skipped"), "--skip-bad")
    assert "warning: 1 bad annotation is left out (an object, or an XML file with its image); the first: %s: line 1: object x" % path in err, err
    # An image whose every object is bad is none of the background.
    expect([run("get", world.path("voc-skipped"), i, "file_name")[0] for i in range(2)], ["2007_000032.jpg", "2008_000001.jpg"])
    good = OBJECT % ("dog", "Left", 0, 1, 1, 1, 50, 40)
    write(path, "<annotation>%s</annotation>" % good)
    wanted = run_json("pack", "--voc", root, world.fresh("voc-skipped"))["identity"]
    bad = [good.replace("<xmax>50", "<xmax>" + value) for value in ("0.5", "nan", "1e60", "-1")]
    bad += [good.replace("<truncated>0", "<truncated>" + value) for value in ("2", "0.5", "x", "-1")] + [good.replace("dog", "d" * 300)]
    bad += [good.replace("ymax", "other"), "<object/>", good.replace("<name>dog</name>", "")]
    for objects in ([good] + bad, bad + [good], bad[:5] + [good] + bad[5:]):
        write(path, "<annotation>\n%s</annotation>" % "\n".join(objects))
        told = run_json("pack", "--voc", root, world.fresh("voc-skipped"), "--skip-bad")
        expect((told["annotations"]["n_bad"], told["identity"]), (len(bad), wanted))
    write(path, "<annotation><size><width>x</width></size>%s</annotation>" % good)  # concerns the image
    _, err = run("pack", "--voc", root, world.fresh("voc-skipped"), "--skip-bad")
    assert "warning: 1 bad annotation is left out (an object, or an XML file with its image); the first: " in err, err
    expect([run("get", world.path("voc-skipped"), i, "file_name")[0] for i in range(2)], ["2007_000032.jpg", "2008_000001.jpg"])
    for stem, _ in VOC:
        write(os.path.join(root, "Annotations", stem + ".xml"), "<x/>")
    _, err = run("pack", "--voc", root, world.fresh("voc-skipped"), "--skip-bad", status=1)
    assert "--skip-bad: no annotation is left, all 3 are bad" in err, err


@test
def the_picture_of_voc_has_the_name_of_its_file(world):
    root = voc_of(world, "voc-names")
    pictures = os.path.join(root, "JPEGImages")
    for stem, said in (("2007_000032", "2008_000001.jpg"), ("2007_000033", "../absent.jpg"), ("2008_000001", "x" * 300)):
        path = os.path.join(root, "Annotations", stem + ".xml")
        with open(path) as f:
            text = f.read()
        assert "<filename>%s.jpg</filename>" % stem in text
        write(path, text.replace("<filename>%s.jpg" % stem, "<filename>" + said))
    os.rename(os.path.join(pictures, "2007_000033.jpg"), os.path.join(pictures, "2007_000033.JPEG"))
    Image.new("RGB", (50, 40)).save(os.path.join(pictures, "2008_000001.png"))
    out = world.fresh("voc-names-out")
    run("pack", "--voc", root, out)
    expect([run("get", out, i, "file_name")[0] for i in range(3)], ["2007_000032.jpg", "2007_000033.JPEG", "2008_000001.jpg"])
    os.remove(os.path.join(pictures, "2008_000001.jpg"))
    run("pack", "--voc", root, out, "--overwrite")
    expect(run("get", out, 2, "file_name")[0], "2008_000001.png")
    for ending in ("Png", "Jpg", "Jpeg"):
        shutil.copy(os.path.join(pictures, "2007_000032.jpg"), os.path.join(pictures, "2008_000001." + ending))
        for other in ("png", "Png", "Jpg"):
            if other != ending and os.path.exists(os.path.join(pictures, "2008_000001." + other)):
                os.remove(os.path.join(pictures, "2008_000001." + other))
        run("pack", "--voc", root, out, "--overwrite")
        expect(run("get", out, 2, "file_name")[0], "2008_000001." + ending)
    os.remove(os.path.join(pictures, "2008_000001.Jpeg"))
    _, err = run("pack", "--voc", root, out, "--overwrite", status=1)
    assert "2008_000001.jpg: missing, but the annotations list it (.jpeg, .png, and these and .jpg in capitals" in err, err


if __name__ == "__main__":
    sys.exit(main(TESTS))
