#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run unittest files and print TAP. usage: run.py FILE... [-k WORD]

With -k, run only the tests whose names have WORD. A test or a file that raises unittest.SkipTest is a skip with its
reason. Exit status 1: something failed.
"""
import importlib.util
import pathlib
import sys
import traceback
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tap(unittest.TestResult):
    """One line for each test, the traceback of a failure as comments."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.failed = 0
        self.partial = {}  # subtests that failed, by their test

    def line(self, ok, test, more=""):
        self.count += 1
        self.failed += not ok
        name = test.id().split(".", 1)[-1].replace("#", "") if test is not None else ""
        print(f"{'ok' if ok else 'not ok'} {self.count} - {name}{more}", flush=True)

    def comment(self, text):
        for line in text.rstrip().splitlines():
            print("#   " + line)

    def explain(self, err):
        self.comment("".join(traceback.format_exception(*err)))

    def addSuccess(self, test):
        if test not in self.partial:
            self.line(True, test)

    def addFailure(self, test, err):
        self.line(False, test)
        self.explain(err)

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.partial[test] = True
            self.line(False, subtest)
            self.explain(err)

    def addSkip(self, test, reason):
        self.line(True, test, " # SKIP " + reason.replace("\n", " "))

    def addExpectedFailure(self, test, err):
        self.line(True, test)

    def addUnexpectedSuccess(self, test):
        self.line(False, test, " was expected to fail")


def load(path, result):
    """Return the tests of a file. A file that cannot be imported is a test that failed, or was skipped."""
    name = pathlib.Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest as skip:
        result.count += 1
        print(f"ok {result.count} - {name} # SKIP {skip}")
    except BaseException:
        result.count += 1
        result.failed += 1
        print(f"not ok {result.count} - {name}: cannot be imported")
        result.explain(sys.exc_info())
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def chosen(suite, word):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, word)
        elif word in test.id():
            yield test


def main(arguments):
    word = ""
    if "-k" in arguments:
        at = arguments.index("-k")
        word = arguments[at + 1]
        del arguments[at:at + 2]
    folders = dict.fromkeys(str(pathlib.Path(path).resolve().parent) for path in arguments)
    sys.path[:0] = [str(ROOT / "bindings" / "python"), str(ROOT / "tests" / "python"), *folders]
    result = Tap()
    suites = [unittest.TestSuite(chosen(load(path, result), word)) for path in arguments]
    for suite in suites:
        suite.run(result)
    print(f"1..{result.count}", flush=True)
    return 1 if result.failed else 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.exit(status)
