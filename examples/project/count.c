/* SPDX-License-Identifier: Apache-2.0 */
/* count: print how many samples a data set has. A project of its own, which finds an installed
 * penstock. */
#include <penstock/format.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    struct pstk_dataset *data;
    if (pstk_dataset_open(&data, argc > 1 ? argv[1] : "train", NULL, &err) < 0)
        return fprintf(stderr, "%s\n", err.message), 1;
    struct pstk_dataset_info info = {.size = sizeof info};
    pstk_dataset_get_info(data, &info);
    printf("%llu samples\n", (unsigned long long)info.n_samples);
    pstk_dataset_close(&data);
    return 0;
}
