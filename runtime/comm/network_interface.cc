#include "runtime/comm/network_interface.h"

#include <algorithm>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "base/error.h"

namespace reprise::runtime::comm {
namespace {

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = list.find(',');
    if (const auto part = list.substr(0, comma); !part.empty()) parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

bool listed(std::string_view list, std::string_view name) {
  const auto parts = split(list);
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return part.front() == '=' ? name == part.substr(1) : name.starts_with(part);
  });
}

// Named in full, with or without "=".
bool listed_in_full(std::string_view list, std::string_view name) {
  const auto parts = split(list);
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return part == name || (part.front() == '=' && part.substr(1) == name);
  });
}

std::string listing(const std::vector<NetworkInterface>& all) {
  std::string text;
  for (const NetworkInterface& each : all)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", each.name, each.address);
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<NetworkInterface> list_network_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::vector<NetworkInterface> v4, v6;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(at->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
    }
    char text[NI_MAXHOST] = {};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(at->ifa_addr, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    (family == AF_INET ? v4 : v6)
        .push_back({at->ifa_name, text, (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

bool interface_matches(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('^')) return !listed(pattern.substr(1), name);
  return listed(pattern, name);
}

std::optional<NetworkInterface> chosen_interface(const std::vector<NetworkInterface>& all,
                                                 const char* variable, const Variables& variables) {
  const char* value = variables(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view pattern = value;
  // In order of preference: named in full, begins so, begins so but is loopback.
  const NetworkInterface* best = nullptr;
  int best_rank = 3;
  for (const NetworkInterface& each : all) {
    if (!interface_matches(pattern, each.name)) continue;
    const bool full = !pattern.starts_with('^') && listed_in_full(pattern, each.name);
    const int rank = full ? 0 : each.loopback ? 2 : 1;
    if (rank >= best_rank) continue;
    best = &each;
    best_rank = rank;
  }
  if (best == nullptr) {
    throw base::input_error("{}='{}' fits no network interface of this machine ({})", variable,
                            value, listing(all));
  }
  return *best;
}

}  // namespace reprise::runtime::comm
