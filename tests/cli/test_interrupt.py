#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time from Ctrl-C to the end of a command. TAP.

usage: test_interrupt.py PENSTOCK MAKE_IMAGES
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from PIL import Image

PENSTOCK = os.path.abspath(sys.argv[1])
TRIES = 30  # one of them must be in time, as other programs run here too


def stopped(arguments, seconds):
    """Run a command, interrupt it after so long: its status, what it said, how late it ended; None: it had ended."""
    process = subprocess.Popen([PENSTOCK, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(seconds)
    if process.poll() is not None:
        process.communicate()
        return None
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    return process.returncode, err, time.monotonic() - begun


def verify_ends_within_100_ms_of_ctrl_c(root):
    """One image of 36 megapixels takes most of a second to decode, and nothing is reported meanwhile."""
    folder, out = os.path.join(root, "huge"), os.path.join(root, "packed")
    os.mkdir(folder)
    Image.effect_noise((6000, 6000), 90).convert("RGB").save(os.path.join(folder, "0.jpg"), quality=90)
    subprocess.run([PENSTOCK, "pack", folder, out, "--jpeg", "keep"], check=True, capture_output=True)
    begun = time.monotonic()
    subprocess.run([PENSTOCK, "verify", out, "--decode"], check=True, capture_output=True)
    whole = time.monotonic() - begun
    for part in (0.3, 0.5):
        late = []
        for _ in range(TRIES):
            found = stopped(["verify", out, "--decode"], whole * part)
            if not found:  # the machine has become faster since
                part *= 0.7
                continue
            status, err, seconds = found
            assert status == 130, status
            assert b"interrupted: no damage was found so far" in err, err
            late.append(seconds)
            if seconds < 0.1:
                break
        assert late and min(late) < 0.1, "%s s late, of %.3f s" % (late, whole)


def main(tests):
    failed = 0
    print("1..%d" % len(tests))
    for number, test in enumerate(tests, 1):
        root = tempfile.mkdtemp(prefix="penstock-interrupt-")
        try:
            test(root)
            print("ok %d - %s" % (number, test.__name__.replace("_", " ")))
        except Exception as why:  # any failure is the test's
            failed += 1
            print("not ok %d - %s\n# %r" % (number, test.__name__.replace("_", " "), why))
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main([verify_ends_within_100_ms_of_ctrl_c]))
