/* SPDX-License-Identifier: Apache-2.0 */
/* signature: finds the image format of a file by its first bytes. Pure. */
#ifndef PSTK_SIGNATURE_H
#define PSTK_SIGNATURE_H

#include <stdint.h>

enum pstk__signature {
    PSTK__SIGNATURE_NONE = 0, /* no known image format */
    PSTK__SIGNATURE_JPEG,
    PSTK__SIGNATURE_PNG,
    PSTK__SIGNATURE_OTHER, /* an image in a format that no decoder here reads */
};

/* Find the format from the first bytes of a file; 64 are enough. *name (may be NULL) becomes the
 * format's name for people, NULL if it is unknown; static storage. */
enum pstk__signature pstk__signature_find(const void *data, uint64_t size, const char **name);

#endif
