// Sequences of calls of the C interface, as bytes say: each ends with a status that it may have, an error of one line and
// results within their buffers. The tiny model in emulation, so what decodes comes a few times an input.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "runtime/library/soliton.h"

namespace soliton {
namespace {

constexpr int kContext = 80;
constexpr int kMostCalls = 60;
constexpr int kMostDecoded = 3;  // calls that decode, of an input
constexpr int kMostTokens = 2;   // that they generate

/// An input as numbers and texts; zeros when it is at its end.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool is_empty() const { return left_ == 0; }
  int byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  /// Small, or one at the edge of a type.
  int64_t number() {
    constexpr std::array<int64_t, 12> kEdges = {-1,
                                                64,
                                                1 << 16,
                                                1 << 30,
                                                std::numeric_limits<int32_t>::max(),
                                                std::numeric_limits<int32_t>::min(),
                                                int64_t{1} << 32,
                                                int64_t{1} << 40,
                                                int64_t{1} << 62,
                                                std::numeric_limits<int64_t>::max(),
                                                std::numeric_limits<int64_t>::min(),
                                                4096};
    const int first = byte();
    return first < 240 ? first % 8 : kEdges[static_cast<size_t>(first - 240) % kEdges.size()];
  }
  double fraction() {
    constexpr std::array<double, 8> kEdges = {-1,  1e300, std::numeric_limits<double>::quiet_NaN(), 0, 1,
                                              0.5, 1e-9,  std::numeric_limits<double>::infinity()};
    const int first = byte();
    return first < 200 ? first / 100.0 : kEdges[static_cast<size_t>(first) % kEdges.size()];
  }
  std::string text() {
    std::string text;
    for (int length = byte(); length > 0 && left_ > 0; --length) text += static_cast<char>(byte());
    return text;
  }
  std::vector<int32_t> tokens(size_t most) {
    std::vector<int32_t> tokens(static_cast<size_t>(byte()) % (most + 1));
    for (int32_t& token : tokens) {
      const int first = byte();
      token = first == 255 ? static_cast<int32_t>(number()) : first;
    }
    return tokens;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

soliton_status may_end(soliton_status status) {
  const std::string_view error = soliton_last_error();
  const bool is_fine = status == SOLITON_OK || status == SOLITON_USAGE || status == SOLITON_BAD_FILE ||
                       status == SOLITON_MISMATCH || status == SOLITON_OUT_OF_MEMORY;
  if (!is_fine) fmt::print(stderr, "status {}: {}\n", static_cast<int>(status), error);
  expect(is_fine, "a status that such a call may have");
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  expect(status == SOLITON_OK || (!error.empty() && std::none_of(error.begin(), error.end(), is_control)),
         "an error of one line");
  return status;
}

soliton_model* model() {
  static soliton_model* const model = [] {
    const std::string source = SOLITON_SOURCE_DIR;
    const std::string kernel = std::string(SOLITON_BINARY_DIR) + "/kernels/tiny-stories-cpu.so";
    soliton_model_options options = {};
    options.size = sizeof options;
    options.context = kContext;
    options.kernel = kernel.c_str();
    soliton_model* opened = nullptr;
    const soliton_status status =
        soliton_model_open((source + "/models/tiny-stories").c_str(), &options, &opened);
    expect(status == SOLITON_OK, soliton_last_error());
    return opened;
  }();
  return model;
}

/// One input's handles.
class Program {
 public:
  explicit Program(Bytes bytes) : bytes_(bytes) {
    may_end(soliton_session_open(model(), &session_));
    may_end(soliton_tree_open(model(), &tree_));
  }
  ~Program() {
    soliton_session_close(session_);
    soliton_tree_close(tree_);
  }

  void run() {
    for (int i = 0; i < kMostCalls && !bytes_.is_empty(); ++i)
      (this->*kCalls[bytes_.byte() % kCalls.size()])();
  }

 private:
  void tokenize() {
    const std::string text = bytes_.text();
    const int flags = static_cast<int>(bytes_.number());
    std::vector<int32_t> tokens(static_cast<size_t>(bytes_.byte()));
    size_t count = 0;
    const soliton_status status = may_end(
        soliton_tokenize(model(), text.data(), text.size(), flags, tokens.data(), tokens.size(), &count));
    expect(status != SOLITON_OK || tokens.empty() || count <= tokens.size(), "tokens within the buffer");
  }

  void detokenize() {
    const std::vector<int32_t> tokens = bytes_.tokens(32);
    const int flags = static_cast<int>(bytes_.number());
    std::vector<char> text(static_cast<size_t>(bytes_.byte()));
    size_t count = 0;
    const soliton_status status = may_end(
        soliton_detokenize(model(), tokens.data(), tokens.size(), flags, text.data(), text.size(), &count));
    if (status != SOLITON_OK || text.empty()) return;
    expect(count < text.size() && text[count] == '\0', "a text within the buffer, and its end");
  }

  void render_chat() {
    const std::string messages = bytes_.text();
    const std::string tools = bytes_.text();
    const std::string variables = bytes_.text();
    std::vector<int32_t> tokens(static_cast<size_t>(bytes_.byte()));
    size_t count = 0;
    may_end(soliton_render_chat(model(), messages.c_str(), tools.empty() ? nullptr : tools.c_str(),
                                variables.empty() ? nullptr : variables.c_str(), tokens.data(), tokens.size(),
                                &count));
  }

  void info() {
    soliton_model_info info = {};
    info.size = bytes_.byte() % 2 == 0 ? sizeof info : static_cast<size_t>(bytes_.number());
    if (may_end(soliton_model_get_info(model(), &info)) == SOLITON_OK)
      expect(info.context == kContext, "the context that was asked for");
  }

  /// Texts of the options live in members, as long as the call takes.
  soliton_options options() {
    soliton_options options = {};
    may_end(soliton_options_init(model(), &options, sizeof options));
    options.max_tokens = 1 + bytes_.byte() % kMostTokens;
    const int choices = bytes_.byte();
    if (choices & 1) options.temperature = bytes_.fraction();
    if (choices & 2) options.top_k = static_cast<int32_t>(bytes_.number());
    if (choices & 4) options.top_p = bytes_.fraction();
    if (choices & 8) options.repeat_penalty = bytes_.fraction();
    if (choices & 16) options.logprobs = static_cast<int32_t>(bytes_.number());
    if (choices & 32) {
      stop_ = bytes_.text();
      stop_text_ = stop_.c_str();
      options.stops = &stop_text_;
      options.num_stops = 1;
    }
    if (choices & 64) {
      grammar_ = bytes_.text();
      options.grammar = grammar_.c_str();
    }
    if (choices & 128) {
      schema_ = bytes_.text();
      options.json_schema = schema_.c_str();
    }
    return options;
  }

  bool may_decode() { return ++num_decoded_ <= kMostDecoded; }

  static int on_token(void* data, const soliton_token* token) {
    expect(token->text != nullptr && std::strlen(token->text) == token->text_bytes, "a text of its size");
    auto* const program = static_cast<Program*>(data);
    expect(soliton_generate(program->session_, &token->id, 1, nullptr, nullptr, nullptr, nullptr) ==
               SOLITON_USAGE,
           "no call within the call that it would wait for");
    return program->bytes_.byte() == 7;
  }

  void generate() {
    const std::vector<int32_t> prompt = bytes_.tokens(6);
    const soliton_options how = options();
    if (!may_decode()) return;
    soliton_result result = {};
    result.size = sizeof result;
    const soliton_status status =
        may_end(soliton_generate(session_, prompt.data(), prompt.size(), &how, on_token, this, &result));
    if (status == SOLITON_OK) expect(result.num_generated <= how.max_tokens, "as many tokens as were wanted");
  }

  void cancel() { soliton_cancel(session_); }

  void add() {
    const std::vector<int32_t> tokens = bytes_.tokens(6);
    int32_t branch = 0;
    may_end(soliton_tree_add(tree_, tokens.data(), tokens.size(), &branch));
  }

  void fork() {
    const auto branch = static_cast<int32_t>(bytes_.number());
    std::vector<int32_t> branches(static_cast<size_t>(bytes_.byte()) % 5);
    may_end(soliton_tree_fork(tree_, branch, branches.size(), branches.data()));
  }

  void append() {
    const auto branch = static_cast<int32_t>(bytes_.number());
    const std::vector<int32_t> tokens = bytes_.tokens(100);
    may_end(soliton_tree_append(tree_, branch, tokens.data(), tokens.size()));
  }

  void prune() { may_end(soliton_tree_prune(tree_, static_cast<int32_t>(bytes_.number()))); }

  void tokens_of_branch() {
    const auto branch = static_cast<int32_t>(bytes_.number());
    std::vector<int32_t> tokens(static_cast<size_t>(bytes_.byte()));
    size_t count = 0;
    may_end(soliton_tree_tokens(tree_, branch, tokens.data(), tokens.size(), &count));
  }

  void decode() {
    std::vector<int32_t> branches(1 + static_cast<size_t>(bytes_.byte()) % 3);
    for (int32_t& branch : branches) branch = static_cast<int32_t>(bytes_.number());
    const soliton_options how = options();
    if (!may_decode()) return;
    std::vector<soliton_result> results(branches.size());
    results[0].size = sizeof(soliton_result);
    may_end(
        soliton_tree_decode(tree_, branches.data(), branches.size(), &how, nullptr, nullptr, results.data()));
  }

  void score() {
    const auto branch = static_cast<int32_t>(bytes_.number());
    const std::vector<int32_t> tokens = bytes_.tokens(3);
    if (!may_decode()) return;
    std::vector<float> logprobs(tokens.size(), 1.0f);
    const soliton_status status =
        may_end(soliton_tree_score(tree_, branch, tokens.data(), tokens.size(), logprobs.data()));
    for (const float logprob : logprobs)
      expect(status != SOLITON_OK || logprob <= 0, "logarithms of probabilities");
  }

  void reopen() {
    soliton_tree_close(tree_);
    soliton_session_close(session_);
    tree_ = nullptr;
    session_ = nullptr;
    if (bytes_.byte() % 4 == 0) return;  // what follows is given no handles
    may_end(soliton_session_open(model(), &session_));
    may_end(soliton_tree_open(model(), &tree_));
  }

  using Call = void (Program::*)();
  static constexpr std::array<Call, 14> kCalls = {&Program::tokenize,
                                                  &Program::detokenize,
                                                  &Program::render_chat,
                                                  &Program::info,
                                                  &Program::generate,
                                                  &Program::cancel,
                                                  &Program::add,
                                                  &Program::fork,
                                                  &Program::append,
                                                  &Program::prune,
                                                  &Program::tokens_of_branch,
                                                  &Program::decode,
                                                  &Program::score,
                                                  &Program::reopen};

  Bytes bytes_;
  soliton_session* session_ = nullptr;
  soliton_tree* tree_ = nullptr;
  int num_decoded_ = 0;
  std::string stop_;
  const char* stop_text_ = nullptr;
  std::string grammar_;
  std::string schema_;
};

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  soliton::Program({data, size}).run();
  return 0;
}
