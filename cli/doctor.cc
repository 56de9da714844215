// reprise doctor: what is here, what is missing and why, and what a run would use.

#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/report.h"
#include "cli/system_info.h"
#include "cli/table.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/error.h"
#include "graph/prepared_names.h"
#include "kernels/backend.h"
#include "planner/strategy.h"
#include "runtime/comm/gloo_communicator.h"
#include "runtime/dataset.h"
#include "runtime/memory_info.h"
#include "runtime/processor_info.h"

namespace reprise::cli {
namespace {

// Something that is there, with what it is, or is not, with why.
struct Finding {
  std::string name;
  bool available = false;
  std::string detail;
};

template <class F>
Finding find(const std::string& name, F&& describe) {
  try {
    return {name, true, describe()};
  } catch (const std::exception& error) {
    return {name, false, error.what()};
  }
}

std::vector<Finding> find_devices() {
  std::vector<Finding> found;
  found.reserve(std::size(graph::kBackendNames));
  for (const std::string_view name : graph::kBackendNames) {
    found.push_back(find(std::string(name), [&] {
      return std::string(kernels::make_backend(name, {})->description());
    }));
  }
  return found;
}

std::vector<Finding> find_data_sets() {
  return {find("fashion-mnist", [] { return runtime::find_fashion_mnist().string(); })};
}

std::vector<Finding> find_transports() {
  return {find("gloo", [] { return runtime::comm::gloo_version(); })};
}

Json findings_document(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"available", finding.available},
                    {finding.available ? "detail" : "why_not", finding.detail}});
  }
  return list;
}

std::string findings_text(const std::vector<Finding>& findings) {
  Facts facts;
  for (const Finding& finding : findings) {
    facts.add(finding.name, (finding.available ? "yes: " : "no: ") + finding.detail);
  }
  return facts.text();
}

Json document_of(const runtime::ProcessorInfo& processor) {
  Json document;
  document["processor"] = {
      {"model", processor.model}, {"cores", processor.cores}, {"extensions", processor.extensions}};
  document["memory_available_bytes"] = runtime::available_memory_bytes();
  document["devices"] = findings_document(find_devices());
  document["transports"] = findings_document(find_transports());
  document["data_sets"] = findings_document(find_data_sets());
  document["planners"] = Json::array();
  for (const auto* strategy : planner::all_strategies()) {
    document["planners"].push_back(std::string(strategy->name()));
  }
  document["versions"] = Json::object();
  for (const auto& [name, version] : build_versions()) document["versions"][name] = version;
  return document;
}

int run_doctor(Context& context) {
  const runtime::ProcessorInfo processor = runtime::read_processor();
  if (context.json) {
    context.print(document_of(processor));
    return kOk;
  }
  Facts machine;
  machine.add("processor", processor.model);
  machine.add("cores", fmt::format("{} usable by this process", processor.cores));
  machine.add("vectors", fmt::format("{}", fmt::join(processor.extensions, " ")));
  machine.add("memory", exact_bytes(runtime::available_memory_bytes()) + " available");
  Facts planners;
  for (const auto* strategy : planner::all_strategies()) {
    planners.add(std::string(strategy->name()), std::string(strategy->summary()));
  }
  Facts versions;
  for (const auto& [name, version] : build_versions()) versions.add(name, version);
  context.out << "Machine\n"
              << machine.text() << "\nDevices (--device)\n"
              << findings_text(find_devices()) << "\nBetween processes\n"
              << findings_text(find_transports()) << "\nData sets (--data)\n"
              << findings_text(find_data_sets()) << "\nPlanners (--planner)\n"
              << planners.text() << "\nVersions\n"
              << versions.text();
  return kOk;
}

}  // namespace

Action add_doctor(CLI::App& app) {
  app.description("Says what is here, what is missing and why, and what a run would use.");
  app.footer("\nExample:\n  reprise doctor");
  return run_doctor;
}

}  // namespace reprise::cli
