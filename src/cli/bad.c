/* SPDX-License-Identifier: Apache-2.0 */
#include "bad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "text.h"
#include "unit.h"

void bad_add(struct bad *b, uint64_t number, const char *reason, const char *format)
{
    if ((b->n & (b->n - 1)) == 0) {
        struct bad_file *files = reallocarray(b->files, b->n ? 2 * b->n : 1, sizeof *files);
        if (!files)
            message_no_memory();
        b->files = files;
    }
    char *copy = strdup(reason);
    if (!copy)
        message_no_memory();
    b->files[b->n++] = (struct bad_file){.number = number, .reason = copy, .format = format};
    if (format)
        formats_add(&b->formats, format);
}

/* Print those that are images of another format, or the others. */
static void print_files(const struct bad *b, const struct tree *t, int has_format)
{
    for (uint64_t i = 0; i < b->n; i++) {
        const struct bad_file *file = &b->files[i];
        if ((file->format != NULL) != has_format)
            continue;
        char *path = text_copy(t->files[file->number].path), *reason = text_copy(file->reason);
        fprintf(stderr, "  %s: %s\n", path, has_format ? file->format : reason);
        free(path);
        free(reason);
    }
}

void bad_print(const struct bad *b, const struct tree *t, uint64_t n_files)
{
    const uint64_t n_formats = b->formats.n, n_others = b->n - n_formats;
    char n[UNIT_SIZE], all[UNIT_SIZE], list[FORMATS_TEXT];
    unit_count(all, n_files);
    if (n_formats) {
        message_say("%s of %s files %s not packed: %s; convert %s to JPEG or PNG:",
                    unit_count(n, n_formats), all,
                    n_formats == 1 ? "is an image of a format that is"
                                   : "are images of formats that are",
                    formats_text(&b->formats, list), n_formats == 1 ? "it" : "them");
        print_files(b, t, 1);
    }
    if (n_others) {
        message_say("%s of %s files %s:", unit_count(n, n_others), all,
                    n_others == 1 ? "is no readable image" : "are no readable images");
        print_files(b, t, 0);
    }
}

void bad_put(const struct bad *b, const struct tree *t, struct json_t *object)
{
    struct json_t *skipped = json_make_array(), *formats = json_make_object();
    for (uint64_t i = 0; i < b->n; i++) {
        struct json_t *file = json_make_object();
        json_put_text(file, "path", t->files[b->files[i].number].path);
        json_put_text(file, "reason", b->files[i].reason);
        json_put_text(file, "format", b->files[i].format);
        json_append(skipped, file);
    }
    for (uint32_t i = 0; i < b->formats.n_names; i++)
        json_put_count(formats, b->formats.of[i].name, b->formats.of[i].n);
    json_put(object, "skipped", skipped);
    json_put(object, "skipped_formats", formats);
}

void bad_close(struct bad *b)
{
    for (uint64_t i = 0; i < b->n; i++)
        free(b->files[i].reason);
    free(b->files);
    memset(b, 0, sizeof *b);
}
