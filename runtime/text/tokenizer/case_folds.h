// Characters without case: what a character becomes, and which become several.
#pragma once

#include <string>
#include <vector>

namespace soliton::tokenization {

/// What the character equals where case does not count, by Unicode's full case folding.
std::u32string folded(char32_t code);

struct MultipleFold {
  char32_t code;
  std::u32string folded;
};

/// Characters such as ß, which Oniguruma takes to equal "ss" where case does not count, and PCRE2 does not.
const std::vector<MultipleFold>& multiple_folds();

}  // namespace soliton::tokenization
