// Files, flags and kernels that soliton-chat refuses.
#include "cli/cli_fixture.h"

namespace soliton {
namespace {

TEST_F(Cli, ChatNamesWhatIsMissing) {
  expect_error("soliton-chat", {"-m", "absent", "-p", "x"}, kNotFound, "absent", "found no such folder");
  for (const char* name : {"config.json", "tokenizer.json"}) {
    const std::string text = read_text(model() / name);
    fs::remove(model() / name);
    expect_error("soliton-chat", chat(), kNotFound, std::string("tiny-stories/") + name, "no such file");
    write_text(model() / name, text);
  }
  fs::remove(model() / "model.safetensors");
  expect_error("soliton-chat", chat(), kNotFound, "tiny-stories", "model.safetensors");
}

TEST_F(Cli, ChatRefusesAFileForAFolder) {
  expect_error("soliton-chat", {"-m", "tiny-stories/config.json", "-p", "x"}, kUsage,
               "tiny-stories/config.json",
               "expected the folder that the file is in, tiny-stories, got the file");
}

TEST_F(Cli, AModelIsFoundByItsName) {
  const std::vector<std::string> environment = {"HF_HOME=" + path().string(), "HF_HUB_OFFLINE=1"};
  expect_error("soliton-chat", {"org/Tiny-Stories", "-p", "x"}, kNotFound, "org/Tiny-Stories",
               "nothing is downloaded with HF_HUB_OFFLINE", environment);
  const fs::path snapshots = path() / "hub" / "models--org--Tiny-Stories" / "snapshots";
  fs::create_directories(snapshots);
  fs::rename(model(), snapshots / "0123456789abcdef");
  const Outcome chat =
      run("soliton-chat", {"org/Tiny-Stories", "-p", "Once", "-n", "1", "-k", kTinyKernel}, environment);
  EXPECT_EQ(chat.status, 0) << chat.err;
  const Outcome bench =
      run("soliton-bench", {"-m", "org/Tiny-Stories", "-n", "1", "-r", "1", "-k", kTinyKernel}, environment);
  EXPECT_EQ(bench.status, 0) << bench.err;
}

TEST_F(Cli, ChatRefusesEmptyFilesAndLfsPointers) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const std::string text = read_text(model() / name);
    write_text(model() / name, "");
    expect_error("soliton-chat", chat(), kBadFile, std::string("tiny-stories/") + name, "empty");
    write_text(model() / name, kLfsPointer);
    expect_error("soliton-chat", chat(), kBadFile, std::string("tiny-stories/") + name, "git-LFS pointer");
    write_text(model() / name, text);
  }
}

TEST_F(Cli, ChatRefusesUnreadableFiles) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    fs::permissions(model() / name, fs::perms::none);
    if (access((model() / name).c_str(), R_OK) == 0) GTEST_SKIP() << "root reads everything";
    expect_error("soliton-chat", chat(), kNotFound, std::string("tiny-stories/") + name, "cannot be read");
    fs::permissions(model() / name, fs::perms::owner_read);
  }
}

TEST_F(Cli, ChatRefusesCutFiles) {
  const std::string weights = read_text(model() / "model.safetensors");
  for (const size_t size : {size_t{7}, size_t{100}, weights.size() / 2, weights.size() - 1}) {
    write_text(model() / "model.safetensors", weights.substr(0, size));
    expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/model.safetensors", "cut short");
  }
  write_text(model() / "model.safetensors", weights);
  for (const char* name : {"config.json", "tokenizer.json"}) {
    const std::string text = read_text(model() / name);
    write_text(model() / name, text.substr(0, text.size() / 2));
    expect_error("soliton-chat", chat(), kBadFile, std::string("tiny-stories/") + name, "JSON");
    write_text(model() / name, text);
  }
}

TEST_F(Cli, ChatRefusesWrongShapes) {
  std::string weights = read_text(model() / "model.safetensors");
  const size_t tensor = weights.find("\"model.norm.weight\"");
  ASSERT_NE(tensor, std::string::npos);
  const size_t shape = weights.find("[256]", tensor);
  ASSERT_NE(shape, std::string::npos);
  std::string fewer = weights;
  fewer.replace(shape, 5, "[255]");  // fewer than its bytes
  write_text(model() / "model.safetensors", fewer);
  expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/model.safetensors", "model.norm.weight");

  weights.replace(tensor, 19, "\"model.norm.weighs\"");
  write_text(model() / "model.safetensors", weights);
  expect_error("soliton-chat", chat(), kMismatch, "tiny-stories", "model.norm.weight: expected BF16 [256]");
}

TEST_F(Cli, ChatRefusesAConsistentFileOfOtherShapes) {
  std::string header = R"({"model.embed_tokens.weight":)"
                       R"({"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  write_text(model() / "model.safetensors", file + header + std::string(12, '\0'));
  expect_error("soliton-chat", chat(), kMismatch, "tiny-stories/model.safetensors",
               "expected BF16 [2048, 256], got BF16 [2, 3]");
}

TEST_F(Cli, ChatRefusesHeadsThatDoNotDivide) {
  edit_config("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3");
  expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/config.json: num_key_value_heads",
               "expected a divisor of num_attention_heads = 4, got 3");
}

TEST_F(Cli, ChatRefusesAConfigOfAnotherModel) {
  edit_config("\"max_position_embeddings\": 2048", "\"max_position_embeddings\": 1024");
  expect_error("soliton-chat", chat(), kMismatch, "tiny-stories/config.json: max_position_embeddings",
               "expected 2048 (kernel of tiny-stories), got 1024");
}

TEST_F(Cli, ChatRefusesFlags) {
  const std::string model = "tiny-stories";
  expect_error("soliton-chat", {"-p", "x"}, kUsage, "--model", "expected a value, got nothing");
  expect_error("soliton-chat", {"-m", model}, kUsage, "--prompt", "expected a value, got nothing");
  expect_error("soliton-chat", {"-p", "x", "-m"}, kUsage, "--model", "expected a value, got nothing");
  expect_error("soliton-chat", {"-p", "x", "-m", ""}, kUsage, "--model", "got \"\"");
  expect_error("soliton-chat", chat({"-m", model}), kUsage, "--model", "got 2 times");
  expect_error("soliton-chat", chat({"--bogus", "3"}), kUsage, "--bogus", "expected a flag");
  expect_error("soliton-chat", chat({"word"}), kUsage, "\"word\"", "did you mean -p \"word\"?");
  for (const char* value : {"0", "-2", "x", "1.5", "010", "99999999999", ""}) {
    for (const char* flag : {"--predict", "--ctx-size"}) {
      const std::string found = std::string("got \"") + value + "\"";
      expect_error("soliton-chat", {"-m", model, "-p", "x", std::string(flag) + "=" + value}, kUsage, flag,
                   *value == '\0' ? "" : found);
    }
  }
}

TEST_F(Cli, ChatRefusesFlagsOfSamplesAndLookup) {
  for (const char* value : {"0", "-1", "x", "1.5", "99999999999"}) {
    const std::string found = std::string("got \"") + value + "\"";
    expect_error("soliton-chat", chat({"-np", value}), kUsage, "--parallel", found);
    expect_error("soliton-chat", chat({"--parallel", value}), kUsage, "--parallel", found);
    expect_error("soliton-chat", chat({"--lookup", value}), kUsage, "--lookup", found);
  }
  for (const char* value : {"-0.1", "101", "x", "nan", "inf", "1 ", ""})
    expect_error("soliton-chat", chat({"--temp", value}), kUsage, "--temp");
  expect_error("soliton-chat", chat({"--temperature", "x"}), kUsage, "--temp", "got \"x\"");
  for (const char* flag : {"--top-p", "--min-p"}) {
    for (const char* value : {"-0.1", "1.5", "x", ""})
      expect_error("soliton-chat", chat({flag, value}), kUsage, flag, "expected a number from 0 to 1");
  }
  for (const char* value : {"-1", "1.5", "x"})
    expect_error("soliton-chat", chat({"--top-k", value}), kUsage, "--top-k", "expected an integer from 0");
  for (const char* value : {"0", "-1", "101", "x"})
    expect_error("soliton-chat", chat({"--repeat-penalty", value}), kUsage, "--repeat-penalty");
  expect_error("soliton-chat", chat({"--seed", "-1"}), kUsage, "--seed", "got \"-1\"");
  expect_error("soliton-chat", chat({"--seed", "4294967296"}), kUsage, "--seed", "from 0 to 4294967295");
  expect_error("soliton-chat", chat({"-np"}), kUsage, "--parallel", "expected a value, got nothing");
  expect_error("soliton-chat", chat({"-np", "2", "--parallel", "2"}), kUsage, "--parallel", "got 2 times");

  const std::string one = "expected one answer, got --parallel 2";
  expect_error("soliton-chat", chat({"--lookup", "3", "-np", "2"}), kUsage, "--lookup", one);
  expect_error("soliton-chat", chat({"--draft", "tiny-stories", "-np", "2"}), kUsage, "--draft", one);
  expect_error("soliton-chat", chat({"--draft", "tiny-stories", "--lookup", "2"}), kUsage, "--lookup",
               "expected no --draft, got both");
  expect_error("soliton-chat", chat({"--draft-max", "2"}), kUsage, "--draft-max", "--draft");
  for (const Arguments& other :
       {Arguments{"-np", "2"}, Arguments{"--lookup", "2"}, Arguments{"--draft", "tiny-stories"},
        Arguments{"--stop", "x"}, Arguments{"--jsonl"}, Arguments{"--logprobs"}, Arguments{"--temp", "1"},
        Arguments{"--repeat-penalty", "2"}}) {
    Arguments flags = {"--beams", "2"};
    flags.insert(flags.end(), other.begin(), other.end());
    const std::string flag = other[0] == "-np" ? "--parallel" : other[0];
    expect_error("soliton-chat", chat(flags), kUsage, "--beams", "expected no " + flag + ", got both");
  }
  for (const char* value : {"0", "-1", "x"})
    expect_error("soliton-chat", chat({"--beams", value}), kUsage, "--beams", std::string("got \"") + value);
  expect_error("soliton-chat", chat({"--beams", "2", "--length-penalty", "11"}), kUsage, "--length-penalty",
               "expected a number from -10 to 10");
  expect_error("soliton-chat", chat({"--length-penalty", "1"}), kUsage, "--length-penalty", "--beams");
  expect_error("soliton-chat", chat({"--draft", "tiny-stories", "--draft-max", "0"}), kUsage, "--draft-max",
               "got \"0\"");
}

TEST_F(Cli, ChatRefusesMoreRowsThanTheKernelTakes) {
  expect_error("soliton-chat", chat({"-np", "9"}), kUsage, "--parallel",
               "expected at most 8, got 9: " + kTinyKernel + " takes 8 rows a step");
  expect_error("soliton-chat", chat({"-np", "2147483647"}), kUsage, "--parallel", "expected at most 8");
  expect_error("soliton-chat", chat({"--beams", "9"}), kUsage, "--beams",
               "expected at most 8, got 9: " + kTinyKernel + " takes 8 rows a step");
  expect_error("soliton-chat", chat({"--lookup", "8"}), kUsage, "--lookup",
               "expected at most 7, got 8: " + kTinyKernel + " takes 8 rows a step");
  expect_error("soliton-chat", chat({"--lookup", "2147483647"}), kUsage, "--lookup", "expected at most 7");
  expect_error("soliton-chat", chat({"--draft", "tiny-stories", "--draft-max", "8"}), kUsage, "--draft-max",
               "expected at most 7, got 8: " + kTinyKernel + " takes 8 rows a step");
  const auto with_one_row = [](const Arguments& more) {
    Arguments arguments{"-m", "tiny-stories", "-p", "x", "-n", "2", "-k", kOneRowKernel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::string takes = kOneRowKernel + " takes 1 row a step";
  expect_error("soliton-chat", with_one_row({"-np", "2"}), kUsage, "--parallel", takes);
  expect_error("soliton-chat", with_one_row({"--lookup", "1"}), kUsage, "--lookup", takes);
  EXPECT_EQ(run("soliton-chat", with_one_row({"--temp", "0.5", "-np", "1"})).status, 0);
}

TEST_F(Cli, ChatRefusesMoreThanTheContextBeforeItReadsWeights) {
  const std::string flag = "--ctx-size";
  expect_error("soliton-chat", chat({"-c", "2049"}), kLimit, flag,
               "expected at most the model's 2048 tokens");
  expect_error("soliton-chat", chat({"-c", "2147483647"}), kLimit, flag, "got 2147483647");
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "Once upon a time ";
  const Arguments long_prompt{"-m", "tiny-stories", "-p", prompt, "-n", "1", "-k", kTinyKernel};
  Arguments arguments = long_prompt;
  arguments.insert(arguments.end(), {"-c", "16"});
  expect_error("soliton-chat", arguments, kLimit, flag, "of the prompt, 1 to generate), got 16");
  expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-n", "2147483647"}, kLimit,
               "--prompt and --predict", "expected at most the model's 2048 tokens");
}

TEST_F(Cli, ChatRefusesKernels) {
  const auto with = [](const std::string& kernel) {
    return Arguments{"-m", "tiny-stories", "-p", "x", "-n", "1", "-k", kernel};
  };
  expect_error("soliton-chat", with("absent.so"), kNotFound, "absent.so", "no such file");
  expect_error("soliton-chat", with(""), kUsage, "--kernel", "got \"\"");
  expect_error("soliton-chat", with("tiny-stories"), kNotFound, "tiny-stories", "got a directory");
  expect_error("soliton-chat", with("tiny-stories/config.json"), kBadFile, "tiny-stories/config.json",
               "expected a kernel library");
  expect_error("soliton-chat", with(kOtherKernel), kMismatch, "tiny-stories/config.json", "kernel of micro");
  expect_error("soliton-chat", chat({"--device", "5"}), kDevice, kTinyKernel, "got 5");
}

TEST_F(Cli, ChatRefusesACutKernel) {
  const std::string kernel = read_text(kTinyKernel);
  for (const size_t size : {size_t{20}, size_t{4096}, kernel.size() / 3, kernel.size() - 1}) {
    write_text(path() / "cut.so", kernel.substr(0, size));
    expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-k", "cut.so"}, kBadFile, "cut.so");
  }
}

TEST_F(Cli, ChatMakesAKernelWhereNoneFits) {
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a card, whose kernel takes long to make";
  const Arguments arguments{"-m", "tiny-stories", "-p", "Once", "-n", "2"};
  const std::string kernels = "SOLITON_KERNELS=kernels";
  const std::string cache = "XDG_CACHE_HOME=" + (path() / "cache").string();
  const std::string answer = run("soliton-chat", arguments).out;
  fs::create_directory(path() / "kernels");
  fs::copy(kOtherKernel, path() / "kernels" / "micro.so");
  write_text(path() / "kernels" / "damaged.so", "text");
  // What a compiler makes of it other tests see.
  const Outcome first =
      run("soliton-chat", arguments, {kernels, cache, copying_compiler(path(), kTinyKernel)});
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_TRUE(
      first.err.starts_with("Making the kernel for CPU emulation, some seconds: tiny-stories, kept in " +
                            (path() / "cache" / "soliton" / "kernels").string() + "\n"))
      << first.err;
  EXPECT_EQ(first.out, answer);
  const Outcome second = run("soliton-chat", arguments, {kernels, cache, "CXX=absent"});
  EXPECT_EQ(second.err.find("Making"), std::string::npos) << second.err;
  EXPECT_EQ(second.out, answer);
}

TEST_F(Cli, ChatSaysWhyItCannotMakeAKernel) {
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a card, and nvcc is asked for";
  const Arguments arguments{"-m", "tiny-stories", "-p", "x", "-n", "1"};
  expect_error("soliton-chat", arguments, kNotFound, "absent", "expected a folder of kernel libraries",
               {"SOLITON_KERNELS=absent"});
  EXPECT_EQ(run("soliton-chat", arguments, {"XDG_CACHE_HOME=", "HOME="}).status, 0);
  fs::create_directory(path() / "kernels");
  expect_error("soliton-chat", arguments, kNotFound, "CXX", "needed to make the kernel of tiny-stories",
               {"SOLITON_KERNELS=kernels", "CXX=absent"});
  expect_error("soliton-chat", arguments, kNotFound, "HOME", "expected an absolute path",
               {"SOLITON_KERNELS=kernels", "XDG_CACHE_HOME=", "HOME="});
  edit_config("\"max_position_embeddings\": 2048", "\"max_position_embeddings\": 8388608");
  expect_error("soliton-chat", arguments, kBadFile, "tiny-stories/config.json: max_position_embeddings",
               "got 8388608", {"SOLITON_KERNELS=kernels"});
}

TEST_F(Cli, ChatSkipsADamagedKernelBesideAFittingOne) {
  fs::create_directory(path() / "kernels");
  fs::copy(kTinyKernel, path() / "kernels" / "tiny.so");
  write_text(path() / "kernels" / "damaged.so", "text");
  const Outcome outcome =
      run("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-n", "1"}, {"SOLITON_KERNELS=kernels"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out, "");
}

TEST_F(Cli, ChatNamesTheDeviceThatACudaKernelLacks) {
  if (!fs::exists(kCudaKernel)) GTEST_SKIP() << "no CUDA kernels built";
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a card";
  expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-k", kCudaKernel}, kDevice, kCudaKernel,
               "device");
  fs::create_directory(path() / "kernels");
  fs::copy(kCudaKernel, path() / "kernels" / "tiny.so");
  // Without a card the emulation is another way, for which a kernel would be made.
  expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-n", "1"}, kNotFound, "CXX",
               "needed to make the kernel of tiny-stories", {"SOLITON_KERNELS=kernels", "CXX=absent"});
}

}  // namespace
}  // namespace soliton
