/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout: where the arrays of a slot lie, in host memory and in a device's. Pure.
 *
 *   host     | deferred rows | flips | other dense rows | offsets | about | mix | ragged | written
 * |
 *            '------- arrival -------' '--------- mirrored ---------'
 *   about    | offsets | ids | replacements | crops | reports |    the offsets are in both parts
 *   mix      | what is done to each row | labels | the same of a mosaic | what processes get |
 *   written  | rows of which a mosaic makes those that are handed out |
 *   arrival  | deferred rows | flips |
 *   device   | other dense rows | offsets | ragged rows | what is made of deferred rows |
 *
 * Deferred rows are needed only until a device has made of them what is handed out. So they do not
 * arrive in its slots, but in PSTK__LOADS buffers that all slots share. The rest of a batch is
 * copied to its slot: the dense part at once, then each ragged output. The description of a batch
 * for the host goes in one piece from slot to slot.
 */
#ifndef PSTK_LAYOUT_H
#define PSTK_LAYOUT_H

#include "sample/plan.h"

/* Loads of a device under way at once: one is copied while the other is finished. Each has an
 * arrival buffer. */
#define PSTK__LOADS 2u

/* The offsets of the arrays: bytes from the start of the slot, or of the arrival buffer. Every
 * array is 256-byte aligned, as DLPack requires. */
struct pstk__layout {
    uint64_t rows[PSTK__MAX_OUTPUTS]; /* host: rows that are handed out; arrival: deferred rows */
    uint64_t written[PSTK__MAX_OUTPUTS]; /* host: rows that workers write; equal to `rows`, unless
                                            combined */
    uint64_t flips[PSTK__MAX_OUTPUTS];   /* host and arrival; deferred images: a byte a row */
    uint64_t offsets[PSTK__MAX_OUTPUTS]; /* host; ragged: batch_size + 1 int64 */
    uint64_t arrival_size;               /* host and arrival: bytes of deferred rows and flips */
    uint64_t about;                      /* host: start of the offsets */
    uint64_t dense_size; /* host: end of the dense part; a device's slot mirrors the bytes from
                            arrival_size to here */
    uint64_t ids, replacements; /* host: batch_size uint64 each */
    uint64_t data_sets;         /* host: batch_size uint32, with a mixture */
    uint64_t crops;             /* host: n_outputs * batch_size; equal to `reports` when unwanted */
    uint64_t reports;           /* host: max_reports; equal to about_end when unwanted */
    uint32_t max_reports;       /* reports of bad samples that were replaced */
    uint64_t about_end;         /* host: end of the description of the batch */
    uint64_t mixed, labels; /* host: batch_size struct pstk_mixed_row, batch_size uint32_t; equal to
                               the ragged rows when not mixed or without targets */
    uint64_t mosaics;       /* host: batch_size struct pstk_mosaic_row; as above without a mosaic */
    uint64_t places;        /* host: batch_size uint64; as above without a budget */
    uint64_t inputs[PSTK__MAX_OUTPUTS]; /* host: batch_size rows that processes take together */
    uint64_t size;                      /* host: bytes of the whole slot; UINT64_MAX: too large */
    uint64_t final[PSTK__MAX_OUTPUTS];  /* device: rows that are handed out */
    uint64_t device_size; /* device: bytes of the whole slot; 0 for a plan of the host */
};

/* Return the offset in a device's slot of mirrored bytes, given their offset in a host slot. */
static inline uint64_t pstk__layout_mirrored(const struct pstk__layout *layout, uint64_t offset)
{
    return offset - layout->arrival_size;
}

/* Return the bytes of a device's memory that n_slots slots and the arrival buffers take, or
 * UINT64_MAX. */
uint64_t pstk__layout_device_memory(const struct pstk__layout *layout, uint32_t n_slots);

/* Lay out a slot of the plan. with_reports: bad samples are replaced. Overflow-safe: on overflow
 * size is UINT64_MAX, and the other members are undefined. */
void pstk__layout_init(struct pstk__layout *layout, const struct pstk__plan *plan,
                       uint32_t report_crops, uint32_t with_reports);

/* Lay out a host slot as for a batch_size of 1, without a device's slot. */
void pstk__layout_init_min(struct pstk__layout *layout, const struct pstk__plan *plan,
                           uint32_t report_crops, uint32_t with_reports);

#endif
