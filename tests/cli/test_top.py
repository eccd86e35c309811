#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock top`: the loaders that run, and nothing of those that ended, were killed, or are no loaders.
usage: test_top.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py."""
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time

from test_command import PENSTOCK, expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


@contextlib.contextmanager
def running(world, env, *options):
    """A loader that runs, once it has a board."""
    folder = os.path.join(env["XDG_RUNTIME_DIR"], "penstock")
    before = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    process = subprocess.Popen([PENSTOCK, "bench", world.data, "--size", "16", "--batch-size", "4", "--seconds", "60",
                                "--threads", "1", "--no-ceilings", *options], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not (os.path.isdir(folder) and set(os.listdir(folder)) - before):
            assert time.monotonic() < end and process.poll() is None, "no board"
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def place(world, name):
    """An environment with a runtime folder of its own, and the folder of the boards."""
    where = world.fresh(name)
    os.mkdir(where, 0o700)
    return {**os.environ, "XDG_RUNTIME_DIR": where}, os.path.join(where, "penstock")


@test
def no_loader_is_said(world):
    env, folder = place(world, "none")
    out, err = run("top", "--once", env=env)
    assert "No loader of this user runs here" in out and folder in out, out
    expect((err, run_json("top", "--once", env=env)), ("", {"folder": folder, "loaders": []}))


@test
def a_loader_is_shown_with_its_rates_and_what_limits(world):
    env, folder = place(world, "one")
    with running(world, env, "--rank", "1", "--world", "2", "--step-ms", "20") as process:
        time.sleep(1)
        found, = run_json("top", "--once", env=env)["loaders"]
        expect((found["pid"], found["state"], found["rank"], found["world"]), (process.pid, "running", 1, 2))
        expect((found["data_set"], found["epoch_samples"], found["bottleneck"]), (world.data, 27, "consumer"))
        assert 50 < found["samples_per_second"] < 210, found  # 4 rows each 20 ms
        assert found["n_samples"] == 4 * found["n_batches"] > 0 and found["rss_bytes"] > 1 << 20, found
        assert 0 <= found["waiting"] < 0.3 and 0 <= found["cores"] < 2, found
        out, err = run("top", "--once", env=env)
        head, row = out.splitlines()
        assert head.split()[:2] == ["PID", "RANK"] and row.split()[:2] == [str(process.pid), "1/2"], out
        assert "consumer" in row and err == "", (out, err)


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
        out = os.read(main_end, 1 << 20).decode()
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
def an_empty_file_is_deleted_once_it_is_old_and_only_among_boards(world):
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
def what_is_no_board_is_named_and_kept(world):
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
    assert "can be written to by others: chmod 700 it" in err, err
    _, err = run("top", "--folder", os.path.join(folder, "notes"), status=2)
    assert "must be a folder that exists" in err, err
    for line in (["--interval", "0"], ["--interval", "nan"], ["data"]):
        run("top", *line, status=2)


if __name__ == "__main__":
    sys.exit(main(TESTS))
