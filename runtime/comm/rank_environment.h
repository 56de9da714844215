#pragma once

// Which rank this process is, as whoever started it says in environment variables.

#include <cstdint>
#include <functional>
#include <string>

namespace reprise::runtime::comm {

struct RankEnvironment {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_world_size = 1;  // among the ranks of this machine
  std::string master_address{};              // host of rank 0; empty in a world of one
  std::uint16_t store_port = 0;              // where rank 0 hosts the store
  std::string store_port_origin{};  // "MASTER_PORT 29500 + 1000": what to change when it is taken
  std::string job{};     // unique among the jobs that could meet, as far as the starter says
  std::string source{};  // "torchrun's variables"; "none" in a process that nobody gave a rank

  friend bool operator==(const RankEnvironment&, const RankEnvironment&) = default;
};

// Null where a variable is not set. std::getenv for the real one.
using Variables = std::function<const char*(const char*)>;

// The first of these that is there:
//   torchrun   RANK WORLD_SIZE, MASTER_ADDR MASTER_PORT, LOCAL_RANK LOCAL_WORLD_SIZE (both or
//              neither: all ranks are on one machine then); `reprise launch` sets the same
//   Open MPI   OMPI_COMM_WORLD_RANK .._SIZE .._LOCAL_RANK .._LOCAL_SIZE
//   Slurm      SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID SLURM_STEP_TASKS_PER_NODE: what srun
//              sets, so that a batch script's own shell is no rank
// else a world of one. Open MPI's and Slurm's ranks may be given MASTER_ADDR and MASTER_PORT too;
// without them the master is this machine (one node), or the first node of Slurm's list.
//
// torchrun's agent may listen on MASTER_PORT itself, so the store has the port 1000 above it (below
// it, where that is no port). REPRISE_STORE_PORT overrides that.
//
// Throws Error(kInput) naming the variable: no number, rank not below the world size, a variable of
// a set that lacks another, an empty address.
[[nodiscard]] RankEnvironment read_rank_environment(const Variables& variables);
[[nodiscard]] RankEnvironment read_rank_environment();  // of this process

}  // namespace reprise::runtime::comm
