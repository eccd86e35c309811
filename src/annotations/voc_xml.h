/* SPDX-License-Identifier: Apache-2.0 */
/* voc_xml: one XML file of Pascal VOC, by expat. Every failure names file, line and element. */
#ifndef PSTK_VOC_XML_H
#define PSTK_VOC_XML_H

#include <penstock/types.h>

#define PSTK__VOC_TEXT 256 /* bytes of the text of an element, with its terminating 0 */

/* An object; the boxes of its parts (a person's head, hands, feet) are left out. */
struct pstk__voc_object {
    char name[PSTK__VOC_TEXT];
    char pose[PSTK__VOC_TEXT]; /* "": the file has none */
    double box[4];             /* xmin, ymin, xmax, ymax, as they are written */
    uint32_t seen;             /* bits of the box's members */
    uint8_t difficult, truncated;
};

struct pstk__voc_file {
    uint32_t width, height;           /* pixels; 0: unknown */
    struct pstk__voc_object *objects; /* owned; room is the next power of two */
    uint64_t n;
    int skip_bad;          /* leave out bad objects, */
    uint64_t n_bad;        /* and their number, */
    struct pstk_error bad; /* and what is wrong with the first */
};

/* Parse the bytes of a file into a struct that has skip_bad alone. `path` is for messages. 0;
 * EBADMSG, ENOMEM. Close it in any case. */
int pstk__voc_parse(struct pstk__voc_file *file, const char *path, const void *text, uint64_t size,
                    struct pstk_error *err);
void pstk__voc_file_close(struct pstk__voc_file *file);

#endif
