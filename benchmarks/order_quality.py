#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how well orders shuffle, and print the tables of ORDER.md as Markdown. Seeds are fixed: same versions, same
figures.

    order_quality.py [--library FILE] [--peers FOLDER] [--only WORD] [--small]

--library: libpenstock.so (else PENSTOCK_LIBRARY). --peers: the site-packages of an environment where
mosaicml-streaming and grain are installed (`pip install --no-deps mosaicml-streaming grain`); only their shuffles are
loaded, not the packages around them. Without it their rows are left out. NumPy is needed; without torch, NumPy's
permutation takes the place of randperm. Some 5 minutes on an idle core; --small: seconds, on less data.
Exit status 1: an order of penstock is no permutation, or its samples prefer some positions.
"""
import argparse
import ctypes
import importlib
import math
import os
import pathlib
import sys
import types

try:
    import numpy as np
except ImportError:
    print("order_quality.py: NumPy is missing (pip install numpy)")
    sys.exit(77)  # a skipped test

SHARD = 600  # samples of a shard of 64 MB, for orders that shuffle shards
N_CLASSES, BATCH, Z = 1000, 256, 5  # Z: an ideal shuffle passes except with probability 3e-7


# ---- the orders: (n, epoch) -> ids in the order in which they come ----
def penstock(lib, order, **interleave):
    """struct pstk_order_settings by hand: this needs the library alone."""
    class Settings(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64 if name in ("n_samples", "seed", "epoch") else ctypes.c_uint32)
                    for name in ("size order n_samples seed epoch batch_size rank world last_batch global_batch_size "
                                 "reserved ways block window reserved2").split()]

    lib.pstk_order_batch.restype = ctypes.c_int64
    lib.pstk_order_batch.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]

    def ids_of(n, epoch):
        ids = np.empty(n, np.uint64)
        settings = Settings(ctypes.sizeof(Settings), order, n, 42, epoch, n, world=1, last_batch=2, **interleave)
        if lib.pstk_order_batch(ctypes.byref(settings), 0, ids.ctypes.data) != n:
            raise SystemExit("pstk_order_batch failed")
        return ids.astype(np.int64)
    return ids_of


def randperm():
    try:
        import torch
    except ImportError:
        return "NumPy's permutation", lambda n, epoch: np.random.default_rng(epoch).permutation(n)
    return "torch.randperm", lambda n, epoch: torch.randperm(
        n, generator=torch.Generator().manual_seed(epoch)).numpy()


def shuffle_buffer(size, by_shards):
    """As tf.data's: a random one of `size` leaves, the next of the source takes its place."""
    def ids_of(n, epoch):
        rng = np.random.default_rng([7, epoch])
        shards = rng.permutation(-(-n // SHARD)) if by_shards else np.arange(-(-n // SHARD))
        source = (shards[:, None] * SHARD + np.arange(SHARD)).ravel()
        source = source[source < n].tolist()
        held, out = source[:size], []
        for i, at in zip(source[size:], rng.integers(0, size, max(n - size, 0)).tolist()):
            out.append(held[at])
            held[at] = i
        rng.shuffle(held)
        return np.array(out + held)
    return ids_of


def stub(site, package):
    """Let modules inside a package be imported without what its own __init__ imports."""
    name = ""
    for part in package.split("."):
        name = f"{name}.{part}" if name else part
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = [str(pathlib.Path(site, *name.split(".")))]
    return package


def mosaic(site, name, block):
    module = importlib.import_module(f"{stub(site, 'streaming.base.shuffle')}.{name}")
    shuffle = getattr(module, f"get_shuffle_{name}")

    def ids_of(n, epoch):
        sizes = np.full(-(-n // SHARD), SHARD)
        sizes[-1] = n - SHARD * (len(sizes) - 1)
        return shuffle(sizes, 1, 9176, epoch, block)
    return ids_of


def grain(site):
    package = stub(site, "grain._src.python.experimental.index_shuffle.python")
    shuffle = importlib.import_module(f"{package}.index_shuffle_module").index_shuffle
    return lambda n, epoch: np.fromiter((shuffle(i, n - 1, 42 + epoch, 4) for i in range(n)), np.int64, n)


def orders(lib, site):
    yield *randperm(), "all"
    yield "penstock full", penstock(lib, 0), "-"
    if site:
        yield "Grain index_shuffle", grain(site), "-"
        for name in ("py1e", "py1br"):
            yield f"MosaicML {name}, block 262 144", mosaic(site, name, 1 << 18), "262 144"
            yield f"MosaicML {name}, block 15 360", mosaic(site, name, 15360), "15 360"
    yield "buffer of 10 000", shuffle_buffer(10000, False), "10 000"
    yield "shards shuffled, buffer of 10 000", shuffle_buffer(10000, True), "10 000"
    for ways, block, window in ((48, 64, 1), (48, 64, 2), (48, 64, 4), (48, 64, 8), (48, 64, 16), (48, 4, 4),
                                   (48, 4, 16), (192, 64, 4), (768, 64, 4)):
        yield (f"penstock windowed, C = {ways}, b = {block}, W = {window}",
               penstock(lib, 2, ways=ways, block=block, window=window),
               f"{ways * (window + 1) * block:,}".replace(",", " "))


# ---- what is measured ----
def normal_of(chi, df):
    """Return the normal deviate of a chi-square (Wilson and Hilferty)."""
    return ((chi / df) ** (1 / 3) - (1 - 2 / (9 * df))) / math.sqrt(2 / (9 * df))


def positions_over_epochs(ids_of, n, n_epochs):
    """Test where samples that lie far from each other come, in many epochs. Return the normal deviate of a chi-square
    over 64 parts of the epoch: for the positions of all of them together, and the most for any one eighth of the data
    set."""
    watched = np.arange(n // 192, n, n // 96)
    counts = np.zeros((8, 64))
    for epoch in range(n_epochs):
        place = np.empty(n, np.int64)
        place[ids_of(n, epoch)] = np.arange(n)
        np.add.at(counts, (watched * 8 // n, place[watched] * 64 // n), 1)
    expected = counts.sum(1, keepdims=True) / 64
    return max(normal_of(chi, 63) for chi in ((counts - expected) ** 2 / expected).sum(1))


def serial(ids):
    """Return the correlation of neighbours, and the largest with any of the next 1000: its lag, too."""
    x = ids - ids.mean()
    size = 1 << (2 * len(x) - 1).bit_length()
    spectrum = np.fft.rfft(x, size)
    r = np.fft.irfft(spectrum * spectrum.conj(), size)[:1001]
    r /= r[0]
    lag = 1 + int(np.abs(r[1:]).argmax())
    return r[1], r[lag], lag


def longest_run(same):
    ends = np.flatnonzero(np.concatenate(([True], ~same, [True])))
    return int(np.diff(ends).max())


def figures(ids_of, n, n_epochs):
    """Means over epochs, of the data sorted by class."""
    found = []
    before = None
    rng = np.random.default_rng(1)
    for epoch in range(n_epochs):
        ids = ids_of(n, epoch)
        if not np.array_equal(np.sort(ids), np.arange(n)):
            raise SystemExit("not a permutation")
        classes = ids * N_CLASSES // n
        same = classes[1:] == classes[:-1]
        batches = classes[:n // BATCH * BATCH].reshape(-1, BATCH)
        counts = np.zeros((len(batches), N_CLASSES), np.int32)
        np.add.at(counts, (np.arange(len(batches))[:, None], batches), 1)
        expected = BATCH / N_CLASSES
        place = np.empty(n, np.int64)
        place[ids] = np.arange(n)
        next_one, most, lag = serial(ids)
        row = {
            "lag 1": abs(next_one), "most": abs(most), "at": lag,
            "runs": same.sum() / (n / N_CLASSES), "longest": longest_run(same),
            "chi": ((counts - expected) ** 2 / expected).sum(1).mean() / (N_CLASSES - 1),
            "distinct": (counts > 0).sum(1).mean(), "least": (counts > 0).sum(1).min(),
            "moved": np.abs(place - np.arange(n)).mean() / n,
            "near": (np.abs(np.diff(place)) < BATCH).mean() / (2 * BATCH / n),
        }
        if before is not None:
            first = rng.integers(0, n // BATCH * BATCH, 2000000)
            other = first // BATCH * BATCH + rng.integers(0, BATCH, len(first))
            first, other = first[first != other], other[first != other]
            again = place[before[first]] // BATCH == place[before[other]] // BATCH
            row["again"] = again.mean() / (BATCH / n)
        before = ids
        found.append(row)
    extreme = {"longest": max, "least": min, "at": max}
    return {key: extreme.get(key, np.mean)([row[key] for row in found if key in row]) for key in found[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=os.environ.get("PENSTOCK_LIBRARY", "build-gcc/src/libpenstock.so.0"))
    parser.add_argument("--peers")
    parser.add_argument("--only", default="", help="the orders whose names have this")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    lib = ctypes.CDLL(given.library)
    n, n_epochs = (60000, 2) if given.small else (1281167, 4)
    n_small, n_many = (49152, 20) if given.small else (98304, 200)
    bound = Z / math.sqrt(n)
    print(f"{n} samples sorted by class, {N_CLASSES} classes; means over {n_epochs} epochs.\n")
    print("| order | held | z of positions | r, lag 1 | r, most | at lag | same class next | longest run "
          "| chi-square / df of a batch | classes in a batch | fewest | displacement | neighbours near | met again |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    is_even = True
    for name, ids_of, held in orders(lib, given.peers):
        if given.only not in name:
            continue
        z = positions_over_epochs(ids_of, n_small, n_many)
        is_even &= z < Z or not name.startswith("penstock")
        f = figures(ids_of, n, n_epochs)
        most = f"{f['most']:.3f} | {f['at']}" if f["most"] >= bound else "none | "
        print(f"| {name} | {held} | {z:.1f}{'' if z < Z else ' !'} | {f['lag 1']:.4f} | {most} "
              f"| {f['runs']:.2f} | {f['longest']} | {f['chi']:.3f} | {f['distinct']:.1f} | {f['least']} "
              f"| {f['moved']:.3f} | {f['near']:.1f} | {f['again']:.1f} |", flush=True)
    print(f"\nCorrelations below {bound:.4f} are none: an ideal shuffle passes that, and z < {Z}, except with probability "
          "3e-7 for each figure (6e-7 for a correlation, 6e-4 for the most of 1000 lags).")
    return 0 if is_even else 1


if __name__ == "__main__":
    sys.exit(main())
