// What somebody may have meant who slipped: the nearest of the words that there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace soliton {

/// Of the candidates the one most like what was written, whatever its case: a third of the letters may be wrong, left out, put
/// in or exchanged with their neighbours, or one be the beginning of the other. Empty if none is much like it.
std::string nearest_word(std::string_view written, const std::vector<std::string>& candidates);

/// "; did you mean WORD?", or nothing of an empty word.
std::string did_you_mean(const std::string& word);

}  // namespace soliton
