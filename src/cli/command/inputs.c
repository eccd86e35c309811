/* SPDX-License-Identifier: Apache-2.0 */
#include "command/inputs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command/pack_id.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"

/* The end of a note: INPUTS, digits, OPTIONS, N_OPTIONS digits, and one of enum inputs_tolerated.
 */
#define INPUTS "; inputs "
#define OPTIONS " options "
#define N_OPTIONS (PACK_ID_SIZE - 1)
#define N_END (sizeof INPUTS - 1 + sizeof OPTIONS - 1 + PACK_ID_SIZE + N_OPTIONS + 1)
#define WHICH_TEXT 256 /* bytes; a task has at most 200 */

/* Add the name, the size and the time of a file. 0, or -1: it cannot be examined. */
static int add_file(struct pack_hash *hash, const char *folder, const char *name)
{
    struct stat st;
    char *path, text[80];
    if (asprintf(&path, "%s%s%s", folder, folder[0] ? "/" : "", name) < 0)
        message_no_memory();
    const int r = stat(path, &st);
    free(path);
    if (r < 0)
        return -1;
    snprintf(text, sizeof text, "%lld %lld.%09ld", (long long)st.st_size,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    pack_hash_add(hash, name);
    pack_hash_add(hash, text);
    return 0;
}

/* Add the files of a folder. Its subfolders and .penstock are left out. */
static int add_folder(struct pack_hash *hash, const char *folder)
{
    struct dirent **names;
    const int n = scandir(folder, &names, NULL, alphasort);
    int r = n < 0 ? -1 : 0;
    for (int i = 0; i < n; i++) {
        if (r == 0 && names[i]->d_name[0] != '.' && names[i]->d_type != DT_DIR)
            r = add_file(hash, folder, names[i]->d_name);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return r;
}

static int add_all(struct pack_hash *hash, const struct inputs *inputs)
{
    struct stat st;
    int r = 0;
    if (inputs->annotations)
        r = add_file(hash, "", inputs->annotations);
    if (inputs->identity) {
        pack_hash_add(hash, inputs->identity);
        if (stat(inputs->src, &st) < 0) /* a pattern */
            return -1;
        return S_ISDIR(st.st_mode) ? add_folder(hash, inputs->src)
                                   : add_file(hash, "", inputs->src);
    }
    for (uint64_t i = 0; r == 0 && i < inputs->n; i++)
        r = add_file(hash, inputs->src, tree_path(inputs->tree, inputs->first + i, NULL));
    return r;
}

/* Add the label of each file. */
static void add_names(struct pack_hash *hash, const struct pstk_writer_settings *s)
{
    for (uint64_t i = 0; i < s->n_names; i++)
        pack_hash_add(hash, s->names[i]);
}

static void add_field(struct pack_hash *hash, const struct pstk_field *field)
{
    pack_hash_add(hash, field->name);
    pack_hash_add_number(hash, field->kind);
    pack_hash_add_number(hash, field->dtype);
    pack_hash_add_number(hash, field->codec);
    pack_hash_add_number(hash, (uint64_t)field->codec_level);
    for (uint32_t i = 0; i < field->n_dims; i++)
        pack_hash_add_number(hash, field->shape[i]);
}

/* Add the options that change a part, except those that the note states in words. */
static void add_options(struct pack_hash *hash, const struct fields *reading,
                        const struct pstk_writer_settings *s)
{
    pack_hash_add_number(hash, s->shard_size);
    pack_hash_add_number(hash, s->columns);
    for (uint32_t i = 0; i < s->n_fields; i++)
        add_field(hash, &s->fields[i]);
    pack_hash_add_number(hash, reading->split_at);
    for (uint32_t i = 0; i < reading->n_first_of; i++) {
        pack_hash_add(hash, reading->first_of[i].name);
        pack_hash_add(hash, reading->first_of[i].suffixes);
    }
    for (uint32_t i = 0; i < reading->n_defaults; i++) {
        const uint8_t *data = reading->defaults[i].data;
        pack_hash_add(hash, reading->defaults[i].name);
        for (uint64_t k = 0; k < reading->defaults[i].size; k++)
            pack_hash_add_number(hash, data[k]);
    }
}

char *inputs_note(const struct inputs *inputs, const struct pstk_writer_settings *s)
{
    struct pack_hash files = pack_hash_begin(), options = pack_hash_begin();
    char *text, hex[2][PACK_ID_SIZE + 1];
    if (add_all(&files, inputs) < 0)
        return NULL;
    add_names(&files, s);
    add_options(&options, inputs->reading, s);
    if (asprintf(&text, "%s" INPUTS "%s" OPTIONS "%.*s%x", s->note, pack_hash_text(&files, hex[0]),
                 N_OPTIONS, pack_hash_text(&options, hex[1]), inputs->tolerated) < 0)
        message_no_memory();
    return text;
}

/* The parts of the end of a note from inputs_note. Borrows. */
struct end {
    const char *inputs, *options; /* PACK_ID_SIZE and N_OPTIONS digits */
    unsigned tolerated;
    size_t n_before; /* bytes of the note before the end */
};

/* Find the end of a note. 0: it has none. */
static int find_end(const char *note, struct end *end)
{
    const size_t n = note ? strlen(note) : 0;
    if (n < N_END || strncmp(note + n - N_END, INPUTS, strlen(INPUTS)) != 0)
        return 0;
    end->n_before = n - N_END;
    end->inputs = note + end->n_before + strlen(INPUTS);
    end->options = end->inputs + PACK_ID_SIZE + strlen(OPTIONS);
    return sscanf(end->options + N_OPTIONS, "%1x", &end->tolerated) == 1;
}

/* Return the difference between the notes of two parts; NULL: there is none. */
static const char *notes_differ(const char *is, const char *asked)
{
    struct end a, b;
    if (!find_end(is, &a) || !find_end(asked, &b))
        return "whether its files are the same is not known";
    if (a.n_before != b.n_before || strncmp(is, asked, a.n_before) != 0 ||
        strncmp(a.options, b.options, N_OPTIONS) != 0)
        return "it was packed with other options";
    if (strncmp(a.inputs, b.inputs, PACK_ID_SIZE) != 0)
        return "its files have changed since then";
    unsigned only = a.tolerated & ~b.tolerated;
    /* A pack that left bad files out may have left out files that the other option takes. */
    if (!only && a.tolerated & INPUTS_SKIP_BAD && a.tolerated != b.tolerated)
        only = INPUTS_SKIP_BAD;
    return only & INPUTS_SKIP_BAD  ? "it was packed with --skip-bad"
           : only & INPUTS_DAMAGED ? "it was packed with --damaged accept"
                                   : NULL;
}

/* The part of a pack that a data set is. */
struct which {
    uint64_t part, n_parts; /* n_parts is ignored if there is a task */
    const char *task;       /* NULL: none */
    uint64_t attempt;
};

static int is_same(const struct which *a, const struct which *b)
{
    if (a->task || b->task)
        return a->task && b->task && strcmp(a->task, b->task) == 0 && a->attempt == b->attempt;
    return a->n_parts == b->n_parts && a->part == b->part;
}

static const char *which_text(const struct which *which, char text[WHICH_TEXT])
{
    if (which->task)
        snprintf(text, WHICH_TEXT, "attempt %" PRIu64 " at the task %s", which->attempt,
                 which->task);
    else
        snprintf(text, WHICH_TEXT, "part %" PRIu64 " of %" PRIu64, which->part, which->n_parts);
    return text;
}

/* Refuse a part of a pack that lies where another one was requested. */
static int refuse_other(const char *out, const struct which *is, const struct which *asked)
{
    char a[WHICH_TEXT], b[WHICH_TEXT];
    const int counts_differ = !is->task && !asked->task && is->n_parts != asked->n_parts;
    return message_usage("%s holds %s of this pack, and this is %s; choose another directory%s "
                         "(--overwrite replaces %s)",
                         out, which_text(is, a), which_text(asked, b),
                         counts_differ ? ", and pack all parts with one count" : "", a);
}

/* Keep the first bad file and stop; pstk_dataset_check's on_bad. */
static int keep_bad(void *user, const struct pstk_error *bad)
{
    *(struct pstk_error *)user = *bad;
    return 1;
}

/* Check the size and the header of each file of a part. */
static int check_files(const char *out)
{
    struct pstk_dataset *dataset;
    struct pstk_error err, bad = {0};
    pstk_error_init(&err, sizeof err);
    const int r = pstk_dataset_open(&dataset, out, NULL, &err);
    if (r == PSTK_ENODATA) /* an empty part has no files */
        return 0;
    if (r < 0)
        return status_refuse(&err, out);
    pstk_dataset_check(dataset, keep_bad, &bad, NULL);
    pstk_dataset_close(&dataset);
    return bad.code ? message_usage("%s holds this part, but not whole (--overwrite packs it "
                                    "again): %s",
                                    out, bad.message)
                    : 0;
}

int inputs_check(const char *out, const struct pstk_writer_settings *s)
{
    char *path;
    if (asprintf(&path, "%s/manifest.json", out) < 0)
        message_no_memory();
    struct json_t *manifest = json_read(path);
    free(path);
    const char *pack_id = json_text(manifest, "pack"), *why = NULL;
    const struct which asked = {s->part, s->n_parts, s->task, s->attempt};
    const struct which is = {json_count(manifest, "part", 0), json_count(manifest, "n_parts", 1),
                             json_text(manifest, "task"), json_count(manifest, "attempt", 0)};
    int status = 0;
    if (!pack_id || !s->pack_id || strcmp(pack_id, s->pack_id) != 0)
        why = "it is of another pack";
    else if (!is_same(&is, &asked))
        status = refuse_other(out, &is, &asked);
    else
        why = notes_differ(json_text(manifest, "note"), s->note);
    json_drop(manifest);
    if (why)
        status = message_usage("%s is a data set already: %s; --overwrite replaces it", out, why);
    return status ? status : check_files(out);
}
