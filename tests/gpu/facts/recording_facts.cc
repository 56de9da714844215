// Streams recorded into graphs.

#include "tests/gpu/facts/facts.h"

namespace reprise::test::facts {
namespace {

// begin, `forbidden`, end: the call is refused, and so is the recording.
void expect_refused(const Stream& stream, const char* call,
                    const std::function<cudaError_t()>& forbidden) {
  REPRISE_MUST(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  const cudaError_t status = forbidden();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
  expect_status(status, cudaErrorStreamCaptureUnsupported, call);
  expect_status(ended, cudaErrorStreamCaptureInvalidated, "cudaStreamEndCapture");
  const Floats data(1);  // the stream still works
  REPRISE_MUST(cudaMemsetAsync(data.get(), 0, data.bytes(), stream.get()));
  stream.wait();
}

void synchronise_is_refused(Notes& /*notes*/) {
  const Stream stream;
  expect_refused(stream, "cudaStreamSynchronize",
                 [&] { return cudaStreamSynchronize(stream.get()); });
}

void reserving_is_refused(Notes& /*notes*/) {
  const Stream stream;
  expect_refused(stream, "cudaMalloc", [] {
    void* data = nullptr;
    return cudaMalloc(&data, 64);
  });
}

void only_played(Notes& /*notes*/) {
  const Stream stream;
  const Floats data(std::vector<float>{7.0F});
  const Recording recording(
      stream, [&] { REPRISE_MUST(cudaMemsetAsync(data.get(), 0, data.bytes(), stream.get())); });
  expect(data.values()[0] == 7.0F, "it ran while it was recorded");
  recording.play(stream);
  expect(data.values()[0] == 0.0F, "it did not run when it was played");
}

void pinned_anew(Notes& /*notes*/) {
  const Stream stream;
  const Floats data(1);
  const Pinned pinned(1);
  *pinned.get() = 0;
  const Recording recording(stream, [&] {
    REPRISE_MUST(cudaMemcpyAsync(data.get(), pinned.get(), data.bytes(), cudaMemcpyHostToDevice,
                                 stream.get()));
  });
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    *pinned.get() = value;
    recording.play(stream);
    stream.wait();
    expect(data.values()[0] == value, fmt::format("{} did not arrive", value));
  }
}

// main: a = 1; side: b = a; main: c = b
void forks_and_joins(Notes& /*notes*/) {
  const Stream main, side;
  const Floats a(1), b(1), c(1);
  const Floats one(std::vector<float>{1.0F});
  cudaEvent_t fork = nullptr, join = nullptr;
  REPRISE_MUST(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  REPRISE_MUST(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  const auto copy = [](const Floats& to, const Floats& from, const Stream& stream) {
    REPRISE_MUST(
        cudaMemcpyAsync(to.get(), from.get(), to.bytes(), cudaMemcpyDeviceToDevice, stream.get()));
  };
  const Recording recording(main, [&] {
    copy(a, one, main);
    REPRISE_MUST(cudaEventRecord(fork, main.get()));
    REPRISE_MUST(cudaStreamWaitEvent(side.get(), fork, 0));
    copy(b, a, side);
    REPRISE_MUST(cudaEventRecord(join, side.get()));
    REPRISE_MUST(cudaStreamWaitEvent(main.get(), join, 0));
    copy(c, b, main);
  });
  for (int i = 0; i < 3; ++i) {
    c.set({0.0F});
    recording.play(main);
    expect(c.values()[0] == 1.0F, "a branch ran too early");
  }
  REPRISE_MUST(cudaEventDestroy(fork));
  REPRISE_MUST(cudaEventDestroy(join));
}

void one_after_the_other(Notes& /*notes*/) {
  const Stream first, second;
  const Floats data(std::vector<float>{1.0F, 2.0F, 3.0F, 4.0F, 5.0F});
  // Each play moves the floats one place down.
  const Recording recording(first, [&] {
    for (int i = 0; i < 4; ++i) {
      REPRISE_MUST(cudaMemcpyAsync(data.get() + i, data.get() + i + 1, sizeof(float),
                                   cudaMemcpyDeviceToDevice, first.get()));
    }
  });
  recording.play(first);
  recording.play(second);
  recording.play(first);
  expect(data.values() == (std::vector<float>{4.0F, 5.0F, 5.0F, 5.0F, 5.0F}),
         "launches of one graph overlapped");
}

}  // namespace

void add_recording_facts(std::vector<Fact>& facts) {
  facts.push_back({"a recording refuses to wait", synchronise_is_refused});
  facts.push_back({"a recording refuses to reserve memory", reserving_is_refused});
  facts.push_back({"what is recorded runs when it is played", only_played});
  facts.push_back({"every play reads pinned memory anew", pinned_anew});
  facts.push_back({"branches of a recording are ordered by their events", forks_and_joins});
  facts.push_back({"plays of one recording come one after the other", one_after_the_other});
}

}  // namespace reprise::test::facts
