// The tiny model, opened once by libsoliton.so and emulated: a program's view, which sees soliton.h and nothing else.
#pragma once

#include <gtest/gtest.h>

#include <soliton.hpp>
#include <string>

namespace soliton {

inline const std::string kLibraryModel = std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories";
inline const std::string kLibraryKernel = std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so";
inline constexpr int kLibraryContext = 80;

class Library : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ModelOptions options;
    options.context = kLibraryContext;
    options.kernel = kLibraryKernel;
    model_ = new Model(kLibraryModel, options);
  }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }

  static Model& model() { return *model_; }
  static Tokens prompt() { return model().prompt("Once upon a time"); }
  static Options up_to(int max_tokens) {
    Options options = model().options();
    options.max_tokens = max_tokens;
    return options;
  }

  /// The status that a call of the C++ wrapper ends with, and its message.
  template <class Act>
  static std::string failure_of(const Act& act) {
    try {
      act();
    } catch (const Error& error) {
      return std::to_string(error.status()) + " " + error.what();
    }
    return "none";
  }

 private:
  static inline Model* model_ = nullptr;
};

}  // namespace soliton
