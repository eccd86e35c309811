/* SPDX-License-Identifier: Apache-2.0 */
/* error: writes a failure in one line. Pure except for the caller's struct. */
#ifndef PSTK_ERROR_H
#define PSTK_ERROR_H

#include <penstock/types.h>

/*
 * Write code and message (printf format) into err, unless err is NULL; clear its location (shard,
 * record, ...) first. Returns code, so that a function fails in one line.
 */
int pstk__fail(struct pstk_error *err, int code, int stage, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Refuse a setting at open: EINVAL, "SETTING: value is VALUE; must be ...". must_be (printf
 * format): the accepted values and, where more is needed, advice in parentheses.
 */
int pstk__fail_setting(struct pstk_error *err, const char *setting, uint64_t value,
                       const char *must_be, ...) __attribute__((format(printf, 4, 5)));

/* Return 1 when the code is in the list of errors. */
int pstk__error_is_listed(int code);
/* Fail with a native errno value (> 0): pick the nearest code and append strerror. */
int pstk__fail_errno(struct pstk_error *err, int native, int stage, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Fail as pstk__fail_errno does, without strerror: the message states the reason. */
int pstk__fail_native(struct pstk_error *err, int native, int stage, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Set the location of an error that was just written: shard file name (copied, may be NULL),
 * record, byte range. Returns err->code, or code when err is NULL. */
int pstk__fail_at(struct pstk_error *err, int code, const char *shard, uint64_t record,
                  uint64_t offset, uint64_t length);

/* Copy an error to the caller's struct, which may be NULL and keeps its size. Returns from->code.
 */
int pstk__fail_copy(struct pstk_error *err, const struct pstk_error *from);

#endif
