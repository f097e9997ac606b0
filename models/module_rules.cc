#define PCRE2_CODE_UNIT_WIDTH 8
#include "models/module_rules.h"

#include <pcre2.h>

#include <algorithm>

namespace soliton {
namespace {

constexpr size_t kMostCharacters = 4096;  // of a pattern
constexpr uint32_t kMostSteps = 100'000;  // of a match
constexpr int kFloatBits = 16;

/// In time of the product of both lengths: behind a star that does not fit, only the last one is tried anew.
bool matches_wildcards(std::string_view pattern, std::string_view name) {
  size_t at = 0;
  size_t in_name = 0;
  size_t star = std::string_view::npos;
  size_t behind = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      behind = in_name;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[in_name])) {
      ++at;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++behind;
    } else {
      return false;
    }
  }
  return pattern.substr(at).find_first_not_of('*') == std::string_view::npos;
}

}  // namespace

struct ModulePattern::Compiled {
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
};

ModulePattern::ModulePattern(PatternKind kind, std::string text, const JsonView& at)
    : kind_(kind), text_(std::move(text)) {
  const Place place = at.place();
  place_ = fmt::format("{}: {}", place.file, place.key);
  if (text_.size() > kMostCharacters)
    throw at.error("expected a pattern of at most {} characters, got {}", kMostCharacters, text_.size());
  if (kind_ != PatternKind::kRegex) return;
  const auto compiled = std::make_shared<Compiled>();
  int failure = 0;
  size_t offset = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(),
                                 PCRE2_UTF | PCRE2_ANCHORED, &failure, &offset, nullptr);
  if (compiled->code == nullptr) throw at.error("expected a regular expression, got {}", in_quotes(text_));
  compiled->limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(compiled->limits, kMostSteps);
  pcre2_set_depth_limit(compiled->limits, kMostSteps);
  compiled_ = compiled;
}

bool ModulePattern::matches(const std::string& name) const {
  if (kind_ == PatternKind::kName) return name == text_;
  if (kind_ == PatternKind::kWildcards) return matches_wildcards(text_, name);
  pcre2_match_data* const data = pcre2_match_data_create_from_pattern(compiled_->code, nullptr);
  const int count = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0,
                                data, compiled_->limits);
  pcre2_match_data_free(data);
  if (count >= 0) return true;
  if (count == PCRE2_ERROR_NOMATCH) return false;
  throw Error(ExitCode::kMismatch,
              fmt::format("{}: expected an expression that matches in a few steps, got {}", place_,
                          in_quotes(text_)));
}

const ModuleRule* ModuleRules::find(const std::string& name, const std::string& file) const {
  const ModuleRule* found = nullptr;
  for (const ModuleRule& rule : rules) {
    if (!rule.pattern.matches(name)) continue;
    if (found != nullptr && (found->bits != rule.bits || found->group_size != rule.group_size)) {
      throw file_error(ExitCode::kMismatch, file,
                       "{}: expected patterns that say the same of it, got several that do not", name);
    }
    found = &rule;
  }
  return found;
}

bool ModuleRules::is_target(const std::string& name) const {
  return targets.empty() ||
         std::ranges::any_of(targets, [&](const ModulePattern& target) { return target.matches(name); });
}

bool ModuleRules::is_left_out(const std::string& name, const std::string& file) const {
  const ModuleRule* const rule = find(name, file);
  return !is_target(name) || (rule != nullptr && rule->bits == kFloatBits);
}

}  // namespace soliton
