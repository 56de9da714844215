#include "schedule/map_boxes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fmt/format.h"

namespace reprise::schedule {
namespace {

// A grid of one-pixel cells, each of the category that covers most of it.
class Grid {
 public:
  explicit Grid(const MapScale& scale)
      : scale_(scale),
        columns_(static_cast<int>(std::ceil(scale.width))),
        rows_(static_cast<int>(std::ceil(scale.height))),
        covered_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

  void cover(const Box& box) {
    const double left = scale_.x(static_cast<double>(box.steps.start)) - scale_.left;
    const double right = scale_.x(static_cast<double>(box.steps.end)) - scale_.left;
    const double top = scale_.y(static_cast<double>(box.end)) - scale_.top;
    const double bottom = scale_.y(static_cast<double>(box.begin)) - scale_.top;
    for (int row = clamp(top, rows_ - 1); row <= clamp(bottom, rows_ - 1); ++row) {
      const double height = std::min(bottom, row + 1.0) - std::max(top, static_cast<double>(row));
      for (int column = clamp(left, columns_ - 1); column <= clamp(right, columns_ - 1); ++column) {
        const double width =
            std::min(right, column + 1.0) - std::max(left, static_cast<double>(column));
        if (width <= 0 || height <= 0) continue;
        covered_[index(row, column)][static_cast<std::size_t>(box.category)] +=
            static_cast<float>(width * height);
      }
    }
  }

  // Cells that are hardly covered stay empty.
  void choose() {
    cells_.assign(covered_.size(), kEmpty);
    for (std::size_t i = 0; i < covered_.size(); ++i) {
      const auto most = std::max_element(covered_[i].begin(), covered_[i].end());
      if (*most >= 0.05F) cells_[i] = static_cast<std::uint8_t>(most - covered_[i].begin());
    }
  }

  // Takes the cells of one category out, row by row, each run as far down as it repeats.
  std::string take_path(Category category) {
    const auto wanted = static_cast<std::uint8_t>(category);
    std::string path;
    for (int row = 0; row < rows_; ++row) {
      for (int column = 0; column < columns_; ++column) {
        if (cell(row, column) != wanted) continue;
        int end = column;
        while (end < columns_ && cell(row, end) == wanted) ++end;
        int bottom = row + 1;
        while (bottom < rows_ && is_run(bottom, column, end, wanted)) ++bottom;
        for (int r = row; r < bottom; ++r) {
          for (int c = column; c < end; ++c) cell(r, c) = kEmpty;
        }
        path +=
            fmt::format("M{} {}h{}v{}h{}z", column, row, end - column, bottom - row, column - end);
      }
    }
    return path;
  }

 private:
  static constexpr std::uint8_t kEmpty = 0xFF;

  static int clamp(double value, int high) {
    return static_cast<int>(std::clamp(std::floor(value), 0.0, static_cast<double>(high)));
  }
  std::size_t index(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
           static_cast<std::size_t>(column);
  }
  std::uint8_t& cell(int row, int column) { return cells_[index(row, column)]; }
  bool is_run(int row, int begin, int end, std::uint8_t wanted) {
    for (int column = begin; column < end; ++column) {
      if (cell(row, column) != wanted) return false;
    }
    return true;
  }

  const MapScale& scale_;
  int columns_, rows_;
  std::vector<std::array<float, kCategoryCount>> covered_;  // area of each category, per cell
  std::vector<std::uint8_t> cells_;
};

}  // namespace

std::vector<Box> collect_boxes(const Schedule& schedule, const Usage& usage) {
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const SlotId id(i);
    const Slot& slot = schedule.slots[id];
    const Lifetime& steps = usage.lifetimes[id];
    if (steps.start >= steps.end || slot.bytes <= 0) continue;
    boxes.push_back({.category = usage.categories[id],
                     .steps = steps,
                     .begin = slot.offset,
                     .end = slot.offset + slot.bytes,
                     .slot = id});
  }
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const Instruction& at = schedule.instructions[i];
    const auto step = static_cast<std::int64_t>(i);
    if (at.workspace_bytes <= 0) continue;
    boxes.push_back({.category = Category::kWorkspace,
                     .steps = {step, step + 1},
                     .begin = at.workspace_offset,
                     .end = at.workspace_offset + at.workspace_bytes,
                     .instruction = step});
  }
  return boxes;
}

std::vector<std::string> merge_boxes(const std::vector<Box>& boxes, const MapScale& scale) {
  std::vector<std::string> paths(kCategoryCount);
  if (boxes.empty()) return paths;
  Grid grid(scale);
  for (const Box& box : boxes) grid.cover(box);
  grid.choose();
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    paths[c] = grid.take_path(static_cast<Category>(c));
  }
  return paths;
}

}  // namespace reprise::schedule
