// SPDX-License-Identifier: Apache-2.0
// trainer: a network of two layers learns the classes of a packed data set, on a GPU.
//
//   penstock pack imagenet/train train
//   example_trainer train --epochs 20 --batch-size 256 --lr 0.01 --device 0
//
// What a training loop needs of penstock is in Trainer::epoch:
//
//   next(stream)      the stream waits for the batch, the program does not
//   kernels           of the same stream, on the batch's pointers
//   release           the batch's memory is used again once the stream is past this point
//
// Nothing in that loop waits for the device, so that the program runs ahead of it. The loss is
// added up on the device and fetched now and then, by a copy in the stream that is looked at one
// report later.
#include <penstock/format.h>
#include <penstock/penstock.hpp>

#include <cuda_runtime.h>
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#endif

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

constexpr int SIDE = 32, N_INPUTS = 3 * SIDE * SIDE, N_HIDDEN = 256;
constexpr float MOMENTUM = 0.9f;
constexpr int STEPS_PER_REPORT = 200; // an epoch's end is a report as well
constexpr int BLOCK = 256, WARP = 32, TILE = 16;

struct Options {
    const char *path = nullptr;
    int n_epochs = 20, batch_size = 64, device = 0;
    float rate = 0.005f;
};

// Of the steps since the last report. In double: atomics add in no fixed order, which then does
// not show in what is printed.
struct Totals {
    double loss;
    unsigned long long n_right, n_strange; // strange: a label that is no class
};

// ---- errors and ownership ----------------------------------------------------------------------

void check(cudaError_t result, const char *call)
{
    if (result != cudaSuccess)
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}
#ifdef HAVE_CUBLAS
void check(cublasStatus_t result, const char *call)
{
    if (result != CUBLAS_STATUS_SUCCESS)
        throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(result));
}
#endif
#define CHECK(call) check(call, #call)

// What fails while something is given back was told before, by the call that broke the device.
struct Free {
    void operator()(void *memory) const
    {
        (void)cudaFree(memory);
    }
    void operator()(cudaStream_t stream) const
    {
        (void)cudaStreamDestroy(stream);
    }
    void operator()(cudaEvent_t event) const
    {
        (void)cudaEventDestroy(event);
    }
};
struct FreeHost {
    void operator()(void *memory) const
    {
        (void)cudaFreeHost(memory);
    }
};
template <typename T> using DeviceArray = std::unique_ptr<T[], Free>;
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Free>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Free>;

template <typename T> DeviceArray<T> device_array(size_t n)
{
    void *memory = nullptr;
    CHECK(cudaMalloc(&memory, n * sizeof(T)));
    return DeviceArray<T>(static_cast<T *>(memory));
}

// The default stream would wait for every other one of the program.
Stream make_stream()
{
    cudaStream_t stream = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return Stream(stream);
}

Event make_event()
{
    cudaEvent_t event = nullptr;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault));
    return Event(event);
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments... arguments)
{
    kernel<<<grid, block, 0, stream>>>(arguments...);
    CHECK(cudaGetLastError());
}

dim3 blocks_of(int n, int size)
{
    return dim3(static_cast<unsigned>((n + size - 1) / size));
}

// ---- matrices ----------------------------------------------------------------------------------

// Rows one after the other, or, transposed, columns.
struct Matrix {
    const float *data;
    int n_rows, n_columns;
    bool is_transposed;

    Matrix(const float *start, int rows, int columns)
        : data(start), n_rows(rows), n_columns(columns), is_transposed(false)
    {
    }
    Matrix transposed() const
    {
        Matrix t(data, n_columns, n_rows);
        t.is_transposed = !is_transposed;
        return t;
    }
    __host__ __device__ int stride() const
    {
        return is_transposed ? n_rows : n_columns;
    }
    __device__ float at(int row, int column) const // 0 outside
    {
        if (row >= n_rows || column >= n_columns)
            return 0;
        return is_transposed ? data[size_t(column) * stride() + row]
                             : data[size_t(row) * stride() + column];
    }
};

#ifdef HAVE_CUBLAS
class Multiplier
{
  public:
    explicit Multiplier(cudaStream_t stream)
    {
        CHECK(cublasCreate(&handle_));
        check(cublasSetStream(handle_, stream), "cublasSetStream");
    }
    ~Multiplier()
    {
        (void)cublasDestroy(handle_);
    }
    Multiplier(const Multiplier &) = delete;
    Multiplier &operator=(const Multiplier &) = delete;

    // c = a b. To cuBLAS, which goes by columns, that is c' = b' a'.
    void multiply(Matrix a, Matrix b, float *c)
    {
        const float one = 1, zero = 0;
        CHECK(cublasSgemm(handle_, operation(b), operation(a), b.n_columns, a.n_rows, a.n_columns,
                          &one, b.data, b.stride(), a.data, a.stride(), &zero, c, b.n_columns));
    }
    static constexpr const char *name = "cuBLAS";

  private:
    static cublasOperation_t operation(const Matrix &m)
    {
        return m.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    }

    cublasHandle_t handle_ = nullptr;
};
#else
// Each block makes one tile of c, each thread one element of it.
__global__ void multiply_tiles(Matrix a, Matrix b, float *c)
{
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int x = int(threadIdx.x), y = int(threadIdx.y);
    const int row = int(blockIdx.y) * TILE + y, column = int(blockIdx.x) * TILE + x;
    float sum = 0;
    for (int k = 0; k < a.n_columns; k += TILE) {
        a_tile[y][x] = a.at(row, k + x);
        b_tile[y][x] = b.at(k + y, column);
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    if (row < a.n_rows && column < b.n_columns)
        c[size_t(row) * b.n_columns + column] = sum;
}

class Multiplier
{
  public:
    explicit Multiplier(cudaStream_t stream) : stream_(stream)
    {
    }
    void multiply(Matrix a, Matrix b, float *c)
    {
        dim3 grid = blocks_of(b.n_columns, TILE);
        grid.y = blocks_of(a.n_rows, TILE).x;
        launch(multiply_tiles, grid, dim3(TILE, TILE), stream_, a, b, c);
    }
    static constexpr const char *name = "a kernel of its own";

  private:
    cudaStream_t stream_;
};
#endif

// ---- the network's other kernels ---------------------------------------------------------------

// Add the bias to each row; with `relu`, leave nothing below 0.
__global__ void add_bias(float *m, const float *bias, int n, int n_columns, bool relu)
{
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    const float value = m[i] + bias[i % n_columns];
    m[i] = relu && value < 0 ? 0 : value;
}

// Where relu let nothing through, no gradient comes back.
__global__ void stop_gradient(float *gradient, const float *hidden, int n)
{
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n && !(hidden[i] > 0))
        gradient[i] = 0;
}

__global__ void sum_rows(const float *m, int n_rows, int n_columns, float *sums)
{
    const int column = int(blockIdx.x * blockDim.x + threadIdx.x);
    float sum = 0;
    if (column >= n_columns)
        return;
    for (int row = 0; row < n_rows; row++)
        sum += m[size_t(row) * n_columns + column];
    sums[column] = sum;
}

__device__ float sum_of_warp(float value)
{
    for (int other = WARP / 2; other > 0; other /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, other);
    return value;
}

__device__ float largest_of_warp(float value)
{
    for (int other = WARP / 2; other > 0; other /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, other));
    return value;
}

// One warp to each row. Logits become the gradient of the rows' mean loss, which is (softmax - 1 at
// the label) / rows.
__global__ void finish_softmax(float *logits, const int64_t *labels, int n_rows, int n_classes,
                               Totals *totals)
{
    const int lane = int(threadIdx.x);
    const int64_t label = labels[blockIdx.x];
    float *row = logits + size_t(blockIdx.x) * n_classes;
    const bool strange = label < 0 || label >= n_classes;
    float largest = -INFINITY, sum = 0;
    for (int i = lane; i < n_classes; i += WARP)
        largest = fmaxf(largest, row[i]);
    largest = largest_of_warp(largest);
    for (int i = lane; i < n_classes; i += WARP)
        sum += expf(row[i] - largest);
    sum = sum_of_warp(sum);
    if (lane == 0 && strange) {
        atomicAdd(&totals->n_strange, 1ull);
    } else if (lane == 0) {
        atomicAdd(&totals->loss, double(logf(sum) + largest - row[label]));
        atomicAdd(&totals->n_right, row[label] == largest ? 1ull : 0ull);
    }
    __syncwarp(); // row[label] was read, and may be written
    for (int i = lane; i < n_classes; i += WARP)
        row[i] = strange ? 0 : (expf(row[i] - largest) / sum - (i == label ? 1 : 0)) / n_rows;
}

__global__ void descend(float *weights, float *velocity, const float *gradient, int n, float rate)
{
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    velocity[i] = MOMENTUM * velocity[i] + gradient[i];
    weights[i] -= rate * velocity[i];
}

// ---- the network -------------------------------------------------------------------------------

// images [rows, N_INPUTS] -> hidden [rows, N_HIDDEN] -> logits [rows, n_classes]
class Network
{
  public:
    Network(int max_rows, int n_classes, cudaStream_t stream)
        : n_classes_(n_classes), at_{0, N_INPUTS * N_HIDDEN, N_INPUTS * N_HIDDEN + N_HIDDEN,
                                     N_INPUTS * N_HIDDEN + N_HIDDEN + N_HIDDEN * n_classes},
          n_weights_(at_[3] + n_classes), stream_(stream), multiplier_(stream),
          weights_(device_array<float>(n_weights_)), gradient_(device_array<float>(n_weights_)),
          velocity_(device_array<float>(n_weights_)),
          hidden_(device_array<float>(size_t(max_rows) * N_HIDDEN)),
          hidden_gradient_(device_array<float>(size_t(max_rows) * N_HIDDEN)),
          logits_(device_array<float>(size_t(max_rows) * n_classes))
    {
        // mt19937 gives the same everywhere, which the standard's distributions do not.
        std::mt19937 random(1);
        std::vector<float> weights(n_weights_, 0.0f);
        const float bounds[] = {std::sqrt(6.0f / N_INPUTS), 0, std::sqrt(6.0f / N_HIDDEN)};
        for (int part : {0, 2})
            for (int i = at_[part]; i < at_[part + 1]; i++)
                weights[i] = bounds[part] * (float(random() >> 8) * 0x1p-23f - 1);
        CHECK(cudaMemcpyAsync(weights_.get(), weights.data(), n_weights_ * sizeof(float),
                              cudaMemcpyHostToDevice, stream_));
        CHECK(cudaMemsetAsync(velocity_.get(), 0, n_weights_ * sizeof(float), stream_));
    }

    // One step of gradient descent.
    void learn(const float *images, const int64_t *labels, int n_rows, float rate, Totals *totals)
    {
        const Matrix x(images, n_rows, N_INPUTS), h(hidden_.get(), n_rows, N_HIDDEN);
        const Matrix w0(weights_.get() + at_[0], N_INPUTS, N_HIDDEN);
        const Matrix w1(weights_.get() + at_[2], N_HIDDEN, n_classes_);
        const Matrix dh(hidden_gradient_.get(), n_rows, N_HIDDEN);
        const Matrix dz(logits_.get(), n_rows, n_classes_); // logits, and then their gradient
        const int n_hidden = n_rows * N_HIDDEN, n_logits = n_rows * n_classes_;
        float *g = gradient_.get();

        multiplier_.multiply(x, w0, hidden_.get());
        each(add_bias, n_hidden, hidden_.get(), weights_.get() + at_[1], n_hidden, N_HIDDEN, true);
        multiplier_.multiply(h, w1, logits_.get());
        each(add_bias, n_logits, logits_.get(), weights_.get() + at_[3], n_logits, n_classes_,
             false);
        launch(finish_softmax, dim3(unsigned(n_rows)), dim3(WARP), stream_, logits_.get(), labels,
               n_rows, n_classes_, totals);

        multiplier_.multiply(h.transposed(), dz, g + at_[2]);
        each(sum_rows, n_classes_, dz.data, n_rows, n_classes_, g + at_[3]);
        multiplier_.multiply(dz, w1.transposed(), hidden_gradient_.get());
        each(stop_gradient, n_hidden, hidden_gradient_.get(), h.data, n_hidden);
        multiplier_.multiply(x.transposed(), dh, g + at_[0]);
        each(sum_rows, N_HIDDEN, dh.data, n_rows, N_HIDDEN, g + at_[1]);
        each(descend, n_weights_, weights_.get(), velocity_.get(), g, n_weights_, rate);
    }

  private:
    // A thread for each of n elements.
    template <typename... Parameters, typename... Arguments>
    void each(void (*kernel)(Parameters...), int n, Arguments... arguments)
    {
        launch(kernel, blocks_of(n, BLOCK), dim3(BLOCK), stream_, arguments...);
    }

    int n_classes_;
    int at_[4]; // where in the weights: weights and bias of the hidden layer, of the last one
    int n_weights_;
    cudaStream_t stream_;
    Multiplier multiplier_;
    DeviceArray<float> weights_, gradient_, velocity_, hidden_, hidden_gradient_, logits_;
};
