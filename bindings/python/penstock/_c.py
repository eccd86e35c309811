# SPDX-License-Identifier: Apache-2.0
# Generated from include/penstock/*.h by scripts/declarations (make declarations); do not edit.
"""The C library as it is: every public constant, enumerator, struct and function, and the library itself.

The names are those of C without their prefix. The headers are the manual. A test checks every size and offset
against the C compiler.
"""
from __future__ import annotations

from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_char, c_char_p, c_double, c_float, c_int, c_int32,
                    c_int64, c_uint32, c_uint64, c_uint8, c_void_p)
from typing import Any

from . import _library

VERSION_MAJOR = 0
VERSION_MINOR = 1
VERSION_PATCH = 0
VERSION_NUMBER = 100
NONE = 18446744073709551615
FORMAT_VERSION = 2
MAX_FIELDS = 64
MAX_DIMS = 8
MAX_NAME = 64
MAX_COLUMN_NAME = 80
LEFT_OUT_SIZE = 512
MAX_MASK_SIDE = 65535
BUDGET_VERSION = 1
MAX_BUCKETS = 1024
FORECAST_NO_CHANGE = 102
MAX_OP_PARAMS = 12
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
MAX_FIRST_OF = 8
MAX_DATA_SETS = 64
MAX_SEGMENTS = 64
MIXTURE_VERSION = 1
ORDER_VERSION = 1
WINDOWED_VERSION = 1
MAX_WAYS = 65536
MAX_BLOCK = 1048576
MAX_WINDOW = 4096
MAX_BATCH_STEPS = 1024
MAX_SIZES = 64
ANSWER_TEXT = 600
MAX_KNOWN_RANKS = 8
SUBSET_MAX_STEPS = 16
SUBSET_WHOLE = 1000000000
MAX_REPORTS = 8
NO_FIELD = 4294967295

# enum pstk_result
OK = 0
EPERM = -1
ENOENT = -2
EINTR = -4
EIO = -5
ENOMEM = -12
EACCES = -13
EBUSY = -16
EEXIST = -17
EINVAL = -22
EFBIG = -27
ENOSPC = -28
ENODATA = -61
EBADMSG = -74
ENOTSUP = -95
ENOBUFS = -105
ETIMEDOUT = -110
ECANCELED = -125

# enum pstk_stage
STAGE_NONE = 0
STAGE_OPEN = 1
STAGE_ORDER = 2
STAGE_SHARD = 3
STAGE_READ = 4
STAGE_RECORD = 5
STAGE_DECODE = 6
STAGE_DEVICE = 7
STAGE_CONSUMER = 8
STAGE_WRITE = 9

# enum pstk_dtype
U8 = 1
I8 = 2
U16 = 3
I16 = 4
U32 = 5
I32 = 6
U64 = 7
I64 = 8
F16 = 9
BF16 = 10
F32 = 11
F64 = 12

# enum pstk_layout
NHWC = 0
NCHW = 1

# enum pstk_encoding
ENCODING_NONE = 0
ENCODING_JPEG = 1
ENCODING_PNG = 2
ENCODING_PIXELS = 3

# enum pstk_field_kind
FIELD_BYTES = 1
FIELD_UTF8 = 2
FIELD_IMAGE = 3
FIELD_SCALAR = 4
FIELD_NDARRAY = 5
FIELD_MASK = 6
FIELD_BOXES = 7
FIELD_KEYPOINTS = 8
FIELD_POLYGONS = 9
FIELD_RLE = 10
FIELD_UTF8_LIST = 11
FIELD_IMAGE_LIST = 12
FIELD_BYTES_LIST = 13
FIELD_MASK_LIST = 14

# enum pstk_box_format
BOX_FORMAT_NONE = 0
BOX_FORMAT_XYXY = 1
BOX_FORMAT_XYWH = 2
BOX_FORMAT_CXCYWH = 3

# enum pstk_coordinates
COORDINATES_NONE = 0
COORDINATES_PIXELS = 1
COORDINATES_UNIT = 2

# enum pstk_codec
CODEC_NONE = 0
CODEC_ZSTD = 1
CODEC_PLANES = 2

# enum pstk_passthrough
PASSTHROUGH_NOT_JPEG = 1
PASSTHROUGH_NO_GAIN = 2
PASSTHROUGH_INCOMPLETE = 3
PASSTHROUGH_UNUSUAL = 4
PASSTHROUGH_DAMAGED = 5
PASSTHROUGH_NOT_EXACT = 6

# enum pstk_damaged
DAMAGED_UNCHECKED = 0
DAMAGED_ACCEPT = 1

# enum pstk_damage
DAMAGE_NONE = 0
DAMAGE_GUESSED = 1
DAMAGE_REMADE = 2

# enum pstk_column_fact
COLUMN_ADDED = 0
COLUMN_VALUE = 1
COLUMN_SIZE = 2
COLUMN_LENGTH = 3
COLUMN_WIDTH = 4
COLUMN_HEIGHT = 5

# enum pstk_annotations_format
ANNOTATIONS_COCO = 1
ANNOTATIONS_VOC = 2

# enum pstk_too_long
TOO_LONG_ERROR = 0
TOO_LONG_DROP = 1
TOO_LONG_ALONE = 2

# enum pstk_bottleneck
BOTTLENECK_UNKNOWN = 0
BOTTLENECK_STORAGE = 1
BOTTLENECK_DECODE = 2
BOTTLENECK_COPY = 3
BOTTLENECK_CONSUMER = 4
BOTTLENECK_READER = 5
BOTTLENECK_CORES = 6

# enum pstk_fallback
FALLBACK_NO_IO_URING = 1
FALLBACK_NO_FIXED_BUFFERS = 2
FALLBACK_NO_FIXED_FILES = 4
FALLBACK_NO_DIRECT = 8
FALLBACK_NO_SINGLE_ISSUER = 16
FALLBACK_NOT_PINNED = 32
FALLBACK_NOT_BOUND = 64
FALLBACK_NOT_PAGE_LOCKED = 128
FALLBACK_NO_TRACE = 256
FALLBACK_NO_MONITOR = 512
FALLBACK_NO_NOWAIT = 1024

# enum pstk_window
WINDOW_OPEN = 0
WINDOW_LOOK = 1
WINDOW_MINUTE = 2

# enum pstk_status_state
STATUS_ANSWERED = 0
STATUS_SILENT = 1
STATUS_ENDED = 2
STATUS_ELSEWHERE = 3

# enum pstk_op_kind
OP_RESIZE = 2
OP_RESIZE_SHORTER = 3
OP_RESIZE_LONGEST = 40
OP_RANDOM_RESIZED_CROP = 1
OP_SCALE_JITTER = 100
OP_RANDOM_SHORTEST_SIZE = 102
OP_RANDOM_RESIZE = 103
OP_CROP = 35
OP_CENTER_CROP = 4
OP_CORNER_CROP = 43
OP_RANDOM_CROP = 13
OP_RANDOM_IOU_CROP = 150
OP_PAD = 36
OP_PAD_TO_SIZE = 41
OP_LETTERBOX = 42
OP_RANDOM_ZOOM_OUT = 101
OP_FLIP_HORIZONTAL = 33
OP_FLIP_VERTICAL = 34
OP_RANDOM_FLIP = 5
OP_RANDOM_VERTICAL_FLIP = 12
OP_ROTATE = 37
OP_RANDOM_ROTATION = 14
OP_AFFINE = 38
OP_RANDOM_AFFINE = 15
OP_PERSPECTIVE = 39
OP_RANDOM_PERSPECTIVE = 16
OP_GRAYSCALE = 7
OP_BRIGHTNESS = 64
OP_CONTRAST = 65
OP_SATURATION = 66
OP_SHARPNESS = 67
OP_HUE = 68
OP_GAMMA = 69
OP_INVERT = 70
OP_POSTERIZE = 71
OP_SOLARIZE = 72
OP_SOLARIZE_ADD = 73
OP_AUTOCONTRAST = 74
OP_EQUALIZE = 75
OP_PERMUTE_CHANNELS = 76
OP_COLOR_JITTER = 8
OP_RANDOM_GRAYSCALE = 120
OP_RANDOM_CHANNEL_PERMUTATION = 121
OP_RANDOM_PHOTOMETRIC_DISTORT = 122
OP_GAUSSIAN_BLUR = 80
OP_RANDOM_GAUSSIAN_BLUR = 17
OP_BOX_BLUR = 81
OP_RANDOM_BOX_BLUR = 18
OP_JPEG = 84
OP_RANDOM_JPEG = 127
OP_TRIVIAL_AUGMENT_WIDE = 19
OP_RAND_AUGMENT = 20
OP_AUTO_AUGMENT = 21
OP_AUG_MIX = 125
OP_TIMM_RAND_AUGMENT = 123
OP_TIMM_AUTO_AUGMENT = 124
OP_TIMM_AUG_MIX = 126
OP_RANDOM_APPLY = 9
OP_RANDOM_CHOICE = 10
OP_RANDOM_ORDER = 11
OP_CALL = 140
OP_NORMALIZE = 6
OP_TO_FLOAT = 88
OP_ERASE = 90
OP_RANDOM_ERASING = 22

# enum pstk_scale
SCALE_DIVIDE = 0
SCALE_MULTIPLY = 1

# enum pstk_auto_augment_policy
AUTO_AUGMENT_IMAGENET = 0
AUTO_AUGMENT_CIFAR10 = 1
AUTO_AUGMENT_SVHN = 2

# enum pstk_timm_set
TIMM_SET_DEFAULT = 0
TIMM_SET_INCREASING = 1
TIMM_SET_WEIGHTS = 2
TIMM_SET_3A = 3
TIMM_SET_3A_WEIGHTS = 4

# enum pstk_timm_policy
TIMM_POLICY_V0 = 0
TIMM_POLICY_V0R = 1
TIMM_POLICY_ORIGINAL = 2
TIMM_POLICY_ORIGINALR = 3
TIMM_POLICY_3A = 4

# enum pstk_pad_mode
PAD_CONSTANT = 0
PAD_EDGE = 1
PAD_REFLECT = 2
PAD_SYMMETRIC = 3

# enum pstk_position
POSITION_CENTER = 0
POSITION_TOP_LEFT = 1

# enum pstk_corner
CORNER_TOP_LEFT = 0
CORNER_TOP_RIGHT = 1
CORNER_BOTTOM_LEFT = 2
CORNER_BOTTOM_RIGHT = 3
CORNER_CENTER = 4

# enum pstk_filter
FILTER_DEFAULT = 0
FILTER_NEAREST = 1
FILTER_BOX = 2
FILTER_BILINEAR = 3
FILTER_HAMMING = 4
FILTER_BICUBIC = 5
FILTER_LANCZOS = 6
FILTER_RANDOM = 7

# enum pstk_op_flag
OP_HAS_CENTER = 1
OP_TENSOR = 2

# enum pstk_reference
REFERENCE_PIL = 0
REFERENCE_TENSOR = 1

# enum pstk_drawn_kind
DRAWN_RESIZED_CROP = 32
DRAWN_IOU_CROP = 151
DRAWN_MIX = 82
DRAWN_MIX_CHAIN = 83

# enum pstk_chain_mode
CHAIN_SUM = 0
CHAIN_BLENDED_SUM = 1
CHAIN_BLENDS = 2

# enum pstk_split_at
SPLIT_AUTO = 0
SPLIT_FIRST = 1
SPLIT_LAST = 2

# enum pstk_verify_checksums
VERIFY_WITHOUT = 0
VERIFY_OWN = 1
VERIFY_COMPARED = 2
VERIFY_KEPT = 3

# enum pstk_export_target
EXPORT_FOLDER = 1
EXPORT_WEBDATASET = 2
EXPORT_TFRECORD = 3
EXPORT_MDS = 4
EXPORT_NPY = 5

# enum pstk_kernels
KERNELS_AUTO = 0
KERNELS_C = 1
KERNELS_AVX2 = 2
KERNELS_AVX512 = 3
KERNELS_NEON = 4

# enum pstk_device_kind
HOST = 0
CUDA = 1

# enum pstk_ceiling_reads
CEILING_STORAGE = 1
CEILING_LOADER = 2

# enum pstk_mix_mode
MIX_BATCH = 0
MIX_ELEM = 1
MIX_PAIR = 2

# enum pstk_mix_pairing
MIX_ROLL = 0
MIX_FLIP = 1

# enum pstk_mix_targets
MIX_DENSE = 0
MIX_PAIRS = 1

# enum pstk_mix_kind
MIX_NONE = 0
MIX_MIXUP = 1
MIX_CUTMIX = 2

# enum pstk_exhaustion
EXHAUSTION_STOP = 0
EXHAUSTION_REPEAT = 1
EXHAUSTION_DROP = 2

# enum pstk_order
ORDER_FULL = 0
ORDER_SEQUENTIAL = 1
ORDER_WINDOWED = 2

# enum pstk_last_batch
LAST_DROP = 0
LAST_PAD = 1
LAST_SHORT = 2

# enum pstk_output_kind
OUTPUT_IMAGE = 1
OUTPUT_SCALAR = 2
OUTPUT_TENSOR = 3
OUTPUT_BYTES = 4
OUTPUT_CALLBACK = 5
OUTPUT_RAGGED = 6
OUTPUT_MASK = 7
OUTPUT_BOXES = 8
OUTPUT_PER_BOX = 9
OUTPUT_KEYPOINTS = 10
OUTPUT_POLYGONS = 11

# enum pstk_process_file
PROCESS_SOCKET = 3
PROCESS_MEMORY = 4
PROCESS_JOB = 5

# enum pstk_known_by
KNOWN_BY_GROUP = 0
KNOWN_BY_LAUNCHER = 1

# enum pstk_terminal
TERMINAL_ASK = 0
TERMINAL_NONE = 1
TERMINAL_OWN = 2

# enum pstk_subset_kind
SUBSET_RANGE = 1
SUBSET_FRACTION = 2
SUBSET_FOLD = 3
SUBSET_IDS = 4
SUBSET_WHERE = 5
SUBSET_BETWEEN = 6
SUBSET_MEMBERS = 7
SUBSET_WEIGHTED = 8
SUBSET_BALANCED = 9

# enum pstk_bad_sample
BAD_ERROR = 0
BAD_REPLACE = 1

# enum pstk_reader_kind
READER_AUTO = 0
READER_IO_URING = 1
READER_THREADS = 2

# enum pstk_io
IO_AUTO = 0
IO_DIRECT = 1
IO_BUFFERED = 2

# enum pstk_role
ROLE_IMAGE = 1
ROLE_LABEL = 2
ROLE_MASK = 3
ROLE_BOXES = 4
ROLE_KEYPOINTS = 5
ROLE_POLYGONS = 6
ROLE_BOX_CLASSES = 7
ROLE_CORNERS = 8

# By enum: the word of each enumerator, which the command prints as well.
NAMES: dict[str, dict[str, int]] = {
    "result": {"ok": OK, "eperm": EPERM, "enoent": ENOENT, "eintr": EINTR, "eio": EIO, "enomem": ENOMEM,
               "eacces": EACCES, "ebusy": EBUSY, "eexist": EEXIST, "einval": EINVAL, "efbig": EFBIG,
               "enospc": ENOSPC, "enodata": ENODATA, "ebadmsg": EBADMSG, "enotsup": ENOTSUP,
               "enobufs": ENOBUFS, "etimedout": ETIMEDOUT, "ecanceled": ECANCELED},
    "stage": {"none": STAGE_NONE, "open": STAGE_OPEN, "order": STAGE_ORDER, "shard": STAGE_SHARD,
              "read": STAGE_READ, "record": STAGE_RECORD, "decode": STAGE_DECODE, "device": STAGE_DEVICE,
              "consumer": STAGE_CONSUMER, "write": STAGE_WRITE},
    "dtype": {"u8": U8, "i8": I8, "u16": U16, "i16": I16, "u32": U32, "i32": I32, "u64": U64, "i64": I64,
              "f16": F16, "bf16": BF16, "f32": F32, "f64": F64},
    "layout": {"nhwc": NHWC, "nchw": NCHW},
    "encoding": {"none": ENCODING_NONE, "jpeg": ENCODING_JPEG, "png": ENCODING_PNG,
                 "pixels": ENCODING_PIXELS},
    "field_kind": {"bytes": FIELD_BYTES, "utf8": FIELD_UTF8, "image": FIELD_IMAGE, "scalar": FIELD_SCALAR,
                   "ndarray": FIELD_NDARRAY, "mask": FIELD_MASK, "boxes": FIELD_BOXES,
                   "keypoints": FIELD_KEYPOINTS, "polygons": FIELD_POLYGONS, "rle": FIELD_RLE,
                   "utf8_list": FIELD_UTF8_LIST, "image_list": FIELD_IMAGE_LIST,
                   "bytes_list": FIELD_BYTES_LIST, "mask_list": FIELD_MASK_LIST},
    "box_format": {"none": BOX_FORMAT_NONE, "xyxy": BOX_FORMAT_XYXY, "xywh": BOX_FORMAT_XYWH,
                   "cxcywh": BOX_FORMAT_CXCYWH},
    "coordinates": {"none": COORDINATES_NONE, "pixels": COORDINATES_PIXELS, "unit": COORDINATES_UNIT},
    "codec": {"none": CODEC_NONE, "zstd": CODEC_ZSTD, "planes": CODEC_PLANES},
    "passthrough": {"not_jpeg": PASSTHROUGH_NOT_JPEG, "no_gain": PASSTHROUGH_NO_GAIN,
                    "incomplete": PASSTHROUGH_INCOMPLETE, "unusual": PASSTHROUGH_UNUSUAL,
                    "damaged": PASSTHROUGH_DAMAGED, "not_exact": PASSTHROUGH_NOT_EXACT},
    "damaged": {"unchecked": DAMAGED_UNCHECKED, "accept": DAMAGED_ACCEPT},
    "damage": {"none": DAMAGE_NONE, "guessed": DAMAGE_GUESSED, "remade": DAMAGE_REMADE},
    "column_fact": {"added": COLUMN_ADDED, "value": COLUMN_VALUE, "size": COLUMN_SIZE,
                    "length": COLUMN_LENGTH, "width": COLUMN_WIDTH, "height": COLUMN_HEIGHT},
    "annotations_format": {"coco": ANNOTATIONS_COCO, "voc": ANNOTATIONS_VOC},
    "too_long": {"error": TOO_LONG_ERROR, "drop": TOO_LONG_DROP, "alone": TOO_LONG_ALONE},
    "bottleneck": {"unknown": BOTTLENECK_UNKNOWN, "storage": BOTTLENECK_STORAGE, "decode": BOTTLENECK_DECODE,
                   "copy": BOTTLENECK_COPY, "consumer": BOTTLENECK_CONSUMER, "reader": BOTTLENECK_READER,
                   "cores": BOTTLENECK_CORES},
    "fallback": {"no_io_uring": FALLBACK_NO_IO_URING, "no_fixed_buffers": FALLBACK_NO_FIXED_BUFFERS,
                 "no_fixed_files": FALLBACK_NO_FIXED_FILES, "no_direct": FALLBACK_NO_DIRECT,
                 "no_single_issuer": FALLBACK_NO_SINGLE_ISSUER, "not_pinned": FALLBACK_NOT_PINNED,
                 "not_bound": FALLBACK_NOT_BOUND, "not_page_locked": FALLBACK_NOT_PAGE_LOCKED,
                 "no_trace": FALLBACK_NO_TRACE, "no_monitor": FALLBACK_NO_MONITOR,
                 "no_nowait": FALLBACK_NO_NOWAIT},
    "window": {"open": WINDOW_OPEN, "look": WINDOW_LOOK, "minute": WINDOW_MINUTE},
    "status_state": {"answered": STATUS_ANSWERED, "silent": STATUS_SILENT, "ended": STATUS_ENDED,
                     "elsewhere": STATUS_ELSEWHERE},
    "op_kind": {"resize": OP_RESIZE, "resize_shorter": OP_RESIZE_SHORTER, "resize_longest": OP_RESIZE_LONGEST,
                "random_resized_crop": OP_RANDOM_RESIZED_CROP, "scale_jitter": OP_SCALE_JITTER,
                "random_shortest_size": OP_RANDOM_SHORTEST_SIZE, "random_resize": OP_RANDOM_RESIZE,
                "crop": OP_CROP, "center_crop": OP_CENTER_CROP, "corner_crop": OP_CORNER_CROP,
                "random_crop": OP_RANDOM_CROP, "random_iou_crop": OP_RANDOM_IOU_CROP, "pad": OP_PAD,
                "pad_to_size": OP_PAD_TO_SIZE, "letterbox": OP_LETTERBOX,
                "random_zoom_out": OP_RANDOM_ZOOM_OUT, "flip_horizontal": OP_FLIP_HORIZONTAL,
                "flip_vertical": OP_FLIP_VERTICAL, "random_flip": OP_RANDOM_FLIP,
                "random_vertical_flip": OP_RANDOM_VERTICAL_FLIP, "rotate": OP_ROTATE,
                "random_rotation": OP_RANDOM_ROTATION, "affine": OP_AFFINE, "random_affine": OP_RANDOM_AFFINE,
                "perspective": OP_PERSPECTIVE, "random_perspective": OP_RANDOM_PERSPECTIVE,
                "grayscale": OP_GRAYSCALE, "brightness": OP_BRIGHTNESS, "contrast": OP_CONTRAST,
                "saturation": OP_SATURATION, "sharpness": OP_SHARPNESS, "hue": OP_HUE, "gamma": OP_GAMMA,
                "invert": OP_INVERT, "posterize": OP_POSTERIZE, "solarize": OP_SOLARIZE,
                "solarize_add": OP_SOLARIZE_ADD, "autocontrast": OP_AUTOCONTRAST, "equalize": OP_EQUALIZE,
                "permute_channels": OP_PERMUTE_CHANNELS, "color_jitter": OP_COLOR_JITTER,
                "random_grayscale": OP_RANDOM_GRAYSCALE,
                "random_channel_permutation": OP_RANDOM_CHANNEL_PERMUTATION,
                "random_photometric_distort": OP_RANDOM_PHOTOMETRIC_DISTORT,
                "gaussian_blur": OP_GAUSSIAN_BLUR, "random_gaussian_blur": OP_RANDOM_GAUSSIAN_BLUR,
                "box_blur": OP_BOX_BLUR, "random_box_blur": OP_RANDOM_BOX_BLUR, "jpeg": OP_JPEG,
                "random_jpeg": OP_RANDOM_JPEG, "trivial_augment_wide": OP_TRIVIAL_AUGMENT_WIDE,
                "rand_augment": OP_RAND_AUGMENT, "auto_augment": OP_AUTO_AUGMENT, "aug_mix": OP_AUG_MIX,
                "timm_rand_augment": OP_TIMM_RAND_AUGMENT, "timm_auto_augment": OP_TIMM_AUTO_AUGMENT,
                "timm_aug_mix": OP_TIMM_AUG_MIX, "random_apply": OP_RANDOM_APPLY,
                "random_choice": OP_RANDOM_CHOICE, "random_order": OP_RANDOM_ORDER, "call": OP_CALL,
                "normalize": OP_NORMALIZE, "to_float": OP_TO_FLOAT, "erase": OP_ERASE,
                "random_erasing": OP_RANDOM_ERASING},
    "scale": {"divide": SCALE_DIVIDE, "multiply": SCALE_MULTIPLY},
    "auto_augment_policy": {"imagenet": AUTO_AUGMENT_IMAGENET, "cifar10": AUTO_AUGMENT_CIFAR10,
                            "svhn": AUTO_AUGMENT_SVHN},
    "timm_set": {"default": TIMM_SET_DEFAULT, "increasing": TIMM_SET_INCREASING, "weights": TIMM_SET_WEIGHTS,
                 "3a": TIMM_SET_3A, "3a_weights": TIMM_SET_3A_WEIGHTS},
    "timm_policy": {"v0": TIMM_POLICY_V0, "v0r": TIMM_POLICY_V0R, "original": TIMM_POLICY_ORIGINAL,
                    "originalr": TIMM_POLICY_ORIGINALR, "3a": TIMM_POLICY_3A},
    "pad_mode": {"constant": PAD_CONSTANT, "edge": PAD_EDGE, "reflect": PAD_REFLECT,
                 "symmetric": PAD_SYMMETRIC},
    "position": {"center": POSITION_CENTER, "top_left": POSITION_TOP_LEFT},
    "corner": {"top_left": CORNER_TOP_LEFT, "top_right": CORNER_TOP_RIGHT, "bottom_left": CORNER_BOTTOM_LEFT,
               "bottom_right": CORNER_BOTTOM_RIGHT, "center": CORNER_CENTER},
    "filter": {"default": FILTER_DEFAULT, "nearest": FILTER_NEAREST, "box": FILTER_BOX,
               "bilinear": FILTER_BILINEAR, "hamming": FILTER_HAMMING, "bicubic": FILTER_BICUBIC,
               "lanczos": FILTER_LANCZOS, "random": FILTER_RANDOM},
    "op_flag": {"has_center": OP_HAS_CENTER, "tensor": OP_TENSOR},
    "reference": {"pil": REFERENCE_PIL, "tensor": REFERENCE_TENSOR},
    "drawn_kind": {"resized_crop": DRAWN_RESIZED_CROP, "iou_crop": DRAWN_IOU_CROP, "mix": DRAWN_MIX,
                   "mix_chain": DRAWN_MIX_CHAIN},
    "chain_mode": {"sum": CHAIN_SUM, "blended_sum": CHAIN_BLENDED_SUM, "blends": CHAIN_BLENDS},
    "split_at": {"auto": SPLIT_AUTO, "first": SPLIT_FIRST, "last": SPLIT_LAST},
    "verify_checksums": {"without": VERIFY_WITHOUT, "own": VERIFY_OWN, "compared": VERIFY_COMPARED,
                         "kept": VERIFY_KEPT},
    "export_target": {"folder": EXPORT_FOLDER, "webdataset": EXPORT_WEBDATASET, "tfrecord": EXPORT_TFRECORD,
                      "mds": EXPORT_MDS, "npy": EXPORT_NPY},
    "kernels": {"auto": KERNELS_AUTO, "c": KERNELS_C, "avx2": KERNELS_AVX2, "avx512": KERNELS_AVX512,
                "neon": KERNELS_NEON},
    "device_kind": {"host": HOST, "cuda": CUDA},
    "ceiling_reads": {"storage": CEILING_STORAGE, "loader": CEILING_LOADER},
    "mix_mode": {"batch": MIX_BATCH, "elem": MIX_ELEM, "pair": MIX_PAIR},
    "mix_pairing": {"roll": MIX_ROLL, "flip": MIX_FLIP},
    "mix_targets": {"dense": MIX_DENSE, "pairs": MIX_PAIRS},
    "mix_kind": {"none": MIX_NONE, "mixup": MIX_MIXUP, "cutmix": MIX_CUTMIX},
    "exhaustion": {"stop": EXHAUSTION_STOP, "repeat": EXHAUSTION_REPEAT, "drop": EXHAUSTION_DROP},
    "order": {"full": ORDER_FULL, "sequential": ORDER_SEQUENTIAL, "windowed": ORDER_WINDOWED},
    "last_batch": {"drop": LAST_DROP, "pad": LAST_PAD, "short": LAST_SHORT},
    "output_kind": {"image": OUTPUT_IMAGE, "scalar": OUTPUT_SCALAR, "tensor": OUTPUT_TENSOR,
                    "bytes": OUTPUT_BYTES, "callback": OUTPUT_CALLBACK, "ragged": OUTPUT_RAGGED,
                    "mask": OUTPUT_MASK, "boxes": OUTPUT_BOXES, "per_box": OUTPUT_PER_BOX,
                    "keypoints": OUTPUT_KEYPOINTS, "polygons": OUTPUT_POLYGONS},
    "process_file": {"socket": PROCESS_SOCKET, "memory": PROCESS_MEMORY, "job": PROCESS_JOB},
    "known_by": {"group": KNOWN_BY_GROUP, "launcher": KNOWN_BY_LAUNCHER},
    "terminal": {"ask": TERMINAL_ASK, "none": TERMINAL_NONE, "own": TERMINAL_OWN},
    "subset_kind": {"range": SUBSET_RANGE, "fraction": SUBSET_FRACTION, "fold": SUBSET_FOLD,
                    "ids": SUBSET_IDS, "where": SUBSET_WHERE, "between": SUBSET_BETWEEN,
                    "members": SUBSET_MEMBERS, "weighted": SUBSET_WEIGHTED, "balanced": SUBSET_BALANCED},
    "bad_sample": {"error": BAD_ERROR, "replace": BAD_REPLACE},
    "reader_kind": {"auto": READER_AUTO, "io_uring": READER_IO_URING, "threads": READER_THREADS},
    "io": {"auto": IO_AUTO, "direct": IO_DIRECT, "buffered": IO_BUFFERED},
    "role": {"image": ROLE_IMAGE, "label": ROLE_LABEL, "mask": ROLE_MASK, "boxes": ROLE_BOXES,
             "keypoints": ROLE_KEYPOINTS, "polygons": ROLE_POLYGONS, "box_classes": ROLE_BOX_CLASSES,
             "corners": ROLE_CORNERS},
}


class Error(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("code", c_int32),
        ("stage", c_int32),
        ("native", c_int32),
        ("sample_id", c_uint64),
        ("record", c_uint64),
        ("offset", c_uint64),
        ("length", c_uint64),
        ("epoch", c_uint64),
        ("position", c_uint64),
        ("shard", c_char * 256),
        ("message", c_char * 768),
    ]


class Field(Structure):
    _fields_ = [
        ("name", c_char * 64),
        ("kind", c_uint32),
        ("dtype", c_uint32),
        ("codec", c_uint32),
        ("codec_level", c_int32),
        ("n_dims", c_uint32),
        ("reserved", c_uint32),
        ("shape", c_uint64 * 8),
        ("of", c_char * 64),
        ("rows", c_char * 64),
        ("splits", c_char * 64),
        ("box_format", c_uint32),
        ("coordinates", c_uint32),
    ]


PassthroughFn = CFUNCTYPE(None, c_void_p, c_uint64, c_uint32, c_uint32)


class WriterSettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("field_size", c_uint32),
        ("path", c_char_p),
        ("fields", POINTER(Field)),
        ("n_fields", c_uint32),
        ("part", c_uint32),
        ("n_parts", c_uint32),
        ("n_threads", c_uint32),
        ("shard_size", c_uint64),
        ("dictionary_size", c_uint32),
        ("overwrite", c_uint32),
        ("note", c_char_p),
        ("names", POINTER(c_char_p)),
        ("n_names", c_uint64),
        ("on_passthrough", PassthroughFn),
        ("on_passthrough_user", c_void_p),
        ("pack_id", c_char_p),
        ("task", c_char_p),
        ("attempt", c_uint32),
        ("columns", c_uint32),
    ]


class Value(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size", c_uint64),
        ("damaged", c_uint32),
        ("reserved", c_uint32),
    ]


class Pixels(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("field", c_uint32),
        ("height", c_uint32),
        ("width", c_uint32),
        ("channels", c_uint32),
        ("bit_depth", c_uint32),
    ]


ProgressFn = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)


class MergeSettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_parts", c_uint32),
        ("parts", POINTER(c_char_p)),
        ("out", c_char_p),
        ("pack_id", c_char_p),
        ("overwrite", c_uint32),
        ("reserved", c_uint32),
        ("on_progress", ProgressFn),
        ("user", c_void_p),
    ]


class ListItem(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size", c_uint64),
        ("encoding", c_uint32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("channels", c_uint32),
        ("bit_depth", c_uint32),
        ("has_palette", c_uint32),
    ]


class Convert(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("shorter_side", c_uint32),
        ("max_side", c_uint32),
        ("quality", c_uint32),
        ("max_pixels", c_uint64),
        ("damaged", c_uint32),
        ("reserved", c_uint32),
    ]


class DatasetInfo(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_fields", c_uint32),
        ("n_samples", c_uint64),
        ("n_shards", c_uint64),
        ("bytes", c_uint64),
        ("n_names", c_uint64),
        ("format_version", c_uint32),
        ("reserved", c_uint32),
        ("identity", c_char * 40),
        ("format", c_char * 16),
        ("has_checksums", c_uint32),
        ("n_files", c_uint32),
        ("n_left_out", c_uint64),
        ("left_out", c_char * 512),
    ]


class FieldStats(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("max_width", c_uint32),
        ("max_height", c_uint32),
        ("reserved", c_uint32),
        ("max_stored_size", c_uint64),
        ("max_plain_size", c_uint64),
        ("stored_bytes", c_uint64),
        ("plain_bytes", c_uint64),
        ("n_encoding", c_uint64 * 16),
        ("n_codec", c_uint64 * 8),
        ("n_equivalent", c_uint64),
        ("n_damaged", c_uint64),
        ("n_absent", c_uint64),
    ]


class ValueInfo(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("encoding", c_uint32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("codec", c_uint32),
        ("equivalent", c_uint32),
        ("stored_size", c_uint64),
        ("channels", c_uint32),
        ("bit_depth", c_uint32),
        ("has_palette", c_uint32),
        ("damaged", c_uint32),
        ("absent", c_uint32),
        ("reserved", c_uint32),
    ]


class ColumnInfo(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("dtype", c_uint32),
        ("fact", c_uint32),
        ("field", c_uint32),
        ("bytes", c_uint64),
        ("name", c_char * 80),
    ]


class NewColumn(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("dtype", c_uint32),
        ("name", c_char_p),
        ("values", c_void_p),
        ("n", c_uint64),
        ("file", c_char_p),
        ("overwrite", c_uint32),
        ("reserved", c_uint32),
    ]


VerifyFn = CFUNCTYPE(c_int, c_void_p, POINTER(Error))


class AnnotationsSettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("format", c_uint32),
        ("path", c_char_p),
        ("skip_empty", c_uint32),
        ("voc_offset", c_uint32),
        ("image_set", c_char_p),
        ("on_progress", ProgressFn),
        ("user", c_void_p),
        ("panoptic_masks", c_char_p),
        ("skip_bad", c_uint32),
    ]


class AnnotationsInfo(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_fields", c_uint32),
        ("n_images", c_uint64),
        ("n_objects", c_uint64),
        ("n_names", c_uint64),
        ("n_empty", c_uint64),
        ("n_outside", c_uint64),
        ("n_flat", c_uint64),
        ("n_bad", c_uint64),
        ("bad", c_char_p),
        ("n_fractions", c_uint64),
        ("n_from_zero", c_uint64),
        ("n_without_xml", c_uint64),
        ("n_xml_not_read", c_uint64),
    ]


class Budget(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("max_rows", c_uint32),
        ("total", c_uint64),
        ("costs", POINTER(c_uint32)),
        ("n_costs", c_uint64),
        ("edges", POINTER(c_uint32)),
        ("n_edges", c_uint32),
        ("padded", c_uint32),
        ("too_long", c_uint32),
        ("reserved", c_uint32),
    ]


class StageStats(Structure):
    _fields_ = [
        ("busy_ns", c_uint64),
        ("starved_ns", c_uint64),
        ("blocked_ns", c_uint64),
        ("cpu_ns", c_uint64),
        ("core_wait_ns", c_uint64),
        ("n_items", c_uint64),
        ("n_threads", c_uint32),
        ("reserved", c_uint32),
    ]


class Stats(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reader", c_uint32),
        ("direct", c_uint32),
        ("registered", c_uint32),
        ("fallbacks", c_uint32),
        ("n_threads", c_uint32),
        ("n_slots", c_uint32),
        ("n_nodes", c_uint32),
        ("queue_depth", c_uint32),
        ("rows_per_job", c_uint32),
        ("kernels", c_uint32),
        ("bottleneck", c_uint32),
        ("n_samples", c_uint64),
        ("bytes_delivered", c_uint64),
        ("n_batches", c_uint64),
        ("n_replacements", c_uint64),
        ("bytes_read", c_uint64),
        ("n_reads", c_uint64),
        ("n_cached_reads", c_uint64),
        ("n_evicted_reads", c_uint64),
        ("n_index_hits", c_uint64),
        ("n_index_misses", c_uint64),
        ("n_slow_reads", c_uint64),
        ("slot_memory", c_uint64),
        ("io_memory", c_uint64),
        ("index_memory", c_uint64),
        ("scratch_memory", c_uint64),
        ("stage_reader", StageStats),
        ("stage_workers", StageStats),
        ("stage_consumer", StageStats),
        ("stage_uploader", StageStats),
        ("n_device_slots", c_uint32),
        ("page_locked", c_uint32),
        ("device_memory", c_uint64),
        ("copy_ns", c_uint64),
        ("copy_bytes", c_uint64),
        ("stream_used_ns", c_uint64),
        ("stream_starved_ns", c_uint64),
        ("stream_start_ns", c_uint64),
        ("n_palette_images", c_uint64),
        ("n_damaged_images", c_uint64),
        ("n_dropped_boxes", c_uint64),
        ("n_lone_rows", c_uint64),
        ("block_memory", c_uint64),
        ("cpu_ns", c_uint64),
        ("n_rows_ahead", c_uint64),
    ]


class Distribution(Structure):
    _fields_ = [
        ("n", c_uint64),
        ("sum", c_uint64),
        ("p50", c_uint64),
        ("p95", c_uint64),
        ("p99", c_uint64),
        ("max", c_uint64),
    ]


class Metrics(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("window", c_uint32),
        ("duration_ns", c_uint64),
        ("n_batches", c_uint64),
        ("n_samples", c_uint64),
        ("n_replacements", c_uint64),
        ("bytes_delivered", c_uint64),
        ("bytes_read", c_uint64),
        ("n_reads", c_uint64),
        ("n_slow_reads", c_uint64),
        ("n_index_hits", c_uint64),
        ("n_index_misses", c_uint64),
        ("n_ready", c_uint64),
        ("wait", Distribution),
        ("read", Distribution),
        ("decode", Distribution),
        ("copy", Distribution),
        ("fallbacks", c_uint32),
        ("reserved", c_uint32),
        ("finish", Distribution),
        ("stream", Distribution),
        ("jobs", Distribution),
        ("ready", Distribution),
        ("leased", Distribution),
        ("free", Distribution),
    ]


class ForecastSettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_threads", c_uint32),
        ("storage_factor", c_double),
        ("worker_factor", c_double),
        ("n_cores", c_double),
        ("no_consumer", c_uint32),
        ("reserved", c_uint32),
    ]


class Forecast(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("limit", c_uint32),
        ("measured", c_double),
        ("samples_per_second", c_double),
    ]


class Status(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("state", c_uint32),
        ("pid", c_uint32),
        ("is_foreign", c_uint32),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("device", c_uint32),
        ("device_index", c_int32),
        ("opened_ns", c_uint64),
        ("n_samples", c_uint64),
        ("answered_ns", c_uint64),
        ("epoch", c_uint64),
        ("position", c_uint64),
        ("host", c_char * 64),
        ("path", c_char * 512),
    ]


class RandomResizedCropParams(Structure):
    _fields_ = [
        ("min_scale", c_double),
        ("max_scale", c_double),
        ("min_ratio", c_double),
        ("max_ratio", c_double),
    ]


class ResizedCropParams(Structure):
    _fields_ = [
        ("top", c_double),
        ("left", c_double),
        ("height", c_double),
        ("width", c_double),
    ]


class ResizeShorterParams(Structure):
    _fields_ = [
        ("longest", c_double),
    ]


class ScaleJitterParams(Structure):
    _fields_ = [
        ("min_scale", c_double),
        ("max_scale", c_double),
    ]


class RandomShortestSizeParams(Structure):
    _fields_ = [
        ("sides", c_double * 12),
    ]


class RandomResizeParams(Structure):
    _fields_ = [
        ("min_side", c_double),
        ("end_side", c_double),
    ]


class CropParams(Structure):
    _fields_ = [
        ("top", c_double),
        ("left", c_double),
    ]


class RandomCropParams(Structure):
    _fields_ = [
        ("left", c_double),
        ("top", c_double),
        ("right", c_double),
        ("bottom", c_double),
        ("pad_if_needed", c_double),
        ("mode", c_double),
    ]


class CornerCropParams(Structure):
    _fields_ = [
        ("corner", c_double),
    ]


class RandomIouCropParams(Structure):
    _fields_ = [
        ("min_scale", c_double),
        ("max_scale", c_double),
        ("min_aspect_ratio", c_double),
        ("max_aspect_ratio", c_double),
        ("trials", c_double),
        ("options", c_double * 7),
    ]


class PadParams(Structure):
    _fields_ = [
        ("left", c_double),
        ("top", c_double),
        ("right", c_double),
        ("bottom", c_double),
        ("mode", c_double),
    ]


class PositionParams(Structure):
    _fields_ = [
        ("position", c_double),
    ]


class RandomZoomOutParams(Structure):
    _fields_ = [
        ("min_sides", c_double),
        ("max_sides", c_double),
        ("probability", c_double),
    ]


class RandomRotationParams(Structure):
    _fields_ = [
        ("min_angle", c_double),
        ("max_angle", c_double),
        ("expand", c_double),
        ("has_center", c_double),
        ("center", c_double * 2),
    ]


class RotateParams(Structure):
    _fields_ = [
        ("angle", c_double),
        ("expand", c_double),
        ("has_center", c_double),
        ("center", c_double * 2),
    ]


class RandomAffineParams(Structure):
    _fields_ = [
        ("min_angle", c_double),
        ("max_angle", c_double),
        ("translate", c_double * 2),
        ("min_scale", c_double),
        ("max_scale", c_double),
        ("min_shear_x", c_double),
        ("max_shear_x", c_double),
        ("min_shear_y", c_double),
        ("max_shear_y", c_double),
        ("center", c_double * 2),
    ]


class AffineParams(Structure):
    _fields_ = [
        ("matrix", c_double * 6),
    ]


class RandomPerspectiveParams(Structure):
    _fields_ = [
        ("distortion", c_double),
        ("probability", c_double),
    ]


class PerspectiveParams(Structure):
    _fields_ = [
        ("matrix", c_double * 8),
    ]


class FactorParams(Structure):
    _fields_ = [
        ("factor", c_double),
    ]


class HueParams(Structure):
    _fields_ = [
        ("hue", c_double),
    ]


class GammaParams(Structure):
    _fields_ = [
        ("gamma", c_double),
        ("gain", c_double),
    ]


class PosterizeParams(Structure):
    _fields_ = [
        ("bits", c_double),
    ]


class SolarizeParams(Structure):
    _fields_ = [
        ("threshold", c_double),
    ]


class SolarizeAddParams(Structure):
    _fields_ = [
        ("add", c_double),
        ("threshold", c_double),
    ]


class PermuteChannelsParams(Structure):
    _fields_ = [
        ("order", c_double * 3),
    ]


class ColorJitterParams(Structure):
    _fields_ = [
        ("min_brightness", c_double),
        ("max_brightness", c_double),
        ("min_contrast", c_double),
        ("max_contrast", c_double),
        ("min_saturation", c_double),
        ("max_saturation", c_double),
        ("min_hue", c_double),
        ("max_hue", c_double),
    ]


class RandomPhotometricDistortParams(Structure):
    _fields_ = [
        ("min_brightness", c_double),
        ("max_brightness", c_double),
        ("min_contrast", c_double),
        ("max_contrast", c_double),
        ("min_saturation", c_double),
        ("max_saturation", c_double),
        ("min_hue", c_double),
        ("max_hue", c_double),
        ("probability", c_double),
    ]


class GaussianBlurParams(Structure):
    _fields_ = [
        ("kernel", c_double * 2),
        ("sigma", c_double * 2),
    ]


class RandomGaussianBlurParams(Structure):
    _fields_ = [
        ("kernel", c_double * 2),
        ("min_sigma", c_double),
        ("max_sigma", c_double),
    ]


class BoxBlurParams(Structure):
    _fields_ = [
        ("radius", c_double * 2),
    ]


class RandomBoxBlurParams(Structure):
    _fields_ = [
        ("min_radius", c_double),
        ("max_radius", c_double),
    ]


class JpegParams(Structure):
    _fields_ = [
        ("quality", c_double),
    ]


class RandomJpegParams(Structure):
    _fields_ = [
        ("min_quality", c_double),
        ("max_quality", c_double),
    ]


class TrivialAugmentWideParams(Structure):
    _fields_ = [
        ("bins", c_double),
    ]


class RandAugmentParams(Structure):
    _fields_ = [
        ("n_ops", c_double),
        ("magnitude", c_double),
        ("bins", c_double),
    ]


class AutoAugmentParams(Structure):
    _fields_ = [
        ("policy", c_double),
    ]


class AugMixParams(Structure):
    _fields_ = [
        ("severity", c_double),
        ("n_chains", c_double),
        ("depth", c_double),
        ("alpha", c_double),
        ("all_ops", c_double),
    ]


class TimmRandAugmentParams(Structure):
    _fields_ = [
        ("n_ops", c_double),
        ("magnitude", c_double),
        ("probability", c_double),
        ("deviation", c_double),
        ("is_uniform", c_double),
        ("max_magnitude", c_double),
        ("set", c_double),
    ]


class TimmAutoAugmentParams(Structure):
    _fields_ = [
        ("policy", c_double),
        ("deviation", c_double),
    ]


class TimmAugMixParams(Structure):
    _fields_ = [
        ("magnitude", c_double),
        ("n_chains", c_double),
        ("depth", c_double),
        ("alpha", c_double),
        ("blended", c_double),
        ("deviation", c_double),
        ("is_uniform", c_double),
    ]


class MixParams(Structure):
    _fields_ = [
        ("mode", c_double),
        ("weight", c_double),
    ]


class MixChainParams(Structure):
    _fields_ = [
        ("weight", c_double),
    ]


class ProbabilityParams(Structure):
    _fields_ = [
        ("probability", c_double),
    ]


class RandomChoiceParams(Structure):
    _fields_ = [
        ("weights", c_double * 12),
    ]


class CallParams(Structure):
    _fields_ = [
        ("scratch_size", c_double),
        ("random", c_double * 4),
    ]


class NormalizeParams(Structure):
    _fields_ = [
        ("mean", c_double * 4),
        ("deviation", c_double * 4),
        ("scale", c_double),
    ]


class ToFloatParams(Structure):
    _fields_ = [
        ("scale", c_double),
    ]


class RandomErasingParams(Structure):
    _fields_ = [
        ("probability", c_double),
        ("min_scale", c_double),
        ("max_scale", c_double),
        ("min_ratio", c_double),
        ("max_ratio", c_double),
        ("value", c_double * 4),
        ("is_normal", c_double),
        ("min_count", c_double),
        ("max_count", c_double),
    ]


class EraseParams(Structure):
    _fields_ = [
        ("top", c_double),
        ("left", c_double),
        ("height", c_double),
        ("width", c_double),
        ("value", c_double * 4),
        ("is_normal", c_double),
        ("key", c_double * 2),
    ]


class OpParams(Union):
    _fields_ = [
        ("values", c_double * 12),
        ("random_resized_crop", RandomResizedCropParams),
        ("resized_crop", ResizedCropParams),
        ("resize_shorter", ResizeShorterParams),
        ("scale_jitter", ScaleJitterParams),
        ("random_shortest_size", RandomShortestSizeParams),
        ("random_resize", RandomResizeParams),
        ("crop", CropParams),
        ("iou_crop", CropParams),
        ("random_crop", RandomCropParams),
        ("corner_crop", CornerCropParams),
        ("random_iou_crop", RandomIouCropParams),
        ("pad", PadParams),
        ("pad_to_size", PositionParams),
        ("letterbox", PositionParams),
        ("random_zoom_out", RandomZoomOutParams),
        ("random_flip", ProbabilityParams),
        ("random_vertical_flip", ProbabilityParams),
        ("random_rotation", RandomRotationParams),
        ("rotate", RotateParams),
        ("random_affine", RandomAffineParams),
        ("affine", AffineParams),
        ("random_perspective", RandomPerspectiveParams),
        ("perspective", PerspectiveParams),
        ("brightness", FactorParams),
        ("contrast", FactorParams),
        ("saturation", FactorParams),
        ("sharpness", FactorParams),
        ("hue", HueParams),
        ("gamma", GammaParams),
        ("posterize", PosterizeParams),
        ("solarize", SolarizeParams),
        ("solarize_add", SolarizeAddParams),
        ("permute_channels", PermuteChannelsParams),
        ("color_jitter", ColorJitterParams),
        ("random_grayscale", ProbabilityParams),
        ("random_photometric_distort", RandomPhotometricDistortParams),
        ("gaussian_blur", GaussianBlurParams),
        ("random_gaussian_blur", RandomGaussianBlurParams),
        ("box_blur", BoxBlurParams),
        ("random_box_blur", RandomBoxBlurParams),
        ("jpeg", JpegParams),
        ("random_jpeg", RandomJpegParams),
        ("trivial_augment_wide", TrivialAugmentWideParams),
        ("rand_augment", RandAugmentParams),
        ("auto_augment", AutoAugmentParams),
        ("aug_mix", AugMixParams),
        ("timm_rand_augment", TimmRandAugmentParams),
        ("timm_auto_augment", TimmAutoAugmentParams),
        ("timm_aug_mix", TimmAugMixParams),
        ("mix", MixParams),
        ("mix_chain", MixChainParams),
        ("random_apply", ProbabilityParams),
        ("random_choice", RandomChoiceParams),
        ("call", CallParams),
        ("normalize", NormalizeParams),
        ("to_float", ToFloatParams),
        ("random_erasing", RandomErasingParams),
        ("erase", EraseParams),
    ]


class Shape(Structure):
    _fields_ = [
        ("height", c_uint32),
        ("width", c_uint32),
        ("channels", c_uint32),
        ("reserved", c_uint32),
    ]


PixelsFn = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint8), POINTER(Shape), POINTER(c_uint64), c_void_p, POINTER(Error))


class Op(Structure):
    pass


Op._fields_ = [
    ("kind", c_uint32),
    ("flags", c_uint32),
    ("width", c_uint32),
    ("height", c_uint32),
    ("params", OpParams),
    ("children", POINTER(Op)),
    ("n_children", c_uint32),
    ("filter", c_uint32),
    ("channels", c_uint32),
    ("fill", c_uint8 * 4),
    ("function", PixelsFn),
    ("user", c_void_p),
]


class Draw(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("random_group", c_uint32),
        ("seed", c_uint64),
        ("epoch", c_uint64),
        ("sample_id", c_uint64),
    ]


class FirstOf(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("suffixes", c_char_p),
    ]


class Default(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("data", c_void_p),
        ("size", c_uint64),
    ]


WaitFn = CFUNCTYPE(None, c_void_p, c_char_p)


class Foreign(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("field_size", c_uint32),
        ("fields", POINTER(Field)),
        ("n_fields", c_uint32),
        ("n_threads", c_uint32),
        ("cache_path", c_char_p),
        ("on_progress", ProgressFn),
        ("user", c_void_p),
        ("cache_size", c_uint64),
        ("root_path", c_char_p),
        ("first_of", POINTER(FirstOf)),
        ("n_first_of", c_uint32),
        ("split_at", c_uint32),
        ("on_wait", WaitFn),
        ("by_content", c_uint32),
        ("n_defaults", c_uint32),
        ("defaults", POINTER(Default)),
        ("damaged", c_uint32),
        ("reserved", c_uint32),
    ]


class VerifyReport(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("checksums", c_uint32),
        ("n_files", c_uint64),
        ("n_samples", c_uint64),
        ("n_bad", c_uint64),
        ("n_holes", c_uint64),
        ("note", c_char * 640),
    ]


class VerifySettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("decode", c_uint32),
        ("n_threads", c_uint32),
        ("keep_checksums", c_uint32),
        ("path", c_char_p),
        ("foreign", POINTER(Foreign)),
        ("on_bad", VerifyFn),
        ("on_progress", ProgressFn),
        ("user", c_void_p),
        ("report", POINTER(VerifyReport)),
    ]


class CacheInfo(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("n_entries", c_uint64),
        ("bytes", c_uint64),
        ("n_writing", c_uint64),
        ("writing_bytes", c_uint64),
        ("n_indexes", c_uint64),
        ("index_bytes", c_uint64),
        ("n_checksums", c_uint64),
        ("checksum_bytes", c_uint64),
        ("max_bytes", c_uint64),
        ("free_bytes", c_uint64),
    ]


class Subset(Structure):
    pass


class ExportSettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("target", c_uint32),
        ("data", c_char_p),
        ("out", c_char_p),
        ("fields", POINTER(c_char_p)),
        ("n_fields", c_uint32),
        ("n_threads", c_uint32),
        ("image", c_char_p),
        ("label", c_char_p),
        ("key", c_char_p),
        ("subset", POINTER(Subset)),
        ("shard_size", c_uint64),
        ("overwrite", c_uint32),
        ("reserved", c_uint32),
        ("on_progress", ProgressFn),
        ("user", c_void_p),
        ("foreign", POINTER(Foreign)),
    ]


class ExportResult(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("had_leftovers", c_uint32),
        ("n_samples", c_uint64),
        ("n_shards", c_uint64),
        ("n_files", c_uint64),
        ("bytes", c_uint64),
        ("n_images", c_uint64),
        ("n_equivalent", c_uint64),
        ("n_encoded", c_uint64),
        ("n_renamed", c_uint64),
        ("n_remade", c_uint64),
        ("n_left_out", c_uint64),
        ("n_renumbered", c_uint64),
    ]


class ImageFolderSettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("by_content", c_uint32),
        ("path", c_char_p),
        ("skip_path", c_char_p),
        ("on_progress", ProgressFn),
        ("user", c_void_p),
    ]


class ImageFolderInfo(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_formats", c_uint32),
        ("n_images", c_uint64),
        ("n_classes", c_uint64),
        ("n_left_out", c_uint64),
        ("n_hidden", c_uint64),
        ("n_foreign", c_uint64),
        ("n_others", c_uint64),
    ]


class Machine(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_cores", c_uint32),
        ("n_usable", c_uint32),
        ("n_nodes", c_uint32),
        ("memory", c_uint64),
        ("memlock", c_uint64),
        ("open_files", c_uint64),
        ("cpu_quota", c_double),
        ("io_uring", c_int32),
        ("fixed_buffers", c_int32),
        ("single_issuer", c_int32),
        ("direct", c_int32),
        ("direct_memory_align", c_uint32),
        ("direct_offset_align", c_uint32),
        ("kernels", c_uint32),
        ("n_cuda_devices", c_int32),
        ("kernel", c_char * 64),
        ("cpu", c_char * 64),
        ("file_system", c_char * 32),
        ("libjpeg", c_char * 32),
        ("rotational", c_int32),
        ("n_workers", c_uint32),
        ("n_workers_direct", c_uint32),
        ("n_workers_device", c_uint32),
    ]


class Device(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("index", c_int32),
        ("numa_node", c_int32),
        ("memory", c_uint64),
        ("driver", c_uint32),
        ("runtime", c_uint32),
        ("major", c_uint32),
        ("minor", c_uint32),
        ("pcie_generation", c_uint32),
        ("pcie_width", c_uint32),
        ("pcie_generation_max", c_uint32),
        ("pcie_width_max", c_uint32),
        ("bus_id", c_char * 32),
        ("name", c_char * 64),
    ]


class CopyRates(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("to_device", c_double),
        ("to_host", c_double),
        ("pageable_to_device", c_double),
        ("on_device", c_double),
    ]


class Ceilings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("from_page_cache", c_uint32),
        ("storage_bytes_per_second", c_double),
        ("storage_reads_per_second", c_double),
        ("decode_samples_per_second", c_double),
        ("memory_bytes_per_second", c_double),
        ("loader_samples_per_second", c_double),
        ("copy_bytes_per_second", c_double),
        ("copy_block_size", c_uint64),
        ("kernels_ns", c_double * 5),
    ]


class Mix(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_classes", c_uint32),
        ("image", c_char_p),
        ("label", c_char_p),
        ("mixup_alpha", c_double),
        ("cutmix_alpha", c_double),
        ("probability", c_double),
        ("switch_probability", c_double),
        ("smoothing", c_double),
        ("mode", c_uint32),
        ("pairing", c_uint32),
        ("targets", c_uint32),
        ("reserved", c_uint32),
    ]


class MixKey(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_rows", c_uint32),
        ("height", c_uint32),
        ("width", c_uint32),
        ("seed", c_uint64),
        ("epoch", c_uint64),
        ("position", c_uint64),
        ("rank", c_uint32),
        ("reserved", c_uint32),
    ]


class MixedRow(Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("partner", c_uint32),
        ("lam", c_double),
        ("top", c_uint32),
        ("left", c_uint32),
        ("height", c_uint32),
        ("width", c_uint32),
    ]


class MixtureSegment(Structure):
    _fields_ = [
        ("begin", c_uint64),
        ("weights", POINTER(c_double)),
    ]


class Mixture(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_data_sets", c_uint32),
        ("paths", POINTER(c_char_p)),
        ("segments", POINTER(MixtureSegment)),
        ("n_segments", c_uint32),
        ("exhaustion", c_uint32),
        ("samples_per_epoch", c_uint64),
        ("subsets", POINTER(POINTER(Subset))),
    ]


class MixtureStats(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("n_samples", c_uint64),
        ("n_delivered", c_uint64),
    ]


class Mosaic(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("image", c_char_p),
        ("probability", c_double),
        ("center_min", c_double),
        ("center_max", c_double),
    ]


class MosaicPart(Structure):
    _fields_ = [
        ("row", c_uint32),
        ("top", c_uint32),
        ("left", c_uint32),
        ("height", c_uint32),
        ("width", c_uint32),
        ("from_top", c_uint32),
        ("from_left", c_uint32),
    ]


class MosaicRow(Structure):
    _fields_ = [
        ("n_parts", c_uint32),
        ("center_x", c_uint32),
        ("center_y", c_uint32),
        ("reserved", c_uint32),
        ("parts", MosaicPart * 4),
    ]


class BatchStep(Structure):
    _fields_ = [
        ("from", c_uint64),
        ("rows", c_uint32),
        ("reserved", c_uint32),
    ]


class OrderSettings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("order", c_uint32),
        ("n_samples", c_uint64),
        ("seed", c_uint64),
        ("epoch", c_uint64),
        ("batch_size", c_uint32),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("last_batch", c_uint32),
        ("global_batch_size", c_uint32),
        ("reserved", c_uint32),
        ("ways", c_uint32),
        ("block", c_uint32),
        ("window", c_uint32),
        ("n_batch_steps", c_uint32),
        ("batch_schedule", POINTER(BatchStep)),
    ]


class OrderExplanation(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("ways", c_uint32),
        ("block", c_uint32),
        ("window", c_uint32),
        ("advised_ways", c_uint32),
        ("last_rows", c_uint32),
        ("n_batches", c_uint64),
        ("n_mixed", c_uint64),
        ("n_blocks", c_uint64),
        ("ways_of_rank", c_uint64),
        ("ranks_of_way", c_uint64),
        ("blocks_of_rank", c_uint64),
        ("n_readings", c_double),
    ]


class Sample(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("encoding", c_uint32),
        ("sample_id", c_uint64),
        ("epoch", c_uint64),
        ("position", c_uint64),
        ("data", c_void_p),
        ("data_size", c_uint64),
        ("random", c_uint64 * 2),
        ("scratch", c_void_p),
        ("scratch_size", c_uint64),
        ("codec", c_uint32),
        ("reserved", c_uint32),
        ("dtype", c_uint32),
        ("n_dims", c_uint32),
        ("shape", c_uint64 * 8),
        ("error", POINTER(Error)),
    ]


DecodeFn = CFUNCTYPE(c_int, c_void_p, POINTER(Sample), c_void_p, c_uint64)


class OpList(Structure):
    _fields_ = [
        ("ops", POINTER(Op)),
        ("n_ops", c_uint32),
        ("reserved", c_uint32),
    ]


class ImageOutput(Structure):
    _fields_ = [
        ("layout", c_uint32),
        ("channels", c_uint32),
        ("ops", POINTER(Op)),
        ("n_ops", c_uint32),
        ("reference", c_uint32),
        ("random_group", c_uint32),
        ("exif_orientation", c_uint32),
        ("size_ops", POINTER(OpList)),
        ("n_sizes", c_uint32),
        ("every", c_uint32),
        ("reserved", c_uint64 * 4),
    ]


class Processes(Structure):
    pass


class CallbackOutput(Structure):
    _fields_ = [
        ("decode", DecodeFn),
        ("user", c_void_p),
        ("scratch_size", c_uint64),
        ("shape", c_uint64 * 8),
        ("n_dims", c_uint32),
        ("stored", c_uint32),
        ("processes", POINTER(Processes)),
        ("timeout_ns", c_uint64),
        ("batched", c_uint32),
        ("reserved2", c_uint32),
        ("reserved", c_uint64 * 4),
    ]


class FollowOutput(Structure):
    _fields_ = [
        ("image", c_char_p),
        ("boxes", c_char_p),
        ("where", c_char_p),
        ("fill", c_uint32),
        ("box_format", c_uint32),
        ("coordinates", c_uint32),
        ("keep_outside", c_uint32),
        ("min_side", c_double),
        ("min_area", c_double),
        ("min_visible", c_double),
        ("add", c_int64),
        ("flip_pairs", POINTER(c_uint32)),
        ("n_flip_pairs", c_uint32),
        ("at_centers", c_uint32),
        ("reserved", c_uint64 * 4),
    ]


class RaggedOutput(Structure):
    _fields_ = [
        ("bytes_per_batch", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


class Output(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("field", c_char_p),
        ("kind", c_uint32),
        ("dtype", c_uint32),
        ("image", ImageOutput),
        ("callback", CallbackOutput),
        ("follow", FollowOutput),
        ("ragged", RaggedOutput),
    ]


Processes._fields_ = [
    ("size", c_uint32),
    ("n_processes", c_uint32),
    ("arguments", POINTER(c_char_p)),
    ("environment", POINTER(c_char_p)),
    ("job", c_void_p),
    ("job_size", c_uint64),
    ("start_timeout_ns", c_uint64),
]


class Request(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("output", c_uint32),
        ("dtype", c_uint32),
        ("n_dims", c_uint32),
        ("encoding", c_uint32),
        ("reserved", c_uint32),
        ("shape", c_uint64 * 8),
        ("sample_id", c_uint64),
        ("epoch", c_uint64),
        ("position", c_uint64),
        ("random", c_uint64 * 2),
        ("row_pages", c_uint64),
        ("row_offset", c_uint64),
        ("row_size", c_uint64),
        ("data_offset", c_uint64),
        ("data_size", c_uint64),
    ]


class Answer(Structure):
    _fields_ = [
        ("result", c_int32),
        ("text", c_char * 600),
    ]


class KnownRanks(Structure):
    _fields_ = [
        ("source", c_char_p),
        ("by", c_uint32),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("local_rank", c_uint32),
        ("local_world", c_uint32),
        ("reserved", c_uint32),
    ]


class RankQuery(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("terminal", c_uint32),
        ("environment", POINTER(c_char_p)),
        ("known", POINTER(KnownRanks)),
        ("n_known", c_uint32),
        ("known_size", c_uint32),
        ("option", c_char_p),
        ("automatic", c_char_p),
        ("numbers", c_char_p),
        ("alone", c_char_p),
        ("indexed", c_char_p),
        ("n_indexed", c_uint32),
        ("reserved", c_uint32),
    ]


class FoundRanks(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("local_rank", c_uint32),
        ("local_world", c_uint32),
        ("is_bound", c_uint32),
        ("source", c_char * 32),
    ]


Subset._fields_ = [
    ("size", c_uint32),
    ("kind", c_uint32),
    ("first", c_uint64),
    ("last", c_uint64),
    ("seed", c_uint64),
    ("fold", c_uint32),
    ("n_folds", c_uint32),
    ("inverted", c_uint32),
    ("reserved", c_uint32),
    ("ids", POINTER(c_uint64)),
    ("n_ids", c_uint64),
    ("column", c_char_p),
    ("weights", POINTER(c_double)),
    ("n_weights", c_uint64),
    ("n_draws", c_uint64),
    ("values", POINTER(c_int64)),
    ("n_values", c_uint64),
    ("least", c_double),
    ("below", c_double),
    ("members", c_void_p),
    ("next", POINTER(Subset)),
    ("least_rest", c_int64),
    ("below_rest", c_int64),
]


BadSampleFn = CFUNCTYPE(None, c_void_p, POINTER(Error), c_uint64)
CurrentStreamFn = CFUNCTYPE(c_int, c_int32, POINTER(c_void_p))


class SettingsOrder(Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("uneven", c_uint32),
        ("epoch", c_uint64),
        ("position", c_uint64),
        ("ways", c_uint32),
        ("block", c_uint32),
        ("window", c_uint32),
        ("n_batch_steps", c_uint32),
        ("batch_schedule", POINTER(BatchStep)),
        ("reserved", c_uint64 * 4),
    ]


class SettingsRanks(Structure):
    _fields_ = [
        ("rank", c_uint32),
        ("world", c_uint32),
        ("local_rank", c_uint32),
        ("local_world", c_uint32),
        ("reserved", c_uint64 * 4),
    ]


class SettingsMemory(Structure):
    _fields_ = [
        ("n_slots", c_uint32),
        ("max_batch_size", c_uint32),
        ("max_memory", c_uint64),
        ("io_memory", c_uint64),
        ("index_memory", c_uint64),
        ("max_pixels", c_uint64),
        ("max_record_size", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


class SettingsReading(Structure):
    _fields_ = [
        ("reader", c_uint32),
        ("io", c_uint32),
        ("queue_depth", c_uint32),
        ("pin_threads", c_uint32),
        ("kernels", c_uint32),
        ("reserved2", c_uint32),
        ("topology", c_char_p),
        ("reserved", c_uint64 * 4),
    ]


class SettingsDevice(Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("index", c_int32),
        ("n_slots", c_uint32),
        ("measure", c_uint32),
        ("current_stream", CurrentStreamFn),
        ("reserved", c_uint64 * 4),
    ]


class SettingsObserve(Structure):
    _fields_ = [
        ("report_crops", c_uint32),
        ("nvtx", c_uint32),
        ("trace_events", c_uint32),
        ("reserved2", c_uint32),
        ("trace_path", c_char_p),
        ("monitor_path", c_char_p),
        ("reserved", c_uint64 * 4),
    ]


class Settings(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("output_size", c_uint32),
        ("op_size", c_uint32),
        ("reserved", c_uint32),
        ("path", c_char_p),
        ("mixture", POINTER(Mixture)),
        ("foreign", POINTER(Foreign)),
        ("subset", POINTER(Subset)),
        ("outputs", POINTER(Output)),
        ("n_outputs", c_uint32),
        ("batch_size", c_uint32),
        ("global_batch_size", c_uint32),
        ("last_batch", c_uint32),
        ("budget", POINTER(Budget)),
        ("mix", POINTER(Mix)),
        ("mosaic", POINTER(Mosaic)),
        ("seed", c_uint64),
        ("n_threads", c_uint32),
        ("bad_sample", c_uint32),
        ("on_bad_sample", BadSampleFn),
        ("bad_sample_user", c_void_p),
        ("order", SettingsOrder),
        ("ranks", SettingsRanks),
        ("memory", SettingsMemory),
        ("reading", SettingsReading),
        ("device", SettingsDevice),
        ("observe", SettingsObserve),
    ]


class Tensor(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("data", c_void_p),
        ("size", c_uint64),
        ("dtype", c_uint32),
        ("layout", c_uint32),
        ("n_dims", c_uint32),
        ("kind", c_uint32),
        ("shape", c_int64 * 10),
        ("strides", c_int64 * 10),
        ("offsets", POINTER(c_int64)),
        ("device_offsets", POINTER(c_int64)),
    ]


class Crop(Structure):
    _fields_ = [
        ("top", c_int32),
        ("left", c_int32),
        ("height", c_int32),
        ("width", c_int32),
        ("image_height", c_uint32),
        ("image_width", c_uint32),
        ("flip", c_uint32),
        ("flip_vertical", c_uint32),
    ]


class Report(Structure):
    _fields_ = [
        ("error", Error),
        ("replacement_id", c_uint64),
        ("row", c_uint32),
        ("reserved", c_uint32),
    ]


class Batch(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("n_tensors", c_uint32),
        ("tensors", POINTER(Tensor)),
        ("n_rows", c_uint32),
        ("n_valid", c_uint32),
        ("epoch", c_uint64),
        ("position", c_uint64),
        ("next_position", c_uint64),
        ("index", c_uint64),
        ("sample_ids", POINTER(c_uint64)),
        ("replacement_ids", POINTER(c_uint64)),
        ("crops", POINTER(Crop)),
        ("n_replacements", c_uint32),
        ("slot", c_uint32),
        ("tensor_size", c_uint32),
        ("crop_size", c_uint32),
        ("reports", POINTER(Report)),
        ("n_reports", c_uint32),
        ("report_size", c_uint32),
        ("n_palette_images", c_uint32),
        ("n_damaged_images", c_uint32),
        ("n_dropped_boxes", c_uint32),
        ("size_index", c_uint32),
        ("data_sets", POINTER(c_uint32)),
    ]


class RoleSearch(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("field_size", c_uint32),
        ("fields", POINTER(Field)),
        ("n_fields", c_uint32),
        ("role", c_uint32),
        ("of", c_char_p),
        ("name", c_char_p),
    ]


# name: (result, arguments)
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "pstk_error_init": (None, [POINTER(Error), c_uint32]),
    "pstk_strerror": (c_char_p, [c_int]),
    "pstk_error_name": (c_char_p, [c_int]),
    "pstk_version": (c_char_p, []),
    "pstk_version_number": (c_uint32, []),
    "pstk_crc32c": (c_uint32, [c_uint32, c_void_p, c_uint64]),
    "pstk_dtype_size": (c_uint32, [c_uint32]),
    "pstk_dtype_name": (c_char_p, [c_uint32]),
    "pstk_dtype_parse": (c_uint32, [c_char_p]),
    "pstk_writer_settings_init": (None, [POINTER(WriterSettings), c_uint32]),
    "pstk_writer_open": (c_int, [POINTER(c_void_p), POINTER(WriterSettings), POINTER(Error)]),
    "pstk_writer_add": (c_int, [c_void_p, POINTER(Value), c_uint32, POINTER(Error)]),
    "pstk_writer_add_pixels": (c_int, [c_void_p, POINTER(Value), c_uint32, POINTER(Pixels), c_uint32,
                                       POINTER(Error)]),
    "pstk_writer_n_remade": (c_uint64, [c_void_p]),
    "pstk_writer_n_leftovers": (c_uint64, [c_void_p]),
    "pstk_writer_n_samples": (c_uint64, [c_void_p]),
    "pstk_writer_commit": (c_int, [POINTER(c_void_p), POINTER(Error)]),
    "pstk_writer_abort": (None, [POINTER(c_void_p)]),
    "pstk_merge": (c_int, [POINTER(MergeSettings), POINTER(Error)]),
    "pstk_writer_commit_parts": (c_int, [POINTER(c_void_p), POINTER(c_char_p), c_uint32, POINTER(Error)]),
    "pstk_list_build": (c_int, [c_uint32, POINTER(ListItem), c_uint64, POINTER(c_void_p), POINTER(c_uint64),
                                POINTER(Error)]),
    "pstk_list_read": (c_int64, [c_uint32, c_void_p, c_uint64, POINTER(ListItem), c_uint64, POINTER(Error)]),
    "pstk_image_check": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_uint32), POINTER(c_uint32),
                                 POINTER(Error)]),
    "pstk_image_check_damaged": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_uint32), POINTER(Error)]),
    "pstk_image_is_palette": (c_int, [c_void_p, c_uint64]),
    "pstk_image_format": (c_char_p, [c_void_p, c_uint64, POINTER(c_int)]),
    "pstk_image_passthrough": (c_int, [c_void_p, c_uint64, c_int32, POINTER(c_uint32), POINTER(Error)]),
    "pstk_image_convert": (c_int, [c_void_p, c_uint64, POINTER(Convert), POINTER(c_void_p), POINTER(c_uint64),
                                   POINTER(c_uint32), POINTER(c_uint32), POINTER(Error)]),
    "pstk_dataset_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(Foreign), POINTER(Error)]),
    "pstk_dataset_close": (None, [POINTER(c_void_p)]),
    "pstk_dataset_get_info": (c_int, [c_void_p, POINTER(DatasetInfo)]),
    "pstk_dataset_get_field": (c_int, [c_void_p, c_uint32, POINTER(Field), POINTER(FieldStats)]),
    "pstk_dataset_name": (c_char_p, [c_void_p, c_uint64]),
    "pstk_dataset_get": (c_int, [c_void_p, c_uint64, c_uint32, POINTER(c_void_p), POINTER(c_uint64),
                                 POINTER(ValueInfo), POINTER(Error)]),
    "pstk_mask_decode": (c_int, [c_void_p, c_uint64, POINTER(ValueInfo), POINTER(c_void_p), POINTER(c_uint32),
                                 POINTER(Error)]),
    "pstk_free": (None, [c_void_p]),
    "pstk_dataset_look": (c_int, [c_void_p, c_uint64, c_uint32, POINTER(ValueInfo), POINTER(Error)]),
    "pstk_dataset_n_columns": (c_uint32, [c_void_p]),
    "pstk_dataset_get_column_info": (c_int, [c_void_p, c_uint32, POINTER(ColumnInfo)]),
    "pstk_dataset_read_column": (c_int, [c_void_p, c_char_p, c_uint64, c_uint64, c_void_p, c_uint64,
                                         POINTER(Error)]),
    "pstk_column_add": (c_int, [c_char_p, POINTER(NewColumn), ProgressFn, c_void_p, POINTER(Error)]),
    "pstk_column_remove": (c_int, [c_char_p, c_char_p, POINTER(Error)]),
    "pstk_dataset_check": (c_int64, [c_void_p, VerifyFn, c_void_p, POINTER(Error)]),
    "pstk_verify": (c_int64, [c_char_p, c_int, c_uint32, VerifyFn, ProgressFn, c_void_p, POINTER(Error)]),
    "pstk_rle_parse": (c_int, [c_char_p, c_uint64, POINTER(c_uint32), c_uint64, POINTER(c_uint64),
                               POINTER(Error)]),
    "pstk_rle_decode": (c_int, [POINTER(c_uint32), c_uint64, c_uint32, c_uint32, POINTER(c_uint8),
                                POINTER(Error)]),
    "pstk_polygon_mask": (c_int, [POINTER(c_double), POINTER(c_uint32), c_uint32, c_uint32, c_uint32,
                                  POINTER(c_uint8), POINTER(Error)]),
    "pstk_annotations_settings_init": (None, [POINTER(AnnotationsSettings), c_uint32]),
    "pstk_annotations_open": (c_int, [POINTER(c_void_p), POINTER(AnnotationsSettings), POINTER(Error)]),
    "pstk_annotations_close": (None, [POINTER(c_void_p)]),
    "pstk_annotations_get_info": (c_int, [c_void_p, POINTER(AnnotationsInfo)]),
    "pstk_annotations_get_field": (c_int, [c_void_p, c_uint32, POINTER(Field)]),
    "pstk_annotations_file": (c_char_p, [c_void_p, c_uint64]),
    "pstk_annotations_get_size": (c_int, [c_void_p, c_uint64, POINTER(c_uint32), POINTER(c_uint32)]),
    "pstk_annotations_name": (c_char_p, [c_void_p, c_uint64]),
    "pstk_annotations_category": (c_int64, [c_void_p, c_uint64]),
    "pstk_annotations_read": (c_int, [c_void_p, c_uint64, POINTER(Value), c_uint32, POINTER(Error)]),
    "pstk_annotations_get_pixels": (c_int, [c_void_p, c_uint32, POINTER(Pixels)]),
    "pstk_budget_digest": (c_int, [POINTER(Budget), POINTER(c_uint64)]),
    "pstk_get_stats": (c_int, [c_void_p, POINTER(Stats)]),
    "pstk_find_bottleneck": (c_uint32, [POINTER(Stats)]),
    "pstk_trace_write": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "pstk_get_metrics": (c_int, [c_void_p, c_uint32, POINTER(Metrics)]),
    "pstk_predict": (c_int, [POINTER(Stats), POINTER(ForecastSettings), POINTER(Forecast)]),
    "pstk_status_ask": (c_int, [c_char_p, c_int64, POINTER(Status), POINTER(Stats), POINTER(Metrics),
                                POINTER(Error)]),
    "pstk_random_resized_crop": (Op, [c_uint32, c_uint32]),
    "pstk_random_resized_crop_range": (Op, [c_uint32, c_uint32, c_double, c_double, c_double, c_double]),
    "pstk_resize": (Op, [c_uint32, c_uint32]),
    "pstk_resize_shorter": (Op, [c_uint32]),
    "pstk_resize_shorter_max": (Op, [c_uint32, c_uint32]),
    "pstk_resize_longest": (Op, [c_uint32]),
    "pstk_pad_to_size": (Op, [c_uint32, c_uint32, c_uint32]),
    "pstk_letterbox": (Op, [c_uint32, c_uint32, c_uint32]),
    "pstk_corner_crop": (Op, [c_uint32, c_uint32, c_uint32]),
    "pstk_scale_jitter": (Op, [c_uint32, c_uint32, c_double, c_double]),
    "pstk_random_zoom_out": (Op, [c_double, c_double, c_double]),
    "pstk_random_shortest_size": (Op, [POINTER(c_uint32), c_uint32, c_uint32]),
    "pstk_random_resize": (Op, [c_uint32, c_uint32]),
    "pstk_center_crop": (Op, [c_uint32, c_uint32]),
    "pstk_random_crop": (Op, [c_uint32, c_uint32, c_uint32]),
    "pstk_random_iou_crop": (Op, []),
    "pstk_random_flip": (Op, [c_double]),
    "pstk_random_vertical_flip": (Op, [c_double]),
    "pstk_flip_horizontal": (Op, []),
    "pstk_flip_vertical": (Op, []),
    "pstk_crop_at": (Op, [c_int32, c_int32, c_uint32, c_uint32]),
    "pstk_pad": (Op, [c_uint32, c_uint32, c_uint32, c_uint32, c_uint32]),
    "pstk_grayscale": (Op, [c_uint32]),
    "pstk_adjust": (Op, [c_uint32, c_double]),
    "pstk_color_jitter": (Op, [c_double, c_double, c_double, c_double]),
    "pstk_random_grayscale": (Op, [c_double]),
    "pstk_random_channel_permutation": (Op, []),
    "pstk_random_photometric_distort": (Op, [c_double]),
    "pstk_random_apply": (Op, [POINTER(Op), c_uint32, c_double]),
    "pstk_random_choice": (Op, [POINTER(Op), c_uint32]),
    "pstk_random_order": (Op, [POINTER(Op), c_uint32]),
    "pstk_affine": (Op, [POINTER(c_double), c_uint32]),
    "pstk_affine_matrix": (c_int, [POINTER(c_double), c_double, POINTER(c_double), c_double,
                                   POINTER(c_double), POINTER(c_double)]),
    "pstk_perspective_matrix": (c_int, [POINTER(c_double), POINTER(c_double), POINTER(c_double)]),
    "pstk_rotate": (Op, [c_double, c_uint32, c_uint32]),
    "pstk_gaussian_blur": (Op, [c_uint32, c_double]),
    "pstk_box_blur": (Op, [c_double]),
    "pstk_random_rotation": (Op, [c_double, c_double, c_uint32]),
    "pstk_random_perspective": (Op, [c_double, c_double, c_uint32]),
    "pstk_random_gaussian_blur": (Op, [c_uint32, c_double, c_double]),
    "pstk_random_box_blur": (Op, [c_double, c_double]),
    "pstk_jpeg": (Op, [c_uint32]),
    "pstk_random_jpeg": (Op, [c_uint32, c_uint32]),
    "pstk_call": (Op, [PixelsFn, c_void_p, c_uint64]),
    "pstk_trivial_augment_wide": (Op, [c_uint32, c_uint32]),
    "pstk_rand_augment": (Op, [c_uint32, c_uint32, c_uint32, c_uint32]),
    "pstk_auto_augment": (Op, [c_uint32, c_uint32]),
    "pstk_aug_mix": (Op, [c_uint32, c_uint32, c_uint32, c_double]),
    "pstk_timm_rand_augment": (Op, [c_uint32, c_double, c_double, c_uint32]),
    "pstk_timm_auto_augment": (Op, [c_uint32, c_double]),
    "pstk_timm_aug_mix": (Op, [c_double, c_uint32, c_uint32, c_double]),
    "pstk_to_float": (Op, [c_uint32]),
    "pstk_normalize": (Op, [POINTER(c_float), POINTER(c_float)]),
    "pstk_normalize_channels": (Op, [c_uint32, POINTER(c_float), POINTER(c_float)]),
    "pstk_random_erasing": (Op, [c_double, c_double]),
    "pstk_erase": (Op, [c_uint32, c_uint32, c_uint32, c_uint32, c_double]),
    "pstk_resized_crop": (Op, [c_uint32, c_uint32, c_uint32, c_uint32, c_uint32, c_uint32]),
    "pstk_mix_chains": (Op, [c_uint32, c_double, POINTER(Op), c_uint32]),
    "pstk_mix_chain": (Op, [c_double]),
    "pstk_ops_draw": (c_int, [POINTER(Op), c_uint32, POINTER(Shape), POINTER(Draw), POINTER(Op), c_uint32,
                              POINTER(Error)]),
    "pstk_op_apply": (c_int, [POINTER(Op), c_uint32, c_void_p, POINTER(Shape), c_void_p, POINTER(Shape),
                              POINTER(Error)]),
    "pstk_find_format": (c_char_p, [c_char_p, POINTER(Error)]),
    "pstk_verify_data": (c_int64, [POINTER(VerifySettings), POINTER(Error)]),
    "pstk_find_cache": (c_int, [POINTER(c_char_p), c_char_p, c_uint64, POINTER(c_uint64), POINTER(Error)]),
    "pstk_cache_get_info": (c_int, [c_char_p, c_uint64, POINTER(CacheInfo), POINTER(Error)]),
    "pstk_cache_clear": (c_int, [c_char_p, c_uint32, POINTER(CacheInfo), POINTER(Error)]),
    "pstk_export": (c_int, [POINTER(ExportSettings), POINTER(ExportResult), POINTER(Error)]),
    "pstk_image_folder_open": (c_int, [POINTER(c_void_p), POINTER(ImageFolderSettings), POINTER(Error)]),
    "pstk_image_folder_close": (None, [POINTER(c_void_p)]),
    "pstk_image_folder_get_info": (c_int, [c_void_p, POINTER(ImageFolderInfo)]),
    "pstk_image_folder_path": (c_char_p, [c_void_p, c_uint64, POINTER(c_uint32)]),
    "pstk_image_folder_class": (c_char_p, [c_void_p, c_uint64]),
    "pstk_image_folder_foreign": (c_char_p, [c_void_p, c_uint32, POINTER(c_uint64)]),
    "pstk_get_machine": (c_int, [c_char_p, POINTER(Machine), POINTER(Error)]),
    "pstk_get_device": (c_int, [c_uint32, c_int32, POINTER(Device), POINTER(Error)]),
    "pstk_measure_copies": (c_int, [c_uint32, c_int32, c_uint64, c_double, POINTER(CopyRates),
                                    POINTER(Error)]),
    "pstk_measure_ceilings": (c_int, [POINTER(Settings), c_double, POINTER(Ceilings), POINTER(Error)]),
    "pstk_mix_init": (None, [POINTER(Mix), c_uint32]),
    "pstk_mix_draw": (c_int, [POINTER(Mix), POINTER(MixKey), POINTER(MixedRow), POINTER(Error)]),
    "pstk_mixture_init": (None, [POINTER(Mixture), c_uint32]),
    "pstk_mixture_get_stats": (c_int, [c_void_p, c_uint32, POINTER(MixtureStats)]),
    "pstk_mosaic_init": (None, [POINTER(Mosaic), c_uint32]),
    "pstk_mosaic_draw": (c_int, [POINTER(Mosaic), POINTER(MixKey), POINTER(MosaicRow), POINTER(Error)]),
    "pstk_order_settle": (c_int, [POINTER(OrderSettings)]),
    "pstk_order_explain": (c_int, [POINTER(OrderSettings), POINTER(OrderExplanation)]),
    "pstk_order_n_batches": (c_uint64, [POINTER(OrderSettings), c_uint64]),
    "pstk_order_rows": (c_uint64, [POINTER(OrderSettings), c_uint64]),
    "pstk_order_batch": (c_int64, [POINTER(OrderSettings), c_uint64, POINTER(c_uint64)]),
    "pstk_output_image": (Output, [c_char_p, POINTER(Op), c_uint32, c_uint32, c_uint32]),
    "pstk_output_scalar": (Output, [c_char_p, c_uint32]),
    "pstk_output_tensor": (Output, [c_char_p, c_uint32]),
    "pstk_output_bytes": (Output, [c_char_p]),
    "pstk_output_ragged": (Output, [c_char_p]),
    "pstk_output_mask": (Output, [c_char_p, c_uint32, c_uint32]),
    "pstk_output_boxes": (Output, [c_char_p]),
    "pstk_output_per_box": (Output, [c_char_p]),
    "pstk_output_keypoints": (Output, [c_char_p]),
    "pstk_output_polygons": (Output, [c_char_p]),
    "pstk_output_callback": (Output, [c_char_p, c_uint32, DecodeFn, c_void_p]),
    "pstk_find_ranks": (c_int, [POINTER(RankQuery), POINTER(FoundRanks), POINTER(Error)]),
    "pstk_use_ranks": (None, [POINTER(FoundRanks), POINTER(Settings)]),
    "pstk_check_alone": (c_int, [POINTER(RankQuery), POINTER(Error)]),
    "pstk_get_variable": (c_int, [POINTER(RankQuery), c_char_p, POINTER(c_uint32), POINTER(Error)]),
    "pstk_share_open": (c_int, [POINTER(c_void_p), POINTER(POINTER(Batch)), c_void_p, POINTER(Error)]),
    "pstk_share_batch": (POINTER(Batch), [c_void_p]),
    "pstk_share_ref": (None, [c_void_p]),
    "pstk_share_unref": (None, [POINTER(c_void_p)]),
    "pstk_share_use": (c_int, [c_void_p, c_void_p, POINTER(Error)]),
    "pstk_share_tensor": (c_int, [c_void_p, c_uint32, POINTER(c_void_p), POINTER(Error)]),
    "pstk_capsule_share": (c_void_p, [POINTER(POINTER(Batch)), c_void_p, POINTER(Error)]),
    "pstk_capsule_tensor": (c_void_p, [c_void_p, c_uint32, POINTER(Error)]),
    "pstk_stream_open": (c_int, [c_void_p, POINTER(c_void_p), POINTER(Error)]),
    "pstk_stream_close": (None, [c_void_p, POINTER(c_void_p)]),
    "pstk_stream_spin": (c_int, [c_void_p, c_void_p, c_uint64, POINTER(Error)]),
    "pstk_members_open": (c_int, [POINTER(c_void_p), c_void_p, POINTER(Subset), POINTER(Error)]),
    "pstk_members_n": (c_uint64, [c_void_p]),
    "pstk_members_n_draws": (c_uint64, [c_void_p]),
    "pstk_members_batch": (c_int64, [c_void_p, POINTER(OrderSettings), c_uint64, POINTER(c_uint64)]),
    "pstk_members_ids": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_uint64)]),
    "pstk_members_digest": (c_int, [c_void_p, POINTER(c_uint64)]),
    "pstk_members_close": (None, [POINTER(c_void_p)]),
    "pstk_settings_init": (None, [POINTER(Settings), c_uint32]),
    "pstk_open": (c_int, [POINTER(c_void_p), POINTER(Settings), POINTER(Error)]),
    "pstk_next": (c_int, [c_void_p, POINTER(POINTER(Batch)), c_void_p, c_int64, POINTER(Error)]),
    "pstk_release": (None, [POINTER(POINTER(Batch)), c_void_p]),
    "pstk_batch_wait": (c_int, [POINTER(Batch), c_void_p, POINTER(Error)]),
    "pstk_batch_use_stream": (c_int, [POINTER(Batch), c_void_p, POINTER(Error)]),
    "pstk_batch_read": (c_int, [POINTER(Batch), c_uint32, c_void_p, c_uint64, c_void_p, POINTER(Error)]),
    "pstk_seek": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(Error)]),
    "pstk_set_batch_size": (c_int, [c_void_p, c_uint32, POINTER(Error)]),
    "pstk_get_cursor": (c_int, [c_void_p, POINTER(c_uint64), POINTER(c_uint64)]),
    "pstk_n_batches": (c_uint64, [c_void_p]),
    "pstk_n_batches_left": (c_uint64, [c_void_p, c_uint64, c_uint64]),
    "pstk_max_rows": (c_uint32, [c_void_p]),
    "pstk_n_samples": (c_uint64, [c_void_p]),
    "pstk_interrupt": (None, [c_void_p]),
    "pstk_close": (None, [POINTER(c_void_p)]),
    "pstk_role_find": (c_int, [POINTER(RoleSearch), POINTER(c_uint32), POINTER(Error)]),
}


lib = _library.load(FUNCTIONS)
