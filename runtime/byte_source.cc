#include "runtime/byte_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <zlib.h>

#include "base/bytes.h"
#include "base/error.h"

namespace reprise::runtime {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr base::Bytes kMostStreamBytes = base::kGiB;  // of a pipe or device: it may have no end

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::filesystem::path& path)
      : ByteSource(path.string()), file_(std::fopen(path.c_str(), "rb"), &std::fclose) {
    if (!file_) throw base::input_error("cannot read '{}': {}", name(), std::strerror(errno));
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    if (std::filesystem::is_directory(status)) {
      throw base::input_error("cannot read '{}': it is a folder", name());
    }
    has_end_ = std::filesystem::is_regular_file(status);
  }

  std::size_t read(std::span<std::uint8_t> into) override {
    const std::size_t got = std::fread(into.data(), 1, into.size(), file_.get());
    if (got < into.size() && std::ferror(file_.get()) != 0) {
      throw base::input_error("cannot read '{}': {}", name(), std::strerror(errno));
    }
    bytes_ += static_cast<base::Bytes>(got);
    if (!has_end_ && bytes_ > kMostStreamBytes) {
      throw base::input_error(
          "cannot read '{}': it is no regular file and gives more than {}; "
          "save it as a file",
          name(), base::format_bytes(kMostStreamBytes));
    }
    return got;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  base::Bytes bytes_ = 0;  // read so far
  bool has_end_ = true;
};

// zlib's own file functions pass over garbage behind the stream and read what is not gzip as it is;
// here both are errors.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(const std::filesystem::path& path)
      : ByteSource(path.string()), compressed_(path) {
    // 16: gzip form only.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw base::device_error("zlib does not start");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<std::uint8_t> into) override {
    std::size_t done = 0;
    while (done < into.size() && !ended_) {
      if (stream_.avail_in == 0) refill();
      const std::size_t room = std::min(into.size() - done, kChunkBytes);
      stream_.next_out = into.data() + done;
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        next_member();
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(stream_.msg != nullptr ? stream_.msg : zError(status));
      } else if (stream_.avail_in == 0 && compressed_ended_ && stream_.avail_out > 0) {
        fail("the stream is cut off");
      }
    }
    return done;
  }

 private:
  [[noreturn]] void fail(const char* reason) const {
    if (members_ > 0 && stream_.total_out == 0) {
      throw base::input_error("'{}' goes on behind its end: what follows its gzip stream is none",
                              name());
    }
    throw base::input_error("'{}' is not in gzip form, cut off or damaged: {}", name(), reason);
  }

  void refill() {
    const std::size_t got = compressed_.read(input_);
    compressed_ended_ = got < input_.size();
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(got);
  }

  // A gzip file may be several streams one after the other.
  void next_member() {
    ++members_;
    if (stream_.avail_in == 0) refill();
    ended_ = stream_.avail_in == 0;
    if (!ended_ && inflateReset(&stream_) != Z_OK) throw base::device_error("zlib does not start");
  }

  PlainSource compressed_;
  z_stream stream_{};
  std::array<std::uint8_t, 1 << 16> input_{};
  int members_ = 0;
  bool compressed_ended_ = false;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path) {
  if (path.extension() == ".gz") return std::make_unique<GzipSource>(path);
  return std::make_unique<PlainSource>(path);
}

std::vector<std::uint8_t> read_exactly(ByteSource& source, std::uint64_t count,
                                       std::string_view what) {
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < count) {
    const std::size_t have = bytes.size();
    const std::size_t chunk = std::min<std::uint64_t>(count - have, std::max(kChunkBytes, have));
    bytes.resize(have + chunk);
    const std::size_t got = source.read(std::span(bytes).subspan(have));
    if (got < chunk) {
      throw base::input_error("'{}' ends early: {} takes {} bytes, {} are there", source.name(),
                              what, count, have + got);
    }
  }
  return bytes;
}

std::vector<std::uint8_t> read_rest(ByteSource& source) {
  std::vector<std::uint8_t> bytes;
  for (;;) {
    const std::size_t have = bytes.size();
    const std::size_t chunk = std::max(kChunkBytes, have);
    bytes.resize(have + chunk);
    const std::size_t got = source.read(std::span(bytes).subspan(have));
    if (got == chunk) continue;
    bytes.resize(have + got);
    return bytes;
  }
}

void require_end(ByteSource& source, std::string_view expected) {
  std::uint8_t extra = 0;
  if (source.read(std::span(&extra, 1)) != 0) {
    throw base::input_error("'{}' goes on behind its end: {} expected", source.name(), expected);
  }
}

}  // namespace reprise::runtime
