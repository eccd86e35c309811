/* SPDX-License-Identifier: Apache-2.0 */
/* name: which names count, and how one is shown. Pure. */
#ifndef PSTK_FOLDER_NAME_H
#define PSTK_FOLDER_NAME_H

#include <stdint.h>

enum pstk__folder_name {
    PSTK__NAME_OTHER,  /* passed over, if a file has it */
    PSTK__NAME_IMAGE,  /* a sample: one of torchvision's IMG_EXTENSIONS */
    PSTK__NAME_DECODED /* a sample, of JPEG or PNG if the name is right */
};

/* By the end of the name, whatever its case. */
enum pstk__folder_name pstk__folder_name(const char *name);
/* 1: a name of an image in a format that ImageFolder does not take: such a file is no sample. */
int pstk__folder_name_is_foreign(const char *name);
/* 1: passed over whatever has it: a name that begins with a dot. */
static inline int pstk__folder_is_hidden(const char *name)
{
    return name[0] == '.';
}
/* Write the name as messages show it: bytes that are not UTF-8, and control characters, as \x1b; a
 * backslash twice. Cut where `size` bytes are not enough, at least 8. Returns 1 when it differs
 * from the name. */
int pstk__folder_show(const char *name, char *to, uint64_t size);

#endif
