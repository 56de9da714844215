#pragma once

// Strong ids: an index into one particular table, which does not convert to an index into another.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace reprise::base {

// Index into the table that Tag names. Default-constructed ids are invalid.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  [[nodiscard]] constexpr std::size_t index() const { return index_; }
  [[nodiscard]] constexpr bool valid() const { return index_ != kInvalid; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t kInvalid = 0xFFFFFFFFu;
  std::uint32_t index_ = kInvalid;
};

// A vector indexed by one kind of id only.
template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T()) : items_(size, value) {}

  decltype(auto) operator[](IdType id) { return items_[id.index()]; }
  decltype(auto) operator[](IdType id) const { return items_[id.index()]; }
  [[nodiscard]] decltype(auto) at(IdType id) { return items_.at(id.index()); }
  [[nodiscard]] decltype(auto) at(IdType id) const { return items_.at(id.index()); }

  IdType push_back(T value) {
    items_.push_back(std::move(value));
    return IdType(items_.size() - 1);
  }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  void resize(std::size_t size, const T& value = T()) { items_.resize(size, value); }
  void reserve(std::size_t size) { items_.reserve(size); }
  [[nodiscard]] bool contains(IdType id) const { return id.index() < items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  [[nodiscard]] const std::vector<T>& items() const { return items_; }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace reprise::base

template <class Tag>
struct std::hash<reprise::base::Id<Tag>> {
  std::size_t operator()(reprise::base::Id<Tag> id) const noexcept { return id.index(); }
};
