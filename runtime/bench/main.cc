// soliton-bench: how fast a kernel decodes, per token, beside the read bandwidth measured in the same run.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "models/error.h"
#include "models/hf_config.h"
#include "models/model_config.h"
#include "runtime/bench/decoding.h"
#include "runtime/bench/options.h"
#include "runtime/bench/output.h"
#include "runtime/engine.h"
#include "runtime/find_model.h"
#include "runtime/program.h"
#include "runtime/progress.h"
#include "runtime/tools/make/make_kernel.h"
#include "runtime/tools/make/places.h"
#include "runtime/tools/tune/tune.h"

namespace soliton {
namespace {

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
  const std::filesystem::path folder = find_model(options.model);
  auto model = std::make_unique<Model>(Model{HfConfig::open(folder), TensorSource::open(folder), {}, folder});
  model->tensors = find_tensors(model->source, model->config.quantization_or_null(), model->config.facts);
  return model;
}

/// The kernel that was named, or one for the model on this machine, which may have to be made.
KernelLibrary open_kernel(const BenchOptions& options, const Model* model) {
  if (!options.kernel.empty()) return KernelLibrary::open(options.kernel);
  return KernelLibrary::open(find_or_make_kernel({.facts = model->config.facts,
                                                  .name = model_name_of(model->folder),
                                                  .source = (model->folder / "config.json").string(),
                                                  .kernels = shipped_kernels_folder(),
                                                  .device = options.device}));
}

void load(Engine& engine, const BenchOptions& options, const Model* model) {
  if (model == nullptr) {
    engine.load_random(options.seed);
    return;
  }
  Progress progress("Weights", weight_load_bytes(engine.library().model()));
  engine.load(model->tensors, &progress);
  progress.finish();
}

void write_outputs(const BenchOptions& options, const std::string& text, const std::string& json) {
  fmt::print("{}", text);
  flush_stdout();
  if (!options.output.empty()) write_file(options.output, json);
}

void run_decoding(const BenchOptions& options, KernelLibrary library, const Model* model,
                  const std::string& command) {
  const int context = needed_context(options, library.model().facts);
  library.select_device(options.device);
  const ReadBandwidth bandwidth = measure_read_bandwidth(library, kBandwidthRepeats);
  const int64_t pool_tokens = needed_pool(options, library);
  Engine engine(std::move(library),
                {.context = context, .pool_tokens = pool_tokens, .device = options.device});
  load(engine, options, model);
  engine.randomise_cache(options.seed);
  const DecodingResults results = measure_decoding(engine, options, bandwidth);
  const std::string json = as_json(engine, options, results, command);
  std::string text = options.format == "json" ? json : markdown(engine, results);
  if (!options.timeline.empty()) {
    const Timeline timeline = record_timeline(engine, options);
    write_file(options.timeline, timeline.trace());
    if (options.format == "md") text += "\n" + timeline.table();
  }
  write_outputs(options, text, json);
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
  for (const std::string& file : {options.output, options.timeline}) {
    if (!file.empty()) check_writable(file);
  }
  const std::unique_ptr<Model> model = open_model(options);
  KernelLibrary library = open_kernel(options, model.get());
  if (model) check_facts(library.model(), model->config.stated);
  run_decoding(options, std::move(library), model.get(), command);
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-bench", soliton::run, argc, argv);
}
