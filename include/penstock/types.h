/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/types.h - what every other header shares: errors, element types, operations.
 *
 * Ownership vocabulary, used at every pointer parameter of the public headers:
 *   borrows        the library reads it during the call only
 *   copies         the library keeps its own copy; the caller's may go at once
 *   takes          on success the library owns it
 *   leases         the caller may use it until it releases it
 *   returns owned  the caller must close it
 */
#ifndef PENSTOCK_TYPES_H
#define PENSTOCK_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define PSTK_VERSION_MAJOR 0
#define PSTK_VERSION_MINOR 1
#define PSTK_VERSION_PATCH 0

#if defined(__GNUC__)
#define PSTK_API __attribute__((visibility("default")))
#else
#define PSTK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------- */

/*
 * The closed list of results: X(name, errno value, short text). Every fallible function returns 0
 * (or a small positive result that its comment names) or one of these, which are negative errno
 * values. A native code of the kernel, libjpeg, libpng or CUDA is in pstk_error.native.
 */
#define PSTK_ERRORS(X)                                                                             \
    X(PSTK_EPERM, -1, "not permitted here")                                                        \
    X(PSTK_ENOENT, -2, "no such file or data set")                                                 \
    X(PSTK_EINTR, -4, "interrupted")                                                               \
    X(PSTK_EIO, -5, "input/output error")                                                          \
    X(PSTK_ENOMEM, -12, "out of memory")                                                           \
    X(PSTK_EACCES, -13, "permission denied")                                                       \
    X(PSTK_EBUSY, -16, "busy")                                                                     \
    X(PSTK_EEXIST, -17, "exists already")                                                          \
    X(PSTK_EINVAL, -22, "invalid argument or setting")                                             \
    X(PSTK_EFBIG, -27, "over a limit")                                                             \
    X(PSTK_ENOSPC, -28, "no space left on the device")                                             \
    X(PSTK_ENODATA, -61, "no data")                                                                \
    X(PSTK_EBADMSG, -74, "damaged data")                                                           \
    X(PSTK_ENOTSUP, -95, "not supported")                                                          \
    X(PSTK_ENOBUFS, -105, "every slot is leased")                                                  \
    X(PSTK_ETIMEDOUT, -110, "timed out")                                                           \
    X(PSTK_ECANCELED, -125, "canceled")

enum pstk_result {
    PSTK_OK = 0,
#define X(name, value, text) name = value,
    PSTK_ERRORS(X)
#undef X
};

/* Where on the data path an error arose. */
enum pstk_stage {
    PSTK_STAGE_NONE = 0,
    PSTK_STAGE_OPEN = 1,     /* settings, manifest, allocation */
    PSTK_STAGE_ORDER = 2,    /* which sample comes next */
    PSTK_STAGE_SHARD = 3,    /* shard header, index page, open file */
    PSTK_STAGE_READ = 4,     /* storage */
    PSTK_STAGE_RECORD = 5,   /* record head, field checksum, decompression */
    PSTK_STAGE_DECODE = 6,   /* JPEG, PNG, user callback */
    PSTK_STAGE_DEVICE = 7,   /* copy to the device */
    PSTK_STAGE_CONSUMER = 8, /* the caller */
    PSTK_STAGE_WRITE = 9,    /* the shard writer */
};

#define PSTK_NONE UINT64_MAX /* an id or a position that does not apply */

/*
 * The detail of one failure. Plain data, owned by the caller; a function that takes a
 * `struct pstk_error *` accepts NULL. Set `size` once with pstk_error_init.
 */
struct pstk_error {
    uint32_t size;      /* sizeof(struct pstk_error) of the caller */
    int32_t code;       /* enum pstk_result */
    int32_t stage;      /* enum pstk_stage */
    int32_t native;     /* errno, libjpeg message code, ... ; 0 when there is none */
    uint64_t sample_id; /* PSTK_NONE when it concerns no sample */
    uint64_t record;    /* record number within the shard, or PSTK_NONE */
    uint64_t offset;    /* first byte of the damaged range in the shard file, or PSTK_NONE */
    uint64_t length;    /* its length in bytes, 0 when unknown */
    uint64_t epoch;     /* PSTK_NONE outside a loader */
    uint64_t position;  /* global sample position in the epoch, or PSTK_NONE */
    char shard[256];    /* file name of the shard, or "" */
    char message[768];  /* one sentence: what happened, where, what to do */
};

/* Clear `err` and set its size. */
PSTK_API void pstk_error_init(struct pstk_error *err, uint32_t size);
/* Return the short text of a result code; never NULL; static storage. */
PSTK_API const char *pstk_strerror(int code);
/* Return the name of a result code as in the list above ("PSTK_EIO"); never NULL; static storage.
 */
PSTK_API const char *pstk_error_name(int code);
/* Return the library's version, "0.1.0"; static storage. */
PSTK_API const char *pstk_version(void);

/* ---- element types and layouts ------------------------------------------------------------ */

enum pstk_dtype {
    PSTK_U8 = 1,
    PSTK_I8 = 2,
    PSTK_U16 = 3,
    PSTK_I16 = 4,
    PSTK_U32 = 5,
    PSTK_I32 = 6,
    PSTK_U64 = 7,
    PSTK_I64 = 8,
    PSTK_F16 = 9,   /* IEEE binary16 */
    PSTK_BF16 = 10, /* bfloat16 */
    PSTK_F32 = 11,
    PSTK_F64 = 12,
};

/* Return the size of one element in bytes, 0 for an unknown dtype. */
PSTK_API uint32_t pstk_dtype_size(uint32_t dtype);
/* Return "u8", "bf16", ...; "?" for an unknown dtype. */
PSTK_API const char *pstk_dtype_name(uint32_t dtype);
/* Return the dtype of that name, 0 when there is none. `name` borrows. */
PSTK_API uint32_t pstk_dtype_parse(const char *name);

enum pstk_layout {
    PSTK_NHWC = 0, /* rows x columns x channels: as decoders write */
    PSTK_NCHW = 1,
};

/* How the bytes of an image field are encoded. Stored in every record: files of both kinds mix. */
enum pstk_encoding {
    PSTK_ENCODING_NONE = 0,   /* the field is no image */
    PSTK_ENCODING_JPEG = 1,   /* a JPEG file (ITU T.81), as it came */
    PSTK_ENCODING_PNG = 2,    /* a PNG file, as it came */
    PSTK_ENCODING_PIXELS = 3, /* decoded: height x width x 3 bytes, RGB, rows without padding */
};

/* ---- operations on images ----------------------------------------------------------------- */

enum pstk_op_kind {
    PSTK_OP_RANDOM_RESIZED_CROP = 1,
    PSTK_OP_RESIZE = 2,         /* exact: width x height */
    PSTK_OP_RESIZE_SHORTER = 3, /* shorter side to `width` pixels, aspect ratio kept */
    PSTK_OP_CENTER_CROP = 4,
    PSTK_OP_RANDOM_FLIP = 5, /* horizontal */
    PSTK_OP_NORMALIZE = 6,
};

/*
 * One operation, plain data. The functions below fill it; a program may fill it itself.
 * params, by kind:
 *   RANDOM_RESIZED_CROP  scale min, scale max (fractions of the area), ratio min, ratio max (w/h)
 *   RANDOM_FLIP          probability in [0, 1]
 *   NORMALIZE            mean R, G, B, deviation R, G, B, all as fractions of 255
 */
struct pstk_op {
    uint32_t kind;    /* enum pstk_op_kind */
    uint32_t flags;   /* 0 */
    uint32_t width;   /* pixels */
    uint32_t height;  /* pixels */
    double params[8]; /* the unused ones 0 */
};

#define PSTK_IMAGENET_MEAN ((const float[3]){0.485f, 0.456f, 0.406f})
#define PSTK_IMAGENET_STD ((const float[3]){0.229f, 0.224f, 0.225f})

/* torchvision.transforms.RandomResizedCrop with its defaults: scale (0.08, 1), ratio (3/4, 4/3),
 * bilinear with antialiasing. */
PSTK_API struct pstk_op pstk_random_resized_crop(uint32_t height, uint32_t width);
/* The same with scale and ratio given. */
PSTK_API struct pstk_op pstk_random_resized_crop_range(uint32_t height, uint32_t width,
                                                       double scale_min, double scale_max,
                                                       double ratio_min, double ratio_max);
/* torchvision.transforms.Resize((height, width)), bilinear with antialiasing: Pillow's pixels. */
PSTK_API struct pstk_op pstk_resize(uint32_t height, uint32_t width);
/* torchvision.transforms.Resize(side): the shorter side becomes `side`. */
PSTK_API struct pstk_op pstk_resize_shorter(uint32_t side);
/* torchvision.transforms.CenterCrop((height, width)); pads with 0 where the image is smaller. */
PSTK_API struct pstk_op pstk_center_crop(uint32_t height, uint32_t width);
/* Flip horizontally with this probability. */
PSTK_API struct pstk_op pstk_random_flip(double probability);
/* (x / 255 - mean) / deviation, per channel, in float32 steps. `mean`, `deviation`: 3 floats each,
 * borrows. */
PSTK_API struct pstk_op pstk_normalize(const float *mean, const float *deviation);

#ifdef __cplusplus
}
#endif
#endif
