// soliton-chat at a terminal, with the tiny model in emulation. It has no chat template, so a small one is
// passed; what it says means nothing here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "cli/run_program.h"
#include "cli/terminal.h"
#include "long_tests.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Arguments = std::vector<std::string>;

constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";
constexpr const char* kUp = "\x1b[A";
constexpr const char* kPrompt = "\r\n> ";
constexpr int kForced = 130;

class ChatTerminal : public testing::Test {
 protected:
  ChatTerminal() {
    folder_.write(
        "chat.jinja",
        "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ");
  }

  /// Starts a chat whose answers are of four tokens, unless told otherwise, and waits for its prompt.
  Terminal& start(const Arguments& more = {"-n", "4"}, const std::vector<std::string>& environment = {}) {
    Arguments arguments{std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories", "-k",
                        std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so", "--chat-template",
                        "chat.jinja"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> variables = {"NO_COLOR=1"};
    variables.insert(variables.end(), environment.begin(), environment.end());
    terminal_.emplace("soliton-chat", arguments, folder_.path(), variables);
    EXPECT_TRUE(terminal_->wait_for(kPrompt)) << terminal_->shown();
    return *terminal_;
  }
  /// Types a line and waits until the next prompt; what was shown between, without the line itself.
  std::string enter(const std::string& line) {
    terminal_->type(line + "\r");
    EXPECT_TRUE(terminal_->wait_for(kPrompt)) << terminal_->shown();
    const std::string& shown = terminal_->before();
    const size_t end = shown.find("\r\n");
    return end == std::string::npos ? "" : shown.substr(end + 2);
  }
  /// The messages, by way of a file.
  std::vector<std::string> contents() {
    EXPECT_THAT(enter("/save said.json"),
                testing::MatchesRegex("\\[ saved [0-9]+ messages?.* to said.json \\]"));
    std::vector<std::string> list;
    const auto saved = nlohmann::json::parse(read_text(folder_.path() / "said.json"));
    for (const auto& message : saved.at("messages")) list.push_back(message.at("content"));
    return list;
  }

  TemporaryFolder folder_;
  std::optional<Terminal> terminal_;
};

/// An answer without the bar of a prompt that took long, as on a busy machine.
std::string without_bar(const std::string& answer) {
  const std::string erased = "\r\x1B[K";
  const size_t bar = answer.rfind(erased);
  return bar == std::string::npos ? answer : answer.substr(bar + erased.size());
}

const char* const kStatisticsLine = "\\[ Prompt: [0-9.]+ t/s \\| Generation: [0-9.]+ t/s \\]";

TEST_F(ChatTerminal, AnswersAndKeepsTheConversation) {
  start();
  const std::string answer = enter("Hello there");
  EXPECT_THAT(answer, ContainsRegex(kStatisticsLine));
  enter("And then?");
  const std::vector<std::string> said = contents();
  ASSERT_EQ(said.size(), 4u);
  EXPECT_EQ(said[0], "Hello there");
  EXPECT_THAT(without_bar(answer), testing::StartsWith(said[1]));
  EXPECT_EQ(said[2], "And then?");
  // The second prompt is the first, its answer, and more.
  EXPECT_THAT(enter("/stats"), ContainsRegex("2 questions and answers\r\n.*\r\n.*, [1-9][0-9] of them kept"));
  terminal_->type(kCtrlD);
  EXPECT_EQ(terminal_->wait(), 0);
}

TEST_F(ChatTerminal, ObeysCommands) {
  start({"-n", "4", "-sys", "You tell stories."});
  EXPECT_THAT(enter("/help"), HasSubstr("/regen"));
  EXPECT_EQ(enter("/bogus"), "\"/bogus\": expected a command that /help lists, or a space before a message");
  EXPECT_EQ(enter("/regen"), "/regen: expected an answer before it, got none");
  EXPECT_EQ(enter("/system"), "You tell stories.");
  EXPECT_EQ(enter("/system Be brief."), "[ system prompt set ]");
  EXPECT_EQ(enter("/set predict 2"), "[ predict 2 ]");
  EXPECT_EQ(enter("/set"),
            "temp 0\r\ntop-k 0\r\ntop-p 1\r\nmin-p 0\r\nrepeat-penalty 1\r\nseed 0\r\npredict 2\r\ndrafts "
            "0\r\nlogprobs off");
  EXPECT_THAT(enter("/set temp hot"), HasSubstr("temp: expected a number from 0 to 100, got \"hot\""));
  EXPECT_THAT(enter("/set drafts 8"), HasSubstr("--lookup: expected at most 7, got 8"));
  EXPECT_EQ(enter("/set temp"), "/set: expected NAME VALUE, got \"temp\"");
  EXPECT_THAT(enter("Hi"), HasSubstr("[ cut at the tokens that predict allows"));
  EXPECT_THAT(enter("/regen"), HasSubstr("the same answer again"));
  EXPECT_EQ(contents().size(), 3u);
  EXPECT_EQ(enter("/clear"), "[ 2 messages forgotten, the system prompt stays ]");
  EXPECT_EQ(contents(), std::vector<std::string>{"Be brief."});
  EXPECT_EQ(enter("/system \"\""), "[ no system prompt ]");
  EXPECT_EQ(enter("/system"), "no system prompt");
  EXPECT_EQ(enter(""), "");
  EXPECT_EQ(enter("   "), "");
  terminal_->type("/bye\r");
  EXPECT_EQ(terminal_->wait(), 0);
}

TEST_F(ChatTerminal, DrawsOtherAnswersWithOtherSeeds) {
  start({"-n", "5", "--temp", "5"});
  enter("Hi");
  const std::string first = contents().at(1);
  enter("/regen");
  EXPECT_NE(contents().at(1), first);
  EXPECT_EQ(enter("/set seed 0"), "[ seed 0 ]");
  enter("/clear");
  enter("Hi");
  EXPECT_EQ(contents().at(1), first);
}

TEST_F(ChatTerminal, SavesAndLoads) {
  start();
  enter("Hi");
  const std::vector<std::string> said = contents();
  folder_.write("essay.txt", "not a conversation");
  EXPECT_THAT(enter("/save essay.txt"), HasSubstr("essay.txt: expected no file or a saved conversation"));
  EXPECT_EQ(read_text(folder_.path() / "essay.txt"), "not a conversation");
  EXPECT_THAT(enter("/save absent/x.json"), HasSubstr("absent/x.json: expected a file that can be written"));
  EXPECT_THAT(enter("/load absent.json"), HasSubstr("absent.json: no such file"));
  EXPECT_THAT(enter("/load essay.txt"), HasSubstr("essay.txt: "));
  EXPECT_EQ(contents(), said);
  EXPECT_EQ(enter("/save ~/home.json"), "[ saved 2 messages to ~/home.json ]");
  EXPECT_EQ(enter("/clear"), "[ 2 messages forgotten ]");
  EXPECT_EQ(enter("/load home.json"), "[ loaded 2 messages from home.json ]");
  EXPECT_EQ(contents(), said);
}

TEST_F(ChatTerminal, TakesMessagesOfSeveralLines) {
  start({"-n", "1"});
  terminal_->type("one\\\r");
  ASSERT_TRUE(terminal_->wait_for("\r\n. "));
  enter("two");
  terminal_->type("\"\"\"\r");
  ASSERT_TRUE(terminal_->wait_for("\r\n. "));
  terminal_->type("/exit\r");
  ASSERT_TRUE(terminal_->wait_for("\r\n. "));
  terminal_->type("end\\\r");
  ASSERT_TRUE(terminal_->wait_for("\r\n. "));
  enter("\"\"\"");
  const std::vector<std::string> said = contents();
  EXPECT_EQ(said.at(0), "one\ntwo");
  EXPECT_EQ(said.at(2), "/exit\nend\\");
}

TEST_F(ChatTerminal, TakesUtf8AndLongLines) {
  start({"-n", "1"});
  enter("Größe, 東京, 📏\x7f!");  // and a correction
  terminal_->type("\xff|a\xc3");
  enter("b");
  std::string long_line;
  for (int i = 0; i < 1200; ++i) long_line += "the ";  // not fed: that would take long
  long_line += "é";
  EXPECT_EQ(enter("/system " + long_line).find("expected"), std::string::npos);
  const std::vector<std::string> said = contents();
  EXPECT_EQ(said.at(0), long_line);
  EXPECT_EQ(said.at(1), "Größe, 東京, !");
  EXPECT_EQ(said.at(3), "\uFFFD|a\uFFFDb");
}

TEST_F(ChatTerminal, RemembersAndEditsLines) {
  start({"-n", "1"});
  enter("first");
  enter(std::string(kUp) + " again");
  enter(std::string("second") + "\x01" + "a ");  // Ctrl-A: to the start of the line
  const std::vector<std::string> said = contents();
  EXPECT_EQ(said.at(2), "first again");
  EXPECT_EQ(said.at(4), "a second");
}

/// Whether the answer comes that was asked for, in which something can be typed. The bar of a prompt that takes long has no
/// "a".
bool is_answering(Terminal& terminal) {
  return terminal.wait_for("Hi\r\n") && terminal.wait_for("a");
}

TEST_F(ChatTerminal, KeepsWhatIsTypedDuringAnAnswer) {
  SOLITON_LONG_RUNS_ONLY("KeepsWhatIsTypedWithoutAnEditor does");
  start({"-n", "16", "--ignore-eos"});
  terminal_->type("Hi\r");
  ASSERT_TRUE(is_answering(*terminal_));
  terminal_->type("More\x7f\x7fst of it\r/sta");
  ASSERT_TRUE(terminal_->wait_for(kPrompt)) << terminal_->shown();
  EXPECT_THAT(terminal_->before(), Not(HasSubstr("Mo")));
  EXPECT_THAT(terminal_->before(), HasSubstr("t/s ]"));
  ASSERT_TRUE(terminal_->wait_for(kPrompt)) << terminal_->shown();
  EXPECT_THAT(terminal_->before(), HasSubstr("t/s ]"));
  ASSERT_TRUE(terminal_->wait_for("/sta"));
  EXPECT_THAT(enter("ts"), HasSubstr("2 questions and answers"));
  EXPECT_EQ(contents().at(2), "Most of it");
}

TEST_F(ChatTerminal, CtrlDDuringAnAnswerEndsTheProgramBehindIt) {
  start({"-n", "16", "--ignore-eos"});
  terminal_->type("Hi\r");
  ASSERT_TRUE(is_answering(*terminal_));
  terminal_->type(kCtrlD);
  EXPECT_EQ(terminal_->wait(), 0);
  EXPECT_THAT(terminal_->shown(), HasSubstr("[ cut at the tokens that predict allows: see /set ]\r\n> "));
  EXPECT_TRUE(terminal_->shows_typed());
}

// Where stderr is no terminal, lines are read as the terminal gives them.
TEST_F(ChatTerminal, KeepsWhatIsTypedWithoutAnEditor) {
  folder_.write("chat.sh", "exec \"$@\" 2> notes\n");
  terminal_.emplace(
      "soliton-chat",
      Arguments{std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories", "-k",
                std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so", "-n", "20", "--ignore-eos"},
      folder_.path(), std::vector<std::string>{"NO_COLOR=1"}, "chat.sh");
  terminal_->type("Hi\r");
  ASSERT_TRUE(is_answering(*terminal_));
  terminal_->type("/save said.json\r");
  terminal_->type(kCtrlD);
  EXPECT_EQ(terminal_->wait(), 0);
  EXPECT_THAT(terminal_->shown(), Not(HasSubstr("said.json")));
  EXPECT_THAT(read_text(folder_.path() / "said.json"), HasSubstr("Hi"));
  EXPECT_TRUE(terminal_->shows_typed());
}

// Whoever owns the terminal next can use it.
TEST_F(ChatTerminal, ASignalLeavesTheTerminalAsItWas) {
  for (const int number : {SIGTERM, SIGHUP}) {
    start({"-n", "200", "--ignore-eos"});
    terminal_->type("Hi\r");
    ASSERT_TRUE(is_answering(*terminal_));
    EXPECT_FALSE(terminal_->shows_typed());
    terminal_->signal(number);
    EXPECT_EQ(terminal_->wait(), 128 + number);
    EXPECT_TRUE(terminal_->shows_typed());
    terminal_.reset();
  }
}

TEST_F(ChatTerminal, RemembersLinesOfEarlierChats) {
  SOLITON_LONG_RUNS_ONLY("RemembersAndEditsLines does");
  const fs::path history = folder_.path() / "state" / "soliton" / "history";
  const std::vector<std::string> environment = {"XDG_STATE_HOME=" + (folder_.path() / "state").string()};
  start({"-n", "1"}, environment);
  enter("first, größer");
  enter("/stats");
  terminal_->type(kCtrlD);
  EXPECT_EQ(terminal_->wait(), 0);
  EXPECT_EQ(read_text(history), "first, größer\n/stats\n");
  EXPECT_EQ(fs::status(history).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  start({"-n", "1"}, environment);
  enter(std::string(kUp) + kUp + " again");
  EXPECT_EQ(contents().at(0), "first, größer again");
  // Without a place for it there is a chat all the same, and one line says so.
  start({"-n", "1"}, {"XDG_STATE_HOME=/dev/null/x"});
  enter("Hi");
  EXPECT_THAT(terminal_->shown(),
              HasSubstr("/dev/null/x/soliton/history: lines are not kept for later chats: "));
  EXPECT_THAT(enter("/stats"), Not(HasSubstr("history")));
}

TEST_F(ChatTerminal, CtrlCStopsTheAnswerOnly) {
  start({"--ignore-eos"});
  terminal_->type("Hi\r");
  ASSERT_TRUE(is_answering(*terminal_));
  terminal_->type(kCtrlC);
  ASSERT_TRUE(terminal_->wait_for("t/s ]\r\n[ stopped ]"));
  ASSERT_TRUE(terminal_->wait_for(kPrompt));
  EXPECT_EQ(contents().size(), 2u);
  enter("/set predict 2");
  EXPECT_THAT(enter("More"), HasSubstr("t/s ]"));
  EXPECT_EQ(contents().size(), 4u);
}

/// A message that takes seconds to be read.
std::string long_message() {
  std::string message;
  for (int i = 0; i < 150; ++i) message += "far ";
  return message;
}

TEST_F(ChatTerminal, ALongPromptHasABarAndCtrlCStopsIt) {
  start();
  terminal_->type(long_message() + "\r");
  ASSERT_TRUE(terminal_->wait_for("Prompt ["));
  ASSERT_TRUE(terminal_->wait_for(" tokens "));
  ASSERT_TRUE(terminal_->wait_for(" t/s"));
  terminal_->type(kCtrlC);
  ASSERT_TRUE(terminal_->wait_for("[ stopped before the answer began"));
  EXPECT_THAT(terminal_->before(), HasSubstr("\r\x1b[K"));  // nothing of the bar is left
  ASSERT_TRUE(terminal_->wait_for(kPrompt));
  EXPECT_THAT(enter("/stats"), HasSubstr("0 questions and answers"));
}

// Between a step of the prompt and the next the first one would do: the second has to come within a step.
TEST_F(ChatTerminal, ASecondCtrlCEndsTheProgram) {
  constexpr int kTries = 8;
  int status = 0;
  for (int i = 0; i < kTries && status != kForced; ++i) {
    start();
    terminal_->type(long_message() + "\r");
    ASSERT_TRUE(terminal_->wait_for("Prompt ["));
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * (i + 1)));  // the bar is drawn between steps
    terminal_->signal(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    terminal_->signal(SIGINT);
    if (terminal_->wait_for_end_or(kPrompt)) status = terminal_->wait();
  }
  EXPECT_EQ(status, kForced);
  EXPECT_THAT(terminal_->shown(), Not(HasSubstr("t/s ]")));
  EXPECT_TRUE(terminal_->shows_typed());
}

TEST_F(ChatTerminal, CtrlCDropsALineAndEndsAtAnEmptyOne) {
  start({"-n", "1"});
  terminal_->type("not this");
  ASSERT_TRUE(terminal_->wait_for("not this"));
  terminal_->type(kCtrlC);
  ASSERT_TRUE(terminal_->wait_for(kPrompt));
  terminal_->type("nor\\\r");
  ASSERT_TRUE(terminal_->wait_for("\r\n. "));
  terminal_->type(kCtrlC);
  ASSERT_TRUE(terminal_->wait_for(kPrompt));
  enter("but this");
  EXPECT_EQ(contents().at(0), "but this");
  terminal_->type(kCtrlC);
  EXPECT_EQ(terminal_->wait(), 0);
}

TEST_F(ChatTerminal, AFullContextCutsAnswersAndRefusesMessages) {
  start({"-c", "28", "--ignore-eos"});
  EXPECT_THAT(enter("Hi"), HasSubstr("[ cut: the context is full."));
  const std::vector<std::string> said = contents();
  EXPECT_THAT(enter("And?"),
              ContainsRegex("context: expected a conversation of at most 28 tokens .see -c., got"));
  EXPECT_EQ(contents(), said);
  enter("/clear");
  enter("/set predict 2");
  EXPECT_THAT(enter("Hi"), HasSubstr("t/s ]"));
}

TEST_F(ChatTerminal, StopStringsEndAnswers) {
  start({"-n", "8"});
  enter("Hi");
  const std::string whole = contents().at(1);
  ASSERT_GT(whole.size(), 8u);
  terminal_.reset();
  start({"-n", "8", "--stop", "never", "--stop", whole.substr(4, 4)});
  enter("Hi");
  EXPECT_EQ(contents().at(1), whole.substr(0, whole.find(whole.substr(4, 4))));
}

TEST_F(ChatTerminal, SaysTheStepsOfDrafts) {
  SOLITON_LONG_RUNS_ONLY("ChatWithLookupGivesTheSameAnswer reads the same line");
  start({"-n", "4", "--lookup", "3"});
  EXPECT_THAT(enter("the cat the cat the cat"),
              ContainsRegex("Drafts: [0-9.]+ tokens accepted/step, [0-9]+ steps"));
  enter("/set temp 1");
  EXPECT_THAT(enter("the cat the cat the cat"), HasSubstr("Drafts: "));
  enter("/set drafts 0");
  EXPECT_THAT(enter("the cat the cat the cat"), Not(HasSubstr("Drafts: ")));
}

TEST_F(ChatTerminal, ColoursAreAskedForByTheTerminal) {
  start({"-n", "1"});
  enter("Hi");
  EXPECT_THAT(terminal_->shown(), Not(ContainsRegex("\x1b\\[[0-9;]*m")));
  terminal_.reset();
  terminal_.emplace(
      "soliton-chat",
      Arguments{std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories", "-k",
                std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so", "--chat-template", "chat.jinja"},
      folder_.path());
  ASSERT_TRUE(terminal_->wait_for("\x1b[1m>\x1b[0m "));
  terminal_.reset();
  terminal_.emplace(
      "soliton-chat",
      Arguments{std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories", "-k",
                std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so", "--chat-template", "chat.jinja"},
      folder_.path(), std::vector<std::string>{"TERM=dumb"});
  ASSERT_TRUE(terminal_->wait_for("> "));
  EXPECT_THAT(terminal_->shown(), Not(HasSubstr("\x1b[1m")));
}

TEST_F(ChatTerminal, FollowsAWindowThatIsResized) {
  start({"-n", "1"});
  terminal_->type("some words");
  ASSERT_TRUE(terminal_->wait_for("words"));
  for (const unsigned short columns : {20, 100, 40}) {
    terminal_->resize(columns);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  terminal_->type(" more\r");
  ASSERT_TRUE(terminal_->wait_for("t/s ]"));
  ASSERT_TRUE(terminal_->wait_for(kPrompt));
  EXPECT_EQ(contents().at(0), "some words more");
}

// A text without a template is completed by itself.
TEST_F(ChatTerminal, CompletesTextsWithoutATemplate) {
  terminal_.emplace("soliton-chat",
                    Arguments{std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories", "-k",
                              std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so", "-n", "3"},
                    folder_.path(), std::vector<std::string>{"NO_COLOR=1"});
  ASSERT_TRUE(terminal_->wait_for("There is no chat template"));
  ASSERT_TRUE(terminal_->wait_for(kPrompt));
  const std::string first = enter("Once upon");
  enter("Tom had");
  EXPECT_EQ(enter("Once upon").substr(0, 8), first.substr(0, 8));
  EXPECT_THAT(enter("/system x"), HasSubstr("expected a model with a chat template"));
}

}  // namespace
}  // namespace soliton
