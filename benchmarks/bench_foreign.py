# SPDX-License-Identifier: Apache-2.0
"""Compare reading records of another format in place with the same records in .pstk, in the page cache.

usage: bench_foreign.py NAME [--size BYTES] [--samples N] [--rounds N] [--order full|sequential]

NAME     tfrecord (data alone) or tfrecord-example (a tf.train.Example of one feature)

Both data sets have the same random bytes. Runs of `penstock bench` with one worker alternate between them, which
goes first changes from round to round. Printed are medians: records in a second of wall time, processor time of a
record, and the ratios of both within a round. PENSTOCK_COMMAND and PENSTOCK_LIBRARY name the build to measure.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("bindings/python", "tests/python")]

import penstock  # noqa: E402
import tfrecords  # noqa: E402


def write_tfrecord(folder, records):
    tfrecords.write(os.path.join(folder, "0.tfrecord"), records)


def write_example(folder, records):
    tfrecords.write(os.path.join(folder, "0.tfrecord"), (tfrecords.example({"payload": [record]}) for record in records))


WRITERS = {"tfrecord": write_tfrecord, "tfrecord-example": write_example}


def settle(folder):
    """Have the files in the page cache as reading puts them there, whatever pieces they were written in."""
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb", buffering=0) as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while file.read(1 << 20):
                    pass


def run(path, arguments):
    """Records in a second of wall time, and seconds of processor time of a record."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([os.environ.get("PENSTOCK_COMMAND", "penstock"), "bench", path, "--threads", "1", "--no-ceilings", "--json",
                           "--batch-size", "256", "--epochs", str(arguments.epochs), "--order", arguments.order, "--io", "buffered"],
                          capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(done.stdout)
    return found["samples_per_second"], cpu / (arguments.samples * arguments.epochs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=WRITERS)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--order", default="full")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        own, other = os.path.join(folder, "own"), os.path.join(folder, "other")
        os.mkdir(other)
        chance = random.Random(1)
        with penstock.Writer(own, {"payload": penstock.Field("bytes", codec="none")}) as writer:
            for _ in range(arguments.samples):
                writer.add({"payload": chance.randbytes(arguments.size)})
        chance = random.Random(1)
        WRITERS[arguments.name](other, [chance.randbytes(arguments.size) for _ in range(arguments.samples)])
        for path in (own, other):
            run(path, arguments)  # the index is built
            settle(path)
        rounds = []
        for i in range(arguments.rounds):
            pair = [run(path, arguments) for path in ((own, other) if i % 2 else (other, own))]
            rounds.append(pair if i % 2 else pair[::-1])
    for column, name in enumerate((".pstk", arguments.name)):
        print(f"{name:18} {statistics.median(pair[column][0] for pair in rounds):12,.0f} records/s "
              f"{statistics.median(pair[column][1] for pair in rounds) * 1e9:8,.0f} ns of a core a record")
    rate = sorted(pair[1][0] / pair[0][0] for pair in rounds)
    cpu = sorted(pair[0][1] / pair[1][1] for pair in rounds)
    print(f"ratio by wall time {statistics.median(rate):.3f} ({rate[0]:.3f} to {rate[-1]:.3f}), "
          f"by processor time {statistics.median(cpu):.3f} ({cpu[0]:.3f} to {cpu[-1]:.3f})")


if __name__ == "__main__":
    main()
