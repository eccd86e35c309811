# SPDX-License-Identifier: Apache-2.0
"""ranks="auto" of the package and `--rank auto` of the command find the same in launchers.json's environments: a name,
variables, whether there is a controlling terminal, and [rank, world, local rank, local world, source] or the error."""
import json
import os
import pathlib
import pty
import subprocess
import sys
import unittest
from unittest import mock

import sets
import penstock
from penstock import _c, ranks

CASES = json.loads(pathlib.Path(__file__).with_name("launchers.json").read_text("utf-8"))
TERMINALS = {False: _c.TERMINAL_NONE, True: _c.TERMINAL_OWN}
NUMBERS = ("rank", "world", "local_rank", "local_world", "source")
# The package's words for what the command has options for.
WORDS = (("rank: ", "penstock: --rank: "), ("ranks=penstock.Ranks(RANK, WORLD)", "--rank and --world"), ("ranks='auto'", "--rank auto"),
         ("ranks=penstock.Ranks(0, 1)", "--rank 0 --world 1"))


def command(*words, env, terminal=False):
    """Run the command with these variables alone, in a session of its own: its status, and what it printed."""
    line = [os.environ["PENSTOCK_COMMAND"], *words]
    keep = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "LANG", "LC_ALL") if name in os.environ}
    if not terminal:
        done = subprocess.run(line, env={**keep, **env}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True)
        return done.returncode, done.stdout, done.stderr
    child, master = pty.fork()
    if child == 0:
        os.execve(line[0], line, {**keep, **env})
    printed = b""
    while True:
        try:
            some = os.read(master, 4096)
        except OSError:  # EIO: the other side is closed
            break
        if not some:
            break
        printed += some
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), printed.decode(), ""


class Table(unittest.TestCase):
    def test_the_package(self):
        hidden = dict.fromkeys(("torch.distributed", "jax", "ray.train"))
        for case in CASES:
            with self.subTest(case["name"]), mock.patch.dict(sys.modules, hidden), \
                    mock.patch.object(ranks.launchers, "_TERMINAL", TERMINALS[case.get("terminal", False)]):
                try:
                    found = list(ranks.find(case["env"])[:5])
                except penstock.SettingsError as error:
                    self.assertEqual(str(error), case.get("error"))
                else:
                    self.assertEqual(found, case.get("found"))

    def test_the_command(self):
        for case in CASES:
            with self.subTest(case["name"]):
                status, out, error = command("order", sets.scalars(), "--rank", "auto", "--explain", "--json", env=case["env"],
                                             terminal=case.get("terminal", False))
                if "found" in case:
                    self.assertEqual((status, error), (0, ""))
                    said = json.loads(out)
                    self.assertEqual([said[name] for name in NUMBERS], case["found"])
                else:
                    wanted = case["error"]
                    for python, option in WORDS:
                        wanted = wanted.replace(python, option)
                    self.assertEqual((status, out, error), (2, "", wanted + "\n"))

    def test_a_terminal_can_be_had(self):
        self.assertTrue(any(case.get("terminal") for case in CASES))
        self.assertEqual(command("--version", env={}, terminal=True)[0], 0)


TWO = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


class Command(unittest.TestCase):
    def test_the_order_is_that_of_the_rank(self):
        line = ["order", sets.scalars(), "--batch-size", "10", "--batches", "3"]
        found = command(*line, "--rank", "auto", env=TWO)
        self.assertEqual(found, command(*line, "--rank", "1", "--world", "2", env={}))
        self.assertEqual(found, command(*line, "--rank", "auto", "--world", "2", env=TWO))
        self.assertNotEqual(found, command(*line, env=TWO))

    def test_text_names_the_source(self):
        line = ["order", sets.scalars(), "--explain"]
        self.assertIn("rank 1 of 2 (torchrun", command(*line, "--rank", "auto", env=TWO)[1])
        self.assertIn("rank 0 of 1\n", command(*line, env=TWO)[1])
        for words, source in (([], "alone"), (["--rank", "0"], "given"), (["--world", "2"], "given")):
            self.assertEqual(json.loads(command(*line, *words, "--json", env=TWO)[1])["source"], source)

    def test_a_world_that_the_launcher_does_not_have(self):
        line = ["order", sets.scalars(), "--rank", "auto", "--world", "4"]
        for env, said in (({}, "--rank auto found 1 process (alone)"), (TWO, "--rank auto found 2 processes (torchrun)")):
            status, _, error = command(*line, env=env)
            self.assertEqual(status, 2)
            self.assertIn(f"--world: value is 4, and {said}; must be as many (leave --world out", error)
        most = dict(TWO, WORLD_SIZE="999999999")
        self.assertIn("torchrun reports 999999999 processes; must be at most 16777216",
                      command("order", sets.scalars(), "--rank", "auto", env=most)[2])

    def test_a_rank_that_is_no_number(self):
        status, _, error = command("order", sets.scalars(), "--rank", "automatic", env={})
        self.assertEqual((status, error), (2, "penstock: --rank: value is 'automatic'; must be a whole number, or auto, which "
                                              "finds it\n"))

    def test_bench_divides_the_cores_once(self):
        n_cores = len(os.sched_getaffinity(0))
        if n_cores < 2:
            self.skipTest("one core")
        line = ["bench", sets.scalars(), "--rank", "auto", "--epochs", "1", "--no-ceilings", "--json", "--batch-size", "10"]
        if json.loads(command(*line, env={})[1])["threads"] != n_cores:
            self.skipTest("a CPU quota")
        status, out, error = command(*line, env=TWO)
        self.assertEqual(status, 0, error)
        said = json.loads(out)
        self.assertEqual([said[name] for name in NUMBERS], [1, 2, 1, 2, "torchrun"])
        self.assertFalse(said["is_bound"])
        self.assertEqual(said["threads"], max(1, n_cores // 2))
        # As torchrun --numa-binding does: it has all cores, and gives each process some.
        half = ",".join(map(str, sorted(os.sched_getaffinity(0))[:n_cores // 2]))
        done = subprocess.run(["taskset", "-c", half, os.environ["PENSTOCK_COMMAND"], *line], env={**os.environ, **TWO},
                              text=True, stdout=subprocess.PIPE, check=True)
        said = json.loads(done.stdout)
        self.assertTrue(said["is_bound"])
        self.assertEqual(said["threads"], n_cores // 2)


class Doctor(unittest.TestCase):
    """doctor --ranks counts what ranks have that run at the same time."""

    def ranks(self, path, *words):
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "doctor", path, "--json", *words], text=True, check=True,
                              stdout=subprocess.PIPE)
        self.usable = json.loads(done.stdout)["usable_cores"]
        return json.loads(done.stdout)["ranks"]

    def test_eight_ranks_have_what_it_says(self):
        said = self.ranks(sets.photos(), "--ranks", "8")
        line = [os.environ["PENSTOCK_COMMAND"], "bench", sets.photos(), "--rank", "auto", "--last", "short", "--epochs", "1",
                "--no-ceilings", "--json"]
        running = [subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env={**os.environ, "RANK": str(i), "WORLD_SIZE": "8", "LOCAL_RANK": str(i),
                                         "LOCAL_WORLD_SIZE": "8"}) for i in range(8)]
        printed = [one.communicate() for one in running]
        self.assertEqual([one.returncode for one in running], [0] * 8, printed)
        stats = [json.loads(out) for out, _ in printed]
        workers = [one["threads"] for one in stats]
        self.assertEqual((said["n"], said["min_workers"], said["max_workers"], said["workers"]),
                         (8, min(workers), max(workers), sum(workers)))
        for name, of in (("slot_bytes", "slots"), ("io_bytes", "io"), ("index_bytes", "index"), ("scratch_bytes", "scratch")):
            self.assertEqual(said[name], sum(one["memory"][of] for one in stats), name)
        self.assertGreater(said["open_files"], 0)
        wanted = "warning" if 8 > self.usable else "ok"
        self.assertEqual(said["findings"][0]["level"], wanted)

    def test_without_a_data_set_and_without_the_option(self):
        said = self.ranks("/", "--ranks", "1")
        self.assertEqual((said["n"], said["slot_bytes"], [one["what"] for one in said["findings"]]),
                         (1, None, ["ranks", "memory"]))
        self.assertIsNone(self.ranks("/"))
        status, _, error = command("doctor", "/", "--ranks", "0", env={})
        self.assertEqual(status, 2)
        self.assertIn("--ranks: value is '0'; must be a whole number from 1 to 256", error)


if __name__ == "__main__":
    unittest.main()
