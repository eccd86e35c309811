/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tar/member.h"

#include "record/ustar.h"

#include <string.h>

/* Positions in a header (POSIX.1-1988, 10.1.1). */
enum {
    SIZE = 124,
    CHECKSUM = 148,
    TYPE = 156,
};
enum { SIZE_SIZE = 12, CHECKSUM_SIZE = 8 };

#define FILE_MAX (1ull << 44) /* max bytes of an archive: extents end below */

/* The values from headers before a member's own. */
struct pending {
    char name[PSTK__TAR_MAX_NAME]; /* "": none */
    const uint8_t *named;          /* position of the name, borrowed; unset without a name */
    uint64_t size;
    int has_size;
};

static int is_zero(const uint8_t *block)
{
    for (uint32_t i = 0; i < PSTK__TAR_BLOCK; i++)
        if (block[i])
            return 0;
    return 1;
}

/* Read octal digits, perhaps after spaces, up to a space or 0. 0: there are none. */
static int read_octal(const uint8_t *field, uint32_t size, uint64_t *number)
{
    uint32_t i = 0, n = 0;
    *number = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++, n++)
        *number = *number << 3 | (uint64_t)(field[i] - '0');
    return n > 0 && (i == size || field[i] == ' ' || field[i] == 0);
}

/* Read a size: octal, or binary if the first bit is set (GNU). */
static int read_size(const uint8_t *field, uint64_t *size)
{
    if (!(field[0] & 0x80))
        return read_octal(field, SIZE_SIZE, size);
    *size = field[0] & 0x7f;
    for (uint32_t i = 1; i < SIZE_SIZE; i++) {
        if (*size >> 56)
            return 0;
        *size = *size << 8 | field[i];
    }
    return 1;
}

/* Sum a header's bytes, eight at a time: each of four lanes of 16 bits adds 64 pairs of bytes,
 * 32640 at most. The order of the bytes does not matter. */
static uint32_t sum_bytes(const uint8_t *header)
{
    const uint64_t even = 0x00ff00ff00ff00ffull;
    uint64_t lanes = 0, word;
    for (uint32_t i = 0; i < PSTK__TAR_BLOCK; i += sizeof word) {
        memcpy(&word, header + i, sizeof word);
        lanes += (word & even) + (word >> 8 & even);
    }
    uint32_t sum = 0;
    for (; lanes; lanes >>= 16)
        sum += (uint32_t)(lanes & 0xffff);
    return sum;
}

/* 1: the checksum fits the sum of the header's bytes, with the checksum taken as spaces. Old
 * archives summed signed bytes. */
static int checksum_holds(const uint8_t *header)
{
    uint64_t wanted;
    uint32_t sum = sum_bytes(header) + CHECKSUM_SIZE * ' ';
    int32_t signed_sum = CHECKSUM_SIZE * ' ';
    if (!read_octal(header + CHECKSUM, CHECKSUM_SIZE, &wanted))
        return 0;
    for (uint32_t i = CHECKSUM; i < CHECKSUM + CHECKSUM_SIZE; i++)
        sum -= header[i];
    if (sum == wanted)
        return 1;
    for (uint32_t i = 0; i < PSTK__TAR_BLOCK; i++)
        if (i < CHECKSUM || i >= CHECKSUM + CHECKSUM_SIZE)
            signed_sum += (int8_t)header[i];
    return signed_sum >= 0 && (uint64_t)signed_sum == wanted;
}

/* ---- what comes before a header -------------------------------------------------------------- */

static const char *take_name(struct pending *pending, const uint8_t *from, uint64_t size)
{
    const uint8_t *end = memchr(from, 0, size);
    const uint64_t n = end ? (uint64_t)(end - from) : size;
    if (n == 0 || n >= PSTK__TAR_MAX_NAME)
        return "a member's name is empty, or longer than 4095 bytes";
    memcpy(pending->name, from, n);
    pending->name[n] = 0;
    pending->named = from;
    return NULL;
}

static const char *take_pax_size(struct pending *pending, const uint8_t *from, uint64_t size)
{
    uint64_t number = 0;
    for (uint64_t i = 0; i < size; i++) {
        if (from[i] < '0' || from[i] > '9' || number > FILE_MAX)
            return "a pax record has a size that is not a number";
        number = 10 * number + (uint64_t)(from[i] - '0');
    }
    pending->size = number;
    pending->has_size = 1;
    return NULL;
}

static int key_is(const uint8_t *key, uint64_t size, const char *text)
{
    return size == strlen(text) && memcmp(key, text, size) == 0;
}

/* Read the records "LENGTH KEY=VALUE\n" of typeflag x. */
static const char *take_pax(struct pending *pending, const uint8_t *from, uint64_t size)
{
    static const char *const damaged = "a pax record is damaged";
    for (uint64_t at = 0; at < size;) {
        uint64_t length = 0, i = at;
        for (; i < size && from[i] >= '0' && from[i] <= '9' && length < size; i++)
            length = 10 * length + (uint64_t)(from[i] - '0');
        if (i == at || i >= size || from[i] != ' ' || length > size - at || length < i - at + 3 ||
            from[at + length - 1] != '\n')
            return damaged;
        const uint8_t *key = from + i + 1, *end = from + at + length - 1;
        const uint8_t *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals)
            return damaged;
        const uint64_t key_size = (uint64_t)(equals - key),
                       value_size = (uint64_t)(end - equals - 1);
        const char *wrong = NULL;
        if (key_is(key, key_size, "path"))
            wrong = memchr(equals + 1, 0, value_size) ? "a pax record has a name with a zero byte"
                                                      : take_name(pending, equals + 1, value_size);
        else if (key_is(key, key_size, "size"))
            wrong = take_pax_size(pending, equals + 1, value_size);
        else if (key_size > 10 && memcmp(key, "GNU.sparse", 10) == 0)
            wrong = "a member is a sparse file, which is not read: write the archive again without "
                    "tar's --sparse";
        if (wrong)
            return wrong;
        at += length;
    }
    return NULL;
}

/* ---- members --------------------------------------------------------------------------------- */

/* The meaning of a typeflag. */
enum kind { REGULAR, FOLDER, LONG_NAME, LONG_LINK, PAX, PAX_GLOBAL, REFUSED };

static enum kind kind_of(uint8_t type)
{
    switch (type) {
    case '0':
    case 0:
    case '7':
        return REGULAR;
    case '5':
    case 'V':
        return FOLDER;
    case 'L':
        return LONG_NAME;
    case 'K':
        return LONG_LINK;
    case 'x':
        return PAX;
    case 'g':
        return PAX_GLOBAL;
    default:
        return REFUSED;
    }
}

static const char *refusal(uint8_t type)
{
    if (type == '1' || type == '2')
        return "a member is a link, which is not read: write the archive again with tar's "
               "--dereference --hard-dereference";
    if (type == 'S')
        return "a member is a sparse file, which is not read: write the archive again without "
               "tar's --sparse";
    return "a member is neither a file nor a folder, and is not read: write the archive again "
           "without it";
}

static uint64_t padded(uint64_t size)
{
    return (size + PSTK__TAR_BLOCK - 1) / PSTK__TAR_BLOCK * PSTK__TAR_BLOCK;
}

static enum pstk__tar_step fail(struct pstk__tar_fault *fault, const char *why, uint64_t at)
{
    *fault = (struct pstk__tar_fault){.why = why, .at = at};
    return PSTK__TAR_BAD;
}

/* Set the member from its own header, and from the values of the headers before it. */
static enum pstk__tar_step finish(struct pstk__tar_member *member, const struct pending *pending,
                                  const uint8_t *header, uint64_t size, enum kind kind)
{
    if (!pending->name[0] && !pending->has_size)
        member->first = member->data - PSTK__TAR_BLOCK;
    member->size = kind == FOLDER ? 0 : pending->has_size ? pending->size : size;
    member->next = member->data + padded(member->size);
    if (pending->name[0]) {
        memcpy(member->name, pending->name, strlen(pending->name) + 1);
        member->named = member->data - PSTK__TAR_BLOCK - (uint64_t)(header - pending->named);
    } else {
        pstk__ustar_name(header, member->name);
        member->named = pstk__ustar_is_parted(header)
                            ? PSTK_NONE
                            : member->data - PSTK__TAR_BLOCK + PSTK__USTAR_NAME;
    }
    return kind == FOLDER || (member->name[0] && member->name[strlen(member->name) - 1] == '/')
               ? PSTK__TAR_OTHER
               : PSTK__TAR_MEMBER;
}

enum pstk__tar_step pstk__tar_read(struct pstk__tar_member *member, uint64_t begin,
                                   const void *bytes, uint64_t available,
                                   struct pstk__tar_fault *fault)
{
    const uint8_t *from = bytes;
    struct pending pending;
    pending.name[0] = 0;
    pending.has_size = 0;
    member->begin = member->first = begin;
    for (uint64_t at = 0;;) {
        uint64_t size;
        const char *wrong = NULL;
        if (at > PSTK__TAR_MAX_HEADERS)
            return fail(fault, "the headers of a member take more than 1 MiB", begin);
        if (available < at + PSTK__TAR_BLOCK)
            return PSTK__TAR_MORE;
        const uint8_t *header = from + at;
        if (header[0] == 0 && is_zero(header))
            return at == 0
                       ? PSTK__TAR_END
                       : fail(fault, "a member has a name but no header: copy the archive again",
                              begin + at);
        if (!checksum_holds(header))
            return fail(fault, "the checksum of a header is wrong: copy the archive again",
                        begin + at);
        if (!read_size(header + SIZE, &size) || size > FILE_MAX)
            return fail(fault, "a header has a size that is not a number: copy the archive again",
                        begin + at);
        const enum kind kind = kind_of(header[TYPE]);
        if (kind == REFUSED)
            return fail(fault, refusal(header[TYPE]), begin + at);
        member->data = begin + at + PSTK__TAR_BLOCK;
        if (kind == REGULAR || kind == FOLDER)
            return finish(member, &pending, header, size, kind);
        if (size > PSTK__TAR_MAX_HEADERS)
            return fail(fault, "the headers of a member take more than 1 MiB", begin + at);
        if (available < at + PSTK__TAR_BLOCK + padded(size))
            return PSTK__TAR_MORE;
        if (kind == LONG_NAME)
            wrong = take_name(&pending, header + PSTK__TAR_BLOCK, size);
        else if (kind == PAX)
            wrong = take_pax(&pending, header + PSTK__TAR_BLOCK, size);
        if (wrong)
            return fail(fault, wrong, begin + at);
        at += PSTK__TAR_BLOCK + padded(size);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

/* 1: a part of the name is __...__, as in WebDataset's own members. */
static int is_meta(const char *text)
{
    for (const char *part = text; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        const size_t n = strcspn(part, "/");
        if (n >= 4 && memcmp(part, "__", 2) == 0 && memcmp(part + n - 2, "__", 2) == 0)
            return 1;
    }
    return 0;
}

void pstk__tar_split(struct pstk__tar_name *name, const char *text, int at_last)
{
    text = pstk__ustar_trim(text);
    const char *slash = strrchr(text, '/'), *base = slash ? slash + 1 : text;
    const char *dot = at_last ? strrchr(base, '.') : strchr(base, '.');
    name->key = text;
    name->suffix_size = 0;
    name->key_size = 0;
    name->is_too_long = 0;
    if (!dot || base[0] == '.' || is_meta(text))
        return;
    const size_t length = strlen(dot + 1);
    if (length == 0)
        return;
    name->is_too_long = length >= sizeof name->suffix;
    const size_t n = name->is_too_long ? sizeof name->suffix - 1 : length;
    name->key_size = (uint32_t)(dot - text);
    name->suffix_size = (uint32_t)n;
    name->suffix[n] = 0;
    for (size_t i = 0; i < n; i++)
        name->suffix[i] =
            (char)(dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? dot[1 + i] | 32 : dot[1 + i]);
}
