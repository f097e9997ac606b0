// What a server serves: the model of a folder, or a kernel with random weights, which has no text.
#pragma once

#include <memory>
#include <string>

#include "runtime/answer/draft/draft_model.h"
#include "runtime/answer/model.h"
#include "runtime/server/options.h"
#include "runtime/server/service.h"

namespace soliton {

/// A tokenizer whose token i is the text " i", for models that have none. Text is not to be encoded by it.
Tokenizer number_tokenizer(int vocabulary);

class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual ServedText text() const = 0;
  Engine& engine() const { return *engine_; }
  /// Of --draft, for whoever asks first; else null.
  std::unique_ptr<DraftModel> take_draft_model() { return std::move(draft_model_); }
  /// Tokens of one answer and its prompt at most.
  int context() const { return context_; }
  /// What it is called where no flag says.
  const std::string& name() const { return name_; }

 protected:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<DraftModel> draft_model_;
  int context_ = 0;
  std::string name_;
};

/// As the flags say. Throws what opening a model does.
std::unique_ptr<ServedModel> open_served_model(const ServerOptions& options);

}  // namespace soliton
