// soliton-gen: reads a model and a card, writes the kernel.
#include <fmt/format.h>

#include <iostream>

#include "generator/generate.h"
#include "generator/options.h"
#include "generator/overrides.h"
#include "generator/text_writer.h"

namespace soliton {
namespace {

/// generate(), with the dumps written even if the plan is refused.
Generated generate_and_dump(const Options& options, const ModelConfig& model, const GpuSpec& gpu,
                            const PlanChoices& choices) {
  try {
    Generated generated = generate(model, gpu, choices);
    if (options.dump) write_folder(*options.dump, generated.dumps);
    return generated;
  } catch (const PlanRefused& refusal) {
    if (options.dump) write_folder(*options.dump, refusal.dumps());
    throw;
  }
}

/// What the flags decide, and what is left open by the overrides, if there are any.
PlanChoices choose(const Options& options, const GpuSpec& gpu) {
  if (!options.tuned) return options.choices;
  const std::filesystem::path path = overrides_path(options.model, gpu.name);
  const std::optional<PlanChoices> overrides = load_overrides(path);
  return overrides ? with_overrides(options.choices, *overrides, path) : options.choices;
}

int run(int argc, char** argv) {
  const std::optional<Options> options = parse_options(argc, argv, std::cout);
  if (!options) return 0;
  const ModelConfig model = load_model_config(options->model);
  const GpuSpec gpu = load_gpu_spec(options->gpu_spec);
  const PlanChoices choices = choose(*options, gpu);
  const Generated generated = generate_and_dump(*options, model, gpu, choices);
  if (options->dry_run) {
    fmt::print("{}", generated.files.at("plan.txt"));
    return 0;
  }
  const std::filesystem::path output = options->output.value_or(std::filesystem::path("generated") /
                                                                fmt::format("{}-{}", model.name, gpu.name));
  write_folder(output, generated.files);
  fmt::print("{}: {} CTAs, {} pages in flight, {:.1f} us a token predicted{}\n", output.string(),
             generated.plan.num_ctas, generated.plan.window, predicted_token_us(generated.plan, 0),
             choices.tuned.empty() ? "" : "; tuned: " + choices.tuned);
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  try {
    return soliton::run(argc, argv);
  } catch (const soliton::UserError& error) {
    fmt::print(stderr, "soliton-gen: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "soliton-gen: internal error: {}\n", error.what());
    return static_cast<int>(soliton::ExitCode::kInternal);
  }
}
