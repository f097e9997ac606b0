// See options.h. CLI11 splits the command line and writes the help; values are read here, by the same rules
// as YAML, because CLI11 takes 010 for 8 and lets a flag be the value of another flag.
#include "generator/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "generator/knobs.h"
#include "models/limits.h"
#include "models/model_config.h"
#include "models/strict_yaml.h"
#include "runtime/program/nearest.h"

namespace soliton {
namespace {

Error usage_error(const std::string& flag, const std::string& expected, const std::string& got) {
  return Error(ExitCode::kUsage, fmt::format("{}: expected {}, got {}", flag, expected, got));
}

/// A flag with a value, kept as the user wrote it.
class ValueFlag {
 public:
  /// `names` as CLI11 wants them: "-o,--output".
  ValueFlag(CLI::App& app, const std::string& names, const std::string& placeholder, const std::string& help)
      : option_(app.add_option(names, value_, help)) {
    // Given twice it would otherwise be refused in CLI11's words.
    option_->type_name(placeholder)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  std::string name() const { return option_->get_name(); }

  /// The value, or nothing if the flag was not given.
  std::optional<std::string> text() const {
    if (option_->count() == 0) return std::nullopt;
    if (option_->count() > 1)
      throw usage_error(name(), "to be given once", fmt::format("{} times", option_->count()));
    if (value_.empty()) throw usage_error(name(), "a value", "an empty one");
    if (value_.starts_with("--")) throw usage_error(name(), "a value", "the flag " + show_text(value_));
    return value_;
  }

  std::optional<std::filesystem::path> path() const {
    const std::optional<std::string> given = text();
    return given ? std::optional<std::filesystem::path>(*given) : std::nullopt;
  }

  std::optional<int> integer(const IntegerRange& range) const {
    const std::optional<std::string> given = text();
    if (!given) return std::nullopt;
    const std::optional<int64_t> value = read_integer(*given);
    if (!value) throw usage_error(name(), range.describe(), describe_non_integer(*given));
    if (!range.contains(*value)) throw usage_error(name(), range.describe(), *given);
    return static_cast<int>(*value);
  }

 private:
  std::string value_;
  CLI::Option* option_;
};

SyncMode read_sync(const ValueFlag& flag) {
  const std::string value = flag.text().value_or("self-validating");
  if (value == "self-validating") return SyncMode::kSelfValidating;
  if (value == "counter") return SyncMode::kCounter;
  throw usage_error(flag.name(), "one of self-validating, counter", show_text(value));
}

std::optional<CopyKind> read_copies(const ValueFlag& flag) {
  const std::optional<std::string> value = flag.text();
  if (!value) return std::nullopt;
  if (*value != "bulk" && *value != "lanes")
    throw usage_error(flag.name(), "one of bulk, lanes", show_text(*value));
  return *value == "bulk" ? CopyKind::kBulk : CopyKind::kLanes;
}

std::optional<int> read_kv_bits(const ValueFlag& flag) {
  const std::optional<std::string> value = flag.text();
  if (!value) return std::nullopt;
  const std::optional<int64_t> bits = read_integer(*value);
  if (!bits || std::find(kKvBits.begin(), kKvBits.end(), *bits) == kKvBits.end())
    throw usage_error(flag.name(), fmt::format("one of {}", fmt::join(kKvBits, ", ")), show_text(*value));
  return static_cast<int>(*bits);
}

/// "compute_80", as nvcc calls it: 80.
std::optional<int> read_ptx(const ValueFlag& flag) {
  constexpr std::string_view kPrefix = "compute_";
  const std::optional<std::string> text = flag.text();
  if (!text) return std::nullopt;
  const auto value = text->starts_with(kPrefix) ? read_integer(text->substr(kPrefix.size())) : std::nullopt;
  if (value && *value >= kOldestComputeCapability && *value < 1000) return static_cast<int>(*value);
  throw usage_error(flag.name(), fmt::format("an architecture from compute_{} on", kOldestComputeCapability),
                    show_text(*text));
}

/// "1,8": a kernel for one row, and one for eight beside it.
void read_rows(const ValueFlag& flag, PlanChoices& choices) {
  const std::string text = flag.text().value_or("1");
  const char* const end = text.data() + text.size();
  std::vector<int> rows;
  for (const char* at = text.data();; ++at) {
    int value = 0;
    const auto [behind, failure] = std::from_chars(at, end, value);
    const bool ascends = value > (rows.empty() ? 0 : rows.back());
    if (failure != std::errc{} || !ascends || (behind != end && *behind != ',')) {
      throw usage_error(flag.name(), "numbers of rows in ascending order, such as 1,8", show_text(text));
    }
    rows.push_back(value);
    if (behind == end) break;
    at = behind;
  }
  choices.rows = rows.front();
  choices.further_rows.assign(rows.begin() + 1, rows.end());
}

void parse_arguments(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& failure) {
    // Flags are the only things that can lack an argument: "--gpu: 1 required NAME missing".
    const std::string message = failure.what();
    throw usage_error(message.substr(0, message.find(':')), "a value", "nothing");
  } catch (const CLI::Success&) {  // --help, --version
    throw;
  } catch (const CLI::ParseError& failure) {
    throw Error(ExitCode::kUsage, fmt::format("command line: {}", failure.what()));
  }
}

// What CLI11 could not place. An unknown flag comes first: its value may be what looks like a second model.
void refuse_rest(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  for (const std::string& word : rest) {
    if (word.starts_with('-') && word != "--") {
      const std::string name = word.substr(0, word.find('='));
      const std::string nearest =
          nearest_word(name.substr(std::min(name.find_first_not_of('-'), name.size())), names);
      throw usage_error(show_text(word), "a flag that --help lists",
                        "an unknown one" + did_you_mean(nearest.empty() ? nearest : "--" + nearest));
    }
  }
  for (const std::string& word : rest) {
    if (word != "--") throw usage_error(show_text(word), "one MODEL", "a second one");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv, std::ostream& help) {
  CLI::App app("Generates one persistent kernel for a model and a GPU.", "soliton-gen");
  app.allow_extras();  // refused below, in our words
  ValueFlag model(app, "MODEL", "",
                  "Facts of the model's architecture: a YAML file, a Hugging Face folder, a GGUF file, or "
                  "the name of a model "
                  "there, whose config is downloaded unless the cache has it");
  Options options;
  const auto begin_group = [&](const std::string& title) { app.option_defaults()->group(title); };
  begin_group("Model");
  ValueFlag kv_bits(app, "--kv-bits", "8|16|32",
                    "Bits of a key or value in the cache instead of the model's: E4M3, f16, or two f16");
  ValueFlag revision(app, "--revision", "REVISION",
                     "Branch, tag or commit of a model that is named as on Hugging Face; else main");
  app.add_flag("--offline", options.hub.is_offline, "Download nothing, as with HF_HUB_OFFLINE=1");
  ValueFlag write_model(
      app, "--write-model", "FILE.yaml",
      "Write the facts of a Hugging Face folder or GGUF file as YAML; --gpu is not needed then");
  begin_group("Card");
  ValueFlag gpu(app, "--gpu", "NAME|FILE.yaml,...",
                "GPU to generate for, or several that one library serves");
  ValueFlag ptx(
      app, "--ptx", "compute_80",
      "Plan for PTX of this architecture, which drivers compile for newer cards, instead of the card's");
  ValueFlag copies(app, "--copies", "bulk|lanes",
                   "How pages come into shared memory, instead of the card's best: lanes' copies need no "
                   "compute capability 9.0");
  ValueFlag cards(app, "--cards", "N",
                  "Cards of the same kind that a launch spans, and shares the model among; else 1");
  ValueFlag gpus_dir(app, "--gpus-dir", "DIR", "Folder in which --gpu NAME is looked up");
  begin_group("Output");
  ValueFlag output(app, "-o,--output", "DIR", "Folder for the generated files; else generated/MODEL-GPU");
  ValueFlag rows(app, "--rows", "N,N",
                 "Rows of each kernel of the library: tokens of a prompt that a step takes; else 1");
  app.add_flag(
      "--compile", options.compile,
      "Compile what is written into kernel.so beside it, by nvcc or, for the emulation, the C++ compiler");
  ValueFlag svg(app, "--svg", "FILE.svg",
                "Draw the plan of the first kernel: phases by CTA and time, bytes, and the ring");
  app.add_flag("--dry-run", options.dry_run,
               "Print the plan and write nothing but what --dump and --svg name");
  ValueFlag dump(app, "--dump", "FOLDER", "Write the plan after each pass to this folder");
  begin_group("Plan, which is else the planner's");
  std::deque<ValueFlag> knobs;  // CLI11 keeps the addresses of their values
  for (const Knob& knob : kKnobs) knobs.emplace_back(app, knob.flag, "N", knob.help);
  ValueFlag max_splits(
      app, "--max-splits", "N",
      "CTAs at most that share the cache of a group of heads: where attention is split alike, kernels for "
      "other numbers of cards give equal bits");
  ValueFlag column_slices(app, "--column-slices", "N",
                          "CTAs that share the columns of a matrix's rows, where warpgroups multiply, "
                          "instead of the planner's choice");
  ValueFlag sync(app, "--sync", "self-validating|counter",
                 "How phases learn that their input has arrived; else self-validating");
  bool no_tuned = false;
  app.add_flag("--no-tuned", no_tuned, "Ignore overrides in the folder tuned/ beside the model");
  begin_group(app.get_help_ptr()->get_group());
  app.set_version_flag("--version", "soliton-gen " SOLITON_VERSION);

  try {
    parse_arguments(app, argc, argv);
  } catch (const CLI::CallForHelp&) {
    help << app.help();
    return std::nullopt;
  } catch (const CLI::CallForVersion& version) {
    help << version.what() << "\n";
    return std::nullopt;
  }
  refuse_rest(app);

  const std::filesystem::path gpu_folder = gpus_dir.path().value_or(default_gpus_dir());
  if (!model.text()) throw usage_error("MODEL", "the file or folder of a model", "nothing");
  options.write_model = write_model.path();
  if (options.write_model && options.write_model->extension() != ".yaml") {
    throw usage_error(write_model.name(), "a FILE.yaml", show_text(*write_model.text()));
  }
  // The file's name is the model's.
  if (options.write_model && model_name_of(options.write_model->stem()) != options.write_model->stem()) {
    throw usage_error(write_model.name(), "lower-case letters, digits, '.', '-' and '_' before .yaml",
                      show_text(*write_model.text()));
  }
  if (options.write_model && options.dry_run) {
    throw usage_error(write_model.name(), "no --dry-run, which writes nothing", "both");
  }
  if (options.compile && options.dry_run) {
    throw usage_error("--compile", "no --dry-run, which writes nothing", "both");
  }
  if (options.compile && !gpu.text()) throw usage_error("--compile", "a --gpu to compile for", "none");
  if (!gpu.text() && !options.write_model) {
    throw usage_error(
        "--gpu", fmt::format("one of {} or a FILE.yaml", fmt::join(list_gpus(gpu_folder), ", ")), "nothing");
  }
  options.model = *model.path();
  options.hub.revision = revision.text().value_or("");
  if (gpu.text()) {
    std::stringstream names(*gpu.text());
    for (std::string name; std::getline(names, name, ',');)
      options.gpu_specs.push_back(find_gpu_spec(name, gpu_folder));
    if (gpu.text()->ends_with(',')) find_gpu_spec("", gpu_folder);
    if (options.gpu_specs.empty()) options.gpu_specs.push_back(find_gpu_spec(*gpu.text(), gpu_folder));
  }
  options.output = output.path();
  for (size_t i = 0; i < kKnobs.size(); ++i) {
    kKnobs[i].choose(options.choices, knobs[i].integer(kKnobs[i].range));
  }
  read_rows(rows, options.choices);
  options.choices.max_splits = max_splits.integer({.min = 1, .max = kMaxSplits}).value_or(0);
  options.choices.column_slices = column_slices.integer({.min = 1, .max = kMostColumnSlices}).value_or(0);
  options.choices.num_cards = cards.integer({.min = 1, .max = kMaxLaunchCards}).value_or(1);
  options.kv_bits = read_kv_bits(kv_bits);
  options.ptx = read_ptx(ptx);
  options.choices.sync = read_sync(sync);
  options.choices.copies = read_copies(copies);
  options.tuned = !no_tuned;
  options.dump = dump.path();
  options.svg = svg.path();
  if (options.svg && options.svg->extension() != ".svg")
    throw usage_error(svg.name(), "a FILE.svg", show_text(*svg.text()));
  if (options.svg && !gpu.text()) throw usage_error(svg.name(), "a --gpu to plan for", "none");
  return options;
}

}  // namespace soliton
