// cudart: events.

#include <memory>
#include <set>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/faults.h"

using namespace reprise::test::cuda;

struct CUevent_st {
  bool timed = true;
  bool alive = true;
  OperationRef recorded;  // null: nothing to wait for
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> nodes;  // of the graph, where it was recorded in a capture
};

namespace reprise::test::cuda {
namespace {

std::set<CUevent_st*>& live_events() {
  static auto* const events = new std::set<CUevent_st*>;
  return *events;
}

template <class Body>
cudaError_t event_api(const char* name, cudaEvent_t event, Body body) {
  return device_api(name, [&]() -> cudaError_t {
    if (live_events().count(event) > 0) return body();
    fault(std::string(name) + " with an event that is not there");
    return cudaErrorInvalidResourceHandle;
  });
}

cudaError_t create(const char* name, cudaEvent_t* event, unsigned flags) {
  return device_api(name, [&] {
    *event = *live_events().insert(new CUevent_st).first;
    (*event)->timed = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
  });
}

cudaError_t record_event(const char* name, cudaEvent_t event, cudaStream_t stream) {
  return event_api(name, event, [&]() -> cudaError_t {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    event->recorded.reset();
    event->capture = on->capture;
    event->nodes = on->capture_tail;
    if (!on->capture) event->recorded = engine().append(on, {name, Kind::kMarker, {}, {}, {}});
    return cudaSuccess;
  });
}

}  // namespace

void reset_events() {
  for (CUevent_st* const event : live_events()) delete event;
  live_events().clear();
}

}  // namespace reprise::test::cuda

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return create("cudaEventCreate", event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return create("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return event_api("cudaEventDestroy", event, [&] {
    live_events().erase(event);
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record_event("cudaEventRecord", event, stream);
}

// External: while a stream records, the recording of the event becomes a node, and each launch of
// the graph records it anew; not allowed otherwise.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault)
    return record_event("cudaEventRecordWithFlags", event, stream);
  return event_api("cudaEventRecordWithFlags", event, [&]() -> cudaError_t {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    if (!on->capture) return cudaErrorIllegalState;
    Task task{"cudaEventRecordWithFlags", Kind::kMarker, {}, {}, {}};
    task.enlist = [event](const OperationRef& operation) {
      if (live_events().count(event) > 0) event->recorded = operation;
    };
    return record(on, std::move(task));
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return event_api("cudaStreamWaitEvent", event, [&]() -> cudaError_t {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->capture) return join_capture(on, event->capture, event->nodes);
    if (on->capture) {
      (void)breaks(on);
      return cudaErrorStreamCaptureIsolation;
    }
    if (event->recorded)
      engine().append(on, {"cudaStreamWaitEvent", Kind::kMarker, {}, {}, {}}, {event->recorded});
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event_api("cudaEventSynchronize", event, [&] {
    if (event->capture) return cudaErrorCapturedEvent;
    return engine().wait(event->recorded) ? cudaSuccess : cudaErrorLaunchTimeout;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event_api("cudaEventQuery", event, [&] {
    if (event->capture) return cudaErrorCapturedEvent;
    return engine().poll(event->recorded) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return event_api("cudaEventElapsedTime", start, [&]() -> cudaError_t {
    if (live_events().count(end) == 0) return cudaErrorInvalidResourceHandle;
    if (start->capture || end->capture) return cudaErrorCapturedEvent;
    if (!start->timed || !end->timed || !start->recorded || !end->recorded)
      return cudaErrorInvalidResourceHandle;
    if (!start->recorded->done || !end->recorded->done) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(1e3 * (end->recorded->end - start->recorded->end));
    return cudaSuccess;
  });
}
