#pragma once

// How long a step takes on many ranks, from its schedule and costs alone: instructions run one
// after the other, sums over ranks run beside them, one after the other on one link, and an await
// waits.
//
//     compute   | fwd | bwd c |s| bwd b |s| bwd a |s|~~~ wait ~~~| update |
//     link              |--- sum of c ---||--- sum of b ---||- sum of a -|
//                       s: the instruction that starts it
//
// All ranks are taken to be alike, so one stands for all.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "schedule/buckets.h"
#include "schedule/schedule.h"

namespace reprise::schedule {

// What connects two ranks, both ways at once.
struct Link {
  double bytes_per_second = 0;
  double latency_ns = 0;  // until the first byte of a message is there
  double message_ns = 0;  // of the sender's work for each message, beside its bytes
};

// How an all_reduce travels. With n ranks, B bytes, link rate r, latency L and message work m:
//   ring     2 (n - 1) (L + m)        + 2 (n - 1)/n B/r   each sum goes once around, in n parts
//   tree     2 ceil(log2 n) (L + m)   + 2 B/r             two trees at once, each for half of the
//                                                         bytes (Sanders, Speck, Träff 2009)
//   two_hop  2 L + 2 (n - 1) k m      + 2 (n - 1)/n B/r   all to all, then to all again, in k
//                                                         segments: our own exchange on CPUs
enum class Exchange : std::uint8_t { kRing, kTree, kTwoHop };
inline constexpr Exchange kExchanges[] = {Exchange::kRing, Exchange::kTree, Exchange::kTwoHop};
[[nodiscard]] std::string_view exchange_name(Exchange exchange);  // "two_hop"
// Nanoseconds; 0 for one rank.
[[nodiscard]] std::int64_t exchange_ns(Exchange exchange, std::int64_t ranks, Bytes bytes,
                                       const Link& link);

struct StepEstimate {
  std::int64_t step_ns = 0;
  std::int64_t compute_ns = 0;  // of all instructions
  std::int64_t sums_ns = 0;     // of all sums
  std::int64_t wait_ns = 0;     // what awaits wait: the part of the sums that nothing hides
  struct Sum {                  // of each bucket
    std::int64_t start_ns = 0, begin_ns = 0, end_ns = 0;  // asked for, on the link, there
    friend bool operator==(const Sum&, const Sum&) = default;
  };
  std::vector<Sum> sums;

  // Of what that many ranks could do if sums took no time.
  [[nodiscard]] double efficiency() const {
    return step_ns == 0 ? 1.0 : static_cast<double>(compute_ns) / static_cast<double>(step_ns);
  }
};

// `sum_ns` says how long the sum of that many bytes takes. Each instruction takes the cost of its
// algorithm in the prepared graph.
[[nodiscard]] StepEstimate estimate_step(const graph::PreparedGraph& prepared,
                                         const Schedule& schedule,
                                         const std::vector<Bucket>& buckets,
                                         const std::function<std::int64_t(Bytes)>& sum_ns);

}  // namespace reprise::schedule
