#pragma once

// What the store and its clients write to each other: frames of a type and a few fields.
//
//     "RPS1"  type (1 byte)  length of the rest (4 bytes, little endian)  fields
//
// A field is a number (8 bytes, little endian) or a text (its length as a number, then its bytes).
// Nothing that arrives is trusted: a wrong mark, a length beyond the limit or a field that runs out
// is a reason to hang up.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::runtime::comm {

enum class FrameType : std::uint8_t {
  // from a client; the first frame of a connection is a hello
  kHello = 1,  // job, world size, rank, whether it is the member's connection (else the keys')
  kSet,        // key, value
  kGet,        // key; answered by kValue once the key is there
  kAdd,        // key, number; answered by kNumber, the sum so far
  kBeat,       // operations entered so far, the newest as text (empty when it has ended)
  kStalled,    // as kBeat: that operation has met its deadline; whose fault is it?
  kFailed,     // reason: this member gives up
  kBye,        // as kBeat: this member leaves in peace
  // from the store
  kWelcome = 64,  // ranks still missing, as text; again whenever that changes
  kRefused,       // reason; the connection ends
  kValue,         // value
  kNumber,        // number
  kPing,          // still there
  kFailure,       // rank (-1: not known), reason: the first failure of the group
};

struct Frame {
  FrameType type{};
  std::string fields;

  explicit Frame(FrameType frame_type) : type(frame_type) {}
  Frame& add(std::string_view text);
  Frame& add_number(std::int64_t number);
  [[nodiscard]] std::string encoded() const;
};

// Takes fields off the front; each is empty where the frame has none of that form (left).
class FieldReader {
 public:
  explicit FieldReader(std::string_view fields) : rest_(fields) {}
  [[nodiscard]] std::optional<std::string> text();
  [[nodiscard]] std::optional<std::int64_t> number();

 private:
  std::string_view rest_;
};

// Collects bytes as they arrive and cuts frames off the front.
class FrameBuffer {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 22;

  void append(std::string_view bytes) { bytes_ += bytes; }
  [[nodiscard]] std::optional<Frame> next();  // empty: more bytes are needed, or broken()
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  std::string bytes_;
  bool broken_ = false;
};

}  // namespace reprise::runtime::comm
