# SPDX-License-Identifier: Apache-2.0
"""A Python whose programs start with slow modules imported, for tests that start many: see fork_server.py."""
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SERVER = pathlib.Path(__file__).resolve().parent / "fork_server.py"
TORCH = ("torch", "torch.distributed.run")
TRAINING = (*TORCH, "torch._dynamo")  # torch.optim imports it, and it takes as long as all else


@functools.lru_cache(maxsize=None)
def python(*modules):
    """Make a program that a test starts in place of sys.executable. modules: what it imports once, TORCH if none are
    named; modules that need others come after them. It ends with this process."""
    folder = tempfile.mkdtemp(prefix="penstock-template-")
    atexit.register(shutil.rmtree, folder)
    found, path = os.path.join(folder, "python"), serving(*(modules or TORCH))
    pathlib.Path(found).write_text(f"""#!/bin/sh
export PENSTOCK_TEST_SOCKET="{path}" PENSTOCK_TEST_PYTHON="{found}"
exec "{sys.executable}" -SE "{SERVER}" ask "$@"
""", encoding="utf-8")
    os.chmod(found, 0o755)
    return found


@functools.lru_cache(maxsize=None)
def serving(*modules):
    """The socket of a server that has the modules. Where this process itself is forked, as in the step python of
    scripts/test, that is its own server, or one that is forked from that and has not all to import."""
    own = os.environ.get("PENSTOCK_TEST_SOCKET")
    if own and set(modules) <= set(os.environ.get("PENSTOCK_TEST_MODULES", "").split()):
        return own
    folder = tempfile.mkdtemp(prefix="penstock-server-")
    path = os.path.join(folder, "socket")
    # One thread, as its programs have: OpenMP reads this when it is loaded.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = subprocess.Popen([sys.executable, *(["-SE", SERVER, "ask"] if own else []), SERVER, path, *modules],
                              stdin=subprocess.PIPE, env={**variables, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""})

    def close():
        server.stdin.close()
        server.wait()
        shutil.rmtree(folder)
    atexit.register(close)
    end = time.monotonic() + 300
    while not os.path.exists(path):
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the fork server has not started: its status is {server.returncode}")
        time.sleep(0.02)
    return path
