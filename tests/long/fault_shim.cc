// Faults at exact moments, without a hook in the product: a library that is loaded before all
// others (LD_PRELOAD), stands in for a few functions that a rank calls on its way, and counts the
// calls.
//
//     rendezvous   connect               planning    operator new, until the first instruction
//     bucket       writev (Gloo's)       instruction omp_set_num_threads, called before each kernel
//     saving       fsync
//
// FAULT="rank moment number kind" makes call `number` of that moment on that rank
//
//     kill   the end of the process by SIGKILL       throw  an exception (fsync: a write error)
//     stop   standing still, by SIGSTOP              alloc  a failed allocation
//
// An exception cannot leave each of these functions; it comes out of the main thread's next
// operator new or oneDNN primitive, a failed allocation out of the next operator new.
// FAULT_COUNTS=FOLDER writes how often each moment came and how much address space was used, and
// FAULT_SLOW_SYNC=MS makes every fsync take longer.
//
// Built and used by rank_faults.py: g++ -O1 -shared -fPIC fault_shim.cc

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum Moment { kRendezvous, kPlanning, kBucket, kInstruction, kSaving, kMoments };
constexpr std::array<std::string_view, kMoments> kNames = {"rendezvous", "planning", "bucket",
                                                           "instruction", "saving"};

struct Plan {
  bool mine = false;
  int moment = -1;
  long number = 0;
  char kind[16] = "";
};
Plan plan;
std::array<std::atomic<long>, kMoments> counts;
std::atomic<bool> throw_next{false}, fail_allocation{false};
std::atomic<bool> ready{false};

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

bool main_thread() {
  return getpid() == static_cast<pid_t>(syscall(SYS_gettid));
}

__attribute__((constructor)) void read_plan() {
  const char* rank = std::getenv("RANK");
  const char* text = std::getenv("FAULT");
  char moment[16] = "";
  int culprit = -1;
  if (rank != nullptr && text != nullptr &&
      std::sscanf(text, "%d %15s %ld %15s", &culprit, moment, &plan.number, plan.kind) == 4 &&
      culprit == std::atoi(rank)) {
    for (int i = 0; i < kMoments; ++i)
      if (kNames[static_cast<std::size_t>(i)] == moment) plan.moment = i;
    plan.mine = plan.moment >= 0;
  }
  ready = true;
}

__attribute__((destructor)) void write_counts() {
  const char* folder = std::getenv("FAULT_COUNTS");
  const char* rank = std::getenv("RANK");
  if (folder == nullptr || rank == nullptr) return;
  char path[512];
  std::snprintf(path, sizeof(path), "%s/rank%s", folder, rank);
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  for (std::size_t i = 0; i < kMoments; ++i)
    std::fprintf(file, "%s %ld\n", kNames[i].data(), counts[i].load());
  if (std::FILE* status = std::fopen("/proc/self/status", "r")) {
    long peak = 0;
    while (std::fgets(path, sizeof(path), status) != nullptr)
      if (std::sscanf(path, "VmPeak: %ld", &peak) == 1)
        std::fprintf(file, "address_kib %ld\n", peak);
    std::fclose(status);
  }
  std::fclose(file);
}

// True when the fault is an exception that the caller is to bring about.
bool count(Moment moment) {
  if (!ready) return false;
  const long number = ++counts[moment];
  if (!plan.mine || plan.moment != moment || number != plan.number) return false;
  char line[96];
  const int length = std::snprintf(line, sizeof(line), "FAULT %s at %s %ld\n", plan.kind,
                                   kNames[moment].data(), number);
  (void)!write(STDERR_FILENO, line, static_cast<std::size_t>(length));
  if (std::strcmp(plan.kind, "kill") == 0) kill(getpid(), SIGKILL);
  if (std::strcmp(plan.kind, "stop") == 0) kill(getpid(), SIGSTOP);
  if (std::strcmp(plan.kind, "throw") == 0) throw_next = true;
  if (std::strcmp(plan.kind, "alloc") == 0) fail_allocation = true;
  return throw_next;
}

void throw_if_due() {
  if (throw_next && main_thread() && throw_next.exchange(false))
    throw std::runtime_error("an injected exception");
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (ready && main_thread()) {
    if (counts[kRendezvous] > 0 && counts[kInstruction] == 0) count(kPlanning);
    throw_if_due();
    if (fail_allocation.exchange(false)) throw std::bad_alloc();
  }
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

extern "C" {

int connect(int fd, const sockaddr* address, socklen_t size) {
  static const auto real = next<decltype(connect)>("connect");
  if (address->sa_family == AF_INET || address->sa_family == AF_INET6) {
    if (count(kRendezvous)) {
      errno = ECONNREFUSED;
      return -1;
    }
  }
  return real(fd, address, size);
}

ssize_t writev(int fd, const iovec* parts, int number) {
  static const auto real = next<decltype(writev)>("writev");
  count(kBucket);
  return real(fd, parts, number);
}

int fsync(int fd) {
  static const auto real = next<decltype(fsync)>("fsync");
  if (const char* slow = std::getenv("FAULT_SLOW_SYNC"))
    usleep(static_cast<useconds_t>(std::atoi(slow)) * 1000);
  if (count(kSaving)) {
    throw_next = false;
    errno = EIO;
    return -1;
  }
  return real(fd);
}

void omp_set_num_threads(int threads) {
  static const auto real = next<void(int)>("omp_set_num_threads");
  count(kInstruction);
  real(threads);
}

int dnnl_primitive_execute(const void* primitive, void* stream, int arguments, const void* list) {
  static const auto real =
      next<int(const void*, void*, int, const void*)>("dnnl_primitive_execute");
  throw_if_due();
  return real(primitive, stream, arguments, list);
}

}  // extern "C"
