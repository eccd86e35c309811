/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The record formats there are, the first that knows a path wins. */
static const struct pstk__format *const formats[] = {&pstk__format_pstk};

#define N_FORMATS (sizeof formats / sizeof formats[0])

/* Why no format knows `path`. */
static int fail_unknown(const char *path, struct pstk_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN, "no such file or directory: %s",
                                path)
                   : pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", path);
    size_t n = strlen(path);
    if (S_ISDIR(st.st_mode))
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                          "%s has no manifest.json, so it is no data set: that is a directory with "
                          "a manifest.json and *.pstk shards, as `penstock pack` makes it",
                          path);
    if (n >= 5 && strcmp(path + n - 5, ".pstk") == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s is one shard of a data set; give the directory that holds it", path);
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "%s is a file; a data set is a directory with a manifest.json and *.pstk "
                      "shards, as `penstock pack` makes it",
                      path);
}

int pstk__source_open(struct pstk__source **out, const char *path, struct pstk_error *err)
{
    *out = NULL;
    if (!path || !path[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "path is not set");
    for (size_t i = 0; i < N_FORMATS; i++) {
        int r = formats[i]->probe(path, err);
        if (r < 0)
            return r;
        if (r > 0)
            return formats[i]->open(out, path, err);
    }
    return fail_unknown(path, err);
}

void pstk__source_close(struct pstk__source *s)
{
    if (s)
        s->format->close(s);
}
