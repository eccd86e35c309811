/* SPDX-License-Identifier: Apache-2.0 */
/* loader: the program of penstock.h. Stream one epoch of a packed data set. */
#include <penstock/penstock.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct pstk_op ops[] = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5),
                            pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD)};
    struct pstk_output outputs[] = {pstk_output_image("jpg", ops, 3, PSTK_F16, PSTK_NCHW),
                                    pstk_output_scalar("cls", PSTK_I64)};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = argc > 1 ? argv[1] : "train", s.batch_size = 256;
    s.outputs = outputs, s.n_outputs = 2;
    struct pstk_loader *loader;
    if (pstk_open(&loader, &s, &err) < 0)
        return fprintf(stderr, "%s\n", err.message), 1;
    struct pstk_batch *batch;
    int r;
    while ((r = pstk_next(loader, &batch, NULL, -1, &err)) == 1) {
        printf("%llu: %u rows\n", (unsigned long long)batch->index, batch->n_valid);
        pstk_release(&batch, NULL);
    }
    pstk_close(&loader);
    return r < 0 ? fprintf(stderr, "%s\n", err.message), 1 : 0;
}
