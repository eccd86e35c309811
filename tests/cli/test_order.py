#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--order windowed` of the commands that have an order.
usage: test_order.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import os
import sys

import numpy
from test_command import expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def order(data, *options):
    out, _ = run("order", data, "--order", "windowed", *options)
    return [[int(n) for n in line.split()] for line in out.splitlines()]


def numbers(told):
    return [told[name] for name in ("order", "ways", "block", "window")]


@test
def windowed_lists_every_sample_once_and_ranks_share_it(world):
    interleave = ["--ways", 2, "--block", 3, "--window", 2, "--last", "short"]
    (whole,) = order(world.data, "--batch-size", 27, *interleave)
    expect(sorted(whole), list(range(27)))
    assert [whole] != order(world.data, "--batch-size", 27, "--epoch", 1, *interleave)
    assert [whole] != order(world.data, "--batch-size", 27, "--seed", 1, *interleave)
    for other in (["--ways", 3], ["--block", 4], ["--window", 1]):
        assert [whole] != order(world.data, "--batch-size", 27, *interleave, *other), other
    ranks = [order(world.data, "--batch-size", 4, "--world", 2, "--rank", r, *interleave) for r in range(2)]
    expect(sum((sum(map(list, zip(a, b)), []) for a, b in zip(*ranks)), []), whole[:26])
    # A way's window lies in three blocks: 18 samples after the first of a block there is none of it.
    for way in (whole[::2], whole[1::2]):
        at = {i: k for k, i in enumerate(way)}
        assert max(abs(at[i] - at[j]) for i in at for j in at if i // 3 == j // 3) < 12


@test
def numbers_of_a_windowed_order_are_settled_and_printed(world):
    bench = ["bench", world.data, "--epochs", 1, "--no-ceilings", "--size", 16]
    expect(numbers(run_json(*bench)), ["full", None, None, None])
    expect(numbers(run_json(*bench, "--order", "windowed")), ["windowed", 1, 64, 4])
    expect(numbers(run_json(*bench, "--order", "windowed", "--ways", 5, "--block", 2, "--window", 3)),
           ["windowed", 5, 2, 3])
    text, _ = run(*bench, "--order", "windowed", "--ways", 5)
    assert "windowed order (5 ways, blocks of 64, windows of 4), batches of 27," in text, text
    text, _ = run(*bench, "--order", "windowed")
    assert "windowed order (1 way, blocks of 64, windows of 4)," in text, text
    text, _ = run(*bench)
    assert "full order, batches of 27," in text, text


@test
def numbers_of_a_windowed_order_are_refused_by_name(world):
    for name, most in (("ways", 65536), ("block", 1048576), ("window", 4096)):
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
    for options in ([], ["--order", "windowed", "--ways", 2, "--block", 3, "--window", 2], ["--order", "sequential"],
                    ["--global-batch-size", 6, "--world", 4, "--uneven", "--rank", 1]):
        png = world.path("ordered.png")
        run("show", world.data, "--ids", "3", "--size", 24, "-o", png, *options)
        with open(png, "rb") as file:
            seen.add(file.read())
        os.remove(png)
    expect(len(seen), 1)


def arrays(world, n=20000):
    """Return a data set of n samples of 8 bytes."""
    out = world.path("ordered-arrays-%d" % n)
    if not os.path.isdir(out):
        os.makedirs(out)
        numpy.save(os.path.join(out, "a.npy"), numpy.arange(n))
    return out


@test
def explain_is_what_the_lists_of_all_ranks_show(world):
    data, n = arrays(world), 20000
    for ways, block, window, n_ranks in ((1, 64, 4, 1), (12, 16, 4, 4), (12, 16, 4, 8), (10, 16, 2, 4), (7, 50, 3, 3)):
        interleave = ["--ways", ways, "--block", block, "--window", window, "--last", "short", "--global-batch-size",
                 n_ranks * 100, "--world", n_ranks]
        ranks = [order(data, *interleave, "--rank", r) for r in range(n_ranks)]
        for r in (0, n_ranks - 1):
            told = run_json("order", data, "--order", "windowed", "--explain", *interleave, "--rank", r)
            expect((told["n_batches"], told["last_rows"]), (len(ranks[r]), len(ranks[r][-1])), interleave)
        n_blocks = -(-n // block)
        expect(told["n_blocks"], n_blocks)
        readings = sum(len({i // block for batch in rank for i in batch}) for rank in ranks) / n_blocks
        assert 0.96 * readings < told["readings"] < 1.04 * readings, (told, readings)
        at = {}  # positions of samples in the whole order
        for r, rank in enumerate(ranks):
            for k, i in enumerate(i for batch in rank for i in batch):
                at[i] = k * n_ranks + r
        own = {at[i] % ways for batch in ranks[0] for i in batch}
        expect(told["ways_of_rank"], len(own))
        expect(told["ranks_of_way"], len({at[i] % n_ranks for i in range(n) if at[i] % ways == 0}))
        expect(told["blocks_of_rank"], len(own) * (window + 1) + (n % block > 0))
        expect(told["n_mixed"], ways * window * block)
        size = os.path.getsize(os.path.join(data, "a.npy"))
        expect(told["block_bytes"], int(size / n_blocks + 0.5))
        assert abs(told["memory_bytes"] - told["blocks_of_rank"] * size / n_blocks) < 1, told
        expect(told["advised_ways"], None if ways % n_ranks == 0 else {4: 16, 8: 16, 3: 18}[n_ranks])


@test
def the_advice_of_explain_helps(world):
    line = ["--order", "windowed", "--world", 8, "--explain"]
    before = run_json("order", arrays(world), *line)
    assert before["ways"] == 12 and before["ranks_of_way"] == 2 and before["readings"] > 1.9, before
    after = run_json("order", arrays(world), *line, "--ways", before["advised_ways"])
    assert after["ranks_of_way"] == 1 and after["readings"] < 1.1 and after["advised_ways"] is None, after
    text, err = run("order", arrays(world), *line)
    expect(err, "")
    assert "  ways       3 of 12; 1 other rank reads each of them, too\n" in text, text
    assert "whole blocks, each 2.07 times by all ranks together;" in text, text
    assert "--ways 16 gives each of 8 ranks ways of its own" in " ".join(text.split()), text
    assert max(map(len, text.splitlines()[2:])) <= 91, text
    text, _ = run("order", arrays(world), *line, "--ways", 16)
    assert "2 of 16; no other rank reads them\n" in text and "advice" not in text, text


@test
def explain_knows_the_other_orders(world):
    told = run_json("order", world.data, "--explain")
    expect([told[name] for name in ("order", "ways", "n_blocks", "memory_bytes", "n_mixed", "readings", "n_batches")],
           ["full", None, None, None, 27, 1.0, 1])
    text, _ = run("order", world.data, "--explain", "--batch-size", 28)
    assert "one random read of" in text and "all samples with each other" in text, text
    assert "none: there are fewer samples than a batch of all ranks has" in text, text
    part = run_json("order", world.data, "--explain", "--subset", "fraction:0..0.5")
    assert abs(part["rank_reads_bytes"] * told["n_samples"] - told["rank_reads_bytes"] * part["n_samples"]) \
        <= told["n_samples"] * 2 and part["n_samples"] < told["n_samples"]
    told = run_json("order", world.data, "--explain", "--order", "sequential")
    expect((told["n_mixed"], told["ways"]), (1, None))
    assert "one sample after the other" in run("order", world.data, "--explain", "--order", "sequential")[0]
    for options in (["--batches", 1], ["--start-batch", 1]):
        _, err = run("order", world.data, "--explain", *options, status=2)
        expect(err, "penstock: --explain: cannot be given together with --batches or --start-batch\n")


@test
def too_few_samples_for_a_batch_are_said(world):
    out, err = run("order", world.data, "--batch-size", 100)
    expect(out, "")
    assert "has 27 samples, too few for one batch of 100 on 1 rank; take a smaller --batch-size, or --last short" in err, err
    out, err = run("order", world.data, "--batch-size", 27)
    expect((len(out.split()), err), (27, ""))


if __name__ == "__main__":
    sys.exit(main(TESTS))
