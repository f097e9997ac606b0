// A GGUF file in the place of a model's folder, for every program.
#include "cli/cli_fixture.h"
#include "gguf_model.h"
#include "long_tests.h"
#include "models/hf_config.h"
#include "reference_python.h"

namespace soliton {
namespace {

class GgufCli : public Cli {
 protected:
  GgufCli() { tiny(GgufType::kF16).write(path() / "tiny.gguf"); }

  GgufBuilder tiny(GgufType type) const {
    const ModelFacts facts = HfConfig::open(model()).facts;
    GgufBuilder builder = gguf_model(load_weights(TensorSource::open(model()), facts), facts, type, "llama");
    add_gguf_tokenizer(builder, model() / "tokenizer.json", "gpt-2");
    return builder.key("tokenizer.ggml.bos_token_id", 0)
        .key("tokenizer.ggml.eos_token_id", 1)
        .key("tokenizer.ggml.add_bos_token", true);
  }
  Arguments chat_of(const std::string& file, const Arguments& more = {}) const {
    Arguments arguments{file, "-p", "Once upon", "-n", "6", "-k", kTinyKernel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(GgufCli, TellsTheStoryOfTheFolder) {
  const Outcome folder = run("soliton-chat", chat_of("tiny-stories"));
  EXPECT_EQ(folder.status, 0) << folder.err;
  const Outcome file = run("soliton-chat", chat_of("tiny.gguf"));
  EXPECT_EQ(file.status, 0) << file.err;
  EXPECT_EQ(file.out, folder.out);
  EXPECT_GT(file.out.size(), 12u);
}

/// Files of the package that converters use.
TEST_F(GgufCli, IsReadAsThePublicWriterWritesIt) {
  SOLITON_LONG_RUNS_ONLY("GgufFamilies.AgreeWithTransformers reads what the public writer wrote");
  if (!has_package("gguf"))
    GTEST_SKIP() << reference_python() << " has no package gguf; set SOLITON_PYTHON to one that has";
  const auto write = [&](const std::string& name, const std::string& arguments) {
    return run_script("gguf/make_gguf.py",
                      "'" + model().string() + "' '" + (path() / name).string() + "' " + arguments);
  };
  ASSERT_EQ(write("parts.gguf", "BF16 30"), 0);
  const Outcome parts = run("soliton-chat", chat_of("parts-00001-of-00002.gguf"));
  EXPECT_EQ(parts.out, run("soliton-chat", chat_of("tiny.gguf")).out) << parts.err;
  ASSERT_EQ(write("q4.gguf", "Q4_0"), 0);
  const Outcome integers = run("soliton-chat", {"q4.gguf", "--verify", "-k",
                                                std::string(SOLITON_KERNELS) + "/tiny-stories-gptq-cpu.so"});
  EXPECT_EQ(integers.status, 0) << integers.err;
  ASSERT_EQ(write("k.gguf", "Q4_K_M"), 0);
  const std::string kernel = std::string(SOLITON_TEST_KERNELS) + "/tiny-q4-k-m-7.so";
  const Outcome mixed = run("soliton-chat", {"k.gguf", "--verify", "-k", kernel});
  EXPECT_EQ(mixed.status, 0) << mixed.err;
  const Outcome story = run("soliton-chat", {"k.gguf", "-p", "Once upon", "-n", "2", "-k", kernel});
  EXPECT_NE(story.out.find("a time"), std::string::npos) << story.out << story.err;
}

TEST_F(GgufCli, IsTheModelThatTheFolderIs) {
  for (const char* model : {"tiny-stories", "tiny.gguf"}) {
    const Outcome outcome = run("soliton-gen", {model, "--write-model", std::string(model) + "-facts.yaml"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  const auto facts = [&](const char* name) {
    const std::string text = read_text(path() / name);
    return text.substr(text.find("hidden:"));
  };
  EXPECT_EQ(facts("tiny.gguf-facts.yaml"), facts("tiny-stories-facts.yaml"));
  const Outcome doctor = run("soliton-doctor", {"tiny.gguf"});
  EXPECT_EQ(doctor.status, 0) << doctor.err;
  EXPECT_NE(doctor.out.find("tiny.gguf runs here"), std::string::npos) << doctor.out;
}

TEST_F(GgufCli, SaysInOneLineWhatIsWrong) {
  const std::string whole = read_text(path() / "tiny.gguf");
  const auto refused = [&](const std::string& content, int status, const std::string& reason) {
    write_text(path() / "tiny.gguf", content);
    for (const char* program : {"soliton-chat", "soliton-gen"}) {
      const bool is_chat = std::string(program) == "soliton-chat";
      expect_error(program,
                   is_chat ? chat_of("tiny.gguf") : Arguments{"tiny.gguf", "--write-model", "a.yaml"}, status,
                   "tiny.gguf", reason);
    }
  };
  refused("", kBadFile, "the file is empty");
  refused(kLfsPointer, kBadFile, "a git-LFS pointer");
  refused(whole.substr(0, 1000), kBadFile, "cut short");
  refused(whole.substr(0, whole.size() - 1), kBadFile, "cut short");
  refused(GgufBuilder().key("general.architecture", "mamba").file(), kMismatch,
          "general.architecture: expected one of llama, qwen2, ");
  tiny(GgufType::kF16).key("tokenizer.chat_template", "{{ messages ").write(path() / "tiny.gguf");
  expect_error("soliton-chat", chat_of("tiny.gguf"), kBadFile, "tiny.gguf: chat_template:1", "expected");
  expect_error("soliton-chat", chat_of("absent.gguf"), kNotFound, "absent.gguf", "no such file");
}

}  // namespace
}  // namespace soliton
