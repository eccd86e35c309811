# SPDX-License-Identifier: Apache-2.0
"""Photographs in class folders, and the data set packed of them: what the examples and the docs work on."""
import os
import subprocess
import unittest


def make(n, folder, n_classes=4):
    """A folder of n images in class subfolders."""
    program = os.environ.get("PENSTOCK_MAKE_IMAGES")
    if not program:
        raise unittest.SkipTest("PENSTOCK_MAKE_IMAGES names no program")
    subprocess.run([program, str(n), folder, "--classes", str(n_classes)], check=True, stdout=subprocess.DEVNULL)


def pack(folder, path):
    """Pack the images of the folder as a data set with the fields jpg, cls and key."""
    program = os.environ.get("PENSTOCK_COMMAND")
    if not program:
        raise unittest.SkipTest("PENSTOCK_COMMAND names no program")
    subprocess.run([program, "pack", folder, path], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
