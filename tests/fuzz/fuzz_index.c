/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_index: any bytes as the file of an index, as they are and with right checksums. What opens
 * has tables whose pages lie in the file.
 */
#include "base/crc32c.h"
#include "store/index/index.h"
#include "store/index/layout.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t key[2] = {11, 22};

/* Give the file the facts and checksums that open asks for. */
static void mend(uint8_t *bytes, size_t size)
{
    const uint64_t tail = size > 4096 + 64 ? size - (size - 4096) / 64 * 64 : size;
    pstk__put64(bytes + PSTK__IH_KEY, key[0]);
    pstk__put64(bytes + PSTK__IH_KEY + 8, key[1]);
    pstk__put64(bytes + PSTK__IH_SIZE, size);
    if (pstk__get64(bytes + PSTK__IH_TAIL) < 4096 || pstk__get64(bytes + PSTK__IH_TAIL) > size)
        pstk__put64(bytes + PSTK__IH_TAIL, tail);
    const uint64_t begin = pstk__get64(bytes + PSTK__IH_TAIL);
    pstk__put32(bytes + PSTK__IH_TAIL_CRC, pstk__crc32c(0, bytes + begin, size - begin));
    pstk__sidecar_seal(bytes, PSTK__INDEX_HEADER, PSTK__SIDECAR_INDEX_MAGIC, PSTK__INDEX_VERSION);
}

static void check(const char *path)
{
    struct pstk__index *index;
    if (pstk__index_open(&index, path, open(path, O_RDONLY), key, NULL) < 0)
        return;
    uint64_t n = 0;
    for (uint32_t i = 0; i < index->n_files; i++) {
        const struct pstk__index_file *file = &index->files[i];
        if (file->first != n ||
            file->pages + pstk__index_table_n_pages(&file->table) * PSTK__INDEX_TABLE_PAGE >
                index->size)
            abort();
        n += file->table.n_rows;
        (void)pstk__texts_get(&index->names, i);
    }
    if (n != index->n_samples || (n && pstk__index_find(index, n - 1) >= index->n_files))
        abort();
    pstk__index_close(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[1 << 16];
    char path[] = "/tmp/pstk-fuzz-XXXXXX";
    if (size > sizeof bytes)
        return 0;
    memset(bytes, 0, sizeof bytes);
    if (size)
        memcpy(bytes, data, size);
    const int fd = mkstemp(path);
    if (fd < 0)
        return 0;
    for (int mended = 0; mended <= (size >= 4096); mended++) {
        if (mended)
            mend(bytes, size);
        if (pwrite(fd, bytes, size, 0) == (ssize_t)size)
            check(path);
    }
    close(fd);
    unlink(path);
    return 0;
}
