#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/id_limits.h"
#include "kernels/cuda/kernel.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/step_buffer.h"
#include "kernels/cuda/stopwatch.h"
#include "kernels/cuda/tape.h"

namespace reprise::kernels::cuda {

// The kernels of one graph on one GPU. Every value lies plain.
class CudaProgram final : public Program {
 public:
  CudaProgram(const graph::Graph& graph, std::shared_ptr<Device> device,
              std::shared_ptr<CudaMemory> memory, bool record_steps);

  [[nodiscard]] const graph::PreparedGraph& prepared() const override { return prepared_; }
  void run(NodeId node, const Call& call, const graph::StepContext& context) override;
  [[nodiscard]] std::int64_t timed_run(NodeId node, const Call& call,
                                       const graph::StepContext& context) override;
  void run_step(const graph::StepContext& context, Tape* tape,
                const std::function<void(const graph::StepContext&)>& instructions) override;
  [[nodiscard]] std::unique_ptr<Tape> make_tape() override;
  void mark(std::size_t number) override;
  void begin_import(ValueId value, std::span<const std::byte> plain, std::byte* stored,
                    std::size_t mark) override;
  void import_value(ValueId value, std::span<const std::byte> plain, std::byte* stored) override;
  void export_value(ValueId value, const std::byte* stored, std::span<std::byte> plain) override;

 private:
  void queue(NodeId node, const Call& call);
  void check_size(ValueId id, std::size_t bytes) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<CudaMemory> memory_;
  bool record_steps_;
  graph::PreparedGraph prepared_;
  base::IdVector<NodeId, std::unique_ptr<Kernel>> kernels_;
  IdLimits limits_;
  std::unique_ptr<StepBuffer> step_;
  UpdateBatch updates_;
  bool in_step_ = false;  // updates may wait for their neighbours
  Staging staging_;
  std::unique_ptr<Stopwatch> stopwatch_;  // once something is timed
};

}  // namespace reprise::kernels::cuda
