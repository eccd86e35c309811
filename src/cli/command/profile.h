/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: the storage of images by pack: the codecs of its fields, the changes that an image goes
 * through first, and the note in the manifest that records them.
 */
#ifndef PSTK_CLI_PROFILE_H
#define PSTK_CLI_PROFILE_H

#include <penstock/format.h>

#include "option/options.h"

enum { OPT_JPEG = 768, OPT_COMPRESS, OPT_PIXELS, OPT_MAX_SIDE, OPT_QUALITY, OPT_DAMAGED };

extern const struct choice profile_jpegs[], profile_compressions[], profile_damages[];

/* Rows for a table of options: lossless storage of images, */
#define PROFILE_OPTIONS                                                                            \
    {.name = "jpeg",                                                                               \
     .code = OPT_JPEG,                                                                             \
     .values = profile_jpegs,                                                                      \
     .initial = "planes",                                                                          \
     .text = "how to store JPEGs (planes: in a code that decodes faster; the few files that "      \
             "planes cannot give back byte for byte come back as a standard JPEG with the same "   \
             "coefficients; exact: as planes, except those few, which stay unchanged; keep: all "  \
             "unchanged)"},                                                                        \
        {.name = "compress",                                                                       \
         .code = OPT_COMPRESS,                                                                     \
         .value = "zstd:LEVEL",                                                                    \
         .values = profile_compressions,                                                           \
         .initial = "none",                                                                        \
         .text = "compress the field key (with annotations file_name), and with --pixels the "     \
                 "pixels; LEVEL is 1 to 22"},                                                      \
    {                                                                                              \
        .name = "damaged", .code = OPT_DAMAGED, .values = profile_damages, .initial = "refuse",    \
        .text = "what to do with damaged images that Pillow loads (refuse: they are bad files; "   \
                "accept: keep JPEGs that decode only with guesses, and mark them; loaders decode " \
                "them as Pillow does; of PNGs whose damage follows their rows, store a new file "  \
                "with these rows)"                                                                 \
    }
/* and options that lose data. */
#define PROFILE_LOSS_OPTIONS                                                                       \
    {.text = "with loss, which the note in the manifest records (`penstock info` prints it)"},     \
        {.name = "pixels",                                                                         \
         .code = OPT_PIXELS,                                                                       \
         .value = "N",                                                                             \
         .text =                                                                                   \
             "store decoded pixels (RGB, u8); an image whose shorter side is longer than N is "    \
             "resized to it, the other side to int(N * longer / shorter), as torchvision's "       \
             "Resize(N) does; the EXIF orientation is lost"},                                      \
        {.name = "max-side",                                                                       \
         .code = OPT_MAX_SIDE,                                                                     \
         .value = "N",                                                                             \
         .text = "resize images whose longer side is longer than N to it (Pillow's bilinear, "     \
                 "sides rounded, halves up) and re-encode those as JPEGs"},                        \
    {                                                                                              \
        .name = "quality", .code = OPT_QUALITY, .value = "Q",                                      \
        .text = "re-encode all images as JPEGs of this quality, 1 to 100, 4:2:0 (with --max-side " \
                "alone: 90, only those that shrink)"                                               \
    }

enum profile_jpeg { PROFILE_PLANES = 0, PROFILE_EXACT = 1, PROFILE_KEEP = 2 };

#define PROFILE_NOTE_SIZE 128

/* Zeroed at the start. */
struct profile {
    uint32_t damaged;            /* enum pstk_damaged */
    uint32_t jpeg;               /* enum profile_jpeg */
    int has_jpeg;                /* 1: --jpeg was given */
    uint32_t codec, level;       /* for the parts that --compress applies to */
    struct pstk_convert convert; /* convert.size is 0 when images stay unchanged */
};

/* Read one of the options above. Returns 0, or -1 after a message. */
int profile_set(struct profile *profile, int code, const char *value);
/* Check the options together, after the last one. Returns 0, or an exit status after a message that
 * names the contradicting options. */
int profile_check(struct profile *profile);
/* Set codec and level of the image field, or of a text field. */
void profile_image_codec(const struct profile *profile, struct pstk_field *field);
void profile_text_codec(const struct profile *profile, struct pstk_field *field);
/* Write the note: "penstock pack", then every change to images as KEY=VALUE after a space. Returns
 * `text`. */
const char *profile_note(const struct profile *profile, char text[PROFILE_NOTE_SIZE]);

#endif
