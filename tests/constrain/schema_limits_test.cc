// Schemas as large as they may be, and larger: read in about linear time, or refused by the name of a limit.
#include <gmock/gmock.h>

#include "cpu_time.h"
#include "schema_testing.h"

namespace soliton::constrain {
namespace {

using testing::HasSubstr;

/// `count` parts with commas between them.
template <class Part>
std::string list(int count, Part&& part) {
  std::string all;
  for (int i = 0; i < count; ++i) all += (i > 0 ? "," : "") + part(i);
  return all;
}
std::string names(int count, int from = 0) {
  return list(count, [from](int i) { return fmt::format("\"n{:05}\"", from + i); });
}
std::string members(int count, const std::string& schema, int from = 0) {
  return list(count, [&](int i) { return fmt::format("\"n{:05}\": {}", from + i, schema); });
}
std::string numbers(int count, int from = 0) {
  return list(count, [from](int i) { return std::to_string(from + i); });
}

struct Row {
  const char* what;
  std::string schema;
  const char* refusal;  // a part of it; null: none
};

std::vector<Row> rows() {
  const std::string long_name(500'000, 'n');
  return {
      {"unknown members", "{" + members(49'000, "0") + "}", nullptr},
      {"annotations", "{" + list(49'000, [](int i) { return fmt::format("\"x-{}\": 0", i); }) + "}", nullptr},
      {"enum", "{\"enum\": [" + numbers(20'000) + "]}", nullptr},
      {"large enum", "{\"enum\": [" + numbers(90'000) + "]}", "at most 20000 values of enum"},
      {"values", "{\"default\": [" + list(150'000, [](int) { return std::string("0"); }) + "]}",
       "at most 100000 values"},
      {"bytes", "{\"default\": \"" + long_name + long_name + long_name + "\"}", "at most 1048576 bytes"},
      {"enum beside const", "{\"const\": 1, \"enum\": [" + numbers(20'000) + "]}", nullptr},
      {"enum merged",
       "{\"allOf\": [{\"enum\": [" + numbers(10'000) + "]}, {\"enum\": [" + numbers(10'000) + "]}]}",
       nullptr},
      {"oneOf of enums",
       "{\"oneOf\": [{\"enum\": [" + numbers(10'000) + "]}, {\"enum\": [" + numbers(10'000, 10'000) + "]}]}",
       nullptr},
      {"oneOf of many",
       "{\"oneOf\": [" + list(1900, [](int i) { return fmt::format("{{\"const\": {}}}", i); }) + "]}",
       nullptr},
      {"oneOf of many kinds",
       "{\"oneOf\": [" +
           list(700,
                [](int i) {
                  return fmt::format(
                      R"({{"properties": {{"k": {{"const": {}}}}}, "required": ["k"], "type": "object"}})",
                      i);
                }) +
           "]}",
       nullptr},
      {"oneOf of many that do not exclude each other",
       "{\"oneOf\": [" +
           list(1000, [](int i) { return fmt::format(R"({{"required": ["k{}"], "type": "object"}})", i); }) +
           "]}",
       "to merge and compare"},
      {"references that meet themselves",
       "{\"$ref\": \"#/$defs/a0\", \"$defs\": {" +
           list(
               30,
               [](int i) {
                 return fmt::format(
                     R"("a{0}": {{"allOf": [{{"$ref": "#/$defs/a{1}"}}, {{"properties": {{"x": {{"$ref": "#/$defs/a{1}"}}}}}}]}})",
                     i, i + 1);
               }) +
           ", \"a30\": {\"type\": \"object\"}}}",
       nullptr},
      {"conditions",
       "{\"allOf\": [" +
           list(200,
                [](int i) {
                  return fmt::format(
                      R"({{"if": {{"required": ["a{0}"]}}, "then": {{"required": ["b{0}"]}}}})", i);
                }) +
           "]}",
       "at most"},
      {"patterns",
       "{\"properties\": {" +
           list(
               500,
               [](int i) {
                 return fmt::format(
                     R"("p{0}": {{"type": "string", "pattern": "([a-z]+[{0}a-f]*x){{3}}$", "minLength": 500}})",
                     i);
               }) +
           "}}",
       "fewer states"},
      {"required", "{\"type\": \"object\", \"required\": [" + names(3000) + "]}", nullptr},
      {"more required", "{\"type\": \"object\", \"required\": [" + names(50'000) + "]}",
       "at most 4000 names of required"},
      {"properties, required",
       "{\"type\": \"object\", \"properties\": {" + members(1900, "{}") + "}, \"required\": [" + names(1900) +
           "]}",
       nullptr},
      {"more properties", "{\"properties\": {" + members(40'000, "{}") + "}}",
       "at most 4000 members of properties"},
      {"properties merged",
       "{\"allOf\": [{\"properties\": {" + members(1900, "{}") + "}}, {\"properties\": {" +
           members(1900, "{}") + "}, \"required\": [" + names(1900) + "]}]}",
       nullptr},
      {"additional members beside long names",
       "{\"additionalProperties\": {}, \"properties\": {" +
           list(1000, [](int i) { return fmt::format("\"{:05}{}\": {{}}", i, std::string(495, 'x')); }) +
           "}}",
       "beside names of more than 500 bytes, or of 20000 together"},
      {"additional members beside names",
       "{\"additionalProperties\": {}, \"properties\": {" +
           list(40, [](int i) { return fmt::format("\"{:02}{}\": {{}}", i, std::string(497, 'x')); }) + "}}",
       nullptr},
      {"a long name around many",
       "{\"properties\": {\"" + long_name + "\": {\"properties\": {" + members(1900, "{}") + "}}}}", nullptr},
      {"rules",
       "{\"prefixItems\": [" +
           list(3000,
                [](int) {
                  return std::string(
                      R"({"type": "array", "items": {"type": "null"}, "contains": {"type": "null"}})");
                }) +
           "]}",
       nullptr},
      {"prefixItems", "{\"prefixItems\": [" + list(1900, [](int) { return std::string("{}"); }) + "]}",
       nullptr},
      {"prefixItems merged",
       "{\"allOf\": [{\"prefixItems\": [" + list(40'000, [](int) { return std::string("{}"); }) +
           "]}, {\"items\": {\"type\": \"null\"}}]}",
       "at most"},
      {"alternatives beside much",
       "{\"default\": [" + numbers(90'000) + "], \"properties\": {" + members(1000, "{\"enum\": [1,2,3]}") +
           "}, \"anyOf\": [" + list(1900, [](int) { return std::string("{}"); }) + "]}",
       "at most"},
      {"alternatives beside an enum",
       "{\"enum\": [" + numbers(19'000) + "], \"anyOf\": [" +
           list(1900, [](int) { return std::string("{}"); }) + "]}",
       "to merge and compare"},
      {"references",
       "{\"$defs\": {" + members(20'000, "{}") + "}, \"anyOf\": [" +
           list(10'000,
                [](int i) {
                  return fmt::format("{{\"$ref\": \"#/$defs/n{:05}\", \"title\": \"t\"}}", 19'999 - i);
                }) +
           "]}",
       nullptr},
      {"merges of merges",
       "{\"$defs\": {\"a\": {\"properties\": {" + members(3000, "{}") + "}}}, \"anyOf\": [" +
           list(1000,
                [](int) { return std::string("{\"$ref\": \"#/$defs/a\", \"required\": [\"n00001\"]}"); }) +
           "]}",
       nullptr},
  };
}

TEST(SchemaLimits, LargeSchemasAreReadInLinearTimeOrRefused) {
  for (const Row& row : rows()) {
    const CpuTime time;
    const std::string error = error_of([&] { parse_json_schema(row.schema, "s"); });
    const double took = time.seconds();
    EXPECT_LT(took, 5) << row.what;
    fmt::print("{:40} {:6.3f} s  {}\n", row.what, took, error.substr(0, 100));
    if (row.refusal == nullptr) {
      EXPECT_EQ(error, "no error") << row.what;
    } else {
      EXPECT_THAT(error, HasSubstr(row.refusal)) << row.what;
    }
  }
}

}  // namespace
}  // namespace soliton::constrain
