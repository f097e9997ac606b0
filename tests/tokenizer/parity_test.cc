// Equality with the reference library on what make_cases.py writes: 1,000 hard texts for each family's tokenizer, in
// the long mode 100,000, and fewer for many variants. Skipped where no Python with that library is found.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "long_tests.h"
#include "reference_python.h"
#include "runtime/text/tokenizer.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// What make_cases.py has written, number by number.
class CaseReader {
 public:
  explicit CaseReader(const fs::path& path) : file_(path, std::ios::binary) {}

  uint32_t number() {
    uint32_t value = 0;
    file_.read(reinterpret_cast<char*>(&value), sizeof(value));
    if (!file_) throw std::runtime_error("unexpected end of cases");
    return value;
  }
  /// Nothing where the library panicked.
  std::optional<std::string> text() {
    const uint32_t size = number();
    if (size == kNothing) return std::nullopt;
    std::string text(size, '\0');
    file_.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  }
  std::optional<std::vector<int>> ids() {
    const uint32_t size = number();
    if (size == kNothing) return std::nullopt;
    std::vector<int> ids(size);
    for (int& id : ids) id = static_cast<int>(number());
    return ids;
  }

 private:
  static constexpr uint32_t kNothing = 0xffffffff;

  std::ifstream file_;
};

std::vector<std::string> read_texts(const fs::path& path) {
  CaseReader reader(path);
  std::vector<std::string> texts(reader.number());
  for (std::string& text : texts) text = reader.text().value();
  return texts;
}

std::string decode_stream(const Tokenizer& tokenizer, std::span<const int> ids, bool skip_special) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string text;
  for (const int id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

/// Counts differences and tells the first few.
class Differences {
 public:
  explicit Differences(std::string name) : name_(std::move(name)) {}
  template <class T>
  void compare(const T& got, const std::optional<T>& expected, const char* what, size_t index,
               const std::string& text) {
    if (!expected) return;
    ++num_compared_;
    if (got == *expected) return;
    constexpr size_t kMaxTold = 3;
    if (++num_different_ > kMaxTold) return;
    ADD_FAILURE() << name_ << ", case " << index << ", " << what << " of " << testing::PrintToString(text)
                  << ":\n  got      " << testing::PrintToString(got) << "\n  expected "
                  << testing::PrintToString(*expected);
  }
  size_t num_compared() const { return num_compared_; }
  size_t num_different() const { return num_different_; }

 private:
  std::string name_;
  size_t num_compared_ = 0;
  size_t num_different_ = 0;
};

/// Compares one tokenizer's cases; `texts` are all texts, of which it may cover every n-th.
Differences compare_cases(const fs::path& folder, const std::vector<std::string>& texts) {
  const bool is_file = fs::exists(folder / "model.gguf");
  const Tokenizer tokenizer = Tokenizer::open(is_file ? folder / "model.gguf" : folder);
  CaseReader cases(folder / "cases.bin");
  Differences differences(folder.filename().string());
  const size_t num_texts = cases.number();
  const size_t step = (texts.size() + num_texts - 1) / num_texts;
  for (size_t i = 0; i < num_texts; ++i) {
    const std::string& text = texts[i * step];
    differences.compare(tokenizer.encode(text, true), cases.ids(), "ids with special tokens", i, text);
    const std::optional<std::vector<int>> plain = cases.ids();
    differences.compare(tokenizer.encode(text), plain, "ids", i, text);
    const std::optional<std::string> decoded = cases.text();
    if (!plain) continue;
    differences.compare(tokenizer.decode(*plain), decoded, "decoded text", i, text);
    differences.compare(decode_stream(tokenizer, *plain, false), decoded, "streamed text", i, text);
  }
  const size_t num_random = cases.number();
  for (size_t i = 0; i < num_random; ++i) {
    const std::vector<int> ids = cases.ids().value();
    const std::string shown = testing::PrintToString(ids);
    for (const bool skip_special : {false, true}) {
      const std::optional<std::string> decoded = cases.text();
      differences.compare(tokenizer.decode(ids, skip_special), decoded, "decoded text", i, shown);
      differences.compare(decode_stream(tokenizer, ids, skip_special), decoded, "streamed text", i, shown);
    }
  }
  return differences;
}

/// Runs a script that writes tokenizers and cases, with a further argument before the number of texts, and compares all.
void compare_with_reference(const std::string& script, const std::string& name, const std::string& which) {
  const char* const chosen_count = std::getenv("SOLITON_PARITY_TEXTS");
  const std::string count = chosen_count != nullptr ? chosen_count : long_tests() ? "100000" : "1000";
  const fs::path folder = fs::path(SOLITON_BINARY_DIR) / "tokenizer_parity" / name;
  const std::string log = folder.string() + ".log";  // the library reports each of its panics
  fs::remove_all(folder);
  fs::create_directories(folder);
  ASSERT_EQ(run_script(script, "'" + folder.string() + "' " + which + " " + count + " > '" + log + "' 2>&1"),
            0)
      << std::ifstream(log).rdbuf();
  const std::vector<std::string> texts = read_texts(folder / "texts.bin");
  size_t num_tokenizers = 0;
  size_t num_compared = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    const Differences differences = compare_cases(entry.path(), texts);
    EXPECT_EQ(differences.num_different(), 0u) << entry.path();
    num_compared += differences.num_compared();
    ++num_tokenizers;
  }
  EXPECT_GE(num_tokenizers, 1u);
  EXPECT_GT(num_compared, texts.size());
  std::cout << texts.size() << " texts, " << num_tokenizers << " tokenizers, " << num_compared
            << " comparisons\n";
  if (!testing::Test::HasFailure()) fs::remove_all(folder);  // tens of MB
}

class TokenizerParity : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerParity, EqualsTheReferenceLibraryOnHardTexts) {
  if (!has_package("tokenizers"))
    GTEST_SKIP() << reference_python() << " has no package tokenizers; set SOLITON_PYTHON to one that has";
  compare_with_reference("tokenizer/make_cases.py", GetParam(), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Families, TokenizerParity,
                         testing::Values("llama", "qwen", "nemo", "gpt2", "smollm", "mistral", "mistral3",
                                         "variants"));

TEST(TokenizerParityOfGguf, EqualsTheReferenceLibraryOnHardTexts) {
  if (!has_package("tokenizers, gguf"))
    GTEST_SKIP() << reference_python()
                 << " has no packages tokenizers and gguf; set SOLITON_PYTHON to one that has";
  compare_with_reference("gguf/make_tokenizers.py", "gguf", "");
}

}  // namespace
}  // namespace soliton
