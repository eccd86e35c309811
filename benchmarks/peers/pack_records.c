/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_records OUT SIZE: make the data set OUT of the records of SIZE bytes on standard input.
 *
 * Built and run by peer_penstock.py, so that penstock reads the same records as its peers.
 */
#include <penstock/format.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what, const struct pstk_error *err)
{
    fprintf(stderr, "pack_records: %s: %s\n", what, err->message);
    return 1;
}

int main(int argc, char **argv)
{
    unsigned long size = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    unsigned char *record = malloc(size);
    if (!record || size == 0 || size > UINT32_MAX)
        return fprintf(stderr, "usage: pack_records OUT SIZE < RECORDS\n"), 2;
    struct pstk_field field = {.name = "bytes",
                               .kind = PSTK_FIELD_NDARRAY,
                               .dtype = PSTK_U8,
                               .n_dims = 1,
                               .shape = {(uint32_t)size}};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = argv[1];
    s.fields = &field;
    s.n_fields = 1;
    if (pstk_writer_open(&w, &s, &err) < 0)
        return fail("open", &err);
    while (fread(record, 1, size, stdin) == size) {
        struct pstk_value value = {record, size};
        if (pstk_writer_add(w, &value, 1, &err) < 0)
            return fail("add", &err);
    }
    if (pstk_writer_commit(&w, &err) < 0)
        return fail("commit", &err);
    free(record);
    return 0;
}
