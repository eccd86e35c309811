# SPDX-License-Identifier: Apache-2.0
"""Programs in Python that need not import what takes seconds: each is forked from one interpreter that has imported it.

usage: fork_server.py SOCKET MODULE...   import the modules, and serve until the standard input ends
       fork_server.py ask WORD...        be `python WORD...`, forked from the server of PENSTOCK_TEST_SOCKET

A program has the words, the folder, the environment and the three streams of its `ask`, and ends as any does. `ask` ends
when it does, with its status; whoever kills `ask` kills it and all that it started. sys.executable is
PENSTOCK_TEST_PYTHON: where that asks, what a program starts is forked, too. A program sees a module that was named once it
imports it, not before: see Kept. It sees from the start what those modules import of other packages, PIL and
multiprocessing among them.
All programs of a server have its hash seed, its random states, its limits and priority, what the interpreter and the
loader of libraries read of the environment when they started (PYTHONWARNINGS, LD_LIBRARY_PATH), and what the modules
read of it when they were imported. Tests of these, or of how an interpreter ends, start fresh ones.
"""
import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.machinery
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import sys


PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


class Kept:
    """Modules that are imported already, and that a program gets when it imports them: until then they are neither in
    sys.modules, which penstock looks into for what its caller uses, nor in their packages. As a finder and a loader of the
    import system."""

    def __init__(self, modules):
        """modules: those that need others come after these. With each, all of them before it are there."""
        self.parts, self.specs = [], {}
        packages = {name.partition(".")[0] for name in modules}
        for name in modules:
            before = set(sys.modules)
            importlib.import_module(name)
            self.parts.append({new: module for new, module in sys.modules.items()
                               if new not in before and new.partition(".")[0] in packages})

    def hide(self):
        """Until the program ends: then the interpreter takes down what it finds in sys.modules."""
        atexit.register(self.show_until, len(self.parts) - 1)
        for part in self.parts:
            for name, module in part.items():
                package, _, member = name.rpartition(".")
                if package not in part and vars(sys.modules.get(package, self)).get(member) is module:
                    delattr(sys.modules[package], member)
        for name in (name for part in self.parts for name in part):
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def part_of(self, name):
        return next((number for number, part in enumerate(self.parts) if name in part), None)

    def find_spec(self, name, _path=None, _target=None):
        if self.part_of(name) is None:
            return None
        real = self.parts[self.part_of(name)][name].__spec__
        spec = importlib.machinery.ModuleSpec(name, self, origin=real.origin)
        spec.submodule_search_locations = real.submodule_search_locations
        return spec

    def get_code(self, name):
        """For python -m."""
        return self.parts[self.part_of(name)][name].__spec__.loader.get_code(name)

    def create_module(self, spec):
        module = self.parts[self.part_of(spec.name)][spec.name]
        self.specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module):
        name = module.__spec__.name
        module.__spec__ = self.specs.pop(name)
        self.show_until(self.part_of(name))

    def show_until(self, last):
        for part in self.parts[:last + 1]:
            for name, module in part.items():
                package, _, member = name.rpartition(".")
                # None, where a program hides it
                if sys.modules.setdefault(name, module) is module and package not in part and sys.modules.get(package):
                    setattr(sys.modules[package], member, module)
            part.clear()


def serve(path, modules):
    """Fork programs; in each this returns, with its words."""
    with socket.socket(socket.AF_UNIX) as listening:
        kept = Kept(modules)
        gc.freeze()  # else the first collection of each program would copy all of it
        atexit.register(gc.unfreeze)  # what is frozen when an interpreter ends, some extensions call leaked
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends who asks, and thereby the programs
        listening.bind(path)
        listening.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for programs
        while True:
            if 0 in select.select([0, listening], [], [])[0]:
                sys.exit()
            asked, _ = listening.accept()
            if os.fork() == 0:
                break
            asked.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words = start(asked)
    kept.hide()
    return words


def descendants(ancestor):
    """Process ids of all that a process started, and what these started."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parents[int(stat.parent.name)] = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
    found = [ancestor]
    for parent in found:
        found += [pid for pid, its in parents.items() if its == parent]
    return found[1:]


def kill_all():
    """Kill all descendants of this process. Those whose parents end become its own."""
    while found := descendants(os.getpid()):
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def start(asked):
    """Fork the program that was asked for, in which this returns its words; and tell its status once it has ended."""
    message, files, *_ = socket.recv_fds(asked, 1 << 20, 3)
    while not message.endswith(b"\n"):
        more = asked.recv(1 << 20)
        if not more:  # the asking process has ended
            os._exit(1)
        message += more
    wanted = json.loads(message)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    program = os.fork()
    if program:
        for file in files:
            os.close(file)
        if asked in select.select([asked, os.pidfd_open(program)], [], [])[0]:  # it was killed
            kill_all()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        try:
            asked.sendall(b"%d" % status)
        finally:
            os._exit(0)
    asked.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream, file in enumerate(files):
        os.dup2(file, stream)
        os.close(file)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    return wanted["words"]


def run(words):
    """Be `python WORD...`."""
    sys.executable = os.environ["PENSTOCK_TEST_PYTHON"]
    if words[0] == "-u":
        sys.stdout.reconfigure(write_through=True)
        del words[0]
    more = os.environ.get("PYTHONPATH")
    sys.path[:1] = ["", *(map(os.path.abspath, more.split(os.pathsep)) if more else ())]
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    elif words[0] == "-m":
        sys.argv, sys.path[0] = words[1:], os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = words, os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")


def ask(words):
    """Return the status of the program."""
    wanted = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(os.environ["PENSTOCK_TEST_SOCKET"])
        socket.send_fds(asked, [json.dumps(wanted).encode() + b"\n"], [0, 1, 2])
        status = int(asked.recv(100))
    if status < 0:
        with contextlib.suppress(OSError):  # nobody handles SIGKILL
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(ask(sys.argv[2:]))
    run(serve(sys.argv[1], sys.argv[2:]))
