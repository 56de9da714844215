#pragma once

// What the ranks of one training job say to each other.
//
// A communicator is one rank's end of a group. Every rank calls the same operations with the same
// arguments in the same order; an operation is finished on a rank when its result is there. A world
// of one rank is an ordinary group: every operation works, and changes nothing.
//
// Sums. Each element of an all_reduce is ((x0 + x1) + x2) + ..., in the order of the ranks and in
// the element's own type. So the bits are the same on every rank and in every run, whichever rank
// is late, with every implementation that says rank_order(), and they do not depend on how a tensor
// is cut into several operations: bucket sizes never change a result. (Averages are the caller's
// affair: integers have none, and weights belong into the gradient.)
//
// Failure. Whatever goes wrong is a CommError that names the rank that failed first, as far as that
// can be known. It is final: every later operation of that group throws it again.
//
// Threads. One thread per rank calls; abort() may come from any.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "runtime/comm/comm_error.h"

namespace reprise::runtime::comm {

enum class ElementType : std::uint8_t { kF32, kF64, kI32, kI64, kU64 };
enum class Reduction : std::uint8_t { kSum, kMax, kMin };

[[nodiscard]] std::size_t element_bytes(ElementType type);
[[nodiscard]] std::string_view element_name(ElementType type);  // "f32"
[[nodiscard]] std::string_view reduction_name(Reduction reduction);

template <class T>
inline constexpr ElementType kElementOf = ElementType::kF32;
template <>
inline constexpr ElementType kElementOf<double> = ElementType::kF64;
template <>
inline constexpr ElementType kElementOf<std::int32_t> = ElementType::kI32;
template <>
inline constexpr ElementType kElementOf<std::int64_t> = ElementType::kI64;
template <>
inline constexpr ElementType kElementOf<std::uint64_t> = ElementType::kU64;

struct CommOptions {
  int rank = 0;
  int world_size = 1;
  // Of each operation, joining the group included: one that does not end has failed by then.
  std::chrono::milliseconds timeout{30'000};
  std::string name = "world";  // in messages
};

// An operation under way.
struct Ticket {
  std::uint64_t sequence = 0;
};

// When an operation ran, from its begin on this rank (not from its start by the caller) to its end.
struct OperationRun {
  std::uint64_t sequence = 0;
  std::chrono::steady_clock::time_point begin{}, end{};
};
using OperationWatch = std::function<void(const OperationRun&)>;

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual const CommOptions& options() const = 0;
  [[nodiscard]] int rank() const { return options().rank; }
  [[nodiscard]] int world_size() const { return options().world_size; }
  [[nodiscard]] virtual std::string description() const = 0;  // "gloo, 4 ranks, eth0 10.0.0.2"
  // Whether sums are those above. A ring's are equal on all ranks too, but depend on the cut.
  [[nodiscard]] virtual bool rank_order() const { return true; }
  // Bytes that the communicator holds beside its caller's, for the report of memory.
  [[nodiscard]] virtual base::Bytes reserved_bytes() const { return 0; }

  // Starts an all_reduce in place: a whole number of elements. `data` is the communicator's until
  // wait(). Operations run in the order of their start, while the caller goes on.
  virtual Ticket start_all_reduce(std::span<std::byte> data, ElementType type,
                                  Reduction reduction) = 0;
  // The same for several stretches of memory as if they lay one behind the other, in one operation.
  // Each is a whole number of elements, and all ranks' have the same sizes. `pieces` itself is the
  // communicator's until wait(), too.
  virtual Ticket start_all_reduce_pieces(std::span<const std::span<std::byte>> pieces,
                                         ElementType type, Reduction reduction) = 0;
  // Until the operation of that ticket, and with it all earlier ones, has finished.
  virtual void wait(Ticket ticket) = 0;
  // Whether wait() would return at once; throws what it would throw.
  [[nodiscard]] virtual bool done(Ticket ticket) = 0;
  // Throws when the group has failed as far as this rank knows by now, also between operations;
  // `doing` is what this rank was at. Asks nobody and waits for nothing.
  virtual void check(std::string_view doing) = 0;

  // These three start and wait.
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  virtual void barrier() = 0;
  // Every rank's bytes, in the order of the ranks; their lengths may differ, each at most 1 MiB.
  [[nodiscard]] virtual std::vector<std::string> all_gather(std::string_view mine) = 0;

  // Tells `watch` of each operation from here on, on the thread that ran it, before a wait() for it
  // returns; it must not call back. An empty one ends that.
  virtual void set_watch(OperationWatch watch) = 0;

  // This rank gives up: operations under way and to come fail, here and on all other ranks, with
  // this rank named and `reason` told. A rank that leaves by an exception says so this way; one
  // whose communicator is destroyed without it has left the group in peace.
  virtual void abort(std::string_view reason) noexcept = 0;

  template <class T>
  void all_reduce(std::span<T> data, Reduction reduction = Reduction::kSum) {
    wait(start_all_reduce(std::as_writable_bytes(data), kElementOf<T>, reduction));
  }
};

}  // namespace reprise::runtime::comm
