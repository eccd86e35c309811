# SPDX-License-Identifier: Apache-2.0
"""hostile: data sets whose checksums are right and whose content is hostile, read in every way.

The ASan build reads each with verify, verify --decode, get, and bench under both policies for bad samples and with
one and three workers. No read crashes, hangs, or prints a control character; a failure names its place; what succeeds
is right: `get` gives bytes of the stated checksum, any number of workers gives the same digest or the same error,
and bench finds nothing damaged in what verify calls whole. The release build reads them within BOUND bytes.
"""
import os
import pathlib
import re
import resource
import shutil
import struct
import zlib

import builds
import forge
import material
import mutation
import process
from ledger import say
from material import draws

BOUND = 256 << 20  # resident bytes of any command, past 4 times the data set's own
OPEN_BOUND = 64 << 20  # resident bytes of opening, past 4 times the manifest's, more than for a data set of 2 records
OPEN_SECONDS = 10  # bound on opening a data set whose manifest has 30 MB
ADDRESS_SPACE = 8 << 30  # so that one that takes far more harms nobody; release build only
LIMIT = 60  # seconds of one command
N_HONEST, N_HOSTILE = 8, 16  # records of one data set
N_FILES = 10  # kinds of files in place of a shard
# ASan writes an eighth of what is allocated, also of what nobody touches: past 1 GiB it refuses.
SANITIZERS = {"ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:exitcode=99:quarantine_size_mb=32:"
                              "max_allocation_size_mb=1024:hard_rss_limit_mb=4000",
              "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99"}
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


# ---- honest records to begin with -------------------------------------------------------------------

def image_records(args, crc, name, *options):
    """Records of what pack makes of images."""
    root = pathlib.Path(args.root)
    if not (root / "images").exists():
        material.images(args.build, root / "images", 40, args.seed)
    data = material.pack(args.build, root / "images", root / f"honest-{name}", *options)
    return forge.values_of(data)


def file_records(args, crc):
    """Image files as they came: made ones, and the corpora of the fuzz targets."""
    fields, records, dictionaries = image_records(args, crc, "files", "--jpeg", "keep")
    label, key = records[0][1:]
    for path in sorted((builds.TOP / "tests/fuzz/corpus/image").iterdir()):
        data = path.read_bytes()
        if data[:8] == b"\x89PNG\r\n\x1a\n" and b"IEND" not in data:
            continue  # damaged: no honest data set has it
        if data[:8] == b"\x89PNG\r\n\x1a\n":
            width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
            channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(data[25], 0)
            image = forge.Value(data, encoding=2, channels=channels, bit_depth=data[24], width=width, height=height,
                                flags=forge.reader.PALETTE if data[25] == 3 else 0)
        else:
            width, height, channels, bit_depth = forge.reader.jpeg_frame(data) or (1, 1, 3, 8)
            image = forge.Value(data, encoding=1, channels=channels, bit_depth=bit_depth, width=width, height=height)
        records += [[image, label, key]] * 3
    return fields, records, dictionaries


def value_records(args, crc):
    """Records of every kind of field except images."""
    field, compress = forge.Field, mutation.zstd()
    fields = [field("bytes", "bytes"), field("bytes_zstd", "bytes", codec="zstd"), field("text", "utf8"),
              field("text_zstd", "utf8", codec="zstd"), field("scalar", "scalar", "f32"),
              field("fixed", "ndarray", "u16", [3, 5]), field("large", "ndarray", "f64", [2, 3, 100]),
              field("ragged", "ndarray", "f16", [0, 4]), field("shaped", "ndarray", "i8", [0, 0]),
              field("shaped_zstd", "ndarray", "bf16", [0, 2, 0], codec="zstd")]
    rng, records = draws(args.seed, "values"), []

    def packed(data):
        small = compress(data)
        return forge.Value(small, len(data), crc(data), 1) if len(small) < len(data) else forge.Value(data)

    for k in range(40):
        text = f"record {k}: größe ".encode() * (1 + k % 9)
        rows, columns = 1 + k % 7, 1 + k % 5
        cube = rows.to_bytes(8, "little") + (2).to_bytes(8, "little") + columns.to_bytes(8, "little")
        grid = rows.to_bytes(8, "little") + columns.to_bytes(8, "little")
        records.append([forge.Value(rng.randbytes(k * 7)), packed(b"abc" * (20 + k)), forge.Value(text), packed(text),
                        forge.Value(rng.randbytes(4)), forge.Value(rng.randbytes(30)), forge.Value(bytes(4800)),
                        forge.Value(bytes(8 * (k % 11))), forge.Value(grid + bytes(rows * columns)),
                        packed(cube + bytes(4 * rows * columns))])
    return fields, records, []


def sample_records(args, crc):
    """Return pixels of every kind that becomes RGB, masks of both encodings, and lists: images are pixels, and each has
    a mask of its size."""
    field, rng, records = forge.Field, draws(args.seed, "samples"), []
    fields = [field("image", "image"), field("mask", "mask", of="image"), field("images", "image_list"),
              field("masks", "mask_list", of="image")]

    def pixels(channels, depth, width, height):
        return forge.Value(rng.randbytes(width * height * channels * depth // 8), encoding=3, channels=channels,
                           bit_depth=depth, width=width, height=height)

    def listed(*items):
        head, data = struct.pack("<I12x", len(items)), b""
        for item in items:
            head += struct.pack("<I4BII", len(item.stored), item.encoding, item.channels, item.bit_depth, item.flags,
                                item.width, item.height)
            data = data.ljust(forge.reader.aligned(len(data)), b"\0") + item.stored
        return forge.Value(head + data, width=max((item.width for item in items), default=0),
                           height=max((item.height for item in items), default=0))

    def png(width, height, most=16):
        color, depth = rng.choice([(0, 1 << i) for i in range(5) if 1 << i <= most] + [(3, 1 << i) for i in range(4)])
        rows = b"".join(b"\0" + rng.randbytes((width * depth + 7) // 8) for _ in range(height))
        chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))]
        chunks += [(b"PLTE", bytes(3 << depth))] * (color == 3) + [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
        return forge.Value(mutation.png_of(chunks), encoding=2, channels=1, bit_depth=depth, width=width, height=height,
                           flags=forge.reader.PALETTE if color == 3 else 0)

    for k in range(40):
        width, height = 1 + rng.randrange(40), 1 + rng.randrange(40)
        channels, depth = ((1, 8), (3, 8), (4, 8), (3, 16), (4, 16))[k % 5]
        some = [pixels(1, 8, width, height), pixels(1, 16, width, height), png(width, height)]
        records.append([pixels(channels, depth, width, height), rng.choice(some),
                        listed(*[pixels(3, 8, 5, 4), pixels(4, 16, 1, 9), png(7, 3, 8)][:k % 4]), listed(*some[:k % 4])])
    return fields, records, []


def kind_records(args, crc):
    """Records of every kind of field, by the program that writes them for the second reader."""
    data = pathlib.Path(args.root) / "honest-kinds"
    material.must([args.build.write_sample, data, 40])
    return forge.values_of(data)


def sources(args, crc):
    """name -> (fields, records, dictionaries)."""
    return {"planes": image_records(args, crc, "planes"),
            "files": file_records(args, crc),
            "pixels": image_records(args, crc, "pixels", "--pixels", "48"),
            "pixels-zstd": image_records(args, crc, "pixels-zstd", "--pixels", "48", "--compress", "zstd"),
            "samples": sample_records(args, crc),
            "kinds": kind_records(args, crc),
            "values": value_records(args, crc)}


# ---- readers ------------------------------------------------------------------------------------------

class Reader:
    """Runs commands on one data set, and collects what is wrong with how they end."""

    def __init__(self, args, folder):
        self.args, self.folder = args, str(folder)
        self.found, self.shown = [], []
        self.room = 4 * 512 * sum(path.lstat().st_blocks for path in pathlib.Path(folder).iterdir())

    def wrong(self, what, done):
        self.found.append(what)
        self.shown.append(done.shown())

    def run(self, words, build=None, binary=False):
        """Run a command of the ASan build on the data set; returns its outcome."""
        build = build or self.args.asan
        done = process.run([build.penstock, *words[:1], self.folder, *words[1:]], LIMIT,
                           env={**os.environ, **SANITIZERS}, prepare=bound if build is self.args.build else None)
        name = " ".join(words)
        if done.hung:
            self.wrong(f"{name} hangs", done)
        elif re.search("ERROR: [A-Za-z]*Sanitizer|runtime error:", done.err) or done.status not in (0, 1, 2):
            self.wrong(f"{name} ends with status {done.status}", done)
        elif done.status and not done.err.strip() and not done.text.strip():
            self.wrong(f"{name} fails without a word", done)
        elif CONTROL.search(done.err) or not binary and CONTROL.search(done.text):
            self.wrong(f"{name} prints control characters of the data", done)
        return done

    def bench(self, policy):
        """Both numbers of workers; returns the status."""
        ends = []
        for threads, reader in (("1", "threads"), ("3", "auto")):
            done = self.run(["bench", "--epochs", "1", "--digest", "--no-ceilings", "--size", "32", "--last", "short",
                             "--batch-size", "8", "--on-bad", policy, "--threads", threads, "--reader", reader, "--json"])
            digest = re.search('"digest": "([0-9a-f]+)"', done.text)
            ends.append((done.status, digest[1] if digest else done.err))
            if done.status == 0 and not digest:
                self.wrong("bench succeeds without a digest", done)
            if done.status == 1 and not re.search(r"shard-|manifest|memory|record|\.zdict", done.err):
                self.wrong("bench fails and names no place", done)
        # Each worker has memory of its own: of more workers one may get none.
        if ends[0] != ends[1] and not self.found and "memory" not in str(ends):
            self.wrong(f"bench --on-bad {policy}: one worker gives {ends[0]}, three give {ends[1]}", done)
        return ends[0][0]

    def verify(self):
        """Return whether the data set is whole, images included."""
        plain, decoded = self.run(["verify"]), self.run(["verify", "--decode", "--threads", "2"])
        if plain.status and not decoded.status:
            self.wrong("verify finds damage that verify --decode does not", plain)
        return decoded.status == 0

    def get(self, record, name, value, crc, is_fixed):
        """The bytes that come are those that the entry states."""
        done = self.run(["get", str(record), name], binary=True)
        wanted = crc(value.stored) if is_fixed or value.plain_crc is None else value.plain_crc
        if done.status == 0 and crc(done.out) != wanted & 0xffffffff:
            self.wrong(f"get {record} {name} gives other bytes than the entry states", done)

    def measure(self, words):
        """Run the release build, for its memory."""
        done = self.run(words, self.args.build)
        if done.peak > BOUND + self.room:
            self.wrong(f"{' '.join(words)} takes {done.peak >> 20} MB; {(BOUND + self.room) >> 20} MB are allowed", done)
        return done


def bound():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


# ---- attacks -------------------------------------------------------------------------------------------

class Hostile:
    def __init__(self, args, ledger):
        self.args, self.ledger = args, ledger
        self.crc = forge.Checksum(args.build.library)
        self.sources = sources(args, self.crc)
        for name, (fields, records, dictionaries) in self.sources.items():
            self.check_honest(forge.Forge(self.crc, fields, records, dictionaries).write(self.folder(name, "honest")))

    def check_honest(self, folder):
        """Check that a file forged without a hostile change is intact; otherwise the tests below would show nothing."""
        for words in (["verify", folder, "--decode"], ["bench", folder, "--epochs", "1", "--no-ceilings"]):
            material.must([self.args.build.penstock, *words])
        shutil.rmtree(folder)

    def read(self, case, number, folder, n, gets=()):
        """Read a data set in every way; count n attempts. gets: (record, field, value, whether it is fixed)."""
        reader = Reader(self.args, folder)
        whole = reader.verify()
        if reader.bench("error") and whole:
            reader.found.append("bench finds damage in what verify --decode calls whole")
        reader.bench("replace")
        for record, name, value, fixed in gets:
            reader.get(record, name, value, self.crc, fixed)
        reader.measure(["verify", "--decode"])
        reader.measure(["bench", "--epochs", "1", "--no-ceilings", "--size", "32", "--on-bad", "replace"])
        self.finish(case, number, reader, folder, n)

    def folder(self, case, number):
        return pathlib.Path(self.args.root) / f"{case}-{number}"

    def records(self, case, number):
        """One data set of honest and hostile records."""
        rng = draws(self.args.seed, "hostile", case, number)
        fields, honest, dictionaries = self.sources[case]
        some = [list(rng.choice(honest)) for _ in range(N_HONEST + N_HOSTILE)]
        work = forge.Forge(self.crc, fields, some, dictionaries)
        hostile, gets = rng.sample(range(len(some)), N_HOSTILE), []
        for k in hostile:
            if rng.random() < 0.05:
                work.change_head[k] = mutation.mutate_head(rng)
                gets.append((k, fields[0].name, some[k][0], work.read[0].fixed))
                continue
            loose = [i for i, f in enumerate(work.read) if not f.fixed]
            has_one = sum(field.kind != "image" for field in fields) < 3  # the other fields are a label and a key
            i = loose[0] if has_one and fields[loose[0]].kind == "image" and rng.random() < 0.9 else rng.choice(loose)
            donors = [record[i].stored for record in rng.sample(honest, 3)]
            some[k][i] = mutation.mutate_value(rng, some[k][i], fields[i].kind, donors)
            gets.append((k, fields[i].name, some[k][i], False))
        folder = work.write(self.folder(case, number))
        self.read(case, number, folder, N_HOSTILE, [] if work.change_head else gets)

    def structure(self, case, number):
        """One data set with a hostile index, header or manifest."""
        rng = draws(self.args.seed, "hostile", case, number)
        name = "pixels-zstd" if case == "dictionary" else rng.choice(("pixels", "pixels-zstd", "values"))
        fields, honest, dictionaries = self.sources[name]
        work = forge.Forge(self.crc, fields, [list(record) for record in honest[:6]], dictionaries)
        if case == "dictionary":
            work.dictionaries = [(field, mutation.scramble(rng, data, (), 100)) for field, data in dictionaries]
        elif case == "index":
            work.change_offsets = mutation.mutate_offsets(rng)
        elif case == "header":
            work.change_header = mutation.mutate_header(rng)
        else:
            work.change_manifest = lambda m: mutation.mutate_manifest(rng, m)
        folder = work.write(self.folder(case, number))
        Reader(self.args, folder).run(["info"])
        gets = [(0, fields[0].name, honest[0][0], False)] if case in ("index", "dictionary") else []
        self.read(case, number, folder, 1, gets)

    def shard_file(self, case, number):
        """Something else than a file of that size where the manifest lists a shard."""
        fields, honest, _ = self.sources["values"]
        folder = forge.Forge(self.crc, fields, honest[:6]).write(self.folder(case, number))
        shard = folder / "shard-000000.pstk"
        data = shard.read_bytes()
        shard.unlink()
        kinds = {"absent": lambda: None, "fifo": lambda: os.mkfifo(shard), "folder": shard.mkdir,
                 "empty": lambda: shard.write_bytes(b""), "cut": lambda: shard.write_bytes(data[:5000]),
                 "longer": lambda: shard.write_bytes(data + bytes(4096)), "loop": lambda: shard.symlink_to(shard.name),
                 "device": lambda: shard.symlink_to("/dev/zero"), "dangling": lambda: shard.symlink_to("nothing"),
                 "sparse": lambda: os.truncate(shard, 1 << 43 if shard.write_bytes(data) else 0)}
        name = list(kinds)[number % len(kinds)]
        kinds[name]()
        reader = Reader(self.args, folder)
        for words in (["verify"], ["bench", "--epochs", "1", "--no-ceilings"], ["get", "0", "text"]):
            done = reader.run(words)
            if done.status == 0:
                reader.wrong(f"{words[0]} succeeds where the shard is {name}", done)
            if done.status and "shard-000000.pstk" not in done.err + done.text:
                reader.wrong(f"{words[0]} does not name the shard that is {name}", done)
            if "Invalid argument" in done.err:
                reader.wrong(f"{words[0]} says 'Invalid argument' where the shard is {name}", done)
        self.finish(case, number, reader, folder)

    def finish(self, case, number, reader, folder, n=1):
        """Count n attempts; remove the data set, except a failed one that is to be kept."""
        good = self.ledger.check(case, reader.found, "\n".join(reader.shown), f"--attempt {number} --keep")
        if good:
            self.ledger.ok(n - 1)
        if good or not self.args.keep:
            shutil.rmtree(folder, ignore_errors=True)

    def escapes(self, case, number):
        """Control characters in a note, in names, keys and file names; none reaches the terminal."""
        hostile = mutation.CONTROLS[number % len(mutation.CONTROLS)]
        fields, honest, dictionaries = self.sources["pixels"]
        work = forge.Forge(self.crc, fields, [list(record) for record in honest[:6]], dictionaries)
        work.note, work.names = f"note {hostile} end", [f"{hostile}{i}" for i in range(3)]
        for record in work.records:
            record[2] = forge.Value(f"a{hostile}b".encode())
        work.records[3][0] = mutation.mutate_pixels(draws(1), work.records[3][0].copy(codec=0), ())
        folder = work.write(self.folder(case, number))
        reader = Reader(self.args, folder)
        for words in (["info"], ["info", "--json"], ["verify", "--decode"], ["bench", "--epochs", "1", "--no-ceilings"],
                      ["bench", "--epochs", "1", "--on-bad", "replace", "--no-ceilings"], ["order"]):
            reader.run(words)
        images = folder / "images"
        images.mkdir()
        try:
            (images / f"x{hostile}y.jpg".replace("/", "_").replace("\0", "_")).write_bytes(b"no image")
            reader.folder = str(images)
            reader.run(["pack", str(folder / f"out{hostile}".replace("/", "_").replace("\0", "_"))])
        except (OSError, UnicodeEncodeError):
            pass  # a name that this file system does not take
        self.finish(case, number, reader, folder)

    def opened(self, case, change, words):
        """A command on a hostile manifest takes at most OPEN_BOUND bytes past 4 times the manifest's, more than on an
        honest one."""
        fields, honest, dictionaries = self.sources[case.split("-", 1)[1] if case.startswith("maxima") else "values"]
        small = forge.Forge(self.crc, fields, honest, dictionaries).write(self.folder(case, "small"))
        large = forge.Forge(self.crc, fields, honest, dictionaries)
        large.change_manifest = change
        folder = large.write(self.folder(case, "large"))
        base = Reader(self.args, small).run(words, self.args.build).peak
        reader = Reader(self.args, folder)
        done = reader.run(words, self.args.build)
        most = base + OPEN_BOUND + 4 * (folder / "manifest.json").stat().st_size
        if done.peak > most:
            reader.wrong(f"{words[0]} takes {done.peak >> 20} MB; {most >> 20} MB are allowed", done)
        if done.seconds > OPEN_SECONDS:
            reader.wrong(f"{words[0]} takes {done.seconds:.0f} s; {OPEN_SECONDS} s are allowed", done)
        if re.search("emory", done.err):
            reader.wrong("the maxima of the manifest are believed", done)
        self.finish(case, 0, reader, folder)
        shutil.rmtree(small)


def many_names(m):
    m["names"] = [""] * 10_000_000


def many_shards(m):
    shard = m["shards"][0]
    m["shards"] = [{**shard, "file": f"s{i}.pstk"} for i in range(300_000)]
    for key, one in (("n_samples", shard["n_records"]), ("bytes", shard["bytes"]), ("n_shards", 1)):
        m[key] = one * 300_000


def large_maxima(m):
    """No value can be as large as these say: the shards are smaller. What zstd gives may be larger than a shard."""
    for field in m["fields"]:
        if field["kind"] != "scalar" and field["name"] != "fixed":
            field["max_stored"] = (1 << 32) - 1
            if field["codec"] == "none":
                field["max_plain"] = (1 << 32) - 1


def attack(args, ledger):
    hostile = Hostile(args, ledger)
    n_sets = max(1, -(-args.records * 7 // 10 // (N_HOSTILE * len(hostile.sources))))
    n_structures = max(1, args.records // 10)
    plan = [(case, hostile.records, n_sets, N_HOSTILE) for case in hostile.sources]
    plan += [(case, hostile.structure, n_structures, 1) for case in ("index", "header", "manifest", "dictionary")]
    plan += [("shard-file", hostile.shard_file, N_FILES, 1), ("escapes", hostile.escapes, len(mutation.CONTROLS), 1)]
    for case, make, n, n_each in plan:
        if args.case and args.case != case:
            continue
        failed = ledger.failed
        numbers = range(n) if args.attempt is None else [args.attempt]
        for number in numbers:
            make(case, number)
        say(f"{'not ok' if ledger.failed > failed else 'ok'} - hostile {case}: {len(numbers)} data sets, "
            f"{len(numbers) * n_each} hostile records")
    opening, reading = ["order", "--batches", "1"], ["bench", "--epochs", "1", "--no-ceilings"]
    plan = [("open-names", many_names, opening), ("open-shards", many_shards, opening)]
    plan += [(f"maxima-{name}", large_maxima, reading) for name in hostile.sources]
    for case, change, words in plan:
        if args.case in case:
            hostile.opened(case, change, words)
