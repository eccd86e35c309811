# SPDX-License-Identifier: Apache-2.0
"""The examples run and learn: on several processes, and killed and resumed as if they had never been."""
import functools
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import demo_set
import sets
import template

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples")
WATCH = os.path.join(HERE, "watch.py")
N = 64
SMALL = ["--batch-size", "8", "--size", "32"]


def need(*modules):
    for name in modules:
        if importlib.util.find_spec(name) is None:
            raise unittest.SkipTest(f"missing: {name}")


@functools.lru_cache(maxsize=None)
def packed():
    folder = os.path.join(sets.ROOT, "examples")
    os.makedirs(folder)
    demo_set.make(N, os.path.join(folder, "images"))
    demo_set.pack(os.path.join(folder, "images"), os.path.join(folder, "train"))
    return os.path.join(folder, "train")


class Case(unittest.TestCase):
    """Has the images in four classes, packed, and a folder that is gone afterwards."""

    def setUp(self):
        self.data = packed()
        self.folder = tempfile.mkdtemp(prefix="penstock-examples-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name):
        return os.path.join(self.folder, name)

    environment = {}
    modules = None  # modules that are imported once for all processes

    def start(self, *command):
        # One thread for each process: those of OpenMP spin while others have the cores.
        env = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu",
                   PYTHONPATH=os.pathsep.join(sys.path), **self.environment)
        python = sys.executable if self.modules is None else template.python(*self.modules)
        process = subprocess.Popen([python, *map(str, command)], cwd=self.folder, env=env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_to_end(self, *command):
        """Run the command to its end, and return its output."""
        process = self.start(*command)
        out, err = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 0, out + err)
        return out

    def seen(self, name, rank=0):
        """Return [epoch, position, sample ids] of every batch that watch.py saw."""
        with open(f"{self.path(name)}.{rank}", encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class Classifier(Case):
    def setUp(self):
        need("torch")
        super().setUp()

    # The watched program runs without torchvision, whose import takes as long as that of torch.
    environment = {"WATCH_HIDES": "torchvision"}
    modules = template.TRAINING
    program = os.path.join(EXAMPLES, "train_classifier.py")
    options = ["--model", "small", "--device", "cpu", *SMALL]

    def test_it_learns_64_images_by_heart(self):
        out = self.run_to_end(
            self.program, self.data, "--val", self.data, *self.options, "--no-augment", "--epochs", 12,
            "--lr", 0.05, "--batch-size", 16, "--no-amp", "--log-every", 4)
        losses = [float(x) for x in re.findall(r"step \d+: loss ([\d.]+)", out)]
        right = [float(x) for x in re.findall(r"([\d.]+) % right", out)]
        self.assertEqual((len(losses), len(right)), (12, 12), out)
        self.assertLess(losses[-1], losses[0] / 2, out)
        self.assertGreater(right[-1], 80, out)
        self.assertRegex(out, r"[\d.]+ samples/s; a step takes [\d.]+ ms, [\d.]+ of them waiting for data")
        self.assertRegex(out, r"bottleneck: \w+")

    def test_two_processes_share_the_samples_and_make_equal_steps(self):
        self.run_to_end(
            "-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", free_port(), WATCH,
            self.path("seen"), self.program, self.data, "--val", self.data, *self.options, "--epochs", 2,
            "--accumulate", 3, "--checkpoint", self.path("run.pt"))
        ranks = [self.seen("seen", rank) for rank in range(2)]
        self.assertEqual([b[:2] for b in ranks[0]], [b[:2] for b in ranks[1]])
        self.assertEqual(len(ranks[0]), 2 * N // 16)
        for epoch in range(2):
            ids = [i for batches in ranks for e, _, ids in batches for i in ids if e == epoch]
            self.assertEqual(sorted(ids), list(range(N)))
        import torch
        saved = torch.load(self.path("run.pt"), weights_only=True)
        # Four batches an epoch: a step of three, and one of the one that is left.
        self.assertEqual(saved["step"], 4)
        self.assertEqual([saved["loader"][name] for name in ("world", "epoch", "position")], [2, 1, N])

    def test_killed_and_resumed_it_ends_with_the_bits_of_never_having_stopped(self):
        import torch

        def command(name):
            return [WATCH, self.path("seen-" + name), self.program, self.data, *self.options, "--epochs", 4,
                    "--accumulate", 2, "--log-every", 1, "--checkpoint-every", 3,
                    "--checkpoint", self.path(name)]

        whole = self.run_to_end(*command("whole"))
        told = []
        for kill_behind in (4, 8):  # steps; an epoch has four, and checkpoints are behind 3, 6, 9, 12, 15
            process = self.start(*command("killed"))
            for line in process.stdout:
                told.append(line)
                if f"step {kill_behind}:" in line:
                    process.send_signal(signal.SIGKILL)
            self.assertEqual(process.wait(), -signal.SIGKILL)
        told += self.run_to_end(*command("killed")).splitlines(True)
        going_on = re.findall(r"resuming after step (\d+)", "".join(told))
        self.assertEqual(len(going_on), 2)
        for step in going_on:
            self.assertEqual(int(step) % 3, 0)
        # Steps behind a checkpoint were made twice, with the same loss.
        self.assertEqual(set(losses(whole)), set(losses("".join(told))))
        self.assertEqual({tuple(map(str, b)) for b in self.seen("seen-whole")},
                         {tuple(map(str, b)) for b in self.seen("seen-killed")})
        one, other = (torch.load(self.path(name), weights_only=True) for name in ("whole", "killed"))
        self.assertEqual(one["loader"], other["loader"])
        self.assertEqual(one["step"], 16)
        for name, value in one["model"].items():
            self.assertTrue(torch.equal(value, other["model"][name]), name)


class Lightning(Case):
    def test_it_resumes_in_the_middle_of_an_epoch(self):
        need("torch", "lightning")

        def run(name, *more):
            self.run_to_end(WATCH, self.path(name), os.path.join(EXAMPLES, "train_lightning.py"), self.data,
                            *SMALL, "--epochs", 3, "--checkpoints", self.path("checkpoints-" + name),
                            "--checkpoint-every", 11, *more)
            return self.seen(name)

        whole = run("whole")
        self.assertEqual([b[:2] for b in whole], [[e, 8 * i] for e in range(3) for i in range(8)])
        rest = run("rest", "--resume", self.path("checkpoints-whole/step=11.ckpt"))
        self.assertEqual(rest, whole[11:])


class Jax(Case):
    def test_it_learns_and_resumes(self):
        need("jax", "numpy")

        def run(name, epochs):
            return self.run_to_end(os.path.join(EXAMPLES, "jax_loop.py"), self.data, *SMALL,
                                   "--epochs", epochs, "--checkpoint", self.path(name))

        whole = epoch_lines(run("whole", 4))
        self.assertEqual(len(whole), 4)
        self.assertEqual(epoch_lines(run("parts", 2)) + epoch_lines(run("parts", 4)), whole)


def losses(out):
    """Return ("7", "1.234567") for each step."""
    return re.findall(r"step (\d+): loss ([\d.]+)", out)


def epoch_lines(out):
    return [line for line in out.splitlines() if line.startswith("epoch")]


def free_port():
    import socket
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


if __name__ == "__main__":
    unittest.main()
