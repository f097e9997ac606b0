#include "models/weight_rounding.h"

#include <fmt/format.h>

#include "models/check.h"

namespace soliton {
namespace {

constexpr int kRoundedGroup = 32;

/// In words, for a message.
std::string describe_format(const ModelFacts& facts) {
  if (facts.weight_bits != 16) return fmt::format("integers of {} bits", facts.weight_bits);
  return facts.further_e2m1 != 0 ? "experts in MXFP4" : "others";
}

}  // namespace

void round_weights(const std::string& word, HfConfig& config) {
  if (word.empty()) return;
  StatedFacts& stated = config.stated;
  if (config.quantization || stated.facts.weight_bits != 16 || stated.facts.further_bits != 0) {
    throw file_error(ExitCode::kMismatch, stated.file,
                     "--weights {}: expected a model whose layers are floats, got {}", word,
                     describe_format(stated.facts));
  }
  const int bits = word == kRoundedWeights[0] ? 8 : 4;
  const auto state = [&](int32_t ModelFacts::*fact, int64_t value) {
    stated.state(fact, value, {.file = stated.file, .key = "--weights", .got = word});
  };
  state(&ModelFacts::weight_bits, bits);
  state(&ModelFacts::weight_group, kRoundedGroup);
  check(stated);
  config.facts = stated.facts;
  config.quantization = QuantizationConfig{
      .method = QuantizationMethod::kRounded, .bits = bits, .group_size = kRoundedGroup, .file = stated.file};
}

}  // namespace soliton
