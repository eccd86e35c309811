/* SPDX-License-Identifier: Apache-2.0 */
/* The images of a folder, as a program sees them that has the shared library and the public
 * headers, and nothing else. */
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/format.h>
#include <penstock/image_folder.h>

static char top[64];

/* Write the path of a name in the folder. */
static const char *path_of(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s", top, name);
    return path;
}

static void add_folder(const char *name)
{
    char path[256];
    CHECK_EQ(mkdir(path_of(path, name), 0700), 0);
}

static void add_file(const char *name, const char *bytes)
{
    char path[256];
    FILE *file = fopen(path_of(path, name), "w");
    CHECK(file && fputs(bytes, file) >= 0 && fclose(file) == 0);
}

static void begin(void)
{
    snprintf(top, sizeof top, "/tmp/pstk-image-folder-XXXXXX");
    CHECK(mkdtemp(top) != NULL);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", top);
    CHECK_EQ(system(command), 0);
}

static struct pstk_image_folder_settings settings(void)
{
    return (struct pstk_image_folder_settings){.size = sizeof(struct pstk_image_folder_settings),
                                               .path = top};
}

static struct pstk_image_folder_info open_folder(struct pstk_image_folder **folder,
                                                 const struct pstk_image_folder_settings *s)
{
    struct pstk_image_folder_info info = {.size = sizeof info, .n_images = PSTK_NONE};
    if (pstk_image_folder_open(folder, s, NULL) == 0)
        pstk_image_folder_get_info(*folder, &info);
    return info;
}

/* Check that image i has this path and class. */
static void check_image(const struct pstk_image_folder *folder, uint64_t i, const char *path,
                        uint32_t class)
{
    uint32_t number = 99;
    const char *found = pstk_image_folder_path(folder, i, &number);
    CHECK(found && strcmp(found, path) == 0);
    CHECK_EQ(number, class);
}

TEST(classes_and_their_images_are_sorted)
{
    struct pstk_image_folder *folder;
    char out[256];
    begin();
    add_folder("dog");
    add_folder("cat");
    add_folder("cat/x");
    add_folder("cat/.hidden");
    add_folder("out");
    add_folder(".penstock");
    add_file("top.jpg", "");
    add_file("penstock-export.json", "{}");
    add_file("notes.txt", "");
    add_file("dog/b.PNG", "");
    add_file("dog/a.webp", "");
    add_file("dog/c.gif", "GIF89a");
    add_file("cat/z.jpeg", "");
    add_file("cat/x/a.jpg", "");
    add_file("out/a.jpg", "");
    struct pstk_image_folder_settings s = settings();
    s.skip_path = path_of(out, "out");
    const struct pstk_image_folder_info info = open_folder(&folder, &s);
    CHECK_EQ(info.n_images, 4);
    check_image(folder, 0, "cat/z.jpeg", 0);
    check_image(folder, 1, "cat/x/a.jpg", 0);
    check_image(folder, 2, "dog/a.webp", 1);
    check_image(folder, 3, "dog/b.PNG", 1);
    CHECK(pstk_image_folder_path(folder, 4, NULL) == NULL);
    CHECK_EQ(info.n_classes, 2);
    CHECK(strcmp(pstk_image_folder_class(folder, 0), "cat") == 0);
    CHECK(strcmp(pstk_image_folder_class(folder, 1), "dog") == 0);
    CHECK(pstk_image_folder_class(folder, 2) == NULL);
    CHECK(info.n_left_out == 1 && info.n_hidden == 1 && info.n_others == 1);
    uint64_t n = 0;
    CHECK(info.n_foreign == 1 && info.n_formats == 1);
    CHECK(strcmp(pstk_image_folder_foreign(folder, 0, &n), "GIF") == 0 && n == 1);
    CHECK(pstk_image_folder_foreign(folder, 1, NULL) == NULL);
    pstk_image_folder_close(&folder);
    CHECK(folder == NULL);
    pstk_image_folder_close(&folder);
    pstk_image_folder_close(NULL);
    end();
}

TEST(a_flat_folder_has_no_classes)
{
    struct pstk_image_folder *folder;
    begin();
    add_folder("notes");
    add_file("notes/a.txt", "");
    add_file("b.jpg", "");
    add_file("a.bin", "\xff\xd8\xff");
    struct pstk_image_folder_settings s = settings();
    struct pstk_image_folder_info info = open_folder(&folder, &s);
    CHECK(info.n_images == 1 && info.n_classes == 0 && info.n_others == 2 && info.n_left_out == 0);
    pstk_image_folder_close(&folder);
    s.by_content = 1;
    info = open_folder(&folder, &s);
    CHECK(info.n_images == 2 && info.n_classes == 0 && info.n_others == 1);
    check_image(folder, 0, "a.bin", 0);
    check_image(folder, 1, "b.jpg", 0);
    pstk_image_folder_close(&folder);
    end();
}

TEST(a_folder_without_images_is_no_error)
{
    struct pstk_image_folder *folder;
    struct pstk_image_folder_info info = {.size = 8};
    begin();
    const struct pstk_image_folder_settings s = settings();
    CHECK_EQ(open_folder(&folder, &s).n_images, 0);
    info.n_images = 7;
    CHECK_EQ(pstk_image_folder_get_info(folder, &info), 0);
    CHECK(info.size == 8 && info.n_images == 7);
    info.size = 2;
    CHECK_EQ(pstk_image_folder_get_info(folder, &info), PSTK_EINVAL);
    pstk_image_folder_close(&folder);
    end();
}

/* Check that the folder is refused, by words of the message. */
static void check_refused(const struct pstk_image_folder_settings *s, int code, const char *words)
{
    struct pstk_image_folder *folder = (void *)top;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_image_folder_open(&folder, s, &err), code);
    CHECK(folder == NULL && err.code == code);
    if (!strstr(err.message, words))
        printf("# %s\n", err.message);
    CHECK(strstr(err.message, words) != NULL);
    CHECK_EQ(pstk_image_folder_open(&folder, s, NULL), code);
}

TEST(odd_folders_are_refused)
{
    char path[256];
    begin();
    struct pstk_image_folder_settings s = settings();
    add_folder("a");
    add_folder("b");
    add_file("a/a.jpg", "");
    check_refused(&s, PSTK_EINVAL, "the class folder b holds no images; remove it");
    add_file("b/a.gif", "GIF89a");
    check_refused(&s, PSTK_EINVAL, "holds only images of formats that are not packed");
    add_file("b/manifest.json", "{}");
    check_refused(&s, PSTK_EINVAL, "but a manifest.json");
    add_file("b/a.jpg", "");
    CHECK_EQ(symlink("..", path_of(path, "b/up")), 0);
    check_refused(&s, PSTK_EINVAL, "b/up is a link to a folder that it lies in");
    CHECK_EQ(unlink(path), 0);
    add_folder("\xff");
    check_refused(&s, PSTK_EINVAL, "has a name that is not UTF-8");
    s.path = path_of(path, "a/a.jpg");
    check_refused(&s, PSTK_ENOENT, "cannot read the folder");
    s.path = "";
    check_refused(&s, PSTK_EINVAL, "path: ");
    s = settings();
    s.by_content = 2;
    check_refused(&s, PSTK_EINVAL, "by_content: ");
    s = settings();
    s.size = 4;
    check_refused(&s, PSTK_EINVAL, "settings.size: ");
    end();
}

static int stop(void *user, uint64_t n_done, uint64_t n_total)
{
    *(uint64_t *)user += 1 + n_done + n_total;
    return 1;
}

TEST(a_folder_too_deep_is_named_as_where_it_is_read_in_place)
{
    char path[256] = "a", message[256];
    struct pstk_dataset *dataset;
    struct pstk_error err;
    begin();
    const struct pstk_image_folder_settings s = settings();
    add_folder("a");
    add_file("a/a.jpg", "");
    for (int depth = 2; depth <= 65; depth++) {
        strcat(path, "/d");
        add_folder(path);
    }
    snprintf(message, sizeof message, "%s: folders are nested too deeply here", path);
    check_refused(&s, PSTK_EINVAL, message);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_dataset_open(&dataset, top, NULL, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, message) != NULL);
    end();
}

TEST(the_search_can_be_canceled)
{
    uint64_t n_calls = 0;
    begin();
    add_file("a.jpg", "");
    struct pstk_image_folder_settings s = settings();
    s.on_progress = stop;
    s.user = &n_calls;
    check_refused(&s, PSTK_ECANCELED, "was canceled");
    CHECK_EQ(n_calls, 2); /* a call for each search */
    end();
}

int main(void)
{
    const struct test_case cases[] = {CASE(classes_and_their_images_are_sorted),
                                      CASE(a_flat_folder_has_no_classes),
                                      CASE(a_folder_without_images_is_no_error),
                                      CASE(odd_folders_are_refused),
                                      CASE(a_folder_too_deep_is_named_as_where_it_is_read_in_place),
                                      CASE(the_search_can_be_canceled)};
    return RUN_CASES(cases);
}
