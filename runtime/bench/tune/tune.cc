#include "runtime/bench/tune/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "generator/generate.h"
#include "generator/overrides.h"
#include "generator/text_writer.h"
#include "models/error.h"
#include "models/kept_file.h"
#include "runtime/bench/measure.h"
#include "runtime/bench/output.h"
#include "runtime/bench/tune/search.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/places.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/device/read_bandwidth.h"
#include "runtime/engine/engine.h"
#include "runtime/make/gpu_for_device.h"
#include "runtime/program/program.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// A plan and what was measured of it last.
struct Candidate {
  Generated generated;
  fs::path folder;
  std::vector<double> predicted_us;  // of a token at each depth
  double ceiling = 0;                // S, bytes per second; 0 in emulation
  std::vector<double> of_ceiling;    // at each depth
};

/// Generates, compiles and runs kernels.
class Workshop : public Trials {
 public:
  Workshop(const TuneOptions& options, const ModelConfig& model, const GpuSpec& gpu)
      : options_(options), model_(model), gpu_(gpu), compiler_(compiler_for(gpu)) {}

  Planned plan(const PlanChoices& choices) override {
    try {
      Generated generated = generate(model_, gpu_, choices);
      const KnobValues values = knob_values(generated.plan);
      Candidate& candidate = candidates_[values];
      if (candidate.generated.files.empty()) {
        for (const int depth : options_.depths) {
          candidate.predicted_us.push_back(predicted_token_us(generated.plan, depth + options_.tokens / 2));
        }
        candidate.folder = scratch_.path() / fmt::format("{}", candidates_.size());
        candidate.generated = std::move(generated);
      }
      return {.values = values};
    } catch (const Error& refusal) {
      return {.refusal = refusal.what()};
    }
  }

  std::vector<std::string> build(const std::vector<KnobValues>& plans) override {
    std::vector<fs::path> folders;
    for (const KnobValues& plan : plans) {
      const Candidate& candidate = candidates_.at(plan);
      write_folder(candidate.folder, candidate.generated.files);
      folders.push_back(candidate.folder);
    }
    if (!folders.empty()) {
      say("Compiling {} kernel{}", folders.size(), folders.size() == 1 ? "" : "s");
    }
    return compile_kernels(compiler_, folders, sources_folder());
  }

  std::vector<double> measure(const KnobValues& plan) override {
    Candidate& candidate = candidates_.at(plan);
    const int context =
        *std::max_element(options_.depths.begin(), options_.depths.end()) + options_.tokens + 1;
    KernelLibrary library = KernelLibrary::open(candidate.folder / "kernel.so");
    library.select_device(options_.device);
    candidate.ceiling = measure_read_bandwidth(library, kBandwidthRepeats).best();
    Engine engine(std::move(library), {.context = context, .device = options_.device});
    engine.load_random(options_.seed);  // for each kernel anew: the plan decides how they are packed
    engine.randomise_cache(options_.seed);
    device_ = engine.library().device();
    candidate.of_ceiling.clear();
    std::vector<double> us;
    for (const int depth : options_.depths) {
      const GenerationTest test{
          .tokens = options_.tokens, .depth = depth, .repeats = options_.repeats, .seed = options_.seed};
      const Row row = measure_generation(engine, test, candidate.ceiling);
      us.push_back(row.p50_us);
      candidate.of_ceiling.push_back(row.of_ceiling);
    }
    return us;
  }

  const Candidate& candidate(const KnobValues& plan) const { return candidates_.at(plan); }
  const DeviceInfo& device() const { return device_; }

 private:
  const TuneOptions& options_;
  const ModelConfig& model_;
  const GpuSpec& gpu_;
  const Compiler compiler_;
  const ScratchFolder scratch_{fs::temp_directory_path() / "soliton-tune-"};
  std::map<KnobValues, Candidate> candidates_;
  DeviceInfo device_{};
};

/// "3400.1 / 3551.9": one number for each depth.
std::string list_numbers(const std::vector<double>& values, double scale = 1) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.1f}", text.empty() ? "" : " / ", value * scale);
  return text;
}

std::string show_choices(const Trial& trial) {
  const std::string knobs = describe_knobs(trial.choices);
  return knobs.empty() ? "the planner's choice" : knobs;
}

void report(const Trial& trial) {
  if (trial.refusal.empty()) {
    say("{}: {} us a token", show_choices(trial), list_numbers(trial.us));
  } else {
    say("{}: skipped: {}", show_choices(trial), trial.refusal);
  }
}

std::string show_ceiling(double ceiling) {
  return ceiling > 0 ? fmt::format("{:.3f} TB/s", ceiling * 1e-12) : "none, the kernel is emulated";
}

/// Everything that a result is written from.
struct Results {
  const TuneOptions& options;
  const ModelConfig& model;
  const GpuSpec& gpu;
  const Workshop& workshop;
  const SearchResult& search;
  const fs::path& path;  // of the overrides

  bool is_tuned() const { return search.best != 0; }
  const Trial& own() const { return search.trials.front(); }
  const Trial& best() const { return search.trials[search.best]; }
  double ceiling() const { return workshop.candidate(best().values).ceiling; }
  std::string depths() const { return fmt::format("{}", fmt::join(options.depths, " / ")); }
};

std::string planned_knobs(const KnobValues& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", kKnobs[i].name, values[i]);
  }
  return text;
}

std::string markdown(const Results& results) {
  const DeviceInfo& device = results.workshop.device();
  std::string text = fmt::format("{} on {}, planned for {}, driver {}, SM {} MHz, memory {} MHz\n",
                                 results.model.name, device.name, results.gpu.name, device.driver_version,
                                 device.sm_clock_khz / 1000, device.memory_clock_khz / 1000);
  text += fmt::format("S (read bandwidth, same run): {}\n", show_ceiling(results.ceiling()));
  text += fmt::format("The planner's choice: {}\n\n", planned_knobs(results.own().values));
  text +=
      fmt::format("| knobs | predicted us at context {0} | us (p50) at {0} | of S, % |\n", results.depths());
  text += "| --- | --- | --- | --- |\n";
  for (const Trial& trial : results.search.trials) {
    if (!trial.refusal.empty()) {
      text += fmt::format("| {} | - | {} | - |\n", show_choices(trial), trial.refusal);
      continue;
    }
    const Candidate& candidate = results.workshop.candidate(trial.values);
    text += fmt::format("| {} | {} | {} | {} |\n", show_choices(trial), list_numbers(candidate.predicted_us),
                        list_numbers(trial.us),
                        candidate.ceiling > 0 ? list_numbers(candidate.of_ceiling, 100) : "-");
  }
  return text + "\n" +
         (results.is_tuned()
              ? fmt::format("Best: {}; written to {}\n", describe_knobs(results.search.chosen),
                            results.path.string())
              : fmt::format("Nothing beats the planner's choice by more than {:.1f} %: no {}\n", kNoise * 100,
                            results.path.string()));
}

nlohmann::ordered_json knobs_as_json(const PlanChoices& choices) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Knob& knob : kKnobs) {
    if (const std::optional<int> value = knob.chosen(choices)) json[knob.name] = *value;
  }
  return json;
}

nlohmann::ordered_json values_as_json(const KnobValues& values) {
  nlohmann::ordered_json json;
  for (size_t i = 0; i < values.size(); ++i) json[kKnobs[i].name] = values[i];
  return json;
}

std::string as_json(const Results& results) {
  const DeviceInfo& device = results.workshop.device();
  nlohmann::ordered_json json{{"command", results.options.command},
                              {"model", results.model.name},
                              {"kernel_gpu", results.gpu.name},
                              {"weights", "random"},
                              {"device", device.name},
                              {"driver", device.driver_version},
                              {"sm_clock_khz", device.sm_clock_khz},
                              {"memory_clock_khz", device.memory_clock_khz},
                              {"read_bandwidth_bytes_per_s", results.ceiling()},
                              {"depths", results.options.depths},
                              {"tokens", results.options.tokens},
                              {"repeats", results.options.repeats},
                              {"chosen", knobs_as_json(results.search.chosen)},
                              {"rows", nlohmann::ordered_json::array()}};
  for (const Trial& trial : results.search.trials) {
    nlohmann::ordered_json row{{"chosen", knobs_as_json(trial.choices)}};
    if (trial.refusal.empty()) {
      const Candidate& candidate = results.workshop.candidate(trial.values);
      row["planned"] = values_as_json(trial.values);
      row["predicted_us"] = candidate.predicted_us;
      row["token_us_p50"] = trial.us;
      row["read_bandwidth_bytes_per_s"] = candidate.ceiling;
      row["of_read_bandwidth"] = candidate.of_ceiling;
    } else {
      row["skipped"] = trial.refusal;
    }
    json["rows"].push_back(row);
  }
  return json.dump(2) + "\n";
}

std::string comment(const Results& results) {
  return fmt::format(
      "Measured on {} at context {}: {} us a token,\n"
      "{} with the planner's choice. S: {}. Written by:\n"
      "{}",
      results.workshop.device().name, results.depths(), list_numbers(results.best().us),
      list_numbers(results.own().us), show_ceiling(results.ceiling()), results.options.command);
}

std::vector<Knob> selected_knobs(const std::vector<std::string>& names) {
  std::vector<Knob> knobs;
  for (const Knob& knob : kKnobs) {
    if (names.empty() || std::find(names.begin(), names.end(), knob.name) != names.end()) {
      knobs.push_back(knob);
    }
  }
  return knobs;
}

void check_context(const TuneOptions& options, const ModelFacts& facts) {
  const int64_t depth = *std::max_element(options.depths.begin(), options.depths.end());
  if (depth + options.tokens < facts.max_context) return;
  throw Error(ExitCode::kOutOfMemory,
              fmt::format("--n-depth and --n-gen: expected less than the model's {} tokens, got {} and {}",
                          facts.max_context, depth, options.tokens));
}

}  // namespace

std::vector<std::string> knob_names() {
  std::vector<std::string> names;
  for (const Knob& knob : kKnobs) names.push_back(knob.name);
  return names;
}

void tune(const TuneOptions& options) {
  const ModelConfig model = load_model_config(options.model);
  const GpuSpec gpu = load_gpu_spec(find_gpu_spec(options.gpu, default_gpus_dir()));
  const fs::path path = overrides_path(options.model, gpu.name);
  const std::optional<PlanChoices> start = load_overrides(path);
  check_context(options, model.facts);
  check_writable(path, true);
  if (!options.json_file.empty()) check_writable(options.json_file);

  Workshop workshop(options, model, gpu);
  const SearchResult found = search(workshop, gpu, start, selected_knobs(options.knobs), report);
  const Results results{options, model, gpu, workshop, found, path};
  const std::string json = as_json(results);
  if (results.is_tuned()) {
    fs::create_directories(fs::absolute(path).parent_path());
    write_kept_file(path, format_overrides(found.chosen, comment(results)));
  } else {
    fs::remove(path);
  }
  print(options.json ? json : markdown(results));
  flush_stdout();
  if (!options.json_file.empty()) write_file(options.json_file, json);
}

}  // namespace soliton
