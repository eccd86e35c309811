# SPDX-License-Identifier: Apache-2.0
"""A program of template.python() is as one of sys.executable, but for the time that its imports take."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import template

IS_FORKED = "any(type(finder).__name__ == 'Kept' for finder in sys.meta_path)"
TELL = ("import os, sys\n"
        f"print({IS_FORKED}, 'colorsys' in sys.modules, __name__, sys.argv[1:], sys.path[0], os.getcwd())\n"
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

    def test_a_module_that_is_imported_already_runs_as_a_program(self):
        for words in (["-m", "json.tool"], ["-m", "json.tool", "--compact"]):
            told = [subprocess.run([python, *words], input='{"a": [1, 2]}', stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True) for python in (sys.executable, template.python("json", "json.tool"))]
            self.assertEqual([one.returncode for one in told], [0, 0], told[1].stdout)
            self.assertEqual(told[1].stdout, told[0].stdout)

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
        inner = f"import sys; print({IS_FORKED})"
        outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
        self.assertEqual(self.run_it(self.python, "-c", outer)[:2], (0, "True\n"))

    def test_what_it_started_ends_with_who_asked(self):
        code = ("import signal, subprocess, sys, time\n"
                "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                "subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
                "print('started', flush=True)\ntime.sleep(60)\n")
        for number in (signal.SIGKILL, signal.SIGINT):
            asked = subprocess.Popen([self.python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            asked.stdout.readline()
            asked.send_signal(number)
            self.assertEqual(asked.communicate(timeout=20)[0], "")  # nobody has the stream: neither it nor sleep

    def test_an_interrupt_of_all_ends_a_program_as_any(self):
        code = "import time\nprint('started', flush=True)\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('told')\n"
        asked = subprocess.Popen([self.python, "-c", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"],
                                 stderr=subprocess.PIPE, text=True)
        self.assertIn("KeyboardInterrupt", asked.communicate(timeout=20)[1])
        self.assertEqual(asked.returncode, -signal.SIGINT)
        self.assertEqual(self.run_it(self.python, "-c", code.replace("time.sleep(60)",
                                     "import os, signal; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"))[:2],
                         (0, "started\ntold\n"))

    def told(self, python, code, **environment):
        done = subprocess.run([*python, "-c", "import importlib.util, sys\n" + code], env={**os.environ, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def test_a_module_is_there_once_it_is_imported(self):
        python = [template.python("colorsys", "xml.dom", "xml.dom.minidom")]
        there = "print(*(name in sys.modules for name in ('colorsys', 'xml', 'xml.dom', 'xml.dom.minidom')))\n"
        kept = "kept = sys.meta_path[0].parts[0]['colorsys']\n"
        code = f"{kept}{there}importlib.util.find_spec('colorsys')\n{there}import colorsys\n{there}" \
               "print(colorsys is kept, colorsys.__spec__.origin == colorsys.__file__)"
        self.assertEqual(self.told(python, code), ["False False False False"] * 2 + ["True False False False", "True True"])
        # It needs what was imported before it, and nothing that came after.
        self.assertEqual(self.told(python, f"import xml.dom\n{there}print(hasattr(xml.dom, 'minidom'))"),
                         ["True True True False", "False"])
        self.assertEqual(self.told(python, f"from xml.dom import minidom\n{there}"), ["True True True True"])

    def test_a_module_that_a_program_hides_stays_hidden(self):
        python = [template.python("colorsys", "xml.dom", "xml.dom.minidom")]
        code = "sys.modules['colorsys'] = None\nimport xml.dom.minidom\nprint(sys.modules['colorsys'])"
        self.assertEqual(self.told(python, code), ["None"])

    def test_a_program_starts_others_from_its_own_server_or_forks_a_server_of_it(self):
        """As the step python of scripts/test runs test files."""
        modules = ("colorsys", "wave")
        shared = {"PENSTOCK_TEST_MODULES": " ".join(modules), "PENSTOCK_TEST_SOCKET": template.serving(*modules),
                  "PENSTOCK_TEST_PYTHON": sys.executable, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
        inner = "import sys; print(*sorted(name for part in sys.meta_path[0].parts for name in part))"
        for modules, own, kept in (("'wave'", "True", "colorsys wave"), ("'wave', 'xml'", "False", "wave xml")):
            code = "import os, subprocess, template\n" \
                   f"print(os.environ['PENSTOCK_TEST_SOCKET'] == template.serving({modules}), flush=True)\n" \
                   f"subprocess.run([template.python({modules}), '-c', {inner!r}])"
            self.assertEqual(self.told([sys.executable, "-SE", template.SERVER, "ask"], code, **shared), [own, kept])


if __name__ == "__main__":
    unittest.main()
