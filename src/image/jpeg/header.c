/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/header.h"

#include "base/error.h"
#include "image/exif.h"
#include "image/xmp.h"

#include <string.h>

enum {
    MARKER_FIRST = 0xc0, /* Pillow's markers, 0xc0..0xfe; after 0xff any other byte is an error */
    MARKER_LAST = 0xfe,
    MARKER_SOF0 = 0xc0,
    MARKER_SOF3 = 0xc3, /* lossless */
    MARKER_DHT = 0xc4,
    MARKER_JPG = 0xc8,
    MARKER_DAC = 0xcc,
    MARKER_SOF15 = 0xcf,
    MARKER_RST0 = 0xd0,
    MARKER_EOI = 0xd9,
    MARKER_SOS = 0xda,
    MARKER_DHP = 0xde,
    MARKER_APP0 = 0xe0,
    MARKER_APP1 = 0xe1,
    MARKER_APP14 = 0xee,
    MARKER_JPG0 = 0xf0,
    MARKER_JPG13 = 0xfd,
    MAX_SIDE = 65500,      /* libjpeg's JPEG_MAX_DIMENSION */
    SEGMENT_HEAD_SIZE = 4, /* marker and length */
    EXIF_HEAD_SIZE = 6,    /* "Exif\0\0" */
};

/* The bytes being read, and the state of reading. */
struct cursor {
    const uint8_t *data;
    uint64_t size;
    uint64_t at; /* <= size */
};

/* Return 1 for a marker without a length. Pillow skips these everywhere. */
static int is_bare(uint32_t marker)
{
    return marker == MARKER_JPG || (marker >= MARKER_RST0 && marker <= MARKER_EOI) ||
           (marker >= MARKER_JPG0 && marker <= MARKER_JPG13);
}

static int is_frame(uint32_t marker)
{
    return marker == MARKER_DHP || (marker >= MARKER_SOF0 && marker <= MARKER_SOF15 &&
                                    marker != MARKER_DHT && marker != MARKER_DAC);
}

/* Find the next marker: one or more 0xff, then a byte that is neither 0 nor 0xff. */
static int next_marker(struct cursor *cursor, uint32_t *marker, struct pstk_error *err)
{
    while (cursor->at < cursor->size) {
        if (cursor->data[cursor->at] != 0xff) {
            cursor->at++;
            continue;
        }
        while (cursor->at < cursor->size && cursor->data[cursor->at] == 0xff)
            cursor->at++;
        if (cursor->at == cursor->size)
            break;
        uint32_t found = cursor->data[cursor->at++];
        if (found == 0)
            continue;
        if (found < MARKER_FIRST || found > MARKER_LAST)
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                              "no JPEG marker at byte %llu of the file (0xff 0x%02x)",
                              (unsigned long long)(cursor->at - 2), found);
        *marker = found;
        return 0;
    }
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "the JPEG file ends within its header, after %llu bytes",
                      (unsigned long long)cursor->size);
}

static int read_frame(struct pstk__jpeg_header *h, uint32_t marker, const uint8_t *s, uint32_t size,
                      struct pstk_error *err)
{
    if (h->sof != 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "JPEG file with two frame headers");
    if (size < 6 || size < 6u + 3u * s[5])
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "JPEG frame header of %u bytes",
                          size);
    h->sof = marker;
    h->height = (uint32_t)s[1] << 8 | s[2];
    h->width = (uint32_t)s[3] << 8 | s[4];
    h->n_components = s[5];
    if (s[0] != 8)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "JPEG with %u bits a sample; only 8 are supported", s[0]);
    if (marker == MARKER_SOF3)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "lossless JPEG (SOF3) is not supported (convert it to PNG)");
    if (marker > 0xc2 && marker != 0xc9 && marker != 0xca)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "JPEG process 0x%02x (hierarchical or lossless) is not supported",
                          marker);
    if (h->n_components != 1 && h->n_components != 3 && h->n_components != 4)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "JPEG with %u colour components; 1, 3 and 4 are supported",
                          h->n_components);
    if (h->height == 0 && h->width != 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "JPEG whose height comes after its scan (DNL) is not supported");
    if (h->width > MAX_SIDE || h->height > MAX_SIDE)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "JPEG of %u x %u pixels; sides of more than %u are not supported",
                          h->width, h->height, (uint32_t)MAX_SIDE);
    return 0;
}

/* Read a segment with a length: set its bytes and their number. */
static int read_segment(struct cursor *cursor, uint32_t marker, const uint8_t **bytes, uint32_t *n,
                        struct pstk_error *err)
{
    uint64_t left = cursor->size - cursor->at;
    uint32_t length =
        left < 2 ? 0 : (uint32_t)cursor->data[cursor->at] << 8 | cursor->data[cursor->at + 1];
    if (length < 2 || length > left)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG segment 0x%02x at byte %llu has length %u, but the file has only "
                          "%llu bytes of it",
                          marker, (unsigned long long)(cursor->at - 2), length,
                          (unsigned long long)left);
    *bytes = cursor->data + cursor->at + 2;
    *n = length - 2;
    cursor->at += length;
    return 0;
}

/* Return 1 for an APP1 segment with Exif metadata. */
static int is_exif(uint32_t marker, const uint8_t *s, uint32_t n)
{
    return marker == MARKER_APP1 && n >= EXIF_HEAD_SIZE && memcmp(s, "Exif\0", EXIF_HEAD_SIZE) == 0;
}

/* Read an application segment: note the offsets of Exif and XMP. Refuse JFIF and Adobe segments
 * that end before their version, as Pillow does. at: offset of the marker. */
static int read_application(struct pstk__jpeg_header *h, uint32_t marker, const uint8_t *s,
                            uint32_t n, uint64_t at)
{
    static const char xmp[] = "http://ns.adobe.com/xap/1.0/";
    if (marker == MARKER_APP0 && n >= 4 && memcmp(s, "JFIF", 4) == 0)
        return n >= 7 ? 0 : PSTK_EBADMSG;
    if (marker == MARKER_APP14 && n >= 5 && memcmp(s, "Adobe", 5) == 0)
        return n >= 7 ? 0 : PSTK_EBADMSG;
    if (is_exif(marker, s, n)) {
        h->exif_offset = h->exif_offset ? h->exif_offset : at;
        h->exif_size += n - EXIF_HEAD_SIZE;
    } else if (marker == MARKER_APP1 && n >= sizeof xmp && memcmp(s, xmp, sizeof xmp) == 0) {
        h->xmp_offset = at + SEGMENT_HEAD_SIZE + sizeof xmp;
        h->xmp_size = n - sizeof xmp;
    }
    return 0;
}

/* Read one marker and its segment. Returns 1 when it begins the first scan. */
static int read_marker(struct pstk__jpeg_header *h, struct cursor *cursor, struct pstk_error *err)
{
    const uint8_t *s = NULL;
    uint32_t marker = 0, n = 0;

    int r = next_marker(cursor, &marker, err);
    if (r < 0)
        return r;
    if (is_bare(marker))
        return 0;
    uint64_t at = cursor->at - 2;
    r = read_segment(cursor, marker, &s, &n, err);
    if (r < 0)
        return r;
    if (is_frame(marker))
        return read_frame(h, marker, s, n, err);
    if (read_application(h, marker, s, n, at) < 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG application segment 0x%02x at byte %llu is cut short", marker,
                          (unsigned long long)at);
    if (marker != MARKER_SOS)
        return 0;
    h->scan_offset = at;
    return 1;
}

int pstk__jpeg_header_read(struct pstk__jpeg_header *h, const void *data, uint64_t size,
                           struct pstk_error *err)
{
    struct cursor cursor = {.data = data, .size = size, .at = 2};

    *h = (struct pstk__jpeg_header){0};
    if (size < 3 || memcmp(data, "\xff\xd8\xff", 3) != 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "not a JPEG file");
    int r;
    do {
        r = read_marker(h, &cursor, err);
        if (r < 0)
            return r;
    } while (r == 0);
    if (h->sof == 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG scan without a frame header before it");
    return 0;
}

/* ---- the orientation ------------------------------------------------------------------------ */

/* A walk over the Exif segments, whose contents are one after another, as in Pillow. */
struct exif_walk {
    struct cursor cursor; /* ends at the first scan */
    uint64_t first;       /* offset of the first Exif segment in the file */
    const uint8_t *piece; /* the current segment's bytes after its head */
    uint64_t begin, end;  /* offsets of that piece in the metadata */
};

static int next_piece(struct exif_walk *walk)
{
    const uint8_t *s = NULL;
    uint32_t marker = 0, n = 0;
    while (next_marker(&walk->cursor, &marker, NULL) == 0) {
        if (is_bare(marker))
            continue;
        if (read_segment(&walk->cursor, marker, &s, &n, NULL) < 0)
            return 0;
        if (!is_exif(marker, s, n))
            continue;
        walk->piece = s + EXIF_HEAD_SIZE;
        walk->begin = walk->end;
        walk->end += n - EXIF_HEAD_SIZE;
        return 1;
    }
    return 0;
}

static uint32_t read_exif(void *user, uint64_t at, uint8_t *out, uint32_t n)
{
    struct exif_walk *walk = user;
    uint32_t done = 0;
    if (at < walk->begin) {
        walk->cursor.at = walk->first;
        walk->begin = walk->end = 0;
    }
    while (done < n) {
        const uint64_t from = at + done;
        if (from >= walk->end) {
            if (!next_piece(walk))
                break;
            continue;
        }
        const uint64_t left = walk->end - from;
        const uint32_t taken = left < n - done ? (uint32_t)left : n - done;
        memcpy(out + done, walk->piece + (from - walk->begin), taken);
        done += taken;
    }
    return done;
}

uint32_t pstk__jpeg_orientation(const struct pstk__jpeg_header *h, const void *data)
{
    uint32_t found = 0;
    if (h->exif_offset) {
        struct exif_walk walk = {.cursor = {data, h->scan_offset, h->exif_offset},
                                 .first = h->exif_offset};
        found = pstk__exif_orientation(&(const struct pstk__exif){read_exif, &walk, h->exif_size});
    }
    if (found == 0 && h->xmp_size)
        found = pstk__xmp_orientation((const uint8_t *)data + h->xmp_offset, h->xmp_size);
    return found ? found : 1;
}
