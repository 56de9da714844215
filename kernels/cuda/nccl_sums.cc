#include "kernels/cuda/nccl_sums.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {
namespace {

using Clock = std::chrono::steady_clock;

bool accepted(ncclResult_t status) {
  return status == ncclSuccess || status == ncclInProgress;
}

[[noreturn]] void fail(ncclResult_t status, const char* call, ncclComm_t comm) {
  const char* const words = ncclGetLastError(comm);
  const std::string more = words == nullptr || *words == '\0' ? "" : fmt::format(": {}", words);
  throw base::device_error("{}: {}{} (NCCL_DEBUG=WARN tells more)", call,
                           ncclGetErrorString(status), more);
}

base::Bytes free_bytes() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<base::Bytes>(free);
}

ncclDataType_t nccl_type(graph::DType type) {
  switch (type) {
    case graph::DType::kF32:
      return ncclFloat32;
    case graph::DType::kI32:
      return ncclInt32;
    case graph::DType::kU8:
      return ncclUint8;
    case graph::DType::kBF16:
      break;
  }
  throw base::device_error("NCCL adds up no {}", graph::dtype_name(type));
}

std::size_t element_bytes(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : 4;
}

}  // namespace

std::string make_nccl_id() {
  ncclUniqueId id;
  if (const ncclResult_t status = ncclGetUniqueId(&id); status != ncclSuccess)
    fail(status, "ncclGetUniqueId", nullptr);
  return {id.internal, sizeof(id.internal)};
}

void NcclSums::join(const std::string& id, int rank, int world_size, Patience patience) {
  ncclUniqueId group;
  if (id.size() != sizeof(group.internal)) {
    throw base::device_error("the id of an NCCL group has {} bytes, this one {}",
                             sizeof(group.internal), id.size());
  }
  std::memcpy(group.internal, id.data(), id.size());
  patience_ = std::move(patience);
  world_size_ = world_size;
  device_->make_current();
  const base::Bytes before = free_bytes();
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
        "cudaStreamCreateWithPriority");
  check(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t status = ncclCommInitRankConfig(&comm_, world_size, group, rank, &config);
  if (!accepted(status)) fail(status, "ncclCommInitRankConfig", comm_);
  until_ready("ncclCommInitRankConfig");
  joined_ = true;
  reserved_bytes_ = std::max<base::Bytes>(0, before - free_bytes());
}

std::string NcclSums::description() const {
  int version = 0;
  (void)ncclGetVersion(&version);
  return fmt::format("NCCL {}.{}.{}, {} rank{}", version / 10000, version % 10000 / 100,
                     version % 100, world_size_, world_size_ == 1 ? "" : "s");
}

ncclResult_t NcclSums::state() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) throw base::device_error("the group of GPUs was aborted");
  ncclResult_t state = ncclInProgress;
  const ncclResult_t status = ncclCommGetAsyncError(comm_, &state);
  if (status != ncclSuccess) fail(status, "ncclCommGetAsyncError", comm_);
  if (!accepted(state)) fail(state, "sums over GPUs", comm_);
  return state;
}

void NcclSums::until_ready(const char* call) {
  const auto begin = Clock::now();
  while (state() == ncclInProgress) {
    try {
      if (patience_) patience_(Clock::now() - begin);
    } catch (const base::Error&) {
      throw;
    } catch (const std::exception& error) {
      throw base::device_error("{}: {}", call, error.what());
    }
    std::this_thread::yield();
  }
}

void NcclSums::queue(std::span<const std::span<std::byte>> pieces, ncclDataType_t type) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) throw base::device_error("the group of GPUs was aborted");
  ncclResult_t status = ncclGroupStart();
  if (status != ncclSuccess) fail(status, "ncclGroupStart", comm_);
  for (const std::span<std::byte> piece : pieces) {
    if (!accepted(status)) break;
    if (piece.empty()) continue;
    status = ncclAllReduce(piece.data(), piece.data(), piece.size() / element_bytes(type), type,
                           ncclSum, comm_, stream_);
  }
  const ncclResult_t end = ncclGroupEnd();
  if (!accepted(status)) fail(status, "ncclAllReduce", comm_);
  if (!accepted(end)) fail(end, "ncclGroupEnd", comm_);
}

void NcclSums::follow_compute() {
  check(cudaEventRecord(ready_, device_->compute()), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream_, ready_, 0), "cudaStreamWaitEvent");
}

void NcclSums::make_compute_wait(cudaEvent_t finished) {
  check(cudaStreamWaitEvent(device_->compute(), finished, 0), "cudaStreamWaitEvent");
}

void NcclSums::start(std::size_t number, std::span<const std::span<std::byte>> pieces,
                     graph::DType type) {
  const ncclDataType_t element = nccl_type(type);
  device_->make_current();
  while (done_.size() <= number) {  // in the first step only
    done_.push_back(nullptr);
    check(cudaEventCreateWithFlags(&done_.back(), cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
  }
  follow_compute();
  queue(pieces, element);
  until_ready("ncclAllReduce");  // else the event would be ahead of the sum
  check(cudaEventRecord(done_[number], stream_), "cudaEventRecord");
}

void NcclSums::wait(std::size_t number) {
  REPRISE_CHECK(number < done_.size(), "sum {} was never started", number);
  make_compute_wait(done_[number]);
}

bool NcclSums::idle() {
  device_->make_current();
  if (state() == ncclInProgress) return false;
  for (const cudaStream_t stream : {device_->compute(), stream_}) {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();  // it would come up again at the next launch
      return false;
    }
    check(status, "cudaStreamQuery");
  }
  return true;
}

ncclComm_t NcclSums::take() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(comm_, nullptr);
}

// ncclCommAbort ends what is under way, but returns only when the last recorded step with a sum of
// the group is gone. So it has a thread of its own.
void NcclSums::abort() noexcept {
  const ncclComm_t comm = take();
  if (comm == nullptr) return;
  const auto end = [comm, ordinal = device_->ordinal()] {
    (void)cudaSetDevice(ordinal);
    (void)ncclCommAbort(comm);
  };
  try {
    aborting_ = std::thread(end);
  } catch (...) {  // no thread to be had
    end();
  }
}

// In peace: all that was sent arrives.
void NcclSums::leave() noexcept {
  const ncclComm_t comm = take();
  if (comm == nullptr) return;
  ncclResult_t state = joined_ ? ncclCommFinalize(comm) : ncclInternalError;
  const auto begin = Clock::now();
  while (state == ncclInProgress && Clock::now() - begin < std::chrono::seconds(5)) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) state = ncclInternalError;
    std::this_thread::yield();
  }
  (void)(state == ncclSuccess ? ncclCommDestroy(comm) : ncclCommAbort(comm));
}

// Errors at the end have nobody to tell.
NcclSums::~NcclSums() {
  (void)cudaSetDevice(device_->ordinal());
  leave();
  if (aborting_.joinable()) aborting_.join();
  for (const cudaEvent_t event : done_)
    if (event != nullptr) (void)cudaEventDestroy(event);
  if (ready_ != nullptr) (void)cudaEventDestroy(ready_);
  if (stream_ == nullptr) return;
  (void)cudaStreamSynchronize(stream_);  // the arena goes next
  (void)cudaStreamDestroy(stream_);
}

}  // namespace reprise::kernels::cuda
