# SPDX-License-Identifier: Apache-2.0
"""A program of template.python() is as one of sys.executable, but for what is imported."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import template

TELL = ("import os, sys\n"
        "print('colorsys' in sys.modules, 'wave' in sys.modules, __name__, sys.argv[1:], sys.path[0], os.getcwd())\n"
        "print(os.environ.get('WORD'), sys.stdin.read(), [entry for entry in sys.path if entry.endswith('here')])\n"
        "print('to stderr', file=sys.stderr)\n")


class Forked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = template.python("colorsys")

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="penstock-test-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        pathlib.Path(self.folder, "tell.py").write_text(TELL)

    def run_it(self, python, *words, **more):
        done = subprocess.run([python, *words], input="from stdin", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd=self.folder, env={**os.environ, "WORD": "x", "PYTHONPATH": "here"}, timeout=60, **more)
        return done.returncode, done.stdout, done.stderr

    def test_streams_words_folder_and_environment_are_those_of_a_fresh_one(self):
        pathlib.Path(self.folder, "far").mkdir()
        shutil.copy(self.folder + "/tell.py", self.folder + "/far/away.py")
        for words in (["tell.py", "a", "b"], ["far/away.py"], [self.folder + "/far/away.py", "a"], ["-m", "tell", "a"],
                      ["-c", TELL, "a"], ["-u", "tell.py"]):
            fresh, forked = self.run_it(sys.executable, *words), self.run_it(self.python, *words)
            self.assertEqual((fresh[0], forked[0], forked[2]), (0, 0, fresh[2]), words)
            self.assertEqual(forked[1], fresh[1].replace("False", "True", 1), words)

    def test_statuses(self):
        for code, wanted in (("raise SystemExit(3)", 3), ("1 / 0", 1), ("import os; os.kill(os.getpid(), 9)", -9)):
            self.assertEqual(self.run_it(self.python, "-c", code)[0], wanted, code)
        self.assertIn("ZeroDivisionError", self.run_it(self.python, "-c", "1 / 0")[2])

    def test_what_it_starts_is_forked_and_ends_with_who_asked(self):
        code = "import time; print('started', flush=True); time.sleep(60)"
        for number in (signal.SIGTERM, signal.SIGKILL):
            asked = subprocess.Popen([self.python, "-c", code], stdout=subprocess.PIPE, text=True)
            asked.stdout.readline()
            asked.send_signal(number)
            # The stream ends once nobody has it: the program has ended, long before its time.
            self.assertEqual(asked.communicate(timeout=20)[0], "")
            self.assertEqual(asked.returncode, -number)
        inner = "import sys; print('colorsys' in sys.modules)"
        outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
        self.assertEqual(self.run_it(self.python, "-c", outer)[:2], (0, "True\n"))


if __name__ == "__main__":
    unittest.main()
