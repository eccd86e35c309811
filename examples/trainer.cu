// SPDX-License-Identifier: Apache-2.0
// trainer: a network learns the classes of a packed data set on a GPU.
//
//   penstock pack imagenet/train train         (a folder for each class)
//   example_trainer train --epochs 20 --batch-size 256 --lr 0.01 --device 0
//
// (The labels of `make demo`'s images are random: the network can only memorise them.)
//
// train() has all that a training loop needs of penstock:
//
//   loader.epoch(e, stream)   the stream waits for each batch; the program does not
//   network.learn(...)        kernels in that stream, on the batch's device pointers
//   the loop's next turn      releases the batch; its memory is reused once the stream gets there
//
// So the program runs ahead of the device, and nothing in the loop waits for it. The device sums
// the loss, the stream copies it now and then, and the program reads it one report later.
#include "network.h"

#include <penstock/format.h>
#include <penstock/penstock.hpp>

#include <getopt.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

using namespace example;

namespace
{

constexpr int STEPS_PER_REPORT = 200;                // and one at the end of each epoch
constexpr int MAX_ROWS = 65536, MAX_CLASSES = 32767; // a product of sizes is an int

// ---- progress ----------------------------------------------------------------------------------

class Report
{
  public:
    const DeviceArray<Totals> totals =
        make<DeviceArray<Totals>>(cudaMalloc<Totals>, sizeof(Totals));

    explicit Report(cudaStream_t stream) : stream_(stream)
    {
        CHECK(cudaMemsetAsync(totals.get(), 0, sizeof(Totals), stream));
    }
    // Call after n_steps of the epoch, and n_images since the last call. Print the totals that the
    // last call fetched, and let the stream fetch the present ones.
    void next(const pstk_stats &now, int epoch, int n_steps, int n_images)
    {
        print();
        const auto time = std::chrono::steady_clock::now();
        const uint64_t starved = now.stream_starved_ns - before_.stream_starved_ns;
        const uint64_t all = now.stream_used_ns - before_.stream_used_ns + starved;
        epoch_ = epoch, n_steps_ = n_steps, n_images_ = n_images;
        images_per_second_ = n_images / std::chrono::duration<double>(time - time_).count();
        starved_percent_ = all ? 100.0 * double(starved) / double(all) : 0;
        before_ = now, time_ = time;
        CHECK(cudaMemcpyAsync(fetched_.get(), totals.get(), sizeof(Totals), cudaMemcpyDeviceToHost,
                              stream_));
        CHECK(cudaMemsetAsync(totals.get(), 0, sizeof(Totals), stream_));
        CHECK(cudaEventRecord(is_fetched_.get(), stream_));
    }
    void print()
    {
        if (n_images_ == 0)
            return;
        CHECK(cudaEventSynchronize(is_fetched_.get())); // long ago, except for the last one
        const double loss = fetched_[0].loss / n_images_;
        const double right_percent = 100.0 * double(fetched_[0].n_right) / n_images_;
        std::printf("epoch %2d  step %4d  loss %.4f  accuracy %5.1f %%  %6.0f images/s  "
                    "starved %4.1f %%\n",
                    epoch_, n_steps_, loss, right_percent, images_per_second_, starved_percent_);
        std::fflush(stdout);
        n_images_ = 0;
        if (!std::isfinite(loss))
            throw std::runtime_error(
                "the loss is not a number: --lr may be too high, or a label may not be a class");
    }

  private:
    cudaStream_t stream_;
    const PinnedArray<Totals> fetched_ =
        make<PinnedArray<Totals>>(cudaMallocHost<Totals>, sizeof(Totals), 0u);
    const Event is_fetched_ = make<Event>(cudaEventCreateWithFlags, cudaEventDisableTiming);
    pstk_stats before_ = {};
    std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
    int epoch_ = 0, n_steps_ = 0, n_images_ = 0;
    double images_per_second_ = 0, starved_percent_ = 0;
};

// ---- the program -------------------------------------------------------------------------------

struct Options {
    const char *path = nullptr;
    int n_epochs = 20, batch_size = 64, device = 0;
    float rate = 0.005f;
};

// While one of these exists, Ctrl-C ends the training, and a second Ctrl-C kills the program. The
// handler wakes a loader that waits. It also sets a flag, for a loader that never has to wait.
class Interruptible
{
  public:
    explicit Interruptible(pstk_loader *loader)
    {
        loader_ = loader;
        struct sigaction action = {};
        action.sa_handler = interrupt;
        action.sa_flags = int(SA_RESETHAND);
        sigaction(SIGINT, &action, nullptr);
    }
    ~Interruptible()
    {
        std::signal(SIGINT, SIG_DFL);
    }
    static bool was_interrupted()
    {
        return is_over_;
    }

  private:
    static void interrupt(int)
    {
        is_over_ = true;
        pstk_interrupt(loader_);
    }

    inline static std::atomic<pstk_loader *> loader_{nullptr};
    inline static std::atomic<bool> is_over_{false};
};

int count_classes(const char *path)
{
    pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_dataset *dataset = nullptr;
    if (pstk_dataset_open(&dataset, path, NULL, &err) < 0)
        throw penstock::Error(err);
    pstk_dataset_info info = {};
    info.size = sizeof info;
    const int result = pstk_dataset_get_info(dataset, &info);
    pstk_dataset_close(&dataset);
    if (result < 0)
        throw std::runtime_error(pstk_strerror(result));
    if (info.n_names < 2 || info.n_names > MAX_CLASSES)
        throw std::runtime_error(std::string(path) + ": must be a data set of 2 to " +
                                 std::to_string(MAX_CLASSES) +
                                 " classes, packed from one folder each");
    return int(info.n_names);
}

void train(const Options &options)
{
    pstk_op ops[] = {pstk_random_resized_crop_range(SIDE, SIDE, 0.5, 1, 0.75, 4 / 3.0),
                     pstk_random_flip(0.5),
                     pstk_normalize(penstock::imagenet_mean, penstock::imagenet_std)};
    pstk_output outputs[] = {pstk_output_image("jpg", ops, 3, PSTK_F32, PSTK_NCHW),
                             pstk_output_scalar("cls", PSTK_I64)};

    pstk_settings settings = penstock::settings();
    settings.path = options.path;
    settings.outputs = outputs;
    settings.n_outputs = 2;
    settings.batch_size = options.batch_size;
    settings.last_batch = PSTK_LAST_SHORT; // every image in every epoch, so n_valid counts
    settings.device.kind = PSTK_CUDA;
    settings.device.index = options.device;
    settings.device.measure = 1;
    const int n_classes = count_classes(options.path);
    penstock::Loader loader(settings);
    CHECK(cudaSetDevice(options.device));

    const Stream stream = make<Stream>(cudaStreamCreateWithFlags, cudaStreamNonBlocking);
    Network network(options.batch_size, n_classes, stream.get());
    Report report(stream.get());
    const Interruptible interruptible(loader.get());
    std::printf("%llu images of %d classes in batches of %d, multiplied by %s\n",
                (unsigned long long)loader.n_samples(), n_classes, options.batch_size, MULTIPLIER);
    for (int epoch = 0; epoch < options.n_epochs && !Interruptible::was_interrupted(); epoch++) {
        int n_steps = 0, n_images = 0;
        for (penstock::Batch &batch : loader.epoch(epoch, stream.get())) {
            network.learn(static_cast<float *>(batch.tensor(0).data),
                          static_cast<int64_t *>(batch.tensor(1).data), int(batch->n_valid),
                          options.rate, report.totals.get());
            n_images += int(batch->n_valid);
            if (++n_steps % STEPS_PER_REPORT == 0) {
                report.next(loader.stats(), epoch, n_steps, n_images);
                n_images = 0;
            }
            if (Interruptible::was_interrupted())
                break;
        }
        if (n_images)
            report.next(loader.stats(), epoch, n_steps, n_images);
    }
    report.print();
}

// A number of an option, between two others; whole where they are for an int.
template <typename Number> Number parse(const char *text, double least, double most)
{
    char *end;
    const double value = std::strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most) || value != double(Number(value)))
        throw std::invalid_argument(std::string("this value is not possible: ") + text);
    return Number(value);
}

Options parse_all(int argc, char **argv)
{
    const option names[] = {{"epochs", required_argument, nullptr, 'e'},
                            {"batch-size", required_argument, nullptr, 'b'},
                            {"device", required_argument, nullptr, 'd'},
                            {"lr", required_argument, nullptr, 'l'},
                            {}};
    Options options;
    for (int name; (name = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
        if (name == 'e')
            options.n_epochs = parse<int>(optarg, 1, 1e6);
        else if (name == 'b')
            options.batch_size = parse<int>(optarg, 1, MAX_ROWS);
        else if (name == 'd')
            options.device = parse<int>(optarg, 0, 1023);
        else if (name == 'l')
            options.rate = parse<double>(optarg, 1e-9, 1e3);
        else
            throw std::invalid_argument("an option is wrong");
    }
    if (optind + 1 != argc)
        throw std::invalid_argument("DATA: must be one data set");
    options.path = argv[optind];
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    try {
        train(parse_all(argc, argv));
    } catch (const std::invalid_argument &error) {
        std::fprintf(stderr,
                     "%s\nusage: %s DATA [--epochs N] [--batch-size B] [--device N] [--lr X]\n",
                     error.what(), argv[0]);
        return 2;
    } catch (const std::exception &error) {
        if (!Interruptible::was_interrupted()) {
            std::fprintf(stderr, "%s\n", error.what());
            return 1;
        }
    }
    return Interruptible::was_interrupted() ? 130 : 0;
}
