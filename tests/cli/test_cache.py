#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command cache: what lies in a folder for caches, and emptying it.
usage: test_cache.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import fcntl
import os
import sys

from test_command import expect, main, run, run_json

TESTS = []


def test(function):
    TESTS.append(function)
    return function


HEX = "0123456789abcdef" * 2
OURS = {"entries/" + "0" * 32: 1000, "entries/" + "af" * 16: 2500, "entries/" + "12" * 16 + ".tmp": 70, f"index/tar-{HEX}.index": 400}


def magic_of(name):
    return b"" if ".tmp" in name else b"PSTKCACH" if name.startswith("entries/") else b"PSTKPTS\0" if ".points" in name else b"PSTKIDX\0"


def put(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.chmod(os.path.dirname(path), 0o700)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o600)


def put_ours(folder, name, size):
    put(folder, name, (bytes(8) + magic_of(name)).ljust(size, b"\0"))


def filled(world):
    """Return a folder with two entries, one that a dead process left, an index and files of others."""
    folder = world.fresh("cached")
    for name, size in OURS.items():
        put_ours(folder, name, size)
    for name, size in (("entries/lock", 3), ("entries/notes", 5), (f"index/tar-{HEX}.index.lock", 16)):
        put(folder, name, bytes(size))
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
                  "n_checksums": 0, "checksum_bytes": 0, "n_writing": 1, "writing_bytes": 70, "max_bytes": 3 << 20})
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
    expect(sorted(os.listdir(folder + "/entries")), ["lock", "notes"])  # the dead process's files are removed, too
    expect(os.listdir(folder + "/index"), [f"tar-{HEX}.index.lock"])
    told = run_json("cache", folder, "--clear")
    expect(told, {"path": folder, "cleared": True, "n_entries": 0, "bytes": 0, "n_indexes": 0, "index_bytes": 0, "n_checksums": 0,
                  "checksum_bytes": 0})
    expect(run_json("cache", folder)["n_entries"], 0)


@test
def files_of_others_stay(world):
    """Neither a name alone nor a magic alone makes a file penstock's."""
    folder = filled(world)
    index = bytes(8) + magic_of("index/") + bytes(400)
    others = {"index/vectors.index": b"IxFI" + bytes(400), "index/tar-1.index": index, f"index/{HEX}.index": index,
              f"index/faiss-{HEX}.index": b"IxFI" + bytes(400), f"index/tar-{HEX}.indexes": index,
              f"index/tar-{HEX.upper()}.index": index, f"index/tar-{HEX}f.index": index, f"index/a b-{HEX}.index": index,
              f"index/empty-{HEX}.index": b"", "entries/" + "cd" * 16: b"an entry of another tool" * 9,
              "entries/" + "ce" * 16 + ".tmp": b"that it is writing" * 9}
    for name, content in others.items():
        put(folder, name, content)
    os.symlink(os.path.join(folder, "index/vectors.index"), os.path.join(folder, f"index/link-{HEX}.index"))
    os.symlink(os.path.join(folder, "index/vectors.index"), os.path.join(folder, "entries/" + "ab" * 16))
    expect((run_json("cache", folder)["n_indexes"], run_json("cache", folder)["index_bytes"]), (1, 400))
    told = run_json("cache", folder, "--clear")
    expect((told["n_entries"], told["bytes"], told["n_indexes"], told["index_bytes"]), (2, 3500, 1, 400))
    for name, content in others.items():
        with open(os.path.join(folder, name), "rb") as file:
            expect(file.read(), content)
    assert os.path.islink(os.path.join(folder, f"index/link-{HEX}.index")) and os.path.islink(os.path.join(folder, "entries/" + "ab" * 16))
    for name in OURS:
        assert not os.path.lexists(os.path.join(folder, name)), name


@test
def points_and_what_builders_left_are_counted_and_removed(world):
    folder = filled(world)
    put_ours(folder, f"index/{HEX}.points", 700)
    put_ours(folder, f"index/points-{HEX}.index", 90)
    left = [f"index/{HEX}.points.tmp-aB3xyz", f"index/tar-{HEX}.index.tmp-aB3xyz", f"index/mds-{HEX}.checksums.tmp-aB3xyz"]
    young, written = f"index/{HEX}.points.tmp-young1", f"index/mds-{HEX}.index.tmp-young1"
    for name in left + [young, written]:
        put_ours(folder, name, 50)
    put(folder, f"index/mds-{HEX}.index.lock", b"")
    os.utime(os.path.join(folder, left[0]), (0, 0))
    told = run_json("cache", folder)
    expect((told["n_indexes"], told["index_bytes"], told["n_writing"], told["writing_bytes"]), (3, 1190, 6, 320))
    with open(os.path.join(folder, f"index/mds-{HEX}.index.lock"), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = run_json("cache", folder, "--clear")
    expect((told["n_indexes"], told["index_bytes"]), (3, 1190))
    expect(sorted(name for name in os.listdir(folder + "/index") if ".lock" not in name), sorted(name[6:] for name in (young, written)))


@test
def checksums_stay_unless_they_are_asked_for(world):
    folder = filled(world)
    name = f"index/mds-{HEX}.checksums"
    put_ours(folder, name, 600)
    told = run_json("cache", folder)
    expect((told["n_indexes"], told["n_checksums"], told["checksum_bytes"]), (1, 1, 600))
    text, _ = run("cache", folder)
    assert ["checksums", "1", "600", "bytes"] in [line.split() for line in text.splitlines()], text
    text, _ = run("cache", folder, "--clear")
    expect(text.splitlines()[0], f"{folder}: removed 2 entries and 1 index, 3.90 kB")
    assert "1 file of checksums stays" in text and "--clear --checksums" in text, text
    assert os.path.exists(os.path.join(folder, name))
    _, err = run("cache", folder, "--checksums", status=2)
    assert "--clear" in err, err
    text, _ = run("cache", folder, "--clear", "--checksums")
    expect(text, f"{folder}: removed 0 entries and 0 indexes and 1 file of checksums, 600 bytes\n")
    assert not os.path.exists(os.path.join(folder, name))


@test
def indexes_that_others_can_write_to_are_not_removed(world):
    folder = filled(world)
    os.chmod(folder + "/index", 0o770)
    _, err = run("cache", folder, "--clear", status=2)
    assert f"{folder}/index" in err and "chmod go-w" in err, err
    for name in OURS:  # neither are entries: all or nothing
        assert os.path.exists(os.path.join(folder, name)), name
    expect(run_json("cache", folder)["n_indexes"], 1)
    os.chmod(folder + "/index", 0o700)
    run("cache", folder, "--clear")
    os.rename(folder + "/index", folder + "/elsewhere")
    os.symlink(folder + "/elsewhere", folder + "/index")
    run("cache", folder, "--clear", status=2)


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


if __name__ == "__main__":
    sys.exit(main(TESTS))
