// SPDX-License-Identifier: Apache-2.0
// network: a network of two layers that learns to distinguish classes, in CUDA, without penstock.
//
// All work goes into one stream, and nothing here waits for the device. A call that fails throws.
#ifndef EXAMPLE_NETWORK_H
#define EXAMPLE_NETWORK_H

#include <cuda_runtime.h>
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#endif

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace example
{

constexpr int SIDE = 32, N_INPUTS = 3 * SIDE * SIDE, N_HIDDEN = 256;
constexpr int WARP = 32, BLOCK = 256;
constexpr float MOMENTUM = 0.9f;

// ---- calls that may fail, objects that are freed -----------------------------------------------

inline void check(cudaError_t result, const char *call)
{
    if (result != cudaSuccess)
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}
#ifdef HAVE_CUBLAS
inline void check(cublasStatus_t result, const char *call)
{
    if (result != CUBLAS_STATUS_SUCCESS)
        throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(result));
}
#endif
#define CHECK(call) check(call, #call)

// After an error or Ctrl-C the device may still use the object. If this call fails, the call that
// broke the device has already reported it.
template <auto give_back> struct GiveBack {
    template <typename T> void operator()(T *thing) const
    {
        (void)cudaDeviceSynchronize();
        (void)give_back(thing);
    }
};
using Stream = std::unique_ptr<CUstream_st, GiveBack<cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, GiveBack<cudaEventDestroy>>;
template <typename T> using DeviceArray = std::unique_ptr<T[], GiveBack<cudaFree>>;
template <typename T> using PinnedArray = std::unique_ptr<T[], GiveBack<cudaFreeHost>>;

// The thing that open(&thing, arguments...) gives, with its owner.
template <typename Owner, typename Open, typename... Arguments>
Owner make(Open open, Arguments... arguments)
{
    typename Owner::pointer thing = nullptr;
    check(open(&thing, arguments...), "making an array, a stream or an event");
    return Owner(thing);
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments... arguments)
{
    kernel<<<grid, block, 0, stream>>>(arguments...);
    CHECK(cudaGetLastError());
}

// ---- products of matrices ----------------------------------------------------------------------

struct Matrix {
    float *data; // row by row; transposed: column by column
    int n_rows, n_columns;
    bool is_transposed = false;

    Matrix transposed() const
    {
        return {data, n_columns, n_rows, !is_transposed};
    }
};

#ifdef HAVE_CUBLAS
constexpr const char *MULTIPLIER = "cuBLAS";
using Handle = std::unique_ptr<cublasContext, GiveBack<cublasDestroy>>;

inline Handle make_handle(cudaStream_t stream)
{
    Handle handle = make<Handle>(cublasCreate);
    CHECK(cublasSetStream(handle.get(), stream));
    return handle;
}

// c = a b. cuBLAS thinks in columns: to it that is c' = b' a'.
inline void multiply(const Handle &handle, Matrix a, Matrix b, Matrix c)
{
    const cublasOperation_t of_a = a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_b = b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int a_stride = a.is_transposed ? a.n_rows : a.n_columns;
    const int b_stride = b.is_transposed ? b.n_rows : b.n_columns;
    const float one = 1, zero = 0;
    CHECK(cublasSgemm(handle.get(), of_b, of_a, c.n_columns, c.n_rows, a.n_columns, &one, b.data,
                      b_stride, a.data, a_stride, &zero, c.data, c.n_columns));
}
#else
constexpr const char *MULTIPLIER = "a kernel of its own";
constexpr int TILE = 16;
using Handle = cudaStream_t;

inline Handle make_handle(cudaStream_t stream)
{
    return stream;
}

static inline __device__ float element(const Matrix &m, int row, int column) // 0 outside
{
    if (row >= m.n_rows || column >= m.n_columns)
        return 0;
    return m.is_transposed ? m.data[size_t(column) * m.n_rows + row]
                           : m.data[size_t(row) * m.n_columns + column];
}

// Each block makes a tile of c, each thread an element of it.
static __global__ void multiply_tile(Matrix a, Matrix b, Matrix c)
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

inline void multiply(Handle stream, Matrix a, Matrix b, Matrix c) // c = a b
{
    const dim3 grid((c.n_columns + TILE - 1) / TILE, (c.n_rows + TILE - 1) / TILE);
    launch(multiply_tile, grid, dim3(TILE, TILE), stream, a, b, c);
}
#endif

// ---- the network's other kernels ---------------------------------------------------------------

// Sums over the images since the last report. Atomics add in no fixed order: in a double that does
// not show in what is printed.
struct Totals {
    double loss;
    unsigned long long n_right;
};

// Add a bias to each row; in the hidden layer nothing below 0 is let through then.
static __global__ void add_bias(Matrix m, const float *bias, bool is_hidden)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= m.n_rows * m.n_columns)
        return;
    const float sum = m.data[i] + bias[i % m.n_columns];
    m.data[i] = is_hidden && sum < 0 ? 0 : sum;
}

// A warp for each row: of the logits make the gradient of the rows' mean loss, softmax and cross
// entropy. The loss of a label that is not a class is NaN.
static __global__ void differentiate_loss(Matrix logits, const int64_t *labels, Totals *totals)
{
    const int64_t label = labels[blockIdx.x];
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
    if (threadIdx.x == 0) {
        const float wanted = label >= 0 && label < logits.n_columns ? row[label] : NAN;
        atomicAdd(&totals->loss, double(largest - wanted + logf(sum)));
        atomicAdd(&totals->n_right, wanted == largest ? 1ull : 0ull);
    }
    __syncwarp(); // row[label] has been read, and another thread writes it
    for (int i = threadIdx.x; i < logits.n_columns; i += WARP)
        row[i] = (expf(row[i] - largest) / sum - (i == label)) / logits.n_rows;
}

// A thread for each column: the gradient of a bias. In the hidden layer, whose values these are,
// no gradient comes back where nothing was let through.
static __global__ void differentiate_bias(Matrix gradient, const float *values,
                                          float *bias_gradient)
{
    const int column = blockIdx.x * BLOCK + threadIdx.x;
    float sum = 0;
    if (column >= gradient.n_columns)
        return;
    for (int i = column; i < gradient.n_rows * gradient.n_columns; i += gradient.n_columns) {
        if (values && values[i] <= 0)
            gradient.data[i] = 0;
        sum += gradient.data[i];
    }
    bias_gradient[column] = sum;
}

static __global__ void descend(float *weights, float *velocity, const float *gradient, int n,
                               float rate)
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
    // On the device: weights, their gradient and velocity; hidden values, their gradient, logits.
    Network(int max_rows, int n_classes, cudaStream_t stream)
        : n_classes_(n_classes), n_weights_((N_INPUTS + 1 + n_classes) * N_HIDDEN + n_classes),
          stream_(stream), handle_(make_handle(stream)),
          weights_(make<DeviceArray<float>>(cudaMalloc<float>, sizeof(float) * 3 * n_weights_)),
          values_(make<DeviceArray<float>>(cudaMalloc<float>,
                                           sizeof(float) * max_rows * (2 * N_HIDDEN + n_classes)))
    {
        std::mt19937 random(1); // the same everywhere, which the standard's distributions are not
        std::vector<float> start(size_t(3) * n_weights_, 0.0f);
        const Layers w = layers(start.data());
        for (const Matrix &m : {w.hidden, w.last})
            for (int i = 0; i < m.n_rows * m.n_columns; i++)
                m.data[i] = std::sqrt(6.0f / m.n_rows) * (float(random() >> 8) * 0x1p-23f - 1);
        CHECK(cudaMemcpyAsync(weights_.get(), start.data(), start.size() * sizeof(float),
                              cudaMemcpyHostToDevice, stream));
    }

    // One step of gradient descent.
    void learn(float *images, const int64_t *labels, int n_rows, float rate, Totals *totals)
    {
        float *const gradient = weights_.get() + n_weights_, *velocity = gradient + n_weights_;
        const Layers w = layers(weights_.get()), g = layers(gradient);
        const Matrix x = {images, n_rows, N_INPUTS}, h = {values_.get(), n_rows, N_HIDDEN};
        const Matrix dh = {h.data + n_rows * N_HIDDEN, n_rows, N_HIDDEN};
        const Matrix z = {dh.data + n_rows * N_HIDDEN, n_rows, n_classes_}, dz = z;

        multiply(handle_, x, w.hidden, h);
        each(n_rows * N_HIDDEN, add_bias, h, w.hidden_bias, true);
        multiply(handle_, h, w.last, z);
        each(n_rows * n_classes_, add_bias, z, w.last_bias, false);
        launch(differentiate_loss, dim3(n_rows), dim3(WARP), stream_, z, labels, totals);

        multiply(handle_, h.transposed(), dz, g.last);
        each(n_classes_, differentiate_bias, dz, nullptr, g.last_bias);
        multiply(handle_, dz, w.last.transposed(), dh);
        each(N_HIDDEN, differentiate_bias, dh, h.data, g.hidden_bias);
        multiply(handle_, x.transposed(), dh, g.hidden);
        each(n_weights_, descend, weights_.get(), velocity, gradient, n_weights_, rate);
    }

  private:
    struct Layers {
        Matrix hidden, last;
        float *hidden_bias, *last_bias;
    };
    Layers layers(float *start) const // the parts of n_weights_ floats
    {
        const Matrix hidden = {start, N_INPUTS, N_HIDDEN};
        const Matrix last = {start + (N_INPUTS + 1) * N_HIDDEN, N_HIDDEN, n_classes_};
        return {hidden, last, start + N_INPUTS * N_HIDDEN, last.data + N_HIDDEN * n_classes_};
    }
    template <typename Kernel, typename... Arguments>
    void each(int n, Kernel kernel, Arguments... arguments) const // a thread for each of n
    {
        launch(kernel, dim3((n + BLOCK - 1) / BLOCK), dim3(BLOCK), stream_, arguments...);
    }

    int n_classes_, n_weights_;
    cudaStream_t stream_;
    Handle handle_;
    DeviceArray<float> weights_, values_;
};

} // namespace example

#endif
