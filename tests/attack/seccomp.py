# SPDX-License-Identifier: Apache-2.0
"""seccomp: system calls that a container refuses, from the start or after some that were let through.

Whatever is refused from the start, bench gives the digest that it gives without refusals, and reports what it does
without; a reader that was asked for by name is an error that names it. A refusal later gives the same digest or an
error that names its reason, and no read hangs. A pack whose calls fail packs everything or nothing: a failure of the
machine is no bad image.
"""
import json
import pathlib
import resource

import material
import process
from ledger import say
from output import Case, DataSet, Work

N_IMAGES = 40
ERRORS = ("EPERM", "ENOSYS", "EACCES")
URING = ("io_uring_setup", "io_uring_enter", "io_uring_register")
LATER = (1, 2, 3, 5, 8, 13, 40, 150)  # calls let through
LIMIT = 30  # seconds of one command
FEW_FILES = 12  # descriptors, with more threads than that
# Calls that the machine refuses to a pack, after a number of them; the program's own start makes the first ones.
MACHINE = [(call, error, n)
           for calls, errors, counts in (
               (("openat",), ("EMFILE", "EACCES", "ESTALE", "ENOMEM"), (0, 100, *range(160, 300, 10))),
               (("read", "pread"), ("EIO",), (20, 80, 100, 120, 140)),
               (("fsync",), ("EIO", "ENOSPC"), range(6)))
           for call in calls for error in errors for n in counts]


class Bench:
    """bench on one data set, without and with refusals."""

    def __init__(self, args, ledger, data):
        self.args, self.ledger, self.data = args, ledger, data
        self.digest = self.result(self.run([]))["digest"]

    def run(self, rules, *options, prepare=None):
        deny = [self.args.build.deny, *rules, "--"] if rules else []
        return process.run([*deny, self.args.build.penstock, "bench", self.data, "--epochs", "1", "--digest", "--size",
                            "64", "--batch-size", "8", "--last", "short", "--no-ceilings", "--json", *options],
                           LIMIT, prepare=prepare)

    @staticmethod
    def result(done):
        return json.loads(done.text) if done.status == 0 else {"digest": "", "reader": {"backend": "", "fallbacks": []}}

    def problems(self, done):
        """Return the faults of a run that must print the digest."""
        if done.hung:
            return ["it hangs"]
        if done.status:
            return [f"exit status {done.status}"]
        return [] if self.result(done)["digest"] == self.digest else ["another digest"]

    def check(self, case, found, done):
        self.ledger.check(case, found, done.shown())

    def from_the_start(self, call, error):
        """One io_uring call is refused from the start."""
        case = f"{call}-{error}"
        for options in ((), ("--io", "direct"), ("--io", "buffered"), ("--threads", "4")):
            done = self.run([f"{call}={error}"], *options)
            found = self.problems(done)
            reader = self.result(done)["reader"]
            if not found and call != "io_uring_register" and reader["backend"] != "threads":
                found.append(f"the reader is {reader['backend']}, not threads")
            if not found and not reader["fallbacks"]:
                found.append("the step down is not reported")
            self.check(case, found, done)
        done = self.run([f"{call}={error}"], "--reader", "io_uring")
        found = self.problems(done) if call == "io_uring_register" else []
        if call != "io_uring_register" and (done.status != 1 and done.status != 2 or "io_uring" not in done.err):
            found = ["a reader asked for by name is refused, and no error names it"]
        self.check(case, found, done)
        self.check(case, self.problems(self.run([f"{call}={error}"], "--reader", "threads")), done)

    def later(self, call, error, n):
        """Calls are refused after n of them."""
        done = self.run([f"{call}={error}@{n}"])
        found = self.problems(done)
        if found and not done.hung and done.status in (1, 2) and done.err.startswith("penstock: "):
            found = []  # an error in time and in words is allowed
        self.check(f"{call}-{error}-later", found, done)

    def denied(self, case, rules, *options, prepare=None):
        """Something else is refused: the digest is the same."""
        done = self.run(rules, *options, prepare=prepare)
        self.check(case, self.problems(done), done)
        return done


def direct(error):
    """O_DIRECT is refused, whether a file is opened with it or gets it later."""
    return [f"open_direct={error}", f"set_direct={error}"]


def limit_of(which, most):
    return lambda: resource.setrlimit(which, (most, most))


def attack_others(bench, wants):
    """Refusals that have nothing to do with io_uring."""
    for call in ("mlock", "mbind", "set_mempolicy", "get_mempolicy", "sched_setaffinity"):
        for error in ERRORS:
            if wants(call):
                bench.denied(call, [f"{call}={error}"])
    if wants("open_direct"):
        for error in ("EINVAL", "EPERM", "EOPNOTSUPP"):
            for options in ((), ("--reader", "threads"), ("--io", "buffered")):
                bench.denied("open_direct", direct(error), *options)
            # A refusal that comes only when a file is used is no error: it is reported.
            done = bench.run(direct(error), "--io", "direct")
            refused = done.status in (1, 2) and "irect" in done.err
            found = [] if refused else bench.problems(done)
            if not refused and not found and "no_direct" not in bench.result(done)["reader"]["fallbacks"]:
                found = ["--io direct is refused, and that is not reported"]
            bench.check("open_direct", found, done)
    if wants("memlock"):
        bench.denied("memlock", [], prepare=limit_of(resource.RLIMIT_MEMLOCK, 0))
    if wants("all"):
        bench.denied("all", [f"{call}=EPERM" for call in (*URING, "mlock", "mbind", "set_mempolicy", "get_mempolicy",
                                                          "sched_setaffinity")] + direct("EINVAL"))


def attack_commands(args, ledger, data):
    """The other commands where io_uring is refused: they do as without."""
    penstock, root = args.build.penstock, pathlib.Path(args.root)
    lines = {"verify": ["verify", data], "get": ["get", data, "3", "jpg"], "doctor": ["doctor", data],
             "show": ["show", data, "--ids", "0..3", "-o", root / "sheet.png"]}
    for name, words in lines.items():
        case = f"command-{name}"
        if args.case not in case:
            continue
        honest = process.run([penstock, *words])
        picture = material.content(root / "sheet.png")
        for call in URING:
            for error in ERRORS:
                done = process.run([args.build.deny, f"{call}={error}", "--", penstock, *words], LIMIT)
                found = [] if done.status == 0 and not done.hung else [f"exit status {done.status}"]
                if name == "get" and done.out != honest.out or name == "show" and \
                        material.content(root / "sheet.png") != picture:
                    found.append("another result")
                if name == "doctor" and call == "io_uring_setup" and "io_uring       works" in done.text:
                    found.append("doctor says that io_uring works")
                ledger.check(case, found, done.shown())


def attack_pack(args, ledger, images):
    """Failures of the machine while packing with --skip-bad: everything is packed, or nothing."""
    case = Case("pack", [args.build.penstock, "pack", images, "{out}", "--skip-bad", "--threads", "8"], [images])
    kind = DataSet(args)

    def attempt(label, rules, prepare=None):
        if args.case not in label:
            return
        work = Work(args.root, case)
        work.words = ([args.build.deny, *rules, "--"] if rules else []) + work.words
        done = work.start(prepare).wait(LIMIT)
        found = ["it hangs"] if done.hung else []
        if done.status not in (0, 1, 2, 127):  # 127: the program itself could not be loaded
            found.append(f"exit status {done.status}")
        state = kind.state(work.out)
        if done.status == 0 and state != whole:
            found.append("success, but not every image was packed")
        if done.status and state:
            found.append("failure, but there is a data set")
        if done.status and not done.err:
            found.append("it fails without a word")
        ledger.check(label, found, done.shown())

    work = Work(args.root, case)
    if work.start().wait().status:
        raise material.Broken("pack fails without refusals")
    whole = kind.state(work.out)
    attempt("pack-files", [], limit_of(resource.RLIMIT_NOFILE, FEW_FILES))
    for call, error, n in MACHINE:
        attempt(f"pack-{call}-{error}", [f"{call}={error}@{n}"])


def attack(args, ledger):
    probe = process.run([args.build.deny, "io_uring_setup=EPERM", "--", "true"])
    if probe.status:
        ledger.skip("all", f"no filter of system calls here: {probe.err.strip()}")
        return
    root, before = pathlib.Path(args.root), [0, 0]

    def wants(case):
        return args.case in case

    def done(case):
        """Print what came of the attempts since the last call, if there were any."""
        failed, n = ledger.failed - before[0], ledger.failed + ledger.passed - before[1]
        if n:
            say(f"{'not ok' if failed else 'ok'} - seccomp {case}: {n} attempts")
        before[:] = ledger.failed, ledger.failed + ledger.passed
    images = material.images(args.build, root / "images", N_IMAGES, args.seed)
    data = material.pack(args.build, images, root / "data")
    bench = Bench(args, ledger, data)
    for call in URING:
        for error in ERRORS:
            if wants(f"{call}-{error}"):
                bench.from_the_start(call, error)
                done(f"{call}-{error}")
            for n in LATER if wants(f"{call}-{error}-later") else ():
                bench.later(call, error, n)
        done(f"{call}, also later")
    attack_others(bench, wants)
    done("other calls")
    attack_commands(args, ledger, data)
    done("other commands")
    attack_pack(args, ledger, images)
    done("pack where the machine fails")
