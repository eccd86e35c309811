/* SPDX-License-Identifier: Apache-2.0 */
#include "format/arrays/zip.h"

#include "base/error.h"
#include "base/little.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the fixed parts. */
enum { END_SIZE = 22, LOCATOR_SIZE = 20, END64_SIZE = 56, ENTRY_SIZE = 46, LOCAL_SIZE = 30 };

/* First bytes of each part, as a little-endian number. */
#define END_MARK 0x06054b50u
#define LOCATOR_MARK 0x07064b50u
#define END64_MARK 0x06064b50u
#define ENTRY_MARK 0x02014b50u
#define LOCAL_MARK 0x04034b50u

#define LARGE16 0xffffu     /* the number is in the zip64 record */
#define LARGE32 0xffffffffu /* the number is in the zip64 record */
#define ZIP64_TAG 1u        /* tag of the extra field with sizes of 64 bits */

#define FLAG_ENCRYPTED 0x1u
#define FLAG_DESCRIPTOR 0x8u /* CRC and sizes follow the data; the local header has 0 */
#define FLAG_PATCH 0x20u
#define FLAG_STRONG 0x40u
#define FLAG_MASKED 0x2000u /* the directory is encrypted */

static int damaged(const struct pstk__zip *zip, const char *what)
{
    return pstk__fail(zip->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%s: the archive is damaged: %s; write it again with numpy.savez", zip->name,
                      what);
}

static int damaged_member(const struct pstk__zip *zip, const struct pstk__zip_member *member,
                          const char *what)
{
    char shown[80];
    return pstk__fail(zip->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%s: the archive is damaged: member %s: %s; write it again with numpy.savez",
                      zip->name, pstk__zip_shown(member, shown), what);
}

const char *pstk__zip_shown(const struct pstk__zip_member *member, char text[80])
{
    const uint32_t n = member->name_size < 79 ? member->name_size : 79;
    for (uint32_t i = 0; i < n; i++)
        text[i] = member->name[i] >= ' ' && member->name[i] <= '~' ? member->name[i] : '?';
    text[n] = 0;
    return text;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The values of an end record. */
struct end {
    uint64_t disk, first_disk; /* numbers of disks; 0 */
    uint64_t n_here, n;        /* members on this disk, and in all */
    uint64_t size, offset;     /* bytes of the directory, and its begin in the file */
    uint64_t position;         /* begin of the first end record, byte of the file */
};

/* Find the end record: the last one whose comment ends with the file. NULL: there is none. */
static const uint8_t *find_end(const uint8_t *tail, uint64_t tail_size)
{
    for (uint64_t at = tail_size < END_SIZE ? 0 : tail_size - END_SIZE + 1; at-- > 0;)
        if (pstk__get32(tail + at) == END_MARK &&
            at + END_SIZE + pstk__get16(tail + at + 20) == tail_size)
            return tail + at;
    return NULL;
}

/* 1: `small`, of the old record, equals `large`, of the zip64 record, or refers to it. */
static int agrees(uint64_t small, uint64_t large, uint64_t mark)
{
    return small == mark || small == large;
}

/* Read the numbers of the zip64 record, which lies with its locator before the end record. */
static int read_end64(const struct pstk__zip *zip, const uint8_t *tail, const uint8_t *record,
                      struct end *end)
{
    if (record - tail < LOCATOR_SIZE + END64_SIZE)
        return damaged(zip, "its zip64 record is cut short");
    const uint8_t *locator = record - LOCATOR_SIZE, *b = locator - END64_SIZE;
    const uint64_t position = end->position - LOCATOR_SIZE - END64_SIZE;
    if (pstk__get32(b) != END64_MARK || pstk__get64(b + 4) != END64_SIZE - 12 ||
        pstk__get64(locator + 8) != position || pstk__get32(locator + 4) != 0 ||
        pstk__get32(locator + 16) > 1)
        return damaged(zip, "its zip64 record is not where the locator says");
    const struct end large = {.disk = pstk__get32(b + 16),
                              .first_disk = pstk__get32(b + 20),
                              .n_here = pstk__get64(b + 24),
                              .n = pstk__get64(b + 32),
                              .size = pstk__get64(b + 40),
                              .offset = pstk__get64(b + 48),
                              .position = position};
    if (!agrees(end->n_here, large.n_here, LARGE16) || !agrees(end->n, large.n, LARGE16) ||
        !agrees(end->size, large.size, LARGE32) || !agrees(end->offset, large.offset, LARGE32) ||
        !agrees(end->disk, large.disk, LARGE16) ||
        !agrees(end->first_disk, large.first_disk, LARGE16))
        return damaged(zip, "its two end records differ");
    *end = large;
    return 0;
}

static int check_end(struct pstk__zip *zip, const struct end *end)
{
    if (end->disk || end->first_disk || end->n_here != end->n)
        return pstk__fail(zip->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s is one of several parts of an archive; must be whole: write it again "
                          "with numpy.savez",
                          zip->name);
    if (end->offset > end->position || end->size > end->position - end->offset)
        return damaged(zip, "its directory reaches past its end record");
    if (end->size != end->position - end->offset)
        return pstk__fail(zip->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s has %llu bytes before its archive, or between its directory and its "
                          "end; must have none: write it again with numpy.savez",
                          zip->name, (unsigned long long)(end->position - end->offset - end->size));
    if (end->size > PSTK__ZIP_DIRECTORY_MAX)
        return pstk__fail(zip->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s: the directory of the archive has %llu bytes; must be at most 1 MiB: "
                          "save at most %d arrays",
                          zip->name, (unsigned long long)end->size, PSTK_MAX_FIELDS);
    if (end->n > end->size / ENTRY_SIZE)
        return damaged(zip, "its directory has no room for so many members");
    return 0;
}

int pstk__zip_end_parse(struct pstk__zip *zip, const uint8_t *tail, uint64_t tail_size,
                        uint64_t file_size)
{
    const uint8_t *b = find_end(tail, tail_size);
    if (!b)
        return pstk__fail(zip->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is not an archive (.npz), or one that is cut short; write it with "
                          "numpy.savez",
                          zip->name);
    struct end end = {.disk = pstk__get16(b + 4),
                      .first_disk = pstk__get16(b + 6),
                      .n_here = pstk__get16(b + 8),
                      .n = pstk__get16(b + 10),
                      .size = pstk__get32(b + 12),
                      .offset = pstk__get32(b + 16),
                      .position = file_size - tail_size + (uint64_t)(b - tail)};
    int rc = 0;
    if (b - tail >= LOCATOR_SIZE && pstk__get32(b - LOCATOR_SIZE) == LOCATOR_MARK)
        rc = read_end64(zip, tail, b, &end);
    if (rc == 0)
        rc = check_end(zip, &end);
    zip->directory_offset = end.offset;
    zip->directory_size = end.size;
    zip->n_left = end.n;
    return rc;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Find the zip64 extra field. 1: with its data; 0: there is none; -1: damaged, or there are two. */
static int find_zip64(const uint8_t *extra, uint64_t size, const uint8_t **data,
                      uint64_t *data_size)
{
    int found = 0;
    while (size >= 4) {
        const uint64_t tag = pstk__get16(extra), n = pstk__get16(extra + 2);
        if (n > size - 4)
            return -1;
        if (tag == ZIP64_TAG && found++)
            return -1;
        if (tag == ZIP64_TAG) {
            *data = extra + 4;
            *data_size = n;
        }
        extra += 4 + n;
        size -= 4 + n;
    }
    return size == 0 ? found : -1;
}

/* Replace each of n numbers that is LARGE32 by the next one of the zip64 field. 0, or -1. */
static int read_large(const uint8_t *extra, uint64_t extra_size, uint64_t *const *numbers,
                      uint32_t n)
{
    const uint8_t *data = NULL;
    uint64_t size = 0;
    if (find_zip64(extra, extra_size, &data, &size) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (*numbers[i] != LARGE32)
            continue;
        if (size < 8)
            return -1;
        *numbers[i] = pstk__get64(data);
        data += 8;
        size -= 8;
    }
    return 0;
}

/* Return the reason why penstock cannot read a member in place, or NULL. */
static const char *refused(uint32_t flags, uint32_t method)
{
    if (flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return "encrypted";
    return flags & FLAG_PATCH || method != 0 ? "compressed" : NULL;
}

void pstk__zip_begin(struct pstk__zip *zip, const uint8_t *directory)
{
    zip->at = directory;
    zip->end = directory + zip->directory_size;
}

/* Read the entry at zip->at, of ENTRY_SIZE bytes and the bytes that it counts. */
static int read_entry(const struct pstk__zip *zip, struct pstk__zip_member *member)
{
    const uint8_t *b = zip->at;
    const uint32_t extra_size = pstk__get16(b + 30);
    uint64_t stored = pstk__get32(b + 20);
    *member = (struct pstk__zip_member){.name = (const char *)b + ENTRY_SIZE,
                                        .name_size = pstk__get16(b + 28),
                                        .crc32 = pstk__get32(b + 16),
                                        .flags = pstk__get16(b + 8),
                                        .size = pstk__get32(b + 24),
                                        .local_offset = pstk__get32(b + 42)};
    char shown[80];
    const char *what = refused(member->flags, pstk__get16(b + 10));
    if (what)
        return pstk__fail(zip->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s: member %s is %s, and cannot be read in place; save with "
                          "numpy.savez, or pack it: penstock.pack(FILE, DIRECTORY)",
                          zip->name, pstk__zip_shown(member, shown), what);
    uint64_t *const large[] = {&member->size, &stored, &member->local_offset};
    if (read_large(b + ENTRY_SIZE + member->name_size, extra_size, large, 3) < 0)
        return damaged_member(zip, member, "its extra field is not right");
    if (pstk__get16(b + 34) != 0)
        return damaged_member(zip, member, "it lies on another disk");
    if (stored != member->size)
        return damaged_member(zip, member, "it is stored, but its two sizes differ");
    if (member->local_offset > zip->directory_offset ||
        member->size > zip->directory_offset - member->local_offset)
        return damaged_member(zip, member, "it reaches past the members");
    if (memchr(member->name, 0, member->name_size))
        return damaged_member(zip, member, "its name has a zero byte");
    return 0;
}

int pstk__zip_next(struct pstk__zip *zip, struct pstk__zip_member *member)
{
    const uint64_t left = (uint64_t)(zip->end - zip->at);
    if (zip->n_left == 0)
        return left == 0 ? 0 : damaged(zip, "its directory goes on after the last member");
    if (left < ENTRY_SIZE || pstk__get32(zip->at) != ENTRY_MARK)
        return damaged(zip, "its directory ends before the last member");
    const uint64_t size = ENTRY_SIZE + (uint64_t)pstk__get16(zip->at + 28) +
                          pstk__get16(zip->at + 30) + pstk__get16(zip->at + 32);
    if (size > left)
        return damaged(zip, "its directory ends within a member");
    const int rc = read_entry(zip, member);
    zip->at += size;
    zip->n_left--;
    return rc < 0 ? rc : 1;
}

/* ---- a member -------------------------------------------------------------------------------- */

/* Return the difference of the local header at `b` and the directory's entry, or NULL. */
static const char *difference(const struct pstk__zip_member *member, const uint8_t *b)
{
    const uint32_t name_size = pstk__get16(b + 26), extra_size = pstk__get16(b + 28);
    const uint32_t crc32 = pstk__get32(b + 14);
    uint64_t stored = pstk__get32(b + 18), plain = pstk__get32(b + 22);
    uint64_t *const large[] = {&plain, &stored};
    if (pstk__get16(b + 6) != member->flags || pstk__get16(b + 8) != 0)
        return "its header and the directory differ in how it is stored";
    if (name_size != member->name_size || memcmp(b + LOCAL_SIZE, member->name, name_size) != 0)
        return "its header has another name";
    if (read_large(b + LOCAL_SIZE + name_size, extra_size, large, 2) < 0)
        return "the extra field of its header is not right";
    if (member->flags & FLAG_DESCRIPTOR && stored == 0 && plain == 0 && crc32 == 0)
        return NULL; /* they follow the data; the directory has them */
    if (stored != member->size || plain != member->size)
        return "its header has another size";
    return crc32 != member->crc32 ? "its header has another checksum" : NULL;
}

int pstk__zip_local_parse(const struct pstk__zip *zip, struct pstk__zip_member *member,
                          const uint8_t *bytes, uint64_t size)
{
    if (size < LOCAL_SIZE || pstk__get32(bytes) != LOCAL_MARK)
        return damaged_member(zip, member, "its header is not where the directory says");
    const uint64_t head = LOCAL_SIZE + (uint64_t)pstk__get16(bytes + 26) + pstk__get16(bytes + 28);
    if (head > size)
        return damaged_member(zip, member, "its header is cut short");
    const char *what = difference(member, bytes);
    if (what)
        return damaged_member(zip, member, what);
    if (head > zip->directory_offset - member->local_offset - member->size)
        return damaged_member(zip, member, "it reaches past the members");
    member->offset = member->local_offset + head;
    return 0;
}

int pstk__zip_check_overlaps(const struct pstk__zip *zip, const struct pstk__zip_member *members,
                             uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (members[i].local_offset < members[k].offset + members[k].size &&
                members[k].local_offset < members[i].offset + members[i].size)
                return damaged_member(zip, &members[i], "it overlaps another one");
    return 0;
}
