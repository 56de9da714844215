// Dropout and its gradient: the same map. The mask is a function of (seed, step, stream, element
// index); blocks of four elements share one Philox call, and kBatch calls run side by side.

#include <array>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"

namespace reprise::kernels::cpu {
namespace {

constexpr std::size_t kBatch = 16;
using Words = std::array<std::uint32_t, kBatch>;

// The upper and lower half of a 32 x 32 bit product.
[[gnu::always_inline]] inline void multiply(std::uint32_t factor, const Words& x, Words& high,
                                            Words& low) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    const std::uint64_t product = static_cast<std::uint64_t>(factor) * x[i];
    high[i] = static_cast<std::uint32_t>(product >> 32);
    low[i] = static_cast<std::uint32_t>(product);
  }
}

struct Draw {
  std::uint64_t seed, step;
  std::uint32_t stream;
};

// Philox4x32-10 of kBatch consecutive blocks from `block` on (graph/random.h names counter and
// key); word w of block i is out[w][i].
[[gnu::always_inline]] inline void philox_batch(const Draw& draw, std::uint64_t block,
                                                std::array<Words, 4>& out) {
  Words c0, c1, c2, c3;
  for (std::size_t i = 0; i < kBatch; ++i) {
    const std::uint64_t counter = block + i;
    c0[i] = static_cast<std::uint32_t>(counter);
    c1[i] = static_cast<std::uint32_t>(counter >> 32);
  }
  c2.fill(static_cast<std::uint32_t>(draw.step));
  c3.fill(draw.stream ^ (static_cast<std::uint32_t>(draw.step >> 32) << 16));
  auto key0 = static_cast<std::uint32_t>(draw.seed);
  auto key1 = static_cast<std::uint32_t>(draw.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    Words high0, low0, high1, low1;
    multiply(0xD2511F53u, c0, high0, low0);
    multiply(0xCD9E8D57u, c2, high1, low1);
    for (std::size_t i = 0; i < kBatch; ++i) {
      c0[i] = high1[i] ^ c1[i] ^ key0;
      c1[i] = low1[i];
      c2[i] = high0[i] ^ c3[i] ^ key1;
      c3[i] = low0[i];
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  out = {c0, c1, c2, c3};
}

// Elements of `blocks` whole blocks of four from `block` on, at most kBatch blocks; y may be x.
template <class T>
[[gnu::always_inline]] inline void drop_of(const Draw& draw, std::uint32_t threshold, float scale,
                                           std::uint64_t block, const T* x, T* y,
                                           std::int64_t count) {
  std::array<Words, 4> bits;
  for (std::int64_t at = 0; at < count; at += 4 * static_cast<std::int64_t>(kBatch)) {
    philox_batch(draw, block + static_cast<std::uint64_t>(at / 4), bits);
    const std::int64_t rest = std::min<std::int64_t>(count - at, 4 * kBatch);
    for (std::int64_t i = 0; i < rest; ++i) {
      const std::uint32_t word =
          bits[static_cast<std::size_t>(i % 4)][static_cast<std::size_t>(i / 4)];
      const float kept = load(x[at + i]) * scale;
      y[at + i] = word >= threshold ? stored<T>(kept) : T{};
    }
  }
}
REPRISE_VECTOR void drop(const Draw& draw, std::uint32_t threshold, float scale,
                         std::uint64_t block, const float* x, float* y, std::int64_t count) {
  drop_of(draw, threshold, scale, block, x, y, count);
}
REPRISE_VECTOR void drop(const Draw& draw, std::uint32_t threshold, float scale,
                         std::uint64_t block, const Bf16* x, Bf16* y, std::int64_t count) {
  drop_of(draw, threshold, scale, block, x, y, count);
}

}  // namespace

// x => y
std::unique_ptr<Kernel> plan_dropout(Booking& b) {
  const auto& a = b.attributes<graph::DropoutAttributes>();
  b.require_plain(0);  // the mask counts elements row by row
  b.produce_plain(0);
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const std::uint32_t threshold = graph::dropout_threshold(a.probability);
  const auto scale = static_cast<float>(1.0 / (1.0 - a.probability));
  const auto stream = static_cast<std::uint32_t>(a.stream);
  b.flops(12.0 * static_cast<double>(count));
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const Draw draw{run.step.seed, run.step.step, stream};
      const T* x = run.input<T>(0);
      T* y = run.output<T>(0);
      const std::int64_t blocks = (count + 3) / 4;
      parallel_ranges(blocks, 4 * count, [&](std::int64_t begin, std::int64_t end) {
        drop(draw, threshold, scale, static_cast<std::uint64_t>(begin), x + 4 * begin,
             y + 4 * begin, std::min(count, 4 * end) - 4 * begin);
      });
    });
  });
}

}  // namespace reprise::kernels::cpu
