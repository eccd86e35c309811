# SPDX-License-Identifier: Apache-2.0
"""scripts/environment installs into folders of its own alone."""
from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]


class Environment(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="penstock-test-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        for name in ("scripts/environment", "tests/python/versions.txt", "tests/python/requirements.txt",
                     "tests/python/requirements_alone.txt"):
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, self.top / name)
        self.others = self.top / "others/pixels"
        self.others.mkdir(parents=True)
        (self.others / "kept").touch()

    def run_for(self, kind: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, self.top / "scripts/environment", kind], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_a_link_is_refused(self) -> None:
        (self.top / "build-python").mkdir()
        for kind, name in (("pixels", "pixels"), ("torch", "venv"), ("docs", "docs")):
            (self.top / "build-python" / name).symlink_to(self.others)
            if kind == "docs":
                (self.top / "docs/site").mkdir(parents=True)
                shutil.copy(TOP / "docs/site/requirements.txt", self.top / "docs/site")
            status, text = self.run_for(kind)
            self.assertEqual(status, 77, text)
            self.assertIn(f"build-python/{name} is a link to {self.others}", text)
            self.assertTrue((self.others / "kept").exists())

    def test_a_link_to_all_environments_serves_what_is_installed(self) -> None:
        (self.top / "build-python").symlink_to(self.others.parent)
        text = "numpy\npillow\n" + (TOP / "tests/python/versions.txt").read_text()
        (self.others.parent / "pixels.installed").write_text(text)
        status, text = self.run_for("pixels")
        self.assertEqual((status, text), (0, f"{self.top}/build-python/pixels/bin/python\n"))


if __name__ == "__main__":
    unittest.main()
