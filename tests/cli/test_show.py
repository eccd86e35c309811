#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`show` draws ids, names of classes, masks, boxes, polygons and keypoints beside the pixels of samples, each at its place
and in its colour; --plain draws nothing of it.
usage: test_show.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import json
import os
import sys

from PIL import Image

from test_command import expect, main, run, run_json, write_picture

TESTS = []


def test(function):
    TESTS.append(function)
    return function


SIDE, LINE, GAP = 120, 15, 4
RED, BLUE, GREEN, ORANGE = (229, 57, 53), (30, 136, 229), (67, 160, 71), (251, 140, 0)  # colours of classes 0, 1, 2, 3
OUTLINE, SHOWN, HIDDEN = (255, 235, 59), (0, 230, 64), (41, 121, 255)


def picture(path, *arguments):
    run("show", *arguments, "-o", path)
    with Image.open(path) as image:
        image.load()
        return image


def ink(image):
    """Return the pixels of a text, as a set of places."""
    return {(x, y) for x in range(image.width) for y in range(image.height) if image.getpixel((x, y)) == (0, 0, 0)}


def below(image, i, columns):
    """Return the line below picture i."""
    left, top = i % columns * (SIDE + GAP), i // columns * (SIDE + LINE + GAP) + SIDE
    return image.crop((left, top, left + SIDE, top + LINE))


def coco(world, name, annotations, categories=("cat", "dog", "elk", "fox")):
    """Return a data set of two gray pictures of 60 x 60 pixels, shown at twice their size."""
    folder, out = world.fresh(name), world.fresh(name + "-packed")
    os.mkdir(folder)
    for i in range(2):
        Image.new("RGB", (60, 60), (100, 100, 100)).save(os.path.join(folder, f"{i}.png"))
    images = [{"id": i + 1, "file_name": f"{i}.png", "width": 60, "height": 60} for i in range(2)]
    whole = [{"id": i + 1, "image_id": 1, "iscrowd": 0, "area": 1, "segmentation": [], **annotation}
             for i, annotation in enumerate(annotations)]
    names = [{"id": i, "name": each, "keypoints": ["a", "b", "c"], "skeleton": []} for i, each in enumerate(categories)]
    path = world.path(name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"images": images, "annotations": whole, "categories": names}, file)
    run("pack", folder, out, "--coco", path)
    return out


@test
def ids_and_names_of_classes_stand_below_the_pixels(world):
    folder, out = world.fresh("named"), world.fresh("named-packed")
    for i, name in enumerate(("a", "ab", "ab", "\u00e9")):
        write_picture(os.path.join(folder, name, f"{i}.jpg"), "420", i, 60, 48)
    run("pack", folder, out)
    options = [out, "--size", SIDE, "--seed", 3]
    shown, plain = picture(world.path("s.png"), *options), picture(world.path("p.png"), *options, "--plain")
    expect(plain.size, (2 * SIDE + GAP, 2 * SIDE + GAP))
    expect(shown.size, (2 * SIDE + GAP, 2 * (SIDE + LINE) + GAP))
    lines = [ink(below(shown, i, 2)) for i in range(4)]
    for i in range(4):
        left, row = i % 2 * (SIDE + GAP), i // 2
        one, other = (image.crop((left, row * step, left + SIDE, row * step + SIDE))
                      for image, step in ((shown, SIDE + LINE + GAP), (plain, SIDE + GAP)))
        assert one.tobytes() == other.tobytes(), i
    # "0 a", "1 ab", "2 ab", "3 e": a glyph has 6 pixels, and the text begins after 2.
    expect([max(x for x, _ in line) // 6 for line in lines], [3, 4, 4, 3])
    after = [{place for place in line if place[0] >= 8} for line in lines]
    assert after[1] == after[2] != after[0] and after[3] not in after[:3], "the names"
    assert min(map(len, lines)) > 10 and lines[1] != lines[2], "the ids"
    expect(run_json("show", out, "--ids", 1, "-o", world.path("s.png"), "--size", SIDE)["id"], 1)
    for end in ("gif", "JPG", "pdf"):
        told = run("show", out, "-o", world.path("s." + end), status=2)[1]
        assert f"s.{end}'; must not end in .{end.lower()}, because the picture is a PNG (choose a name that ends in .png)" in told, told
        assert not os.path.exists(world.path("s." + end))


@test
def the_label_is_found_beside_other_numbers(world):
    """A table with columns label and fold: the one of the usual name has the classes."""
    folder = world.fresh("folds")
    for i in range(3):
        write_picture(os.path.join(folder, f"{i}.jpg"), "420", i, 60, 48)
    lines = {}
    for columns in ("label", "label,fold", "fold,height"):
        path = os.path.join(folder, "list.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"path,{columns}\n" + "".join(f"{i}.jpg,{name},{i}\n" if "," in columns else f"{i}.jpg,{name}\n"
                                                     for i, name in enumerate(("5", "77", "123"))))
        shown = picture(world.path("folds.png"), path, "--size", SIDE, "--order", "sequential")
        lines[columns] = [ink(below(shown, i, 2)) for i in range(3)]
    expect([max(x for x, _ in line) // 6 for line in lines["label"]], [3, 4, 5])  # "0 5", "1 77", "2 123"
    expect(lines["label,fold"], lines["label"])
    expect([max(x for x, _ in line) // 6 for line in lines["fold,height"]], [1, 1, 1])  # nothing says which of them is the label


@test
def boxes_have_the_colour_and_the_name_of_their_class(world):
    out = coco(world, "boxed", [{"category_id": 1, "bbox": [5, 20, 20, 30]}, {"category_id": 3, "bbox": [30, 1, 25, 40]}])
    options = [out, "--size", SIDE, "--crop", "none", "--ids", 0]
    shown = picture(world.path("s.png"), *options)
    for colour, (x, y, width, height) in ((BLUE, (10, 40, 40, 60)), (ORANGE, (60, 2, 50, 80))):
        left, top, right, bottom = x, y, x + width - 1, y + height - 1
        for place in ((left, bottom), (right, bottom), (left + 1, bottom - 5), (right - 1, bottom - 5), (right, top + 20)):
            expect(shown.getpixel(place), colour, place)
        for place in ((left - 1, bottom), (right + 1, bottom), (left, bottom + 1), (left + 2, bottom - 2)):
            expect(shown.getpixel(place), (100, 100, 100), place)
    # The names: above the first box, and in the second, above which there is no room; white, and black on what is light.
    dog, fox = shown.crop((10, 27, 32, 40)), shown.crop((60, 2, 82, 15))
    expect([{colour for _, colour in name.getcolors()} for name in (dog, fox)], [{(255, 255, 255), BLUE}, {(0, 0, 0), ORANGE}])
    expect(shown.getpixel((33, 30)), (100, 100, 100))
    assert picture(world.path("s.png"), *options, "--plain").getcolors() == [(SIDE * SIDE, (100, 100, 100))]
    # Boxes follow their image: a mirrored one has them on the other side.
    mirrored = picture(world.path("m.png"), *options, "--flip", 1)
    expect([mirrored.getpixel((SIDE - 1 - x, y)) for x, y in ((10, 99), (49, 99), (109, 81))], [BLUE, BLUE, ORANGE])


@test
def long_names_are_cut_off_and_stay_in_the_picture(world):
    out = coco(world, "long", [{"category_id": 0, "bbox": [55, 30, 5, 5]}], ["\u00e9" * 50 + "\U0001f600"])
    shown = picture(world.path("s.png"), out, "--size", SIDE, "--crop", "none", "--ids", 0)
    columns = [x for x in range(SIDE) if shown.getpixel((x, 48)) == RED]
    expect((columns[0], columns[-1]), (SIDE - (SIDE // 2 + 4), SIDE - 1))


@test
def polygons_and_keypoints_are_drawn(world):
    out = coco(world, "outlined", [{"category_id": 0, "bbox": [10, 10, 40, 40], "num_keypoints": 2,
                                    "segmentation": [[20, 20, 40, 20, 40, 40, 20, 40], [12, 45, 30, 45, 30, 48]],
                                    "keypoints": [15, 30, 2, 45, 30, 1, 1, 1, 0]}])
    shown = picture(world.path("s.png"), out, "--size", SIDE, "--crop", "none", "--ids", 0)
    for place in ((40, 60), (60, 40), (80, 60), (60, 80), (40, 90), (60, 93)):  # both polygons
        expect(shown.getpixel(place), OUTLINE, place)
    expect(shown.getpixel((60, 60)), (100, 100, 100))
    expect([shown.getpixel(place) for place in ((30, 60), (90, 60), (2, 2))], [SHOWN, HIDDEN, (100, 100, 100)])


@test
def masks_colour_their_classes(world):
    folder, out = world.fresh("voc"), world.fresh("voc-packed")
    for name in ("JPEGImages", "Annotations", "SegmentationClass"):
        os.makedirs(os.path.join(folder, name))
    Image.new("RGB", (60, 60), (100, 100, 100)).save(os.path.join(folder, "JPEGImages", "a.jpg"), quality=100)
    mask = Image.new("P", (60, 60), 0)
    mask.putpalette([0] * 768)
    mask.paste(2, (0, 0, 30, 60))
    mask.paste(255, (30, 0, 40, 60))
    mask.save(os.path.join(folder, "SegmentationClass", "a.png"))
    with open(os.path.join(folder, "Annotations", "a.xml"), "w", encoding="utf-8") as file:
        file.write("<annotation><filename>a.jpg</filename><size><width>60</width><height>60</height><depth>3</depth></size>"
                   "</annotation>")
    run("pack", "--voc", folder, out)
    shown = picture(world.path("s.png"), out, "--size", SIDE, "--crop", "none")
    tinted = tuple((100 + value) // 2 for value in GREEN)
    expect([shown.getpixel((x, 50)) for x in (5, 55, 65, 75, 100)], [tinted, tinted] + 3 * [(100, 100, 100)])


@test
def json_alone_draws_nothing_and_reads_nothing_else(world):
    out = coco(world, "json", [{"category_id": 1, "bbox": [5, 20, 20, 30]}])
    told = run_json("show", out, "--ids", 0, "--size", SIDE, cwd=world.root)
    expect((told["size"], told["output"]), (SIDE, None))


if __name__ == "__main__":
    sys.exit(main(TESTS))
