/* SPDX-License-Identifier: Apache-2.0 */
/* voc_xml: parses one XML file of Pascal VOC, with expat. Every failure names file, line and
 * element. */
#ifndef PSTK_VOC_XML_H
#define PSTK_VOC_XML_H

#include <penstock/types.h>

#define PSTK__VOC_TEXT 256 /* bytes of an element's text, with its terminating 0 */

/* An object, without the boxes of its parts (a person's head, hands, feet). */
struct pstk__voc_object {
    char name[PSTK__VOC_TEXT];
    char pose[PSTK__VOC_TEXT]; /* "": the file has none */
    double box[4];             /* xmin, ymin, xmax, ymax, as written */
    uint32_t seen;             /* bits of the members of the box */
    uint8_t difficult, truncated;
};

struct pstk__voc_file {
    uint32_t width, height;           /* pixels; 0: unknown */
    struct pstk__voc_object *objects; /* owned; the capacity is the next power of two */
    uint64_t n;
    int skip_bad;          /* 1: leave out bad objects */
    uint64_t n_bad;        /* bad objects that were left out */
    struct pstk_error bad; /* error of the first bad object */
};

/* Parse the bytes of a file into a struct in which only skip_bad is set. `path` is for messages. 0,
 * EBADMSG or ENOMEM. Close it in any case. */
int pstk__voc_parse(struct pstk__voc_file *file, const char *path, const void *text, uint64_t size,
                    struct pstk_error *err);
void pstk__voc_file_close(struct pstk__voc_file *file);

#endif
