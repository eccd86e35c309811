# SPDX-License-Identifier: Apache-2.0
"""namespace: a child process with mounts of its own, which nobody else sees and which end with it."""
import ctypes
import json
import os
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWUSER, MS_REMOUNT = 0x00020000, 0x10000000, 32


class Refused(Exception):
    """This machine lets this user have no namespace, or no mount in it. Its text says why."""


def enter():
    """Give this process mounts of its own; where it is not root, a user namespace in which it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)):
        raise Refused(f"no namespace for mounts: {os.strerror(ctypes.get_errno())}")
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as f:
                f.write(text)
    mount("--make-rprivate", "/")


def mount(*words):
    done = subprocess.run(["mount", *map(str, words)], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refused(done.stderr.strip() or "mount failed")


def remount(folder, options):
    """Change options of a tmpfs. mount(8) would give it its owner again, whom a user namespace may not know."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", str(folder).encode(), b"tmpfs", MS_REMOUNT, options.encode()):
        raise Refused(f"no mount with {options}: {os.strerror(ctypes.get_errno())}")


def unmount(folder):
    subprocess.run(["umount", "--lazy", str(folder)], check=False)


def within(function, ledger):
    """Call function(ledger) in a child with mounts of its own; the ledger's counts come back."""
    sys.stdout.flush()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            try:
                enter()
                function(ledger)
            except Refused as refused:
                ledger.skip("mounts", str(refused))
            ledger.close()
            os.write(write, json.dumps([ledger.passed, ledger.failed, ledger.skipped]).encode())
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(write)
    with open(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        ledger.fail("mounts", "the attack itself failed in its namespace")
        return
    ledger.passed, ledger.failed, ledger.skipped = json.loads(text)
