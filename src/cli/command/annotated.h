/* SPDX-License-Identifier: Apache-2.0 */
/* annotated: pack's options --coco and --voc: the files that are packed, and the fields and values
 * from their annotations. */
#ifndef PSTK_CLI_ANNOTATED_H
#define PSTK_CLI_ANNOTATED_H

#include <penstock/annotations.h>

#include "command/profile.h"
#include "command/tree.h"
#include "option/options.h"
#include "ui/json.h"

enum {
    OPT_COCO = 1024,
    OPT_VOC,
    OPT_VOC_OFFSET,
    OPT_IMAGE_SET,
    OPT_SKIP_EMPTY,
    OPT_PANOPTIC_MASKS
};

/* Maximum fields of a record after its image. */
#define ANNOTATED_FIELDS 16

/* Rows for a table of options. */
#define ANNOTATED_OPTIONS                                                                          \
    {.text = "with annotations"},                                                                  \
        {.name = "coco",                                                                           \
         .code = OPT_COCO,                                                                         \
         .value = "FILE",                                                                          \
         .text = "pack the images below SRC that this JSON file of COCO lists, by image id, with " \
                 "their objects or captions"},                                                     \
        {.name = "panoptic-masks",                                                                 \
         .code = OPT_PANOPTIC_MASKS,                                                               \
         .value = "DIR",                                                                           \
         .text = "with --coco and a panoptic file: the folder of its PNG files; without the "      \
                 "option FILE without .json"},                                                     \
        {.name = "voc",                                                                            \
         .code = OPT_VOC,                                                                          \
         .text = "SRC is a folder of Pascal VOC, with the folders Annotations and JPEGImages: "    \
                 "pack the images that its XML files describe"},                                   \
        {.name = "voc-offset",                                                                     \
         .code = OPT_VOC_OFFSET,                                                                   \
         .value = "N",                                                                             \
         .initial = "1",                                                                           \
         .text = "subtract N, 0 or 1, from xmin and ymin: VOC counts pixels from 1"},              \
        {.name = "image-set",                                                                      \
         .code = OPT_IMAGE_SET,                                                                    \
         .value = "NAME",                                                                          \
         .text = "with --voc: pack what ImageSets/Main/NAME.txt lists, in its order; a name with " \
                 "a slash replaces Main, too (Segmentation/train)"},                               \
    {                                                                                              \
        .name = "skip-empty", .code = OPT_SKIP_EMPTY,                                              \
        .text = "leave out images without annotations"                                             \
    }

/* Zeroed, except for settings: pstk_annotations_settings_init. */
struct annotated {
    struct pstk_annotations_settings settings; /* path: NULL until open */
    const char *coco;                          /* the file, or NULL */
    int has_voc_options;
    struct pstk_annotations *a; /* owned; NULL: SRC is a folder of images */
    struct pstk_annotations_info info;
    const char **names; /* owned; info.n_names */
    char *note;         /* owned */
    uint64_t n_sizes;   /* images whose size differs from their annotations, */
    char *size;         /* owned; and a description of the first, or NULL */
};

void annotated_init(struct annotated *annotated);
/* Read one of the options above. Returns 0, or -1 after a message. */
int annotated_set(struct annotated *annotated, int code, const char *value);
/* Check the options together. Returns 0, or an exit status after a message. */
int annotated_check(const struct annotated *annotated, const struct profile *profile);
/* Return 1 when pack packs annotations. */
int annotated_is_asked(const struct annotated *annotated);
/* Read the annotations, and list their images in a zeroed tree. Returns 0, or an exit status after
 * a message. */
int annotated_open(struct annotated *annotated, const char *src, struct tree *tree);
/* Return 1 when PNG files of masks may belong to the COCO file. */
int annotated_has_masks(const struct annotated *annotated);
/* Append the fields to `fields`. Returns their number. */
uint32_t annotated_fields(const struct annotated *annotated, struct pstk_field *fields);
/* Compare the size of image `number`, whose file was packed, with the size in its annotations. */
void annotated_compare(struct annotated *annotated, uint64_t number, const void *data,
                       uint64_t size);
/* Describe the values of the last image that are pixels, for the writer. Returns their number. */
uint32_t annotated_pixels(const struct annotated *annotated, struct pstk_pixels *pixels);
/* Return the note of the manifest: `note`, from the profile, and the part that annotations add. */
const char *annotated_note(struct annotated *annotated, const char *note);
/* Print facts about the annotations. */
void annotated_print(struct annotated *annotated);
/* Return the error text for an image that the annotations list and that does not exist; NULL: no
 * annotations. */
const char *annotated_absent(const struct annotated *annotated);
/* Warn of images whose size differs from their annotations. */
void annotated_warn(struct annotated *annotated);
/* Put `annotations`: an object, or null without annotations. */
void annotated_put(struct annotated *annotated, struct json_t *object);
void annotated_close(struct annotated *annotated);

#endif
