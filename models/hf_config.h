// The architecture's facts as config.json of a Hugging Face folder states them. What the generator cannot do
// is refused here by name, before anything is allocated.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layout/model_facts.h"
#include "models/check.h"
#include "models/checkpoint.h"
#include "models/quantization_config.h"

namespace soliton {

inline constexpr double kMaxTemperature = 100;
inline constexpr double kMinPenalty = 0.01;
inline constexpr double kMaxPenalty = 100;

/// What generation_config.json says of how tokens are chosen; what it does not say is not asked for.
struct GenerationDefaults {
  bool do_sample = false;
  std::optional<double> temperature;
  std::optional<int> top_k;  // 0: all
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
};

/// What the runtime takes from config.json and generation_config.json.
struct HfConfig {
  ModelFacts facts;
  StatedFacts stated;        // the same, and where the files say so
  Checkpoint checkpoint;     // where the tensors stand
  std::vector<int> eos_ids;  // sorted, those of both files; empty if neither names one
  int bos_id = -1;           // -1: none
  std::string architecture;  // as in config.json, such as "LlamaForCausalLM"
  std::string dtype;         // of the weights as stated, such as "bfloat16"; empty if not stated
  GenerationDefaults generation;
  std::optional<QuantizationConfig> quantization;  // nothing: the linear layers are not quantised

  /// For Engine::load().
  const QuantizationConfig* quantization_or_null() const {
    return quantization.has_value() ? &*quantization : nullptr;
  }

  /// Reads the folder's config.json (either schema) and, if present, its quantize_config.json and
  /// generation_config.json. Absent members take the defaults of the family's configuration in transformers where it is
  /// the architecture's meaning (rope_theta 10000, untied lm_head, and what models/families/ says); sizes have none.
  /// Throws kNotFound if config.json is absent, kBadFile if a member is missing, of a wrong type or out of range,
  /// and kMismatch for a sound model that no kernel can be generated for.
  /// A GGUF file has all of this in itself, see gguf_config.h.
  static HfConfig open(const std::filesystem::path& folder);
  /// The same of what would stand in config.json, but for generation_config.json and quantisation, which is given. `file` is
  /// what errors call it; they name members as `rename` does.
  static HfConfig read(const nlohmann::json& document, const std::string& file,
                       std::optional<QuantizationConfig> quantization,
                       const std::function<std::string(const std::string&)>& rename = {});
};

}  // namespace soliton
