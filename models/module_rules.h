// Which of a model's linear layers a quantisation is for, by their names, as the files that writers of checkpoints make say it:
// lists of names, of names with wildcards, and of regular expressions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/strict_json.h"

namespace soliton {

/// How an entry names layers.
enum class PatternKind {
  kName,       // as it stands
  kWildcards,  // all of a name, `*` for any characters and `?` for one
  kRegex,      // from a name's first character on, as Python's re.match does
};

class ModulePattern {
 public:
  /// `at`: the entry, for messages. Throws Error (kBadFile) if an expression is none or is too long.
  ModulePattern(PatternKind kind, std::string text, const JsonView& at);

  /// Throws Error (kMismatch) for an expression that takes too many steps.
  bool matches(const std::string& name) const;

 private:
  struct Compiled;
  PatternKind kind_;
  std::string text_;
  std::string place_;  // for messages
  std::shared_ptr<const Compiled> compiled_;
};

/// What a file says of the linear layers that a pattern names.
struct ModuleRule {
  ModulePattern pattern;
  int bits = 16;        // of their weights; 16: they stay floats
  int group_size = -1;  // columns that share a scale
};

/// Of all linear layers, by what they are called in the checkpoint, without ".weight".
struct ModuleRules {
  std::vector<ModulePattern> targets;  // that are quantised; empty: all are
  std::vector<ModuleRule> rules;       // in the place of what the others have

  /// Of a layer the rule that applies, null if none does or if it is quantised as all others are. Throws Error (kMismatch) if
  /// rules that do not agree name the same layer, as JSON does not say which comes first.
  const ModuleRule* find(const std::string& name, const std::string& file) const;
  bool is_target(const std::string& name) const;
  /// Is the layer left as floats?
  bool is_left_out(const std::string& name, const std::string& file) const;
};

}  // namespace soliton
