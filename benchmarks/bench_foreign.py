#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure formats that are read in place: next to .pstk, and next to each format's own reader.

usage: bench_foreign.py [--only images,peers,records,index] [--images FOLDER] [--json FILE] [--write PAGE] [--install]

images   JPEG files as a folder, tar, TFRecord and MDS, compared with the same files kept in .pstk: random resized crop
         to 224 x 224 and flip, uint8, batches of 64, labels with them
peers    the same files by each format's own reader, in turns with those: ImageFolder, WebDataset and MosaicML
         Streaming with PyTorch's DataLoader, decoding by Pillow and by torchvision.io; and tf.data
records  2 kB records: tar, TFRecord, MDS, Megatron, compared with .pstk, one worker and one reader; .pstk and tar also
         with a class for each
index    the index of an archive of a million members of 2 kB; the open of ten million indexed samples

All is read from the page cache, by two cores. In each round every row runs once, in its own process; the order turns
round with each round. Ratios are those within a round; their median, and in brackets where it lies with 95 %
probability, or all of them where there are fewer than six rounds. Processor time is of user and system, with the
start, of one sample.

--images FOLDER    JPEG files, repeated up to --n-images of them; without it the project makes some
--environments DIR where `benchmarks/peers/run install` put the peers' packages (build/peers); --install has it make
                   those two that are needed, torch and tf: 7 GB
"""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / folder) for folder in ("bindings/python", "tests/python", "benchmarks/peers")]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_COMMAND", TOP / "build/src/cli/penstock")).resolve().parents[2]
os.environ.setdefault("PENSTOCK_LIBRARY", str(BUILD / "src/libpenstock.so"))

import environments  # noqa: E402
import foreign_data  # noqa: E402
import machine  # noqa: E402
import penstock._c  # noqa: E402
import rounds  # noqa: E402
import sources  # noqa: E402

COMMAND = str(BUILD / "src/cli/penstock")
PARTS = ("images", "peers", "records", "index")
N_CORES = 2
IMAGE_BATCH, RECORD_BATCH = 64, 256
IMAGE_AIM, RECORD_AIM = 0.95, 0.9  # shares of the rate of .pstk
PEER_AIMS = {"pillow": 3, "torchvision": 1.8}
INDEX_AIM, OPEN_AIM = 5, 0.1  # seconds
OPEN_FILES = 20
SECTION = "## Formats that are read in place"
PACKAGES = {"torch": ("torch", "torchvision", "pillow", "webdataset", "mosaicml-streaming"), "tf": ("tensorflow-cpu",)}


@dataclasses.dataclass
class Row:
    name: str
    run: object            # () -> (samples in a second, seconds of processor time of a sample or None)
    base: str = ""         # the row that it is compared with
    of_base: bool = False  # 1: the base / this row; 0: this row / the base
    aim: float = 0         # 0: none
    cpu_aim: float = 0
    found: list = dataclasses.field(default_factory=list)
    why_not: str = ""
    about: str = ""


def interval(ratios):
    """Return the median, and where it lies with at least 95 % probability (order statistics)."""
    ordered, n = sorted(ratios), len(ratios)
    cut = 0
    while 2 * sum(math.comb(n, i) for i in range(cut + 2)) <= 0.05 * 2 ** n:
        cut += 1
    return statistics.median(ordered), ordered[cut], ordered[n - 1 - cut]


# ---- runs ----------------------------------------------------------------------------------------

def run_penstock(path, *options):
    """Return samples in a second, and seconds of processor time of a sample."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([COMMAND, "bench", path, "--no-ceilings", "--json", "--io", "buffered", *map(str, options)],
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise rounds.Failure(done.stderr.strip())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(done.stdout)
    return found["samples_per_second"], cpu / found["samples"]


class Peers:
    """Runs benchmarks/peers/peer_SCRIPT.py, each in its environment."""

    def __init__(self, asked, files, folder):
        self.asked, self.files, self.folder = asked, files, folder

    def run(self, environment, script, seconds, **options):
        name = "-".join(str(value) for key, value in options.items() if key != "path")
        task = {"name": name, "options": options, "folder": os.path.join(self.folder, "peer-" + name), "files": self.files,
                "records": None, "n_cores": N_CORES, "seconds": seconds, "warm_seconds": self.asked.warm,
                "batch_size": IMAGE_BATCH, "binary": COMMAND}
        file = pathlib.Path(self.folder, f"peer-{name}.json")
        file.write_text(json.dumps(task))
        python = environments.python_of(self.asked.environments, environment)
        found = rounds.call([str(python), str(TOP / f"benchmarks/peers/peer_{script}.py"), "measure", str(file)],
                            rounds.START_SECONDS + 20 * (seconds + self.asked.warm))
        return found["samples"] / found["seconds"], None

    def best_workers(self, **options):
        """Return the fastest number of workers, by a short run of each."""
        rates = {n: self.run("torch", "formats", min(2, self.asked.seconds), workers=n, **options)[0]
                 for n in range(1, N_CORES + 1)}
        return max(rates, key=rates.get), rates


def images_rows(asked, paths):
    def runs(path):
        return lambda: run_penstock(path, "--threads", N_CORES, "--batch-size", IMAGE_BATCH, "--seconds", asked.seconds)
    rows = [Row(".pstk", runs(paths[".pstk"]))]
    return rows + [Row(name, runs(paths[name]), ".pstk", aim=IMAGE_AIM) for name in paths if name != ".pstk"]


def peer_row(peers, form, path, decode):
    row = Row(f"{form}'s own, {decode}", None, form, True, PEER_AIMS[decode])
    try:
        workers, rates = peers.best_workers(format=form, path=path, decode=decode)
        row.about = "; ".join(f"{n} workers: {rate:,.0f}/s" for n, rate in rates.items()) + f": {workers} taken"
        row.run = lambda: peers.run("torch", "formats", peers.asked.seconds, format=form, path=path, decode=decode,
                                    workers=workers)
    except rounds.Failure as failure:
        row.why_not = str(failure)
    print(f"{row.name}: {row.why_not or row.about}", flush=True)
    return row


def peers_rows(asked, paths, peers):
    rows, why = [], environments.why_missing(asked.environments, "torch")
    for form in ("folder", "webdataset", "mds"):
        for decode in PEER_AIMS:
            rows.append(Row(f"{form}'s own, {decode}", None, form, why_not=why) if why
                        else peer_row(peers, form, paths[form], decode))
    why = environments.why_missing(asked.environments, "tf")
    for name, exact in (("tf.data", False), ("tf.data, exact DCT, antialias", True)):
        rows.append(Row(name, lambda exact=exact: peers.run("tf", "tfdata", asked.seconds, path=paths["tfrecord"],
                                                            exact=exact), "tfrecord", True, why_not=why or ""))
    return rows


def records_rows(asked, paths):
    def runs(path):
        return lambda: run_penstock(path, "--threads", 1, "--batch-size", RECORD_BATCH, "--epochs", asked.epochs, "--order",
                                    asked.order)
    rows = []
    for name, path in paths.items():
        base = foreign_data.BASES[name]
        rows.append(Row(name, runs(path), "" if name == base else base, aim=RECORD_AIM, cpu_aim=RECORD_AIM))
    return rows


def measure(rows, n):
    """n rounds; a row that fails is left out from there on."""
    for number in range(n):
        for row in rows if number % 2 else rows[::-1]:
            try:
                row.found.append(row.run() if not row.why_not else None)
            except rounds.Failure as failure:
                row.why_not = str(failure)
                row.found.append(None)
        print(f"-- round {number + 1} of {n}", flush=True)


# ---- results -------------------------------------------------------------------------------------

def compared(row, rows, which):
    """Return the median and interval of the ratio to the base in a column of `found`; None: there is none."""
    base = next((one for one in rows if one.name == row.base), None)
    pairs = [(mine[which], other[which]) for mine, other in zip(row.found, base.found if base else ())
             if mine and other and mine[which] and other[which]]
    if not pairs:
        return None
    return interval([other / mine if row.of_base or which == 1 else mine / other for mine, other in pairs])


def verdict(found, aim):
    if not found:
        return ""
    text = f"{found[0]:.3f} ({found[1]:.3f}..{found[2]:.3f})"
    return text + (f", aim {aim:g}: {'met' if found[0] >= aim else 'not met'}" if aim else "")


def table(page, title, rows, unit):
    """Add a table to the page, and return the same for JSON."""
    page += ["", f"### {title}", "", f"| | {unit}/s, median | least .. most | ratio | CPU, us a sample | ratio by CPU time |",
             "|---|--:|---|---|--:|---|"]
    out = []
    for row in rows:
        rates = [one[0] for one in row.found if one]
        ratios = [compared(row, rows, which) for which in (0, 1)]
        out.append({"name": row.name, "found": row.found, "why_not": row.why_not, "about": row.about, "base": row.base,
                    "aim": row.aim, "ratio": ratios[0], "ratio_by_cpu": ratios[1]})
        if row.why_not or not rates:
            page.append(f"| {row.name} | not measured: {row.why_not} | | | | |")
            continue
        cpu = [one[1] * 1e6 for one in row.found if one and one[1]]
        page.append(f"| {row.name} | {statistics.median(rates):,.0f} | {min(rates):,.0f} .. {max(rates):,.0f} | "
                    f"{verdict(ratios[0], row.aim)} | {f'{statistics.median(cpu):,.2f}' if cpu else ''} | "
                    f"{verdict(ratios[1], row.cpu_aim)} |")
    return out


def head(found):
    """Return the lines of the section before its tables."""
    here = found["machine"]
    return [SECTION, "",
            f"{here['date']}; {here['cpu']} ({', '.join(here['vectors'])}), {here['cores']} of {here['cores_there']} cores, "
            f"{here['system']}, Linux {here['kernel']}; load average before {here['load']}. Written by "
            f"`benchmarks/bench_foreign.py --write`.", "",
            "All is read from the page cache. In each round every row runs once, in its own process, and the order turns round "
            "with each round. A ratio is the median of those within a round; in brackets it lies with 95 % probability.", "",
            f"Versions: {', '.join(f'{name} {version}' for name, version in found['versions'].items())}."]


def write_section(path, page):
    """Put the section into a page of Markdown, in the place of the one that it has, or at its end."""
    before, _, rest = path.read_text().partition(SECTION + "\n")
    after = rest[rest.index("\n## ") + 1:] if "\n## " in rest else ""
    path.write_text(before.rstrip("\n") + "\n\n" + "\n".join(page) + "\n" + ("\n" + after if after else ""))


def versions(asked):
    """Return the versions of the peers' packages, by their environments."""
    code = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    found = {"penstock": subprocess.run([COMMAND, "--version"], capture_output=True, text=True).stdout.split()[-1]}
    for name, packages in PACKAGES.items():
        if not environments.why_missing(asked.environments, name):
            found.update(json.loads(subprocess.run([environments.python_of(asked.environments, name), "-c", code, *packages],
                                                   capture_output=True, text=True, check=True).stdout))
    return found


# ---- parts ---------------------------------------------------------------------------------------

def measure_images(page, asked, folder, has_peers):
    if asked.images:
        files = sources.find_images(asked.images)
    else:
        files = sources.find_images(sources.make_images(BUILD, os.path.join(folder, "made"), 300))
    paths = foreign_data.make_images(COMMAND, files, asked.n_images, folder)
    rows = images_rows(asked, paths)
    measure(rows, 1)  # the indices are built
    for row in rows:
        row.found.clear()
    for path in paths.values():
        foreign_data.settle(path)
    if has_peers:
        rows += peers_rows(asked, paths, Peers(asked, files, folder))
    measure(rows, asked.rounds)
    found = table(page, f"{asked.n_images:,} JPEG files, {min(len(files), asked.n_images)} different ones", rows, "images")
    page += ["", "Random resized crop to 224 x 224 and flip, uint8, batches of 64, with labels; `penstock bench --threads 2`. The "
             "ratio is to the same files kept in .pstk, and of the other readers what penstock has of the same format."]
    if has_peers:
        page += ["", *(f"- {row.name}: {row.about}." for row in rows if row.about),
                 "- Prefetch is each reader's default. Pillow and torchvision.io resize with antialias. tf.data uses AUTOTUNE and "
                 "two threads; its first row has its fast DCT and no antialias."]
    return found


def crc_cost(size):
    """Return nanoseconds of the CRC32C of a record that lies in the cache."""
    data, n = os.urandom(1 << 16), 2000
    start = time.perf_counter()
    for _ in range(n):
        penstock._c.lib.pstk_crc32c(0, data, len(data))
    return (time.perf_counter() - start) / n / len(data) * size * 1e9


def measure_records(page, asked, folder):
    paths = foreign_data.make_records(asked.records, asked.size, folder)
    rows = records_rows(asked, paths)
    measure(rows, 1)
    for row in rows:
        row.found.clear()
    for path in paths.values():
        foreign_data.settle(path)
    measure(rows, asked.record_rounds)
    found = table(page, f"{asked.records:,} records of {asked.size} bytes, {asked.order} order", rows, "records")
    cost = crc_cost(asked.size)
    page += ["", "The rows with classes have a second field, and in tar a second member; they are compared with each other.", "",
             f"`penstock bench --threads 1`: a reader and a worker. .pstk and TFRecord check a CRC32C of each record: alone, of "
             f"{asked.size} bytes in the cache, it takes {cost:,.0f} ns. tar has a checksum of each header; MDS and Megatron have none."]
    return {"rows": found, "crc32c_ns": cost}


def time_info(path):
    """Return seconds that `penstock info` takes, and its memory in MB."""
    start = time.perf_counter()
    child = subprocess.Popen([COMMAND, "info", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise rounds.Failure(f"penstock info {path} ended with {child.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1000


def measure_index(page, asked, folder):
    path = os.path.join(folder, "members")
    os.mkdir(path)
    record = os.urandom(asked.size)
    foreign_data.write_tar(path, (record for _ in range(asked.members)))
    foreign_data.settle(path)
    without = []
    for _ in range(asked.index_rounds):
        shutil.rmtree(os.path.join(path, ".penstock"), ignore_errors=True)
        without.append(time_info(path)[0])
    found = statistics.median(without)
    page += ["", f"### Index of an archive of {asked.members:,} members of {asked.size} bytes", "",
             f"`penstock info` without an index {found:.2f} s ({min(without):.2f} .. {max(without):.2f}), aim {INDEX_AIM} s: "
             f"{'met' if found < INDEX_AIM else 'not met'}."]
    return {"members": asked.members, "seconds": without, "aim": INDEX_AIM}


def measure_open(page, asked, folder):
    """TFRecords, since their files are small: the index has the same columns for each format's records."""
    n = OPEN_FILES * asked.per_file
    out = {"samples": n, "files": OPEN_FILES, "aim": OPEN_AIM}
    for name, n_files in (("many", OPEN_FILES), ("one", 1)):
        path = os.path.join(folder, name)
        os.mkdir(path)
        foreign_data.write_same_tfrecords(path, n_files, asked.per_file)
        time_info(path)
        out[name] = [time_info(path) for _ in range(2 * asked.index_rounds + 1)]
    seconds = statistics.median(one[0] for one in out["many"])
    memory = {name: statistics.median(one[1] for one in out[name]) for name in ("many", "one")}
    page += ["", f"### Open of {n:,} indexed samples in {OPEN_FILES} files", "",
             f"`penstock info` {1000 * seconds:.1f} ms, aim {1000 * OPEN_AIM:.0f} ms: {'met' if seconds < OPEN_AIM else 'not met'}; "
             f"its memory {memory['many']:.1f} MB, and {memory['one']:.1f} MB with {asked.per_file:,} samples in one file."]
    return out


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", default=",".join(PARTS), help="parts, with commas between them (%(default)s)")
    add("--images", metavar="FOLDER")
    add("--n-images", type=int, default=3000)
    add("--seconds", type=float, default=3, help="of a run with images (%(default)s)")
    add("--warm", type=float, default=1, help="seconds of warm-up of each run of a peer (%(default)s)")
    add("--rounds", type=int, default=6, help="with images (%(default)s)")
    add("--records", type=int, default=200_000)
    add("--size", type=int, default=2048, help="bytes of a record (%(default)s)")
    add("--epochs", type=int, default=4, help="of a run with records (%(default)s)")
    add("--order", default="full", choices=("full", "sequential"), help="of records (%(default)s)")
    add("--record-rounds", type=int, default=9)
    add("--members", type=int, default=1_000_000)
    add("--index-rounds", type=int, default=3)
    add("--per-file", type=int, default=500_000, help="samples of each of the files that are opened (%(default)s)")
    add("--environments", type=pathlib.Path, default=TOP / "build/peers")
    add("--install", action="store_true")
    add("--work", metavar="FOLDER", help="for some 6 GB of data, removed at the end (the system's temporary folder)")
    add("--json", metavar="FILE", help="write all figures there")
    add("--write", metavar="FILE", type=pathlib.Path, help="put the tables as a section into this page: benchmarks/RESULTS.md")
    asked = parser.parse_args()
    asked.only = asked.only.split(",")
    if set(asked.only) - set(PARTS):
        parser.error(f"--only: must be some of {', '.join(PARTS)}")
    return asked


def main():
    asked = parse()
    for name in PACKAGES if asked.install else ():
        print(f"{name}: {environments.install(asked.environments, name) or 'ready'}", flush=True)
    found = {"machine": machine.describe(machine.pin(N_CORES)), "versions": versions(asked),
             "settings": {key: str(value) for key, value in vars(asked).items()}}
    print(f"{found['machine']}\n{found['versions']}", flush=True)
    page = head(found)
    for part in asked.only:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=asked.work) as folder:
            if part == "images" or part == "peers" and "images" not in asked.only:
                found["images"] = measure_images(page, asked, folder, "peers" in asked.only)
            elif part == "records":
                found["records"] = measure_records(page, asked, folder)
            elif part == "index":
                found["index"] = measure_index(page, asked, folder)
                found["open"] = measure_open(page, asked, folder)
    page += ["", f"Load averages at the end {' '.join(f'{one:.2f}' for one in os.getloadavg())}."]
    print("\n" + "\n".join(page))
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(found, indent=1))
    if asked.write:
        write_section(asked.write, page)


if __name__ == "__main__":
    main()
