#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In which forms `penstock pack` stores images: planes, files as they came, pixels, other JPEGs.
usage: test_pack.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.

With PENSTOCK_TEST_IMAGES = a folder of images, the same over all of them.
"""
import errno
import io
import json
import os
import shutil
import subprocess
import sys

from test_command import (Skip, crc32c, expect, image_folder, main, run, run_json, run_raw,
                          write_picture)
from PIL import Image

import second_reader
from test_outputs import failing

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def jpeg_bytes(image, **options):
    out = io.BytesIO()
    image.info = {}  # else Pillow writes the comment of the file that the image came from
    image.save(out, "JPEG", **options)
    return out.getvalue()


def odd_jpeg(data):
    """Return the image in a form that no encoder writes: the last byte of one run between restart markers
    is filled up with a zero bit, and that of the others with ones."""
    wanted = opened(data).tobytes()
    for at in range(data.index(b"\xff\xda"), len(data) - 2):
        if data[at + 1] == 0xff and 0xd0 <= data[at + 2] <= 0xd7 and data[at] & 1:
            odd = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
            if opened(odd).tobytes() == wanted:
                return odd
    raise AssertionError("no restart marker behind a bit that does not matter")


def source(world):
    """Return a folder with two classes: what make_images makes, and one file of every kind here; and the path of the
    one that cannot be rebuilt."""
    src = world.path("forms")
    odd = "odd/odd.jpg"
    if os.path.isdir(src):
        return src, odd
    for i, kind in enumerate(["444", "422", "420", "progressive", "gray", "png"]):
        write_picture(os.path.join(src, "odd", kind + (".png" if kind == "png" else ".jpg")), kind,
                      i, 150 + 7 * i, 120 - 3 * i)
    exif = Image.Exif()
    exif[0x112] = 6
    turned = opened(read(os.path.join(src, "odd", "420.jpg")))
    write(os.path.join(src, "odd", "turned.jpg"), jpeg_bytes(turned, quality=80, exif=exif))
    make_images(12, os.path.join(src, "made"))
    restarts = world.path("restarts")
    make_images(1, restarts, "--kind", "restart")
    write(os.path.join(src, odd), odd_jpeg(read(os.path.join(restarts, os.listdir(restarts)[0]))))
    return src, odd


def make_images(n, folder, *options):
    subprocess.run([sys.argv[2], str(n), folder, *options], check=True, stdout=subprocess.DEVNULL)


def packed(world, src, *options):
    """Pack; returns the data set, its files and what was told."""
    out = world.fresh("form")
    told = run_json("pack", src, out, *options)
    files = run_json("info", out)
    expect(files["fields"][0]["images"], told["images"])
    expect(files["note"], told["note"])
    expect(run_json("verify", out, "--decode")["n_bad"], 0)
    return out, told


def keys(data):
    n = run_json("info", data)["n_samples"]
    return [run("get", data, i, "key")[0] for i in range(n)]


def get(data, i):
    return run_raw("get", data, i, "jpg")[0]


def opened(data):
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


def n_of(images, *names):
    return [images[name] for name in names]


def sizes(data):
    with Image.open(io.BytesIO(data)) as image:
        return image.size, image.getexif().get(0x112, 1)


# ---- planes -------------------------------------------------------------------------------------

def check_files(src, data, may_differ=()):
    """Check that every file comes back byte for byte, except these, whose pixels do. Return how many came."""
    n = 0
    for i, key in enumerate(keys(data)):
        came, wanted = get(data, i), read(os.path.join(src, key))
        if key in may_differ:
            assert came != wanted and opened(came).tobytes() == opened(wanted).tobytes(), key
            n += 1
        else:
            assert came == wanted, key
    return n


@test
def names_that_begin_with_a_dot_are_no_classes_and_no_images_as_in_place(world):
    src = world.fresh("dots")
    for name in ("b/1.png", "a/2.png", "a/._2.png", ".ipynb_checkpoints/3.png", "a/.cache/4.png"):
        os.makedirs(os.path.dirname(os.path.join(src, name)), exist_ok=True)
        Image.new("RGB", (8, 8)).save(os.path.join(src, name))
    in_place = run_json("info", src)
    out = world.path("dots-packed")
    said = run("pack", src, out)[1]
    assert f"3 names in {src} begin with a dot and are left out" in said, said
    packed = run_json("info", out)
    expect((in_place["n_samples"], in_place["classes"]), (2, ["a", "b"]))
    expect((packed["n_samples"], packed["classes"]), (2, ["a", "b"]))


@test
def a_folder_of_names_with_a_dot_says_why_it_holds_no_images(world):
    src = world.fresh("hidden")
    for name in (".images/1.png", ".2.png"):
        os.makedirs(os.path.dirname(os.path.join(src, name)), exist_ok=True)
        Image.new("RGB", (8, 8)).save(os.path.join(src, name))
    err = run("pack", src, world.path("hidden-packed"), status=2)[1]
    assert "holds no images" in err and ".png file; 2 names begin with a dot and are left out" in err, err
    shutil.rmtree(os.path.join(src, ".images"))
    err = run("pack", src, world.path("hidden-packed"), status=2)[1]
    assert ".png file; 1 name begins with a dot and is left out" in err, err


@test
def an_output_whose_name_begins_with_a_dot_is_not_left_out(world):
    src = world.fresh("dot-output")
    os.makedirs(src)
    Image.new("RGB", (8, 8)).save(os.path.join(src, "1.png"))
    for more in ((), ("--overwrite",)):
        err = run("pack", src, os.path.join(src, ".packed"), *more)[1]
        assert "left out" not in err, err


@test
def a_data_set_among_class_folders_is_named_with_what_to_do(world):
    src = world.fresh("own-output")
    for name in ("a/1.png", "b/2.png"):
        os.makedirs(os.path.dirname(os.path.join(src, name)), exist_ok=True)
        Image.new("RGB", (8, 8)).save(os.path.join(src, name))
    out = os.path.join(src, "out")
    run("pack", src, out)
    run("pack", src, out, "--overwrite")  # it is no source of itself
    for command in (("pack", src, world.fresh("own-output-2")), ("info", src)):
        _, err = run(*command, status=2)
        assert "out holds no images, but a manifest.json, as a data set has; move it elsewhere" in err, err
    _, err = run("pack", out, world.path("own-output-2"), status=2)
    assert f"{out} is a data set already; the Python package packs one anew, penstock.pack(SRC, OUT)" in err, err
    shutil.move(out, world.fresh("own-output-moved"))
    os.makedirs(world.path("web-app"))
    write(os.path.join(world.path("web-app"), "manifest.json"), b'{"name": "app"}')
    _, err = run("pack", world.path("web-app"), world.path("own-output-3"), status=2)
    assert "holds no images: neither it nor" in err, err
    run("pack", src, world.path("own-output-2"))
    assert "2 classes" in run("info", src)[0] or "classes   2" in run("info", src)[0]


@test
def a_file_beside_class_folders_that_cannot_be_read_is_left_out_in_place_too(world):
    env = failing({"open:notes": errno.EACCES, "openat:notes": errno.EACCES})
    src = world.fresh("unreadable")
    for name in ("a/1.png", "b/2.png", "3.png", "notes"):
        os.makedirs(os.path.dirname(os.path.join(src, name)), exist_ok=True)
        Image.new("RGB", (8, 8)).save(os.path.join(src, name), "PNG")
    in_place = json.loads(run("info", "--json", "--by-content", src, env=env)[0])
    expect((in_place["n_samples"], in_place["n_left_out"]), (2, 1))
    said = run("pack", "--by-content", src, world.path("unreadable-packed"), env=env)[1]
    assert "1 image next to the class folders" in said, said


@test
def jpegs_become_planes_and_come_back_byte_for_byte(world):
    src, odd = source(world)
    out, told = packed(world, src)
    n = told["n_samples"]
    images = told["images"]
    expect(check_files(src, out, [odd]), 1)
    expect(images["planes"] + images["passthrough"], n)
    expect(images["exact"] + images["equivalent"], images["planes"])
    expect(n_of(images, "equivalent", "pixels"), [1, 0])
    assert images["exact"] > n // 2 and images["passthrough"] >= 1, images
    info = run_json("info", out)["fields"][0]
    expect(info["codec"], "planes")
    expect(info["codecs"].get("planes"), images["planes"])
    expect(info["stored_bytes"], told["image_bytes"])
    expect(told["file_bytes"], sum(os.path.getsize(os.path.join(src, k)) for k in keys(out)))
    assert told["image_bytes"] < told["file_bytes"]


@test
def exact_keeps_what_would_not_come_back_byte_for_byte(world):
    src, odd = source(world)
    _, planes = packed(world, src)
    out, told = packed(world, src, "--jpeg", "exact")
    expect(check_files(src, out), 0)
    expect(told["images"]["equivalent"], 0)
    expect(told["images"]["exact"], planes["images"]["exact"])
    expect(told["images"]["passthrough"], planes["images"]["passthrough"] + 1)


@test
def keep_keeps_all(world):
    src, _ = source(world)
    out, told = packed(world, src, "--jpeg", "keep")
    expect(check_files(src, out), 0)
    expect(n_of(told["images"], "planes", "passthrough"), [0, told["n_samples"]])
    expect(run_json("info", out)["fields"][0]["codec"], "none")
    expect(told["image_bytes"], told["file_bytes"])


@test
def the_pixels_are_the_same_in_every_form_without_loss(world):
    src, _ = source(world)
    seen = {}
    for form in ("planes", "exact", "keep"):
        out, _ = packed(world, src, "--jpeg", form)
        for crop in ("random", "center", "none"):
            for size in (24, 97):
                told = run_json("bench", out, "--digest", "--no-ceilings", "--crop", crop, "--size",
                                size, "--last", "short", "--batch-size", 3)
                seen.setdefault((crop, size), set()).add(told["digest"])
    expect({key: len(digests) for key, digests in seen.items()}, {key: 1 for key in seen})


def shard_bytes(data):
    names = sorted(os.listdir(data))
    return [(name, crc32c(read(os.path.join(data, name)))) for name in names]


@test
def what_is_written_does_not_depend_on_threads(world):
    src, _ = source(world)
    for options in ([], ["--jpeg", "exact", "--compress", "zstd"], ["--pixels", 40],
                    ["--max-side", 60, "--quality", 70]):
        written = [shard_bytes(packed(world, src, "--threads", n, *options)[0]) for n in (1, 2, 7)]
        expect(written[1], written[0], options)
        expect(written[2], written[0], options)


@test
def parts_of_planes_join_to_the_whole(world):
    src, _ = source(world)
    whole, _ = packed(world, src)
    parts = [world.fresh("slice%d" % i) for i in range(3)]
    for i, part in enumerate(parts):
        run("pack", src, part, "--part", "%d/3" % i)
    out = world.fresh("joined")
    run("merge", *parts, out)
    expect(run_json("info", out)["identity"], run_json("info", whole)["identity"])
    expect(run_json("info", out)["fields"], run_json("info", whole)["fields"])


@test
def parts_of_tasks_join_in_the_order_given(world):
    src = os.path.join(source(world)[0], "odd")
    folders = [world.fresh("day%d" % i) for i in range(3)]
    files = sorted(os.listdir(src))
    for i, folder in enumerate(folders):
        os.mkdir(folder)
        for name in files[i::3]:
            os.link(os.path.join(src, name), os.path.join(folder, name))
    pack_id, parts = "0123456789abcdef" * 2, [world.fresh("task%d" % i) for i in range(4)]
    for i, part in enumerate(parts):  # the last one is another attempt at the third task
        told, _ = run("pack", folders[min(i, 2)], part, "--task", "day%d" % min(i, 2), "--pack-id", pack_id,
                      "--attempt", i)
        assert "next: when all tasks have packed their parts, " in told and " merge PART... OUT" in told, told
    out = world.fresh("joined")
    _, said = run("merge", *parts, out, status=2)
    assert "task2 (attempt 2) and " in said and "task3 (attempt 3) are both of task day2" in said, said
    _, said = run("merge", *parts[:3], out, "--pack-id", "f" * 32, status=2)
    assert "not of the pack " + "f" * 32 in said, said
    run("merge", parts[2], parts[0], parts[1], out, "--pack-id", pack_id)
    run("verify", out)
    expect(keys(out), files[2::3] + files[0::3] + files[1::3])


@test
def people_are_told_how_many(world):
    src, _ = source(world)
    out = world.fresh("told")
    told, _ = run("pack", src, out)
    images = run_json("info", out)["fields"][0]["images"]
    for text in (told, run("info", out)[0]):
        for part in ("%d as planes" % images["planes"],
                     "%d given back byte for byte" % images["exact"],
                     "1 as an equivalent JPEG", "%d as " % images["passthrough"]):
            assert part in text, (part, text)
    assert " of files became " in told, told


# ---- with loss ----------------------------------------------------------------------------------

def shorter_to(image, side):
    """torchvision's Resize(side), without enlarging."""
    w, h = image.size
    if min(w, h) <= side:
        return image
    size = (side, int(side * h / w)) if w <= h else (int(side * w / h), side)
    return image.resize(size, Image.BILINEAR)


def longer_to(image, side):
    longer = max(image.size)
    if longer <= side:
        return image
    size = tuple(max(1, (2 * n * side + longer) // (2 * longer)) for n in image.size)
    return image.resize(size, Image.BILINEAR)


def check_pixels(src, data, side):
    for i, key in enumerate(keys(data)):
        wanted = shorter_to(opened(read(os.path.join(src, key))), side)
        assert get(data, i) == wanted.tobytes(), key


def check_smaller(src, data, side, quality, form):
    """Files equal Pillow's, but for those that say their orientation: of these, pixels do."""
    n_turned = 0
    for i, key in enumerate(keys(data)):
        came, original = get(data, i), read(os.path.join(src, key))
        image = opened(original)
        if side and not quality and max(image.size) <= side:
            assert came == original, key
            continue
        wanted = jpeg_bytes(longer_to(image, side) if side else image, quality=quality or 90)
        turned = sizes(original)[1]
        if 1 < turned <= 8:
            n_turned += 1
            expect(sizes(came)[1], turned, key)
            assert opened(came).tobytes() == opened(wanted).tobytes(), key
        else:
            assert came == wanted, (key, form)
    return n_turned


@test
def pixels_are_those_of_pillows_resize(world):
    src, _ = source(world)
    for side, more in ((50, []), (1, []), (9999, []), (100, ["--compress", "zstd:1"])):
        out, told = packed(world, src, "--pixels", side, *more)
        check_pixels(src, out, side)
        expect(n_of(told["images"], "planes", "passthrough", "pixels"), [0, 0, told["n_samples"]])
        expect(told["note"], "penstock pack pixels=%d" % side)
        field = run_json("info", out)["fields"][0]
        expect(field["codec"], "zstd" if more else "none")
        expect("zstd" in field["codecs"], bool(more))
        run("bench", out, "--epochs", 1, "--no-ceilings", "--size", 16)


@test
def smaller_jpegs_are_those_of_pillow(world):
    src, _ = source(world)
    for side, quality, note in ((64, 75, "max_side=64 quality=75 reencoded=all"),
                                (160, 0, "max_side=160 quality=90 reencoded=shrunk"),
                                (0, 40, "quality=40 reencoded=all")):
        for form in ("planes", "keep"):
            options = ["--max-side", side] * bool(side) + ["--quality", quality] * bool(quality)
            out, told = packed(world, src, "--jpeg", form, *options)
            n_turned = check_smaller(src, out, side, quality, form)
            expect(n_turned, 1, options)
            expect(told["note"], "penstock pack " + note)
            expect(told["images"]["planes"] > 0, form == "planes")
            assert note in run("info", out)[0]


@test
def bad_images_are_named_whatever_is_made_of_them(world):
    src = world.fresh("bad-forms")
    for i in range(4):
        write_picture(os.path.join(src, "%d.jpg" % i), "420", i, 90, 80)
    data = read(os.path.join(src, "2.jpg"))
    write(os.path.join(src, "2.jpg"), data[:-30])
    write(os.path.join(src, "3.jpg"), b"\xff\xd8\xff\xe0 and then nothing")
    for options in ([], ["--jpeg", "keep"], ["--pixels", 16], ["--max-side", 16],
                    ["--max-side", 900], ["--quality", 60]):
        told = run_json("pack", src, world.fresh("bad-out"), "--skip-bad", *options)
        expect([s["path"] for s in told["skipped"]], ["2.jpg", "3.jpg"], options)
        expect(told["n_samples"], 2)
        _, err = run("pack", src, world.fresh("bad-out"), *options, status=1)
        assert "2.jpg: " in err and "3.jpg: " in err, err


@test
def options_that_contradict_or_make_no_sense_are_named(world):
    src, _ = source(world)
    rows = [(["--jpeg", "exakt"], "--jpeg: value is 'exakt'; must be one of planes, exact, keep"),
            (["--jpeg", ""], "--jpeg: value is ''; must be one of"),
            (["--pixels", 0], "--pixels"), (["--pixels", 65536], "--pixels"),
            (["--pixels", "many"], "--pixels"), (["--max-side", 0], "--max-side"),
            (["--max-side", -1], "--max-side"), (["--quality", 0], "--quality"),
            (["--quality", 101], "--quality"), (["--quality", "high"], "--quality"),
            (["--pixels", 9, "--jpeg", "keep"], "--jpeg"),
            (["--pixels", 9, "--quality", 9], "--quality"),
            (["--pixels", 9, "--max-side", 9], "--max-side")]
    for options, part in rows:
        out = world.fresh("no")
        text, err = run("pack", src, out, *options, status=2)
        assert part in err and err.count("\n") == 1 and text == "", (options, err)
        assert not os.path.exists(out), options


# ---- damaged JPEGs ------------------------------------------------------------------------------

def damaged_folder(world):
    """Whole JPEGs, one that Pillow loads by guessing, and one that it refuses."""
    src = world.fresh("damaged")
    os.mkdir(src)
    out = io.BytesIO()
    Image.effect_mandelbrot((200, 150), (-2, -1, 1, 1), 60).convert("RGB").save(out, "JPEG")
    whole = out.getvalue()
    middle = len(whole) // 2
    for name, data in (("a.jpg", whole), ("b.jpg", whole[:middle] + b"\xff\xd3" + whole[middle + 2:]),
                       ("c.jpg", whole[:middle])):
        with open(os.path.join(src, name), "wb") as f:
            f.write(data)
    return src


@test
def damaged_jpegs_are_refused_unless_they_are_accepted(world):
    src = damaged_folder(world)
    for options in ([], ["--pixels", 64]):
        out = world.fresh("no")
        _, err = run("pack", src, out, *options, status=1)
        lines = [line for line in err.splitlines() if line.startswith("  ")]
        expect([line.split(":")[0].strip() for line in lines], ["b.jpg", "c.jpg"])
        assert lines[0].endswith("; Pillow loads it by guessing: --damaged accept packs it as Pillow shows it"), lines
        assert "Pillow" not in lines[1] and not os.path.exists(out), lines
    _, err = run("pack", src, world.fresh("no"), "--damaged", "accept", status=1)
    assert "b.jpg" not in err and "c.jpg" in err, err
    for name, words in (("x.h5", "pack it with Python: penstock.pack('"), ("x.parquet", "penstock.pack take in Python"),
                        ("train.bin", "has no .idx of Megatron-LM next to it")):
        path = world.fresh(name)
        open(path, "wb").close()
        _, err = run("pack", path, world.fresh("no"), status=2)
        assert path in err and words in err, err
    _, err = run("pack", src, world.fresh("no"), "--damaged", "keep", status=2)
    assert "refuse" in err and "accept" in err, err


@test
def accepted_damage_is_kept_marked_and_counted(world):
    src = damaged_folder(world)
    os.remove(os.path.join(src, "c.jpg"))
    for options in ([], ["--jpeg", "keep"], ["--jpeg", "exact"]):
        data, told = packed(world, src, "--damaged=accept", *options)
        expect(n_of(told["images"], "damaged", "passthrough_jpeg"), [1, 2 if "keep" in options else 1])
        expect(told["passthrough"].get("damaged", 0), 0 if "keep" in options else 1)
        expect(get(data, 1), read(os.path.join(src, "b.jpg")))
        files = second_reader.Data(data)
        files.verify()
        expect(files.fields[0].found["damaged"], 1)
        text, _ = run("info", data)
        assert "; 1 damaged)" in text, text
        expect(run_json("verify", data)["n_damaged_images"], 1)
        text, _ = run("verify", data, "--decode")
        assert "every image decodes (1 image is marked as damaged and needs guesses)" in text, text
    kept = run_json("info", data, "--passthrough")["passthrough_jpegs"]
    expect([(image["key"], image["reason"]) for image in kept], [("b.jpg", "damaged")])
    bench = run_json("bench", data, "--epochs", 1, "--no-ceilings", "--batch-size", 2, "--size", 16)
    expect(bench["n_damaged_images"], 1)
    pixels, told = packed(world, src, "--damaged=accept", "--pixels", 150)
    expect(n_of(told["images"], "damaged", "pixels"), [0, 2])
    expect(get(pixels, 1), opened(read(os.path.join(src, "b.jpg"))).tobytes())


# ---- the bytes ----------------------------------------------------------------------------------

@test
def a_second_reader_agrees(world):
    src, _ = source(world)
    for options in ([], ["--jpeg", "exact"], ["--pixels", 40, "--compress", "zstd"],
                    ["--quality", 30]):
        out, told = packed(world, src, *options)
        data = second_reader.Data(out)
        data.verify()
        field = data.fields[0]
        expect(field.found["equivalent"], told["images"]["equivalent"])
        expect(field.found["codecs"].get("planes", 0), told["images"]["planes"])
        expect(data.m["note"], told["note"])


@test
def a_second_reader_rebuilds_files_from_their_planes(world):
    if not second_reader.ZSTD:
        raise Skip("missing: a zstd for Python")
    src = world.fresh("to-rebuild")
    for i, kind in enumerate(["444", "422", "420", "gray"]):
        for side in (20, 60, 120, 200):
            write_picture(os.path.join(src, "%s-%d.jpg" % (kind, side)), kind, i, side + 30, side)
    out, told = packed(world, src)
    data = second_reader.Data(out, planes=True)
    data.verify()
    expect(data.n_not_decompressed, 0)
    shards = [second_reader.Shard(data, m) for m in data.m["shards"]]
    lanes = [stored[10] for shard in shards for k in range(shard.n)
             for _, entry, stored in shard.fields_of(k) if entry and entry[4] == 2]
    expect(len(lanes), told["images"]["planes"])
    assert 16 in lanes and 64 in lanes, lanes


def damage(path, at):
    data = bytearray(read(path))
    data[at] ^= 0x20
    write(path, data)


def places(data):
    """Yield (record, first byte, bytes) of the stored planes of each record of a one-shard data set."""
    reader = second_reader.Data(data)
    shard = second_reader.Shard(reader, reader.m["shards"][0])
    for k in range(shard.n):
        entry = next(e for f, e, _ in shard.fields_of(k) if f.name == "jpg")
        if entry[4] == 2:
            yield k, shard.offsets[k] + reader.head_size, entry[0]


@test
def damage_in_planes_is_named_by_record(world):
    src, _ = source(world)
    for turn in range(3):
        out, _ = packed(world, src)
        shard = os.path.join(out, "shard-000000.pstk")
        found = list(places(out))
        record, start, size = found[turn * len(found) // 3]
        at = start + (size - 1) * turn // 2
        damage(shard, at)
        told = run_json("verify", out, status=1)
        expect((told["n_bad"], told["bad"][0]["record"]), (1, record))
        bad = told["bad"][0]
        assert bad["offset"] <= at < bad["offset"] + bad["length"] and bad["reason"], bad
        _, err = run("bench", out, "--order", "sequential", "--batch-size", 1, "--epochs", 1,
                     "--no-ceilings", status=1)
        assert "record %d" % record in err and os.path.basename(shard) in err, err
        _, err = run("get", out, record, "jpg", status=1)
        assert "record %d" % record in err, err
        for other in range(record):
            get(out, other)


# ---- real images --------------------------------------------------------------------------------

@test
def the_images_of_the_given_folder_keep_all_promises(world):
    src = os.environ.get("PENSTOCK_TEST_IMAGES")
    if not src:
        raise Skip("PENSTOCK_TEST_IMAGES names no folder")
    classes, _ = image_folder(src)
    out, told = packed(world, src)
    n_equivalent = 0
    for i, key in enumerate(keys(out)):
        came, wanted = get(out, i), read(os.path.join(src, key))
        n_equivalent += came != wanted
        assert came == wanted or opened(came).tobytes() == opened(wanted).tobytes(), key
    expect(n_equivalent, told["images"]["equivalent"])
    print("# %d images of %d classes: %r, %.4f of the bytes" % (
        told["n_samples"], len(classes), told["images"], told["image_bytes"] / told["file_bytes"]))
    out, _ = packed(world, src, "--pixels", 256)
    check_pixels(src, out, 256)
    out, _ = packed(world, src, "--max-side", 300, "--quality", 80)
    check_smaller(src, out, 300, 80, "planes")


@test
def folders_that_lie_too_deep_are_refused_with_the_reason(world):
    src, out = world.fresh("deep"), world.fresh("packed-deep")
    os.makedirs(os.path.join(src, "a", *["folder-%06d" % i for i in range(66)]))
    _, err = run("pack", src, out, status=2)
    assert "a/folder-000000/folder-000001/" in err and "folders are nested too deeply here; must be at most 64 levels" in err, err


@test
def images_with_a_palette_are_counted_and_warned_of_once(world):
    src, out = world.fresh("palettes"), world.fresh("packed-palettes")
    for i in range(12):
        path = os.path.join(src, "%02d.png" % i)
        write_picture(path, "png", i, 40, 30)
        if i % 4 == 1:
            with Image.open(path) as image:
                image.convert("L" if i == 5 else "P").save(path)  # gray is ordinary
    for options in ([], ["--pixels", 16], ["--overwrite", "--max-side", 16]):
        _, err = run("pack", src, out, *options, "--overwrite")
        assert "warning: 2 PNG files have a palette. " in err and err.count("palette.") == 1, err
        expect(run_json("pack", src, out, *options, "--overwrite")["n_palette_images"], 2)
    _, err = run("pack", src, out, "--overwrite")
    bench = ["bench", out, "--epochs", 3, "--no-ceilings", "--batch-size", 4, "--size", 8]
    _, err = run(*bench)
    expect(err.count("warning: some images are PNG files with a palette."), 1, err)
    expect(run_json(*bench)["n_palette_images"], 6)
    picture = world.path("palettes-sheet.png")
    _, err = run("show", out, "-o", picture, "--size", 16)
    expect(err.count("warning: some images are PNG files with a palette."), 1, err)
    _, err = run("show", out, "--ids", "2,5", "-o", picture, "--size", 16)
    expect(err, "")
    _, err = run("bench", world.data, *bench[2:])
    expect(err, "")


if __name__ == "__main__":
    sys.exit(main(TESTS))
