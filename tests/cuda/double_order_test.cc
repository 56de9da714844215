// Planted bugs of order in a pipeline of three streams: what finds them, and what does not.
//
//   copies:   x = in[i]          waits for the kernel before, which still reads x    (reuse)
//   compute:  y = 2 x            waits for the copy to x, and for the fetch of y     (arrival)
//   fetches:  out[i] = y         waits for the kernel

#include <algorithm>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <map>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

constexpr std::size_t kValues = 16;
constexpr int kSteps = 4;
constexpr int kSeeds = 200;

enum class Bug { kNone, kNoWaitForArrival, kNoWaitBeforeReuse };

struct Outcome {
  bool wrong = false;
  std::vector<std::string> faults;
};

class Pipeline {
 public:
  Pipeline(Policy policy, std::uint64_t seed) {
    reset();
    set_policy(policy, seed);
    for (cudaStream_t* stream : {&copies_, &compute_, &fetches_})
      must(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&copied_, &computed_, &fetched_})
      must(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    must(cudaMallocHost(&in_, kSteps * kValues * sizeof(int)));
    must(cudaMallocHost(&out_, kSteps * kValues * sizeof(int)));
    for (std::size_t i = 0; i < kSteps * kValues; ++i) in_[i] = static_cast<int>(i);
    must(cudaMalloc(&x_, kBytes));
    must(cudaMalloc(&y_, kBytes));
  }

  Outcome run(Bug bug) {
    const CollectedFaults faults;
    for (int step = 0; step < kSteps; ++step) {
      if (step > 0 && bug != Bug::kNoWaitBeforeReuse)
        must(cudaStreamWaitEvent(copies_, computed_, 0));
      must(cudaMemcpyAsync(x_, in_ + step * kValues, kBytes, cudaMemcpyHostToDevice, copies_));
      must(cudaEventRecord(copied_, copies_));
      if (bug != Bug::kNoWaitForArrival) must(cudaStreamWaitEvent(compute_, copied_, 0));
      if (step > 0) must(cudaStreamWaitEvent(compute_, fetched_, 0));
      queue_kernel();
      must(cudaEventRecord(computed_, compute_));
      must(cudaStreamWaitEvent(fetches_, computed_, 0));
      must(cudaMemcpyAsync(out_ + step * kValues, y_, kBytes, cudaMemcpyDeviceToHost, fetches_));
      must(cudaEventRecord(fetched_, fetches_));
    }
    must(cudaStreamSynchronize(fetches_));
    Outcome outcome;
    for (std::size_t i = 0; i < kSteps * kValues; ++i) outcome.wrong |= out_[i] != 2 * in_[i];
    outcome.faults = faults.all();
    return outcome;
  }

 private:
  static constexpr std::size_t kBytes = kValues * sizeof(int);

  void queue_kernel() {
    must(enqueue(compute_, "twice", {{x_, kBytes, false}, {y_, kBytes, true}}, [this] {
      const int* const x = translated(x_);
      int* const y = translated(y_);
      // Fresh memory too, of which the double does not fit into an int.
      for (std::size_t i = 0; i < kValues; ++i)
        y[i] = static_cast<int>(2U * static_cast<unsigned>(x[i]));
    }));
  }

  cudaStream_t copies_{}, compute_{}, fetches_{};
  cudaEvent_t copied_{}, computed_{}, fetched_{};
  int *in_{}, *out_{}, *x_{}, *y_{};
};

struct Tally {
  int wrong = 0;     // seeds with wrong values
  int reported = 0;  // seeds with a report of the checker
  std::string first;
};

Tally tally(Policy policy, Bug bug) {
  Tally result;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = Pipeline(policy, seed).run(bug);
    result.wrong += outcome.wrong ? 1 : 0;
    result.reported += outcome.faults.empty() ? 0 : 1;
    if (result.first.empty() && !outcome.faults.empty()) result.first = outcome.faults[0];
  }
  std::printf("%s: wrong values in %d of %d seeds, reported in %d\n", to_string(policy),
              result.wrong, kSeeds, result.reported);
  return result;
}

constexpr Policy kAll[] = {Policy::kEager, Policy::kRandom, Policy::kStarve, Policy::kOthersFirst};

TEST(DoubleOrder, ACorrectPipelineIsRightInEveryOrder) {
  for (const Policy policy : kAll) {
    const Tally found = tally(policy, Bug::kNone);
    EXPECT_EQ(found.wrong, 0) << to_string(policy);
    EXPECT_EQ(found.reported, 0) << to_string(policy) << ": " << found.first;
  }
}

// Both bugs: always reported, with this text, and never seen in the values of eager streams.
void expect_found(Bug bug, const std::string& text) {
  std::map<Policy, int> wrong;
  for (const Policy policy : kAll) {
    const Tally found = tally(policy, bug);
    EXPECT_EQ(found.reported, kSeeds) << to_string(policy);
    EXPECT_NE(found.first.find(text), std::string::npos) << found.first;
    wrong[policy] = found.wrong;
  }
  EXPECT_EQ(wrong[Policy::kEager], 0);
  EXPECT_GT(wrong[Policy::kRandom], 0);
  EXPECT_EQ(std::max(wrong[Policy::kStarve], wrong[Policy::kOthersFirst]), kSeeds);
}

TEST(DoubleOrder, AMissingWaitForArrivalIsReportedAlwaysAndEagerValuesDoNotShowIt) {
  expect_found(Bug::kNoWaitForArrival,
               "copy 'cudaMemcpyAsync' on stream 1 writes and kernel 'twice' on stream 2 reads "
               "bytes [0, 64) of allocation 3 (64 bytes)");
}

TEST(DoubleOrder, AMissingWaitBeforeReuseIsReportedAlwaysAndEagerValuesDoNotShowIt) {
  expect_found(Bug::kNoWaitBeforeReuse,
               "kernel 'twice' on stream 2 reads and copy 'cudaMemcpyAsync' on stream 1 writes "
               "bytes [0, 64) of allocation 3 (64 bytes)");
}

// Two streams, one operation each, on bytes that do or do not meet.
std::size_t reports(Range first, Range second) {
  cudaStream_t a = nullptr, b = nullptr;
  must(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  must(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  const CollectedFaults faults;
  must(enqueue(a, "first", {first}, [] {}));
  must(enqueue(b, "second", {second}, [] {}));
  must(cudaDeviceSynchronize());
  return faults.all().size();
}

TEST(DoubleOrder, OnlyCommonBytesOfWhichOneIsWrittenCount) {
  reset();
  const DeviceArray<char> fresh(100);
  char* const p = fresh.get();
  EXPECT_EQ(reports({p, 10, true}, {p + 9, 10, true}), 1U);
  must(cudaDeviceSynchronize());
  EXPECT_EQ(reports({p, 10, true}, {p + 10, 10, true}), 0U);
  EXPECT_EQ(reports({p, 10, false}, {p + 5, 10, false}), 0U);
  EXPECT_EQ(reports({p, 10, false}, {p + 5, 1, true}), 1U);
  EXPECT_EQ(reports({p + 20, 1, true}, {p + 15, 10, false}), 1U);
  EXPECT_EQ(reports({p, 0, true}, {p, 10, true}), 0U);
}

TEST(DoubleOrder, WaitingOnTheHostOrdersStreamsToo) {
  reset();
  const DeviceArray<char> data(100);
  cudaStream_t a = nullptr, b = nullptr;
  must(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  must(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  must(enqueue(a, "first", {data.written()}, [] {}));
  must(cudaStreamSynchronize(a));
  must(enqueue(b, "second", {data.written()}, [] {}));
  must(cudaStreamSynchronize(b));
}

TEST(DoubleOrder, OrderIsPassedOnFromStreamToStream) {
  reset();
  const DeviceArray<char> data(100);
  cudaStream_t streams[3];
  cudaEvent_t events[2];
  for (cudaStream_t& stream : streams)
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (cudaEvent_t& event : events) must(cudaEventCreate(&event));
  must(enqueue(streams[0], "first", {data.written()}, [] {}));
  must(cudaEventRecord(events[0], streams[0]));
  must(cudaStreamWaitEvent(streams[1], events[0], 0));
  must(cudaEventRecord(events[1], streams[1]));
  must(cudaStreamWaitEvent(streams[2], events[1], 0));
  must(enqueue(streams[2], "third", {data.written()}, [] {}));
  must(cudaDeviceSynchronize());
}

}  // namespace
}  // namespace reprise::test::cuda
