/* SPDX-License-Identifier: Apache-2.0 */
/* cache: shows or empties the folder of files that can be made again. */
#include <stdio.h>
#include <string.h>

#include <penstock/foreign.h>

#include "command.h"
#include "option/opening.h"
#include "option/options.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

enum { OPT_CHECKSUMS = 256, OPT_CLEAR, OPT_JSON };

static const struct option_row table[] = {
    {.name = "checksums",
     .code = OPT_CHECKSUMS,
     .text = "with --clear: also remove the checksums that `penstock verify` kept"},
    {.name = "clear",
     .code = OPT_CLEAR,
     .text = "remove all entries, indexes and rewritten tables, but neither checksums nor files "
             "that are being written"},
    OPTION_JSON("print one JSON object"),
    OPTION_END};

static int print_json(const char *path, const struct pstk_cache_info *info, int cleared)
{
    struct json_t *object = json_make_object();
    json_put_text(object, "path", path);
    json_put_bool(object, "cleared", cleared);
    json_put_count(object, "n_entries", info->n_entries);
    json_put_count(object, "bytes", info->bytes);
    json_put_count(object, "n_indexes", info->n_indexes);
    json_put_count(object, "index_bytes", info->index_bytes);
    json_put_count(object, "n_checksums", info->n_checksums);
    json_put_count(object, "checksum_bytes", info->checksum_bytes);
    if (!cleared) {
        json_put_count(object, "n_writing", info->n_writing);
        json_put_count(object, "writing_bytes", info->writing_bytes);
        json_put_count(object, "max_bytes", info->max_bytes);
        json_put_count(object, "free_bytes", info->free_bytes);
    }
    return json_print(object, STATUS_OK);
}

/* Print a row: a number of files, and their bytes. */
static void print_row(const char *what, uint64_t n, uint64_t size)
{
    char count[UNIT_SIZE], bytes[UNIT_SIZE];
    printf("  %-9s %10s   %s\n", what, unit_count(count, n), unit_bytes(bytes, (double)size));
}

static int print(const char *path, const struct pstk_cache_info *info, int is_auto)
{
    char bytes[UNIT_SIZE];
    text_print(stdout, path);
    putchar('\n');
    print_row("entries", info->n_entries, info->bytes);
    if (info->n_writing > 0)
        print_row("unready", info->n_writing, info->writing_bytes);
    print_row("indexes", info->n_indexes, info->index_bytes);
    if (info->n_checksums > 0)
        print_row("checksums", info->n_checksums, info->checksum_bytes);
    if (info->max_bytes == PSTK_NONE)
        printf("  limit     half of the free disk; there is no such folder yet\n");
    else
        printf("  limit     %10s   for entries%s\n", unit_bytes(bytes, (double)info->max_bytes),
               is_auto ? ": half of the free disk (set PENSTOCK_CACHE_SIZE)" : "");
    if (info->free_bytes != PSTK_NONE)
        printf("  free      %10s   on that disk\n", unit_bytes(bytes, (double)info->free_bytes));
    return message_finish(STATUS_OK);
}

/* Print the checksums that were not removed, for people; nothing if there are none. */
static void print_kept(const char *path)
{
    struct pstk_cache_info left = {.size = sizeof left};
    char n[UNIT_SIZE];
    if (pstk_cache_get_info(path, 1, &left, NULL) == 0 && left.n_checksums > 0)
        printf("  %s file%s of checksums stay%s: `penstock verify --checksums` kept them, and "
               "without\n"
               "  them nothing shows whether data has changed since. To remove them as well: "
               "--clear --checksums\n",
               unit_count(n, left.n_checksums), left.n_checksums == 1 ? "" : "s",
               left.n_checksums == 1 ? "s" : "");
}

static int clear(const char *path, int with_checksums, int json)
{
    struct pstk_cache_info removed = {.size = sizeof removed};
    struct pstk_error err;
    char n[UNIT_SIZE], more[UNIT_SIZE], bytes[UNIT_SIZE];
    pstk_error_init(&err, sizeof err);
    if (pstk_cache_clear(path, (uint32_t)with_checksums, &removed, &err) < 0)
        return status_refuse(&err, path);
    if (json)
        return print_json(path, &removed, 1);
    text_print(stdout, path);
    printf(": removed %s %s and %s index%s", unit_count(n, removed.n_entries),
           removed.n_entries == 1 ? "entry" : "entries", unit_count(more, removed.n_indexes),
           removed.n_indexes == 1 ? "" : "es");
    if (removed.n_checksums > 0)
        printf(" and %s file%s of checksums", unit_count(n, removed.n_checksums),
               removed.n_checksums == 1 ? "" : "s");
    printf(", %s\n", unit_bytes(bytes, (double)(removed.bytes + removed.index_bytes +
                                                removed.checksum_bytes)));
    if (!with_checksums)
        print_kept(path);
    return message_finish(STATUS_OK);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct pstk_cache_info info = {.size = sizeof info};
    struct pstk_error err;
    char own[OPENING_PATH_SIZE];
    int c, is_cleared = 0, with_checksums = 0, json = 0;
    while ((c = options_next(&options)) > 0)
        *(c == OPT_CLEAR ? &is_cleared : c == OPT_CHECKSUMS ? &with_checksums : &json) = 1;
    if (c < 0 || options_operands(&options, 0, 1, "FOLDER") < 0)
        return options.status;
    if (with_checksums && !is_cleared)
        return message_usage("--checksums goes with --clear alone");
    opening_find_cache(own);
    const char *path = options_n_operands(&options) ? options_operand(&options, 0) : own;
    if (!path[0])
        return message_usage(
            "there is no folder for a cache: set PENSTOCK_CACHE, XDG_CACHE_HOME or "
            "HOME, or name one");
    if (is_cleared)
        return clear(path, with_checksums, json);
    const uint64_t size = opening_cache_size();
    pstk_error_init(&err, sizeof err);
    if (pstk_cache_get_info(path, size, &info, &err) < 0)
        return status_refuse(&err, path);
    return json ? print_json(path, &info, 0) : print(path, &info, size == 0);
}

const struct command command_cache = {
    .name = "cache",
    .summary = "print what the cache folder holds, or empty it",
    .operands = "[FOLDER]",
    .text = "Print the contents of the cache folder: the number of entries, indexes and checksums, "
            "their bytes, and how many bytes entries may have. FOLDER is $PENSTOCK_CACHE, or "
            "penstock in $XDG_CACHE_HOME, or ~/.cache/penstock; name another where programs set "
            "cache_path.\n\nEntries are files that were unpacked, once for all processes; they may "
            "have $PENSTOCK_CACHE_SIZE bytes together (500M, 2T), else half of what the disk has "
            "free. The least recently used entry is removed first. Indexes list the samples of "
            "data whose own folder cannot be written to, and next to them are the access points of "
            "compressed files, and rewritten Parquet tables of images. penstock makes all of these "
            "again when it needs them. After a removal, programs that have a data set open go on, "
            "except programs that read compressed files by access points, or a Parquet table: "
            "these must open it again.\n\nChecksums that `penstock verify --checksums` keeps of "
            "such data are in the folder too. Without them nothing shows whether the data has "
            "changed since, so --clear alone does not remove them.\n",
    .options = table,
    .examples = "penstock cache\n"
                "penstock cache --clear\n"
                "penstock cache --clear --checksums\n"
                "PENSTOCK_CACHE_SIZE=200G penstock cache /scratch/penstock --json\n",
    .exit_status = "0 printed or emptied; 1 a failing machine; 2 wrong usage, or a folder that is "
                   "not yours",
    .run = run,
};
