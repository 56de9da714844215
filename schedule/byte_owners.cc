#include "schedule/byte_owners.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace reprise::schedule {

bool overlap(const ByteRange& a, const ByteRange& b) {
  return !a.empty() && !b.empty() && a.begin < b.end && b.begin < a.end;
}

ByteRange range_of(Bytes offset, Bytes bytes) {
  if (bytes <= 0) return {offset, offset};
  constexpr Bytes kLargest = std::numeric_limits<Bytes>::max();
  return {offset, offset > kLargest - bytes ? kLargest : offset + bytes};
}

// Makes `address` the border of two pieces when it lies inside one.
void ByteOwners::split(Bytes address) {
  auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return;
  const auto piece = std::prev(after);
  if (piece->first == address || piece->second.end <= address) return;
  pieces_.emplace(address, piece->second);
  piece->second.end = address;
}

void ByteOwners::write(const ByteRange& range, SlotId owner) {
  if (range.empty()) return;
  split(range.begin);
  split(range.end);
  pieces_.erase(pieces_.lower_bound(range.begin), pieces_.lower_bound(range.end));
  pieces_.emplace(range.begin, End{range.end, owner});
}

std::vector<ByteOwners::Piece> ByteOwners::pieces(const ByteRange& range) const {
  std::vector<Piece> found;
  if (range.empty()) return found;
  Bytes at = range.begin;
  auto next = pieces_.upper_bound(range.begin);
  if (next != pieces_.begin() && std::prev(next)->second.end > range.begin) next = std::prev(next);
  for (; next != pieces_.end() && next->first < range.end; ++next) {
    if (next->first > at) found.push_back({{at, next->first}, SlotId()});
    const Bytes begin = std::max(at, next->first);
    at = std::min(next->second.end, range.end);
    found.push_back({{begin, at}, next->second.owner});
  }
  if (at < range.end) found.push_back({{at, range.end}, SlotId()});
  return found;
}

bool ByteOwners::all_owned(const ByteRange& range, SlotId owner) const {
  const std::vector<Piece> found = pieces(range);
  return std::all_of(found.begin(), found.end(),
                     [&](const Piece& piece) { return piece.owner == owner; });
}

}  // namespace reprise::schedule
