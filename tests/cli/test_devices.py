#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `penstock` command on CUDA devices, which are those of tests/support/cuda_fake. usage: test_devices.py
PENSTOCK MAKE_IMAGES [WORD], and PENSTOCK_FAKE_COMMAND in the environment: the command that is linked
with the fake, and finds the devices that PENSTOCK_FAKE_CUDA describes. TAP, as test_command.py.
"""
import os
import sys

from test_command import Skip, digest, expect, main, run, run_json, run_raw

FAKE = os.environ.get("PENSTOCK_FAKE_COMMAND")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def fake(devices):
    """Keywords for run: the command on devices of the fake."""
    if not FAKE:
        raise Skip("PENSTOCK_FAKE_COMMAND names no command")
    return {"command": FAKE, "env": dict(os.environ, PENSTOCK_FAKE_CUDA=devices)}


def device_digest(data, devices, *options):
    return run_json("bench", data, "--digest", "--no-ceilings", *options, **fake(devices))


@test
def digests_do_not_depend_on_the_device(world):
    seed = 0
    for dtype in ("u8", "f16", "bf16", "f32"):
        for layout in ("nhwc", "nchw"):
            line = ["--size", 20, "--batch-size", 4, "--last", "short", "--dtype", dtype, "--layout", layout]
            wanted = digest(world.data, *line)
            for devices in ("devices=1,seed=%d" % seed, "devices=1,delay_us=500,seed=%d" % seed,
                            "devices=1,pinned_limit=9000000"):
                told = device_digest(world.data, devices, "--device", "cuda", *line)
                for key in ("digest", "samples", "batches", "bytes_out"):
                    expect(told[key], wanted[key], (key, dtype, layout, devices))
            seed += 1
    fields = ["--size", 20, "--batch-size", 4, "--epochs", 2, "--step-ms", 1]
    expect(device_digest(world.data, "devices=3,delay_us=300", "--device", "cuda:2", *fields)["digest"],
           digest(world.data, *fields)["digest"])


@test
def bench_tells_of_the_device(world):
    line = ["bench", world.data, "--epochs", 3, "--batch-size", 4, "--size", 32, "--dtype", "f16",
            "--device", "cuda:1", "--step-ms", 5]
    told = run_json(*line, **fake("devices=2"))
    expect((told["samples"], told["batches"], told["step_ms"]), (72, 18, 5))
    assert told["seconds"] >= 18 * 0.005, "the steps are not over"
    device = told["device"]
    expect((device["kind"], device["index"], device["name"]), ("cuda", 1, "Fake GPU 1"))
    expect((device["slots"], device["page_locked"]), (3, True))
    assert device["memory"] > 0 and device["copy_bytes"] >= 4 * 32 * 32 * 3 and device["copy_ns"] > 0
    assert device["copy_bytes_per_second"] > 0
    assert device["stream_used_ns"] >= 10 * 5000000, device
    starved = device["stream_starved_ns"] - device["stream_start_ns"]
    assert device["stream_used_ns"] > 0, device
    assert 0 < device["stream_start_ns"] <= device["stream_starved_ns"], device
    expect(round(device["starved_percent"], 6), round(100 * starved / (starved + device["stream_used_ns"]), 6))
    expect(told["stages"]["uploader"]["items"] >= 18, True)
    expect(told["stages"]["uploader"]["threads"], 1)
    assert told["ceilings"]["copy_bytes_per_second"] > 0
    assert told["ceilings"]["copy_block_size"] >= 4 * 32 * 32 * 3
    assert 0 < told["ratios"]["copy"]
    out, err = run(*line, **fake("devices=2"))
    for part in ("uploader", "CUDA 1, Fake GPU 1: 3 slots", "page-locked", "/s while copying", "waited for batches", "ms for the first",
                 "copy, plain page-locked"):
        assert part in out, "%s: %s" % (part, out)
    expect(err, "")
    assert max(map(len, out.splitlines())) <= 86, out
    told = run_json(*line, "--no-ceilings", **fake("devices=2,no_register=801"))
    expect((told["device"]["page_locked"], told["ceilings"]), (False, None))
    assert "not_page_locked" in told["reader"]["fallbacks"]
    out, _ = run(*line, "--no-ceilings", **fake("devices=2,no_register=801"))
    assert "could not be page-locked" in out, out


@test
def devices_that_are_not_there_are_one_sentence_and_status_2(world):
    for command in (["bench"], ["show", "--ids", 0, "-o", world.path("x.png")]):
        line = [command[0], world.data, *command[1:], "--device"]
        _, err = run(*line, "cuda:7", status=2, **fake("devices=2"))
        assert "device_index: value is 7" in err and "below 2" in err and err.count("\n") == 1, err
        assert world.data not in err, "the data set is not to blame: " + err
        _, err = run(*line, "cuda", status=2, **fake("devices=1,no_driver=35"))
        assert "no CUDA driver" in err and err.count("\n") == 1, err
        _, err = run(*line, "cuda", status=2, **fake("devices=1,no_driver=100"))
        assert "finds no device" in err and err.count("\n") == 1, err
    _, err = run("bench", world.data, "--device", "cuda", status=1, **fake("devices=1,memory=100000"))
    assert "MiB are needed" in err and err.count("\n") == 1, err


@test
def a_device_that_has_failed_is_of_no_use_and_another_one_is(world):
    line = ["bench", world.data, "--no-ceilings", "--epochs", 1, "--size", 16, "--batch-size", 4, "--device"]
    _, err = run(*line, "cuda", status=1, **fake("devices=2,poison=0"))
    assert "CUDA device 0" in err and "cudaErrorLaunchFailure" in err and err.count("\n") == 1, err
    expect(run_json(*line, "cuda:1", **fake("devices=2,poison=0"))["samples"], 24)
    told = run_json("doctor", world.root, **fake("devices=2,poison=0"))["devices"]
    assert "cudaErrorLaunchFailure" in told[0]["not_measured"] and told[1]["to_device_bytes_per_second"] > 0
    assert "CUDA" in run_json("doctor", world.root, **fake("devices=2,poison=0"))["verdict"]


@test
def a_command_without_a_device_says_why(world):
    told = run_json("doctor", world.root)
    if told["cuda_devices"]:
        raise Skip("there is a CUDA device here")
    expect(told["devices"], [])
    _, err = run("bench", world.data, "--device", "cuda", status=2)
    assert told["no_cuda"] and told["no_cuda"] in err and err.count("\n") == 1, err


@test
def pictures_from_a_device_are_those_of_the_host(world):
    told = []
    for where, options in ({}, []), (fake("devices=2,delay_us=200"), ["--device", "cuda:1"]):
        told.append(run_raw("show", world.data, "--ids", "0..8", "-o", "-", "--size", 40, *options, **where)[0])
    expect(told[0], told[1])


@test
def doctor_lists_the_devices(world):
    told = run_json("doctor", world.root, **fake("devices=2,memory=209715200,driver=12080"))
    expect((told["cuda_devices"], told["no_cuda"]), (2, None))
    expect([d["name"] for d in told["devices"]], ["Fake GPU 0", "Fake GPU 1"])
    for number, device in enumerate(told["devices"]):
        expect((device["index"], device["memory_bytes"]), (number, 209715200))
        expect((device["compute_capability"], device["driver"], device["runtime"]), ("9.0", "12.8", "13.0"))
        expect((device["bus_id"], device["not_measured"]), ("0000:1%d:00.0" % number, None))
        for key in ("to_device", "to_host", "pageable_to_device", "on_device"):
            assert device[key + "_bytes_per_second"] > 0, key
        assert {"numa_node", "pcie_generation", "pcie_width", "pcie_generation_max",
                "pcie_width_max"} <= set(device)
    out, _ = run("doctor", world.root, **fake("devices=2"))
    for part in ("2 devices", "CUDA 13.0", "Fake GPU 1", "capability 9.0", "0000:11:00.0", "page-locked"):
        assert part in out, "%s: %s" % (part, out)
    full = run_json("doctor", world.root, **fake("devices=1,memory=1000000"))["devices"][0]
    expect(full["to_device_bytes_per_second"], 0)
    assert "MiB" in full["not_measured"]
    out, _ = run("doctor", world.root, **fake("devices=1,memory=1000000"))
    assert "could not be measured" in out, out
    for code, part in ((35, "no CUDA driver"), (100, "finds no device")):
        out, _ = run("doctor", world.root, **fake("devices=1,no_driver=%d" % code))
        assert part in out and "Fake" not in out, out


if __name__ == "__main__":
    sys.exit(main(TESTS))
