# SPDX-License-Identifier: Apache-2.0
"""kills: every command is ended by a signal at a random time of its run.

After each kill the output is whole as before or whole as after, what the command says of it is true, the same
command runs again to its end, and then no file is left that the output does not consist of. Sources stay as
they were, and the current folder and TMPDIR stay empty.
"""
import pathlib
import shutil
import signal
import time

import material
from ledger import say
from material import draws
from output import Case, Columns, DataSet, Picture, Work

N_IMAGES = 16
LATENCY = 2.0  # seconds from SIGINT or SIGTERM to the end, on a busy machine
AGAIN = 0.3  # the share of attempts in which the command that starts over is killed as well
LATE = 0.4  # the share of kills in the last third of a run, where files get their names

# Phrases with which a command describes its output after a signal ended it.
SAYS_BEFORE = ("nothing was packed", "nothing was merged", "no picture was written", "is unchanged",
               "are unchanged", "no file was made")
SAYS_AFTER = ("complete", "is whole")

REFUSES = ("already", "has no column")  # words of the second run after a run that was complete


def makers(args):
    """Return (case, kind of output) of every command that writes."""
    build, root = args.build, pathlib.Path(args.root)
    images = material.images(build, root / "images", N_IMAGES, args.seed)
    others = material.images(build, root / "others", 5, args.seed + 1)
    mixed = root / "mixed"
    shutil.copytree(images, mixed)
    (mixed / "class001" / "broken.jpg").write_bytes(b"\xff\xd8 no image")
    old = material.pack(build, others, root / "old")
    parts = [material.pack(build, images, root / f"part{i}", "--part", f"{i}/3", "--shard-size", "256K")
             for i in range(3)]
    data = material.pack(build, images, root / "data")
    weights = [material.values(root / f"weights{i}.npy", range(i, i + N_IMAGES)) for i in range(2)]
    weighed = material.pack(build, images, root / "weighed", "--shard-size", "256K")
    material.must([build.penstock, "column", weighed, "weight", weights[0]])
    penstock, sets, columns = build.penstock, DataSet(args), Columns(args)
    replace = [penstock, "column", "{out}", "weight", weights[1], "--overwrite"]
    pack = [penstock, "pack", images, "{out}"]
    merge = [penstock, "merge", *parts, "{out}"]
    copy = [build.deny, "linkat=EXDEV", "--", *merge]
    show = [penstock, "show", data, "--ids", "0..5", "--size", "96", "-o", "{out}"]
    picture = root / "old.png"
    material.must([penstock, "show", data, "--ids", "8..9", "--size", "64", "-o", picture])
    return [
        (Case("pack", pack, [images], replaces=False), sets),
        (Case("pack-overwrite", [*pack, "--overwrite", "--shard-size", "512K"], [images], old), sets),
        (Case("pack-part", [*pack, "--part", "1/3"], [images], replaces=False), sets),
        (Case("pack-keep", [*pack, "--jpeg", "keep", "--shard-size", "256K"], [images], replaces=False), sets),
        (Case("pack-pixels", [*pack, "--pixels", "96", "--compress", "zstd", "--overwrite"], [images], old), sets),
        (Case("pack-shrunk", [*pack, "--max-side", "128", "--quality", "80"], [images], replaces=False), sets),
        (Case("pack-skip-bad", [penstock, "pack", mixed, "{out}", "--skip-bad"], [mixed], replaces=False), sets),
        (Case("merge", merge, parts, replaces=False), sets),
        (Case("merge-overwrite", [*merge, "--overwrite"], parts, old), sets),
        (Case("merge-copy", copy, parts, replaces=False), sets),
        (Case("merge-copy-overwrite", [*copy, "--overwrite"], parts, old), sets),
        (Case("column", [penstock, "column", "{out}", "weight", weights[0]], weights, data, replaces=False), columns),
        (Case("column-overwrite", replace, weights, weighed), columns),
        (Case("column-remove", [penstock, "column", "{out}", "weight", "--remove"], [], weighed, replaces=False),
         columns),
        (Case("writer", [build.write_sample, "{out}", "1500", "2"], replaces=False), sets),
        (Case("show", show, [data]), Picture()),
        (Case("show-replaced", show, [data], picture), Picture()),
    ]


def readers(args):
    """Cases of every command that writes nothing but its standard output."""
    build, root = args.build, pathlib.Path(args.root)
    data, penstock = root / "data", build.penstock
    bench = [penstock, "bench", data, "--size", "64", "--batch-size", "8"]
    lines = {
        "verify": [penstock, "verify", data],
        "verify-decode": [penstock, "verify", data, "--decode", "--json"],
        "bench": [*bench, "--epochs", "10", "--digest", "--no-ceilings"],
        "bench-threads": [*bench, "--seconds", "0.2", "--reader", "threads", "--no-ceilings"],
        "bench-ceilings": [*bench, "--seconds", "0.2"],
        "info": [penstock, "info", data, "--json"],
        "order": [penstock, "order", data, "--epoch", "3"],
        "get": [penstock, "get", data, "5", "jpg"],
        "show-stdout": [penstock, "show", data, "--ids", "0..5", "-o", "-"],
        "doctor": [penstock, "doctor", data],
    }
    return [Case(name, words, [data]) for name, words in lines.items()]


def choose(rng, whole):
    """Return the time and the number of the signal to send."""
    part = rng.uniform(0.65, 1.05) if rng.random() < LATE else rng.uniform(0, 1.0)
    number = rng.choices([signal.SIGKILL, signal.SIGINT, signal.SIGTERM], [3, 1, 1])[0]
    return part * whole, number


def kill(work, delay, number):
    """Start the command, send the signal; returns the outcome and the seconds from signal to end."""
    running = work.start()
    time.sleep(delay)
    running.signal(number)
    sent = time.monotonic()
    done = running.wait(LATENCY + 20)
    return done, time.monotonic() - sent


def problems_of_end(done, number, latency):
    """Return the faults of the exit status of a command that got this signal."""
    found = []
    if done.hung or number != signal.SIGKILL and latency > LATENCY:
        found.append(f"it ended {latency:.1f} s after {signal.Signals(number).name}, not within {LATENCY:g} s")
    if done.status not in (0, -number, 128 + number) or done.status == 128 + signal.SIGKILL:
        found.append(f"exit status {done.status} after {signal.Signals(number).name}")
    if done.status == 128 + number and "interrupted" not in done.err:
        found.append("it does not say that it was interrupted")
    if "Sanitizer" in done.err or "Assertion" in done.err:
        found.append("a check failed in it")
    return found


def problems_of_words(done, state, before, after):
    """Return the differences between the message and the files. Only for a command that ended by itself."""
    if done.status == 0:
        return [] if state == after else ["exit status 0, but the output is not there"]
    if done.status < 128:
        return []
    says_before = any(words in done.err for words in SAYS_BEFORE)
    says_after = any(words in done.err for words in SAYS_AFTER)
    if says_before and state != before:
        return ["it says that nothing was made, but the output is whole"]
    if says_after and state != after:
        return ["it says that the output is whole, but it is not"]
    return [] if says_before or says_after else ["it does not say what became of the output"]


class Maker:
    """The attempts of one command that writes."""

    def __init__(self, args, ledger, case, kind):
        self.args, self.ledger, self.case, self.kind = args, ledger, case, kind
        self.sources = {path: material.content(path) for path in case.sources}
        self.before = kind.state(case.old) if case.old else ""
        self.seconds = []
        for _ in range(3):
            work = Work(args.root, case)
            done = work.start().wait()
            if done.status:
                raise material.Broken(done.shown())
            self.seconds.append(done.seconds)
        self.after = kind.state(work.out)
        self.ends = {}  # state of the output at the first kill of each attempt

    def look(self, work, done):
        """Return the state of the output after a kill, and what is wrong with it."""
        try:
            state = self.kind.state(work.out)
        except ValueError as damaged:
            return None, [f"the output is damaged: {damaged}"]
        if state not in (self.before, self.after):
            return None, ["the output is neither as before nor as after"]
        return state, problems_of_words(done, state, self.before, self.after)

    def finish(self, work, state):
        """Run the command to its end; returns what is wrong then."""
        done = work.start().wait()
        whole = state == self.after and not self.case.replaces and state != self.before
        if whole and done.status and any(words in done.err for words in REFUSES):
            pass  # there is nothing left to do
        elif done.status:
            return [f"the next run fails: {done.shown()}"]
        try:
            if self.kind.state(work.out) != self.after:
                return ["the next run makes another output"]
        except ValueError as damaged:
            return [f"the next run's output is damaged: {damaged}"]
        left = self.kind.leftovers(work.folder) + material.entries(work.cwd)
        if left:
            return [f"files are left: {' '.join(left[:8])}"]
        return []

    def attempt(self, number):
        rng = draws(self.args.seed, "kills", self.case.name, number)
        work, found, story = Work(self.args.root, self.case), [], []
        n_kills = 1 + (rng.random() < AGAIN)
        for i in range(n_kills):
            delay, sign = choose(rng, sorted(self.seconds)[1])
            done, latency = kill(work, delay, sign)
            story.append(f"{signal.Signals(sign).name} after {delay * 1000:.1f} ms: {done.shown()}")
            state, wrong = self.look(work, done)
            found += problems_of_end(done, sign, latency) + wrong
            if i == 0:
                end = "damaged" if state is None else "before" if state == self.before else "after"
                self.ends[end] = self.ends.get(end, 0) + 1
            if found or state == self.after:
                break
        if not found:
            found += self.finish(work, state)
        found += [f"{path} has changed" for path, was in self.sources.items() if material.content(path) != was]
        self.ledger.check(self.case.name, found, "\n".join(story), f"--attempt {number}")

    def summary(self):
        ends = ", ".join(f"{n} {end}" for end, n in sorted(self.ends.items()))
        return f"over {sorted(self.seconds)[1]:.2f} s; the output was found: {ends}"


class Reader:
    """The attempts of one command that only reads."""

    def __init__(self, args, ledger, case):
        self.args, self.ledger, self.case = args, ledger, case
        self.sources = {path: material.content(path) for path in case.sources}
        self.seconds = [Work(args.root, case).start().wait().seconds for _ in range(3)]
        self.slowest = 0.0

    def attempt(self, number):
        rng = draws(self.args.seed, "kills", self.case.name, number)
        work = Work(self.args.root, self.case)
        delay, sign = choose(rng, sorted(self.seconds)[1])
        done, latency = kill(work, delay, sign)
        found = problems_of_end(done, sign, latency)
        if sign != signal.SIGKILL:
            self.slowest = max(self.slowest, latency)
        left = material.entries(work.cwd) + material.entries(work.folder)
        if left:
            found.append(f"files are left: {' '.join(left[:8])}")
        found += [f"{path} has changed" for path, was in self.sources.items() if material.content(path) != was]
        self.ledger.check(self.case.name, found, f"{signal.Signals(sign).name} after {delay * 1000:.1f} ms: "
                          f"{done.shown()}", f"--attempt {number}")

    def summary(self):
        return f"over {sorted(self.seconds)[1]:.2f} s; slowest answer to a signal {self.slowest * 1000:.0f} ms"


def attack(args, ledger):
    attempts = range(args.count) if args.attempt is None else [args.attempt]
    # The data that all cases share is made once; the readers use the makers' data.
    subjects = [(Maker, case, [kind]) for case, kind in makers(args)]
    subjects += [(Reader, case, []) for case in readers(args)]
    for subject, case, rest in subjects:
        if args.case not in case.name:
            continue
        one, failed = subject(args, ledger, case, *rest), ledger.failed
        for number in attempts:
            one.attempt(number)
        say(f"{'not ok' if ledger.failed > failed else 'ok'} - kills {case.name}: {len(attempts)} attempts {one.summary()}")
