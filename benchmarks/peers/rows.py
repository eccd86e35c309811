# SPDX-License-Identifier: Apache-2.0
"""The rows of the tables: each is one peer with one set of settings. A new row is one line."""
import dataclasses

RECORD_SIZE = 2048  # bytes
IMAGE_BATCH = 64
RECORD_BATCH = 1024


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    unit: str
    about: str


@dataclasses.dataclass(frozen=True)
class Row:
    name: str          # unique
    table: str
    title: str
    script: str        # peer_SCRIPT.py
    environment: str   # a name in environments.py; "" for this Python
    options: dict      # options that the script reads
    note: str          # settings, for the reader of the table
    kind: str = "peer"  # peer, penstock, ceiling, or other: not compared with the peers
    data: str = ""     # the folder of its files, prepared once for all rows that name it
    choices: tuple = ()  # values of options["prefetch"] that `run tune` tries

    @property
    def folder(self):
        return self.data or self.name


TABLES = {
    "jpeg": Table(
        "JPEG files as they are", "images/s",
        "Random resized crop to 224 x 224, horizontal flip; batches of 64, uint8, HWC."),
    "small": Table(
        "Files packed with a longer side of 512 pixels, quality 90", "images/s",
        "The same crops. Packing resized the images, with loss."),
    "raw": Table(
        "Files packed as pixels, shorter side 256", "images/s",
        "The same crops. Packing decoded and resized the images, and stored uint8 pixels."),
    "records": Table(
        f"Records of {RECORD_SIZE} random bytes", "records/s",
        f"Batches of {RECORD_BATCH} records as uint8, from the page cache."),
}

FULL = "full random order"
F16 = ["--dtype", "f16", "--layout", "nchw"]
KEEP = ["--jpeg", "keep"]


def penstock(name, table, title, note, pack=(), bench=(), kind="penstock", **options):
    """Return a row of penstock. pack, bench: options added to these commands."""
    what = "records" if table == "records" else "images"
    return Row(name, table, title, "penstock", "",
               {"pack": list(pack), "bench": ["--io", "buffered", *bench], **options}, note, kind,
               "_".join(["penstock", what, *pack]))


ROWS = [
    penstock("penstock", "jpeg", "penstock", "`pack` and `bench` with their defaults"),
    penstock("penstock-f16", "jpeg", "penstock, normalised f16 NCHW",
             "the same data, `--dtype f16 --layout nchw`", bench=F16, kind="other"),
    penstock("penstock-center", "jpeg", "penstock, resize 256, centre crop 224",
             "validation: `--crop center`", bench=["--crop", "center"], kind="other"),
    penstock("penstock-avx2", "jpeg", "penstock, kernels of AVX2", "`--kernels avx2`",
             bench=["--kernels", "avx2"], kind="other"),
    penstock("penstock-1", "jpeg", "penstock, 1 worker", "`--threads 1`", threads=1,
             kind="other"),
    penstock("penstock-keep", "jpeg", "penstock, JPEGs kept", "`pack --jpeg keep`", pack=KEEP,
             kind="other"),
    penstock("libjpeg", "jpeg", "libjpeg-turbo alone, whole images x cores",
             "the reference that `penstock bench` prints: no crop, no resize, no batches", pack=KEEP,
             kind="ceiling", reference="libjpeg_turbo_samples_per_second"),
    Row("pillow", "jpeg", "PyTorch DataLoader, Pillow", "dataloader", "torch",
        {"decode": "pillow", "prefetch": 4},
        "torchvision transforms on PIL images; a worker for each core, persistent, "
        "prefetch {prefetch}", choices=(2, 4, 8)),
    Row("torchvision", "jpeg", "PyTorch DataLoader, torchvision.io", "dataloader", "torch",
        {"decode": "torchvision", "prefetch": 4},
        "decode_jpeg, transforms v2 on uint8 with antialias; a worker for each core, persistent, "
        "prefetch {prefetch}", choices=(2, 4, 8)),
    Row("dali", "jpeg", "DALI CPU, ROI decoder", "dali", "dali", {"decode": "roi", "prefetch": 2},
        "image_random_crop, resize with antialias; a thread for each core, prefetch {prefetch}",
        choices=(1, 2, 4)),
    Row("dali-full", "jpeg", "DALI CPU, whole decode", "dali", "dali",
        {"decode": "full", "prefetch": 2},
        "image, random_resized_crop; otherwise the same, prefetch {prefetch}", choices=(1, 2, 4)),
    Row("ffcv", "jpeg", "FFCV, the files' own bytes", "ffcv", "ffcv",
        {"write": "keep", "prefetch": 3},
        "a field that stores the JPEG as it is; its fast DCT and upsampling, area resize; "
        "os_cache, a thread for each core, {prefetch} batches ahead", choices=(2, 3, 6)),
    Row("tfdata", "jpeg", "tf.data, decode_and_crop_jpeg", "tfdata", "tf", {},
        "its fast DCT, bilinear without antialias, its fastest way; AUTOTUNE, a private pool with one "
        "thread for each core, order of completion"),
    Row("tfdata-exact", "jpeg", "tf.data, exact DCT, antialias", "tfdata", "tf", {"exact": True},
        "the quality of the other loaders; otherwise the same"),
    Row("spdl", "jpeg", "SPDL", "spdl", "spdl", {"prefetch": 4},
        "FFmpeg decodes whole images; crop, bilinear scale and flip as its filters; a thread for "
        "each core, order of completion, {prefetch} batches ahead", choices=(2, 4, 8)),
    Row("simplejpeg", "jpeg", "simplejpeg in a thread pool", "simplejpeg", "simplejpeg",
        {"prefetch": 2},
        "decode_jpeg of whole images, Pillow resizes the crop; a thread for each core, "
        "{prefetch} batches ahead", choices=(1, 2, 4)),
    Row("penstock-python", "jpeg", "penstock, Python package", "python", "torch",
        {"pack": [], "bench": []}, "`for batch in penstock.Loader(...)`, PyTorch tensors", kind="other",
        data="penstock_images"),
    penstock("penstock-512", "small", "penstock", "`pack --max-side 512 --quality 90`",
             pack=["--max-side", "512", "--quality", "90"]),
    Row("ffcv-512", "small", "FFCV", "ffcv", "ffcv",
        {"write": "jpg", "longer_side": 512, "quality": 90, "prefetch": 3},
        "max_resolution 512, write_mode jpg; otherwise as above, {prefetch} batches ahead",
        choices=(2, 3, 6)),
    penstock("penstock-raw", "raw", "penstock", "`pack --pixels 256`", pack=["--pixels", "256"]),
    Row("ffcv-raw", "raw", "FFCV", "ffcv", "ffcv",
        {"write": "raw", "shorter_side": 256, "prefetch": 3},
        "resized by Pillow, write_mode raw; otherwise as above, {prefetch} batches ahead",
        choices=(2, 3, 6)),
    penstock("penstock-records", "records", "penstock", f"{FULL}, every checksum verified"),
    penstock("penstock-sequential", "records", "penstock, sequential", "`--order sequential`",
             bench=["--order", "sequential"], kind="other"),
    Row("penstock-python-records", "records", "penstock, Python package", "python", "torch",
        {"pack": [], "bench": []}, f"{FULL}, PyTorch tensors", kind="other", data="penstock_records"),
    Row("numpy", "records", "NumPy, fancy indexing of a memory map", "numpy", "array_record", {},
        f"{FULL}; one thread, no checks, no loader", kind="ceiling"),
    Row("dataloader", "records", "PyTorch DataLoader over a memory map", "dataloader", "torch",
        {"prefetch": 4}, f"{FULL}; __getitems__ takes whole batches; a worker for each core, "
        "prefetch {prefetch}, no checks", choices=(2, 4, 8)),
    Row("array-record", "records", "ArrayRecord, batch read", "array_record", "array_record",
        {"shards": 1, "prefetch": 16},
        f"{FULL}; one file, group_size 1, uncompressed; a read of {{prefetch}} batches in flight "
        "for each core", choices=(1, 4, 16)),
    Row("grain", "records", "ArrayRecord through Grain", "array_record", "array_record",
        {"shards": 64, "grain": True, "prefetch": 16},
        f"{FULL}; 64 files, because single reads are faster in small files; a thread for each core, "
        "prefetch {prefetch}", choices=(4, 16, 64)),
    Row("litdata", "records", "LitData, tokens loader", "litdata", "torch", {"prefetch": 4},
        "its shuffle: order of chunks (64 MB), and within each; a worker for each core, "
        "prefetch {prefetch}", choices=(2, 4, 8)),
    Row("streaming", "records", "MosaicML Streaming", "streaming", "torch", {"prefetch": 4},
        "its shuffle (py1e) within blocks of shards of 64 MB; a worker for each core, "
        "prefetch {prefetch}", choices=(2, 4, 8)),
    Row("tfrecord", "records", "tf.data, TFRecord", "tfdata", "tf", {"shuffle": 10000},
        "8 files interleaved, a shuffle buffer of 10 000; AUTOTUNE"),
    Row("webdataset", "records", "WebDataset", "webdataset", "torch",
        {"shuffle": 10000, "prefetch": 4},
        "8 tar files, a shuffle buffer of 10 000 in each worker; a worker for each core, "
        "prefetch {prefetch}", choices=(2, 4, 8)),
]


@dataclasses.dataclass(frozen=True)
class Aim:
    text: str
    row: str
    reference: str  # a row; "best TABLE" for the best peer of a table
    least: float


AIMS = [
    Aim("original files / best peer", "penstock", "best jpeg", 4),
    Aim("original files / libjpeg-turbo, whole images x cores", "penstock", "libjpeg", 2.3),
    Aim("through Python / the command, original files", "penstock-python", "penstock", 0.97),
    Aim("through Python / the command, 2 kB records", "penstock-python-records", "penstock-records",
        0.9),
    Aim("original files, AVX2 alone / best peer", "penstock-avx2", "best jpeg", 3),
    Aim("normalised f16 NCHW / uint8", "penstock-f16", "penstock", 0.95),
    Aim("validation / libjpeg-turbo, whole images x cores", "penstock-center", "libjpeg", 2),
    Aim("all workers / 1 worker", "penstock", "penstock-1", 1.9),
    Aim("files packed as pixels / FFCV", "penstock-raw", "ffcv-raw", 5),
    Aim("2 kB records / ArrayRecord's batch read", "penstock-records", "array-record", 5),
]
