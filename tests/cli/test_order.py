#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--order windowed` of the commands that have an order.
usage: test_order.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import os
import sys

from test_command import expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def order(data, *options):
    out, _ = run("order", data, "--order", "windowed", *options)
    return [[int(n) for n in line.split()] for line in out.splitlines()]


def numbers(told):
    return [told[name] for name in ("order", "strands", "block", "window")]


@test
def windowed_lists_every_sample_once_and_ranks_share_it(world):
    weave = ["--strands", 2, "--block", 3, "--window", 2, "--last", "short"]
    (whole,) = order(world.data, "--batch-size", 27, *weave)
    expect(sorted(whole), list(range(27)))
    assert [whole] != order(world.data, "--batch-size", 27, "--epoch", 1, *weave)
    assert [whole] != order(world.data, "--batch-size", 27, "--seed", 1, *weave)
    for other in (["--strands", 3], ["--block", 4], ["--window", 1]):
        assert [whole] != order(world.data, "--batch-size", 27, *weave, *other), other
    ranks = [order(world.data, "--batch-size", 4, "--world", 2, "--rank", r, *weave) for r in range(2)]
    expect(sum((sum(map(list, zip(a, b)), []) for a, b in zip(*ranks)), []), whole[:26])
    # A strand's window lies in three blocks: 18 samples after the first of a block there is none of it.
    for strand in (whole[::2], whole[1::2]):
        at = {i: k for k, i in enumerate(strand)}
        assert max(abs(at[i] - at[j]) for i in at for j in at if i // 3 == j // 3) < 12


@test
def numbers_of_a_windowed_order_are_settled_and_printed(world):
    bench = ["bench", world.data, "--epochs", 1, "--no-ceilings", "--size", 16]
    expect(numbers(run_json(*bench)), ["full", None, None, None])
    expect(numbers(run_json(*bench, "--order", "windowed")), ["windowed", 1, 64, 4])
    expect(numbers(run_json(*bench, "--order", "windowed", "--strands", 5, "--block", 2, "--window", 3)),
           ["windowed", 5, 2, 3])
    text, _ = run(*bench, "--order", "windowed", "--strands", 5)
    assert "windowed order (5 strands, blocks of 64, windows of 4), batches of 27," in text, text
    text, _ = run(*bench, "--order", "windowed")
    assert "windowed order (1 strand, blocks of 64, windows of 4)," in text, text
    text, _ = run(*bench)
    assert "full order, batches of 27," in text, text


@test
def numbers_of_a_windowed_order_are_refused_by_name(world):
    for name, most in (("strands", 65536), ("block", 1048576), ("window", 4096)):
        for command in (["order"], ["bench", "--no-ceilings"], ["show", "-o", world.path("no.png")]):
            line = [command[0], world.data, *command[1:], "--" + name]
            for options in ([], ["--order", "full"], ["--order", "sequential"]):
                _, err = run(*line, 2, *options, status=2)
                expect(err, "penstock: --%s: applies to --order windowed only\n" % name)
            for value in (0, -1, most + 1, "many"):
                _, err = run(*line, value, "--order", "windowed", status=2)
                assert err.startswith("penstock: --%s: value is '%s'; must be a whole number from 1 to %d" % (
                    name, value, most)), err


@test
def show_takes_every_option_of_an_order_and_shows_the_same(world):
    seen = set()
    for options in ([], ["--order", "windowed", "--strands", 2, "--block", 3, "--window", 2], ["--order", "sequential"],
                    ["--global-batch-size", 6, "--world", 4, "--uneven", "--rank", 1]):
        png = world.path("ordered.png")
        run("show", world.data, "--ids", "3", "--size", 24, "-o", png, *options)
        with open(png, "rb") as file:
            seen.add(file.read())
        os.remove(png)
    expect(len(seen), 1)


if __name__ == "__main__":
    sys.exit(main(TESTS))
