/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_voc: any bytes as an XML file of Pascal VOC. A file that is read has objects with names and
 * boxes. */
#include "annotations/voc_xml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pstk__voc_file file = {.n = 0};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk__voc_parse(&file, "x.xml", data, size, &err);
    if (r < 0 && (r != err.code || err.message[0] == 0))
        abort();
    for (uint64_t i = 0; r == 0 && i < file.n; i++) {
        const struct pstk__voc_object *object = &file.objects[i];
        if (object->name[0] == 0 || strlen(object->name) >= PSTK__VOC_TEXT ||
            strlen(object->pose) >= PSTK__VOC_TEXT || !(object->box[0] <= object->box[2]) ||
            !(object->box[1] <= object->box[3]) || object->difficult > 1 || object->truncated > 1)
            abort();
    }
    pstk__voc_file_close(&file);
    return 0;
}
