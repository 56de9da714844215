#include "runtime/comm/launcher.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <poll.h>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/comm/child_process.h"

namespace reprise::runtime::comm {
namespace {

using std::chrono::milliseconds;

// Once the process is gone, what may still hold its pipes open (a child of its own) is not waited
// for longer than this.
constexpr milliseconds kDrain{500};

void check(const LaunchOptions& options) {
  if (options.command.empty()) throw base::input_error("no command: give one behind --");
  if (options.ranks < 1) throw base::input_error("{} ranks: at least 1", options.ranks);
  if (options.nodes < 1) throw base::input_error("{} nodes: at least 1", options.nodes);
  if (options.node < 0 || options.node >= options.nodes) {
    throw base::input_error("node rank {} is not below the number of nodes, {}", options.node,
                            options.nodes);
  }
  if (options.nodes > 1 && (options.master_address.empty() || options.master_port == 0)) {
    throw base::input_error(
        "{} nodes need the address of the first one and a port there: --master-addr and "
        "--master-port, the same on all nodes",
        options.nodes);
  }
}

// A name that no other job of this machine has.
std::string new_job() {
  std::random_device random;
  return fmt::format("launch-{:08x}{:08x}", random(), random());
}

bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // a name may hold anything
  return name_end != std::string::npos && text.substr(name_end, 4).find('T') != std::string::npos;
}

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options) {}
  ~Launcher();  // no rank outlives it, whatever was thrown

  LaunchResult run();

 private:
  struct Rank {
    ChildProcess process;
    RankEnd end;
    std::string name;  // "[rank 2] "
    std::optional<Clock::time_point> ended;
    [[nodiscard]] bool running() const { return process.pid > 0 && !ended; }
    [[nodiscard]] bool open() const { return process.output.fd.open() || process.error.fd.open(); }
  };

  void start();
  [[nodiscard]] bool done() const;
  void watch();
  void read(Rank& rank);
  void reap(Rank& rank);
  void escalate();
  void suspect();
  void signal_all(int signal, bool because_of_failure);
  [[nodiscard]] bool cause_known() const {
    return result_.first && (result_.first->stuck || result_.first->code != kExitOtherRankFailed);
  }

  const LaunchOptions& options_;
  Socket store_;  // rank 0's, made here so that no other job can take the port in between
  std::vector<Rank> ranks_;
  LaunchResult result_;
  std::optional<Clock::time_point> failed_at_, asked_at_;
  bool killed_ = false;
};

Launcher::~Launcher() {
  for (Rank& rank : ranks_) {
    if (!rank.running()) continue;
    ::kill(-rank.process.pid, SIGKILL);
    ::waitpid(rank.process.pid, nullptr, 0);
  }
}

void Launcher::start() {
  const int world = options_.ranks * options_.nodes;
  const bool alone = options_.nodes == 1 && options_.master_port == 0;
  const std::string address =
      options_.master_address.empty() ? std::string("127.0.0.1") : options_.master_address;
  std::uint16_t port = options_.master_port;
  std::vector<std::pair<std::string, std::string>> common = {
      {"WORLD_SIZE", std::to_string(world)},
      {"LOCAL_WORLD_SIZE", std::to_string(options_.ranks)},
      {"MASTER_ADDR", address}};
  if (alone) {
    store_ = listen_at({"127.0.0.1", 0, "--master-port"});
    port = local_port(listen_at({"127.0.0.1", 0, "--master-port"}));  // free a moment ago
    common.emplace_back("REPRISE_STORE_PORT", std::to_string(local_port(store_)));
    common.emplace_back("REPRISE_JOB_ID", new_job());
  }
  common.emplace_back("MASTER_PORT", std::to_string(port));
  if (options_.threads > 0)
    common.emplace_back("OMP_NUM_THREADS", std::to_string(options_.threads));
  ranks_.resize(static_cast<std::size_t>(options_.ranks));
  for (int local = 0; local < options_.ranks; ++local) {
    Rank& rank = ranks_[static_cast<std::size_t>(local)];
    rank.end.rank = options_.node * options_.ranks + local;
    rank.name = fmt::format("[rank {}] ", rank.end.rank);
    ChildOptions child{.command = options_.command, .variables = common};
    child.variables.emplace_back("RANK", std::to_string(rank.end.rank));
    child.variables.emplace_back("LOCAL_RANK", std::to_string(local));
    if (rank.end.rank == 0 && store_.open()) {
      child.keep = store_.fd();
      child.variables.emplace_back("REPRISE_STORE_FD", std::to_string(store_.fd()));
    }
    rank.process = start_child(child);
  }
  store_.close();
}

bool Launcher::done() const {
  const auto now = Clock::now();
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) {
    return rank.ended && (!rank.open() || now - *rank.ended > kDrain);
  });
}

void Launcher::read(Rank& rank) {
  const auto pass_on = [&](const std::function<void(std::string_view)>& to, bool named) {
    return [&, named](std::string_view line) {
      if (to) to(named ? rank.name + std::string(line) : std::string(line));
    };
  };
  const bool plain = options_.first_rank_plain && rank.end.rank == 0;
  // When rank 0's output is passed on as it is, nobody else may write between its lines.
  const auto& output = options_.first_rank_plain && !plain ? options_.error : options_.output;
  if (rank.process.output.fd.open()) rank.process.output.read_lines(pass_on(output, !plain));
  if (rank.process.error.fd.open()) rank.process.error.read_lines(pass_on(options_.error, true));
}

void Launcher::reap(Rank& rank) {
  siginfo_t info = {};
  const auto id = static_cast<id_t>(rank.process.pid);
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
  ::kill(-rank.process.pid, SIGKILL);  // what the rank started itself goes with it
  int status = 0;
  (void)::waitpid(rank.process.pid, &status, 0);
  rank.ended = Clock::now();
  rank.process.ended.close();
  rank.end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  rank.end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (!rank.end.failed()) return;
  if (!failed_at_) failed_at_ = Clock::now();
  const bool consequence = rank.end.killed || rank.end.code == kExitOtherRankFailed;
  if (!result_.first || (!cause_known() && !consequence)) result_.first = rank.end;
}

// All that have ended did so because of another: of those that go on, the one that stands, or the
// only one.
void Launcher::suspect() {
  Rank* found = nullptr;
  int running = 0;
  for (Rank& rank : ranks_) {
    if (!rank.running()) continue;
    ++running;
    if (found == nullptr || is_stopped(rank.process.pid)) found = &rank;
  }
  if (found == nullptr || (running > 1 && !is_stopped(found->process.pid))) return;
  found->end.stuck = true;
  result_.first = found->end;
}

void Launcher::signal_all(int signal, bool because_of_failure) {
  const auto send = [&](int each) {
    for (const Rank& rank : ranks_)
      if (rank.running()) ::kill(-rank.process.pid, each);
  };
  if (because_of_failure) {
    for (Rank& rank : ranks_) rank.end.killed = rank.end.killed || rank.running();
    send(SIGSTOP);  // or some would see others end before their own turn, and blame those
  }
  send(signal);
  if (signal == SIGTERM) send(SIGCONT);  // a stopped one hears it, too
}

void Launcher::escalate() {
  const auto now = Clock::now();
  if (options_.stop != nullptr && options_.stop->load() && !result_.stopped) {
    result_.stopped = true;
    signal_all(SIGTERM, false);  // ranks save and end at the next step; that may take its time
  }
  if (!failed_at_ || killed_) return;
  if (!asked_at_ && now - *failed_at_ >= options_.settle) {
    asked_at_ = now;
    if (!cause_known()) suspect();
    signal_all(SIGTERM, true);
  }
  if (asked_at_ && now - *asked_at_ >= options_.grace) {
    killed_ = true;
    signal_all(SIGKILL, true);
  }
}

void Launcher::watch() {
  std::vector<pollfd> polled;
  for (const Rank& rank : ranks_) {
    for (const Socket* each :
         {&rank.process.output.fd, &rank.process.error.fd, &rank.process.ended})
      if (each->open()) polled.push_back({each->fd(), POLLIN, 0});
  }
  (void)::poll(polled.data(), polled.size(), 100);  // a signal ends it early
  for (Rank& rank : ranks_) {
    read(rank);
    if (rank.running()) reap(rank);
  }
  escalate();
}

LaunchResult Launcher::run() {
  check(options_);
  start();
  while (!done()) watch();
  for (const Rank& rank : ranks_) result_.ends.push_back(rank.end);
  return std::move(result_);
}

}  // namespace

std::string RankEnd::text() const {
  if (stuck) return fmt::format("rank {} was stuck, or stopped", rank);
  if (signal != 0)
    return fmt::format("rank {} was ended by signal {} ({})", rank, signal, ::strsignal(signal));
  if (code == kExitOtherRankFailed)
    return fmt::format("rank {} exited with code {}: another rank failed", rank, code);
  return fmt::format("rank {} exited with code {}", rank, code);
}

int LaunchResult::exit_code() const {
  if (!first) return 0;
  if (first->stuck) return 1;
  return first->signal != 0 ? 128 + first->signal : first->code;
}

LaunchResult launch(const LaunchOptions& options) {
  return Launcher(options).run();
}

int threads_per_rank(int cores, int ranks) {
  return std::max(1, cores / std::max(1, ranks));
}

}  // namespace reprise::runtime::comm
