// soliton-chat answering one prompt: where the prompt comes from, what becomes of it, and what ends the
// answer. The tiny model has no chat template, so a small one is passed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_program.h"
#include "long_tests.h"
#include "runtime/text/tokenizer.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Arguments = std::vector<std::string>;

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kBadFile = 4;
constexpr int kMismatch = 5;
constexpr int kLimit = 7;

const std::string kModel = std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories";

class ChatFlags : public testing::Test {
 protected:
  ChatFlags() {
    folder_.write(
        "chat.jinja",
        "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ");
  }

  Outcome run(const Arguments& more, const std::string& input = "") const {
    Arguments arguments{"-k", std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string file = input.empty() ? "/dev/null" : std::string(folder_.write("input", input));
    return Process("soliton-chat", arguments, folder_.path(), {}, file).wait();
  }
  /// What --json says of an answer of two tokens.
  nlohmann::json answer(Arguments more, const std::string& input = "") const {
    more.insert(more.end(), {"--json", "-n", "2", kModel});
    const Outcome outcome = run(more, input);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  /// Tokens of a prompt that is this text, none of which is special but the begin of text before it.
  static int num_tokens(const std::string& text) {
    static const Tokenizer tokenizer = Tokenizer::open(kModel);
    return static_cast<int>(tokenizer.prefix_ids().size() + tokenizer.encode(text).size());
  }
  /// Expects one line on stderr that begins so and contains the reason, and nothing else.
  void expect_error(const Arguments& more, int status, const std::string& culprit, const std::string& reason,
                    const std::string& input = "") const {
    const Outcome outcome = run(more, input);
    SCOPED_TRACE(outcome.err);
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_THAT(outcome.err, StartsWith("soliton-chat: " + culprit));
    EXPECT_THAT(outcome.err, HasSubstr(reason));
  }

  TemporaryFolder folder_;
};

TEST_F(ChatFlags, ThePromptComesFromAFlagAFileOrStdin) {
  const auto expected = answer({"-p", "Once upon"});
  folder_.write("prompt.txt", "Once upon\n");
  for (const auto& other : {answer({"-f", "prompt.txt"}), answer({}, "Once upon\n"), answer({}, "Once upon"),
                            answer({}, "Once upon\r\n"), answer({"-p", "Once upon"}, "Tom")}) {
    EXPECT_EQ(other.at("tokens"), expected.at("tokens"));
    EXPECT_EQ(other.at("prompt_n"), expected.at("prompt_n"));
  }
  // Lines but for the last end are part of it.
  EXPECT_EQ(answer({}, "Once\nupon\n\n").at("prompt_n"), num_tokens("Once\nupon\n"));
}

TEST_F(ChatFlags, RefusesPromptsThatAreNone) {
  expect_error({kModel}, kUsage, "--prompt", "expected a value, got nothing");
  expect_error({kModel}, kUsage, "--prompt", "expected a value, got nothing", "\n");
  expect_error({kModel, "-f", "absent.txt"}, kNotFound, "absent.txt", "no such file");
  expect_error({kModel, "-f", "."}, kNotFound, ".", "");
  folder_.write("empty.txt", "");
  expect_error({kModel, "-f", "empty.txt"}, kBadFile, "empty.txt", "empty");
  expect_error({kModel, "-f", "empty.txt", "-p", "x"}, kUsage, "--", "--prompt");
}

TEST_F(ChatFlags, TheModelIsGivenOnce) {
  expect_error({"-p", "x", "-m", kModel, "word"}, kUsage, "\"word\"", "expected a flag");
  expect_error({"-p", "x", kModel, "word"}, kUsage, "\"word\"", "expected a flag");
  expect_error({"-p", "x"}, kUsage, "--model", "expected a value, got nothing");
  expect_error({"-p", "x", ""}, kUsage, "MODEL", "got \"\"");
  expect_error({"-p", "x", "absent"}, kNotFound, "absent", "found no such folder");
}

// A turn of the template is more than the prompt alone; special tokens in it stay text.
TEST_F(ChatFlags, ATemplateMakesThePromptATurn) {
  const int turn = answer({"-p", "Hi", "--chat-template", "chat.jinja"}).at("prompt_n");
  EXPECT_EQ(turn, num_tokens("user: Hi\nassistant: "));
  const int special =
      answer({"-p", "Hi<|end_of_text|>", "--chat-template", "chat.jinja", "-sys", "Be brief."})
          .at("prompt_n");
  EXPECT_EQ(special, num_tokens("system: Be brief.\nuser: Hi<|end_of_text|>\nassistant: "));
}

TEST_F(ChatFlags, RawCompletesEvenIfThereIsATemplate) {
  const fs::path model = folder_.path() / "model";
  fs::copy(kModel, model);
  fs::copy(folder_.path() / "chat.jinja", model / "chat_template.jinja");
  const auto with = [&](const Arguments& more) {
    Arguments arguments{"-m", model, "-p", "Hi", "-n", "2", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("prompt_n").get<int>();
  };
  const int plain = num_tokens("Hi");
  EXPECT_GT(with({}), plain);
  EXPECT_EQ(with({"--raw"}), plain);
  EXPECT_EQ(with({"-no-cnv"}), plain);
}

TEST_F(ChatFlags, RefusesTemplatesAndSystemPromptsThatCannotBe) {
  const Arguments base{kModel, "-p", "x", "-n", "1"};
  const auto with = [&](const Arguments& more) {
    Arguments arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_error(with({"-sys", "Be brief."}), kUsage, "--system-prompt",
               "expected a model with a chat template");
  expect_error(with({"--system-prompt", "x", "--raw"}), kUsage, "--system-prompt", "--raw");
  expect_error(with({"--chat-template", "chat.jinja", "--raw"}), kUsage, "--chat-template", "--raw");
  expect_error(with({"--chat-template", "absent"}), kNotFound, "absent", "no such file");
  folder_.write("bad.jinja", "{% for m in %}");
  expect_error(with({"--chat-template", "bad.jinja"}), kBadFile, "bad.jinja:1", "");
  folder_.write("strict.jinja", "{{ raise_exception('no system prompt, please') }}");
  expect_error(with({"--chat-template", "strict.jinja"}), kMismatch, "strict.jinja",
               "no system prompt, please");
  expect_error(with({"-sys"}), kUsage, "--system-prompt", "expected a value, got nothing");
}

const std::string kAsked = R"({"messages": [{"role": "system", "content": "Be brief."},
                                            {"role": "user", "content": "Hi"},
                                            {"role": "assistant", "content": "Hello!"},
                                            {"role": "user", "content": "Who?"}]})";
const std::string kAnswered =
    R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}])";

// A conversation goes on without a terminal: by its own last message, or one that flags add.
TEST_F(ChatFlags, MessagesAreGoneOnWith) {
  SOLITON_LONG_RUNS_ONLY("GeneratorOf goes on with turns");
  folder_.write("brief.jinja",
                "{{ bos_token }}{% for m in messages %}{{ m.role[0] }} {{ m.content }} {% endfor %}a");
  const Arguments chat{"--chat-template", "brief.jinja"};
  const auto with = [&](Arguments more, const std::string& input = "") {
    more.insert(more.end(), chat.begin(), chat.end());
    return answer(std::move(more), input);
  };
  folder_.write("asked.json", kAsked);
  folder_.write("answered.json", kAnswered);
  const auto asked = with({"--messages", "asked.json"});
  for (const auto& other : {with({"--messages", "-"}, kAsked),
                            with({"--messages", "answered.json", "-p", "Who?", "-sys", "Be brief."}),
                            with({"--messages", "-", "-p", "Who?", "-sys", "Be brief."}, kAnswered)}) {
    EXPECT_EQ(other.at("prompt_n"), asked.at("prompt_n"));
    EXPECT_EQ(other.at("tokens"), asked.at("tokens"));
  }
  // What a template is told is what it is told in a chat: the rendered text completed as it is.
  const auto rendered = answer({"-p", "s Be brief. u Hi a Hello! u Who? a", "--raw"});
  EXPECT_EQ(rendered.at("prompt_n"), asked.at("prompt_n"));
  EXPECT_EQ(rendered.at("tokens"), asked.at("tokens"));
}

TEST_F(ChatFlags, RefusesMessagesThatCannotBeAnswered) {
  const auto with = [&](const std::string& file, const Arguments& more = {}) {
    Arguments arguments{kModel, "--messages", file, "-n", "1", "--chat-template", "chat.jinja"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  folder_.write("asked.json", kAsked);
  folder_.write("answered.json", kAnswered);
  expect_error(with("absent.json"), kNotFound, "absent.json", "no such file");
  expect_error(with(""), kUsage, "--messages", "got \"\"");
  expect_error(with("-"), kBadFile, "stdin: ", "JSON");
  expect_error(with("-"), kBadFile, "stdin: messages", "expected", "{}");
  expect_error(with("-"), kBadFile, "stdin",
               "expected a message of the user at the end, or --prompt, got none", "[]");
  expect_error(with("-"), kBadFile, "stdin: [0].role", "expected user",
               R"([{"role": "tool", "content": ""}])");
  expect_error(with("answered.json"), kBadFile, "answered.json",
               "or --prompt, got an answer of the assistant");
  expect_error(with("asked.json", {"-p", "x"}), kBadFile, "asked.json", "got a message of the user");
  expect_error(with("asked.json", {"-sys", "x"}), kUsage, "--system-prompt", "in asked.json, got one");
  expect_error({kModel, "--messages", "asked.json"}, kUsage, "--messages",
               "expected a model with a chat template");
  expect_error({kModel, "--messages", "asked.json", "--raw"}, kUsage, "--messages", "expected no --raw");
  expect_error({kModel, "--messages", "asked.json", "--verify"}, kUsage, "--verify", "expected no prompt");
}

TEST_F(ChatFlags, StopStringsEndTheAnswer) {
  SOLITON_LONG_RUNS_ONLY("ChatTerminal.StopStringsEndAnswers does");
  const Arguments base{kModel, "-p", "Once upon a time", "-n", "7"};
  const Outcome whole = run(base);
  ASSERT_GT(whole.out.size(), 12u);
  const std::string stop = whole.out.substr(5, 4);
  const std::string expected = whole.out.substr(0, whole.out.find(stop));
  const auto with = [&](const Arguments& more) {
    Arguments arguments = base;
    arguments.insert(arguments.end(), {"--stop", "never", "--stop", stop});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(with({}), expected + "\n");
  EXPECT_EQ(with({"--lookup", "3"}), expected + "\n");
  const auto json = nlohmann::json::parse(with({"--json"}));
  EXPECT_EQ(json.at("content"), expected);
  EXPECT_EQ(json.at("finish_reason"), "stop_text");
  EXPECT_LT(json.at("tokens").size(), 7u);
  const auto samples = nlohmann::json::parse(with({"--json", "-np", "2", "--temp", "0"})).at("samples");
  for (const auto& sample : samples) {
    EXPECT_EQ(sample.at("content"), expected);
    EXPECT_EQ(sample.at("finish_reason"), "stop_text");
  }
  expect_error({kModel, "-p", "x", "--stop", ""}, kUsage, "--stop", "got \"\"");
}

TEST_F(ChatFlags, TheCacheHasTheBitsThatAreAskedFor) {
  EXPECT_EQ(run({kModel, "-p", "x", "-n", "1", "--kv-bits", "16"}).status, 0);
  expect_error({kModel, "-p", "x", "--kv-bits", "32"}, kMismatch, "--kv-bits", "expected 16, as ");
  expect_error({kModel, "-p", "x", "--kv-bits", "4"}, kUsage, "--kv-bits",
               "expected 8 or 16 or 32, got \"4\"");
}

TEST_F(ChatFlags, ATextWithAWindowOutgrowsTheContext) {
  SOLITON_LONG_RUNS_ONLY("the tests of windows in tests/kernel do");
  const Outcome outcome =
      run({kModel, "-p", "Hi", "--window", "1", "--sinks", "2", "-n", "68", "--ignore-eos", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("predicted_n"), 68) << "of a context of 67";
  EXPECT_NE(outcome.err.find("Context: without end: the first 2 tokens and the latest 1 to 65\n"),
            std::string::npos)
      << outcome.err;
  expect_error({kModel, "-p", "x", "--window", "2000"}, kLimit, "--window",
               "expected at most the model's 2048 tokens with 4 sinks and 512 tokens of room, got 2000");
  expect_error({kModel, "-p", "x", "--window", "2147483647"}, kLimit, "--window", "got 2147483647");
  expect_error({kModel, "-p", "x", "--window", "0"}, kUsage, "--window",
               "expected an integer from 1 to 2147483647, got \"0\"");
  expect_error({kModel, "-p", "x", "--sinks", "2"}, kUsage, "--sinks", "--window");
  expect_error({kModel, "-p", "x", "--window", "9", "-c", "64"}, kUsage, "--ctx-size",
               "expected no --window, got both");
  expect_error({kModel, "-p", "x", "--window", "9", "-np", "2"}, kUsage, "--window",
               "expected no --parallel, got both");
}

TEST_F(ChatFlags, AnAnswerTakesWhatTheContextHas) {
  const Outcome outcome =
      run({kModel, "-p", "Hi", "--chat-template", "chat.jinja", "-c", "24", "--json", "--ignore-eos"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("prompt_n").get<int>() + json.at("predicted_n").get<int>(), 24 + 1);
  expect_error({kModel, "-p", "Hi", "--chat-template", "chat.jinja", "-c", "8"}, kLimit, "--ctx-size",
               "of the prompt, 1 to generate), got 8");
}

}  // namespace
}  // namespace soliton
