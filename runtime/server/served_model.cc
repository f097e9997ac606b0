#include "runtime/server/served_model.h"

#include "models/model_config.h"
#include "runtime/answer/open_draft.h"
#include "runtime/hub/fetch_model.h"

namespace soliton {
namespace {

constexpr uint64_t kRandomSeed = 1;

class FolderModel : public ServedModel {
 public:
  explicit FolderModel(const ServerOptions& options)
      : FolderModel(in_folder(options.model), options.cache_tokens) {}
  ServedText text() const override { return text_; }

 private:
  FolderModel(const Options& options, int64_t cache_tokens) : text_(options) {
    check_draft_model(options, text_);
    name_ = model_name_of(options.model);
    context_ = choose_context(options, text_.config);
    const int64_t pool_tokens = choose_pool_tokens(options, text_.config, context_, cache_tokens);
    engine_ = open_engine(options, text_.config, context_, pool_tokens,
                          choose_window_tokens(text_.config.facts, pool_tokens));
    draft_model_ = open_draft_model(options, text_, context_, *engine_);
  }

  static Options in_folder(Options options) {
    options.model = fetch_model(options.model, options.hub).string();
    if (options.draft.empty()) return options;
    options.hub.revision.clear();  // the model's
    options.draft = fetch_model(options.draft, options.hub).string();
    return options;
  }

  TextSide text_;
};

class RandomModel : public ServedModel {
 public:
  explicit RandomModel(const ServerOptions& options)
      : RandomModel(options, KernelLibrary::open(options.model.kernel)) {}
  ServedText text() const override { return {tokenizer_, prompter_, sampling_}; }

 private:
  RandomModel(const ServerOptions& options, KernelLibrary library)
      : tokenizer_(number_tokenizer(library.model().facts.vocabulary)),
        prompter_(tokenizer_, std::nullopt, {}),
        sampling_(options.model.sampling({})) {
    HfConfig config;
    config.facts = library.model().facts;
    name_ = library.model().name;
    context_ = choose_context(options.model, config);
    const int64_t pool_tokens = choose_pool_tokens(options.model, config, context_, options.cache_tokens);
    engine_ = std::make_unique<Engine>(
        std::move(library), EngineOptions{.context = context_,
                                          .pool_tokens = pool_tokens,
                                          .window_tokens = choose_window_tokens(config.facts, pool_tokens),
                                          .device = options.model.device,
                                          .cards = options.model.cards});
    plan_by_kept_costs(*engine_);
    engine_->load_random(kRandomSeed);
  }

  Tokenizer tokenizer_;
  Prompter prompter_;
  Sampling sampling_;
};

}  // namespace

Tokenizer number_tokenizer(int vocabulary) {
  // In byte-level letters a space is Ġ.
  nlohmann::json tokens = nlohmann::json::object();
  for (int id = 0; id < vocabulary; ++id) tokens["Ġ" + std::to_string(id)] = id;
  const nlohmann::json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const nlohmann::json document = {{"added_tokens", nlohmann::json::array()},
                                   {"pre_tokenizer", byte_level},
                                   {"decoder", byte_level},
                                   {"model",
                                    {{"type", "BPE"},
                                     {"fuse_unk", false},
                                     {"byte_fallback", false},
                                     {"vocab", std::move(tokens)},
                                     {"merges", nlohmann::json::array()}}}};
  return Tokenizer::read(document, "the tokenizer of random weights");
}

std::unique_ptr<ServedModel> open_served_model(const ServerOptions& options) {
  if (options.random_weights) return std::make_unique<RandomModel>(options);
  return std::make_unique<FolderModel>(options);
}

}  // namespace soliton
