// A table says what each member of config.json is called in a GGUF file; what is worked out from tensors, or has another
// form, is put in by hand. Readers of config.json do the rest.
#include "models/gguf_config.h"

#include <algorithm>
#include <array>

#include "models/gguf_formats.h"
#include "models/limits.h"

namespace soliton {
namespace {

using nlohmann::json;

struct Architecture {
  const char* name;            // general.architecture
  const char* family;          // of config.json's architectures
  const char* mixture;         // the same where there are experts; nullptr: there may be none
  const char* expert_ffn;      // the member that says how wide they are
  const char* expert_ffn_key;  // and its key, behind the prefix
  const char* num_experts;
  GgufNames names;
};

constexpr std::array kArchitectures = {
    Architecture{"llama",
                 "LlamaForCausalLM",
                 "MixtralForCausalLM",
                 "intermediate_size",
                 "feed_forward_length",
                 "num_local_experts",
                 {.pairs = true}},
    Architecture{"qwen2", "Qwen2ForCausalLM", nullptr, nullptr, nullptr, nullptr, {}},
    Architecture{"qwen3", "Qwen3ForCausalLM", nullptr, nullptr, nullptr, nullptr, {}},
    Architecture{"qwen3moe",
                 nullptr,
                 "Qwen3MoeForCausalLM",
                 "moe_intermediate_size",
                 "expert_feed_forward_length",
                 "num_experts",
                 {}},
    Architecture{"phi3", "Phi3ForCausalLM", nullptr, nullptr, nullptr, nullptr, {.fused = true}},
};

/// A member of config.json and its key, behind the architecture's name and a dot.
struct Renamed {
  const char* member;
  const char* key;
};

constexpr std::array kRenamed = {
    Renamed{"hidden_size", "embedding_length"},
    Renamed{"intermediate_size", "feed_forward_length"},
    Renamed{"num_hidden_layers", "block_count"},
    Renamed{"num_attention_heads", "attention.head_count"},
    Renamed{"num_key_value_heads", "attention.head_count_kv"},
    Renamed{"head_dim", "attention.key_length"},
    Renamed{"max_position_embeddings", "context_length"},
    Renamed{"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
    Renamed{"rope_theta", "rope.freq_base"},
};

/// Those of mixtures, and of what is made by hand: for errors alone.
constexpr std::array kOtherNames = {
    Renamed{"num_local_experts", "expert_count"},
    Renamed{"num_experts", "expert_count"},
    Renamed{"num_experts_per_tok", "expert_used_count"},
    Renamed{"moe_intermediate_size", "expert_feed_forward_length"},
    Renamed{"sliding_window", "attention.sliding_window"},
    Renamed{"rope_scaling.factor", "rope.scaling.factor"},
    Renamed{"rope_scaling.original_max_position_embeddings", "rope.scaling.original_context_length"},
};

/// Ends of a turn or a text that instruct models are known for, whatever else the file says.
constexpr std::array kEnds = {"<|eot_id|>",    "<|im_end|>",      "<|end|>",       "<|eom_id|>",
                              "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<|EOT|>"};
constexpr int kControlToken = 3;
constexpr int kUserToken = 4;

const Architecture& find_architecture(const GgufFile& file) {
  const JsonView stated = file.view()["general.architecture"];
  const std::string& name = stated.string();
  const auto found =
      std::ranges::find_if(kArchitectures, [&](const auto& each) { return name == each.name; });
  if (found != kArchitectures.end()) return *found;
  std::vector<std::string> known;
  for (const Architecture& each : kArchitectures) known.emplace_back(each.name);
  throw stated.error(ExitCode::kMismatch, "expected one of {}, got {}", fmt::join(known, ", "),
                     in_quotes(name));
}

std::string key_of(const std::string& prefix, const std::string& member) {
  const auto find = [&](const auto& table) -> std::optional<std::string> {
    const auto found =
        std::ranges::find_if(table, [&](const Renamed& each) { return member == each.member; });
    return found == table.end() ? std::nullopt : std::optional(prefix + found->key);
  };
  if (const auto key = find(kRenamed)) return *key;
  if (const auto key = find(kOtherNames)) return *key;
  return member;
}

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
  const size_t count = std::min({tokens.array_size(), types.array_size(), static_cast<size_t>(vocabulary)});
  for (size_t i = 0; i < count; ++i) {
    const int64_t type = types[i].integer();
    if (type != kControlToken && type != kUserToken) continue;
    if (std::ranges::find(kEnds, tokens[i].string()) != kEnds.end()) ends.push_back(static_cast<int64_t>(i));
  }
  return ends;
}

void put_experts(const JsonView& view, const std::string& prefix, const Architecture& architecture,
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
void check_widths(const JsonView& view, const std::string& prefix, int64_t head_dim) {
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    const JsonView stated = view[prefix + key];
    if (!stated.is_null() && stated.integer() != head_dim)
      throw stated.error(ExitCode::kMismatch, "expected {}, as heads are wide, got {}: not supported",
                         head_dim, stated.describe());
  }
}

json make_config(const GgufFile& file, const Architecture& architecture) {
  const JsonView view = file.view();
  const std::string prefix = std::string(architecture.name) + ".";
  const int64_t vocabulary = count_tokens(file);
  json config = {{"vocab_size", vocabulary},
                 {"tie_word_embeddings", file.find("output.weight") == nullptr},
                 {"eos_token_id", read_ends(file, vocabulary)}};
  for (const Renamed& each : kRenamed) {
    const JsonView value = view[prefix + each.key];
    if (!value.is_null()) config[each.member] = file.metadata()[prefix + each.key];
  }
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
  check_widths(view, prefix, head_dim);
  const JsonView theta = view[prefix + "rope.freq_base"];
  config["rope_scaling"] = gguf_rope_scaling(file, prefix, theta.is_null() ? 1e4 : theta.number(), head_dim);
  const JsonView window = view[prefix + "attention.sliding_window"];
  config["sliding_window"] = nullptr;
  if (integer_or(window, 0, 0, std::numeric_limits<int32_t>::max()) > 0)
    config["sliding_window"] = window.integer();
  const JsonView bos = view["tokenizer.ggml.bos_token_id"];
  if (!bos.is_null()) config["bos_token_id"] = bos.integer(0, vocabulary - 1);
  return config;
}

}  // namespace

HfConfig open_gguf_config(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  return read_whole(file, [&] {
    const Architecture& architecture = find_architecture(file);
    const std::string prefix = std::string(architecture.name) + ".";
    HfConfig config =
        HfConfig::read(make_config(file, architecture), file.path(), find_gguf_quantization(file),
                       [&](const std::string& member) { return key_of(prefix, member); });
    config.checkpoint = make_gguf_checkpoint(config.facts, architecture.names);
    return config;
  });
}

}  // namespace soliton
