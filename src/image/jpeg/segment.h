/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/segment: finds the markers of a JPEG file one after another, as libjpeg does: it skips fill
 * bytes and other bytes that are not a marker. It reads nothing after the image's end-of-image
 * marker. Pure.
 */
#ifndef PSTK_JPEG_SEGMENT_H
#define PSTK_JPEG_SEGMENT_H

#include <stdint.h>

/* A limit, because every scan of a progressive file may cost a pass over all blocks for a few bytes
 * of input. DALI has the same; encoders write about ten scans. */
#define PSTK__JPEG_MAX_SCANS 256

enum pstk__jpeg_marker {
    PSTK__JPEG_SOF0 = 0xc0, /* baseline */
    PSTK__JPEG_SOF1 = 0xc1, /* extended sequential */
    PSTK__JPEG_SOF2 = 0xc2, /* progressive */
    PSTK__JPEG_DHT = 0xc4,
    PSTK__JPEG_SOF9 = 0xc9,  /* extended sequential, arithmetic coding */
    PSTK__JPEG_SOF10 = 0xca, /* progressive, arithmetic coding */
    PSTK__JPEG_DAC = 0xcc,
    PSTK__JPEG_RST0 = 0xd0,
    PSTK__JPEG_RST7 = 0xd7,
    PSTK__JPEG_SOI = 0xd8,
    PSTK__JPEG_EOI = 0xd9,
    PSTK__JPEG_SOS = 0xda,
    PSTK__JPEG_DQT = 0xdb,
    PSTK__JPEG_DRI = 0xdd,
    PSTK__JPEG_APP0 = 0xe0,
    PSTK__JPEG_APP15 = 0xef,
    PSTK__JPEG_COM = 0xfe,
};

struct pstk__jpeg_segment {
    uint32_t marker; /* second byte of the marker */
    uint64_t begin,
        end; /* offsets of the marker and its segment in the bytes; begin: the marker's last 0xff */
    const uint8_t *body; /* bytes after the length; NULL for a marker without length */
    uint32_t size;       /* bytes of the body */
};

/* The state of a walk. Set data and size to begin, the rest to 0. */
struct pstk__jpeg_walk {
    const uint8_t *data; /* borrowed */
    uint64_t size;
    uint64_t at;   /* <= size */
    int has_scan;  /* 1: past a scan, so the next end-of-image marker is the last segment */
    int has_ended; /* 1: past that marker */
};

/* Find the next segment. Returns 1; 0: there is none, or it is incomplete. It does not skip scan
 * data: first set walk->at to pstk__jpeg_scan_end(). */
int pstk__jpeg_walk_next(struct pstk__jpeg_walk *walk, struct pstk__jpeg_segment *segment);
/* Return the end of the entropy-coded data that begins at `at`: the start of the first marker that
 * is not a restart marker. */
uint64_t pstk__jpeg_scan_end(const uint8_t *data, uint64_t size, uint64_t at);

#endif
