#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The words in which `penstock verify` names damage. usage: test_verify.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import os
import random
import re
import struct
import sys

from test_command import copy_of, expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def expect_each_fact_once(err, shard):
    """Each line of verify names its shard, and says no place twice."""
    for line in err.splitlines():
        expect(line.count(os.path.basename(shard)), 1, line)
        places = re.findall(r"record \d+|bytes \d+ to \d+", line)
        expect(len(places), len(set(places)), line)


@test
def verify_names_shard_record_byte_range_and_reason(world):
    out, shard = copy_of(world, "flipped")
    size = os.path.getsize(shard)
    rng = random.Random(3)
    with open(shard, "rb") as f:
        whole = f.read()
    start, end = struct.unpack("<QQ", whole[32:48])
    places = [("record", rng.randrange(4096, start)) for _ in range(4)]
    places += [("header", rng.randrange(0, 4096)), ("index", rng.randrange(end, size))]
    for what, at in places:
        with open(shard, "wb") as f:
            f.write(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1:])
        # a flipped version of a header cannot be told from a newer one before its checksum
        told = run_json("verify", out, status=1)
        assert told["n_bad"] >= 1, what
        bad = told["bad"][0]
        expect(bad["shard"], os.path.basename(shard), what)
        assert bad["reason"]
        if what == "record":
            expect(told["n_bad"], 1)
            assert 0 <= bad["record"] < 27
            assert bad["offset"] <= at < bad["offset"] + max(bad["length"], 1), (at, bad)
            _, err = run("get", out, bad["record"], "jpg", status=(0, 1))
        expect_each_fact_once(run("verify", out, status=1)[1], shard)
        run("bench", out, "--order", "sequential", "--batch-size", 1, "--epochs", 1,
            "--no-ceilings", status=(0, 1))
    for cut in (1, 5000, size - 4096, size - 100):
        with open(shard, "wb") as f:
            f.write(whole[:size - cut])
        told = run_json("verify", out, status=1)
        expect(told["bad"][0]["shard"], os.path.basename(shard))
        expect_each_fact_once(run("verify", out, status=1)[1], shard)
        run("bench", out, "--epochs", 1, "--no-ceilings", status=1)
    os.remove(shard)
    expect_each_fact_once(run("verify", out, status=1)[1], shard)


if __name__ == "__main__":
    sys.exit(main(TESTS))
