#pragma once

// The CUDA backend with sums over GPUs that do something else than they should.

#include <memory>
#include <utility>

#include "kernels/backend.h"
#include "tests/cuda/rank_case.h"

namespace reprise::api {

// Does what `inner` does.
class OtherSums : public kernels::DeviceSums {
 public:
  OtherSums(std::unique_ptr<kernels::DeviceSums> inner, int rank)
      : inner_(std::move(inner)), rank_(rank) {}

  [[nodiscard]] std::string description() const override { return inner_->description(); }
  [[nodiscard]] base::Bytes reserved_bytes() const override { return inner_->reserved_bytes(); }
  void start(std::size_t number, std::span<const std::span<std::byte>> pieces,
             graph::DType type) override {
    inner_->start(number, pieces, type);
  }
  void wait(std::size_t number) override { inner_->wait(number); }
  [[nodiscard]] bool idle() override { return inner_->idle(); }
  void abort() noexcept override { inner_->abort(); }

 protected:
  [[nodiscard]] int rank() const { return rank_; }

 private:
  std::unique_ptr<kernels::DeviceSums> inner_;
  int rank_;
};

// Compute goes on before the sum is there.
class ForgetfulSums final : public OtherSums {
 public:
  using OtherSums::OtherSums;
  void wait(std::size_t /*number*/) override {}
};

template <class Sums>
class BackendWith final : public kernels::Backend {
 public:
  explicit BackendWith(std::unique_ptr<kernels::Backend> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  [[nodiscard]] std::string description() const override { return inner_->description(); }
  [[nodiscard]] std::shared_ptr<kernels::DeviceMemory> memory() const override {
    return inner_->memory();
  }
  [[nodiscard]] std::unique_ptr<kernels::Program> prepare(
      const graph::Graph& graph, const kernels::Program* like) const override {
    return inner_->prepare(graph, like);
  }
  [[nodiscard]] std::string make_group_id() const override { return inner_->make_group_id(); }
  [[nodiscard]] std::unique_ptr<kernels::DeviceSums> join_group(
      const std::string& id, int rank, int size, const kernels::Patience& patience) const override {
    return std::make_unique<Sums>(inner_->join_group(id, rank, size, patience), rank);
  }

 private:
  std::unique_ptr<kernels::Backend> inner_;
};

// run_group() with such sums on each rank.
template <class Sums>
GroupRun run_group_with(const TrainOptions& options, int size, std::int64_t steps,
                        std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  GroupRun group;
  group.ranks.resize(static_cast<std::size_t>(size));
  group.thrown = run_ranks(threads_kind(), world(size, timeout), [&](Communicator& end) {
    TrainOptions mine = options;
    mine.session.backend = std::make_shared<BackendWith<Sums>>(kernels::make_cuda_backend(
        {.ordinal = end.rank(), .record_steps = options.session.record_steps}));
    group.ranks[static_cast<std::size_t>(end.rank())] = run_rank(mine, steps, &end);
  });
  return group;
}

}  // namespace reprise::api
