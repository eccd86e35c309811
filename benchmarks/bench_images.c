/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_images: measure images end to end, compared with libjpeg-turbo, which decodes the same
 * files whole on as many threads.
 *
 *   bench_images DATA [--seconds S] [--runs R] [--threads T]
 *
 * DATA: a data set that `penstock pack` made of a folder of JPEGs. Work and ceiling take turns.
 */
#include "bench.h"

struct work {
    const char *name;
    struct pstk_op ops[3];
    uint32_t n_ops, dtype, layout;
    double aim;
    struct bench_runs runs;
};

int main(int argc, char **argv)
{
    double seconds = 3;
    int n_runs = 5;
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    if (argc < 2)
        return fprintf(stderr, "usage: bench_images DATA [--seconds S] [--runs R] [--threads T]\n"),
               2;
    for (int i = 2; i + 1 < argc; i += 2) {
        seconds = strcmp(argv[i], "--seconds") ? seconds : atof(argv[i + 1]);
        n_runs = strcmp(argv[i], "--runs") ? n_runs : atoi(argv[i + 1]);
        s.n_threads = strcmp(argv[i], "--threads") ? s.n_threads : (uint32_t)atoi(argv[i + 1]);
    }
    struct work works[] = {
        {.name = "random resized crop 224, flip, u8 NHWC",
         .ops = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5)},
         .n_ops = 2,
         .dtype = PSTK_U8,
         .aim = 0.7},
        {.name = "the same, normalised f16 NCHW",
         .ops = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5),
                 pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD)},
         .n_ops = 3,
         .dtype = PSTK_F16,
         .layout = PSTK_NCHW},
        {.name = "validation: resize 256, centre crop 224, u8",
         .ops = {pstk_resize_shorter(256), pstk_center_crop(224, 224)},
         .n_ops = 2,
         .dtype = PSTK_U8},
    };
    const int n_works = (int)(sizeof works / sizeof *works);
    struct bench_runs decode = {0};
    struct pstk_output o = {.name = "image", .field = "jpg", .kind = PSTK_OUTPUT_IMAGE};
    s.path = argv[1];
    s.batch_size = 64;
    s.outputs = &o;
    s.n_outputs = 1;
    for (int run = 0; run < n_runs; run++) {
        struct pstk_ceilings c = {.size = sizeof c};
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        for (int i = 0; i < n_works; i++) {
            o.image.ops = works[i].ops;
            o.image.n_ops = works[i].n_ops;
            o.dtype = works[i].dtype;
            o.image.layout = works[i].layout;
            bench_add(&works[i].runs, bench_loader(&s, seconds, NULL, NULL));
        }
        if (pstk_measure_ceilings(&s, 4 * seconds, &c, &err) < 0)
            bench_die("ceilings", &err);
        bench_add(&decode, c.decode_samples_per_second);
    }
    printf("%d runs of %.1f s: median (lowest..highest); ratio: to the last line\n", n_runs,
           seconds);
    for (int i = 0; i < n_works; i++)
        bench_line(works[i].name, &works[i].runs, "images/s", &decode, works[i].aim);
    bench_line("libjpeg-turbo, whole images, same threads", &decode, "images/s", NULL, 0);
    return 0;
}
