# SPDX-License-Identifier: Apache-2.0
"""The library's orders and batches are those of a second implementation, which was written from ORDER.md."""
import ctypes
import pathlib
import random
import re
import sys
import unittest

from penstock import _c

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import order_model as model  # noqa: E402

KINDS = ((_c.ORDER_FULL, model.Full), (_c.ORDER_SEQUENTIAL, model.Sequential), (_c.ORDER_WINDOWED, model.Windowed))
RULES = (("drop", _c.LAST_DROP), ("pad", _c.LAST_PAD), ("short", _c.LAST_SHORT))


def settings_of(kind, n, seed=0, epoch=0, **members):
    return _c.OrderSettings(**{"size": ctypes.sizeof(_c.OrderSettings), "order": kind, "n_samples": n, "seed": seed,
                               "epoch": epoch, "world": 1, **members})


def batch_of(settings, position):
    """Return the ids of the library's batch; None past the end."""
    ids = (ctypes.c_uint64 * (settings.batch_size or -(-settings.global_batch_size // settings.world)))()
    n_valid = _c.lib.pstk_order_batch(ctypes.byref(settings), position, ids)
    assert n_valid >= 0
    if position >= settings.n_samples or not _c.lib.pstk_order_n_batches(ctypes.byref(settings), position):
        assert n_valid == 0
        return None
    return list(ids[:n_valid])


def ids_at(settings, positions):
    settings.batch_size, settings.last_batch = 1, _c.LAST_SHORT
    return [batch_of(settings, k)[0] for k in positions]


class Orders(unittest.TestCase):
    def compare(self, kind, n, seed, epoch, positions, **interleave):
        order = KINDS[kind][1](n, seed, epoch, **interleave)
        with self.subTest(kind=kind, n=n, seed=seed, epoch=epoch, **interleave):
            positions = list(positions)
            self.assertEqual(ids_at(settings_of(kind, n, seed, epoch, **interleave), positions),
                             [order.at(k) for k in positions])

    def test_every_n_up_to_300(self):
        for n in range(1, 301):
            self.compare(n % 3, n, n, 3 * n, range(n))
            self.compare(_c.ORDER_WINDOWED, n, n, 5, range(n), ways=n % 7 + 1, block=n % 11 + 1, window=n % 5 + 1)

    def test_around_powers_of_two(self):
        draw = random.Random(1)
        for bits in range(9, 18):
            for n in (2**bits - 1, 2**bits, 2**bits + 1):
                positions = [0, 1, n // 2, n - 2, n - 1] + [draw.randrange(n) for _ in range(10)]
                for kind, _ in KINDS:
                    self.compare(kind, n, bits, n, positions)

    def test_networks_of_blocks_and_of_windows_around_powers_of_two(self):
        draw = random.Random(2)
        for n_blocks in (1023, 1024, 1025, 2047, 2048, 2049):
            for short in (0, 1):
                n = 8 * n_blocks - short
                positions = [0, n - 1] + [draw.randrange(n) for _ in range(20)]
                self.compare(_c.ORDER_WINDOWED, n, 3, 4, positions, block=8, ways=5, window=9)
        for size in [2**bits + off for bits in range(1, 12) for off in (-1, 0, 1)]:
            self.compare(_c.ORDER_WINDOWED, 5000, 1, 2, [draw.randrange(5000) for _ in range(20)], block=size, window=1)
            self.compare(_c.ORDER_WINDOWED, 5000, 1, 2, [draw.randrange(5000) for _ in range(20)], block=1, window=size)

    def test_random_cases(self):
        draw = random.Random(3)
        for _ in range(150):
            n = int(2 ** draw.uniform(1, 17))
            positions = [draw.randrange(n) for _ in range(10)]
            self.compare(_c.ORDER_FULL, n, draw.getrandbits(64), draw.getrandbits(64), positions)
            interleave = {"ways": draw.choice((0, 1, 2, 48, draw.randrange(1, 65537))),
                     "block": draw.choice((0, 1, 64, draw.randrange(1, 3000))),
                     "window": draw.choice((0, 1, 4, draw.randrange(1, 4097)))}
            self.compare(_c.ORDER_WINDOWED, n, draw.getrandbits(64), draw.getrandbits(64), positions, **interleave)

    def test_many_samples(self):
        """Whole blocks only: the model finds a short one by looking through all."""
        draw = random.Random(4)
        for n in (10**9, 10**12, 2**40 + 64, 2**62):
            positions = [0, 1, n - 1] + [draw.randrange(n) for _ in range(20)]
            self.compare(_c.ORDER_FULL, n, 5, 6, positions)
            self.compare(_c.ORDER_WINDOWED, n, 5, 6, positions)
        self.compare(_c.ORDER_WINDOWED, 2**32 + 1, 5, 6, [0, 2**31, 2**32], block=2**20, window=4096, ways=65536)

    def test_the_golden_vectors_of_the_page(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/spec/ORDER.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) (?:\| (\d+), (\d+), (\d+) )?\| ([\d, ]+) \|$", page, re.M)
        self.assertGreaterEqual(len(rows), 20)
        for *numbers, ids in rows:
            n, seed, epoch = map(int, numbers[:3])
            interleave = dict(zip(("ways", "block", "window"), map(int, filter(None, numbers[3:]))))
            with self.subTest(n=n, seed=seed, epoch=epoch, **interleave):
                positions = [min(k, n - 1) for k in (0, 1, 2, n // 2, n - 1)]
                settings = settings_of(_c.ORDER_WINDOWED if interleave else _c.ORDER_FULL, n, seed, epoch, **interleave)
                self.assertEqual(ids_at(settings, positions), [int(x) for x in ids.split(",")])

    def test_the_library_and_the_model_fill_in_the_same_settings(self):
        for n in (1, 4095, 4096, 12287, 12288, 49151, 49152, 10**12):
            for given in ({}, {"ways": 5}, {"block": 6}, {"window": 7, "ways": 8}):
                settings = settings_of(_c.ORDER_WINDOWED, n, batch_size=1, **given)
                self.assertEqual(_c.lib.pstk_order_settle(ctypes.byref(settings)), 0)
                self.assertEqual((settings.ways, settings.block, settings.window), model.settle(n, **given))


class Batches(unittest.TestCase):
    def compare(self, kind, n, world, global_batch, rule, position=0):
        """Walk an epoch of all ranks from a position on; return the batches, and the ids of all of them."""
        name, last_batch = rule
        order = KINDS[kind][1](n, 7, 8)
        settings = settings_of(kind, n, 7, 8, world=world, global_batch_size=global_batch, last_batch=last_batch)
        begin, n_batches, all_ids = position, None, []
        for settings.rank in range(world):
            position, count = begin, 0
            while True:
                wanted = model.batch(order, n, position, global_batch, settings.rank, world, name)
                self.assertEqual(batch_of(settings, position), wanted, (kind, n, world, global_batch, name, position))
                if wanted is None:
                    break
                all_ids += wanted
                position += global_batch
                count += 1
            self.assertEqual(count, _c.lib.pstk_order_n_batches(ctypes.byref(settings), begin))
            self.assertIn(n_batches, (None, count))  # the same for every rank
            n_batches = count
        return n_batches, all_ids

    def test_ranks_and_rules(self):
        for n in (1, 2, 7, 64, 100, 257):
            for world in (1, 2, 3, 8, 48):
                for global_batch in (world, world + 1, 2 * world, 60 + world):
                    for kind, _ in KINDS:
                        short, ids = self.compare(kind, n, world, global_batch, RULES[2])
                        self.assertEqual(sorted(ids), list(range(n)))  # each once
                        self.assertEqual(short, -(-n // global_batch))
                        pad, ids = self.compare(kind, n, world, global_batch, RULES[1])
                        self.assertEqual((pad, len(ids)), (short, short * global_batch))
                        self.assertEqual(set(ids), set(range(n)))
                        drop, ids = self.compare(kind, n, world, global_batch, RULES[0])
                        self.assertEqual(drop, n // global_batch)
                        self.assertEqual(len(set(ids)), drop * global_batch)

    def test_random_positions(self):
        draw = random.Random(5)
        for _ in range(150):
            n, world = draw.randrange(1, 5000), draw.randrange(1, 20)
            self.compare(draw.randrange(3), n, world, draw.randrange(world, 2000), draw.choice(RULES),
                         draw.randrange(n + 10))


if __name__ == "__main__":
    unittest.main()
