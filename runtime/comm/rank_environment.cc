#include "runtime/comm/rank_environment.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace reprise::runtime::comm {
namespace {

constexpr int kPortStep = 1000;
constexpr int kDefaultMasterPort = 29500;
constexpr int kMostRanks = 65536;

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  [[nodiscard]] std::optional<std::string> text(const char* name) const {
    const char* value = variables_(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  }

  [[nodiscard]] bool has(const char* name) const { return variables_(name) != nullptr; }

  // A number in [least, most]; `because` says who needs the variable.
  [[nodiscard]] int number(const char* name, int least, int most, std::string_view because) const {
    const auto value = text(name);
    if (!value) throw base::input_error("{} is not set, but {}", name, because);
    int number = 0;
    const auto [end, code] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (code != std::errc() || end != value->data() + value->size())
      throw base::input_error("{}='{}' is not a whole number", name, *value);
    if (number < least || number > most)
      throw base::input_error("{}={} is not in [{}, {}]", name, number, least, most);
    return number;
  }

 private:
  const Variables& variables_;
};

// The names under which a starter gives the four numbers.
struct Names {
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};
constexpr Names kTorch{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};

void read_world(const Reader& reader, const Names& names, RankEnvironment& into) {
  into.world_size =
      reader.number(names.world_size, 1, kMostRanks, fmt::format("{} is", names.rank));
  into.rank = reader.number(names.rank, 0, kMostRanks, fmt::format("{} is", names.world_size));
  if (into.rank >= into.world_size) {
    throw base::input_error("{}={} must be below {}={}", names.rank, into.rank, names.world_size,
                            into.world_size);
  }
}

void read_local(const Reader& reader, const Names& names, RankEnvironment& into) {
  if (!reader.has(names.local_rank) && !reader.has(names.local_world_size)) {
    into.local_rank = into.rank;
    into.local_world_size = into.world_size;
    return;
  }
  into.local_world_size =
      reader.number(names.local_world_size, 1, kMostRanks, fmt::format("{} is", names.local_rank));
  into.local_rank =
      reader.number(names.local_rank, 0, kMostRanks, fmt::format("{} is", names.local_world_size));
  if (into.local_rank >= into.local_world_size) {
    throw base::input_error("{}={} must be below {}={}", names.local_rank, into.local_rank,
                            names.local_world_size, into.local_world_size);
  }
  if (into.local_world_size > into.world_size) {
    throw base::input_error("{}={} is more than {}={}", names.local_world_size,
                            into.local_world_size, names.world_size, into.world_size);
  }
}

// "node[03-07,12],login1" -> "node03"; "a1,a2" -> "a1".
std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const std::size_t end = list.find_first_of("-,]", bracket);
  return list.substr(0, bracket) +
         list.substr(bracket + 1, end == std::string::npos ? end : end - bracket - 1);
}

// "4(x3)" or "4,3": how many tasks run on the node of that index.
int tasks_on_node(const std::string& list, int node) {
  std::size_t at = 0;
  while (at < list.size()) {
    int tasks = 0, times = 1;
    const char* end = list.data() + list.size();
    auto read = std::from_chars(list.data() + at, end, tasks);
    if (read.ec != std::errc()) break;
    if (end - read.ptr >= 4 && std::string_view(read.ptr, 2) == "(x") {
      read = std::from_chars(read.ptr + 2, end, times);
      if (read.ec != std::errc() || read.ptr == end || *read.ptr != ')') break;
      ++read.ptr;
    }
    if (node < times) return tasks;
    node -= times;
    if (read.ptr != end && *read.ptr != ',') break;
    at = static_cast<std::size_t>(read.ptr - list.data()) + 1;
  }
  throw base::input_error("SLURM_STEP_TASKS_PER_NODE='{}' does not name the tasks of every node",
                          list);
}

void read_slurm(const Reader& reader, RankEnvironment& into) {
  const Names names{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, nullptr};
  read_world(reader, names, into);
  const std::string because = "SLURM_PROCID is";
  into.local_rank = reader.number("SLURM_LOCALID", 0, kMostRanks, because);
  const auto tasks = reader.text("SLURM_STEP_TASKS_PER_NODE");
  if (!tasks) throw base::input_error("SLURM_STEP_TASKS_PER_NODE is not set, but {}", because);
  into.local_world_size =
      tasks_on_node(*tasks, reader.number("SLURM_NODEID", 0, kMostRanks, because));
  if (into.local_rank >= into.local_world_size) {
    throw base::input_error("SLURM_LOCALID={} must be below the {} tasks of this node",
                            into.local_rank, into.local_world_size);
  }
  if (const auto nodes = reader.text("SLURM_STEP_NODELIST"))
    into.master_address = first_host(*nodes);
}

std::string job_of(const Reader& reader) {
  for (const char* name : {"REPRISE_JOB_ID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE",
                           "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID"}) {
    const auto id = reader.text(name);
    if (!id || id->empty()) continue;
    std::string job = fmt::format("{}={}", name, *id);
    for (const char* part : {"TORCHELASTIC_RESTART_COUNT", "SLURM_STEP_ID"}) {
      if (const auto more = reader.text(part)) job += fmt::format(" {}={}", part, *more);
    }
    return job;
  }
  return "unnamed";
}

// Jobs that were given no port of their own must still not meet: each has one that follows from its
// name.
int default_port(const std::string& job) {
  if (job == "unnamed") return kDefaultMasterPort;
  std::uint32_t hash = 2166136261u;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return 20000 + static_cast<int>(hash % 10000);
}

void read_master(const Reader& reader, bool needed, RankEnvironment& into) {
  const std::string because = fmt::format("the world has {} ranks", into.world_size);
  if (const auto address = reader.text("MASTER_ADDR")) {
    if (address->empty()) throw base::input_error("MASTER_ADDR is empty, but {}", because);
    into.master_address = *address;
  } else if (needed) {
    throw base::input_error("MASTER_ADDR is not set, but {}", because);
  } else if (into.master_address.empty()) {
    if (into.local_world_size != into.world_size) {
      throw base::input_error("MASTER_ADDR is not set, but the ranks run on several machines");
    }
    into.master_address = "127.0.0.1";
  }
  int port = default_port(into.job);
  into.store_port_origin = "MASTER_PORT, not set";
  if (needed || reader.has("MASTER_PORT")) {
    port = reader.number("MASTER_PORT", 1, 65535, because);
    into.store_port_origin = fmt::format("MASTER_PORT {}", port);
  }
  const int step = port + kPortStep <= 65535 ? kPortStep : -kPortStep;
  into.store_port = static_cast<std::uint16_t>(port + step);
  into.store_port_origin += fmt::format(", {} {}", step > 0 ? "plus" : "less", kPortStep);
  if (reader.has("REPRISE_STORE_PORT")) {
    into.store_port =
        static_cast<std::uint16_t>(reader.number("REPRISE_STORE_PORT", 1, 65535, because));
    into.store_port_origin = "REPRISE_STORE_PORT";
  }
}

}  // namespace

RankEnvironment read_rank_environment(const Variables& variables) {
  const Reader reader(variables);
  RankEnvironment result;
  bool names_master = false;
  if (reader.has(kTorch.rank) || reader.has(kTorch.world_size)) {
    result.source = "torchrun's variables";
    names_master = true;
    read_world(reader, kTorch, result);
    read_local(reader, kTorch, result);
  } else if (reader.has(kOpenMpi.rank) || reader.has(kOpenMpi.world_size)) {
    result.source = "Open MPI's variables";
    read_world(reader, kOpenMpi, result);
    read_local(reader, kOpenMpi, result);
  } else if (reader.has("SLURM_PROCID") && reader.has("SLURM_STEP_NUM_TASKS")) {
    result.source = "Slurm's variables";
    read_slurm(reader, result);
  } else {
    result.source = "none";
    return result;
  }
  result.job = job_of(reader);
  if (result.world_size == 1) {
    result.master_address.clear();
    return result;
  }
  read_master(reader, names_master, result);
  return result;
}

RankEnvironment read_rank_environment() {
  return read_rank_environment([](const char* name) { return std::getenv(name); });
}

}  // namespace reprise::runtime::comm
