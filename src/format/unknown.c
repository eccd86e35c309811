/* SPDX-License-Identifier: Apache-2.0 */
#include "format/unknown.h"

#include "base/error.h"
#include "format/listing.h"
#include "format/megatron/megatron.h"
#include "format/pstk/manifest.h"
#include "format/pstk/pstk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOUND_SIZE 900  /* bytes of the text about the contents */
#define SHOWN 100       /* bytes of a name in it */
#define MAX_TRIED 16u   /* max names below a directory that are probed as data sets */
#define MAX_FOLDERS 16u /* max folders of these that are searched for images of other formats */

/* Advice with the path, which the caller gives. */
#define PACK_IN_PYTHON "pack it with Python: penstock.pack('%s', OUT), and open OUT"

/* Image formats that other programs read and this library does not, by suffix. */
static const struct {
    const char *suffix, *name;
} images[] = {{"webp", "WebP"},    {"gif", "GIF"},       {"bmp", "BMP"},   {"tif", "TIFF"},
              {"tiff", "TIFF"},    {"heic", "HEIC"},     {"heif", "HEIF"}, {"avif", "AVIF"},
              {"jxl", "JPEG XL"},  {"jp2", "JPEG 2000"}, {"ppm", "PPM"},   {"pgm", "PGM"},
              {"j2k", "JPEG 2000"}};

static const char *suffix_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? dot + 1 : "";
}

/* Return the name of an image format that this library does not read; NULL: the file is no such
 * image. */
static const char *image_of(const char *name)
{
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        if (strcasecmp(suffix_of(name), images[i].suffix) == 0)
            return images[i].name;
    return NULL;
}

static int join(char path[PATH_MAX], const char *folder, const char *name)
{
    const size_t n = strlen(folder);
    const char *slash = n && folder[n - 1] == '/' ? "" : "/";
    const int r = snprintf(path, PATH_MAX, "%s%s%s", folder, slash, name);
    return r > 0 && r < PATH_MAX;
}

/* ---- a directory ----------------------------------------------------------------------------- */

/* 1: the directory has images that this library does not read, and *found says so. */
static int find_images(const struct pstk__texts *names, const char *below, char found[FOUND_SIZE])
{
    const char *first = NULL, *format = NULL;
    uint64_t n = 0;
    for (uint64_t i = 0; i < names->n; i++) {
        const char *name = pstk__texts_get(names, i), *is = image_of(name);
        if (!is || (format && strcmp(is, format) != 0))
            continue;
        first = first ? first : name;
        format = is;
        n++;
    }
    if (first)
        snprintf(found, FOUND_SIZE,
                 "%llu of its images %s %s (%.*s%s%.*s), which penstock does not read: convert "
                 "them to JPEG or PNG",
                 (unsigned long long)n, n == 1 ? "is" : "are", format, SHOWN, below,
                 below[0] ? "/" : "", SHOWN, first);
    return first != NULL;
}

/* 1: a data set lies below, and *found names it. */
static int find_data(const struct pstk__store *store, const char *path,
                     const struct pstk__texts *names, pstk__unknown_find_fn find,
                     char found[FOUND_SIZE])
{
    char below[PATH_MAX];
    for (uint64_t i = 0; i < names->n && i < MAX_TRIED; i++) {
        const char *name = pstk__texts_get(names, i);
        const char *format = join(below, path, name) ? find(store, below) : NULL;
        if (!format)
            continue;
        snprintf(found, FOUND_SIZE, "it contains %.*s, a data set of the format %s: open that one",
                 SHOWN, name, format);
        return 1;
    }
    return 0;
}

/* 1: a folder below has images that this library does not read. */
static int find_images_below(const struct pstk__store *store, const char *path,
                             const struct pstk__texts *names, char found[FOUND_SIZE])
{
    char below[PATH_MAX];
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < names->n && i < MAX_FOLDERS; i++) {
        struct pstk__texts more = {0};
        const char *name = pstk__texts_get(names, i);
        if (!join(below, path, name) || pstk__listing_names(&more, store, below) < 0)
            continue;
        r = find_images(&more, name, found);
        pstk__texts_close(&more);
    }
    return r;
}

static int is_parquet(const char *name)
{
    return strcasecmp(suffix_of(name), "parquet") == 0;
}

/* 1: the directory has Parquet files, and *found says so. */
static int find_parquet(const struct pstk__texts *names, const char *path, char found[FOUND_SIZE])
{
    for (uint64_t i = 0; i < names->n; i++) {
        const char *name = pstk__texts_get(names, i);
        if (!is_parquet(name))
            continue;
        snprintf(found, FOUND_SIZE, "it has %.*s, which is not read in place; " PACK_IN_PYTHON,
                 SHOWN, name, path);
        return 1;
    }
    return 0;
}

/* 1: the directory has a .bin, and no pair of Megatron-LM, and *found says so. */
static int find_bin(const struct pstk__texts *names, char found[FOUND_SIZE])
{
    for (uint64_t i = 0; i < names->n; i++) {
        const char *name = pstk__texts_get(names, i);
        if (strcmp(suffix_of(name), "bin") != 0)
            continue;
        snprintf(found, FOUND_SIZE,
                 "it has %.*s without a .idx of Megatron-LM; " PSTK__MEGATRON_RAW, SHOWN, name);
        return 1;
    }
    return 0;
}

static void describe(const struct pstk__texts *names, char found[FOUND_SIZE])
{
    const char *first = pstk__texts_get(names, 0);
    int has_manifest = 0;
    for (uint64_t i = 0; i < names->n; i++)
        has_manifest |= strcmp(pstk__texts_get(names, i), PSTK__MANIFEST_FILE) == 0;
    if (has_manifest)
        snprintf(found, FOUND_SIZE, "another program wrote its " PSTK__MANIFEST_FILE);
    else if (names->n == 1)
        snprintf(found, FOUND_SIZE, "it has only %.*s", SHOWN, first);
    else
        snprintf(found, FOUND_SIZE, "it has %llu files or folders, the first %.*s",
                 (unsigned long long)names->n, SHOWN, first);
}

/* Describe the contents of a directory. 1: the text needs no further advice. */
static int look_into(const struct pstk__store *store, const char *path, pstk__unknown_find_fn find,
                     char found[FOUND_SIZE])
{
    struct pstk__texts names = {0};
    found[0] = 0;
    if (!store->list || pstk__listing_names(&names, store, path) < 0)
        return 0;
    uint64_t shard = 0;
    int is_all = 0;
    while (shard < names.n && strcmp(suffix_of(pstk__texts_get(&names, shard)), "pstk") != 0)
        shard++;
    if (names.n == 0) {
        snprintf(found, FOUND_SIZE, "it is empty");
    } else if (shard < names.n) {
        snprintf(found, FOUND_SIZE, "it has %.*s, but no manifest.json: copy that, too", SHOWN,
                 pstk__texts_get(&names, shard));
    } else if (!find_images(&names, "", found)) {
        is_all = find_data(store, path, &names, find, found) || find_parquet(&names, path, found) ||
                 find_bin(&names, found);
        if (!is_all && !find_images_below(store, path, &names, found))
            describe(&names, found);
    }
    pstk__texts_close(&names);
    return is_all;
}

/* 1: a writer is at work in the directory, or was killed there. */
static int is_unfinished(const char *path)
{
    char journal[PATH_MAX];
    return join(journal, path, PSTK__JOURNAL_FILE) && access(journal, F_OK) == 0;
}

/* 1: save_to_disk of Hugging Face's datasets wrote the directory. */
static int is_hugging_face(const char *path)
{
    static const char *const names[] = {"dataset_info.json", "dataset_dict.json"};
    char file[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (join(file, path, names[i]) && access(file, F_OK) == 0)
            return 1;
    return 0;
}

static int fail_directory(const struct pstk__store *store, const char *path, const char *must_be,
                          pstk__unknown_find_fn find, struct pstk_error *err)
{
    char found[FOUND_SIZE];
    if (is_unfinished(path))
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                          "%s is not a data set: its writer is at work, or was killed; wait for "
                          "it, or pack again to the same place",
                          path);
    if (is_hugging_face(path))
        return pstk__fail(
            err, PSTK_ENOENT, PSTK_STAGE_OPEN,
            "%s is not a data set: it is what save_to_disk of Hugging Face's datasets "
            "wrote; " PACK_IN_PYTHON,
            path, path);
    if (look_into(store, path, find, found))
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN, "%s is not a data set: %s", path,
                          found);
    return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                      "%s is not a data set%s%s; must be a directory with %s", path,
                      found[0] ? ": " : "", found, must_be);
}

/* 1: penstock.pack of the Python package takes files with this suffix, and no format reads them. */
static int is_packed_in_python(const char *suffix)
{
    static const char *const suffixes[] = {"h5", "hdf5", "pt", "pth"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcasecmp(suffix, suffixes[i]) == 0)
            return 1;
    return 0;
}

/* ---- a pattern ------------------------------------------------------------------------------- */

/* 1: by its name the file may be a part of a data set of the format, which its folder is. */
static int is_part(const char *name, const char *format)
{
    static const struct {
        const char *name, *suffix, *formats; /* name: may be NULL */
    } parts[] = {{NULL, "jpg", "folder table"}, {NULL, "jpeg", "folder table"},
                 {NULL, "png", "folder table"}, {NULL, "mds", "mds"},
                 {"index.json", "json", "mds"}, {"manifest.json", "json", "pstk"}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcasecmp(suffix_of(name), parts[i].suffix) == 0 &&
            (!parts[i].name || strcmp(name, parts[i].name) == 0) &&
            strstr(parts[i].formats, format))
            return 1;
    return 0;
}

static int is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Return the format of a folder that should be opened instead of a pattern of names in it, one of
 * which is `name`, at `path`; NULL: none. A folder of class folders is one, if these hold images
 * themselves. */
static const char *format_of_parent(const struct pstk__store *store, const char *folder,
                                    const char *name, const char *path, pstk__unknown_find_fn find)
{
    const char *format = find(store, folder);
    if (!format)
        return NULL;
    if (is_folder(path))
        return strcmp(format, "folder") == 0 &&
                       pstk__listing_probe(store, path, ".jpg .jpeg .png .JPG .JPEG .PNG", NULL) > 0
                   ? format
                   : NULL;
    const char *own = find(store, path);
    return (own && strcmp(own, format) == 0) || is_part(name, format) ? format : NULL;
}

/* Fail because the pattern matches names that no format reads. */
static int fail_matches(const struct pstk__store *store, const char *path,
                        const struct pstk__listing *listing, pstk__unknown_find_fn find,
                        struct pstk_error *err)
{
    char first[PATH_MAX];
    const char *name = pstk__texts_get(&listing->names, 0), *format = NULL, *give = first;
    const int is_joined = join(first, listing->folder, name);
    if (is_joined && (format = format_of_parent(store, listing->folder, name, first, find)))
        give = listing->folder;
    else if (is_joined && is_folder(first))
        format = find(store, first);
    const unsigned long long n = listing->names.n;
    if (format && !is_folder(first) && strcmp(suffix_of(path), suffix_of(name)) == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s matches %llu name%s, the first %.*s; must be their folder, because "
                          "no pattern opens this format (open %s, of the format %s)",
                          path, n, n == 1 ? "" : "s", SHOWN, name, give, format);
    if (format)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s matches %llu name%s, the first %.*s%s; must match files of one "
                          "format, and end in its suffix, as in *.tar (open %s, of the format %s)",
                          path, n, n == 1 ? "" : "s", SHOWN, name,
                          is_folder(first) ? ", a folder" : "", give, format);
    if (is_folder(first))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s matches %llu folder%s, the first %.*s; must match files of one "
                          "format, and end in its suffix, as in *.tar",
                          path, n, n == 1 ? "" : "s", SHOWN, name);
    if (is_parquet(path) && is_parquet(name))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s matches %llu Parquet file%s, which penstock does not read in "
                          "place; " PACK_IN_PYTHON,
                          path, n, n == 1 ? "" : "s", path);
    if (is_parquet(name) && path[strlen(path) - 1] == '*') /* the first alone would be a part */
        snprintf(first, sizeof first, "%s.parquet", path);
    if (is_parquet(name) || is_packed_in_python(suffix_of(name)))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s matches %llu file%s, the first %.*s, which penstock does not read in "
                          "place; " PACK_IN_PYTHON,
                          path, n, n == 1 ? "" : "s", SHOWN, name, first);
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "%s matches %llu file%s that no reader recognises, the first %s; must match "
                      "files of one format, and end in its suffix, as in *.tar",
                      path, n, n == 1 ? "" : "s", first);
}

/* Fail if braces of the path name a missing file. A `*` gives only existing ones. */
static int fail_missing(const char *path, const struct pstk__listing *listing,
                        struct pstk_error *err)
{
    char file[PATH_MAX];
    struct stat st;
    if (!strchr(path, '{'))
        return 0;
    for (uint64_t i = 0; i < listing->names.n; i++)
        if (join(file, listing->folder, pstk__texts_get(&listing->names, i)) && stat(file, &st) < 0)
            return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", file);
    return 0;
}

/* Copy the folder before the first part of a path that is `*`, if more parts follow. 0: there is
 * none. */
static int folder_before(const char *path, char folder[PATH_MAX])
{
    const size_t n = strcspn(path, "{*?");
    if (strncmp(path + n, "*/", 2) != 0 || (n > 0 && path[n - 1] != '/') || n >= PATH_MAX)
        return 0;
    snprintf(folder, PATH_MAX, "%.*s", n > 1 ? (int)n - 1 : 1, n > 0 ? path : ".");
    return 1;
}

/* Fail because no file lies at `path`; a pattern may name some. */
static int fail_absent(const struct pstk__store *store, const char *path,
                       pstk__unknown_find_fn find, struct pstk_error *err)
{
    struct pstk__listing listing;
    char folder[PATH_MAX];
    if (!strpbrk(path, "{*?") || !store->list)
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN, "no such file or directory: %s", path);
    const char *format = folder_before(path, folder) ? find(store, folder) : NULL;
    if (format)
        return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                          "path: value is %s; must have * and ? only in its last part (open %s, of "
                          "the format %s)",
                          path, folder, format);
    int r = pstk__listing_salvage(&listing, store, path, "*", err);
    if (r < 0)
        return r;
    r = fail_missing(path, &listing, err);
    if (r == 0)
        r = fail_matches(store, path, &listing, find, err);
    pstk__listing_close(&listing);
    return r;
}

/* ---- a file ---------------------------------------------------------------------------------- */

static int fail_file(const struct pstk__store *store, const char *path, const char *must_be,
                     const char *must_be_file, pstk__unknown_find_fn find, struct pstk_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *suffix = suffix_of(name), *format;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s",
             !slash          ? 1
             : slash == path ? 1
                             : (int)(slash - path),
             slash ? path : ".");
    if (strcmp(suffix, "pstk") == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s is one shard of a data set; name the directory that holds it", path);
    if (is_parquet(name))
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "%s is a Parquet table, which penstock.Dataset, penstock.Loader and penstock.pack take "
            "in Python; here it must be CSV or JSON lines",
            path);
    if (is_packed_in_python(suffix))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s is not read in place; " PACK_IN_PYTHON, path, path);
    if (strcmp(suffix, "bin") == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s has no .idx of Megatron-LM next to it, and is not read in "
                          "place; " PSTK__MEGATRON_RAW,
                          path);
    if ((format = find(store, folder)) && is_part(name, format))
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s is one file of a data set of the format %s; open its directory, %s",
                          path, format, folder);
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "%s is a file; must be a directory with %s%s", path, must_be, must_be_file);
}

int pstk__unknown_fail(const struct pstk__store *store, const char *path, const char *must_be,
                       const char *must_be_file, pstk__unknown_find_fn find, struct pstk_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? fail_absent(store, path, find, err)
                   : pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open %s", path);
    return S_ISDIR(st.st_mode) ? fail_directory(store, path, must_be, find, err)
                               : fail_file(store, path, must_be, must_be_file, find, err);
}
