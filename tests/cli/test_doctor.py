#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reports of `penstock doctor` on a machine and on a data set; and that its advice helps.
usage: test_doctor.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.
"""
import io
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tarfile

from test_command import PENSTOCK, Skip, crc32c, expect, main, run, run_json, write_picture
from test_info import rename_classes
from test_pack import make_images, read, write
import numpy
from PIL import Image

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def findings(path, status=0, **kwargs):
    """Return {what: [finding]} of a data set."""
    found = {}
    for finding in run_json("doctor", path, status=status, **kwargs)["data_set"]:
        found.setdefault(finding["what"], []).append(finding)
    return found


def level(found, what):
    return [finding["level"] for finding in found[what]]


def packed(world, name="doctored", *options):
    src = world.path("doctor-src")
    if not os.path.isdir(src):
        for i in range(12):
            write_picture(os.path.join(src, "ab"[i % 2], "%d.jpg" % i), "444", i, 300 + i, 300)
    out = world.fresh(name)
    run("pack", src, out, "--shard-size", "64K", *options)
    return src, out


@test
def doctor_tells_the_machine(world):
    told = run_json("doctor", world.root)
    assert told["kernels"] in ("c", "avx2", "avx512", "neon")
    run("bench", world.data, "--kernels", told["kernels"], "--epochs", "1", "--no-ceilings")
    assert told["cores"] >= 1 and told["memory_bytes"] > 0 and isinstance(told["io_uring"], bool)
    out, _ = run("doctor", world.root)
    for part in ("processor", "kernels", told["kernels"], "cores", "io_uring", "direct I/O", "CUDA", world.root):
        assert part in out, part
    assert told["rotational"] in (None, True, False)
    _, err = run("doctor", world.root, "--world", "0", status=2)
    assert "--world: value is '0'; must be a whole number from 1" in err, err
    expect(run_json("doctor", world.root, "--world", "8")["path"], world.root)
    run("doctor", world.path("absent"), status=2)
    expect(run_json("doctor", world.root)["data_set"], None)
    found = {part["what"]: part["text"] for part in run_json("doctor", world.src)["data_set"]}  # a folder of images
    assert found["data set"].endswith("samples; folder") and "files, not counted by encoding" in found["images"], found


def machine(text):
    """Keywords for run: the command on a machine that hwloc describes."""
    return {"env": dict(os.environ, HWLOC_SYNTHETIC=text)}


@test
def doctor_gives_the_plan_of_the_cores_and_a_loader_has_as_many_workers(world):
    _, out = packed(world)
    by_reader = "%d with direct reads, a windowed order or files to unpack: %s\n"
    for text, cores, workers, direct, gpu, remarks in (
            ("node:1 core:1 pu:2", 1, 1, 1, 1, ("the reader shares its core\n", )),
            ("node:1 core:4 pu:2", 4, 4, 4, 4, ("the reader shares their cores\n", )),
            ("node:1 core:16 pu:2", 16, 16, 15, 15,
             ("the reader shares their cores\n", by_reader % (15, "1 core is left to the reader"))),
            ("pack:2 [numa] core:8 pu:1", 16, 16, 14, 15,
             ("the readers share their cores\n", by_reader % (14, "2 cores are left to the readers"))),
            ("node:1 core:32 pu:1", 32, 31, 31, 30, ("1 core is left to the reader\n", )),
            ("pack:2 [numa] core:32 pu:1", 64, 62, 62, 61, ("2 cores are left to the readers\n", ))):
        told = run_json("doctor", world.root, **machine(text))
        expect((told["usable_cores"], told["workers"], told["workers_direct"], told["workers_gpu"]),
               (cores, workers, direct, gpu), text)
        told = run("doctor", world.root, **machine(text))[0]
        keeps = "; each keeps to its NUMA node" if text.startswith("pack:2") else ""
        assert "workers        %d, where --threads is not given%s\n" % (workers, keeps) in told, told
        if gpu < workers:
            remarks += ("%d with batches on a GPU: a core for the copies and your program" % gpu, )
        expect([remark in told for remark in remarks], [True] * len(remarks), told)
        found = sum(word in told for word in ("   1 core is left", "   2 cores are left", "the reader shares", "the readers share",
                                              "with direct reads", "with batches on a GPU"))
        expect(found, len(remarks), told)
        line = ["bench", out, "--epochs", 1, "--last", "short", "--no-ceilings"]
        expect(run_json(*line, "--io", "buffered", **machine(text))["threads"], workers, text)
        expect(run_json(*line, "--order", "windowed", **machine(text))["threads"], direct, text)
        expect(run_json(*line, "--threads", cores, **machine(text))["threads"], cores, text)
        if run_json("doctor", world.root)["direct"]:
            expect(run_json(*line, "--io", "direct", **machine(text))["threads"], direct, text)


@test
def the_page_of_cores_has_the_plans_that_doctor_gives(world):
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/cores.md")
    with open(page, encoding="utf-8") as stream:
        text = stream.read()
    rows = [tuple(map(int, row)) for row in re.findall(r"^" + r"\| (\d+) " * 5 + r"\|$", text, re.M)]
    assert len(rows) >= 15, rows
    for cores, nodes, *workers in rows:
        told = run_json("doctor", world.root, **machine("pack:%d [numa] core:%d pu:2" % (nodes, cores // nodes)))
        expect([told[key] for key in ("usable_cores", "numa_nodes", "workers", "workers_direct", "workers_gpu")],
               [cores, nodes, *workers], (cores, nodes))
    block = re.search(r"```text\n(.*?)```", text, re.S)[1]
    told = run("doctor", world.root, **machine("pack:2 [numa] core:8 pu:1"))[0]
    if not run_json("doctor", world.root)["cpu_quota"]:
        assert block in told, told


def verdict(path, *options, **kwargs):
    """Return (the verdict's text, the last line where that is the next step else None), as people and programs get it."""
    text, _ = run("doctor", path, *options, **kwargs)
    found = re.search(r"\n\n  verdict        (.*(?:\n +.*)*)\n(?:(next: .*)\n)?\Z", text)
    assert found, text
    line = " ".join(found[1].split())
    expect(run_json("doctor", path, *options, **kwargs)["verdict"], line)
    return line, found[2]


@test
def the_verdict_is_the_last_word(world):
    src, out = packed(world)
    told = run_json("doctor", out)
    is_whole = (told["io_uring"] and told["fixed_buffers"] and told["single_issuer"] and told["kernels"] != "c" and
                (told["cpu_quota"] or told["cores"]) >= told["cores"] and not told["devices"])
    if is_whole:
        expect(verdict(out), ("fine", "next: %s bench %s" % (PENSTOCK, out)))
        expect(verdict(world.root)[1], None)
    flat = world.fresh("flat-verdict")
    run("pack", os.path.join(src, "a"), flat)
    text, step = verdict(flat)
    assert text.startswith("works, and could be better: see ") and text.endswith("labels") and step is None, text
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))}
    assert "open files" in verdict(world.root, **few)[0]
    assert "open files" not in verdict(out, **few)[0]
    os.truncate(os.path.join(out, "shard-000001.pstk"), 5000)
    expect(verdict(out, status=1), ("not usable as it is: see shards", "next: %s verify %s" % (PENSTOCK, out)))
    text, _ = run("doctor", out, status=1)
    expect(text.count("shard-000001.pstk"), 1, text)


@test
def the_verdict_follows_from_what_was_said_of_ranks(world):
    _, out = packed(world)
    many = machine("node:1 core:8 pu:1")
    expect(verdict(out, "--ranks", "8", **many), verdict(out, **many))
    for path in (world.root, out):  # without a data set, and with one
        text, step = verdict(path, "--ranks", "9", **many)
        assert "could be better: see" in text and text.endswith("ranks") and step is None, text


@test
def a_sound_data_set_has_no_fault(world):
    src, out = packed(world)
    found = findings(out)
    expect({what: level(found, what) for what in found},
           {what: ["ok"] for what in ("data set", "shards", "storage", "records", "labels", "images", "loader")})
    assert "12 samples; pstk, version 2" in found["data set"][0]["text"]
    assert found["shards"][0]["text"].startswith("%d," % run_json("info", out)["n_shards"])
    text, err = run("doctor", out)
    expect(err, "")
    for what, (finding,) in found.items():
        assert "\n  %-14s " % what in text and finding["text"].split()[-1] in text, (what, text)
    assert "error" not in text and "warning" not in text, text
    assert max(map(len, text.splitlines())) <= 100, text


@test
def what_is_wrong_with_a_shard_is_found_and_a_copy_mends_it(world):
    src, out = packed(world)
    shards = sorted(name for name in os.listdir(out) if name.endswith(".pstk"))
    assert len(shards) > 1, shards
    path = os.path.join(out, shards[1])
    whole = read(path)
    for damaged, part in ((None, shards[1]), (whole[:-1], "bytes"), (whole + b"x", "bytes"),
                          (b"x" + whole[1:], shards[1])):
        os.remove(path)
        if damaged is not None:
            write(path, damaged)
        found = findings(out, status=1)
        (finding,) = found["shards"]
        expect(finding["level"], "error")
        assert part in finding["text"] and "1 of %d cannot be used" % len(shards) in finding["text"], finding
        assert "copy these files again" in finding["advice"], finding
        text, _ = run("doctor", out, status=1)
        assert "shards         error: 1 of " in text, text
        run("verify", out, status=(1, 2))  # as the advice says, verify has it
        write(path, whole)
        expect(level(findings(out), "shards"), ["ok"])


@test
def a_column_that_cannot_be_read_is_no_fault_of_the_samples(world):
    _, out = packed(world)
    name = [name for name in os.listdir(out) if name.endswith(".cls.pcol")][0]
    os.truncate(os.path.join(out, name), 5000)
    found = findings(out)
    expect([level(found, what) for what in ("shards", "columns", "loader")], [["ok"], ["warning"], ["ok"]])
    expect(verdict(out), ("works, and could be better: see columns", None))
    advice = "penstock column %s cls --remove" % out
    assert name in found["columns"][0]["text"] and advice in found["columns"][0]["text"], found["columns"]
    run("column", out, "cls", "--remove")  # as the advice says
    assert "columns" not in findings(out)


@test
def files_that_may_not_be_read_are_found_and_chmod_helps(world):
    if os.geteuid() == 0:
        raise Skip("root may read everything")
    _, out = packed(world)
    path = os.path.join(out, "shard-000000.pstk")
    os.chmod(path, 0)
    (finding,) = findings(out, status=1)["shards"]
    assert "chmod a+r" in finding["advice"], finding
    subprocess.run(["chmod", "a+r", path], check=True)
    expect(level(findings(out), "shards"), ["ok"])


def change_manifest(data, old, new):
    path = os.path.join(data, "manifest.json")
    with open(path, encoding="utf-8") as f:
        head, _, _ = f.read().rpartition(',"crc32c"')
    assert old in head
    head = head.replace(old, new)
    with open(path, "w", encoding="utf-8") as f:
        f.write(head + ',"crc32c":"%08x"}\n' % crc32c(head.encode()))


@test
def a_folder_that_may_not_be_read_is_not_passed_over(world):
    if os.geteuid() == 0:
        raise Skip("root may read everything")
    _, out = packed(world)
    os.chmod(out, 0o600)  # the manifest cannot even be looked for
    (finding,) = findings(out)["data set"]
    assert finding["level"] == "note" and "Permission denied" in finding["text"], finding
    assert "chmod -R a+rX" in finding["advice"], finding
    subprocess.run(["chmod", "-R", "a+rX", out], check=True)
    expect(level(findings(out), "data set"), ["ok"])


@test
def arrays_that_cannot_be_read_are_an_error(world):
    out = world.path("doctored-arrays")
    os.makedirs(out)
    for name in "ab":
        numpy.save(os.path.join(out, name + ".npy"), numpy.arange(100))
    assert findings(out)["files"][0]["text"].startswith("2,")
    assert "\n  files     2\n" in run("info", out)[0]
    assert " in 2 files\n" in run("bench", out, "--epochs", "1", "--no-ceilings")[0]
    (finding,) = findings(out)["labels"]
    assert finding["level"] == "note" and "several fields may hold class numbers" in finding["text"], finding
    assert "call it cls" in finding["advice"], finding
    os.rename(os.path.join(out, "b.npy"), os.path.join(out, "cls.npy"))
    expect(level(findings(out), "labels"), ["ok"])
    os.truncate(os.path.join(out, "a.npy"), 500)
    (finding,) = findings(out, status=1)["data set"]
    assert finding["level"] == "error" and "a.npy is cut short" in finding["text"], finding
    (finding,) = findings(os.path.join(out, "a.npy"), status=1)["data set"]
    assert finding["level"] == "error" and "a.npy is cut short" in finding["text"], finding
    numpy.savez(os.path.join(out, "two.npz"), x=numpy.arange(10), y=numpy.arange(10))
    expect(findings(os.path.join(out, "two.npz"))["files"][0]["text"].split(",")[0], "1")
    (finding,) = findings(__file__)["data set"]
    assert finding["level"] == "note" and "is a file" in finding["text"], finding


@test
def a_data_set_that_cannot_be_opened_says_why(world):
    _, out = packed(world)
    change_manifest(out, '"version":2', '"version":3')
    (finding,) = findings(out, status=1)["data set"]
    assert finding["level"] == "error" and "version is 3" in finding["text"], finding
    _, out = packed(world)
    path = os.path.join(out, "manifest.json")
    write(path, read(path)[:-30])
    (finding,) = findings(out, status=1)["data set"]
    assert finding["level"] == "error" and "manifest.json" in finding["text"], finding
    assert "copy manifest.json again" in finding["advice"], finding


@test
def a_feature_that_must_be_known_is_named_and_others_are_ignored(world):
    _, out = packed(world)
    before = run_json("info", out)
    change_manifest(out, '"uses":["columns"]', '"uses":["columns","zebra"]')
    change_manifest(out, '"extra":{', '"extra":{"zebra":{"file":["a",1]},')
    expect(run_json("info", out), before)
    expect(run_json("verify", out)["n_bad"], 0)
    merged = world.fresh("merged")
    run("merge", out, merged)
    with open(os.path.join(merged, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    assert list(manifest["extra"]) == ["columns"] and manifest["uses"] == ["columns"], manifest
    expect(run_json("info", merged)["identity"], before["identity"])
    change_manifest(out, '"requires":[]', '"requires":["yak"]')
    _, err = run("info", out, status=2)
    assert "manifest.json: the data set requires the feature yak, which this version does not know" in err, err
    (finding,) = findings(out, status=1)["data set"]
    assert finding["level"] == "error" and "feature yak" in finding["text"], finding


@test
def a_shard_of_version_1_is_refused_by_its_version(world):
    _, out = packed(world)
    path = os.path.join(out, "shard-000000.pstk")
    data = bytearray(read(path))
    data[8:12] = struct.pack("<I", 1)
    data[4092:4096] = struct.pack("<I", crc32c(data[:4092]))
    write(path, data)
    wanted = "shard-000000.pstk is of version 1; this library reads version 2 (pack again, to another directory)"
    for command, status in ((["get", out, 0, "jpg"], 2), (["bench", out, "--no-ceilings", "--epochs", "1"], 2),
                            (["verify", out], 1)):
        _, err = run(*command, status=status)
        assert wanted in err, err
    (finding,) = findings(out, status=1)["shards"]
    assert finding["level"] == "error" and wanted in finding["text"], finding


@test
def a_pattern_is_a_data_set(world):
    folder = world.fresh("patterns")
    os.makedirs(folder)
    for name in ("a-0.tar", "a-1.tar"):
        with tarfile.open(os.path.join(folder, name), "w") as tar:
            for i in range(3):
                entry = tarfile.TarInfo(f"{i}.cls")
                entry.size = 1
                tar.addfile(entry, io.BytesIO(b"7"))
    for pattern in ("*.tar", "a-{0,1}.tar", "a-{0..1}.tar"):
        told = run_json("doctor", os.path.join(folder, pattern))
        (data,) = [finding for finding in told["data_set"] if finding["what"] == "data set"]
        assert data["level"] == "ok" and data["text"].startswith("6 samples; tar"), data
        assert told["file_system"] and told["path"] == os.path.join(folder, pattern), told
    out, _ = run("doctor", "a-*.tar", cwd=folder)
    assert "6 samples" in out, out
    _, err = run("doctor", os.path.join(world.root, "nowhere", "*.tar"), status=2)
    assert "No such file or directory" in err, err


@test
def labels_are_judged_and_the_advice_helps(world):
    src, out = packed(world)
    flat = world.fresh("flat-doctored")
    run("pack", os.path.join(src, "a"), flat)
    (finding,) = findings(flat)["labels"]
    assert finding["level"] == "note" and "one folder for each class" in finding["advice"], finding
    rename_classes(out, ["a"])
    (finding,) = findings(out)["labels"]
    assert finding["level"] == "warning" and "6 samples have a class number that has no name" in finding["text"]
    rename_classes(out, ["a", "b", "none"])
    (finding,) = findings(out)["labels"]
    assert finding["level"] == "note" and "1 of 3 classes has no sample" in finding["text"], finding
    assert "`penstock info --counts --all`" in finding["advice"], finding
    assert "  0  none\n" in run("info", "--counts", "--all", out)[0]
    rename_classes(out, ["a", "b"])
    expect(level(findings(out), "labels"), ["ok"])


@test
def a_label_that_cannot_be_read_is_an_error(world):
    _, out = packed(world, "doctored", "--shard-size", "1M")
    path = os.path.join(out, "shard-000000.pstk")
    data = bytearray(read(path))
    data[4096 + 20] ^= 255  # in the head of the first record
    write(path, bytes(data))
    found = findings(out, status=1)
    expect((level(found, "shards"), level(found, "labels"), level(found, "loader")), (["ok"], ["error"], ["error"]))
    for finding in found["labels"] + found["loader"]:
        assert "record 0" in finding["text"] or "for the same reason" in finding["text"], finding
    text, step = verdict(out, status=1)
    expect((text, step), ("not usable as it is: see labels, loader", "next: %s verify %s" % (PENSTOCK, out)))
    assert "record 0" in run("verify", out, status=1)[1]
    # Replacements are advised where they help: with one bad record, but not with a bad index.
    bench = ("bench", out, "--on-bad", "replace", "--epochs", "1", "--no-ceilings")
    assert "--on-bad replace" in found["loader"][0]["advice"], found["loader"]
    run(*bench)
    data[4096 + 20] ^= 255
    data[-20] ^= 255
    write(path, bytes(data))
    found = findings(out, status=1)
    assert "index page" in found["labels"][0]["text"], found
    assert "--on-bad" not in found["loader"][0]["advice"], found
    run(*bench, status=1)


@test
def masks_are_warned_of_until_they_are_no_palettes(world):
    src = world.path("masks-src")
    for i in range(3):
        path = os.path.join(src, "%d.png" % i)
        write_picture(path, "png", i, 40, 30)
        if i == 1:
            with Image.open(path) as image:
                image.convert("P").save(path)
    out = world.fresh("masks")
    run("pack", src, out)
    warnings = [finding for finding in findings(out)["images"] if finding["level"] == "warning"]
    expect(len(warnings), 1)
    assert "1 of 3 PNG files that were looked at has a palette" in warnings[0]["text"], warnings
    assert "in a field of kind mask, with their image" in warnings[0]["advice"], warnings
    with Image.open(os.path.join(src, "1.png")) as image:
        image.convert("RGB").save(os.path.join(src, "1.png"))
    run("pack", src, out, "--overwrite")
    expect(level(findings(out), "images"), ["ok"])


@test
def jpegs_that_stayed_are_a_note_until_they_are_planes(world):
    _, out = packed(world, "slow", "--jpeg", "keep")
    (finding,) = findings(out)["images"]
    assert finding["level"] == "note" and "without --jpeg keep" in finding["advice"], finding
    _, out = packed(world, "slow")
    expect(level(findings(out), "images"), ["ok"])


@test
def few_open_files_are_a_note_until_shards_are_larger(world):
    src, out = world.path("shards-src"), world.path("shards")
    make_images(60, src)

    def limit(n=50):
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
    run("pack", src, out, "--shard-size", "64K")
    assert run_json("info", out)["n_shards"] > 50
    (finding,) = findings(out, status=1, preexec_fn=lambda: limit(9))["loader"]
    assert "ulimit -n" in finding["text"] and finding["advice"] is None, finding
    expect(level(findings(out, preexec_fn=lambda: limit(32)), "loader"), ["ok"])
    (finding,) = findings(out, preexec_fn=limit)["open files"]
    assert finding["level"] == "note" and "--shard-size" in finding["advice"], finding
    run("pack", src, out, "--shard-size", "8M", "--overwrite")
    assert "open files" not in findings(out, preexec_fn=limit)


@test
def what_doctor_advises_of_data_of_others_doctor_takes(world):
    """A table whose images lie elsewhere, a tar whose names contradict each other, images of any name."""
    folder = world.fresh("others")
    for name in ("photos/0.jpg", "odd/a/x.jpg"):
        write_picture(os.path.join(folder, name), "444", 1, 60, 60)
    shutil.copy(folder + "/photos/0.jpg", folder + "/odd/a/y")
    table, tar = folder + "/lab.csv", folder + "/x.tar"
    write(table, b"file_name,label\n0.jpg,1\n")
    with tarfile.open(tar, "w") as archive:
        for name in ("1.0.jpg", "1.0.cls", "1.5.jpg", "1.5.cls"):
            member = tarfile.TarInfo(name)
            data = read(folder + "/photos/0.jpg") if name.endswith("jpg") else b"1"
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    for path, option, value in ((table, "--root-path", folder + "/photos"), (tar, "--split-at", "last")):
        found = findings(path, status=1)
        expect(level(found, "data set"), ["error"])
        assert option in found["data set"][0]["text"], found
        expect(run_json("doctor", path, status=1)["verdict"], "not usable as it is: see data set")
        told = run_json("doctor", path, option, value, "--ranks", 2)
        assert "error" not in [finding["level"] for finding in told["data_set"]], told
        assert "gives batches" in json.dumps(told["data_set"]), told
        assert told["ranks"]["min_workers"], told["ranks"]  # null: a loader could not be opened
    for options, n in (([], 1), (["--by-content"], 2)):
        told = run_json("doctor", folder + "/odd", *options)["data_set"]
        assert told[0]["text"].startswith("%d samples" % n), told


@test
def memory_that_cannot_be_locked_is_named_with_what_helps(world):
    """As a user without CAP_IPC_LOCK, whose limit holds."""
    def few():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
    user = [] if os.geteuid() else [shutil.which("setpriv"), "--bounding-set=-ipc_lock"]
    if None in user:
        raise Skip("missing: setpriv")
    if not run_json("doctor", world.root)["io_uring"]:
        raise Skip("missing: io_uring")
    done = subprocess.run([*user, PENSTOCK, "doctor", world.root], preexec_fn=few, stdout=subprocess.PIPE, timeout=120)
    told = done.stdout.decode()
    assert done.returncode == 0 and "raise RLIMIT_MEMLOCK, see below" in told and "ulimit -l unlimited" in told, told
    if not os.geteuid():  # with the capability the limit does not hold
        told, _ = run("doctor", world.root, preexec_fn=few)
        assert "RLIMIT_MEMLOCK" not in told and "ulimit -l" not in told, told


@test
def a_loader_without_memory_is_an_error_that_names_the_setting(world):
    _, out = packed(world)

    seen = []
    for size in (640, 480, 360, 270, 200, 160, 150, 140, 130, 120, 100, 80, 60, 40):  # MiB, from enough on down to too little
        text, _ = run("doctor", out, "--json", status=(0, 1),
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size << 20, size << 20)))
        found = {finding["what"]: finding for finding in json.loads(text)["data_set"]}
        seen.append(found["loader"]["text"])
        if found["loader"]["level"] == "error":
            break
    assert len(seen) > 1 and ("memory" in seen[-1] or "ulimit -v" in seen[-1]), seen


if __name__ == "__main__":
    sys.exit(main(TESTS))
