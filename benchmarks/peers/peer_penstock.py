# SPDX-License-Identifier: Apache-2.0
"""penstock: its own commands `pack` and `bench`; records through a small program and its writer."""
import json
import os
import pathlib
import subprocess
import sys

import measure
import sources

TOP = pathlib.Path(__file__).resolve().parents[2]


def command(arguments, **more):
    """Return its output; where it fails, this process ends with its status and its words."""
    done = subprocess.run([str(part) for part in arguments], capture_output=True, text=True, **more)
    if done.returncode:
        print((done.stderr or done.stdout).strip(), file=sys.stderr)
        sys.exit(done.returncode)
    return done.stdout


def link_images(task):
    """Return a folder of links to the images: what `pack` takes is a folder."""
    folder = task.fresh_folder() / "images"
    folder.mkdir()
    for number, file in enumerate(task.files):
        os.symlink(file, folder / f"{number:07}.jpg")
    return folder


def pack_records(task):
    """The compiler is the one dependency of the writer's small program."""
    folder = task.fresh_folder()
    program, library = folder / "pack_records", pathlib.Path(task.binary).parents[1]
    command(["cc", "-O2", "-I", TOP / "include", pathlib.Path(__file__).with_name("pack_records.c"),
             "-o", program, library / "libpenstock.so", f"-Wl,-rpath,{library}"])
    with open(task.records, "rb") as file:
        os.lseek(file.fileno(), sources.HEADER_SIZE, os.SEEK_SET)
        command([program, folder / "data", task.options["record_size"]], stdin=file)


def prepare(task):
    if task.records:
        pack_records(task)
    else:
        images = link_images(task)
        command([task.binary, "pack", images, task.folder / "data", "--threads", task.n_cores,
                 *task.options["pack"]])
    return measure.folder_size(task.folder / "data")


def run_bench(task, seconds, *more):
    return json.loads(command([task.binary, "bench", task.folder / "data", "--seconds", seconds,
                               "--threads", task.options.get("threads", task.n_cores),
                               "--batch-size", task.batch_size, "--json",
                               *task.options["bench"], *more]))


def main():
    verb, task = sys.argv[1], measure.Task(sys.argv[2])
    if verb == "prepare":
        version = command([task.binary, "--version"]).split()[-1]
        measure.say({"bytes": prepare(task), "versions": {"penstock": version}})
    elif task.options.get("reference"):
        found = run_bench(task, 0.1)
        measure.say({"samples": found["reference"][task.options["reference"]], "seconds": 1})
    else:
        found = run_bench(task, task.seconds, "--no-ceilings")
        measure.say({"samples": found["samples"], "seconds": found["seconds"]})


if __name__ == "__main__":
    main()
