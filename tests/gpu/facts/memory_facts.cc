// Devices, memory, copies, events.

#include <algorithm>
#include <cstdint>

#include "tests/gpu/facts/facts.h"

namespace reprise::test::facts {
namespace {

constexpr std::size_t kMany = std::size_t{1} << 20;

void devices(Notes& notes) {
  int count = -1;
  REPRISE_MUST(cudaGetDeviceCount(&count));
  expect(count >= 1, fmt::format("{} devices", count));
  cudaDeviceProp properties{};
  REPRISE_MUST(cudaGetDeviceProperties(&properties, 0));
  notes.push_back(fmt::format("{} devices; 0 is {}", count, properties.name));
  expect_status(cudaSetDevice(count), cudaErrorInvalidDevice, "cudaSetDevice(count)");
  expect_status(cudaGetLastError(), cudaErrorInvalidDevice, "cudaGetLastError()");
  expect_status(cudaGetLastError(), cudaSuccess, "cudaGetLastError() again");
}

void alignment(Notes& /*notes*/) {
  for (const std::size_t count : {1, 3, 100, 5000}) {
    const Floats floats(count);
    expect(reinterpret_cast<std::uintptr_t>(floats.get()) % 256 == 0,
           fmt::format("{} floats lie at {}", count, static_cast<void*>(floats.get())));
  }
  std::size_t free = 0, total = 0;
  REPRISE_MUST(cudaMemGetInfo(&free, &total));
  expect(free > 0 && free <= total, fmt::format("{} of {} bytes are free", free, total));
}

void pageable_in(Notes& /*notes*/) {
  const Stream stream;
  const Floats device(kMany);
  std::vector<float> host(kMany, 1.0F);
  REPRISE_MUST(cudaMemcpyAsync(device.get(), host.data(), device.bytes(), cudaMemcpyHostToDevice,
                               stream.get()));
  std::ranges::fill(host, 2.0F);
  stream.wait();
  expect(std::ranges::count(device.values(), 1.0F) == static_cast<std::ptrdiff_t>(kMany),
         "what the host wrote after the call arrived");
}

void pageable_out(Notes& /*notes*/) {
  const Stream stream;
  const Floats device(std::vector<float>(kMany, 3.0F));
  std::vector<float> host(kMany, 0.0F);
  REPRISE_MUST(cudaMemcpyAsync(host.data(), device.get(), device.bytes(), cudaMemcpyDeviceToHost,
                               stream.get()));
  expect(std::ranges::count(host, 3.0F) == static_cast<std::ptrdiff_t>(kMany),
         "the call returned before the bytes were there");
}

void pinned_both_ways(Notes& /*notes*/) {
  const Stream stream;
  const Floats device(kMany);
  const Pinned in(kMany), out(kMany);
  std::fill_n(in.get(), kMany, 4.0F);
  std::fill_n(out.get(), kMany, 0.0F);
  REPRISE_MUST(cudaMemcpyAsync(device.get(), in.get(), device.bytes(), cudaMemcpyHostToDevice,
                               stream.get()));
  REPRISE_MUST(cudaMemcpyAsync(out.get(), device.get(), device.bytes(), cudaMemcpyDeviceToHost,
                               stream.get()));
  stream.wait();
  expect(std::count(out.get(), out.get() + kMany, 4.0F) == static_cast<std::ptrdiff_t>(kMany),
         "copies of one stream ran in another order");
}

void across_streams(Notes& /*notes*/) {
  const Stream first, second;
  const Floats device(kMany);
  const Pinned out(kMany);
  cudaEvent_t filled = nullptr;
  REPRISE_MUST(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  for (int byte = 0; byte < 8; ++byte) {
    REPRISE_MUST(cudaMemsetAsync(device.get(), byte, device.bytes(), first.get()));
    REPRISE_MUST(cudaEventRecord(filled, first.get()));
    REPRISE_MUST(cudaStreamWaitEvent(second.get(), filled, 0));
    REPRISE_MUST(cudaMemcpyAsync(out.get(), device.get(), device.bytes(), cudaMemcpyDeviceToHost,
                                 second.get()));
    second.wait();
    const auto* const bytes = reinterpret_cast<const unsigned char*>(out.get());
    expect(std::count(bytes, bytes + device.bytes(), byte) ==
               static_cast<std::ptrdiff_t>(device.bytes()),
           "the second stream did not wait");
    expect_status(cudaEventQuery(filled), cudaSuccess, "cudaEventQuery of what is over");
  }
  REPRISE_MUST(cudaEventDestroy(filled));
}

void events_before_use(Notes& /*notes*/) {
  const Stream stream;
  cudaEvent_t start = nullptr, end = nullptr;
  REPRISE_MUST(cudaEventCreate(&start));
  REPRISE_MUST(cudaEventCreate(&end));
  expect_status(cudaEventQuery(start), cudaSuccess, "cudaEventQuery of a new event");
  REPRISE_MUST(cudaStreamWaitEvent(stream.get(), start, 0));
  REPRISE_MUST(cudaEventRecord(start, stream.get()));
  REPRISE_MUST(cudaEventRecord(end, stream.get()));
  REPRISE_MUST(cudaEventSynchronize(end));
  float milliseconds = -1;
  REPRISE_MUST(cudaEventElapsedTime(&milliseconds, start, end));
  expect(milliseconds >= 0, fmt::format("{} ms", milliseconds));
  REPRISE_MUST(cudaEventDestroy(start));
  REPRISE_MUST(cudaEventDestroy(end));
}

}  // namespace

void add_memory_facts(std::vector<Fact>& facts) {
  facts.push_back({"an error is told once by cudaGetLastError", devices});
  facts.push_back({"cudaMalloc answers with multiples of 256", alignment});
  facts.push_back({"a pageable copy to the device is read at the call", pageable_in});
  facts.push_back({"a pageable copy to the host is over on return", pageable_out});
  facts.push_back({"pinned copies of one stream run in their order", pinned_both_ways});
  facts.push_back({"a stream waits for the event of another", across_streams});
  facts.push_back({"an event that was never recorded is over", events_before_use});
}

}  // namespace reprise::test::facts
