# SPDX-License-Identifier: Apache-2.0
"""The parts that the tests of training loops share: they run a program on processes, and compare it with plain.py."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

import plain
import template
from engine import HERE, environment, run

PAGES = HERE.parents[1] / "docs/how-to"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone"]


class TrainingCase(unittest.TestCase):
    """Has a folder with the data sets `train` and `val`, which are gone afterwards. program: what it runs; page: where
    its code stands; modules: what takes seconds to import, and is imported once for all processes."""

    program = page = None
    modules = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-training-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        plain.write(cls.folder / "train", plain.N)
        plain.write(cls.folder / "val", plain.N_VAL)

    def python(self):
        return template.python(*self.modules) if self.modules else sys.executable

    def started(self, world, name, *words, launcher=None, **variables):
        """Run the program on `world` processes in the folder; what each process left in the folder `name`."""
        out = self.folder / name
        out.mkdir()
        start = [*TORCHRUN, f"--nproc-per-node={world}"] if launcher is None else launcher
        run([self.python(), *start, HERE / self.program, name, *words], cwd=self.folder,
            env={**environment(), "CUDA_VISIBLE_DEVICES": "", **variables})
        found = sorted(out.glob("[0-9].json"))
        self.assertEqual([path.name for path in found], [f"{rank}.json" for rank in range(world)])
        return [json.loads(path.read_text()) for path in found]

    def started_alone(self, name, words, **variables):
        """Run the program on two processes without a launcher; words: of a rank, its words after the folder `name`."""
        out = self.folder / name
        out.mkdir(exist_ok=True)
        processes = [subprocess.Popen([self.python(), HERE / self.program, name, *words(rank)], cwd=self.folder,
                                      env={**environment(), "CUDA_VISIBLE_DEVICES": "", **variables}, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                     for rank in range(2)]
        for process in processes:
            self.addCleanup(process.kill)
        printed = [process.communicate(timeout=300)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], "\n".join(printed))
        return [json.loads((out / f"{rank}.json").read_text()) for rank in range(2)]

    def check(self, seen, first=0, **how):
        """Compare what processes saw from step `first` on with the plain loop, bit by bit."""
        wanted, weights = plain.train(str(self.folder / "train"), len(seen), **how)
        for one, plain_one in zip(seen, wanted):
            for name in ("ids", "losses"):
                self.assertEqual(one[name], plain_one[name][first:], name)
            self.assertEqual(one["weights"], weights[-1])
        return weights

    def test_the_page_has_the_code_of_the_program(self):
        if self.page is None:
            self.skipTest("no page")
        text = (PAGES / self.page).read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        program = re.sub(r"^ +", "", (HERE / self.program).read_text(), flags=re.M)
        self.assertTrue(blocks)
        for block in blocks:
            self.assertIn(re.sub(r"^ +", "", textwrap.dedent(block), flags=re.M), program)
