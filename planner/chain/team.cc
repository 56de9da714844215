#include "planner/chain/team.h"

namespace reprise::planner {

Team::Team(int threads) {
  for (int i = 1; i < threads; ++i) {
    others_.emplace_back([this, i] { serve(static_cast<std::size_t>(i)); });
  }
}

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  begin_.notify_all();
}

void Team::run(std::size_t count, const Work& work) {
  if (others_.empty() || count < 2) {
    for (std::size_t k = 0; k < count; ++k) work(0, k);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    next_ = 0;
    busy_ = others_.size();
    ++phase_;
  }
  begin_.notify_all();
  share(0);
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return busy_ == 0; });
}

void Team::share(std::size_t worker) {
  for (std::size_t k = next_++; k < count_; k = next_++) (*work_)(worker, k);
}

void Team::serve(std::size_t worker) {
  std::int64_t served = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return over_ || phase_ != served; });
      if (over_) return;
      served = phase_;
    }
    share(worker);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) end_.notify_one();
  }
}

}  // namespace reprise::planner
