// soliton-chat --document --questions: many questions on one text, which is read once.
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "cli/cli_fixture.h"
#include "long_tests.h"
#include "runtime/engine/common_tokens.h"
#include "runtime/text/tokenizer.h"

namespace soliton {
namespace {

using Json = nlohmann::json;

constexpr const char* kDocument =
    "Once upon a time there was a little fox named Mia. Mia lived in the forest with her mother. One day Mia "
    "saw a big "
    "red ball near the river. She wanted to play with the ball, but it was too big for her. So Mia called "
    "her friend. "
    "Tom was a kind bear, and they played.";
const std::vector<std::string> kQuestions = {"Mia was sad because", "The bear said", "Then Mia"};

class Questions : public Cli {
 protected:
  Questions() {
    write_text(path() / "story.txt", std::string(kDocument) + "\n");
    std::string lines = "\n";
    for (const std::string& question : kQuestions) lines += question + "\r\n \n";
    write_text(path() / "questions.txt", lines);
  }

  static Arguments model(const Arguments& more, const std::string& kernel = kTinyKernel) {
    Arguments arguments{"-m", "tiny-stories", "-k", kernel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static Arguments asked(const Arguments& more = {}) {
    Arguments arguments = model({"--document", "story.txt", "--questions", "questions.txt", "-n", "6"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Of a few steps, with answers of three tokens to the same questions; in long runs on the whole document.
  static std::string brief_document() { return long_tests() ? kDocument : "Mia had a ball."; }
  Arguments asked_briefly(const Arguments& more = {}, const std::string& kernel = kTinyKernel,
                          const std::string& num_tokens = "3") const {
    write_text(path() / "brief.txt", brief_document());
    Arguments arguments =
        model({"--document", "brief.txt", "--questions", "questions.txt", "-n", num_tokens}, kernel);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Json json_of(const Arguments& arguments) const {
    const Outcome outcome = run("soliton-chat", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  /// All of them on the document, which is longer than a page, asked once.
  const Json& together() const {
    static const Json json = json_of(asked({"--json", "--logprobs"}));
    return json;
  }
  /// All of them on the brief one, asked once.
  const Json& together_briefly() const {
    static const Json json = json_of(asked_briefly({"--json"}));
    return json;
  }
};

TEST_F(Questions, AreAnsweredAsEachAlone) {
  const Json& answers = together().at("answers");
  ASSERT_EQ(answers.size(), kQuestions.size());
  for (const size_t i : long_tests() ? std::vector<size_t>{0, 2} : std::vector<size_t>{2}) {
    const Json alone = json_of(
        model({"-p", std::string(kDocument) + "\n\n" + kQuestions[i], "-n", "6", "--json", "--logprobs"}));
    EXPECT_EQ(answers[i].at("question"), kQuestions[i]);
    for (const char* key : {"content", "finish_reason", "tokens"})
      EXPECT_EQ(answers[i].at(key), alone.at(key));
    for (size_t token = 0; token < alone.at("logprobs").size(); ++token) {
      EXPECT_NEAR(answers[i].at("logprobs")[token].get<double>(), alone.at("logprobs")[token].get<double>(),
                  1e-3);
    }
  }
}

// What is cached is as much of it for each question but the first.
TEST_F(Questions, ReadTheDocumentOnce) {
  const Tokenizer tokenizer = Tokenizer::open(Cli::model());
  int prompt_tokens = 0;
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& question : kQuestions) {
    const std::span<const int32_t> prefix = tokenizer.prefix_ids();
    std::vector<int32_t> prompt(prefix.begin(), prefix.end());
    const std::vector<int32_t> behind = tokenizer.encode(std::string(kDocument) + "\n\n" + question);
    prompt.insert(prompt.end(), behind.begin(), behind.end());
    prompts.push_back(std::move(prompt));
    prompt_tokens += static_cast<int>(prompts.back().size());
  }
  int shared = num_common_tokens(prompts[0], prompts[1]);
  shared = std::min(shared, num_common_tokens(prompts[0], prompts[2]));
  ASSERT_GT(shared, 64);
  const Json& usage = together().at("usage");
  EXPECT_EQ(usage.at("prompt_tokens"), prompt_tokens);
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens"), 2 * shared);
  EXPECT_EQ(together().at("prompt_n"), prompt_tokens - 2 * shared);
  EXPECT_EQ(together().at("predicted_n"), 18);
  EXPECT_EQ(usage.at("completion_tokens"), 18);
}

// What the template puts behind a question is no part of the document.
TEST_F(Questions, AreAskedByTheChatTemplate) {
  write_text(path() / "chat.jinja",
             "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}Then");
  const Arguments way{"--chat-template", "chat.jinja", "-sys", "A story.", "--json"};
  Arguments one = model({"-p", brief_document() + "\n\n" + kQuestions[1], "-n", "3"});
  one.insert(one.end(), way.begin(), way.end());
  const Json json = json_of(asked_briefly(way));
  EXPECT_EQ(json.at("answers")[1].at("tokens"), json_of(one).at("tokens"));
  // The system's message and the user's, up to the questions.
  const auto num_shared =
      Tokenizer::open(Cli::model()).encode("system: A story.\nuser: " + brief_document()).size();
  EXPECT_GE(json.at("usage").at("prompt_tokens_details").at("cached_tokens"), 2 * num_shared);
}

// What has come is shown, and what was not begun is interrupted too.
TEST_F(Questions, AreCutByCtrlC) {
  const Process process("soliton-chat", asked_briefly({"--jsonl", "--ignore-eos"}, kOneRowKernel, "1000"),
                        path());
  constexpr int kMaxPolls = 6000;
  for (int i = 0; i < kMaxPolls && process.out_so_far().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, kInterrupted) << outcome.err;
  std::string last;
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) last = line;
  const Json answers = Json::parse(last).at("answers");
  ASSERT_EQ(answers.size(), kQuestions.size());
  for (const Json& answer : answers) EXPECT_EQ(answer.at("finish_reason"), "interrupted");
}

// One after the other, from the same cache.
TEST_F(Questions, AreAnsweredInTurnWhereThereAreFewerRows) {
  const Json in_turn = json_of(asked_briefly({"--json"}, kOneRowKernel));
  for (size_t i = 0; i < kQuestions.size(); ++i)
    EXPECT_EQ(in_turn.at("answers")[i].at("tokens"), together_briefly().at("answers")[i].at("tokens"));
  EXPECT_EQ(in_turn.at("prompt_n"), together_briefly().at("prompt_n"));
}

TEST_F(Questions, ArePrintedWithTheirAnswers) {
  const Outcome text = run("soliton-chat", asked_briefly());
  std::string expected;
  for (size_t i = 0; i < kQuestions.size(); ++i) {
    expected += "--- question " + std::to_string(i) + ": " + kQuestions[i] + "\n" +
                together_briefly().at("answers")[i].at("content").get<std::string>() + "\n";
  }
  EXPECT_EQ(text.out, expected);
  const std::regex statistics(
      R"((.*\n)*\[ Prompt: \d+\.\d t/s \| Generation: \d+\.\d t/s \| 3 questions, \d+ tokens read for all \]\n)");
  EXPECT_TRUE(std::regex_match(text.err, statistics)) << text.err;
}

TEST_F(Questions, AreToldTokenByTokenUpToStops) {
  const std::string whole = together_briefly().at("answers")[1].at("content");
  const std::string stop = whole.substr(3, 4);
  ASSERT_EQ(stop.size(), 4u);
  const Outcome told = run("soliton-chat", asked_briefly({"--jsonl", "--stop", stop}));
  std::vector<std::string> contents(kQuestions.size());
  std::istringstream stream(told.out);
  Json last;
  for (std::string line; std::getline(stream, line);) {
    last = Json::parse(line);
    if (last.contains("index")) contents.at(last.at("index").get<size_t>()) += last.at("text");
  }
  for (size_t i = 0; i < kQuestions.size(); ++i) {
    const std::string content = together_briefly().at("answers")[i].at("content");
    const size_t cut = content.find(stop);
    EXPECT_EQ(contents[i], content.substr(0, cut));
    const char* reason = cut == std::string::npos ? "length" : "stop_text";
    EXPECT_EQ(last.at("answers")[i], (Json{{"question", kQuestions[i]}, {"finish_reason", reason}}));
  }
}

TEST_F(Questions, AreRefusedInOneLine) {
  const auto files = [](const char* document, const char* questions) {
    return model({"--document", document, "--questions", questions});
  };
  write_text(path() / "empty.txt", "");
  write_text(path() / "blank.txt", " \n\r\n\t\n");
  expect_error("soliton-chat", files("absent.txt", "questions.txt"), kNotFound, "absent.txt");
  expect_error("soliton-chat", files("story.txt", "absent.txt"), kNotFound, "absent.txt");
  expect_error("soliton-chat", files("story.txt", "."), kNotFound, ".");
  expect_error("soliton-chat", files("story.txt", "empty.txt"), kBadFile, "empty.txt");
  expect_error("soliton-chat", files("empty.txt", "questions.txt"), kBadFile, "empty.txt");
  expect_error("soliton-chat", files("story.txt", "blank.txt"), kBadFile, "blank.txt",
               "expected a question on a line, got blanks");
  expect_error("soliton-chat", files("blank.txt", "questions.txt"), kBadFile, "blank.txt",
               "expected a text, got blanks");
  expect_error("soliton-chat", model({"--document", "story.txt"}), kUsage, "--document", "--questions");
  expect_error("soliton-chat", model({"--questions", "questions.txt"}), kUsage, "--questions", "--document");
  expect_error("soliton-chat", asked({"-c", "64"}), kLimit, "--ctx-size",
               "tokens of the prompt, 6 to generate), got 64");
  std::string book;
  for (int i = 0; i < 40; ++i) book += std::string(kDocument) + "\n";
  write_text(path() / "book.txt", book);
  expect_error("soliton-chat", files("book.txt", "questions.txt"), kLimit, "--document and --predict",
               "expected at most the model's 2048 tokens");
}

TEST_F(Questions, ExcludeOtherWaysToAsk) {
  write_text(path() / "grammar.gbnf", "root ::= \"yes\"");
  for (const Arguments& other :
       {Arguments{"--prompt", "x"}, Arguments{"--file", "story.txt"}, Arguments{"--messages", "x.json"},
        Arguments{"--parallel", "2"}, Arguments{"--beams", "2"}, Arguments{"--lookup", "2"},
        Arguments{"--draft", "tiny-stories"}, Arguments{"--grammar", "grammar.gbnf"},
        Arguments{"--json-schema", "x.json"}}) {
    expect_error("soliton-chat", asked(other), kUsage, "--questions",
                 "expected no " + other[0] + ", got both");
  }
  expect_error("soliton-chat", asked({"--verify"}), kUsage, "--verify", "expected no prompt");
}

}  // namespace
}  // namespace soliton
