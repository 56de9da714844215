#pragma once

// One function per family of models; options are complete (models/models.cc).

#include <cstdint>
#include <string_view>

#include "models/model.h"

namespace reprise::models {

[[nodiscard]] Model make_mlp(std::string_view name, const ModelOptions& options);

// ImageNet ResNets, v1.5 (He et al. 2016; the stride of a bottleneck sits on its 3x3 convolution).
struct ResnetSize {
  bool bottleneck = false;
  std::int64_t blocks[4] = {2, 2, 2, 2};
};
[[nodiscard]] Model make_resnet(std::string_view name, const ModelOptions& options,
                                const ResnetSize& size);

// CIFAR ResNets: 6n + 2 layers of basic blocks (He et al. 2016, section 4.2), or 9n + 2 of
// pre-activation bottlenecks (He et al. 2016b). Shortcuts that change shape are 1x1 convolutions
// (with batch norm in basic blocks).
[[nodiscard]] Model make_resnet_cifar(std::string_view name, const ModelOptions& options,
                                      std::int64_t blocks_per_stage, bool preactivation);

[[nodiscard]] Model make_vgg16(std::string_view name,
                               const ModelOptions& options);  // Simonyan and Zisserman 2015
[[nodiscard]] Model make_densenet(std::string_view name,
                                  const ModelOptions& options);  // after Huang et al. 2017
[[nodiscard]] Model make_unet(std::string_view name,
                              const ModelOptions& options);  // after Ronneberger et al. 2015

enum class Cell : std::uint8_t { kLstm, kGru };
[[nodiscard]] Model make_language_model(std::string_view name, const ModelOptions& options,
                                        Cell cell);

}  // namespace reprise::models
