#include "runtime/server/token_choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "models/hf_config.h"

namespace soliton {
namespace {

/// Of any 64-bit seed one that the kernels take. OpenAI's are signed.
uint32_t fold_seed(int64_t seed) {
  const auto bits = static_cast<uint64_t>(seed);
  return static_cast<uint32_t>(bits ^ bits >> 32);
}

uint32_t any_seed() {
  static thread_local std::random_device device;
  return device();
}

Sampling read_sampling(const JsonView& body, const Sampling& defaults) {
  Sampling sampling = defaults;
  const auto is_given = [&](const char* name) { return !body[name].is_null(); };
  if (is_given("temperature")) sampling.temperature = body["temperature"].number(0, kMaxTemperature);
  if (is_given("top_p")) sampling.top_p = body["top_p"].number(0, 1);
  if (is_given("min_p")) sampling.min_p = body["min_p"].number(0, 1);
  if (is_given("top_k")) {  // -1: all, as for vLLM
    sampling.top_k =
        static_cast<int>(std::max<int64_t>(0, body["top_k"].integer(-1, std::numeric_limits<int>::max())));
  }
  for (const char* name : {"repetition_penalty", "repeat_penalty"}) {  // vLLM's name, and llama.cpp's
    if (is_given(name)) sampling.repeat_penalty = body[name].number(kMinPenalty, kMaxPenalty);
  }
  const int64_t seed = is_given("seed") ? body["seed"].integer() : -1;  // -1: any, as for llama.cpp
  sampling.seed = seed == -1 ? any_seed() : fold_seed(seed);
  return sampling;
}

/// Refuses what would change the answer and cannot be done. Of each member the value that changes nothing passes.
void refuse_unsupported(const JsonView& body) {
  for (const char* name : {"min_tokens", "mirostat", "dry_multiplier", "xtc_probability", "dynatemp_range",
                           "top_a", "smoothing_factor", "truncate_prompt_tokens"}) {
    if (!body[name].is_null() && body[name].number() != 0) throw not_yet(name, body[name].describe());
  }
  for (const char* name : {"typical_p", "tfs_z", "length_penalty"}) {
    if (!body[name].is_null() && body[name].number() != 1) throw not_yet(name, body[name].describe());
  }
  for (const char* name :
       {"functions", "bad_words", "logits_processors", "allowed_token_ids", "documents", "lora"}) {
    if (body[name].is_null() || (body[name].is_array() && body[name].array_size() == 0)) continue;
    throw not_yet(name, body[name].describe());
  }
  for (const char* name : {"audio", "web_search_options", "prompt_embeds", "prompt_logprobs", "chat_template",
                           "thinking_budget", "thinking_budget_tokens", "thinking_token_budget"}) {
    if (!body[name].is_null()) throw not_yet(name, body[name].describe());
  }
  for (const char* name : {"use_beam_search", "include_stop_str_in_output"}) {
    if (!body[name].is_null() && body[name].boolean()) throw not_yet(name, "true");
  }
  if (!body["skip_special_tokens"].is_null() && !body["skip_special_tokens"].boolean())
    throw not_yet("skip_special_tokens", "false");
  const JsonView modalities = body["modalities"];
  for (size_t i = 0; !modalities.is_null() && i < modalities.array_size(); ++i) {
    if (modalities[i].string() != "text") throw not_yet("modalities", modalities[i].describe());
  }
  if (!body["suffix"].is_null() && !body["suffix"].string().empty()) throw not_yet("suffix", "text");
}

/// What is added to logits. -100 and 100 forbid a token and all others, which costs less.
void read_logit_bias(const JsonView& bias, ApiRequest& request) {
  constexpr double kAll = 100;
  if (bias.is_null()) return;
  for (const auto& [token, value] : bias.object().items()) {
    int32_t id = 0;
    const char* const end = token.data() + token.size();
    const auto read = std::from_chars(token.data(), end, id);
    const bool has_zeros = token.size() > 1 && token[0] == '0';
    if (read.ec != std::errc() || read.ptr != end || id < 0 || has_zeros)
      throw bias.error("expected the ids of tokens, got {}", in_quotes(token));
    const double by = bias[token].number(-kAll, kAll);
    if (by == -kAll) {
      request.forbidden.push_back(id);
    } else if (by == kAll) {
      request.only.push_back(id);
    } else if (by != 0) {
      request.adjustment.biases.emplace_back(id, static_cast<float>(by));
    }
  }
}

/// Those that end an answer beside the model's, as vLLM has them.
void read_stop_tokens(const JsonView& list, std::vector<int32_t>& tokens) {
  constexpr size_t kMost = 64;
  if (list.is_null()) return;
  if (list.array_size() > kMost)
    throw list.error("expected at most {} tokens, got {}", kMost, list.array_size());
  for (size_t i = 0; i < list.array_size(); ++i)
    tokens.push_back(static_cast<int32_t>(list[i].integer(0, std::numeric_limits<int32_t>::max())));
}

void read_penalties(const JsonView& body, LogitAdjustment& adjustment) {
  constexpr double kMost = 2;
  const auto read = [&](const char* name) {
    return body[name].is_null() ? 0.0f : static_cast<float>(body[name].number(-kMost, kMost));
  };
  adjustment.frequency_penalty = read("frequency_penalty");
  adjustment.presence_penalty = read("presence_penalty");
}

/// llama.cpp's penalties are of the last tokens alone, unless it is -1; of 0 of them there are none.
void read_penalised(const JsonView& last_tokens, ApiRequest& request) {
  if (last_tokens.is_null()) return;
  const int64_t count = last_tokens.integer(-1, std::numeric_limits<int>::max());
  if (count == 0) {
    request.sampling.repeat_penalty = 1;
    request.adjustment.frequency_penalty = 0;
    request.adjustment.presence_penalty = 0;
  }
  const bool penalises = request.sampling.repeat_penalty != 1 || request.adjustment.frequency_penalty != 0 ||
                         request.adjustment.presence_penalty != 0;
  if (count != -1 && penalises) throw not_yet("repeat_last_n", last_tokens.describe());
}

}  // namespace

ApiError not_yet(const std::string& param, const std::string& got) {
  return ApiError(400, fmt::format("{}: not supported by this server, got {}", param, got), param,
                  "unsupported");
}

void read_token_choice(const JsonView& body, const Sampling& defaults, ApiRequest& request) {
  request.sampling = read_sampling(body, defaults);
  refuse_unsupported(body);
  read_logit_bias(body["logit_bias"], request);
  read_stop_tokens(body["stop_token_ids"], request.stop_tokens);
  read_penalties(body, request.adjustment);
  read_penalised(body["repeat_last_n"], request);
}

void bias_only(ApiRequest& request) {
  constexpr float kAll = 100;
  std::vector<std::pair<int32_t, float>>& biases = request.adjustment.biases;
  for (const int32_t token : request.forbidden) biases.emplace_back(token, -kAll);
  for (const int32_t token : request.only) biases.emplace_back(token, kAll);
  request.forbidden.clear();
  request.only.clear();
}

}  // namespace soliton
