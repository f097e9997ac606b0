// config.json: what is read survives being written as YAML.
#include "models/hf_config.h"

#include "fuzz/fuzz_target.h"
#include "layout/fact_list.h"
#include "models/model_config.h"
#include "models/strict_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  fuzz_folder().write("config.json", as_text(data, size));
  accepts([] {
    const HfConfig config = HfConfig::open(fuzz_folder().path());
    const ModelFacts& facts = config.facts;
    expect(facts.hidden > 0 && facts.head_dim > 0 && facts.num_heads % facts.num_kv_heads == 0,
           "sizes that divide");
    expect(hash_facts(config.stated.facts) == hash_facts(facts), "the same facts with their places");
    check_same(config.stated, facts, "itself");
    for (const int id : config.eos_ids) expect(id >= 0 && id < facts.vocabulary, "tokens of the vocabulary");
    const std::string written = format_model_config("m", facts, "");
    const ModelConfig model = parse_model_config(StrictYaml::parse(written, "m.yaml"), "m.yaml");
    expect(hash_facts(model.facts) == hash_facts(facts), "facts that survive being written");
  });
  return 0;
}
