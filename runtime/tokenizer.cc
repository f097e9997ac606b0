// Encoding: added tokens cut the text into sections; patterns cut sections into pieces, each by itself; BPE
// merges the bytes of each piece. Loading checks everything that those steps rely on.
#include "runtime/tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "runtime/mapped_file.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr int kMaxTokenId = (1 << 22) - 1;  // bounds what one id can make us allocate
constexpr int kNumBytes = 256;
constexpr size_t kMaxTextBytes = size_t{1} << 28;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// ---- UTF-8 ----

struct Utf8Step {
  size_t length;  // bytes to take: a character, or the longest start of one that went wrong
  enum { kValid, kInvalid, kIncomplete } kind;
};

/// The first character of non-empty text. kIncomplete: the text ends inside what could become a character.
Utf8Step utf8_step(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Utf8Step::kValid};
  if (lead < 0xc2 || lead > 0xf4) return {1, Utf8Step::kInvalid};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte excludes overlong forms, surrogates and what lies past U+10FFFF.
  unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, Utf8Step::kIncomplete};
    if (byte(i) < low || byte(i) > high) return {i, Utf8Step::kInvalid};
    low = 0x80;
    high = 0xbf;
  }
  return {length, Utf8Step::kValid};
}

/// Moves the whole characters at the front of `bytes` out of it, what is invalid as U+FFFD.
std::string take_characters(std::string& bytes) {
  std::string characters;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Step::kIncomplete) break;
    characters += step.kind == Utf8Step::kValid ? rest.substr(0, step.length) : kReplacement;
    rest.remove_prefix(step.length);
  }
  bytes.erase(0, bytes.size() - rest.size());
  return characters;
}

std::string valid_utf8(std::string bytes) {
  std::string text = take_characters(bytes);
  if (!bytes.empty()) text += kReplacement;
  return text;
}

// ---- the byte-level alphabet: every byte has a printable character that stands for it ----

/// Code points of the characters: printable Latin-1 for themselves, the other bytes from U+0100 on.
constexpr std::array<int, kNumBytes> make_byte_letters() {
  std::array<int, kNumBytes> letters{};
  int next = kNumBytes;
  for (int byte = 0; byte < kNumBytes; ++byte) {
    const bool prints =
        (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
    letters[static_cast<size_t>(byte)] = prints ? byte : next++;
  }
  return letters;
}

constexpr std::array<int, kNumBytes> kByteLetters = make_byte_letters();
constexpr int kNumLetters = 0x144;  // one more than the largest code point in kByteLetters

std::string byte_letter(unsigned char byte) {
  const int letter = kByteLetters[byte];
  if (letter < 0x80) return {static_cast<char>(letter)};
  return {static_cast<char>(0xc0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3f))};
}

/// The bytes a vocabulary entry stands for; the entry itself if it has a character outside the alphabet.
std::string letters_to_bytes(const std::string& letters) {
  static const std::array<int, kNumLetters> byte_of = [] {
    std::array<int, kNumLetters> table{};
    table.fill(-1);
    for (int byte = 0; byte < kNumBytes; ++byte) {
      table[static_cast<size_t>(kByteLetters[static_cast<size_t>(byte)])] = byte;
    }
    return table;
  }();
  std::string bytes;
  for (size_t i = 0; i < letters.size(); ++i) {
    auto letter = static_cast<unsigned>(static_cast<unsigned char>(letters[i]));
    if (letter >= 0xe0) return letters;
    if (letter >= 0x80) letter = (letter & 0x1f) << 6 | (static_cast<unsigned char>(letters[++i]) & 0x3f);
    if (letter >= kNumLetters || byte_of[letter] < 0) return letters;
    bytes += static_cast<char>(byte_of[letter]);
  }
  return bytes;
}

// ---- patterns ----

struct Pcre2Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <class T>
using Pcre2 = std::unique_ptr<T, Pcre2Free>;

std::string pcre2_message(int error) {
  std::array<unsigned char, 128> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// The pattern with \s and \S spelled out as Unicode's White_Space, which is what the reference engine means
/// by them. PCRE2 adds U+180E, a format character that Mongolian text uses inside words.
/// A \S inside a class has no such spelling and stays.
std::string with_unicode_whitespace(std::string_view pattern) {
  constexpr std::string_view kMembers = R"(\t-\r\x{85}\p{Z})";
  std::string result;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view two = pattern.substr(i, 2);
    if (two == "\\s" || (two == "\\S" && !in_class)) {
      result += in_class ? std::string(kMembers) : fmt::format("[{}{}]", two == "\\S" ? "^" : "", kMembers);
      ++i;
    } else if (two.starts_with('\\')) {
      result += two;
      ++i;
    } else if (in_class && two == "[:") {  // a POSIX class such as [:alpha:]
      const size_t end = std::min(pattern.find(":]", i + 2), pattern.size() - 2) + 2;
      result += pattern.substr(i, end - i);
      i = end - 1;
    } else {
      result += pattern[i];
      if (!in_class && pattern[i] == '[') {
        in_class = true;
        // Here a ']' is a member, not the end.
        for (const char member : {'^', ']'}) {
          if (i + 1 < pattern.size() && pattern[i + 1] == member) result += pattern[++i];
        }
      } else if (pattern[i] == ']') {
        in_class = false;
      }
    }
  }
  return result;
}

/// What matching works in; made once per text and used for all of its pieces.
struct PatternScratch {
  static constexpr size_t kMinStack = 32 << 10;  // bytes
  static constexpr size_t kMaxStack = 8 << 20;

  PatternScratch()
      : match(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kMinStack, kMaxStack, nullptr)) {
    if (match == nullptr || context == nullptr || stack == nullptr) throw std::bad_alloc();
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }

  Pcre2<pcre2_match_data> match;
  Pcre2<pcre2_match_context> context;
  Pcre2<pcre2_jit_stack> stack;
};

/// A compiled pattern that cuts text into its matches and what lies between them.
class Pattern {
 public:
  /// `where` is what a bad pattern is reported as.
  Pattern(std::string_view original, const JsonView& where) {
    const std::string pattern = with_unicode_whitespace(original);
    constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    int error = 0;
    size_t offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions, &error,
                              &offset, nullptr));
    if (code_ == nullptr) throw where.error("at byte {} of the pattern: {}", offset, pcre2_message(error));
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where it fails, the interpreter does the work
  }

  /// Appends the pieces of `text`, which is valid UTF-8. A match of nothing cuts nothing.
  void split(std::string_view text, const PatternScratch& scratch,
             std::vector<std::string_view>& pieces) const {
    const size_t* const found = pcre2_get_ovector_pointer(scratch.match.get());  // begin, end
    size_t start = 0;                                                            // of what is not yet cut
    for (size_t from = 0; from < text.size() && search(text, from, scratch);) {
      if (found[1] <= found[0]) {
        from = std::max(from, found[0]);
        if (from < text.size()) from += utf8_step(text.substr(from)).length;
        continue;
      }
      if (found[0] > start) pieces.push_back(text.substr(start, found[0] - start));
      pieces.push_back(text.substr(found[0], found[1] - found[0]));
      start = from = found[1];
    }
    if (start < text.size()) pieces.push_back(text.substr(start));
  }

 private:
  bool search(std::string_view text, size_t from, const PatternScratch& scratch) const {
    const int result = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                   PCRE2_NO_UTF_CHECK, scratch.match.get(), scratch.context.get());
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result >= 0) return true;
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("tokenizer pattern at byte {} of the text: {}", from, pcre2_message(result)));
  }

  Pcre2<pcre2_code> code_;
};

// ---- merging ----

struct Merge {
  int rank;
  int id;  // of the pair's concatenation
};

constexpr uint64_t pair_key(int left, int right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

using Merges = std::unordered_map<uint64_t, Merge>;

/// The symbols of one piece, as a linked list, and the merges of neighbours that are possible. Merges the
/// lowest rank first and the leftmost among equals, in n log n.
class MergeList {
 public:
  explicit MergeList(const Merges& merges) : merges_(merges) {}

  void append(int id) {
    const int position = static_cast<int>(symbols_.size());
    if (position > 0) symbols_.back().next = position;
    symbols_.push_back({.id = id, .previous = position - 1, .next = -1});
  }

  /// Merges until nothing can be merged and appends what is left to `ids`.
  void merge_into(std::vector<int>& ids) {
    if (symbols_.empty()) return;
    for (int i = 0; i < static_cast<int>(symbols_.size()); ++i) consider(i);
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      apply(best);
    }
    for (int i = 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
  }

 private:
  struct Symbol {
    int id;  // -1: merged into its left neighbour
    int previous;
    int next;
  };
  struct Candidate {
    int rank;
    int position;
    int left;  // ids when queued: if either symbol has changed since, the candidate is stale
    int right;
    int merged;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };

  Symbol& at(int position) { return symbols_[static_cast<size_t>(position)]; }

  void consider(int position) {
    if (position < 0 || at(position).next < 0) return;
    const int left = at(position).id;
    const int right = at(at(position).next).id;
    const auto merge = merges_.find(pair_key(left, right));
    if (merge == merges_.end()) return;
    queue_.push({merge->second.rank, position, left, right, merge->second.id});
  }

  void apply(const Candidate& candidate) {
    Symbol& left = at(candidate.position);
    if (left.id != candidate.left || left.next < 0 || at(left.next).id != candidate.right) return;
    Symbol& right = at(left.next);
    left.id = candidate.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) at(left.next).previous = candidate.position;
    consider(left.previous);
    consider(candidate.position);
  }

  const Merges& merges_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, int, TextHash, std::equal_to<>>;

}  // namespace

struct Tokenizer::State {
  struct Added {
    int id;
    bool special;
    bool normalized;  // found in a second pass, after those that are not
  };
  using AddedTokens = std::unordered_map<std::string, Added, TextHash, std::equal_to<>>;

  TokenIds vocabulary;  // as the file writes them, in byte-level letters
  Merges merges;
  std::array<int, kNumBytes> byte_ids{};  // -1: dropped, as the reference does
  bool ignore_merges = false;
  AddedTokens added;
  // Lengths of the added tokens that begin with a byte, longest first.
  std::array<std::vector<size_t>, kNumBytes> added_lengths;
  std::vector<Pattern> patterns;  // applied one after another
  std::vector<int> prefix_ids;
  std::vector<std::string> pieces;  // raw bytes, by id
  std::vector<bool> special;        // by id

  void load_model(const JsonView& model);
  void load_vocabulary(const JsonView& vocab);
  void load_merges(const JsonView& merges);
  void load_added(const JsonView& added);
  void load_patterns(const JsonView& pre_tokenizer);
  void load_byte_level(const JsonView& byte_level);
  void load_prefix(const JsonView& post_processor);
  bool place(int id, std::string bytes);

  struct Encoding {
    bool parse_special;
    std::vector<int> ids;
    PatternScratch scratch;
  };
  void encode_section(std::string_view text, bool normalized, Encoding& encoding) const;
  void encode_plain(std::string_view text, Encoding& encoding) const;
  void encode_piece(std::string_view piece, Encoding& encoding) const;
  const AddedTokens::value_type* added_at(std::string_view text, bool normalized) const;
};

namespace {

void expect_type(const JsonView& part, std::string_view type) {
  const JsonView got = part.is_null() ? part : part["type"];
  if (part.is_null() || got.string() != type) {
    throw part.error(ExitCode::kMismatch, "expected type {}, got {}", type, got.describe());
  }
}

/// Refuses a setting other than its neutral value, which absence and null mean too.
void expect_false(const JsonView& setting) {
  if (!setting.is_null() && setting.boolean()) {
    throw setting.error(ExitCode::kMismatch, "expected false, got true: not supported");
  }
}

void expect_empty(const JsonView& setting) {
  if (!setting.is_null() && !setting.string().empty()) {
    throw setting.error(ExitCode::kMismatch, "expected none, got {}: not supported", setting.describe());
  }
}

int read_id(const JsonView& view) {
  return static_cast<int>(view.integer(0, kMaxTokenId));
}

/// The two tokens of a merge: ["a", "b"], or the older "a b".
std::pair<std::string, std::string> read_merge(const JsonView& merge) {
  if (merge.is_array()) {
    if (merge.array_size() != 2) throw merge.error("expected two tokens, got {}", merge.array_size());
    return {merge[0].string(), merge[1].string()};
  }
  const std::string& both = merge.string();
  const size_t space = both.find(' ');
  if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos) {
    throw merge.error("expected two tokens with a space between, got {}", merge.describe());
  }
  return {both.substr(0, space), both.substr(space + 1)};
}

}  // namespace

// ---- loading ----

/// Gives the id its bytes; false if it has some already.
bool Tokenizer::State::place(int id, std::string bytes) {
  const auto index = static_cast<size_t>(id);
  if (index >= pieces.size()) pieces.resize(index + 1);
  if (!pieces[index].empty()) return false;
  pieces[index] = std::move(bytes);
  return true;
}

void Tokenizer::State::load_model(const JsonView& model) {
  if (!model["type"].is_null()) expect_type(model, "BPE");  // the oldest files do not say
  const JsonView dropout = model["dropout"];
  if (!dropout.is_null() && dropout.number(0, 1) != 0) {
    throw dropout.error(ExitCode::kMismatch, "expected none, got {}: not supported", dropout.describe());
  }
  expect_false(model["byte_fallback"]);
  expect_empty(model["continuing_subword_prefix"]);
  expect_empty(model["end_of_word_suffix"]);
  ignore_merges = !model["ignore_merges"].is_null() && model["ignore_merges"].boolean();
  load_vocabulary(model["vocab"]);
  load_merges(model["merges"]);
  const JsonView unknown = model["unk_token"];
  const bool has_every_byte = std::find(byte_ids.begin(), byte_ids.end(), -1) == byte_ids.end();
  if (!unknown.is_null() && !has_every_byte) {
    throw unknown.error(ExitCode::kMismatch, "expected none, as the vocabulary lacks a byte, got {}",
                        unknown.describe());
  }
}

void Tokenizer::State::load_vocabulary(const JsonView& vocab) {
  const json& entries = vocab.object();
  vocabulary.reserve(entries.size());
  for (const auto& [text, value] : entries.items()) {
    const int id = read_id(vocab[text]);
    if (text.empty()) throw vocab.error("expected tokens of at least one character, got an empty one");
    if (!place(id, letters_to_bytes(text))) {
      throw vocab.error("{}: expected an id of its own, got {}, which another token has", in_quotes(text),
                        id);
    }
    vocabulary.emplace(text, id);
  }
  for (size_t byte = 0; byte < kNumBytes; ++byte) {
    const auto found = vocabulary.find(byte_letter(static_cast<unsigned char>(byte)));
    byte_ids[byte] = found == vocabulary.end() ? -1 : found->second;
  }
}

void Tokenizer::State::load_merges(const JsonView& list) {
  const size_t num_merges = list.array_size();
  merges.reserve(num_merges);
  for (size_t i = 0; i < num_merges; ++i) {
    const JsonView merge = list[i];
    const auto id_of = [&](const std::string& text) {
      const auto found = vocabulary.find(text);
      if (found == vocabulary.end()) throw merge.error("{} is not in the vocabulary", in_quotes(text));
      return found->second;
    };
    const auto [left, right] = read_merge(merge);
    // Of equal pairs the last counts, as in the reference.
    const int left_id = id_of(left);
    const int right_id = id_of(right);
    merges.insert_or_assign(pair_key(left_id, right_id),
                            Merge{.rank = static_cast<int>(i), .id = id_of(left + right)});
  }
}

void Tokenizer::State::load_added(const JsonView& list) {
  if (list.is_null()) return;
  for (size_t i = 0; i < list.array_size(); ++i) {
    const JsonView token = list[i];
    const std::string& content = token["content"].string();
    const int id = read_id(token["id"]);
    if (content.empty()) throw token.error("expected content, got an empty string");
    for (const char* flag : {"single_word", "lstrip", "rstrip"}) expect_false(token[flag]);
    const auto known = vocabulary.find(content);
    const bool same = known != vocabulary.end() && known->second == id;
    if ((known != vocabulary.end() && !same) || (!same && !place(id, content))) {
      throw token.error("{}: id {} disagrees with the rest of the file", in_quotes(content), id);
    }
    pieces[static_cast<size_t>(id)] = content;
    const bool is_special = !token["special"].is_null() && token["special"].boolean();
    const bool normalized = token["normalized"].is_null() ? !is_special : token["normalized"].boolean();
    if (!added.try_emplace(content, Added{.id = id, .special = is_special, .normalized = normalized})
             .second) {
      throw token.error("{} is listed twice", in_quotes(content));
    }
    auto& lengths = added_lengths[static_cast<unsigned char>(content[0])];
    if (std::find(lengths.begin(), lengths.end(), content.size()) == lengths.end())
      lengths.push_back(content.size());
  }
  for (auto& lengths : added_lengths) std::sort(lengths.begin(), lengths.end(), std::greater<>());
  special.resize(pieces.size());
  for (const auto& [content, token] : added) special[static_cast<size_t>(token.id)] = token.special;
}

void Tokenizer::State::load_byte_level(const JsonView& byte_level) {
  const JsonView prefix = byte_level["add_prefix_space"];
  if (prefix.is_null()) throw prefix.error("expected true or false, got nothing");
  expect_false(prefix);
  const JsonView use_regex = byte_level["use_regex"];
  if (use_regex.is_null() || use_regex.boolean()) patterns.emplace_back(kGpt2Pattern, byte_level);
}

/// ByteLevel, or a Sequence of Split and Digits that ends in ByteLevel.
void Tokenizer::State::load_patterns(const JsonView& pre_tokenizer) {
  if (pre_tokenizer.is_null() || pre_tokenizer["type"].string() != "Sequence") {
    expect_type(pre_tokenizer, "ByteLevel");
    return load_byte_level(pre_tokenizer);
  }
  const JsonView steps = pre_tokenizer["pretokenizers"];
  const size_t num_steps = steps.array_size();
  for (size_t i = 0; i + 1 < num_steps; ++i) {
    const JsonView step = steps[i];
    if (step["type"].string() == "Digits") {
      const bool individual = step["individual_digits"].boolean();
      patterns.emplace_back(individual ? R"(\p{N})" : R"(\p{N}+)", step);
      continue;
    }
    expect_type(step, "Split");
    const JsonView behavior = step["behavior"];
    if (behavior.string() != "Isolated") {
      throw behavior.error(ExitCode::kMismatch, "expected \"Isolated\", got {}", behavior.describe());
    }
    expect_false(step["invert"]);
    const JsonView regex = step["pattern"]["Regex"];
    if (regex.is_null()) throw step["pattern"].error(ExitCode::kMismatch, "expected a Regex, got none");
    patterns.emplace_back(regex.string(), regex);
  }
  if (num_steps == 0) throw steps.error("expected at least ByteLevel, got none");
  expect_type(steps[num_steps - 1], "ByteLevel");
  load_byte_level(steps[num_steps - 1]);
}

/// ByteLevel (which changes offsets only), TemplateProcessing, or a Sequence of them.
void Tokenizer::State::load_prefix(const JsonView& processor) {
  if (processor.is_null()) return;
  const std::string& type = processor["type"].string();
  if (type == "ByteLevel") return;
  if (type == "Sequence") {
    const JsonView steps = processor["processors"];
    for (size_t i = 0; i < steps.array_size(); ++i) load_prefix(steps[i]);
    return;
  }
  expect_type(processor, "TemplateProcessing");
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
    for (size_t k = 0; k < ids.array_size(); ++k) {
      prefix_ids.push_back(static_cast<int>(ids[k].integer(0, static_cast<int64_t>(pieces.size()) - 1)));
    }
  }
}

// ---- encoding ----

const Tokenizer::State::AddedTokens::value_type* Tokenizer::State::added_at(std::string_view text,
                                                                            bool normalized) const {
  for (const size_t length : added_lengths[static_cast<unsigned char>(text[0])]) {
    if (length > text.size()) continue;
    const auto found = added.find(text.substr(0, length));
    if (found != added.end() && found->second.normalized == normalized) return &*found;
  }
  return nullptr;
}

/// Cuts at added tokens: those not normalised first, then the others in what is left.
void Tokenizer::State::encode_section(std::string_view text, bool normalized, Encoding& encoding) const {
  const auto encode_rest = [&](std::string_view rest) {
    if (rest.empty()) return;
    if (normalized) return encode_plain(rest, encoding);
    encode_section(rest, true, encoding);
  };
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const auto* const token = added_at(text.substr(i), normalized);
    if (token == nullptr) {
      ++i;
      continue;
    }
    const size_t end = i + token->first.size();
    if (encoding.parse_special || !token->second.special) {
      encode_rest(text.substr(start, i - start));
      encoding.ids.push_back(token->second.id);
      start = end;
    }
    i = end;
  }
  encode_rest(text.substr(start));
}

void Tokenizer::State::encode_plain(std::string_view text, Encoding& encoding) const {
  std::vector<std::string_view> current{text};
  std::vector<std::string_view> next;
  for (const Pattern& pattern : patterns) {
    next.clear();
    for (const std::string_view piece : current) pattern.split(piece, encoding.scratch, next);
    current.swap(next);
  }
  for (const std::string_view piece : current) encode_piece(piece, encoding);
}

void Tokenizer::State::encode_piece(std::string_view piece, Encoding& encoding) const {
  if (ignore_merges) {
    std::string letters;
    for (const char byte : piece) letters += byte_letter(static_cast<unsigned char>(byte));
    const auto found = vocabulary.find(letters);
    if (found != vocabulary.end() &&
        (encoding.parse_special || !special[static_cast<size_t>(found->second)])) {
      encoding.ids.push_back(found->second);
      return;
    }
  }
  MergeList list(merges);
  for (const char byte : piece) {
    const int id = byte_ids[static_cast<unsigned char>(byte)];
    if (id >= 0) list.append(id);
  }
  list.merge_into(encoding.ids);
}

// ---- public ----

Tokenizer Tokenizer::open(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  const std::string name = path.string();
  const json document = read_json(path);
  const JsonView root(document, name);
  const JsonView normalizer = root["normalizer"];
  if (!normalizer.is_null()) {
    throw normalizer.error(ExitCode::kMismatch, "expected none, got {}: not supported",
                           normalizer["type"].describe());
  }
  auto state = std::make_unique<State>();
  state->load_model(root["model"]);
  state->special.resize(state->pieces.size());
  state->load_added(root["added_tokens"]);
  state->load_patterns(root["pre_tokenizer"]);
  state->load_prefix(root["post_processor"]);
  expect_type(root["decoder"], "ByteLevel");
  return Tokenizer(std::move(state));
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<int> Tokenizer::encode(std::string_view text, bool parse_special) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("text: expected at most {} bytes, got {}", kMaxTextBytes, text.size()));
  }
  State::Encoding encoding{.parse_special = parse_special, .ids = {}, .scratch = {}};
  state_->encode_section(valid_utf8(std::string(text)), false, encoding);
  return std::move(encoding.ids);
}

std::string Tokenizer::decode(std::span<const int> ids, bool skip_special) const {
  std::string bytes;
  for (const int id : ids) {
    if (!skip_special || !is_special(id)) bytes += piece(id);
  }
  return valid_utf8(std::move(bytes));
}

const std::string& Tokenizer::piece(int id) const {
  static const std::string none;
  return id < 0 || id >= vocabulary_size() ? none : state_->pieces[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int id) const {
  return id >= 0 && id < vocabulary_size() && state_->special[static_cast<size_t>(id)];
}

std::optional<int> Tokenizer::token_id(std::string_view text) const {
  if (const auto found = state_->added.find(text); found != state_->added.end()) return found->second.id;
  if (const auto found = state_->vocabulary.find(text); found != state_->vocabulary.end())
    return found->second;
  return std::nullopt;
}

int Tokenizer::vocabulary_size() const {
  return static_cast<int>(state_->pieces.size());
}

std::span<const int> Tokenizer::prefix_ids() const {
  return state_->prefix_ids;
}

std::string StreamDecoder::push(int id) {
  if (!skip_special_ || !tokenizer_->is_special(id)) pending_ += tokenizer_->piece(id);
  return take_characters(pending_);
}

std::string StreamDecoder::finish() {
  return valid_utf8(std::exchange(pending_, {}));
}

}  // namespace soliton
