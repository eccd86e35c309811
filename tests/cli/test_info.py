#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reports of `penstock info` and the summary of `penstock pack`: classes, their counts, and why files
are stored unchanged. usage: test_info.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import json
import os
import random
import re
import subprocess
import sys

from test_command import PENSTOCK, crc32c, expect, main, run, run_json, write_picture
from PIL import Image
from test_pack import jpeg_bytes, make_images, odd_jpeg, read, write

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def forms(world):
    """Return a folder of class folders whose files stay as they came for every reason that files can be made for here,
    and planes; {path: reason, or None for planes}."""
    src = world.path("kept-src")
    if os.path.isdir(src):
        return src, world.kept_wanted
    write_picture(os.path.join(src, "a", "1.png"), "png", 1, 40, 30)
    write_picture(os.path.join(src, "a", "2.jpg"), "420", 2, 150, 120)
    noise = Image.frombytes("L", (24, 24), random.Random(1).randbytes(24 * 24))
    write(os.path.join(src, "a", "3.jpg"), jpeg_bytes(noise, quality=100, optimize=True))
    make_images(2, os.path.join(src, "b"), "--kind", "restart")
    restarts = sorted(os.listdir(os.path.join(src, "b")))
    odd = odd_jpeg(read(os.path.join(src, "b", restarts[0])))
    write(os.path.join(src, "b", "odd.jpg"), odd)
    world.kept_wanted = {"a/1.png": "not_jpeg", "a/2.jpg": None, "a/3.jpg": "no_gain",
                         "b/odd.jpg": None, **{"b/" + name: None for name in restarts}}
    return src, world.kept_wanted


def counted(reasons):
    """Return {path: reason} as {reason: files}."""
    found = [reason for reason in reasons.values() if reason]
    return {reason: found.count(reason) for reason in found}


@test
def info_says_which_part_it_is(world):
    src, _ = forms(world)
    pack_id, keys = "0f6a2c3bd4e74d1c8b9a5e6f70819203", ("part", "n_parts", "pack_id", "task", "attempt")
    for options, line, wanted in (
            (("--part", "1/2"), "\n  part      1 of 2 (0 to 1);", [1, 2, None, None, None]),
            (("--task", "day/7", "--pack-id", pack_id, "--attempt", "3"),
             "\n  task      day/7, attempt 3; `penstock merge` joins the parts\n  pack id   %s\n" % pack_id,
             [None, None, pack_id, "day/7", 3]),
            ((), "", [None] * 5)):
        out = world.fresh("part")
        run("pack", src, out, *options)
        text, _ = run("info", out)
        assert line in text and ("merge" in text) == bool(options), text
        told = run_json("info", out)
        if "--part" in options:  # a digest of what is packed
            assert "\n  pack id   " + told["pack_id"] + "\n" in text and len(told["pack_id"]) == 32, (text, told)
            del told["pack_id"]
        expect([told.get(key) for key in keys], wanted)
    exact = os.path.join(os.path.dirname(__file__), "../golden/version2/exact")  # without an id
    told = run_json("info", exact)
    assert (told["part"], told["n_parts"], told.get("pack_id")) == (0, 2, None) and "pack id" not in run("info", exact)[0]


@test
def info_aligns_its_tables_with_long_names(world):
    out = world.fresh("long-names")
    subprocess.run([os.environ["PENSTOCK_WRITE_SAMPLE"], out, "4"], check=True)
    lines = run("info", out)[0].splitlines()
    at = [line.index("dtype") for line in lines if line.startswith("  column ")][0]
    columns = [line for line in lines if " length of " in line]
    assert len(columns) > 2 and max(len(line.split()[0]) for line in columns) > 12, columns
    expect({line[at - 2:at] for line in columns}, {"  "})
    expect({line.rindex(" length of ") for line in columns}, {columns[0].rindex(" length of ")})


@test
def info_reports_kinds_axes_and_attributes(world):
    out = world.fresh("sample")
    subprocess.run([os.environ["PENSTOCK_WRITE_SAMPLE"], out, "4"], check=True)
    fields = {field["name"]: field for field in run_json("info", out)["fields"]}
    keys = ("kind", "of", "rows", "splits", "form", "coordinates")
    expect([fields["boxes"].get(key) for key in keys], ["boxes", "image", "objects", None, "xywh", "pixels"])
    expect([fields["object_runs"].get(key) for key in keys], ["ndarray", None, "objects", "runs", None, None])
    expect([fields["captions"].get(key) for key in keys], ["utf8_list", None, "objects", None, None, None])
    text, _ = run("info", out)
    for line in (r"boxes +boxes f32 .* \[\*, 4\]\n +of image, rows objects, form xywh, coordinates pixels\n",
                 r"object_runs +ndarray u64 .* \[\*\]\n +rows objects, splits runs\n",
                 r"masks +mask_list .* up to 2 x 2\n +of image, rows objects\n"):
        expect(bool(re.search(line, text)), True, line + text)


@test
def pack_and_info_report_why_files_stayed_as_they_came(world):
    src, wanted = forms(world)
    for options, changed in (([], {}), (["--jpeg", "exact"], {"b/odd.jpg": "not_exact"}),
                             (["--jpeg", "keep"], {name: "asked" for name in wanted if name != "a/1.png"})):
        reasons = {**wanted, **changed}
        out = world.fresh("kept")
        told = run_json("pack", src, out, *options)
        expect(told["passthrough"], counted(reasons), options)
        expect(told["images"]["passthrough"], sum(told["passthrough"].values()), options)
        expect(told["images"]["passthrough_png"], 1, options)
        seen = run_json("info", out, "--passthrough")
        expect(seen["passthrough"], told["passthrough"], options)
        expect({file["key"]: file["reason"] for file in seen["passthrough_jpegs"]},
               {name: reason for name, reason in reasons.items() if reason not in (None, "not_jpeg")}, options)
        for file in seen["passthrough_jpegs"]:
            expect(run("get", out, file["sample_id"], "key")[0], file["key"])
            expect(file["field"], "jpg")
        assert "passthrough" not in run_json("info", out)


@test
def people_read_why_files_stayed_as_they_came(world):
    src, _ = forms(world)
    out = world.fresh("kept")
    text, _ = run("pack", src, out, "--jpeg", "exact")
    for part in ("3 as files (2 JPEG, 1 PNG)", "1 kept as a file: not a JPEG",
                 "1 kept as a file: planes would not be smaller", "(--jpeg exact)"):
        assert part in text, (part, text)
        assert part in run("info", out, "--passthrough")[0], part
    listed = run("info", out, "--passthrough")[0]
    assert re.search(r"^ +2  a/3\.jpg: planes would not be smaller$", listed, re.M), listed
    assert "1.png" not in listed, listed
    text, _ = run("info", out)
    assert "a/3.jpg" not in text and "(2 JPEG, 1 PNG)" in text, text


@test
def info_says_how_far_a_field_is_compressed_and_of_what(world):
    src, _ = forms(world)
    out = world.fresh("kept")
    plain = os.path.join(world.path("plain-src"), "0.png")
    os.makedirs(os.path.dirname(plain), exist_ok=True)
    Image.new("RGB", (300, 300)).save(plain)
    for source, options, codec in ((src, [], "planes"),
                                   (os.path.dirname(plain), ["--pixels", "200", "--compress", "zstd"], "zstd")):
        run("pack", source, out, *options, "--overwrite")
        images = run_json("info", out)["fields"][0]
        wanted = "stored in %.0f %% of the plain size, by %s" % (
            100 * images["stored_bytes"] / images["plain_bytes"], codec)
        assert wanted in run("info", out)[0], (wanted, run("info", out)[0])
    run("pack", src, out, "--jpeg", "keep", "--overwrite")
    assert "plain size" not in run("info", out)[0]


@test
def a_list_is_cut_and_all_of_it_is_printed_on_request(world):
    src = world.path("many-src")
    for i in range(23):
        write_picture(os.path.join(src, "class%02d" % i, "1.jpg"), "420", i, 20 + i, 30)
    out = world.path("many")
    run("pack", src, out, "--jpeg", "keep")
    text, _ = run("info", out, "--passthrough")
    expect(text.count("  and 3 more (--all lists them)\n"), 2, text)
    expect(len(re.findall(r"^ +\d+ +1  class\d\d$", text, re.M)), 20)
    expect(text.count("as asked"), 20 + 1)
    text, _ = run("info", out, "--passthrough", "--all")
    assert " more" not in text, text
    expect(len(re.findall(r"^ +\d+ +1  class\d\d$", text, re.M)), 23)
    expect(text.count("as asked"), 23 + 1)
    told = run_json("info", out, "--passthrough")
    expect([len(told[key]) for key in ("classes", "class_counts", "passthrough_jpegs")], [23, 23, 23])


@test
def classes_are_counted(world):
    told = run_json("info", world.data)
    files = {name: sum(len(found) for _, _, found in os.walk(os.path.join(world.src, name)))
             for name in told["classes"]}
    files["c"] -= 1  # notes.txt
    expect(dict(zip(told["classes"], told["class_counts"])), files)
    expect(told["n_unnamed"], 0)
    text, _ = run("info", world.data)
    for number, name in enumerate(told["classes"]):
        assert re.search(r"^ +%d +%d  %s$" % (number, files[name], name), text, re.M), text


def rename_classes(data, names):
    """Give a data set's manifest other class names."""
    path = os.path.join(data, "manifest.json")
    with open(path) as f:
        text = f.read()
    text = re.sub(r'"names":\[[^]]*\]', '"names":' + json.dumps(names), text)
    head, _, _ = text.rpartition(',"crc32c"')
    with open(path, "w") as f:
        f.write(head + ',"crc32c":"%08x"}\n' % crc32c(head.encode()))


@test
def samples_of_classes_without_a_name_are_counted_apart(world):
    src, _ = forms(world)
    out = world.fresh("kept")
    run("pack", src, out)
    rename_classes(out, ["a"])
    told = run_json("info", out)
    expect((told["class_counts"], told["n_unnamed"]), ([3], 3))
    assert "3 samples have a class number that has no name" in run("info", out)[0]


@test
def many_samples_are_counted_only_on_request(world):
    src, out = world.path("lot-src"), world.path("lot")
    one = os.path.join(src, "x", "000000.png")
    write_picture(one, "png", 5, 3, 2)
    for i in range(1, 10001):
        os.link(one, os.path.join(src, "x", "%06d.png" % i))
    run("pack", src, out)
    told = run_json("info", out)
    expect((told["n_samples"], told["class_counts"], told["n_unnamed"]), (10001, None, None))
    assert "(--counts counts their samples)" in run("info", out)[0]
    expect(run_json("info", out, "--counts")["class_counts"], [10001])
    text, _ = run("info", out, "--counts")
    assert "--counts" not in text and re.search(r"^ +0 +10,001  x$", text, re.M), text


@test
def labels_that_cannot_be_read_do_not_hide_the_manifest(world):
    src, _ = forms(world)
    out = world.fresh("kept")
    run("pack", src, out)
    shard = os.path.join(out, "shard-000000.pstk")
    data = bytearray(read(shard))
    data[4096 + 20] ^= 255  # in the head of the first record
    write(shard, bytes(data))
    told, err = run("info", out, status=1)
    assert "samples   6" in told and "record 0" in err and "(--counts counts" in told, (told, err)
    expect(told.splitlines()[-1], "next: %s verify %s" % (PENSTOCK, out))
    for option in ("--counts", "--passthrough"):
        _, err = run("info", out, option, status=1)
        assert "record 0" in err, err
    told = run_json("info", out, status=1)
    expect(told["class_counts"], None)
    assert "record 0" in told["damage"], told


@test
def a_file_that_is_cut_short_or_missing_is_named_with_the_next_step(world):
    src, _ = forms(world)
    out = world.fresh("kept")
    run("pack", src, out)
    expect(run_json("info", out)["damage"], None)
    shard = os.path.join(out, "shard-000000.pstk")
    os.truncate(shard, os.path.getsize(shard) - 5)
    for _ in range(2):
        told, err = run("info", out, status=1)
        assert "samples   6" in told, told
        expect(told.splitlines()[-1], "next: %s verify %s" % (PENSTOCK, out))
        expect(err.count("shard-000000.pstk"), 1, err)
        assert "shard-000000.pstk" in run_json("info", out, status=1)["damage"]
        run("verify", out, status=1)  # as the next step says
        if os.path.exists(shard):
            os.remove(shard)


@test
def tables_that_lie_in_a_folder_of_images_are_named(world):
    folder = world.fresh("ignored")
    write_picture(os.path.join(folder, "a", "x.png"), "png", 1, 20, 10)
    expect(run_json("info", folder)["ignored"], None)
    for files, words in (({"metadata.csv": "name\nx\n"}, "metadata.csv lies in it and is not read: it has no column file_name"),
                         ({"labels.csv": "x\n", ".hidden.csv": "", "a.CSV.txt": ""}, "labels.csv, metadata.csv lie in it and are not read: if one "),
                         ({"a.tsv": "", "b.JSONL": "", "c.ndjson": ""}, "a.tsv, b.JSONL, c.ndjson and 2 more lie in it and are not read")):
        for name, text in files.items():
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text)
        assert run_json("info", folder)["ignored"].startswith(words)
        assert words in run("info", folder)[0]
        assert words in {part["what"]: part["text"] for part in run_json("doctor", folder)["data_set"]}["ignored"]


if __name__ == "__main__":
    sys.exit(main(TESTS))
