// SPDX-License-Identifier: Apache-2.0
// loader: the same program in C++. Stream three epochs of a packed data set.
#include <penstock/penstock.hpp>

#include <cinttypes>
#include <cstdio>

int main(int argc, char **argv)
{
    pstk_op ops[] = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5),
                     pstk_normalize(penstock::imagenet_mean, penstock::imagenet_std)};
    pstk_output outputs[] = {pstk_output_image("jpg", ops, 3, PSTK_F16, PSTK_NCHW),
                             pstk_output_scalar("cls", PSTK_I64)};

    pstk_settings s = penstock::settings();
    s.path = argc > 1 ? argv[1] : "train";
    s.batch_size = 256;
    s.outputs = outputs;
    s.n_outputs = 2;
    try {
        penstock::Loader loader(s);
        for (uint64_t epoch = 0; epoch < 3; epoch++)
            for (penstock::Batch &batch : loader.epoch(epoch))
                std::printf("%" PRIu64 " %" PRIu64 ": %u rows\n", epoch, batch->index,
                            batch->n_valid);
    } catch (const penstock::Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
