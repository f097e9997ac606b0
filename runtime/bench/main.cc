// soliton-bench: how fast a kernel decodes, per token, beside the read bandwidth measured in the same run.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "models/error.h"
#include "models/gguf.h"
#include "models/hf_config.h"
#include "models/model_config.h"
#include "models/weight_rounding.h"
#include "runtime/answer/model.h"
#include "runtime/bench/decoding.h"
#include "runtime/bench/edge.h"
#include "runtime/bench/options.h"
#include "runtime/bench/output.h"
#include "runtime/bench/predict/predict.h"
#include "runtime/bench/tune/tune.h"
#include "runtime/compile/places.h"
#include "runtime/engine/engine.h"
#include "runtime/hub/fetch_model.h"
#include "runtime/make/make_kernel.h"
#include "runtime/make/measured_costs.h"
#include "runtime/program/program.h"
#include "runtime/program/progress.h"

namespace soliton {
namespace {

/// Seconds since `begin`.
double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A model as a folder has it.
struct Model {
  HfConfig config;
  TensorSource source;
  ModelTensors tensors;
  std::filesystem::path folder;
};

/// Nothing where weights are random. Tensors are found before a kernel is made that they would not fit.
std::unique_ptr<Model> open_model(const BenchOptions& options) {
  if (options.model.empty()) return nullptr;
  const std::filesystem::path folder = fetch_model(options.model, options.hub, {.text = false});
  auto model = std::make_unique<Model>(Model{HfConfig::open(folder), TensorSource::open(folder), {}, folder});
  round_weights(options.weights, model->config);
  model->tensors = find_tensors(model->source, model->config.quantization_or_null(), model->config.facts,
                                model->config.checkpoint);
  return model;
}

struct OpenedKernel {
  KernelLibrary library;
  std::optional<double> make_s;  // nothing: it was there
};

/// The kernel that was named, or one for the model on this machine, which may have to be made.
OpenedKernel open_kernel(const BenchOptions& options, const Model* model) {
  if (!options.kernel.empty()) return {KernelLibrary::open(options.kernel), std::nullopt};
  const MakeKernelRequest request{.facts = model->config.facts,
                                  .name = model_name_of(model->folder),
                                  .source = config_file(model->folder).string(),
                                  .kernels = shipped_kernels_folder(),
                                  .device = options.device,
                                  .cards = options.cards};
  if (const auto found = find_kernel(request)) return {KernelLibrary::open(*found), std::nullopt};
  const auto begin = std::chrono::steady_clock::now();
  const std::filesystem::path made = find_or_make_kernel(request);
  return {KernelLibrary::open(made), seconds_since(begin)};
}

void select(KernelLibrary& library, const BenchOptions& options) {
  if (options.cards.empty()) {
    library.select_device(options.device);
  } else {
    library.select_cards(options.cards);
  }
}

void load(Engine& engine, const BenchOptions& options, const Model* model) {
  if (model == nullptr) {
    engine.load_random(options.seed);
    return;
  }
  Progress progress("Weights", weight_load_bytes(engine.library()));
  engine.load(model->tensors, &progress);
  progress.finish();
  for (const std::string& remark : model->tensors.remarks) say_line(remark);
}

void write_outputs(const BenchOptions& options, const std::string& text, const std::string& json) {
  print(text);
  flush_stdout();
  if (!options.output.empty()) write_file(options.output, json);
}

void run_decoding(const BenchOptions& options, KernelLibrary library, const Model* model,
                  const std::string& command) {
  const int context = needed_context(options, library.model().facts);
  select(library, options);
  const ReadBandwidth bandwidth = measure_read_bandwidth(library, kBandwidthRepeats);
  const int64_t pool_tokens = needed_pool(options, library);
  Engine engine(
      std::move(library),
      {.context = context, .pool_tokens = pool_tokens, .device = options.device, .cards = options.cards});
  load(engine, options, model);
  engine.randomise_cache(options.seed);
  if (!options.calibrate) plan_by_kept_costs(engine);
  TestProgress progress(count_tests(options, engine));
  const DecodingResults results = measure_decoding(engine, options, bandwidth, progress);
  if (options.calibrate) keep_measured_costs(engine.library(), kernel_cache_folder());
  const std::string json = as_json(engine, options, results, command);
  std::string text = options.format == "json" ? json : markdown(engine, results);
  if (!options.timeline.empty()) {
    const Timeline timeline = record_timeline(engine, options);
    write_file(options.timeline, options.timeline.ends_with(".svg") ? timeline.svg() : timeline.trace());
    if (options.format == "md") text += "\n" + timeline.table();
  }
  write_outputs(options, text, json);
}

/// What the card's spec says of the report's contexts, in the middle of what is measured.
void predict_edge(const ModelFacts& facts, EdgeReport& report) {
  if (report.is_emulated()) {
    report.not_predicted = "the kernel is emulated";
    return;
  }
  std::vector<int> middles;
  for (const EdgeContext& context : report.contexts)
    middles.push_back(context.tokens + report.test.tokens / 2);
  try {
    const TokenPrediction prediction = predict_tokens(facts, report.device, middles);
    report.predicted_for = prediction.gpu;
    for (size_t i = 0; i < middles.size(); ++i) report.contexts[i].predicted_us = prediction.token_us[i];
  } catch (const Error& refusal) {
    report.not_predicted = refusal.what();
  }
}

void run_edge(const BenchOptions& options, OpenedKernel kernel, const Model* model,
              const std::string& command) {
  KernelLibrary library = std::move(kernel.library);
  select(library, options);
  const ModelFacts facts = library.model().facts;
  EdgeReport report{.command = command,
                    .model = library.model().name,
                    .weights = options.random_weights ? "random" : options.model,
                    .kernel_gpu = library.card().name,
                    .num_ctas = library.descriptor().num_ctas,
                    .device_index = options.device,
                    .device = library.device(),
                    .make_s = kernel.make_s};
  report.test = usual_edge_test({.prompts = options.prompts,
                                 .contexts = options.depths,
                                 .tokens = options.tokens.empty() ? 0 : options.tokens.front(),
                                 .repeats = options.repeats,
                                 .seed = options.seed},
                                facts, report.is_emulated());
  report.bandwidth = measure_read_bandwidth(library, kBandwidthRepeats);
  Engine engine(std::move(library),
                {.context = edge_context(report.test), .device = options.device, .cards = options.cards});
  const auto begin = std::chrono::steady_clock::now();
  load(engine, options, model);
  report.load_s = seconds_since(begin);
  if (!report.is_emulated()) {
    DeviceInfo now{};
    engine.library().check(engine.library().functions().open(options.device, &now),
                           "ask for the free memory");
    report.memory.device = report.device.free_bytes - now.free_bytes;
    report.memory.device_total = now.total_bytes;
  }
  TestProgress progress(static_cast<int>(report.test.prompts.size() + report.test.contexts.size()));
  measure_edge(engine, report, progress);
  predict_edge(facts, report);
  const std::string json = edge_json(report);
  const std::string page = edge_svg(report);
  write_outputs(options,
                options.format == "json"  ? json
                : options.format == "svg" ? page
                                          : edge_markdown(report),
                json);
  if (!options.svg.empty()) write_file(options.svg, page);
}

void run_tune(const BenchOptions& options, const std::string& command) {
  tune({.model = options.tune,
        .gpu = options.gpu,
        .knobs = options.knobs,
        .depths = options.depths,
        .tokens = options.tokens.front(),
        .repeats = options.repeats,
        .device = options.device,
        .seed = options.seed,
        .json = options.format == "json",
        .json_file = options.output,
        .command = command});
}

int run(int argc, char** argv) {
  const std::optional<BenchOptions> parsed = parse_bench_options(argc, argv);
  if (!parsed) return 0;
  const BenchOptions& options = *parsed;
  const std::string command = command_line(argc, argv);
  if (!options.tune.empty()) {
    run_tune(options, command);
    return 0;
  }
  for (const std::string& file : {options.output, options.timeline, options.svg}) {
    if (!file.empty()) check_writable(file);
  }
  if (!options.draft_kernel.empty()) KernelLibrary::open(options.draft_kernel);  // throws
  const std::unique_ptr<Model> model = open_model(options);
  OpenedKernel kernel = open_kernel(options, model.get());
  if (model) check_facts(kernel.library.model(), model->config.stated);
  if (options.edge) {
    run_edge(options, std::move(kernel), model.get(), command);
  } else {
    run_decoding(options, std::move(kernel.library), model.get(), command);
  }
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-bench", soliton::run, argc, argv);
}
