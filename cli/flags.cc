#include "cli/flags.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "cli/values.h"
#include "fmt/ranges.h"

#include "base/error.h"
#include "graph/prepared_names.h"
#include "kernels/backend.h"
#include "planner/strategy.h"

namespace reprise::cli {
namespace {

constexpr double kHuge = std::numeric_limits<double>::max();

// Rethrows what a parser of the API says with the flag in front.
template <class F>
auto with_flag(std::string_view flag, F&& parse) {
  try {
    return parse();
  } catch (const base::Error& error) {
    throw base::Error(error.kind(), fmt::format("{}: {}", flag, error.what()));
  }
}

void add_whole(CLI::App& app, const std::string& name, const std::string& help, std::int64_t& value,
               std::int64_t low = 1, std::int64_t high = kNoLimit) {
  add_value(app, name, "N", help, [name, &value, low, high](const std::string& text) {
    value = parse_whole(name, text, low, high);
  });
}

void take_image(models::ModelOptions& options, const std::string& text) {
  const std::size_t first = text.find('x');
  const std::size_t second = first == std::string::npos ? first : text.find('x', first + 1);
  if (second == std::string::npos) {
    throw base::input_error("--image '{}': expected CxHxW, e.g. 3x224x224", text);
  }
  const auto size = [&](std::string_view part) {
    return with_flag(fmt::format("--image '{}'", text),
                     [&] { return parse_whole("one of C, H, W", part, 1, 65536); });
  };
  const std::string_view view = text;
  options.channels = size(view.substr(0, first));
  options.height = size(view.substr(first + 1, second - first - 1));
  options.width = size(view.substr(second + 1));
}

// "constant", "cosine", "step", "step:PERIOD", "step:PERIOD:FACTOR".
void take_schedule(Flags::OptimizerFlags& optimizer, const std::string& text) {
  const std::size_t colon = text.find(':');
  optimizer.schedule = with_flag(
      "--lr-schedule", [&] { return graph::parse_learning_rate_kind(text.substr(0, colon)); });
  if (colon == std::string::npos) return;
  if (optimizer.schedule != graph::LearningRate::Kind::kStep) {
    throw base::input_error("--lr-schedule '{}': only step takes :PERIOD[:FACTOR]", text);
  }
  const std::string rest = text.substr(colon + 1);
  const std::size_t second = rest.find(':');
  optimizer.period_steps = parse_whole("--lr-schedule step:PERIOD", rest.substr(0, second), 1);
  if (second == std::string::npos) return;
  optimizer.factor =
      parse_real("--lr-schedule step:PERIOD:FACTOR", rest.substr(second + 1), 0, 1, true);
}

std::string known_models() {
  std::vector<std::string_view> names;
  for (const models::ModelInfo& info : models::all_models()) names.push_back(info.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void take_model(Flags& flags, const std::string& text) {
  const auto& models = models::all_models();
  const bool known = std::any_of(models.begin(), models.end(),
                                 [&](const models::ModelInfo& info) { return info.name == text; });
  if (!known) throw base::input_error("--model '{}': expected one of {}", text, known_models());
  flags.train.model = text;
}

graph::LearningRate learning_rate(const Flags::OptimizerFlags& flags, double usual) {
  graph::LearningRate rate;
  rate.kind = flags.schedule;
  rate.base = flags.rate.value_or(usual);
  rate.warmup_steps = flags.warmup_steps;
  rate.period_steps = flags.period_steps;  // 0: the run completes it from its length
  rate.factor = flags.factor.value_or(rate.factor);
  return rate;
}

graph::Optimizer make_optimizer(const Flags::OptimizerFlags& flags) {
  const bool adam = flags.name == "adam" || flags.name == "adamw";
  const bool plain = flags.name == "sgd";
  if (flags.momentum && (adam || plain)) {
    throw base::input_error("--momentum {}: optimizer {} has none; use momentum or nesterov",
                            *flags.momentum, flags.name);
  }
  if (adam) {
    graph::AdamAttributes attributes;
    attributes.rate = learning_rate(flags, 0.001);
    attributes.decoupled = flags.name == "adamw";
    attributes.weight_decay = flags.weight_decay.value_or(attributes.decoupled ? 0.01 : 0.0);
    attributes.clip_norm = flags.clip_norm;
    attributes.skip_nonfinite = flags.skip_nonfinite;
    return attributes;
  }
  graph::SgdAttributes attributes;
  attributes.rate = learning_rate(flags, 0.05);
  attributes.momentum = plain ? 0.0 : flags.momentum.value_or(0.9);
  attributes.nesterov = flags.name == "nesterov";
  attributes.weight_decay = flags.weight_decay.value_or(0.0);
  attributes.clip_norm = flags.clip_norm;
  attributes.skip_nonfinite = flags.skip_nonfinite;
  return attributes;
}

}  // namespace

CLI::Option* add_value(CLI::App& app, const std::string& name, const std::string& type,
                       const std::string& help, std::function<void(const std::string&)> take) {
  // Values are taken as text, so that the checks and their words are ours.
  const auto take_text = [name, type, take = std::move(take)](const std::string& text) {
    if (text.empty()) throw base::input_error("{} '': expected {}", name, type);
    take(text);
  };
  return app.add_option_function<std::string>(name, take_text, help)->type_name(type);
}

void add_model_flags(CLI::App& app, Flags& flags) {
  models::ModelOptions& options = flags.train.model_options;
  flags.train.model.clear();
  app.option_defaults()->group("Model and data");
  add_value(app, "--model", "NAME", known_models(), [&flags](const std::string& text) {
    take_model(flags, text);
  })->required();
  add_value(app, "--data", "DATA",
            "fashion-mnist[:DIR], idx:DIR, cifar10:DIR, text:FILE or synthetic (the default)",
            [&flags](const std::string& text) {
              flags.train.data = with_flag("--data", [&] { return api::parse_data(text); });
              flags.data_given = true;
            });
  add_whole(app, "--batch", "items of one step", options.batch);
  add_whole(app, "--accumulate",
            "compute the batch in so many pieces, one after the other: about as much less memory\n"
            "for activations, the same gradients (batch norm sees a piece at a time)",
            flags.train.micro_batches, 1, 256);
  add_value(app, "--image", "CxHxW", "image size of synthetic data, e.g. 3x224x224",
            [&options](const std::string& text) { take_image(options, text); });
  add_whole(app, "--classes", "classes of synthetic data", options.classes, 2);
  add_whole(app, "--hidden", "hidden size (mlp, lstm, gru)", options.hidden);
  add_whole(app, "--layers", "hidden or recurrent layers (mlp, lstm, gru)", options.layers);
  add_whole(app, "--embedding", "embedding size (lstm, gru); default: --hidden", options.embedding);
  add_whole(app, "--vocabulary", "token ids of synthetic text (lstm, gru)", options.vocabulary, 2);
  add_whole(app, "--seq-len", "time steps of one training step (lstm, gru)", options.seq_len);
  add_value(app, "--chunk", "N",
            "time steps that one node computes (lstm, gru), or auto: chosen together with the plan",
            [&flags, &options](const std::string& text) {
              flags.train.choose_chunk = text == "auto";
              options.chunk = flags.train.choose_chunk ? 0 : parse_whole("--chunk", text, 1);
            });
  add_value(app, "--dropout", "P", "probability of dropping, where the model has a place for it",
            [&options](const std::string& text) {
              options.dropout = parse_real("--dropout", text, 0, 0.999);
            });
  add_value(
      app, "--precision", "NUMBERS",
      "f32 (the default) or bf16: activations and their gradients take 2 bytes; parameters,\n"
      "their gradients, optimizer state and losses stay f32",
      [&options](const std::string& text) {
        options.precision = graph::parse_dtype(parse_choice("--precision", text, {"f32", "bf16"}));
      });
  app.add_flag("--sync-batch-norm", flags.train.session.synchronise_batch_norm,
               "on several ranks: batch norm takes its statistics from\n"
               "the items of all of them; alone it changes nothing");
  app.add_flag_callback(
      "--stateless", [&options] { options.stateful = false; },
      "start every window from zeros instead of carrying the\n"
      "state on (lstm, gru)");
}

void add_optimizer_flags(CLI::App& app, Flags& flags) {
  Flags::OptimizerFlags& optimizer = flags.optimizer;
  app.option_defaults()->group("Optimizer");
  add_value(app, "--optimizer", "NAME", "sgd, momentum (the default), nesterov, adam or adamw",
            [&optimizer](const std::string& text) {
              optimizer.name = parse_choice("--optimizer", text,
                                            {"sgd", "momentum", "nesterov", "adam", "adamw"});
            });
  add_value(app, "--lr", "RATE", "learning rate; default 0.05, or 0.001 for adam and adamw",
            [&optimizer](const std::string& text) {
              optimizer.rate = parse_real("--lr", text, 0, kHuge);
            });
  add_value(app, "--lr-schedule", "KIND",
            "constant (the default), cosine, or step[:PERIOD[:FACTOR]] (default: a tenth "
            "after each third of the run)",
            [&optimizer](const std::string& text) { take_schedule(optimizer, text); });
  add_whole(app, "--warmup", "first steps, over which the rate rises to --lr",
            optimizer.warmup_steps, 0);
  add_value(app, "--momentum", "M", "default 0.9 (momentum, nesterov)",
            [&optimizer](const std::string& text) {
              optimizer.momentum = parse_real("--momentum", text, 0, 0.9999);
            });
  add_value(app, "--weight-decay", "W", "default 0, or 0.01 for adamw",
            [&optimizer](const std::string& text) {
              optimizer.weight_decay = parse_real("--weight-decay", text, 0, kHuge);
            });
  add_value(app, "--clip-norm", "NORM",
            "scale all gradients down together where their common norm is above this",
            [&optimizer](const std::string& text) {
              optimizer.clip_norm = parse_real("--clip-norm", text, 0, kHuge, true);
            });
  app.add_flag("--skip-nonfinite", optimizer.skip_nonfinite,
               "leave everything as it is, on all ranks, in a step whose gradients' norm is not\n"
               "finite; 10 such steps in a row end the run");
  add_value(app, "--updates", "WHEN",
            "auto (the default): the planner places them, a gradient's bytes are then soon free "
            "again; end: after the last gradient, all of them are held until then, as --clip-norm "
            "and --skip-nonfinite need it anyway",
            [&flags](const std::string& text) {
              flags.train.updates_last = parse_choice("--updates", text, {"auto", "end"}) == "end";
            });
}

void add_planner_flags(CLI::App& app, Flags& flags) {
  api::PlanOptions& plan = flags.train.session.plan;
  app.option_defaults()->group("Memory");
  add_value(app, "--budget", "BYTES",
            "300MiB, 2GB, 40% (of keeping everything), floor (the least that the --planner can "
            "plan for) or "
            "unlimited (the default); everything counts: weights, optimizer state, activations, "
            "workspaces",
            [&flags, &plan](const std::string& text) {
              plan.budget = with_flag("--budget", [&] { return api::parse_budget(text); });
              flags.budget_text = text;
            });
  std::string help;
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    help +=
        fmt::format("{}{}: {}", help.empty() ? "" : "\n", strategy->name(), strategy->summary());
  }
  add_value(app, "--planner", "NAME", help + "\n(default auto)", [&plan](const std::string& text) {
    plan.planner =
        with_flag("--planner", [&] { return std::string(planner::find_strategy(text).name()); });
  });
  add_value(app, "--segments", "K", "planner segments: how many; default: its own choice",
            [&plan](const std::string& text) {
              plan.segments = static_cast<int>(parse_whole("--segments", text, 1, 1'000'000));
            });
}

void add_device_flags(CLI::App& app, Flags& flags) {
  api::SessionOptions& session = flags.train.session;
  app.option_defaults()->group("Device");
  add_value(app, "--device", "NAME",
            "cpu (the default), cuda (GPU 0, or GPU LOCAL_RANK of several ranks; cuda:K for GPU K) "
            "or reference (slow, double precision)",
            [&flags, &session](const std::string& text) {
              flags.device_given = true;
              const auto device = with_flag("--device", [&] { return api::parse_device(text); });
              session.device = device.device;
              session.ordinal = device.ordinal.value_or(0);
              flags.gpu_given = device.ordinal.has_value();
            });
  app.add_flag_callback(
      "--tf32",
      [&flags, &session] {
        flags.gpu_flag = "--tf32";
        session.tensor_floats = true;
      },
      "GPU: let products of f32 round their factors to TF32, which is faster");
  add_value(app, "--cuda-graph", "on|off",
            "GPU: record the step as one CUDA graph and play it (on, the default, where that "
            "works)",
            [&flags, &session](const std::string& text) {
              flags.gpu_flag = "--cuda-graph";
              session.record_steps = parse_choice("--cuda-graph", text, {"on", "off"}) == "on";
            });
  add_value(app, "--threads", "N", "default: every core this process may use",
            [&session](const std::string& text) {
              session.threads = static_cast<int>(parse_whole("--threads", text, 1, 1024));
              session.plan.threads = session.threads;
            });
  add_value(app, "--seed", "N", "of initial values, data order and random ops; default 1",
            [&session](const std::string& text) {
              session.seed = static_cast<std::uint64_t>(parse_whole("--seed", text, 0));
              session.plan.seed = session.seed;
            });
}

void add_costs_flag(CLI::App& app, Flags& flags) {
  api::SessionOptions& session = flags.train.session;
  session.costs = {.kind = api::CostChoice::Kind::kAuto};
  app.option_defaults()->group("Memory");
  add_value(app, "--costs", "COSTS",
            "auto (the default: what 'reprise profile' measured on this device, where it knows "
            "every node of the step; else analytic), analytic, or a file of 'reprise profile'",
            [&session](const std::string& text) { session.costs = api::parse_costs(text); });
}

void add_run_flags(CLI::App& app, Flags& flags) {
  api::TrainOptions& train = flags.train;
  app.option_defaults()->group("Run");
  CLI::Option* steps = add_value(
      app, "--steps", "N", "steps in all, those before a resume too",
      [&flags](const std::string& text) { flags.steps = parse_whole("--steps", text, 1); });
  add_value(app, "--epochs", "N", "passes over the data; default 1",
            [&flags](const std::string& text) { flags.epochs = parse_whole("--epochs", text, 1); })
      ->excludes(steps);
  add_value(app, "--save", "DIR", "write weights and snapshots there",
            [&train](const std::string& text) { train.save_folder = text; });
  add_whole(app, "--save-every", "steps between snapshots; default: after each epoch",
            train.save_every);
  add_value(app, "--resume", "PATH", "a snapshot, or a folder with snapshots: go on, bit for bit",
            [&train](const std::string& text) { train.resume = text; });
  app.add_flag("--augment", train.augment, "images: pad, crop and mirror at random");
  app.add_flag_callback(
      "--no-eval", [&train] { train.evaluate = false; },
      "do not evaluate on the test part, nor read it");
  app.add_flag("--debug", train.session.debug,
               "check every instruction: sentinels around what it writes, NaN in freed bytes");
}

void add_bucket_flag(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("Several ranks");
  add_value(app, "--bucket", "BYTES",
            "most that one sum of gradients over the ranks takes; an eighth of all gradients where "
            "that is less (25MiB)",
            [&flags](const std::string& text) {
              const base::Bytes bytes =
                  with_flag("--bucket", [&] { return base::parse_bytes(text); });
              if (bytes <= 0)
                throw base::input_error("--bucket '{}': must be more than 0 bytes", text);
              flags.train.session.bucket_bytes = bytes;
            });
}

void add_trace_flag(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("Run");
  add_value(
      app, "--trace", "FILE",
      "write what ran when in the third step (or the last), for ui.perfetto.dev; of several "
      "ranks each writes its own, FILE.rankN.json",
      [&flags](const std::string& text) {
        const std::filesystem::path path = text;
        const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
        if (!std::filesystem::is_directory(folder)) {
          throw base::input_error("--trace '{}': there is no folder '{}'", text, folder.string());
        }
        if (std::filesystem::is_directory(path)) {
          throw base::input_error("--trace '{}': is a folder; name a file in it", text);
        }
        flags.train.trace_file = path;
      });
}

void add_ranks_flags(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("Several ranks");
  add_value(app, "--devices", "LIST",
            "several devices in this process, such as cpu:4 (four of them) or cuda:0,1 (GPUs 0 "
            "and 1): each takes its part of every batch, with --budget and --threads for each "
            "(default: the cores shared out)",
            [&flags](const std::string& text) {
              flags.devices = with_flag("--devices", [&] { return api::parse_devices(text); });
            });
  add_value(app, "--comm-timeout", "SECONDS",
            "of what ranks do together: a rank that does not come by then has failed (30)",
            [&flags](const std::string& text) {
              flags.comm_timeout_seconds = parse_whole("--comm-timeout", text, 1, 86400);
            });
  add_value(app, "--compare-every", "STEPS",
            "steps between comparisons of the ranks' parameters; 0: at the end only (100)",
            [&flags](const std::string& text) {
              flags.train.compare_every = parse_whole("--compare-every", text, 0);
            });
  add_bucket_flag(app, flags);
}

api::TrainOptions complete_flags(const Flags& flags) {
  api::TrainOptions train = flags.train;
  const api::SessionOptions& session = train.session;
  if (session.plan.segments != 0 && session.plan.planner != "segments") {
    throw base::input_error("--segments {}: planner {} takes none; add --planner segments",
                            session.plan.segments, session.plan.planner);
  }
  if (flags.devices && flags.device_given && flags.devices->device != session.device) {
    throw base::input_error("--device {} and --devices {}:{} name different devices; leave one out",
                            session.device, flags.devices->device, flags.devices->count);
  }
  const std::string& device = flags.devices ? flags.devices->device : session.device;
  if (flags.gpu_flag && device != "cuda") {
    throw base::input_error("{}: device {} is no GPU; add --device cuda, or leave it out",
                            *flags.gpu_flag, device);
  }
  if (train.save_every > 0 && train.save_folder.empty()) {
    throw base::input_error("--save-every {}: say where with --save DIR", train.save_every);
  }
  train.optimizer = make_optimizer(flags.optimizer);
  train.steps = flags.steps.value_or(0);
  train.epochs = flags.epochs.value_or(1);
  return train;
}

}  // namespace reprise::cli
