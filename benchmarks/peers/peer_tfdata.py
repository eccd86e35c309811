# SPDX-License-Identifier: Apache-2.0
"""tf.data: images through decode_and_crop_jpeg, of files or of TFRecords (options: path), records from TFRecord files."""
import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import measure  # noqa: E402
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

N_SHARDS = 8
SHUFFLE = 1000  # images of the buffer


def draw_window(shape):
    """Top, left, height, width, as torchvision draws them: ten at once, the first that fits.

    TensorFlow's own sample_distorted_bounding_box draws crops of 15 % less area.
    """
    height, width = shape[0], shape[1]
    area = tf.cast(height * width, tf.float32) * tf.random.uniform([10], *measure.CROP_SCALE)
    side = tf.sqrt(area)
    low, high = (math.log(ratio) / 2 for ratio in measure.CROP_RATIO)
    stretch = tf.exp(tf.random.uniform([10], low, high))
    widths = tf.cast(tf.round(side * stretch), tf.int32)
    heights = tf.cast(tf.round(side / stretch), tf.int32)
    first = tf.argmax(tf.logical_and(widths <= width, heights <= height))
    w, h = tf.minimum(widths[first], width), tf.minimum(heights[first], height)
    room = tf.cast(tf.stack([height - h + 1, width - w + 1]), tf.float32)
    at = tf.cast(tf.random.uniform([2], maxval=0.999999) * room, tf.int32)
    return tf.stack([at[0], at[1], h, w])


def crop(encoded, exact):
    window = draw_window(tf.io.extract_jpeg_shape(encoded))
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3,
                                          dct_method="INTEGER_ACCURATE" if exact else "")
    image = tf.image.resize(image, [measure.SIDE, measure.SIDE], method="bilinear",
                            antialias=exact)
    image = tf.image.random_flip_left_right(image)
    return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)


def tf_records(path):
    """Serialized Examples of the files of a folder, without end."""
    files = tf.data.Dataset.list_files(os.path.join(path, "*.tfrecord"), shuffle=True)
    return (files.repeat().interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE,
                                      deterministic=False).shuffle(SHUFFLE))


def image_of(serialized):
    features = {"jpg": tf.io.FixedLenFeature([], tf.string), "cls": tf.io.FixedLenFeature([], tf.int64)}
    return tf.io.parse_single_example(serialized, features)["jpg"]


def images(task):
    exact = task.options.get("exact", False)
    if "path" in task.options:
        source, encoded_of = tf_records(task.options["path"]), image_of
    else:
        paths = tf.data.Dataset.from_tensor_slices(task.files)
        source, encoded_of = paths.shuffle(len(task.files)).repeat(), tf.io.read_file
    return (source.map(lambda one: crop(encoded_of(one), exact), num_parallel_calls=tf.data.AUTOTUNE,
                       deterministic=False)
            .batch(task.batch_size, drop_remainder=True))


def records(task):
    """Return batches before decode_raw: one call for a batch, not one for a record."""
    size = task.options["record_size"]
    shards = tf.data.Dataset.list_files(str(task.folder / "*.tfrecord"), shuffle=True)
    return (shards.repeat()
            .interleave(tf.data.TFRecordDataset, cycle_length=N_SHARDS, block_length=16,
                        num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
            .shuffle(task.options["shuffle"]).batch(task.batch_size, drop_remainder=True)
            .map(lambda raw: tf.io.decode_raw(raw, tf.uint8, fixed_length=size),
                 num_parallel_calls=tf.data.AUTOTUNE, deterministic=False))


def prepare(task):
    if not task.records:
        return None
    folder = task.fresh_folder()
    source = numpy.load(task.records, mmap_mode="r")
    for shard, part in enumerate(numpy.array_split(source, N_SHARDS)):
        with tf.io.TFRecordWriter(str(folder / f"{shard}.tfrecord")) as writer:
            for record in part:
                writer.write(record.tobytes())
    return measure.folder_size(folder)


def batches(task):
    tf.config.threading.set_intra_op_parallelism_threads(task.n_cores)
    tf.config.threading.set_inter_op_parallelism_threads(task.n_cores)
    options = tf.data.Options()
    options.threading.private_threadpool_size = task.n_cores
    options.threading.max_intra_op_parallelism = 1
    stream = records(task) if task.records else images(task)
    return stream.with_options(options).prefetch(tf.data.AUTOTUNE).as_numpy_iterator()


if __name__ == "__main__":
    measure.main(batches, prepare, packages=["tensorflow-cpu"])
