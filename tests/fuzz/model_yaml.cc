// models/*.yaml: what is read survives being written.
#include "fuzz/fuzz_target.h"
#include "layout/fact_list.h"
#include "models/model_config.h"
#include "models/strict_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  const std::string text(as_text(data, size));
  accepts([&] {
    const ModelConfig config = parse_model_config(StrictYaml::parse(text, "m.yaml"), "m.yaml");
    const std::string written = format_model_config(config.name, config.facts, "");
    const ModelConfig again = parse_model_config(StrictYaml::parse(written, "m.yaml"), "m.yaml");
    expect(again.name == config.name, "a name that survives being written");
    expect(hash_facts(again.facts) == hash_facts(config.facts), "facts that survive being written");
  });
  return 0;
}
