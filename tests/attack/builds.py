# SPDX-License-Identifier: Apache-2.0
"""builds: the release build and the ASan build that are attacked, each in a folder of its own."""
import os
import pathlib
import subprocess

from ledger import say

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["src/cli/penstock", "tests/make_images", "tests/write_sample", "tests/attack/deny", "tests/attack/soak"]
SETUPS = {
    "build-attack": ({"CC": "gcc", "CXX": "g++"}, ["--buildtype=release", "-Dcuda=disabled"]),
    "build-attack-asan": (
        {"CC": "clang", "CXX": "clang++"},
        ["-Doptimization=1", "-Ddebug=false", "-Db_lundef=false", "-Dcuda=disabled", "-Db_sanitize=address,undefined",
         "-Dc_args=-fno-sanitize-recover=undefined -gline-tables-only"]),
}
SANITIZERS = {"ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1",
              "UBSAN_OPTIONS": "print_stacktrace=1"}


class Build:
    """Paths of the programs of one build."""

    def __init__(self, folder):
        self.penstock, self.make_images, self.write_sample, self.deny, self.soak = (
            str(folder / program) for program in PROGRAMS)
        self.library = str(folder / "src/libpenstock.so")


def command(words, env):
    done = subprocess.run(words, cwd=TOP, env={**os.environ, **env}, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n" + "\n".join(done.stdout.split("\n")[-40:]))


def make(name, programs):
    env, arguments = SETUPS[name]
    if not (TOP / name / "build.ninja").exists():
        say(f"setting up {name}")
        command(["meson", "setup", name, "--werror", *arguments], env)
    say(f"building {name}")
    command(["ninja", "-C", name, *programs], {})
    return Build(TOP / name)


def release():
    return make("build-attack", PROGRAMS)


def asan():
    return make("build-attack-asan", PROGRAMS[:1])
