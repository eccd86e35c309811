#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--subset of `penstock order`, bench and show.
usage: test_subset.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import os
import sys

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
