#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock column`, and the side columns that pack makes, merge joins and info lists.
usage: test_columns.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import ctypes
import os
import re
import struct
import sys

import numpy
from test_command import Skip, expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


@test
def columns_are_listed_added_replaced_and_removed(world):
    data = world.fresh("columns")
    run("pack", world.src, data, "--shard-size", "64K")
    identity = run_json("info", data)["identity"]
    names = ["jpg.size", "jpg.width", "jpg.height", "cls", "key.size"]
    expect([c["name"] for c in run_json("info", data)["columns"]], names)
    bare = world.fresh("bare")
    run("pack", world.src, bare, "--no-columns")
    expect(run_json("info", bare)["columns"], [])
    expect(run_json("info", bare)["identity"], identity)
    assert "column" not in run("info", bare)[0]

    def saved(name, array):
        numpy.save(world.path(name), array)
        return world.path(name)
    weights = saved("w.npy", numpy.arange(27) / 4)
    told = run("column", data, "weight", weights)[0]
    assert "added column weight of 27 values, f64" in told, told
    assert re.search(r"^  weight +f64 .* added$", run("info", data)[0], re.M)
    assert re.search(r"^  cls +i64 .* value of cls$", run("info", data)[0], re.M)
    err = run("column", data, "weight", weights, status=2)[1]
    expect(err, "penstock: %s has a column weight already; --overwrite replaces it\n" % data)
    expect(run_json("column", data, "weight", saved("w.npy", numpy.zeros(27, "f4")), "--overwrite")["dtype"], "f32")
    expect(run_json("info", data)["identity"], identity)
    expect(run_json("verify", data)["n_bad"], 0)
    for array, why in ((numpy.zeros(26), "has 26 values; must have 27"), (numpy.zeros((27, 2)), "has 2 dimensions"),
                       (numpy.array(["a"] * 27), "dtype is '<U1'"), (numpy.full(27, numpy.nan), "sample 0 is NaN"),
                       (numpy.zeros(27, ">f8"), "big-endian")):
        err = run("column", data, "bad", saved("bad.npy", array), status=2)[1]
        assert why in err and err.count("\n") == 1, err
    for args, why in (([data, "x", world.path("absent.npy")], "absent.npy"), ([data, "a/b", weights], "a/b"),
                      ([world.path("absent"), "x", weights], "absent"), ([data, "x"], "DATA, NAME and FILE.npy"),
                      ([data, "none", "--remove"], "has no column none"),
                      ([data, "cls", "--remove", "--overwrite"], "exclude each other")):
        err = run("column", *args, status=2)[1]
        assert why in err, err
    run("column", data, "weight", "--remove")
    expect([c["name"] for c in run_json("info", data)["columns"]], names)
    files = [name for name in os.listdir(data) if name.endswith(".cls.pcol")]
    os.remove(os.path.join(data, files[0]))
    err = run("info", data, status=1)[1]
    assert files[0] in err and "penstock column %s cls --remove" % data in err, err
    assert files[0] in "".join(run("verify", data, status=1))
    run("bench", data, "--no-ceilings", "--size", 32, "--seconds", 0.1)  # records do not need it
    run("column", data, "cls", "--remove")
    expect(run_json("verify", data)["n_bad"], 0)


@test
def merge_names_the_columns_that_it_leaves_out(world):
    parts, out = [world.fresh("c%d" % i) for i in range(2)], world.fresh("merged")
    for i, part in enumerate(parts):
        run("pack", world.src, part, "--part", "%d/2" % i, *["--no-columns"] * i)
    err = run("merge", *parts, out)[1]
    assert "column cls of %s was left out: not all parts have it" % parts[0] in err, err
    expect(run_json("info", out)["columns"], [])
    expect(run_json("verify", out)["n_bad"], 0)


@test
def merge_says_where_parts_have_a_column_of_two_dtypes(world):
    parts, out = [world.fresh("d%d" % i) for i in range(2)], world.fresh("merged2")
    for i, part in enumerate(parts):
        run("pack", world.src, part, "--part", "%d/2" % i)
        numpy.save(world.path("w.npy"), numpy.zeros(run_json("info", part)["n_samples"], ("f4", "f8")[i]))
        run("column", part, "w", world.path("w.npy"))
    err = run("merge", *parts, out)[1]
    says = "penstock: column w of %s was left out: its dtype is %s, and that of %s is %s; must be the same in all parts\n"
    expect(err, says % (parts[0], "f32", parts[1], "f64") + says % (parts[1], "f64", parts[0], "f32"))
    assert "w" not in [c["name"] for c in run_json("info", out)["columns"]]
    numpy.save(world.path("w.npy"), numpy.zeros(run_json("info", parts[1])["n_samples"], "f4"))
    run("column", parts[1], "w", world.path("w.npy"), "--overwrite")  # as the message asks
    expect(run("merge", *parts, out, "--overwrite")[1], "")
    assert "w" in [c["name"] for c in run_json("info", out)["columns"]]


def visits(files, make):
    """Return how often each file is opened while make() runs; consecutive opens of a file count as one."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK)
    if fd < 0:
        raise Skip("no inotify: " + os.strerror(ctypes.get_errno()))
    try:
        watches = [libc.inotify_add_watch(fd, file.encode(), 0x20) for file in files]  # IN_OPEN
        make()
        found = [event[0] for event in struct.iter_unpack("iIII", os.read(fd, 1 << 16))]
        return [found.count(watch) for watch in watches]
    finally:
        os.close(fd)


@test
def merge_opens_no_part_more_often_when_there_are_more_parts(world):
    def visits_of(n):
        parts = [world.fresh("n%d" % i) for i in range(n)]
        for i, part in enumerate(parts):
            run("pack", world.src, part, "--part", "%d/%d" % (i, n), *[] if i else ["--no-columns"])
        merge = lambda: run("merge", *parts, world.fresh("merged-n"))
        return max(visits([os.path.join(part, "manifest.json") for part in parts], merge))
    expect(visits_of(8), visits_of(4))


@test
def merge_refuses_a_part_with_a_damaged_column_until_it_is_removed(world):
    part, out = world.fresh("whole"), world.fresh("merged-whole")
    run("pack", world.src, part)
    name = [name for name in os.listdir(part) if name.endswith(".cls.pcol")][0]
    os.truncate(os.path.join(part, name), 5000)
    err = run("merge", part, out, status=1)[1]
    assert name in err and err.count("restore it") == 1 and "penstock column %s cls --remove" % part in err, err
    run("column", part, "cls", "--remove")
    run("merge", part, out)


if __name__ == "__main__":
    sys.exit(main(TESTS))
