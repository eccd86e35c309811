#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command cache: what lies in a folder for caches, and emptying it.
usage: test_cache.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import io
import os
import sys
import tarfile

from test_command import expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def filled(world):
    """A folder with two entries, one that a dead process left, an index and files of others."""
    folder = world.fresh("cached")
    for name, size in (("entries/" + "0" * 32, 1000), ("entries/" + "af" * 16, 2500), ("entries/" + "12" * 16 + ".tmp", 70),
                       ("entries/lock", 3), ("entries/notes", 5), ("index/tar-1.index", 400), ("index/tar-1.index.lock", 16),
                       ("index/tar-1.checksums", 50)):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.chmod(os.path.dirname(path), 0o700)
        with open(path, "wb") as file:
            file.write(bytes(size))
        os.chmod(path, 0o600)
    return folder


def environment(**names):
    kept = {name: value for name, value in os.environ.items() if name not in ("PENSTOCK_CACHE", "PENSTOCK_CACHE_SIZE",
                                                                              "XDG_CACHE_HOME", "HOME")}
    return {**kept, **names}


@test
def entries_and_indexes_are_counted(world):
    folder = filled(world)
    told = run_json("cache", folder, env=environment(PENSTOCK_CACHE_SIZE="3M"))
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    assert abs(told.pop("free_bytes") - free) < 0.1 * free
    expect(told, {"path": folder, "cleared": False, "n_entries": 2, "bytes": 3500, "n_indexes": 1, "index_bytes": 400,
                  "n_writing": 1, "writing_bytes": 70, "max_bytes": 3 << 20})
    told = run_json("cache", folder, env=environment())
    assert 0.4 * free < told["max_bytes"] < 0.6 * free
    text, _ = run("cache", folder, env=environment())
    lines = [line.split() for line in text.splitlines()]
    expect(lines[:4], [[folder], ["entries", "2", "3.50", "kB"], ["unready", "1", "70", "bytes"], ["indexes", "1", "400", "bytes"]])
    assert "PENSTOCK_CACHE_SIZE" in text, text
    text, _ = run("cache", folder, env=environment(PENSTOCK_CACHE_SIZE="3M"))
    assert "PENSTOCK_CACHE_SIZE" not in text and "3.15 MB" in text, text


@test
def clear_removes_entries_and_indexes_and_nothing_else(world):
    folder = filled(world)
    text, _ = run("cache", folder, "--clear")
    expect(text, f"{folder}: removed 2 entries and 1 index, 3.90 kB\n")
    expect(sorted(os.listdir(folder + "/entries")), ["lock", "notes"])  # what the dead process left is removed, too
    expect(sorted(os.listdir(folder + "/index")), ["tar-1.checksums", "tar-1.index.lock"])  # verify keeps these: none can be made again
    told = run_json("cache", folder, "--clear")
    expect(told, {"path": folder, "cleared": True, "n_entries": 0, "bytes": 0, "n_indexes": 0, "index_bytes": 0})
    expect(run_json("cache", folder)["n_entries"], 0)


@test
def the_folder_is_that_of_the_environment(world):
    folder = filled(world)
    for names, wanted in (({"PENSTOCK_CACHE": folder, "XDG_CACHE_HOME": "/x"}, folder),
                          ({"XDG_CACHE_HOME": "/nowhere", "HOME": "/x"}, "/nowhere/penstock"),
                          ({"HOME": "/nowhere"}, "/nowhere/.cache/penstock")):
        told = run_json("cache", env=environment(**names))
        expect(told["path"], wanted)
        expect(told["n_entries"], 2 if wanted == folder else 0)
    _, err = run("cache", env=environment(), status=2)
    assert "set PENSTOCK_CACHE" in err, err


@test
def a_folder_that_is_not_there_is_empty_and_is_not_made(world):
    folder = world.fresh("absent")
    os.mkdir(folder)
    told = run_json("cache", folder + "/none", env=environment())
    expect((told["n_entries"], told["max_bytes"], told["free_bytes"]), (0, None, None))
    text, _ = run("cache", folder + "/none", env=environment())
    assert "no such folder" in text, text
    run("cache", folder + "/none", "--clear")
    expect(os.listdir(folder), [])
    told = run_json("cache", folder, env=environment())  # a folder without entries
    assert told["n_entries"] == 0 and told["max_bytes"] == told["free_bytes"] // 2
    expect(os.listdir(folder), [])


@test
def what_is_wrong_is_reported(world):
    folder = filled(world)
    for text in ("12", "3X", "-1", "1000K", "99999999999G"):
        _, err = run("cache", folder, env=environment(PENSTOCK_CACHE_SIZE=text), status=2)
        assert "PENSTOCK_CACHE_SIZE" in err and text in err, err
        _, err = run("info", world.data, env=environment(PENSTOCK_CACHE_SIZE=text), status=2)
        assert "PENSTOCK_CACHE_SIZE" in err, err
    run("info", world.data, env=environment(PENSTOCK_CACHE_SIZE="0"))
    os.chmod(folder + "/entries", 0o777)
    for options in ([], ["--clear"]):
        _, err = run("cache", folder, *options, status=2)
        assert "chmod go-w" in err, err
    expect(len(os.listdir(folder + "/entries")), 5)
    file = os.path.join(folder, "file")
    with open(file, "w"):
        pass
    run("cache", file, status=2)
    run("cache", file, "--clear", status=2)


def write_frame(path, data):
    """One frame of zstd, of raw blocks, whose window is all of it."""
    with open(path, "wb") as file:
        file.write(bytes.fromhex("28b52ffda0") + len(data).to_bytes(4, "little"))
        for at in range(0, len(data), 1 << 17):
            block = data[at:at + (1 << 17)]
            file.write((len(block) << 3 | (at + len(block) == len(data))).to_bytes(3, "little") + block)


@test
def a_cache_that_cannot_be_used_is_a_wrong_setting_named_as_the_command_has_it(world):
    folder = world.fresh("large")
    os.mkdir(folder)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(3):
            member = tarfile.TarInfo(f"{i}.bin")
            member.size = 3 << 20
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    write_frame(folder + "/a.tar.zst", out.getvalue())
    for names, word in (({"PENSTOCK_CACHE": folder + "/a.tar.zst/x"}, "set $PENSTOCK_CACHE to"),
                        ({"PENSTOCK_CACHE": folder + "/cache", "PENSTOCK_CACHE_SIZE": "1M"}, "set $PENSTOCK_CACHE_SIZE to more")):
        for command in (["verify", folder], ["verify", folder, "--json"], ["info", folder], ["bench", folder]):
            out, err = run(*command, env=environment(**names), status=2)
            expect(out, "")
            assert word in err and "a.tar.zst" in err and err.count("errno") <= 1 and "cache_" not in err, err
    run("verify", folder, env=environment(PENSTOCK_CACHE=folder + "/cache"))
    for word, names in (("set $PENSTOCK_CACHE to", {"PENSTOCK_CACHE": folder + "/a.tar.zst/x"}),
                        ("set $PENSTOCK_CACHE_SIZE to more", {"PENSTOCK_CACHE": folder + "/new", "PENSTOCK_CACHE_SIZE": "1M"})):
        _, err = run("verify", folder, env=environment(**names), status=2)  # the index is there: the entry is not
        assert word in err and err.count("errno") <= 1, err


if __name__ == "__main__":
    sys.exit(main(TESTS))
