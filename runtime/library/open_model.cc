#include "runtime/library/open_model.h"

#include <array>
#include <utility>

#include "runtime/find_model.h"

namespace soliton {
namespace {

/// The flag of a program that an error may begin with, and the option in its place.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOptionNames = {
    {{"--ctx-size", "context"}, {"--cache-tokens", "cache_tokens"}, {"--chat-template", "chat_template"}}};

Error with_option_names(const Error& error) {
  const std::string_view message = error.what();
  for (const auto& [flag, name] : kOptionNames) {
    if (message.starts_with(flag)) {
      return Error(error.code(), fmt::format("{}{}", name, message.substr(flag.size())));
    }
  }
  return error;
}

Options options_of_chat(const OpenModelOptions& options) {
  Options chat;
  chat.model = find_model(options.model).string();
  chat.kernel = options.kernel;
  chat.template_file = options.chat_template;
  chat.context = options.context;
  chat.device = options.device;
  chat.say = options.say;
  return chat;
}

}  // namespace

OpenModel::Parts::Parts(const Options& options, int64_t cache_tokens)
    : text(options),
      context(choose_context(options, text.config)),
      engine(open_engine(options, text.config, context,
                         choose_pool_tokens(options, text.config, context, cache_tokens))),
      forest(*engine, context) {}

OpenModel::OpenModel(const OpenModelOptions& options) {
  try {
    parts_ = std::make_unique<Parts>(options_of_chat(options), options.cache_tokens);
  } catch (const Error& error) {
    throw with_option_names(error);
  }
}

std::mutex& OpenModel::mutex_unless_owned() {
  if (!has_turn()) return mutex_;
  throw Error(ExitCode::kUsage,
              "callback: expected no call that would have to wait for the one it belongs to, got one");
}

OpenModel::Turn::Turn(OpenModel& model) : model_(model), lock_(model.mutex_unless_owned()) {
  model_.owner_ = std::this_thread::get_id();
}

OpenModel::Turn::~Turn() {
  for (ForestText& text : model_.released_) forest().release(text);
  model_.released_.clear();
  model_.owner_ = std::thread::id();
}

void OpenModel::release(std::vector<ForestText> texts) {
  if (has_turn()) {
    std::move(texts.begin(), texts.end(), std::back_inserter(released_));
    return;
  }
  const Turn turn(*this);
  for (ForestText& text : texts) turn.forest().release(text);
}

}  // namespace soliton
