/* SPDX-License-Identifier: Apache-2.0 */
#include "inputs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "message.h"
#include "pack_id.h"

/* Add the name, the size and the time of a file. 0, or -1: it cannot be looked at. */
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

/* Add the files of a folder; folders in it, and .penstock among them, are left out. */
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
        r = add_file(hash, inputs->src, inputs->tree->files[inputs->first + i].path);
    return r;
}

char *inputs_note(const struct inputs *inputs, const char *note)
{
    struct pack_hash hash = pack_hash_begin();
    char *text, hex[PACK_ID_SIZE + 1];
    if (add_all(&hash, inputs) < 0)
        return NULL;
    if (asprintf(&text, "%s; inputs %s", note, pack_hash_text(&hash, hex)) < 0)
        message_no_memory();
    return text;
}

static int is_text(const struct json_t *manifest, const char *key, const char *text)
{
    const char *is = json_text(manifest, key);
    return is && text ? strcmp(is, text) == 0 : is == text;
}

const char *inputs_differ(const char *out, const struct pstk_writer_settings *s)
{
    char *path;
    if (asprintf(&path, "%s/manifest.json", out) < 0)
        message_no_memory();
    struct json_t *manifest = json_read(path);
    free(path);
    const char *why = NULL;
    if (!manifest || !is_text(manifest, "pack", s->pack_id) || !s->pack_id)
        why = "it is of another pack";
    else if (s->task ? !is_text(manifest, "task", s->task) ||
                           json_count(manifest, "attempt", 0) != s->attempt
                     : json_count(manifest, "n_parts", 1) != s->n_parts ||
                           json_count(manifest, "part", 0) != s->part)
        why = "it is another part of this pack";
    else if (!strstr(s->note, "; inputs "))
        why = "nobody knows whether its files are the same";
    else if (!is_text(manifest, "note", s->note))
        why = "since then its files, or the options, have changed";
    json_drop(manifest);
    return why;
}
