#include "tests/cuda/double/dnn_convolution.h"

#include <algorithm>

namespace reprise::test::cuda {
namespace {

// Sizes under the letters of cuDNN: x[N,C,H,W] w[K,C/groups,R,S] y[N,K,P,Q].
struct Sizes {
  explicit Sizes(const ConvolutionCase& c)
      : N(c.x.size[0]),
        C(c.x.size[1]),
        H(c.x.size[2]),
        W(c.x.size[3]),
        K(c.w.size[0]),
        CG(c.w.size[1]),
        R(c.w.size[2]),
        S(c.w.size[3]),
        P(c.y.size[2]),
        Q(c.y.size[3]),
        KG(K / c.convolution.groups),
        v(c.convolution) {}
  std::int64_t N, C, H, W, K, CG, R, S, P, Q, KG;
  const Convolution& v;

  [[nodiscard]] std::int64_t row(std::int64_t p, std::int64_t r) const {
    return p * v.stride_h - v.pad_h + r * v.dilation_h;
  }
  // The columns q of the output for which column q * stride + shift of the input exists.
  struct Columns {
    std::int64_t begin, end, shift;
  };
  [[nodiscard]] Columns columns(std::int64_t s) const {
    const std::int64_t shift = s * v.dilation_w - v.pad_w;
    std::int64_t begin = 0;
    while (begin < Q && begin * v.stride_w + shift < 0) ++begin;
    std::int64_t end = Q;
    while (end > begin && (end - 1) * v.stride_w + shift >= W) --end;
    return {begin, end, shift};
  }
  [[nodiscard]] std::int64_t filter(std::int64_t k, std::int64_t c, std::int64_t r,
                                    std::int64_t s) const {
    return ((k * CG + c) * R + (v.flipped ? R - 1 - r : r)) * S + (v.flipped ? S - 1 - s : s);
  }
};

// Calls body(r, p, h, s, columns) for every row of x that a row of y meets.
template <class Body>
void for_rows(const Sizes& z, Body body) {
  for (std::int64_t r = 0; r < z.R; ++r)
    for (std::int64_t s = 0; s < z.S; ++s) {
      const Sizes::Columns columns = z.columns(s);
      for (std::int64_t p = 0; p < z.P; ++p) {
        const std::int64_t h = z.row(p, r);
        if (h >= 0 && h < z.H) body(r, s, p, h, columns);
      }
    }
}

// Sums in parts: `add(part, i)` puts term i into a part of `size` doubles.
template <class Add>
void in_parts(std::int64_t terms, int parts, int rotation, std::vector<double>& part, float* result,
              Add add) {
  for (int number = 0; number < parts; ++number) {
    std::fill(part.begin(), part.end(), 0.0);
    for (std::int64_t i = (number + rotation) % parts; i < terms; i += parts) add(i);
    for (std::size_t j = 0; j < part.size(); ++j) result[j] += static_cast<float>(part[j]);
  }
}

std::vector<float> forward(const Sizes& z, const std::vector<float>& x, const std::vector<float>& w,
                           int parts, int rotation) {
  std::vector<float> y(static_cast<std::size_t>(z.N * z.K * z.P * z.Q));
  std::vector<double> part(static_cast<std::size_t>(z.P * z.Q));
  for (std::int64_t n = 0; n < z.N; ++n)
    for (std::int64_t k = 0; k < z.K; ++k)
      in_parts(
          z.CG, parts, rotation, part, y.data() + (n * z.K + k) * z.P * z.Q, [&](std::int64_t c) {
            const float* const image = x.data() + (n * z.C + k / z.KG * z.CG + c) * z.H * z.W;
            for_rows(z, [&](auto r, auto s, auto p, auto h, const Sizes::Columns& columns) {
              const double factor = w[z.filter(k, c, r, s)];
              for (std::int64_t q = columns.begin; q < columns.end; ++q)
                part[p * z.Q + q] += factor * image[h * z.W + q * z.v.stride_w + columns.shift];
            });
          });
  return y;
}

std::vector<float> backward_data(const Sizes& z, const std::vector<float>& dy,
                                 const std::vector<float>& w, int parts, int rotation) {
  std::vector<float> dx(static_cast<std::size_t>(z.N * z.C * z.H * z.W));
  std::vector<double> part(static_cast<std::size_t>(z.H * z.W));
  for (std::int64_t n = 0; n < z.N; ++n)
    for (std::int64_t channel = 0; channel < z.C; ++channel) {
      const std::int64_t first = channel / z.CG * z.KG;  // of the group's outputs
      in_parts(z.KG, parts, rotation, part, dx.data() + (n * z.C + channel) * z.H * z.W,
               [&](std::int64_t i) {
                 const std::int64_t k = first + i;
                 const float* const gradient = dy.data() + (n * z.K + k) * z.P * z.Q;
                 for_rows(z, [&](auto r, auto s, auto p, auto h, const Sizes::Columns& columns) {
                   const double factor = w[z.filter(k, channel % z.CG, r, s)];
                   for (std::int64_t q = columns.begin; q < columns.end; ++q)
                     part[h * z.W + q * z.v.stride_w + columns.shift] +=
                         factor * gradient[p * z.Q + q];
                 });
               });
    }
  return dx;
}

std::vector<float> backward_filter(const Sizes& z, const std::vector<float>& x,
                                   const std::vector<float>& dy, int parts, int rotation) {
  std::vector<float> dw(static_cast<std::size_t>(z.K * z.CG * z.R * z.S));
  std::vector<double> part(static_cast<std::size_t>(z.R * z.S));
  for (std::int64_t k = 0; k < z.K; ++k)
    for (std::int64_t c = 0; c < z.CG; ++c)
      in_parts(z.N, parts, rotation, part, dw.data() + (k * z.CG + c) * z.R * z.S,
               [&](std::int64_t n) {
                 const float* const image = x.data() + (n * z.C + k / z.KG * z.CG + c) * z.H * z.W;
                 const float* const gradient = dy.data() + (n * z.K + k) * z.P * z.Q;
                 for_rows(z, [&](auto r, auto s, auto p, auto h, const Sizes::Columns& columns) {
                   double sum = 0;
                   for (std::int64_t q = columns.begin; q < columns.end; ++q)
                     sum += double{gradient[p * z.Q + q]} *
                            image[h * z.W + q * z.v.stride_w + columns.shift];
                   part[z.filter(0, 0, r, s)] += sum;
                 });
               });
  return dw;
}

}  // namespace

bool ConvolutionCase::fits() const {
  const int groups = convolution.groups;
  return x.size[1] == w.size[1] * groups && w.size[0] % groups == 0 &&
         y.size == convolution.output_size(x, w);
}

std::vector<Algorithm> algorithms(const ConvolutionCase& c) {
  const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * 4; };
  const std::size_t filter = bytes(c.w.count());
  const std::size_t columns =  // every window of one image, side by side
      bytes(c.x.size[1] * c.w.size[2] * c.w.size[3] * c.y.size[2] * c.y.size[3]);
  const Convolution& v = c.convolution;
  const bool winograd = c.w.size[2] == 3 && c.w.size[3] == 3 && v.stride_h == 1 &&
                        v.stride_w == 1 && v.dilation_h == 1 && v.dilation_w == 1 && v.groups == 1;
  std::vector<Algorithm> found;
  switch (c.direction) {
    case Direction::kForward:
      if (winograd)
        found.push_back({CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
                         4 * filter + bytes(c.x.count() + c.y.count()), 0.5, true, 3});
      found.push_back({CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                       bytes(c.w.size[1] * c.w.size[2] * c.w.size[3]), 0.8, true, 2});
      if (v.groups == 1) found.push_back({CUDNN_CONVOLUTION_FWD_ALGO_GEMM, columns, 0.9, true, 4});
      found.push_back({CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 0, 1.0, true, 1});
      break;
    case Direction::kBackwardData:
      found.push_back({CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, 0, 0.6, false, 3});
      if (winograd)
        found.push_back({CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
                         4 * filter + bytes(c.x.count() + c.y.count()), 0.7, true, 4});
      found.push_back({CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, filter, 1.0, true, 1});
      break;
    case Direction::kBackwardFilter:
      found.push_back({CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, 0, 0.6, false, 3});
      found.push_back({CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, filter, 0.7, false, 4});
      if (winograd)
        found.push_back({CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
                         4 * filter + bytes(c.x.count() + c.y.count()), 0.8, true, 2});
      found.push_back({CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, filter, 1.0, true, 1});
      break;
  }
  return found;
}

std::optional<Algorithm> algorithm(const ConvolutionCase& c, int number) {
  for (const Algorithm& one : algorithms(c))
    if (one.number == number) return one;
  return std::nullopt;
}

std::vector<float> convolve(const ConvolutionCase& c, std::vector<float> first,
                            std::vector<float> second, int parts, int rotation) {
  if (c.convolution.math != CUDNN_FMA_MATH) {  // tensor cores
    std::transform(first.begin(), first.end(), first.begin(), as_tensor_float);
    std::transform(second.begin(), second.end(), second.begin(), as_tensor_float);
  }
  const Sizes z(c);
  switch (c.direction) {
    case Direction::kForward:
      return forward(z, first, second, parts, rotation);
    case Direction::kBackwardData:
      return backward_data(z, first, second, parts, rotation);
    case Direction::kBackwardFilter:
      return backward_filter(z, first, second, parts, rotation);
  }
  return {};
}

}  // namespace reprise::test::cuda
