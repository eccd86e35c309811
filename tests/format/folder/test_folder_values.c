/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/little.h"
#include "format/folder/values.h"

#include <stdlib.h>
#include <string.h>

/* Write the values, and read them from memory of exactly their size. */
static void check_path(const char *path, int64_t number, const char *shown)
{
    uint8_t room[PSTK__VALUES_MAX];
    struct pstk__folder_values values;
    const uint32_t size = pstk__folder_values_write(room, number, path);
    uint8_t *exact = malloc(size);
    CHECK(exact != NULL && size <= PSTK__VALUES_MAX);
    memcpy(exact, room, size);
    CHECK(pstk__folder_values_read(&values, exact, size) == NULL);
    CHECK_STR(values.path, path);
    CHECK_EQ(values.path_size, strlen(path));
    CHECK_EQ((int64_t)pstk__get64(values.number), number);
    if (shown)
        CHECK_STR(values.shown, shown);
    free(exact);
}

TEST(number_and_path_come_back)
{
    char longest[PSTK__VALUES_MAX_PATH];
    check_path("a.jpg", 0, "a.jpg");
    check_path("class/b\n.png", INT64_MAX, "class/b\\x0a.png");
    check_path("\xff", -1, "\\xff");
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    check_path(longest, 7, NULL);
    memset(longest, '\xff', sizeof longest - 1);
    check_path(longest, 7, NULL);
}

TEST(every_flipped_bit_and_every_cut_is_damage)
{
    uint8_t room[PSTK__VALUES_MAX];
    struct pstk__folder_values values;
    const uint32_t size = pstk__folder_values_write(room, 3, "class/\xfe name.jpg");
    for (uint32_t bit = 0; bit < 8 * size; bit++) {
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(pstk__folder_values_read(&values, room, size) != NULL);
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (uint32_t cut = 0; cut < size; cut++)
        CHECK(pstk__folder_values_read(&values, room, cut) != NULL);
    CHECK(pstk__folder_values_read(&values, room, size) == NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(number_and_path_come_back),
        CASE(every_flipped_bit_and_every_cut_is_damage),
    };
    return RUN_CASES(cases);
}
