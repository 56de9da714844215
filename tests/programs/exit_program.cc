// A program that leaves everything to the end of the process: a global session, a session per
// thread, work on four threads; then a plain return from main, or std::exit from a worker.
//
//   exit_program return | exit

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

#include "api/session.h"
#include "models/model.h"

using namespace reprise;

namespace {

constexpr int kThreads = 4, kFailure = 9;

std::unique_ptr<api::Session> global_session;
thread_local std::unique_ptr<api::Session> session_of_thread;

std::unique_ptr<api::Session> make_session() {
  const auto model = models::make_model(
      "mlp",
      {.batch = 4, .channels = 1, .height = 4, .width = 4, .classes = 3, .hidden = 8, .layers = 1});
  api::SessionOptions options;
  options.threads = 2;  // the library's pool
  options.plan.planner = "keep_all";
  options.plan.find_floor = false;
  auto made = api::Session::create(model, {}, {}, options);
  return std::get<std::unique_ptr<api::Session>>(std::move(made));
}

void step(api::Session& session) {
  const std::vector<float> images(4 * 16, 0.5F);
  const std::vector<std::int32_t> labels{0, 1, 2, 0};
  session.set_input("images", std::as_bytes(std::span(images)));
  session.set_input("labels", std::as_bytes(std::span(labels)));
  if (!std::isfinite(session.step())) std::_Exit(kFailure);
}

std::atomic<int> finished = 0;

// The last worker to finish ends the process, while the others and main wait (without a condition
// variable, whose own destructor would wait for them).
void work(bool exits) {
  session_of_thread = make_session();
  step(*session_of_thread);
  if (!exits) return;
  if (++finished == kThreads) std::exit(0);
  while (true) pause();
}

}  // namespace

int main(int count, char** words) {
  const bool exits = count > 1 && std::string_view(words[1]) == "exit";
  global_session = make_session();
  step(*global_session);
  std::vector<std::thread> pool;
  for (int i = 0; i < kThreads; ++i) pool.emplace_back(work, exits);
  for (std::thread& thread : pool) thread.join();
  return exits ? kFailure : 0;
}
