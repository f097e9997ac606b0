// parse_tree_spec(): a table of workloads, of which those of scoreboards are written as nodes per level N and
// tokens per node C.
#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>

#include "models/error.h"
#include "models/strict_json.h"
#include "runtime/bench/tree_spec.h"
#include "runtime/bench/tree_thoughts.h"

namespace soliton {
namespace {

// Those of the tables of DeFT, FlashForge and FlashInfer, and of the public scoreboards.
constexpr std::string_view kAll =
    "few-shot:20,few-shot:30,few-shot:50,"
    "speculative:32,speculative:64,speculative:128,speculative:256,"
    "sorting,document,"
    "binary:2,binary:3,binary:4,binary:5,binary:6,degenerate:6,"
    "document-qa:2,document-qa:8,document-qa:32,"
    "fasttree-a,pat-a,fasttree-b,fasttree-c,"
    "parallel:1@2048,parallel:2@2048,parallel:4@2048,parallel:8@2048,parallel:16@2048,parallel:32@2048,"
    "parallel:4@128,parallel:4@32768";

constexpr std::string_view kFileEnding = ".json";
constexpr int kRequired = -1;  // there is no fallback

struct Argument {
  std::string_view name;
  int min = 0;
  int max = kMaxTreeTokens;
  int fallback = kRequired;
};

struct Workload {
  std::string_view name;
  std::vector<Argument> arguments;  // name:FIRST@SECOND
  std::function<TreeSpec(std::span<const int>)> make;
};

template <class... Args>
Error misuse(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ExitCode::kUsage, fmt::format("--tree: {}", fmt::format(format, std::forward<Args>(args)...)));
}

// ---- Shapes

struct Level {
  int num_nodes = 0;   // a multiple of the level's above
  int num_tokens = 0;  // of each
};

void add_level(TreeSpec& spec, int parent, int num_above, std::span<const Level> levels) {
  const Level& level = levels.front();
  for (int i = 0; i < level.num_nodes / num_above; ++i) {
    const auto node = static_cast<int>(spec.nodes.size());
    spec.nodes.push_back({.parent = parent, .num_tokens = level.num_tokens});
    if (levels.size() == 1) {
      spec.nodes.back().draft = {-1};
    } else {
      add_level(spec, node, level.num_nodes, levels.subspan(1));
    }
  }
}

TreeSpec tree_of(const std::vector<Level>& levels) {
  TreeSpec spec;
  add_level(spec, -1, 1, levels);
  join_only_children(spec);
  return spec;
}

/// One branch of `num_tokens` cached tokens.
TreeSpec drafted(int num_tokens, std::vector<int32_t> draft) {
  return {.nodes = {{.parent = -1, .num_tokens = num_tokens, .draft = std::move(draft)}}};
}

/// `depth` levels below the root.
TreeSpec binary(int depth, int num_tokens) {
  std::vector<Level> levels;
  for (int level = 0; level <= depth; ++level) levels.push_back({1 << level, num_tokens});
  return tree_of(levels);
}

/// As binary(), but only left nodes have children.
TreeSpec degenerate(int depth, int num_tokens) {
  TreeSpec spec;
  for (int level = 0; level <= depth; ++level) {
    spec.nodes.push_back({.parent = level - 1, .num_tokens = num_tokens});
  }
  spec.nodes.back().draft = {-1};
  for (int level = depth; level > 0; --level) {
    spec.nodes.push_back({.parent = level - 1, .num_tokens = num_tokens, .draft = {-1}});
  }
  return spec;
}

std::vector<int32_t> chain_of(int num_tokens) {
  std::vector<int32_t> parents(num_tokens);
  std::iota(parents.begin(), parents.end(), -1);
  return parents;
}

constexpr Argument branches(std::string_view name) {
  return {.name = name, .min = 1, .max = kMaxTreeRows};
}

const std::vector<Workload>& workloads() {
  using Numbers = std::span<const int>;
  static const std::vector<Workload> kWorkloads = {
      {"few-shot",  // halfway from 1 to 400 tokens
       {branches("B"), {.name = "OWN", .fallback = 200}},
       [](Numbers n) {
         return tree_of({{1, 4000}, {n[0], n[1]}});
       }},
      {"speculative",  // all rows follow the root directly
       {branches("T"), {.name = "ROOT", .fallback = 4000}},
       [](Numbers n) { return drafted(n[1], std::vector<int32_t>(n[0], -1)); }},
      {"sorting", {}, [](Numbers) { return typical_tree(sorting_thoughts()); }},
      {"document", {}, [](Numbers) { return typical_tree(document_thoughts()); }},
      {"binary",
       {{.name = "D", .min = 2, .max = 6}, {.name = "LEN", .fallback = 256}},
       [](Numbers n) { return binary(n[0], n[1]); }},
      {"degenerate",
       {{.name = "D", .min = 1, .max = 64}, {.name = "LEN", .fallback = 256}},
       [](Numbers n) { return degenerate(n[0], n[1]); }},
      {"document-qa",
       {branches("B"), {.name = "OWN", .fallback = 1000}},
       [](Numbers n) {
         return tree_of({{1, 120000}, {n[0], n[1]}});
       }},
      {"fasttree-a",
       {},
       [](Numbers) {
         return tree_of({{1, 4000}, {10, 400}});
       }},
      {"fasttree-b",
       {},
       [](Numbers) {
         return tree_of({{1, 8}, {2, 256}, {64, 32}});
       }},
      {"fasttree-c",
       {},
       [](Numbers) {
         return tree_of({{1, 1024}, {16, 256}, {64, 32}});
       }},
      {"pat-a",
       {},
       [](Numbers) {
         return tree_of({{1, 4096}, {10, 416}});
       }},
      {"parallel",  // 64 tokens into the answers
       {branches("N"), {.name = "PROMPT"}},
       [](Numbers n) {
         return tree_of({{1, n[1]}, {n[0], 64}});
       }},
      {"chain", {{.name = "N"}}, [](Numbers n) { return drafted(n[0], {-1}); }},
      {"prompt",  // N tokens of a prompt behind K others
       {branches("N"), {.name = "K"}},
       [](Numbers n) { return drafted(n[1], chain_of(n[0])); }},
      {"mixed",  // N tokens of a prompt beside B branches of 512
       {branches("N"), branches("B")},
       [](Numbers n) {
         TreeSpec spec = tree_of({{n[1], 512}});
         spec.nodes.push_back({.num_tokens = 1, .draft = chain_of(n[0])});
         spec.wanted_rows = n[1];
         return spec;
       }},
  };
  return kWorkloads;
}

// ---- The list

/// "few-shot:B[@OWN]"
std::string form_of(const Workload& workload) {
  std::string form(workload.name);
  char separator = ':';
  for (const Argument& argument : workload.arguments) {
    const std::string part = fmt::format("{}{}", separator, argument.name);
    form += argument.fallback == kRequired ? part : fmt::format("[{}]", part);
    separator = '@';
  }
  return form;
}

int read_number(std::string_view item, const Argument& argument, std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < argument.min ||
      number > argument.max) {
    throw misuse("{}: {}: expected an integer in [{}, {}], got {}", in_quotes(item), argument.name,
                 argument.min, argument.max, in_quotes(text));
  }
  return number;
}

/// The numbers of an item, `text` being what follows its name.
std::vector<int> read_numbers(std::string_view item, const Workload& workload, std::string_view text) {
  std::vector<int> numbers;
  char separator = ':';
  for (const Argument& argument : workload.arguments) {
    if (text.starts_with(separator)) {
      const bool last = &argument == &workload.arguments.back();
      const size_t end = last ? text.size() : std::min(text.find('@'), text.size());
      numbers.push_back(read_number(item, argument, text.substr(1, end - 1)));
      text.remove_prefix(end);
    } else if (argument.fallback != kRequired) {
      numbers.push_back(argument.fallback);
    } else {
      throw misuse("expected {}, got {}", form_of(workload), in_quotes(item));
    }
    separator = '@';
  }
  if (!text.empty()) throw misuse("expected {}, got {}", form_of(workload), in_quotes(item));
  return numbers;
}

/// What is too much about a tree; empty if nothing is.
std::string excess(const TreeSpec& spec) {
  if (num_rows(spec) > kMaxTreeRows) {
    return fmt::format("expected at most {} rows, got {}", kMaxTreeRows, num_rows(spec));
  }
  if (unique_tokens(spec) > kMaxTreeTokens) {
    return fmt::format("expected at most {} tokens, got {}", kMaxTreeTokens, unique_tokens(spec));
  }
  return "";
}

TreeSpec make_workload(std::string_view item) {
  const std::string_view name = item.substr(0, item.find(':'));
  const auto workload = std::find_if(workloads().begin(), workloads().end(),
                                     [&](const Workload& candidate) { return candidate.name == name; });
  if (workload == workloads().end()) {
    throw misuse("expected a list of {}, got {}", tree_spec_grammar(), in_quotes(item));
  }
  TreeSpec spec = workload->make(read_numbers(item, *workload, item.substr(name.size())));
  if (const std::string message = excess(spec); !message.empty()) {
    throw misuse("{}: {}", in_quotes(item), message);
  }
  return spec;
}

// ---- Files

/// Refuses a parent that is no node above the one before, nor that one itself.
void expect_preorder(const TreeSpec& spec, int parent, const JsonView& view) {
  const int before = static_cast<int>(spec.nodes.size()) - 1;
  int candidate = before;
  while (candidate >= 0 && candidate != parent) candidate = spec.nodes[candidate].parent;
  if (candidate != parent) {
    throw view.error("expected {}, a node above that, or -1 (depth-first preorder), got {}", before, parent);
  }
}

TreeSpec read_tree(const std::string& path) {
  const nlohmann::json document = read_json(path);
  const JsonView root(document, path);
  const JsonView parents = root["parents"];
  const JsonView tokens = root["tokens"];
  for (const auto& [key, value] : root.object().items()) {
    if (key != "parents" && key != "tokens") {
      throw root.error("expected parents and tokens, got {}", in_quotes(key));
    }
  }
  if (parents.array_size() < 1 || parents.array_size() > kMaxTreeNodes) {
    throw parents.error("expected 1 to {} nodes, got {}", kMaxTreeNodes, parents.array_size());
  }
  if (tokens.array_size() != parents.array_size()) {
    throw tokens.error("expected as many as parents, {}, got {}", parents.array_size(), tokens.array_size());
  }
  TreeSpec spec;
  for (size_t i = 0; i < parents.array_size(); ++i) {
    const auto parent = static_cast<int>(parents[i].integer(-1, static_cast<int64_t>(i) - 1));
    expect_preorder(spec, parent, parents[i]);
    if (parent >= 0) spec.nodes[parent].draft.clear();
    spec.nodes.push_back({.parent = parent,
                          .num_tokens = static_cast<int>(tokens[i].integer(0, kMaxTreeTokens)),
                          .draft = {-1}});
  }
  if (const std::string message = excess(spec); !message.empty()) throw root.error("{}", message);
  join_only_children(spec);
  return spec;
}

}  // namespace

std::vector<TreeSpec> parse_tree_spec(std::string_view list) {
  std::vector<TreeSpec> specs;
  for (;;) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string item(list.substr(0, end));
    if (item == "all") {
      std::vector<TreeSpec> all = parse_tree_spec(kAll);
      std::move(all.begin(), all.end(), std::back_inserter(specs));
    } else {
      specs.push_back(item.ends_with(kFileEnding) ? read_tree(item) : make_workload(item));
      specs.back().name = item;
    }
    if (end == list.size()) return specs;
    list.remove_prefix(end + 1);
  }
}

std::string tree_spec_grammar() {
  std::string forms = "all";
  for (const Workload& workload : workloads()) forms += ", " + form_of(workload);
  return forms + ", PATH.json";
}

}  // namespace soliton
