/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/library.h"

#include "base/error.h"
#include "image/jpeg/segment.h"

#include <jerror.h>
#include <string.h>

/* ---- libjpeg's callbacks; the guard = cinfo->client_data ------------------------------------ */

static _Noreturn void leave(j_common_ptr cinfo)
{
    struct pstk__jpeg_guard *guard = cinfo->client_data;
    guard->code = cinfo->err->msg_code;
    cinfo->err->format_message(cinfo, guard->text);
    longjmp(guard->escape, 1);
}

static void on_error(j_common_ptr cinfo)
{
    leave(cinfo);
}

/* Note that a scan's data ended too early. libjpeg moves the source once it has decoded an MCU. If
 * it has not moved the source since the last restart, the data had ended before. */
static void starve(const struct jpeg_decompress_struct *cinfo)
{
    struct pstk__jpeg_guard *guard = cinfo->client_data;
    const int is_new = guard->starved_scan != cinfo->input_scan_number;
    if (is_new || guard->fed_from != cinfo->src->next_input_byte)
        guard->starved_row = cinfo->input_iMCU_row;
    guard->starved_scan = cinfo->input_scan_number;
    guard->fed_from = NULL;
}

/* Note that a scan whose data had ended continues after a restart marker. */
static void feed(const struct jpeg_decompress_struct *cinfo)
{
    struct pstk__jpeg_guard *guard = cinfo->client_data;
    if (guard->starved_scan == cinfo->input_scan_number)
        guard->fed_from = cinfo->src->next_input_byte;
}

static void on_message(j_common_ptr cinfo, int level)
{
    struct pstk__jpeg_guard *guard = cinfo->client_data;
    const int code = cinfo->err->msg_code;
    if (guard->guessing && code == JTRC_RST)
        feed((j_decompress_ptr)(void *)cinfo);
    if (level >= 0)
        return; /* a trace message */
    if (guard->guessing) {
        if (code == JWRN_HIT_MARKER)
            starve((j_decompress_ptr)(void *)cinfo);
        cinfo->err->num_warnings++;
        return;
    }
    switch (code) {
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

/* Fail, because all input was given at once, so it is truncated. After the last row that does no
 * harm: libjpeg then gets no end-of-image marker, and FALSE makes it stop. */
static boolean source_fill(j_decompress_ptr cinfo)
{
    struct pstk__jpeg_guard *guard = cinfo->client_data;
    if (!guard->finishing)
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

/* Return FALSE: libjpeg stops, and its caller gives it more bytes. */
static boolean source_suspend(j_decompress_ptr cinfo)
{
    (void)cinfo;
    return FALSE;
}

/* Skip n bytes; n_skip gets the number of those that have not arrived. */
static void source_skip_later(j_decompress_ptr cinfo, long n)
{
    struct pstk__jpeg_guard *guard = cinfo->client_data;
    struct jpeg_source_mgr *source = cinfo->src;
    const size_t now = (size_t)n < source->bytes_in_buffer ? (size_t)n : source->bytes_in_buffer;
    source->next_input_byte += now;
    source->bytes_in_buffer -= now;
    guard->n_skip = n - (long)now;
}

/* Resynchronise as libjpeg does. Data follow if it drops the marker that it found in place of a
 * restart marker. */
static boolean guess_restart(j_decompress_ptr cinfo, int wanted)
{
    const boolean is_done = jpeg_resync_to_restart(cinfo, wanted);
    if (is_done && cinfo->unread_marker == 0)
        feed(cinfo);
    return is_done;
}

/* Note the known bits of the coefficients, once a scan. libjpeg has set coef_bits for the scan that
 * it begins, and reports progress before the scan's first row. */
static void note_known(struct pstk__jpeg_known *known, const struct jpeg_decompress_struct *cinfo)
{
    const size_t size = sizeof known->latest[0];
    for (int i = 0; i < cinfo->comps_in_scan; i++) {
        const int component = cinfo->cur_comp_info[i]->component_index;
        if (known->scan > 0)
            memcpy(known->earlier[component], known->latest[component], size);
        else
            memset(known->earlier[component], 0, size); /* as in libjpeg-turbo */
    }
    for (int i = 0; i < cinfo->num_components; i++)
        memcpy(known->latest[i], cinfo->coef_bits[i], size);
    known->scan = cinfo->input_scan_number;
}

static void on_progress(j_common_ptr cinfo)
{
    struct pstk__jpeg_guard *guard = cinfo->client_data;
    j_decompress_ptr d = (j_decompress_ptr)(void *)cinfo;
    if (d->input_scan_number > PSTK__JPEG_MAX_SCANS)
        ERREXIT(cinfo, JERR_BAD_SCAN_SCRIPT);
    if (d->coef_bits && d->input_scan_number != guard->known.scan)
        note_known(&guard->known, d);
}

/* ---- the objects ---------------------------------------------------------------------------- */

void pstk__jpeg_guard_init(struct pstk__jpeg_guard *guard, struct pstk__arena *arena)
{
    *guard = (struct pstk__jpeg_guard){
        .source = {.init_source = source_nothing,
                   .fill_input_buffer = source_fill,
                   .skip_input_data = source_skip,
                   .resync_to_restart = jpeg_resync_to_restart,
                   .term_source = source_nothing},
        .progress = {.progress_monitor = on_progress},
    };
    jpeg_std_error(&guard->errors);
    guard->errors.error_exit = on_error;
    guard->errors.emit_message = on_message;
    guard->errors.output_message = on_output;
    pstk__jpeg_memory_init(&guard->memory, arena);
}

void pstk__jpeg_guard_guess(struct pstk__jpeg_guard *guard)
{
    guard->guessing = 1;
    guard->source.fill_input_buffer = source_suspend;
    guard->source.skip_input_data = source_skip_later;
    guard->source.resync_to_restart = guess_restart;
}

/* Run under setjmp. Only parameters live across it, and these do not change, so none can be
 * clobbered. */
int pstk__jpeg_guarded(struct pstk__jpeg_guard *guard, int (*body)(void *user), void *user)
{
    if (setjmp(guard->escape))
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

int pstk__jpeg_open_decompress(struct pstk__jpeg_guard *guard, struct jpeg_decompress_struct *cinfo)
{
    *cinfo = (struct jpeg_decompress_struct){.err = &guard->errors, .client_data = guard};
    if (pstk__jpeg_guarded(guard, make_decompress, cinfo) != 0)
        return 1;
    guard->own_memory = cinfo->mem;
    cinfo->mem = &guard->memory.pub;
    cinfo->src = &guard->source;
    cinfo->progress = &guard->progress;
    return 0;
}

int pstk__jpeg_open_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo)
{
    *cinfo = (struct jpeg_compress_struct){.err = &guard->errors, .client_data = guard};
    if (pstk__jpeg_guarded(guard, make_compress, cinfo) != 0)
        return 1;
    guard->own_memory = cinfo->mem;
    cinfo->mem = &guard->memory.pub;
    return 0;
}

/* Let libjpeg's own manager free the object. An object whose manager was never made needs nothing.
 */
void pstk__jpeg_close_decompress(struct pstk__jpeg_guard *guard,
                                 struct jpeg_decompress_struct *cinfo)
{
    if (guard->own_memory)
        cinfo->mem = guard->own_memory;
    jpeg_destroy_decompress(cinfo);
}

void pstk__jpeg_close_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo)
{
    if (guard->own_memory)
        cinfo->mem = guard->own_memory;
    jpeg_destroy_compress(cinfo);
}

void pstk__jpeg_begin(struct pstk__jpeg_guard *guard, struct jpeg_decompress_struct *cinfo,
                      const void *data, uint64_t size)
{
    pstk__jpeg_memory_begin(&guard->memory);
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        cinfo->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++) {
        cinfo->dc_huff_tbl_ptrs[i] = NULL;
        cinfo->ac_huff_tbl_ptrs[i] = NULL;
    }
    guard->source.next_input_byte = data;
    guard->source.bytes_in_buffer = (size_t)size;
    guard->errors.num_warnings = 0;
    guard->code = 0;
    guard->text[0] = 0;
    guard->finishing = 0;
    guard->n_skip = 0;
    guard->starved_scan = 0;
    guard->fed_from = NULL;
    guard->known.scan = 0;
}

uint32_t pstk__jpeg_last_fed_row(const struct pstk__jpeg_guard *guard,
                                 const struct jpeg_decompress_struct *cinfo)
{
    const int is_starved = guard->starved_scan == cinfo->input_scan_number && !guard->fed_from;
    return is_starved ? guard->starved_row : UINT32_MAX;
}

int pstk__jpeg_is_incomplete(const struct jpeg_decompress_struct *cinfo)
{
    if (!cinfo->progressive_mode || !cinfo->coef_bits)
        return 0;
    for (int i = 0; i < cinfo->num_components; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (cinfo->coef_bits[i][k] != 0)
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
#if JPEG_LIB_VERSION < 70 /* later interfaces use JERR_NOT_COMPILED instead */
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

int pstk__jpeg_report(const struct pstk__jpeg_guard *guard, int r, uint64_t size,
                      struct pstk_error *err)
{
    unsigned long long at = size - guard->source.bytes_in_buffer;
    if (r > 0) {
        r = result_of(guard->code);
        if (r == PSTK_ENOMEM)
            pstk__fail(err, r, PSTK_STAGE_DECODE,
                       "JPEG needs more scratch memory than its size allows for");
        else if (r == PSTK_EFBIG)
            pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG has more than %d scans",
                       PSTK__JPEG_MAX_SCANS);
        else
            pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: %s (at byte %llu of %llu)", guard->text,
                       at, (unsigned long long)size);
    } else if (r < 0) {
        pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: %s", guard->text);
    }
    if (err)
        err->native = guard->code;
    return r;
}
