#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lock of an index: which processes wait for it; and the cases in which no index is written.
usage: test_locks.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import fcntl
import io
import os
import select
import signal
import subprocess
import sys
import tarfile
import time

from test_command import PENSTOCK, Skip, expect, main, run

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def archive(folder, n_samples=8, size=64):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "data.tar")
    with tarfile.open(path, "w") as tar:
        for i in range(n_samples):
            member = tarfile.TarInfo("%05d.txt" % i)
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(size)))
    return path


def indexed(world, name):
    """Return an archive, and the path of its index, which is there."""
    data = archive(world.fresh(name))
    run("info", data)
    own = os.path.join(os.path.dirname(data), ".penstock")
    index, = (os.path.join(own, name) for name in os.listdir(own) if name.endswith(".index"))
    return data, index


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def begin(*args, **kwargs):
    return subprocess.Popen([PENSTOCK, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


def cached(world, name):
    return {**os.environ, "PENSTOCK_CACHE": world.fresh(name)}


def line_of(process):
    """Return the first line on stderr. The process is killed if there is none."""
    if not select.select([process.stderr], [], [], 20)[0]:
        process.kill()
        process.communicate()
        raise AssertionError("it says nothing")
    return process.stderr.readline()


def end(process):
    """Return the exit status, and what is on stderr. The process is killed if it hangs."""
    try:
        _, err = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("it hangs") from None
    return process.returncode, err


@test
def who_waits_says_so_at_once_and_goes_on_when_the_lock_is_free(world):
    data, index = indexed(world, "waiting")
    os.remove(index)
    with open(index + ".lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(bytes(16) + b"process 4711 on host n2")
        lock.flush()
        waiter = begin("info", data)
        line = line_of(waiter)
        assert "process 4711 on host n2 is building the index of " in line and index + ".lock" in line and os.path.dirname(data) in line, line
        assert waiter.poll() is None
    expect(end(waiter), (0, ""))
    assert os.path.exists(index)


@test
def a_stopped_builder_is_named_by_its_number(world):
    """A stopped builder is named, whatever it is busy with: here with more names than it can read before it is stopped.
    Its name is in the file of the lock soon after the lock is taken."""
    data = archive(world.fresh("stopped"), n_samples=60000, size=0)
    folder = os.path.dirname(data)
    builder = begin("info", data)
    lock = None
    for _ in range(2000):
        own = os.path.join(folder, ".penstock")
        locks = [os.path.join(own, name) for name in (os.listdir(own) if os.path.isdir(own) else ()) if ".index.lock" in name]
        lock = next((path for path in locks if b"process " in contents(path)), None)
        if lock is not None or builder.poll() is not None:
            break
        time.sleep(0.001)
    builder.send_signal(signal.SIGSTOP)
    try:
        if lock is None or builder.poll() is not None or any(name.endswith(".index") for name in os.listdir(own)):
            raise Skip("the index was there before the builder was stopped")
        waiter = begin("info", data)
        line = line_of(waiter)
        assert f"process {builder.pid} on host {os.uname().nodename} is building the index of " in line, line
    finally:
        builder.send_signal(signal.SIGCONT)
    expect(end(waiter)[0], 0)
    expect(end(builder)[0], 0)


@test
def a_lock_of_another_user_is_not_waited_for(world):
    if os.geteuid() != 0:
        raise Skip("only root can give a file to another user")
    data, index = indexed(world, "theirs")
    os.remove(index)
    os.chown(index + ".lock", 12345, 12345)
    environment = cached(world, "theirs_cache")
    with open(index + ".lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        expect(end(begin("info", data, env=environment)), (0, ""))
    expect(len([name for name in os.listdir(environment["PENSTOCK_CACHE"] + "/index") if name.endswith(".index")]), 1)
    assert not os.path.exists(index)


@test
def nothing_is_written_through_a_link(world):
    data = archive(world.fresh("linked"))
    target, environment = world.fresh("target"), cached(world, "linked_cache")
    os.makedirs(target, exist_ok=True)
    os.symlink(target, os.path.join(os.path.dirname(data), ".penstock"))
    for words in (("info", data), ("verify", data, "--checksums")):
        expect(end(begin(*words, env=environment))[0], 0)
    expect(os.listdir(target), [])
    names = os.listdir(environment["PENSTOCK_CACHE"] + "/index")
    expect(sorted(os.path.splitext(name)[1] for name in names if not name.endswith(".lock")), [".checksums", ".index"])


@test
def points_of_a_compressed_archive_are_not_written_through_a_link(world):
    plain = archive(world.fresh("zipped"))
    target, environment = world.fresh("zipped_target"), cached(world, "zipped_cache")
    os.makedirs(target, exist_ok=True)
    os.symlink(target, os.path.join(os.path.dirname(plain), ".penstock"))
    subprocess.run(["gzip", plain], check=True)
    expect(end(begin("info", plain + ".gz", env=environment))[0], 0)
    expect(os.listdir(target), [])
    assert any(name.endswith(".points") for name in os.listdir(environment["PENSTOCK_CACHE"] + "/index"))


if __name__ == "__main__":
    sys.exit(main(TESTS))
