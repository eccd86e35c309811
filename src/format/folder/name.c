/* SPDX-License-Identifier: Apache-2.0 */
#include "format/folder/name.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* torchvision's IMG_EXTENSIONS (torchvision/datasets/folder.py), with those that are decoded first.
 */
static const char *const endings[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                      ".pgm", ".tif",  ".tiff", ".webp"};
#define N_ENDINGS (sizeof endings / sizeof *endings)
#define N_DECODED 3

/* Extensions of other images, which ImageFolder skips. */
static const char *const foreign_endings[] = {".gif", ".avif", ".heic", ".heif", ".jp2", ".j2k",
                                              ".jpx", ".jpf",  ".jxl",  ".jfif", ".pbm", ".pnm",
                                              ".pam", ".exr",  ".psd",  ".dib"};
#define N_FOREIGN (sizeof foreign_endings / sizeof *foreign_endings)

/* Return the number of the list's ending that the name has, or n: none. */
static size_t find_ending(const char *name, const char *const *list, size_t n)
{
    const size_t length = strlen(name);
    size_t i = 0;
    for (; i < n; i++) {
        const size_t size = strlen(list[i]);
        if (length >= size && strcasecmp(name + length - size, list[i]) == 0)
            break;
    }
    return i;
}

enum pstk__folder_name pstk__folder_name(const char *name)
{
    const size_t i = find_ending(name, endings, N_ENDINGS);
    if (i == N_ENDINGS)
        return PSTK__NAME_OTHER;
    return i < N_DECODED ? PSTK__NAME_DECODED : PSTK__NAME_IMAGE;
}

int pstk__folder_name_is_foreign(const char *name)
{
    return find_ending(name, foreign_endings, N_FOREIGN) < N_FOREIGN;
}

/* End the text after `used` bytes, without its last character if that has several bytes and so may
 * be incomplete. Returns 1. */
static int cut(char *to, uint64_t used)
{
    while (used > 0 && ((uint8_t)to[used - 1] & 0xc0) == 0x80)
        used--;
    if (used > 0 && (uint8_t)to[used - 1] >= 0xc0)
        used--;
    to[used] = 0;
    return 1;
}

int pstk__folder_show(const char *name, char *to, uint64_t size)
{
    const uint64_t length = strlen(name);
    uint64_t used = 0, text_end = pstk__utf8_end(name, length);
    int differs = 0;
    for (uint64_t i = 0; i < length; i++) {
        const uint8_t byte = (uint8_t)name[i];
        const int is_text = i < text_end && byte >= 0x20 && byte != 0x7f;
        if (used + 5 > size)
            return cut(to, used);
        if (is_text && byte != '\\')
            to[used++] = name[i];
        else
            used += (uint64_t)snprintf(to + used, 5, is_text ? "\\\\" : "\\x%02x", byte);
        differs |= !is_text || byte == '\\';
        to[used] = 0;
        if (i == text_end) /* one byte that is no text: a character may follow */
            text_end = i + 1 + pstk__utf8_end(name + i + 1, length - i - 1);
    }
    to[used] = 0;
    return differs;
}
