// soliton-gen, and what all programs have in common.
#include "cli/cli_fixture.h"

namespace soliton {
namespace {

/// The first line of a generated file, which says what it comes from, and the rest.
std::string header(const fs::path& file) {
  const std::string text = read_text(file);
  return text.substr(0, text.find('\n'));
}
std::string without_header(const fs::path& file) {
  return read_text(file).substr(header(file).size());
}

TEST_F(Cli, GenRefusesFlags) {
  expect_error("soliton-gen", {}, kUsage, "MODEL", "got nothing");
  expect_error("soliton-gen", {kTinyModel}, kUsage, "--gpu", "got nothing");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "bogus"}, kUsage, "--gpu", "got bogus");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "--bogus"}, kUsage, "--bogus", "expected a flag");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "--ctas", "0"}, kUsage, "--ctas", "got 0");
}

TEST_F(Cli, GenRefusesFiles) {
  expect_error("soliton-gen", {"absent.yaml", "--gpu", "cpu"}, kNotFound, "absent.yaml", "No such file");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "absent.yaml"}, kNotFound, "absent.yaml", "No such file");
  for (const std::string& text :
       {std::string("hidden: [1"), std::string(), kLfsPointer, std::string("\x00\xff", 2)}) {
    write_text(path() / "bad.yaml", text);
    expect_error("soliton-gen", {"bad.yaml", "--gpu", "cpu"}, kBadFile, "bad.yaml", "expected");
  }
  std::string heads = read_text(kTinyModel);
  heads.replace(heads.find("num_kv_heads: 2"), 15, "num_kv_heads: 3");
  write_text(path() / "tiny-stories.yaml", heads);
  expect_error("soliton-gen", {"tiny-stories.yaml", "--gpu", "cpu"}, kBadFile, "tiny-stories.yaml", "got 3");
}

TEST_F(Cli, GenSaysWhereAModelHasNoRoom) {
  const std::string models = std::string(SOLITON_SOURCE_DIR) + "/models/";
  const auto warning = [&](const std::string& model, const std::string& gpu) {
    const Outcome outcome = run("soliton-gen", {models + model + ".yaml", "--gpu", gpu, "--dry-run"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.err;
  };
  EXPECT_EQ(warning("llama-3.1-70b", "h200"), "");
  EXPECT_EQ(
      warning("llama-3.1-70b", "h200,h100"),
      "soliton-gen: warning: llama-3.1-70b: expected 141.1 GB of device memory for weights and 64 tokens of "
      "context, got 85.5 GB of h100\n");
}

TEST_F(Cli, GenReadsHuggingFaceFolders) {
  const auto line = [&](const Arguments& arguments) {
    const Outcome outcome = run("soliton-gen", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  };
  EXPECT_TRUE(line({"tiny-stories", "--gpu", "cpu", "-o", "a"}).starts_with("a: 4 CTAs"));
  line({kTinyModel, "--gpu", "cpu", "--no-tuned", "-o", "b"});
  EXPECT_EQ(read_text(path() / "a" / "plan.txt"), read_text(path() / "b" / "plan.txt"));
  for (const char* name : {"kernel.cu", "plan.h"}) {
    EXPECT_EQ(without_header(path() / "a" / name), without_header(path() / "b" / name)) << name;
  }
  EXPECT_EQ(header(path() / "a" / "plan.h"),
            "// Generated from tiny-stories for cpu. Do not edit; run: soliton-gen tiny-stories --gpu cpu");
  EXPECT_EQ(header(path() / "b" / "plan.h"),
            "// Generated from models/tiny-stories.yaml for cpu. Do not edit; run: soliton-gen "
            "models/tiny-stories.yaml --gpu cpu");
  // The folder's name is the model's, and the default place is named after it.
  fs::rename(model(), path() / "Tiny Stories");
  EXPECT_TRUE(line({"Tiny Stories/", "--gpu", "cpu"}).starts_with("generated/tiny-stories-cpu: "));
  EXPECT_EQ(without_header(path() / "generated" / "tiny-stories-cpu" / "plan.h"),
            without_header(path() / "b" / "plan.h"));
  EXPECT_TRUE(header(path() / "generated" / "tiny-stories-cpu" / "plan.h")
                  .starts_with("// Generated from \"Tiny Stories\" for cpu."));
}

TEST_F(Cli, GenTakesTheNameFromTheFileNotItsPath) {
  fs::copy(kTinyModel, path() / "mine.yaml");
  const Outcome outcome = run("soliton-gen", {"mine.yaml", "--gpu", "cpu"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("generated/tiny-stories-cpu: ")) << outcome.out;
  EXPECT_TRUE(header(path() / "generated" / "tiny-stories-cpu" / "kernel.cu")
                  .ends_with("run: soliton-gen mine.yaml --gpu cpu"));
}

TEST_F(Cli, GenCompiles) {
  const auto compile = [&](const std::string& compiler) {
    write_text(path() / "g++",
               "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'g++ 1.2.3'; exit; fi\n" + compiler);
    fs::permissions(path() / "g++", fs::perms::owner_all);
    return run("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "out", "--compile"},
               {"CXX=" + (path() / "g++").string()});
  };
  const Outcome made = compile("for last; do :; done; echo made > $last");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_TRUE(made.out.ends_with("\nout/kernel.so: compiled by g++-1.2.3\n")) << made.out;
  EXPECT_EQ(read_text(path() / "out" / "kernel.so"), "made\n");
  const Outcome failed =
      compile("for last; do :; done; echo half > $last; echo 'x.h:1: error: no' >&2; exit 1");
  EXPECT_EQ(failed.status, kMakeFailed);
  EXPECT_NE(failed.err.find("out/compiler.log: expected a kernel from"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("got status 1: x.h:1: error: no"), std::string::npos) << failed.err;
  EXPECT_EQ(read_text(path() / "out" / "kernel.so"), "made\n");  // a whole one, or none
  EXPECT_EQ(std::distance(fs::directory_iterator(path() / "out"), fs::directory_iterator()), 5);
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "--compile", "--dry-run"}, kUsage, "--compile",
               "no --dry-run");
  expect_error("soliton-gen", {"tiny-stories", "--write-model", "m.yaml", "--compile"}, kUsage, "--compile",
               "a --gpu");
}

TEST_F(Cli, GenWritesTheFactsOfFolders) {
  const Outcome outcome = run("soliton-gen", {"tiny-stories", "--write-model", "new/tiny-stories.yaml"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "new/tiny-stories.yaml: facts of tiny-stories/config.json\n");
  const std::string text = read_text(path() / "new" / "tiny-stories.yaml");
  EXPECT_TRUE(text.starts_with("# Source: tiny-stories/config.json.\nname: tiny-stories\nhidden: 256\n"))
      << text;
  for (const Arguments& arguments :
       {Arguments{"new/tiny-stories.yaml", "--gpu", "cpu", "-o", "a"},
        Arguments{"tiny-stories", "--gpu", "cpu", "-o", "b", "--write-model", "tiny-stories.yaml"}}) {
    EXPECT_EQ(run("soliton-gen", arguments).status, 0);
  }
  EXPECT_EQ(without_header(path() / "a" / "plan.h"), without_header(path() / "b" / "plan.h"));
  EXPECT_EQ(read_text(path() / "tiny-stories.yaml"), text);
}

TEST_F(Cli, GenTakesFoldersOfIntegers) {
  const std::string integers =
      R"("quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": false},)";
  edit_config("\"hidden_act\"", integers + "\"hidden_act\"");
  const Outcome outcome =
      run("soliton-gen", {"tiny-stories", "--gpu", "cpu", "-o", "a", "--write-model", "int4.yaml"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(read_text(path() / "int4.yaml").find("quantization:\n  bits: 4\n  group: 64\n"),
            std::string::npos);
  EXPECT_EQ(run("soliton-gen", {"int4.yaml", "--gpu", "cpu", "-o", "b"}).status, 0);
  EXPECT_EQ(without_header(path() / "a" / "plan.h"), without_header(path() / "b" / "plan.h"));
  EXPECT_NE(read_text(path() / "a" / "plan.h").find("WeightType::kInt4"), std::string::npos);
  EXPECT_EQ(run("soliton-gen", {"int4.yaml", "--gpu", "cpu", "-o", "c", "--rows", "1,8,16,32"}).status, 0);
  expect_error("soliton-gen", {"int4.yaml", "--gpu", "cpu", "-o", "d", "--rows", "64", "--copies", "lanes"},
               kMismatch, "--rows", "expected at most 32 for a model of integers");
  edit_config("\"desc_act\": false", "\"desc_act\": true");
  EXPECT_EQ(run("soliton-gen", {"tiny-stories", "--gpu", "cpu", "-o", "e", "--rows", "1,8"}).status, 0);
  EXPECT_NE(read_text(path() / "e" / "plan.h").find(".ordered = true"), std::string::npos);
}

TEST_F(Cli, GenTakesTheBitsOfTheCache) {
  EXPECT_EQ(run("soliton-gen",
                {"tiny-stories", "--gpu", "cpu", "-o", "a", "--kv-bits", "32", "--write-model", "wide.yaml"})
                .status,
            0);
  EXPECT_NE(read_text(path() / "wide.yaml").find("kv_bits: 32\n"), std::string::npos);
  EXPECT_EQ(run("soliton-gen", {"wide.yaml", "--gpu", "cpu", "-o", "b"}).status, 0);
  EXPECT_EQ(without_header(path() / "a" / "plan.h"), without_header(path() / "b" / "plan.h"));
  EXPECT_NE(read_text(path() / "a" / "plan.h").find(".kv_parts = 2"), std::string::npos);
}

TEST_F(Cli, GenRefusesFolders) {
  expect_error("soliton-gen", {kTinyModel, "--write-model", "x.yaml"}, kUsage, "--write-model",
               "expected a Hugging Face folder");
  edit_config("\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu2\"");
  expect_error("soliton-gen", {"tiny-stories", "--gpu", "cpu"}, kMismatch,
               "tiny-stories/config.json: hidden_act", "got \"relu2\"");
  edit_config("\"hidden_act\": \"relu2\"", "\"hidden_act\": \"silu\"");
  edit_config("\"intermediate_size\": 768", "\"intermediate_size\": 524288");
  expect_error("soliton-gen", {"tiny-stories", "--gpu", "cpu"}, kBadFile,
               "tiny-stories/config.json: intermediate_size", "from 64 to 262144, got 524288");
  write_text(model() / "config.json", "{");
  expect_error("soliton-gen", {"tiny-stories", "--gpu", "cpu"}, kBadFile, "tiny-stories/config.json",
               "not valid JSON");
  fs::remove(model() / "config.json");
  expect_error("soliton-gen", {"tiny-stories", "--write-model", "x.yaml"}, kNotFound,
               "tiny-stories/config.json", "no such file");
}

TEST_F(Cli, GenFollowsOverridesUnlessToldOtherwise) {
  fs::copy(kTinyModel, path() / "tiny-stories.yaml");
  const Arguments plain{"tiny-stories.yaml", "--gpu", "cpu", "-o", "out"};
  const auto line = [&](const Arguments& more) {
    Arguments arguments = plain;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run("soliton-gen", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  const std::string untuned = line({});
  EXPECT_NE(untuned.find(" 4 pages in flight"), std::string::npos);
  EXPECT_EQ(untuned.find("tuned"), std::string::npos);
  const std::string plan = read_text(path() / "out" / "plan.txt");

  fs::create_directory(path() / "tuned");
  write_text(path() / "tuned" / "tiny-stories-h200.yaml", "window: 5\n");
  EXPECT_EQ(line({}), untuned);
  write_text(path() / "tuned" / "tiny-stories-cpu.yaml", "window: 6\n");
  const std::string tuned = line({});
  EXPECT_NE(tuned.find(" 6 pages in flight"), std::string::npos) << tuned;
  EXPECT_TRUE(tuned.ends_with("; tuned: window 6 from tuned/tiny-stories-cpu.yaml\n")) << tuned;
  EXPECT_NE(read_text(path() / "out" / "plan.txt").find("tuned: window 6 from"), std::string::npos);
  EXPECT_NE(line({"--window", "2"}).find(" 2 pages in flight"), std::string::npos);
  EXPECT_EQ(line({"--window", "2"}).find("tuned"), std::string::npos);
  EXPECT_EQ(line({"--no-tuned"}), untuned);
  EXPECT_EQ(read_text(path() / "out" / "plan.txt"), plan);

  write_text(path() / "tuned" / "tiny-stories-cpu.yaml", "windows: 4\n");
  expect_error("soliton-gen", plain, kBadFile, "tuned/tiny-stories-cpu.yaml:1: windows", "an unknown key");
  write_text(path() / "tuned" / "tiny-stories-cpu.yaml", "consumer_warps: 3\n");
  expect_error("soliton-gen", plain, kMismatch, "--consumer-warps", "from tuned/tiny-stories-cpu.yaml");
}

TEST_F(Cli, GenRefusesFoldersItCannotWrite) {
  write_text(path() / "file", "");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "file"}, kNotFound, "file",
               "a file where the folder");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "file/below"}, kNotFound, "file/below");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "/proc/absent/x"}, kNotFound,
               "/proc/absent/x");
}

TEST_F(Cli, GenWritesNothingOfARefusedPlan) {
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "out", "--ctas", "1000"}, kMismatch,
               "tiny-stories on cpu", "got 1000");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "out", "--consumer-warps", "3"}, kMismatch,
               "--consumer-warps", "got 3");
}

TEST_F(Cli, GenDrawsThePlan) {
  const Arguments arguments{kTinyModel, "--gpu", "h200", "--dry-run", "--svg", "new/plan.svg"};
  EXPECT_EQ(run("soliton-gen", arguments).status, 0);
  const std::string picture = read_text(path() / "new" / "plan.svg");
  EXPECT_TRUE(picture.ends_with("</svg>\n"));
  EXPECT_NE(picture.find(">tiny-stories on h200: a token in "), std::string::npos);
  expect_error("soliton-gen", {kTinyModel, "--gpu", "h200", "--svg", "plan.png"}, kUsage, "--svg",
               "got plan.png");
  write_text(path() / "file", "");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "h200", "--svg", "file/plan.svg"}, kNotFound, "file",
               "a file where");
  EXPECT_FALSE(fs::exists(path() / "generated"));
}

TEST_F(Cli, GenWritesNothingOnADryRun) {
  const std::set<std::string> before = folder_.files();
  for (const Arguments& output : {Arguments{}, Arguments{"-o", "out"}}) {
    Arguments arguments{kTinyModel, "--gpu", "cpu", "--dry-run"};
    arguments.insert(arguments.end(), output.begin(), output.end());
    const Outcome outcome = run("soliton-gen", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out, "");
    EXPECT_EQ(folder_.files(), before);
  }
}

TEST_F(Cli, HelpGoesToStdout) {
  for (const char* program :
       {"soliton-chat", "soliton-bench", "soliton-gen", "soliton-doctor", "soliton-server"}) {
    const Outcome outcome = run(program, {"--help"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("--help"), std::string::npos);
  }
}

}  // namespace
}  // namespace soliton
