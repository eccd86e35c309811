#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--field NAME=TYPE` of the commands that open a data set in another format.
usage: test_fields.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import io
import os
import pathlib
import shutil
import sys
import tarfile

from test_command import expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def archive(world):
    path = world.path("fields.tar")
    if not os.path.exists(path):
        with tarfile.open(path, "w") as tar:
            for number in range(8):
                for suffix, data in (("cls", str(number).encode()), ("txt", b"abcdefgh")):
                    member = tarfile.TarInfo(f"{number:04d}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return path


def types(path, *options):
    """Return {name: (kind, dtype, shape)}, as info finds them."""
    return {field["name"]: (field["kind"], field.get("dtype"), field.get("shape"))
            for field in run_json("info", path, *options)["fields"]}


def refused(*arguments):
    out, err = run(*arguments, status=2)
    expect(out, "")
    return err.removeprefix("penstock: ").rstrip("\n")


@test
def a_field_is_read_as_the_type_that_the_option_names(world):
    path = archive(world)
    before = types(path)
    for given, wanted in (("cls=int32", ("scalar", "i32", None)), ("cls=u8", ("scalar", "u8", None)),
                          ("cls=text", ("utf8", None, None)), ("cls=utf8", ("utf8", None, None)),
                          ("cls=bytes", ("bytes", None, None)), ("cls=image", ("image", None, None))):
        found = types(path, "--field", given)
        expect(found["cls"][0], wanted[0], given)
        if wanted[1]:
            expect(found["cls"][1], wanted[1], given)
        expect(found["txt"], before["txt"])
    for given, shape in (("txt=uint16[4]", [4]), ("txt=float32[*, 2]", [0, 2]), ("txt=uint8[2,2,2]", [2, 2, 2])):
        expect(types(path, "--field", given)["txt"][::2], ("ndarray", shape), given)
    both = types(path, "--field", "cls=int8", "--field=txt=bytes")
    expect((both["cls"][1], both["txt"][0]), ("i8", "bytes"))


@test
def every_command_that_opens_the_data_reads_it_so(world):
    path = archive(world)
    one = ["--field", "cls=uint16"]
    expect(run("get", path, 3, "cls", *one)[0], "\3\0")
    expect(run_json("verify", path, *one)["n_bad"], 0)
    expect(len(run("order", path, "--batch-size", 4, *one)[0].splitlines()), 2)
    assert run_json("bench", path, "--epochs", 1, "--batch-size", 4, *one)
    expect(run_json("pack", path, world.path("fields-packed"), *one)["n_samples"], 8)
    expect(types(world.path("fields-packed"))["cls"][1], "u16")
    run("export", path, world.path("fields-npy"), "--to", "npy", "--fields", "cls", *one)
    expect(types(world.path("fields-npy"))["cls"][1], "u16")
    assert "no field of images" in refused("show", path, *one)


@test
def a_name_that_no_sample_has_is_an_error_with_the_nearest_one(world):
    path = archive(world)
    for command in (["info", path], ["verify", path], ["get", path, 0, "cls"], ["order", path], ["bench", path],
                    ["show", path], ["pack", path, world.path("no")], ["export", path, world.path("no"), "--to", "npy"]):
        expect(refused(*command, "--field", "clss=int8"), f"--field: value has 'clss', which no sample of {path} has; "
               "it has: cls, txt; did you mean cls?")
    assert refused("info", path, "--field", "zebra=int8").endswith("it has: cls, txt")
    assert not os.path.exists(world.path("no"))


@test
def a_value_that_is_no_type_is_refused_with_the_nearest_one(world):
    path = archive(world)
    start = "--field: value is '%s'; "
    for given, wanted in (
            ("cls", "must be NAME=TYPE, such as cls=int64"), ("=int8", "must be NAME=TYPE, such as cls=int64"),
            ("cls=", "must be NAME=TYPE, such as cls=int64"), ("a b=int8", "must be NAME=TYPE, such as cls=int64"),
            ("c" * 64 + "=int8", "the name must have at most 63 characters"),
            ("txt=bytes[3]", "must have a dtype before the shape, such as uint16[2049]")):
        expect(refused("info", path, "--field", given), start % given + wanted)
    for given, near in (("cls=in64", "int64"), ("cls=flot32", "float32"), ("cls=imge", "image"), ("cls=byte", "bytes")):
        expect(refused("info", path, "--field", given), start % given + "the type must be image, bytes, utf8, or a dtype "
               f"such as int64, uint8, float32; did you mean {near}?")
    for given in ("cls=scalar", "cls=elephant", "cls=" + "x" * 100):
        assert refused("info", path, "--field", given).endswith("float32"), given
    for given in ("int8[", "int8[]", "int8[0]", "int8[-1]", "int8[4", "int8[4,]", "int8[4]x", "int8[4294967296]",
                  "int8[1,1,1,1,1,1,1,1,1]", "int8[99999999999999999999]"):
        assert "the shape must be as in uint16[2049] or float32[*,4]" in refused("info", path, "--field", "txt=" + given), given
    assert "must be given once for each field" in refused("info", path, "--field", "cls=int8", "--field", "cls=int16")
    assert "--coco or --voc" in refused("pack", path, world.path("no"), "--coco", "a.json", "--field", "cls=int8")
    folder = world.path("fields-none")
    os.makedirs(folder, exist_ok=True)
    for option, value in (("--field", "cls=int8"), ("--root-path", folder), ("--split-at", "last")):
        expect(refused("pack", folder, world.path("no"), option, value), f"{option}: must be left out, except for a data set in another "
               f"format; {folder} is not a data set that pack reads record by record")


@test
def the_images_of_a_table_lie_below_the_root_path(world):
    os.makedirs(world.path("rooted/lists"), exist_ok=True)
    image = next(path for path in sorted(pathlib.Path(world.src).rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg"))
    shutil.copy(image, world.path("rooted/a.jpg"))
    table, root = world.path("rooted/lists/l.csv"), world.path("rooted")
    pathlib.Path(table).write_text("path,label\na.jpg,cat\na.jpg,dog\n", encoding="utf-8")
    for command in (["info"], ["verify"], ["order"], ["export", "--to", "folder"], ["pack"]):
        out = [world.path("rooted-out-" + command[0])] if command[0] in ("export", "pack") else []
        assert refused(*command, table, *out).endswith("give the folder that they are below (--root-path)"), command
        run(*command, table, *out, "--root-path", root)
    told, _ = run("bench", table, "--root-path", root, "--seconds", "0.2", "--batch-size", "2")
    assert "ceiling" in told, told  # the ceiling has a data set of its own
    # A path that has the word stays what it is, and what it names can be copied from the message.
    named = world.path("root_path: (root_path)")
    os.makedirs(named, exist_ok=True)
    shutil.copy(table, os.path.join(named, "l.csv"))
    told = refused("info", os.path.join(named, "l.csv"))
    assert told.endswith(f"looked for at '{named}/a.jpg'; give the folder that they are below (--root-path)"), told
    assert "--root-path: cannot open" in refused("info", table, "--root-path", world.path("nothing"))
    assert "value is empty" in refused("info", table, "--root-path", "")
    told, _ = run("doctor", table, status=1)
    assert "none of the 2 images" in " ".join(told.split()), told


if __name__ == "__main__":
    sys.exit(main(TESTS))
