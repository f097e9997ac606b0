#include "runtime/library/open_model.h"

#include <array>
#include <atomic>
#include <iterator>
#include <thread>
#include <utility>

#include "runtime/hub/find_model.h"

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

struct Turns {
  std::mutex mutex;
  std::atomic<std::thread::id> owner = {};
};

Turns& turns() {
  static Turns all;
  return all;
}

}  // namespace

bool DeviceTurn::is_of_this_thread() {
  return turns().owner.load() == std::this_thread::get_id();
}

DeviceTurn::DeviceTurn() : lock_(turns().mutex, std::defer_lock) {
  if (is_of_this_thread()) {
    throw Error(ExitCode::kUsage,
                "callback: expected no call that would have to wait for the one it belongs to, got one");
  }
  lock_.lock();
  turns().owner = std::this_thread::get_id();
}

DeviceTurn::~DeviceTurn() {
  turns().owner = std::thread::id();
}

/// An engine for many texts.
static std::unique_ptr<Engine> open_many(const Options& options, const HfConfig& config, int context,
                                         int64_t pool_tokens) {
  return open_engine(options, config, context, pool_tokens, choose_window_tokens(config.facts, pool_tokens));
}

OpenModel::Parts::Parts(const Options& options, int64_t cache_tokens)
    : text(options),
      context(choose_context(options, text.config)),
      engine(open_many(options, text.config, context,
                       choose_pool_tokens(options, text.config, context, cache_tokens))),
      forest(*engine, context) {}

OpenModel::OpenModel(const OpenModelOptions& options) {
  try {
    const Options chat = options_of_chat(options);
    const DeviceTurn turn;
    if (ask_driver(options.device).device) device_.emplace(options.device);
    const PrimaryContext::Current current(device());
    parts_ = std::make_unique<Parts>(chat, options.cache_tokens);
  } catch (const Error& error) {
    throw with_option_names(error);
  }
}

OpenModel::~OpenModel() {
  // In a callback, of another model, the turn is had already.
  std::optional<DeviceTurn> turn;
  if (!DeviceTurn::is_of_this_thread()) turn.emplace();
  std::optional<PrimaryContext::Current> current;
  try {
    current.emplace(device());
  } catch (const Error&) {  // of a device that has failed
  }
  parts_.reset();
}

std::shared_ptr<const constrain::Vocabulary> OpenModel::vocabulary() const {
  std::call_once(needs_vocabulary_, [this] {
    vocabulary_ = std::make_shared<constrain::Vocabulary>(text().tokenizer, text().config.facts.vocabulary);
  });
  return vocabulary_;
}

OpenModel::Turn::Turn(OpenModel& model) : model_(model), current_(model.device()) {
  model_.in_turn_ = true;
}

OpenModel::Turn::~Turn() {
  model_.release_now(model_.released_);
  model_.in_turn_ = false;
}

void OpenModel::release(std::vector<ForestText> texts) {
  std::optional<DeviceTurn> turn;
  if (!DeviceTurn::is_of_this_thread()) turn.emplace();
  if (in_turn_) {
    std::move(texts.begin(), texts.end(), std::back_inserter(released_));
  } else {
    release_now(texts);
  }
}

void OpenModel::release_now(std::vector<ForestText>& texts) {
  for (ForestText& text : texts) parts_->forest.release(text);
  texts.clear();
}

}  // namespace soliton
