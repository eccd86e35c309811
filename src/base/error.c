/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pstk_error_init(struct pstk_error *err, uint32_t size)
{
    if (!err || size < sizeof err->size)
        return;
    memset(err, 0, size);
    err->size = size;
    if (size < sizeof *err)
        return;
    err->sample_id = PSTK_NONE;
    err->record = PSTK_NONE;
    err->offset = PSTK_NONE;
    err->epoch = PSTK_NONE;
    err->position = PSTK_NONE;
}

const char *pstk_strerror(int code)
{
    switch (code) {
    case PSTK_OK:
        return "success";
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return text;
        PSTK_ERRORS(X)
#undef X
    default:
        return "unknown result";
    }
}

const char *pstk_error_name(int code)
{
    switch (code) {
    case PSTK_OK:
        return "PSTK_OK";
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return #name;
        PSTK_ERRORS(X)
#undef X
    default:
        return "PSTK_UNKNOWN";
    }
}

int pstk__error_is_listed(int code)
{
    switch (code) {
#define X(name, value, text) case name:
        PSTK_ERRORS(X)
#undef X
        return 1;
    default:
        return 0;
    }
}

/* Return whether err may be written. A caller that only zeroed the struct means the whole of it;
 * any other size below ours belongs to no released header, so its contents cannot be trusted. */
static int writable(struct pstk_error *err)
{
    if (!err)
        return 0;
    if (err->size == 0)
        err->size = sizeof *err;
    return err->size >= sizeof *err;
}

/* Replace the contents of err by a failure without a location. */
static void write_failure(struct pstk_error *err, int code, int stage, int native,
                          const char *message)
{
    pstk_error_init(err, err->size);
    err->code = code;
    err->stage = stage;
    err->native = native;
    size_t n = strnlen(message, sizeof err->message - 1);
    memcpy(err->message, message, n);
    err->message[n] = 0;
}

__attribute__((format(printf, 5, 0))) static int
fail_with(struct pstk_error *err, int code, int native, int stage, const char *fmt, va_list args)
{
    if (!writable(err))
        return code;
    /* Format into a copy first: the arguments may point into err (a message that wraps another). */
    char message[sizeof err->message];
    if (vsnprintf(message, sizeof message, fmt, args) < 0)
        message[0] = 0;
    write_failure(err, code, stage, native, message);
    return code;
}

int pstk__fail(struct pstk_error *err, int code, int stage, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fail_with(err, code, 0, stage, fmt, args);
    va_end(args);
    return code;
}

int pstk__fail_setting(struct pstk_error *err, const char *setting, uint64_t value,
                       const char *must_be, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, must_be);
    if (vsnprintf(text, sizeof text, must_be, args) < 0)
        text[0] = 0;
    va_end(args);
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: value is %llu; must be %s", setting,
                      (unsigned long long)value, text);
}

/* Return the code nearest to a native errno value. */
static int code_of_errno(int native)
{
    switch (native) {
#define X(name, value, text)                                                                       \
    case -(value):                                                                                 \
        return name;
        PSTK_ERRORS(X)
#undef X
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
        return PSTK_ENOENT;
    case EROFS:
        return PSTK_EACCES;
    case EAGAIN:
    case ETXTBSY:
    case EDEADLK:
        return PSTK_EBUSY;
    case ENOTEMPTY:
        return PSTK_EEXIST;
    case EISDIR:
    case EBADF:
    case EFAULT:
    case ELOOP:
    case ESPIPE:
        return PSTK_EINVAL;
    case EMFILE:
    case ENFILE:
    case EMLINK:
    case ENAMETOOLONG:
    case EOVERFLOW:
        return PSTK_EFBIG;
    case EDQUOT:
        return PSTK_ENOSPC;
    case ENOSYS:
    case EXDEV:
    case ENOTTY:
        return PSTK_ENOTSUP;
    default:
        return PSTK_EIO;
    }
}

int pstk__fail_errno(struct pstk_error *err, int native, int stage, const char *fmt, ...)
{
    int code = code_of_errno(native);
    if (!writable(err))
        return code;
    char reason_buffer[96], suffix[128];
    const char *reason = strerror_r(native, reason_buffer, sizeof reason_buffer);
    int n_suffix = snprintf(suffix, sizeof suffix, ": %s (errno %d)", reason, native);
    if (n_suffix < 0)
        suffix[0] = 0;
    size_t suffix_size = strlen(suffix) + 1; /* the terminating 0 included */

    /* The suffix always fits: a long path is cut before it. */
    char message[sizeof err->message];
    size_t room = sizeof message - suffix_size + 1;
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(message, room, fmt, args) < 0)
        message[0] = 0;
    va_end(args);
    memcpy(message + strlen(message), suffix, suffix_size);
    write_failure(err, code, stage, native, message);
    return code;
}

int pstk__fail_native(struct pstk_error *err, int native, int stage, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int code = fail_with(err, code_of_errno(native), native, stage, fmt, args);
    va_end(args);
    return code;
}

int pstk__fail_at(struct pstk_error *err, int code, const char *shard, uint64_t record,
                  uint64_t offset, uint64_t length)
{
    if (!writable(err))
        return code;
    size_t n = shard ? strnlen(shard, sizeof err->shard - 1) : 0;
    if (n)
        memmove(err->shard, shard, n);
    err->shard[n] = 0;
    err->record = record;
    err->offset = offset;
    err->length = length;
    return err->code;
}

int pstk__fail_copy(struct pstk_error *err, const struct pstk_error *from)
{
    if (writable(err)) {
        uint32_t size = err->size;
        *err = *from;
        err->size = size;
    }
    return from->code;
}
