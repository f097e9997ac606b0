// How long masks take, where SOLITON_SCHEMAS names a file with a schema a line ({"schema": ...}) and SOLITON_VOCABULARY one
// with tokens, as a JSON list of lists of bytes. Prints JSON; the results have what it printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "constrain_testing.h"

namespace soliton::constrain {
namespace {

using Json = nlohmann::ordered_json;

double milliseconds() {
  return static_cast<double>(processor_time().count()) * 1e-6;
}

Json quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Json told;
  for (const int percent : {50, 90, 99}) {
    const size_t index = (values.size() - 1) * static_cast<size_t>(percent) / 100;
    told["p" + std::to_string(percent)] = values[index];
  }
  told["max"] = values.back();
  return told;
}

/// Tokens that end strings and objects.
std::vector<int> closing_tokens(const std::vector<std::string>& pieces) {
  std::vector<int> closing;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string& piece = pieces[i];
    if (piece == "\"" || piece == "\"," || piece == "\"}" || piece == "}" || piece == "]")
      closing.push_back(static_cast<int>(i));
  }
  return closing;
}

size_t num_tokens(std::span<const uint32_t> mask) {
  size_t count = 0;
  for (const uint32_t word : mask) count += static_cast<size_t>(std::popcount(word));
  return count;
}
/// Of those that a mask allows.
int nth_token(std::span<const uint32_t> mask, size_t n) {
  size_t i = 0;
  for (; n >= static_cast<size_t>(std::popcount(mask[i])); ++i)
    n -= static_cast<size_t>(std::popcount(mask[i]));
  uint32_t word = mask[i];
  for (; n > 0; --n) word &= word - 1;
  return static_cast<int>(i) * kMaskBits + std::countr_zero(word);
}

/// A text at random that is likely to have `closing` tokens; adds the time of each mask. Between masks the test reads little:
/// what they read stays in the processor's caches, as it does while a card computes.
void write_text(TokenConstraint text, const std::vector<int>& closing, std::mt19937& random,
                std::vector<double>& times) {
  constexpr int kMostTokens = 150;
  for (int i = 0; i < kMostTokens; ++i) {
    const double began = milliseconds();
    const std::span<const uint32_t> mask = text.allowed();
    times.push_back(milliseconds() - began);
    const auto is_allowed = [&](int token) { return (mask[token / 32] >> token % 32 & 1) != 0; };
    std::vector<int> ends;
    std::copy_if(closing.begin(), closing.end(), std::back_inserter(ends), is_allowed);
    const bool ends_something = !ends.empty() && random() % 3 == 0;
    const size_t count = ends_something ? ends.size() : num_tokens(mask);
    if (count == 0) return;
    const size_t choice = random() % count;
    if (!text.accept(ends_something ? ends[choice] : nth_token(mask, choice)) || text.ended()) return;
  }
}

TEST(MaskTimes, OfManySchemas) {
  const char* const schemas = std::getenv("SOLITON_SCHEMAS");
  const char* const tokens = std::getenv("SOLITON_VOCABULARY");
  if (schemas == nullptr || tokens == nullptr)
    GTEST_SKIP() << "SOLITON_SCHEMAS and SOLITON_VOCABULARY name no files";
  std::vector<std::string> pieces;
  std::ifstream vocabulary_file(tokens);
  for (const Json& bytes : Json::parse(vocabulary_file)) {
    const auto codes = bytes.get<std::vector<uint8_t>>();
    pieces.emplace_back(codes.begin(), codes.end());
  }
  const int end = static_cast<int>(pieces.size());
  const std::vector<int> closing = closing_tokens(pieces);
  const auto vocabulary = std::make_shared<const Vocabulary>(pieces, end + 1);
  std::ifstream lines(schemas);
  std::mt19937 random(1);
  std::vector<double> all;
  std::vector<double> slowest;
  std::vector<double> making_ready;
  int num_schemas = 0;
  for (std::string line; std::getline(lines, line); ++num_schemas) {
    try {
      const Grammar grammar = json_schema_grammar(Json::parse(line)["schema"], "s");
      const double began = milliseconds();
      const auto made_ready = ready(grammar, vocabulary);
      making_ready.push_back(milliseconds() - began);
      std::vector<double> times;
      write_text(TokenConstraint(made_ready, std::vector<int32_t>{end}), closing, random, times);
      slowest.push_back(*std::max_element(times.begin(), times.end()));
      all.insert(all.end(), times.begin(), times.end());
    } catch (const Error&) {  // it is refused
    }
  }
  ASSERT_FALSE(slowest.empty()) << schemas;
  const auto within =
      std::count_if(slowest.begin(), slowest.end(), [](double milliseconds) { return milliseconds <= 1; });
  std::cout << Json{{"tokens", end},
                    {"schemas", num_schemas},
                    {"compiled", slowest.size()},
                    {"texts_within_1_ms_percent",
                     100.0 * static_cast<double>(within) / static_cast<double>(slowest.size())},
                    {"making_ready_ms", quantiles(making_ready)},
                    {"slowest_mask_of_a_text_ms", quantiles(slowest)},
                    {"mask_ms", quantiles(all)}}
                   .dump(1)
            << "\n";
}

}  // namespace
}  // namespace soliton::constrain
