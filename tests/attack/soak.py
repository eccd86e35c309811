# SPDX-License-Identifier: Apache-2.0
"""soak: loaders are used in every way for minutes (soak.c), and the process must not grow.

60 times all loaders are closed and what the process holds is measured. From the end of the first third to the end
of the last third descriptors and threads must be equal, and memory must be the same within TOLERANCE.
"""
import struct
import subprocess
import pathlib
import shutil
import statistics

import material
import process
from ledger import say

N_IMAGES = 48
N_DAMAGED = 3
N_MEASURED = 60  # lines of a whole run: N_PERIODS of soak.c
COLUMNS = ("seconds", "busy", "idle", "heap", "descriptors", "threads", "opens", "epochs", "batches", "seeks",
           "interrupts")
# (column, part that it may grow by, bytes that it may grow by): medians of the first and last third's second half
TOLERANCE = (("busy", 0.10, 16 << 20), ("idle", 0.05, 8 << 20), ("heap", 0.02, 256 << 10))


def damage(folder, n):
    """Flip one byte of the data of n records of a data set's first shard."""
    path = next(pathlib.Path(folder).glob("*.pstk"))
    data = bytearray(path.read_bytes())
    n_records, _, index = struct.unpack_from("<3Q", data, 24)
    offsets = struct.unpack_from(f"<{n_records + 1}Q", data, index + 16)
    for k in range(1, n_records, -(-n_records // n)):
        data[(offsets[k] + 3 * offsets[k + 1]) // 4] ^= 0x55
    path.write_bytes(data)


def takes_direct(args, data):
    done = process.run([args.build.penstock, "bench", data, "--io", "direct", "--epochs", "1", "--no-ceilings"])
    return done.status == 0


def check_growth(lines, ledger):
    """Compare the last third with the first one."""
    third = len(lines) // 3
    first, last = lines[third // 2:third], lines[-(third - third // 2):]
    for column, part, fixed in TOLERANCE:
        a, b = (statistics.median(line[column] for line in some) for some in (first, last))
        most = a + max(part * a, fixed)
        say(f"     {column}: {a / 1e6:.2f} MB after the first third, {b / 1e6:.2f} MB after the last; "
            f"at most {most / 1e6:.2f} MB")
        ledger.check(column, [f"{column} memory grew from {a:.0f} to {b:.0f} bytes"] if b > most else [])
    for column in ("descriptors", "threads"):
        found = sorted({int(line[column]) for line in lines})
        say(f"     {column}: {' '.join(map(str, found))}")
        ledger.check(column, [f"the number of {column} was {found}, not always the same"] if len(found) > 1 else [])


def attack(args, ledger):
    if args.case and args.case not in "loader busy idle heap descriptors threads":
        return
    root = pathlib.Path(args.root)
    images = material.images(args.build, root / "images", N_IMAGES, args.seed)
    data = material.pack(args.build, images, root / "data")
    shutil.copytree(data, root / "damaged")
    damage(root / "damaged", N_DAMAGED)
    command = [args.build.soak, data, root / "damaged", str(args.minutes * 60), str(args.seed)]
    command += ["direct"] if takes_direct(args, data) else []
    with open(root / "errors", "w+") as errors:
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, text=True)
        lines = []
        for text in child.stdout:
            lines.append(dict(zip(COLUMNS, map(float, text.split()))))
            if len(lines) % 6 == 0:
                say("     " + " ".join(f"{name} {int(value)}" for name, value in lines[-1].items()))
        status = child.wait()
        errors.seek(0)
        text = errors.read()
    ledger.check("loader", [f"soak ended with status {status}"] if status or len(lines) < N_MEASURED else [],
                 text, f"--minutes {args.minutes:g}")
    ledger.ok(max(0, len(lines) - 1))  # each period compared every row and every epoch's digest
    if len(lines) == N_MEASURED:
        check_growth(lines, ledger)
