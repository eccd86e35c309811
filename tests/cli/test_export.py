#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock export`: what it writes, what it refuses, and what is left after failures.
usage: test_export.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py. With PENSTOCK_TEST_IMAGES = a folder of
images, these are exported, too.

tests/python/test_export.py reads every kind of field in every target.
"""
import errno
import filecmp
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tarfile

import numpy
from PIL import Image
from test_command import PENSTOCK, Skip, expect, main, run, run_json
from test_outputs import failing, left_in, limited
from test_pack import source

TESTS = []
TARGETS = ("folder", "webdataset", "tfrecord", "mds")


def test(function):
    TESTS.append(function)
    return function


def read(path):
    with open(path, "rb") as file:
        return file.read()


def files_below(root):
    return sorted(os.path.relpath(os.path.join(folder, name), root)
                  for folder, _, names in os.walk(root) for name in names)


def nothing_left(world, out):
    """Neither OUT nor a directory next to it."""
    expect([name for name in os.listdir(world.root) if name.endswith(os.path.basename(out))], [])


def compare_folders(src, out, n_equivalent=0):
    """Every image of src is below out byte for byte, but for n_equivalent; and nothing else is."""
    wanted = [name for name in files_below(src) if not name.endswith(".txt")]
    expect(files_below(out), sorted([*wanted, "penstock-export.json"]))
    expect(len([name for name in wanted if not filecmp.cmp(os.path.join(src, name), os.path.join(out, name), False)]),
           n_equivalent)


# ---- what is written ----------------------------------------------------------------------------

@test
def a_folder_comes_back_byte_for_byte(world):
    out = world.fresh("x-folder")
    told, err = run("export", world.data, "--to", "folder", out)
    assert "exported 27 samples to folder: 27 files" in told and "all byte for byte" in told and err == "", told
    compare_folders(world.src, out)
    mark = json.loads(read(os.path.join(out, "penstock-export.json")))
    expect(mark["identity"], run_json("info", world.data)["identity"])
    again = world.fresh("x-again")
    _, err = run("pack", out, again)
    expect(err, "")  # the mark of an export does not count as a file that is left out
    expect(run_json("info", again)["identity"], mark["identity"])


@test
def each_target_holds_the_packed_files(world):
    wanted = {name: read(os.path.join(world.src, name)) for name in files_below(world.src) if not name.endswith(".txt")}
    for target in TARGETS:
        out = world.fresh("x-" + target)
        told = run_json("export", world.data, out, "--to", target, "--threads", 3)
        expect([told[name] for name in ("target", "n_samples", "n_images", "n_equivalent", "n_encoded")],
               [target, 27, 27, 0, 0])
        files = [name for name in files_below(out) if name != "penstock-export.json"]
        expect((told["n_files"], told["bytes"]), (len(files), sum(os.path.getsize(os.path.join(out, name)) for name in files)))
        whole = b"".join(read(os.path.join(out, name)) for name in files)
        assert all(data in whole for data in wanted.values()), target
    with tarfile.open(world.path("x-webdataset/000000.tar")) as tar:
        found = {member.name: tar.extractfile(member).read() for member in tar}
    keys = {name[:-8]: data.decode() for name, data in found.items() if name.endswith(".key.txt")}
    expect(sorted(keys.values()), sorted(wanted))
    for key, path in keys.items():
        suffix = ".jpg" if wanted[path].startswith(b"\xff\xd8") else ".png"
        expect(found[key + suffix], wanted[path], path)


@test
def equivalent_jpegs_and_pixels_are_counted(world):
    src, odd = source(world)
    data, out = world.fresh("x-odd"), world.fresh("x-odd-out")
    expect(run_json("pack", src, data)["images"]["equivalent"], 1)
    told = run("export", data, "--to", "folder", out)[0]
    assert "1 JPEG with the same coefficients and markers" in told and "byte for byte" not in told, told
    compare_folders(src, out, 1)
    with Image.open(os.path.join(src, odd)) as packed, Image.open(os.path.join(out, odd)) as came:
        expect(came.tobytes(), packed.tobytes())
    done = run_json("export", data, "--to", "mds", world.fresh("x-odd-mds"))
    expect((done["n_equivalent"], done["n_images"]), (1, done["n_samples"]))
    run("pack", src, world.fresh("x-pixels"), "--pixels", 32)
    done = run_json("export", world.path("x-pixels"), "--to", "folder", world.fresh("x-png"))
    n_png = sum(name.endswith(".png") for name in files_below(src))
    expect((done["n_encoded"], done["n_renamed"]), (done["n_samples"], done["n_samples"] - n_png))
    assert all(name.endswith(".png") for name in files_below(world.path("x-png/odd")))


@test
def arrays_are_exported_and_opened_again(world):
    out = world.fresh("x-npy")
    run("export", world.data, "--to", "npy", out, "--fields", "cls")
    cls = numpy.load(os.path.join(out, "cls.npy"))
    expect(cls.tolist(), [int.from_bytes(subprocess.run([PENSTOCK, "get", world.data, str(i), "cls"], check=True,
                                                        stdout=subprocess.PIPE).stdout, "little") for i in range(27)])
    expect(run_json("info", out)["n_samples"], 27)
    tars = world.fresh("x-tars")
    run("export", out, "--to", "webdataset", tars)  # the source has another format than the library's own
    expect(tarfile.open(os.path.join(tars, "000000.tar")).getnames()[:2], ["000000000.cls", "000000001.cls"])


@test
def a_subset_is_exported(world):
    out = world.fresh("x-subset")
    told = run_json("export", world.data, "--to", "npy", out, "--fields", "cls", "--subset", "range:5..20", "--subset",
                    "where:cls=2")
    expect(numpy.load(os.path.join(out, "cls.npy")).tolist(), [2] * 4)
    expect(told["n_samples"], 4)
    err = run("export", world.data, "--to", "npy", world.fresh("x-none"), "--fields", "cls", "--subset", "where:cls=77",
              status=2)[1]
    assert "none of 27 samples" in err, err
    nothing_left(world, "x-none")


@test
def the_images_of_the_given_folder_come_back(world):
    src = os.environ.get("PENSTOCK_TEST_IMAGES")
    if not src:
        raise Skip("PENSTOCK_TEST_IMAGES names no folder")
    told = run_json("pack", src, world.fresh("x-real"), "--skip-bad", status=(0, 1))
    out = world.fresh("x-real-out")
    done = run_json("export", world.path("x-real"), "--to", "folder", out)
    expect(done["n_equivalent"], told["images"]["equivalent"])
    differ = [name for name in files_below(out)
              if name != "penstock-export.json" and read(os.path.join(out, name)) != read(os.path.join(src, name))]
    expect(len(differ), done["n_equivalent"])
    print("# %d images, %d equivalent" % (done["n_images"], done["n_equivalent"]))


# ---- what is refused ----------------------------------------------------------------------------

@test
def wrong_usage_is_one_sentence_with_advice_that_works(world):
    out = world.fresh("x-never")
    for args, status, why in (
            ([], 2, "--to must be given"), (["--to", "tar"], 2, "--to: value is 'tar'"),
            (["--to", "mds", "--fields", "cls,absent"], 2, "'absent'"), (["--to", "mds", "--fields", "a,,b"], 2, "a,,b"),
            (["--to", "npy"], 2, "field jpg is an image, but an array holds numbers; leave it out: --fields cls"),
            (["--to", "npy", "--fields", "key"], 2, "choose another target"),
            (["--to", "mds", "--shard-size", "5G"], 2, "4294967295"), (["--to", "mds", "--key", "key"], 2, "does not use"),
            (["--to", "folder", "--label", "key"], 2, "must be a scalar of whole numbers")):
        err = run("export", world.data, out, *args, status=status)[1]
        assert why in err and err.count("\n") == 1, err
    err = run("export", world.path("absent"), "--to", "mds", out, status=2)[1]
    assert "absent" in err, err
    err = run("export", world.data, "--to", "mds", world.path("absent/deep"), status=2)[1]
    assert "absent/deep: cannot make it: there is no folder" in err and "(make it with mkdir -p)" in err, err
    nothing_left(world, out)
    run("export", world.data, "--to", "npy", out, "--fields", "cls")  # as one of the messages said


@test
def only_an_untouched_export_is_replaced(world):
    out = world.fresh("x-again")
    run("export", world.data, "--to", "mds", out)
    err = run("export", world.data, "--to", "folder", out, status=2)[1]
    assert "--overwrite" in err and "set overwrite" not in err, err
    for _ in range(2):
        run("export", world.data, "--to", "folder", out, "--overwrite")
        compare_folders(world.src, out)
    with open(os.path.join(out, "b", "mine.txt"), "w") as file:
        file.write("mine")
    err = run("export", world.data, "--to", "mds", out, "--overwrite", status=2)[1]
    assert "were added" in err and read(os.path.join(out, "b", "mine.txt")) == b"mine", err
    for path in (world.data, world.src):
        before = files_below(path)
        run("export", world.data, "--to", "mds", path, "--overwrite", status=2)
        expect(files_below(path), before)
    with open(world.path("a-file"), "w") as file:
        file.write("mine")
    run("export", world.data, "--to", "mds", world.path("a-file"), "--overwrite", status=2)
    expect(read(world.path("a-file")), b"mine")
    left = [name for name in os.listdir(world.root) if name.startswith(".")]
    expect(left, [])


@test
def a_damaged_sample_is_named_and_nothing_is_left(world):
    data, out = world.fresh("x-damaged"), world.fresh("x-damaged-out")
    shutil.copytree(world.data, data)
    shard, = [os.path.join(data, name) for name in os.listdir(data) if name.endswith(".pstk")]
    whole = bytearray(read(shard))
    whole[len(whole) // 2] ^= 16
    with open(shard, "wb") as file:
        file.write(whole)
    bad, = run_json("verify", data, status=1)["bad"]
    for target in TARGETS:
        for threads in (1, 4):
            err = run("export", data, "--to", target, out, "--threads", threads, status=1)[1]
            assert os.path.basename(shard) in err and "record %d" % bad["record"] in err, err
            nothing_left(world, out)


# ---- what fails ---------------------------------------------------------------------------------

@test
def a_full_disk_leaves_nothing(world):
    folder = world.fresh("x-disk")
    os.mkdir(folder)
    script = ('mount -t tmpfs -o size=100k none "$1" || exit 77; "$2" export "$3" --to "$4" "$1/out"; s=$?; '
              'ls -A "$1"; exit $s')
    for target in TARGETS:
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", folder, PENSTOCK, world.data, target],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        if done.returncode == 77 or b"unshare" in done.stderr:
            raise Skip("missing: the right to mount")
        expect((done.returncode, done.stdout), (1, b""), done.stderr)
        assert b"No space left on device" in done.stderr and b"free some space" in done.stderr, done.stderr
        expect(done.stderr.count(b"\n"), 1, done.stderr)


@test
def a_failed_call_leaves_nothing(world):
    out = world.fresh("x-failed")
    cases = [("webdataset", {"fsync:000000.tar": errno.EIO}), ("webdataset", {"close:000000.tar": errno.ENOSPC}),
             ("webdataset", {"openat:000000.tar": errno.EACCES}), ("tfrecord", {"renameat:of-00001.tfrecord": errno.EIO}),
             ("mds", {"openat:index.json": errno.EIO}), ("mds", {"openat:.tmp-samples": errno.EIO}),
             ("folder", {"syncfs:": errno.EIO}), ("folder", {"openat:x.JPEG": errno.EMFILE}),
             ("webdataset", {"renameat:penstock-export.json": errno.EIO}), ("webdataset", {"renameat:x-failed": errno.EIO})]
    for target, calls in cases:
        err = run("export", world.data, "--to", target, out, status=(1, 2), env=failing(calls))[1]
        assert os.strerror(*calls.values()) in err and err.count("\n") == 1, (calls, err)
        nothing_left(world, out)
    err = run("export", world.data, "--to", "webdataset", out, status=1, preexec_fn=limited(resource.RLIMIT_FSIZE, 4096))[1]
    assert "File too large" in err, err
    nothing_left(world, out)


@test
def ctrl_c_leaves_nothing_or_the_whole(world):
    for stop, done in (("openat:000000.tar", 0), ("fsync:000000.tar", 1), ("renameat:x-stopped", 1)):
        out = world.fresh("x-stopped")
        _, err = run("export", world.data, "--to", "webdataset", out, status=130, env=failing({}, stop))
        assert "interrupted" in err and err.count("\n") == 1, err
        if done and os.path.exists(out):
            assert "complete already" in err, err
            expect(len(left_in(out)), 2)
        else:
            assert "nothing was exported" in err, err
            nothing_left(world, out)


@test
def what_a_kill_leaves_is_removed_by_the_next_export(world):
    out = world.fresh("x-killed")
    for stop in ("openat:000000.tar", "fsync:000000.tar", "renameat:penstock-export.json", "renameat:x-killed"):
        run("export", world.data, "--to", "webdataset", out, status=-signal.SIGKILL,
            env=failing({}, "%s:%d" % (stop, signal.SIGKILL)))
        expect([name for name in os.listdir(world.root) if "x-killed" in name], [".tmp-x-killed"], stop)
        err = run("export", world.data, "--to", "folder", out)[1]
        assert "was stopped before" in err and err.count("\n") == 1, err
        compare_folders(world.src, out)
        shutil.rmtree(out)
        nothing_left(world, out)
    os.mkdir(world.path(".tmp-x-killed"))
    with open(world.path(".tmp-x-killed/mine"), "w"):
        pass
    err = run("export", world.data, "--to", "folder", out, status=2)[1]
    assert ".tmp-x-killed" in err and os.path.exists(world.path(".tmp-x-killed/mine")), err
    shutil.rmtree(world.path(".tmp-x-killed"))


@test
def replacing_is_all_or_nothing(world):
    out = world.fresh("x-swap")
    elsewhere = {"renameat2:x-swap": errno.EINVAL}  # as on NFS, which cannot exchange names
    run("export", world.data, "--to", "mds", out)
    for calls in ({}, elsewhere):
        run("export", world.data, "--to", "folder", out, "--overwrite", env=failing(calls))
        compare_folders(world.src, out)
        expect([name for name in os.listdir(world.root) if "x-swap" in name], ["x-swap"])
    for calls in ({"renameat2:x-swap": errno.EIO}, {**elsewhere, "renameat:.old-x-swap": errno.EIO}):
        err = run("export", world.data, "--to", "mds", out, "--overwrite", status=1, env=failing(calls))[1]
        assert "Input/output error" in err, err
        compare_folders(world.src, out)
        expect([name for name in os.listdir(world.root) if "x-swap" in name], ["x-swap"])
    # killed while the replaced export is removed: the new one stands, the next removes the rest
    run("export", world.data, "--to", "mds", out, "--overwrite", status=-signal.SIGKILL,
        env=failing({}, "unlinkat:x.JPEG:%d" % signal.SIGKILL))
    assert "index.json" in files_below(out)
    err = run("export", world.data, "--to", "folder", out, "--overwrite")[1]
    assert "was stopped before" in err, err
    compare_folders(world.src, out)
    expect([name for name in os.listdir(world.root) if "x-swap" in name], ["x-swap"])


@test
def two_exports_to_one_place_do_not_meet(world):
    out = world.fresh("x-busy")
    first = subprocess.Popen([PENSTOCK, "export", world.data, "--to", "webdataset", out], stdout=subprocess.DEVNULL,
                             env=failing({}, "openat:000000.tar:%d" % signal.SIGSTOP))
    try:
        expect(os.WIFSTOPPED(os.waitpid(first.pid, os.WUNTRACED)[1]), True)
        err = run("export", world.data, "--to", "mds", out, status=(1, 2))[1]
        assert "another export is writing there" in err and err.count("\n") == 1, err
    finally:
        first.send_signal(signal.SIGCONT)
        expect(first.wait(), 0)
    expect(len(left_in(out)), 2)


if __name__ == "__main__":
    sys.exit(main(TESTS))
