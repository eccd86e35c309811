/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form: how pack stores images: which codec its fields get, what is done to an image before, and
 * the note of it in the manifest.
 */
#ifndef PSTK_CLI_FORM_H
#define PSTK_CLI_FORM_H

#include <penstock/format.h>

#include "options.h"

enum { OPT_JPEG = 768, OPT_COMPRESS, OPT_PIXELS, OPT_MAX_SIDE, OPT_QUALITY };

/* Rows for a getopt table. */
#define FORM_OPTIONS                                                                               \
    {"jpeg", required_argument, NULL, OPT_JPEG},                                                   \
        {"compress", required_argument, NULL, OPT_COMPRESS},                                       \
        {"pixels", required_argument, NULL, OPT_PIXELS},                                           \
        {"max-side", required_argument, NULL, OPT_MAX_SIDE},                                       \
    {                                                                                              \
        "quality", required_argument, NULL, OPT_QUALITY                                            \
    }

enum form_jpeg { FORM_PLANES = 0, FORM_EXACT = 1, FORM_KEEP = 2 };

#define FORM_NOTE_SIZE 128

/* Zeroed at the start. */
struct form {
    uint32_t jpeg;               /* enum form_jpeg */
    int has_jpeg;                /* it was asked for */
    uint32_t codec, level;       /* of what --compress is for */
    struct pstk_convert convert; /* no size: images stay what they are */
};

/* Take one of the options above. 0, or -1 after having said what is wrong. */
int form_set(struct form *f, int code, const char *value);
/* After the last option: 0, or an exit status after having said which ones contradict. */
int form_check(struct form *f);
/* Set codec and level of the field of images, and of a field of text. */
void form_image_codec(const struct form *f, struct pstk_field *field);
void form_text_codec(const struct form *f, struct pstk_field *field);
/* The note: "penstock pack", then what is done to images as KEY=VALUE, each after a space. */
const char *form_note(const struct form *f, char text[FORM_NOTE_SIZE]);

#endif
