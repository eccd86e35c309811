/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/image_folder.h - the images of a folder, for programs that pack them: which files they
 * are, in which order, and of which class.
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
 * classes. A file is an image by its name (.jpg, .jpeg, .png, and those that ImageFolder takes as
 * well: .ppm, .bmp, .pgm, .tif, .tiff, .webp). Names that begin with a dot are passed over,
 * whatever has them. Links are followed.
 *
 * Only names are read, and the first bytes of files where their names do not decide. Files that lie
 * in the folder later, or are removed, do not change what was found.
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
    /* 1: a file whose first bytes are a JPEG's or PNG's is an image, too, whatever its name.
     * default: 0 */
    uint32_t by_content;
    /* the folder; borrows */
    const char *path;
    /* a folder that is passed over if it lies below the first one: what the program writes; it need
     * not exist; borrows. default: NULL, none */
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
    /* images right in a folder that has classes: they are of no class, and not among n_images */
    uint64_t n_left_out;
    /* names that begin with a dot, except .penstock, skip_path, and all that lies in such folders
     */
    uint64_t n_hidden;
    /* files with the name of an image format that ImageFolder does not take (.gif, .avif, ...),
     * whose first bytes are an image's */
    uint64_t n_foreign;
    /* other files; but not the one that marks the folder as an export */
    uint64_t n_others;
};

/* Find the images of a folder. A folder without images is no error. EINVAL: a class folder has no
 * images, or a name that is not UTF-8; a link leads to a folder that it lies in; folders are nested
 * too deeply. ENOENT, EACCES, ...: a folder cannot be read; err.native has the errno:
 * ENOTDIR of a path that is a file. ECANCELED: on_progress ended it. Messages have names as they
 * are, below the folder; that of path itself as it was given. */
PSTK_API int pstk_image_folder_open(struct pstk_image_folder **out,
                                    const struct pstk_image_folder_settings *s,
                                    struct pstk_error *err);
/* Free what was found; null *folder. NULL is fine. */
PSTK_API void pstk_image_folder_close(struct pstk_image_folder **folder);
/* Fill *info. EINVAL: its size is not set. */
PSTK_API int pstk_image_folder_get_info(const struct pstk_image_folder *folder,
                                        struct pstk_image_folder_info *info);
/* Return the path of image i, below the folder. *number (may be NULL) becomes the number of its
 * class, 0 where there are no classes. NULL: there is no such image. It lives as long as the
 * folder. Thread: any, several at once. */
PSTK_API const char *pstk_image_folder_path(const struct pstk_image_folder *folder, uint64_t i,
                                            uint32_t *number);
/* Return the name of class i. NULL: there is no such class. It lives as long as the folder. */
PSTK_API const char *pstk_image_folder_class(const struct pstk_image_folder *folder, uint64_t i);
/* Return the name of image format i of those that n_foreign counts, in the order of their first
 * files ("AVIF", "GIF"); *n (may be NULL) becomes how many files have it. NULL: there is no such
 * format. Static storage. */
PSTK_API const char *pstk_image_folder_foreign(const struct pstk_image_folder *folder, uint32_t i,
                                               uint64_t *n);

#ifdef __cplusplus
}
#endif
#endif
