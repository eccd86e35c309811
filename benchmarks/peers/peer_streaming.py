# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming: records in MDS shards, all of them local."""
import measure
import numpy
import torch
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torch.utils.data import DataLoader


def prepare(task):
    folder = task.fresh_folder()
    with MDSWriter(out=str(folder), columns={"bytes": "bytes"}, size_limit=1 << 26) as writer:
        for record in numpy.load(task.records, mmap_mode="r"):
            writer.write({"bytes": record.tobytes()})
    return measure.folder_size(folder)


def stack(samples):
    rows = numpy.frombuffer(b"".join(sample["bytes"] for sample in samples), numpy.uint8)
    return torch.from_numpy(rows.reshape(len(samples), -1).copy())


def batches(task):
    clean_stale_shared_memory()  # memory that an interrupted run left
    data = StreamingDataset(local=str(task.folder), shuffle=True, batch_size=task.batch_size,
                            num_canonical_nodes=1)
    loader = DataLoader(data, batch_size=task.batch_size, num_workers=task.n_cores,
                        prefetch_factor=task.options["prefetch"], collate_fn=stack,
                        drop_last=True, persistent_workers=True)
    while True:
        yield from loader


if __name__ == "__main__":
    measure.main(batches, prepare, packages=["mosaicml-streaming", "torch"])
