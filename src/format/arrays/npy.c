/* SPDX-License-Identifier: Apache-2.0 */
#include "format/arrays/npy.h"

#include "base/error.h"
#include "base/little.h"

#include <string.h>

#define TEXT_SIZE 32 /* bytes of a string in a head, its 0 included */

/* State of the parser. `code` keeps the first failure; after it nothing more is read. */
struct walk {
    const char *at, *end;
    const char *name; /* name of the file */
    struct pstk_error *err;
    int code;
};

/* The values of the dictionary. */
struct facts {
    char descr[TEXT_SIZE]; /* "" for a list: a structured dtype */
    int has_descr, has_order, has_shape;
    int fortran;
    uint32_t n_dims;
    uint64_t shape[PSTK__ARRAY_MAX_DIMS];
};

#define FAIL(w, code_, ...)                                                                        \
    ((w)->code =                                                                                   \
         (w)->code < 0 ? (w)->code : pstk__fail((w)->err, code_, PSTK_STAGE_OPEN, __VA_ARGS__))

static void fail_syntax(struct walk *walk, const char *wanted)
{
    FAIL(walk, PSTK_EBADMSG,
         "%s: the head of the file is damaged: %s is missing; write it again with numpy.save",
         walk->name, wanted);
}

/* ---- the literals ---------------------------------------------------------------------------- */

static void skip_space(struct walk *walk)
{
    while (walk->at < walk->end &&
           (*walk->at == ' ' || *walk->at == '\n' || *walk->at == '\t' || *walk->at == '\r'))
        walk->at++;
}

/* Step past a character if it comes next. */
static int take(struct walk *walk, char c)
{
    skip_space(walk);
    if (walk->code < 0 || walk->at == walk->end || *walk->at != c)
        return 0;
    walk->at++;
    return 1;
}

static void take_or_fail(struct walk *walk, char c)
{
    const char wanted[4] = {'\'', c, '\'', 0};
    if (!take(walk, c))
        fail_syntax(walk, wanted);
}

/* Step past a word, True or False, if it comes next; 1: it did. */
static int take_word(struct walk *walk, const char *word)
{
    const size_t n = strlen(word);
    skip_space(walk);
    if (walk->code < 0 || (size_t)(walk->end - walk->at) < n || memcmp(walk->at, word, n) != 0)
        return 0;
    walk->at += n;
    return 1;
}

/* Read a string in single or double quotes, without escapes; not empty. */
static void read_string(struct walk *walk, char text[TEXT_SIZE])
{
    text[0] = 0;
    const char quote = take(walk, '\'') ? '\'' : take(walk, '"') ? '"' : 0;
    if (!quote) {
        fail_syntax(walk, "a string");
        return;
    }
    const char *end = memchr(walk->at, quote, (size_t)(walk->end - walk->at));
    if (!end || end - walk->at >= TEXT_SIZE) {
        fail_syntax(walk, "the end of a string");
        return;
    }
    if (end == walk->at || memchr(walk->at, 0, (size_t)(end - walk->at))) {
        fail_syntax(walk, "a string of printed characters");
        return;
    }
    memcpy(text, walk->at, (size_t)(end - walk->at));
    text[end - walk->at] = 0;
    walk->at = end + 1;
}

static uint64_t read_number(struct walk *walk)
{
    uint64_t n = 0;
    skip_space(walk);
    const char *begin = walk->at;
    for (; walk->at < walk->end && *walk->at >= '0' && *walk->at <= '9'; walk->at++)
        if (__builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*walk->at - '0'), &n)) {
            FAIL(walk, PSTK_EFBIG,
                 "%s: a dimension of the array is 2^64 or more; must be at most 2^40: write the "
                 "file again with numpy.save",
                 walk->name);
            return 0;
        }
    if (walk->at == begin)
        fail_syntax(walk, "a number");
    take(walk, 'L'); /* suffix of Python 2 */
    return n;
}

static void read_shape(struct walk *walk, struct facts *facts)
{
    take_or_fail(walk, '(');
    for (facts->n_dims = 0; walk->code == 0 && !take(walk, ')');) {
        if (facts->n_dims == PSTK__ARRAY_MAX_DIMS) {
            FAIL(walk, PSTK_ENOTSUP,
                 "%s: the array has more than %d dimensions, the most that a field may have; "
                 "reshape it",
                 walk->name, PSTK__ARRAY_MAX_DIMS);
            return;
        }
        facts->shape[facts->n_dims++] = read_number(walk);
        if (!take(walk, ',')) {
            take_or_fail(walk, ')');
            if (facts->n_dims == 1) /* Python takes this as a number in parentheses */
                FAIL(walk, PSTK_EBADMSG,
                     "%s: the head of the file is damaged: shape is (%llu), a number; must be a "
                     "tuple, as (%llu,); write it again with numpy.save",
                     walk->name, (unsigned long long)facts->shape[0],
                     (unsigned long long)facts->shape[0]);
            return;
        }
    }
}

static void read_pair(struct walk *walk, struct facts *facts)
{
    char key[TEXT_SIZE];
    read_string(walk, key);
    take_or_fail(walk, ':');
    if (walk->code < 0)
        return;
    if (strcmp(key, "descr") == 0 && !facts->has_descr++) {
        skip_space(walk);
        if (walk->at < walk->end && *walk->at == '[')
            walk->at = walk->end; /* the rest is not needed: a structured dtype is refused */
        else
            read_string(walk, facts->descr);
    } else if (strcmp(key, "fortran_order") == 0 && !facts->has_order++) {
        facts->fortran = take_word(walk, "True");
        if (!facts->fortran && !take_word(walk, "False"))
            fail_syntax(walk, "True or False");
    } else if (strcmp(key, "shape") == 0 && !facts->has_shape++) {
        read_shape(walk, facts);
    } else {
        FAIL(walk, PSTK_EBADMSG,
             "%s: the head of the file is damaged: the key '%s' is unknown or appears twice; write "
             "it again with numpy.save",
             walk->name, key);
    }
}

static void read_dictionary(struct walk *walk, struct facts *facts)
{
    take_or_fail(walk, '{');
    while (walk->code == 0 && !take(walk, '}')) {
        read_pair(walk, facts);
        if (facts->has_descr && !facts->descr[0])
            return;
        if (!take(walk, ',')) {
            take_or_fail(walk, '}');
            break;
        }
    }
    skip_space(walk);
    if (walk->code == 0 && walk->at != walk->end)
        fail_syntax(walk, "the end of the dictionary");
    if (!facts->has_descr || !facts->has_order || !facts->has_shape)
        fail_syntax(walk, "descr, fortran_order or shape");
}

/* ---- what it means --------------------------------------------------------------------------- */

static const struct {
    char descr[3];
    uint8_t dtype;
} dtypes[] = {{"b1", PSTK_U8},  {"u1", PSTK_U8},  {"i1", PSTK_I8},  {"u2", PSTK_U16},
              {"i2", PSTK_I16}, {"u4", PSTK_U32}, {"i4", PSTK_I32}, {"u8", PSTK_U64},
              {"i8", PSTK_I64}, {"f2", PSTK_F16}, {"f4", PSTK_F32}, {"f8", PSTK_F64}};

static void read_dtype(struct walk *walk, const struct facts *facts, struct pstk__array *array)
{
    const char *type = facts->descr + (strchr("<>|=", facts->descr[0]) ? 1 : 0);
    if (!facts->descr[0])
        FAIL(walk, PSTK_ENOTSUP,
             "%s holds an array of records (a structured dtype); save each of its fields to a "
             "file of its own: numpy.save('FIELD.npy', array['FIELD'])",
             walk->name);
    else if (type[0] == 'O')
        FAIL(walk, PSTK_ENOTSUP,
             "%s holds an array of Python objects (a pickle), which penstock never loads: save "
             "numbers, or pack the data with penstock.Writer",
             walk->name);
    array->dtype = 0;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(type, dtypes[i].descr) == 0)
            array->dtype = dtypes[i].dtype;
    if (!array->dtype)
        FAIL(walk, PSTK_ENOTSUP,
             "%s: dtype is '%s'; must be bool, an integer or a float of up to 64 bits: convert it "
             "with array.astype, or pack texts with penstock.Writer",
             walk->name, facts->descr);
    else if (facts->descr[0] == '>' && pstk_dtype_size(array->dtype) > 1)
        FAIL(walk, PSTK_ENOTSUP,
             "%s: dtype '%s' is big-endian; must be little-endian: numpy.save(file, "
             "array.astype('<%s'))",
             walk->name, facts->descr, type);
}

/* 1: C order. Fortran order equals C order if at most one dimension has more than one element. */
static int is_c_order(const struct facts *facts)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < facts->n_dims; d++)
        n += facts->shape[d] > 1;
    return !facts->fortran || n <= 1;
}

/* Read the bytes before the dictionary. Returns the size of the dictionary, or 0 on failure. */
static uint32_t read_preamble(struct walk *walk, const uint8_t *b, uint64_t size)
{
    static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const int is_npy = size >= 10 && memcmp(b, magic, sizeof magic) == 0;
    if (!is_npy)
        FAIL(walk, PSTK_EBADMSG, "%s is %s; write it with numpy.save", walk->name,
             size > 0 && b[0] == 0x80 ? "a pickle, which penstock never loads"
             : size > 1 && b[0] == 'P' && b[1] == 'K'
                 ? "an archive (.npz), not an array"
                 : "not a .npy file, or one that is cut short");
    else if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        FAIL(walk, PSTK_ENOTSUP,
             "%s: the version of the .npy format is %u.%u; must be 1.0, 2.0 or 3.0", walk->name,
             b[6], b[7]);
    if (walk->code < 0)
        return 0;
    const uint32_t before = b[6] == 1 ? 10 : 12;
    const uint32_t n = b[6] == 1 ? pstk__get16(b + 8) : size >= 12 ? pstk__get32(b + 8) : 0;
    if (n > PSTK__NPY_HEADER_MAX - before)
        FAIL(walk, PSTK_ENOTSUP,
             "%s: its head has %u bytes; must be at most 65524: write it again if it is damaged, "
             "or save each field of a structured dtype to a file of its own",
             walk->name, n);
    else if (size < before + n || n == 0)
        FAIL(walk, PSTK_EBADMSG, "%s is cut short: it ends within its head; write it again",
             walk->name);
    walk->at = (const char *)b + before;
    walk->end = walk->at + n;
    return walk->code < 0 ? 0 : before + n;
}

int pstk__npy_head_read(struct pstk__array *array, const void *bytes, uint64_t size,
                        const char *name, struct pstk_error *err)
{
    struct walk walk = {.name = name, .err = err};
    struct facts facts = {0};
    memset(array, 0, sizeof *array);
    array->offset = read_preamble(&walk, bytes, size);
    if (walk.code == 0)
        read_dictionary(&walk, &facts);
    if (walk.code == 0)
        read_dtype(&walk, &facts, array);
    if (walk.code == 0 && !is_c_order(&facts))
        FAIL(&walk, PSTK_ENOTSUP,
             "%s: the array is in Fortran order, whose rows are not contiguous; save "
             "numpy.ascontiguousarray(array)",
             name);
    if (walk.code < 0)
        return walk.code;
    array->n_dims = facts.n_dims;
    memcpy(array->shape, facts.shape, sizeof array->shape);
    return 0;
}

int pstk__npy_header_parse(struct pstk__array *array, const void *bytes, uint64_t size,
                           const char *name, struct pstk_error *err)
{
    const int r = pstk__npy_head_read(array, bytes, size, name, err);
    return r < 0 ? r : pstk__array_measure(array, name, err);
}

uint64_t pstk__npy_head_size(const uint8_t *bytes, uint64_t n)
{
    if (n < 12 || bytes[0] != 0x93)
        return 0;
    return bytes[6] == 1 ? 10 + (uint64_t)pstk__get16(bytes + 8)
                         : 12 + (uint64_t)pstk__get32(bytes + 8);
}
