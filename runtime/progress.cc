#include "runtime/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "fmt/format.h"

namespace reprise::runtime {
namespace {

constexpr double kDrawSeconds = 0.1;
constexpr double kSmoothing = 0.1;  // weight of the newest measure
constexpr std::size_t kMaxBar = 30;
constexpr std::size_t kMinBar = 8;

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// " [====>    ]" in `width` columns.
std::string bar_text(const Progress& progress, std::size_t width) {
  const std::size_t inside = width - 3;
  const double share = progress.total_steps > 0 ? static_cast<double>(progress.step) /
                                                      static_cast<double>(progress.total_steps)
                                                : 0.0;
  const auto filled =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(inside));
  std::string bar(inside, ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled > 0 && filled < inside) bar[filled - 1] = '>';
  return fmt::format(" [{}]", bar);
}

double smoothed(double average, double measure) {
  return average <= 0 ? measure : average + kSmoothing * (measure - average);
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const auto whole = static_cast<std::int64_t>(std::lround(seconds));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progress_line(const Progress& progress, int width) {
  const auto room = static_cast<std::size_t>(std::max(width, 0));
  const std::string head = fmt::format("{}/{}", progress.step, progress.total_steps);
  struct Field {
    std::string text;
    int weight;  // the lightest goes first
  };
  std::vector<Field> fields{{fmt::format("  loss {:.4f}", progress.loss), 3},
                            {fmt::format("  {:.0f} items/s", progress.items_per_second), 2},
                            {fmt::format("  {}", base::format_bytes(progress.memory_bytes)), 1},
                            {fmt::format("  ETA {}", duration_text(progress.seconds_left)), 4}};
  std::size_t bar = kMinBar;
  const auto length = [&] {
    std::size_t sum = head.size() + bar;
    for (const Field& field : fields) sum += field.text.size();
    return sum;
  };
  while (length() > room && !fields.empty()) {
    const auto lightest =
        std::min_element(fields.begin(), fields.end(),
                         [](const Field& a, const Field& b) { return a.weight < b.weight; });
    if (bar > 0 && lightest->weight > 2) {
      bar = 0;  // before the loss goes
    } else {
      fields.erase(lightest);
    }
  }
  if (length() > room) return head.substr(0, room);
  if (bar > 0) bar = std::min(kMaxBar, bar + room - length());
  std::string line = head + (bar > 0 ? bar_text(progress, bar) : "");
  for (const Field& field : fields) line += field.text;
  return line;
}

int terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

ProgressLine::ProgressLine(std::ostream& out, Options options)
    : out_(out), options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = steady_seconds;
}

ProgressLine::~ProgressLine() {
  finish();
}

void ProgressLine::update(const Progress& progress) {
  const double now = options_.seconds();
  if (last_update_ >= 0 && progress.step > latest_.step) {
    const auto steps = static_cast<double>(progress.step - latest_.step);
    step_seconds_ = smoothed(step_seconds_, (now - last_update_) / steps);
  }
  last_update_ = now;
  rate_ = smoothed(rate_, progress.items_per_second);
  latest_ = progress;
  latest_.items_per_second = rate_;
  latest_.seconds_left =
      step_seconds_ > 0 ? step_seconds_ * static_cast<double>(progress.total_steps - progress.step)
                        : NAN;
  pending_ = true;
  if (options_.terminal && (last_draw_ < 0 || now - last_draw_ >= kDrawSeconds)) {
    draw();
    last_draw_ = now;
  }
}

void ProgressLine::draw() {
  // The last column stays free: some terminals wrap when it is filled.
  const std::string line = progress_line(latest_, options_.width() - 1);
  out_ << fmt::format("\r{}\x1b[K", line) << std::flush;  // \x1b[K: clear to the end of the line
  drawn_ = true;
  pending_ = false;
}

void ProgressLine::print(std::string_view line) {
  if (drawn_) {
    const std::string again = progress_line(latest_, options_.width() - 1);
    out_ << fmt::format("\r{}\x1b[K\n{}", line, again) << std::flush;
  } else {
    out_ << fmt::format("{}\n", line) << std::flush;
  }
}

void ProgressLine::finish() {
  if (options_.terminal && pending_) draw();
  if (drawn_) out_ << '\n' << std::flush;
  drawn_ = false;
  pending_ = false;
}

}  // namespace reprise::runtime
