// SPDX-License-Identifier: Apache-2.0
//
// penstock.hpp - thin C++17 over penstock.h: throws the errors that C returns, releases C's leases.
//
//   pstk_settings s = penstock::settings();
//   s.path = "train"; s.batch_size = 256; s.outputs = outputs; s.n_outputs = 2;
//   penstock::Loader loader(s);
//   for (int epoch = 0; epoch < 90; epoch++)
//       for (penstock::Batch &batch : loader.epoch(epoch))
//           train_step(batch.tensor(0).data, batch.tensor(1).data);
//
// Structs and enumerators are those of penstock.h, and get() returns the C object. The rules of
// penstock.h hold, also those about threads.
#ifndef PENSTOCK_PENSTOCK_HPP
#define PENSTOCK_PENSTOCK_HPP

#include <penstock/penstock.h>

#include <exception>
#include <utility>

namespace penstock
{

// In place of PSTK_IMAGENET_MEAN and PSTK_IMAGENET_STD, compound literals, which C++ lacks.
inline constexpr float imagenet_mean[3] = {0.485f, 0.456f, 0.406f};
inline constexpr float imagenet_std[3] = {0.229f, 0.224f, 0.225f};

// A failure of any call below; what() returns the library's sentence.
class Error : public std::exception
{
  public:
    explicit Error(const pstk_error &detail) noexcept : detail_(detail)
    {
    }
    const char *what() const noexcept override
    {
        return detail_.message[0] ? detail_.message : pstk_strerror(detail_.code);
    }
    int code() const noexcept // enum pstk_result
    {
        return detail_.code;
    }
    const pstk_error &detail() const noexcept
    {
        return detail_;
    }

  private:
    pstk_error detail_;
};

// Settings with all defaults.
inline pstk_settings settings() noexcept
{
    pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    return s;
}

// The lease of one batch; of none at the end of an epoch. It may outlive its loader.
class Batch
{
  public:
    Batch() noexcept = default;
    // Takes a lease; pstk_release gets `stream`.
    explicit Batch(pstk_batch *batch, void *stream = nullptr) noexcept
        : batch_(batch), stream_(stream)
    {
    }
    Batch(Batch &&other) noexcept
        : batch_(std::exchange(other.batch_, nullptr)), stream_(other.stream_)
    {
    }
    Batch &operator=(Batch &&other) noexcept
    {
        if (this != &other) {
            release();
            batch_ = std::exchange(other.batch_, nullptr);
            stream_ = other.stream_;
        }
        return *this;
    }
    Batch(const Batch &) = delete;
    Batch &operator=(const Batch &) = delete;
    ~Batch()
    {
        release();
    }

    explicit operator bool() const noexcept // is there one?
    {
        return batch_ != nullptr;
    }
    const pstk_batch *operator->() const noexcept
    {
        return batch_;
    }
    const pstk_batch *get() const noexcept
    {
        return batch_;
    }
    const pstk_tensor &tensor(uint32_t i) const noexcept // i < n_tensors, as the outputs
    {
        return batch_->tensors[i];
    }
    void release() noexcept // ends the lease early
    {
        pstk_release(&batch_, stream_);
    }

  private:
    pstk_batch *batch_ = nullptr;
    void *stream_ = nullptr;
};

class Loader
{
  public:
    class Epoch; // borrows its Loader, which must not move meanwhile

    explicit Loader(const pstk_settings &s)
    {
        pstk_error err = no_error();
        check(pstk_open(&loader_, &s, &err), err);
    }
    Loader(Loader &&other) noexcept : loader_(std::exchange(other.loader_, nullptr))
    {
    }
    Loader &operator=(Loader &&other) noexcept
    {
        if (this != &other) {
            close();
            loader_ = std::exchange(other.loader_, nullptr);
        }
        return *this;
    }
    Loader(const Loader &) = delete;
    Loader &operator=(const Loader &) = delete;
    ~Loader()
    {
        close();
    }

    // Return the next batch; an empty one at the end of the epoch. See pstk_next.
    Batch next(void *stream = nullptr, int64_t timeout_ns = -1)
    {
        pstk_error err = no_error();
        pstk_batch *batch = nullptr;
        int result = pstk_next(loader_, &batch, stream, timeout_ns, &err);
        check(result, err);
        return result == 1 ? Batch(batch, stream) : Batch();
    }
    void seek(uint64_t epoch, uint64_t position = 0)
    {
        pstk_error err = no_error();
        check(pstk_seek(loader_, epoch, position, &err), err);
    }
    void set_batch_size(uint32_t rows); // of batches from the next one on: pstk_set_batch_size
    // Seek to the start of an epoch; return its batches, for a range-based for.
    Epoch epoch(uint64_t epoch, void *stream = nullptr);

    std::pair<uint64_t, uint64_t> cursor() const // epoch, position
    {
        pstk_error err = no_error();
        std::pair<uint64_t, uint64_t> cursor{};
        check(pstk_get_cursor(loader_, &cursor.first, &cursor.second), err);
        return cursor;
    }
    pstk_stats stats() const
    {
        pstk_error err = no_error();
        pstk_stats stats{};
        stats.size = sizeof stats;
        check(pstk_get_stats(loader_, &stats), err);
        return stats;
    }
    uint64_t n_batches() const noexcept
    {
        return pstk_n_batches(loader_);
    }
    uint64_t n_samples() const noexcept
    {
        return pstk_n_samples(loader_);
    }
    void interrupt() noexcept
    {
        pstk_interrupt(loader_);
    }
    void close() noexcept
    {
        pstk_close(&loader_);
    }
    pstk_loader *get() const noexcept
    {
        return loader_;
    }

  private:
    static pstk_error no_error() noexcept
    {
        pstk_error err;
        pstk_error_init(&err, sizeof err);
        return err;
    }
    // Some calls give no detail: then only the code is set.
    static void check(int result, pstk_error &err)
    {
        if (result >= 0)
            return;
        err.code = result;
        throw Error(err);
    }

    pstk_loader *loader_ = nullptr;
};

// The batches of one epoch. Each is released before the next one is leased, unless moved out.
class Loader::Epoch
{
  public:
    struct End {
    };
    class Iterator
    {
      public:
        explicit Iterator(Epoch *epoch) noexcept : epoch_(epoch)
        {
        }
        Batch &operator*() const noexcept
        {
            return epoch_->batch_;
        }
        Iterator &operator++()
        {
            epoch_->advance();
            return *this;
        }
        bool operator!=(End) const noexcept
        {
            return !epoch_->is_over_;
        }

      private:
        Epoch *epoch_;
    };

    Epoch(Loader &loader, void *stream) noexcept : loader_(&loader), stream_(stream)
    {
    }
    Iterator begin()
    {
        advance();
        return Iterator(this);
    }
    End end() const noexcept
    {
        return {};
    }

  private:
    void advance()
    {
        batch_.release();
        batch_ = loader_->next(stream_);
        is_over_ = !batch_;
    }

    Loader *loader_;
    void *stream_;
    Batch batch_;
    bool is_over_ = false;
};

inline void Loader::set_batch_size(uint32_t rows)
{
    pstk_error err = no_error();
    check(pstk_set_batch_size(loader_, rows, &err), err);
}

inline Loader::Epoch Loader::epoch(uint64_t epoch, void *stream)
{
    seek(epoch, 0);
    return Epoch(*this, stream);
}

} // namespace penstock

#endif
