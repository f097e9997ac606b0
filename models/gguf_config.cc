// Members of config.json out of the metadata; what is worked out from tensors, or has another form, is put in by hand. Readers
// of config.json do the rest.
#include "models/gguf_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "models/gguf_architectures.h"
#include "models/gguf_formats.h"
#include "models/limits.h"

namespace soliton {
namespace {

using nlohmann::json;

/// Ends of a turn or a text that instruct models are known for, whatever else the file says.
constexpr std::array kEnds = {"<|eot_id|>",    "<|im_end|>",      "<|end|>",       "<|eom_id|>",
                              "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<|EOT|>"};
/// gpt-oss ends a message by <|end|>, and goes on: answers end by these two.
constexpr std::array<std::string_view, 2> kHarmonyEnds = {"<|return|>", "<|call|>"};
constexpr std::string_view kMessageEnd = "<|end|>";
constexpr int kControlToken = 3;
constexpr int kUserToken = 4;

/// The length of a row of the embedding's is checked with the others.
int64_t count_tokens(const GgufFile& file) {
  const GgufTensor* const embedding = file.find("token_embd.weight");
  if (embedding == nullptr)
    throw file_error(ExitCode::kMismatch, file.path(), "token_embd.weight: there is no such tensor");
  return embedding->shape.front();
}

/// Ends of answers, as the file states and as its tokens are known.
json read_ends(const GgufFile& file, int64_t vocabulary) {
  const JsonView view = file.view();
  std::vector<int64_t> ends;
  for (const char* name : {"eos", "eot", "eom"}) {
    const JsonView id = view[fmt::format("tokenizer.ggml.{}_token_id", name)];
    if (!id.is_null()) ends.push_back(id.integer(0, vocabulary - 1));
  }
  const JsonView tokens = view["tokenizer.ggml.tokens"];
  const JsonView types = view["tokenizer.ggml.token_type"];
  if (tokens.is_null() || types.is_null()) return ends;
  const bool is_harmony = view["general.architecture"].string() == "gpt-oss";
  const size_t count = std::min({tokens.array_size(), types.array_size(), static_cast<size_t>(vocabulary)});
  for (size_t i = 0; i < count; ++i) {
    const int64_t type = types[i].integer();
    if (type != kControlToken && type != kUserToken) continue;
    const std::string& token = tokens[i].string();
    const bool is_end =
        std::ranges::find(kEnds, token) != kEnds.end() && !(is_harmony && token == kMessageEnd);
    const bool is_harmony_end = is_harmony && std::ranges::find(kHarmonyEnds, token) != kHarmonyEnds.end();
    if (is_end || is_harmony_end) ends.push_back(static_cast<int64_t>(i));
  }
  return ends;
}

void put_experts(const JsonView& view, const std::string& prefix, const GgufArchitecture& architecture,
                 json& config) {
  config[architecture.num_experts] = view[prefix + "expert_count"].integer();
  config["num_experts_per_tok"] = view[prefix + "expert_used_count"].integer();
  config[architecture.expert_ffn] = view[prefix + architecture.expert_ffn_key].integer();
  if (!config.contains("intermediate_size")) config["intermediate_size"] = config[architecture.expert_ffn];
  config["norm_topk_prob"] = true;
  config["decoder_sparse_step"] = 1;
  const JsonView shared = view[prefix + "expert_shared_count"];
  if (integer_or(shared, 0, 0, kExpertsLimit.max) != 0)
    throw shared.error(ExitCode::kMismatch, "expected 0, got {}: not supported", shared.describe());
}

/// Heads as wide as config.json would have them: keys, values and what is rotated of them.
void check_widths(const JsonView& view, const GgufArchitecture& architecture, int64_t head_dim) {
  for (const std::string_view key : {"attention.value_length", "rope.dimension_count"}) {
    const JsonView stated = view[architecture.prefix().append(key)];
    const bool is_free = key == "rope.dimension_count" && architecture.partial_rotary;
    if (!is_free && !stated.is_null() && stated.integer() != head_dim)
      throw stated.error(ExitCode::kMismatch, "expected {}, as heads are wide, got {}: not supported",
                         head_dim, stated.describe());
  }
}

/// How wide they are, and which layers have one: a flag each, or every layer but the last of so many.
void put_windows(const JsonView& view, const GgufArchitecture& architecture, json& config) {
  const std::string prefix = architecture.prefix();
  const JsonView window = view[prefix + "attention.sliding_window"];
  config["sliding_window"] = nullptr;
  if (integer_or(window, 0, 0, std::numeric_limits<int32_t>::max()) > 0)
    config["sliding_window"] = window.integer();
  const JsonView pattern = view[prefix + "attention.sliding_window_pattern"];
  if (pattern.is_null()) return;
  if (!architecture.lists_windows)
    throw pattern.error(ExitCode::kMismatch, "expected nothing, got {}: not supported", pattern.describe());
  if (config["sliding_window"].is_null()) return;
  const int64_t layers = view[prefix + "block_count"].integer(1, kLayersLimit.max);
  const bool is_list = pattern.is_array();
  if (is_list && std::cmp_not_equal(pattern.array_size(), layers))
    throw pattern.error("expected {} flags, one a layer, got {}", layers, pattern.array_size());
  const int64_t period = is_list ? 0 : pattern.integer(0, kLayersLimit.max);
  json types = json::array();
  for (int64_t layer = 0; layer < layers; ++layer) {
    const bool slides =
        is_list ? pattern[static_cast<size_t>(layer)].boolean() : period == 0 || (layer + 1) % period != 0;
    types.push_back(slides ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = std::move(types);
}

json make_config(const GgufFile& file, const GgufArchitecture& architecture) {
  const JsonView view = file.view();
  const std::string prefix = architecture.prefix();
  const int64_t vocabulary = count_tokens(file);
  json config = {{"vocab_size", vocabulary},
                 {"tie_word_embeddings", file.find("output.weight") == nullptr},
                 {"eos_token_id", read_ends(file, vocabulary)}};
  put_renamed(file, prefix, config);
  const int64_t num_experts = integer_or(view[prefix + "expert_count"], 0, 0, kExpertsLimit.max);
  const char* const family = num_experts > 0 ? architecture.mixture : architecture.family;
  if (family == nullptr) {
    throw view[prefix + "expert_count"].error(ExitCode::kMismatch, "expected {}, got {}: not supported",
                                              num_experts > 0 ? "0" : "experts", num_experts);
  }
  config["architectures"] = json::array({family});
  if (num_experts > 0) put_experts(view, prefix, architecture, config);
  const int64_t hidden = view[prefix + "embedding_length"].integer(1, kHiddenLimit.max);
  const int64_t heads = view[prefix + "attention.head_count"].integer(1, kHeadsLimit.max);
  const int64_t head_dim =
      integer_or(view[prefix + "attention.key_length"], hidden / heads, 1, kHiddenLimit.max);
  config["head_dim"] = head_dim;
  check_widths(view, architecture, head_dim);
  const JsonView theta = view[prefix + "rope.freq_base"];
  config["rope_scaling"] =
      gguf_rope_scaling(file, architecture, theta.is_null() ? 1e4 : theta.number(), head_dim);
  put_windows(view, architecture, config);
  const JsonView bos = view["tokenizer.ggml.bos_token_id"];
  if (!bos.is_null()) config["bos_token_id"] = bos.integer(0, vocabulary - 1);
  if (architecture.put_further != nullptr) architecture.put_further(file, config);
  return config;
}

}  // namespace

HfConfig open_gguf_config(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  return read_whole(file, [&] {
    const GgufArchitecture& architecture = find_gguf_architecture(file);
    const std::string prefix = architecture.prefix();
    const bool mxfp4_experts = architecture.mxfp4_experts && has_mxfp4_experts(file);
    json members = make_config(file, architecture);
    if (mxfp4_experts) members["quantization_config"] = {{"quant_method", "mxfp4"}};
    HfConfig config = HfConfig::read(members, file.path(), find_gguf_quantization(file, mxfp4_experts),
                                     [&](const std::string& member) { return gguf_key_of(prefix, member); });
    config.checkpoint = make_gguf_checkpoint(config.facts, architecture.names);
    return config;
  });
}

}  // namespace soliton
