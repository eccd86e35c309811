#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files and messages of the command if the machine fails, a signal comes, or a name is hostile.
usage: test_outputs.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.

PENSTOCK_FAIL_CALLS is the path of fail_calls.so, which lets system calls fail (fail_calls.c); where
it is not set, the tests that need it are skipped.
"""
import errno
import fcntl
import json
import os
import pty
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

from test_command import (PENSTOCK, Skip, crc32c, expect, main, run, run_json, run_raw, start_slow_pack,
                          write_picture)
from PIL import Image

TESTS = []
ESCAPE = "\x1b]0;owned\x07\x7f\x9b"  # a terminal's title; DEL; C1, which some terminals obey too
BAD_BYTES = (b"\x1b", b"\x07", b"\x7f", b"\xc2\x9b")


def test(function):
    TESTS.append(function)
    return function


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def failing(calls, stop=None):
    """Return the environment in which these calls fail: {"read:END": errno}, and one brings SIGINT."""
    library = os.environ.get("PENSTOCK_FAIL_CALLS")
    if not library:
        raise Skip("missing: PENSTOCK_FAIL_CALLS")
    env = dict(os.environ, LD_PRELOAD=library,
               PENSTOCK_FAIL=",".join("%s:%d" % item for item in calls.items()))
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    if stop:
        env["PENSTOCK_STOP"] = stop
    return env


def limited(limit, value):
    """For preexec_fn: this limit of the process, soft."""
    def set_limit():
        resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))
    return set_limit


def show(world, path, status=0, **kwargs):
    return run("show", world.data, "--ids", "0..3", "--size", 64, "-o", path, status=status, **kwargs)


def is_png(path):
    return read(path).startswith(b"\x89PNG")


def left_in(folder):
    return sorted(os.listdir(folder))


def pictures(world, name, n=12):
    """Return a folder of pictures of one class."""
    src = world.fresh(name)
    for i in range(n):
        write_picture(os.path.join(src, "x", "%02d.jpg" % i), "420", i, 60 + i, 48)
    return src


# ---- show -o ------------------------------------------------------------------------------------

# In a folder /.../pictures there are no files without a name, as on many network file systems.
NAMED = {"open:pictures/": errno.EOPNOTSUPP}


@test
def a_picture_that_cannot_be_written_leaves_the_older_one(world):
    folder = world.fresh("pictures")
    os.mkdir(folder)
    old = os.path.join(folder, "sheet.png")
    cases = [({"preexec_fn": limited(resource.RLIMIT_FSIZE, 1024)}, "File too large")]
    for calls, reason in [({"fsync:": errno.EIO}, "Input/output error"),
                          ({"close:-0": errno.ENOSPC, "close: (deleted)": errno.ENOSPC}, "No space left"),
                          ({"rename:sheet.png": errno.EIO, "linkat:": errno.EIO}, "Input/output error")]:
        cases += [({"env": failing(calls)}, reason), ({"env": failing({**calls, **NAMED})}, reason)]
    for how, reason in cases:
        write(old, b"older")
        _, err = show(world, old, status=1, **how)
        expect(read(old), b"older", reason)
        assert reason in err and "is unchanged" in err and err.count("\n") == 1, err
        expect(left_in(folder), ["sheet.png"], reason)
        os.unlink(old)
        _, err = show(world, old, status=1, **how)
        expect(left_in(folder), [], reason)
        assert "no file was made" in err, err


@test
def a_killed_show_leaves_no_file(world):
    folder = world.fresh("pictures")
    os.mkdir(folder)
    path = os.path.join(folder, "sheet.png")
    for old in (None, b"older"):
        if old:
            write(path, old)
        show(world, path, status=-signal.SIGKILL, env=failing({}, "fsync::9"))
        expect(left_in(folder), ["sheet.png"] if old else [])
        assert not old or read(path) == old
        show(world, path)
        assert is_png(path)
        expect(left_in(folder), ["sheet.png"])


@test
def a_picture_is_made_where_files_need_a_name_or_the_name_was_taken_meanwhile(world):
    folder = world.fresh("pictures")
    os.mkdir(folder)
    path = os.path.join(folder, "sheet.png")
    for _ in range(2):
        show(world, path, env=failing(NAMED))
        assert is_png(path)
        expect(left_in(folder), ["sheet.png"])
    os.unlink(path)
    process = subprocess.Popen([PENSTOCK, "show", world.data, "-o", path], stdout=subprocess.DEVNULL,
                               env=failing({}, "fsync::%d" % signal.SIGSTOP))
    os.waitpid(process.pid, os.WUNTRACED)
    write(path, b"of another")
    process.send_signal(signal.SIGCONT)
    expect(process.wait(10), 0)
    assert is_png(path)
    expect(left_in(folder), ["sheet.png"])


@test
def a_failure_of_the_machine_has_another_status_than_a_wrong_path(world):
    folder = world.fresh("pictures")
    os.mkdir(folder)
    path, fifo, src = os.path.join(folder, "sheet.png"), os.path.join(folder, "fifo"), pictures(world, "sick", 2)
    os.mkfifo(fifo)
    for native, status in [(errno.ENOSPC, 1), (errno.EDQUOT, 1), (errno.EMFILE, 1), (errno.EIO, 1),
                           (errno.EACCES, 2), (errno.EROFS, 2), (errno.ENAMETOOLONG, 2), (errno.ELOOP, 2)]:
        for out in (path, fifo):
            _, err = show(world, out, status=status, env=failing({"open:-0": native, "open:fifo": native, **NAMED}))
            assert os.strerror(native) in err and out in err and err.count("\n") == 1, err
        _, err = run("pack", src, world.fresh("sick-data"), status=status, env=failing({"openat:x": native}))
        assert os.strerror(native) in err and "folder x" in err and err.count("\n") == 1, err
    expect(left_in(folder), ["fifo"])


@test
def a_full_disk_leaves_the_older_picture(world):
    folder = world.fresh("disk")
    os.mkdir(folder)
    script = ('mount -t tmpfs -o size=16k none "$1" || exit 77; echo older > "$1/sheet.png"; '
              '"$2" show "$3" --size 128 -o "$1/sheet.png"; s=$?; cat "$1/sheet.png"; ls -A "$1"; exit $s')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", folder, PENSTOCK, world.data],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if done.returncode == 77 or b"unshare" in done.stderr:
        raise Skip("missing: the right to mount")
    expect(done.returncode, 1, done.stderr)
    expect(done.stdout, b"older\nsheet.png\n")
    assert b"No space left on device" in done.stderr and b"is unchanged" in done.stderr, done.stderr


@test
def devices_and_pipes_are_written_straight_and_never_removed(world):
    folder = world.fresh("devices")
    os.mkdir(folder)
    full = os.path.join(folder, "full")
    try:
        os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        node = os.open(full, os.O_WRONLY)
        os.close(node)
    except OSError:
        full = "/dev/full"
        if os.access("/dev", os.W_OK):
            raise Skip("missing: a device node that this test may lose")
    before = os.stat(full)
    _, err = show(world, full, status=1)
    assert "No space left" in err and full in err, err
    assert stat.S_ISCHR(os.stat(full).st_mode) and os.stat(full).st_ino == before.st_ino
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(read(fifo)))
    reader.start()
    show(world, fifo)
    reader.join(10)
    assert got[0].startswith(b"\x89PNG") and stat.S_ISFIFO(os.stat(fifo).st_mode)
    show(world, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    expect([n for n in left_in(folder) if n.startswith(".")], [])


@test
def a_link_stays_a_link_and_what_it_leads_to_is_replaced(world):
    folder = world.fresh("links")
    os.makedirs(os.path.join(folder, "deep"))
    real, link = os.path.join(folder, "deep", "real.png"), os.path.join(folder, "link.png")
    os.symlink("second.png", link)
    os.symlink("deep/real.png", os.path.join(folder, "second.png"))
    for _ in range(2):  # first it leads to nothing
        show(world, link)
        assert os.path.islink(link) and is_png(real) and not os.path.islink(real)
        expect(left_in(os.path.join(folder, "deep")), ["real.png"])
    write(real, b"older")
    show(world, link, status=1, preexec_fn=limited(resource.RLIMIT_FSIZE, 1024))
    expect(read(real), b"older")


@test
def a_picture_has_the_mode_of_the_older_one_or_of_the_umask(world):
    folder = world.fresh("modes")
    os.mkdir(folder)
    path = os.path.join(folder, "new.png")
    for mask, mode in [(0o027, 0o640), (0o077, 0o600)]:
        show(world, path, preexec_fn=lambda: os.umask(mask))
        expect(stat.S_IMODE(os.stat(path).st_mode), mode)
        os.unlink(path)
    write(path, b"older")
    os.chmod(path, 0o604)
    show(world, path)
    expect(stat.S_IMODE(os.stat(path).st_mode), 0o604)
    assert is_png(path)


@test
def a_path_that_cannot_be_a_picture_is_one_sentence(world):
    folder = world.fresh("wrong")
    os.mkdir(folder)
    for path, part in [(folder, "folder"), (os.path.join(folder, "no", "x.png"), "No such file"),
                       (world.data + "/manifest.json/x.png", "Not a directory")]:
        _, err = show(world, path, status=2)
        assert part in err and err.count("\n") == 1, err


@test
def a_folder_that_takes_no_file_keeps_its_picture(world):
    if os.geteuid() == 0:
        raise Skip("permissions do not bind root")
    folder = world.fresh("closed-folder")
    os.mkdir(folder)
    path = os.path.join(folder, "mine.png")
    write(path, b"older")
    os.chmod(folder, 0o555)
    _, err = show(world, path, status=2)
    os.chmod(folder, 0o755)
    assert "Permission denied" in err and "-o -" in err, err
    expect(read(path), b"older")


def call_under_way(pid):
    """Return the system call that a program waits in, with its arguments; "running", or "" where that is not to be
    read."""
    try:
        with open("/proc/%d/syscall" % pid) as file:
            return file.read()
    except OSError:
        return ""


def catches(pid, number):
    with open("/proc/%d/status" % pid) as file:
        mask = next(line.split()[1] for line in file if line.startswith("SigCgt:"))
    return int(mask, 16) >> (number - 1) & 1


def wait_until_it_waits(pid):
    """Until it catches SIGINT, and is in one and the same system call for a while."""
    end, before = time.monotonic() + 120, None
    while time.monotonic() < end:
        call = call_under_way(pid)
        if catches(pid, signal.SIGINT) and call != "running\n" and call == before:
            return
        before = call
        time.sleep(1.0)


@test
def a_signal_before_the_end_leaves_the_older_picture(world):
    folder = world.fresh("stopped-picture")
    os.mkdir(folder)
    old = os.path.join(folder, "sheet.png")
    write(old, b"older")
    _, err = show(world, old, status=130, env=failing({}, "fsync:"))
    expect(read(old), b"older")
    assert "interrupted" in err and "is unchanged" in err and err.count("\n") == 1, err
    expect(left_in(folder), ["sheet.png"])
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    process = subprocess.Popen([PENSTOCK, "show", world.data, "-o", fifo], stderr=subprocess.PIPE)
    wait_until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)  # nobody reads it
    _, err = process.communicate(timeout=120)
    expect(process.returncode, 130)
    assert b"interrupted" in err and b"nothing was written" in err, err


# ---- pack: the machine, or the image? ------------------------------------------------------------

@test
def few_descriptors_leave_no_good_file_out(world):
    src, out = world.fresh("large"), world.fresh("many-data")
    one = os.path.join(src, "00.jpg")
    write_picture(one, "444", 1, 1200, 900)  # one that takes a while
    for i in range(1, 40):
        os.link(one, os.path.join(src, "%02d.jpg" % i))
    told = run_json("pack", src, out, "--skip-bad", "--threads", 8,
                    preexec_fn=limited(resource.RLIMIT_NOFILE, 12))
    expect((told["n_samples"], told["skipped"]), (40, []))
    expect(run_json("verify", out)["n_bad"], 0)


@test
def too_few_descriptors_end_the_pack_and_name_the_limit(world):
    src = pictures(world, "many", 4)
    for n in range(4, 12):
        out = world.fresh("many-data")
        done = subprocess.run([PENSTOCK, "pack", src, out, "--skip-bad", "--threads", "8"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              preexec_fn=limited(resource.RLIMIT_NOFILE, n))
        if done.returncode == 0:
            expect(run_json("info", out)["n_samples"], 4)
            continue
        assert b"Too many open files" in done.stderr and b"ulimit -n" in done.stderr, (n, done.stderr)
        assert not os.path.exists(os.path.join(out, "manifest.json"))


@test
def a_failure_of_the_machine_ends_the_pack_also_with_skip_bad(world):
    src = pictures(world, "sick")
    write(os.path.join(src, "x", "02.jpg"), b"this is no picture")
    for call, native in [("openat", errno.EACCES), ("openat", errno.EMFILE), ("openat", errno.ENFILE),
                         ("openat", errno.ESTALE), ("openat", errno.EIO), ("openat", errno.ENOMEM),
                         ("openat", errno.ENOENT), ("read", errno.EIO), ("read", errno.ESTALE)]:
        out = world.fresh("sick-data")
        _, err = run("pack", src, out, "--skip-bad", env=failing({call + ":x/05.jpg": native}),
                     status=2 if native in (errno.EACCES, errno.ENOENT) else 1)
        assert os.path.join(src, "x/05.jpg") in err and os.strerror(native) in err, err
        assert "nothing was packed" in err and "x/07.jpg" not in err, err
        assert not os.path.exists(out), left_in(out)
    for wanted, native in [("make it readable", errno.EACCES), ("ulimit -n", errno.EMFILE),
                           ("check the disk", errno.EIO)]:
        _, err = run("pack", src, world.fresh("sick-data"), "--skip-bad", status=(1, 2),
                     env=failing({"openat:x/05.jpg": native}))
        assert wanted in err, err
    run("pack", world.src, world.fresh("sick-data"))
    _, err = run("pack", src, world.path("sick-data"), "--skip-bad", "--overwrite", status=1,
                 env=failing({"read:x/05.jpg": errno.EIO}))
    assert "is unchanged" in err and run_json("info", world.path("sick-data"))["n_samples"] == 27, err


@test
def too_little_memory_ends_the_pack_also_with_skip_bad(world):
    src, limit = pictures(world, "huge", 2), limited(resource.RLIMIT_AS, 150 << 20)
    Image.new("L", (12000, 9000)).save(os.path.join(src, "x", "00.png"))
    if subprocess.run([PENSTOCK, "--version"], preexec_fn=limit, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("missing: a command that starts in 150 MiB (it is built with a sanitizer)")
    for more in ([], ["--pixels", 64], ["--max-side", 100]):
        _, err = run("pack", src, world.fresh("huge-data"), "--skip-bad", "--threads", 2, *more, status=1,
                     preexec_fn=limit)
        assert "x/00.png" in err and "no memory" in err and "nothing was packed" in err, err
        assert not os.path.exists(world.path("huge-data"))


@test
def a_file_that_is_removed_meanwhile_ends_the_pack(world):
    src, out = world.slow_source(), world.fresh("vanishing")
    process = start_slow_pack(world, out)
    last = os.path.join(src, "003999.jpg")
    kept = read(last)
    try:
        names = ["%06d.jpg" % i for i in range(60, 4000)]
        for name in reversed(names):  # it meets at least the last one
            os.rename(os.path.join(src, name), os.path.join(src, name + ".gone"))
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
        for name in names:
            os.rename(os.path.join(src, name + ".gone"), os.path.join(src, name))
    expect(process.returncode, 2)
    assert b"it was there a moment ago" in err and b"nothing was packed" in err, err
    expect(read(last), kept)


FORMATS = {"webp": ("WEBP", "WebP"), "bmp": ("BMP", "BMP"), "tif": ("TIFF", "TIFF"), "gif": ("GIF", "GIF"),
           "ppm": ("PPM", "PPM"), "jp2": ("JPEG2000", "JPEG 2000")}
HEADS = {"avif": (b"\0\0\0\x1cftypavif\0\0\0\0mif1avif", "AVIF"),
         "heic": (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"), "jxl": (b"\xff\x0a" + bytes(20), "JPEG XL"),
         "pgm": (b"P5\n2 2\n255\nabcd", "PGM"), "pbm": (b"P4\n8 1\n\xff", "PBM")}


def write_foreign(path, kind):
    """Write a file in a format that pack does not take; return the format's name."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if kind in HEADS:
        write(path, HEADS[kind][0])
        return HEADS[kind][1]
    try:
        Image.new("RGB", (20, 10), (255, 0, 0)).save(path, FORMATS[kind][0])
    except (KeyError, OSError):  # this Pillow lacks it
        write(path, {"webp": b"RIFF\x24\0\0\0WEBPVP8 ",
                     "jp2": b"\0\0\0\x0cjP  \r\n\x87\n"}[kind] + bytes(20))
    return FORMATS[kind][1]


@test
def images_of_other_formats_are_named_by_their_bytes_and_counted(world):
    for kind in [*FORMATS, *HEADS]:
        src = pictures(world, "foreign", 3)
        names = {write_foreign(os.path.join(src, "x", "9%d.jpg" % i), kind) for i in range(2)}
        name = names.pop()
        _, err = run("pack", src, world.fresh("foreign-data"), status=1)
        assert "2 %s" % name in err and "JPEG or PNG" in err and "no readable" not in err, err
        told = run_json("pack", src, world.fresh("foreign-data"), "--skip-bad")
        expect(told["skipped_formats"], {name: 2})
        expect([(s["path"], s["format"]) for s in told["skipped"]],
               [("x/9%d.jpg" % i, name) for i in range(2)])
        for more in ([], ["--pixels", 32], ["--max-side", 20]):
            told = run_json("pack", src, world.fresh("foreign-data"), "--skip-bad", *more)
            expect(told["skipped_formats"], {name: 2}, more)


@test
def a_folder_of_other_formats_alone_is_named_as_such(world):
    for kind in [*FORMATS, *HEADS]:
        for suffix in (kind, "jpg"):
            src = world.fresh("alone")
            for i in range(3):
                name = write_foreign(os.path.join(src, "x", "%d.%s" % (i, suffix)), kind)
            _, err = run("pack", src, world.fresh("alone-data"), status=(1, 2))
            assert "3 %s" % name in err and "no readable" not in err and "no images:" not in err, err
    src = pictures(world, "alone")
    write_foreign(os.path.join(src, "y", "1.avif"), "avif")
    _, err = run("pack", src, world.fresh("alone-data"), status=2)
    assert "only images of formats" in err and err.count("\n") == 1, err
    os.rename(os.path.join(src, "y", "1.avif"), os.path.join(src, "x", "1.avif"))
    os.rmdir(os.path.join(src, "y"))
    _, err = run("pack", src, world.fresh("alone-data"))
    assert "1 AVIF" in err and "1 image in %s is left out" % src in err, err


@test
def a_folder_without_images_is_named_as_such(world):
    src = world.fresh("no-images")
    os.makedirs(os.path.join(src, "x"))
    with open(os.path.join(src, "x", "notes.txt"), "w") as f:
        f.write("no image")
    _, err = run("pack", src, world.fresh("no-images-data"), status=2)
    assert "%s holds no images: neither it nor its subfolders have a .jpg" % src in err, err


@test
def a_folder_that_the_library_knows_is_named_as_by_info(world):
    saved, arrays = world.fresh("hf"), world.fresh("npy")
    for folder, names in ((saved, ("dataset_info.json", "state.json")), (arrays, ("1.npy", "2.npy"))):
        os.makedirs(folder)
        for name in names:
            open(os.path.join(folder, name), "w").close()
    for given, part in ((saved, "penstock.pack('%s', OUT)" % saved), (os.path.join(arrays, "*.npy"), "(open %s, of the format arrays)" % arrays)):
        _, err = run("pack", given, world.fresh("known-data"), status=2)
        assert part in err and run("info", given, status=2)[1].strip() == err.strip(), err


@test
def a_file_that_grows_past_the_limit_ends_the_pack_with_a_message(world):
    src, out = pictures(world, "limited-src", 40), world.fresh("limited")
    _, err = run("pack", src, out, status=1, preexec_fn=limited(resource.RLIMIT_FSIZE, 32768))
    assert "ulimit -f" in err and "32,768 bytes" in err and err.count("\n") == 1, err
    assert not os.path.exists(out), left_in(out)


@test
def closed_standard_streams_do_not_end_in_a_shard(world):
    src, good = pictures(world, "closed-src", 6), world.fresh("closed-good")
    run("pack", src, good)
    write(os.path.join(src, "x", "9.jpg"), b"no picture")  # something to print about
    for closed in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        out = world.fresh("closed")

        def close_streams():
            for fd in closed:
                os.close(fd)
        done = subprocess.run([PENSTOCK, "pack", src, out, "--skip-bad"], preexec_fn=close_streams,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert done.returncode == (1 if 1 in closed else 0), (closed, done)
        expect(run_json("verify", out)["n_bad"], 0, closed)
        expect(run_json("info", out)["identity"], run_json("info", good)["identity"])


# ---- signals ------------------------------------------------------------------------------------

def parts_of(world, n=3):
    parts = [world.path("piece%d" % i) for i in range(n)]
    for i, part in enumerate(parts):
        if not os.path.isdir(part):
            run("pack", world.src, part, "--part", "%d/%d" % (i, n))
    return parts


@test
def a_merge_that_is_stopped_says_what_is_true_at_each_step(world):
    parts, small = parts_of(world), pictures(world, "small", 2)
    wanted = run_json("info", world.data)["identity"]
    copies = {"linkat:.pstk": errno.EXDEV}
    steps = [({}, "linkat:.pstk", 0), (copies, "linkat:.pstk", 0), (copies, "fsync:.pstk", 0),
             ({}, "renameat:manifest.json", 1), ({}, "unlinkat:.tmp-writer", 1)]
    for over in (0, 1):
        for calls, stop, done in steps + [({}, "unlinkat:000000.pstk", 1)] * over:
            out = world.fresh("stopped-merge")
            if over:
                run("pack", small, out)
            before = run_json("info", out)["identity"] if over else None
            _, err = run("merge", *parts, out, *["--overwrite"] * over, status=130,
                         env=failing(calls, stop))
            assert "interrupted" in err and err.count("\n") == 1, err
            if done:
                assert "complete already" in err and "again" not in err, (stop, err)
                expect(run_json("info", out)["identity"], wanted)
            else:
                assert "nothing was merged" in err and "parts are unchanged" in err, (stop, err)
                expect(os.path.exists(out), bool(over), stop)
                if over:
                    assert "is unchanged" in err, err
                    expect(run_json("info", out)["identity"], before)
            if os.path.exists(out):
                expect(run_json("verify", out)["n_bad"], 0)
                expect([f for f in left_in(out) if f.startswith(".")], [], stop)
                info = run_json("info", out)
                expect(len(left_in(out)), info["n_shards"] * (1 + len(info["columns"])) + 1, stop)


@test
def a_pack_that_is_stopped_says_what_is_true_at_each_step(world):
    src = pictures(world, "whole-src", 6)
    run("pack", src, world.fresh("whole"))
    wanted = run_json("info", world.path("whole"))["identity"]
    for stop, done in [("openat:.tmp-writer", 0), ("openat:x/03.jpg", 0), ("fsync:.pstk", 1),
                       ("renameat:manifest.json", 1), ("unlinkat:.tmp-writer", 1)]:
        out = world.fresh("stopped-pack")
        _, err = run("pack", src, out, "--threads", 1, status=130, env=failing({}, stop))
        assert "interrupted" in err and err.count("\n") == 1, (stop, err)
        if done:
            assert "complete already" in err, (stop, err)
            expect(run_json("info", out)["identity"], wanted)
            expect([f for f in left_in(out) if f.startswith(".")], [])
        else:
            assert "nothing was packed" in err and "no data set" in err, (stop, err)
            assert not os.path.exists(out), stop


@test
def a_hangup_ends_pack_as_ctrl_c_does(world):
    out = world.fresh("hung")
    process = start_slow_pack(world, out)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=120)
    expect(process.returncode, 128 + signal.SIGHUP)
    assert b"nothing was packed" in err, err
    assert not os.path.exists(out)


@test
def a_reader_that_goes_away_ends_no_pack(world):
    out = world.fresh("unread")
    process = start_slow_pack(world, out)
    process.stderr.close()
    process.stdout.close()
    process.send_signal(signal.SIGINT)
    expect(process.wait(30), 130)
    assert not os.path.exists(out)
    process = subprocess.Popen([PENSTOCK, "pack", world.src, out], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdout.close()
    err = process.stderr.read()
    expect(process.wait(30), 1)
    assert b"Broken pipe" in err and b"was still packed completely" in err, err
    expect(run_json("verify", out)["n_bad"], 0)


@test
def a_reader_that_goes_away_ends_the_commands_that_make_nothing(world):
    def unread(*args):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([PENSTOCK, *map(str, args)], stdout=writer, stderr=subprocess.PIPE, timeout=120)
        os.close(writer)
        return done.returncode, done.stderr

    for args in (["info", world.data], ["get", world.data, 0, "jpg"], ["order", world.data],
                 ["verify", world.data], ["doctor"], ["show", world.data, "-o", "-"],
                 ["bench", world.data, "--seconds", 0.05, "--no-ceilings"], ["--help"]):
        expect(unread(*args), (-signal.SIGPIPE, b""), args)
    picture = world.path("unread.png")
    status, _ = unread("show", world.data, "-o", picture)
    assert status == -signal.SIGPIPE and is_png(picture)
    out = world.fresh("unread-merge")
    status, err = unread("merge", *parts_of(world), out)
    assert status == 1 and b"Broken pipe" in err and b"was still merged completely" in err, err
    expect(run_json("verify", out)["n_bad"], 0)


@test
def verify_on_a_machine_without_descriptors_reports_that_and_no_damage(world):
    out = world.fresh("shards")
    run("pack", world.src, out, "--shard-size", "64K")
    assert run_json("info", out)["n_shards"] > 1
    cases = [(out, "open:.pstk")]
    if os.environ.get("PENSTOCK_WRITE_SAMPLE"):
        cases.append((world.fresh("dictionaries"), "open:.zdict"))
        subprocess.run([os.environ["PENSTOCK_WRITE_SAMPLE"], cases[1][0], "200", "1"], check=True, stdout=subprocess.DEVNULL)
    for (data, call), n in [(case, n) for case in cases for n in (1, 2)]:
        text, err = run("verify", data, "--threads", n, status=1, env=failing({call: errno.EMFILE}))
        assert "Too many open files" in err and "ulimit -n" in err and "damage" not in text + err, err
        text, err = run("verify", data, "--threads", n, status=2, env=failing({call: errno.EACCES}))
        assert "Permission denied" in err and "damage" not in text + err, err


# ---- text of others -----------------------------------------------------------------------------

def hostile_set(world):
    """Return a data set in which class names, keys and the note have control characters."""
    src, out = world.fresh("hostile"), world.fresh("hostile-data")
    name = "a" + ESCAPE
    for i in range(3):
        write_picture(os.path.join(src, name, "%d%s.jpg" % (i, ESCAPE)), "420", i, 60, 48)
    run("pack", src, out)
    path = os.path.join(out, "manifest.json")
    text = read(path)[:-22]  # without its checksum
    assert b'"penstock pack"' in text, text[:300]
    text = text.replace(b'"penstock pack"', b'"x\\u001b]0;owned\\u0007\xc2\x9b"')
    write(path, text + b',"crc32c":"%08x"}\n' % crc32c(text))
    return src, out


def raw(*args, **kwargs):
    """Everything that a command prints, and its exit status."""
    done = subprocess.run([PENSTOCK, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, **kwargs)
    return done.stdout, done.returncode


def check_clean(text, what):
    for byte in BAD_BYTES:
        assert byte not in text, (what, byte, text[:400])
    text.decode()


@test
def control_characters_of_others_are_escaped_wherever_they_are_printed(world):
    src, out = hostile_set(world)
    text, _ = raw("info", out)
    check_clean(text, "info")
    assert b"note      x\\x1b]0;owned\\x07\\xc2\\x9b" in text, text
    bad = os.path.join(src, "a" + ESCAPE, "bad" + ESCAPE + ".jpg")
    write(bad, b"no picture at all")
    name = "odd" + ESCAPE + "\u00e4"
    shutil.copytree(out, world.fresh(name))
    odd = world.path(name)
    for args in (["pack", src, world.fresh("never")], ["pack", src, world.fresh("never"), "--skip-bad"],
                 ["pack", bad, world.fresh("never")], ["info", ESCAPE], ["info", odd], ["verify", odd],
                 ["bench", odd, "--seconds", 0.1, "--no-ceilings", "--crop", "none"], [ESCAPE],
                 ["info", "--" + ESCAPE], ["get", out, ESCAPE, "key"], ["get", out, 0, ESCAPE],
                 ["show", odd, "--ids", ESCAPE, "-o", world.path("x.png")], ["doctor", odd],
                 ["show", out, "-o", world.path("x" + ESCAPE + ".png")],
                 ["merge", odd, odd, world.fresh("m" + ESCAPE)],
                 ["pack", src, world.fresh("new" + ESCAPE), "--skip-bad"]):
        check_clean(raw(*args)[0], args)
    assert b"odd\\x1b]0;owned\\x07\\x7f\\xc2\\x9b\xc3\xa4" in raw("verify", odd)[0]
    shard = os.path.join(odd, [f for f in left_in(odd) if f.endswith(".pstk")][0])
    data = bytearray(read(shard))
    data[len(data) // 2] ^= 255
    write(shard, data)
    check_clean(raw("verify", odd)[0], "verify of damage")
    for args in (["info", odd], ["verify", odd], ["pack", src, world.fresh("json"), "--skip-bad"]):
        text, _ = raw(*args, "--json")
        text = [line for line in text.splitlines() if line.startswith(b"{")][0]
        check_clean(text, args)
        assert "owned\x07\x7f\x9b" in json.dumps(json.loads(text), ensure_ascii=False).replace(
            "\\u0007", "\x07").replace("\\u007f", "\x7f").replace("\\u009b", "\x9b"), text


@test
def bytes_that_are_no_utf8_are_escaped(world):
    text, status = raw("info", b"no\xff\xc3".decode(errors="surrogateescape"))
    expect(status, 2)
    assert b"no\\xff\\xc3" in text, text


def on_a_terminal(*args):
    """Return the output of a command on a terminal, and its exit status."""
    main_end, child = pty.openpty()
    process = subprocess.Popen([PENSTOCK, *map(str, args)], stdout=child, stderr=child)
    os.close(child)
    text = b""
    try:
        while piece := os.read(main_end, 4096):
            text += piece
    except OSError:
        pass
    os.close(main_end)
    return text, process.wait(10)


@test
def get_prints_the_texts_of_a_list_on_a_terminal_and_refuses_other_lists(world):
    out = world.fresh("lists")
    subprocess.run([os.environ["PENSTOCK_WRITE_SAMPLE"], out, "5"], check=True)
    text, status = on_a_terminal("get", out, 4, "captions")
    expect((text.decode(), status), ("\r\ng\r\ngröße\r\ngröße\r\n", 0))
    text, status = on_a_terminal("get", out, 4, "pictures")
    expect((b"pictures is not text" in text, status), (True, 2))


@test
def get_is_raw_in_a_pipe_and_escaped_on_a_terminal(world):
    _, out = hostile_set(world)
    key = run_raw("get", out, 0, "key")[0].decode()
    assert ESCAPE in key, key
    text, status = on_a_terminal("get", out, 0, "key")
    expect(status, 0)
    check_clean(text, "get")
    assert b"\\x1b]0;owned\\x07" in text, text
    for field in ("jpg", "cls"):
        text, status = on_a_terminal("get", out, 0, field)
        expect(status, 2)
        assert b"> FILE" in text, text


@test
def a_terminal_gets_no_picture(world):
    text, status = on_a_terminal("show", world.data, "--ids", 1, "-o", "-")
    assert status == 2 and b"terminal" in text and b"PNG" not in text, text


@test
def the_next_command_can_be_typed_as_it_is_printed(world):
    folder = world.fresh("typed")
    src = pictures(world, "typed-src", 2)
    os.mkdir(folder)
    for name in ("plain", "-out", "--help", "two words", "it's", "a$HOME`id`\"", "tab\there", "\u00e4",
                 "~", "#x", "*", "a\x1bb", "new\nline", "!x", "a;b&c|d<e>(f)", "back\\slash'\x07"):
        out, err = run("pack", src, "--", name, cwd=folder)
        line = out.splitlines()[-1]
        assert line.startswith("next: %s bench " % PENSTOCK), line
        typed = line[len("next: "):]
        done = subprocess.run(["bash", "-c", PENSTOCK + "() { printf '%s\\0' \"$@\"; }; " + typed],
                              stdout=subprocess.PIPE, cwd=folder)
        command, path = done.stdout.split(b"\0")[:2]
        expect(command, b"bench")
        assert not path.startswith(b"-"), typed
        assert os.path.samefile(os.path.join(folder.encode(), path), os.path.join(folder, name)), typed
        if name.isalpha():
            expect(typed, "%s bench %s" % (PENSTOCK, name))
        check_clean(line.encode(), name)
    run("info", "./-out", cwd=folder)


@test
def the_next_command_has_the_name_by_which_this_one_was_called(world):
    src, out = pictures(world, "typed-src", 2), world.fresh("called")
    for called, printed in (("penstock", "penstock"), ("a b/penstock", "'a b/penstock'"), (PENSTOCK, PENSTOCK)):
        for options, rest in ([], " bench " + out), (["--part", "0/2"], " merge PART... OUT"):
            done = subprocess.run([called, "pack", src, out, "--overwrite", *options], executable=PENSTOCK,
                                  stdout=subprocess.PIPE, text=True, check=True)
            last = done.stdout.splitlines()[-1]
            assert last.startswith("next: ") and last.endswith(printed + rest), last


if __name__ == "__main__":
    sys.exit(main(TESTS))
