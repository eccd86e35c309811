/* SPDX-License-Identifier: Apache-2.0 */
#include "format/arrays/container.h"

#include "base/error.h"
#include "format/arrays/npy.h"
#include "format/arrays/safetensors.h"
#include "format/arrays/zip.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NPY_SUFFIX ".npy"
#define LABEL_SIZE 512

static const char *const suffixes[PSTK__CONTAINER_N] = {
    [PSTK__CONTAINER_NPY] = NPY_SUFFIX,
    [PSTK__CONTAINER_NPZ] = ".npz",
    [PSTK__CONTAINER_SAFETENSORS] = ".safetensors",
};

static int ends_in(const char *text, uint64_t size, const char *suffix)
{
    const size_t n = strlen(suffix);
    return size >= n && memcmp(text + size - n, suffix, n) == 0;
}

enum pstk__container_kind pstk__container_of(const char *name)
{
    const size_t n = strlen(name);
    for (enum pstk__container_kind kind = PSTK__CONTAINER_NPY; kind < PSTK__CONTAINER_N; kind++)
        if (name[0] != '.' && n > strlen(suffixes[kind]) && ends_in(name, n, suffixes[kind]))
            return kind;
    return PSTK__CONTAINER_NONE;
}

const char *pstk__container_name(enum pstk__container_kind kind)
{
    return suffixes[kind] ? suffixes[kind] + 1 : "";
}

/* ---- reading --------------------------------------------------------------------------------- */

static int no_memory(const struct pstk__container *container, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", container->path);
}

/* Read up to `size` bytes at `offset`. Returns their number, fewer at the end of the file, or <0.
 */
static int64_t read_up_to(const struct pstk__container *container, void *buffer, uint64_t size,
                          uint64_t offset, struct pstk_error *err)
{
    const uint64_t left = offset < container->size ? container->size - offset : 0;
    const int64_t n = pstk__file_read(container->file, buffer, size < left ? size : left, offset);
    return n >= 0
               ? n
               : pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", container->path);
}

/* Add a field of this file, without array and cover. NULL: there are too many. */
static struct pstk__array_field *add_field(const struct pstk__container *container,
                                           struct pstk__array_fields *fields, const char *name,
                                           uint64_t size, struct pstk_error *err)
{
    if (fields->n == PSTK_MAX_FIELDS) {
        pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                   "%s: this file brings the data set to more than %d arrays, the limit; save some "
                   "of them to another directory",
                   container->path, PSTK_MAX_FIELDS);
        return NULL;
    }
    struct pstk__array_field *field = &fields->fields[fields->n++];
    *field = (struct pstk__array_field){.file = container->number};
    memcpy(field->name, name, size);
    return field;
}

/* ---- .npy ------------------------------------------------------------------------------------ */

/* Parse the head of an array that fills `size` bytes at `offset`. */
static int read_npy_at(const struct pstk__container *container, uint64_t offset, uint64_t size,
                       const char *label, struct pstk__array *array, struct pstk_error *err)
{
    uint8_t *head = malloc(PSTK__NPY_HEADER_MAX);
    if (!head)
        return no_memory(container, err);
    const int64_t n = read_up_to(
        container, head, size < PSTK__NPY_HEADER_MAX ? size : PSTK__NPY_HEADER_MAX, offset, err);
    const int rc = n < 0 ? (int)n : pstk__npy_header_parse(array, head, (uint64_t)n, label, err);
    free(head);
    if (rc < 0)
        return rc;
    if (size < array->end)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is cut short: it has %" PRIu64 " bytes; its array needs %" PRIu64
                          ": write it again",
                          label, size, array->end);
    if (size > array->end)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s has %" PRIu64
                          " bytes after its array; must hold one array only: write it again",
                          label, size - array->end);
    array->offset += offset;
    array->end += offset;
    return 0;
}

static int read_npy(const struct pstk__container *container, struct pstk__array_fields *fields,
                    struct pstk_error *err)
{
    const uint64_t n = strlen(container->name) - strlen(NPY_SUFFIX);
    if (!pstk__array_name_ok(container->name, n))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s: its name is not the name of a field; must be 1 to %d of A-Z a-z 0-9 "
                          "_ . - before .npy: rename it",
                          container->path, PSTK_MAX_NAME - 1);
    struct pstk__array_field *field = add_field(container, fields, container->name, n, err);
    return field ? read_npy_at(container, 0, container->size, container->path, &field->array, err)
                 : PSTK_ENOTSUP;
}

/* ---- .npz ------------------------------------------------------------------------------------ */

/* An archive that is read. */
struct npz {
    const struct pstk__container *container;
    struct pstk__zip zip;
    uint32_t n;
    struct pstk__zip_member members[PSTK_MAX_FIELDS]; /* members that are arrays */
    uint8_t *directory;                               /* owned */
    uint8_t *buffer;                                  /* owned; PSTK__ZIP_LOCAL_MAX bytes */
};

_Static_assert(PSTK__ZIP_LOCAL_MAX >= PSTK__ZIP_TAIL_MAX, "one buffer for both");

static int read_directory(struct npz *npz, struct pstk_error *err)
{
    const struct pstk__container *container = npz->container;
    const uint64_t size =
        container->size < PSTK__ZIP_TAIL_MAX ? container->size : PSTK__ZIP_TAIL_MAX;
    int64_t n = read_up_to(container, npz->buffer, size, container->size - size, err);
    int rc = n < 0 ? (int)n
                   : pstk__zip_end_parse(&npz->zip, npz->buffer, (uint64_t)n,
                                         container->size - size + (uint64_t)n);
    if (rc < 0)
        return rc;
    npz->directory = malloc(npz->zip.directory_size + 1);
    if (!npz->directory)
        return no_memory(container, err);
    n = read_up_to(container, npz->directory, npz->zip.directory_size, npz->zip.directory_offset,
                   err);
    if (n >= 0 && (uint64_t)n != npz->zip.directory_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s became shorter while it was opened; open it again", container->path);
    pstk__zip_begin(&npz->zip, npz->directory);
    return n < 0 ? (int)n : 0;
}

/* Collect the members that are arrays, and ignore the others. */
static int find_members(struct npz *npz, struct pstk_error *err)
{
    struct pstk__zip_member member;
    int rc;
    while ((rc = pstk__zip_next(&npz->zip, &member)) > 0) {
        char shown[80];
        const uint64_t n =
            member.name_size - strlen(NPY_SUFFIX); /* used only if the name has the suffix */
        if (!ends_in(member.name, member.name_size, NPY_SUFFIX))
            continue;
        if (!pstk__array_name_ok(member.name, n))
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "%s: member %s: its name is not the name of a field; must be 1 to %d "
                              "of A-Z a-z 0-9 _ . - before .npy: numpy.savez(FILE, NAME=array)",
                              npz->container->path, pstk__zip_shown(&member, shown),
                              PSTK_MAX_NAME - 1);
        if (npz->n == PSTK_MAX_FIELDS)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "%s has more than %d arrays, the most that a data set may have; save "
                              "some to another directory",
                              npz->container->path, PSTK_MAX_FIELDS);
        npz->members[npz->n++] = member;
    }
    return rc;
}

static int read_locals(struct npz *npz, struct pstk_error *err)
{
    for (uint32_t i = 0; i < npz->n; i++) {
        struct pstk__zip_member *member = &npz->members[i];
        const uint64_t left = npz->zip.directory_offset - member->local_offset;
        const int64_t n = read_up_to(npz->container, npz->buffer,
                                     left < PSTK__ZIP_LOCAL_MAX ? left : PSTK__ZIP_LOCAL_MAX,
                                     member->local_offset, err);
        const int rc =
            n < 0 ? (int)n : pstk__zip_local_parse(&npz->zip, member, npz->buffer, (uint64_t)n);
        if (rc < 0)
            return rc;
    }
    return pstk__zip_check_overlaps(&npz->zip, npz->members, npz->n);
}

static int read_members(struct npz *npz, struct pstk__array_fields *fields, struct pstk_error *err)
{
    for (uint32_t i = 0; i < npz->n; i++) {
        const struct pstk__zip_member *member = &npz->members[i];
        const uint64_t n = member->name_size - strlen(NPY_SUFFIX);
        struct pstk__array_field *field = add_field(npz->container, fields, member->name, n, err);
        if (!field)
            return PSTK_ENOTSUP;
        char label[LABEL_SIZE];
        snprintf(label, sizeof label, "%s: array %s", npz->container->path, field->name);
        field->cover = (struct pstk__cover){.file = npz->container->number,
                                            .crc32 = member->crc32,
                                            .offset = member->offset,
                                            .size = member->size};
        const int rc =
            read_npy_at(npz->container, member->offset, member->size, label, &field->array, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_npz(const struct pstk__container *container, struct pstk__array_fields *fields,
                    struct pstk_error *err)
{
    struct npz *npz = calloc(1, sizeof *npz);
    if (!npz)
        return no_memory(container, err);
    npz->container = container;
    npz->zip = (struct pstk__zip){.name = container->path, .err = err};
    npz->buffer = malloc(PSTK__ZIP_LOCAL_MAX);
    int rc = npz->buffer ? read_directory(npz, err) : no_memory(container, err);
    if (rc == 0)
        rc = find_members(npz, err);
    if (rc == 0)
        rc = read_locals(npz, err);
    if (rc == 0)
        rc = read_members(npz, fields, err);
    free(npz->buffer);
    free(npz->directory);
    free(npz);
    return rc;
}

/* ---- .safetensors ---------------------------------------------------------------------------- */

static int add_tensors(const struct pstk__container *container,
                       const struct pstk__safetensors *safetensors,
                       struct pstk__array_fields *fields, struct pstk_error *err)
{
    for (uint32_t i = 0; i < safetensors->n; i++) {
        const char *name = safetensors->tensors[i].name;
        struct pstk__array_field *field = add_field(container, fields, name, strlen(name), err);
        if (!field)
            return PSTK_ENOTSUP;
        field->array = safetensors->tensors[i].array;
    }
    return 0;
}

/* Read the JSON, of head_size bytes, into `head`, and parse it. */
static int read_head(const struct pstk__container *container, char *head, uint64_t head_size,
                     struct pstk__safetensors *safetensors, struct pstk_error *err)
{
    const int64_t n = read_up_to(container, head, head_size, PSTK__SAFETENSORS_BEFORE, err);
    if (n < 0)
        return (int)n;
    if ((uint64_t)n != head_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s became shorter while it was opened; open it again", container->path);
    return pstk__safetensors_parse(safetensors, head, head_size, container->size, container->path,
                                   err);
}

static int read_safetensors(const struct pstk__container *container,
                            struct pstk__array_fields *fields, struct pstk_error *err)
{
    uint8_t before[PSTK__SAFETENSORS_BEFORE];
    uint64_t head_size;
    const int64_t n = read_up_to(container, before, sizeof before, 0, err);
    int rc = n < 0 ? (int)n
                   : pstk__safetensors_head_size(&head_size, before, (uint64_t)n, container->size,
                                                 container->path, err);
    if (rc < 0)
        return rc;
    char *head = malloc(head_size + 1);
    struct pstk__safetensors *safetensors = malloc(sizeof *safetensors);
    rc = head && safetensors ? read_head(container, head, head_size, safetensors, err)
                             : no_memory(container, err);
    if (rc == 0)
        rc = add_tensors(container, safetensors, fields, err);
    free(head);
    free(safetensors);
    return rc;
}

int pstk__container_read(const struct pstk__container *container, struct pstk__array_fields *fields,
                         struct pstk_error *err)
{
    const uint32_t before = fields->n;
    int rc;
    if (container->kind == PSTK__CONTAINER_NPY)
        return read_npy(container, fields, err);
    if (container->size > PSTK__ARRAY_FILE_MAX)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%s has %" PRIu64 " bytes; must be at most 16 TiB: split it",
                          container->path, container->size);
    rc = container->kind == PSTK__CONTAINER_NPZ ? read_npz(container, fields, err)
                                                : read_safetensors(container, fields, err);
    if (rc == 0 && fields->n == before)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s contains no arrays; remove it, or write it again with arrays",
                          container->path);
    return rc;
}
