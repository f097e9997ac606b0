// The files of JSON-Schema-Test-Suite, where SOLITON_SCHEMA_SUITE names the folder that has draft2020-12 and the others, as
// `json/tests` of the source package of Python's jsonschema: no invalid instance may be one that is written.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "constrain_testing.h"

namespace soliton::constrain {
namespace {

using Json = nlohmann::ordered_json;

struct Counts {
  int schemas = 0;
  int compiled = 0;
  int invalid = 0;
  int valid = 0;
  int written = 0;  // of the valid ones: in the order of members that grammars have
};

void try_group(const Json& group, const std::string& place, Counts& counts) {
  ++counts.schemas;
  std::shared_ptr<TokenGrammar> grammar;
  try {
    grammar = ready(json_schema_grammar(group["schema"], "s"));
  } catch (const Error&) {
    return;
  }
  ++counts.compiled;
  for (const Json& test : group["tests"]) {
    TokenConstraint constraint(grammar, {});
    const bool is_taken = constraint.accept_bytes(test["data"].dump()) && constraint.may_end();
    const bool is_valid = test["valid"].get<bool>();
    ++(is_valid ? counts.valid : counts.invalid);
    counts.written += is_valid && is_taken;
    EXPECT_FALSE(is_taken && !is_valid) << place << "\n" << group["schema"] << "\n" << test["data"];
  }
}

TEST(SchemaSuite, NoInvalidInstanceIsTaken) {
  const char* const folder = std::getenv("SOLITON_SCHEMA_SUITE");
  if (folder == nullptr) GTEST_SKIP() << "SOLITON_SCHEMA_SUITE names no JSON-Schema-Test-Suite";
  std::map<std::string, Counts> drafts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.path().parent_path().parent_path() != folder) continue;
    const std::string draft = entry.path().parent_path().filename().string();
    if (draft == "draft-next") continue;
    std::ifstream file(entry.path());
    Json groups = Json::parse(file);
    for (Json& group : groups) {
      if (group["schema"].is_object() && !group["schema"].contains("$schema"))
        group["schema"]["$schema"] = "http://json-schema.org/" + draft.substr(0, 5) + "-0" + draft.substr(5);
      try_group(group, entry.path().string(), drafts[draft]);
    }
  }
  ASSERT_FALSE(drafts.empty()) << "expected files in " << folder << "/draft2020-12 and the like";
  for (const auto& [draft, counts] : drafts) {
    fmt::print("{:14} {:4} of {:4} schemas; {:4} invalid, {:4} of {:4} valid instances written\n", draft,
               counts.compiled, counts.schemas, counts.invalid, counts.written, counts.valid);
  }
}

}  // namespace
}  // namespace soliton::constrain
