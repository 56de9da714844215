#pragma once

// The __shared__ variables of the kernels in this program or module. They are function-local
// thread_locals (host/device_language.h), which C++ offers no list of; the symbol table in the file
// of the program or module has one. Taken for shared memory is every such variable of a function in
// reprise::kernels::cuda or reprise::test::cuda::emulated: host code there has none.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::test::cuda {

struct SharedVariable {
  std::string symbol;
  std::ptrdiff_t offset = 0;  // from threadIdx, in the same thread-local storage
  std::size_t bytes = 0;
};
// Throws std::runtime_error when that file has no symbol table.
[[nodiscard]] const std::vector<SharedVariable>& shared_variables();

// Those of the calling thread of the host.
class SharedMemory {
 public:
  static constexpr unsigned char kPoison = 0xA5;

  // Every variable.
  void poison_all();
  // Which variables hold something else now. Returns their bytes together.
  std::size_t find_used();
  // Those that find_used() found.
  void poison_used();

 private:
  std::vector<std::size_t> used_;
};

}  // namespace reprise::test::cuda
