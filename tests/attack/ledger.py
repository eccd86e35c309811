# SPDX-License-Identifier: Apache-2.0
"""ledger: counts what passed, failed and was skipped, and prints it. Every failure prints its repeat command."""
import re
import sys

MAX_DETAIL = 12  # lines of detail printed for one failure
MAX_FAILURES = 20  # failures of one case printed in full; the others are counted


def say(line):
    """Print a line. Control characters, which the attacked print, come as numbers."""
    print(re.sub("[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda c: f"\\x{ord(c[0]):02x}", line).encode(
        errors="backslashreplace").decode(), flush=True)


class Ledger:
    """The counts of one attack. One check is one attempt: a kill, a size, a denied call, a record, a minute."""

    def __init__(self, attack, seed):
        self.attack, self.seed = attack, seed
        self.passed = self.failed = self.skipped = 0
        self.printed = {}  # failures of each case that were printed

    def ok(self, n=1):
        self.passed += n

    def skip(self, what, reason, n=1):
        """`n` attempts cannot be made here; `reason` says why."""
        self.skipped += n
        say(f"skipped - {self.attack} {what}: {reason}")

    def fail(self, case, what, detail="", repeat=""):
        """`repeat`: the arguments of tests/attack/run, past the attack's name, that repeat this attempt."""
        self.failed += 1
        n = self.printed[case] = self.printed.get(case, 0) + 1
        if n > MAX_FAILURES:
            return
        say(f"not ok - {self.attack} {case}: {what}")
        for line in str(detail).strip().split("\n")[:MAX_DETAIL]:
            if line:
                say(f"     {line}")
        say(f"     repeat: tests/attack/run {self.attack} --seed {self.seed} --case {case} {repeat}".rstrip())

    def check(self, case, problems, detail="", repeat=""):
        """Count one attempt: passed when `problems` is empty. Returns whether it is."""
        if problems:
            self.fail(case, "; ".join(problems), detail, repeat)
        else:
            self.ok()
        return not problems

    def close(self):
        """Print how many failures were counted and not printed."""
        for case, n in self.printed.items():
            if n > MAX_FAILURES:
                say(f"     {self.attack} {case}: {n - MAX_FAILURES} more failures are not printed")
        sys.stdout.flush()

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
