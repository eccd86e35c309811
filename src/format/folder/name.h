/* SPDX-License-Identifier: Apache-2.0 */
/* name: decides by name which files are samples, and escapes names for messages. Pure. */
#ifndef PSTK_FOLDER_NAME_H
#define PSTK_FOLDER_NAME_H

#include <stdint.h>

enum pstk__folder_name {
    PSTK__NAME_OTHER,  /* by its name no sample */
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
/* Write a name for messages: as \x1b each byte that is not UTF-8, or is a control character; as two
 * backslashes a backslash. The text is cut to `size` bytes, at least 8. Returns 1 if it differs
 * from the name. */
int pstk__folder_show(const char *name, char *to, uint64_t size);

#endif
