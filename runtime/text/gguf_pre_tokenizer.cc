#include "runtime/text/gguf_pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace soliton {
namespace {

using nlohmann::json;

// As llama.cpp and the models' tokenizer.json have them.
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSeed =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kThreeDigits = R"(\p{N}{1,3})";
constexpr const char* kHanAndKana = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr const char* kDigit = R"(\p{N})";

struct Rule {
  std::vector<std::string_view> names;
  std::vector<const char*> patterns;  // each cuts what those before it have left
  bool composes = false;              // text is brought to Unicode's form NFC before
  bool ignore_merges = false;
  bool adds_bos = false;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"},
       .patterns = {kLlama3},
       .ignore_merges = true,
       .adds_bos = true},
      {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .patterns = {kLlama3}},
      {.names = {"qwen2", "deepseek-r1-qwen"}, .patterns = {kQwen2}, .composes = true},
      {.names = {"tekken"}, .patterns = {kTekken}, .ignore_merges = true, .adds_bos = true},
      {.names = {"gpt-4o", "llama4"}, .patterns = {kGpt4o}},
      {.names = {"gpt-2", "phi-2", "mpt", "olmo", "exaone4", "granite-docling"}, .patterns = {kGpt2}},
      {.names = {"seed-coder"}, .patterns = {kSeed}},
      {.names = {"hunyuan-dense", "deepseek-v3"}, .patterns = {kThreeDigits, kHanAndKana, kDeepSeek3}},
      {.names = {"smollm", "starcoder", "refact", "command-r", "exaone"}, .patterns = {kDigit, kGpt2}},
      {.names = {"default"}, .patterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return kRules;
}

json split_by(const char* pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

}  // namespace

GgufPreTokenizer gguf_pre_tokenizer(const JsonView& pre) {
  const std::string name = pre.is_null() ? "default" : pre.string();
  const auto found = std::ranges::find_if(
      rules(), [&](const Rule& rule) { return std::ranges::find(rule.names, name) != rule.names.end(); });
  if (found == rules().end()) {
    std::vector<std::string_view> known;
    for (const Rule& rule : rules()) known.insert(known.end(), rule.names.begin(), rule.names.end());
    throw pre.error(ExitCode::kMismatch, "expected one of {}, got {}: not supported", fmt::join(known, ", "),
                    in_quotes(name));
  }
  json steps = json::array();
  for (const char* pattern : found->patterns) steps.push_back(split_by(pattern));
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  return {.normalizer = found->composes ? json{{"type", "NFC"}} : json(nullptr),
          .pre_tokenizer = {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}},
          .ignore_merges = found->ignore_merges,
          .adds_bos = found->adds_bos};
}

}  // namespace soliton
