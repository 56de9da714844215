// Nodes in bf16 that are too large to be done at once.

#include <gtest/gtest.h>
#include <vector>

#include "graph/bf16.h"
#include "graph/builder.h"
#include "tests/cuda/double/control.h"
#include "tests/support/interpreter.h"

namespace reprise::test {
namespace {

// Nine images of 4 Mi pixels are copied to f32 eight at a time, since 128 MiB hold no more than
// seven and pieces are eights. Whole numbers, so that sums are exact.
TEST(CudaBF16Pieces, TheGradientOfAWeightFromManyImagesIsTheSumOfItsPieces) {
  cuda::reset();
  constexpr graph::Dim kImages = 9, kSide = 2048, kStep = 256, kPlaces = kSide / kStep;
  graph::Builder b("large");
  const graph::ValueId x = b.cast(b.input("x", {kImages, 1, kSide, kSide}), graph::DType::kBF16);
  const graph::ValueId dy =
      b.cast(b.input("dy", {kImages, 1, kPlaces, kPlaces}), graph::DType::kBF16);
  const graph::Conv2dAttributes attributes{.stride = {kStep, kStep}, .kernel = {1, 1}};
  b.add_output(b.append(graph::OpKind::kConv2dGradWeight, {x, dy}, attributes, "dw")[0]);
  Interpreter on_gpu(prepare_on("cuda", b.finish()));
  std::vector<float> images(kImages * kSide * kSide), gradients(kImages * kPlaces * kPlaces);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 9);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 5);
  on_gpu.set("x", images);
  on_gpu.set("dy", gradients);
  on_gpu.step();
  double sum = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::size_t image = i / (kPlaces * kPlaces), row = i / kPlaces % kPlaces;
    const std::size_t pixel = (image * kSide + row * kStep) * kSide + i % kPlaces * kStep;
    sum += static_cast<double>(gradients[i]) * static_cast<double>(images[pixel]);
  }
  EXPECT_EQ(on_gpu.get("dw"), std::vector<float>{static_cast<float>(sum)});
  EXPECT_EQ(cuda::counts().calls.at("cudnnConvolutionBackwardFilter"), 2u);
}

// 17 rows of 1 Mi columns wait for their bias in the workspace 16 at a time: 64 MiB. Whole numbers,
// of which bf16 holds all up to 256.
TEST(CudaBF16Pieces, AProductOfManyRowsGetsItsBiasInPieces) {
  constexpr graph::Dim kRows = 17, kColumns = graph::Dim{1} << 20;
  std::vector<float> rows(kRows), columns(kColumns), bias(kColumns);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i] = static_cast<float>(i % 9) - 4;
    bias[i] = static_cast<float>(i % 5);
  }
  for (const bool transposed : {false, true}) {
    cuda::reset();
    graph::Builder b("wide");
    const graph::Shape shape = transposed ? graph::Shape{1, kRows} : graph::Shape{kRows, 1};
    const graph::ValueId x = b.cast(b.input("x", shape), graph::DType::kBF16);
    const graph::ValueId w = b.cast(b.input("w", {1, kColumns}), graph::DType::kBF16);
    const graph::ValueId y = b.append(graph::OpKind::kMatmul, {x, w, b.input("bias", {kColumns})},
                                      graph::MatmulAttributes{.transpose_a = transposed}, "y")[0];
    b.add_output(y);
    Interpreter on_gpu(prepare_on("cuda", b.finish()));
    on_gpu.set("x", rows);
    on_gpu.set("w", columns);
    on_gpu.set("bias", bias);
    on_gpu.step();
    const auto found = on_gpu.get<std::uint16_t>("y");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float right = rows[i / kColumns] * columns[i % kColumns] + bias[i % kColumns];
      wrong += graph::from_bf16(found[i]) == right ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0u) << (transposed ? "transposed" : "plain");
    EXPECT_EQ(cuda::counts().calls.at("cublasGemmEx"), 2u);
  }
}

}  // namespace
}  // namespace reprise::test
