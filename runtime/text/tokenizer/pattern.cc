#include "runtime/text/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/text/tokenizer/pattern_syntax.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

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

/// What matching works in, one per thread.
struct Scratch {
  static constexpr size_t kMinStack = 32 << 10;  // bytes
  static constexpr size_t kMaxStack = 8 << 20;

  Scratch()
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

/// Of PCRE2's own count at one place. Few patterns take so many where they should; the latter is PCRE2's default.
constexpr uint32_t kUsualSteps = 5000;
constexpr uint32_t kMaxSteps = 10'000'000;

/// What PCRE2 says of the text from byte `from` on.
int matched(const pcre2_code* code, std::string_view text, size_t from, uint32_t max_steps, Match& match) {
  thread_local const Scratch scratch;
  pcre2_set_match_limit(scratch.context.get(), max_steps);
  const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                 PCRE2_NO_UTF_CHECK, scratch.match.get(), scratch.context.get());
  if (result < 0) return result;
  const size_t* const found = pcre2_get_ovector_pointer(scratch.match.get());
  match = {found[0], found[1], true};
  return result;
}

bool is_match(int result, const std::string& where, size_t from) {
  if (result >= 0) return true;
  if (result == PCRE2_ERROR_NOMATCH) return false;
  throw file_error(ExitCode::kOutOfMemory, where, "at byte {} of the text: {}", from, pcre2_message(result));
}

}  // namespace

struct Pattern::Code {
  Pcre2<pcre2_code> compiled;
  Pcre2<pcre2_code> anchored;  // the same, which matches at the first byte or not at all
  std::string where;           // file and key, for errors
};

Pattern::Pattern(std::string literal, std::shared_ptr<const Code> code)
    : literal_(std::move(literal)), code_(std::move(code)) {}

Pattern Pattern::literal(std::string text) {
  return {std::move(text), nullptr};
}

Pattern Pattern::regex(std::string_view original, const JsonView& where) {
  const std::string pattern = to_pcre2(original, where);
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  size_t offset = 0;
  auto code = std::make_shared<Code>();
  const Place place = where.place();
  code->where = fmt::format("{}: {}", place.file, place.key);
  const auto compile = [&](uint32_t options) {
    Pcre2<pcre2_code> compiled(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                             kOptions | options, &error, &offset, nullptr));
    if (compiled != nullptr)
      pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);  // else the interpreter does it
    return compiled;
  };
  code->compiled = compile(0);
  code->anchored = compile(PCRE2_ANCHORED);
  if (code->compiled == nullptr || code->anchored == nullptr) {
    if (pattern != original) throw where.error("{}", pcre2_message(error));
    throw where.error("at byte {} of the pattern: {}", offset, pcre2_message(error));
  }
  return {"", std::move(code)};
}

Pattern Pattern::read(const JsonView& pattern) {
  if (const JsonView text = pattern["String"]; !text.is_null()) {
    if (text.string().empty()) return regex("", text);  // matches everywhere
    return literal(text.string());
  }
  const JsonView expression = pattern["Regex"];
  return regex(expression.string(), expression);
}

bool Pattern::search(std::string_view text, size_t from, TextLimit& limit, Match& match) const {
  if (code_ == nullptr) {
    const size_t begin = text.find(literal_, from);
    match = {begin, begin + literal_.size(), true};
    return begin != text.npos;
  }
  const int result = matched(code_->compiled.get(), text, from, kUsualSteps, match);
  return result == PCRE2_ERROR_MATCHLIMIT ? search_slowly(text, from, limit, match)
                                          : is_match(result, code_->where, from);
}

/// Place by place, as few of them may take more than the usual number of steps.
bool Pattern::search_slowly(std::string_view text, size_t from, TextLimit& limit, Match& match) const {
  while (from <= text.size()) {
    int result = matched(code_->anchored.get(), text, from, kUsualSteps, match);
    if (result == PCRE2_ERROR_MATCHLIMIT) {
      if (!limit.allows_slow_match()) {
        throw file_error(ExitCode::kOutOfMemory, code_->where,
                         "at byte {} of the text: expected a pattern that takes long at few places, got more",
                         from);
      }
      result = matched(code_->anchored.get(), text, from, kMaxSteps, match);
    }
    if (is_match(result, code_->where, from)) return true;
    from += from < text.size() ? character_length(text[from]) : 1;
  }
  return false;
}

void Pattern::find(std::string_view text, TextLimit& limit, std::vector<Match>& matches) const {
  size_t covered = 0;
  std::optional<size_t> last_end;
  Match match{};
  for (size_t from = 0; from <= text.size() && search(text, from, limit, match);) {
    if (match.begin >= match.end && last_end == match.end) {
      from += from < text.size() ? character_length(text[from]) : 1;
      continue;
    }
    if (match.begin > covered) matches.push_back({covered, match.begin, false});
    matches.push_back(match);
    covered = from = match.end;
    last_end = match.end;
  }
  if (covered < text.size()) matches.push_back({covered, text.size(), false});
}

std::string Pattern::replace(std::string_view text, std::string_view content, TextLimit& limit) const {
  std::vector<Match> matches;
  if (!text.empty()) find(text, limit, matches);
  std::string result;
  for (const Match& match : matches) {
    result += match.matched ? content : text.substr(match.begin, match.end - match.begin);
    limit.require(result.size());
  }
  return result;
}

bool Pattern::is_one_character() const {
  return code_ == nullptr && first_character(literal_).length == literal_.size();
}

}  // namespace soliton::tokenization
