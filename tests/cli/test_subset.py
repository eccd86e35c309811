#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--subset of `penstock order`, bench and show.
usage: test_subset.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import os
import sys

import numpy
from test_command import expect, main, run, run_json

TESTS = []
N = 27


def test(function):
    TESTS.append(function)
    return function


def ids_of(world, *steps, order="sequential"):
    options = [word for step in steps for word in ("--subset", step)]
    told = run_json("order", world.data, "--order", order, "--batch-size", 4, "--last", "short", *options)
    ids = [i for batch in told["batches"] for i in batch]
    expect(told["n_samples"], len(ids))
    expect(told["n_batches"], -(-len(ids) // 4))
    return ids


@test
def every_kind_of_step_has_its_samples(world):
    expect(ids_of(world, "range:3..9"), list(range(3, 9)))
    train, valid = ids_of(world, "fraction:0..0.8:seed=1"), ids_of(world, "fraction:0.8..1:seed=1")
    expect((len(train), sorted(train + valid)), (21, list(range(N))))
    assert train != ids_of(world, "fraction:0..0.8:seed=2")
    expect(sorted(ids_of(world, "fraction:0..0.8:seed=1", order="full")), sorted(train))
    folds = [ids_of(world, "fold:%d/4:seed=7" % k) for k in range(4)]
    expect(sorted(sum(folds, [])), list(range(N)))
    expect(sorted(ids_of(world, "fold:1/4:rest:seed=7")), sorted(folds[0] + folds[2] + folds[3]))
    path = world.path("ids.txt")
    with open(path, "w") as file:
        file.write("7\n\n3\n26\n")
    expect(ids_of(world, "ids:" + path), [7, 3, 26])
    zero, rest = ids_of(world, "where:cls=0"), ids_of(world, "where:cls!=0")
    expect((sorted(zero + rest), bool(zero), bool(rest)), (list(range(N)), True, True))
    expect(ids_of(world, "where:cls=..1"), zero)
    expect(ids_of(world, "where:cls=1.."), rest)
    expect(ids_of(world, "where:cls=0,1,2,3,4,5,6,7"), list(range(N)))


@test
def bounds_of_columns_are_exact(world):
    first = 1732700000000000001  # a double here is a multiple of 256
    for name, values in (("time", first + numpy.arange(N)), ("top", numpy.arange(2**64 - N, 2**64, dtype="u8")),
                         ("real", numpy.r_[numpy.arange(N - 1.0), numpy.inf])):
        numpy.save(world.path("values.npy"), values)
        run("column", world.data, name, world.path("values.npy"))
    try:
        expect(ids_of(world, "where:time=%d..%d" % (first + 3, first + 9)), list(range(3, 9)))
        expect(ids_of(world, "where:time=..%d" % (first + 5)), list(range(5)))
        expect(ids_of(world, "where:top=%d..%d" % (2**64 - 5, 2**64 - 1)), list(range(N - 5, N - 1)))
        expect(ids_of(world, "where:top=%d.." % (2**64 - 1)), [N - 1])
        expect(ids_of(world, "where:time=-%d..%d" % (2**63, 10**30)), list(range(N)))
        expect(ids_of(world, "where:real=20.5.."), list(range(21, N)))
        expect(ids_of(world, "where:real=20.5..inf"), list(range(21, N - 1)))
    finally:
        for name in ("time", "top", "real"):
            run("column", world.data, name, "--remove")


@test
def steps_that_are_given_again_take_what_the_one_before_left(world):
    train = ids_of(world, "fraction:0..0.8:seed=1")
    expect(ids_of(world, "fraction:0..0.8:seed=1", "range:2..11"), train[2:11])
    zero = ids_of(world, "where:cls=0")
    expect(ids_of(world, "fraction:0..0.8:seed=1", "where:cls=0"), [i for i in train if i in zero])


@test
def bench_and_show_take_the_subset(world):
    told = run_json("bench", world.data, "--subset", "fraction:0..0.8:seed=1", "--batch-size", 4, "--last", "short",
                    "--epochs", 1, "--no-ceilings", "--size", 32)
    expect(told["samples"], 21)
    out = world.path("subset.png")
    told = run_json("show", world.data, "--subset", "range:20..27", "--size", 16, "-o", out)
    expect([sample["id"] for sample in told["samples"]], list(range(20, 27)))
    assert os.path.getsize(out) > 0
    told = run_json("show", world.data, "--subset", "fraction:0..0.8:seed=1", "--size", 16, "-o", out)
    expect([sample["id"] for sample in told["samples"]], ids_of(world, "fraction:0..0.8:seed=1")[:16])
    err = run("show", world.data, "--subset", "range:0..3", "--ids", "1", status=2)[1]
    assert "--ids: cannot be given together with --subset" in err, err


def drawn(world, *options, n=400):
    told = run_json("order", world.data, "--batch-size", 4, "--last", "short", "--samples-per-epoch", n, *options)
    ids = [i for batch in told["batches"] for i in batch]
    expect((told["n_samples"], len(ids)), (n, n))
    return ids


@test
def weights_and_classes_draw_samples(world):
    zero = ids_of(world, "where:cls=0")
    ids = drawn(world, "--weights", "cls")  # the value is the weight, so class 0 never comes
    assert not set(ids) & set(zero) and len(set(ids)) > 10, ids
    expect(drawn(world, "--weights", "cls"), ids)
    assert drawn(world, "--weights", "cls", "--seed", 1) != ids
    ids = drawn(world, "--balanced", "cls", "--subset", "range:0..20")
    assert max(ids) < 20, ids
    classes = {}
    for k in range(8):  # classes that the data set lacks print nothing
        out, _ = run("order", world.data, "--subset", "where:cls=%d" % k, "--batch-size", 1, status=(0, 2))
        classes.update((int(i), k) for i in out.split())
    expect(len(classes), N)
    counts = [sum(classes[i] == k for i in ids) for k in {classes[i] for i in range(20)}]
    assert len(counts) > 1 and max(counts) < 2 * min(counts), counts
    told = run_json("bench", world.data, "--balanced", "cls", "--samples-per-epoch", 50, "--batch-size", 4, "--last", "short",
                    "--epochs", 1, "--no-ceilings", "--size", 32)
    expect(told["samples"], 50)
    expect(len(run_json("order", world.data, "--weights", "cls", "--batch-size", 1)["batches"]), N)
    text, _ = run("order", world.data, "--explain", "--weights", "cls", "--batch-size", 4)
    assert "27 draws an epoch, of 27 samples" in text and "by weight" in text, text
    for options, why in ((["--weights", "cls", "--balanced", "cls"], "--balanced: cannot be given together with --weights"),
                         (["--weights", "cls", "--weights", "cls"], "--weights: cannot be given together with --weights"),
                         (["--samples-per-epoch", "5"], "--samples-per-epoch: applies to --weights and --balanced only"),
                         (["--weights", "cls", "--order", "sequential"], "value is sequential; must be full with --weights"),
                         (["--weights", "none"], "weights: "), (["--balanced", "none"], "has no column none"),
                         (["--weights", "cls", "--samples-per-epoch", "0"], "--samples-per-epoch")):
        err = run("order", world.data, *options, status=2)[1]
        assert why in err and err.count("\n") == 1, (options, err)


@test
def explain_says_what_of_the_data_set_a_subset_reads(world):
    def text_of(*options):
        return " ".join(run("order", world.data, "--explain", "--batch-size", 2, *options)[0].split())

    whole = text_of()
    assert whole.startswith(world.data + ": 27 samples, "), whole
    size = whole.split("27 samples, ")[1].split(" full order")[0]
    half = text_of("--subset", "fraction:0..0.5")
    assert half.startswith(world.data + ": 13 samples an epoch, of 27 samples, " + size), half
    blocks = ["--order", "windowed", "--block", 2, "--window", 2, "--ways", 1]
    assert "whole blocks, each once" in text_of(*blocks)
    assert "whole blocks, each once" in text_of(*blocks, "--subset", "range:3..20")
    scattered = text_of(*blocks, "--subset", "fraction:0..0.5")
    assert "the samples of a block, which the subset has scattered, each once" in scattered, scattered
    assert "% of the subset" in scattered, scattered


@test
def wrong_steps_are_refused(world):
    path = world.path("wrong.txt")
    with open(path, "w") as file:
        file.write("7\nx\n")
    for steps, why in ((["half"], "value is 'half'; must be range:A..B, fraction:A..B,"),
                       (["range:3"], "must be range:A..B"), (["range:3..9x"], "must be range:A..B"),
                       (["range:0..28"], "value is 0 to 28; must be first below last, and last at most 27"),
                       (["fraction:0..1.5"], "value is 0.000000000 to 1.500000000"), (["fraction:0..2"], "must be fraction:A..B"),
                       (["fraction:0..0.1234567891"], "at most 9 decimals"), (["fraction:0..0.8:rest"], "must be fraction:"),
                       (["fraction:0..0.8:seed="], "must be fraction:"), (["fraction:0..0.01"], "leaves none of 27 samples"),
                       (["fold:4/4"], "value is 4 of 4"), (["fold:1"], "must be fold:K/N"), (["ids:" + path], "line 2 of"),
                       (["ids:" + world.path("absent")], "absent: No such file"), (["where:cls"], "must be where:COLUMN=V"),
                       (["where:cls=a"], "must be where:"), (["where:cls=1,"], "must be where:"), (["where:cls=.."], "must be where:"),
                       (["where:none=1"], "has no column none"), (["where:cls=99"], "leaves none of 27"),
                       (["range:0..27"] * 17, "given more than 16 times")):
        err = run("order", world.data, *[word for step in steps for word in ("--subset", step)], status=2)[1]
        assert why in err and err.count("\n") == 1, (steps, err)


if __name__ == "__main__":
    sys.exit(main(TESTS))
