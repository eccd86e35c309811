# SPDX-License-Identifier: Apache-2.0
"""The data sets of bench_foreign.py: the same samples in .pstk and in each other format."""
import array
import os
import random
import shutil
import struct
import subprocess
import tarfile

import penstock
import tfrecords

N_CLASSES = 10
IMAGE_SHARD = "64M"  # enough shards for two workers of the other readers
TOKENS = 8           # code of uint16 in Megatron's .idx
MDS_SHARD = 1 << 26


def settle(folder):
    """Have the files in the page cache as reading puts them there, whatever pieces they were written in."""
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb", buffering=0) as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while file.read(1 << 20):
                    pass


# ---- images --------------------------------------------------------------------------------------

def copy_images(files, n, folder):
    """n copies of the files, in turn, in class folders."""
    for k in range(N_CLASSES):
        os.makedirs(os.path.join(folder, f"class{k}"))
    for i in range(n):
        shutil.copyfile(files[i % len(files)], os.path.join(folder, f"class{i % N_CLASSES}", f"{i:06}.jpg"))


def make_images(command, files, n, folder):
    """By name, the path of each data set."""
    paths = {name: os.path.join(folder, name) for name in (".pstk", "folder", "webdataset", "tfrecord", "mds")}
    copy_images(files, n, paths["folder"])

    def run(*line):
        subprocess.run([command, *line], check=True, stdout=subprocess.DEVNULL)
    run("pack", paths["folder"], paths[".pstk"], "--jpeg", "keep")
    for name in ("webdataset", "tfrecord", "mds"):
        run("export", paths[".pstk"], paths[name], "--to", name, "--fields", "jpg,cls", "--shard-size", IMAGE_SHARD)
    return paths


# ---- records -------------------------------------------------------------------------------------

def random_records(n, size):
    chance = random.Random(1)
    return (chance.randbytes(size) for _ in range(n))


def write_pstk(path, records):
    with penstock.Writer(path, {"bin": penstock.Field("bytes", codec="none")}) as writer:
        for record in records:
            writer.add({"bin": record})


def write_pstk_classes(path, records):
    with penstock.Writer(path, {"bin": penstock.Field("bytes", codec="none"), "cls": "int64"}) as writer:
        for i, record in enumerate(records):
            writer.add({"bin": record, "cls": i % N_CLASSES})


def write_member(file, name, data, form=tarfile.USTAR_FORMAT, mtime=0):
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(data), mtime
    file.write(info.tobuf(form))
    file.write(data)
    file.write(bytes(-len(data) % tarfile.BLOCKSIZE))


def write_tar(path, records, form=tarfile.USTAR_FORMAT, mtime=0, classes=False):
    with open(os.path.join(path, "0.tar"), "wb") as file:
        for i, record in enumerate(records):
            write_member(file, f"{i:09}.bin", record, form, mtime)
            if classes:
                write_member(file, f"{i:09}.cls", b"%d" % (i % N_CLASSES), form, mtime)
        file.write(bytes(tarfile.RECORDSIZE))


def write_tar_classes(path, records):
    write_tar(path, records, classes=True)


def write_tar_pax(path, records):
    """As webdataset's TarWriter: a time with a fraction puts a header of pax records, 1 kB, before each member."""
    write_tar(path, records, tarfile.PAX_FORMAT, 1700000000.125)


def write_tfrecord(path, records):
    tfrecords.write(os.path.join(path, "0.tfrecord"), records)


def write_same_tfrecords(path, n_files, per_file):
    """Files of the same records of 16 bytes."""
    first = os.path.join(path, "0.tfrecord")
    tfrecords.write(first, [bytes(16)] * per_file)
    for i in range(1, n_files):
        shutil.copyfile(first, os.path.join(path, f"{i}.tfrecord"))


def write_example(path, records):
    tfrecords.write(os.path.join(path, "0.tfrecord"), (tfrecords.example({"bin": [record]}) for record in records))


def mds_shard(records):
    """Return the bytes of a shard of one column without a size of its own, as MosaicML Streaming lays it out."""
    config = b"{}"
    at = 4 + 4 * (len(records) + 1) + len(config)
    offsets = array.array("I", [at])
    for record in records:
        at += 4 + len(record)
        offsets.append(at)
    samples = b"".join(struct.pack("<I", len(record)) + record for record in records)
    return struct.pack("<I", len(records)) + offsets.tobytes() + config + samples


def write_mds(path, records):
    shards, records = [], list(records)
    per_shard = max(1, MDS_SHARD // (len(records[0]) + 8))
    for first in range(0, len(records), per_shard):
        some = records[first:first + per_shard]
        name, data = f"shard.{len(shards):05}.mds", mds_shard(some)
        with open(os.path.join(path, name), "wb") as file:
            file.write(data)
        shards.append({"column_encodings": ["bytes"], "column_names": ["bin"], "column_sizes": [None], "compression": None,
                       "format": "mds", "hashes": [], "raw_data": {"basename": name, "bytes": len(data), "hashes": {}},
                       "samples": len(some), "size_limit": MDS_SHARD, "version": 2, "zip_data": None})
    with open(os.path.join(path, "index.json"), "w", encoding="utf-8") as file:
        file.write(str({"shards": shards, "version": 2}).replace("'", '"').replace("None", "null"))


def write_megatron(path, records):
    """Documents of one sequence of uint16 tokens each."""
    lengths, pointers, at = array.array("i"), array.array("q"), 0
    with open(os.path.join(path, "corpus.bin"), "wb") as file:
        for record in records:
            lengths.append(len(record) // 2)
            pointers.append(at)
            at += file.write(record)
    documents = array.array("q", range(len(lengths) + 1))
    with open(os.path.join(path, "corpus.idx"), "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, TOKENS, len(lengths), len(documents)))
        file.write(lengths.tobytes() + pointers.tobytes() + documents.tobytes())


RECORDS = {".pstk": write_pstk, "tar": write_tar, "tar, pax": write_tar_pax, "tfrecord": write_tfrecord,
           "tfrecord, Example": write_example, "mds": write_mds, "megatron": write_megatron,
           ".pstk, classes": write_pstk_classes, "tar, classes": write_tar_classes}
BASES = {name: ".pstk, classes" if name.endswith(", classes") else ".pstk" for name in RECORDS}  # compared with which


def make_records(n, size, folder):
    """By name, the path of each data set."""
    paths = {}
    for name, write in RECORDS.items():
        paths[name] = os.path.join(folder, name.replace(", ", "-").lstrip("."))
        if not name.startswith(".pstk"):
            os.mkdir(paths[name])
        write(paths[name], random_records(n, size))
    return paths
