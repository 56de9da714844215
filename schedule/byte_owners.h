#pragma once

// Who wrote each byte of the arena last: the verifier's only memory.

#include <map>
#include <vector>

#include "schedule/schedule.h"

namespace reprise::schedule {

// A half-open range of addresses; empty when end <= begin.
struct ByteRange {
  Bytes begin = 0;
  Bytes end = 0;
  [[nodiscard]] bool empty() const { return end <= begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

[[nodiscard]] bool overlap(const ByteRange& a, const ByteRange& b);  // empty ranges never do

// [offset, offset + bytes), empty for negative sizes, cut off at the largest address.
[[nodiscard]] ByteRange range_of(Bytes offset, Bytes bytes);
[[nodiscard]] inline ByteRange range_of(const Slot& slot) {
  return range_of(slot.offset, slot.bytes);
}

class ByteOwners {
 public:
  // Bytes with one owner. An invalid owner: never written, or scratch of a workspace.
  struct Piece {
    ByteRange range;
    SlotId owner;
  };

  void write(const ByteRange& range, SlotId owner);

  // The owners inside `range`, in address order; its bytes that nobody wrote come as pieces too.
  [[nodiscard]] std::vector<Piece> pieces(const ByteRange& range) const;

  // True when every byte of `range` was last written by `owner`.
  [[nodiscard]] bool all_owned(const ByteRange& range, SlotId owner) const;

 private:
  struct End {
    Bytes end;
    SlotId owner;
  };
  void split(Bytes address);

  std::map<Bytes, End> pieces_;  // by first address; disjoint
};

}  // namespace reprise::schedule
