/* SPDX-License-Identifier: Apache-2.0 */
#include "format/folder/rules.h"

#include "base/error.h"
#include "base/utf8.h"

#include <string.h>

#define MAX_DEPTH 64 /* max nested folders; images.c has a descriptor open for each */

int pstk__folder_refuse_deep(struct pstk__folder_named named, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "%s%.500s: folders are nested too deeply here; must be at most %d levels",
                      named.before, named.name, MAX_DEPTH);
}

int pstk__folder_enter(struct pstk__folder_above *above, const struct pstk__folder_above *parent,
                       struct pstk__folder_named named, struct pstk_error *err)
{
    above->parent = parent;
    above->depth = parent ? parent->depth + 1 : 0;
    if (above->depth > MAX_DEPTH)
        return pstk__folder_refuse_deep(named, err);
    for (const struct pstk__folder_above *up = parent; up; up = up->parent)
        if (up->device == above->device && up->inode == above->inode)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s%.500s is a link to a folder that it lies in; remove the link",
                              named.before, named.name);
    return 0;
}

int pstk__folder_check_class(struct pstk__folder_named named, const char *name,
                             struct pstk_error *err)
{
    const uint64_t length = strlen(name);
    if (pstk__utf8_end(name, length) == length)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "the folder %s%.500s has a name that is not UTF-8", named.before, named.name);
}

int pstk__folder_refuse_empty(struct pstk__folder_named named, enum pstk__folder_empty empty,
                              struct pstk_error *err)
{
    if (empty == PSTK__EMPTY_MANIFEST)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "the class folder %s%.500s holds no images, but a manifest.json, as a data "
            "set has; move it elsewhere (it would be a class of its own)",
            named.before, named.name);
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "the class folder %s%.500s holds %s; remove it, or fill it with JPEG or PNG "
                      "files (it would be a class of its own)",
                      named.before, named.name,
                      empty == PSTK__EMPTY_FOREIGN ? "only images of formats that are not packed"
                                                   : "no images");
}
