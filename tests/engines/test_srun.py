# SPDX-License-Identifier: Apache-2.0
"""srun of a SLURM of one machine, which the test starts: steps, batch scripts, shells, torchrun and mpirun inside."""
import os
import pathlib
import shlex
import shutil
import sys
import tempfile
import time
import unittest

import sets
import slurm
from engine import EPOCH, EngineCase, environment

reason = slurm.missing()
if reason:
    raise unittest.SkipTest("missing: " + reason)
ASK = "import penstock.ranks as r; f = r.find(); print(f.rank, f.world, f.local_rank, f.local_world, f.source)"


class Srun(EngineCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="penstock-slurm-")
        cls.addClassCleanup(shutil.rmtree, folder, True)
        cls.slurm = slurm.Slurm(folder, environment()).__enter__()
        cls.addClassCleanup(cls.slurm.__exit__)

    def test_a_step(self):
        self.slurm.run("srun", "-n", "4", sys.executable, EPOCH, sets.scalars(), self.out)
        for rank, one in enumerate(self.check_epoch(4, "srun")):
            self.assertEqual((one["ranks"]["local_rank"], one["ranks"]["local_world"]), (rank, 4))

    def asked(self, *command):
        return sorted(self.slurm.run(*command).splitlines())

    def test_steps_whose_job_is_named_as_a_shell(self):
        python = shlex.quote(sys.executable)
        wanted = ["0 2 0 2 srun", "1 2 1 2 srun"]
        self.assertEqual(self.asked("srun", "-n", "2", "bash", "-c", f"{python} -c {shlex.quote(ASK)}"), wanted)
        self.assertEqual(self.asked("salloc", "-Q", "-n", "2", "-J", "interactive", "srun", sys.executable, "-c", ASK),
                         wanted)

    def test_a_shell(self):
        command = shlex.join(["srun", "-n", "2", "--pty", "-J", "bash", "bash", "-c", shlex.join([sys.executable, "-c", ASK])])
        self.assertIn("0 1 0 1 alone", self.slurm.run("script", "-qec", command, "/dev/null"))

    def test_a_batch_script(self):
        script = pathlib.Path(self.out, "job.sh")
        log = pathlib.Path(self.out, "job.log")
        ask = shlex.join([sys.executable, "-c", ASK])
        script.write_text(f"#!/bin/sh\n{ask} 2>&1 | tail -n 1\nexport WORLD_SIZE=2\nsrun -n 2 {ask}\necho end\n")
        self.slurm.run("sbatch", "--wait", "-n", "2", "-J", "train", "-o", str(log), str(script))
        for _ in range(100):
            if log.exists() and "end" in log.read_text():
                break
            time.sleep(0.1)
        first, *others = log.read_text().splitlines()
        self.assertIn("this process is the job's batch script, not one of 2 tasks", first)
        self.assertEqual(sorted(others), ["0 2 0 2 srun", "1 2 1 2 srun", "end"])

    def test_parts_of_a_job_array(self):
        source, script = self.images(), pathlib.Path(self.out, "pack.sh")
        parts = [str(pathlib.Path(self.out, name)) for name in ("steps", "single")]
        pack = [shlex.join([os.environ["PENSTOCK_COMMAND"], "pack", source, out, "--part", "auto"]) for out in parts]
        # Each task of the array packs two parts, with srun.
        script.write_text(f"#!/bin/sh\nexec srun -n 2 {pack[0]}\n")
        self.slurm.run("sbatch", "--wait", "--array=1-2", "-n", "2", "-o", f"{self.out}/%a.log", str(script))
        self.check_parts(source, parts[0], 4)
        # Each batch script packs one part; the last one is submitted later.
        script.write_text(f"#!/bin/sh\nexec {pack[1]} --parts 3\n")
        for tasks in ("0-1", "2"):
            self.slurm.run("sbatch", "--wait", f"--array={tasks}", "-n", "1", "-o", f"{self.out}/%a.log", str(script))
        self.check_parts(source, parts[1], 3)


if __name__ == "__main__":
    unittest.main()
