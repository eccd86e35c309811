/* SPDX-License-Identifier: Apache-2.0 */
#include "image/exif.h"

#include <string.h>

enum { ENTRY_SIZE = 12, HEAD_SIZE = 8, TAG_ORIENTATION = 0x112 };

/* The TIFF structure inside the metadata. */
struct tiff {
    const struct pstk__exif *exif;
    uint64_t base; /* offset of its first byte in the metadata */
    uint64_t size; /* bytes */
    int is_little;
};

/* The location of an entry's value. */
struct value {
    uint32_t type; /* TIFF type; 0: the entry does not exist */
    uint64_t at;   /* offset of its first element, which is complete, in the structure */
};

/* ---- bytes ---------------------------------------------------------------------------------- */

static int read_at(const struct tiff *tiff, uint64_t at, uint8_t *out, uint32_t n)
{
    return tiff->exif->read(tiff->exif->user, tiff->base + at, out, n) == n;
}

static uint64_t number(const uint8_t *p, uint32_t n_bytes, int is_little)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < n_bytes; i++)
        value = value << 8 | p[is_little ? n_bytes - 1 - i : i];
    return value;
}

/* Return a number of n_bytes as a signed one. */
static int64_t signed_number(const uint8_t *p, uint32_t n_bytes, int is_little)
{
    const uint64_t sign = 1ull << (8 * n_bytes - 1);
    const uint64_t value = number(p, n_bytes, is_little);
    return (int64_t)(value & (sign - 1)) - (int64_t)(value & sign);
}

/* ---- the directory -------------------------------------------------------------------------- */

/* Return the bytes of an element; 0: Pillow skips entries of this type. */
static uint32_t type_size(uint32_t type)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
    return type < sizeof sizes ? sizes[type] : 0;
}

/* Read the mark of a TIFF file, which may be 42 in the wrong byte order. Returns 0 when it is no
 * mark, or one that Pillow cannot read. */
static int read_mark(struct tiff *tiff, const uint8_t head[HEAD_SIZE])
{
    static const char marks[5][4] = {"MM\0*", "II*\0", "MM*\0", "II\0*", "MM\0+"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (memcmp(head, marks[i], 4) == 0) {
            tiff->is_little = head[0] == 'I';
            return 1;
        }
    return 0;
}

/* Read the directory's entry at *at, and move past it. Returns 0 when the directory ends here,
 * because the entry or its value is cut off. */
static int read_entry(const struct tiff *tiff, uint64_t *at, struct value *found)
{
    uint8_t entry[ENTRY_SIZE];
    if (!read_at(tiff, *at, entry, ENTRY_SIZE))
        return 0;
    const uint32_t type = (uint32_t)number(entry + 2, 2, tiff->is_little);
    const uint64_t size = number(entry + 4, 4, tiff->is_little) * type_size(type);
    const uint64_t far_off = number(entry + 8, 4, tiff->is_little);
    const uint64_t begin = size > 4 ? far_off : *at + 8;
    *at += ENTRY_SIZE;
    if (size > 4 && (far_off > tiff->size || size > tiff->size - far_off))
        return 0;
    if (size != 0 && number(entry, 2, tiff->is_little) == TAG_ORIENTATION)
        *found = (struct value){type, begin};
    return 1;
}

/* Find the last entry of the first directory that holds the orientation. */
static struct value find_entry(const struct tiff *tiff, uint64_t directory)
{
    struct value found = {0, 0};
    uint8_t count[2];
    if (!read_at(tiff, directory, count, sizeof count))
        return found;
    uint64_t n = number(count, sizeof count, tiff->is_little);
    uint64_t at = directory + sizeof count;
    while (n > 0 && read_entry(tiff, &at, &found))
        n--;
    return found;
}

/* ---- the value ------------------------------------------------------------------------------ */

static double floating(uint64_t bits, uint32_t n_bytes)
{
    const uint32_t low = (uint32_t)bits;
    double wide;
    float narrow;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return n_bytes == sizeof narrow ? narrow : wide;
}

/* Return 1 when the first element equals k, 1..8, in the sense of Python. */
static int is_equal(const uint8_t *p, uint32_t type, int is_little, int64_t k)
{
    enum { SHORT = 3, LONG = 4, RATIONAL = 5, SIGNED_BYTE = 6, SIGNED_SHORT = 8, SIGNED_LONG = 9 };
    enum { SIGNED_RATIONAL = 10, FLOAT = 11, DOUBLE = 12, IFD = 13, LONG8 = 16 };
    const uint32_t n = type_size(type);
    switch (type) {
    case SHORT:
    case LONG:
    case IFD:
    case LONG8:
        return number(p, n, is_little) == (uint64_t)k;
    case SIGNED_BYTE:
    case SIGNED_SHORT:
    case SIGNED_LONG:
        return signed_number(p, n, is_little) == k;
    case RATIONAL: {
        const uint64_t whole = number(p + 4, 4, is_little);
        return whole != 0 && number(p, 4, is_little) == whole * (uint64_t)k;
    }
    case SIGNED_RATIONAL: {
        const int64_t whole = signed_number(p + 4, 4, is_little);
        return whole != 0 && signed_number(p, 4, is_little) == whole * k;
    }
    case FLOAT:
    case DOUBLE:
        return floating(number(p, n, is_little), n) == (double)k;
    default:
        return 0; /* bytes and text never equal a number */
    }
}

uint32_t pstk__exif_orientation(const struct pstk__exif *exif)
{
    struct tiff tiff = {.exif = exif, .size = exif->size};
    uint8_t p[HEAD_SIZE];

    while (read_at(&tiff, 0, p, 6) && memcmp(p, "Exif\0", 6) == 0) {
        tiff.base += 6;
        tiff.size -= 6;
    }
    if (tiff.size == 0)
        return 0;
    if (!read_at(&tiff, 0, p, HEAD_SIZE) || !read_mark(&tiff, p))
        return 1;
    const struct value value = find_entry(&tiff, number(p + 4, 4, tiff.is_little));
    if (value.type == 0)
        return 0;
    if (!read_at(&tiff, value.at, p, type_size(value.type)))
        return 1;
    uint32_t k = 8;
    while (k > 1 && !is_equal(p, value.type, tiff.is_little, k))
        k--;
    return k;
}

/* ---- metadata in one piece ------------------------------------------------------------------ */

struct piece {
    const uint8_t *data;
    uint64_t size;
};

static uint32_t read_piece(void *user, uint64_t at, uint8_t *out, uint32_t n)
{
    const struct piece *piece = user;
    const uint64_t left = at < piece->size ? piece->size - at : 0;
    const uint32_t taken = left < n ? (uint32_t)left : n;
    memcpy(out, piece->data + (taken ? at : 0), taken);
    return taken;
}

uint32_t pstk__exif_orientation_of(const uint8_t *data, uint64_t size)
{
    struct piece piece = {data, size};
    const struct pstk__exif exif = {.read = read_piece, .user = &piece, .size = size};
    return pstk__exif_orientation(&exif);
}
