#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `penstock` command as a user types it. usage: test_command.py PENSTOCK [WORD]; TAP on stdout;
with WORD only the tests that have it in their names.

Needs Pillow for the pictures. With PENSTOCK_TEST_IMAGES = a folder of images, pixels are compared
over all of them, too.
"""
import io
import json
import os
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

try:
    from PIL import Image
except ImportError:
    print("1..0 # SKIP Pillow is not installed")
    sys.exit(0)

PENSTOCK = os.path.abspath(sys.argv[1])
COMMANDS = ["pack", "merge", "column", "info", "verify", "get", "export", "show", "bench", "order", "doctor", "page", "top", "cache"]
TESTS = []


class Skip(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def run(*args, status=0, **kwargs):
    """Run the command; returns (stdout text, stderr text). The exit status must be `status`."""
    out, err = run_raw(*args, status=status, **kwargs)
    return out.decode(), err


def run_raw(*args, status=0, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    command = kwargs.pop("command", PENSTOCK)
    done = subprocess.run([command, *map(str, args)], stderr=subprocess.PIPE, timeout=120, **kwargs)
    err = done.stderr.decode(errors="replace")
    assert done.returncode in (status if isinstance(status, tuple) else (status,)), \
        "%s: exit %d, not %s: %s" % (
        " ".join(map(str, args)), done.returncode, status, err)
    return done.stdout, err


def run_json(*args, status=0, **kwargs):
    out, _ = run(*args, "--json", status=status, **kwargs)
    assert out.endswith("\n") and out.count("\n") == 1, out
    return json.loads(out)


def expect(got, wanted, what=""):
    assert got == wanted, "%s: %r, not %r" % (what, got, wanted)


# ---- CRC32C, slowly -----------------------------------------------------------------------------

def _crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


CRC_TABLE = _crc_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


# ---- pictures -----------------------------------------------------------------------------------

def picture(seed, width, height):
    """Smooth with noise: what JPEG, resizing and clamping treat in all their ways."""
    rng = random.Random(seed)
    small = Image.frombytes("RGB", (8, 8), bytes(rng.randrange(256) for _ in range(192)))
    image = small.resize((width, height), Image.BICUBIC)
    pixels = bytearray(image.tobytes())
    for i in range(0, len(pixels), 3):
        pixels[i + rng.randrange(3)] ^= rng.randrange(32)
    return Image.frombytes("RGB", (width, height), bytes(pixels))


KINDS = {
    "444": lambda im, f: im.save(f, "JPEG", quality=92, subsampling=0),
    "422": lambda im, f: im.save(f, "JPEG", quality=85, subsampling=1),
    "420": lambda im, f: im.save(f, "JPEG", quality=75, subsampling=2),
    "progressive": lambda im, f: im.save(f, "JPEG", quality=80, progressive=True),
    "gray": lambda im, f: im.convert("L").save(f, "JPEG", quality=88),
    "png": lambda im, f: im.save(f, "PNG"),
}


def write_picture(path, kind, seed, width, height):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        KINDS[kind](picture(seed, width, height), f)


class World:
    """A temporary folder with sources and data sets that several tests read."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="penstock-test-")
        rng = random.Random(1)
        self.src = self.path("src")
        names = ["b/2.jpg", "b/10.jpg", "b/nested/1.jpg", "b/n.jpg", "a class/x.JPEG", "a class/A.png",
                 "Z/1.jpeg", "Z/10.jpg", "Z/9.jpg", "c/\u00e4.jpg"]
        names += ["c/%02d.jpg" % i for i in range(17)]
        for i, name in enumerate(names):
            kind = "png" if name.endswith(".png") or i == 12 else list(KINDS)[i % 5]
            write_picture(os.path.join(self.src, name), kind, i, rng.randrange(40, 200),
                          rng.randrange(40, 200))
        with open(os.path.join(self.src, "c", "notes.txt"), "w") as f:
            f.write("no picture\n")
        self.data = self.path("data")
        run("pack", self.src, self.data)

    def path(self, name):
        return os.path.join(self.root, name)

    def fresh(self, name):
        path = self.path(name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def slow_source(self):
        """Thousands of names of one large picture: a pack that lasts."""
        src = self.path("slow")
        if not os.path.isdir(src):
            os.mkdir(src)
            one = os.path.join(src, "000000.jpg")
            write_picture(one, "444", 5, 1200, 900)
            for i in range(1, 4000):
                os.link(one, os.path.join(src, "%06d.jpg" % i))
        return src


def image_folder(root):
    """torchvision.datasets.folder: find_classes and make_dataset -> [(relative path, class)]."""
    classes = sorted(e.name for e in os.scandir(root) if e.is_dir())
    found = []
    for number, name in enumerate(classes):
        for folder, _, files in sorted(os.walk(os.path.join(root, name), followlinks=True)):
            for file in sorted(files):
                if file.lower().endswith((".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif",
                                          ".tiff", ".webp")):
                    found.append((os.path.relpath(os.path.join(folder, file), root), number))
    return classes, found


def center_crop(image, size):
    """torchvision: Resize(round(size * 256 / 224)), CenterCrop(size)."""
    short = int(round(size * 256 / 224))
    w, h = image.size
    if w <= h:
        image = image.resize((short, int(short * h / w)), Image.BILINEAR) if w != short else image
    elif h != short:
        image = image.resize((int(short * w / h), short), Image.BILINEAR)
    w, h = image.size
    left, top = int(round((w - size) / 2.0)), int(round((h - size) / 2.0))
    return image.crop((left, top, left + size, top + size))


def cropped(image, crop, size, told):
    """Return the crop that Pillow makes of an image. told: the position that the command prints."""
    if crop == "center":
        return center_crop(image, size)
    if crop == "random":
        top, left, height, width = told["crop"]
        image = image.crop((left, top, left + width, top + height))
    image = image.resize((size, size), Image.BILINEAR)
    return image.transpose(Image.FLIP_LEFT_RIGHT) if told["flip"] else image


def shown(data, sample_id, path, *options):
    """Return the pixels and the JSON of `show` of one sample."""
    told = run_json("show", data, "--ids", sample_id, "--plain", "-o", path, *options)
    with Image.open(path) as image:
        expect(image.mode, "RGB")
        image.load()
        return image, told


# ---- usage --------------------------------------------------------------------------------------

@test
def version_and_help_are_there_for_every_command(world):
    assert run("--version")[0].startswith("penstock ")
    assert all("\n  %-8s " % c in run("--help")[0] for c in COMMANDS)
    for command in COMMANDS:
        text, err = run(command, "--help")
        assert text.startswith("usage: penstock " + command) and "example" in text and err == ""
        assert "exit status" in text and max(map(len, text.splitlines())) <= 100
        expect(run("help", command)[0], text)


@test
def wrong_usage_is_one_sentence_and_status_2(world):
    d = world.data
    rows = [
        (["pakc"], "did you mean pack?"),
        (["frobnicate"], "penstock --help"),
        (["--verison"], "no option --verison"),
        (["bench", d, "--sice", "3"], "did you mean --size?"),
        (["bench", d, "-x"], "-x"),
        (["bench", d, "--size"], "--size needs a value"),
        (["bench", d, "--json=1"], "--json takes no value"),
        (["bench"], "needs DATA"),
        (["bench", d, "more"], "'more'"),
        (["bench", d, "--size", "0"], "--size"),
        (["bench", d, "--size", "12x"], "12x"),
        (["bench", d, "--size", "-3"], "-3"),
        (["bench", d, "--crop", "middle"], "random, center, none"),
        (["bench", d, "--flip", "1.5"], "--flip"),
        (["bench", d, "--flip", "nan"], "--flip"),
        (["bench", d, "--dtype", "f64"], "u8, f16, bf16, f32"),
        (["bench", d, "--batch-size", "0"], "--batch-size"),
        (["bench", d, "--batch-size", "18446744073709551616"], "--batch-size"),
        (["bench", d, "--global-batch-size", "0"], "--global-batch-size"),
        (["bench", d, "--global-batch-size", "8", "--batch-size", "8"], "together with --batch-size"),
        (["bench", d, "--global-batch-size", "8", "--world", "3"], "as 6 is; or give --uneven"),
        (["bench", d, "--global-batch-size", "2", "--world", "3", "--uneven"], "at least --world, 3"),
        (["bench", d, "--global-batch-size", "1000"], "smaller --global-batch-size"),
        (["bench", d, "--uneven"], "applies to --global-batch-size only"),
        (["bench", d, "--rank", "2", "--world", "2"], "--rank"),
        (["bench", d, "--start-batch", "1000"], "--start-batch"),
        (["bench", d, "--start-batch", "18446744073709551615"], "--start-batch"),
        (["bench", d, "--batch-size", "1000"], "--batch-size"),
        (["bench", d, "--epochs", "0"], "--epochs"),
        (["bench", d, "--device", "tpu"], "host, cuda"),
        (["bench", d, "--device", "tpu:1"], "host, cuda"),
        (["bench", d, "--device", "host:0"], "--device"),
        (["bench", d, "--device", "cuda:"], "cuda:N"),
        (["bench", d, "--device", "cuda:first"], "'first'"),
        (["bench", d, "--device", "cuda:4294967296"], "--device"),
        (["bench", d, "--step-ms", "-1"], "--step-ms"),
        (["bench", d, "--step-ms", "slow"], "--step-ms"),
        (["bench", d, "--seconds", "soon"], "--seconds"),
        (["pack", world.src], "needs SRC and OUT"),
        (["pack", world.src, "o", "--shard-size", "12Q"], "--shard-size"),
        (["pack", world.src, "o", "--shard-size", "99999999T"], "--shard-size"),
        (["pack", world.src, "o", "--part", "4/4"], "--part"),
        (["pack", world.src, "o", "--part", "1"], "--part"),
        (["pack", world.src, "o", "--task", "a"], "--task: value is 'a'; must come with --pack-id"),
        (["pack", world.src, "o", "--pack-id", "0" * 32], "must come with --task KEY"),
        (["pack", world.src, "o", "--pack-id", "0" * 31, "--task", "a"], "--pack-id: value is '0000"),
        (["pack", world.src, "o", "--pack-id", "A" * 32, "--task", "a"], "32 hex digits in lower case"),
        (["pack", world.src, "o", "--attempt", "1"], "--attempt: value is 1; must come with --task KEY"),
        (["pack", world.src, "o", "--task", "a", "--pack-id", "0" * 32, "--part", "0/2"], "must not come with --part"),
        (["pack", world.src, "o", "--task", "a b", "--pack-id", "0" * 32], "task: value is 'a b'; must be 1 to 200"),
        (["pack", world.src, "o", "--task", "a", "--pack-id", "0" * 32, "--attempt", "4294967296"], "--attempt"),
        (["merge", world.data, "o", "--pack-id", "17"], "--pack-id: value is '17'"),
        (["pack", world.src, "o", "--compress", "lzma"], "--compress"),
        (["pack", world.src, "o", "--compress", "zstd:99"], "--compress"),
        (["merge", world.data], "PART"),
        (["get", d, "0"], "FIELD"),
        (["get", d, "99999", "jpg"], "0 to 26"),
        (["get", d, "0", "jgp"], "did you mean 'jpg'"),
        (["show", d, "--ids", "27", "-o", "x.png"], "26"),
        (["show", d, "--ids", "3..1", "-o", "x.png"], "--ids"),
        (["show", d, "--ids", "1,,2", "-o", "x.png"], "--ids"),
        (["show", d, "--dtype", "f32", "-o", "x.png"], "u8"),
        (["show", d, "-o", "-", "--json"], "--json"),
        (["order", d, "--order", "random"], "full, sequential"),
        (["verify", d, "--threads", "many"], "--threads"),
    ]
    for args, part in rows:
        out, err = run(*args, status=2)
        assert part in err and err.count("\n") == 1 and out == "", "%r: %r %r" % (args, err, out)
    _, err = run(status=2)
    assert err.startswith("usage: penstock")


# ---- pack ---------------------------------------------------------------------------------------

@test
def pack_keeps_every_byte_in_the_order_of_imagefolder(world):
    classes, files = image_folder(world.src)
    info = run_json("info", world.data)
    expect(info["n_samples"], len(files))
    expect(info["classes"], classes)
    expect([f["name"] for f in info["fields"]], ["jpg", "cls", "key"])
    for i, (path, cls) in enumerate(files):
        expect(run("get", world.data, i, "key")[0], path)
        expect(struct.unpack("<q", run_raw("get", world.data, i, "cls")[0])[0], cls)
        with open(os.path.join(world.src, path), "rb") as f:
            assert run_raw("get", world.data, i, "jpg")[0] == f.read(), path
    expect(run_json("verify", world.data)["n_bad"], 0)
    out, err = run("verify", world.data, "--decode")
    assert ": no damage found, every image decodes, in " in out and err == ""


@test
def pack_says_how_much_it_packed_and_what_is_next(world):
    out, err = run("pack", world.src, world.fresh("said"))
    assert out.startswith("packed 27 images of 4 classes into 1 shard: ") and "next: " in out, out
    assert "1 file in" in err and err.count("\n") == 1, err
    told = run_json("pack", world.src, world.fresh("said"), "--threads", 3)
    expect((told["n_samples"], told["n_shards"], told["skipped"]), (27, 1, []))


@test
def a_flat_folder_has_no_classes(world):
    flat = world.fresh("flat")
    for i, name in enumerate(["b.jpg", "a.jpg", "C.png"]):
        write_picture(os.path.join(flat, name), "png" if i == 2 else "420", i, 50, 60)
    os.mkdir(os.path.join(flat, "empty"))
    out = world.fresh("flat-data")
    run("pack", flat, out)
    expect([f["name"] for f in run_json("info", out)["fields"]], ["jpg", "key"])
    expect([run("get", out, i, "key")[0] for i in range(3)], ["C.png", "a.jpg", "b.jpg"])
    expect(run_json("bench", out, "--epochs", 1, "--no-ceilings")["samples"], 3)


@test
def identity_and_content_do_not_depend_on_threads_shards_or_compression(world):
    wanted = run_json("info", world.data)["identity"]
    rows = [["--threads", 1], ["--threads", 7], ["--shard-size", "64K"], ["--compress", "zstd"],
            ["--compress", "zstd:19", "--shard-size", "100K", "--threads", 4]]
    for row in rows:
        out = world.fresh("other")
        run("pack", world.src, out, *row)
        info = run_json("info", out)
        n = 16 if "--compress" in row else 32  # the second half hashes the schema, codecs included
        expect(info["identity"][:n], wanted[:n], row)
        if "--shard-size" in row:
            assert info["n_shards"] > 1
        expect(run_json("verify", out)["n_bad"], 0)
        expect(run_raw("get", out, 5, "jpg")[0], run_raw("get", world.data, 5, "jpg")[0])


@test
def unreadable_images_are_refused_by_name_and_nothing_is_packed(world):
    src, out = world.fresh("bad"), world.fresh("bad-data")
    for i in range(6):
        write_picture(os.path.join(src, "x", "%d.jpg" % i), "420", i, 64, 48)
    with open(os.path.join(src, "x", "2.jpg"), "rb+") as f:
        f.truncate(os.path.getsize(f.name) - 100)
    with open(os.path.join(src, "x", "text.jpg"), "w") as f:
        f.write("this is no picture\n" * 10)
    open(os.path.join(src, "x", "zero.jpg"), "w").close()
    os.mkfifo(os.path.join(src, "x", "pipe.jpg"))
    os.symlink("nowhere", os.path.join(src, "x", "link.jpg"))
    bad = ["2.jpg", "link.jpg", "pipe.jpg", "text.jpg", "zero.jpg"]
    _, err = run("pack", src, out, status=1)
    lines = [line.split(":")[0].strip() for line in err.splitlines() if line.startswith("  ")]
    expect(lines, ["x/" + name for name in bad])
    assert "--skip-bad" in err and not os.path.exists(os.path.join(out, "manifest.json"))
    assert run("info", out, status=2)[1].count("\n") == 1
    told = run_json("pack", src, out, "--skip-bad")
    expect([s["path"] for s in told["skipped"]], ["x/" + name for name in bad])
    expect(told["n_samples"], 5)
    expect([run("get", out, i, "key")[0] for i in range(5)],
           ["x/%d.jpg" % i for i in (0, 1, 3, 4, 5)])
    expect(run_json("verify", out)["n_bad"], 0)


@test
def pack_does_not_replace_a_data_set_unless_told(world):
    out = world.fresh("there")
    run("pack", world.src, out)
    small = world.fresh("one")
    write_picture(os.path.join(small, "1.jpg"), "420", 1, 50, 50)
    _, err = run("pack", small, out, status=2)
    assert out in err and "--overwrite" in err and err.count("\n") == 1, err
    expect(run_json("info", out)["n_samples"], 27)
    run("pack", small, out, "--overwrite")
    expect(run_json("info", out)["n_samples"], 1)
    expect(run_json("verify", out)["n_bad"], 0)
    other = world.fresh("other")
    os.mkdir(other)
    with open(os.path.join(other, "manifest.json"), "w") as f:
        f.write('{"name": "app"}')
    for more in ((), ("--overwrite",)):
        _, err = run("pack", small, other, *more, status=2)
        assert other in err and "another program wrote its manifest.json" in err and "--overwrite" not in err, err


@test
def pack_refuses_sources_without_images(world):
    empty = world.fresh("empty")
    os.mkdir(empty)
    hollow = world.fresh("hollow")
    write_picture(os.path.join(hollow, "full", "1.jpg"), "420", 1, 50, 50)
    os.mkdir(os.path.join(hollow, "void"))
    loop = world.fresh("loop")
    write_picture(os.path.join(loop, "a", "1.jpg"), "420", 1, 50, 50)
    os.symlink("..", os.path.join(loop, "a", "up"))
    for src, part in [(empty, empty), (world.path("absent"), "absent"), (hollow, "void"),
                      (os.path.join(world.src, "c", "notes.txt"), "notes.txt"), (loop, "link")]:
        out = world.fresh("never")
        _, err = run("pack", src, out, status=2)
        assert part in err and err.count("\n") == 1, err
        assert not os.path.exists(os.path.join(out, "manifest.json"))


@test
def the_output_may_lie_inside_the_source(world):
    src = world.fresh("inside")
    write_picture(os.path.join(src, "a", "1.jpg"), "420", 1, 50, 50)
    for _ in range(2):
        run("pack", ".", "out", "--overwrite", cwd=src)
    expect(run_json("info", os.path.join(src, "out"))["classes"], ["a"])


@test
def merged_parts_are_the_single_pack(world):
    wanted = run_json("info", world.data)
    for n in (1, 3, 7):
        parts = [world.fresh("part%d" % i) for i in range(n)]
        for i in reversed(range(n)):
            run("pack", world.src, parts[i], "--part", "%d/%d" % (i, n))
        out = world.fresh("merged")
        told, err = run("merge", *parts, out)
        assert told.startswith("merged %d part%s: 27 samples" % (n, "s"[n == 1:])), told
        info = run_json("info", out)
        for key in ("identity", "n_samples", "classes"):
            expect(info[key], wanted[key], key)
        expect(run_json("verify", out)["n_bad"], 0)
        for i in (0, 8, 9, 17, 18, 26):
            expect(run("get", out, i, "key")[0], run("get", world.data, i, "key")[0])
        if n == 3:
            digests = [run_json("bench", d, "--digest", "--no-ceilings", "--size", 32,
                                "--batch-size", 5, "--last", "short")["digest"]
                       for d in (out, world.data)]
            expect(digests[0], digests[1])
            err = run("merge", *parts, out, status=2)[1]
            assert out in err and "--overwrite" in err and err.count("\n") == 1, err
            other = world.fresh("other")
            small = world.fresh("one")
            write_picture(os.path.join(small, "1.jpg"), "420", 1, 50, 50)
            run("pack", small, other)
            run("merge", *parts, other, "--overwrite")
            expect(run_json("info", other)["identity"], wanted["identity"])
            expect(run_json("verify", other)["n_bad"], 0)
            err = run("merge", *parts, parts[1], "--overwrite", status=2)[1]
            assert "one of the parts" in err, err
            run("merge", parts[0], parts[2], world.fresh("merged2"), status=2)
            run("merge", parts[0], world.path("absent"), world.fresh("merged2"), status=2)


def start_slow_pack(world, out):
    process = subprocess.Popen([PENSTOCK, "pack", world.slow_source(), out, "--threads", "1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        # The list of what the writer makes is there first, and alone is no leftover.
        made = [f for f in os.listdir(out) if f != ".tmp-writer"] if os.path.isdir(out) else []
        if any(os.path.getsize(os.path.join(out, f)) for f in made):
            return process
        time.sleep(0.02)
    raise AssertionError("pack did not get going: %r" % (process.communicate(),))


@test
def ctrl_c_during_pack_leaves_no_data_set_and_says_so(world):
    for number, status in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
        out = world.fresh("stopped")
        process = start_slow_pack(world, out)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
        expect(process.returncode, status)
        said = [line for line in err.splitlines() if not line.startswith(b"penstock: packing: ")]  # a slow machine
        assert len(said) == 1 and b"interrupted" in said[0], err
        left = os.listdir(out) if os.path.isdir(out) else []
        expect(left, [])


@test
def a_killed_pack_leaves_no_data_set_and_the_next_one_starts_over(world):
    out = world.fresh("killed")
    process = start_slow_pack(world, out)
    process.kill()
    process.communicate(timeout=120)
    run("info", out, status=2)
    _, err = run("pack", world.src, out)
    assert "starting over" in err, err
    expect(run_json("verify", out)["n_bad"], 0)
    expect(run_json("info", out)["identity"], run_json("info", world.data)["identity"])
    expect([f for f in os.listdir(out) if f.startswith(".tmp-")], [])


# ---- bad data -----------------------------------------------------------------------------------

def copy_of(world, name):
    out = world.fresh(name)
    shutil.copytree(world.data, out)
    return out, [os.path.join(out, f) for f in os.listdir(out) if f.endswith(".pstk")][0]


READERS = [["info"], ["verify"], ["order"], ["bench", "--no-ceilings", "--epochs", "1"]]


@test
def what_is_no_data_set_is_one_sentence_with_the_path_and_status_2(world):
    empty = world.fresh("nothing")
    os.mkdir(empty)
    for path in [world.path("absent"), empty, os.path.join(world.src, "c", "notes.txt")]:
        for command in READERS:
            out, err = run(command[0], path, *command[1:], status=2)
            assert path in err and err.count("\n") == 1 and out == "", "%s: %r" % (command, err)
        run("get", path, 0, "jpg", status=2)
        run("show", path, "-o", world.path("x.png"), status=2)
        run("merge", path, world.fresh("never"), status=2)


@test
def another_version_is_status_2_and_a_damaged_manifest_status_1(world):
    out, _ = copy_of(world, "version")
    path = os.path.join(out, "manifest.json")
    with open(path, "rb") as f:
        text = f.read()
    for version, told in ((1, "manifest.json is of version 1; this library reads version 2 (pack again, to another "
                              "directory)"),
                          (3, "a newer penstock wrote it: its version is 3; this penstock reads version 2")):
        body = text[:-22].replace(b'"version":2', b'"version":%d' % version)
        assert body != text[:-22]
        with open(path, "wb") as f:
            f.write(body + b',"crc32c":"%08x"}\n' % crc32c(body))
        for command in [*READERS, ["merge", world.fresh("never")]]:
            _, err = run(command[0], out, *command[1:], status=2)
            assert told in err and err.count("\n") == 1, err
    for damaged in (text[:-300], text[:100] + b"?" + text[101:], text + b" ", b""):
        with open(path, "wb") as f:
            f.write(damaged)
        for command in READERS:
            _, err = run(command[0], out, *command[1:], status=1)
            assert "manifest" in err, err
        expect(run_json("verify", out, status=1)["n_bad"], 1)


@test
def bench_stops_at_the_damaged_record_and_names_it(world):
    out, shard = copy_of(world, "stops")
    with open(shard, "rb+") as f:
        f.seek(4096 + 2000)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 1]))
    _, err = run("bench", out, "--epochs", 1, "--no-ceilings", "--batch-size", 1, status=1)
    assert os.path.basename(shard) in err and "record" in err, err


@test
def replaced_samples_are_counted_when_they_are_delivered(world):
    out, shard = copy_of(world, "replaced")
    with open(shard, "rb+") as f:
        f.seek(4096 + 2000)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 1]))
    for slots in (2, 4, 64):  # with more the next epoch is read ahead as well
        line = ["bench", out, "--epochs", 1, "--no-ceilings", "--batch-size", 1, "--slots", slots, "--size", 8,
                "--on-bad", "replace"]
        expect(run_json(*line)["n_replacements"], 1)
        text, _ = run(*line)
        assert "; 1 bad sample was replaced\n" in text, text


# ---- order, pixels, digests ---------------------------------------------------------------------

def order(data, *options):
    out, _ = run("order", data, *options)
    return [[int(n) for n in line.split()] for line in out.splitlines()]


@test
def order_lists_every_sample_once_and_ranks_share_it(world):
    expect(order(world.data, "--order", "sequential", "--batch-size", 10, "--last", "short"),
           [list(range(0, 10)), list(range(10, 20)), list(range(20, 27))])
    whole = order(world.data, "--seed", 5, "--epoch", 2, "--batch-size", 27)[0]
    expect(sorted(whole), list(range(27)))
    assert whole != order(world.data, "--seed", 5, "--epoch", 3, "--batch-size", 27)[0]
    assert whole != order(world.data, "--seed", 6, "--epoch", 2, "--batch-size", 27)[0]
    for last, n in (("drop", 3), ("pad", 4), ("short", 4)):
        ranks = [order(world.data, "--seed", 5, "--epoch", 2, "--batch-size", 4, "--world", 2,
                       "--rank", r, "--last", last) for r in range(2)]
        expect([len(r) for r in ranks], [n, n], last)
        for k in range(n):
            together = sum(map(list, zip(*[r[k] for r in ranks])), [])
            expect(together[:len(whole[8 * k:8 * k + 8])],
                   whole[8 * k:8 * k + 8][:len(together)], last)
    alone = order(world.data, "--global-batch-size", 8, "--last", "short")
    expect([len(line) for line in alone], [8, 8, 8, 3])
    for n in (2, 3, 5):
        ranks = [order(world.data, "--global-batch-size", 8, "--last", "short", "--world", n, "--rank", r, "--uneven")
                 for r in range(n)]
        expect([sorted(sum(parts, [])) for parts in zip(*ranks)], [sorted(line) for line in alone])
    lines = order(world.data, "--batch-size", 4)
    expect(order(world.data, "--batch-size", 4, "--start-batch", 2, "--batches", 3), lines[2:5])
    told = run_json("order", world.data, "--batch-size", 4, "--start-batch", 2, "--batches", 3)
    expect(told["batches"], lines[2:5])


@test
def shown_pixels_are_pillows(world):
    """In contact sheets; that a sample shown alone is the same is for show_writes_sheets_and_to_standard_output."""
    _, files = image_folder(world.src)
    originals = [os.path.join(world.src, path) for path, _ in files]
    flips = set()
    for size in (32, 61, 224):
        flips |= sheets_differ(world, world.data, originals, size)
    expect(flips, {True, False})


@test
def shown_pixels_are_pillows_in_the_given_folder(world):
    src = os.environ.get("PENSTOCK_TEST_IMAGES")
    if not src:
        raise Skip("PENSTOCK_TEST_IMAGES names no folder")
    data = world.fresh("given")
    run("pack", src, data)
    n = run_json("info", data)["n_samples"]
    originals = [os.path.join(src, run("get", data, i, "key")[0]) for i in range(n)]
    sheets_differ(world, data, originals, 224)
    print("# %d images, 3 crops each, 0 bytes differ" % n)


def sheets_differ(world, data, originals, size):
    """Compare the three kinds of crop of all samples with Pillow's; returns whether they were flipped: a set."""
    flips = set()
    for crop in ("none", "center", "random"):
        told, rows = sheet(world, data, size, "--crop", crop, "--seed", 7, "--epoch", 3)
        expect(len(told), len(originals))
        for sample, row, original in zip(told, rows, originals):
            with Image.open(original) as opened:
                wanted = cropped(opened.convert("RGB"), crop, size, sample)
            assert row == wanted.tobytes(), "%s: %s %r" % (crop, original, sample)
            flips.add(sample["flip"])
    return flips


def sheet(world, data, size, *options):
    """Return the text that the command prints of every sample, and the pixels of each from one contact sheet."""
    png = world.path("sheet.png")
    n = run_json("info", data)["n_samples"]
    told = run_json("show", data, "--ids", "0..%d" % (n - 1), "--plain", "-o", png, "--size", size, *options)
    expect([s["id"] for s in told["samples"]], list(range(n)))
    with Image.open(png) as image:
        columns = (image.size[0] + 4) // (size + 4)
        cut = [image.crop((left, top, left + size, top + size)).tobytes()
               for i in range(n)
               for left, top in [((i % columns) * (size + 4), (i // columns) * (size + 4))]]
    return told["samples"], cut


def digest(data, *options):
    return run_json("bench", data, "--digest", "--no-ceilings", *options)


@test
def digests_are_the_crc_of_the_rows_that_show_and_order_tell(world):
    _, files = image_folder(world.src)
    for pipeline in (["--crop", "random", "--seed", 3, "--epoch", 4], ["--crop", "center", "--seed", 9]):
        _, rows = sheet(world, world.data, 24, *pipeline)
        seeds = [o for o in pipeline[2:]]
        for line in (["--batch-size", 4], ["--batch-size", 5, "--last", "short", "--start-batch", 2],
                     ["--batch-size", 3, "--world", 3, "--rank", 1, "--last", "short"],
                     ["--global-batch-size", 8, "--world", 3, "--rank", 1, "--uneven", "--start-batch", 1],
                     ["--batch-size", 5, "--order", "windowed", "--ways", 2, "--block", 3, "--last", "short"],
                     ["--batch-size", 6, "--order", "sequential", "--start-batch", 1]):
            crc, n = 0, 0
            for batch in order(world.data, *line, *seeds):
                crc = crc32c(b"".join(rows[i] for i in batch), crc)
                crc = crc32c(b"".join(struct.pack("<q", files[i][1]) for i in batch), crc)
                n += len(batch)
            told = digest(world.data, "--size", 24, *pipeline, *line)
            expect((told["digest"], told["samples"]), ("%08x" % crc, n), line)


@test
def digests_do_not_depend_on_threads_slots_or_reader(world):
    for line in (["--size", 40, "--batch-size", 4, "--last", "short", "--epochs", 3],
                 ["--size", 32, "--batch-size", 7, "--dtype", "f16", "--layout", "nchw", "--last", "pad",
                  "--start-batch", 1, "--epochs", 2]):
        seen = {}
        for row in [["--threads", n] for n in (1, 2, 4, 7)] + [["--slots", n] for n in (2, 8)] + [
                ["--reader", "threads"], ["--io", "buffered"], ["--threads", 3, "--slots", 2]]:
            seen[digest(world.data, *line, *row)["digest"]] = row
        expect(len(seen), 1, seen)
        try:
            for row in (["--reader", "io_uring"], ["--io", "direct"]):
                seen[digest(world.data, *line, *row)["digest"]] = row
        except AssertionError as refused:
            print("# not here: %s" % refused)
        expect(len(seen), 1, seen)


@test
def dtypes_and_layouts_all_run_and_differ(world):
    seen = set()
    for dtype in ("u8", "f16", "bf16", "f32"):
        for layout in ("nhwc", "nchw"):
            seen.add(digest(world.data, "--size", 16, "--dtype", dtype, "--layout", layout)["digest"])
    expect(len(seen), 8)


# ---- bench, show --------------------------------------------------------------------------------

@test
def bench_reports_every_key(world):
    told = run_json("bench", world.data, "--epochs", 2, "--batch-size", 4, "--size", 32)
    expect((told["samples"], told["batches"], told["digest"]), (48, 12, None))
    for key in ("samples_per_second", "seconds", "bytes_read", "threads", "rss_peak_bytes"):
        assert told[key] > 0, key
    assert told["reader"]["backend"] in ("io_uring", "threads")
    assert isinstance(told["reader"]["direct"], bool) and isinstance(told["reader"]["registered"], bool)
    for stage in ("reader", "workers", "consumer"):
        expect(set(told["stages"][stage]), {"busy_ns", "starved_ns", "blocked_ns", "cpu_ns", "core_wait_ns", "items",
                                             "threads"})
    used = {name: told["stages"][name]["cpu_ns"] for name in ("reader", "workers", "consumer")}
    assert used["workers"] > 0 and used["consumer"] == 0 and told["stages"]["consumer"]["core_wait_ns"] == 0, used
    assert told["ceilings"]["storage_bytes_per_second"] > 0
    # New data is in memory, and the line of each ceiling that reads says so.
    expect([told["ceilings"][key] for key in ("storage_from_page_cache", "loader_from_page_cache")], [True, True])
    rate = told["reference"]["libjpeg_turbo_samples_per_second"]
    assert abs(told["reference"]["libjpeg_turbo_ratio"] * rate / told["samples_per_second"] - 1) < 1e-6, told
    expect(set(told["ratios"]), {"storage", "memory", "loader"})
    assert told["bottleneck"] in ("unknown", "storage", "decode", "copy", "consumer", "reader", "cores")
    expect((told["device"], told["step_ms"], "copy" in told["ratios"]), (None, 0, False))
    expect(told["forecast"] is None, told["bottleneck"] == "unknown")
    told = run_json("bench", world.data, "--epochs", 1, "--no-ceilings")
    expect((told["ceilings"], told["reference"]), (None, None))
    told = run_json("bench", world.data, "--seconds", 0.5, "--no-ceilings", "--size", 32)
    assert 0.5 <= told["seconds"] < 60
    out, err = run("bench", world.data, "--epochs", 1, "--size", 32)
    for part in ("samples/s", "starved", "reader ", "memory ", "ceiling", "ratio", "  bottleneck "):
        assert part in out, part
    assert re.search(r"^  reference   [\d.]+ x libjpeg-turbo, which decodes [\d,]+ whole images/s", out, re.M), out
    assert "decode, " not in out.split("ceiling")[1].split("reference")[0], out
    expect(err, "")
    assert max(map(len, out.splitlines())) <= 86


@test
def a_step_on_the_host_keeps_the_caller_busy(world):
    for step_ms in (80, 400, 2000):  # longer where the machine is too busy to be ahead of the step
        line = ["bench", world.data, "--epochs", 2, "--batch-size", 4, "--size", 16, "--no-ceilings",
                "--step-ms", step_ms]
        told = run_json(*line)
        if told["bottleneck"] == "consumer":
            break
    expect((told["device"], told["step_ms"], told["bottleneck"]), (None, step_ms, "consumer"))
    assert told["seconds"] >= 12 * step_ms / 1000 and "--step-ms" in told["advice"], told
    assert "uploader" not in told["stages"]
    assert "device  " not in run(*line)[0]


def thread_names(pid):
    names = []
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, task)) as file:
                names.append(file.read().strip())
        except FileNotFoundError:
            pass
    return names


@test
def bench_ends_cleanly_on_ctrl_c(world):
    process = subprocess.Popen([PENSTOCK, "bench", world.data, "--seconds", "60", "--size", "32"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(12000):
        if any(name.startswith("pstk-work") for name in thread_names(process.pid)):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    expect(process.returncode, 130)
    assert b"interrupted" in err and out == b""


@test
def show_writes_sheets_and_to_standard_output(world):
    png = world.path("sheet.png")
    run("show", world.data, "--ids", "0..15", "--plain", "-o", png, "--size", 50)
    with Image.open(png) as image:
        expect(image.size, (212, 212))
    data, _ = run_raw("show", world.data, "--ids", "3,1,7..9", "--plain", "-o", "-", "--size", 50)
    with Image.open(io.BytesIO(data)) as image:
        expect(image.size, (158, 104))
        image.load()
        third = image.crop((54, 0, 104, 50)).tobytes()
    one, _ = shown(world.data, 1, png, "--size", 50)
    assert one.tobytes() == third
    folder = world.fresh("show-here")
    os.mkdir(folder)
    for ids, says in (("3", "penstock-show.png: sample 3, 50 x 65 pixels\n"),
                      ("0..4", "penstock-show.png: 5 samples in 2 rows of 3, 158 x 134 pixels\n")):
        expect(run("show", world.data, "--ids", ids, "--size", 50, cwd=folder)[0], says)
        expect(os.listdir(folder), ["penstock-show.png"])
    run_json("show", world.data, "--ids", 1, cwd=world.src)
    assert not os.path.exists(os.path.join(world.src, "penstock-show.png"))
    _, err = run("show", world.data, "--ids", 1, "-o", "/nowhere/x.png", status=2)
    assert "/nowhere/x.png" in err


# ---- terminals and pipes ------------------------------------------------------------------------

@test
def a_terminal_gets_a_bar_and_others_get_quiet(world):
    out = world.fresh("bar")
    main, child = pty.openpty()
    process = subprocess.Popen([PENSTOCK, "pack", world.slow_source(), out], stdout=subprocess.PIPE,
                               stderr=child, env=dict(os.environ, TERM="xterm"))
    os.close(child)
    text = b""
    while text.count(b"left") < 3 and process.poll() is None:
        text += os.read(main, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while True:
            piece = os.read(main, 4096)
            if not piece:
                break
            text += piece
    except OSError:
        pass
    process.communicate(timeout=120)
    os.close(main)
    expect(process.returncode, 130)
    assert b"packing [" in text and b"images/s" in text.replace(b"images, ", b"images/s"), text
    assert text.rstrip().endswith(b"is no data set"), text[-200:]
    flat = world.fresh("quiet")
    write_picture(os.path.join(flat, "1.jpg"), "420", 1, 50, 50)
    expect(run("pack", flat, world.fresh("quiet-data"))[1], "")


@test
def a_closed_or_full_output_is_no_crash(world):
    process = subprocess.Popen([PENSTOCK, "get", world.data, "0", "jpg"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdout.close()
    process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) in (0, -signal.SIGPIPE)
    for args in (["info", world.data], ["get", world.data, 0, "jpg"], ["--help"],
                 ["info", world.data, "--json"]):
        with open("/dev/full", "wb") as full:
            _, err = run_raw(*args, status=1, stdout=full)
        assert "standard output" in err, err


def main(all_tests):
    """Run those that have the last argument in their names, or all."""
    word = sys.argv[-1] if len(sys.argv) > 2 and not os.path.exists(sys.argv[-1]) else ""
    tests = [t for t in all_tests if word in t.__name__]
    print("1..%d" % len(tests))
    world, failed = None, 0
    try:
        world = World()
        for number, case in enumerate(tests, 1):
            name = case.__name__.replace("_", " ")
            try:
                case(world)
                print("ok %d - %s" % (number, name))
            except Skip as why:
                print("ok %d - %s # SKIP %s" % (number, name, why))
            except Exception:
                failed += 1
                print("not ok %d - %s" % (number, name))
                print("".join("# %s\n" % line for line in traceback.format_exc().splitlines()), end="")
            sys.stdout.flush()
    finally:
        if world:
            shutil.rmtree(world.root, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(TESTS))
