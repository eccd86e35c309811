/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/message.h"
#include "ui/status.h"

int output_stands(const char *path)
{
    char *manifest;
    if (asprintf(&manifest, "%s/manifest.json", path) < 0)
        message_no_memory();
    int found = access(manifest, F_OK) == 0;
    free(manifest);
    return found;
}

int output_refuse(const struct pstk_error *err, const char *path)
{
    if (err->code == PSTK_EEXIST && strstr(err->message, "set overwrite"))
        return message_usage("%s is a data set already; --overwrite replaces it", path);
    return status_refuse(err, path);
}
