#include "planner/problem_file.h"

#include "base/error.h"
#include "planner/problem_forms.h"

namespace reprise::planner {
namespace {

using base::input_error;

constexpr std::int64_t kVersion = 1;

struct Form {
  std::string_view key;  // its presence tells the form
  FieldSet fields;
};

const std::vector<Form>& all_forms() {
  static const std::vector<Form> forms = {
      {"ops", {"tensors", "ops", "alignment"}},
      {"chain", {"chain"}},
      {"steps", {"steps", "a", "b", "g", "uf", "ub", "of", "ob", "ul", "ol", "checkpoints"}},
      {"buffers", {"buffers", "alignment"}},
  };
  return forms;
}

const Form& find_form(const JsonObject& file) {
  const Form* found = nullptr;
  for (const Form& form : all_forms()) {
    if (!file.has(form.key)) continue;
    if (found != nullptr) {
      throw input_error("the problem has '{}' and '{}'; a file holds one problem", found->key,
                        form.key);
    }
    found = &form;
  }
  if (found != nullptr) return *found;
  throw input_error(
      "the problem has none of the fields that tell its form: tensors and ops, chain, steps, "
      "buffers");
}

// A trillion steps with two checkpoints take a million repetitions, which are counted one by one.
RevolveFile read_revolve(const JsonObject& file) {
  constexpr std::int64_t kMostSteps = 1'000'000'000'000;
  const RevolveFile result{.steps = file.whole("steps", 1),
                           .checkpoints = file.whole("checkpoints", 1)};
  if (result.steps > kMostSteps) {
    throw input_error("steps: {}; with checkpoints at most 10^12", result.steps);
  }
  return result;
}

void check_version(const JsonObject& file) {
  if (file.has("format") && file.text("format") != "reprise-problem") {
    throw input_error("format '{}'; expected reprise-problem", file.text("format"));
  }
  if (!file.has("version")) return;
  const std::int64_t version = file.whole("version", 1);
  if (version > kVersion) {
    throw input_error("version {} of the problem format; this program reads versions up to {}",
                      version, kVersion);
  }
}

std::string read_name(const JsonObject& file) {
  for (const char* field : {"name", "id"}) {
    if (file.has(field)) return file.text(field);
  }
  return "problem";
}

std::vector<std::string> top_level_ignored(const JsonObject& file, const Form& form,
                                           Ignored& ignored) {
  FieldSet known = form.fields;
  known.insert({"format", "version", "name", "id", "note"});
  file.collect_unknown(known, ignored);
  return {ignored.begin(), ignored.end()};
}

}  // namespace

Bytes read_alignment(const JsonObject& file) {
  if (!file.has("alignment")) return 1;
  const Bytes alignment = file.whole("alignment", 1);
  if ((alignment & (alignment - 1)) != 0 || alignment > base::kGiB) {
    throw input_error("alignment: {}; expected a power of two up to 2^30", alignment);
  }
  return alignment;
}

BuffersFile read_buffers(const JsonObject& file, Ignored& ignored) {
  BuffersFile result;
  result.alignment = read_alignment(file);
  const Json& buffers = file.array("buffers");
  Bytes bytes = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const JsonObject buffer(buffers[i], fmt::format("buffers[{}]", i));
    static const FieldSet known = {"name", "start", "end", "bytes"};
    buffer.collect_unknown(known, ignored);
    const schedule::Buffer read{.start = buffer.whole("start", 0),
                                .end = buffer.whole("end", 0),
                                .bytes = buffer.whole("bytes", 0)};
    if (read.end <= read.start) {
      throw input_error("buffers[{}]: start {}, end {}; it is live on [start, end), so start < end",
                        i, read.start, read.end);
    }
    // With room for what alignment adds.
    bytes = base::checked_add(
        bytes, base::checked_add(read.bytes, result.alignment, "bytes of all buffers"),
        "bytes of all buffers");
    result.buffers.push_back(read);
  }
  return result;
}

ProblemFile parse_problem(std::string_view text) {
  const Json json = parse_json(text);
  const JsonObject file(json, "");
  check_version(file);
  ProblemFile result;
  result.name = read_name(file);
  const Form& form = find_form(file);
  Ignored ignored;
  if (form.key == "ops") {
    OpGraphFile graph = read_op_graph(file, ignored);
    graph.problem.name = result.name;
    result.content = std::move(graph);
  } else if (form.key == "chain") {
    result.content = read_chain(file.object("chain"), ignored);
  } else if (form.key == "buffers") {
    result.content = read_buffers(file, ignored);
  } else if (file.has("checkpoints") && !file.has("a")) {
    result.content = read_revolve(file);
  } else {
    result.content = read_uniform_chain(file);
  }
  result.ignored = top_level_ignored(file, form, ignored);
  return result;
}

}  // namespace reprise::planner
