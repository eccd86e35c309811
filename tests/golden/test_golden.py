#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_golden.py: data sets of version 2 that were written once are read for ever, and written again byte for byte.
TAP. Usage: test_golden.py PENSTOCK; PENSTOCK_WRITE_SAMPLE and PENSTOCK_MAKE_IMAGES lie in the same build.

tests/golden/make BUILD made them. They do not change: who changes the format makes a new version beside them.
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
PENSTOCK = os.environ.get("PENSTOCK_COMMAND") or sys.argv[1]
BUILD = pathlib.Path(PENSTOCK).resolve().parents[2]
GOLDEN = HERE / "version2"


def module(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(made)
    return made


make = module("golden_make", HERE / "make")
import second_reader  # noqa: E402


def run(*line):
    done = subprocess.run([PENSTOCK, *map(str, line)], capture_output=True)
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def the_library_verifies_each_and_finds_its_identity(facts):
    for name, said in facts["data_sets"].items():
        run("verify", GOLDEN / name)
        assert json.loads(run("info", GOLDEN / name, "--json"))["identity"] == said["identity"], name


def the_second_reader_finds_the_same(facts):
    for name, said in facts["data_sets"].items():
        second_reader.Data(str(GOLDEN / name), planes=True).verify()
        identity, values = make.values_of(GOLDEN / name)
        assert (identity, values) == (said["identity"], said["values"]), name


def every_value_that_the_library_gives_has_its_checksum(facts):
    n = 0
    for name, said in facts["data_sets"].items():
        for i, record in enumerate(said["values"]):
            for field, size, crc in record:
                value = run("get", GOLDEN / name, i, field)
                assert (len(value), "%08x" % second_reader.crc32c(value)) == (size, crc), (name, i, field)
                n += 1
    assert n > 100, n
    print(f"# {n} values")


def todays_writer_makes_the_same_bytes(facts):
    has_zstd = make.zstd_version() == facts["zstd"]
    with tempfile.TemporaryDirectory() as folder:
        images, made = pathlib.Path(folder, "images"), pathlib.Path(folder, "made")
        images.mkdir()
        made.mkdir()
        make.images_of(BUILD, GOLDEN / "planes", images)
        make.data_sets(BUILD, images, made)
        for file in sorted(path.relative_to(GOLDEN) for path in GOLDEN.glob("*/*")):
            if has_zstd:  # planes have skeletons that zstd compressed
                now, then = (made / file).read_bytes(), (GOLDEN / file).read_bytes()
                assert now == then, (str(file), len(now), len(then), zlib.crc32(now), zlib.crc32(then))
        assert sorted(p.name for p in made.iterdir()) == sorted(facts["data_sets"])
    if not has_zstd:
        print(f"# zstd is {make.zstd_version()}, not {facts['zstd']}: no bytes were compared")


CASES = [the_library_verifies_each_and_finds_its_identity, the_second_reader_finds_the_same,
         every_value_that_the_library_gives_has_its_checksum, todays_writer_makes_the_same_bytes]


def main():
    if not GOLDEN.is_dir():
        print("1..0 # SKIP missing: tests/golden/version2 (make it by tests/golden/make BUILD)")
        return 0
    facts = json.loads((GOLDEN / "facts.json").read_text(encoding="utf-8"))
    failed = 0
    print("1..%d" % len(CASES))
    for i, case in enumerate(CASES):
        name = case.__name__.replace("_", " ")
        try:
            case(facts)
            print("ok %d - %s" % (i + 1, name), flush=True)
        except Exception as e:
            failed += 1
            print("# %s: %s" % (type(e).__name__, e))
            print("not ok %d - %s" % (i + 1, name), flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
