// Ranks from environment variables, and addresses from interface patterns.

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "runtime/comm/network_interface.h"
#include "runtime/comm/rank_environment.h"

namespace reprise::runtime::comm {
namespace {

using ::testing::HasSubstr;

using Set = std::map<std::string, std::string>;

Variables in(const Set& set) {
  return [set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
}

Set with(Set set, const Set& more) {
  for (const auto& [name, value] : more) set[name] = value;
  return set;
}
Set without(Set set, const std::string& name) {
  set.erase(name);
  return set;
}

const Set kTorchrun = {{"RANK", "5"},         {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},   {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};

std::string refusal(const Set& set) {
  try {
    (void)read_rank_environment(in(set));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

TEST(RankEnvironments, NobodyGivesARankMeansAWorldOfOne) {
  const auto got = read_rank_environment(in({{"MASTER_PORT", "29500"}}));
  EXPECT_EQ(got.world_size, 1);
  EXPECT_EQ(got.source, "none");
}

TEST(RankEnvironments, TorchrunsVariablesAreRead) {
  const auto got = read_rank_environment(in(kTorchrun));
  EXPECT_EQ(got.rank, 5);
  EXPECT_EQ(got.world_size, 8);
  EXPECT_EQ(got.local_rank, 1);
  EXPECT_EQ(got.local_world_size, 4);
  EXPECT_EQ(got.master_address, "n1");
  EXPECT_EQ(got.store_port, 30500);  // never MASTER_PORT itself: torchrun's agent may have it
}

TEST(RankEnvironments, TheStoresPortStaysAPort) {
  EXPECT_EQ(read_rank_environment(in(with(kTorchrun, {{"MASTER_PORT", "65000"}}))).store_port,
            64000);
  EXPECT_EQ(read_rank_environment(in(with(kTorchrun, {{"REPRISE_STORE_PORT", "77"}}))).store_port,
            77);
}

TEST(RankEnvironments, AWorldOfOneNeedsNoMaster) {
  EXPECT_EQ(read_rank_environment(in({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).world_size, 1);
}

TEST(RankEnvironments, WithoutLocalRanksAllAreOnOneMachine) {
  const auto got =
      read_rank_environment(in(without(without(kTorchrun, "LOCAL_RANK"), "LOCAL_WORLD_SIZE")));
  EXPECT_EQ(got.local_rank, 5);
  EXPECT_EQ(got.local_world_size, 8);
}

TEST(RankEnvironments, WrongValuesAreRefusedByName) {
  for (const auto& [set, message] : std::vector<std::pair<Set, std::string>>{
           {with(kTorchrun, {{"RANK", "8"}}), "RANK=8 must be below WORLD_SIZE=8"},
           {with(kTorchrun, {{"RANK", "-1"}}), "RANK=-1 is not in [0, "},
           {with(kTorchrun, {{"RANK", "one"}}), "RANK='one' is not a whole number"},
           {with(kTorchrun, {{"RANK", "1 "}}), "RANK='1 ' is not a whole number"},
           {with(kTorchrun, {{"RANK", ""}}), "RANK='' is not a whole number"},
           {with(kTorchrun, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE=0 is not in [1, "},
           {with(kTorchrun, {{"WORLD_SIZE", "99999999999"}}), "WORLD_SIZE='99999999999'"},
           {with(kTorchrun, {{"LOCAL_RANK", "4"}}),
            "LOCAL_RANK=4 must be below LOCAL_WORLD_SIZE=4"},
           {with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE=9 is more than"},
           {with(kTorchrun, {{"MASTER_PORT", "70000"}}), "MASTER_PORT=70000 is not in"},
           {with(kTorchrun, {{"MASTER_ADDR", ""}}), "MASTER_ADDR is empty"},
           {without(kTorchrun, "RANK"), "RANK is not set, but WORLD_SIZE is"},
           {without(kTorchrun, "WORLD_SIZE"), "WORLD_SIZE is not set, but RANK is"},
           {without(kTorchrun, "LOCAL_RANK"), "LOCAL_RANK is not set, but LOCAL_WORLD_SIZE is"},
           {without(kTorchrun, "MASTER_ADDR"), "MASTER_ADDR is not set, but the world has 8 ranks"},
           {without(kTorchrun, "MASTER_PORT"),
            "MASTER_PORT is not set, but the world has 8 ranks"}}) {
    EXPECT_THAT(refusal(set), HasSubstr(message));
  }
}

const Set kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "job7"}};

TEST(RankEnvironments, OpenMpisVariablesAreReadWhereTorchrunsAreNot) {
  const auto got = read_rank_environment(in(kOpenMpi));
  EXPECT_EQ(got.rank, 1);
  EXPECT_EQ(got.world_size, 2);
  EXPECT_EQ(got.master_address, "127.0.0.1");
  EXPECT_EQ(got.source, "Open MPI's variables");
  EXPECT_EQ(read_rank_environment(in(with(kOpenMpi, kTorchrun))).rank, 5);
}

TEST(RankEnvironments, JobsWithoutAPortHaveOneOfTheirOwn) {
  const auto port = [](const char* job) {
    return read_rank_environment(in(with(kOpenMpi, {{"PMIX_NAMESPACE", job}}))).store_port;
  };
  EXPECT_EQ(port("job7"), port("job7"));
  EXPECT_NE(port("job7"), port("job8"));
}

TEST(RankEnvironments, OpenMpiOnSeveralMachinesNeedsAMaster) {
  EXPECT_THAT(refusal(with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "4"}})),
              HasSubstr("MASTER_ADDR is not set, but the ranks run on several machines"));
}

const Set kSlurm = {{"SLURM_PROCID", "5"},
                    {"SLURM_STEP_NUM_TASKS", "7"},
                    {"SLURM_LOCALID", "0"},
                    {"SLURM_NODEID", "2"},
                    {"SLURM_STEP_TASKS_PER_NODE", "3,2(x2)"},
                    {"SLURM_STEP_NODELIST", "gpu[03-05],login"},
                    {"SLURM_JOB_ID", "17"}};

TEST(RankEnvironments, SlurmsVariablesAreReadUnderSrunOnly) {
  const auto got = read_rank_environment(in(kSlurm));
  EXPECT_EQ(got.rank, 5);
  EXPECT_EQ(got.world_size, 7);
  EXPECT_EQ(got.local_world_size, 2);
  EXPECT_EQ(got.master_address, "gpu03");
  // A batch script's own shell has SLURM_PROCID=0 and the job's task count, but is no rank.
  EXPECT_EQ(read_rank_environment(in(without(kSlurm, "SLURM_STEP_NUM_TASKS"))).world_size, 1);
  EXPECT_THAT(refusal(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "3(x2"}})),
              HasSubstr("SLURM_STEP_TASKS_PER_NODE='3(x2'"));
  EXPECT_EQ(read_rank_environment(in(with(kSlurm, {{"SLURM_STEP_NODELIST", "a1,b[2-3]"}})))
                .master_address,
            "a1");
}

// --- interfaces

const std::vector<NetworkInterface> kInterfaces = {{"lo", "127.0.0.1", true},
                                                   {"eth10", "10.0.0.10"},
                                                   {"eth1", "10.0.0.1"},
                                                   {"docker0", "172.17.0.1"}};

std::string choice(const std::string& pattern) {
  const auto chosen =
      chosen_interface(kInterfaces, "GLOO_SOCKET_IFNAME", in({{"GLOO_SOCKET_IFNAME", pattern}}));
  return chosen ? chosen->name : "";
}

// C46: exact name, prefix, list, exclude list, none.
TEST(NetworkInterfaces, PatternsAreThoseOfNccl) {
  EXPECT_EQ(choice("eth"), "eth10");  // the first that begins so
  EXPECT_EQ(choice("eth1"), "eth1");  // named in full, although eth10 begins so too
  EXPECT_EQ(choice("=eth1"), "eth1");
  EXPECT_EQ(choice("ib,docker"), "docker0");
  EXPECT_EQ(choice("^eth"), "docker0");  // not loopback while there is another
  EXPECT_EQ(choice("^eth,docker"), "lo");
  EXPECT_EQ(choice("^=eth10"), "eth1");
  EXPECT_EQ(choice("lo"), "lo");
  EXPECT_EQ(choice(""), "");
}

TEST(NetworkInterfaces, APatternThatFitsNothingIsAnErrorThatListsWhatThereIs) {
  try {
    (void)choice("=eth");
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("GLOO_SOCKET_IFNAME='=eth'"));
    EXPECT_THAT(error.what(), HasSubstr("eth10 10.0.0.10"));
  }
}

TEST(NetworkInterfaces, ThisMachineHasLoopback) {
  const auto all = list_network_interfaces();
  EXPECT_THAT(all, ::testing::Contains(::testing::Field(&NetworkInterface::loopback, true)));
}

}  // namespace
}  // namespace reprise::runtime::comm
