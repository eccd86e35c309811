# SPDX-License-Identifier: Apache-2.0
"""Exports are read by the libraries that they are for: webdataset, MosaicML Streaming, torchvision's ImageFolder, and
Google's Protocol Buffers and CRC32C for TFRecord, which needs no TensorFlow then."""
import io
import json
import os
import struct
import unittest

import export_data
import penstock
import sets
from data_fixture import Case, image_file, np, optional
from export_data import ARRAYS, N, sample, some
from tfrecords import example_class

sets.need_numpy()
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def opened(data):
    return np.asarray(optional("PIL.Image").open(io.BytesIO(data)))


class Libraries(Case):
    def export(self, schema, to, **settings):
        data = export_data.write(self.path(), schema)
        return penstock.export(data, to=to, out=self.path("out"), **settings)

    def test_webdataset(self):
        wds = optional("webdataset")
        schema = {name: kind for name, kind in export_data.SCHEMA.items() if name not in ("views", "files")}
        done = self.export(schema, "webdataset", shard_size=1 << 16)
        urls = [self.path(f"out/{i:06}.tar") for i in range(done.n_shards)]
        raw = list(wds.WebDataset(urls, shardshuffle=False))
        decoded = list(wds.WebDataset(urls, shardshuffle=False).decode("rgb8"))
        self.assertEqual([one["__key__"] for one in decoded], [f"{i:09}" for i in range(N)])
        for i, (files, one) in enumerate(zip(raw, decoded)):
            given = sample(i)
            suffix = "image.jpg" if i % 3 == 0 else "image.png"
            if isinstance(given["image"], bytes):
                self.assertEqual(files[suffix], given["image"])
            self.assertEqual(one[suffix].shape, (40, 56, 3))
            self.assertTrue((one["mask.png"][..., 0] == given["mask"]).all())
            self.assertEqual((one["cls"], one["small.cls"], one["large.npy"]), (given["cls"], given["small"], given["large"]))
            self.assertEqual(np.float32(one["weight.json"]), np.float32(given["weight"]))
            self.assertEqual(one["double.json"], given["double"])
            self.assertEqual((one["text"], one["captions.json"]), (given["text"], given["captions"]))
            self.assertEqual(one["raw.bin"], given["raw"])
            for name in ARRAYS:
                self.assertEqual((one[name + ".npy"].dtype, one[name + ".npy"].tolist()),
                                 (given[name].dtype, given[name].tolist()))

    def test_mosaicml_streaming(self):
        streaming = optional("streaming")
        schema = {name: kind for name, kind in export_data.SCHEMA.items() if name != "files"}
        done = self.export(schema, "mds", shard_size=1 << 16)
        self.assertGreater(done.n_shards, 1)
        read = streaming.StreamingDataset(local=self.path("out"), shuffle=False, batch_size=1)
        self.assertEqual(len(read), N)
        for i in range(N):
            one, given = read[i], sample(i)
            self.assertEqual(sorted(one), sorted(schema))
            image = opened(given["image"]) if isinstance(given["image"], bytes) else given["image"]
            self.assertTrue((np.asarray(one["image"]) == image).all())
            self.assertTrue((np.asarray(one["mask"]) == given["mask"]).all())
            for name in ("cls", "small", "large", "double", "text", "raw", "captions"):
                self.assertEqual(one[name], given[name], name)
            self.assertEqual((one["weight"], one["half"], one["brain"]),
                             (np.float32(given["weight"]), np.float16(given["half"]), np.float32(given["brain"])))
            for name in ARRAYS:
                self.assertEqual((one[name].dtype, one[name].tolist()), (given[name].dtype, given[name].tolist()))
            views = [opened(view) if isinstance(view, bytes) else view for view in given["views"]]
            self.assertEqual([np.asarray(view).tolist() for view in one["views"]], [view.tolist() for view in views])

    def test_mosaicml_streaming_finds_what_its_own_writer_writes(self):
        """Byte for byte, the configuration's blanks and limits apart."""
        streaming = optional("streaming")
        columns = {"cls": "int", "text": "str", "fixed": "ndarray:int16:2,3", "tokens": "ndarray:uint16", "image": "jpeg"}
        export_data.write(self.path(), some(*columns), 20, lambda i: {**sample(5 * i + 1), "image": image_file(i)})
        penstock.export(self.path(), to="mds", out=self.path("out"))
        with streaming.MDSWriter(out=self.path("theirs"), columns=columns) as writer:
            for i in range(20):
                writer.write({**{name: sample(5 * i + 1)[name] for name in columns}, "image": image_file(i)})
        found = []
        for folder in ("out", "theirs"):
            with open(self.path(folder + "/index.json"), encoding="utf-8") as file:
                index = json.load(file)
            with open(self.path(folder + "/shard.00000.mds"), "rb") as file:
                data = file.read()
            n, begin = struct.unpack_from("<II", data)
            config = json.loads(data[4 + 4 * (n + 1):begin])
            offsets = np.frombuffer(data, "<u4", n + 1, 4) - begin
            index["shards"][0]["raw_data"].pop("bytes")
            found.append((index, config, n, offsets.tolist(), data[begin:]))
        self.assertEqual(*found)

    def test_protocol_buffers(self):
        crc32c, example = optional("google_crc32c"), example_class()
        schema = {name: kind for name, kind in export_data.SCHEMA.items() if name != "double"}
        done, n = self.export(schema, "tfrecord", shard_size=1 << 16), 0
        for k in range(done.n_shards):
            with open(self.path(f"out/{k:05}-of-{done.n_shards:05}.tfrecord"), "rb") as file:
                data = file.read()
            at = 0
            while at < len(data):
                size, crc = struct.unpack_from("<QI", data, at)
                record = data[at + 12:at + 12 + size]
                for what, masked in ((data[at:at + 8], crc), (record, struct.unpack_from("<I", data, at + 12 + size)[0])):
                    plain = crc32c.value(what)
                    self.assertEqual(((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF, masked)
                at += 16 + size
                self.check_features(example.FromString(record).features.feature, sample(n), schema)
                n += 1
        self.assertEqual(n, N)

    def check_features(self, feature, given, schema):
        self.assertEqual(set(feature), {*schema, "grid/shape"})
        self.assertEqual(list(feature["cls"].int64_list.value), [given["cls"]])
        self.assertEqual(list(feature["large"].int64_list.value), [given["large"]])
        self.assertEqual(np.float32(feature["weight"].float_list.value[0]), np.float32(given["weight"]))
        for name in ARRAYS:
            kind = "float_list" if given[name].dtype.kind == "f" else "int64_list"
            self.assertEqual(feature[name].WhichOneof("kind"), kind)
            self.assertEqual(list(getattr(feature[name], kind).value), given[name].ravel().tolist())
        self.assertEqual(list(feature["grid/shape"].int64_list.value), list(given["grid"].shape))
        self.assertEqual(list(feature["captions"].bytes_list.value), [text.encode() for text in given["captions"]])
        self.assertEqual(list(feature["files"].bytes_list.value), given["files"])
        if isinstance(given["image"], bytes):
            self.assertEqual(feature["image"].bytes_list.value[0], given["image"])

    def test_image_folder(self):
        folder = optional("torchvision.datasets").ImageFolder
        with penstock.Writer(self.path(), {"jpg": "image", "cls": "int64"}, names=["cat", "dog"]) as writer:
            for i in range(20):
                writer.add(jpg=image_file(i), cls=i % 2)
        penstock.export(self.path(), to="folder", out=self.path("out"))
        read = folder(self.path("out"))
        self.assertEqual(read.classes, ["cat", "dog"])
        ids = [*range(0, 20, 2), *range(1, 20, 2)]
        self.assertEqual([label for _, label in read.samples], [i % 2 for i in ids])
        for i, (path, _) in zip(ids, read.samples):
            with open(path, "rb") as file:
                self.assertEqual(file.read(), image_file(i))

    def test_hugging_face(self):
        datasets = optional("datasets")
        datasets.disable_progress_bars()
        self.export({name: export_data.SCHEMA[name] for name in ("image", "cls", "text", "captions")}, "folder")
        read = datasets.load_dataset("imagefolder", data_dir=self.path("out"), split="train", cache_dir=self.path("cache"))
        by_text = {one["text"]: one for one in read}
        self.assertEqual(len(by_text), N)
        for i in range(N):
            one, given = by_text[sample(i)["text"]], sample(i)
            self.assertEqual((one["cls"], list(one["captions"])), (given["cls"], given["captions"]))
            self.assertEqual(np.asarray(one["image"]).shape, (40, 56, 3))

    def test_hugging_face_reads_class_names(self):
        datasets = optional("datasets")
        datasets.disable_progress_bars()
        with penstock.Writer(self.path(), {"jpg": "image", "cls": "int64", "id": "int64"}, names=["dog", "cat"]) as writer:
            for i in range(20):
                writer.add(jpg=image_file(i), cls=i % 2, id=i)
        penstock.export(self.path(), to="folder", out=self.path("out"))
        read = datasets.load_dataset("imagefolder", data_dir=self.path("out"), split="train", cache_dir=self.path("cache"))
        self.assertEqual({one["id"]: one["label"] for one in read}, {i: ["dog", "cat"][i % 2] for i in range(20)})


if __name__ == "__main__":
    unittest.main()
