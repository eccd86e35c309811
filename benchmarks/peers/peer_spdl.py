# SPDX-License-Identifier: Apache-2.0
"""SPDL: FFmpeg decodes the whole image and its filters crop, scale and flip, in threads."""
import random

import measure
import spdl.io
from spdl.pipeline import PipelineBuilder


def decode(path):
    packets = spdl.io.demux_image(path)
    left, top, width, height = measure.crop_box(packets.width, packets.height)
    # With 4:2:0, `crop` moves to even positions, where the chroma is: at most a pixel away.
    steps = [f"crop={width}:{height}:{left}:{top}",
             f"scale={measure.SIDE}:{measure.SIDE}:flags=bilinear"]
    if random.random() < 0.5:
        steps.append("hflip")
    filters = spdl.io.get_video_filter_desc(filter_desc=",".join(steps), pix_fmt="rgb24")
    return spdl.io.decode_packets(packets, filter_desc=filters)


def convert(frames):
    return spdl.io.to_numpy(spdl.io.convert_frames(frames))


def batches(task):
    pipeline = (PipelineBuilder().add_source(measure.files_forever(task))
                .pipe(decode, concurrency=task.n_cores, output_order="completion")
                .aggregate(task.batch_size).pipe(convert)
                .add_sink(task.options["prefetch"]).build(num_threads=task.n_cores))
    with pipeline.auto_stop():
        yield from pipeline


if __name__ == "__main__":
    measure.main(batches, packages=["spdl", "spdl-io"])
