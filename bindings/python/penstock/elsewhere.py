# SPDX-License-Identifier: Apache-2.0
"""Names of torchvision and of other loaders that the package lacks, with the code to write instead. The error for such
a name quotes this advice. Tests run the code in backticks."""
from __future__ import annotations

__all__ = ["ADVICE", "BATCH_ATTRIBUTES", "BOX_FORMS", "DATASET_ATTRIBUTES", "IMAGE_KEYWORDS", "LOADER_ATTRIBUTES", "LOADER_KEYWORDS",
           "JPEG_KEYWORDS", "MIXES", "MIX_KEYWORDS", "MOSAIC_KEYWORDS", "OP_KEYWORDS",
           "PYTHON_KEYWORDS", "WRITER_ATTRIBUTES"]

# ---- names of the package ----------------------------------------------------------------------------------

# In the advice `t` is torchvision.transforms.v2, and `images` and `labels` are tensors of a batch.
_TO_TENSOR = ("batches are tensors already; write penstock.image(field, [..., penstock.ops.Normalize()], layout='nchw'): "
              "Normalize divides by 255 and gives float32; ToFloat('multiply') computes as v2.ToDtype(scale=True)")
_NO_SUCH = "there is no such operation here: "
_EACH_ROW = "`torch.stack([t(image) for image in images])`"
_DRAWS = (_NO_SUCH + "apply torchvision.transforms.v2's to each image of a batch whose layout is 'nchw': "
          + _EACH_ROW + "; one call for the whole batch would make the same random choice for all its images; "
          "what changes colours clamps normalised images: leave Normalize out of the loader, and apply "
          "v2.Normalize last")
_WHOLE = (_NO_SUCH + "apply torchvision.transforms.v2's to a whole batch whose layout is 'nchw': `t(images)`")
_CROPS = ("each part is an output of its own: `penstock.ops.five_crop('image', 16)` and `penstock.ops.ten_crop('image', 16)` "
          "are dicts of outputs, to write into outputs={**..., 'label': ...}")
_LIST = "penstock.image(field, [op, op, ...]) takes the list itself"
_LOADER = "penstock.Loader is the whole loader; docs/coming-from.md translates the arguments"
_WRITER = "write data sets with penstock.pack(data, path) or penstock.Writer(path, {name: kind})"
_PACK = ("pack the files once, with the command `penstock pack FOLDER OUT` or with penstock.pack, and open "
         "penstock.Loader(OUT)")

ADVICE = {
    # torchvision
    **dict.fromkeys(("ToTensor", "PILToTensor", "ToImage", "ConvertImageDtype", "ToDtype", "ToTorchImage",
                     "ToPureTensor"), _TO_TENSOR),
    **dict.fromkeys(("Compose", "Sequential"), _LIST),
    **dict.fromkeys(("ElasticTransform",), _DRAWS),
    # It draws for every element.
    "GaussianNoise": _WHOLE,
    **dict.fromkeys(("FiveCrop", "TenCrop"), _CROPS),
    "Lambda": (_NO_SUCH + "call the function in the loop, with a whole batch, `t(images)`, or, where it makes "
               "random choices, with each image: " + _EACH_ROW),
    "RandomSizedCrop": "it is penstock.ops.RandomResizedCrop",
    "FixedSizeCrop": "it is penstock.ops.RandomCrop(size, pad_if_needed=True, fill=fill)",
    **dict.fromkeys(("Mixup", "FastCollateMixup", "RandomMixup", "RandomCutmix", "ImageMixup", "LabelMixup"),
                    "write penstock.Loader(..., mix=penstock.MixUpCutMix(0.8, 1.0, num_classes=1000)), or MixUp or "
                    "CutMix alone"),
    # kornia, mmdetection
    **dict.fromkeys(("RandomMosaic", "CachedMosaic"), "write penstock.Loader(..., mix=penstock.Mosaic())"),
    "Scale": "it is penstock.ops.Resize",
    "InterpolationMode": "write interpolation='bicubic', or give torchvision's own",
    # PyTorch
    **dict.fromkeys(("DataLoader", "StatefulDataLoader", "StreamingDataLoader"), _LOADER),
    **dict.fromkeys(("DistributedSampler", "RandomSampler", "SequentialSampler", "BatchSampler", "Sampler"),
                    "write penstock.Loader(..., shuffle=True or False, ranks='auto')"),
    **dict.fromkeys(("IterableDataset", "ImageFolder", "StreamingDataset", "WebDataset"), _PACK),
    # albumentations, timm, YOLO, SAM, MMDetection
    **dict.fromkeys(("LongestMaxSize", "ResizeLongestSide"), "it is penstock.ops.ResizeLongest"),
    "SmallestMaxSize": "it is penstock.ops.Resize(size), with one number",
    "PadIfNeeded": "it is penstock.ops.PadToSize",
    "LetterBox": "it is penstock.ops.Letterbox",
    "CenterCropOrPad": "it is penstock.ops.CenterCrop, which pads smaller images with 0",
    "RandomCropOrPad": "it is penstock.ops.RandomCrop(size, pad_if_needed=True)",
    "Expand": "it is penstock.ops.RandomZoomOut",
    **dict.fromkeys(("Cutout", "CoarseDropout"), "it is penstock.ops.RandomErasing, after Normalize"),
    "RandomBrightnessContrast": "it is penstock.ops.ColorJitter(brightness, contrast)",
    **dict.fromkeys(("RandomSizedBBoxSafeCrop", "BBoxSafeRandomCrop", "MinIoURandomCrop"), "it is penstock.ops.RandomIoUCrop"),
    **dict.fromkeys(("SanitizeBoundingBoxes", "ClampBoundingBoxes", "ConvertBoundingBoxFormat", "BboxParams",
                     "BoundingBoxes"),
                    "penstock.boxes(field, form=, clip=, min_side=, min_area=) is the output that does it"),
    **dict.fromkeys(("ImageCompression", "JpegCompression"), "it is penstock.ops.JPEG((least, most))"),
    "Jpeg": "it is penstock.ops.JPEG",
    "ToTensorV2": "images are tensors: penstock.image(..., layout='nchw')",
    "HorizontalFlip": "it is penstock.ops.RandomHorizontalFlip",
    "VerticalFlip": "it is penstock.ops.RandomVerticalFlip",
    # FFCV, MosaicML Streaming, WebDataset
    "NormalizeImage": "it is penstock.ops.Normalize",
    "RandomResizedCropRGBImageDecoder": "it is penstock.ops.RandomResizedCrop; images are always decoded",
    "CenterCropRGBImageDecoder": "it is penstock.ops.Resize and penstock.ops.CenterCrop; images are always decoded",
    "ToDevice": "write penstock.Loader(..., device='cuda')",
    **dict.fromkeys(("DatasetWriter", "MDSWriter", "ShardWriter", "TarWriter"), _WRITER),
}

# They mix whole batches, and are no operations on images.
MIXES = dict.fromkeys(("MixUp", "CutMix", "MixUpCutMix", "OneHot", "Mosaic"),
                      "it is for a loader: write penstock.Loader(..., mix=...); for one of MixUp and CutMix by chance, "
                      "penstock.MixUpCutMix")

# ---- keywords ----------------------------------------------------------------------------------------------

# Keywords of PyTorch's DataLoader, for penstock.Loader.
_PART = ("a loader reads each sample of subset= once an epoch; pack the samples that you want, with "
         "data = penstock.Dataset(...): `penstock.pack(%s, path, schema=data.schema, names=data.names)`")
LOADER_KEYWORDS = {
    "num_workers": "a loader starts worker threads for the cores that it may use; n_threads= sets another number",
    "pin_memory": "device='cuda' hands out batches on the GPU, copied from page-locked memory",
    "drop_last": "last_batch='drop' (the default), last_batch='short' or last_batch='pad'",
    "prefetch_factor": "a loader reads ahead by itself; memory=penstock.Memory(n_slots=4) keeps 4 batches in memory",
    "persistent_workers": "the threads of a loader run until close()",
    "worker_init_fn": "there are no worker processes, except those of penstock.python; seed= makes order and augmentation repeatable",
    "collate_fn": "outputs= lists the tensors of a batch, and form= chooses the class of a batch",
    "sampler": "shuffle= and ranks= choose the samples and their order",
    "batch_sampler": "batch_size=, shuffle= and last_batch= choose the samples of a batch",
    "generator": "seed= makes order and augmentation repeatable",
    **dict.fromkeys(("shuffle_buffer_size", "shuffle_buffer", "buffer_size", "shuffle_block_size", "initial_fill", "shuffle_algo"),
                    "order='full' (the default) mixes all samples, without a buffer; order='windowed' mixes "
                    "inside windows of blocks"),
    "multiprocessing_context": "there are no worker processes",
    # Keywords of other loaders.
    **dict.fromkeys(("transform", "transforms", "pipeline", "pipelines"),
                    "outputs= lists the operations, {name: penstock.image(field, [op, op, ...])}"),
    **dict.fromkeys(("prefetch", "prefetch_batches", "batches_ahead", "predownload", "prefetch_queue_depth"),
                    "a loader reads ahead by itself; memory=penstock.Memory(n_slots=4) keeps 4 batches in memory"),
    **dict.fromkeys(("cache", "os_cache", "cache_dir", "cache_limit"),
                    "the page cache holds the data that fits into memory; reading=penstock.Reading(io='direct') reads without it"),
    **dict.fromkeys(("distributed", "num_replicas", "num_shards", "shard_id"),
                    "ranks='auto' gives each process its part"),
    **dict.fromkeys(("workers", "num_threads"), "n_threads= is the number of worker threads"),
    "dataset": "path=, the directory of a data set, comes first",
    **dict.fromkeys(("tokens", "seq_len", "seq_length", "sequence_length", "block_size", "context_length"),
                    "pack or save sequences of one length, and each sample is a sequence; docs/how-to/tokens.md does it"),
    "reference": "it is an argument of penstock.image, reference='tensor'",
    **dict.fromkeys(("indices", "sample_ids", "ids"), "subset=penstock.Ids(ids) has these samples alone"),
    **dict.fromkeys(("split", "part"), "write subset=penstock.Fraction(0, 0.8, seed=1)"),
    "filter": _PART % "(sample for sample in data if wanted(sample))",
    **dict.fromkeys(("sample_weights", "class_weights", "replacement", "num_samples"),
                    "weights=penstock.Weighted(numbers) and penstock.Balanced(column) draw samples with replacement, "
                    "samples_per_epoch= of penstock.Order of them"),
}
IMAGE_KEYWORDS = {
    **dict.fromkeys(("transform", "transforms", "pipeline"), "write penstock.image(field, [op, op, ...])"),
    **dict.fromkeys(("multi_scale", "multiscale", "img_scale"), "sizes=[320, 352, ...] and every=10 draw a size for each "
                    "10 batches"),
}
# Keywords of torchvision's operations that have one value here.
OP_KEYWORDS = {
    "resample": "it is interpolation",
    "inplace": "leave it out; the operation makes no copy",
}

JPEG_KEYWORDS = {
    **OP_KEYWORDS,
    **dict.fromkeys(("p", "prob", "probability"), "write penstock.ops.RandomApply([penstock.ops.JPEG(50)], 0.5)"),
}

# Keywords of torchvision's MixUp and timm's Mixup, for penstock.MixUp and the like.
MIX_KEYWORDS = {
    "labels_getter": "label= names the output that has the labels",
    "n_classes": "it is num_classes",
    "smoothing": "it is label_smoothing",
    **dict.fromkeys(("prob", "probability"), "it is p"),
    "correct_lam": "leave it out; lambda is always corrected by the clipped box",
    "cutmix_minmax": "boxes follow from cutmix_alpha alone",
}

# Keywords of other mosaics, for penstock.Mosaic.
MOSAIC_KEYWORDS = {
    **dict.fromkeys(("prob", "probability", "mosaic"), "it is p"),
    "center_ratio_range": "it is center, of which 0 to 1 is the whole picture: half of that of mmdetection",
    **dict.fromkeys(("imgsz", "img_scale", "target_size", "size"),
                    "leave it out; a mosaic has the size of the image output"),
    **dict.fromkeys(("boxes", "bbox_params", "masks", "mask", "labels"),
                    "leave it out; masks and boxes follow the image, and per_box outputs the boxes"),
    **dict.fromkeys(("pad_val", "fill", "fill_value"), "leave it out; the four parts cover the whole picture"),
    "n": "leave it out; there are 4 parts",
    **dict.fromkeys(("min_area", "min_side", "min_visible", "min_bbox_size"), "give it to penstock.boxes"),
}

# Keywords of loaders with processes, for penstock.python.
PYTHON_KEYWORDS = {
    **dict.fromkeys(("num_workers", "workers", "n_workers", "n_processes"), "it is processes"),
    **dict.fromkeys(("batch", "whole_batch", "vectorized", "vectorised"), "it is batched"),
}

# ---- attributes --------------------------------------------------------------------------------------------

_AT_OPEN = "it is an argument of penstock.Loader, and print(loader) shows it"
_N_BATCHES = "`len(loader)` is the number of batches of an epoch"
_N_SAMPLES = "`loader.n_samples` is the number of samples of the data set"
_NO_SAMPLER = ("a loader has no sampler: give shuffle= and ranks= to penstock.Loader, and call "
               "`loader.set_epoch(0)` on the loader itself")
_NOT_COMPOSED = ("a loader is not composed of others: outputs= of penstock.Loader lists the operations, and each "
                 "`iter(loader)` is an epoch")
_STATE = "`loader.state_dict()` and `loader.load_state_dict(state)`"

# Attributes of other loaders, for penstock.Loader.
LOADER_ATTRIBUTES = {
    **{name: advice for name, advice in LOADER_KEYWORDS.items() if name != "dataset"},
    **dict.fromkeys(("sampler", "batch_sampler"), _NO_SAMPLER),
    **dict.fromkeys(("num_batches", "n_batches", "steps_per_epoch", "epoch_size"), _N_BATCHES),
    **dict.fromkeys(("num_samples", "total_samples", "size", "total_size"), _N_SAMPLES),
    **dict.fromkeys(("shuffle", "order", "seed", "last_batch", "device", "framework", "form"), _AT_OPEN),
    **dict.fromkeys(("rank", "world", "world_size"), "`loader.ranks.rank` and `loader.ranks.world`"),
    **dict.fromkeys(("to", "cuda"), "open it with device='cuda', and its batches are on the GPU"),
    **dict.fromkeys(("reset", "next_epoch"), "each `iter(loader)` begins the next epoch; `loader.seek(0)` "
                    "goes to any"),
    **dict.fromkeys(("batch", "batches"), "`next(iter(loader))` is a batch, and a for loop over the loader goes through an epoch"),
    "next": "`next(iter(loader))`, or batches = iter(loader) and next(batches)",
    **dict.fromkeys(("classes", "names"), "`penstock.Dataset(loader.path).names`"),
    **dict.fromkeys(("state", "get_state", "set_state", "save_checkpoint"), _STATE),
    **dict.fromkeys(("shutdown", "stop"), "loader.close() ends it"),
    **dict.fromkeys(("map", "repeat", "with_epoch"), _NOT_COMPOSED),
}

# Attributes of other libraries' data sets, for a Dataset.
DATASET_ATTRIBUTES = {
    "classes": "`dataset.names` lists the names of the classes",
    "num_classes": "`len(dataset.names)` is the number of classes",
    **dict.fromkeys(("samples", "imgs", "ids"), "`dataset[0]` is a record, a dict, and `range(len(dataset))` are the numbers of all"),
    **dict.fromkeys(("transform", "transforms", "target_transform"), "a Dataset returns the stored values: transform them yourself, "
                    "or give operations to outputs= of penstock.Loader"),
    "class_to_idx": "`{name: i for i, name in enumerate(dataset.names)}`",
    **dict.fromkeys(("targets", "labels"), "`dataset.column('cls')` has the values of a field of numbers, where `dataset.columns` "
                    "lists it"),
    **dict.fromkeys(("features", "keys"), "`dataset.fields` has the fields by their names"),
    **dict.fromkeys(("num_rows", "n_samples", "size"), "`len(dataset)` is the number of samples"),
}

# Attributes of tensors and of other loaders' batches, for a batch.
BATCH_ATTRIBUTES = {
    **dict.fromkeys(("cuda", "pin_memory"), "open the loader with device='cuda', and batches are on the GPU"),
    "numpy": "open the loader with framework='numpy'",
    **dict.fromkeys(("shape", "dtype", "size"), "a batch has several tensors; each has its own"),
    **dict.fromkeys(("ids", "indices"), "batch.sample_ids has the numbers of its samples"),
}

# Attributes of other writers, for a Writer.
WRITER_ATTRIBUTES = {
    **dict.fromkeys(("close", "finish", "finalize", "save"), "it is commit(), which leaving `with` calls; abort() leaves "
                    "nothing"),
    **dict.fromkeys(("write", "append", "put"), "it is add(record)"),
}

# ---- box formats, by other libraries' names ----------------------------------------------------------------

BOX_FORMS = {
    **dict.fromkeys(("coco", "ltwh"), "write form='xywh'"),
    **dict.fromkeys(("voc", "pascal_voc", "pascal", "ltrb", "torchvision"), "write form='xyxy'"),
    "albumentations": "write form='xyxy', coordinates='unit'",
    **dict.fromkeys(("yolo", "yolov5", "detr"), "write form='cxcywh', coordinates='unit'"),
    **{form: f"write form={form!r}" for form in ("xyxy", "xywh", "cxcywh")},
}
