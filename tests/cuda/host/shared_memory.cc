#include "host/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <stdexcept>
#include <string_view>

#include "host/grid.h"

namespace reprise::test::cuda {
namespace {

// Mangled names of variables within functions of the two namespaces.
constexpr std::string_view kPrefixes[] = {"_ZZN7reprise7kernels4cuda",
                                          "_ZZN7reprise4test4cuda8emulated"};

// The file that this code was loaded from.
std::string own_file() {
  std::string file;
  const auto look = [](dl_phdr_info* object, std::size_t, void* into) {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& part = object->dlpi_phdr[i];
      const auto offset = reinterpret_cast<std::uintptr_t>(&own_file) - object->dlpi_addr;
      if (part.p_type != PT_LOAD || offset < part.p_vaddr || offset >= part.p_vaddr + part.p_memsz)
        continue;
      const std::string name = object->dlpi_name;  // empty for the program itself
      *static_cast<std::string*>(into) = name.empty() ? "/proc/self/exe" : name;
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(look, &file);
  return file;
}

std::vector<char> read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class T>
T at(const std::vector<char>& file, std::size_t offset) {
  if (offset + sizeof(T) > file.size())
    throw std::runtime_error("the file of the tests is cut short");
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::vector<SharedVariable> variables_of(const std::vector<char>& file, const ElfW(Shdr) & symbols,
                                         const ElfW(Shdr) & strings) {
  std::vector<SharedVariable> found;
  std::ptrdiff_t origin = -1;
  for (std::size_t i = 0; i < symbols.sh_size / sizeof(ElfW(Sym)); ++i) {
    const auto symbol = at<ElfW(Sym)>(file, symbols.sh_offset + i * sizeof(ElfW(Sym)));
    if ((symbol.st_info & 0xf) != STT_TLS || symbol.st_size == 0) continue;
    const std::string name(file.data() + strings.sh_offset + symbol.st_name);
    const auto offset = static_cast<std::ptrdiff_t>(symbol.st_value);
    if (name == "threadIdx") origin = offset;
    if (std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); }))
      found.push_back({name, offset, symbol.st_size});
  }
  if (origin < 0) throw std::runtime_error("threadIdx is not in the symbol table");
  for (SharedVariable& v : found) v.offset -= origin;
  return found;
}

std::vector<SharedVariable> read_variables() {
  const std::string name = own_file();
  const std::vector<char> file = read_file(name);
  const auto header = at<ElfW(Ehdr)>(file, 0);
  const auto section = [&](std::size_t i) {
    return at<ElfW(Shdr)>(file, header.e_shoff + i * sizeof(ElfW(Shdr)));
  };
  for (std::size_t i = 0; i < header.e_shnum; ++i)
    if (section(i).sh_type == SHT_SYMTAB)
      return variables_of(file, section(i), section(section(i).sh_link));
  throw std::runtime_error(name + " has no symbol table: do not strip tests");
}

std::byte* address_of(const SharedVariable& variable) {
  return reinterpret_cast<std::byte*>(&threadIdx) + variable.offset;
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
  for (const SharedVariable& v : shared_variables()) std::memset(address_of(v), kPoison, v.bytes);
}

std::size_t SharedMemory::find_used() {
  const auto& all = shared_variables();
  used_.clear();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!is_poisoned(address_of(all[i]), all[i].bytes)) {
      used_.push_back(i);
      bytes += all[i].bytes;
    }
  return bytes;
}

void SharedMemory::poison_used() {
  for (const std::size_t i : used_) {
    const SharedVariable& v = shared_variables()[i];
    std::memset(address_of(v), kPoison, v.bytes);
  }
}

}  // namespace reprise::test::cuda
