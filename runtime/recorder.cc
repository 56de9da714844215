#include "runtime/recorder.h"

namespace reprise::runtime {

Recorder::Recorder(StepRecord& record, const RankSums* sums) : record_(record), sums_(sums) {
  record_ = {};
  if (sums_ == nullptr || sums_->on_device()) return;
  runs_.reserve(sums_->buckets().size());
  sums_->communicator().set_watch([this](const comm::OperationRun& run) { runs_.push_back(run); });
}

Recorder::~Recorder() {
  stop_watching();
}

void Recorder::stop_watching() {
  if (sums_ != nullptr && !sums_->on_device()) sums_->communicator().set_watch({});
  sums_ = nullptr;
}

void Recorder::finish() {
  if (sums_ == nullptr) return;
  const RankSums& sums = *sums_;
  stop_watching();
  record_.buckets = sums.buckets();
  if (sums.on_device()) return;
  for (std::size_t i = 0; i < record_.buckets.size(); ++i) {
    for (const comm::OperationRun& run : runs_) {
      if (run.sequence != sums.ticket(i).sequence) continue;
      record_.sums.push_back({since_begin(run.begin), since_begin(run.end)});
    }
  }
  REPRISE_CHECK(record_.sums.size() == record_.buckets.size(), "{} sums ran, {} were begun",
                record_.sums.size(), record_.buckets.size());
}

}  // namespace reprise::runtime
