# SPDX-License-Identifier: Apache-2.0
"""process: one command, run to its end or to its limit, with what it printed and what it took."""
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time

LIMIT = 60  # seconds after which a command counts as hanging


class Outcome:
    """status: as subprocess has it (negative: the signal that ended it). peak: bytes of resident memory."""

    def __init__(self, command, status, out, err, seconds, peak, hung):
        self.command, self.status, self.out, self.err = command, status, out, err
        self.seconds, self.peak, self.hung = seconds, peak, hung

    @property
    def text(self):
        return self.out.decode(errors="replace")

    def shown(self):
        """Return the part of the output that a person needs to see."""
        report = self.err.find("Sanitizer: ")  # it names the place first
        err = self.err[-1500:] if report < 0 else self.err[max(0, report - 20):][:1500]
        return (f"$ {shlex.join(self.command)}\nstatus {self.status}{' (hung)' if self.hung else ''}, "
                f"{self.seconds:.2f} s\n{err}{self.text[-500:]}")


class Running:
    """A command under way. Call wait once."""

    def __init__(self, command, cwd=None, env=None, stdout=None, prepare=None):
        """stdout: a file instead of memory. prepare: called in the child before the command."""
        self.command = [str(word) for word in command]
        self.out = stdout or tempfile.TemporaryFile()
        self.err = tempfile.TemporaryFile()
        self.own_out = stdout is None
        self.start = time.monotonic()

        def begin():
            # A shell starts what runs in its background with SIGINT ignored, and so would all children be.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if prepare:
                prepare()

        self.child = subprocess.Popen(self.command, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                      stdout=self.out, stderr=self.err, preexec_fn=begin)

    def signal(self, number):
        """Send a signal to the child, which wait has not reaped yet."""
        os.kill(self.child.pid, number)

    def wait(self, limit=LIMIT):
        hung = threading.Event()

        def end():
            hung.set()
            os.kill(self.child.pid, 9)
        timer = threading.Timer(limit, end)
        timer.start()
        _, status, usage = os.wait4(self.child.pid, 0)
        timer.cancel()
        timer.join()
        seconds = time.monotonic() - self.start
        self.child.returncode = os.waitstatus_to_exitcode(status)
        return Outcome(self.command, self.child.returncode, self.read(self.out) if self.own_out else b"",
                       self.read(self.err).decode(errors="replace"), seconds, usage.ru_maxrss * 1024,
                       hung.is_set())

    @staticmethod
    def read(file):
        file.seek(0)
        with file:
            return file.read()


def run(command, limit=LIMIT, **kwargs):
    return Running(command, **kwargs).wait(limit)
