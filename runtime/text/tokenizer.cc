// Encoding: added tokens cut the text into sections; each is normalized, cut again at added tokens that are
// looked for in normalized text, and cut into pieces, which BPE turns to ids each by itself. Loading checks
// everything that these steps rely on.
#include "runtime/text/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/gguf.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"
#include "runtime/text/gguf_tokenizer.h"
#include "runtime/text/tokenizer/added_tokens.h"
#include "runtime/text/tokenizer/bpe.h"
#include "runtime/text/tokenizer/decoder.h"
#include "runtime/text/tokenizer/normalizer.h"
#include "runtime/text/tokenizer/pre_tokenizer.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton {

using namespace tokenization;

namespace {

constexpr size_t kMaxPrefixIds = 64;

/// What `section` becomes if only [begin, end) of it is kept.
Section part_of(const Section& section, size_t begin, size_t end) {
  const size_t origin_end = std::clamp(section.origin_bytes, begin, end);
  return {.text = section.text.substr(begin, end - begin), .origin_bytes = origin_end - begin};
}

}  // namespace

struct Tokenizer::State {
  std::string file;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  AddedTokens added;
  Decoder decoder;
  std::vector<int> prefix_ids;
  // By id:
  std::vector<std::string> texts;   // what decoding starts from; empty: no token
  std::vector<std::string> pieces;  // raw bytes
  std::vector<bool> special;
  std::vector<bool> skipped;  // on decoding without special tokens
  std::vector<bool> none;     // all false

  void read_texts(const JsonView& root);
  void read_prefix(const JsonView& processor);
  bool place(int id, const std::string& text);

  struct Encoding {
    bool parse_special;
    std::vector<int> ids;
    TextLimit limit;
    BpeScratch scratch;
  };
  void encode_section(Section section, Encoding& encoding) const;
};

// ---- loading ----

/// Gives the id its text; false if it has another already.
bool Tokenizer::State::place(int id, const std::string& text) {
  const auto index = static_cast<size_t>(id);
  if (index >= texts.size()) texts.resize(index + 1);
  if (!texts[index].empty()) return false;
  texts[index] = text;
  return true;
}

void Tokenizer::State::read_texts(const JsonView& root) {
  for (const auto& [text, id] : bpe.vocabulary()) {
    if (place(id, text)) continue;
    throw root["model"]["vocab"].error("{}: expected an id of its own, got {}, which another token has",
                                       in_quotes(text), id);
  }
  for (const AddedToken& token : added.all()) {
    if (!bpe.vocabulary().contains(token.content) && !place(token.id, token.content)) {
      throw root["added_tokens"].error("{}: id {} disagrees with the rest of the file",
                                       in_quotes(token.content), token.id);
    }
    texts[static_cast<size_t>(token.id)] = token.normalized_content;
  }
  special.resize(texts.size());
  skipped.resize(texts.size());
  none.resize(texts.size());
  for (const AddedToken& token : added.all()) {
    const auto index = static_cast<size_t>(token.id);
    special[index] = token.special;
    // The reference goes by the text that decoding starts from.
    skipped[index] = token.special && token.normalized_content == token.content;
  }
  pieces.reserve(texts.size());
  TextLimit limit(file);
  for (const std::string& text : texts) {
    limit.extend(text.size());
    pieces.push_back(decoder.piece(text, limit));
    limit.end_part();
  }
}

/// ByteLevel (which changes offsets only), TemplateProcessing, or a Sequence of them.
void Tokenizer::State::read_prefix(const JsonView& processor) {
  if (processor.is_null()) return;
  const std::string& type = processor["type"].string();
  if (type == "ByteLevel") return;
  if (type == "Sequence") {
    const JsonView steps = processor["processors"];
    for (size_t i = 0; i < steps.array_size(); ++i) read_prefix(steps[i]);
    return;
  }
  if (type != "TemplateProcessing") {
    throw processor.error(ExitCode::kMismatch,
                          "expected a type of Sequence, ByteLevel, TemplateProcessing, got {}: not supported",
                          processor["type"].describe());
  }
  if (!prefix_ids.empty()) throw processor.error(ExitCode::kMismatch, "expected one template, got a second");
  const JsonView single = processor["single"];
  bool seen_text = false;
  for (size_t i = 0; i < single.array_size(); ++i) {
    const JsonView item = single[i];
    if (!item["Sequence"].is_null()) {
      if (seen_text) throw item.error("expected the text once, got it twice");
      seen_text = true;
      continue;
    }
    const std::string& name = item["SpecialToken"]["id"].string();
    if (seen_text) {
      throw item.error(ExitCode::kMismatch, "{} after the text is not supported", in_quotes(name));
    }
    const JsonView ids = processor["special_tokens"][name]["ids"];
    if (prefix_ids.size() + ids.array_size() > kMaxPrefixIds) {
      throw item.error(ExitCode::kOutOfMemory, "expected at most {} tokens before the text, got more",
                       kMaxPrefixIds);
    }
    for (size_t k = 0; k < ids.array_size(); ++k) {
      prefix_ids.push_back(static_cast<int>(ids[k].integer(0, static_cast<int64_t>(texts.size()) - 1)));
    }
  }
}

Tokenizer Tokenizer::open(const std::filesystem::path& folder) {
  if (is_gguf(folder)) {
    const GgufFile file = GgufFile::open(folder);
    return read_whole(file, [&] { return read(gguf_tokenizer(file), file.path()); });
  }
  const std::filesystem::path path = folder / "tokenizer.json";
  const std::string name = path.string();
  if (!is_present(path) && is_present(folder / "tokenizer.model")) {
    throw file_error(
        ExitCode::kNotFound, name,
        "no such file, only a tokenizer.model, which has to be converted (AutoTokenizer of transformers "
        "does, with save_pretrained)");
  }
  return read(read_json(path), name);
}

Tokenizer Tokenizer::read(const nlohmann::json& document, const std::string& name) {
  const JsonView root(document, name);
  auto state = std::make_unique<State>();
  state->file = name;
  state->normalizer = Normalizer::read(root["normalizer"]);
  state->pre_tokenizer = PreTokenizer::read(root["pre_tokenizer"]);
  state->bpe = Bpe::read(root["model"]);
  state->added = AddedTokens::read(root["added_tokens"], state->bpe, state->normalizer, TextLimit(name));
  state->decoder = Decoder::read(root["decoder"]);
  state->read_texts(root);
  state->read_prefix(root["post_processor"]);
  return Tokenizer(std::move(state));
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

// ---- encoding ----

void Tokenizer::State::encode_section(Section section, Encoding& encoding) const {
  normalizer.apply(section, encoding.limit);
  encoding.limit.end_part();
  for (const AddedTokens::Part& part : added.cut(section.text, true, encoding.parse_special)) {
    if (part.token != nullptr) {
      encoding.ids.push_back(part.token->id);
      continue;
    }
    const Pieces pieces = pre_tokenizer.cut(part_of(section, part.begin, part.end), encoding.limit);
    encoding.limit.end_part();
    for (const Span& span : pieces.spans) {
      bpe.encode(pieces.text(span), encoding.parse_special ? none : special, encoding.scratch, encoding.ids);
    }
  }
}

std::vector<int> Tokenizer::encode(std::string_view text, bool parse_special) const {
  if (text.size() > TextLimit::kMaxBytes) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("text: expected at most {} bytes, got {}", TextLimit::kMaxBytes, text.size()));
  }
  Section whole{.text = valid_utf8(std::string(text)), .origin_bytes = 0};
  if (!whole.text.empty()) whole.origin_bytes = first_character(whole.text).length;
  State::Encoding encoding{.parse_special = parse_special,
                           .ids = {},
                           .limit = TextLimit(state_->file, text.size()),
                           .scratch = {}};
  for (const AddedTokens::Part& part : state_->added.cut(whole.text, false, parse_special)) {
    if (part.token != nullptr) {
      encoding.ids.push_back(part.token->id);
    } else {
      state_->encode_section(part_of(whole, part.begin, part.end), encoding);
    }
  }
  return std::move(encoding.ids);
}

// ---- decoding ----

std::string Tokenizer::decode(std::span<const int> ids, bool skip_special) const {
  StreamDecoder decoder(*this, skip_special);
  std::string text;
  for (const int id : ids) decoder.append(id, text);
  return text + decoder.finish();
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : state_(tokenizer.state_.get()),
      stream_(std::make_unique<DecoderStream>(state_->decoder, state_->file)),
      skip_special_(skip_special) {}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

void StreamDecoder::append(int id, std::string& text) {
  const auto index = static_cast<size_t>(id);
  if (id < 0 || index >= state_->texts.size() || state_->texts[index].empty()) return;
  if (!skip_special_ || !state_->skipped[index]) stream_->push(state_->texts[index], text);
}

std::string StreamDecoder::push(int id) {
  std::string text;
  append(id, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  stream_->finish(text);
  return text;
}

// ---- the vocabulary ----

const std::string& Tokenizer::piece(int id) const {
  static const std::string none;
  return id < 0 || id >= vocabulary_size() ? none : state_->pieces[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int id) const {
  return id >= 0 && id < vocabulary_size() && state_->special[static_cast<size_t>(id)];
}

std::optional<int> Tokenizer::token_id(std::string_view text) const {
  if (const std::optional<int> id = state_->added.id_of(text)) return id;
  const auto found = state_->bpe.vocabulary().find(text);
  return found == state_->bpe.vocabulary().end() ? std::nullopt : std::optional(found->second);
}

int Tokenizer::vocabulary_size() const {
  return static_cast<int>(state_->texts.size());
}

std::span<const int> Tokenizer::prefix_ids() const {
  return state_->prefix_ids;
}

}  // namespace soliton
