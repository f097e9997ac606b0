// soliton-gen: reads a model and a card, writes the kernel. A model is a YAML file, a Hugging Face folder or a GGUF file.
#include <fmt/format.h>

#include <iostream>

#include "generator/draw_plan.h"
#include "generator/generate.h"
#include "generator/options.h"
#include "generator/overrides.h"
#include "generator/text_writer.h"
#include "models/error.h"
#include "models/gguf.h"
#include "models/hf_config.h"
#include "models/printing.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/places.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/hub/fetch_model.h"
#include "runtime/program/nearest.h"

namespace soliton {
namespace {

/// generate(), with the dumps written even if the plan is refused.
Generated generate_and_dump(const Options& options, const ModelConfig& model,
                            const std::vector<GpuSpec>& gpus, const PlanChoices& choices) {
  try {
    Generated generated = generate(model, gpus, choices);
    if (options.dump) write_folder(*options.dump, generated.dumps);
    return generated;
  } catch (const PlanRefused& refusal) {
    if (options.dump) write_folder(*options.dump, refusal.dumps());
    throw;
  }
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;  // then opening it as a file says why
  return std::filesystem::is_directory(path, ignored);
}

/// The facts of a folder or a GGUF file. Named after the file that they are to be written to, if there is one.
ModelConfig read_folder(const Options& options) {
  const HfConfig config = HfConfig::open(options.model);
  const std::string name =
      options.write_model ? options.write_model->stem().string() : model_name_of(options.model);
  return {.name = name, .path = config_file(options.model).string(), .facts = config.facts};
}

ModelConfig read_facts(const Options& options) {
  if (is_folder(options.model) || is_gguf(options.model)) return read_folder(options);
  if (options.write_model) {
    throw Error(ExitCode::kUsage,
                fmt::format("--write-model: expected a Hugging Face folder or a GGUF file, got {}",
                            options.model.string()));
  }
  return load_model_config(options.model);
}

ModelConfig read_model(const Options& options) {
  ModelConfig model = read_facts(options);
  if (options.kv_bits) model.facts.kv_bits = *options.kv_bits;
  return model;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  write_folder(folder, {{path.filename().string(), text}});
}

void write_model(const std::filesystem::path& path, const ModelConfig& model) {
  write_file(path, format_model_config(model.name, model.facts, "Source: " + model.path + "."));
  print(fmt::format("{}: facts of {}\n", path.string(), model.path));
}

/// What the flags decide, and what is left open by the overrides, if there are any.
PlanChoices choose(const Options& options, const GpuSpec& gpu) {
  if (!options.tuned || is_folder(options.model)) return options.choices;
  const std::filesystem::path path = overrides_path(options.model, gpu.name);
  const std::optional<PlanChoices> overrides = load_overrides(path);
  return overrides ? with_overrides(options.choices, *overrides, path) : options.choices;
}

/// Says on which cards the weights and a page of context have no room.
void warn_of_memory(const Plan& plan) {
  const auto needed = static_cast<double>(device_bytes(plan, kKvPageTokens));
  for (const GpuSpec& gpu : plan.cards) {
    if (needed <= gpu.memory_bytes) continue;
    say("soliton-gen: warning: {}: expected {:.1f} GB of device memory for weights and {} tokens of context, "
        "got {:.1f} GB of {}",
        plan.model, needed * 1e-9, kKvPageTokens, gpu.memory_bytes * 1e-9, gpu.name);
  }
}

/// Throws Error (kNotFound) of a file of facts that is not there, with the nearest one beside its place.
void check_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return;
  std::vector<std::string> names;
  const std::filesystem::path folder = file.parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().filename());
  }
  const std::string nearest = nearest_word(file.filename().string(), names);
  throw file_error(ExitCode::kNotFound, file.string(),
                   "expected a readable file, got: No such file or directory{}",
                   did_you_mean(nearest.empty() ? nearest : (folder / nearest).string()));
}

/// Has a model that is named as on Hugging Face stand for its folder in the cache.
void find_folder(Options& options) {
  const std::string model = options.model.string();
  const bool is_file = options.model.extension() == ".yaml" || options.model.extension() == ".yml";
  if (!options.hub.revision.empty() || (!is_file && names_repository(model)))
    options.model = fetch_model(model, options.hub, {.text = false, .weights = false});
  if (is_file) check_file(options.model);
}

/// Compiles output/kernel.cu for the card into kernel.so beside it, which is replaced by a whole one or not at all.
void compile(const std::filesystem::path& output, const GpuSpec& gpu) {
  const std::filesystem::path sources = sources_folder();
  Compiler compiler = find_compiler(gpu.emulated);
  if (!gpu.emulated) compiler.target = nvcc_target(gpu);
  const ScratchFolder scratch(output / ".compiling-");
  for (const char* file : {"kernel.cu", "plan.h"})
    std::filesystem::copy_file(output / file, scratch.path() / file);
  const Compilation result = compile_kernel(compiler, scratch.path(), sources);
  const std::filesystem::path log = output / "compiler.log";
  const std::filesystem::path library = output / "kernel.so";
  if (result.status != 0) {
    std::error_code ignored;  // there is a complaint already
    std::filesystem::rename(scratch.path() / log.filename(), log, ignored);
    throw file_error(ExitCode::kMakeFailed, log.string(), "expected a kernel from {}, got status {}: {}",
                     compiler.program, result.status, result.complaint);
  }
  if (!result.spills.empty()) say("soliton-gen: warning: {}: {}", library.string(), result.spills);
  std::filesystem::rename(scratch.path() / library.filename(), library);
  print(fmt::format("{}: compiled by {}\n", library.string(), compiler_version(compiler)));
}

int run(int argc, char** argv) {
  std::optional<Options> options = parse_options(argc, argv, std::cout);
  if (!options) return 0;
  find_folder(*options);
  const ModelConfig model = read_model(*options);
  if (options->write_model) write_model(*options->write_model, model);
  if (options->gpu_specs.empty()) return 0;
  std::vector<GpuSpec> gpus;
  for (const std::filesystem::path& path : options->gpu_specs) {
    const GpuSpec gpu = load_gpu_spec(path);
    gpus.push_back(options->ptx ? with_ptx(gpu, *options->ptx) : gpu);
  }
  const PlanChoices choices = choose(*options, gpus.front());
  const Generated generated = generate_and_dump(*options, model, gpus, choices);
  warn_of_memory(generated.plan);
  if (options->svg) write_file(*options->svg, draw(generated.plan));
  if (options->dry_run) {
    print(generated.files.at("plan.txt"));
    return 0;
  }
  const std::filesystem::path output = options->output.value_or(
      std::filesystem::path("generated") /
      fmt::format("{}-{}{}", model.name, generated.plan.gpu,
                  choices.num_cards > 1 ? fmt::format("-x{}", choices.num_cards) : ""));
  write_folder(output, generated.files);
  print(fmt::format("{}: {} CTAs, {} pages in flight, {:.1f} us a token predicted{}\n", output.string(),
                    generated.plan.num_ctas, generated.plan.window, predicted_token_us(generated.plan, 0),
                    choices.tuned.empty() ? "" : "; tuned: " + choices.tuned));
  flush_stdout();  // compiling takes a while
  if (options->compile) compile(output, generated.plan.limits);
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-gen", soliton::run, argc, argv);
}
