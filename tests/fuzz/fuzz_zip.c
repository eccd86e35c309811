/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_zip: any bytes as an archive. What passes has members whose data are before the directory,
 * and apart.
 */
#include "support/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_places(const struct archive *archive, size_t size)
{
    const uint64_t end = archive->zip.directory_offset;
    char shown[80];
    if (end > size || archive->zip.directory_size > size - end)
        abort();
    for (uint32_t i = 0; i < archive->n; i++) {
        const struct pstk__zip_member *member = &archive->members[i];
        if (member->offset < member->local_offset + 30 || member->offset > end ||
            member->size > end - member->offset || strlen(pstk__zip_shown(member, shown)) > 79)
            abort();
        for (uint32_t k = 0; k < i; k++) {
            const struct pstk__zip_member *other = &archive->members[k];
            if (member->local_offset < other->offset + other->size &&
                other->local_offset < member->offset + member->size)
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct archive archive;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int rc = archive_read(&archive, data, size, &err);
    if (rc < 0 && (rc != err.code || err.message[0] == 0))
        abort();
    if (rc == 0)
        check_places(&archive, size);
    archive_end(&archive);
    return 0;
}
