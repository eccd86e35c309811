// SPDX-License-Identifier: Apache-2.0
// trainer: a network of two layers learns the classes of a packed data set on a GPU.
//
//   penstock pack imagenet/train train         (a folder for each class)
//   example_trainer train --epochs 20 --batch-size 256 --lr 0.01 --device 0
//
// What a training loop needs of penstock is in train(), at the end:
//
//   loader.epoch(e, stream)   for each batch the stream is made to wait; the program is not
//   network.learn(...)        kernels in that stream, on the batch's device pointers
//   the loop's next turn      releases the batch: its memory is used again when the stream is there
//
// So the program runs ahead of the device, and nothing in the loop waits for it: the loss is summed
// on the device, copied now and then by the stream, and looked at one report later.
#include <penstock/format.h>
#include <penstock/penstock.hpp>

#include <cuda_runtime.h>
#include <getopt.h>
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#endif

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

constexpr int SIDE = 32, N_INPUTS = 3 * SIDE * SIDE, N_HIDDEN = 256;
constexpr int STEPS_PER_REPORT = 200; // and one at the end of each epoch
constexpr int WARP = 32, BLOCK = 256, TILE = 16;
constexpr float MOMENTUM = 0.9f;

// ---- calls that may fail, things that are given back -------------------------------------------

void check(cudaError_t result, const char *call)
{
    if (result != cudaSuccess)
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}
#define CHECK(call) check(call, #call)

// What fails while it is given back was told by the call that broke the device.
template <auto give_back> struct GiveBack {
    template <typename T> void operator()(T *thing) const
    {
        (void)give_back(thing);
    }
};
using Stream = std::unique_ptr<CUstream_st, GiveBack<cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, GiveBack<cudaEventDestroy>>;
template <typename T> using DeviceArray = std::unique_ptr<T[], GiveBack<cudaFree>>;
template <typename T> using PinnedArray = std::unique_ptr<T[], GiveBack<cudaFreeHost>>;

// Of its own, and non-blocking: one that the default stream, and so everything, does not wait for.
Stream make_stream()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return Stream(stream);
}

Event make_event()
{
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return Event(event);
}

template <typename T> DeviceArray<T> make_device_array(size_t n)
{
    void *memory;
    CHECK(cudaMalloc(&memory, n * sizeof(T)));
    return DeviceArray<T>(static_cast<T *>(memory));
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments... arguments)
{
    kernel<<<grid, block, 0, stream>>>(arguments...);
    CHECK(cudaGetLastError());
}

// ---- products of matrices ----------------------------------------------------------------------

// Row by row; transposed: column by column.
struct Matrix {
    float *data;
    int n_rows, n_columns;
    bool is_transposed = false;

    Matrix transposed() const
    {
        return {data, n_columns, n_rows, !is_transposed};
    }
};

#ifdef HAVE_CUBLAS
void check(cublasStatus_t result, const char *call)
{
    if (result != CUBLAS_STATUS_SUCCESS)
        throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(result));
}

class Multiplier
{
  public:
    static constexpr const char *name = "cuBLAS";
    explicit Multiplier(cudaStream_t stream)
    {
        cublasHandle_t handle;
        CHECK(cublasCreate(&handle));
        handle_.reset(handle);
        CHECK(cublasSetStream(handle, stream));
    }
    // c = a b. cuBLAS thinks in columns: to it that is c' = b' a'.
    void multiply(Matrix a, Matrix b, Matrix c) const
    {
        const float one = 1, zero = 0;
        CHECK(cublasSgemm(handle_.get(), b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, c.n_columns, c.n_rows,
                          a.n_columns, &one, b.data, b.is_transposed ? b.n_rows : b.n_columns,
                          a.data, a.is_transposed ? a.n_rows : a.n_columns, &zero, c.data,
                          c.n_columns));
    }

  private:
    std::unique_ptr<cublasContext, GiveBack<cublasDestroy>> handle_;
};
#else
__device__ float element(const Matrix &m, int row, int column) // 0 outside
{
    if (row >= m.n_rows || column >= m.n_columns)
        return 0;
    return m.is_transposed ? m.data[size_t(column) * m.n_rows + row]
                           : m.data[size_t(row) * m.n_columns + column];
}

// Each block makes a tile of c, each thread an element of it.
__global__ void multiply_tile(Matrix a, Matrix b, Matrix c)
{
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < a.n_columns; k += TILE) {
        a_tile[y][x] = element(a, row, k + x);
        b_tile[y][x] = element(b, k + y, column);
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    if (row < c.n_rows && column < c.n_columns)
        c.data[size_t(row) * c.n_columns + column] = sum;
}

class Multiplier
{
  public:
    static constexpr const char *name = "a kernel of its own";
    explicit Multiplier(cudaStream_t stream) : stream_(stream)
    {
    }
    void multiply(Matrix a, Matrix b, Matrix c) const // c = a b
    {
        const dim3 grid((c.n_columns + TILE - 1) / TILE, (c.n_rows + TILE - 1) / TILE);
        launch(multiply_tile, grid, dim3(TILE, TILE), stream_, a, b, c);
    }

  private:
    cudaStream_t stream_;
};
#endif

// ---- the network's other kernels ---------------------------------------------------------------

// Of the steps since the last report. In double: atomics add in no fixed order, and so it does not
// show in what is printed.
struct Totals {
    double loss;
    unsigned long long n_right, n_strange; // strange: with a label that is none of the classes
};

// Add a bias to each row; in the hidden layer nothing below 0 is let through then.
__global__ void add_bias(Matrix m, const float *bias, bool is_hidden)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= m.n_rows * m.n_columns)
        return;
    const float sum = m.data[i] + bias[i % m.n_columns];
    m.data[i] = is_hidden && sum < 0 ? 0 : sum;
}

// A warp for each row: of the logits make the gradient of the rows' mean loss.
__global__ void differentiate_loss(Matrix logits, const int64_t *labels, Totals *totals)
{
    const int64_t label = labels[blockIdx.x];
    const bool is_strange = label < 0 || label >= logits.n_columns;
    float *row = logits.data + size_t(blockIdx.x) * logits.n_columns;
    float largest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < logits.n_columns; i += WARP)
        largest = fmaxf(largest, row[i]);
    for (int other = WARP / 2; other > 0; other /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, other));
    for (int i = threadIdx.x; i < logits.n_columns; i += WARP)
        sum += expf(row[i] - largest);
    for (int other = WARP / 2; other > 0; other /= 2)
        sum += __shfl_xor_sync(~0u, sum, other);
    if (threadIdx.x == 0 && !is_strange) {
        atomicAdd(&totals->loss, double(largest - row[label] + logf(sum)));
        atomicAdd(&totals->n_right, row[label] == largest ? 1ull : 0ull);
    } else if (threadIdx.x == 0) {
        atomicAdd(&totals->n_strange, 1ull);
    }
    __syncwarp(); // row[label] has been read, and another thread writes it
    for (int i = threadIdx.x; i < logits.n_columns; i += WARP)
        row[i] = is_strange ? 0 : (expf(row[i] - largest) / sum - (i == label)) / logits.n_rows;
}

// A thread for each column: the gradient of a bias. Of a hidden layer (values) first that of its
// sums: none comes back where nothing was let through.
__global__ void differentiate_bias(Matrix gradient, const float *values, float *bias_gradient)
{
    const int column = blockIdx.x * BLOCK + threadIdx.x;
    float sum = 0;
    if (column >= gradient.n_columns)
        return;
    for (int row = 0; row < gradient.n_rows; row++) {
        const size_t i = size_t(row) * gradient.n_columns + column;
        if (values && values[i] <= 0)
            gradient.data[i] = 0;
        sum += gradient.data[i];
    }
    bias_gradient[column] = sum;
}

__global__ void descend(float *weights, float *velocity, const float *gradient, int n, float rate)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    velocity[i] = MOMENTUM * velocity[i] + gradient[i];
    weights[i] -= rate * velocity[i];
}

// ---- the network -------------------------------------------------------------------------------

class Network
{
  public:
    Network(int max_rows, int n_classes, cudaStream_t stream)
        : n_classes_(n_classes), n_weights_((N_INPUTS + 1 + n_classes) * N_HIDDEN + n_classes),
          stream_(stream), multiplier_(stream),
          weights_(make_device_array<float>(size_t(n_weights_) * 3)),
          values_(make_device_array<float>(size_t(max_rows) * (2 * N_HIDDEN + n_classes)))
    {
        // mt19937 is the same everywhere, which the standard's distributions are not. Three arrays
        // in one: weights, gradient, velocity.
        std::mt19937 random(1);
        std::vector<float> start(size_t(n_weights_) * 3, 0.0f);
        const Layers w = layers(start.data());
        for (const Matrix &m : {w.hidden, w.last})
            for (int i = 0; i < m.n_rows * m.n_columns; i++)
                m.data[i] = std::sqrt(6.0f / m.n_rows) * (float(random() >> 8) * 0x1p-23f - 1);
        CHECK(cudaMemcpyAsync(weights_.get(), start.data(), start.size() * sizeof(float),
                              cudaMemcpyHostToDevice, stream_));
    }

    // One step of gradient descent.
    void learn(float *images, const int64_t *labels, int n_rows, float rate, Totals *totals)
    {
        float *const gradient = weights_.get() + n_weights_, *const velocity = gradient + n_weights_;
        const Layers w = layers(weights_.get()), g = layers(gradient);
        const Matrix x = {images, n_rows, N_INPUTS}, h = {values_.get(), n_rows, N_HIDDEN};
        const Matrix dh = {h.data + n_rows * N_HIDDEN, n_rows, N_HIDDEN};
        const Matrix z = {dh.data + n_rows * N_HIDDEN, n_rows, n_classes_};

        multiplier_.multiply(x, w.hidden, h);
        each(n_rows * N_HIDDEN, add_bias, h, w.hidden_bias, true);
        multiplier_.multiply(h, w.last, z);
        each(n_rows * n_classes_, add_bias, z, w.last_bias, false);
        launch(differentiate_loss, dim3(n_rows), dim3(WARP), stream_, z, labels, totals);

        const Matrix dz = z;
        multiplier_.multiply(h.transposed(), dz, g.last);
        each(n_classes_, differentiate_bias, dz, nullptr, g.last_bias);
        multiplier_.multiply(dz, w.last.transposed(), dh);
        each(N_HIDDEN, differentiate_bias, dh, h.data, g.hidden_bias);
        multiplier_.multiply(x.transposed(), dh, g.hidden);
        each(n_weights_, descend, weights_.get(), velocity, gradient, n_weights_, rate);
    }

  private:
    struct Layers {
        Matrix hidden, last;
        float *hidden_bias, *last_bias;
    };
    // The parts of an array of n_weights_.
    Layers layers(float *start) const
    {
        const Matrix hidden = {start, N_INPUTS, N_HIDDEN};
        const Matrix last = {start + (N_INPUTS + 1) * N_HIDDEN, N_HIDDEN, n_classes_};
        return {hidden, last, start + N_INPUTS * N_HIDDEN, last.data + N_HIDDEN * n_classes_};
    }
    template <typename... Parameters, typename... Arguments>
    void each(int n, void (*kernel)(Parameters...), Arguments... arguments)
    {
        launch(kernel, dim3((n + BLOCK - 1) / BLOCK), dim3(BLOCK), stream_, arguments...);
    }

    int n_classes_, n_weights_;
    cudaStream_t stream_;
    Multiplier multiplier_;
    DeviceArray<float> weights_, values_;
};

// ---- how it goes -------------------------------------------------------------------------------

class Report
{
  public:
    explicit Report(cudaStream_t stream)
        : stream_(stream), totals_(make_device_array<Totals>(1)), is_fetched_(make_event())
    {
        void *memory;
        CHECK(cudaMallocHost(&memory, sizeof(Totals)));
        fetched_.reset(static_cast<Totals *>(memory));
        CHECK(cudaMemsetAsync(totals_.get(), 0, sizeof(Totals), stream_));
    }
    Totals *totals() const
    {
        return totals_.get();
    }
    // Show the report before, and have the stream fetch this one.
    void next(const penstock::Loader &loader, uint64_t epoch, int n_images)
    {
        show();
        const pstk_stats now = loader.stats();
        const auto time = std::chrono::steady_clock::now();
        const uint64_t starved = now.stream_starved_ns - starved_ns_;
        const uint64_t step = now.stream_used_ns - used_ns_ + starved;
        epoch_ = epoch, n_images_ = n_images;
        per_second_ = n_images / std::chrono::duration<double>(time - time_).count();
        starved_ = step ? 100.0 * double(starved) / double(step) : 0;
        starved_ns_ = now.stream_starved_ns, used_ns_ = now.stream_used_ns, time_ = time;
        CHECK(cudaMemcpyAsync(fetched_.get(), totals_.get(), sizeof(Totals), cudaMemcpyDeviceToHost,
                              stream_));
        CHECK(cudaMemsetAsync(totals_.get(), 0, sizeof(Totals), stream_));
        CHECK(cudaEventRecord(is_fetched_.get(), stream_));
    }
    // Was fetched long ago, but for the last one.
    void show()
    {
        if (n_images_ == 0)
            return;
        CHECK(cudaEventSynchronize(is_fetched_.get()));
        const double loss = fetched_[0].loss / n_images_;
        std::printf("epoch %llu  loss %.4f  accuracy %5.1f %%  %.0f images/s  starved %.1f %%\n",
                    static_cast<unsigned long long>(epoch_), loss,
                    100.0 * double(fetched_[0].n_right) / n_images_, per_second_, starved_);
        std::fflush(stdout);
        n_images_ = 0;
        if (fetched_[0].n_strange)
            throw std::runtime_error("labels that are none of the data set's classes");
        if (!std::isfinite(loss))
            throw std::runtime_error("the loss is no number any more: try a lower --lr");
    }

  private:
    cudaStream_t stream_;
    DeviceArray<Totals> totals_;
    PinnedArray<Totals> fetched_;
    Event is_fetched_;
    std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
    uint64_t epoch_ = 0, starved_ns_ = 0, used_ns_ = 0;
    int n_images_ = 0;
    double per_second_ = 0, starved_ = 0;
};
