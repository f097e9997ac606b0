#include "runtime/answer/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/run_program.h"
#include "models/error.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const Conversation kConversation{.system = "Be brief.",
                                 .turns = {"Größe?\n\"\\\x01", "174 cm 📏", "", "東京"}};

class ConversationFile : public testing::Test {
 protected:
  fs::path path() const { return folder_.path() / "chat.json"; }

  /// Expects the text to be refused as a conversation, for a reason that it returns.
  std::string refusal(const std::string& text, ExitCode code = ExitCode::kBadFile) const {
    write_text(path(), text);
    try {
      load_conversation(path());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), HasSubstr(path().string() + ": "));
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
};

TEST_F(ConversationFile, ComesBackAsItWas) {
  for (const Conversation& conversation :
       {kConversation, Conversation{}, Conversation{.system = "", .turns = {}},
        Conversation{.system = {}, .turns = {"a", "b"}}}) {
    save_conversation(conversation, path());
    EXPECT_EQ(load_conversation(path()), conversation);
    EXPECT_EQ(folder_.files(), std::set<std::string>{path()});
  }
}

TEST_F(ConversationFile, IsAListOfMessagesInOrder) {
  save_conversation({.system = "s", .turns = {"u", "a"}}, path());
  const auto json = nlohmann::ordered_json::parse(read_text(path()));
  EXPECT_EQ(json.dump(), R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},)"
                         R"({"role":"assistant","content":"a"}]})");
}

TEST_F(ConversationFile, MayBeTheListAlone) {
  write_text(path(), R"([{"role": "user", "content": "u"}, {"content": "a", "role": "assistant"}])");
  EXPECT_EQ(load_conversation(path()), (Conversation{.system = {}, .turns = {"u", "a"}}));
}

TEST_F(ConversationFile, MayEndWithAQuestionWhereOneIsWanted) {
  const std::string text = R"([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])";
  write_text(path(), text);
  const Conversation question{.system = "s", .turns = {"u"}};
  EXPECT_EQ(read_conversation(path()), question);
  EXPECT_EQ(parse_conversation(text, "stdin"), question);
  EXPECT_THAT(refusal(text), HasSubstr("expected an answer"));
}

TEST_F(ConversationFile, RefusesWhatItIsNot) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("[{"), HasSubstr("JSON"));
  EXPECT_THAT(refusal("7"), HasSubstr("expected an object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("messages"));
  EXPECT_THAT(refusal(R"({"messages": {}})"), HasSubstr("messages"));
  EXPECT_THAT(refusal(R"(["text"])"), HasSubstr("[0]"));
  EXPECT_THAT(refusal(R"([{"role": "user"}])"), HasSubstr("content"));
  EXPECT_THAT(refusal(R"([{"role": "user", "content": null}])"), HasSubstr("content"));
  EXPECT_THAT(refusal(R"([{"role": "user", "content": ["text"]}])"), HasSubstr("content"));
  EXPECT_THAT(refusal(R"([{"role": "assistant", "content": ""}])"), HasSubstr("expected user"));
  EXPECT_THAT(refusal(R"([{"role": "user", "content": ""}])"), HasSubstr("expected an answer"));
  EXPECT_THAT(refusal(R"([{"role": "user", "content": ""}, {"role": "system", "content": ""}])"),
              HasSubstr("expected assistant"));
  EXPECT_THAT(refusal(R"([{"role": "user", "content": "", "name": "x"}])"), HasSubstr(R"(got "name")"));
  EXPECT_THAT(refusal("[{\"role\": \"user\", \"content\": \"\xff\"}]"), HasSubstr("JSON"));
  fs::remove(path());
  EXPECT_THROW(load_conversation(path()), Error);
  EXPECT_THROW(load_conversation(folder_.path()), Error);
}

TEST_F(ConversationFile, RefusesEveryCutOfAFile) {
  save_conversation(kConversation, path());
  const std::string text = read_text(path());
  const size_t last = text.rfind('}');
  for (size_t size = 0; size <= last; ++size) EXPECT_NE(refusal(text.substr(0, size)), "no error") << size;
}

TEST_F(ConversationFile, ReplacesConversationsOnly) {
  save_conversation(kConversation, path());
  save_conversation({}, path());
  EXPECT_EQ(load_conversation(path()), Conversation{});
  write_text(path(), "an essay");
  EXPECT_THROW(save_conversation(kConversation, path()), Error);
  EXPECT_EQ(read_text(path()), "an essay");
}

TEST_F(ConversationFile, IsWrittenAsAWholeOrNotAtAll) {
  save_conversation({}, path());
  const std::string before = read_text(path());
  write_text(path().string() + ".part", "of another program");
  EXPECT_THROW(save_conversation(kConversation, folder_.path() / "absent" / ".." / "x" / "y"), Error);
  EXPECT_EQ(read_text(path()), before);
  save_conversation(kConversation, path());
  EXPECT_EQ(load_conversation(path()), kConversation);
  EXPECT_EQ(read_text(path().string() + ".part"), "of another program");
  EXPECT_EQ(folder_.files().size(), 2u);
  EXPECT_THROW(save_conversation(kConversation, folder_.path() / "absent" / "chat.json"), Error);
  EXPECT_THROW(save_conversation(kConversation, folder_.path()), Error);
  EXPECT_THROW(save_conversation(kConversation, "/dev/full/x"), Error);
}

}  // namespace
}  // namespace soliton
