// Cost tables on disk.

#include "nlohmann/json.hpp"

#include "base/error.h"
#include "runtime/atomic_file.h"
#include "runtime/byte_source.h"
#include "runtime/profiler.h"

namespace reprise::runtime {
namespace {

using nlohmann::json;

constexpr int kFormat = 2;  // 1 had costs without the time of their measurement

json parse(const std::vector<std::uint8_t>& bytes, const std::string& file) {
  try {
    return json::parse(bytes);
  } catch (const json::exception& error) {
    throw base::input_error("'{}' is no table of costs, as 'reprise profile' writes it: {}", file,
                            base::json_reason(error.what()));
  }
}

const json& field(const json& object, const char* name, const std::string& file) {
  const auto found = object.find(name);
  if (found == object.end()) throw base::input_error("'{}' has no field '{}'", file, name);
  return *found;
}

// A whole number that sums over 100,000 nodes without overflow.
std::int64_t whole(const json& cost, const char* name, const std::string& key,
                   const std::string& file) {
  constexpr std::int64_t kHighest = std::int64_t{1} << 42;  // 73 minutes in nanoseconds
  const auto found = cost.is_object() ? cost.find(name) : cost.end();
  const bool given = cost.is_object() && found != cost.end();
  const bool valid =
      given && found->is_number_integer() &&
      (!found->is_number_unsigned() || found->get<std::uint64_t>() <= std::uint64_t{kHighest}) &&
      found->get<std::int64_t>() >= 0;
  if (!valid) {
    throw base::input_error("'{}': node '{}' has {} {}; expected a whole number from 0 to 2^42",
                            file, key, name, given ? found->dump() : "of no value");
  }
  return found->get<std::int64_t>();
}

}  // namespace

void save_costs(const std::filesystem::path& path, const CostTable& table) {
  json nodes = json::object();
  for (const auto& [key, cost] : table.nodes) {
    nodes[key] = {{"ns", cost.ns}, {"measured_at", cost.measured_at}};
  }
  const json document{{"format", kFormat}, {"device", table.device}, {"nodes", std::move(nodes)}};
  const std::string text = document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
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
  const json& nodes = field(document, "nodes", file);
  if (!device.is_string() || !nodes.is_object()) {
    throw base::input_error("'{}': device is {} and nodes {}; expected string and object", file,
                            device.type_name(), nodes.type_name());
  }
  CostTable table{.device = device.get<std::string>(), .nodes = {}};
  for (const auto& [key, cost] : nodes.items()) {
    table.nodes[key] = {.ns = whole(cost, "ns", key, file),
                        .measured_at = whole(cost, "measured_at", key, file)};
  }
  return table;
}

}  // namespace reprise::runtime
