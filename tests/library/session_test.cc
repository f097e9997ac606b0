// Models, text and sessions through soliton.h and soliton.hpp.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <future>
#include <thread>

#include "library/library_fixture.h"

namespace soliton {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Library, SaysWhatTheModelIs) {
  const soliton_model_info info = model().info();
  EXPECT_EQ(info.context, kLibraryContext);
  EXPECT_GT(info.vocabulary, 300);
  EXPECT_GE(info.max_rows, 8);
  EXPECT_EQ(info.has_chat_template, 0);
  EXPECT_EQ(info.is_emulated, 1);
  EXPECT_GE(info.cache_tokens, kLibraryContext);
  EXPECT_STRNE(soliton_version(), "");
}

TEST_F(Library, TextAndTokensAreWhatTheTokenizerSays) {
  const std::string text = "Once upon a time \xE2\x9C\x93";
  const Tokens tokens = model().tokenize(text);
  EXPECT_EQ(model().detokenize(tokens), text);
  const Tokens alone = model().prompt(text);
  EXPECT_EQ(Tokens(alone.begin() + 1, alone.end()), tokens) << "begin-of-text before it";
  EXPECT_EQ(model().detokenize(alone, true), text);
  EXPECT_EQ(model().tokenize(model().detokenize({alone[0]}), SOLITON_PARSE_SPECIAL), Tokens{alone[0]});
  EXPECT_GT(model().tokenize(model().detokenize({alone[0]})).size(), 1u) << "not unless it is asked for";
  EXPECT_TRUE(model().tokenize("").empty());
}

// Of a grammar's text nothing but the end of text is left, or without it nothing.
TEST_F(Library, AnswersAreOfAGrammar) {
  Session session(model());
  Options options = up_to(20);
  options.grammar = "root ::= \" \" (\"red\" | \"green\") [0-9]{2}";
  const Answer answer = session.generate(prompt(), options);
  EXPECT_THAT(answer.text, testing::MatchesRegex(" (red|green)[0-9][0-9]"));
  EXPECT_EQ(answer.result.finish, SOLITON_STOP_TOKEN);
  EXPECT_EQ(session.generate(prompt(), options).text, answer.text) << "each answer begins it anew";
  options.ignore_eos = true;
  options.logprobs = true;
  const Answer whole = session.generate(prompt(), options);
  EXPECT_EQ(whole.text, answer.text);
  EXPECT_EQ(whole.result.finish, SOLITON_WHOLE);
  EXPECT_EQ(whole.logprobs.size(), whole.tokens.size());
  options.max_tokens = 2;
  EXPECT_EQ(session.generate(prompt(), options).result.finish, SOLITON_LENGTH);
}

TEST_F(Library, AnswersAreOfASchemaInBranchesToo) {
  Tree tree(model());
  const Tree::Branch root = tree.add(prompt());
  std::vector<Tree::Branch> branches = tree.fork(root, 2);
  Options options = up_to(30);
  options.temperature = 1.5;
  options.json_schema = R"({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "maxItems": 3})";
  for (const Answer& answer : tree.decode(branches, options)) {
    EXPECT_THAT(answer.text, testing::MatchesRegex("\\[[ \n]*[123],[ \n]*[123],[ \n]*[123][ \n]*\\]"));
    EXPECT_EQ(answer.result.finish, SOLITON_STOP_TOKEN);
  }
}

TEST_F(Library, GrammarsAreRefusedByName) {
  const auto refusal = [](const std::string& grammar, const std::string& schema) {
    Options options = up_to(4);
    options.grammar = grammar;
    options.json_schema = schema;
    return failure_of([&] { Session(model()).generate(prompt(), options); });
  };
  EXPECT_THAT(refusal("root ::= (", ""), StartsWith("4 grammar:1"));
  EXPECT_THAT(refusal("", "{"), StartsWith("4 json_schema"));
  EXPECT_THAT(refusal("", R"({"type": "string", "contentEncoding": "base64", "$dynamicRef": "#a"})"),
              StartsWith("5 json_schema"));
  EXPECT_THAT(refusal("root ::= \"a\"", "{}"), StartsWith("2 json_schema: expected null beside a grammar"));
}

// A program of the first version knows no grammars.
TEST_F(Library, OptionsMayBeShorter) {
  soliton_options options{};
  constexpr size_t kFirstSize = offsetof(soliton_options, grammar);
  ASSERT_EQ(soliton_options_init(model().get(), &options, kFirstSize), SOLITON_OK);
  EXPECT_EQ(options.size, kFirstSize);
  options.max_tokens = 2;
  options.grammar = "no grammar";
  soliton_session* session = nullptr;
  ASSERT_EQ(soliton_session_open(model().get(), &session), SOLITON_OK);
  const Tokens tokens = prompt();
  EXPECT_EQ(soliton_generate(session, tokens.data(), tokens.size(), &options, nullptr, nullptr, nullptr),
            SOLITON_OK);
  options.size = kFirstSize - 1;
  EXPECT_EQ(soliton_generate(session, tokens.data(), tokens.size(), &options, nullptr, nullptr, nullptr),
            SOLITON_USAGE);
  soliton_session_close(session);
}

TEST_F(Library, BuffersAreWholeOrUntouched) {
  const Tokens tokens = model().tokenize("Once upon a time");
  ASSERT_GE(tokens.size(), 3u);
  std::array<int32_t, 32> buffer;
  buffer.fill(-7);
  size_t count = 0;
  EXPECT_EQ(soliton_tokenize(model().get(), "Once upon a time", 16, 0, buffer.data(), 2, &count),
            SOLITON_OUT_OF_MEMORY);
  EXPECT_EQ(count, tokens.size());
  EXPECT_EQ(buffer[0], -7);
  EXPECT_EQ(soliton_tokenize(model().get(), "Once upon a time", 16, 0, buffer.data(), count, &count),
            SOLITON_OK);
  EXPECT_EQ(Tokens(buffer.begin(), buffer.begin() + count), tokens);
  EXPECT_EQ(buffer[count], -7);
  std::array<char, 5> text = {'x', 'x', 'x', 'x', 'x'};
  const Tokens word = model().tokenize("Once");
  EXPECT_EQ(soliton_detokenize(model().get(), word.data(), word.size(), 0, text.data(), 4, &count),
            SOLITON_OUT_OF_MEMORY)
      << "no room for the NUL";
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(text[0], 'x');
  EXPECT_EQ(soliton_detokenize(model().get(), word.data(), word.size(), 0, text.data(), 5, &count),
            SOLITON_OK);
  EXPECT_STREQ(text.data(), "Once");
}

TEST_F(Library, RefusesWhatCannotBeByName) {
  soliton_model* opened = model().get();
  EXPECT_EQ(soliton_model_open("/no/such/model", nullptr, &opened), SOLITON_NOT_FOUND);
  EXPECT_EQ(opened, nullptr);
  EXPECT_THAT(soliton_last_error(), HasSubstr("/no/such/model"));
  EXPECT_EQ(soliton_model_open(nullptr, nullptr, &opened), SOLITON_USAGE);
  EXPECT_EQ(soliton_model_open(kLibraryModel.c_str(), nullptr, nullptr), SOLITON_USAGE);
  EXPECT_EQ(soliton_session_open(nullptr, nullptr), SOLITON_USAGE);
  EXPECT_STREQ(soliton_last_error(), "session: expected an address, got null");
  soliton_model_options unsized{};
  EXPECT_EQ(soliton_model_open(kLibraryModel.c_str(), &unsized, &opened), SOLITON_USAGE);
  EXPECT_THAT(soliton_last_error(), StartsWith("soliton_model_options.size: expected "));
  EXPECT_THAT(failure_of([] {
                ModelOptions options;
                options.context = 1'000'000;
                options.kernel = kLibraryKernel;
                Model(kLibraryModel, options);
              }),
              StartsWith("7 context: expected at most "));
  soliton_model_close(nullptr);
  soliton_session_close(nullptr);
  soliton_tree_close(nullptr);
  soliton_cancel(nullptr);

  Session session(model());
  const auto failure_with = [&](const Options& options) {
    return failure_of([&] { session.generate(prompt(), options); });
  };
  Options options = up_to(1);
  options.temperature = -1;
  EXPECT_EQ(failure_with(options), "2 temperature: expected a number from 0 to 100, got -1");
  options = up_to(1);
  options.top_p = std::nan("");
  EXPECT_THAT(failure_with(options), StartsWith("2 top_p: "));
  options = up_to(1);
  options.stops = {"end", ""};
  EXPECT_EQ(failure_with(options), "2 stops: expected text, got \"\"");
  EXPECT_EQ(failure_with(up_to(-1)), "2 max_tokens: expected a number from 0 to 2147483647, got -1");
  EXPECT_EQ(failure_of([&] { session.generate({}); }), "2 tokens: expected at least one, got none");
  EXPECT_THAT(failure_of([&] {
                session.generate({1, 1'000'000});
              }),
              StartsWith("5 tokens: expected ids from 0 to "));
  EXPECT_EQ(failure_of([&] { session.generate(Tokens(kLibraryContext + 1, 1)); }),
            "7 context: expected at most 80 tokens of a text, got 81");
  EXPECT_THAT(failure_of([&] { (void)model().render_chat("[]"); }), StartsWith("2 chat_template: "));
}

TEST_F(Library, ErrorsAreOfTheirThread) {
  EXPECT_EQ(soliton_session_open(nullptr, nullptr), SOLITON_USAGE);
  std::thread([] { EXPECT_STREQ(soliton_last_error(), ""); }).join();
  EXPECT_STRNE(soliton_last_error(), "");
}

TEST_F(Library, GeneratesAsTheModelDoes) {
  Session session(model());
  std::string told;
  Options options = up_to(6);
  options.logprobs = true;
  const Answer answer = session.generate(prompt(), options, [&](const soliton_token& token) {
    told.append(token.text, token.text_bytes);
    return true;
  });
  EXPECT_EQ(answer.text, ", a small girl lived in");
  EXPECT_EQ(told, answer.text);
  EXPECT_EQ(model().detokenize(answer.tokens), answer.text);
  EXPECT_EQ(answer.result.finish, SOLITON_LENGTH);
  EXPECT_EQ(answer.result.num_generated, 6);
  EXPECT_EQ(answer.result.num_prompt, static_cast<int>(prompt().size()));
  EXPECT_GT(answer.result.first_token_s, 0);
  EXPECT_GE(answer.result.total_s, answer.result.first_token_s);
  ASSERT_EQ(answer.logprobs.size(), 6u);
  double sum = 0;
  for (const float logprob : answer.logprobs) {
    EXPECT_LE(logprob, 0);
    sum += logprob;
  }
  EXPECT_DOUBLE_EQ(answer.result.logprob, sum);
}

TEST_F(Library, EndsWhereItIsTold) {
  Session session(model());
  Options options = up_to(20);
  options.stops = {"moon", "girl"};
  const Answer stopped = session.generate(prompt(), options);
  EXPECT_EQ(stopped.text, ", a small ");
  EXPECT_EQ(stopped.result.finish, SOLITON_STOP_TEXT);
  EXPECT_TRUE(std::isnan(stopped.result.logprob));
  int num_told = 0;
  const Answer unwanted = session.generate(prompt(), up_to(20), [&](const soliton_token& token) {
    EXPECT_TRUE(std::isnan(token.logprob));
    return ++num_told < 2;
  });
  EXPECT_EQ(unwanted.result.finish, SOLITON_CALLBACK);
  EXPECT_EQ(unwanted.tokens.size(), 2u);
  EXPECT_THROW(
      session.generate(prompt(), up_to(20),
                       [](const soliton_token&) -> bool { throw std::domain_error("of the caller"); }),
      std::domain_error);
  EXPECT_EQ(session.generate(prompt(), up_to(1)).text, ",") << "and goes on";
}

TEST_F(Library, IgnoresTheEndOfTextWhereItIsTold) {
  Session session(model());
  const Tokens end = model().prompt(
      "Sofia put the toy boat in a dry place. And whenever someone needed help, Sofia thought of Oscar and "
      "was kind too.");
  Options options = up_to(2);
  const Answer ended = session.generate(end, options);
  options.ignore_eos = true;
  const Answer went_on = session.generate(end, options);
  EXPECT_EQ(ended.result.finish, SOLITON_STOP_TOKEN);
  EXPECT_EQ(ended.tokens.size(), 1u);
  EXPECT_EQ(went_on.result.finish, SOLITON_LENGTH);
  EXPECT_EQ(went_on.tokens.size(), 2u);
}

TEST_F(Library, FeedsWhatIsCachedOnceAndFillsTheContext) {
  Session session(model());
  const Tokens words = model().prompt("One day a girl found a boat in the wood.");
  Tokens text = words;
  while (text.size() < 70) text.push_back(words[1 + text.size() % (words.size() - 1)]);
  EXPECT_EQ(session.generate(text, up_to(1)).result.num_cached, 0);
  const Answer again = session.generate(text, up_to(2));
  EXPECT_EQ(again.result.num_cached, 69) << "all but the token that is fed to go on";
  text.insert(text.end(), again.tokens.begin(), again.tokens.end());
  EXPECT_EQ(Session(model()).generate(text, up_to(1)).result.num_cached, 71) << "for another session too";
  Options options = up_to(0);
  options.ignore_eos = true;
  const Answer full = session.generate(text, options);
  EXPECT_EQ(full.tokens.size(), kLibraryContext - text.size() + 1) << "the last one is not fed";
  EXPECT_EQ(full.result.finish, SOLITON_LENGTH);
  text[66] ^= 1;
  EXPECT_EQ(session.generate(text, up_to(1)).result.num_cached, 66) << "as far as they are the same";
}

TEST_F(Library, IsCancelledFromAnotherThread) {
  Session session(model());
  std::promise<void> begun;
  std::thread canceller([&] {
    begun.get_future().wait();
    session.cancel();
  });
  bool is_first = true;
  const Answer answer = session.generate(prompt(), up_to(100), [&](const soliton_token&) {
    if (std::exchange(is_first, false)) {
      begun.set_value();
      canceller.join();
    }
    return true;
  });
  EXPECT_EQ(answer.result.finish, SOLITON_CANCELLED);
  EXPECT_EQ(answer.tokens.size(), 1u);
  session.cancel();
  EXPECT_EQ(session.generate(prompt(), up_to(1)).result.finish, SOLITON_LENGTH)
      << "one that begins later is not";
}

TEST_F(Library, ThreadsTakeTurns) {
  const std::vector<std::string> starts = {"Once upon a time", "One day"};
  std::vector<Tokens> alone;
  for (const std::string& start : starts)
    alone.push_back(Session(model()).generate(model().prompt(start), up_to(2)).tokens);
  std::vector<std::future<Tokens>> together;
  for (const std::string& start : starts) {
    together.push_back(std::async(std::launch::async, [&start] {
      const Tokens text = model().prompt(start);
      return Session(model()).generate(text, up_to(2)).tokens;
    }));
  }
  for (size_t i = 0; i < starts.size(); ++i) EXPECT_EQ(together[i].get(), alone[i]) << starts[i];
}

TEST_F(Library, CallbacksMayDoWhatNeedNotWait) {
  Session session(model());
  Session other(model());
  auto tree = std::make_unique<Tree>(model());
  tree->decode({tree->add(prompt())}, up_to(1));
  const Answer answer = session.generate(prompt(), up_to(2), [&](const soliton_token& token) {
    EXPECT_THAT(failure_of([&] { other.generate(prompt(), up_to(1)); }), StartsWith("2 callback: "));
    EXPECT_FALSE(model().detokenize({token.id}).empty());
    tree.reset();
    return true;
  });
  EXPECT_EQ(answer.tokens.size(), 2u);
  EXPECT_EQ(other.generate(prompt(), up_to(1)).text, ",");
}

TEST_F(Library, HandlesKeepTheirModelOpen) {
  std::vector<std::string> lines;
  ModelOptions options;
  options.context = 64;
  options.kernel = kLibraryKernel;
  options.chat_template = SOLITON_SOURCE_DIR "/tests/chat_template/data/templates/llama-3.1.jinja";
  options.log = [&](const std::string& line) { lines.push_back(line); };
  auto opened = std::make_unique<Model>(kLibraryModel, options);
  EXPECT_THAT(lines, testing::Contains(StartsWith("Context: 64 of the model's 2048 tokens")));
  EXPECT_EQ(opened->info().has_chat_template, 1);
  const std::string special = opened->detokenize({opened->prompt("")[0]});
  const Tokens chat = opened->render_chat(R"([{"role": "user", "content": "Hi )" + special + R"("}])");
  EXPECT_EQ(std::count(chat.begin(), chat.end(), opened->prompt("")[0]), 1) << "what a user wrote is text";
  EXPECT_THAT(opened->detokenize(chat), HasSubstr("Hi " + special));
  EXPECT_THAT(failure_of([&] { (void)opened->render_chat("[{]"); }), StartsWith("4 messages: "));
  EXPECT_EQ(failure_of([&] { (void)opened->render_chat(R"([{"content": ""}])"); }),
            "4 messages: [0].role: expected text, got none");
  Session session(*opened);
  opened.reset();
  const Tokens text = prompt();
  std::future<Answer> other =
      std::async(std::launch::async, [&] { return session.generate(text, up_to(2)); });
  EXPECT_EQ(Session(model()).generate(text, up_to(2)).text, ", a") << "with the same kernel library";
  EXPECT_EQ(other.get().text, ", a");
}

}  // namespace
}  // namespace soliton
