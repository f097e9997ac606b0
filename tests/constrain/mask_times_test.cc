// How long masks take, where SOLITON_SCHEMAS names a file with a schema a line ({"schema": ...}) and SOLITON_VOCABULARY one
// with tokens, as a JSON list of lists of bytes. Prints JSON; the results have what it printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>

#include "constrain_testing.h"

namespace soliton::constrain {
namespace {

using Json = nlohmann::ordered_json;

/// Of this thread, as others share the processor.
double milliseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
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

/// A text at random that is likely to end strings and objects; adds the time of each mask.
void write_text(TokenConstraint text, const Vocabulary& vocabulary, std::mt19937& random,
                std::vector<double>& times) {
  constexpr int kMostTokens = 150;
  for (int i = 0; i < kMostTokens; ++i) {
    const double began = milliseconds();
    const std::span<const uint32_t> mask = text.allowed();
    times.push_back(milliseconds() - began);
    const std::vector<int> tokens = tokens_of(mask);
    std::vector<int> closing;
    for (const int token : tokens) {
      const std::string& piece = vocabulary.piece(token);
      if (piece == "\"" || piece == "\"," || piece == "\"}" || piece == "}" || piece == "]")
        closing.push_back(token);
    }
    const std::vector<int>& from = !closing.empty() && random() % 3 == 0 ? closing : tokens;
    if (from.empty() || !text.accept(from[random() % from.size()]) || text.ended()) return;
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
  const auto vocabulary = std::make_shared<const Vocabulary>(pieces, end + 1);
  std::ifstream lines(schemas);
  std::mt19937 random(1);
  std::vector<double> all;
  std::vector<double> slowest;
  int num_schemas = 0;
  for (std::string line; std::getline(lines, line); ++num_schemas) {
    try {
      const auto grammar = ready(json_schema_grammar(Json::parse(line)["schema"], "s"), vocabulary);
      std::vector<double> times;
      write_text(TokenConstraint(grammar, std::vector<int32_t>{end}), *vocabulary, random, times);
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
                    {"slowest_mask_of_a_text_ms", quantiles(slowest)},
                    {"mask_ms", quantiles(all)}}
                   .dump(1)
            << "\n";
}

}  // namespace
}  // namespace soliton::constrain
