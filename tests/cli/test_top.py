#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock top`: the loaders that run, and nothing of those that ended, were killed, or are no loaders.
usage: test_top.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py."""
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

from test_command import PENSTOCK, expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


@contextlib.contextmanager
def running(world, env, *options):
    """A loader that runs, once it has a status file."""
    folder = os.path.join(env["XDG_RUNTIME_DIR"], "penstock")
    before = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    process = subprocess.Popen([PENSTOCK, "bench", world.data, "--size", "16", "--batch-size", "4", "--seconds", "60",
                                "--threads", "1", "--no-ceilings", *options], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not (os.path.isdir(folder) and set(os.listdir(folder)) - before):
            assert time.monotonic() < end and process.poll() is None, "no status file"
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def place(world, name):
    """Return an environment with a runtime folder of its own, and the folder of the status files."""
    where = world.fresh(name)
    os.mkdir(where, 0o700)
    return {**os.environ, "XDG_RUNTIME_DIR": where}, os.path.join(where, "penstock")


@test
def no_loader_is_said(world):
    env, folder = place(world, "none")
    out, err = run("top", "--once", env=env)
    assert "No loader of this user runs here" in out and folder in out, out
    expect((err, run_json("top", "--once", env=env)), ("", {"folder": folder, "loaders": []}))


def first_with_a_limit(env):
    """Return the answer for the one loader, once it had the second between two looks: a busy machine may take that
    second, and then the limit is that of the time since open, or the rate is too low."""
    end = time.monotonic() + 60
    while True:
        time.sleep(1)
        found, = run_json("top", "--once", env=env)["loaders"]
        if found["bottleneck_since"] == "look" and found["samples_per_second"] > 50:
            return found
        assert time.monotonic() < end, found


@test
def a_loader_is_shown_with_its_rates_and_what_limits(world):
    env, folder = place(world, "one")
    with running(world, env, "--rank", "1", "--world", "2", "--step-ms", "20") as process:
        found = first_with_a_limit(env)
        expect((found["pid"], found["state"], found["rank"], found["world"]), (process.pid, "running", 1, 2))
        expect((found["data_set"], found["epoch_samples"], found["bottleneck"]), (world.data, 27, "consumer"))
        assert 50 < found["samples_per_second"] < 210, found  # 4 rows each 20 ms
        assert found["n_samples"] == 4 * found["n_batches"] > 0 and found["rss_bytes"] > 1 << 20, found
        assert 0 <= found["waiting"] < 0.3 and 0 <= found["cores"] < 2, found
        expect((found["copy"], [found[stage]["n"] > 0 for stage in ("read", "decode", "finish", "wait")]), (None, [True] * 4))
        for stage in "read", "decode", "finish", "wait":
            times = found[stage]
            assert times["p50_ns"] <= times["p95_ns"] <= times["p99_ns"] <= times["max_ns"] < 60e9, found
        out, err = run("top", "--once", env=env)
        head, row, times = out.splitlines()
        ms = "(?:<0.01|[0-9.e+]+)"
        wanted = ", ".join(f"{stage} {ms}/{ms}" for stage in ("read", "decode", "finish", "wait"))
        assert re.fullmatch(" {20}p50/p95 in ms: " + wanted, times), out
        assert "consumer+" not in row and head.split()[:2] == ["PID", "RANK"] and row.split()[:2] == [str(process.pid), "1/2"], out
        assert "consumer" in row and err == "", (out, err)


@test
def a_limit_of_the_time_since_open_is_marked(world):
    env, folder = place(world, "since-open")
    with running(world, env, "--step-ms", "100"):
        time.sleep(1.5)  # more batches than the rule needs, and far fewer between two looks
        found, = run_json("top", "--once", "--interval", "0.1", env=env)["loaders"]
        expect((found["bottleneck"], found["bottleneck_since"]), ("consumer", "open"))
        lines = run("top", "--once", "--interval", "0.1", env=env)[0].splitlines()
        assert "consumer+ " in lines[1] and lines[-1].startswith("+ since open: "), lines


@test
def the_times_of_stages_need_room(world):
    env, folder = place(world, "room")
    with running(world, env, "--step-ms", "20"):
        time.sleep(0.5)
        for rows, has_times in (5, False), (6, True):
            main_end, end = pty.openpty()
            fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 120, 0, 0))
            subprocess.run([PENSTOCK, "top", "--once"], env=env, stdout=end, check=True)
            os.close(end)
            expect("p50/p95 in ms: " in os.read(main_end, 1 << 20).decode(), has_times)
            os.close(main_end)


@test
def two_loaders_are_two_rows_and_a_clean_end_leaves_nothing(world):
    env, folder = place(world, "two")
    with running(world, env) as first, running(world, env) as second:
        expect({found["pid"] for found in run_json("top", "--once", env=env)["loaders"]}, {first.pid, second.pid})
        second.send_signal(signal.SIGINT)
        second.wait()
        expect([found["pid"] for found in run_json("top", "--once", env=env)["loaders"]], [first.pid])
        expect(len(os.listdir(folder)), 1)


@test
def kill_9_leaves_nothing(world):
    env, folder = place(world, "killed")
    with running(world, env) as process:
        end = time.monotonic() + 30
        while not run_json("top", "--once", env=env)["loaders"]:  # its file may be there, and not be written yet
            assert time.monotonic() < end, "no loader"
        process.kill()
        process.wait()
        expect(len(os.listdir(folder)), 1)
        expect(run_json("top", "--once", env=env)["loaders"], [])
        expect(os.listdir(folder), [])


@test
def a_stopped_loader_is_said_to_be_silent(world):
    env, folder = place(world, "stopped")
    with running(world, env) as process:
        process.send_signal(signal.SIGSTOP)
        found, = run_json("top", "--once", env=env)["loaders"]
        expect((found["pid"], found["state"], "samples_per_second" in found), (process.pid, "silent", False))
        assert "does not answer: stopped" in run("top", "--once", env=env)[0]
        process.send_signal(signal.SIGCONT)
        expect(run_json("top", "--once", env=env)["loaders"][0]["state"], "running")


def screen(main_end):
    """Return all that was written to a terminal whose other end is closed: one read gives at most a page of it."""
    out = b""
    with contextlib.suppress(OSError):  # EIO: there is no more
        while part := os.read(main_end, 1 << 16):
            out += part
    return out.decode()


@test
def the_screen_is_redrawn_and_given_back(world):
    env, folder = place(world, "screen")
    with running(world, env):
        main_end, end = pty.openpty()
        top = subprocess.Popen([PENSTOCK, "top", "--interval", "0.2"], env={**env, "TERM": "xterm"}, stdout=end,
                               stderr=subprocess.PIPE)
        os.close(end)
        time.sleep(1.5)
        top.send_signal(signal.SIGINT)
        expect((top.wait(), top.stderr.read()), (0, b""))
        out = screen(main_end)
        assert out.startswith("\x1b[?1049h") and out.count("\x1b[H") >= 2, out
        assert "PID" in out.partition("\x1b[?1049l")[2], out
        os.close(main_end)


@test
def lines_of_json_come_until_ctrl_c(world):
    env, folder = place(world, "lines")
    with running(world, env):
        top = subprocess.Popen([PENSTOCK, "top", "--json", "--interval", "0.2"], env=env, stdout=subprocess.PIPE)
        lines = [json.loads(top.stdout.readline()) for _ in range(3)]
        top.send_signal(signal.SIGINT)
        expect((top.wait(), [len(line["loaders"]) for line in lines]), (0, [1, 1, 1]))
        top.stdout.close()


@test
def an_empty_file_is_deleted_once_it_is_old_and_only_among_status_files(world):
    env, folder = place(world, "empty")
    os.mkdir(folder, 0o700)
    old, new = os.path.join(folder, "old"), os.path.join(folder, "new")
    for path in old, new:
        open(path, "w").close()
    os.utime(old, (time.time() - 100,) * 2)
    run("top", "--once", "--folder", folder)
    expect(sorted(os.listdir(folder)), ["new", "old"])
    run("top", "--once", env=env)
    expect(os.listdir(folder), ["new"])


@test
def what_is_no_status_file_is_named_and_kept(world):
    env, folder = place(world, "others")
    os.mkdir(folder, 0o700)
    for name, content in ("notes", b"notes of somebody"), ("damaged", b"pstkbrd\0\1\0\0\0" + bytes(4084)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    _, err = run("top", "--once", env=env)
    assert "damaged" in err, err
    expect(sorted(os.listdir(folder)), ["damaged", "notes"])
    os.chmod(folder, 0o777)
    _, err = run("top", "--once", env=env, status=2)
    assert f"others can write to {folder}: chmod 700 it" in err, err
    _, err = run("top", "--folder", os.path.join(folder, "notes"), status=2)
    assert "must be a folder that exists" in err, err
    for line in (["--interval", "0"], ["--interval", "nan"], ["data"]):
        run("top", *line, status=2)


if __name__ == "__main__":
    sys.exit(main(TESTS))
