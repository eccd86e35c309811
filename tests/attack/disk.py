# SPDX-License-Identifier: Apache-2.0
"""disk: every command that writes, with room for less than it needs.

A tmpfs of every size, a tmpfs of every number of inodes, an ext4 with every free space, and every limit of a file's
size (ulimit -f). While the room is too small the command fails with exit status 1 and a message that names the file
and the reason, and what stood at the output is as it was, with nothing else in the folder; with room it succeeds.
Results on a standard output that is full are an error, too. Mounts are private to a child process; where they are
refused, those cases are skipped.
"""
import os
import pathlib
import resource
import shutil
import signal
import subprocess

import material
import namespace
import process
from ledger import say
from output import Case, DataSet, Picture, Work

PAGE = 4096
N_STEPS = 48  # sizes tried of one case, of one page each where they are that few
LARGE = 96 << 20  # bytes of a tmpfs with room for everything
N_INODES = 4096
N_IMAGES = 6
EXT4_SIZE = 16 << 20
REASONS = {"space": ("No space left", "no space"), "limit": ("File too large", "file size", "ulimit -f")}


def cases(args):
    """Return (case, kind of output) of every command that writes."""
    build, root = args.build, pathlib.Path(args.root)
    images = material.images(build, root / "images", N_IMAGES, args.seed)
    others = material.images(build, root / "others", 3, args.seed + 1)
    old = material.pack(build, others, root / "old")
    parts = [material.pack(build, images, root / f"part{i}", "--part", f"{i}/2") for i in range(2)]
    data = material.pack(build, images, root / "data")
    penstock, sets = build.penstock, DataSet(args)
    pack = [penstock, "pack", images, "{out}", "--shard-size", "256K"]
    merge = [build.deny, "linkat=EXDEV", "--", penstock, "merge", *parts, "{out}"]
    show = [penstock, "show", data, "--ids", "0..5", "--size", "96", "-o", "{out}"]
    picture = root / "old.png"
    material.must([penstock, "show", data, "--ids", "1", "--size", "64", "-o", picture])
    return [
        (Case("pack", pack), sets),
        (Case("pack-overwrite", [*pack, "--overwrite"], (), old), sets),
        (Case("pack-pixels", [*pack, "--pixels", "64", "--compress", "zstd"]), sets),
        (Case("merge", merge), sets),
        (Case("merge-overwrite", [*merge, "--overwrite"], (), old), sets),
        (Case("writer", [build.write_sample, "{out}", "60", "1"]), sets),
        (Case("show", show), Picture()),
        (Case("show-replaced", show, (), picture), Picture()),
    ]


class Room:
    """A limit of the room that a command may use. Subclasses set and lift it."""

    unit, reason, name = PAGE, "space", ""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def limit(self, extra):
        """Leave room for `extra` units beyond what is used."""

    def widen(self):
        """Give all room that anyone needs."""

    def prepare(self, case):
        """Return the function that the child calls before its command, or None."""
        return None

    def close(self):
        pass


class Tmpfs(Room):
    name = "tmpfs"

    def __init__(self, root):
        super().__init__(pathlib.Path(root) / "tmpfs")
        self.root.mkdir(exist_ok=True)
        namespace.mount("-t", "tmpfs", "-o", f"size={LARGE},nr_inodes={N_INODES}", "none", self.root)

    def used(self):
        s = os.statvfs(self.root)
        return (s.f_blocks - s.f_bfree) * s.f_frsize

    def limit(self, extra):
        # size=0 would mean no limit; without old output nothing is used, and a page is the smallest size
        namespace.remount(self.root, f"size={max(PAGE, self.used() + extra)}")

    def widen(self):
        namespace.remount(self.root, f"size={LARGE},nr_inodes={N_INODES}")

    def close(self):
        namespace.unmount(self.root)


class Inodes(Tmpfs):
    name, unit = "inodes", 1

    def limit(self, extra):
        s = os.statvfs(self.root)
        namespace.remount(self.root, f"nr_inodes={s.f_files - s.f_ffree + extra}")


class Ext4(Room):
    """A file with a file system that delays allocation, so that it is full at fsync or close."""

    name = "ext4"

    def __init__(self, root):
        super().__init__(pathlib.Path(root) / "ext4")
        image = pathlib.Path(root) / "ext4.image"
        self.filler = self.root / "filler"
        self.root.mkdir(exist_ok=True)
        with open(image, "wb") as f:
            f.truncate(EXT4_SIZE)
        if subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], stderr=subprocess.DEVNULL).returncode:
            raise namespace.Refused("mkfs.ext4 failed")
        namespace.mount("-o", "loop", image, self.root)
        shutil.rmtree(self.root / "lost+found")

    def limit(self, extra):
        os.sync()
        s = os.statvfs(self.root)
        with open(self.filler, "wb") as f:
            n = s.f_bavail * s.f_frsize - extra
            while n > 0:  # the file's own blocks of extents take room as well
                try:
                    os.posix_fallocate(f.fileno(), 0, n)
                    break
                except OSError:
                    n -= PAGE

    def widen(self):
        self.filler.unlink(missing_ok=True)

    def close(self):
        namespace.unmount(self.root)


class FileSize(Room):
    """ulimit -f: no file may become larger."""

    name, reason = "fsize", "limit"

    def __init__(self, root):
        super().__init__(pathlib.Path(root) / "fsize")
        self.most = resource.RLIM_INFINITY

    def limit(self, extra):
        self.most = extra + PAGE  # the message goes to a file, too

    def widen(self):
        self.most = resource.RLIM_INFINITY

    def prepare(self, case):
        most = self.most

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            if case.name == "writer":  # not the command: the library leaves signals to programs
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        return limit


class Attempts:
    """One case in one kind of room, from no room to enough."""

    def __init__(self, args, ledger, room, case, kind):
        self.args, self.ledger, self.room, self.case, self.kind = args, ledger, room, case, kind
        self.label = f"{room.name}-{case.name}"
        self.before = kind.state(case.old) if case.old else ""
        room.widen()
        work = self.work()
        done = work.start().wait()
        if done.status:
            raise material.Broken(f"{self.label}\n{done.shown()}")
        self.after = kind.state(work.out)
        self.need = material.size(work.folder)

    def work(self):
        return Work(self.room.root, self.case)

    def problems(self, work, done, entries):
        """Return the faults of a command that had too little room."""
        found = []
        if done.hung or done.status != 1:
            found.append(f"exit status {done.status}, not 1")
        if not any(reason in done.err for reason in REASONS[self.room.reason]):
            found.append("the message does not give the reason")
        if str(work.out) not in done.err and work.out.name not in done.err:
            found.append("the message does not name the output")
        try:
            if self.kind.state(work.out) != self.before:
                found.append("what stood at the output is not as it was")
        except ValueError as damaged:
            found.append(f"the output is damaged: {damaged}")
        now = material.entries(work.top)
        if now != entries:
            found.append(f"files are left or gone: {' '.join(sorted(set(now) ^ set(entries))[:8])}")
        return found

    def problems_with_room(self, work, done):
        if done.status:
            return [f"with room it fails: {done.shown()}"]
        try:
            if self.kind.state(work.out) != self.after:
                return ["with room it makes another output"]
        except ValueError as damaged:
            return [f"with room its output is damaged: {damaged}"]
        left = self.kind.leftovers(work.folder) + material.entries(work.cwd)
        return [f"files are left: {' '.join(left[:8])}"] if left else []

    def attempt(self, number, extra):
        """Return whether there was enough room."""
        self.room.widen()
        work = self.work()
        entries = material.entries(work.top)
        self.room.limit(extra)
        done = work.start(self.room.prepare(self.case)).wait()
        self.room.widen()
        if done.status == 0:
            found = self.problems_with_room(work, done)
        else:
            found = self.problems(work, done, entries)
            found = found or self.problems_with_room(work, work.start().wait())
        self.ledger.check(self.label, found, f"{extra} of room\n{done.shown()}", f"--attempt {number}")
        return done.status == 0

    def all(self):
        failed, n_enough, number = self.ledger.failed, 0, 0
        step = self.room.unit
        if step > 1:
            step *= max(1, -(-self.need // (N_STEPS * step)))
        while n_enough < 2 and number < 4 * N_STEPS:
            if self.args.attempt in (None, number):
                n_enough += self.attempt(number, number * step)
            elif number > self.args.attempt:
                break
            number += 1
        say(f"{'not ok' if self.ledger.failed > failed else 'ok'} - disk {self.label}: {number} sizes in steps of {step}")


def attack_room(args, ledger, kind_of_room, subjects):
    labels = [f"{kind_of_room.name}-{case.name}" for case, _ in subjects]
    if not any(args.case in label for label in labels):
        return
    try:
        room = kind_of_room(args.root)
    except (namespace.Refused, OSError) as refused:
        ledger.skip(kind_of_room.name, refused)
        return
    try:
        for (case, kind), label in zip(subjects, labels):
            if args.case in label:
                Attempts(args, ledger, room, case, kind).all()
    finally:
        room.close()


def attack_stdout(args, ledger):
    """Every command that prints results, to a device that is always full."""
    penstock, data = args.build.penstock, pathlib.Path(args.root) / "data"
    images, out = pathlib.Path(args.root) / "images", pathlib.Path(args.root) / "made"
    lines = {"pack": ["pack", images, out, "--overwrite"], "info": ["info", data], "verify": ["verify", data],
             "get": ["get", data, "0", "jpg"], "order": ["order", data], "show": ["show", data, "-o", "-"],
             "bench": ["bench", data, "--epochs", "1", "--no-ceilings"], "doctor": ["doctor"], "help": ["--help"]}
    for name, words in lines.items():
        label = f"stdout-{name}"
        if args.case not in label:
            continue
        with open("/dev/full", "w") as full:
            done = process.run([penstock, *words], stdout=full)
        found = [] if done.status == 1 else [f"exit status {done.status}, not 1"]
        if "standard output" not in done.err or "No space left" not in done.err:
            found.append("the message does not give the reason")
        ledger.check(label, found, done.shown())


def attack(args, ledger):
    subjects = cases(args)
    attack_room(args, ledger, FileSize, subjects)
    attack_stdout(args, ledger)

    def mounted(own):
        for kind in (Tmpfs, Inodes, Ext4):
            attack_room(args, own, kind, subjects)
    namespace.within(mounted, ledger)
