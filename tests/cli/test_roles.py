#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which field of a data set each command takes for the picture and for its class (penstock/role.h).
usage: test_roles.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import io
import os
import sys
import tarfile

from test_command import expect, main, picture, run_json

TESTS = []
N = 6


def test(function):
    TESTS.append(function)
    return function


def archive(world, name, *suffixes):
    """A tar of N samples with these suffixes: images, or whole numbers."""
    path = world.path(name)
    if os.path.exists(path):
        return path
    with tarfile.open(path, "w") as tar:
        for number in range(N):
            for suffix in suffixes:
                data = io.BytesIO(str(number).encode())
                if suffix.endswith(("png", "jpg")):
                    data = io.BytesIO()
                    picture(number, 48, 32).save(data, "PNG" if suffix.endswith("png") else "JPEG")
                member = tarfile.TarInfo("%04d.%s" % (number, suffix))
                member.size = len(data.getvalue())
                data.seek(0)
                tar.addfile(member, data)
    return path


def label_bytes(path, *options):
    """The bytes of a sample that bench delivers after the image."""
    counts = run_json("bench", path, "--epochs", 1, "--batch-size", N, "--size", 8, "--no-ceilings", *options)
    return counts["bytes_out"] / counts["samples"] - 8 * 8 * 3


@test
def bench_delivers_the_class_whatever_its_usual_name(world):
    for name, size in (("cls", 4), ("label", 2), ("target", 8), ("category_id", 4)):
        path = archive(world, name + ".tar", "jpg", name, "width", "sample_id")
        types = [o for n in (name, "width", "sample_id") for o in ("--field", "%s=int%d" % (n, 8 * size))]
        expect(label_bytes(path, *types), size, name)


@test
def bench_delivers_the_only_whole_number(world):
    path = archive(world, "only.tar", "jpg", "kind", "sample_id")
    expect(label_bytes(path, "--field", "kind=int16", "--field", "sample_id=int64"), 2)


@test
def bench_delivers_no_class_where_several_numbers_fit(world):
    path = archive(world, "several.tar", "jpg", "width", "height")
    expect(label_bytes(path, "--field", "width=int32", "--field", "height=int32"), 0)


@test
def pack_converts_the_picture_and_keeps_other_images(world):
    path, out = archive(world, "pictures.tar", "depth.png", "jpg"), world.path("pictures")
    run_json("pack", path, out, "--pixels", 16)
    found = {field["name"]: field["encodings"] for field in run_json("info", out)["fields"]}
    expect(found, {"depth.png": {"png": N}, "jpg": {"pixels": N}})


if __name__ == "__main__":
    sys.exit(main(TESTS))
