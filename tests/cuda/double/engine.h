#pragma once

// Streams, and the order in which what is queued on them runs. Nothing runs by itself: a thread
// that waits, or asks whether something is over, runs other operations until the policy lets it go
// on.
//
// One mutex guards all of it; every function here expects it to be held (calls.h does so).

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/operation.h"
#include "tests/cuda/double/order.h"

namespace reprise::test::cuda {

struct Operation;
struct Capture;
using OperationRef = std::shared_ptr<Operation>;

enum class Kind { kKernel, kCopy, kFill, kHostFunction, kMarker, kCollective };

// What is to be done, on a stream now or as a node of a graph later.
struct Task {
  std::string name;
  Kind kind = Kind::kKernel;
  std::vector<Range> touched;
  std::function<void()> work;
  // Called when it is queued on a stream, for each launch of a graph anew; may change the
  // operation.
  std::function<void(const OperationRef&)> enlist;
};

// A task in the order of all others.
struct Operation {
  Task task;
  int device = 0;
  Actor actor;
  Clock clock;     // what is over when this begins, and this itself
  double end = 0;  // in pretended seconds
  bool done = false;
  bool refused = false;     // touches memory that is not there: breaks its device when it runs
  std::size_t waiting = 0;  // predecessors that are not done
  std::vector<OperationRef> predecessors;  // until done
  std::vector<OperationRef> successors;    // until done
  std::size_t needed_by = 0;               // the wait that needs it
  std::function<void()> arrive;            // instead of becoming ready by itself
};

}  // namespace reprise::test::cuda

struct CUstream_st {
  int number = 0;
  int device = 0;
  bool blocking = true;  // waits for the legacy default stream, and it for this
  bool legacy = false;
  bool alive = true;
  reprise::test::cuda::Chain chain = 0;
  reprise::test::cuda::OperationRef tail;  // null when all is done
  std::shared_ptr<reprise::test::cuda::Capture> capture;
  std::vector<std::size_t> capture_tail;  // nodes that the next one comes after
};

namespace reprise::test::cuda {

class Engine {
 public:
  std::mutex mutex;
  std::condition_variable_any changed;

  void set_policy(Policy policy, std::uint64_t seed);
  // Forgets everything queued.
  void reset();

  [[nodiscard]] cudaStream_t new_stream(int device, bool blocking);
  // The legacy stream of the calling thread's device for null; null for one that is not alive.
  [[nodiscard]] cudaStream_t resolve(cudaStream_t stream);
  [[nodiscard]] bool known(cudaStream_t stream) const;
  [[nodiscard]] const std::vector<cudaStream_t>& streams() const { return live_; }
  void forget(cudaStream_t stream);

  // Puts a task behind all that is on the stream and behind `also`. The stream records nothing.
  OperationRef append(cudaStream_t stream, Task task, const std::vector<OperationRef>& also = {});
  // The same, or a node of the graph that the stream records.
  cudaError_t submit(cudaStream_t stream, Task task);
  // A task behind these, on a chain of its own (a graph's node).
  OperationRef add(int device, Chain chain, std::string place, Task task,
                   const std::vector<OperationRef>& after);

  // Runs what the policy wants until it is done. False where that can never come.
  bool wait(const OperationRef& operation);
  // Lets time pass; is it done?
  bool poll(const OperationRef& operation);
  bool wait_for_device(int device);
  // The operation may run now (those with `arrive`), or is over without having run.
  void make_ready(const OperationRef& operation);
  void give_up(const OperationRef& operation);
  // What could run may not any more.
  void hold(const OperationRef& operation);

  // The host's own place in the order.
  void host_access(const void* begin, std::size_t bytes, bool written, const char* what);
  // Nothing that the host does not know to be over writes these bytes.
  [[nodiscard]] bool known_to_host(const void* begin, std::size_t bytes) const {
    return order_.writes_over(begin, bytes, host_clock_);
  }
  Order& order() { return order_; }

 private:
  [[nodiscard]] std::size_t random(std::size_t below);
  void check_ranges(Operation& operation, const Clock& before);
  bool run_one(const Operation* wanted);
  [[nodiscard]] std::size_t choose(const Operation* wanted);
  void mark_needed(const OperationRef& wanted);
  void run(const OperationRef& operation);
  void finish(const OperationRef& operation);
  void progress_after_append();

  Policy policy_ = Policy::kRandom;
  std::uint64_t random_state_ = 0;
  Order order_;
  Chain host_chain_ = order_.new_chain();
  Clock host_clock_;
  std::size_t waits_ = 0;
  std::vector<OperationRef> ready_;
  std::set<OperationRef> pending_;
  std::vector<cudaStream_t> live_;     // as they were made
  std::vector<OperationRef> orphans_;  // last operations of streams destroyed
  std::vector<std::unique_ptr<CUstream_st>> streams_;
  std::map<int, cudaStream_t> legacy_;
  int stream_numbers_ = 0;
};

[[nodiscard]] Engine& engine();
[[nodiscard]] bool& inside_operation();  // of this thread: no call is allowed

}  // namespace reprise::test::cuda
