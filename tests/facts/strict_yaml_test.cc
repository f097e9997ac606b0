// Every refusal of the strict YAML reader, by its exact line.
#include "models/strict_yaml.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace soliton {
namespace {

constexpr IntegerRange kSmall = {.min = 1, .max = 100000};

std::string error_of_yaml(const std::string& text) {
  return error_of([&] { StrictYaml::parse(text, "f.yaml"); });
}

// What reading `value` as an integer, number, ... of key `a` says; the key stands in line 2.
std::string integer_error(const std::string& value) {
  return error_of([&] { StrictYaml::parse("# c\na: " + value + "\n", "f.yaml").integer("a", kSmall); });
}
std::string number_error(const std::string& value) {
  constexpr NumberRange kRange = {.min = 0, .max = 0.1, .open = true};
  return error_of([&] { StrictYaml::parse("# c\na: " + value + "\n", "f.yaml").number("a", kRange); });
}
std::string boolean_error(const std::string& value) {
  return error_of([&] { StrictYaml::parse("a: " + value + "\n", "f.yaml").boolean("a"); });
}
std::string text_error(const std::string& value) {
  return error_of([&] { StrictYaml::parse("a: " + value + "\n", "f.yaml").text("a"); });
}

TEST(StrictYaml, ReadsEveryType) {
  const StrictYaml yaml = StrictYaml::parse(
      "---\n"
      "i: 42  # comment\n"
      "n: -7\n"
      "d: 4.60e12\n"
      "e: 1e-5\n"
      "whole: 3\n"
      "yes: true\n"
      "no: false\n"
      "plain: h200\n"
      "quoted: 'two words'\n"
      "rope: {kind: default}\r\n",
      "f.yaml");
  yaml.allow_keys({"i", "n", "d", "e", "whole", "yes", "no", "plain", "quoted", "rope"});
  EXPECT_EQ(yaml.integer("i", {.min = 42, .max = 42}), 42);
  EXPECT_EQ(yaml.integer("n", {.min = -7, .max = 0}), -7);
  EXPECT_EQ(yaml.integer_choice("i", {1, 42}), 42);
  EXPECT_EQ(yaml.number("d", {.min = 0, .max = 1e13}), 4.6e12);
  EXPECT_EQ(yaml.number("e", {.min = 1e-5, .max = 1}), 1e-5);
  EXPECT_EQ(yaml.number("whole", {.min = 0, .max = 3}), 3.0);
  EXPECT_TRUE(yaml.boolean("yes"));
  EXPECT_FALSE(yaml.boolean("no"));
  EXPECT_EQ(yaml.text("plain"), "h200");
  EXPECT_EQ(yaml.text("quoted"), "two words");
  EXPECT_EQ(yaml.map("rope").text_choice("kind", {"default", "llama3"}), "default");
  EXPECT_TRUE(yaml.has("rope"));
  EXPECT_FALSE(yaml.has("rop"));
}

TEST(StrictYaml, RefusesFilesThatAreNoMap) {
  EXPECT_EQ(error_of_yaml(""), "4 f.yaml:1: top level: expected a map of keys, got an empty file");
  EXPECT_EQ(error_of_yaml("# only\n# words\n"),
            "4 f.yaml:1: top level: expected a map of keys, got an empty file");
  EXPECT_EQ(error_of_yaml("---\n"), "4 f.yaml:2: top level: expected a map of keys, got nothing");
  EXPECT_EQ(error_of_yaml("# c\n- 1\n"), "4 f.yaml:2: top level: expected a map of keys, got a list");
  EXPECT_EQ(error_of_yaml("hidden\n"), "4 f.yaml:1: top level: expected a map of keys, got hidden");
  EXPECT_EQ(error_of_yaml("!t {a: 1}\n"),
            "4 f.yaml:1: top level: expected a map of keys, got a value tagged !t");
}

TEST(StrictYaml, RefusesASecondDocument) {
  EXPECT_EQ(error_of_yaml("a: 1\n---\nb: 2\n"),
            "4 f.yaml:2: top level: expected one YAML document, got a second one");
  EXPECT_EQ(error_of_yaml("a: 1\n---\na: 1\n---\na: 1\n"),
            "4 f.yaml:2: top level: expected one YAML document, got a second one");
  EXPECT_EQ(error_of_yaml("---\na: 1\n...\n"), "no error");
}

// yaml-cpp does not get past a mark of lists outside one, and finds document after document before it.
TEST(StrictYaml, RefusesDocumentsWithoutEnd) {
  for (const std::string text : {",", "---\n,{name: m}", "]", "}", "---\n]\n"}) {
    EXPECT_TRUE(error_of_yaml(text).starts_with("4 f.yaml:")) << text;
  }
  EXPECT_EQ(error_of_yaml(","), "4 f.yaml:1: top level: expected one YAML document, got a second one");
}

TEST(StrictYaml, RefusesWhatIsNoYaml) {
  EXPECT_EQ(error_of_yaml("a: 1\n b: 2\n"),
            "4 f.yaml:2: top level: expected valid YAML, got an error: illegal map value");
  EXPECT_EQ(error_of_yaml("a: \"\\\n\\\x1b\"\n"),
            "4 f.yaml:2: top level: expected valid YAML, got an error: unknown escape character: \\x1b");
  EXPECT_EQ(error_of_yaml("a: *q\n"),
            "4 f.yaml:1: top level: expected valid YAML, got an error: the referenced anchor is not defined");
  EXPECT_EQ(error_of_yaml(std::string(100000, '[')).substr(0, 54),
            "4 f.yaml:1: top level: expected valid YAML, got an err");
}

TEST(StrictYaml, RefusesDuplicateKeysAtEveryLevel) {
  EXPECT_EQ(error_of_yaml("a: 1\nb: 2\na: 1\n"),
            "4 f.yaml:3: a: expected this key once, got it again after line 1");
  EXPECT_EQ(error_of_yaml("a: 1\n'a': 2\n"),
            "4 f.yaml:2: a: expected this key once, got it again after line 1");
  EXPECT_EQ(error_of([] { StrictYaml::parse("rope:\n  k: 1\n\n  k: 2\n", "f.yaml").map("rope"); }),
            "4 f.yaml:4: rope.k: expected this key once, got it again after line 2");
}

TEST(StrictYaml, RefusesKeysThatAreNoWords) {
  EXPECT_EQ(error_of_yaml("[a]: 1\n"),
            "4 f.yaml:1: top level: expected plain words as keys, got a list as a key");
  EXPECT_EQ(error_of_yaml("~: 1\n"),
            "4 f.yaml:1: top level: expected plain words as keys, got nothing as a key");
}

TEST(StrictYaml, RefusesUnknownKeys) {
  const StrictYaml yaml = StrictYaml::parse("a: 1\nrope:\n  theta: 1\n  fator: 8\n", "f.yaml");
  EXPECT_EQ(error_of([&] {
              yaml.allow_keys({"a", "b"});
            }),
            "4 f.yaml:2: rope: expected one of a, b, got an unknown key");
  EXPECT_EQ(error_of([&] {
              yaml.map("rope").allow_keys({"theta", "factor"});
            }),
            "4 f.yaml:4: rope.fator: expected one of theta, factor, got an unknown key");
  EXPECT_EQ(error_of([] { StrictYaml::parse("<<: {b: 1}\n", "f.yaml").allow_keys({"b"}); }),
            "4 f.yaml:1: <<: expected b, got an unknown key");
}

TEST(StrictYaml, RefusesMissingKeys) {
  const StrictYaml yaml = StrictYaml::parse("# c\nrope:\n  theta: 1\n", "f.yaml");
  EXPECT_EQ(error_of([&] { yaml.integer("a", kSmall); }),
            "4 f.yaml:2: a: expected an integer from 1 to 100000, got no such key");
  EXPECT_EQ(error_of([&] { yaml.text("a"); }), "4 f.yaml:2: a: expected a string, got no such key");
  EXPECT_EQ(error_of([&] { yaml.boolean("a"); }), "4 f.yaml:2: a: expected true or false, got no such key");
  EXPECT_EQ(error_of([&] { yaml.map("a"); }), "4 f.yaml:2: a: expected a map of keys, got no such key");
  EXPECT_EQ(error_of([&] {
              yaml.map("rope").integer_choice("kind", {1, 2});
            }),
            "4 f.yaml:2: rope.kind: expected one of 1, 2, got no such key");
}

TEST(StrictYaml, RefusesIntegersOutOfRange) {
  EXPECT_EQ(integer_error("1"), "no error");
  EXPECT_EQ(integer_error("100000"), "no error");
  EXPECT_EQ(integer_error("0"), "4 f.yaml:2: a: expected an integer from 1 to 100000, got 0");
  EXPECT_EQ(integer_error("-1"), "4 f.yaml:2: a: expected an integer from 1 to 100000, got -1");
  EXPECT_EQ(integer_error("100001"), "4 f.yaml:2: a: expected an integer from 1 to 100000, got 100001");
  EXPECT_EQ(integer_error("4294967297"),
            "4 f.yaml:2: a: expected an integer from 1 to 100000, got 4294967297");
  EXPECT_EQ(integer_error("99999999999999999999"),
            "4 f.yaml:2: a: expected an integer from 1 to 100000, got 99999999999999999999");
  const auto multiple = [](const std::string& value) {
    return error_of(
        [&] { StrictYaml::parse(value, "f.yaml").integer("a", {.min = 64, .max = 256, .multiple_of = 64}); });
  };
  EXPECT_EQ(multiple("a: 128"), "no error");
  EXPECT_EQ(multiple("a: 100"), "4 f.yaml:1: a: expected a multiple of 64 from 64 to 256, got 100");
  const auto choice = [](const std::string& value) {
    return error_of([&] { StrictYaml::parse(value, "f.yaml").integer_choice("a", {64, 96}); });
  };
  EXPECT_EQ(choice("a: 96"), "no error");
  EXPECT_EQ(choice("a: 95"), "4 f.yaml:1: a: expected one of 64, 96, got 95");
  EXPECT_EQ(choice("a: 064"), "4 f.yaml:1: a: expected one of 64, 96, got 064, which could be octal");
}

TEST(StrictYaml, RefusesWhatIsNoDecimalInteger) {
  const std::string expected = "4 f.yaml:2: a: expected an integer from 1 to 100000, got ";
  EXPECT_EQ(integer_error("010"), expected + "010, which could be octal");
  EXPECT_EQ(integer_error("00"), expected + "00, which could be octal");
  EXPECT_EQ(integer_error("1e5"), expected + "the floating-point number 1e5");
  EXPECT_EQ(integer_error("4096.0"), expected + "the floating-point number 4096.0");
  EXPECT_EQ(integer_error("0x10"), expected + "0x10");
  EXPECT_EQ(integer_error("+5"), expected + "+5");
  EXPECT_EQ(integer_error("1_000"), expected + "1_000");
  EXPECT_EQ(integer_error("40 96"), expected + "\"40 96\"");
  EXPECT_EQ(integer_error("'5'"), expected + "the quoted string 5");
  EXPECT_EQ(integer_error("''"), expected + "the quoted string \"\"");
  EXPECT_EQ(integer_error("\"5\\n6\""), expected + "the quoted string \"5\\n6\"");
  EXPECT_EQ(integer_error("!!int 5"), expected + "a value tagged tag:yaml.org,2002:int");
  EXPECT_EQ(integer_error("true"), expected + "true");
  EXPECT_EQ(integer_error(""), expected + "nothing");
  EXPECT_EQ(integer_error("~"), expected + "nothing");
  EXPECT_EQ(integer_error("[5]"), expected + "a list");
  EXPECT_EQ(integer_error("{b: 5}"), expected + "a map");
}

TEST(StrictYaml, RefusesNumbersOutOfRangeOrNotDecimal) {
  const std::string expected = "4 f.yaml:2: a: expected a number above 0 and below 0.1, got ";
  EXPECT_EQ(number_error("1e-5"), "no error");
  EXPECT_EQ(number_error("0.0999"), "no error");
  EXPECT_EQ(number_error("0"), expected + "0");
  EXPECT_EQ(number_error("0.1"), expected + "0.1");
  EXPECT_EQ(number_error("-1e-5"), expected + "-1e-5");
  EXPECT_EQ(number_error(".nan"), expected + ".nan");
  EXPECT_EQ(number_error("nan"), expected + "nan");
  EXPECT_EQ(number_error("inf"), expected + "inf");
  EXPECT_EQ(number_error("1e-999"), expected + "1e-999");
  EXPECT_EQ(number_error("00.05"), expected + "00.05");
  EXPECT_EQ(number_error("0x1p-5"), expected + "0x1p-5");
  EXPECT_EQ(number_error("0.05f"), expected + "0.05f");
  EXPECT_EQ(number_error("'0.05'"), expected + "the quoted string 0.05");
  EXPECT_EQ(number_error(""), expected + "nothing");
  EXPECT_EQ(error_of([] { StrictYaml::parse("a: 9", "f.yaml").number("a", {.min = 1, .max = 8.5}); }),
            "4 f.yaml:1: a: expected a number from 1 to 8.5, got 9");
}

TEST(StrictYaml, RefusesOtherWordsForBooleans) {
  const std::string expected = "4 f.yaml:1: a: expected true or false, got ";
  for (const std::string word : {"yes", "no", "on", "True", "FALSE", "1", "0"}) {
    EXPECT_EQ(boolean_error(word), expected + word);
  }
  EXPECT_EQ(boolean_error("'true'"), expected + "the quoted string true");
  EXPECT_EQ(boolean_error(""), expected + "nothing");
}

TEST(StrictYaml, RefusesWhatIsNoText) {
  EXPECT_EQ(text_error("''"), "4 f.yaml:1: a: expected a string, got an empty one");
  EXPECT_EQ(text_error(""), "4 f.yaml:1: a: expected a string, got nothing");
  EXPECT_EQ(text_error("[x]"), "4 f.yaml:1: a: expected a string, got a list");
  EXPECT_EQ(error_of([] {
              StrictYaml::parse("a: yarn", "f.yaml").text_choice("a", {"default", "llama3"});
            }),
            "4 f.yaml:1: a: expected one of default, llama3, got yarn");
  EXPECT_EQ(error_of([] { StrictYaml::parse("a: 5", "f.yaml").map("a"); }),
            "4 f.yaml:1: a: expected a map of keys, got 5");
}

TEST(StrictYaml, NameMustBeThatOfTheFile) {
  const auto name_error = [](const std::string& text, const std::string& file) {
    return error_of([&] { StrictYaml::parse(text, file).name_of_file(); });
  };
  EXPECT_EQ(name_error("name: llama-3.1-8b", "models/llama-3.1-8b.yaml"), "no error");
  EXPECT_EQ(name_error("name: llama", "models/x.yaml"),
            "4 models/x.yaml:1: name: expected x as the file is called, got llama");
  EXPECT_EQ(name_error("name: Llama", "Llama.yaml"),
            "4 Llama.yaml:1: name: expected lower-case letters, digits, '.', '-' and '_', got Llama");
}

TEST(StrictYaml, NamesAreThoseOfFilesThatCouldBe) {
  const auto name_error = [](const std::string& name) {
    return error_of([&] { StrictYaml::parse("name: " + name, "x.yaml").name(); });
  };
  EXPECT_EQ(name_error("llama-3.1_8b"), "no error");
  EXPECT_EQ(name_error(std::string(128, 'a')), "no error");
  EXPECT_EQ(name_error(std::string(129, 'a')),
            "4 x.yaml:1: name: expected from 1 to 128 characters, got 129");
  EXPECT_EQ(name_error("'a/b'"),
            "4 x.yaml:1: name: expected lower-case letters, digits, '.', '-' and '_', got a/b");
  for (const std::string name : {"..", "-o"}) {
    EXPECT_EQ(name_error("'" + name + "'"),
              "4 x.yaml:1: name: expected a letter or digit at its beginning, got " + name);
  }
}

TEST(StrictYaml, RefusesFilesThatCannotBeRead) {
  const TemporaryFolder folder;
  const std::string missing = (folder.path() / "missing.yaml").string();
  EXPECT_EQ(error_of([&] { StrictYaml::load(missing); }),
            "3 " + missing + ": expected a readable file, got: No such file or directory");
  EXPECT_EQ(error_of([&] { StrictYaml::load(folder.path()); }),
            "3 " + folder.path().string() + ": expected a readable file, got: a folder");
  const std::string large = folder.write("large.yaml", std::string((1 << 20) + 1, '#')).string();
  EXPECT_EQ(error_of([&] { StrictYaml::load(large); }),
            "4 " + large + ":1: top level: expected at most 1048576 bytes of YAML, got a larger file");
  const std::string exact = folder.write("exact.yaml", "a: 1\n" + std::string((1 << 20) - 5, '#')).string();
  EXPECT_EQ(StrictYaml::load(exact).integer("a", kSmall), 1);
  if (::geteuid() != 0) {
    std::filesystem::permissions(exact, std::filesystem::perms::none);
    EXPECT_EQ(error_of([&] { StrictYaml::load(exact); }),
              "3 " + exact + ": expected a readable file, got: Permission denied");
  }
}

TEST(ReadNumber, TakesFiniteDecimalsOnly) {
  EXPECT_EQ(read_number("-2.5e3"), -2500.0);
  for (const char* text : {"", "inf", "-inf", "nan", "1e999", "0x1", "01", "1 ", "+1"}) {
    EXPECT_EQ(read_number(text), std::nullopt) << text;
  }
}

TEST(ShowText, StaysOnOneShortLine) {
  EXPECT_EQ(show_text("abc"), "abc");
  EXPECT_EQ(show_text(""), "\"\"");
  EXPECT_EQ(show_text("a b"), "\"a b\"");
  EXPECT_EQ(show_text("a\n\"\\\t"), "\"a\\n\\\"\\\\\\x09\"");
  EXPECT_EQ(show_text("größe"), "größe");
  EXPECT_EQ(show_text(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(show_text(std::string(61, 'x')), "\"" + std::string(60, 'x') + "...\"");
  EXPECT_EQ(show_text(std::string(59, 'x') + "ö"), "\"" + std::string(59, 'x') + "...\"");
}

}  // namespace
}  // namespace soliton
