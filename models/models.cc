// The table of models, and the options each takes.

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "graph/mixed_precision.h"
#include "models/families.h"
#include "models/model.h"

namespace reprise::models {
namespace {

struct Entry {
  ModelInfo info;
  ModelOptions defaults;  // of the fields this model takes; 0 in the others
  std::function<Model(std::string_view, const ModelOptions&)> make;
};

ModelOptions small_images(std::int64_t batch) {
  return {.batch = batch, .channels = 1, .height = 28, .width = 28, .classes = 10};
}
ModelOptions large_images(std::int64_t batch) {
  return {.batch = batch, .channels = 3, .height = 224, .width = 224, .classes = 1000};
}
ModelOptions language() {
  return {.batch = 16,
          .hidden = 256,
          .layers = 1,
          .embedding = 256,
          .vocabulary = 96,
          .seq_len = 256,
          .chunk = 32};
}

Entry resnet(std::string_view name, std::string_view summary, ResnetSize size) {
  return {{name, summary}, large_images(32), [size](std::string_view n, const ModelOptions& o) {
            return make_resnet(n, o, size);
          }};
}

Entry cifar(std::string_view name, std::string_view summary, std::int64_t blocks,
            bool preactivation) {
  return {{name, summary},
          small_images(64),
          [blocks, preactivation](std::string_view n, const ModelOptions& o) {
            return make_resnet_cifar(n, o, blocks, preactivation);
          }};
}

std::vector<Entry> make_entries() {
  ModelOptions mlp = small_images(64);
  mlp.hidden = 256;
  mlp.layers = 2;
  ModelOptions unet = small_images(64);
  unet.hidden = 16;
  unet.layers = 2;  // 28 pixels halve twice
  return {
      {{"mlp", "linear layers with ReLU (--hidden, --layers)"}, mlp, make_mlp},
      cifar("resnet20", "residual network for small images, 20 layers", 3, false),
      cifar("resnet32", "the same, 32 layers", 5, false),
      cifar("resnet44", "the same, 44 layers", 7, false),
      cifar("resnet56", "the same, 56 layers", 9, false),
      cifar("resnet110", "the same, 110 layers", 18, false),
      cifar("resnet1202", "the same, 1202 layers", 200, false),
      cifar("resnet164", "pre-activation bottlenecks for small images, 164 layers", 18, true),
      cifar("resnet1001", "the same, 1001 layers", 111, true),
      resnet("resnet18", "ImageNet residual network, 18 layers", {false, {2, 2, 2, 2}}),
      resnet("resnet34", "the same, 34 layers", {false, {3, 4, 6, 3}}),
      resnet("resnet50", "the same with bottlenecks, 50 layers", {true, {3, 4, 6, 3}}),
      resnet("resnet101", "the same with bottlenecks, 101 layers", {true, {3, 4, 23, 3}}),
      resnet("resnet152", "the same with bottlenecks, 152 layers", {true, {3, 8, 36, 3}}),
      {{"vgg16", "VGG-16 without batch norm"}, large_images(16), make_vgg16},
      {{"densenet", "a small densely connected network"}, small_images(64), make_densenet},
      {{"unet",
        "U-Net with long skips, pooled to classes (--hidden: channels at the top, --layers: "
        "depth)"},
       unet,
       make_unet},
      {{"lstm", "LSTM language model over bytes of a text", true},
       language(),
       [](std::string_view n, const ModelOptions& o) {
         return make_language_model(n, o, Cell::kLstm);
       }},
      {{"gru", "GRU language model over bytes of a text", true},
       language(),
       [](std::string_view n, const ModelOptions& o) {
         return make_language_model(n, o, Cell::kGru);
       }},
  };
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> made = make_entries();
  return made;
}

const Entry& find_entry(std::string_view name) {
  std::string known;
  for (const Entry& entry : entries()) {
    if (entry.info.name == name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.info.name);
  }
  throw base::input_error("unknown model '{}'; known: {}", name, known);
}

struct Field {
  const char* flag;
  std::int64_t ModelOptions::*member;
};

constexpr Field kFields[] = {
    {"--batch", &ModelOptions::batch},           {"--image (channels)", &ModelOptions::channels},
    {"--image (height)", &ModelOptions::height}, {"--image (width)", &ModelOptions::width},
    {"--classes", &ModelOptions::classes},       {"--hidden", &ModelOptions::hidden},
    {"--layers", &ModelOptions::layers},         {"--embedding", &ModelOptions::embedding},
    {"--vocabulary", &ModelOptions::vocabulary}, {"--seq-len", &ModelOptions::seq_len},
    {"--chunk", &ModelOptions::chunk},
};

bool takes_dropout(std::string_view name) {
  return name == "mlp" || name == "vgg16" || name == "lstm" || name == "gru";
}

// More would not be planned in any time, and most of such numbers are slips.
void require_possible_size(std::string_view name, const ModelOptions& options, bool sequence) {
  constexpr std::int64_t kMost = 1'000'000;
  if (options.layers > kMost) {
    throw base::input_error("--layers {}: model '{}' takes at most {}", options.layers, name,
                            kMost);
  }
  if (!sequence) return;
  const std::int64_t chunks =
      options.seq_len / options.chunk + (options.seq_len % options.chunk == 0 ? 0 : 1);
  if (chunks > kMost / options.layers) {
    throw base::input_error(
        "--seq-len {} in chunks of {}: {} chunks of {} layers are more than {} nodes; use a larger "
        "--chunk",
        options.seq_len, options.chunk, chunks, options.layers, kMost);
  }
}

}  // namespace

const std::vector<ModelInfo>& all_models() {
  static const std::vector<ModelInfo> infos = [] {
    std::vector<ModelInfo> made;
    for (const Entry& entry : entries()) made.push_back(entry.info);
    return made;
  }();
  return infos;
}

ModelOptions complete_options(std::string_view name, const ModelOptions& options) {
  const Entry& entry = find_entry(name);
  ModelOptions complete = options;
  for (const Field& field : kFields) {
    std::int64_t& value = complete.*field.member;
    const std::int64_t fallback = entry.defaults.*field.member;
    if (value < 0) throw base::input_error("{} {}: must be at least 1", field.flag, value);
    if (value != 0 && fallback == 0)
      throw base::input_error("{} {}: model '{}' has no such option", field.flag, value, name);
    if (value == 0) value = fallback;
  }
  if (options.embedding == 0 && entry.info.sequence) complete.embedding = complete.hidden;
  complete.chunk = std::min(complete.chunk,
                            complete.seq_len);  // a chunk longer than the sequence is the sequence
  if (!options.stateful && !entry.info.sequence) {
    throw base::input_error("--stateless: model '{}' carries no state between windows", name);
  }
  if (options.dropout < 0 || options.dropout >= 1) {
    throw base::input_error("--dropout {}: must lie in [0, 1)", options.dropout);
  }
  if (options.dropout > 0 && !takes_dropout(name)) {
    throw base::input_error("--dropout {}: model '{}' has no place for dropout", options.dropout,
                            name);
  }
  if (!graph::is_float(options.precision)) {
    throw base::input_error("--precision {}: expected f32 or bf16",
                            graph::dtype_name(options.precision));
  }
  require_possible_size(name, complete, entry.info.sequence);
  return complete;
}

Model make_model(std::string_view name, const ModelOptions& options) {
  Model model = find_entry(name).make(name, complete_options(name, options));
  if (options.precision == graph::DType::kBF16) model.graph = graph::mixed_precision(model.graph);
  return model;
}

}  // namespace reprise::models
