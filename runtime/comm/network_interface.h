#pragma once

// Which network interface, and so which address of this machine, a rank is reached at.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/rank_environment.h"

namespace reprise::runtime::comm {

struct NetworkInterface {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.2", "fd00::2"
  bool loopback = false;
  friend bool operator==(const NetworkInterface&, const NetworkInterface&) = default;
};

// Those that are up, one entry for each address, IPv4 first; link-local IPv6 ones are left out.
[[nodiscard]] std::vector<NetworkInterface> list_network_interfaces();

// What the variable of a transport asks for, in NCCL's grammar: a list of names separated by
// commas; "eth" means every name that begins so, "=eth0" that name only, a leading "^" all but
// those listed. An exact name wins over one that only begins so; loopback is taken where nothing
// else fits or where it is named. Empty where the variable is not set. Throws Error(kInput) naming
// variable, value and the interfaces there are when none fits.
[[nodiscard]] std::optional<NetworkInterface> chosen_interface(
    const std::vector<NetworkInterface>& all, const char* variable, const Variables& variables);

// Whether `name` is meant by `pattern` (above).
[[nodiscard]] bool interface_matches(std::string_view pattern, std::string_view name);

}  // namespace reprise::runtime::comm
