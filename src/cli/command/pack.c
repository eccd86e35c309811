/* SPDX-License-Identifier: Apache-2.0 */
/* pack: makes a data set from a folder of images, or from images and their annotations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/format.h>
#include <penstock/penstock.h>

#include "command.h"
#include "command/annotated.h"
#include "command/bad.h"
#include "command/census.h"
#include "command/inputs.h"
#include "command/pack_id.h"
#include "command/passthrough.h"
#include "command/prefetcher.h"
#include "command/profile.h"
#include "command/records.h"
#include "command/task.h"
#include "command/tree.h"
#include "option/ignored.h"
#include "option/machine.h"
#include "option/options.h"
#include "option/part.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/output.h"
#include "ui/progress.h"
#include "ui/status.h"
#include "ui/unit.h"

#define MAX_THREADS 1024
#define SHARD_SIZE (UINT64_C(256) << 20) /* default in the option table */
/* Bytes that a thread may need. For files of 12 Mpixel one thread took 150 MB, two took 228 MB. */
#define THREAD_MEMORY (UINT64_C(128) << 20)

enum {
    OPT_SHARD_SIZE = 256,
    OPT_THREADS,
    OPT_PART,
    OPT_PARTS,
    OPT_PACK_ID,
    OPT_TASK,
    OPT_ATTEMPT,
    OPT_NO_COLUMNS,
    OPT_SKIP_BAD,
    OPT_OVERWRITE,
    OPT_JSON
};

static const struct option_row table[] = {
    {.name = "shard-size",
     .code = OPT_SHARD_SIZE,
     .value = "SIZE",
     .initial = "256M",
     .text = "begin a new shard file before it grows past this size"},
    {.name = "threads",
     .code = OPT_THREADS,
     .value = "N",
     .initial = "all cores",
     .text = "work on N files at once; the default is lower where memory is limited to less than "
             "128 MiB for each"},
    PROFILE_OPTIONS,
    {.name = "part",
     .code = OPT_PART,
     .value = "I/N",
     .text = "pack slice I of N, I = 0 to N-1; `penstock merge` joins the slices; auto: the slice "
             "of this process under mpirun, srun, torchrun, a job array of SLURM, ..., into "
             "OUT/part-I-of-N"},
    {.name = "parts",
     .code = OPT_PARTS,
     .value = "N",
     .initial = "as many as processes",
     .text = "with --part auto: the number of slices; needed in an indexed Job of Kubernetes, and "
             "where an array of SLURM has only some of the slices"},
    {.name = "task",
     .code = OPT_TASK,
     .value = "KEY",
     .text = "pack all of SRC as the part of this task; `penstock merge` joins the parts of any "
             "number of tasks, in the order in which it is given them"},
    {.name = "pack-id",
     .code = OPT_PACK_ID,
     .value = "ID",
     .text = "32 random hex digits, the same for all tasks of a pack; of --part: instead of a hash "
             "of the list of files and the options (none: no id, to merge with parts of versions "
             "that had none)"},
    {.name = "attempt",
     .code = OPT_ATTEMPT,
     .value = "N",
     .initial = "0",
     .text = "number of this attempt at the task; merge takes only one attempt at each"},
    {.name = "no-columns",
     .code = OPT_NO_COLUMNS,
     .text = "make no side columns of classes and sizes, which take 4 to 8 bytes a sample each"},
    FIELDS_OPTIONS,
    {.name = "skip-bad",
     .code = OPT_SKIP_BAD,
     .text = "skip files that were read but cannot be packed, and list them; a file that cannot be "
             "read still ends the pack. With --coco and --voc, leave out bad annotations, too, and "
             "count them (for COCO also a bad entry of images, with its annotations; for VOC a bad "
             "object, or a bad XML file with its image; an XML file with only bad objects is bad)"},
    {.name = "overwrite", .code = OPT_OVERWRITE, .text = "replace OUT if it is a data set"},
    OPTION_JSON("print the summary as one JSON object"),
    ANNOTATED_OPTIONS,
    PROFILE_LOSS_OPTIONS,
    OPTION_END};

static const char text[] =
    "Pack the images below the folder SRC into the data set OUT, a folder that pack makes.\n\nSRC "
    "holds images, or one folder of images for each class, sorted as torchvision's ImageFolder "
    "sorts them. Each record has the fields\n  jpg   the image (JPEG or PNG file; with --pixels "
    "its pixels)\n  cls   number of the class, from 0 (where SRC has class folders)\n  key   path "
    "of the file below SRC\n\nSRC may also be a data set of another format that penstock reads, "
    "for example a folder of tar archives, or a pattern of them (shards/{000..127}.tar). All its "
    "fields are packed, under their names.\n\nWith --coco or --voc the fields are jpg, image_id "
    "(COCO), file_name and what the annotations have: boxes, labels, polygons (object_polygons, "
    "polygon_points, points), runs of masks (object_runs, runs), keypoints, captions, masks of "
    "classes and of segments. Labels number the classes; their names are the data set's. A mistake "
    "in the annotations ends the pack, or is left out (--skip-bad); boxes that leave their image, "
    "or have no area, are kept and counted.\n\nJPEGs are stored as planes: their coefficients in "
    "another code, smaller and much faster to decode, with the same pixels. `penstock get` gives "
    "the file back, nearly always byte for byte (--jpeg). A JPEG that would not be smaller as "
    "planes is kept as it came; the summary counts kept files by reason, and `penstock info "
    "--passthrough` lists them.\n\nPack reads every image once to check that it can be decoded. If "
    "some cannot, it names them and packs nothing. It counts images of other formats (WebP, TIFF, "
    "BMP, GIF, AVIF, ...) by format: convert them to JPEG or PNG. A file that this machine cannot "
    "read (permission, I/O error, no memory) ends the pack, and so does a file that changes "
    "meanwhile. A damaged JPEG cannot be decoded, even if Pillow loads it by guessing what is "
    "missing; its message then names the option that packs it. The data set appears in the last "
    "step: a pack that is stopped leaves no data set.\n\nThe options with loss resize as Pillow's "
    "bilinear filter and encode as Pillow's save does. Of the metadata only the EXIF orientation "
    "is kept. No image is enlarged. The note in the manifest then has, for example, pixels=256 or "
    "max_side=512 quality=90 reencoded=shrunk.\n";

struct pack {
    const char *src, *folder, *out; /* folder: the operand OUT */
    uint64_t shard_size;
    uint32_t n_threads;
    struct part part;
    char *path; /* owned; path of the data set that is made, OUT or below it; `out` points to it */
    struct task task; /* its part has no number: part 0 of 1 of SRC */
    struct profile profile;
    struct annotated annotated;
    struct fields fields; /* from --field */
    int no_columns, skip_bad, overwrite, json;
    int has_no_id; /* --pack-id none */
    int is_done;   /* 1: the part existed already */

    struct tree tree;
    struct records records;     /* samples of a data set in another format, in place of the tree */
    uint64_t first, n;          /* slice of the files of tree, or of the records */
    struct pstk_writer *writer; /* NULL once aborted */
    struct prefetcher *prefetcher;
    struct bad bad;
    struct passthrough passthrough;
    uint64_t bytes_in;   /* bytes of the packed files */
    uint64_t n_palettes; /* packed PNG files with a palette */
    uint64_t n_remade;   /* packed PNG files that were encoded anew */
    double start;        /* seconds */
};

/* Return a phrase for the data set at OUT when nothing was packed, for use after "nothing was
 * packed, ". */
static const char *standing(const struct pack *pack)
{
    return output_stands(pack->out) ? "and the data set there is unchanged"
                                    : "and there is no data set";
}

/* Return 1 when the result is to be merged, and may be empty. */
static int is_part(const struct pack *pack)
{
    return pack->part.n > 1 || pack->task.key;
}

static int set_option(struct pack *pack, int code, const char *value)
{
    switch (code) {
    case OPT_SHARD_SIZE:
        return option_bytes("--shard-size", value, (struct range){1 << 16, UINT64_C(1) << 43},
                            &pack->shard_size);
    case OPT_THREADS:
        return option_count32("--threads", value, (struct range){0, MAX_THREADS}, &pack->n_threads);
    case OPT_PART:
        return part_set(&pack->part, value);
    case OPT_PARTS:
        return part_set_n(&pack->part, value);
    case OPT_PACK_ID:
        pack->has_no_id = strcmp(value, "none") == 0;
        return pack->has_no_id ? 0 : task_set_pack_id(&pack->task.pack_id, value);
    case OPT_TASK:
        pack->task.key = value;
        return 0;
    case OPT_ATTEMPT:
        return option_count32("--attempt", value, (struct range){0, UINT32_MAX},
                              &pack->task.attempt);
    case OPT_NO_COLUMNS:
        pack->no_columns = 1;
        return 0;
    FIELDS_CASES:
        return fields_take(&pack->fields, code, value);
    case OPT_SKIP_BAD:
        pack->skip_bad = 1;
        pack->annotated.settings.skip_bad = 1;
        return 0;
    case OPT_OVERWRITE:
        pack->overwrite = 1;
        return 0;
    case OPT_JSON:
        pack->json = 1;
        return 0;
    default:
        return code >= OPT_COCO ? annotated_set(&pack->annotated, code, value)
                                : profile_set(&pack->profile, code, value);
    }
}

/* Count one kept image; the writer's on_passthrough. */
static void note_passthrough(void *user, uint64_t sample_id, uint32_t field, uint32_t reason)
{
    struct pack *pack = user;
    (void)sample_id;
    (void)field; /* there is one image field */
    if (reason < PASSTHROUGH_ASKED)
        pack->passthrough.n[reason]++;
}

/* Write the fields of records that are made of files. Returns their number. */
static uint32_t file_fields(const struct pack *pack, struct pstk_field *fields)
{
    uint32_t n = 1;
    fields[0] = (struct pstk_field){.name = "jpg", .kind = PSTK_FIELD_IMAGE};
    profile_image_codec(&pack->profile, &fields[0]);
    if (pack->tree.info.n_classes)
        fields[n++] =
            (struct pstk_field){.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64};
    if (pack->annotated.a)
        n += annotated_fields(&pack->annotated, fields + n);
    else
        fields[n++] = (struct pstk_field){.name = "key", .kind = PSTK_FIELD_UTF8};
    for (uint32_t i = 1; i < n; i++)
        if (fields[i].kind == PSTK_FIELD_UTF8)
            profile_text_codec(&pack->profile, &fields[i]);
    return n;
}

/* Set the class names, and the id of numbered parts. */
static void name_pack(struct pack *pack, struct pstk_writer_settings *s,
                      char pack_id[PACK_ID_SIZE + 1])
{
    const int needs_id = !s->pack_id && s->n_parts > 1 && !pack->has_no_id;
    if (pack->records.dataset) {
        s->names = pack->records.names;
        s->n_names = pack->records.info.n_names;
        s->pack_id = needs_id ? pack->records.info.identity : s->pack_id;
        return;
    }
    if (needs_id)
        s->pack_id = pack_id_of(&pack->tree, s->note, pack_id);
    s->names = pack->annotated.a ? pack->annotated.names : pack->tree.classes;
    s->n_names = pack->annotated.a ? pack->annotated.info.n_names : pack->tree.info.n_classes;
}

/* Handle a data set that is at OUT already. Returns 0 if it is this part, from the same inputs; or
 * an exit status. */
static int find_done(struct pack *pack, const struct pstk_writer_settings *s,
                     const struct pstk_error *err)
{
    if (!is_part(pack) || err->code != PSTK_EEXIST || !strstr(err->message, "set overwrite"))
        return output_refuse(err, pack->out);
    const int status = inputs_check(pack->out, s);
    if (status)
        return status;
    pack->is_done = 1;
    message_say("%s is done already, from the same files", pack->out);
    return 0;
}

/* Return 1 when struct inputs names all files of a part. It does not name the XML files and masks
 * of VOC, the masks of panoptic COCO, or the images of a table or folder that is read in place. */
static int knows_inputs(const struct pack *pack)
{
    if (pack->annotated.a)
        return pack->annotated.coco && !annotated_has_masks(&pack->annotated);
    const char *format = pack->records.dataset ? pack->records.info.format : "";
    return strcmp(format, "folder") != 0 && strcmp(format, "table") != 0;
}

/* Return the note, owned. A part's note has the state of its inputs, unless it is to have no pack
 * id: then nothing says which pack the part belongs to. */
static char *part_note(const struct pack *pack, const struct pstk_writer_settings *s)
{
    const struct inputs inputs = {.src = pack->src,
                                  .tree = &pack->tree,
                                  .first = pack->first,
                                  .n = pack->n,
                                  .identity =
                                      pack->records.dataset ? pack->records.info.identity : NULL,
                                  .annotations = pack->annotated.settings.path,
                                  .reading = &pack->fields,
                                  .tolerated = (pack->skip_bad ? INPUTS_SKIP_BAD : 0u) |
                                               (pack->profile.damaged ? INPUTS_DAMAGED : 0u)};
    char *own =
        is_part(pack) && !pack->has_no_id && knows_inputs(pack) ? inputs_note(&inputs, s) : NULL;
    if (!own && !(own = strdup(s->note)))
        message_no_memory();
    return own;
}

static int open_writer(struct pack *pack)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    struct pstk_writer_settings s;
    struct pstk_error err;
    char note[PROFILE_NOTE_SIZE], pack_id[PACK_ID_SIZE + 1];
    const uint32_t n = pack->records.dataset
                           ? records_fields(&pack->records, &pack->profile, fields)
                           : file_fields(pack, fields);
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = pack->out;
    s.fields = fields;
    s.n_fields = n;
    s.part = pack->part.number;
    s.n_parts = pack->part.n;
    s.task = pack->task.key;
    s.attempt = pack->task.attempt;
    s.n_threads = pack->n_threads;
    s.shard_size = pack->shard_size;
    s.overwrite = (uint32_t)pack->overwrite;
    s.columns = (uint32_t)pack->no_columns;
    s.note = annotated_note(&pack->annotated, profile_note(&pack->profile, note));
    s.pack_id = pack->task.pack_id;
    name_pack(pack, &s, pack_id); /* the inputs may be in any state */
    char *own = part_note(pack, &s);
    s.note = own;
    s.on_passthrough = note_passthrough;
    s.on_passthrough_user = pack;
    interrupt_block();
    int r = pstk_writer_open(&pack->writer, &s, &err);
    interrupt_unblock();
    if (r == 0 && pstk_writer_n_leftovers(pack->writer) > 0)
        message_say("%s has files of a pack that was stopped; starting over", pack->out);
    const int status = r < 0 ? find_done(pack, &s, &err) : 0;
    free(own);
    return status;
}

static void note_bad(struct pack *pack, uint64_t number, const char *reason, const char *format)
{
    bad_add(&pack->bad, number, reason, format);
    if (!pack->skip_bad)
        pstk_writer_abort(&pack->writer); /* from now on only lists bad files; frees the disk */
}

/* End the pack after a failure of the machine, even with --skip-bad, because the file may be an
 * image. */
static int refuse_failed(struct pack *pack, const struct prefetched *item)
{
    pstk_writer_abort(&pack->writer);
    bad_print(&pack->bad, &pack->tree, pack->n);
    if (pack->records.dataset)
        message_say("%s: sample %llu: %s", pack->src, (unsigned long long)item->number,
                    item->reason);
    else
        message_say("%s/%s: %s", pack->src, tree_path(&pack->tree, item->number, NULL),
                    item->reason);
    message_say("nothing was packed, %s", standing(pack));
    return status_of_code(item->code);
}

/* Fill the values after the image, *cls among them. Returns their number, or a negative result. */
static int fill(struct pack *pack, uint64_t number, int64_t *cls, struct pstk_value *values,
                struct pstk_error *err)
{
    const uint32_t n_fields = pack->annotated.info.n_fields;
    int n = 0;
    if (pack->annotated.a) {
        const int r = pstk_annotations_read(pack->annotated.a, number, values, n_fields, err);
        return r < 0 ? r : (int)n_fields;
    }
    uint32_t class_number;
    const char *path = tree_path(&pack->tree, number, &class_number);
    *cls = (int64_t)class_number; /* little-endian on every machine that penstock builds for */
    if (pack->tree.info.n_classes)
        values[n++] = (struct pstk_value){.data = cls, .size = sizeof *cls};
    values[n++] = (struct pstk_value){.data = path, .size = strlen(path)};
    return n;
}

/* Fill all values of a sample of a data set and add them. */
static int add_record(struct pack *pack, const struct prefetched *item, struct pstk_error *err)
{
    struct records *records = &pack->records;
    struct pstk_value values[PSTK_MAX_FIELDS];
    const struct pstk_pixels pixels = {.size = sizeof pixels,
                                       .field = (uint32_t)records->image,
                                       .height = item->height,
                                       .width = item->width,
                                       .channels = 3,
                                       .bit_depth = 8};
    int r = records_read(records, item->number, values, err);
    if (records->image >= 0)
        values[records->image] = (struct pstk_value){item->data, item->size,
                                                     item->is_damaged ? PSTK_DAMAGED_ACCEPT : 0, 0};
    if (r == 0)
        r = pstk_writer_add_pixels(pack->writer, values, records->info.n_fields, &pixels,
                                   item->is_converted && pack->profile.convert.shorter_side, err);
    if (r == 0)
        records_count(records);
    records_release(records);
    return r;
}

/* Fill all values of a file's record and add them. */
static int add_file(struct pack *pack, const struct prefetched *item, struct pstk_error *err)
{
    int64_t cls;
    struct pstk_value values[1 + ANNOTATED_FIELDS] = {
        {item->data, item->size, item->is_damaged ? PSTK_DAMAGED_ACCEPT : 0, 0}};
    struct pstk_pixels pixels[1 + ANNOTATED_FIELDS] = {{.size = sizeof *pixels,
                                                        .height = item->height,
                                                        .width = item->width,
                                                        .channels = 3,
                                                        .bit_depth = 8}};
    uint32_t n_pixels = item->is_converted && pack->profile.convert.shorter_side;
    const int r = fill(pack, item->number, &cls, values + 1, err);
    if (r >= 0 && pack->annotated.a)
        n_pixels += annotated_pixels(&pack->annotated, pixels + n_pixels);
    return r < 0 ? r
                 : pstk_writer_add_pixels(pack->writer, values, 1 + (uint32_t)r, pixels, n_pixels,
                                          err);
}

/* Add one file or sample to the data set. Returns 0, or an exit status. */
static int add(struct pack *pack, const struct prefetched *item)
{
    struct pstk_error err;
    if (item->state == PREFETCH_FAILED)
        return refuse_failed(pack, item);
    if (item->state == PREFETCH_BAD) {
        note_bad(pack, item->number, item->reason, item->format);
        return 0;
    }
    if (!pack->writer)
        return 0;
    pstk_error_init(&err, sizeof err);
    const int r = pack->records.dataset ? add_record(pack, item, &err) : add_file(pack, item, &err);
    message_settings(&err);
    if (r == PSTK_EBADMSG || r == PSTK_EINVAL || r == PSTK_EFBIG)
        note_bad(pack, item->number, err.message, NULL);
    else if (r < 0)
        return status_refuse(&err, pack->out);
    if (r == 0) {
        pack->bytes_in += item->file_size;
        pack->n_palettes += item->is_palette != 0;
        if (pack->annotated.a)
            annotated_compare(&pack->annotated, item->number, item->data, item->size);
    }
    return 0;
}

/* Get the next file or sample: from the prefetcher, or, for records without an image, by number. */
static int next_item(struct pack *pack, uint64_t n_done, struct prefetched *item)
{
    if (pack->prefetcher)
        return prefetcher_next(pack->prefetcher, item);
    *item = (struct prefetched){.number = pack->first + n_done};
    return n_done < pack->n;
}

static int add_all(struct pack *pack)
{
    struct progress progress;
    struct prefetched item;
    uint64_t n = 0;
    int status = 0;
    progress_begin(&progress, "packing", pack->records.dataset ? "samples" : "images");
    while (status == 0 && !interrupt_seen() && next_item(pack, n, &item)) {
        status = add(pack, &item);
        if (pack->prefetcher)
            prefetcher_release(pack->prefetcher, &item);
        n++;
        progress_update(&progress, (double)n / (double)pack->n, n);
    }
    progress_end(&progress);
    return status;
}

static void warn_of_palettes(const struct pack *pack)
{
    char n[UNIT_SIZE];
    if (pack->n_palettes)
        message_say("warning: %s PNG file%s %s a palette. Loaders read pictures correctly, in the "
                    "palette's colours, but not masks: resizing mixes colours, and class ids are "
                    "lost. Pack masks in a field of kind mask, with their image, with "
                    "penstock.pack or penstock.Writer in Python",
                    unit_count(n, pack->n_palettes), pack->n_palettes == 1 ? "" : "s",
                    pack->n_palettes == 1 ? "has" : "have");
}

/* The results of a pack. */
struct result {
    struct pstk_dataset_info info;
    struct pstk_field_stats images; /* stats of the field jpg */
    double seconds;
};

static int print_json(struct pack *pack, const struct result *result)
{
    const struct pstk_dataset_info *info = &result->info;
    const struct census census = census_of(&result->images);
    struct json_t *object = json_make_object(), *images = json_make_object();
    char note[PROFILE_NOTE_SIZE];
    json_put_text(object, "path", pack->out);
    part_put(&pack->part, object);
    json_put_count(object, "n_samples", info->n_samples);
    json_put_count(object, "n_classes", info->n_names);
    json_put_count(object, "n_shards", info->n_shards);
    json_put_count(object, "bytes", info->bytes);
    json_put_text(object, "identity", info->identity);
    json_put_real(object, "seconds", result->seconds);
    json_put_bool(object, "done_already", pack->is_done);
    json_put_text(object, "note",
                  annotated_note(&pack->annotated, profile_note(&pack->profile, note)));
    json_put_count(object, "file_bytes", pack->bytes_in);
    json_put_count(object, "image_bytes", result->images.stored_bytes);
    census_put(&census, images);
    json_put(object, "images", images);
    json_put(object, "passthrough", passthrough_json(&pack->passthrough));
    json_put_count(object, "n_palette_images", pack->n_palettes);
    json_put_count(object, "n_remade_images", pack->n_remade);
    records_put(&pack->records, object);
    annotated_put(&pack->annotated, object);
    bad_put(&pack->bad, &pack->tree, object);
    return json_print(object, STATUS_OK);
}

static void print_images(const struct pack *pack, const struct result *result)
{
    const struct census census = census_of(&result->images);
    char images[CENSUS_SIZE], before[UNIT_SIZE], after[UNIT_SIZE];
    if (result->info.n_samples == 0 || (pack->records.dataset && pack->records.image < 0))
        return;
    printf("images: %s\n", census_text(&census, images));
    passthrough_print(&pack->passthrough);
    if (pack->n_remade)
        printf("        %s PNG file%s damaged after %s rows: %s\n",
               unit_count(before, pack->n_remade), pack->n_remade == 1 ? " was" : "s were",
               pack->n_remade == 1 ? "its" : "their",
               pack->n_remade == 1 ? "a new file has them" : "new files have them");
    printf("%s of files became %s of images (%.1f %%)\n",
           unit_bytes(before, (double)pack->bytes_in),
           unit_bytes(after, (double)result->images.stored_bytes),
           100.0 * (double)result->images.stored_bytes /
               (pack->bytes_in ? (double)pack->bytes_in : 1.0));
}

static void print_speed(const struct result *result)
{
    const double seconds = result->seconds, n = (double)result->info.n_samples;
    char time[UNIT_SIZE], rate[UNIT_SIZE];
    printf(" in %s (%s/s)\n", unit_seconds(time, seconds),
           unit_count(rate, (uint64_t)(n / (seconds > 0 ? seconds : 1))));
}

static int print_text(struct pack *pack, const struct result *result)
{
    const struct pstk_dataset_info *info = &result->info;
    char n[UNIT_SIZE], classes[UNIT_SIZE], shards[UNIT_SIZE], bytes[UNIT_SIZE];
    printf("%s %s %s%s", pack->is_done ? "the part has" : "packed", unit_count(n, info->n_samples),
           pack->records.dataset ? "sample" : "image", info->n_samples == 1 ? "" : "s");
    if (info->n_names)
        printf(" of %s class%s", unit_count(classes, info->n_names),
               info->n_names == 1 ? "" : "es");
    printf(" %s %s shard%s: %s", pack->is_done ? "in" : "into", unit_count(shards, info->n_shards),
           info->n_shards == 1 ? "" : "s", unit_bytes(bytes, (double)info->bytes));
    if (pack->is_done) {
        putchar('\n');
    } else {
        print_speed(result);
        print_images(pack, result);
        annotated_print(&pack->annotated);
    }
    if (is_part(pack)) {
        if (pack->task.key)
            printf("next: when all tasks have packed their parts, ");
        else
            printf("next: when all %u parts are packed, ", pack->part.n);
        message_program();
        puts(" merge PART... OUT");
    } else {
        message_next("bench", pack->out);
    }
    return message_finish(STATUS_OK);
}

static int report(struct pack *pack, double seconds)
{
    struct pstk_dataset *dataset;
    struct pstk_error err;
    struct result result = {
        .info.size = sizeof result.info, .images.size = sizeof result.images, .seconds = seconds};
    pstk_error_init(&err, sizeof err);
    int r = pstk_dataset_open(&dataset, pack->out, NULL, &err);
    /* An empty part can only be merged, not opened. */
    if (r < 0 && !(r == PSTK_ENODATA && is_part(pack)))
        return status_refuse(&err, pack->out);
    if (r == 0)
        r = pstk_dataset_get_info(dataset, &result.info);
    if (r == 0)
        r = pstk_dataset_get_field(dataset,
                                   pack->records.image > 0 ? (uint32_t)pack->records.image : 0,
                                   NULL, &result.images);
    pstk_dataset_close(&dataset);
    if (r < 0 && r != PSTK_ENODATA)
        return status_of_code(r);
    if (pack->profile.jpeg == PROFILE_KEEP) { /* no planes were asked for */
        const struct census census = census_of(&result.images);
        pack->passthrough.n[PASSTHROUGH_ASKED] = census.n_passthrough_jpeg;
        pack->passthrough.n[PSTK_PASSTHROUGH_NOT_JPEG] = census.n_passthrough_png;
    }
    return pack->json ? print_json(pack, &result) : print_text(pack, &result);
}

static int finish(struct pack *pack)
{
    struct pstk_error err;
    if (interrupt_seen()) {
        pstk_writer_abort(&pack->writer);
        message_say("interrupted: nothing was packed, %s", standing(pack));
        return interrupt_status();
    }
    bad_print(&pack->bad, &pack->tree, pack->n);
    if (pack->bad.n && !pack->skip_bad) {
        message_say("nothing was packed; repair or remove them, or skip them with --skip-bad");
        return STATUS_DAMAGED;
    }
    if (pack->bad.n == pack->n && !is_part(pack)) {
        pstk_writer_abort(&pack->writer);
        message_say("nothing was packed: every image was skipped");
        return STATUS_DAMAGED;
    }
    pstk_error_init(&err, sizeof err);
    pack->n_remade = pstk_writer_n_remade(pack->writer);
    if (pstk_writer_commit(&pack->writer, &err) < 0)
        return status_refuse(&err, pack->out);
    warn_of_palettes(pack);
    annotated_warn(&pack->annotated);
    records_print(&pack->records, &pack->fields);
    int status = report(pack, unit_now() - pack->start);
    if (status)
        message_say("%s was still packed completely", pack->out);
    else if (interrupt_seen())
        return interrupt_say("but the data set was complete already");
    return status;
}

static void say_left_out(const struct pack *pack)
{
    char formats[FORMATS_TEXT];
    if (pack->records.dataset)
        ignored_say_files(&pack->records.info, pack->src);
    else
        ignored_say_images(pack->tree.info.n_left_out, pack->src);
    uint64_t n = pack->tree.foreign.n;
    if (n)
        message_say("%llu image%s in %s %s left out, of formats that are not packed: %s; convert "
                    "the images that shall be packed to JPEG or PNG",
                    (unsigned long long)n, n == 1 ? "" : "s", pack->src, n == 1 ? "is" : "are",
                    formats_text(&pack->tree.foreign, formats));
    n = pack->tree.info.n_hidden;
    if (n)
        message_say("%llu name%s in %s %s with a dot and %s left out", (unsigned long long)n,
                    n == 1 ? "" : "s", pack->src, n == 1 ? "begins" : "begin",
                    n == 1 ? "is" : "are");
    n = pack->tree.info.n_others;
    if (n)
        message_say("%llu file%s in %s %s%s", (unsigned long long)n, n == 1 ? "" : "s", pack->src,
                    n == 1 ? "is left out: its name is not an image's"
                           : "are left out: their names are not images'",
                    pack->tree.by_content
                        ? ", and no first bytes are a JPEG's or PNG's"
                        : "; --by-content takes JPEG and PNG files whatever their names");
}

static void say_part(const struct pack *pack)
{
    char part_is[PART_TEXT];
    if (!pack->part.is_auto)
        return;
    message_say("%s, into %s", part_text(&pack->part, part_is), pack->out);
    part_warn(&pack->part, pack->folder);
}

/* Return 1 when threads read the images. */
static int has_prefetcher(const struct pack *pack)
{
    return !pack->records.dataset || pack->records.image >= 0;
}

static int open_prefetcher(struct pack *pack)
{
    if (!has_prefetcher(pack))
        return 0;
    const struct prefetcher_config config = {
        .root = pack->src,
        .tree = &pack->tree,
        .first = pack->first,
        .n = pack->n,
        .n_threads = pack->n_threads,
        .convert = pack->profile.convert.size ? &pack->profile.convert : NULL,
        .damaged = pack->profile.damaged,
        .dataset = pack->records.dataset,
        .field = (uint32_t)pack->records.image,
        .absent = annotated_absent(&pack->annotated)};
    return prefetcher_open(&pack->prefetcher, &config);
}

/* Find the files or samples to pack; *n: their number. */
static int open_source(struct pack *p, uint64_t *n)
{
    int status = annotated_is_asked(&p->annotated) ? annotated_open(&p->annotated, p->src, &p->tree)
                                                   : records_open(&p->records, p->src, &p->fields);
    if (status == 0 && !p->annotated.a && !p->records.dataset)
        status = tree_scan(&p->tree, p->src, p->folder);
    else if (status == 0 && p->tree.by_content)
        status = message_usage("--by-content: must be left out, except for a folder of images");
    *n = p->records.dataset ? p->records.info.n_samples : p->tree.n_files;
    return status;
}

/* Use all cores, or fewer if they would take more memory than there is: the kernel kills such a
 * process, and the files packed so far are lost. Returns the number that it would choose with
 * unlimited memory. */
static uint32_t choose_threads(struct pack *p)
{
    if (p->n_threads)
        return p->n_threads;
    const uint32_t n = part_threads(&p->part, machine_n_cores(MAX_THREADS));
    p->n_threads = machine_n_within(n, THREAD_MEMORY * part_processes(&p->part));
    return n;
}

/* Return 1 when more threads than chosen could read images or compress fields. */
static int lacks_threads(const struct pack *p)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    if (has_prefetcher(p))
        return p->n > p->n_threads;
    for (uint32_t i = records_fields(&p->records, &p->profile, fields); i-- > 0;)
        if (fields[i].codec != PSTK_CODEC_NONE)
            return 1;
    return 0;
}

static int pack(struct pack *p)
{
    uint64_t n;
    int status = open_source(p, &n);
    if (status) {
        part_undo(&p->part, p->folder);
        return status;
    }
    say_part(p);
    say_left_out(p);
    /* at most 2^47 files by 2^16 parts: no overflow */
    p->first = p->part.number * n / p->part.n;
    p->n = (p->part.number + UINT64_C(1)) * n / p->part.n - p->first;
    if (p->n == 0)
        message_say("part %u/%u gets no image: %s holds only %llu", p->part.number, p->part.n,
                    p->src, (unsigned long long)n);
    const uint32_t n_wanted = choose_threads(p);
    status = open_writer(p);
    if (p->is_done)
        return report(p, unit_now() - p->start);
    if (status == 0 && p->n_threads < n_wanted && lacks_threads(p))
        message_say(
            "threads: %u instead of %u, because memory is limited (--threads sets another number)",
            p->n_threads, n_wanted);
    if (status == 0)
        status = open_prefetcher(p);
    if (status == 0)
        status = add_all(p);
    prefetcher_close(&p->prefetcher);
    return status ? status : finish(p);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct pack p = {.shard_size = SHARD_SIZE};
    int c;
    annotated_init(&p.annotated);
    while ((c = options_next(&options)) > 0)
        if (set_option(&p, c, optarg) < 0)
            return STATUS_USAGE;
    if (c < 0 || options_operands(&options, 2, 2, "SRC and OUT") < 0)
        return options.status;
    p.tree.by_content = (int)p.fields.by_content;
    p.fields.by_content = 0; /* pack lists folders of images itself */
    int status = profile_check(&p.profile);
    if (status == 0)
        status = annotated_check(&p.annotated, &p.profile);
    if (status == 0 && fields_given(&p.fields) && annotated_is_asked(&p.annotated))
        status = message_usage("%s: cannot be given together with --coco or --voc",
                               fields_given(&p.fields));
    if (status == 0)
        status = part_settle(&p.part);
    if (status == 0)
        status = task_check(&p.task, p.part.n, p.part.is_auto);
    if (status)
        return status;
    p.src = options_operand(&options, 0);
    p.folder = options_operand(&options, 1);
    p.start = unit_now();
    interrupt_install();
    interrupt_ignore_pipe();
    p.out = p.path = part_path(&p.part, p.folder);
    status = p.path ? pack(&p) : STATUS_USAGE;
    pstk_writer_abort(&p.writer);
    annotated_close(&p.annotated);
    bad_close(&p.bad);
    records_close(&p.records);
    tree_close(&p.tree);
    free(p.path);
    return status;
}

const struct command command_pack = {
    .name = "pack",
    .summary = "pack a folder of images, or COCO or Pascal VOC, into a data set",
    .operands = "SRC OUT",
    .text = text,
    .options = table,
    .examples =
        "penstock pack imagenet/train train\n"
        "penstock pack photos out --skip-bad --shard-size 1G\n"
        "penstock pack 'shards/{000..127}.tar' train\n"
        "penstock pack imagenet/train train256 --pixels 256\n"
        "penstock pack --coco annotations/instances_train2017.json train2017 coco-train\n"
        "penstock pack --voc VOCdevkit/VOC2012 --image-set train voc-train\n"
        "penstock pack imagenet/train part3 --part 3/8    # on the fourth of eight machines\n"
        "mpirun -n 8 penstock pack imagenet/train parts --part auto && penstock merge parts/part-* "
        "train\n"
        "penstock pack frames/day7 parts/day7 --task day7 --pack-id "
        "0f6a2c3bd4e74d1c8b9a5e6f70819203\n",
    .exit_status = "0 packed, or a part is done already; 1 unreadable images or annotations, or a "
                   "failing machine, nothing "
                   "packed; 2 wrong "
                   "usage, path or permission; 130 Ctrl-C",
    .run = run,
};
