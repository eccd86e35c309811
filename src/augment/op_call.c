/* SPDX-License-Identifier: Apache-2.0 */
/* op_call: runs a function of the program between operations. */
#include "augment/canvas.h"
#include "augment/sampled_ops.h"

#include "base/error.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define N_WORDS 4u               /* words of random bits */
#define MAX_SCRATCH 4294967296.0 /* bytes */
#define MAX_WORD 4294967295.0
#define GUARD PSTK__PICTURE_PAD /* bytes after the pixels, and after the scratch */
#define GUARD_BYTE 0xa5
#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* size that the arena takes */

#define FAIL(...) pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, __VA_ARGS__)

struct pstk_op pstk_call(pstk_pixels_fn function, void *user, uint64_t scratch_size)
{
    struct pstk_op op = {.kind = PSTK_OP_CALL, .function = function, .user = user};
    op.params.call = (struct pstk_call_params){.scratch_size = (double)scratch_size};
    return op;
}

static int is_whole(double value, double most)
{
    return value >= 0 && value <= most && value == (double)(uint64_t)value;
}

static int check(const struct pstk_op *op, struct pstk_error *err)
{
    if (!op->function)
        return FAIL("function: value is NULL; must be a function");
    if (!is_whole(op->params.call.scratch_size, MAX_SCRATCH))
        return FAIL("scratch_size: value is %g; must be a whole number of at most %.0f bytes",
                    op->params.call.scratch_size, MAX_SCRATCH);
    for (uint32_t i = 0; i < N_WORDS; i++)
        if (!is_whole(op->params.call.random[i], MAX_WORD))
            return FAIL("random[%u]: value is %g; must be a whole number of at most %.0f", i,
                        op->params.call.random[i], MAX_WORD);
    const int rc = pstk__op_check_no_size(op, err);
    return rc < 0 ? rc : pstk__op_check_unused(op, 1 + N_WORDS, err);
}

/* Append a copy of the list's op, with its random bits set. */
static void draw(const struct pstk_op *op, struct pstk__random *r, struct pstk__sampled_ops *to)
{
    struct pstk_op drawn = *op;
    for (uint32_t i = 0; i < N_WORDS; i++)
        drawn.params.call.random[i] = pstk__random_u32(r);
    pstk__sampled_ops_add(to, &drawn);
}

static uint64_t scratch_of(const struct pstk_op *op)
{
    return (uint64_t)op->params.call.scratch_size;
}

static uint64_t scratch(const struct pstk_op *op, const struct pstk__largest *in, uint32_t channels)
{
    (void)in;
    (void)channels;
    return scratch_of(op) > 0 ? ALIGN(scratch_of(op) + GUARD) : 0;
}

static uint64_t random_of(const struct pstk_op *op, uint32_t i)
{
    const double *words = &op->params.call.random[2 * i];
    return (uint64_t)words[0] | (uint64_t)words[1] << 32;
}

/* ---- guards ---------------------------------------------------------------------------------- */

static void guard_set(uint8_t *guard)
{
    memset(guard, GUARD_BYTE, GUARD);
}

static int guard_is_broken(const uint8_t *guard)
{
    int is_broken = 0;
    for (uint32_t i = 0; i < GUARD; i++)
        is_broken |= guard[i] != GUARD_BYTE;
    return is_broken;
}

/* ---- the call -------------------------------------------------------------------------------- */

#define QUOTED 380 /* maximum bytes of a function's message that are quoted */

/* Return 1 when the byte at `at` is a control character, or part of one of U+0080 to U+009F. */
static int is_control(const char *text, size_t at)
{
    const uint8_t byte = (uint8_t)text[at], next = byte ? (uint8_t)text[at + 1] : 0;
    const int is_second = at > 0 && (uint8_t)text[at - 1] == 0xc2 && byte >= 0x80 && byte < 0xa0;
    return byte < 0x20 || byte == 0x7f || is_second ||
           (byte == 0xc2 && next >= 0x80 && next < 0xa0);
}

/* Copy a function's message. Bytes that are not UTF-8, or that control a terminal, become \x1b. */
static void quote(char to[QUOTED + 1], const char *message)
{
    char text[QUOTED + 1];
    snprintf(text, sizeof text, "%.*s", QUOTED, message);
    const size_t length = strlen(text);
    size_t used = 0;
    uint64_t end = pstk__utf8_end(text, length);
    for (size_t i = 0; i < length && used + 5 <= QUOTED + 1; i++) {
        if (i < end && !is_control(text, i))
            to[used++] = text[i];
        else
            used += (size_t)snprintf(to + used, 5, "\\x%02x", (uint8_t)text[i]);
        if (i == end) /* bytes after an invalid one may be text */
            end = i + 1 + pstk__utf8_end(text + i + 1, length - i - 1);
    }
    to[used] = 0;
}

/* Report that a function returned `result`; `why` may hold its message. */
static int report(const struct pstk__canvas *canvas, int result, const char *broken,
                  const struct pstk_error *why)
{
    char quoted[QUOTED + 1];
    quote(quoted, why->message);
    pstk_error_init(canvas->failure, sizeof *canvas->failure);
    if (broken)
        pstk__fail(canvas->failure, PSTK_ECANCELED, PSTK_STAGE_DECODE,
                   "the function of a call wrote past the end of its %s", broken);
    else
        pstk__fail(canvas->failure, result == PSTK_ENOMEM ? PSTK_ENOMEM : PSTK_ECANCELED,
                   PSTK_STAGE_DECODE, "the function of a call returned %d%s%s", result,
                   quoted[0] ? ": " : "", quoted);
    canvas->failure->native = result;
    return PSTK_ECANCELED;
}

static int change(const struct pstk_op *op, struct pstk__canvas *canvas)
{
    const struct pstk__picture *picture = &canvas->picture;
    const struct pstk_shape shape = {
        .height = picture->height, .width = picture->width, .channels = picture->channels};
    const uint64_t random[2] = {random_of(op, 0), random_of(op, 1)}, size = scratch_of(op);
    uint8_t *memory = size > 0 ? pstk__arena_get(canvas->arena, size + GUARD) : NULL;
    uint8_t *end = picture->pixels + pstk__picture_size(picture);
    struct pstk_error why;
    if (size > 0 && !memory)
        return PSTK_ENOMEM;
    pstk_error_init(&why, sizeof why);
    guard_set(end);
    if (memory)
        guard_set(memory + size);
    const int result = op->function(op->user, picture->pixels, &shape, random, memory, &why);
    const char *broken = guard_is_broken(end)                       ? "pixels"
                         : memory && guard_is_broken(memory + size) ? "scratch"
                                                                    : NULL;
    return result != 0 || broken ? report(canvas, result, broken, &why) : 0;
}

const struct pstk__op_entry pstk__op_call = {
    .kind = PSTK_OP_CALL,
    .effects = PSTK__PICTURES,
    .uses = PSTK__USES_FUNCTION,
    .name = "call",
    .check = check,
    .draw = draw,
    .change = change,
    .scratch = scratch,
};
