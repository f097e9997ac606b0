// What a model is opened with, and what is asked of it: the flags of soliton-chat, of which the server and the library set
// those that are theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/sampling.h"
#include "runtime/hub/fetch_model.h"

namespace soliton {

struct Options {
  std::string model;
  std::string weights =
      {};          // q8 or q4: what the layers are rounded to, see weight_rounding.h; empty: they are not
  HubOptions hub;  // of models that are named as on Hugging Face
  std::optional<std::string> prompt;
  std::string prompt_file;    // the prompt's, if not empty
  std::string messages_file;  // those before the prompt, or with it, if not empty; "-": stdin
  std::string document_file;  // a text, and a question on it a line, if not empty
  std::string questions_file;
  std::optional<std::string> system;
  std::string template_file;
  std::vector<std::string> stops;
  std::string schema_file;   // JSON schema of answers, if not empty
  std::string grammar_file;  // their grammar, if not empty
  std::string kernel;
  std::string verify_without;  // the tensor that only the kernel has as zeros, if not empty; implies verify
  std::optional<int> kv_bits;  // of a key or value in the cache: 8, 16 or 32
  std::optional<int> num_tokens;
  bool fills_context = false;  // as many tokens as fit, unless the answer ends by itself
  int context = 0;             // 0: see choose_context()
  int window = 0;              // of text without end, see StreamingWindow; 0: the text ends with the context
  int sinks = 4;
  int num_samples = 1;
  int num_beams = 1;          // of a search; 1: none
  double length_penalty = 1;  // of beams
  SamplingFlags sampling_flags;
  uint32_t seed = 0;
  int num_drafts = 0;  // a step, of --lookup or --draft-max; 0: no speculation
  std::string draft;   // the draft model's folder or name, if not empty
  int device = 0;
  std::vector<int> cards;  // devices that share the model, instead
  bool raw = false;
  bool json = false;
  bool jsonl = false;  // the same, an object a token
  bool ignore_stop = false;
  bool verify = false;  // the kernel against a reference, and no chat
  bool doctor = false;  // a report on this machine, and no model
  /// Told what is said while a model is opened, a line at a time without its end; empty: stderr is, with a bar of progress.
  std::function<void(const std::string&)> say = {};

  /// The flags', and what they leave open as in `defaults`. Several samples without temperature would all be the
  /// same: they have one of their own. Beams are not drawn: with them `defaults` do not count.
  Sampling sampling(const Sampling& defaults) const;
  /// The flag that num_drafts is of.
  const char* drafts_flag() const { return draft.empty() ? "--lookup" : "--draft-max"; }

  static constexpr double kDefaultSampleTemperature = 0.8;
  static constexpr int kDefaultContext = 32768;  // at most; as are
  static constexpr int kEmulatedContext = 4096;  // without a card
  static constexpr int kDefaultTokens = 256;     // of a completion; an answer in a chat ends by itself
  static constexpr int kDefaultDrafts = 7;       // of a draft model
};

}  // namespace soliton
