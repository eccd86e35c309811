/* SPDX-License-Identifier: Apache-2.0 */
#include "command/bad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/message.h"
#include "ui/text.h"
#include "ui/unit.h"

#define SAMPLE_SIZE 40

/* Return the unescaped path of a file; for a tree without files, the sample: "sample 7". */
static const char *raw_name(const struct tree *tree, uint64_t number, char sample[SAMPLE_SIZE])
{
    snprintf(sample, SAMPLE_SIZE, "sample %llu", (unsigned long long)number);
    return tree_has_files(tree) ? tree_path(tree, number, NULL) : sample;
}

/* Return an owned copy of that name for a terminal. */
static char *name_of(const struct tree *tree, uint64_t number)
{
    char sample[SAMPLE_SIZE];
    char *name = text_copy(raw_name(tree, number, sample));
    if (!name)
        message_no_memory();
    return name;
}

void bad_add(struct bad *bad, uint64_t number, const char *reason, const char *format)
{
    if ((bad->n & (bad->n - 1)) == 0) {
        struct bad_file *files = reallocarray(bad->files, bad->n ? 2 * bad->n : 1, sizeof *files);
        if (!files)
            message_no_memory();
        bad->files = files;
    }
    char *copy = strdup(reason);
    if (!copy)
        message_no_memory();
    bad->files[bad->n++] = (struct bad_file){.number = number, .reason = copy, .format = format};
    if (format)
        formats_add(&bad->formats, format, 1);
}

/* Print the images of another format (has_format 1), or the other files (0). */
static void print_files(const struct bad *bad, const struct tree *tree, int has_format)
{
    for (uint64_t i = 0; i < bad->n; i++) {
        const struct bad_file *file = &bad->files[i];
        if (!!file->format != has_format)
            continue;
        char *path = name_of(tree, file->number), *reason = text_copy(file->reason);
        if (!reason)
            message_no_memory();
        fprintf(stderr, "  %s: %s\n", path, has_format ? file->format : reason);
        free(path);
        free(reason);
    }
}

void bad_print(const struct bad *bad, const struct tree *tree, uint64_t n_files)
{
    const uint64_t n_formats = bad->formats.n, n_others = bad->n - n_formats;
    char n[UNIT_SIZE], all[UNIT_SIZE], list[FORMATS_TEXT];
    unit_count(all, n_files);
    if (n_formats) {
        message_say("%s of %s files %s not packed: %s; convert %s to JPEG or PNG:",
                    unit_count(n, n_formats), all,
                    n_formats == 1 ? "is an image of a format that is"
                                   : "are images of formats that are",
                    formats_text(&bad->formats, list), n_formats == 1 ? "it" : "them");
        print_files(bad, tree, 1);
    }
    if (n_others) {
        if (tree_has_files(tree))
            message_say("%s of %s files %s:", unit_count(n, n_others), all,
                        n_others == 1 ? "is an unreadable image" : "are unreadable images");
        else
            message_say("%s of %s samples cannot be packed:", unit_count(n, n_others), all);
        print_files(bad, tree, 0);
    }
}

void bad_put(const struct bad *bad, const struct tree *tree, struct json_t *object)
{
    struct json_t *skipped = json_make_array(), *formats = json_make_object();
    for (uint64_t i = 0; i < bad->n; i++) {
        struct json_t *file = json_make_object();
        char sample[SAMPLE_SIZE];
        json_put_text(file, "path", raw_name(tree, bad->files[i].number, sample));
        json_put_text(file, "reason", bad->files[i].reason);
        json_put_text(file, "format", bad->files[i].format);
        json_append(skipped, file);
    }
    for (uint32_t i = 0; i < bad->formats.n_names; i++)
        json_put_count(formats, bad->formats.of[i].name, bad->formats.of[i].n);
    json_put(object, "skipped", skipped);
    json_put(object, "skipped_formats", formats);
}

void bad_close(struct bad *bad)
{
    for (uint64_t i = 0; i < bad->n; i++)
        free(bad->files[i].reason);
    free(bad->files);
    memset(bad, 0, sizeof *bad);
}
