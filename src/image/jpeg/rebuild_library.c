/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuild by libjpeg, for arithmetic coding. libjpeg transcodes the coefficients by the skeleton's
 * scan script, and the data of its scans go into the skeleton. Each call creates a compress object:
 * a few small blocks of malloc, the rest is in the arena.
 */
#include "image/jpeg/rebuild_library.h"

#include "base/error.h"
#include "image/jpeg/library.h"

#include <jerror.h>
#include <string.h>

_Static_assert(sizeof(JBLOCK) == 128, "libjpeg's coefficients are ours");

/* Bytes of the markers that libjpeg writes in addition to the scans: tables, and up to 256 scan
 * headers of 14 bytes. */
#define MARKERS_SIZE 8192u

/* libjpeg's handle of a component's blocks. */
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
    uint8_t *file; /* the file that libjpeg wrote */
    uint64_t capacity, size;
    uint64_t at; /* bytes of the file already used */
    uint8_t dc_table[PSTK__JPEG_MAX_COMPONENTS], ac_table[PSTK__JPEG_MAX_COMPONENTS];
};

/* ---- libjpeg's callbacks -------------------------------------------------------------------- */

static JBLOCKARRAY access_rows(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                               JDIMENSION n_rows, boolean writable)
{
    struct block_rows *block_rows = (struct block_rows *)(void *)array;
    (void)writable;
    if (n_rows > block_rows->n_rows || first > block_rows->n_rows - n_rows)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return block_rows->rows + first;
}

static void destination_init(j_compress_ptr cinfo)
{
    (void)cinfo; /* already set up */
}

static boolean destination_full(j_compress_ptr cinfo)
{
    ERREXIT(cinfo, JERR_BUFFER_SIZE);
    return FALSE;
}

/* ---- the script ----------------------------------------------------------------------------- */

static int unlike(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "JPEG skeleton: its scans differ in a parameter that libjpeg codes the same "
                      "way in all scans");
}

/* Record a scan. A parameter that libjpeg has only once must be the same in all scans. */
static int take_scan(struct transcoder *transcoder, const struct pstk__jpeg_script *now,
                     struct pstk_error *err)
{
    struct jpeg_compress_struct *cinfo = &transcoder->cinfo;
    const struct pstk__jpeg_scan *scan = &now->scan;
    jpeg_scan_info *out = &transcoder->scans[now->n_scans - 1];
    *out = (jpeg_scan_info){.comps_in_scan = (int)scan->n_components,
                            .Ss = (int)scan->first,
                            .Se = (int)scan->last,
                            .Ah = (int)scan->high,
                            .Al = (int)scan->low};
    for (uint32_t i = 0; i < scan->n_components; i++) {
        uint32_t component = scan->component[i];
        out->component_index[i] = (int)component;
        if (scan->first == 0 && scan->high == 0) /* refinements use no DC table, and have 0 here */
            transcoder->dc_table[component] = scan->dc_table[i];
        if (scan->last > 0)
            transcoder->ac_table[component] = scan->ac_table[i];
    }
    for (uint32_t i = 0; i < NUM_ARITH_TBLS; i++) {
        uint8_t low = now->dc_conditioning[i] & 15, high = now->dc_conditioning[i] >> 4;
        uint8_t last = now->ac_conditioning[i];
        if (now->n_scans > 1 && (cinfo->arith_dc_L[i] != low || cinfo->arith_dc_U[i] != high ||
                                 cinfo->arith_ac_K[i] != last))
            return unlike(err);
        cinfo->arith_dc_L[i] = low;
        cinfo->arith_dc_U[i] = high;
        cinfo->arith_ac_K[i] = last;
    }
    if (now->n_scans > 1 && cinfo->restart_interval != scan->restart_interval)
        return unlike(err);
    cinfo->restart_interval = scan->restart_interval;
    cinfo->num_scans = (int)now->n_scans;
    return 0;
}

static int read_script(struct transcoder *transcoder, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *attempt = transcoder->attempt;
    struct pstk__jpeg_walk walk = {.data = attempt->image->skeleton,
                                   .size = attempt->image->skeleton_size};
    struct pstk__jpeg_segment segment;

    pstk__jpeg_script_init(&attempt->script);
    while (pstk__jpeg_walk_next(&walk, &segment)) {
        int r = pstk__jpeg_script_apply(&attempt->script, &segment, &attempt->image->frame, err);
        if (r == 1)
            r = take_scan(transcoder, &attempt->script, err);
        if (r < 0)
            return r;
    }
    if (attempt->script.n_scans == 0 || !pstk__jpeg_script_is_arithmetic(&attempt->script))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG skeleton: it asks libjpeg for arithmetic scans, but has none");
    return 0;
}

/* ---- coding --------------------------------------------------------------------------------- */

/* Set row pointers for as many rows as libjpeg requests: the rows of whole MCUs, even if the frame
 * has one component. libjpeg does not read blocks past the frame's. */
static int set_rows(struct transcoder *transcoder)
{
    const struct pstk__jpeg_image *image = transcoder->attempt->image;
    for (uint32_t i = 0; i < image->frame.n_components; i++) {
        const struct pstk__jpeg_component *component = &image->frame.component[i];
        uint32_t n = (component->rows + component->v - 1) / component->v * component->v;
        JBLOCKROW *rows = pstk__arena_get(transcoder->attempt->arena, n * sizeof *rows);
        if (!rows)
            return PSTK_ENOMEM;
        for (uint32_t k = 0; k < n; k++) {
            size_t at = k < component->rows ? (size_t)k * component->stride * 64 : 0;
            rows[k] = (JBLOCKROW)(void *)(image->blocks[i] + at);
        }
        transcoder->components[i] = (struct block_rows){.rows = rows, .n_rows = n};
        transcoder->arrays[i] = (jvirt_barray_ptr)(void *)&transcoder->components[i];
    }
    return 0;
}

/* Code the file. The guard must be running. */
static int code(void *user)
{
    struct transcoder *transcoder = user;
    struct jpeg_compress_struct *cinfo = &transcoder->cinfo;
    const struct pstk__jpeg_frame *f = &transcoder->attempt->image->frame;
    unsigned restart_interval = cinfo->restart_interval;
    int n_scans = cinfo->num_scans;
    UINT8 conditioning[3][NUM_ARITH_TBLS];

    memcpy(conditioning[0], cinfo->arith_dc_L, NUM_ARITH_TBLS);
    memcpy(conditioning[1], cinfo->arith_dc_U, NUM_ARITH_TBLS);
    memcpy(conditioning[2], cinfo->arith_ac_K, NUM_ARITH_TBLS);
    cinfo->image_width = f->width;
    cinfo->image_height = f->height;
    cinfo->input_components = (int)f->n_components;
    cinfo->in_color_space = JCS_UNKNOWN;
    jpeg_set_defaults(cinfo);
#if JPEG_LIB_VERSION >= 70
    cinfo->jpeg_width = f->width;
    cinfo->jpeg_height = f->height;
    cinfo->min_DCT_h_scaled_size = cinfo->min_DCT_v_scaled_size = DCTSIZE;
#endif
    for (uint32_t i = 0; i < f->n_components; i++) {
        cinfo->comp_info[i].component_id = f->component[i].id;
        cinfo->comp_info[i].h_samp_factor = f->component[i].h;
        cinfo->comp_info[i].v_samp_factor = f->component[i].v;
        cinfo->comp_info[i].dc_tbl_no = transcoder->dc_table[i];
        cinfo->comp_info[i].ac_tbl_no = transcoder->ac_table[i];
    }
    memcpy(cinfo->arith_dc_L, conditioning[0], NUM_ARITH_TBLS);
    memcpy(cinfo->arith_dc_U, conditioning[1], NUM_ARITH_TBLS);
    memcpy(cinfo->arith_ac_K, conditioning[2], NUM_ARITH_TBLS);
    cinfo->arith_code = TRUE;
    cinfo->write_JFIF_header = FALSE;
    cinfo->restart_interval = restart_interval;
    cinfo->scan_info = transcoder->scans;
    cinfo->num_scans = n_scans;
    jpeg_write_coefficients(cinfo, transcoder->arrays);
    jpeg_finish_compress(cinfo);
    transcoder->size = transcoder->capacity - transcoder->destination.free_in_buffer;
    return 0;
}

static int write_scan(struct pstk__jpeg_attempt *attempt, struct pstk_error *err)
{
    struct transcoder *transcoder = attempt->user;
    struct pstk__jpeg_walk walk = {
        .data = transcoder->file, .size = transcoder->size, .at = transcoder->at};
    struct pstk__jpeg_segment segment;
    do {
        if (!pstk__jpeg_walk_next(&walk, &segment))
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                              "JPEG: libjpeg wrote fewer scans than the skeleton has");
    } while (segment.marker != PSTK__JPEG_SOS);
    transcoder->at = pstk__jpeg_scan_end(transcoder->file, transcoder->size, segment.end);
    return pstk__jpeg_put(attempt, transcoder->file + segment.end, transcoder->at - segment.end,
                          err);
}

static int transcode(struct transcoder *transcoder, struct pstk_error *err)
{
    int r = read_script(transcoder, err);
    if (r < 0)
        return r;
    r = pstk__jpeg_guarded(&transcoder->guard, code, transcoder);
    if (r == 0)
        return pstk__jpeg_splice(transcoder->attempt, err);
    r = pstk__fail(err, transcoder->guard.code == JERR_OUT_OF_MEMORY ? PSTK_ENOMEM : PSTK_EBADMSG,
                   PSTK_STAGE_DECODE, "JPEG: libjpeg cannot code the scans: %s",
                   transcoder->guard.text);
    if (err)
        err->native = transcoder->guard.code;
    return r;
}

int pstk__jpeg_rebuild_library(struct pstk__jpeg_attempt *attempt, struct pstk_error *err)
{
    uint64_t bound = pstk__jpeg_splice_bound(&attempt->image->frame, attempt->image->skeleton_size),
             left = (uint64_t)(attempt->end - attempt->out);
    uint64_t capacity = (left < bound ? left : bound) + MARKERS_SIZE;
    struct transcoder *transcoder = pstk__arena_get(attempt->arena, sizeof *transcoder);
    uint8_t *file = pstk__arena_get(attempt->arena, (size_t)capacity);
    if (!transcoder || !file)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for libjpeg to code the scans");
    memset(transcoder, 0, sizeof *transcoder);
    transcoder->attempt = attempt;
    transcoder->file = file;
    transcoder->capacity = capacity;
    transcoder->destination = (struct jpeg_destination_mgr){
        .next_output_byte = file,
        .free_in_buffer = (size_t)capacity,
        .init_destination = destination_init,
        .empty_output_buffer = destination_full,
        .term_destination = destination_init,
    };
    attempt->user = transcoder;
    attempt->write_scan = write_scan;
    pstk__jpeg_guard_init(&transcoder->guard, attempt->arena);
    transcoder->guard.memory.pub.access_virt_barray = access_rows;
    int r = set_rows(transcoder);
    if (r == 0 && pstk__jpeg_open_compress(&transcoder->guard, &transcoder->cinfo) != 0)
        r = PSTK_ENOMEM;
    if (r < 0) {
        pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: libjpeg has no memory to start");
    } else {
        transcoder->cinfo.dest = &transcoder->destination;
        r = transcode(transcoder, err);
    }
    pstk__jpeg_close_compress(&transcoder->guard, &transcoder->cinfo);
    return r;
}
