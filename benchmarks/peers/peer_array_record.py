# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord: its own batch read in full random order, or Grain's threads over it."""
import concurrent.futures

import measure
import numpy
from array_record.python import array_record_module


def paths_of(task):
    n_shards = task.options["shards"]
    return [str(task.folder / f"{shard:03}.array_record") for shard in range(n_shards)]


def prepare(task):
    task.fresh_folder()
    source = numpy.load(task.records, mmap_mode="r")
    parts = numpy.array_split(source, task.options["shards"])
    for path, part in zip(paths_of(task), parts):
        writer = array_record_module.ArrayRecordWriter(path, "group_size:1,uncompressed")
        for record in part:
            writer.write(record.tobytes())
        writer.close()
    return measure.folder_size(task.folder)


def stack(rows):
    return numpy.frombuffer(b"".join(rows), numpy.uint8).reshape(len(rows), -1)


def batch_reads(task):
    """Yield batches, with a read in flight for each core: read() lets go of Python's lock. One call takes time that
    grows with the file, whatever it reads, so each takes several batches."""
    reader = array_record_module.ArrayRecordReader(
        paths_of(task)[0], "readahead_buffer_size:0,max_parallelism:0")
    random = numpy.random.default_rng(0)
    n, size = reader.num_records(), task.batch_size
    span = min(n // size, task.options["prefetch"]) * size

    def read(indices):
        rows = reader.read(indices)
        return [stack(rows[at:at + size]) for at in range(0, len(rows), size)]

    with concurrent.futures.ThreadPoolExecutor(task.n_cores) as pool:
        waiting = []
        while True:
            order = random.permutation(n).tolist()
            for at in range(0, n - span + 1, span):
                waiting.append(pool.submit(read, order[at:at + span]))
                if len(waiting) > task.n_cores:
                    yield from waiting.pop(0).result()


def grain_batches(task):
    import grain

    source = grain.sources.ArrayRecordDataSource(paths_of(task))
    data = (grain.MapDataset.source(source).shuffle(seed=0).repeat()
            .batch(task.batch_size, drop_remainder=True, batch_fn=stack)
            .to_iter_dataset(grain.ReadOptions(num_threads=task.n_cores,
                                               prefetch_buffer_size=task.options["prefetch"])))
    return iter(data)


def batches(task):
    return grain_batches(task) if task.options.get("grain") else batch_reads(task)


if __name__ == "__main__":
    measure.main(batches, prepare, packages=["array-record", "grain"])
