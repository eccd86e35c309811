/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilding by libjpeg, for arithmetic coding: it codes the coefficients by the skeleton's scan
 * script, as when it transcodes, and the scans' data go from its file into the skeleton. A
 * compress object is made for each call: a few small blocks of malloc, the rest is arena.
 */
#include "image/jpeg/splice.h"

#include "base/error.h"
#include "image/jpeg/library.h"

#include <jerror.h>
#include <string.h>

_Static_assert(sizeof(JBLOCK) == 128, "libjpeg's coefficients are ours");

/* Markers that libjpeg writes beside the scans: tables, and up to 256 scan headers of 14 bytes. */
#define MARKERS_SIZE 8192u

/* libjpeg's handle on the blocks of a component. */
struct block_rows {
    JBLOCKROW *rows;
    JDIMENSION n_rows;
};

struct transcoder {
    struct pstk__jpeg_attempt *attempt;
    struct pstk__jpeg_guard guard;
    struct jpeg_compress_struct cinfo;
    struct jpeg_destination_mgr destination;
    jpeg_scan_info scans[PSTK__JPEG_MAX_SCANS];
    struct block_rows components[PSTK__JPEG_MAX_COMPONENTS];
    jvirt_barray_ptr arrays[PSTK__JPEG_MAX_COMPONENTS];
    uint8_t *file; /* what libjpeg writes */
    uint64_t capacity, size;
    uint64_t at; /* taken from the file so far */
    uint8_t dc_table[PSTK__JPEG_MAX_COMPONENTS], ac_table[PSTK__JPEG_MAX_COMPONENTS];
};

/* ---- libjpeg's callbacks -------------------------------------------------------------------- */

static JBLOCKARRAY access_rows(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                               JDIMENSION n_rows, boolean writable)
{
    struct block_rows *r = (struct block_rows *)(void *)array;
    (void)writable;
    if (n_rows > r->n_rows || first > r->n_rows - n_rows)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return r->rows + first;
}

static void destination_init(j_compress_ptr c)
{
    (void)c; /* set up before */
}

static boolean destination_full(j_compress_ptr c)
{
    ERREXIT(c, JERR_BUFFER_SIZE);
    return FALSE;
}

/* ---- the script ----------------------------------------------------------------------------- */

static int unlike(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "JPEG skeleton: its scans differ in what libjpeg codes alike in all of them");
}

/* Write down a scan. What libjpeg has one value of must be that of the scans before. */
static int take_scan(struct transcoder *t, const struct pstk__jpeg_script *now,
                     struct pstk_error *err)
{
    struct jpeg_compress_struct *c = &t->cinfo;
    const struct pstk__jpeg_scan *scan = &now->scan;
    jpeg_scan_info *out = &t->scans[now->n_scans - 1];
    *out = (jpeg_scan_info){.comps_in_scan = (int)scan->n_components,
                            .Ss = (int)scan->first,
                            .Se = (int)scan->last,
                            .Ah = (int)scan->high,
                            .Al = (int)scan->low};
    for (uint32_t i = 0; i < scan->n_components; i++) {
        uint32_t component = scan->component[i];
        out->component_index[i] = (int)component;
        if (scan->first == 0 && scan->high == 0) /* refinements use none, and tell 0 */
            t->dc_table[component] = scan->dc_table[i];
        if (scan->last > 0)
            t->ac_table[component] = scan->ac_table[i];
    }
    for (uint32_t i = 0; i < NUM_ARITH_TBLS; i++) {
        uint8_t low = now->dc_conditioning[i] & 15, high = now->dc_conditioning[i] >> 4;
        uint8_t last = now->ac_conditioning[i];
        if (now->n_scans > 1 &&
            (c->arith_dc_L[i] != low || c->arith_dc_U[i] != high || c->arith_ac_K[i] != last))
            return unlike(err);
        c->arith_dc_L[i] = low;
        c->arith_dc_U[i] = high;
        c->arith_ac_K[i] = last;
    }
    if (now->n_scans > 1 && c->restart_interval != scan->restart_interval)
        return unlike(err);
    c->restart_interval = scan->restart_interval;
    c->num_scans = (int)now->n_scans;
    return 0;
}

static int read_script(struct transcoder *t, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *a = t->attempt;
    struct pstk__jpeg_walk walk = {.data = a->image->skeleton, .size = a->image->skeleton_size};
    struct pstk__jpeg_segment segment;

    pstk__jpeg_script_init(&a->script);
    while (pstk__jpeg_walk_next(&walk, &segment)) {
        int r = pstk__jpeg_script_apply(&a->script, &segment, &a->image->frame, err);
        if (r == 1)
            r = take_scan(t, &a->script, err);
        if (r < 0)
            return r;
    }
    if (a->script.n_scans == 0 || !pstk__jpeg_script_is_arithmetic(&a->script))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG skeleton: libjpeg is to code arithmetic scans, and there are none");
    return 0;
}

/* ---- coding --------------------------------------------------------------------------------- */

/* Row pointers, for as many rows as libjpeg asks for: those of whole MCUs also where the frame has
 * one component; it does not look at blocks beyond the frame's. */
static int set_rows(struct transcoder *t)
{
    const struct pstk__jpeg_image *image = t->attempt->image;
    for (uint32_t i = 0; i < image->frame.n_components; i++) {
        const struct pstk__jpeg_component *c = &image->frame.component[i];
        uint32_t n = (c->rows + c->v - 1) / c->v * c->v;
        JBLOCKROW *rows = pstk__arena_get(t->attempt->arena, n * sizeof *rows);
        if (!rows)
            return PSTK_ENOMEM;
        for (uint32_t k = 0; k < n; k++) {
            size_t at = k < c->rows ? (size_t)k * c->stride * 64 : 0;
            rows[k] = (JBLOCKROW)(void *)(image->blocks[i] + at);
        }
        t->components[i] = (struct block_rows){.rows = rows, .n_rows = n};
        t->arrays[i] = (jvirt_barray_ptr)(void *)&t->components[i];
    }
    return 0;
}

/* Runs under the guard. */
static int code(void *user)
{
    struct transcoder *t = user;
    struct jpeg_compress_struct *c = &t->cinfo;
    const struct pstk__jpeg_frame *f = &t->attempt->image->frame;
    unsigned restart_interval = c->restart_interval;
    int n_scans = c->num_scans;
    UINT8 conditioning[3][NUM_ARITH_TBLS];

    memcpy(conditioning[0], c->arith_dc_L, NUM_ARITH_TBLS);
    memcpy(conditioning[1], c->arith_dc_U, NUM_ARITH_TBLS);
    memcpy(conditioning[2], c->arith_ac_K, NUM_ARITH_TBLS);
    c->image_width = f->width;
    c->image_height = f->height;
    c->input_components = (int)f->n_components;
    c->in_color_space = JCS_UNKNOWN;
    jpeg_set_defaults(c);
#if JPEG_LIB_VERSION >= 70
    c->jpeg_width = f->width;
    c->jpeg_height = f->height;
    c->min_DCT_h_scaled_size = c->min_DCT_v_scaled_size = DCTSIZE;
#endif
    for (uint32_t i = 0; i < f->n_components; i++) {
        c->comp_info[i].component_id = f->component[i].id;
        c->comp_info[i].h_samp_factor = f->component[i].h;
        c->comp_info[i].v_samp_factor = f->component[i].v;
        c->comp_info[i].dc_tbl_no = t->dc_table[i];
        c->comp_info[i].ac_tbl_no = t->ac_table[i];
    }
    memcpy(c->arith_dc_L, conditioning[0], NUM_ARITH_TBLS);
    memcpy(c->arith_dc_U, conditioning[1], NUM_ARITH_TBLS);
    memcpy(c->arith_ac_K, conditioning[2], NUM_ARITH_TBLS);
    c->arith_code = TRUE;
    c->write_JFIF_header = FALSE;
    c->restart_interval = restart_interval;
    c->scan_info = t->scans;
    c->num_scans = n_scans;
    jpeg_write_coefficients(c, t->arrays);
    jpeg_finish_compress(c);
    t->size = t->capacity - t->destination.free_in_buffer;
    return 0;
}

static int write_scan(struct pstk__jpeg_attempt *a, struct pstk_error *err)
{
    struct transcoder *t = a->user;
    struct pstk__jpeg_walk walk = {.data = t->file, .size = t->size, .at = t->at};
    struct pstk__jpeg_segment segment;
    do {
        if (!pstk__jpeg_walk_next(&walk, &segment))
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                              "JPEG: libjpeg wrote fewer scans than the skeleton has");
    } while (segment.marker != PSTK__JPEG_SOS);
    t->at = pstk__jpeg_scan_end(t->file, t->size, segment.end);
    return pstk__jpeg_put(a, t->file + segment.end, t->at - segment.end, err);
}

static int transcode(struct transcoder *t, struct pstk_error *err)
{
    int r = read_script(t, err);
    if (r < 0)
        return r;
    r = pstk__jpeg_guarded(&t->guard, code, t);
    if (r == 0)
        return pstk__jpeg_splice(t->attempt, err);
    r = pstk__fail(err, t->guard.code == JERR_OUT_OF_MEMORY ? PSTK_ENOMEM : PSTK_EBADMSG,
                   PSTK_STAGE_DECODE, "JPEG: libjpeg cannot code the scans: %s", t->guard.text);
    if (err)
        err->native = t->guard.code;
    return r;
}

int pstk__jpeg_rebuild_library(struct pstk__jpeg_attempt *a, struct pstk_error *err)
{
    uint64_t bound = pstk__jpeg_rebuild_bound(a->image), left = (uint64_t)(a->end - a->out);
    uint64_t capacity = (left < bound ? left : bound) + MARKERS_SIZE;
    struct transcoder *t = pstk__arena_get(a->arena, sizeof *t);
    uint8_t *file = pstk__arena_get(a->arena, (size_t)capacity);
    if (!t || !file)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for libjpeg to code the scans");
    memset(t, 0, sizeof *t);
    t->attempt = a;
    t->file = file;
    t->capacity = capacity;
    t->destination = (struct jpeg_destination_mgr){
        .next_output_byte = file,
        .free_in_buffer = (size_t)capacity,
        .init_destination = destination_init,
        .empty_output_buffer = destination_full,
        .term_destination = destination_init,
    };
    a->user = t;
    a->write_scan = write_scan;
    pstk__jpeg_guard_init(&t->guard, a->arena);
    t->guard.memory.pub.access_virt_barray = access_rows;
    int r = set_rows(t);
    if (r == 0 && pstk__jpeg_open_compress(&t->guard, &t->cinfo) != 0)
        r = PSTK_ENOMEM;
    if (r < 0) {
        pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: libjpeg has no memory to start");
    } else {
        t->cinfo.dest = &t->destination;
        r = transcode(t, err);
    }
    pstk__jpeg_close_compress(&t->guard, &t->cinfo);
    return r;
}
