/* SPDX-License-Identifier: Apache-2.0 */
/* name: decides by name which files are samples, and escapes names for messages. Pure. */
#ifndef PSTK_FOLDER_NAME_H
#define PSTK_FOLDER_NAME_H

#include <stdint.h>

enum pstk__folder_name {
    PSTK__NAME_OTHER,  /* skipped, if a file has it */
    PSTK__NAME_IMAGE,  /* a sample: one of torchvision's IMG_EXTENSIONS */
    PSTK__NAME_DECODED /* a sample, of JPEG or PNG if the ending is right */
};

/* Classify a name by its ending, whatever its case. */
enum pstk__folder_name pstk__folder_name(const char *name);
/* 1: the name is of an image in a format that ImageFolder does not take: such a file is no sample.
 */
int pstk__folder_name_is_foreign(const char *name);
/* 1: the name begins with a dot, so its entry is skipped. */
static inline int pstk__folder_is_hidden(const char *name)
{
    return name[0] == '.';
}
/* Write the name as messages show it: bytes that are not UTF-8, and control characters, as \x1b; a
 * backslash twice. Cuts it if `size` bytes, at least 8, are not enough. Returns 1 if the text
 * differs from the name. */
int pstk__folder_show(const char *name, char *to, uint64_t size);

#endif
