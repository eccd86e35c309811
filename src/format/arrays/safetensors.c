/* SPDX-License-Identifier: Apache-2.0 */
#include "format/arrays/safetensors.h"

#include "base/error.h"
#include "base/json_piece.h"
#include "base/little.h"

#include <jansson.h>

#include <stdio.h>
#include <string.h>

/* Max separators in a tensor's JSON, which has 3 keys, at most 9 dimensions and 2 offsets: with
 * brackets 19. */
#define SEPARATORS_MAX 32
#define LABEL_SIZE 512

/* State of the parser. `code` keeps the first failure; after it nothing more is read. */
struct parse {
    struct pstk__safetensors *out;
    const char *name; /* name of the file */
    struct pstk_error *err;
    uint64_t begin; /* begin of the tensors, byte of the file */
    uint64_t size;  /* bytes of the tensors */
    int code;
    int has_metadata;
};

static const struct {
    char name[5];
    uint8_t dtype;
} dtypes[] = {{"BOOL", PSTK_U8}, {"U8", PSTK_U8},   {"I8", PSTK_I8},     {"U16", PSTK_U16},
              {"I16", PSTK_I16}, {"U32", PSTK_U32}, {"I32", PSTK_I32},   {"U64", PSTK_U64},
              {"I64", PSTK_I64}, {"F16", PSTK_F16}, {"BF16", PSTK_BF16}, {"F32", PSTK_F32},
              {"F64", PSTK_F64}};

#define FAIL(parse, code_, ...)                                                                    \
    ((parse)->code = (parse)->code < 0                                                             \
                         ? (parse)->code                                                           \
                         : pstk__fail((parse)->err, code_, PSTK_STAGE_OPEN, __VA_ARGS__))

static void damaged(struct parse *parse, const char *what)
{
    FAIL(parse, PSTK_EBADMSG,
         "%s: the head of the file is damaged: %s; write it again with safetensors", parse->name,
         what);
}

static void damaged_tensor(struct parse *parse, const char *tensor, const char *what)
{
    FAIL(parse, PSTK_EBADMSG,
         "%s: the head of the file is damaged: tensor %s: %s; write it again with safetensors",
         parse->name, tensor, what);
}

int pstk__safetensors_head_size(uint64_t *head_size, const uint8_t *bytes, uint64_t size,
                                uint64_t file_size, const char *name, struct pstk_error *err)
{
    *head_size = size < PSTK__SAFETENSORS_BEFORE ? 0 : pstk__get64(bytes);
    if (size < PSTK__SAFETENSORS_BEFORE)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is cut short: it ends within its head; write it again", name);
    if (*head_size > PSTK__SAFETENSORS_HEAD_MAX)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is not a .safetensors file, or a damaged one: its head has %llu "
                          "bytes; must be at most %d: write it again with safetensors",
                          name, (unsigned long long)*head_size, PSTK__SAFETENSORS_HEAD_MAX);
    if (*head_size > file_size - PSTK__SAFETENSORS_BEFORE)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is cut short: it ends within its head; write it again", name);
    return 0;
}

/* ---- one tensor ------------------------------------------------------------------------------ */

/* Read a number of a list, from 0 to 2^63-1. */
static uint64_t read_number(struct parse *parse, const char *tensor, const json_t *list, size_t i)
{
    const json_t *value = json_array_get(list, i);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        damaged_tensor(parse, tensor, "a dimension or an offset is not a whole number");
        return 0;
    }
    return (uint64_t)json_integer_value(value);
}

static void read_dtype(struct parse *parse, const char *tensor, const json_t *value,
                       struct pstk__array *array)
{
    const char *name = json_string_value(value);
    if (!name) {
        damaged_tensor(parse, tensor, "its dtype is not a text");
        return;
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(name, dtypes[i].name) == 0)
            array->dtype = dtypes[i].dtype;
    if (!array->dtype)
        FAIL(parse, PSTK_ENOTSUP,
             "%s: tensor %s: dtype is %.20s; must be BOOL, BF16, F16, F32, F64 or an integer of up "
             "to 64 bits: convert it with tensor.to",
             parse->name, tensor, name);
}

static void read_shape(struct parse *parse, const char *tensor, const json_t *list,
                       struct pstk__array *array)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list))
        damaged_tensor(parse, tensor, "its shape is not a list");
    else if (n > PSTK__ARRAY_MAX_DIMS)
        FAIL(parse, PSTK_ENOTSUP,
             "%s: tensor %s has more than %d dimensions, the most that a field may have; reshape "
             "it",
             parse->name, tensor, PSTK__ARRAY_MAX_DIMS);
    for (size_t i = 0; i < n && parse->code == 0; i++)
        array->shape[array->n_dims++] = read_number(parse, tensor, list, i);
}

/* Set the position in the file, and check that the tensor has the bytes of its shape. */
static void read_offsets(struct parse *parse, const char *tensor, const json_t *list,
                         struct pstk__array *array)
{
    char label[LABEL_SIZE];
    if (!json_is_array(list) || json_array_size(list) != 2) {
        damaged_tensor(parse, tensor, "its data_offsets are not two numbers");
        return;
    }
    const uint64_t begin = read_number(parse, tensor, list, 0),
                   end = read_number(parse, tensor, list, 1);
    if (parse->code == 0 && (begin > end || end > parse->size))
        damaged_tensor(parse, tensor, "its bytes reach past the end of the file");
    if (parse->code < 0)
        return;
    snprintf(label, sizeof label, "%s: tensor %s", parse->name, tensor);
    array->offset = parse->begin + begin;
    parse->code = pstk__array_measure(array, label, parse->err);
    if (parse->code == 0 && array->end != parse->begin + end)
        damaged_tensor(parse, tensor, "its bytes are not as many as its shape needs");
}

static void read_tensor(struct parse *parse, const char *tensor,
                        const struct pstk__json_piece *piece, struct pstk__array *array)
{
    json_error_t why;
    if (piece->n_separators > SEPARATORS_MAX) {
        FAIL(parse, PSTK_ENOTSUP,
             "%s: tensor %s has more than %d dimensions, or other keys than dtype, shape and "
             "data_offsets; reshape it, or write it again with safetensors",
             parse->name, tensor, PSTK__ARRAY_MAX_DIMS);
        return;
    }
    json_t *value = json_loadb(piece->at, piece->size, JSON_REJECT_DUPLICATES, &why);
    if (!value && json_error_code(&why) == json_error_out_of_memory)
        FAIL(parse, PSTK_ENOMEM, "no memory to open %s", parse->name);
    else if (!json_is_object(value) || json_object_size(value) != 3)
        damaged_tensor(parse, tensor, "it must have dtype, shape and data_offsets, each once");
    if (parse->code == 0)
        read_dtype(parse, tensor, json_object_get(value, "dtype"), array);
    if (parse->code == 0)
        read_shape(parse, tensor, json_object_get(value, "shape"), array);
    if (parse->code == 0)
        read_offsets(parse, tensor, json_object_get(value, "data_offsets"), array);
    json_decref(value);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Add the tensor whose name has been decoded. */
static void add_tensor(struct parse *parse, const char *tensor,
                       const struct pstk__json_piece *piece)
{
    struct pstk__safetensors *out = parse->out;
    if (!pstk__array_name_ok(tensor, strlen(tensor))) {
        FAIL(parse, PSTK_ENOTSUP,
             "%s: tensor '%.100s': its name is not the name of a field; must be 1 to %d of A-Z a-z "
             "0-9 _ . -: save it under another name",
             parse->name, tensor, PSTK_MAX_NAME - 1);
        return;
    }
    for (uint32_t i = 0; i < out->n; i++)
        if (strcmp(out->tensors[i].name, tensor) == 0)
            damaged_tensor(parse, tensor, "it appears twice");
    if (out->n == PSTK_MAX_FIELDS)
        FAIL(parse, PSTK_ENOTSUP,
             "%s has more than %d tensors, the most that a data set may have; save only tensors "
             "whose rows are samples, or move some to another file",
             parse->name, PSTK_MAX_FIELDS);
    if (parse->code < 0)
        return;
    snprintf(out->tensors[out->n].name, PSTK_MAX_NAME, "%s", tensor);
    read_tensor(parse, tensor, piece, &out->tensors[out->n++].array);
}

/* Read one key and its value. */
static void read_pair(struct parse *parse, const struct pstk__json_piece *key,
                      const struct pstk__json_piece *value)
{
    json_error_t why;
    json_t *name = json_loadb(key->at, key->size, JSON_DECODE_ANY, &why);
    if (!name && json_error_code(&why) == json_error_out_of_memory)
        FAIL(parse, PSTK_ENOMEM, "no memory to open %s", parse->name);
    else if (!json_is_string(name))
        damaged(parse, "a key is not a text");
    else if (strcmp(json_string_value(name), "__metadata__") != 0)
        add_tensor(parse, json_string_value(name), value);
    else if (parse->has_metadata++ || value->at[0] != '{')
        damaged(parse, "__metadata__ is not an object, or appears twice");
    json_decref(name);
}

/* Check that tensors fill the bytes after the head: all lie among them, none overlap, and their
 * sizes add up to the total. */
static void check_offsets(struct parse *parse)
{
    const struct pstk__safetensors *out = parse->out;
    uint64_t sum = 0; /* at most 64 tensors below 2^44 bytes */
    for (uint32_t i = 0; i < out->n && parse->code == 0; i++) {
        const struct pstk__array *array = &out->tensors[i].array;
        for (uint32_t k = 0; k < i; k++)
            if (array->offset < out->tensors[k].array.end &&
                out->tensors[k].array.offset < array->end)
                damaged_tensor(parse, out->tensors[i].name,
                               "its bytes overlap those of another tensor");
        sum += array->end - array->offset;
    }
    if (parse->code == 0 && sum != parse->size)
        FAIL(parse, PSTK_EBADMSG,
             "%s has %llu bytes that belong to no tensor; must have none: write it again with "
             "safetensors",
             parse->name, (unsigned long long)(parse->size - sum));
}

int pstk__safetensors_parse(struct pstk__safetensors *safetensors, const char *head,
                            uint64_t head_size, uint64_t file_size, const char *name,
                            struct pstk_error *err)
{
    struct parse parse = {.out = safetensors,
                          .name = name,
                          .err = err,
                          .begin = PSTK__SAFETENSORS_BEFORE + head_size};
    struct pstk__json_walk walk;
    struct pstk__json_piece key, value;
    int more = 1;
    memset(safetensors, 0, sizeof *safetensors);
    parse.size = file_size - parse.begin;
    if (file_size > PSTK__ARRAY_FILE_MAX)
        FAIL(&parse, PSTK_EFBIG, "%s has %llu bytes; must be at most 16 TiB: split it", name,
             (unsigned long long)file_size);
    else if (head_size == 0 || head[0] != '{' ||
             !pstk__json_walk_begin(&walk, head, head + head_size, '{'))
        damaged(&parse, "it does not begin with '{'");
    while (parse.code == 0 && more > 0) {
        more = pstk__json_walk_next(&walk, &key, &value);
        if (more < 0)
            damaged(&parse, "it is not JSON");
        else if (more > 0)
            read_pair(&parse, &key, &value);
    }
    if (parse.code == 0 && walk.at != walk.end)
        damaged(&parse, "other bytes follow its object");
    if (parse.code == 0)
        check_offsets(&parse);
    return parse.code;
}
