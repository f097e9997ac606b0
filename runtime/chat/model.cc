#include "runtime/chat/model.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/error.h"
#include "runtime/progress.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

fs::path kernels_folder() {
  const char* chosen = std::getenv("SOLITON_KERNELS");
  if (chosen != nullptr) return chosen;
  return fs::read_symlink("/proc/self/exe").parent_path() / "kernels";
}

/// Has the library a kernel for as many rows a step as the flags ask for?
void check_samples(const Options& options, const KernelLibrary& library) {
  const int rows = library.max_rows();
  if (options.num_samples > rows) {
    throw Error(ExitCode::kUsage,
                fmt::format("--parallel: expected at most {}, got {}: {} takes {} row{} a step", rows,
                            options.num_samples, library.path(), rows, rows > 1 ? "s" : ""));
  }
  check_rows(options.sampling(), library);
}

}  // namespace

TextSide::TextSide(const Options& options)
    : config(HfConfig::open(options.model)),
      tokenizer(Tokenizer::open(options.model)),
      prompter(Prompter::open(tokenizer, options.model, options.template_file, options.raw)),
      style{.stop_tokens = options.ignore_stop ? std::vector<int>{} : config.eos_ids,
            .stops = options.stops,
            .skips_special = prompter.has_template()} {
  if (options.system && !prompter.has_template()) {
    throw Error(ExitCode::kUsage,
                fmt::format("--system-prompt: expected a model with a chat template, got {} (--chat-template "
                            "takes one)",
                            options.model));
  }
}

int choose_context(const Options& options, const ModelFacts& facts) {
  const int limit = facts.max_context;
  if (options.context > limit) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--ctx-size: expected at most the model's {} tokens, got {}", limit, options.context));
  }
  return options.context > 0 ? options.context : std::min(Options::kDefaultContext, limit);
}

std::unique_ptr<Engine> open_engine(const Options& options, const HfConfig& config, int context,
                                    int64_t pool_tokens) {
  const TensorSource source = TensorSource::open(options.model);
  const fs::path kernel = options.kernel.empty() ? find_kernel(kernels_folder(), config.facts, options.device)
                                                 : fs::path(options.kernel);
  KernelLibrary library = KernelLibrary::open(kernel);
  check_facts(library.descriptor(), config.facts, (fs::path(options.model) / "config.json").string());
  check_samples(options, library);
  auto engine = std::make_unique<Engine>(
      std::move(library),
      EngineOptions{.context = context, .pool_tokens = pool_tokens, .device = options.device});
  Progress progress("Weights", weight_load_bytes(engine->library().descriptor()));
  engine->load(source, &progress, config.quantization_or_null());
  progress.finish();
  return engine;
}

}  // namespace soliton
