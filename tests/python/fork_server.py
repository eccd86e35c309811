# SPDX-License-Identifier: Apache-2.0
"""Programs in Python that need not import what takes seconds: each is forked from one interpreter that has imported it.

usage: fork_server.py SOCKET MODULE...   import the modules, and serve until the standard input ends
       fork_server.py ask WORD...        be `python WORD...`, forked from the server of PENSTOCK_TEST_SOCKET

A program has the words, the folder, the environment and the three streams of its `ask`, and ends as any does. `ask` ends
when it does, with its status; whoever kills `ask` kills it. What a program starts with sys.executable is forked, too.
All programs of a server have its hash seed, its random states and what the modules read of the environment when they were
imported. Tests of these, or of how an interpreter ends, start fresh ones.
"""
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys


def serve(path, modules):
    """Fork programs; in each this returns, with its words."""
    with socket.socket(socket.AF_UNIX) as listening:
        for name in modules:
            importlib.import_module(name)
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
    return start(asked)


def start(asked):
    """Fork the program that was asked for, in which this returns its words; and tell its status once it has ended."""
    message, files, *_ = socket.recv_fds(asked, 1 << 20, 3)
    while not message.endswith(b"\n"):
        more = asked.recv(1 << 20)
        if not more:  # the asking process has ended
            os._exit(1)
        message += more
    wanted = json.loads(message)
    program = os.fork()
    if program:
        for file in files:
            os.close(file)
        if asked in select.select([asked, os.pidfd_open(program)], [], [])[0]:  # it was killed
            os.kill(program, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        try:
            asked.sendall(b"%d" % status)
        finally:
            os._exit(0)
    asked.close()
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
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(ask(sys.argv[2:]))
    run(serve(sys.argv[1], sys.argv[2:]))
