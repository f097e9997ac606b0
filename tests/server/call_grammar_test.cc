// Grammars of calls in each format: what readers read of them, and what schemas forbid. What templates write, and where calls
// begin.
#include "runtime/server/calls/call_grammar.h"

#include <gmock/gmock.h>

#include "constrain/constrain_testing.h"
#include "error_of.h"
#include "models/mapped_file.h"
#include "runtime/server/calls/call_gate.h"
#include "runtime/server/calls/chat_syntax.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using constrain::takes;
using nlohmann::ordered_json;
using testing::HasSubstr;

const ordered_json kParameters = {{"type", "object"},
                                  {"properties",
                                   {{"n", {{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}},
                                    {"s", {{"type", "string"}}},
                                    {"b", {{"type", "boolean"}}},
                                    {"c", {{"enum", {"x", "y"}}}},
                                    {"l", {{"type", "array"}, {"items", {{"$ref", "#/$defs/d"}}}}}}},
                                  {"$defs", {{"d", {{"type", "integer"}, {"minimum", 5}, {"maximum", 7}}}}},
                                  {"required", {"n", "c"}}};
const std::vector<Tool> kCallTools = {{"f", kParameters}, {"no \"one\"", nullptr}};

constrain::Grammar grammar_of(const char* format, bool may_be_several = true,
                              const std::vector<Tool>& tools = kCallTools) {
  static const AnswerMarks none;
  return call_grammar(
      {.format = call_format(format), .marks = none, .tools = tools, .may_be_several = may_be_several});
}

struct CallRow {
  const char* format;
  std::string call;
  std::string separator;
  std::string open = "";
  std::string close = "";
};

/// One call of f each, with n = 3, s = "t", c = "x", l = [5, 6].
std::vector<CallRow> call_rows() {
  const std::string json = R"({"n": 3, "s": "t", "c": "x", "l": [5, 6]})";
  return {
      {"Hermes, Qwen", "<tool_call>\n{\"name\": \"f\", \"arguments\": " + json + "}\n</tool_call>", "\n"},
      {"Llama 3", "{\"name\": \"f\", \"parameters\": " + json + "}", "; "},
      {"Mistral", "{\"name\": \"f\", \"arguments\": " + json + "}", ", ", "[TOOL_CALLS] [", "]"},
      {"Mistral with [ARGS]", "[TOOL_CALLS]f[ARGS]" + json, ""},
      {"Llama, pythonic", "f(n=3, s=\"t\", c=\"x\", l=[5, 6])", ", ", "[", "]"},
      {"GLM",
       "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n<arg_key>s</arg_key>\n<arg_value>t</"
       "arg_value>\n"
       "<arg_key>c</arg_key>\n<arg_value>x</arg_value>\n<arg_key>l</arg_key>\n<arg_value>[5, "
       "6]</arg_value></tool_call>",
       "\n"},
      {"DeepSeek",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n" + json + "\n```<｜tool▁call▁end｜>", "\n",
       "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
      {"DeepSeek V3.1", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>" + json + "<｜tool▁call▁end｜>", "",
       "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
      {"harmony", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>" + json, ""},
  };
}

TEST(CallGrammars, TakeWhatReadersRead) {
  for (const CallRow& row : call_rows()) {
    SCOPED_TRACE(row.format);
    const std::string one = row.open + row.call + row.close;
    const std::string two = row.open + row.call + row.separator + row.call + row.close;
    EXPECT_TRUE(takes(grammar_of(row.format), one));
    EXPECT_TRUE(takes(grammar_of(row.format, false), one));
    EXPECT_EQ(takes(grammar_of(row.format), two), !call_format(row.format).has_one_call);
    EXPECT_FALSE(takes(grammar_of(row.format, false), two));
    const auto calls = read_calls(call_format(row.format), kCallTools, one);
    ASSERT_TRUE(calls && calls->size() == 1);
    EXPECT_EQ(calls->at(0), (ToolCall{"f", R"({"n":3,"s":"t","c":"x","l":[5,6]})"}));
  }
}

TEST(CallGrammars, FollowTheSchema) {
  const auto with = [](std::string call, const std::string& from, const std::string& to) {
    const size_t at = call.find(from);
    if (at != call.npos) call.replace(at, from.size(), to);
    return call;
  };
  for (const CallRow& row : call_rows()) {
    SCOPED_TRACE(row.format);
    const auto takes_call = [&](const std::string& call) {
      EXPECT_NE(call, row.call);
      return takes(grammar_of(row.format), row.open + call + row.close);
    };
    EXPECT_FALSE(takes_call(with(row.call, "3", "10")));           // a bound,
    EXPECT_FALSE(takes_call(with(row.call, "[5, 6]", "[5, 8]")));  // one behind a reference,
    EXPECT_FALSE(takes_call(with(row.call, "x", "z")));            // no value of the list,
    const std::string name =
        with(with(with(with(with(row.call, "\"f\"", "\"g\""), "]f[", "]g["), "f(", "g("), ">f", ">g"), ".f ",
             ".g ");
    EXPECT_FALSE(takes_call(name));  // no function
  }
  EXPECT_TRUE(takes(grammar_of("Llama, pythonic"), "[f(n=3, b=True, c=\"y\")]"));
  EXPECT_FALSE(takes(grammar_of("Llama, pythonic"), "[f(n=3)]"));  // c is required
  EXPECT_FALSE(takes(grammar_of("Llama, pythonic"), "[f(n=3 c=\"y\")]"));
  EXPECT_FALSE(
      takes(grammar_of("GLM"), "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>3</arg_value></tool_call>"));
  // Names are JSON where they stand in it; without parameters there are no arguments.
  EXPECT_TRUE(takes(grammar_of("Llama 3"), R"({"name": "no \"one\"", "parameters": {}})"));
  EXPECT_FALSE(takes(grammar_of("Llama 3"), R"({"name": "no \"one\"", "parameters": {"a": 1}})"));
  EXPECT_TRUE(takes(grammar_of("Llama 3"), R"(<|python_tag|>{"name":"no \"one\"","parameters":{}})"));
}

TEST(CallGrammars, RefuseWhatIsMalformed) {
  const auto error = [](const ordered_json& parameters, bool is_strict = false) {
    return error_of([&] { grammar_of("Llama 3", true, {{"f", nullptr}, {"g", parameters, is_strict}}); });
  };
  EXPECT_THAT(error({{"type", "number?"}}), HasSubstr("tools[1].function.parameters: type: expected one of"));
  EXPECT_THAT(error({{"type", "object"}, {"$dynamicRef", "#a"}}, true),
              HasSubstr("$dynamicRef: not supported"));
  EXPECT_EQ(error({{"type", "object"}, {"$dynamicRef", "#a"}}), "no error");
}

TEST(CallGrammars, StandBehindReasoning) {
  const constrain::Grammar digits = constrain::parse_ebnf("root ::= [0-9]+", "g");
  const auto takes_behind = [&](const ReasoningMarks& marks, const std::string& text) {
    return takes(behind_reasoning(digits, marks), text);
  };
  const ReasoningMarks may = {.open = "<think>", .close = "</think>"};
  for (const char* text :
       {"1", "<think></think>1", "<think>\nSo < </ </thin </</think>\n\n12", "\n<think>7</think> 8"})
    EXPECT_TRUE(takes_behind(may, text)) << text;
  for (const char* text :
       {"x", "<think>1", "<think></think>", "<think></think>x", "<think></think>1</think>2", "</think>1"})
    EXPECT_FALSE(takes_behind(may, text)) << text;
  const ReasoningMarks inside = {.open = "<think>", .close = "</think>", .has_begun = true};
  EXPECT_TRUE(takes_behind(inside, "So.</think>1"));
  EXPECT_TRUE(takes_behind(inside, "</</think></think>1") == false);
  EXPECT_FALSE(takes_behind(inside, "1"));
  EXPECT_TRUE(takes(either(digits, constrain::parse_ebnf("root ::= a\na ::= \"a\" a?", "h")), "aa"));
  EXPECT_TRUE(takes(either(constrain::parse_ebnf("root ::= a\na ::= \"a\" a?", "h"), digits), "12"));
}

// ---- Templates

ChatSyntax syntax_of(const std::string& source, const Tokenizer& tokenizer) {
  ChatOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  const Prompter prompter(tokenizer, ChatTemplate::parse(source, "t"), options);
  return find_chat_syntax(prompter, tokenizer, tokenizer.vocabulary_size());
}

TEST(ChatSyntaxes, AreWhatTemplatesWrite) {
  const Tokenizer& tokenizer = constrain::tiny().tokenizer;
  const auto of_file = [&](const std::string& name) {
    const std::string path = SOLITON_SOURCE_DIR "/tests/chat_template/data/templates/" + name + ".jinja";
    const ChatSyntax syntax = syntax_of(load_text(path), tokenizer);
    return std::string(syntax.describes_tools ? syntax.calls->name : "none") +
           (syntax.reasoning ? ", " + syntax.reasoning->open : "");
  };
  EXPECT_EQ(of_file("qwen2.5"), "Hermes, Qwen");
  EXPECT_EQ(of_file("qwen3"), "Hermes, Qwen, <think>");
  EXPECT_EQ(of_file("llama-3.1"), "Llama 3");
  EXPECT_EQ(of_file("mistral-v0.3"), "Mistral");
  EXPECT_EQ(of_file("harmony"), "harmony, <|channel|>analysis<|message|>");
  for (const char* deaf : {"chatml", "gemma", "llama-2", "llama-3", "mistral-v0.1", "phi-3"})
    EXPECT_EQ(of_file(deaf), "none") << deaf;
  EXPECT_EQ(of_file("deepseek"), "none, <think>");
}

constexpr const char* kDescribes = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}";
std::string calling(const std::string& call) {
  return kDescribes + ("{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}{% set "
                       "f = c.function %}" +
                       call + "{% endfor %}{% endfor %}");
}

TEST(ChatSyntaxes, OfOtherFamilies) {
  const Tokenizer& tokenizer = constrain::tiny().tokenizer;
  const auto name = [&](const std::string& source) { return syntax_of(source, tokenizer).calls->name; };
  EXPECT_EQ(name(calling(
                "<tool_call>{{ f.name }}\n{% for k, v in f.arguments.items() %}<arg_key>{{ k }}</arg_key>\n"
                "<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>")),
            "GLM");
  // Text that has to be text, where others take objects.
  EXPECT_EQ(
      name(calling(
          "{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>' + f.name + '\n```json\n' + "
          "f.arguments + '\n```<｜tool▁call▁end｜>' }}")),
      "DeepSeek");
  EXPECT_EQ(
      name(calling(
          "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ f.name }}<｜tool▁sep｜>{{ f.arguments | tojson }}")),
      "DeepSeek V3.1");
  EXPECT_EQ(name(calling("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}")), "Mistral with [ARGS]");
  EXPECT_EQ(
      name(calling("[{{ f.name }}({% for k, v in f.arguments.items() %}{{ k }}=\"{{ v }}\"{% endfor %})]")),
      "Llama, pythonic");
  EXPECT_EQ(
      name(calling(
          "<|start|>assistant<|channel|>commentary to=functions.{{ f.name }} <|constrain|>json<|message|>"
          "{{ f.arguments | tojson }}<|call|>")),
      "harmony");
  // What no call shows is what the prompt says of calls.
  EXPECT_EQ(name(std::string(kDescribes) + "Answer with <tool_call>.{{ messages[0].content }}"),
            "Hermes, Qwen");
}

TEST(ChatSyntaxes, SayHowMessagesAreWritten) {
  const Tokenizer& tokenizer = constrain::tiny().tokenizer;
  const std::string call =
      "<tool_call>{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}";
  const ordered_json messages = ordered_json::parse(
      R"([{"content": "a"}, {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1}}}]}])");
  EXPECT_EQ(written_for(syntax_of(calling(call), tokenizer), messages), messages);
  ordered_json expected = messages;
  expected[1]["content"] = nullptr;
  const std::string picky =
      "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}{% set f = c.function %}" +
      call + "{% endfor %}{% endif %}{% endfor %}";
  EXPECT_EQ(written_for(syntax_of(picky, tokenizer), messages), expected);
  expected[1]["content"] = "";
  expected[1]["tool_calls"][0]["function"]["arguments"] = "{\"b\":1}";
  EXPECT_EQ(
      written_for(
          syntax_of(calling("<tool_call>{\"name\": \"{{ f.name }}\", \"arguments\": {{ '' + f.arguments }}}"),
                    tokenizer),
          messages),
      expected);
}

// Calls that follow reasoning are told with it.
TEST(ChatSyntaxes, TellHarmonyWhatLedToCalls) {
  const Tokenizer& tokenizer = constrain::tiny().tokenizer;
  const ChatSyntax syntax =
      syntax_of(load_text(SOLITON_SOURCE_DIR "/tests/chat_template/data/templates/harmony.jinja"), tokenizer);
  const std::string call = R"("tool_calls": [{"function": {"name": "f", "arguments": {"b": 1}}}]})";
  const auto written = [&](const std::string& message) {
    return written_for(syntax, ordered_json::parse("[" + message + "]"))[0];
  };
  EXPECT_EQ(written(R"({"content": "", "reasoning_content": "So.", )" + call)["thinking"], "So.");
  EXPECT_EQ(written(R"({"content": null, "reasoning_content": "So.", )" + call)["thinking"], "So.");
  // Both are more than the template takes.
  EXPECT_FALSE(written(R"({"content": "I will.", "reasoning_content": "So.", )" + call).contains("thinking"));
  EXPECT_FALSE(written(R"({"content": "", "reasoning_content": "So."})").contains("thinking"));
}

TEST(CallGrammars, TextsOfMessagesStandBehindTheirHeader) {
  const constrain::Grammar digits = constrain::parse_ebnf("root ::= [0-9]+", "g");
  const constrain::Grammar message = behind_header(digits, "<|channel|>final<|message|>");
  EXPECT_TRUE(takes(message, "<|channel|>final<|message|>12"));
  EXPECT_FALSE(takes(message, "12"));
  const ReasoningMarks channel = {.open = "<|channel|>analysis<|message|>",
                                  .close = "<|end|><|start|>assistant"};
  const constrain::Grammar answer = behind_reasoning(message, channel);
  EXPECT_TRUE(takes(answer, "<|channel|>final<|message|>1"));
  EXPECT_TRUE(takes(
      answer, "<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>final<|message|>1"));
  EXPECT_FALSE(takes(answer, "<|channel|>analysis<|message|>So.<|end|>1"));
}

// ---- Where calls begin

/// How many letters it takes to open, and what has begun then; 0: it never opens, -1: it stays closed.
std::pair<int, std::string> opened(const CallGateSetup& setup, const std::string& text) {
  static const Tokenizer tokenizer =
      Tokenizer::read(small_tokenizer({"Ġ", "Ċ", "{", "[", "\"", ":", "<", "/", ">", "(", "_"}), "t");
  const auto gate = make_call_gate(tokenizer, std::make_shared<CallGateSetup>(setup));
  int num_pushed = 0;
  for (const int token : tokenizer.encode(text)) {
    ++num_pushed;
    const GrammarGate::State state = gate->push(token);
    if (state == GrammarGate::State::kNever) return {0, ""};
    if (state == GrammarGate::State::kOpen) return {num_pushed, gate->begun()};
  }
  return {-1, ""};
}

TEST(CallGates, OpenWhereCallsBegin) {
  using Opened = std::pair<int, std::string>;
  const auto setup = [](const char* format) {
    return CallGateSetup{.format = call_format(format), .names = {"f", "go"}, .marks = {}, .reasoning = {}};
  };
  const CallGateSetup tags = setup("Hermes, Qwen");
  EXPECT_EQ(opened(tags, "so <tool_call>x"), (Opened{14, "<tool_call>"}));
  EXPECT_EQ(opened(tags, "<tool_<tool_call>"), (Opened{17, "<tool_call>"}));
  EXPECT_EQ(opened(tags, "a < b <tool_cal"), (Opened{-1, ""}));
  const CallGateSetup objects = setup("Llama 3");
  EXPECT_EQ(opened(objects, " { \"name\": "), (Opened{9, "{ \"name\""}));
  EXPECT_EQ(opened(objects, "{\"type\""), (Opened{0, ""}));
  EXPECT_EQ(opened(objects, "so {\"name\""), (Opened{0, ""}));
  const CallGateSetup python = setup("Llama, pythonic");
  EXPECT_EQ(opened(python, "[go(a"), (Opened{4, "[go("}));
  EXPECT_EQ(opened(python, "[ f("), (Opened{4, "[ f("}));
  EXPECT_EQ(opened(python, "[h("), (Opened{0, ""}));
  EXPECT_EQ(opened(python, "[1"), (Opened{0, ""}));
  // Not within the reasoning.
  CallGateSetup thinking = tags;
  thinking.reasoning = {.open = "<think>", .close = "</think>"};
  EXPECT_EQ(opened(thinking, "<think><tool_call></think><tool_call>"), (Opened{37, "<tool_call>"}));
  EXPECT_EQ(opened(thinking, "<tool_call>"), (Opened{11, "<tool_call>"}));
  CallGateSetup inside = objects;
  inside.reasoning = {.open = "<think>", .close = "</think>", .has_begun = true};
  EXPECT_EQ(opened(inside, "{\"name\"</think>\n{\"name\""), (Opened{23, "{\"name\""}));
}

// Special tokens that mark calls stand in no text that grammars take as such.
TEST(CallGrammars, MarksAreTokens) {
  const Tokenizer tokenizer = Tokenizer::read(small_tokenizer(kJsonSigns, {"[TOOL_CALLS]", "</s>"}), "t");
  const std::vector<std::string> texts = marks_of(call_format("Mistral"));
  const AnswerMarks marks(tokenizer, tokenizer.vocabulary_size(), texts);
  ASSERT_EQ(marks.tokens(), std::vector<int32_t>{0});
  const auto vocabulary =
      std::make_shared<constrain::Vocabulary>(tokenizer, tokenizer.vocabulary_size(), marks.tokens());
  const constrain::Grammar grammar =
      call_grammar({.format = call_format("Mistral"), .marks = marks, .tools = {{"f", nullptr}}});
  TokenConstraint constraint(constrain::ready(grammar, vocabulary), {});
  EXPECT_EQ(constrain::tokens_of(constraint.allowed()), std::vector<int>{0});
  ASSERT_TRUE(constraint.accept(0));
  for (const char c : std::string("[{\"name\": \"f\", \"arguments\": {}}]"))
    ASSERT_TRUE(constraint.accept(tokenizer.encode(std::string(1, c)).at(0))) << c;
  EXPECT_TRUE(constraint.ended());
}

// Of marks that begin alike both ways go on.
TEST(CallGrammars, ChannelsThatBeginAlikeAreBothAllowed) {
  const std::vector<std::string> specials = {"<|start|>", "</s>", "<|channel|>", "<|message|>", "<|end|>"};
  const Tokenizer tokenizer = Tokenizer::read(small_tokenizer(kSmallSigns, specials), "t");
  const AnswerMarks marks(tokenizer, tokenizer.vocabulary_size(), specials);
  const auto vocabulary =
      std::make_shared<constrain::Vocabulary>(tokenizer, tokenizer.vocabulary_size(), marks.tokens());
  const constrain::Grammar message = behind_header(constrain::parse_ebnf("root ::= [0-9]+", "g"),
                                                   marks.encoded("<|channel|>final<|message|>"));
  const constrain::Grammar answer =
      behind_reasoning(message, {.open = marks.encoded("<|channel|>analysis<|message|>"),
                                 .close = marks.encoded("<|end|><|start|>assistant")});
  TokenConstraint constraint(constrain::ready(answer, vocabulary), {});
  ASSERT_TRUE(constraint.accept(tokenizer.token_id("<|channel|>").value()));
  const std::vector<int> expected = {tokenizer.encode("a").at(0), tokenizer.encode("f").at(0)};
  EXPECT_EQ(constrain::tokens_of(constraint.allowed()), expected);
}

}  // namespace
}  // namespace soliton
