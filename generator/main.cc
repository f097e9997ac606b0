// soliton-gen: reads a model and a card, writes the kernel.
#include <fmt/format.h>

#include <iostream>

#include "generator/generate.h"
#include "generator/options.h"
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

int run(int argc, char** argv) {
  const std::optional<Options> options = parse_options(argc, argv, std::cout);
  if (!options) return 0;
  const ModelConfig model = load_model_config(options->model);
  const GpuSpec gpu = load_gpu_spec(options->gpu_spec);
  const PlanChoices choices{.num_ctas = options->num_ctas.value_or(0),
                            .window = options->window.value_or(0),
                            .consumer_warps = options->consumer_warps.value_or(0),
                            .ring_slots = options->ring_slots.value_or(0),
                            .split_from_pages = options->split_from_pages.value_or(0),
                            .prefetch_pages = options->prefetch_pages,
                            .sync = options->sync};
  const Generated generated = generate_and_dump(*options, model, gpu, choices);
  if (options->dry_run) {
    fmt::print("{}", generated.files.at("plan.txt"));
    return 0;
  }
  const std::filesystem::path output = options->output.value_or(std::filesystem::path("generated") /
                                                                fmt::format("{}-{}", model.name, gpu.name));
  write_folder(output, generated.files);
  fmt::print("{}: {} CTAs, {} pages in flight, {:.1f} us a token predicted\n", output.string(),
             generated.plan.num_ctas, generated.plan.window, predicted_token_us(generated.plan));
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
