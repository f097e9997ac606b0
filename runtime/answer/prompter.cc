#include "runtime/answer/prompter.h"

#include <algorithm>

#include "models/mapped_file.h"
#include "runtime/text/text_config.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// For each byte of a rendered conversation how many from there on the template wrote.
std::vector<size_t> bytes_of_template(const RenderedChat& chat) {
  std::vector<size_t> num_bytes;
  for (const TextPiece& piece : chat.pieces) {
    for (size_t left = piece.text.size(); left > 0; --left)
      num_bytes.push_back(piece.from_message ? 0 : left);
  }
  return num_bytes;
}

/// Nothing where the template refuses the conversation.
std::optional<std::string> render_one(const ChatTemplate& chat_template, const ChatOptions& options,
                                      const char* content) {
  const nlohmann::ordered_json message = {{"role", "user"}, {"content", content}};
  try {
    return chat_template.render(nlohmann::ordered_json::array({message}), options).text();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Refuses what is no chat template, such as an error page in place of one: as a template it says the same to all.
void check_template(const ChatTemplate& chat_template, const ChatOptions& options) {
  const std::optional<std::string> hello = render_one(chat_template, options, "Hello!");
  if (!hello || hello != render_one(chat_template, options, "Why?")) return;
  throw bad_file(chat_template.name(),
                 "expected a chat template, which writes the messages, got one that says the same to all: {}",
                 in_quotes(*hello));
}

}  // namespace

// ---- special tokens apart from the messages ----

ChatEncoder::ChatEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    const std::string& text = tokenizer.piece(id);
    if (!text.empty() && tokenizer.token_id(text) == id) specials_.push_back({text, id});
  }
  for (const Special& special : specials_) {
    begins_special_[static_cast<unsigned char>(special.text[0])] = true;
  }
  std::stable_sort(specials_.begin(), specials_.end(), [](const Special& left, const Special& right) {
    return left.text.size() > right.text.size();
  });
  const auto found = std::find_if(specials_.begin(), specials_.end(),
                                  [this](const Special& special) { return can_break(special); });
  if (found != specials_.end()) break_ = *found;
}

/// Whether the token is found inside a word and takes no white space with it.
bool ChatEncoder::can_break(const Special& special) const {
  const auto encode = [&](const char* before, const char* after) {
    return tokenizer_.encode(before + special.text + after, true);
  };
  const std::vector<int> plain = encode("a", "a");
  return std::count(plain.begin(), plain.end(), special.id) == 1 && encode("a ", "a") != plain &&
         encode("a", " a") != plain;
}

/// The longest special token of at most `limit` bytes that stands there, or null.
const ChatEncoder::Special* ChatEncoder::longest_at(std::string_view text, size_t at, size_t limit) const {
  if (!begins_special_[static_cast<unsigned char>(text[at])]) return nullptr;
  for (const Special& special : specials_) {
    if (special.text.size() <= limit && text.substr(at).starts_with(special.text)) return &special;
  }
  return nullptr;
}

ChatEncoder::Marked ChatEncoder::mark(const RenderedChat& chat) const {
  const std::string text = chat.text();
  const std::vector<size_t> from_template = bytes_of_template(chat);
  Marked marked;
  const auto put_break = [&] {
    if (!break_) {
      throw Error(ExitCode::kMismatch,
                  "conversation: a message has the text of a special token, and this tokenizer has none that "
                  "could break it");
    }
    marked.text += break_->text;
    marked.specials.push_back({break_->id, true});
  };
  for (size_t at = 0; at < text.size();) {
    const Special* const found = longest_at(text, at, text.size());
    const Special* const written = longest_at(text, at, from_template[at]);
    const size_t taken = written != nullptr ? written->text.size() : tokenization::character_length(text[at]);
    marked.text.append(text, at, taken);
    if (written != nullptr) marked.specials.push_back({written->id, false});
    if (found != written) put_break();
    at += taken;
  }
  return marked;
}

std::vector<int32_t> ChatEncoder::encode(const RenderedChat& chat) const {
  const Marked marked = mark(chat);
  std::vector<int32_t> ids;
  auto expected = marked.specials.begin();
  for (const int id : tokenizer_.encode(marked.text, true)) {
    const bool is_special = tokenizer_.is_special(id);
    if (is_special && (expected == marked.specials.end() || expected->id != id)) {
      throw Error(ExitCode::kMismatch,
                  fmt::format("conversation: expected special tokens only where the template writes them, "
                              "got another one: {}",
                              in_quotes(tokenizer_.piece(id))));
    }
    if (!is_special || !expected->is_break) ids.push_back(id);
    if (is_special) ++expected;
  }
  if (expected != marked.specials.end()) {
    throw Error(ExitCode::kMismatch, fmt::format("conversation: expected the tokenizer to find {}, got none",
                                                 in_quotes(tokenizer_.piece(expected->id))));
  }
  const std::span<const int> prefix = tokenizer_.prefix_ids();
  const bool has_prefix =
      ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  if (!has_prefix) ids.insert(ids.begin(), prefix.begin(), prefix.end());
  return ids;
}

// ---- the prompts of a model ----

Prompter::Prompter(const Tokenizer& tokenizer, std::optional<ChatTemplate> chat_template, ChatOptions options)
    : tokenizer_(tokenizer),
      encoder_(tokenizer),
      template_(std::move(chat_template)),
      options_(std::move(options)) {}

Prompter Prompter::open(const Tokenizer& tokenizer, const fs::path& folder, const fs::path& template_file,
                        bool raw) {
  if (raw) return Prompter(tokenizer, std::nullopt, {});
  if (template_file.empty()) {
    try {
      ChatTemplate own = ChatTemplate::open(folder);
      check_template(own, {});
      return Prompter(tokenizer, std::move(own), {});
    } catch (const Error& error) {
      // Not a file of the folder that cannot be read.
      const bool has_none = std::string_view(error.what()).starts_with(folder.string() + ": ");
      if (error.code() != ExitCode::kNotFound || !has_none) throw;
      return Prompter(tokenizer, std::nullopt, {});
    }
  }
  // A template from elsewhere speaks of this model's tokens.
  ChatTemplate parsed = ChatTemplate::parse(load_text(template_file), template_file.string());
  ChatOptions options;
  if (const auto config = read_text_config(folder)) {
    options.bos_token = special_token(config->view(), "bos_token");
    options.eos_token = special_token(config->view(), "eos_token");
  }
  check_template(parsed, options);
  return Prompter(tokenizer, std::move(parsed), std::move(options));
}

std::vector<int32_t> Prompter::prompt(const Conversation& conversation) const {
  std::vector<int32_t> tokens;
  if (template_) {
    tokens = encoder_.encode(template_->render(conversation.messages(), options_));
  } else {
    tokens.assign(tokenizer_.prefix_ids().begin(), tokenizer_.prefix_ids().end());
    if (!conversation.turns.empty()) {
      const std::vector<int> text = tokenizer_.encode(conversation.turns.back());
      tokens.insert(tokens.end(), text.begin(), text.end());
    }
  }
  if (tokens.empty()) throw Error(ExitCode::kUsage, "--prompt: expected at least one token, got none");
  return tokens;
}

std::vector<int32_t> Prompter::prompt(const nlohmann::ordered_json& messages,
                                      const nlohmann::ordered_json& tools,
                                      const nlohmann::ordered_json& variables) const {
  return encode(render(messages, tools, variables));
}

RenderedChat Prompter::render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                              const nlohmann::ordered_json& variables, bool begins_answer) const {
  ChatOptions options = options_;
  options.add_generation_prompt = begins_answer;
  options.tools = tools;
  options.variables = variables;
  return template_.value().render(messages, options);
}

}  // namespace soliton
