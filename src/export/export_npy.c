/* SPDX-License-Identifier: Apache-2.0 */
/* export_npy: a file FIELD.npy for each field; row i of it is sample i. */
#include "base/error.h"
#include "export/array.h"
#include "export/export.h"
#include "record/value.h"

#include <stdio.h>
#include <stdlib.h>

struct npy {
    struct pstk__export *export;                  /* borrowed */
    struct pstk__out_file files[PSTK_MAX_FIELDS]; /* one for each field */
};

static const char *refuse(const struct pstk__export *e, uint32_t i)
{
    const struct pstk_field *field = &e->fields[i];
    if (!pstk__array_is(field))
        return field->kind == PSTK_FIELD_IMAGE || field->kind == PSTK_FIELD_MASK
                   ? "is an image, but an array holds numbers"
                   : "is neither a number nor an array of numbers";
    return pstk__value_n_variable(field) > 0
               ? "has values of different sizes, but the rows of an array have one size"
               : NULL;
}

static int open_arrays(void **state, struct pstk__export *e, struct pstk_error *err)
{
    struct npy *npy = *state = calloc(1, sizeof *npy);
    if (!npy)
        return pstk__export_no_memory(e, err);
    npy->export = e;
    return 0;
}

static int begin_file(struct npy *npy, uint32_t i, struct pstk_error *err)
{
    const struct pstk_field *field = &npy->export->fields[i];
    struct pstk__bytes head = {0};
    char name[PSTK_MAX_NAME + 8];
    uint64_t shape[1 + PSTK_MAX_DIMS] = {npy->export->n_samples};
    for (uint32_t k = 0; k < field->n_dims; k++)
        shape[1 + k] = field->shape[k];
    pstk__array_npy_head(&head, field->dtype, shape, 1 + field->n_dims);
    snprintf(name, sizeof name, "%s.npy", field->name);
    int r = head.failed ? pstk__export_no_memory(npy->export, err)
                        : pstk__outdir_create(&npy->export->files, &npy->files[i], name, err);
    if (r == 0)
        r = pstk__out_file_put(&npy->files[i], head.data, head.size, err);
    pstk__bytes_free(&head);
    return r;
}

static int begin(void *state, struct pstk_error *err)
{
    struct npy *npy = state;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < npy->export->n_fields; i++)
        r = begin_file(npy, i, err);
    return r;
}

static int add(void *state, const struct pstk__export_sample *sample, struct pstk_error *err)
{
    struct npy *npy = state;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < npy->export->n_fields; i++)
        r = pstk__out_file_put(&npy->files[i], sample->values[i].data, sample->values[i].size, err);
    return r;
}

static int commit(void *state, struct pstk_error *err)
{
    struct npy *npy = state;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < npy->export->n_fields; i++)
        r = pstk__out_file_end(&npy->files[i], 1, err);
    return r;
}

static void abort_arrays(void *state)
{
    struct npy *npy = state;
    for (uint32_t i = 0; npy && i < PSTK_MAX_FIELDS; i++)
        pstk__out_file_drop(&npy->files[i]);
    free(npy);
}

const struct pstk__export_target pstk__export_npy = {
    .target = PSTK_EXPORT_NPY,
    .name = "npy",
    .one = "a row of arrays",
    .refuse = refuse,
    .open = open_arrays,
    .begin = begin,
    .add = add,
    .commit = commit,
    .abort = abort_arrays,
};
