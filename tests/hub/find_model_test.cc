// Models by name and by folder, in caches as Hugging Face's programs leave them.
#include "runtime/hub/find_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cli/run_program.h"
#include "models/error.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

class FindModel : public testing::Test {
 protected:
  FindModel() {
    ::setenv("HF_HOME", root().c_str(), 1);
    for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) ::unsetenv(variable);
  }
  ~FindModel() override {
    for (const char* variable : {"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"}) {
      ::unsetenv(variable);
    }
  }

  const fs::path& root() const { return folder_.path(); }
  fs::path hub() const { return root() / "hub"; }

  /// A model in the cache, with a snapshot of that name and what a whole one has.
  fs::path add(const std::string& folder, const std::string& commit = "c0ffee") const {
    const fs::path snapshot = hub() / folder / "snapshots" / commit;
    fs::create_directories(snapshot);
    fs::create_directories(hub() / folder / "refs");
    write_text(hub() / folder / "refs" / "main", commit);
    for (const char* name : {"config.json", "model.safetensors"}) write_text(snapshot / name, "{}");
    return snapshot;
  }
  /// The line that find_model() ends with, and whether its code is as expected.
  static std::string refusal(const std::string& model, ExitCode code) {
    try {
      return "found " + find_model(model).string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
  }

  const TemporaryFolder folder_;
};

TEST_F(FindModel, ByNameInTheCache) {
  const fs::path snapshot = add("models--Qwen--Qwen2.5-7B-Instruct");
  EXPECT_EQ(find_model("Qwen/Qwen2.5-7B-Instruct"), snapshot);
  EXPECT_EQ(find_model("gpt2-like"), add("models--gpt2-like")) << "names without a slash are the oldest ones";
  ::unsetenv("HF_HOME");
  ::setenv("HF_HUB_CACHE", hub().c_str(), 1);
  EXPECT_EQ(find_model("Qwen/Qwen2.5-7B-Instruct"), snapshot);
}

TEST_F(FindModel, TheCacheIsWhereHuggingFaceHasIt) {
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(huggingface_hub(), hub());
  ::setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(huggingface_hub(), "/home/someone/hf/hub");
  ::setenv("HF_HUB_CACHE", "/cache", 1);
  EXPECT_EQ(huggingface_hub(), "/cache");
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HF_HOME");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(huggingface_hub(), "/xdg/huggingface/hub");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(huggingface_hub(), "/home/someone/.cache/huggingface/hub");
}

TEST_F(FindModel, TheSnapshotIsThatOfMain) {
  const fs::path older = add("models--a--b", "1111");
  const fs::path newer = add("models--a--b", "2222");
  EXPECT_EQ(find_model("a/b"), newer);
  write_text(hub() / "models--a--b" / "refs" / "main", "1111");
  EXPECT_EQ(find_model("a/b"), older);
  fs::remove(hub() / "models--a--b" / "refs" / "main");
  EXPECT_EQ(refusal("a/b", ExitCode::kNotFound),
            (hub() / "models--a--b").string() +
                ": expected refs/main or one of snapshots/, found 2 of these; soliton-chat a/b downloads it");
  fs::remove_all(older);
  EXPECT_EQ(find_model("a/b"), newer);
}

TEST_F(FindModel, EveryFolderOfTheCacheIsTaken) {
  const fs::path snapshot = add("models--a--b");
  fs::create_directories(hub() / "datasets--a--b" / "snapshots");
  for (const fs::path& folder :
       {root(), hub(), hub() / "models--a--b", hub() / "models--a--b" / "", snapshot}) {
    EXPECT_EQ(find_model(folder), snapshot) << folder;
  }
  add("models--c");
  EXPECT_EQ(refusal(hub(), ExitCode::kUsage),
            hub().string() + ": expected one model, got a cache of a/b, c: name one of them");
}

TEST_F(FindModel, SaysHowToDownloadWhatIsNotThere) {
  EXPECT_EQ(refusal("org/name", ExitCode::kNotFound),
            "org/name: expected a folder, or a model in " + hub().string() +
                ", found neither; soliton-chat org/name downloads it");
  const fs::path snapshot = add("models--a--b");
  const auto expect_missing = [&](const std::string& missing) {
    EXPECT_EQ(refusal("a/b", ExitCode::kNotFound),
              snapshot.string() + ": expected " + missing + ", found none; soliton-chat a/b downloads it");
  };
  fs::remove(snapshot / "model.safetensors");
  expect_missing("model.safetensors");
  write_text(snapshot / "model.safetensors.index.json",
             R"({"weight_map": {"x": "1.safetensors", "y": "2.safetensors"}})");
  write_text(snapshot / "1.safetensors", "x");
  expect_missing("2.safetensors");
  fs::create_symlink("../../blobs/absent", snapshot / "2.safetensors");  // whose download was given up
  expect_missing("2.safetensors");
  write_text(snapshot / "2.safetensors", "x");
  EXPECT_EQ(find_model("a/b"), snapshot);
  fs::remove(snapshot / "config.json");
  expect_missing("config.json");
}

TEST_F(FindModel, LeavesOtherFaultsToWhoReadsTheFiles) {
  const fs::path snapshot = add("models--a--b");
  fs::remove(snapshot / "model.safetensors");
  write_text(snapshot / "pytorch_model.bin", "x");
  EXPECT_EQ(find_model("a/b"), snapshot);
  for (const char* index : {"[", "{}", R"({"weight_map": {"x": 3}})"}) {
    write_text(snapshot / "model.safetensors.index.json", index);
    EXPECT_EQ(find_model("a/b"), snapshot) << index;
  }
  fs::create_directory(root() / "empty");
  EXPECT_EQ(find_model(root() / "empty"), root() / "empty");
}

TEST_F(FindModel, SaysWhatIsNoModel) {
  const auto made = [&](const char* name) {
    write_text(root() / name, "x");
    return (root() / name).string();
  };
  const std::string expected = ": expected a folder with config.json and safetensors, or a .gguf file, got ";
  const std::string yaml = made("llama.yaml");
  EXPECT_EQ(refusal(yaml, ExitCode::kUsage),
            yaml + expected + "a model's facts without weights, as for soliton-gen");
  const std::string weights = made("model.safetensors");
  EXPECT_EQ(refusal(weights, ExitCode::kUsage),
            weights + ": expected the folder that the file is in, " + root().string() + ", got the file");
  EXPECT_EQ(refusal(made("text"), ExitCode::kUsage), (root() / "text").string() + expected + "a file");
  for (const char* name : {"absent", "./a/b", "a/b/c", "/a/b", "../b", "a/", "a b/c", "-a/b"}) {
    EXPECT_EQ(
        refusal(name, ExitCode::kNotFound),
        std::string(name) +
            ": expected a model's folder, or its name on Hugging Face (org/name), found no such folder");
  }
}

TEST_F(FindModel, FindsGgufFiles) {
  write_text(root() / "some.gguf", "x");
  EXPECT_EQ(find_model(root() / "some.gguf"), root() / "some.gguf");
  EXPECT_EQ(find_model(root()), root() / "some.gguf");
  const std::string absent = (root() / "sone.gguf").string();
  EXPECT_EQ(refusal(absent, ExitCode::kNotFound),
            absent + ": no such file; did you mean " + (root() / "some.gguf").string() + "?");
  EXPECT_EQ(refusal("org/absent.gguf", ExitCode::kNotFound), "org/absent.gguf: no such file");
  const fs::path snapshot = add("models--a--b-GGUF");
  for (const char* name : {"config.json", "model.safetensors"}) fs::remove(snapshot / name);
  for (const char* part : {"b-00001-of-00002.gguf", "b-00002-of-00002.gguf"})
    write_text(snapshot / part, "x");
  EXPECT_EQ(find_model("a/b-GGUF"), snapshot / "b-00001-of-00002.gguf");
  write_text(snapshot / "b.Q4_K_M.gguf", "x");
  EXPECT_NE(
      refusal("a/b-GGUF", ExitCode::kUsage).find("expected one GGUF file, got 2: name one of them, such as "),
      std::string::npos);
}

}  // namespace
}  // namespace soliton
