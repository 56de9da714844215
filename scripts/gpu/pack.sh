# shellcheck shell=bash
# The four small libraries that the program needs: whether they are here, and how to bring them to a
# machine without a network.
# shellcheck disable=SC2154

library_headers=(fmt/format.h nlohmann/json.hpp CLI/CLI.hpp zlib.h)
library_packages=(libfmt-dev nlohmann-json3-dev libcli11-dev zlib1g-dev)

# Where the compiler looks for headers.
header_folders() {
  "${CXX:-c++}" -x c++ -E -v - </dev/null 2>&1 | sed -n '/^#include </,/^End/s/^ //p'
}

# header_folder HEADER [MORE FOLDERS]: the first folder that has it; nothing where none does.
header_folder() {
  local header=$1 folder
  shift
  while read -r folder; do
    if [ -e "$folder/$header" ]; then
      echo "$folder"
      return
    fi
  done < <(printf '%s\n' "$@"; header_folders)
}

# Before anything is built: what is missing, all at once.
require_libraries() {
  local missing=() tool i
  for tool in "${CXX:-c++}" cmake make; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if command -v "${CXX:-c++}" >/dev/null; then
    for i in "${!library_headers[@]}"; do
      [ -n "$(header_folder "${library_headers[i]}" "$deps/include")" ] ||
        missing+=("${library_headers[i]} (${library_packages[i]})")
    done
  fi
  [ ${#missing[@]} -gt 0 ] || return 0
  {
    echo 'gpu_check: this machine lacks'
    printf '  %s\n' "${missing[@]}"
    echo 'Install the packages in brackets; or, without a network, run scripts/gpu_check.sh --pack DIR'
    echo "on a machine that has them and bring DIR here as $deps (or name it with --deps)."
  } >&2
  exit 2
}

# config FOLDER/NAME TARGET [DEFINITION]: a header-only library for find_package.
write_config() {
  mkdir -p "$(dirname "$1")"
  {
    echo "if(NOT TARGET $2)"
    echo "  add_library($2 INTERFACE IMPORTED)"
    echo "  get_filename_component(prefix \${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)"
    echo "  target_include_directories($2 INTERFACE \${prefix}/include)"
    [ $# -lt 3 ] || echo "  target_compile_definitions($2 INTERFACE $3)"
    echo 'endif()'
  } >"$1"
}

# DIR: headers (fmt is used header-only) and zlib's static library, which depend on no distribution.
pack_libraries() {
  local to=$1 header folder zlib
  mkdir -p "$to/include" "$to/lib"
  for header in "${library_headers[@]}"; do
    folder=$(header_folder "$header")
    if [ -z "$folder" ]; then
      echo "gpu_check: $header is not on this machine; needed: ${library_packages[*]}" >&2
      exit 2
    fi
    case $header in
      */*) cp -RL "$folder/${header%%/*}" "$to/include/" ;;
      *) cp -L "$folder/$header" "$to/include/" ;;
    esac
  done
  cp -L "$(header_folder zconf.h)/zconf.h" "$to/include/"
  zlib=$("${CXX:-c++}" -print-file-name=libz.a)
  if [ ! -e "$zlib" ]; then
    echo "gpu_check: libz.a is not on this machine; needed: zlib1g-dev" >&2
    exit 2
  fi
  cp -L "$zlib" "$to/lib/"
  write_config "$to/lib/cmake/fmt/fmt-config.cmake" fmt::fmt FMT_HEADER_ONLY=1
  write_config "$to/lib/cmake/nlohmann_json/nlohmann_json-config.cmake" nlohmann_json::nlohmann_json
  write_config "$to/lib/cmake/CLI11/CLI11Config.cmake" CLI11::CLI11
  echo "$to: $(du -sk "$to" | cut -f1) KiB"
}
