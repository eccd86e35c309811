# SPDX-License-Identifier: Apache-2.0
"""LitData: records as blocks of its token loader, which maps the chunks into memory."""
import os

os.environ.setdefault("DISABLE_VERSION_CHECK", "1")

import litdata  # noqa: E402
import measure  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from litdata.streaming.item_loader import TokensLoader  # noqa: E402

N_PARTS = 64


class Part:
    """One item of optimize(): the records of one of N_PARTS, one after another."""

    def __init__(self, path):
        self.path = path

    def __call__(self, part):
        source = numpy.load(self.path, mmap_mode="r")
        for record in numpy.array_split(source, N_PARTS)[part]:
            yield torch.from_numpy(record.copy())


def prepare(task):
    folder = task.fresh_folder()
    size = task.options["record_size"]
    litdata.optimize(fn=Part(task.records), inputs=list(range(N_PARTS)), output_dir=str(folder),
                     chunk_size=(1 << 26) // size * size, num_workers=task.n_cores,
                     item_loader=TokensLoader(block_size=size))
    return measure.folder_size(folder)


def batches(task):
    data = litdata.StreamingDataset(
        input_dir=str(task.folder), shuffle=True, drop_last=True,
        item_loader=TokensLoader(block_size=task.options["record_size"]))
    loader = litdata.StreamingDataLoader(data, batch_size=task.batch_size,
                                         num_workers=task.n_cores, drop_last=True,
                                         prefetch_factor=task.options["prefetch"],
                                         persistent_workers=True)
    while True:
        for batch in loader:
            if len(batch) == task.batch_size:
                yield batch


if __name__ == "__main__":
    measure.main(batches, prepare, packages=["litdata", "torch"])
