#pragma once

// A call stack of its own that the program can leave in the middle of a call and come back to.

#include <cstddef>
#include <cstdint>

namespace reprise::test::cuda {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  // `entry` runs at the first enter() and must never return: it calls leave() for ever.
  Fiber(Entry entry, void* argument);
  // What lives on the stack is not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it calls leave(). Not from a fiber.
  void enter();
  // From the fiber itself: back into enter().
  void leave();

 private:
  struct Machine;
  friend struct Machine;

  Entry entry_;
  void* argument_;
  std::byte* stack_;         // of kStackBytes, above a page that must not be touched
  void* inside_ = nullptr;   // where the fiber goes on
  void* outside_ = nullptr;  // where enter() goes on
  // For sanitizers: what they know of the two stacks.
  [[maybe_unused]] void* fake_inside_ = nullptr;
  [[maybe_unused]] void* fake_outside_ = nullptr;
  [[maybe_unused]] const void* outside_stack_ = nullptr;
  [[maybe_unused]] std::size_t outside_bytes_ = 0;
  [[maybe_unused]] void* thread_inside_ = nullptr;
  [[maybe_unused]] void* thread_outside_ = nullptr;
};

}  // namespace reprise::test::cuda
