/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_report: any bytes as a line that `penstock page` reads. A line that is a JSON object becomes
 * the tables of a page, whatever its values are, and none of its text becomes markup.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report_body.h"
#include "cli/ui/json.h"
#include "cli/ui/json_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(void (*write)(FILE *file, const struct json_t *document),
                     const struct json_t *document)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        abort();
    write(file, document);
    if (fclose(file) != 0 || strlen(text) != size)
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = strndup((const char *)data, size);
    size_t strict_size;
    char *strict = json_line_strict(line, &strict_size);
    if (strlen(strict) != strict_size || strict_size > strlen(line) + strlen(line) / 3)
        abort();
    struct json_t *document = json_parse(strict, strict_size);
    if (document) {
        char *body = written(report_body, document), *json = written(json_write_html, document);
        if (strcasestr(body, "<script") || strcasestr(body, "<img") || strpbrk(json, "<>&"))
            abort();
        struct json_t *again = json_parse(json, strlen(json));
        if (!again)
            abort();
        json_drop(again);
        free(body);
        free(json);
    }
    json_drop(document);
    free(strict);
    free(line);
    return 0;
}
