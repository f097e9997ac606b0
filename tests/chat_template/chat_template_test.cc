// What parity with jinja2 does not show: origins of text, errors and their places, limits, the files of a
// model.
#include "runtime/text/chat_template/chat_template.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "cpu_time.h"
#include "models/error.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

RenderedChat render(std::string_view source, const ordered_json& variables = ordered_json::object()) {
  ChatOptions options;
  options.variables = variables;
  options.bos_token = "<s>";
  return ChatTemplate::parse(source, "t").render(ordered_json::array(), options);
}

std::string text_of(std::string_view source, const ordered_json& variables = ordered_json::object()) {
  return render(source, variables).text();
}

/// "code message" of the error, or "no error".
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return fmt::format("{} {}", static_cast<int>(error.code()), error.what());
  }
  return "no error";
}

std::string error_in(std::string_view source, const ordered_json& variables = ordered_json::object()) {
  return error_of([&] { render(source, variables); });
}

/// The pieces joined, those from messages in «».
std::string marked(std::string_view source, const ordered_json& variables) {
  std::string result;
  for (const TextPiece& piece : render(source, variables).pieces) {
    result += piece.from_message ? "«" + piece.text + "»" : piece.text;
  }
  return result;
}

struct Rendering {
  const char* source;
  const char* text;
};

class Constructs : public testing::TestWithParam<Rendering> {};

TEST_P(Constructs, Render) {
  EXPECT_EQ(text_of(GetParam().source), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Whitespace, Constructs,
    testing::Values(Rendering{"a\n", "a"}, Rendering{"a\n\n", "a\n"}, Rendering{"a\r\nb\rc", "a\nb\nc"},
                    Rendering{"  {% if true %}\n  x\n  {% endif %}\ny", "  x\ny"},
                    Rendering{"a {%- if true -%} b {%- endif -%} c", "abc"},
                    Rendering{"  {%+ if true +%}\nx{% endif %}", "  \nx"},
                    Rendering{"  {{ 1 }}\n x", "  1\n x"}, Rendering{"a {{- 1 -}} b", "a1b"},
                    Rendering{"a\n  {# c #}\nb", "a\nb"}, Rendering{"a {#- c -#} b", "ab"},
                    Rendering{"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
                    Rendering{"a {%- raw -%}  {% b  {%- endraw -%} c", "a{% bc"},
                    Rendering{"{ {a} %} }}", "{ {a} %} }}"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, Constructs,
    testing::Values(
        Rendering{"{{ 1 + 2 * 3 - 4 / 2 }}", "5.0"},
        Rendering{"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }}", "3 -4 2"}, Rendering{"{{ 2 ** 3 ** 2 }}", "64"},
        Rendering{"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }}", "True False"}, Rendering{"{{ not 1 == 2 and 3 }}", "3"},
        Rendering{"{{ 'a' ~ 1 ~ none }}", "a1None"}, Rendering{"{{ 'a' 'b' }}", "ab"},
        Rendering{"{{ [1, 'a', (2,), {'k': 1.0}] }}", "[1, 'a', (2,), {'k': 1.0}]"},
        Rendering{"{{ 'x' if false }}|{{ missing }}", "|"},
        Rendering{"{{ 0x1F + 0b11 + 0o7 + 1_000 }}", "1041"},
        Rendering{"{{ '\\u00e9\\n\\x41\\101' }}", "é\nAA"}, Rendering{"{{ {'a': {'b': 1}}['a'].b }}", "1"},
        Rendering{"{{ 'héllo'[1] }}{{ 'héllo'[::-1] }}{{ 'abc'[-2:] }}", "éolléhbc"}));

INSTANTIATE_TEST_SUITE_P(
    Statements, Constructs,
    testing::Values(
        Rendering{"{% for x in [1, 2, 3] if x != 2 %}{{ loop.index }}/{{ loop.length }}{{ x }} {% endfor %}",
                  "1/21 2/23 "},
        Rendering{"{% for x in [] %}{% else %}none{% endfor %}", "none"},
        Rendering{"{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "a=1"},
        Rendering{"{% for x in range(9) %}{% if x == 1 %}{% continue %}{% elif x == 3 %}{% break %}{% endif "
                  "%}{{ x }}{% endfor %}",
                  "02"},
        Rendering{"{% set x = 1 %}{% for y in [1] %}{% set x = 2 %}{% endfor %}{{ x }}", "1"},
        Rendering{"{% set n = namespace(x=1) %}{% for y in [1] %}{% set n.x = 2 %}{% endfor %}{{ n.x }}",
                  "2"},
        Rendering{"{% if true %}{% set x = 3 %}{% endif %}{{ x }}", "3"},
        Rendering{"{% set x | upper %}a{{ 1 }}{% endset %}{{ x }}", "A1"},
        Rendering{"{% macro m(a, b=a ~ '!') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(b=2, a=3) }}",
                  "11!32"},
        Rendering{"{% macro m() %}<{{ caller('x') }}>{% endmacro %}{% call(y) m() %}{{ y }}{% endcall %}",
                  "<x>"},
        Rendering{"{% filter upper %}a{% endfilter %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}",
                  "A3"},
        Rendering{"{% generation %}a{% endgeneration %}{{ '<b>' | safe }}", "a<b>"},
        Rendering{"{{ strftime_now is defined }}{{ dict(a=1) }}{{ namespace(a=1) }}",
                  "True{'a': 1}<Namespace {'a': 1}>"}));

TEST(ChatTemplateOrigin, CharactersKeepTheirsThroughEveryMove) {
  const ordered_json variables = {{"u", "  <|x|> b "}, {"list", {"a", "b"}}};
  EXPECT_EQ(marked("<|x|>{{ u }}", variables), "<|x|>«  <|x|> b »");
  EXPECT_EQ(marked("{{ '[' + u|trim ~ ']' }}", variables), "[«<|x|> b»]");
  EXPECT_EQ(marked("{{ ('[' ~ u ~ ']')[1:4] }}", variables), "«  <»");
  EXPECT_EQ(marked("{{ ('<' ~ u.strip())|upper }}", variables), "<«<|X|> B»");
  EXPECT_EQ(marked("{{ u.split('|')[1] }}{{ list|join(', ') }}", variables), "«xa», «b»");
  EXPECT_EQ(marked("{{ u.strip().replace('b', '<|t|>') }}", variables), "«<|x|> »<|t|>");
  EXPECT_EQ(marked("{{ list }}{{ list|tojson }}", variables), "['«a»', '«b»'][\"«a»\", \"«b»\"]");
  EXPECT_EQ(marked("{{ '%s|%s' % (list[0], 'c') }}{{ '{}.'.format(list[1]) }}", variables), "«a»|c«b».");
  EXPECT_EQ(marked("{% set x %}({{ list[0] }}){% endset %}{{ x[::-1] }}", variables), ")«a»(");
  EXPECT_EQ(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(list|first)|indent(1, true) }}", variables),
            " <«a»>");
  EXPECT_EQ(marked("{% for c in list[0] ~ '-' %}{{ c }},{% endfor %}", variables), "«a»,-,");
}

TEST(ChatTemplateOrigin, EscapesHaveThatOfWhatTheyStandFor) {
  const ordered_json variables = {{"u", "<a b&>"}};
  EXPECT_EQ(marked("{{ ('<' ~ u)|e }}", variables), "&lt;«&lt;a b&amp;&gt;»");
  EXPECT_EQ(marked("{{ ('<'|safe) + u + '&' }}", variables), "<«&lt;a b&amp;&gt;»&amp;");
  EXPECT_EQ(marked("{{ ('/ ' ~ u)|urlencode }}", variables), "/%20«%3Ca%20b%26%3E»");
  EXPECT_EQ(marked("{{ ('ß' ~ s)|upper }}{{ s|title }}", {{"s", "ßΣ"}}), "SS«SSΣSSσ»");
}

TEST(ChatTemplateOrigin, MadeUpTextIsTheTemplates) {
  EXPECT_EQ(marked("{{ n }}{{ b }}{{ f + 1 }}", {{"n", 5}, {"b", true}, {"f", 1.5}}), "5True2.5");
}

TEST(ChatTemplateOrigin, ChoosingByTypedTextGivesTheTemplatesText) {
  EXPECT_EQ(marked("{{ {'user': '<|user|>'}[r] }}", {{"r", "user"}}), "<|user|>");
}

TEST(ChatTemplateOrigin, TypedTextNextToTheTemplatesStaysApart) {
  // Together they read as a special token; the tokenizer sees that one byte of it was typed.
  EXPECT_EQ(marked("<|eot{{ u }}", {{"u", "_id|>"}}), "<|eot«_id|>»");
}

TEST(ChatTemplate, SaysWhetherItBeginsWithBos) {
  EXPECT_TRUE(render("{{ bos_token }}x").begins_with("<s>"));
  EXPECT_FALSE(render("x{{ bos_token }}").begins_with("<s>"));
  EXPECT_FALSE(render("{{ u }}", {{"u", "<s>"}}).begins_with("<s>")) << "a user typed it";
  EXPECT_FALSE(render("{{ bos_token }}").begins_with(""));
}

TEST(ChatTemplate, InvalidUtf8InMessagesBecomesReplacementCharacters) {
  EXPECT_EQ(text_of("{{ u }}", {{"u", "a\xff\xc3z"}}), "a\xef\xbf\xbd\xef\xbf\xbdz");
}

struct Refusal {
  const char* source;
  const char* error;
};

class Errors : public testing::TestWithParam<Refusal> {};

TEST_P(Errors, NamePlaceAndReason) {
  EXPECT_EQ(error_in(GetParam().source), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, Errors,
    testing::Values(Refusal{"\n{% if x %}",
                            "4 t:2: expected {% elif or else or endif %}, got the end of the template"},
                    Refusal{"{% endif %}", "4 t:1: expected a tag, got \"endif\""},
                    Refusal{"{% foo %}", "4 t:1: expected a tag, got \"foo\""},
                    Refusal{"{% include 'x' %}", "5 t:1: expected a supported tag, got \"include\""},
                    Refusal{"{% macro m(caller) %}{{ caller }}{% endmacro %}",
                            "4 t:1: expected parameter \"caller\" to have a default, got none"},
                    Refusal{"{{ f(**x, 1) }}", "4 t:1: expected no argument behind \"**\", got \"1\""},
                    Refusal{"{{ f(*x, 1) }}", "4 t:1: expected a named argument behind \"*\", got \"1\""},
                    Refusal{"\n\n{{ 1 + }}", "4 t:3: expected an expression, got \"}}\""},
                    Refusal{"{{ a b }}", "4 t:1: expected \"}}\", got \"b\""},
                    Refusal{"{{ (1] }}", "4 t:1: expected \")\", got \"]\""},
                    Refusal{"{{ 'abc }}", "4 t:1: expected the string to end, got the end of the template"},
                    Refusal{"{{ a", "4 t:1: expected \"}}\", got the end of the template"},
                    Refusal{"{# a", "4 t:1: expected the comment to end, got the end of the template"},
                    Refusal{"a\n{% raw %}b", "4 t:2: expected {% endraw %}, got the end of the template"},
                    Refusal{"{{ a ? b }}", "4 t:1: expected an expression, got \"?\""},
                    Refusal{"{% break %}", "4 t:1: expected \"break\" inside a loop"},
                    Refusal{"{% set true = 1 %}", "4 t:1: expected a name to assign to, got \"true\""},
                    Refusal{"{{ 99999999999999999999 }}",
                            "5 t:1: expected integers of 64 bits, got \"99999999999999999999\""},
                    Refusal{"{% macro m(a=1, b) %}{% endmacro %}",
                            "4 t:1: expected a default, as the parameter before has one, got \")\""}));

INSTANTIATE_TEST_SUITE_P(
    Evaluation, Errors,
    testing::Values(
        Refusal{"a\n{{ x.y }}", "4 t:2: 'x' is undefined"}, Refusal{"{{ x() }}", "4 t:1: 'x' is undefined"},
        Refusal{"{{ {}.a.b }}", "4 t:1: 'dict object' has no attribute \"a\""},
        Refusal{"{{ 1 + 'a' }}", "4 t:1: expected operands that \"+\" takes, got int and str"},
        Refusal{"{{ [1]|foo }}", "5 t:1: expected a supported filter, got \"foo\""},
        Refusal{"{{ 1 is foo }}", "5 t:1: expected a supported test, got \"foo\""},
        Refusal{"{{ 'a'.encode() }}", "5 t:1: expected a supported method of str, got encode"},
        Refusal{"{{ [].append(1) }}", "4 t:1: expected no change of a list, got append"},
        Refusal{"{{ {}.update({}) }}", "4 t:1: expected no change of a dict, got update"},
        Refusal{"{{ self }}", "5 t:1: expected a supported variable, got self"},
        Refusal{"{{ 5 .bit_length() }}", "5 t:1: expected a supported attribute of int, got bit_length"},
        Refusal{"{{ ('<'|safe).striptags() }}",
                "5 t:1: expected a supported method of Markup, got striptags"},
        Refusal{"{% for x in [1] %}{{ loop(x) }}{% endfor %}",
                "4 t:1: expected a recursive loop to call, got one that is not"},
        Refusal{"{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}",
                "4 t:1: m: expected no argument named \"caller\""},
        Refusal{"{{ dict(**[1]) }}", "4 t:1: expected a mapping behind \"**\", got list"},
        Refusal{"{{ 1 / 0 }}", "4 t:1: expected a divisor other than 0"},
        Refusal{"{{ 9223372036854775807 + 1 }}", "5 t:1: expected integers of 64 bits, got more"},
        Refusal{"{% for a, b in [[1]] %}{% endfor %}", "4 t:1: expected 2 values to unpack, got 1"},
        Refusal{"{% set a.b = 1 %}", "4 t:1: 'a' is undefined"},
        Refusal{"{{ none|length }}", "4 t:1: length: expected a string, list or mapping, got NoneType"},
        Refusal{"{% for x in 5 %}{% endfor %}", "4 t:1: expected something to iterate over, got int"},
        Refusal{"{{ [1]|map('upper') }}", "5 t:1: expected a value to print, got an iterator: add |list"},
        Refusal{"{{ [1, 'a']|sort }}", "4 t:1: expected two values with an order, got str and int"},
        Refusal{"{% if true %}\n{{ raise_exception('No ' ~\n 'way') }}{% endif %}", "5 t:2: No way"}));

struct Hostile {
  const char* name;
  std::string source;
};

class Limits : public testing::TestWithParam<Hostile> {};

TEST_P(Limits, EndEveryTemplate) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string error = error_in(GetParam().source);
  EXPECT_TRUE(error.starts_with("7 t")) << error;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60))
      << "a guard against hanging, not a measurement";
}

std::string repeated(std::string_view part, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += part;
  return result;
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, Limits,
    testing::Values(
        Hostile{"Size", std::string((1 << 20) + 1, 'x')},
        Hostile{"Parentheses", "{{ " + std::string(100000, '(') + std::string(100000, ')') + " }}"},
        Hostile{"Signs", "{{ " + std::string(100000, '-') + "1 }}"},
        Hostile{"Nots", "{{ " + repeated("not ", 100000) + "1 }}"},
        Hostile{"Sum", "{{ 1" + repeated(" + 1", 100000) + " }}"},
        Hostile{"Attributes", "{{ a" + repeated(".a", 100000) + " }}"},
        Hostile{"Filters", "{{ a" + repeated("|list", 100000) + " }}"},
        Hostile{"Blocks", repeated("{% if 1 %}", 50000)},
        Hostile{"Else", "{{ 1" + repeated(" if 1 else 1", 50000) + " }}"},
        Hostile{"Loops", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"},
        Hostile{"RecursiveLoop", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
        Hostile{"Batch", "{{ [1]|batch(9223372036854775807, 0)|list }}"},
        Hostile{"Slices", "{{ [1]|slice(9223372036854775807)|list }}"},
        Hostile{"Escapes",
                "{% set n = namespace(x='&&') %}{% for i in range(99) %}{% set n.x = n.x|forceescape %}{% "
                "set n.x = n.x ~ n.x %}{% endfor %}"},
        Hostile{"Range", "{{ range(100001) }}"},
        Hostile{"WideRange", "{{ range(-9223372036854775807, 9223372036854775807) }}"},
        Hostile{"Text", "{{ 'a' * 9223372036854775807 }}"},
        Hostile{"List", "{{ [1] * 9223372036854775807 }}"},
        Hostile{"Output", "{% set x = 'a' * 1000000 %}{% for i in range(9999) %}{{ x }}{% endfor %}"},
        Hostile{
            "Doubling",
            "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}"},
        Hostile{"SharedLists",
                "{% set n = namespace(x=[]) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor "
                "%}{{ n.x == n.x }}"},
        Hostile{"DeepLists",
                "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"},
        Hostile{"Itself", "{% set n = namespace() %}{% set n.x = n %}{{ n }}"},
        Hostile{"Recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
        Hostile{"Fan",
                "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}"},
        Hostile{"Indent", "{{ ('\\n' * 9999999)|indent(9999999) }}"},
        Hostile{"Center", "{{ 'a'.center(9223372036854775807) }}"},
        Hostile{"Width", "{{ '{:99999999}'.format(1) }}"},
        Hostile{"Json", "{{ [[[1]]]|tojson(indent=9223372036854775807) }}"},
        Hostile{"Replace", "{{ ('a' * 999999).replace('', 'b' * 9999) }}"},
        Hostile{"Maps", "{{ 'a'|map(" + repeated("'map', ", 5000) + "'list')|list }}"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ChatTemplate, MessagesMayNotNestDeeperThanValues) {
  ordered_json deep = "x";
  for (int i = 0; i < 200; ++i) deep = ordered_json::array({deep});
  EXPECT_EQ(error_in("", {{"u", deep}}), "7 t: expected JSON nested at most 100 deep, got more");
}

TEST(ChatTemplate, MessagesHaveToBeAList) {
  EXPECT_EQ(error_of([] {
              ChatTemplate::parse("", "t").render({{"role", "user"}});
            }),
            "4 t: messages: expected a list, got object");
}

/// A model's folder, removed at the end.
class ChatTemplateFiles : public testing::Test {
 protected:
  void write(const char* name, std::string_view text) { std::ofstream(folder_ / name) << text; }
  std::string rendered(const ChatOptions& options = {}) {
    return ChatTemplate::open(folder_).render(ordered_json::array(), options).text();
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(ChatTemplateFiles, TokenizerConfigHasATemplateAndSpecialTokens) {
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null,
                                     "chat_template": "{{ bos_token ~ eos_token ~ pad_token }}"})");
  EXPECT_EQ(rendered(), "<s></s>");
  ChatOptions options;
  options.eos_token = "<e>";
  EXPECT_EQ(rendered(options), "<s><e>");
}

TEST_F(ChatTemplateFiles, AmongSeveralTemplatesToolsChoose) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"},
                                                       {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(rendered(), "plain");
  ChatOptions options;
  options.tools = ordered_json::array();
  EXPECT_EQ(rendered(options), "tools");
}

TEST_F(ChatTemplateFiles, AFileOfItsOwnComesFirst) {
  write("chat_template.json", R"({"chat_template": "processor"})");
  EXPECT_EQ(rendered(), "processor");
  write("tokenizer_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(rendered(), "config");
  write("chat_template.jinja", "own\n");
  EXPECT_EQ(rendered(), "own");
}

TEST_F(ChatTemplateFiles, WithoutATemplateSaysWhatWasExpected) {
  write("tokenizer_config.json", "{}");
  EXPECT_EQ(error_of([this] { rendered(); }),
            fmt::format(
                "3 {}: expected chat_template.jinja or a chat_template in tokenizer_config.json, got neither",
                folder_.string()));
}

TEST_F(ChatTemplateFiles, ErrorsNameTheFileAndLine) {
  write("chat_template.jinja", "a\n{{ 1 + }}");
  EXPECT_EQ(
      error_of([this] { rendered(); }),
      fmt::format("4 {}/chat_template.jinja:2: expected an expression, got \"}}}}\"", folder_.string()));
  write("chat_template.jinja", "\xff");
  EXPECT_EQ(error_of([this] { rendered(); }),
            fmt::format("4 {}/chat_template.jinja: expected UTF-8, got other bytes", folder_.string()));
}

/// Keys of 24 bytes, which begin with these 8 and have one hash, as the standard library's (MurmurHash64A) can be solved for
/// the last 8 bytes.
std::vector<std::string> colliding_keys(const std::string& begin, size_t count) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr uint64_t kSeed = 0xc70f6907;
  constexpr uint64_t kNotAscii = 0x8080808080808080;
  const auto shift = [](uint64_t word) { return word ^ (word >> 47); };
  const auto mixed = [&](uint64_t word) { return shift(word * kFactor) * kFactor; };
  uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kFactor * inverse;
  uint64_t first = 0;
  std::memcpy(&first, begin.data(), sizeof first);
  const uint64_t state = (kSeed ^ 24 * kFactor ^ mixed(first)) * kFactor;
  std::vector<std::string> keys;
  for (uint64_t number = 0; keys.size() < count; ++number) {
    const std::string second = fmt::format("{:08x}", number);
    uint64_t word = 0;
    std::memcpy(&word, second.data(), sizeof word);
    const uint64_t last = shift(state ^ mixed(word)) * inverse;  // the state is 0 behind it
    if ((last & kNotAscii) == 0)
      keys.push_back(begin + second + std::string(reinterpret_cast<const char*>(&last), sizeof last));
  }
  return keys;
}

TEST(ChatTemplate, KeysThatCollideTakeNoLonger) {
  constexpr size_t kNumKeys = 30'000;
  const std::vector<std::string> names = colliding_keys("--------", kNumKeys);
  EXPECT_EQ(std::hash<std::string>()(names[0]), std::hash<std::string>()(names[1]));
  nlohmann::ordered_json::object_t variables;
  nlohmann::ordered_json::object_t members;
  for (const std::string& name : names) variables.emplace_back(name, 0);
  for (const std::string& key : colliding_keys("s-------", kNumKeys))  // as the engine calls a text's key
    members.emplace_back(key.substr(1), 0);
  variables.emplace_back("d", std::move(members));
  const CpuTime time;
  EXPECT_EQ(text_of("{{ d | length }}", std::move(variables)), std::to_string(kNumKeys));
  EXPECT_LT(time.seconds(), 2);
}

}  // namespace
}  // namespace soliton
