/* SPDX-License-Identifier: Apache-2.0 */
#include "command/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <penstock/annotations.h>
#include <penstock/foreign.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/status.h"

/* Refuse a file, with the library's advice about it. */
static int refuse_file(const char *path)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (!pstk_find_format(path, &err))
        return message_usage("%s", err.message);
    return message_usage("%s is a file; pack takes a folder of images", path);
}

/* Return 1 when the library knows the folder without images or the matches of a pattern, and its
 * error does more than list the formats. */
static int is_known(const char *path, struct pstk_error *err)
{
    pstk_error_init(err, sizeof *err);
    return !pstk_find_format(path, err) && !strstr(err->message, "must be a directory with");
}

static int refuse_empty(const struct tree *tree, const char *root)
{
    struct pstk_error err;
    char formats[FORMATS_TEXT], hidden[80] = "";
    if (tree->info.n_hidden)
        snprintf(hidden, sizeof hidden, "; %llu name%s with a dot and %s left out",
                 (unsigned long long)tree->info.n_hidden,
                 tree->info.n_hidden == 1 ? " begins" : "s begin",
                 tree->info.n_hidden == 1 ? "is" : "are");
    if (tree->foreign.n)
        return message_usage("%s holds no images that can be packed, only %s; convert them to JPEG "
                             "or PNG%s",
                             root, formats_text(&tree->foreign, formats), hidden);
    if (is_known(root, &err))
        return message_usage("%s", err.message);
    const char *format = pstk_find_format(root, NULL);
    if (format && strcmp(format, "pstk") == 0)
        return message_usage("%s is a data set already; the Python package packs one anew, "
                             "penstock.pack(SRC, OUT)",
                             root);
    return message_usage("%s holds no images: neither it nor its subfolders have a .jpg, .jpeg or "
                         ".png file%s%s",
                         root,
                         tree->by_content      ? ", nor one that begins as such"
                         : tree->info.n_others ? " (--by-content finds images by their first bytes)"
                                               : "",
                         hidden);
}

/* Remove the errno's number; the message has its text already. */
static void drop_errno(struct pstk_error *err)
{
    char tail[32];
    snprintf(tail, sizeof tail, " (errno %d)", (int)err->native);
    const size_t size = strlen(err->message), n = strlen(tail);
    if (size >= n && strcmp(err->message + size - n, tail) == 0)
        err->message[size - n] = 0;
}

/* Refuse a source that the library could not read. */
static int refuse(struct pstk_error *err, const char *root)
{
    struct pstk_error known;
    struct stat st;
    char advice[MESSAGE_ADVICE_SIZE];
    if (err->code == PSTK_ECANCELED)
        return interrupt_say("nothing was packed");
    if (err->code == PSTK_ENOMEM && !err->native)
        message_no_memory();
    const int is_there = stat(root, &st) == 0;
    if (is_there && !S_ISDIR(st.st_mode))
        return refuse_file(root);
    if (!is_there && err->native == ENOENT && strpbrk(root, "*?{") && is_known(root, &known))
        return message_usage("%s", known.message);
    drop_errno(err);
    message_say("%s%s", err->message, message_advice(err->native, advice));
    return err->native ? status_of_path(err->native) : status_of_code(err->code);
}

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    (void)user;
    (void)n_done;
    (void)n_total;
    return interrupt_seen();
}

/* Copy the counts and names that the library found. */
static void list(struct tree *tree)
{
    const char *name;
    uint64_t n;
    pstk_image_folder_get_info(tree->folder, &tree->info);
    tree->n_files = tree->info.n_images;
    tree->classes = calloc(tree->info.n_classes + 1, sizeof *tree->classes);
    if (!tree->classes)
        message_no_memory();
    for (uint64_t i = 0; i < tree->info.n_classes; i++)
        tree->classes[i] = pstk_image_folder_class(tree->folder, i);
    for (uint32_t i = 0; (name = pstk_image_folder_foreign(tree->folder, i, &n)); i++)
        formats_add(&tree->foreign, name, n);
}

int tree_scan(struct tree *tree, const char *root, const char *out)
{
    const struct pstk_image_folder_settings s = {.size = sizeof s,
                                                 .by_content = (uint32_t)tree->by_content,
                                                 .path = root,
                                                 .skip_path = out,
                                                 .on_progress = on_progress};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    tree->info.size = sizeof tree->info;
    if (pstk_image_folder_open(&tree->folder, &s, &err) < 0)
        return refuse(&err, root);
    list(tree);
    return tree->n_files ? 0 : refuse_empty(tree, root);
}

void tree_list(struct tree *tree, const struct pstk_annotations *annotations, uint64_t n_files)
{
    tree->annotations = annotations;
    tree->n_files = n_files;
}

int tree_has_files(const struct tree *tree)
{
    return tree->folder || tree->annotations;
}

const char *tree_path(const struct tree *tree, uint64_t i, uint32_t *number)
{
    if (tree->folder)
        return pstk_image_folder_path(tree->folder, i, number);
    if (number)
        *number = 0;
    return pstk_annotations_file(tree->annotations, i);
}

void tree_close(struct tree *tree)
{
    pstk_image_folder_close(&tree->folder);
    free(tree->classes);
    memset(tree, 0, sizeof *tree);
}
