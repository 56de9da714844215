// Products by cuBLAS.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/gpu/facts/facts.h"

namespace reprise::test::facts {
namespace {

constexpr int kInner = 4096;  // long enough for sums in pieces
constexpr int kSide = 16;
constexpr std::size_t kWorkspaceFloats = std::size_t{8} << 18;  // 8 MiB
constexpr float kUntouched = -123.0F;

// C[kSide, kSide] = A^T B over kInner, as the backend sets cuBLAS up.
class Product {
 public:
  Product() : a_(wave(kInner * kSide, 0.37F)), b_(wave(kInner * kSide, 0.11F)), c_(kSide * kSide) {
    REPRISE_MUST(cublasCreate(&blas_));
    REPRISE_MUST(cublasSetStream(blas_, stream.get()));
    REPRISE_MUST(cublasSetMathMode(blas_, CUBLAS_PEDANTIC_MATH));
  }
  ~Product() { (void)cublasDestroy(blas_); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void queue() const {
    const float one = 1, zero = 0;
    REPRISE_MUST(cublasSgemm(blas_, CUBLAS_OP_T, CUBLAS_OP_N, kSide, kSide, kInner, &one, a_.get(),
                             kInner, b_.get(), kInner, &zero, c_.get(), kSide));
  }
  [[nodiscard]] std::vector<float> result() const {
    queue();
    return c_.values();
  }
  void spoil() const {
    c_.set(std::vector<float>(kSide * kSide, std::numeric_limits<float>::quiet_NaN()));
  }
  [[nodiscard]] std::vector<float> values() const { return c_.values(); }
  [[nodiscard]] cublasHandle_t blas() const { return blas_; }
  // What a sum in double precision says of element (i, j).
  [[nodiscard]] static double truth(int i, int j) {
    double sum = 0;
    for (int k = 0; k < kInner; ++k)
      sum += static_cast<double>(std::sin(0.37F * static_cast<float>(i * kInner + k))) *
             static_cast<double>(std::sin(0.11F * static_cast<float>(j * kInner + k)));
    return sum;
  }

  Stream stream;

 private:
  static std::vector<float> wave(int count, float step) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      values[static_cast<std::size_t>(i)] = std::sin(step * static_cast<float>(i));
    return values;
  }
  cublasHandle_t blas_ = nullptr;
  Floats a_, b_, c_;
};

void right_over_nan(Notes& notes) {
  const Product product;
  product.spoil();
  const std::vector<float> got = product.result();
  double largest = 0, off = 0;
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kSide; ++j) {
      const double truth = Product::truth(i, j);
      const double difference =
          std::abs(static_cast<double>(got[static_cast<std::size_t>(j * kSide + i)]) - truth);
      expect(std::isfinite(difference), "what C held counts although beta is 0");
      largest = std::max(largest, std::abs(truth));
      off = std::max(off, difference);
    }
  notes.push_back(fmt::format("off by {:.1e}; the largest element is {:.1f}", off, largest));
  // Sums of 4,096 products stay below 64 on their way: each rounds by less than 64 * 2^-24, and
  // what is rounded up cancels what is rounded down (64 is the root of 4,096): 2.4e-4. Factors in
  // TF32 are off by up to 2^-11 each: 0.02.
  expect(off < 1e-3, fmt::format("off by {:.1e}", off));
}

void same_bits(Notes& /*notes*/) {
  const Product product;
  const Floats workspace(kWorkspaceFloats);
  REPRISE_MUST(cublasSetWorkspace(product.blas(), workspace.get(), workspace.bytes()));
  const std::vector<float> first = product.result();
  for (int i = 0; i < 5; ++i) expect(product.result() == first, "bits change from call to call");
}

void stream_takes_the_workspace(Notes& notes) {
  const Product product;
  const Floats workspace(kWorkspaceFloats);
  const std::vector<float> untouched(kWorkspaceFloats, kUntouched);
  const auto used = [&] {
    workspace.set(untouched);
    (void)product.result();
    return workspace.values() != untouched;
  };
  REPRISE_MUST(cublasSetWorkspace(product.blas(), workspace.get(), workspace.bytes()));
  if (!used()) notes.emplace_back("this product needs no workspace, so that nothing can be seen");
  REPRISE_MUST(cublasSetStream(product.blas(), product.stream.get()));
  expect(!used(), "the workspace is still used after cublasSetStream");
}

void recorded(Notes& /*notes*/) {
  const Product product;
  const Floats workspace(kWorkspaceFloats);
  REPRISE_MUST(cublasSetWorkspace(product.blas(), workspace.get(), workspace.bytes()));
  const std::vector<float> plain = product.result();
  product.spoil();
  const Recording recording(product.stream, [&] { product.queue(); });
  recording.play(product.stream);
  expect(product.values() == plain, "the recorded product gives other bits");
}

}  // namespace

void add_product_facts(std::vector<Fact>& facts) {
  facts.push_back({"a product with beta 0 is right whatever C held", right_over_nan});
  facts.push_back({"a product with a workspace of its own repeats its bits", same_bits});
  facts.push_back({"cublasSetStream takes the workspace away", stream_takes_the_workspace});
  facts.push_back({"a recorded product gives the bits of a plain one", recorded});
}

}  // namespace reprise::test::facts
