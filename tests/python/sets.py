# SPDX-License-Identifier: Apache-2.0
"""Small data sets for tests, whose content follows from the sample's number, and a loop that digests."""
import atexit
import functools
import hashlib
import importlib.util
import linecache
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import penstock

ROOT = tempfile.mkdtemp(prefix="penstock-python-")
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
atexit.register(os.chdir, "/")

try:
    import numpy
except ImportError:
    numpy = None


def need_pillow_12():
    """Skip a test whose oracle is a rule that older releases of Pillow do not have."""
    import PIL
    return unittest.skipIf(int(PIL.__version__.split(".")[0]) < 12, f"Pillow {PIL.__version__} is older than 12")


def need_numpy():
    """Call it at the top of a test file that can do nothing without."""
    if numpy is None:
        raise unittest.SkipTest("NumPy is not installed")


def has_torch():
    return importlib.util.find_spec("torch") is not None


def torch_or_skip():
    try:
        import torch
    except ImportError:
        raise unittest.SkipTest("PyTorch is not installed") from None
    return torch


def patiently(function, wrong):
    """Return the function's result once it no longer raises `wrong`; the last try may raise it."""
    for _ in range(500):
        try:
            return function()
        except wrong:
            pass
    return function()


def thread_names():
    """Return the names of this process's threads. A thread that was joined ends in the kernel after that, and stays in
    the list until then: it is left out by its flag PF_EXITING, see proc_pid_stat(5)."""
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/stat" % task, encoding="utf-8", errors="replace") as file:
                name, fields = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue  # it ended meanwhile
        if not int(fields.split()[6]) & 0x4:
            names.append(name)
    return names


def n_threads_of_the_library():
    return sum(name.startswith("pstk") for name in thread_names())


def text(i):
    return "row %d " % i * (i % 4)


def pixels(i):
    return numpy.full((24 + i % 3, 30, 3), i % 256, numpy.uint8)


@functools.lru_cache(maxsize=None)
def small(n=103):
    """n samples: image (raw pixels, all of them i), text, i (i64), x (f32 [3] = i, i + 1, i + 2), tokens (i64,
    i % 5 times i), boxes (f32 [i % 3, 4] = i)."""
    path = os.path.join(ROOT, "small-%d" % n)
    schema = {"image": "image", "text": "utf8", "i": "int64", "x": ("float32", (3,)),
              "tokens": ("int64", (None,)), "boxes": ("float32", (None, 4))}
    with penstock.Writer(path, schema) as writer:
        for i in range(n):
            writer.add(image=pixels(i), text=text(i), i=i, x=numpy.arange(3, dtype="f4") + i,
                       tokens=[i] * (i % 5), boxes=numpy.full((i % 3, 4), i, "f4"))
    return path


@functools.lru_cache(maxsize=None)
def scalars(n=2000):
    """n samples: i (i64), half (f32 = i / 2). Nothing needs NumPy."""
    path = os.path.join(ROOT, "scalars-%d" % n)
    with penstock.Writer(path, {"i": "int64", "half": "float32"}) as writer:
        for i in range(n):
            writer.add(i=i, half=i / 2)
    return path


@functools.lru_cache(maxsize=None)
def vectors(n=2000):
    """As scalars, but each value is an array of one element, of which batches have views."""
    path = os.path.join(ROOT, "vectors-%d" % n)
    with penstock.Writer(path, {"i": ("int64", (1,)), "half": ("float32", (1,))}) as writer:
        for i in range(n):
            writer.add(i=[i], half=[i / 2])
    return path


@functools.lru_cache(maxsize=None)
def photos(n=40):
    """JPEG and PNG files as they are in the world, packed by the command: fields jpg, cls, key."""
    make, command = os.environ.get("PENSTOCK_MAKE_IMAGES"), os.environ.get("PENSTOCK_COMMAND")
    if not make or not command:
        raise unittest.SkipTest("PENSTOCK_MAKE_IMAGES and PENSTOCK_COMMAND name no programs")
    folder, path = os.path.join(ROOT, "files-%d" % n), os.path.join(ROOT, "photos-%d" % n)
    subprocess.run([make, str(n), folder], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([command, "pack", folder, path], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return path


def damaged_jpeg(whole):
    """Return a JPEG with a marker in the middle of its scan: Pillow loads it, guessing what is missing."""
    middle = (whole.rindex(b"\xff\xda") + len(whole)) // 2
    return whole[:middle] + b"\xff\xd3" + whole[middle + 2:]


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(colour_type, rows=((0, 18), (18, 0))):
    """Return a PNG file of 8 bits: 0 is gray, 3 has a palette, as masks of class ids have."""
    made = b"\x89PNG\r\n\x1a\n"
    palette = bytes(i * k % 256 for i in range(256) for k in (1, 7, 91)) if colour_type == 3 else b""
    content = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, colour_type, 0, 0, 0)
    for kind, data in ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", content), (b"IEND", b"")):
        if data or kind == b"IEND":
            made += png_chunk(kind, data)
    return made


def images(dtype="uint8", layout="nhwc"):
    ops = [penstock.ops.RandomResizedCrop(16), penstock.ops.RandomFlip()]
    return penstock.image("image", ops + ([] if dtype == "uint8" else [penstock.ops.Normalize()]), dtype=dtype,
                          layout=layout)


def digest(batches):
    """Return a digest of every byte of batches that are dicts of NumPy arrays or Ragged ones."""
    sha = hashlib.sha256()
    for batch in batches:
        for name, value in batch.items():
            sha.update(name.encode())
            for part in (value.data, value.offsets) if isinstance(value, penstock.Ragged) else (value,):
                sha.update(numpy.ascontiguousarray(part).tobytes())
    return sha.hexdigest()


def strike(step, use, kind=KeyboardInterrupt):
    """Raise a `kind` in front of the step-th line that `use` comes to; False: there are fewer. Not in front of
    `with`: the interpreter comes there at its end as well, where no signal's handler can run."""
    left = step

    def tell(frame, event, _argument):
        nonlocal left
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not line.strip().startswith("with"):
            left -= 1
            if left == 0:
                raise kind
        return tell

    sys.settrace(tell)
    try:
        use()
        return False
    except kind:
        return True
    finally:
        sys.settrace(None)


def as_another_user(folder):
    """Return the command's words to run as a user who owns nothing, with copies in `folder` of command and library: the
    folders of the build may be closed to others, as the home of root is. Skips where that cannot be."""
    command, library = os.environ.get("PENSTOCK_COMMAND"), os.environ.get("PENSTOCK_LIBRARY")
    user = shutil.which("setpriv")
    if os.geteuid() or not (user and command and library):
        raise unittest.SkipTest("missing: root, setpriv, PENSTOCK_COMMAND and PENSTOCK_LIBRARY")
    name = os.path.join(folder, os.path.basename(command))
    shutil.copy(command, name)
    shutil.copy(library, os.path.join(folder, "libpenstock.so.0"))
    os.chmod(folder, 0o755)
    return [user, "--reuid=65534", "--clear-groups", "env", "LD_LIBRARY_PATH=" + folder, name]


def python(code, *arguments, timeout=120, **environment):
    """Run a program of ours in another interpreter; returns the finished process, its output as text."""
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(os.path.dirname(penstock.__file__))
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([package, here]), **environment)
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=env, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
