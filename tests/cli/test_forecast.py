#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The predictions of bench, next to what limits: a slow storage, a slow consumer, busy workers.
usage: test_forecast.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.

PENSTOCK_SLOW_STORAGE is the path of slow_reads.so, which limits the bytes per second of reads.
"""
import os
import sys

from test_command import Skip, expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def throttled(rate):
    """Return the environment in which storage gives so many bytes a second to `--reader threads`."""
    library = os.environ.get("PENSTOCK_SLOW_STORAGE")
    if not library:
        raise Skip("missing: PENSTOCK_SLOW_STORAGE")
    return {**os.environ, "LD_PRELOAD": library, "PENSTOCK_BYTES_PER_SECOND": str(rate)}


def bench(world, *options, **kwargs):
    """Return the report, and its predictions by what changes."""
    told = run_json("bench", world.data, "--size", 16, "--no-ceilings", *options, **kwargs)
    cases = {(case["what"], case["change"]): case for case in told["forecast"]["cases"]}
    assert all(case["is_prediction"] is True for case in cases.values()), cases
    return told, cases


def close(predicted, measured, error):
    assert abs(predicted / measured - 1) < error, (predicted, measured)


@test
def slow_storage_limits_and_only_faster_storage_helps(world):
    line = "--reader", "threads", "--threads", 2, "--batch-size", 4, "--seconds", 1
    each = run_json("bench", world.data, "--size", 16, "--epochs", 1, "--no-ceilings")
    size = each["bytes_read"] / each["samples"]
    told, cases = bench(world, *line, env=throttled(200 * size))
    expect(told["bottleneck"], "storage")
    now = told["forecast"]["measured"]
    close(now, 200, 0.2)
    for key in ("workers", "+1"), ("workers", "+2"), ("consumer", "none"):
        expect((cases[key]["samples_per_second"], cases[key]["limit"]), (now, "storage"))
    twice, _ = bench(world, *line, env=throttled(400 * size))
    close(cases["storage", "x2"]["samples_per_second"], twice["samples_per_second"], 0.2)


@test
def a_slow_consumer_limits_and_only_its_absence_helps(world):
    for step_ms in (20, 100, 500):  # longer where the machine is too busy to be ahead of the step
        told, cases = bench(world, "--threads", 1, "--batch-size", 4, "--epochs", 3, "--step-ms", step_ms)
        if told["bottleneck"] == "consumer":
            break
    expect(told["bottleneck"], "consumer")
    now = told["forecast"]["measured"]
    expect([cases[key]["samples_per_second"] for key in (("workers", "+1"), ("storage", "x2"))], [now, now])
    assert cases["consumer", "none"]["samples_per_second"] > 1.5 * now, cases
    assert cases["consumer", "none"]["limit"] != "consumer", cases


@test
def busy_workers_are_helped_while_there_are_cores(world):
    told, cases = bench(world, "--threads", 1, "--batch-size", 4, "--seconds", 0.5)
    if told["bottleneck"] != "decode":
        raise Skip("the machine is too busy: %s limits" % told["bottleneck"])
    now, more = told["forecast"]["measured"], cases["workers", "+1"]
    expect(set(cases), {("workers", "+1"), ("storage", "x2"), ("consumer", "none")})
    assert now <= more["samples_per_second"] <= 2.001 * now and more["limit"] in ("decode", "cores"), cases
    if len(os.sched_getaffinity(0)) > 1 and told["seconds"] < 0.6:
        assert more["samples_per_second"] > 1.2 * now, told


@test
def other_kernels_are_predicted_with_the_ceilings(world):
    best = run_json("doctor", status=tuple(range(5)))["kernels"]
    told = run_json("bench", world.data, "--size", 64, "--threads", 1, "--batch-size", 4, "--seconds", 0.5)
    times = told["ceilings"]["kernels_ns"]
    assert set(times) >= {"c", best} and min(times.values()) > 0, times
    cases = {case["change"]: case for case in told["forecast"]["cases"] if case["what"] == "kernels"}
    expect(set(cases), set(times) - {best})
    if best == "c":
        raise Skip("this CPU has kernels in plain C alone")
    if told["bottleneck"] == "decode":
        now = told["forecast"]["measured"]
        close(cases["c"]["samples_per_second"], now * times[best] / times["c"], 0.001)
        assert times["c"] > times[best], times
        plain = run_json("bench", world.data, "--size", 64, "--threads", 1, "--batch-size", 4, "--seconds", 0.5, "--kernels", "c")
        kernels = [case for case in plain["forecast"]["cases"] if case["what"] == "kernels" and case["change"] == best]
        assert kernels[0]["samples_per_second"] > plain["forecast"]["measured"], plain
    out, _ = run("bench", world.data, "--size", 64, "--threads", 1, "--batch-size", 4, "--seconds", 0.5)
    assert "  --kernels c " in out[out.index("  prediction  "):], out


@test
def predictions_are_lines_for_people_and_absent_after_a_short_run(world):
    out, _ = run("bench", world.data, "--size", 16, "--batch-size", 4, "--seconds", 0.5, "--no-ceilings")
    lines = out[out.index("\n  bottleneck"):].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  prediction  "))
    assert all(line[:14].strip() in ("", "prediction") and "(limit: " in line for line in lines[start:]), out
    told = run_json("bench", world.data, "--epochs", 1, "--batch-size", 8, "--no-ceilings")
    expect((told["bottleneck"], told["forecast"]), ("unknown", None))
    assert "prediction" not in run("bench", world.data, "--epochs", 1, "--batch-size", 8, "--no-ceilings")[0]


if __name__ == "__main__":
    sys.exit(main(TESTS))
