# SPDX-License-Identifier: Apache-2.0
"""WebDataset: records as files of tar shards, a shuffle buffer in each worker."""
import measure
import numpy
import torch
import webdataset

N_SHARDS = 8


def prepare(task):
    folder = task.fresh_folder()
    source = numpy.load(task.records, mmap_mode="r")
    n = 0
    for shard, part in enumerate(numpy.array_split(source, N_SHARDS)):
        with webdataset.TarWriter(str(folder / f"{shard:03}.tar")) as writer:
            for record in part:
                writer.write({"__key__": f"{n:09}", "bin": record.tobytes()})
                n += 1
    return measure.folder_size(folder)


def stack(samples):
    rows = numpy.frombuffer(b"".join(sample["bin"] for sample in samples), numpy.uint8)
    return torch.from_numpy(rows.reshape(len(samples), -1).copy())


def batches(task):
    urls = sorted(str(path) for path in task.folder.glob("*.tar"))
    data = webdataset.DataPipeline(
        webdataset.ResampledShards(urls), webdataset.tarfile_to_samples(),
        webdataset.shuffle(task.options["shuffle"], initial=task.options["shuffle"]),
        webdataset.batched(task.batch_size, collation_fn=stack, partial=False))
    return iter(webdataset.WebLoader(data, batch_size=None, num_workers=task.n_cores,
                                     prefetch_factor=task.options["prefetch"]))


if __name__ == "__main__":
    measure.main(batches, prepare, packages=["webdataset", "torch"])
