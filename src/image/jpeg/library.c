/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/library.h"

#include "base/error.h"
#include "image/jpeg/segment.h"

#include <jerror.h>

/* ---- libjpeg's callbacks; the guard = cinfo->client_data ------------------------------------ */

static _Noreturn void leave(j_common_ptr cinfo)
{
    struct pstk__jpeg_guard *g = cinfo->client_data;
    g->code = cinfo->err->msg_code;
    cinfo->err->format_message(cinfo, g->text);
    longjmp(g->escape, 1);
}

static void on_error(j_common_ptr cinfo)
{
    leave(cinfo);
}

static void on_message(j_common_ptr cinfo, int level)
{
    if (level >= 0)
        return; /* a trace */
    switch (cinfo->err->msg_code) {
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_EXTRANEOUS_DATA:
        cinfo->err->num_warnings++;
        return;
    default:
        leave(cinfo);
    }
}

static void on_output(j_common_ptr cinfo)
{
    (void)cinfo; /* the library never prints */
}

static void source_nothing(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

/* All input was given at once, so that asking for more means that it is truncated. Behind the last
 * row that is no harm: libjpeg then gets no end-of-image marker and is told to stop. */
static boolean source_fill(j_decompress_ptr cinfo)
{
    struct pstk__jpeg_guard *g = cinfo->client_data;
    if (!g->finishing)
        ERREXIT(cinfo, JERR_INPUT_EOF);
    return FALSE;
}

static void source_skip(j_decompress_ptr cinfo, long n)
{
    struct jpeg_source_mgr *source = cinfo->src;
    if (n <= 0)
        return;
    if ((size_t)n > source->bytes_in_buffer) {
        source->next_input_byte += source->bytes_in_buffer;
        source->bytes_in_buffer = 0;
        source_fill(cinfo);
        return;
    }
    source->next_input_byte += n;
    source->bytes_in_buffer -= (size_t)n;
}

static void on_progress(j_common_ptr cinfo)
{
    j_decompress_ptr d = (j_decompress_ptr)(void *)cinfo;
    if (d->input_scan_number > PSTK__JPEG_MAX_SCANS)
        ERREXIT(cinfo, JERR_BAD_SCAN_SCRIPT);
}

/* ---- the objects ---------------------------------------------------------------------------- */

void pstk__jpeg_guard_init(struct pstk__jpeg_guard *g, struct pstk__arena *arena)
{
    *g = (struct pstk__jpeg_guard){
        .source = {.init_source = source_nothing,
                   .fill_input_buffer = source_fill,
                   .skip_input_data = source_skip,
                   .resync_to_restart = jpeg_resync_to_restart,
                   .term_source = source_nothing},
        .progress = {.progress_monitor = on_progress},
    };
    jpeg_std_error(&g->errors);
    g->errors.error_exit = on_error;
    g->errors.emit_message = on_message;
    g->errors.output_message = on_output;
    pstk__jpeg_memory_init(&g->memory, arena);
}

/* setjmp with nothing but parameters that do not change alive across it: none can be clobbered. */
int pstk__jpeg_guarded(struct pstk__jpeg_guard *g, int (*body)(void *user), void *user)
{
    if (setjmp(g->escape))
        return 1;
    return body(user);
}

static int make_decompress(void *c)
{
    jpeg_create_decompress((struct jpeg_decompress_struct *)c);
    return 0;
}

static int make_compress(void *c)
{
    jpeg_create_compress((struct jpeg_compress_struct *)c);
    return 0;
}

int pstk__jpeg_open_decompress(struct pstk__jpeg_guard *g, struct jpeg_decompress_struct *c)
{
    *c = (struct jpeg_decompress_struct){.err = &g->errors, .client_data = g};
    if (pstk__jpeg_guarded(g, make_decompress, c) != 0)
        return 1;
    g->own_memory = c->mem;
    c->mem = &g->memory.pub;
    c->src = &g->source;
    c->progress = &g->progress;
    return 0;
}

int pstk__jpeg_open_compress(struct pstk__jpeg_guard *g, struct jpeg_compress_struct *c)
{
    *c = (struct jpeg_compress_struct){.err = &g->errors, .client_data = g};
    if (pstk__jpeg_guarded(g, make_compress, c) != 0)
        return 1;
    g->own_memory = c->mem;
    c->mem = &g->memory.pub;
    return 0;
}

/* libjpeg's own manager frees what it made; one whose memory was never made needs nothing. */
void pstk__jpeg_close_decompress(struct pstk__jpeg_guard *g, struct jpeg_decompress_struct *c)
{
    if (g->own_memory)
        c->mem = g->own_memory;
    jpeg_destroy_decompress(c);
}

void pstk__jpeg_close_compress(struct pstk__jpeg_guard *g, struct jpeg_compress_struct *c)
{
    if (g->own_memory)
        c->mem = g->own_memory;
    jpeg_destroy_compress(c);
}

void pstk__jpeg_begin(struct pstk__jpeg_guard *g, struct jpeg_decompress_struct *c,
                      const void *data, uint64_t size)
{
    pstk__jpeg_memory_begin(&g->memory);
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        c->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++) {
        c->dc_huff_tbl_ptrs[i] = NULL;
        c->ac_huff_tbl_ptrs[i] = NULL;
    }
    g->source.next_input_byte = data;
    g->source.bytes_in_buffer = (size_t)size;
    g->errors.num_warnings = 0;
    g->code = 0;
    g->text[0] = 0;
    g->finishing = 0;
}

/* Progressive files whose scans leave out bits of some coefficients (as far as libjpeg looks at
 * those) are smoothed, from blocks up to two further on. */
int pstk__jpeg_is_smoothed(const struct jpeg_decompress_struct *c)
{
    if (!c->progressive_mode || !c->coef_bits)
        return 0;
    for (int i = 0; i < c->num_components; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (c->coef_bits[i][k] != 0)
                return 1;
    return 0;
}

/* ---- results -------------------------------------------------------------------------------- */

static int result_of(int message_code)
{
    switch (message_code) {
    case JERR_OUT_OF_MEMORY:
        return PSTK_ENOMEM;
    case JERR_BAD_SCAN_SCRIPT:
        return PSTK_EFBIG;
#if JPEG_LIB_VERSION < 70 /* with the interface of later ones it is JERR_NOT_COMPILED */
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_IMAGE_TOO_BIG:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_WIDTH_OVERFLOW:
        return PSTK_ENOTSUP;
    default:
        return PSTK_EBADMSG;
    }
}

int pstk__jpeg_report(const struct pstk__jpeg_guard *g, int r, uint64_t size,
                      struct pstk_error *err)
{
    unsigned long long at = size - g->source.bytes_in_buffer;
    if (r > 0) {
        r = result_of(g->code);
        if (r == PSTK_ENOMEM)
            pstk__fail(err, r, PSTK_STAGE_DECODE,
                       "JPEG needs more scratch memory than its size allows for");
        else if (r == PSTK_EFBIG)
            pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG has over %d scans", PSTK__JPEG_MAX_SCANS);
        else
            pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: %s (at byte %llu of %llu)", g->text, at,
                       (unsigned long long)size);
    } else if (r < 0) {
        pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: %s", g->text);
    }
    if (err)
        err->native = g->code;
    return r;
}
