#pragma once

// The progress line of a training run.
//
//   1234/4690 [=====>             ] loss 0.4312  5321 items/s  123.4 MiB  ETA 1:23
//
// On a terminal one line is drawn over and over, in one write each and at most ten times a second;
// elsewhere nothing is drawn and only what print() is given appears.

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace reprise::runtime {

struct Progress {
  std::int64_t step = 0;  // done
  std::int64_t total_steps = 0;
  double loss = 0;
  double items_per_second = 0;
  base::Bytes memory_bytes = 0;
  double seconds_left = 0;
};

// Not more than `width` columns: what matters least is left out first (memory, items/s, bar, loss).
[[nodiscard]] std::string progress_line(const Progress& progress, int width);

// 7 -> "0:07", 83 -> "1:23", 3723 -> "1:02:03"; "?" for what is no time.
[[nodiscard]] std::string duration_text(double seconds);

// Columns of the terminal behind standard error; 80 when it is none or does not say.
[[nodiscard]] int terminal_width();

class ProgressLine {
 public:
  struct Options {
    bool terminal = false;
    std::function<int()> width = terminal_width;  // asked at each drawing: terminals get resized
    std::function<double()> seconds{};            // a steady clock; the system's when empty
  };
  ProgressLine(std::ostream& out, Options options);
  ~ProgressLine();  // leaves the line behind
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // After each step; the time left and the items per second are smoothed here.
  void update(const Progress& progress);
  // A line of its own above the progress line, also where there is no terminal.
  void print(std::string_view line);
  // Draws the last state and moves to the next line. print() still works; so does update().
  void finish();

 private:
  void draw();

  std::ostream& out_;
  Options options_;
  Progress latest_;
  double last_update_ = -1;
  double last_draw_ = -1;
  double step_seconds_ = 0;  // moving averages; 0 before the first measure
  double rate_ = 0;
  bool drawn_ = false;    // a line without its end stands on the terminal
  bool pending_ = false;  // the latest state has not been drawn
};

}  // namespace reprise::runtime
