// A step allocates nothing: counted by the operator new of this whole program. Not under the thread
// sanitizer, which brings its own.

#if !defined(__SANITIZE_THREAD__)

#include <atomic>
#include <cstdlib>
#include <new>

#include "gtest/gtest.h"

#include "runtime/executor.h"
#include "tests/runtime/fake_program.h"

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_throw(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Every form without an alignment, so that each delete meets the memory of its own new.
void* operator new(std::size_t size) {
  return counted_or_throw(size);
}
void* operator new[](std::size_t size) {
  return counted_or_throw(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace reprise::runtime {
namespace {

using testing::FakeProgram;
using testing::ScheduleWriter;
using testing::SlotId;

TEST(ExecutorAllocation, AThousandStepsOfAThousandInstructionsAllocateNothing) {
  FakeProgram program;
  const ValueId x = program.value("x", 16, graph::Role::kInput);
  const ValueId y = program.value("y", 16);
  long runs = 0;
  const auto node = program.node(
      "touch", {x}, {y}, [&](const kernels::Call&, const graph::StepContext&) { ++runs; }, 64);
  ScheduleWriter writer(program);
  const SlotId slot_x = writer.entry(x, 0);
  for (int i = 0; i < 1000; ++i) writer.run(node, {slot_x}, {writer.slot(y, 64)}, 128);
  Arena arena(192);
  Executor executor(program, writer.finish(), arena);
  const long before = allocations.load();
  for (std::uint64_t step = 0; step < 1000; ++step) executor.run({.seed = 1, .step = step});
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_EQ(runs, 1'000'000);
  EXPECT_GT(before, 0) << "the counter is not in use";
}

}  // namespace
}  // namespace reprise::runtime

#endif
