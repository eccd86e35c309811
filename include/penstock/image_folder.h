/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/image_folder.h - the images of a folder, for programs that pack them: files, order and
 * classes.
 *
 *   struct pstk_image_folder_settings s = {.size = sizeof s, .path = "train"};
 *   struct pstk_image_folder_info info = {.size = sizeof info};
 *   struct pstk_image_folder *folder;
 *   if (pstk_image_folder_open(&folder, &s, &err) < 0) ...
 *   pstk_image_folder_get_info(folder, &info);
 *   for (uint64_t i = 0; i < info.n_images; i++)
 *       path = pstk_image_folder_path(folder, i, &class);
 *   pstk_image_folder_close(&folder);
 *
 * The folder holds images, or a folder of images for each class. The order is that of
 * torchvision.datasets.ImageFolder: classes by name, the folders of a class by path, the files of a
 * folder by name; all comparisons are bytewise. If no folder in it has an image, there are no
 * classes. A file is an image by its name (.jpg, .jpeg, .png, and ImageFolder's others: .ppm,
 * .bmp, .pgm, .tif, .tiff, .webp). Files and folders whose names begin with a dot are skipped.
 * Links are followed.
 *
 * Only names are read, and the first bytes of files whose names do not decide. The list does not
 * change when files are added or removed later.
 */
#ifndef PENSTOCK_IMAGE_FOLDER_H
#define PENSTOCK_IMAGE_FOLDER_H

#include <penstock/format.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_image_folder;

/* Zero it and set size and path. */
struct pstk_image_folder_settings {
    /* sizeof(struct pstk_image_folder_settings), set by the caller */
    uint32_t size;
    /* 1: a file whose first bytes are a JPEG's or PNG's is an image, whatever its name. default: 0
     */
    uint32_t by_content;
    /* path of the folder; borrows */
    const char *path;
    /* path of a folder that is skipped if it lies below `path`: the program's output. It need not
     * exist; borrows. default: NULL, none */
    const char *skip_path;
    /* called now and then with the images found so far, and a total of 0; a non-zero result ends
     * the search with ECANCELED. default: NULL */
    pstk_progress_fn on_progress;
    /* the first argument of on_progress; the caller's */
    void *user;
};

struct pstk_image_folder_info {
    /* sizeof(struct pstk_image_folder_info), set by the caller */
    uint32_t size;
    /* image formats of the files that n_foreign counts, for pstk_image_folder_foreign */
    uint32_t n_formats;
    /* images, in their order; 0: the folder has none */
    uint64_t n_images;
    /* class folders; 0: there are no classes */
    uint64_t n_classes;
    /* images directly in a folder that has classes: they have no class, and n_images does not count
     * them */
    uint64_t n_left_out;
    /* names that begin with a dot, and all below such folders, without .penstock and skip_path */
    uint64_t n_hidden;
    /* files whose name and first bytes are those of an image format that ImageFolder lacks (.gif,
     * .avif, ...) */
    uint64_t n_foreign;
    /* other files, without the marker of an export */
    uint64_t n_others;
};

/* Find the images of a folder. A folder without images is no error. Returns owned in *out. EINVAL:
 * a class folder has no images, or a name that is not UTF-8; a link leads to a folder that it lies
 * in; folders are nested too deeply. ENOENT, EACCES, ...: a folder cannot be read; err.native has
 * the errno: ENOTDIR if `path` is a file. ECANCELED: on_progress ended it. Messages have names
 * relative to the folder, and `path` itself as it was given. */
PSTK_API int pstk_image_folder_open(struct pstk_image_folder **out,
                                    const struct pstk_image_folder_settings *s,
                                    struct pstk_error *err);
/* Free what was found; null *folder. NULL is fine. */
PSTK_API void pstk_image_folder_close(struct pstk_image_folder **folder);
/* Copy the counts to *info, up to its size. EINVAL: its size is not set. */
PSTK_API int pstk_image_folder_get_info(const struct pstk_image_folder *folder,
                                        struct pstk_image_folder_info *info);
/* Return the path of image i, below the folder. *number (may be NULL) becomes the number of its
 * class, 0 where there are no classes. NULL: there is no such image. It lives as long as the
 * folder. Thread: any, several at once. */
PSTK_API const char *pstk_image_folder_path(const struct pstk_image_folder *folder, uint64_t i,
                                            uint32_t *number);
/* Return the name of class i. NULL: there is no such class. It lives as long as the folder. */
PSTK_API const char *pstk_image_folder_class(const struct pstk_image_folder *folder, uint64_t i);
/* Return the name of image format i among those that n_foreign counts, in the order of their first
 * files ("AVIF", "GIF"); *n (may be NULL) becomes its number of files. NULL: there is no such
 * format. Static storage. */
PSTK_API const char *pstk_image_folder_foreign(const struct pstk_image_folder *folder, uint32_t i,
                                               uint64_t *n);

#ifdef __cplusplus
}
#endif
#endif
