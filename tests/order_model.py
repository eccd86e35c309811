# SPDX-License-Identifier: Apache-2.0
"""A second implementation of penstock's orders, written from ORDER.md alone: whole numbers of Python, nothing else.
The sections have the names of those in ORDER.md. test_order_model.py compares it with the library; run as a program
it prints golden vectors."""
import sys

ALL = 2**64 - 1  # arithmetic is modulo 2^64


# ---- Numbers: mix64, Philox4x32-10, draws ----
def mix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & ALL
    x = (x ^ x >> 27) * 0x94D049BB133111EB & ALL
    return x ^ x >> 31


def philox(c, k):
    for i in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        k0, k1 = (k[0] + i * 0x9E3779B9) % 2**32, (k[1] + i * 0xBB67AE85) % 2**32
        c = (q >> 32 ^ c[1] ^ k0, q % 2**32, p >> 32 ^ c[3] ^ k1, p % 2**32)
    return c


class Draws:
    """The words of a stream: one purpose, seed and epoch."""

    def __init__(self, purpose, seed, epoch):
        key = mix64((seed + int.from_bytes(purpose, "big")) & ALL)
        self.key, self.epoch, self.n = (key % 2**32, key >> 32), (epoch % 2**32, epoch >> 32), 0

    def u64(self):
        words = philox((self.n // 2, 0) + self.epoch, self.key)
        low, high = words[2 * (self.n % 2):][:2]
        self.n += 1
        return high << 32 | low

    def below(self, n):
        while True:
            product = self.u64() * n
            if product & ALL >= 2**64 % n:
                return product >> 64


# ---- Permutations: the network, and the table for few ----
def network(keys, twist, n, x):
    bits = max((n - 1).bit_length(), 4)
    left_bits = bits // 2
    right_bits = bits - left_bits

    def function(x, key, bits):
        x = (x + key + twist) * 0xBF58476D1CE4E5B9 & ALL
        x = (x ^ x >> 32) * 0x94D049BB133111EB & ALL
        return x >> 64 - bits

    while True:
        left, right = divmod(x, 2**right_bits)
        for even, odd in zip(keys[::2], keys[1::2]):
            left ^= function(right, even, left_bits)
            right ^= function(left, odd, right_bits)
        x = left * 2**right_bits + right
        if x < n:
            return x


class Permutation:
    def __init__(self, n, draws):
        self.n = n
        self.table = list(range(n)) if n <= 1024 else None
        for i in range(n - 1, 0, -1) if self.table else ():
            j = draws.below(i + 1)
            self.table[i], self.table[j] = self.table[j], self.table[i]
        self.keys = [draws.u64() for _ in range(8)] if not self.table else None

    def at(self, k):
        return self.table[k] if self.table else network(self.keys, 0, self.n, k)


# ---- The orders ----
class Sequential:
    def __init__(self, n, seed, epoch):
        self.at = range(n).__getitem__


class Full(Permutation):
    def __init__(self, n, seed, epoch):
        super().__init__(n, Draws(b"order01", seed, epoch))


def settle(n, ways=0, block=0, window=0):
    return ways or next(c for c in (48, 12, 4, 1) if n >= 1024 * c or c == 1), block or 64, window or 4


class Windowed:
    def __init__(self, n, seed, epoch, ways=0, block=0, window=0):
        self.n = n
        self.ways, self.block, self.window = settle(n, ways, block, window)
        self.n_blocks = -(-n // self.block)
        self.blocks = Permutation(self.n_blocks, Draws(b"window01", seed, epoch))
        draws = Draws(b"window02", seed, epoch)
        self.keys = [draws.u64() for _ in range(8)]
        self.window_key, self.row_key = draws.u64(), draws.u64()
        # The last block's place in the line. It is searched for, not computed, and only by readers that can wait.
        self.last = None
        if n % self.block:
            self.last = next(j for j in range(self.n_blocks) if self.blocks.at(j) == self.n_blocks - 1)

    def at(self, k):
        i, s = divmod(k, self.ways)
        begin = s * (self.n // self.ways) + min(s, self.n % self.ways)  # beginning of the way, in the line
        size = self.n // self.ways + (s < self.n % self.ways)
        whole = self.window * self.block
        phase = s * whole // self.ways
        w = (i + phase) // whole
        first, end = max(w * whole - phase, 0), min((w + 1) * whole - phase, size)
        if end - first > 1:
            twist = mix64((mix64((self.window_key + s) & ALL) + w) & ALL)
            i = first + network(self.keys, twist, end - first, i - first)
        return self.sample(begin + i)

    def sample(self, at):
        """Return the id at a place of the line of samples."""
        j, row = divmod(at, self.block)
        rows = self.block
        if self.last is not None:
            short, begin = self.n % self.block, self.last * self.block
            if at >= begin + short:
                j, row = divmod(at + self.block - short, self.block)
            if j == self.last:
                rows = short
        turn = (mix64((self.row_key + j) & ALL) >> 32) * rows >> 32
        return self.blocks.at(j) * self.block + (row + turn) % rows


# ---- Batches: what the ranks have ----
def batch(order, n, position, global_batch, rank, world, last_batch):
    """Return the ids of a rank in the global batch at a position; None past the end."""
    end = position + global_batch
    if position >= n or last_batch == "drop" and end > n:
        return None
    if last_batch == "short":
        end = min(end, n)
    return [order.at(k % n) for k in range(position + (rank - position) % world, end, world)]


if __name__ == "__main__":
    for size, *rest in [map(int, line.split()) for line in sys.stdin]:
        model = Windowed(size, *rest)
        print(size, *rest, *[model.at(min(k, size - 1)) for k in (0, 1, 2, size // 2, size - 1)])
