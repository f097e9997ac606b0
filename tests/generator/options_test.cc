// The command line of soliton-gen: every flag, and every refusal by its exact line.
#include "generator/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "error_of.h"
#include "generator/knobs.h"

namespace soliton {
namespace {

const std::string kGpuFolder = std::string(SOLITON_SOURCE_DIR) + "/generator/gpus";

std::optional<Options> parse(std::vector<std::string> arguments, std::string* help = nullptr) {
  std::vector<const char*> argv = {"soliton-gen"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream stream;
  auto options = parse_options(static_cast<int>(argv.size()), argv.data(), stream);
  if (help) *help = stream.str();
  return options;
}

std::string parse_error(const std::vector<std::string>& arguments) {
  return error_of([&] { parse(arguments); });
}

/// A sound command line followed by `more`.
std::string error_after(std::vector<std::string> more) {
  more.insert(more.begin(), {"m.yaml", "--gpu", "h200"});
  return parse_error(more);
}

using Paths = std::vector<std::string>;
Paths specs(const Options& options) {
  Paths paths;
  for (const std::filesystem::path& path : options.gpu_specs) paths.push_back(path.string());
  return paths;
}

/// Up to what was given; follows the folder, so that a new GPU breaks no test.
const std::string kNotFound =
    fmt::format("2 --gpu: expected one of {} or a FILE.yaml, got ", fmt::join(list_gpus(kGpuFolder), ", "));

TEST(Options, DefaultsLeaveTheChoiceToThePlanner) {
  const Options options = parse({"models/m.yaml", "--gpu", "h200"}).value();
  EXPECT_EQ(options.model, "models/m.yaml");
  EXPECT_EQ(specs(options), Paths{kGpuFolder + "/h200.yaml"});
  EXPECT_FALSE(options.output || options.dump);
  for (const Knob& knob : kKnobs) EXPECT_FALSE(knob.chosen(options.choices)) << knob.name;
  EXPECT_EQ(options.choices.sync, SyncMode::kSelfValidating);
  EXPECT_TRUE(options.tuned);
  EXPECT_FALSE(options.dry_run);
}

TEST(Options, ReadsEveryFlag) {
  const Options options = parse({"--gpu=my/card.yaml",
                                 "-o",
                                 "out",
                                 "--ctas",
                                 "128",
                                 "--window=4",
                                 "--waiting-window=2",
                                 "--consumer-warps",
                                 "8",
                                 "--ring-slots",
                                 "12",
                                 "--min-pages-per-split",
                                 "3",
                                 "--prefetch-pages",
                                 "0",
                                 "--kv-bits",
                                 "32",
                                 "--ptx",
                                 "compute_80",
                                 "--sync",
                                 "counter",
                                 "--no-tuned",
                                 "--dry-run",
                                 "--dump",
                                 "d",
                                 "m.yaml"})
                              .value();
  EXPECT_EQ(options.model, "m.yaml");
  EXPECT_EQ(specs(options), Paths{"my/card.yaml"});
  EXPECT_EQ(options.output, "out");
  EXPECT_EQ(options.choices.num_ctas, 128);
  EXPECT_EQ(options.choices.window, 4);
  EXPECT_EQ(options.choices.waiting_window, 2);
  EXPECT_EQ(options.choices.consumer_warps, 8);
  EXPECT_EQ(options.choices.ring_slots, 12);
  EXPECT_EQ(options.choices.min_pages_per_split, 3);
  EXPECT_EQ(options.choices.prefetch_pages, 0);
  EXPECT_EQ(options.kv_bits, 32);
  EXPECT_EQ(options.ptx, 80);
  EXPECT_EQ(options.choices.sync, SyncMode::kCounter);
  EXPECT_EQ(options.choices.copies, std::nullopt);
  EXPECT_FALSE(options.tuned);
  EXPECT_TRUE(options.dry_run);
  EXPECT_EQ(options.dump, "d");
  EXPECT_EQ(parse({"--gpu", "cpu", "--", "m.yaml"}).value().model, "m.yaml");
}

TEST(Options, HelpListsEveryFlag) {
  std::string help;
  EXPECT_FALSE(parse({"--help"}, &help));
  for (const char* flag : {"MODEL", "--gpu", "--write-model", "-o", "--ctas", "--window", "--consumer-warps",
                           "--ring-slots", "--rows", "--kv-bits", "--ptx", "--sync", "--copies", "--no-tuned",
                           "--dry-run", "--dump", "--gpus-dir"}) {
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  }
  for (const Knob& knob : kKnobs) {
    EXPECT_NE(help.find(knob.flag), std::string::npos) << knob.name;
    EXPECT_NE(help.find(knob.help), std::string::npos) << knob.name;
  }
}

TEST(Options, CopiesAreInBulkOrByLanes) {
  EXPECT_EQ(parse({"m.yaml", "--gpu", "h200", "--copies", "bulk"}).value().choices.copies, CopyKind::kBulk);
  EXPECT_EQ(parse({"m.yaml", "--gpu", "h200", "--copies", "lanes"}).value().choices.copies, CopyKind::kLanes);
  EXPECT_EQ(error_after({"--copies", "both"}), "2 --copies: expected one of bulk, lanes, got both");
}

TEST(Options, RefusesUnknownFlags) {
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", "h200", "--fast"}),
            "2 --fast: expected a flag that --help lists, got an unknown one");
  EXPECT_EQ(parse_error({"--columns", "8", "m.yaml"}),
            "2 --columns: expected a flag that --help lists, got an unknown one");
  EXPECT_EQ(error_after({"--cta", "8"}),
            "2 --cta: expected a flag that --help lists, got an unknown one; did you mean --ctas?");
  EXPECT_EQ(error_after({"-x"}), "2 -x: expected a flag that --help lists, got an unknown one");
}

TEST(Options, RowsAreAListInAscendingOrder) {
  const auto rows = [](const char* text) {
    return parse({"m.yaml", "--gpu", "h200", "--rows", text}).value().choices;
  };
  EXPECT_EQ(parse({"m.yaml", "--gpu", "h200"}).value().choices.rows, 1);
  EXPECT_EQ(rows("8").rows, 8);
  EXPECT_TRUE(rows("8").further_rows.empty());
  EXPECT_EQ(rows("1,8").rows, 1);
  EXPECT_EQ(rows("1,8").further_rows, std::vector<int>{8});
  for (const char* text : {"0", "-1", "8,1", "8,8", "1,", ",1", "1,,8", "1;8", "eight", "99999999999"}) {
    EXPECT_EQ(error_after({"--rows", text}),
              fmt::format("2 --rows: expected numbers of rows in ascending order, such as 1,8, got {}", text))
        << text;
  }
}

TEST(Options, RefusesMissingAndSurplusArguments) {
  EXPECT_EQ(parse_error({}), "2 MODEL: expected the file or folder of a model, got nothing");
  EXPECT_EQ(parse_error({"m.yaml"}), kNotFound + "nothing");
  EXPECT_EQ(parse_error({"m.yaml", "--gpu"}), "2 --gpu: expected a value, got nothing");
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", ""}), "2 --gpu: expected a value, got an empty one");
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", "--dry-run"}),
            "2 --gpu: expected a value, got the flag --dry-run");
  EXPECT_EQ(error_after({"n.yaml"}), "2 n.yaml: expected one MODEL, got a second one");
  EXPECT_EQ(error_after({"--gpu", "cpu"}), "2 --gpu: expected to be given once, got 2 times");
  EXPECT_EQ(error_after({"-o", "a", "--output", "b"}), "2 --output: expected to be given once, got 2 times");
  EXPECT_EQ(error_after({"-o"}), "2 --output: expected a value, got nothing");
}

TEST(Options, WritesModelsWithoutACard) {
  const Options options = parse({"folder", "--write-model", "models/m.yaml"}).value();
  EXPECT_EQ(options.write_model, "models/m.yaml");
  EXPECT_TRUE(options.gpu_specs.empty());
  const Options both = parse({"folder", "--write-model", "m.yaml", "--gpu", "h200"}).value();
  EXPECT_EQ(specs(both), Paths{kGpuFolder + "/h200.yaml"});
  EXPECT_EQ(parse_error({"folder", "--write-model", "m.json"}),
            "2 --write-model: expected a FILE.yaml, got m.json");
  EXPECT_EQ(
      parse_error({"folder", "--write-model", "My.yaml"}),
      "2 --write-model: expected lower-case letters, digits, '.', '-' and '_' before .yaml, got My.yaml");
  EXPECT_EQ(parse_error({"folder", "--write-model", "m.yaml", "--dry-run"}),
            "2 --write-model: expected no --dry-run, which writes nothing, got both");
}

TEST(Options, RefusesNumbersThatAreNone) {
  EXPECT_EQ(error_after({"--ctas", "0"}), "2 --ctas: expected an integer from 1 to 1024, got 0");
  EXPECT_EQ(error_after({"--ctas", "-3"}), "2 --ctas: expected an integer from 1 to 1024, got -3");
  EXPECT_EQ(error_after({"--ctas", "010"}),
            "2 --ctas: expected an integer from 1 to 1024, got 010, which could be octal");
  EXPECT_EQ(error_after({"--window", "3.5"}),
            "2 --window: expected an integer from 1 to 64, got the floating-point number 3.5");
  EXPECT_EQ(error_after({"--consumer-warps", "31"}),
            "2 --consumer-warps: expected an integer from 1 to 29, got 31");
  EXPECT_EQ(error_after({"--ring-slots", "many"}),
            "2 --ring-slots: expected an integer from 2 to 64, got many");
}

TEST(Options, RefusesOtherWords) {
  EXPECT_EQ(error_after({"--kv-bits", "4"}), "2 --kv-bits: expected one of 8, 16, 32, got 4");
  for (const char* ptx : {"80", "sm_80", "compute_75", "compute_90a", "compute_-80", "compute_1000"}) {
    EXPECT_EQ(error_after({"--ptx", ptx}),
              fmt::format("2 --ptx: expected an architecture from compute_80 on, got {}", ptx));
  }
  EXPECT_EQ(error_after({"--sync", "atomic"}),
            "2 --sync: expected one of self-validating, counter, got atomic");
  EXPECT_EQ(error_after({"--dry-run=maybe"}), "2 command line: Could not convert: --dry-run = maybe");
}

// In the order given: the library is planned for the first.
TEST(Options, OneLibraryMayServeSeveralGpus) {
  const auto gpus = [](const char* text) { return specs(parse({"m.yaml", "--gpu", text}).value()); };
  EXPECT_EQ(gpus("h200,h100"), (Paths{kGpuFolder + "/h200.yaml", kGpuFolder + "/h100.yaml"}));
  EXPECT_EQ(gpus("h100,h200"), (Paths{kGpuFolder + "/h100.yaml", kGpuFolder + "/h200.yaml"}));
  EXPECT_EQ(gpus("my/card.yaml,h200"), (Paths{"my/card.yaml", kGpuFolder + "/h200.yaml"}));
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", "h200,gtx-1080"}), kNotFound + "gtx-1080");
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", "h200, h100"}), kNotFound + "\" h100\"; did you mean h100?");
  for (const char* text : {",", ",h200", "h200,,h100"}) {
    EXPECT_EQ(parse_error({"m.yaml", "--gpu", text}).substr(0, kNotFound.size()), kNotFound) << text;
  }
}

TEST(Options, FindsGpusByName) {
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", "gtx-1080"}), kNotFound + "gtx-1080");
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", "../gpus/h200"}), kNotFound + "../gpus/h200");
  const TemporaryFolder folder;
  folder.write("mine.yaml", "");
  folder.write("readme.txt", "");
  const std::string gpus_dir = folder.path().string();
  EXPECT_EQ(specs(parse({"m.yaml", "--gpu", "mine", "--gpus-dir", gpus_dir}).value()),
            Paths{gpus_dir + "/mine.yaml"});
  EXPECT_EQ(parse_error({"m.yaml", "--gpu", "h200", "--gpus-dir", gpus_dir}),
            "2 --gpu: expected one of mine or a FILE.yaml, got h200");
  EXPECT_EQ(
      parse_error({"m.yaml", "--gpu", "h200", "--gpus-dir", gpus_dir + "/none"}),
      "2 --gpus-dir: expected a folder of GPU specs, got " + gpus_dir + "/none (No such file or directory)");
}

}  // namespace
}  // namespace soliton
