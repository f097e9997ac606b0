// Equality with jinja2 as transformers sets it up, on stored cases: data/expected.json, data/features.json and
// data/expressions.json, all written by make_expectations.py; and on new expressions, where a Python with
// jinja2 is found. SOLITON_CHAT_TEMPLATE_CASES names a further file of expressions, for long searches.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "long_tests.h"
#include "models/error.h"
#include "runtime/text/chat_template/chat_template.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const fs::path kData = fs::path(SOLITON_SOURCE_DIR) / "tests/chat_template/data";

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

ordered_json read_cases(const fs::path& path) {
  return ordered_json::parse(read_file(path));
}

/// Friday 26 July 2024, 12:34:56, as in make_expectations.py.
std::tm fixed_clock() {
  std::tm time{};
  time.tm_year = 2024 - 1900;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 12;
  time.tm_min = 34;
  time.tm_sec = 56;
  time.tm_wday = 5;
  time.tm_yday = 207;
  return time;
}

/// What rendering ends with, in the form of the stored cases; errors with what they say.
template <class Render>
ordered_json outcome(Render render) {
  try {
    return {{"text", render()}};
  } catch (const Error& error) {
    return {{"error", error.what()}, {"code", static_cast<int>(error.code())}};
  }
}

/// Whether `actual` is what jinja2 did: the same text, a refusal with the same message, or some error.
bool agrees(const ordered_json& expected, const ordered_json& actual) {
  if (expected.contains("text")) return actual.contains("text") && actual["text"] == expected["text"];
  if (!actual.contains("error")) return false;
  if (!expected.contains("refused")) return true;
  const std::string message = actual["error"];
  return message.ends_with(": " + expected["refused"].get<std::string>());
}

TEST(ChatTemplateParity, RendersConversationsAsJinja2Does) {
  const ordered_json expected = read_cases(kData / "expected.json");
  std::map<std::string, ordered_json> conversations;
  for (const ordered_json& conversation : read_cases(kData / "conversations.json")) {
    conversations[conversation["name"]] = conversation;
  }
  std::map<std::string, ChatTemplate> templates;
  for (const auto& entry : fs::directory_iterator(kData / "templates")) {
    const std::string name = entry.path().filename();
    templates.emplace(name, ChatTemplate::parse(read_file(entry.path()), name));
  }
  ASSERT_EQ(expected["cases"].size(), templates.size() * conversations.size() * 2);
  for (const ordered_json& each : expected["cases"]) {
    const ordered_json& conversation = conversations.at(each["conversation"]);
    ChatOptions options;
    options.add_generation_prompt = each["prompt"];
    options.tools = conversation.value("tools", ordered_json());
    options.variables = conversation.value("variables", ordered_json());
    options.bos_token = expected["bos_token"];
    options.eos_token = expected["eos_token"];
    options.clock = fixed_clock;
    const ChatTemplate& chat_template = templates.at(each["template"]);
    const ordered_json actual =
        outcome([&] { return chat_template.render(conversation["messages"], options).text(); });
    EXPECT_TRUE(agrees(each, actual)) << each.dump(1) << "\nrendered: " << actual.dump(1);
  }
}

void expect_expressions(const fs::path& path, size_t least) {
  const ordered_json expected = read_cases(path);
  ASSERT_GE(expected["cases"].size(), least);
  for (const ordered_json& each : expected["cases"]) {
    const ordered_json actual = outcome([&] {
      ChatOptions options;
      options.variables = expected["variables"];
      return ChatTemplate::parse(each["source"].get<std::string>(), "random")
          .render(ordered_json::array(), options)
          .text();
    });
    EXPECT_TRUE(agrees(each, actual)) << each.dump(1) << "\nrendered: " << actual.dump(1);
  }
}

TEST(ChatTemplateParity, RendersFeaturesAsJinja2Does) {
  expect_expressions(kData / "features.json", 250);
}

TEST(ChatTemplateParity, RendersRandomExpressionsAsJinja2Does) {
  expect_expressions(kData / "expressions.json", 300);
}

TEST(ChatTemplateParity, RendersFurtherExpressionsAsJinja2Does) {
  if (const char* path = std::getenv("SOLITON_CHAT_TEMPLATE_CASES")) return expect_expressions(path, 1);
  const char* const chosen = std::getenv("SOLITON_PYTHON");
  const std::string python = chosen == nullptr ? "python3" : chosen;
  const TemporaryFolder folder;
  const fs::path cases = folder.path() / "expressions.json";
  constexpr int kSkipped = 77 << 8;  // of the script, where there is no jinja2
  const int count = long_tests() ? 2000 : 300;
  const int status = std::system(
      ("'" + python +
       "' -B -W ignore '" SOLITON_SOURCE_DIR "/tests/chat_template/make_expectations.py' --fuzz " +
       std::to_string(count) + " --seed 2 --output '" + cases.string() + "' 2> /dev/null")
          .c_str());
  constexpr int kNoPython = 127 << 8;
  if (status == kSkipped || status == kNoPython) {
    GTEST_SKIP() << python << " has no package jinja2; set SOLITON_PYTHON to one that has";
  }
  ASSERT_EQ(status, 0);
  expect_expressions(cases, count);
}

}  // namespace
}  // namespace soliton
