/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors: parses the head of a .safetensors file: its size in 8 bytes, then a JSON object that
 * has dtype, shape and data_offsets of each tensor. Reads no file. Memory is bounded: it parses the
 * JSON of one tensor at a time, and skips `__metadata__`.
 *
 * As in Hugging Face's reader, tensors fill the bytes after the head without a gap or an overlap.
 */
#ifndef PSTK_SAFETENSORS_H
#define PSTK_SAFETENSORS_H

#include "format/arrays/array.h"

#define PSTK__SAFETENSORS_BEFORE 8u          /* bytes: the size of the head */
#define PSTK__SAFETENSORS_HEAD_MAX 100000000 /* max bytes of the JSON; upstream's limit */

struct pstk__safetensors {
    uint32_t n; /* number of tensors, in the order of the head */
    struct {
        char name[PSTK_MAX_NAME];
        struct pstk__array array;
    } tensors[PSTK_MAX_FIELDS];
};

/* Read the first `size` bytes of a file, of which 8 are enough. *head_size: bytes of the JSON. */
int pstk__safetensors_head_size(uint64_t *head_size, const uint8_t *bytes, uint64_t size,
                                uint64_t file_size, const char *name, struct pstk_error *err);
/* Parse the JSON, which follows those 8 bytes. name: of the file, for messages. EBADMSG: damaged;
 * ENOTSUP, EFBIG: a tensor that cannot be read in place, with advice; ENOMEM. */
int pstk__safetensors_parse(struct pstk__safetensors *safetensors, const char *head,
                            uint64_t head_size, uint64_t file_size, const char *name,
                            struct pstk_error *err);

#endif
