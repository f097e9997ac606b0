#include "models/hf_generation.h"

#include <algorithm>

#include "models/hf_members.h"
#include "models/limits.h"

namespace soliton {
namespace {

/// Null, as an absent member, is no default.
std::optional<double> read_default(const JsonView& view, double min, double max) {
  return view.is_null() ? std::nullopt : std::optional(view.number(min, max));
}

}  // namespace

void read_token_ids(const JsonView& document, HfConfig& config) {
  const int64_t max_id = config.facts.vocabulary - 1;
  const JsonView bos = document["bos_token_id"];
  if (!bos.is_null()) {
    const auto id = static_cast<int>(bos.integer(0, max_id));
    if (config.bos_id < 0) config.bos_id = id;
  }
  const JsonView eos = document["eos_token_id"];
  if (eos.is_null()) return;
  if (!eos.is_array()) {
    config.eos_ids.push_back(static_cast<int>(eos.integer(0, max_id)));
    return;
  }
  for (size_t i = 0; i < eos.array_size(); ++i) {
    config.eos_ids.push_back(static_cast<int>(eos[i].integer(0, max_id)));
  }
}

void sort_eos_ids(HfConfig& config) {
  std::sort(config.eos_ids.begin(), config.eos_ids.end());
  config.eos_ids.erase(std::unique(config.eos_ids.begin(), config.eos_ids.end()), config.eos_ids.end());
}

GenerationDefaults read_generation(const JsonView& document) {
  GenerationDefaults defaults;
  defaults.do_sample = boolean_or(document["do_sample"], false);
  defaults.temperature = read_default(document["temperature"], 0, kMaxTemperature);
  if (const JsonView top_k = document["top_k"]; !top_k.is_null())
    defaults.top_k = static_cast<int>(top_k.integer(0, kVocabularyLimit.max));
  defaults.top_p = read_default(document["top_p"], 0, 1);
  defaults.min_p = read_default(document["min_p"], 0, 1);
  defaults.repetition_penalty = read_default(document["repetition_penalty"], kMinPenalty, kMaxPenalty);
  return defaults;
}

}  // namespace soliton
