// soliton.h: errors, models, text and tokens.
#include <nlohmann/json.hpp>

#include "models/strict_json.h"
#include "runtime/library/handles.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

thread_local std::string last_error;

std::string text_or_empty(const char* text) {
  return text == nullptr ? "" : text;
}

OpenModelOptions read_model_options(const char* folder, const soliton_model_options* options) {
  const soliton_model_options read = read_struct(options, "soliton_model_options");
  const auto check = [](const char* name, int64_t value) {
    if (value >= 0) return;
    throw Error(ExitCode::kUsage, fmt::format("{}: expected 0 or more, got {}", name, value));
  };
  check("device", read.device);
  check("context", read.context);
  check("cache_tokens", read.cache_tokens);
  return {.model = &given(folder, "folder"),
          .device = read.device,
          .context = read.context,
          .cache_tokens = read.cache_tokens,
          .kernel = text_or_empty(read.kernel),
          .chat_template = text_or_empty(read.chat_template),
          .say = [log = read.log, data = read.log_data](const std::string& line) {
            if (log != nullptr) log(data, line.c_str());
          }};
}

/// JSON in text, which templates see in the order in which it is written; null if there is no text.
Json read_json_argument(const char* text, const char* name) {
  return text == nullptr ? Json() : parse_ordered_json(text, name);
}

Json read_messages_argument(const char* text) {
  Json messages = read_json_argument(text, "messages");
  const bool is_list = messages.is_array() && !messages.empty();
  if (!is_list) throw bad_file("messages", "expected a list of messages, got {}", messages.type_name());
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (message.is_object() && message.contains("role") && message["role"].is_string()) continue;
    throw bad_file("messages", "[{}].role: expected text, got none", i);
  }
  return messages;
}

}  // namespace

soliton_status note_error(ExitCode code, std::string_view message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return static_cast<soliton_status>(code);
}

}  // namespace soliton

using namespace soliton;

const char* soliton_last_error(void) {
  return last_error.c_str();
}

const char* soliton_version(void) {
  return SOLITON_VERSION;
}

soliton_status soliton_model_open(const char* folder, const soliton_model_options* options,
                                  soliton_model** model) {
  if (model != nullptr) *model = nullptr;
  return guarded([&] {
    given(model, "model");
    *model = new soliton_model{std::make_shared<OpenModel>(read_model_options(folder, options))};
  });
}

void soliton_model_close(soliton_model* model) {
  delete model;
}

soliton_status soliton_model_get_info(const soliton_model* model, soliton_model_info* info) {
  return guarded([&] {
    const OpenModel& open = *given(model, "model").open;
    const size_t size = given(info, "info").size;
    check_size(size, sizeof(soliton_model_info), sizeof(soliton_model_info), "soliton_model_info");
    write_struct({.size = size,
                  .context = open.context(),
                  .vocabulary = open.descriptor().facts.vocabulary,
                  .max_rows = open.max_rows(),
                  .has_chat_template = open.text().prompter.has_template() ? 1 : 0,
                  .is_emulated = open.descriptor().compute_capability == 0 ? 1 : 0,
                  .cache_tokens = open.cache_tokens()},
                 *info, size);
  });
}

soliton_status soliton_tokenize(const soliton_model* model, const char* text, size_t text_bytes, int flags,
                                int32_t* tokens, size_t capacity, size_t* count) {
  return guarded([&] {
    const Tokenizer& tokenizer = given(model, "model").open->text().tokenizer;
    const std::span<const char> bytes = given_array(text, text_bytes, "text");
    std::vector<int32_t> ids;
    if ((flags & SOLITON_ADD_PREFIX) != 0)
      ids.assign(tokenizer.prefix_ids().begin(), tokenizer.prefix_ids().end());
    const std::vector<int> of_text =
        tokenizer.encode({bytes.data(), bytes.size()}, (flags & SOLITON_PARSE_SPECIAL) != 0);
    ids.insert(ids.end(), of_text.begin(), of_text.end());
    write_result<int32_t>(ids, tokens, capacity, count);
  });
}

soliton_status soliton_detokenize(const soliton_model* model, const int32_t* tokens, size_t num_tokens,
                                  int flags, char* text, size_t capacity, size_t* count) {
  return guarded([&] {
    const Tokenizer& tokenizer = given(model, "model").open->text().tokenizer;
    const std::string decoded =
        tokenizer.decode(given_array(tokens, num_tokens, "tokens"), (flags & SOLITON_SKIP_SPECIAL) != 0);
    write_result<char>({decoded.c_str(), decoded.size() + 1}, text, capacity, count, 1);
  });
}

soliton_status soliton_render_chat(const soliton_model* model, const char* messages, const char* tools,
                                   const char* variables, int32_t* tokens, size_t capacity, size_t* count) {
  return guarded([&] {
    const Prompter& prompter = given(model, "model").open->text().prompter;
    if (!prompter.has_template()) {
      throw Error(ExitCode::kUsage,
                  "chat_template: expected a model that has one, or the path of one, got neither");
    }
    const std::vector<int32_t> prompt =
        prompter.prompt(read_messages_argument(&given(messages, "messages")),
                        read_json_argument(tools, "tools"), read_json_argument(variables, "variables"));
    write_result<int32_t>(prompt, tokens, capacity, count);
  });
}
