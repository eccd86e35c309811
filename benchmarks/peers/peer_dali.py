# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on the CPU: its decoder reads only the crop's rows of a JPEG."""
import measure
from nvidia.dali import fn, pipeline_def, types


@pipeline_def
def crops(files, decode):
    encoded, _ = fn.readers.file(files=files, random_shuffle=True, initial_fill=len(files),
                                 name="reader")
    area, ratio = list(measure.CROP_SCALE), list(measure.CROP_RATIO)
    if decode == "roi":
        images = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB,
                                               random_area=area, random_aspect_ratio=ratio)
        images = fn.resize(images, size=[measure.SIDE, measure.SIDE], antialias=True)
    else:
        images = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
        images = fn.random_resized_crop(images, size=[measure.SIDE, measure.SIDE],
                                        random_area=area, random_aspect_ratio=ratio)
    return fn.flip(images, horizontal=fn.random.coin_flip())


def batches(task):
    pipe = crops(task.files, task.options["decode"], batch_size=task.batch_size,
                 num_threads=task.n_cores, device_id=None, seed=0,
                 prefetch_queue_depth=task.options["prefetch"])
    pipe.build()
    while True:
        (images,) = pipe.run()
        yield images.as_array()


if __name__ == "__main__":
    measure.main(batches, packages=["nvidia-dali-cuda130"])
