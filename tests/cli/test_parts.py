#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pack --part auto` under launchers and in job arrays, and what `merge` refuses.
usage: test_parts.py PENSTOCK [WORD]; TAP, as test_command.py.
"""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time

from test_command import KINDS, PENSTOCK, expect, main, picture, run, run_json

TESTS = []
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_", "SLURM", "OMPI", "PMI", "MV2", "JOB_")


def test(function):
    TESTS.append(function)
    return function


def environment(**variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NAMES)}
    return {**kept, **{name: str(value) for name, value in variables.items()}}


def array(task, first=0, last=3, count=None, step=1, **more):
    count = (last - first) // step + 1 if count is None else count
    return environment(SLURM_ARRAY_TASK_ID=task, SLURM_ARRAY_TASK_MIN=first, SLURM_ARRAY_TASK_MAX=last,
                       SLURM_ARRAY_TASK_COUNT=count, SLURM_ARRAY_TASK_STEP=step, **more)


def mpi(rank, world):
    return dict(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=world, OMPI_COMM_WORLD_LOCAL_RANK=rank,
                OMPI_COMM_WORLD_LOCAL_SIZE=world)


def step(rank, world):
    return dict(SLURM_PROCID=rank, SLURM_STEP_NUM_TASKS=world, SLURM_LOCALID=rank, SLURM_STEP_TASKS_PER_NODE=world)


def images(world, n=11, classes=("a", "b")):
    src = world.fresh("images")
    for i in range(n):
        folder = os.path.join(src, classes[i * len(classes) // n])
        os.makedirs(folder, exist_ok=True)
        KINDS["420"](picture(i, 24, 20), os.path.join(folder, "%02d.jpg" % i))
    return src


def pack(src, out, env, *options, status=0):
    return run("pack", src, out, "--part", "auto", *options, env=env, status=status)


def parts_of(out):
    return [os.path.join(out, name) for name in sorted(os.listdir(out))]


def check_whole(world, src, out, n):
    """The parts below `out` are n, and merge to what one pack makes."""
    expect([os.path.basename(path) for path in parts_of(out)], ["part-%05u-of-%05u" % (i, n) for i in range(n)])
    joined, whole = world.fresh("joined"), world.path("whole%d" % sum(len(files) for *_, files in os.walk(src)))
    run("merge", *parts_of(out), joined)
    if not os.path.isdir(whole):  # images() makes the same ones for a number
        run("pack", src, whole)
    expect(run_json("info", joined)["identity"], run_json("info", whole)["identity"])


@test
def parts_are_found_under_each_launcher(world):
    src = images(world)
    for name, envs in (
            ("torchrun", [environment(RANK=i, WORLD_SIZE=3, LOCAL_RANK=i, LOCAL_WORLD_SIZE=3) for i in range(3)]),
            ("Open MPI", [environment(**mpi(i, 2)) for i in range(2)]),
            ("srun", [environment(**step(i, 2)) for i in range(2)]),
            ("alone", [environment()])):
        out = world.fresh("parts")
        for i, env in enumerate(envs):
            told = run_json("pack", src, out, "--part", "auto", env=env)
            expect((told["part"], told["n_parts"], told["source"]), (i, len(envs), name))
            expect(told["path"], os.path.join(out, "part-%05u-of-%05u" % (i, len(envs))))
        check_whole(world, src, out, len(envs))
    told = run_json("pack", src, world.fresh("one"), env=environment(**mpi(1, 2)))
    expect((told["part"], told["n_parts"], told["source"], told["n_samples"]), (0, 1, None, 11))


@test
def parts_are_found_in_job_arrays(world):
    src = images(world)
    for first, last, count, every in ((0, 1, 2, 1), (1, 6, 3, 2)):
        out = world.fresh("parts")
        for i in range(count):
            env = array(first + every * i, first, last, count, every, SLURM_PROCID=0, SLURM_NTASKS=1)
            expect(run_json("pack", src, out, "--part", "auto", env=env)["source"], "SLURM array")
        check_whole(world, src, out, count)
    out = world.fresh("steps")  # an array of two tasks, each of which starts two with srun
    for task in range(2):
        for rank in range(2):
            _, said = pack(src, out, array(task, 0, 1, **step(rank, 2)))
            assert "part %u of 4 (task %u of an array of SLURM, srun), into " % (2 * task + rank, task) in said, said
    check_whole(world, src, out, 4)
    out = world.fresh("again")  # some of a larger array
    for task, env in enumerate([array(0, 0, 1), array(1, 0, 1), array(2, 2, 3, 2), array(3, 3, 3)]):
        pack(src, out, env, "--parts", 4)
    check_whole(world, src, out, 4)


@test
def parts_are_found_in_an_indexed_job(world):
    src, out = images(world), world.fresh("parts")
    for i in range(3):
        told = run_json("pack", src, out, "--part", "auto", "--parts", 3, env=environment(JOB_COMPLETION_INDEX=i))
        expect((told["part"], told["source"]), (i, "Kubernetes Job"))
    check_whole(world, src, out, 3)
    _, said = pack(src, out, environment(JOB_COMPLETION_INDEX=3), "--parts", 3, status=2)
    assert "JOB_COMPLETION_INDEX is 3; must be below 3 (give --parts N, the completions of the Job)" in said, said
    _, said = pack(src, out, environment(JOB_COMPLETION_INDEX=1), status=2)
    assert "JOB_COMPLETION_INDEX is 1, but the number of processes is in no variable" in said, said
    assert "or give --parts N)" in said, said


@test
def parts_that_cannot_be_are_refused(world):
    src, out = images(world, 4), world.fresh("none")
    whole = ": must be of one that has all parts, from 0 or 1 without gaps"[1:]
    for env, options, wanted in (
            (array(7, 3, 7, 2), [], "SLURM_ARRAY_TASK_ID is 7, in an array of 2 tasks from 3 to 7;" + whole),
            (array(3, 3, 5), [], whole), (array(0, 0, 5, 3), [], whole), (array(3, 0, 4, 3, 2), [], whole),
            (array(9, 0, 4), [], whole), (array(0, 0, 0), [], "in an array of 1 task from 0 to 0;" + whole),
            (array(0, 0, 3, step=0, count=4), [], whole), (array(1, 4, 3, count=0), [], whole),
            (array(4, 0, 4), ["--parts", 4], "from 0 to 3 with --parts 4 (sbatch --array=0-3)"),
            (array(1, 1, 4), ["--parts", 4], "from 0 to 3 with --parts 4 (sbatch --array=0-3)"),
            (array("x"), [], "SLURM_ARRAY_TASK_ID is 'x'; must be a whole number"),
            (array(1, count="-4"), [], "SLURM_ARRAY_TASK_COUNT is '-4'; must be a whole number"),
            (environment(SLURM_ARRAY_TASK_ID=1), [], "SLURM_ARRAY_TASK_ID is 1, but SLURM_ARRAY_TASK_MIN is not set"),
            (array(0, 0, 1, **step(1, 2)), ["--parts", 5], "--parts: value is 5; must be a multiple of 2, the processes"),
            (array(0, 0, 70000), [], "--part: auto found 70001 processes; must be at most 65536"),
            (array(0, SLURM_PROCID=0, SLURM_NTASKS=3), [], "not one of 3 tasks (start it with srun and give --part auto;"),
            (environment(**mpi(1, 3)), ["--parts", 4], "--part auto found 3 processes (Open MPI); must be as many"),
            (environment(), ["--parts", 4], "--part auto found 1 process (alone)"),
            (environment(**mpi(3, 3)), [], "must be from 0 to 2 (set it as the launcher does, or give --part I/N)"),
            (environment(WORLD_SIZE=4), [], "WORLD_SIZE is 4, but RANK is not set"),
            (environment(**mpi(1, 3)), ["--task", "a", "--pack-id", "0" * 32], "must not come with --part"),
            (environment(**mpi(1, 3)), ["--parts", 0], "--parts: value is '0'")):
        _, said = pack(src, out, env, *options, status=2)
        assert wanted in said and said.count("\n") == 1, (wanted, said)
        assert not os.path.exists(out)
    _, said = run("pack", src, out, "--parts", 3, status=2)
    assert "--parts: value is 3; must come with --part auto" in said, said
    _, said = run("pack", src, out, "--part", "3/3", status=2)
    assert "--part: value is '3/3'; must be I/N with I from 0 to N-1" in said and "or auto" in said, said
    _, said = pack(world.fresh("nothing"), out, environment(**mpi(1, 3)), status=2)
    assert "cannot read the folder" in said and not os.path.exists(out), said
    open(out, "w").close()
    _, said = pack(src, out, environment(**mpi(1, 3)), status=2)
    assert "part-00001-of-00003" in said, said


@test
def a_part_that_runs_twice_is_there_once(world):
    src, out = images(world, 40), world.fresh("parts")
    envs = [environment(**mpi(i, 2)) for i in range(2)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda i: subprocess.run([PENSTOCK, "pack", src, out, "--part", "auto"], env=envs[i % 2],
                                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), range(8)))
    for i in range(2):  # one of four made the part, the others found it made, or being made
        expect(sum("packed " in one.stdout for one in done[i::2]), 1)
    for one in done:
        assert one.returncode == 0 or "another writer" in one.stderr, one.stderr
        assert "packed " in one.stdout or "is done already" in one.stderr or "another writer" in one.stderr, one.stderr
    pack(src, out, envs[0], "--overwrite")
    check_whole(world, src, out, 2)


@test
def a_part_that_is_done_is_left_and_one_of_other_inputs_is_refused(world):
    src, out, envs = images(world, 40), world.fresh("parts"), [environment(**mpi(i, 2)) for i in range(2)]
    for env in envs:
        pack(src, out, env)
    part, other = parts_of(out)
    before = os.stat(os.path.join(part, "manifest.json")).st_mtime_ns
    told, said = pack(src, out, envs[0])
    assert "part-00000-of-00002 is done already, from the same files" in said and "next: when all 2 parts" in told, (told, said)
    assert "packed" not in told.splitlines()[0], told
    expect(json.loads(pack(src, out, envs[0], "--json")[0])["done_already"], True)
    expect(os.stat(os.path.join(part, "manifest.json")).st_mtime_ns, before)
    assert told.splitlines()[0].startswith("the part has 20 images of 2 classes in 1 shard: "), told
    assert "/s)" not in told, told
    for options in (["--quality", "80"], ["--pack-id", "0" * 32]):
        _, said = pack(src, out, envs[0], *options, status=2)
        assert "is a data set already: it is of another pack; --overwrite replaces it" in said, said
    for slice_, why in (("1/2", "holds part 0 of 2 of this pack, and this is part 1 of 2; choose another directory "
                         "(--overwrite replaces part 0 of 2)"),
                        ("0/3", "holds part 0 of 2 of this pack, and this is part 0 of 3; choose another directory, and "
                         "pack all parts with one count")):
        _, said = run("pack", src, part, "--part", slice_, env=environment(), status=2)
        assert why in said, said
    first = os.path.join(src, "a", "00.jpg")
    os.utime(first, (1, 1))
    _, said = pack(src, out, envs[0], status=2)
    assert "its files have changed since then; --overwrite replaces it" in said, said
    _, said = pack(src, out, envs[1])  # its part does not have that file
    assert "done already" in said, said
    expect(pack(src, out, envs[0], "--overwrite")[1].count("done already"), 0)
    check_whole(world, src, out, 2)


@test
def a_part_of_files_that_nobody_knows_is_never_done_already(world):
    src = images(world, 4)
    names = [os.path.relpath(os.path.join(folder, name), src) for folder, _, files in os.walk(src) for name in files]
    with open(os.path.join(src, "metadata.csv"), "w") as file:
        file.write("file_name,label\n" + "".join(f"{name},{i}\n" for i, name in enumerate(sorted(names))))
    line = ["pack", os.path.join(src, "metadata.csv"), world.fresh("listed-out"), "--part", "0/2"]
    run(*line)
    _, said = run(*line, status=2)
    assert "whether its files are the same is not known" in said and "--overwrite" in said, said


@test
def an_empty_part_and_a_task_are_done_already_too(world):
    src, out = images(world, 2), world.fresh("parts")
    for said_already in (False, True):
        for i in range(3):
            _, said = pack(src, out, environment(**mpi(i, 3)))
            expect("is done already" in said, said_already)
    task = world.fresh("task")
    for said_already in (False, True):
        _, said = run("pack", src, task, "--task", "a", "--pack-id", "0" * 32, env=environment())
        expect("is done already" in said, said_already)
    for options, why in ((["--task", "b"], "holds attempt 0 at the task a of this pack, and this is attempt 0 at the task b; "
                          "choose another directory (--overwrite replaces attempt 0 at the task a)"),
                         (["--task", "a", "--attempt", "1"], "and this is attempt 1 at the task a; choose another directory"),
                         (["--part", "0/2"], "and this is part 0 of 2; choose another directory"),
                         (["--task", "a", "--quality", "80"], "it was packed with other options; --overwrite replaces it")):
        _, said = run("pack", src, task, "--pack-id", "0" * 32, *options, env=environment(), status=2)
        assert why in said, said


@test
def a_part_that_lost_bytes_is_not_done(world):
    src, part = images(world, 8), world.fresh("part")
    line = ["pack", src, part, "--part", "0/2"]

    def files(suffix):
        return [os.path.join(part, name) for name in sorted(os.listdir(part)) if name.endswith(suffix)]

    def cut(path):
        os.truncate(path, 1000)

    run(*line)
    for suffix, harm in ((".pstk", cut), (".pstk", os.unlink), (".cls.pcol", cut), (".cls.pcol", os.unlink)):
        harmed = files(suffix)[0]
        harm(harmed)
        told, said = run(*line, status=2)
        assert os.path.basename(harmed) in said and "--overwrite packs it again" in said and not told, (told, said)
        run(*line, "--overwrite")
        assert "done already" in run(*line)[1]
    with open(files("manifest.json")[0], "r+b") as file:
        file.write(file.read().replace(b'"n_samples":4', b'"n_samples":3') if file.seek(0) == 0 else b"")
    _, said = run(*line, status=2)
    assert "manifest" in said and "done already" not in said and "--overwrite" not in said, said


@test
def a_part_packed_with_other_options_is_not_done(world):
    src, part = images(world, 8), world.fresh("part")
    line = ["pack", src, part, "--part", "0/2"]
    run(*line)
    for options in (["--no-columns"], ["--shard-size", "1M"], ["--jpeg", "keep"], ["--jpeg", "exact"], ["--compress", "zstd"]):
        _, said = run(*line, *options, status=2)
        assert "it was packed with other options; --overwrite replaces it" in said, (options, said)
        run(*line, *options, "--overwrite")
        assert "done already" in run(*line, *options)[1]
        run(*line, "--overwrite")
    for options in (["--shard-size", "256M"], ["--threads", "1"], ["--jpeg", "planes"], ["--json"]):  # the same result
        assert "done already" in run(*line, *options)[1], options


@test
def a_part_of_good_files_is_done_also_where_bad_ones_would_be_taken(world):
    src = images(world, 8)
    for option in (["--skip-bad"], ["--damaged", "accept"]):
        part = world.fresh("part")
        line = ["pack", src, part, "--part", "0/2"]
        run(*line)
        assert "done already" in run(*line, *option)[1]  # a pack that refuses bad files found none
        run(*line, *option, "--overwrite")
        assert "done already" in run(*line, *option)[1]
        _, said = run(*line, status=2)
        assert "it was packed with " + " ".join(option) + "; --overwrite replaces it" in said, said


@test
def a_part_that_left_a_file_out_is_not_done_where_it_would_be_taken(world):
    src, part = images(world, 8), world.fresh("part")
    path = sorted(os.path.join(src, "a", name) for name in os.listdir(os.path.join(src, "a")))[0]
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data[:-40] + data[-2:])
    line = ["pack", src, part, "--part", "0/2", "--skip-bad"]
    run(*line)
    _, said = run(*line, "--damaged", "accept", status=2)
    assert "it was packed with --skip-bad; --overwrite replaces it" in said, said
    run(*line, "--damaged", "accept", "--overwrite")
    assert "done already" in run(*line, "--damaged", "accept")[1]
    _, said = run(*line, status=2)
    assert "it was packed with --damaged accept" in said, said


@test
def a_merge_leaves_out_what_a_part_was_made_of(world):
    src, out, whole = images(world, 4), world.fresh("parts"), world.fresh("whole")
    for i in range(2):
        pack(src, out, environment(**mpi(i, 2)))
    told, _ = run("merge", *parts_of(out), whole)
    assert " verify " in told.splitlines()[-1], told
    notes = []
    for path in (parts_of(out)[0], whole):
        with open(os.path.join(path, "manifest.json")) as file:
            notes.append(json.load(file)["note"])
    assert re.fullmatch(re.escape(notes[1]) + "; inputs [0-9a-f]{32} options [0-9a-f]{32}", notes[0]), notes


@test
def a_part_that_was_killed_starts_over(world):
    src, out = images(world, 200), world.fresh("parts")
    envs = [environment(**mpi(i, 2)) for i in range(2)]
    killed = subprocess.Popen([PENSTOCK, "pack", src, out, "--part", "auto", "--threads", "1"], env=envs[0],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    part = os.path.join(out, "part-00000-of-00002")
    end = time.monotonic() + 20
    while not os.path.isdir(part) and time.monotonic() < end:
        time.sleep(0.001)
    killed.send_signal(signal.SIGKILL)
    expect(killed.wait(), -signal.SIGKILL)
    assert not os.path.exists(os.path.join(part, "manifest.json"))
    pack(src, out, envs[1])
    _, said = run("merge", *parts_of(out), world.fresh("joined"), status=2)
    assert "part-00000-of-00002" in said, said
    pack(src, out, envs[0])
    check_whole(world, src, out, 2)


@test
def merge_names_what_does_not_fit(world):
    src, out = images(world), world.fresh("parts")
    for i in range(4):
        pack(src, out, environment(**mpi(i, 4)))
    parts, joined = parts_of(out), world.fresh("joined")

    def refused(chosen, *wanted):
        _, said = run("merge", *chosen, joined, status=2)
        assert all(part in said for part in wanted), (wanted, said)
        assert not os.path.exists(joined)

    refused([parts[0], parts[2]], "parts 1, 3 of 4 are missing: give all parts", "another machine")
    refused(parts[:3], "part 3 of 4 is missing: give all parts")
    refused([*parts, parts[2]], parts[2], "are both part 2: give each part once")
    _, said = run("merge", parts[0], os.path.join(out, "nosuch"), joined, status=2)
    expect(said, "penstock: no such file or directory: %s\n" % os.path.join(out, "nosuch"))  # and no word of OUT
    other = world.fresh("other")
    for i in range(3):
        pack(src, other, environment(**mpi(i, 3)))
    refused([*parts[:3], parts_of(other)[2]], "they were not packed together", parts_of(other)[2])
    small = world.fresh("small")
    run("pack", src, small, "--part", "3/4", "--pixels", 16)
    refused([*parts[:3], small], small, "pack all parts with the same settings")
    alike = world.fresh("alike")
    run("pack", src, alike, "--part", "3/4")
    run("merge", *parts[:3], alike, world.fresh("whole"))
    given = world.fresh("given")
    run("pack", src, given, "--part", "3/4", "--pack-id", "0" * 32)
    refused([*parts[:3], given], given, "of the pack " + "0" * 32)
    nameless = [world.fresh("nameless%d" % i) for i in range(2)]
    for i, part in enumerate(nameless):
        run("pack", src, part, "--part", "%d/2" % i, "--pack-id", "none")
    run("merge", *nameless, world.fresh("old"))
    run("pack", src, world.fresh("named0"), "--part", "0/2")
    refused([world.path("named0"), nameless[1]], nameless[1], "is part 1 of 2: they were not packed together")
    run("pack", src, world.fresh("none"), "--pack-id", "0" * 32, status=2)
    stranger = world.fresh("stranger")
    run("pack", images(world, 10), stranger, "--part", "3/4")
    refused([*parts[:3], stranger], stranger, "part 3 of 4 of the pack",
            "they were not packed together (pack all parts from the same files with the same options)")
    classes = images(world, 11, ("a", "c"))
    named = world.fresh("named")
    run("pack", classes, named, "--part", "3/4")
    refused([*parts[:3], named], named, "different class names")


@test
def a_folder_that_is_missing_above_out_is_named(world):
    src, above = images(world, 4), world.fresh("above")
    for out, missing in ((os.path.join(above, "part"), above), (os.path.join(above, "in", "part/"), os.path.join(above, "in"))):
        for options, folder in (([], missing), (["--part", "0/2"], missing), (["--part", "auto"], out.rstrip("/"))):
            _, said = run("pack", src, out, *options, env=environment(), status=2)
            assert "cannot make it: there is no folder %s (make it with mkdir -p)\n" % folder in said, said
    os.makedirs(above)
    run("pack", src, os.path.join(above, "part"))
    _, said = run("merge", os.path.join(above, "part"), os.path.join(above, "no", "out"), status=2)
    assert "there is no folder %s (make it with mkdir -p)" % os.path.join(above, "no") in said, said
    _, said = run("export", "--to", "mds", os.path.join(above, "part"), os.path.join(above, "no", "out"), status=2)
    assert "there is no folder %s (make it with mkdir -p)" % os.path.join(above, "no") in said, said


@test
def threads_and_images_are_shared(world):
    src = images(world)
    inside = os.path.join(src, "a", "parts")  # the parts of others are not packed again
    for i in range(2):
        pack(src, inside, environment(**mpi(i, 2)))
    joined = world.fresh("joined")
    run("merge", *parts_of(inside), joined)
    expect(run_json("info", joined)["n_samples"], 11)


@test
def machines_that_do_not_share_the_folder_are_warned_of(world):
    src = images(world, 4)
    if run_json("doctor", src)["file_system"] not in ("ext4", "xfs", "btrfs", "tmpfs", "overlay"):
        return
    apart = environment(RANK=1, WORLD_SIZE=2, LOCAL_RANK=0, LOCAL_WORLD_SIZE=1)
    _, said = pack(src, world.fresh("parts"), apart)
    assert "which other machines do not see unless it is exported, and torchrun started processes on several" in said, said
    _, said = pack(src, world.fresh("parts"), environment(**mpi(1, 2)))
    assert "warning" not in said, said


if __name__ == "__main__":
    sys.exit(main(TESTS))
