#include "host/fiber.h"

#include <cstdlib>
#include <new>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPRISE_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define REPRISE_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define REPRISE_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define REPRISE_THREAD_SANITIZER 1
#endif

#if defined(REPRISE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(REPRISE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

// REPRISE_FIBER_UCONTEXT picks the portable form where the fast one is there too.
#if defined(__x86_64__) && !defined(REPRISE_FIBER_UCONTEXT)
#define REPRISE_FIBER_X86_64 1
#else
#include <ucontext.h>
#endif

namespace reprise::test::cuda {
namespace {

constexpr std::size_t kPageBytes = 4096;
// Sanitizers surround every variable with room of their own.
#if defined(REPRISE_ADDRESS_SANITIZER) || defined(REPRISE_THREAD_SANITIZER)
constexpr std::size_t kStackBytes = 256 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

// The fiber that enter() is about to run for the first time.
constinit thread_local Fiber* starting = nullptr;

std::byte* map_stack() {
  void* mapped = mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED || mprotect(mapped, kPageBytes, PROT_NONE) != 0) throw std::bad_alloc();
  return static_cast<std::byte*>(mapped) + kPageBytes;
}

}  // namespace

// The switch itself, and what sanitizers must be told around it.
struct Fiber::Machine {
  static void prepare(Fiber& fiber);
  static void release(Fiber& fiber);
  static void switch_in(Fiber& fiber);
  static void switch_out(Fiber& fiber);

  static void before_entering(Fiber& fiber);
  static void after_leaving(Fiber& fiber);
  static void on_arrival(Fiber& fiber);
  static void before_leaving(Fiber& fiber);

  // The first thing that runs on a fiber's stack.
  [[noreturn]] static void run() {
    Fiber& fiber = *starting;
    on_arrival(fiber);
    fiber.entry_(fiber.argument_);
    std::abort();  // an entry never returns
  }
};

#if defined(REPRISE_FIBER_X86_64)

// Saves the registers that a call must keep on the stack that is left, and takes those of the
// other.
asm(R"(
.text
.p2align 4
.type reprise_test_switch_stack, @function
reprise_test_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size reprise_test_switch_stack, . - reprise_test_switch_stack
)");
extern "C" void reprise_test_switch_stack(void** left, void* taken) noexcept;

void Fiber::Machine::prepare(Fiber& fiber) {
  // Six registers, then the address that `ret` takes. A function starts 8 bytes below a multiple of
  // 16, as after a call.
  auto* top = reinterpret_cast<void**>(fiber.stack_ + kStackBytes);
  void** frame = top - 2;
  *frame = reinterpret_cast<void*>(&Machine::run);
  fiber.inside_ = frame - 6;
}
void Fiber::Machine::release(Fiber& /*fiber*/) {}
void Fiber::Machine::switch_in(Fiber& fiber) {
  reprise_test_switch_stack(&fiber.outside_, fiber.inside_);
}
void Fiber::Machine::switch_out(Fiber& fiber) {
  reprise_test_switch_stack(&fiber.inside_, fiber.outside_);
}

#else

void Fiber::Machine::prepare(Fiber& fiber) {
  auto* inside = new ucontext_t{};
  getcontext(inside);
  inside->uc_stack.ss_sp = fiber.stack_;
  inside->uc_stack.ss_size = kStackBytes;
  makecontext(inside, &Machine::run, 0);
  fiber.inside_ = inside;
  fiber.outside_ = new ucontext_t{};
}
void Fiber::Machine::release(Fiber& fiber) {
  delete static_cast<ucontext_t*>(fiber.inside_);
  delete static_cast<ucontext_t*>(fiber.outside_);
}
void Fiber::Machine::switch_in(Fiber& fiber) {
  swapcontext(static_cast<ucontext_t*>(fiber.outside_), static_cast<ucontext_t*>(fiber.inside_));
}
void Fiber::Machine::switch_out(Fiber& fiber) {
  swapcontext(static_cast<ucontext_t*>(fiber.inside_), static_cast<ucontext_t*>(fiber.outside_));
}

#endif

void Fiber::Machine::before_entering([[maybe_unused]] Fiber& fiber) {
#if defined(REPRISE_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&fiber.fake_outside_, fiber.stack_, kStackBytes);
#endif
#if defined(REPRISE_THREAD_SANITIZER)
  fiber.thread_outside_ = __tsan_get_current_fiber();
  if (fiber.thread_inside_ == nullptr) fiber.thread_inside_ = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(fiber.thread_inside_, 0);
#endif
}
void Fiber::Machine::after_leaving([[maybe_unused]] Fiber& fiber) {
#if defined(REPRISE_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fiber.fake_outside_, nullptr, nullptr);
#endif
}
void Fiber::Machine::on_arrival([[maybe_unused]] Fiber& fiber) {
#if defined(REPRISE_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fiber.fake_inside_, &fiber.outside_stack_, &fiber.outside_bytes_);
#endif
}
void Fiber::Machine::before_leaving([[maybe_unused]] Fiber& fiber) {
#if defined(REPRISE_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&fiber.fake_inside_, fiber.outside_stack_, fiber.outside_bytes_);
#endif
#if defined(REPRISE_THREAD_SANITIZER)
  __tsan_switch_to_fiber(fiber.thread_outside_, 0);
#endif
}

Fiber::Fiber(Entry entry, void* argument)
    : entry_(entry), argument_(argument), stack_(map_stack()) {
  Machine::prepare(*this);
}

Fiber::~Fiber() {
  Machine::release(*this);
#if defined(REPRISE_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
#if defined(REPRISE_THREAD_SANITIZER)
  if (thread_inside_ != nullptr) __tsan_destroy_fiber(thread_inside_);
#endif
  munmap(stack_ - kPageBytes, kPageBytes + kStackBytes);
}

void Fiber::enter() {
  starting = this;
  Machine::before_entering(*this);
  Machine::switch_in(*this);
  Machine::after_leaving(*this);
}

void Fiber::leave() {
  Machine::before_leaving(*this);
  Machine::switch_out(*this);
  Machine::on_arrival(*this);
}

}  // namespace reprise::test::cuda
