/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/types.h - the base of all other headers: errors and element types.
 *
 * Words for ownership, used at pointers of all public headers:
 *   borrows        the library reads it during the call only
 *   copies         the library keeps its own copy; the caller may free its own at once
 *   takes          on success the library owns it
 *   leases         the caller may use it until it releases it
 *   returns owned  the caller must close it
 *
 * Any thread may call a function, unless its comment has a line "Thread:". Every size is in bytes
 * and every time in nanoseconds, unless the member's comment has another unit.
 */
#ifndef PENSTOCK_TYPES_H
#define PENSTOCK_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define PSTK_VERSION_MAJOR 0
#define PSTK_VERSION_MINOR 1
#define PSTK_VERSION_PATCH 0
/* The version of these headers: 0.1.0 is 100. pstk_version_number() returns the library's. */
#define PSTK_VERSION_NUMBER                                                                        \
    (PSTK_VERSION_MAJOR * 10000 + PSTK_VERSION_MINOR * 100 + PSTK_VERSION_PATCH)

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
 * The closed list of results: X(name, value, short text). Every fallible function returns 0, or a
 * positive result that its comment names, or one of these. The values are negative errno values.
 * pstk_error.native has the code that the kernel, libjpeg, libpng or CUDA returned.
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

/* The place on the data path where an error arose. */
enum pstk_stage {
    PSTK_STAGE_NONE = 0,
    /* settings, manifest, allocation */
    PSTK_STAGE_OPEN = 1,
    /* the choice of the next sample */
    PSTK_STAGE_ORDER = 2,
    /* shard header, index page, open file */
    PSTK_STAGE_SHARD = 3,
    /* reads from storage */
    PSTK_STAGE_READ = 4,
    /* record head, field checksum, decompression */
    PSTK_STAGE_RECORD = 5,
    /* JPEG, PNG, the caller's callback */
    PSTK_STAGE_DECODE = 6,
    /* copy to the device */
    PSTK_STAGE_DEVICE = 7,
    /* a call of the program */
    PSTK_STAGE_CONSUMER = 8,
    /* the shard writer */
    PSTK_STAGE_WRITE = 9,
};

/* An id or a position that does not apply. */
#define PSTK_NONE UINT64_MAX

/*
 * The detail of one failure: plain data, which the caller owns. A function that takes a
 * `struct pstk_error *` accepts NULL. Initialise it once with pstk_error_init.
 */
struct pstk_error {
    /* sizeof(struct pstk_error) of the caller; pstk_error_init sets it */
    uint32_t size;
    /* enum pstk_result */
    int32_t code;
    /* enum pstk_stage */
    int32_t stage;
    /* errno, libjpeg's message code, ...; 0: none */
    int32_t native;

    /* id of the bad sample; PSTK_NONE: the failure concerns no sample */
    uint64_t sample_id;
    /* number of the record within its shard, or PSTK_NONE */
    uint64_t record;
    /* first byte of the damaged range in the shard file, or PSTK_NONE */
    uint64_t offset;
    /* bytes of that range; 0: unknown */
    uint64_t length;
    /* epoch of the sample; PSTK_NONE outside a loader */
    uint64_t epoch;
    /* position in the epoch, in samples over all ranks, or PSTK_NONE */
    uint64_t position;

    /* file name of the shard, or "" */
    char shard[256];
    /* one sentence: what happened, where, what to do */
    char message[768];
};

/* Clear `err` and set its size. */
PSTK_API void pstk_error_init(struct pstk_error *err, uint32_t size);
/* Return the short text of a result; never NULL; static storage. */
PSTK_API const char *pstk_strerror(int code);
/* Return the name of a result as in the list above ("PSTK_EIO"); never NULL; static storage. */
PSTK_API const char *pstk_error_name(int code);

/* Return the library's version, "0.1.0"; static storage. */
PSTK_API const char *pstk_version(void);
/* Return the library's version as a number: the PSTK_VERSION_NUMBER that it was built with. */
PSTK_API uint32_t pstk_version_number(void);

/* Return the CRC32C (Castagnoli) of `size` bytes at `data`, which continues `crc` (0 at the start).
 * borrows. */
PSTK_API uint32_t pstk_crc32c(uint32_t crc, const void *data, uint64_t size);

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
    /* IEEE binary16 */
    PSTK_F16 = 9,
    /* bfloat16 */
    PSTK_BF16 = 10,
    PSTK_F32 = 11,
    PSTK_F64 = 12,
};

/* Return the bytes of one element; 0: an unknown dtype. */
PSTK_API uint32_t pstk_dtype_size(uint32_t dtype);
/* Return "u8", "bf16", ...; "?": an unknown dtype. Static storage. */
PSTK_API const char *pstk_dtype_name(uint32_t dtype);
/* Return the dtype of that name; 0: there is none. borrows. */
PSTK_API uint32_t pstk_dtype_parse(const char *name);

enum pstk_layout {
    /* rows x columns x channels, as decoders write */
    PSTK_NHWC = 0,
    /* channels x rows x columns */
    PSTK_NCHW = 1,
};

/* The encoding of the bytes of an image field. Every record has its own encoding, so one data set
 * may mix them. */
enum pstk_encoding {
    /* the field is not an image */
    PSTK_ENCODING_NONE = 0,
    /* a JPEG file (ITU T.81), as the writer got it */
    PSTK_ENCODING_JPEG = 1,
    /* a PNG file, as the writer got it */
    PSTK_ENCODING_PNG = 2,
    /* decoded: gray, RGB or RGBA of 8 or 16 bits, rows without padding; see struct pstk_pixels */
    PSTK_ENCODING_PIXELS = 3,
};

#ifdef __cplusplus
}
#endif
#endif
