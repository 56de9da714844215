#include "host/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <span>
#include <stdexcept>
#include <string_view>

namespace reprise::test::cuda {
namespace {

// Mangled names of variables within functions of the two namespaces.
constexpr std::string_view kPrefixes[] = {"_ZZN7reprise7kernels4cuda",
                                          "_ZZN7reprise4test4cuda8emulated"};

std::vector<char> read_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class T>
T at(const std::vector<char>& file, std::size_t offset) {
  if (offset + sizeof(T) > file.size()) throw std::runtime_error("the program's file is cut short");
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::vector<SharedVariable> variables_of(const std::vector<char>& file, const ElfW(Shdr) & symbols,
                                         const ElfW(Shdr) & strings) {
  std::vector<SharedVariable> found;
  for (std::size_t i = 0; i < symbols.sh_size / sizeof(ElfW(Sym)); ++i) {
    const auto symbol = at<ElfW(Sym)>(file, symbols.sh_offset + i * sizeof(ElfW(Sym)));
    if ((symbol.st_info & 0xf) != STT_TLS || symbol.st_size == 0) continue;
    const std::string name(file.data() + strings.sh_offset + symbol.st_name);
    if (std::ranges::none_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); }))
      continue;
    found.push_back({name, symbol.st_value, symbol.st_size});
  }
  return found;
}

std::vector<SharedVariable> read_variables() {
  const std::vector<char> file = read_program();
  const auto header = at<ElfW(Ehdr)>(file, 0);
  const auto section = [&](std::size_t i) {
    return at<ElfW(Shdr)>(file, header.e_shoff + i * sizeof(ElfW(Shdr)));
  };
  for (std::size_t i = 0; i < header.e_shnum; ++i)
    if (section(i).sh_type == SHT_SYMTAB)
      return variables_of(file, section(i), section(section(i).sh_link));
  throw std::runtime_error("the program's file has no symbol table: do not strip tests");
}

// The program's thread-local storage of this thread.
std::byte* storage_of_thread() {
  static thread_local std::byte* storage = nullptr;
  if (storage == nullptr)
    dl_iterate_phdr(
        [](dl_phdr_info* program, std::size_t, void* into) {
          *static_cast<std::byte**>(into) = static_cast<std::byte*>(program->dlpi_tls_data);
          return 1;  // the program comes first
        },
        &storage);
  return storage;
}

bool is_poisoned(const std::byte* begin, std::size_t bytes) {
  return std::all_of(begin, begin + bytes,
                     [](std::byte b) { return b == std::byte{SharedMemory::kPoison}; });
}

}  // namespace

const std::vector<SharedVariable>& shared_variables() {
  static const std::vector<SharedVariable> variables = read_variables();
  return variables;
}

void SharedMemory::poison_all() {
  for (const SharedVariable& v : shared_variables())
    std::memset(storage_of_thread() + v.offset, kPoison, v.bytes);
}

std::size_t SharedMemory::find_used() {
  const auto& all = shared_variables();
  used_.clear();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!is_poisoned(storage_of_thread() + all[i].offset, all[i].bytes)) {
      used_.push_back(i);
      bytes += all[i].bytes;
    }
  return bytes;
}

void SharedMemory::poison_used() {
  for (const std::size_t i : used_) {
    const SharedVariable& v = shared_variables()[i];
    std::memset(storage_of_thread() + v.offset, kPoison, v.bytes);
  }
}

}  // namespace reprise::test::cuda
