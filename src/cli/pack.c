/* SPDX-License-Identifier: Apache-2.0 */
/* pack: a folder of images becomes a data set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/format.h>
#include <penstock/penstock.h>

#include "bad.h"
#include "census.h"
#include "command.h"
#include "feed.h"
#include "form.h"
#include "interrupt.h"
#include "json.h"
#include "machine.h"
#include "message.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "tree.h"
#include "unit.h"

#define MAX_THREADS 1024
#define MAX_PARTS 65536

enum { OPT_SHARD_SIZE = 256, OPT_THREADS, OPT_PART, OPT_SKIP_BAD, OPT_OVERWRITE, OPT_JSON };

static const struct option table[] = {{"shard-size", required_argument, NULL, OPT_SHARD_SIZE},
                                      {"threads", required_argument, NULL, OPT_THREADS},
                                      FORM_OPTIONS,
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
    "  jpg   the image (JPEG or PNG file; with --pixels its pixels)\n"
    "  cls   number of the class, from 0 (where SRC has class folders)\n"
    "  key   path of the file below SRC\n"
    "JPEGs are stored as planes: their coefficients out of their Huffman code, smaller and much\n"
    "faster to decode, pixel for pixel the same; `penstock get` gives the file back, nearly\n"
    "always byte for byte (--jpeg). Every image is read once, to be sure that it can be decoded.\n"
    "One that cannot is named at the end, and nothing is packed. Images of other formats (WebP,\n"
    "TIFF, BMP, GIF, AVIF, ...) are counted by format: convert them to JPEG or PNG. A file that\n"
    "this machine cannot read ends the pack. The data set exists from the last moment on: a pack\n"
    "that is stopped leaves none.\n"
    "\n"
    "options:\n"
    "  --shard-size SIZE      begin a new shard file before this size is passed (256M)\n"
    "  --threads N            work on N files at once (all cores)\n"
    "  --jpeg planes          JPEGs as planes; the few that cannot be rebuilt byte for byte come\n"
    "                         back as a standard JPEG with the same coefficients (the default)\n"
    "  --jpeg exact           as planes, but for those few, which stay as they came\n"
    "  --jpeg keep            all JPEGs as they came\n"
    "  --compress zstd[:LEVEL]  compress key, and with --pixels the pixels (off)\n"
    "  --part I/N             pack slice I of N, I = 0..N-1; `penstock merge` joins the slices\n"
    "  --skip-bad             skip files that were read and are no images to be packed, and list\n"
    "                         them; a file that cannot be read still ends the pack\n"
    "  --overwrite            replace OUT if it is a data set\n"
    "  --json                 print the summary as one JSON object\n"
    "\n"
    "with loss, as the note in the manifest then says (`penstock info` shows it):\n"
    "  --pixels N             store decoded pixels (RGB, u8), images with a shorter side beyond N\n"
    "                         resized to it (torchvision's Resize(N) with Pillow); they lose\n"
    "                         their EXIF orientation\n"
    "  --max-side N           resize images with a longer side beyond N to it (Pillow's bilinear,\n"
    "                         sides rounded), re-encode those as JPEGs\n"
    "  --quality Q            re-encode all images as JPEGs of this quality, 1 to 100, 4:2:0\n"
    "                         (with --max-side alone: 90, only those that shrink)\n"
    "\n"
    "examples:\n"
    "  penstock pack imagenet/train train\n"
    "  penstock pack photos out --skip-bad --shard-size 1G\n"
    "  penstock pack imagenet/train train256 --pixels 256\n"
    "  penstock pack imagenet/train part3 --part 3/8      # on the fourth of eight machines\n"
    "\n"
    "exit status: 0 packed; 1 unreadable images or a failing machine, nothing packed; 2 wrong\n"
    "usage, path or permission; 130 Ctrl-C\n";

struct pack {
    const char *src, *out;
    uint64_t shard_size;
    uint32_t n_threads, part, n_parts;
    struct form form;
    int skip_bad, overwrite, json;

    struct tree tree;
    uint64_t first, n;          /* slice of tree.files */
    struct pstk_writer *writer; /* NULL once given up */
    struct feed *feed;
    struct bad bad;
    uint64_t bytes_in;   /* of the files packed */
    uint64_t n_palettes; /* of the files packed: PNGs with a palette */
    double start;        /* seconds */
};

/* What is at OUT while nothing is packed there, to be put after "nothing was packed, ". */
static const char *standing(const struct pack *p)
{
    return output_stands(p->out) ? "and the data set there is as it was"
                                 : "and there is no data set";
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
    case OPT_PART:
        return parse_part(p, value);
    case OPT_SKIP_BAD:
        p->skip_bad = 1;
        return 0;
    case OPT_OVERWRITE:
        p->overwrite = 1;
        return 0;
    case OPT_JSON:
        p->json = 1;
        return 0;
    default:
        return form_set(&p->form, code, value);
    }
}

static int open_writer(struct pack *p)
{
    struct pstk_field fields[3] = {{.name = "jpg", .kind = PSTK_FIELD_IMAGE}};
    struct pstk_field key = {.name = "key", .kind = PSTK_FIELD_UTF8};
    struct pstk_writer_settings s;
    struct pstk_error err;
    char note[FORM_NOTE_SIZE];
    uint32_t n = 1;
    form_image_codec(&p->form, &fields[0]);
    form_text_codec(&p->form, &key);
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
    s.n_threads = p->n_threads;
    s.shard_size = p->shard_size;
    s.overwrite = (uint32_t)p->overwrite;
    s.note = form_note(&p->form, note);
    s.names = (const char *const *)p->tree.classes;
    s.n_names = p->tree.n_classes;
    interrupt_block();
    int r = pstk_writer_open(&p->writer, &s, &err);
    interrupt_unblock();
    if (r == 0 && pstk_writer_n_leftovers(p->writer) > 0)
        message_say("%s has files of a pack that was stopped; starting over", p->out);
    return r < 0 ? output_refuse(&err, p->out) : 0;
}

static void note_bad(struct pack *p, uint64_t number, const char *reason, const char *format)
{
    bad_add(&p->bad, number, reason, format);
    if (!p->skip_bad)
        pstk_writer_abort(&p->writer); /* only looks for more from here on; frees the disk */
}

/* A failure of the machine ends the pack, --skip-bad or not: the file may well be an image. */
static int refuse_failed(struct pack *p, const struct feed_item *item)
{
    pstk_writer_abort(&p->writer);
    bad_print(&p->bad, &p->tree, p->n);
    message_say("%s/%s: %s", p->src, p->tree.files[item->number].path, item->reason);
    message_say("nothing was packed, %s", standing(p));
    return message_status(item->code);
}

/* Add one file to the data set. Returns 0, or an exit status. */
static int add(struct pack *p, const struct feed_item *item)
{
    const struct tree_file *file = &p->tree.files[item->number];
    int64_t cls = (int64_t)file->cls; /* little-endian on every machine that this builds for */
    struct pstk_value values[3] = {{item->data, item->size}};
    struct pstk_error err;
    uint32_t n = 1;
    if (item->state == FEED_FAILED)
        return refuse_failed(p, item);
    if (item->state == FEED_BAD) {
        note_bad(p, item->number, item->reason, item->format);
        return 0;
    }
    if (!p->writer)
        return 0;
    pstk_error_init(&err, sizeof err);
    if (p->tree.n_classes)
        values[n++] = (struct pstk_value){&cls, sizeof cls};
    values[n++] = (struct pstk_value){file->path, strlen(file->path)};
    const int is_pixels = item->is_converted && p->form.convert.shorter_side;
    int r = is_pixels
                ? pstk_writer_add_pixels(p->writer, values, n, 0, item->height, item->width, &err)
                : pstk_writer_add(p->writer, values, n, &err);
    if (r == PSTK_EBADMSG || r == PSTK_EINVAL || r == PSTK_EFBIG)
        note_bad(p, item->number, err.message, NULL);
    else if (r < 0)
        return message_refuse(&err, p->out);
    if (r == 0) {
        p->bytes_in += item->file_size;
        p->n_palettes += item->is_palette != 0;
    }
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

static void warn_of_palettes(const struct pack *p)
{
    char n[UNIT_SIZE];
    if (p->n_palettes)
        message_say("warning: %s PNG file%s %s a palette. Pictures come right, in the palette's "
                    "colours; masks do not: a loader's resizing mixes colours, and class ids are "
                    "lost. Pack masks as bytes or arrays, with penstock.pack or penstock.Writer in "
                    "Python",
                    unit_count(n, p->n_palettes), p->n_palettes == 1 ? "" : "s",
                    p->n_palettes == 1 ? "has" : "have");
}

/* What came of it. */
struct result {
    struct pstk_dataset_info info;
    struct pstk_field_stats images; /* of the field jpg */
    double seconds;
};

static int print_json(const struct pack *p, const struct result *r)
{
    const struct pstk_dataset_info *info = &r->info;
    const struct census census = census_of(&r->images);
    struct json_t *o = json_make_object(), *images = json_make_object();
    char note[FORM_NOTE_SIZE];
    json_put_text(o, "path", p->out);
    json_put_count(o, "n_samples", info->n_samples);
    json_put_count(o, "n_classes", info->n_names);
    json_put_count(o, "n_shards", info->n_shards);
    json_put_count(o, "bytes", info->bytes);
    json_put_text(o, "identity", info->identity);
    json_put_real(o, "seconds", r->seconds);
    json_put_text(o, "note", form_note(&p->form, note));
    json_put_count(o, "file_bytes", p->bytes_in);
    json_put_count(o, "image_bytes", r->images.stored_bytes);
    census_put(&census, images);
    json_put(o, "images", images);
    json_put_count(o, "n_palette_images", p->n_palettes);
    bad_put(&p->bad, &p->tree, o);
    return json_print(o, STATUS_OK);
}

static void print_images(const struct pack *p, const struct result *r)
{
    const struct census census = census_of(&r->images);
    char text[CENSUS_SIZE], before[UNIT_SIZE], after[UNIT_SIZE];
    if (r->info.n_samples == 0)
        return;
    printf("images: %s\n", census_text(&census, text));
    printf("%s of files became %s of images (%.1f %%)\n", unit_bytes(before, (double)p->bytes_in),
           unit_bytes(after, (double)r->images.stored_bytes),
           100.0 * (double)r->images.stored_bytes / (p->bytes_in ? (double)p->bytes_in : 1.0));
}

static int print_text(const struct pack *p, const struct result *r)
{
    const struct pstk_dataset_info *info = &r->info;
    const double seconds = r->seconds;
    char n[UNIT_SIZE], classes[UNIT_SIZE], shards[UNIT_SIZE], bytes[UNIT_SIZE], time[UNIT_SIZE];
    char rate[UNIT_SIZE];
    printf("packed %s image%s", unit_count(n, info->n_samples), info->n_samples == 1 ? "" : "s");
    if (info->n_names)
        printf(" of %s class%s", unit_count(classes, info->n_names),
               info->n_names == 1 ? "" : "es");
    printf(" into %s shard%s: %s in %s (%s images/s)\n", unit_count(shards, info->n_shards),
           info->n_shards == 1 ? "" : "s", unit_bytes(bytes, (double)info->bytes),
           unit_seconds(time, seconds),
           unit_count(rate, (uint64_t)((double)info->n_samples / (seconds > 0 ? seconds : 1))));
    print_images(p, r);
    if (p->n_parts > 1)
        printf("next: when all %u parts are packed, penstock merge PART... OUT\n", p->n_parts);
    else
        message_next("penstock bench", p->out);
    return message_finish(STATUS_OK);
}

static int report(const struct pack *p, double seconds)
{
    struct pstk_dataset *d;
    struct pstk_error err;
    struct result result = {
        .info.size = sizeof result.info, .images.size = sizeof result.images, .seconds = seconds};
    pstk_error_init(&err, sizeof err);
    int r = pstk_dataset_open(&d, p->out, &err);
    /* An empty part is one to merge and nothing else. */
    if (r < 0 && !(r == PSTK_ENODATA && p->n_parts > 1))
        return message_refuse(&err, p->out);
    if (r == 0)
        r = pstk_dataset_get_info(d, &result.info);
    if (r == 0)
        r = pstk_dataset_get_field(d, 0, NULL, &result.images);
    pstk_dataset_close(&d);
    if (r < 0 && r != PSTK_ENODATA)
        return message_status(r);
    return p->json ? print_json(p, &result) : print_text(p, &result);
}

static int finish(struct pack *p)
{
    struct pstk_error err;
    if (interrupt_seen()) {
        pstk_writer_abort(&p->writer);
        message_say("interrupted: nothing was packed, %s", standing(p));
        return interrupt_status();
    }
    bad_print(&p->bad, &p->tree, p->n);
    if (p->bad.n && !p->skip_bad) {
        message_say("nothing was packed; repair or remove them, or leave them out with --skip-bad");
        return STATUS_DAMAGED;
    }
    if (p->bad.n == p->n && p->n_parts == 1) {
        pstk_writer_abort(&p->writer);
        message_say("nothing was packed: no image is left");
        return STATUS_DAMAGED;
    }
    pstk_error_init(&err, sizeof err);
    if (pstk_writer_commit(&p->writer, &err) < 0)
        return message_refuse(&err, p->out);
    warn_of_palettes(p);
    int status = report(p, unit_now() - p->start);
    if (status)
        message_say("%s was packed all the same, whole", p->out);
    else if (interrupt_seen())
        return interrupt_say("but the data set was complete already");
    return status;
}

static void say_left_out(const struct pack *p)
{
    uint64_t n = p->tree.n_left_out;
    char formats[FORMATS_TEXT];
    if (n)
        message_say("%llu image%s beside the class folders of %s %s left out, as ImageFolder does",
                    (unsigned long long)n, n == 1 ? "" : "s", p->src, n == 1 ? "is" : "are");
    n = p->tree.foreign.n;
    if (n)
        message_say(
            "%llu image%s in %s %s left out, of formats that are not packed: %s; convert to "
            "JPEG or PNG what shall be packed",
            (unsigned long long)n, n == 1 ? "" : "s", p->src, n == 1 ? "is" : "are",
            formats_text(&p->tree.foreign, formats));
    n = p->tree.n_others;
    if (n)
        message_say("%llu file%s in %s %s", (unsigned long long)n, n == 1 ? "" : "s", p->src,
                    n == 1 ? "has no image's name and is left out"
                           : "have no image's name and are left out");
}

static int open_feed(struct pack *p)
{
    const struct feed_config config = {.root = p->src,
                                       .tree = &p->tree,
                                       .first = p->first,
                                       .n = p->n,
                                       .n_threads = p->n_threads,
                                       .convert = p->form.convert.size ? &p->form.convert : NULL};
    return feed_open(&p->feed, &config);
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
        status = open_feed(p);
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
    int status = form_check(&p.form);
    if (status)
        return status;
    p.src = options_operand(&o, 0);
    p.out = options_operand(&o, 1);
    p.start = unit_now();
    interrupt_install();
    interrupt_ignore_pipe();
    status = pack(&p);
    pstk_writer_abort(&p.writer);
    bad_close(&p.bad);
    tree_close(&p.tree);
    return status;
}

const struct command command_pack = {"pack", "pack a folder of images into a data set", help, run};
