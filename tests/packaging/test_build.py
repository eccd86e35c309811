# SPDX-License-Identifier: Apache-2.0
"""The output of `make` through scripts/build: a few calm lines, and after a failure the output of the failed command."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
N_PROGRAMS = 30


class Build(unittest.TestCase):
    def setUp(self) -> None:
        """A source tree of small programs, with the script as it is and no packages to install."""
        folder = tempfile.TemporaryDirectory(prefix="penstock-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "scripts").mkdir()
        shutil.copy(TOP / "scripts/build", self.folder / "scripts/build")
        (self.folder / "scripts/deps").write_text("#!/bin/sh\n")
        (self.folder / "scripts/deps").chmod(0o755)
        lines = ["project('small', 'c')", "summary('CUDA', 'no: a test')"]
        for i in range(N_PROGRAMS):
            (self.folder / f"p{i}.c").write_text("int main(void) { return 0; }\n")
            lines.append(f"executable('p{i}', 'p{i}.c')")
        (self.folder / "meson.build").write_text("\n".join(lines) + "\n")

    def build(self, *targets: str, status: int = 0) -> tuple[list[str], str]:
        done = subprocess.run([self.folder / "scripts/build", "build", *targets], cwd="/", text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.splitlines(), done.stderr

    def test_a_few_lines_and_the_rest_in_a_file(self) -> None:
        lines, err = self.build("p0")
        self.assertEqual((len(lines), err), (4, ""), lines)
        self.assertIn("penstock: CUDA: no: a test", lines)
        lines, err = self.build()
        self.assertEqual((len(lines), err), (2, ""), lines)
        for line in lines:
            self.assertTrue(line.startswith("penstock: "), line)
        self.assertIn(f"/{2 * (N_PROGRAMS - 1)}]", (self.folder / "build/build.log").read_text())
        self.assertTrue(os.access(self.folder / f"build/p{N_PROGRAMS - 1}", os.X_OK))
        self.assertEqual(self.build(), (["penstock: build/ is up to date"], ""))

    def test_a_failed_compilation_is_shown(self) -> None:
        (self.folder / "p3.c").write_text("int main(void) { return nothing; }\n")
        lines, err = self.build(status=1)
        self.assertNotIn("built", "".join(lines))
        for part in ("p3.c:1", "nothing", "build/build.log"):
            self.assertIn(part, err)
        self.assertLessEqual(len(err.splitlines()), 41)
        (self.folder / "p3.c").write_text("int main(void) { return 0; }\n")
        self.assertIn("built", self.build()[0][-1])

    def test_a_failed_configuration_is_shown_and_can_be_mended(self) -> None:
        project = (self.folder / "meson.build").read_text()
        (self.folder / "meson.build").write_text(project + "error('no such library')\n")
        self.assertIn("no such library", self.build(status=1)[1])
        (self.folder / "meson.build").write_text(project)
        self.assertIn("built", self.build()[0][-1])


if __name__ == "__main__":
    unittest.main()
