/* SPDX-License-Identifier: Apache-2.0 */
/* pack: a folder of images becomes a data set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <penstock/format.h>
#include <penstock/penstock.h>

#include "command.h"
#include "feed.h"
#include "interrupt.h"
#include "json.h"
#include "machine.h"
#include "message.h"
#include "options.h"
#include "progress.h"
#include "tree.h"
#include "unit.h"

#define MAX_THREADS 1024
#define MAX_PARTS 65536

enum {
    OPT_SHARD_SIZE = 256,
    OPT_THREADS,
    OPT_COMPRESS,
    OPT_PART,
    OPT_SKIP_BAD,
    OPT_OVERWRITE,
    OPT_JSON
};

static const struct option table[] = {{"shard-size", required_argument, NULL, OPT_SHARD_SIZE},
                                      {"threads", required_argument, NULL, OPT_THREADS},
                                      {"compress", required_argument, NULL, OPT_COMPRESS},
                                      {"part", required_argument, NULL, OPT_PART},
                                      {"skip-bad", no_argument, NULL, OPT_SKIP_BAD},
                                      {"overwrite", no_argument, NULL, OPT_OVERWRITE},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, 'h'},
                                      OPTION_END};

static const char help[] =
    "usage: penstock pack SRC OUT [options]\n"
    "\n"
    "Pack the images below the folder SRC into the data set OUT (a folder to be made).\n"
    "\n"
    "SRC holds images, or one folder of images for each class, sorted as torchvision's\n"
    "ImageFolder sorts them. Each record has the fields\n"
    "  jpg   the file, byte for byte (JPEG or PNG)\n"
    "  cls   number of the class, from 0 (where SRC has class folders)\n"
    "  key   path of the file below SRC\n"
    "Every image is decoded once, to be sure that it can be. One that cannot is named at the end,\n"
    "and nothing is packed. The data set exists from the last moment on: a pack that is stopped\n"
    "leaves none.\n"
    "\n"
    "options:\n"
    "  --shard-size SIZE      begin a new shard file before this size is passed (256M)\n"
    "  --threads N            read and check N files at once (all cores)\n"
    "  --compress zstd[:LEVEL]  compress the fields jpg and key; JPEGs hardly shrink (off)\n"
    "  --part I/N             pack slice I of N, I = 0..N-1; `penstock merge` joins the slices\n"
    "  --skip-bad             leave out what is no readable image, and name it\n"
    "  --overwrite            replace OUT if it is a data set\n"
    "  --json                 print the summary as one JSON object\n"
    "\n"
    "examples:\n"
    "  penstock pack imagenet/train train\n"
    "  penstock pack photos out --skip-bad --shard-size 1G\n"
    "  penstock pack imagenet/train part3 --part 3/8      # on the fourth of eight machines\n"
    "\n"
    "exit status: 0 packed; 1 unreadable images, nothing packed; 2 wrong usage or path; 130 "
    "Ctrl-C\n";

struct bad_file {
    uint64_t number; /* in tree.files */
    char *reason;    /* owned */
};

struct pack {
    const char *src, *out;
    uint64_t shard_size;
    uint32_t n_threads, codec, level, part, n_parts;
    int skip_bad, overwrite, json;

    struct tree tree;
    uint64_t first, n;          /* slice of tree.files */
    struct pstk_writer *writer; /* NULL once given up */
    struct feed *feed;
    struct bad_file *bad; /* owned */
    uint64_t n_bad;
    uint64_t bytes_in;
    double start; /* seconds */
};

static int parse_compress(struct pack *p, const char *text)
{
    uint64_t level = 0;
    if (strcmp(text, "none") == 0) {
        p->codec = PSTK_CODEC_NONE;
        return 0;
    }
    if (strncmp(text, "zstd", 4) != 0 || (text[4] && text[4] != ':')) {
        message_say("--compress is zstd, zstd:LEVEL or none, not '%s'", text);
        return -1;
    }
    if (text[4] == ':' &&
        option_count("the level of --compress", text + 5, (struct range){1, 22}, &level) < 0)
        return -1;
    p->codec = PSTK_CODEC_ZSTD;
    p->level = (uint32_t)level;
    return 0;
}

static int parse_part(struct pack *p, const char *text)
{
    unsigned part, n_parts; /* of at most seven digits each: no overflow */
    char rest;
    if (strspn(text, "0123456789/") == strlen(text) &&
        sscanf(text, "%7u/%7u%c", &part, &n_parts, &rest) == 2 && part < n_parts &&
        n_parts <= MAX_PARTS) {
        p->part = part;
        p->n_parts = n_parts;
        return 0;
    }
    message_say("--part is I/N with I from 0 to N-1 (0/4, 1/4, 2/4, 3/4), not '%s'", text);
    return -1;
}

static int set_option(struct pack *p, int code, const char *value)
{
    switch (code) {
    case OPT_SHARD_SIZE:
        return option_bytes("--shard-size", value, (struct range){1 << 16, UINT64_C(1) << 43},
                            &p->shard_size);
    case OPT_THREADS:
        return option_count32("--threads", value, (struct range){0, MAX_THREADS}, &p->n_threads);
    case OPT_COMPRESS:
        return parse_compress(p, value);
    case OPT_PART:
        return parse_part(p, value);
    case OPT_SKIP_BAD:
        p->skip_bad = 1;
        return 0;
    case OPT_OVERWRITE:
        p->overwrite = 1;
        return 0;
    default:
        p->json = 1;
        return 0;
    }
}

static int is_data_set(const char *path)
{
    char *manifest;
    if (asprintf(&manifest, "%s/manifest.json", path) < 0)
        message_no_memory();
    int found = access(manifest, F_OK) == 0;
    free(manifest);
    return found;
}

static int open_writer(struct pack *p)
{
    struct pstk_field fields[3] = {{.name = "jpg",
                                    .kind = PSTK_FIELD_IMAGE,
                                    .codec = p->codec,
                                    .codec_level = (int32_t)p->level}};
    const struct pstk_field key = {.name = "key",
                                   .kind = PSTK_FIELD_UTF8,
                                   .codec = p->codec,
                                   .codec_level = (int32_t)p->level};
    struct pstk_writer_settings s;
    struct pstk_error err;
    uint32_t n = 1;
    if (p->tree.n_classes)
        fields[n++] =
            (struct pstk_field){.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64};
    fields[n++] = key;
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = p->out;
    s.fields = fields;
    s.n_fields = n;
    s.part = p->part;
    s.n_parts = p->n_parts;
    s.n_threads = p->codec == PSTK_CODEC_NONE ? 1 : p->n_threads;
    s.shard_size = p->shard_size;
    s.overwrite = (uint32_t)p->overwrite;
    s.note = "penstock pack";
    s.names = (const char *const *)p->tree.classes;
    s.n_names = p->tree.n_classes;
    interrupt_block();
    int r = pstk_writer_open(&p->writer, &s, &err);
    interrupt_unblock();
    if (r == PSTK_EEXIST && is_data_set(p->out))
        return message_usage("%s is a data set already; --overwrite replaces it", p->out);
    if (r == 0 && pstk_writer_n_leftovers(p->writer) > 0)
        message_say("%s has files of a pack that was stopped; starting over", p->out);
    return r < 0 ? message_refuse(&err, p->out) : 0;
}

static void note_bad(struct pack *p, uint64_t number, const char *reason)
{
    if ((p->n_bad & (p->n_bad - 1)) == 0) { /* room is the next power of two */
        struct bad_file *bad = reallocarray(p->bad, p->n_bad ? 2 * p->n_bad : 1, sizeof *bad);
        if (!bad)
            message_no_memory();
        p->bad = bad;
    }
    char *copy = strdup(reason);
    if (!copy)
        message_no_memory();
    p->bad[p->n_bad++] = (struct bad_file){.number = number, .reason = copy};
    if (!p->skip_bad)
        pstk_writer_abort(&p->writer); /* only looks for more from here on; frees the disk */
}

/* Add one file to the data set. Returns 0, or an exit status. */
static int add(struct pack *p, const struct feed_item *item)
{
    const struct tree_file *file = &p->tree.files[item->number];
    int64_t cls = (int64_t)file->cls; /* little-endian on every machine that this builds for */
    struct pstk_value values[3] = {{item->data, item->size}};
    struct pstk_error err;
    uint32_t n = 1;
    if (item->reason[0]) {
        note_bad(p, item->number, item->reason);
        return 0;
    }
    if (!p->writer)
        return 0;
    pstk_error_init(&err, sizeof err);
    if (p->tree.n_classes)
        values[n++] = (struct pstk_value){&cls, sizeof cls};
    values[n++] = (struct pstk_value){file->path, strlen(file->path)};
    int r = pstk_writer_add(p->writer, values, n, &err);
    if (r == PSTK_EBADMSG || r == PSTK_EINVAL || r == PSTK_EFBIG)
        note_bad(p, item->number, err.message);
    else if (r < 0)
        return message_refuse(&err, p->out);
    p->bytes_in += item->size;
    return 0;
}

static int add_all(struct pack *p)
{
    struct progress progress;
    struct feed_item item;
    uint64_t n = 0;
    int status = 0;
    progress_begin(&progress, "packing", "images");
    while (status == 0 && !interrupt_seen() && feed_next(p->feed, &item)) {
        status = add(p, &item);
        feed_release(p->feed, &item);
        n++;
        progress_update(&progress, (double)n / (double)p->n, n);
    }
    progress_end(&progress);
    return status;
}

static void say_bad(const struct pack *p)
{
    char bad[UNIT_SIZE], all[UNIT_SIZE];
    if (!p->n_bad)
        return;
    message_say("%s of %s files %s:", unit_count(bad, p->n_bad), unit_count(all, p->n),
                p->n_bad == 1 ? "is no readable image" : "are no readable images");
    for (uint64_t i = 0; i < p->n_bad; i++)
        fprintf(stderr, "  %s: %s\n", p->tree.files[p->bad[i].number].path, p->bad[i].reason);
}

static void print_json(const struct pack *p, const struct pstk_dataset_info *info, double seconds)
{
    struct json_t *o = json_make_object(), *skipped = json_make_array();
    json_put_text(o, "path", p->out);
    json_put_count(o, "n_samples", info->n_samples);
    json_put_count(o, "n_classes", info->n_names);
    json_put_count(o, "n_shards", info->n_shards);
    json_put_count(o, "bytes", info->bytes);
    json_put_text(o, "identity", info->identity);
    json_put_real(o, "seconds", seconds);
    for (uint64_t i = 0; i < p->n_bad; i++) {
        struct json_t *file = json_make_object();
        json_put_text(file, "path", p->tree.files[p->bad[i].number].path);
        json_put_text(file, "reason", p->bad[i].reason);
        json_append(skipped, file);
    }
    json_put(o, "skipped", skipped);
    json_print(o, STATUS_OK);
}

static void print_text(const struct pack *p, const struct pstk_dataset_info *info, double seconds)
{
    char n[UNIT_SIZE], classes[UNIT_SIZE], shards[UNIT_SIZE], bytes[UNIT_SIZE], time[UNIT_SIZE];
    char rate[UNIT_SIZE];
    printf("packed %s images", unit_count(n, info->n_samples));
    if (info->n_names)
        printf(" of %s class%s", unit_count(classes, info->n_names),
               info->n_names == 1 ? "" : "es");
    printf(" into %s shard%s: %s in %s (%s images/s)\n", unit_count(shards, info->n_shards),
           info->n_shards == 1 ? "" : "s", unit_bytes(bytes, (double)info->bytes),
           unit_seconds(time, seconds),
           unit_count(rate, (uint64_t)((double)info->n_samples / (seconds > 0 ? seconds : 1))));
    if (p->n_parts > 1)
        printf("next: when all %u parts are packed, penstock merge PART... OUT\n", p->n_parts);
    else
        printf("next: penstock bench %s\n", p->out);
}

static int report(const struct pack *p, double seconds)
{
    struct pstk_dataset *d;
    struct pstk_error err;
    struct pstk_dataset_info info = {.size = sizeof info};
    pstk_error_init(&err, sizeof err);
    int r = pstk_dataset_open(&d, p->out, &err);
    /* An empty part is one to merge and nothing else. */
    if (r < 0 && !(r == PSTK_ENODATA && p->n_parts > 1))
        return message_refuse(&err, p->out);
    if (r == 0)
        r = pstk_dataset_get_info(d, &info);
    pstk_dataset_close(&d);
    if (r < 0 && r != PSTK_ENODATA)
        return message_status(r);
    if (p->json)
        print_json(p, &info, seconds);
    else
        print_text(p, &info, seconds);
    return message_finish(STATUS_OK);
}

static int finish(struct pack *p)
{
    struct pstk_error err;
    if (interrupt_seen()) {
        pstk_writer_abort(&p->writer);
        message_say("interrupted: nothing was packed, %s %s", p->out,
                    is_data_set(p->out) ? "is as it was" : "is no data set");
        return interrupt_status();
    }
    say_bad(p);
    if (p->n_bad && !p->skip_bad) {
        message_say("nothing was packed; repair or remove them, or leave them out with --skip-bad");
        return STATUS_DAMAGED;
    }
    if (p->n_bad == p->n && p->n_parts == 1) {
        pstk_writer_abort(&p->writer);
        message_say("nothing was packed: no image is left");
        return STATUS_DAMAGED;
    }
    pstk_error_init(&err, sizeof err);
    if (pstk_writer_commit(&p->writer, &err) < 0)
        return message_refuse(&err, p->out);
    int status = report(p, unit_now() - p->start);
    if (status == STATUS_OK && interrupt_seen())
        return interrupt_say("but the data set was complete already");
    return status;
}

static void say_left_out(const struct pack *p)
{
    uint64_t n = p->tree.n_left_out;
    if (n)
        message_say("%llu image%s beside the class folders of %s %s left out, as ImageFolder does",
                    (unsigned long long)n, n == 1 ? "" : "s", p->src, n == 1 ? "is" : "are");
    n = p->tree.n_others;
    if (n)
        message_say("%llu file%s in %s %s", (unsigned long long)n, n == 1 ? "" : "s", p->src,
                    n == 1 ? "has no image's name and is left out"
                           : "have no image's name and are left out");
}

static int pack(struct pack *p)
{
    int status = tree_scan(&p->tree, p->src, p->out);
    if (status)
        return status;
    say_left_out(p);
    /* at most 2^47 files by 2^16 parts: no overflow */
    p->first = p->part * p->tree.n_files / p->n_parts;
    p->n = (p->part + UINT64_C(1)) * p->tree.n_files / p->n_parts - p->first;
    if (p->n == 0)
        message_say("part %u/%u gets no image: %s holds only %llu", p->part, p->n_parts, p->src,
                    (unsigned long long)p->tree.n_files);
    if (p->n_threads == 0)
        p->n_threads = machine_n_cores(MAX_THREADS);
    status = open_writer(p);
    if (status == 0)
        status = feed_open(&p->feed, p->src, &p->tree, p->first, p->n, p->n_threads);
    if (status == 0)
        status = add_all(p);
    feed_close(&p->feed);
    return status ? status : finish(p);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {.command = self, .table = table, .letters = "", .argc = argc, .argv = argv};
    struct pack p = {.n_parts = 1};
    int c;
    while ((c = options_next(&o)) > 0)
        if (set_option(&p, c, optarg) < 0)
            return STATUS_USAGE;
    if (c < 0 || options_operands(&o, 2, 2, "SRC and OUT") < 0)
        return o.status;
    p.src = options_operand(&o, 0);
    p.out = options_operand(&o, 1);
    p.start = unit_now();
    interrupt_install();
    int status = pack(&p);
    pstk_writer_abort(&p.writer);
    for (uint64_t i = 0; i < p.n_bad; i++)
        free(p.bad[i].reason);
    free(p.bad);
    tree_close(&p.tree);
    return status;
}

const struct command command_pack = {"pack", "pack a folder of images into a data set", help, run};
