/* SPDX-License-Identifier: Apache-2.0 */
/* replay: run a fuzz target over the files of its corpus folder, without libFuzzer. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Bytes of the file, in memory of exactly its size, so that ASan sees a read past the end. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *data = NULL;
    long end = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (end >= 0 && fseek(file, 0, SEEK_SET) == 0)
        data = malloc(end ? (size_t)end : 1);
    if (data && fread(data, 1, (size_t)end, file) != (size_t)end) {
        free(data);
        data = NULL;
    }
    if (fclose(file) != 0) {
        free(data);
        return NULL;
    }
    *size = (size_t)end;
    return data;
}

static int replay_file(const char *folder, const char *name, int number)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    size_t size = 0;
    uint8_t *data = n > 0 && (size_t)n < sizeof path ? read_file(path, &size) : NULL;
    if (!data) {
        printf("not ok %d - %s cannot be read\n", number, name);
        return 1;
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    printf("ok %d - %s\n", number, name);
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct dirent **entries;
    int n = argc == 2 ? scandir(argv[1], &entries, is_file, alphasort) : -1;
    if (n <= 0) {
        printf("Bail out! usage: replay CORPUS, a folder with at least one file\n");
        return 1;
    }
    printf("1..%d\n", n);
    int n_failed = 0;
    for (int i = 0; i < n; i++) {
        n_failed += replay_file(argv[1], entries[i]->d_name, i + 1);
        free(entries[i]);
    }
    free(entries);
    return n_failed != 0;
}
