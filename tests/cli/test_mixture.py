#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--mixture of `penstock bench`.
usage: test_mixture.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import os
import shutil
import sys

from test_command import expect, main, run, run_json

TESTS = []
N = 39  # samples of both data sets
WITH = ["--batch-size", 10, "--size", 32, "--no-ceilings", "--threads", 2]


def test(function):
    TESTS.append(function)
    return function


def other_of(world):
    """Return a second data set: the first 3 images of each class of the first one."""
    path, images = world.path("other,=1"), world.path("few")
    if not os.path.isdir(path):
        shutil.copytree(world.src, images)
        for folder, _, names in os.walk(images):
            for name in sorted(names)[3:]:
                os.remove(os.path.join(folder, name))
        run("pack", images, path)
    return path


@test
def bench_delivers_the_shares(world):
    other = other_of(world)
    told = run_json("bench", "--mixture", "%s=0.7,%s=0.3" % (world.data, other), "--epochs", 3, "--last", "short", *WITH)
    expect(told["path"], "the mixture of 2 data sets")
    expect(told["samples"], 3 * N)
    # The shares of 117 samples are 81.9 and 35.1: rounded down or up.
    found = [(one["path"], one["weight"], one["samples"]) for one in told["data_sets"]]
    assert found in ([(world.data, 0.7, 81), (other, 0.3, 36)], [(world.data, 0.7, 82), (other, 0.3, 35)]), found
    given = ["--mixture", world.data + "=7", "--mixture", other + "=3"]
    digest = [run_json("bench", *given, "--epochs", 3, "--last", "short", "--digest", "--threads", n, *WITH[:-2])["digest"]
              for n in (1, 3)]
    expect(digest[0], digest[1])
    text, _ = run("bench", *given, "--epochs", 1, *WITH)
    assert "the mixture of 2 data sets: 39 samples" in text and " %, of " + world.data in text, text


@test
def wrong_mixtures_are_refused(world):
    other = other_of(world)
    both = ["--mixture", "%s=1,%s=1" % (world.data, other)]
    for options, why in ((["--mixture", world.data], "must be PATH=WEIGHT,PATH=WEIGHT"), (["--mixture", "=1"], "must be PATH="),
                         (["--mixture", world.data + "=0"], "must be PATH=WEIGHT"), (["--mixture", "a=-1"], "weights above 0"),
                         (["--mixture", "a=nan"], "weights above 0"), (["--mixture", "a=inf"], "weights above 0"),
                         (["--mixture", world.path("absent") + "=1"], "absent"),
                         (["--mixture", ",".join("a%d=1" % i for i in range(65))], "more than 64 data sets"),
                         (["--mixture", "%s=1,%s=2" % (world.data, world.data)], "must differ"),
                         ([*both, world.data], "--mixture: cannot be given together with DATA"),
                         ([*both, "--subset", "range:0..3"], "--subset: cannot be given together with --mixture"),
                         ([*both, "--weights", "cls"], "--weights: cannot be given together with --mixture"),
                         ([*both, "--order", "windowed"], "must be full or sequential with --mixture")):
        err = run("bench", *options, "--epochs", 1, *WITH, status=2)[1]
        assert why in err and err.count("\n") == 1, (options, err)


if __name__ == "__main__":
    sys.exit(main(TESTS))
