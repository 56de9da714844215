#include "cli/files.h"

#include <cerrno>
#include <fstream>
#include <span>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "runtime/atomic_file.h"
#include "runtime/byte_source.h"
#include "schedule/text.h"

namespace reprise::cli {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

// Throws Error(kInput) when `index` is outside a table of `size` rows.
void require_known(const std::filesystem::path& path, std::string_view what, std::size_t index,
                   std::size_t size) {
  if (index < size) return;
  throw base::input_error("{}: {} {} is outside its table of {}; 'reprise verify' says more",
                          path.string(), what, index, size);
}

void require_known_ids(const std::filesystem::path& path, const schedule::PlannedStep& step) {
  const graph::Graph& graph = step.prepared.graph;
  const schedule::Schedule& schedule = step.schedule;
  const auto require_slots = [&](const std::vector<schedule::SlotId>& slots) {
    for (const schedule::SlotId slot : slots) {
      require_known(path, "slot", slot.index(), schedule.slots.size());
    }
  };
  for (const schedule::Slot& slot : schedule.slots) {
    require_known(path, "value", slot.value.index(), graph.values.size());
  }
  for (const schedule::Instruction& instruction : schedule.instructions) {
    require_known(path, "node", instruction.node.index(), graph.nodes.size());
    require_slots(instruction.reads);
    require_slots(instruction.writes);
  }
  require_slots(schedule.entry);
  require_slots(schedule.exit);
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = runtime::read_rest(*runtime::open_bytes(path));
  return {bytes.begin(), bytes.end()};
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;
  const bool replaceable =
      !std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored);
  if (replaceable) {
    // Through a link to what it names.
    const auto target = std::filesystem::weakly_canonical(path, ignored);
    runtime::AtomicFile file(target.empty() ? path : target);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
    return;
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);  // a pipe, a terminal, a device
  if (file) file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (file) file.close();
  if (!file) throw base::device_error("{}: {}", path.string(), reason(errno));
}

schedule::PlannedStep read_plan(const std::filesystem::path& path) {
  schedule::PlannedStep step = schedule::parse_planned_step(read_file(path), path.string());
  require_known_ids(path, step);
  return step;
}

}  // namespace reprise::cli
