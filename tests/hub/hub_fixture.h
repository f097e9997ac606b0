// A cache and a hub of their own, and what a download of org/name comes to.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/run_program.h"
#include "hub/fake_hub.h"
#include "models/error.h"
#include "runtime/hub/download.h"

namespace soliton {

namespace fs = std::filesystem;

class Hub : public testing::Test {
 protected:
  Hub() {
    const fs::path tiny = fs::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories";
    for (const char* name : {"config.json", "tokenizer_config.json", "generation_config.json"})
      hub_.files[name] = {.content = read_text(tiny / name)};
    hub_.files["tokenizer.json"] = {.content = "{}", .is_large = true};
    hub_.files["model.safetensors"] = {.content = std::string(300'000, 'w') + "end", .is_large = true};
    for (const char* variable :
         {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH",
          "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "http_proxy", "all_proxy", "ALL_PROXY", "no_proxy",
          "NO_PROXY", "HF_HUB_DISABLE_IMPLICIT_TOKEN"}) {
      ::unsetenv(variable);
    }
    set("HF_HOME", folder_.path());
    set("HF_ENDPOINT", hub_.server.address());
  }
  ~Hub() override {
    for (const char* variable : {"HF_HOME", "HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE", "http_proxy"})
      ::unsetenv(variable);
  }

  static void set(const char* variable, const std::string& value) { ::setenv(variable, value.c_str(), 1); }
  fs::path cache() const { return folder_.path() / "hub"; }
  fs::path root() const { return cache() / "models--org--name"; }
  fs::path snapshot() const { return root() / "snapshots" / FakeHub::kCommit; }
  fs::path blob(const std::string& name) const { return root() / "blobs" / hub_.files.at(name).hash(); }
  fs::path incomplete(const std::string& name) const { return blob(name).string() + ".incomplete"; }
  FakeHub::File& weights() { return hub_.files.at("model.safetensors"); }

  /// With few retries.
  fs::path download(const HubOptions& options = {}, const NeededFiles& needed = {}) const {
    const CachedRepository repository("org/name");
    return hub::download(repository, options, needed,
                         {.patience = {.stall = stall_},
                          .retries = {.attempts = 3,
                                      .first_wait = std::chrono::milliseconds(1),
                                      .longest_wait = std::chrono::seconds(1)}});
  }
  /// The line that a download ends with, and whether its code is as expected.
  std::string refusal(ExitCode code, const HubOptions& options = {}, const NeededFiles& needed = {}) const {
    try {
      return "downloaded " + download(options, needed).string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
  }
  void expect_downloaded() {
    EXPECT_EQ(download(), snapshot());
    EXPECT_EQ(read_text(snapshot() / "model.safetensors"), weights().content);
    EXPECT_FALSE(fs::exists(incomplete("model.safetensors")));
  }

  const TemporaryFolder folder_;
  FakeHub hub_;
  std::chrono::seconds stall_{30};  // a busy machine is no failure
};

}  // namespace soliton
