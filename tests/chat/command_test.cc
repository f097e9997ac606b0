#include "runtime/chat/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/error.h"
#include "runtime/chat/console.h"
#include "runtime/chat/settings.h"

namespace soliton {
namespace {

using testing::HasSubstr;

/// The line that the call is refused with.
template <class Call>
std::string usage_error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "no error";
}

/// Adds the lines, of which the last must complete the input, and takes it.
std::string join(const std::vector<std::string>& lines) {
  InputLines input;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(input.add(lines[i]), i + 1 == lines.size()) << "line " << i;
    EXPECT_EQ(input.is_open(), i + 1 < lines.size());
  }
  const std::string text = input.take();
  EXPECT_FALSE(input.is_open());
  EXPECT_TRUE(input.is_plain());
  return text;
}

TEST(InputLines, AreOneOrGoOnAfterABackslash) {
  EXPECT_EQ(join({"hello"}), "hello");
  EXPECT_EQ(join({""}), "");
  EXPECT_EQ(join({"one\\", "two\\", "three"}), "one\ntwo\nthree");
  EXPECT_EQ(join({"\\", ""}), "\n");
}

TEST(InputLines, BetweenQuotesAreTakenAsTheyAre) {
  EXPECT_EQ(join({R"(""")", "one\\", "/exit", "", " two", R"(""" )"}), "one\\\n/exit\n\n two");
  EXPECT_EQ(join({R"(""")", R"(""")"}), "");
  EXPECT_EQ(join({R"(say """)"}), R"(say """)");
}

TEST(InputLines, AreCommandsOnlyAlone) {
  InputLines input;
  input.add("/exit");
  EXPECT_TRUE(input.is_plain());
  input.take();
  input.add("/exit\\");
  input.add("now");
  EXPECT_FALSE(input.is_plain());
  input.take();
  input.add(R"(""")");
  input.add("/exit");
  input.add(R"(""")");
  EXPECT_FALSE(input.is_plain());
}

TEST(Command, IsAWordAndItsArgument) {
  EXPECT_TRUE(is_command("/help"));
  EXPECT_FALSE(is_command(" /help"));
  EXPECT_FALSE(is_command("help"));
  EXPECT_EQ(parse_command("/help").name, CommandName::kHelp);
  EXPECT_EQ(parse_command("/regen  ").name, CommandName::kRegen);
  const Command system = parse_command("/system  Be brief. \t");
  EXPECT_EQ(system.name, CommandName::kSystem);
  EXPECT_EQ(system.argument, "Be brief.");
  EXPECT_EQ(parse_command("/set\ttemp 0.5").argument, "temp 0.5");
  EXPECT_EQ(parse_command("/save a file.json").argument, "a file.json");
  EXPECT_EQ(parse_command("/set").argument, "");
}

TEST(Command, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(usage_error_of([] { parse_command("/stop"); }),
              HasSubstr(R"("/stop": expected a command that /help)"));
  EXPECT_THAT(usage_error_of([] { parse_command("/"); }), HasSubstr("expected a command"));
  EXPECT_THAT(usage_error_of([] { parse_command("/HELP"); }), HasSubstr("expected a command"));
  EXPECT_EQ(usage_error_of([] { parse_command("/save"); }), "/save: expected FILE, got nothing");
  EXPECT_EQ(usage_error_of([] { parse_command("/load  "); }), "/load: expected FILE, got nothing");
  EXPECT_EQ(usage_error_of([] { parse_command("/clear all"); }),
            R"(/clear: expected nothing behind it, got "all")");
  EXPECT_THAT(usage_error_of([] { parse_command("/\x1b[31m"); }), HasSubstr(R"("/\x1b[31m")"));
}

TEST(Command, KnowsWhatUsersOfOtherProgramsType) {
  EXPECT_EQ(parse_command("/bye").name, CommandName::kExit);
  EXPECT_EQ(parse_command("/quit ").name, CommandName::kExit);
  EXPECT_EQ(parse_command("/?").name, CommandName::kHelp);
  EXPECT_EQ(usage_error_of([] { parse_command("/bye now"); }),
            R"(/bye: expected nothing behind it, got "now")");
  for (const char* word : {"/bye", "/quit", "/?"}) EXPECT_THAT(command_help(), HasSubstr(word));
}

TEST(Command, HelpNamesEachOfThem) {
  for (const char* word :
       {"/help", "/exit", "/clear", "/regen", "/system", "/set", "/stats", "/save", "/load", "Ctrl-C"})
    EXPECT_THAT(command_help(), HasSubstr(word));
}

TEST(Settings, ChangeByName) {
  Settings settings;
  settings.set("temp", "0.5");
  settings.set("seed", "4294967295");
  settings.set("drafts", "7");
  settings.set("predict", "12");
  settings.set("top-k", "40");
  settings.set("top-p", "0.9");
  settings.set("min-p", "0.05");
  settings.set("repeat-penalty", "1.1");
  settings.set("logprobs", "on");
  EXPECT_EQ(settings.sampling.top_k, 40);
  EXPECT_EQ(settings.sampling.repeat_penalty, 1.1);
  EXPECT_EQ(settings.sampling.temperature, 0.5);
  EXPECT_EQ(settings.sampling.seed, 4294967295u);
  EXPECT_EQ(settings.sampling.num_drafts, 7);
  EXPECT_EQ(settings.num_tokens, 12);
  EXPECT_EQ(settings.lines(),
            (std::vector<std::string>{"temp 0.5", "top-k 40", "top-p 0.9", "min-p 0.05", "repeat-penalty 1.1",
                                      "seed 4294967295", "predict 12", "drafts 7", "logprobs on"}));
  settings.set("predict", "-1");
  EXPECT_EQ(settings.num_tokens, std::nullopt);
}

TEST(Settings, RefuseWhatCannotBe) {
  Settings settings;
  const auto refusal = [&](const char* name, const char* value) {
    return usage_error_of([&] { settings.set(name, value); });
  };
  for (const char* value : {"-0.1", "101", "x", "nan", ""})
    EXPECT_THAT(refusal("temp", value), HasSubstr("temp: "));
  for (const char* value : {"-1", "4294967296", "1.5"})
    EXPECT_THAT(refusal("seed", value), HasSubstr("seed: "));
  for (const char* value : {"0", "-2", "010", "many"})
    EXPECT_THAT(refusal("predict", value), HasSubstr("predict: "));
  for (const char* value : {"-1", "99999999999"})
    EXPECT_THAT(refusal("drafts", value), HasSubstr("drafts: "));
  for (const char* name : {"top-p", "min-p"}) {
    for (const char* value : {"-0.1", "1.1", "x"})
      EXPECT_THAT(refusal(name, value), HasSubstr(std::string(name) + ": expected a number from 0 to 1"));
  }
  for (const char* value : {"-1", "0.5"}) EXPECT_THAT(refusal("top-k", value), HasSubstr("top-k: "));
  for (const char* value : {"0", "-1", "101"})
    EXPECT_THAT(refusal("repeat-penalty", value), HasSubstr("repeat-penalty: "));
  EXPECT_THAT(refusal("logprobs", "yes"), HasSubstr(R"(logprobs: expected on or off, got "yes")"));
  EXPECT_THAT(refusal("top", "40"), HasSubstr(R"(drafts or logprobs, got "top")"));
  EXPECT_EQ(settings.lines(), Settings{}.lines());
}

TEST(Console, KeepsATerminalFromBeingDriven) {
  EXPECT_EQ(for_terminal("plain\n\ttext, Größe 東京"), "plain\n\ttext, Größe 東京");
  EXPECT_EQ(for_terminal("\x1b]0;title\x07"), R"(\x1b]0;title\x07)");
  EXPECT_EQ(for_terminal("a\rb\x7f"), R"(a\x0db\x7f)");
  EXPECT_EQ(for_terminal("\xc2\x9b"
                         "1m\xc2\xa0"),
            "\\x9b1m\xc2\xa0");
}

TEST(Console, RoundsRatesAndCountsOnlyWhatWasFed) {
  const Timing timing{.prompt_tokens = 30,
                      .cached_tokens = 10,
                      .generated = 6,
                      .first_step = 1,
                      .prompt_s = 0.5,
                      .generation_s = 2};
  EXPECT_EQ(statistics(timing, " | more"), "[ Prompt: 40.0 t/s | Generation: 2.5 t/s | more ]");
  EXPECT_EQ(statistics({}), "[ Prompt: 0.0 t/s | Generation: 0.0 t/s ]");
}

}  // namespace
}  // namespace soliton
