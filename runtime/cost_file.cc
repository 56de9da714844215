// Cost tables on disk.

#include "nlohmann/json.hpp"

#include "base/error.h"
#include "runtime/atomic_file.h"
#include "runtime/byte_source.h"
#include "runtime/profiler.h"

namespace reprise::runtime {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

json parse(const std::vector<std::uint8_t>& bytes, const std::string& file) {
  try {
    return json::parse(bytes);
  } catch (const json::exception& error) {
    throw base::input_error("'{}' is not JSON: {}", file, error.what());
  }
}

const json& field(const json& object, const char* name, const std::string& file) {
  const auto found = object.find(name);
  if (found == object.end()) throw base::input_error("'{}' has no field '{}'", file, name);
  return *found;
}

}  // namespace

void save_costs(const std::filesystem::path& path, const CostTable& table) {
  const json document{{"format", kFormat}, {"device", table.device}, {"cost_ns", table.cost_ns}};
  const std::string text = document.dump(1) + "\n";
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

CostTable load_costs(const std::filesystem::path& path) {
  const auto source = open_bytes(path);
  const std::string& file = source->name();
  const json document = parse(read_rest(*source), file);
  if (!document.is_object()) throw base::input_error("'{}' is no cost table", file);
  if (field(document, "format", file) != kFormat) {
    throw base::input_error("'{}': format {}; this program reads {}", file,
                            document["format"].dump(), kFormat);
  }
  const json& device = field(document, "device", file);
  const json& costs = field(document, "cost_ns", file);
  if (!device.is_string() || !costs.is_object()) {
    throw base::input_error("'{}': device is {} and cost_ns {}; expected string and object", file,
                            device.type_name(), costs.type_name());
  }
  CostTable table{.device = device.get<std::string>(), .cost_ns = {}};
  for (const auto& [key, cost] : costs.items()) {
    const bool valid = cost.is_number_integer() &&
                       (cost.is_number_unsigned() ? cost.get<std::uint64_t>() <= INT64_MAX
                                                  : cost.get<std::int64_t>() >= 0);
    if (!valid) throw base::input_error("'{}': cost of '{}' is {}", file, key, cost.dump());
    table.cost_ns[key] = cost.get<std::int64_t>();
  }
  return table;
}

}  // namespace reprise::runtime
