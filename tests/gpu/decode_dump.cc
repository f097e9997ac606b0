// decode-dump: what a kernel decodes from a folder without a tokenizer, for
// tests/goldens/compare_transformers.py. Writes {"prompt", "tokens"} and, on request, raw float32 logits;
// repeats launches to see that all bits are the same, each with delays of its own if the kernel has any. With --rows
// as many branches continue the same prompt together, and all of them must choose alike.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "layout/random.h"
#include "models/error.h"
#include "models/hf_config.h"
#include "runtime/engine/engine.h"

namespace soliton {
namespace {

constexpr int64_t kBranchTokens = 1024;  // of the pool for each row

struct Options {
  std::string model;
  std::string kernel;
  std::string output;
  std::string logits;
  std::vector<int> positions;
  int prompt_tokens = 8;
  int tokens = 256;
  int launches = 1;
  int rows = 1;
  uint64_t seed = 1;
  uint64_t timeout_ms = 2000;
  int lost_card = -1;
};

void write_floats(const std::string& path, const std::vector<float>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!file.flush()) throw Error(ExitCode::kNotFound, path + ": expected a file that can be written");
}

/// Logits at chosen positions of the prompt, one row each.
std::vector<float> logits_at(Engine& engine, const std::vector<int32_t>& prompt,
                             const std::vector<int>& positions) {
  std::vector<float> rows;
  int next = 0;
  for (const int position : positions) {
    engine.set_position(next);
    const std::span<const int32_t> tokens(prompt.data() + next, static_cast<size_t>(position + 1 - next));
    const DecodeResult result = engine.decode({.tokens = tokens, .max_tokens = 1, .want_logits = true});
    rows.insert(rows.end(), result.logits.begin(), result.logits.end());
    next = position + 1;
  }
  return rows;
}

/// `rows` branches behind the prompt, decoded together: what each of them chose.
DecodeResult decode_branches(Engine& engine, const std::vector<int32_t>& prompt, const Options& options) {
  const std::span<const int32_t> fed(prompt.data(), prompt.size() - 1);
  if (!fed.empty()) engine.feed(engine.main_branch(), fed);
  engine.tree().fork(engine.main_branch(), options.rows);
  const std::vector<int32_t> tokens(options.rows, prompt.back());
  const bool want_logits = !options.logits.empty();
  const TreeResult all =
      engine.decode_tree({.tokens = tokens, .num_steps = options.tokens, .want_logits = want_logits});
  DecodeResult first;
  const size_t vocabulary = all.logits.size() / all.chosen.size();
  for (int step = 0; step < all.num_steps; ++step) {
    const size_t line = static_cast<size_t>(step) * options.rows;
    first.tokens.push_back(all.chosen[line]);
    for (int row = 1; row < options.rows; ++row) {
      if (all.chosen[line + row] == all.chosen[line]) continue;
      throw Error(ExitCode::kMismatch, fmt::format("step {}: row {} chose {}, row 0 chose {}", step, row,
                                                   all.chosen[line + row], all.chosen[line]));
    }
    const auto logits = all.logits.begin() + static_cast<ptrdiff_t>(line * vocabulary);
    if (want_logits)
      first.logits.insert(first.logits.end(), logits, logits + static_cast<ptrdiff_t>(vocabulary));
  }
  fmt::print("{} rows chose alike in {} steps\n", options.rows, all.num_steps);
  return first;
}

int run(const Options& options) {
  KernelLibrary library = KernelLibrary::open(options.kernel);
  std::optional<HfConfig> config;
  if (!options.model.empty()) {
    config = HfConfig::open(options.model);
    check_facts(library.model(), config->stated);
  }
  Engine engine(std::move(library),
                {.context = options.prompt_tokens + options.tokens,
                 .pool_tokens = options.rows > 1 ? int64_t{options.rows} * kBranchTokens : 0,
                 .timeout_ms = options.timeout_ms});
  if (options.lost_card >= 0) engine.lose_card(options.lost_card);
  const ModelFacts& facts = engine.library().model().facts;
  if (config) {
    const TensorSource source = TensorSource::open(options.model);
    engine.load(find_tensors(source, config->quantization_or_null(), config->facts, config->checkpoint),
                nullptr);
  } else {
    engine.load_random(options.seed);
  }
  std::vector<int32_t> prompt;
  for (int i = 0; i < options.prompt_tokens; ++i) {
    prompt.push_back(
        static_cast<int32_t>(random_bits(i, options.seed) % static_cast<uint32_t>(facts.vocabulary)));
  }
  nlohmann::json json{{"prompt", prompt}, {"tokens", nlohmann::json::array()}};
  if (!options.positions.empty()) {
    write_floats(options.logits, logits_at(engine, prompt, options.positions));
  } else if (options.rows > 1) {
    const DecodeResult result = decode_branches(engine, prompt, options);
    json["tokens"] = result.tokens;
    if (!options.logits.empty()) write_floats(options.logits, result.logits);
  } else {
    const bool want_logits = !options.logits.empty();
    DecodeResult first;
    int different = 0;
    for (int i = 0; i < options.launches; ++i) {
      engine.set_position(0);
      DecodeResult result = engine.decode({.tokens = prompt,
                                           .max_tokens = options.tokens,
                                           .want_logits = want_logits,
                                           .delay_seed = static_cast<uint32_t>(i)});
      if (i == 0) {
        first = std::move(result);
      } else {
        different += result.tokens != first.tokens || result.logits != first.logits;
      }
    }
    fmt::print("{} launches of {} tokens: {} differ from the first\n", options.launches, options.tokens,
               different);
    json["tokens"] = first.tokens;
    if (want_logits) write_floats(options.logits, first.logits);
    if (different > 0) return 1;
  }
  std::ofstream file(options.output);
  file << json.dump() << "\n";
  return file.flush() ? 0 : 1;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  CLI::App app{"Decodes token ids and writes them for comparison.", "decode-dump"};
  soliton::Options options;
  app.add_option("-m,--model", options.model, "Hugging Face folder; else weights are random");
  app.add_option("-k,--kernel", options.kernel, "kernel library")->required();
  app.add_option("-o,--output", options.output, "JSON file")->required();
  app.add_option("--logits", options.logits, "file of raw float32 logits");
  app.add_option("--positions", options.positions, "logits at these positions of the prompt only")
      ->delimiter(',');
  app.add_option("--prompt-tokens", options.prompt_tokens, "random prompt tokens");
  app.add_option("-n", options.tokens, "tokens to generate");
  app.add_option("--launches", options.launches, "launches that must agree bit for bit");
  app.add_option("--rows", options.rows, "branches that continue the prompt together")
      ->check(CLI::Range(1, 64));
  app.add_option("--seed", options.seed, "of the prompt");
  app.add_option("--lose-card", options.lost_card,
                 "launches on all cards but this one, to see the others end");
  app.add_option("--timeout-ms", options.timeout_ms, "bound of the kernel's waits");
  CLI11_PARSE(app, argc, argv);
  try {
    return soliton::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "decode-dump: {}\n", error.what());
    return 1;
  }
}
