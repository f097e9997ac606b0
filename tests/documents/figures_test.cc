// Every figure of a table of measurements is that of the JSON file named in its row, or right before the table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "documents/document.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path kSourceRoot = SOLITON_SOURCE_DIR;
const fs::path kResults = "runtime/bench/results";

/// What a figure is taken from.
struct Source {
  Json file;   // the row's, with what holds for the whole run
  Json entry;  // in it: a test, a tree or a launch
  Json peer;   // the same test in the row's file of a peer, or its "one-card file", if there is one
};

double number(const Json& json, const char* key) {
  return json.at(key).get<double>();
}

/// The test of a run by its context: "tg128 @ d1024".
Json find_test(const Json& file, const std::string& name) {
  for (const Json& row : file.at("rows")) {
    if (row.at("test").get<std::string>().ends_with(name)) return row;
  }
  throw std::runtime_error("no test " + name);
}

double sampled_us(const Source& source) {
  return number(find_test(source.file, ", sampled"), "token_us_p50");
}

double ratio(const Source& source) {
  return number(source.entry, "tokens_per_s") / number(source.peer, "tokens_per_s");
}

double metric(const Source& source, const char* unit) {
  return number(source.entry.at("metrics"),
                fmt::format("{}.avg.pct_of_peak_sustained_elapsed", unit).c_str());
}

using Figure = std::function<double(const Source&)>;

/// A column by the key in the entry, times a factor.
Figure of_entry(const char* key, double factor = 1) {
  return [=](const Source& source) { return factor * number(source.entry, key); };
}
Figure of_peer(const char* key) {
  return [=](const Source& source) { return number(source.peer, key); };
}
Figure of_step(const char* key) {
  return
      [=](const Source& source) { return number(source.entry, "step_us_p50") / number(source.entry, key); };
}
/// Of a calibrated kernel.
Figure of_costs(const char* key, double factor = 1) {
  return [=](const Source& source) { return factor * number(source.entry.at("costs"), key); };
}
/// Of requests to a server.
Figure of_times(const char* key, const char* share) {
  return [=](const Source& source) { return number(source.entry.at(key), share); };
}
Figure of_request(const char* key) {
  return [=](const Source& source) { return number(source.entry, key) / number(source.entry, "requests"); };
}
/// How many times that of one client.
Figure of_one_client(const Figure& figure) {
  return [=](const Source& source) {
    for (const Json& point : source.file.at("points")) {
      if (point.at("clients") == 1) return figure(source) / figure({source.file, point, {}});
    }
    throw std::runtime_error("no point of one client");
  };
}
/// Of runs with a draft model, the median.
Figure of_runs(const char* key) {
  return [=](const Source& source) {
    auto runs = source.entry.at(key).get<std::vector<double>>();
    std::sort(runs.begin(), runs.end());
    return runs.at(runs.size() / 2);
  };
}
/// The fastest of FlashInfer's ways over Soliton.
double best_peer_ratio(const Source& source) {
  double best = 0;
  for (const char* key : {"cascade_us", "flat_us", "batch_attention_us"}) {
    if (!source.entry.contains(key)) continue;
    best = best == 0 ? number(source.entry, key) : std::min(best, number(source.entry, key));
  }
  return best / number(source.entry, "soliton_us");
}
/// Of FlashInfer's ways with a variant, the fastest, by its name.
std::string fastest_way(const Json& entry) {
  std::string fastest;
  for (const auto& [way, result] : entry.at("ways").items()) {
    if (!result.contains("us")) continue;
    if (fastest.empty() || number(result, "us") < number(entry.at("ways").at(fastest), "us")) fastest = way;
  }
  return fastest;
}
double fastest_us(const Source& source) {
  return number(source.entry.at("ways").at(fastest_way(source.entry)), "us");
}
Figure of_unit(const char* unit) {
  return [=](const Source& source) { return metric(source, unit); };
}

const std::map<std::string, Figure> kFigures = {
    {"S, TB/s",
     [](const Source& source) { return 1e-12 * number(source.file, "read_bandwidth_bytes_per_s"); }},
    {"us per token", of_entry("token_us_p50")},
    {"cache, GB", [](const Source& source) { return 1e-9 * number(source.file, "cache_bytes"); }},
    {"p99, us", of_entry("token_us_p99")},
    {"tokens/s", of_entry("tokens_per_s")},
    {"of S, %", of_entry("of_read_bandwidth", 100)},
    {"tokens",
     [](const Source& source) { return std::stod(source.entry.at("test").get<std::string>().substr(2)); }},
    {"PyTorch, us", of_peer("token_us_p50")},
    {"PyTorch, tokens/s", of_peer("tokens_per_s")},
    {"vLLM, us", of_peer("token_us_p50")},
    {"vLLM, tokens/s", of_peer("tokens_per_s")},
    {"llama.cpp, us", of_peer("token_us_p50")},
    {"llama.cpp, tokens/s", of_peer("tokens_per_s")},
    {"PyTorch of S, %",
     [](const Source& source) {
       return 100 * number(source.peer, "bytes_per_s") / number(source.file, "read_bandwidth_bytes_per_s");
     }},
    {"ratio", ratio},
    {"one card, us", of_peer("token_us_p50")},
    {"times one card", ratio},
    {"sampled us", sampled_us},
    {"difference us",
     [](const Source& source) { return sampled_us(source) - number(source.entry, "token_us_p50"); }},
    {"rows", of_entry("rows")},
    {"unique tokens", of_entry("unique_tokens")},
    {"step us", of_entry("step_us_p50")},
    {"apart us", of_entry("unshared_us_p50")},
    {"predicted us", of_entry("predicted_us")},
    {"error, %",
     [](const Source& source) {
       return 100 * (number(source.entry, "predicted_us") / number(source.entry, "step_us_p50") - 1);
     }},
    {"item us", of_costs("item_us")},
    {"token by 16 queries us", of_costs("mma_us")},
    {"read, TB/s", of_costs("read_bytes_per_s", 1e-12)},
    {"exchange, TB/s", of_costs("exchange_bytes_per_s", 1e-12)},
    {"beside attention us", of_entry("other_us")},
    {"mean error, %", of_entry("error_mean", 100)},
    {"worst error, %", of_entry("error_worst", 100)},
    {"worst before, %", of_entry("error_worst_before", 100)},
    {"steps before / after", of_entry("before_over_after")},
    {"step / floor", of_step("floor_us")},
    {"step / one row", of_step("one_row_us_p50")},
    {"floor us", of_entry("floor_us")},
    {"Soliton us", of_entry("soliton_us")},
    {"cascade us", of_entry("cascade_us")},
    {"flat us", of_entry("flat_us")},
    {"BatchAttention us", of_entry("batch_attention_us")},
    {"best / Soliton", best_peer_ratio},
    {"FlashInfer us", fastest_us},
    {"by the cache us",
     [](const Source& source) {
       return fastest_us(source) -
              number(source.entry.at("ways").at(fastest_way(source.entry)), "without_cache_us");
     }},
    {"FlashInfer / Soliton",
     [](const Source& source) { return fastest_us(source) / number(source.entry, "soliton_us"); }},
    {"plain tokens/s", of_runs("plain_tokens_per_s")},
    {"tokens/s with drafts", of_runs("tokens_per_s")},
    {"of plain", of_entry("of_plain")},
    {"first run of plain",
     [](const Source& source) {
       return source.entry.at("tokens_per_s").at(0).get<double>() /
              source.entry.at("plain_tokens_per_s").at(0).get<double>();
     }},
    {"tokens a step", of_runs("tokens_per_step")},
    {"equal to one by one", of_entry("equal_one_by_one")},
    {"equal to plain", of_entry("equal_plain")},
    {"first token, ms", of_times("first_token_ms", "p50")},
    {"first token p99, ms", of_times("first_token_ms", "p99")},
    {"gap, ms", of_times("gap_ms", "p50")},
    {"gap p99, ms", of_times("gap_ms", "p99")},
    {"ms per token", of_entry("token_ms_mean")},
    {"gap / one", of_one_client(of_times("gap_ms", "p50"))},
    {"ms / one", of_one_client(of_entry("token_ms_mean"))},
    {"its tokens", of_entry("tokens")},
    {"schemas", of_entry("schemas")},
    {"compiled", of_entry("compiled")},
    {"invalid texts", of_entry("invalid")},
    {"of these taken", of_entry("invalid_taken")},
    {"valid texts", of_entry("valid")},
    {"of these written", of_entry("written")},
    {"texts within 1 ms, %", of_entry("texts_within_1_ms_percent")},
    {"slowest mask, ms", of_times("slowest_mask_of_a_text_ms", "p50")},
    {"slowest mask p90, ms", of_times("slowest_mask_of_a_text_ms", "p90")},
    {"slowest mask p99, ms", of_times("slowest_mask_of_a_text_ms", "p99")},
    {"mask, ms", of_times("mask_ms", "p50")},
    {"mask p99, ms", of_times("mask_ms", "p99")},
    {"failures", of_entry("failures")},
    {"requests", of_entry("requests")},
    {"s", of_entry("seconds")},
    {"prompt tokens", of_request("prompt_tokens")},
    {"cached tokens", of_request("cached_tokens")},
    {"device memory", of_unit("dram__throughput")},
    {"L2", of_unit("lts__throughput")},
    {"shared memory", of_unit("l1tex__data_pipe_lsu_wavefronts_mem_shared")},
    {"issue slots", of_unit("sm__inst_issued")},
    {"ALU", of_unit("sm__inst_executed_pipe_alu")},
    {"tensor cores", of_unit("sm__pipe_tensor_cycles_active")},
};

/// Columns that say what is measured.
const std::set<std::string> kLabels = {
    "model",         "weights",       "context", "tree",         "kernel",     "launch",
    "file",          "attention",     "prompt",  "PyTorch file", "vLLM file",  "llama.cpp file",
    "one-card file", "card",          "clients", "turn",         "drafted by", "suite",
    "vocabulary",    "kernel's rows", "variant", "cache",        "way"};

std::vector<std::string> split(const std::string& cell) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = cell.find(" / ", begin)) != std::string::npos; begin = end + 3) {
    parts.push_back(cell.substr(begin, end - begin));
  }
  parts.push_back(cell.substr(begin));
  return parts;
}

/// The number as written: with as many decimals as `text` has.
std::string as_written(double value, const std::string& text) {
  const size_t point = text.find('.');
  return fmt::format("{:.{}f}", value, point == std::string::npos ? 0 : text.size() - point - 1);
}

/// One row of a table and the runs that it quotes.
class RowOfFigures {
 public:
  RowOfFigures(const Document& document, const Table& table, size_t row)
      : document_(document), table_(table), cells_(table.rows[row]) {}

  /// The file that the row names; "" if none.
  std::string file(const std::string& column) const {
    const std::string text = has(column) ? cell(column) : column == "file" ? table_.caption : "";
    for (const std::string& link : links_in(text)) {
      if (link.ends_with(".json")) return (document_.folder() / link).lexically_normal();
    }
    return "";
  }

  std::string peer_file() const {
    for (const char* column : {"PyTorch file", "vLLM file", "llama.cpp file"}) {
      if (const std::string peer = file(column); !peer.empty()) return peer;
    }
    return file("one-card file");
  }

  /// Compares all of its figures. Returns their number.
  int compare() const {
    const std::vector<Source> sources = find_sources();
    int num_figures = 0;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const std::string& column = table_.columns[i];
      if (kLabels.contains(column) || cells_[i] == "-") continue;
      const auto figure = kFigures.find(column);
      if (figure == kFigures.end()) throw std::runtime_error("no figure is called " + column);
      const std::vector<std::string> written = split(cells_[i]);
      const bool is_of_run = written.size() == 1;  // such as S
      EXPECT_TRUE(is_of_run || written.size() == sources.size()) << column;
      for (size_t n = 0; n < std::min(written.size(), sources.size()); ++n) {
        EXPECT_EQ(written[n], as_written(figure->second(sources[n]), written[n])) << column;
        ++num_figures;
      }
    }
    return num_figures;
  }

 private:
  bool has(const std::string& column) const { return table_.column(column).has_value(); }
  const std::string& cell(const std::string& column) const { return cells_.at(*table_.column(column)); }

  static Json read(const std::string& path) {
    std::ifstream file(kSourceRoot / path);
    return Json::parse(file);
  }

  /// One for each context that the row lists.
  std::vector<Source> find_sources() const {
    const Json json = read(file("file"));
    if (has("drafted by")) return {{json, json.at("drafts"), {}}};
    if (has("suite")) return {{json, find_named(json.at("suites"), "draft", cell("suite")), {}}};
    if (has("vocabulary"))
      return {{json, find_named(json.at("masks"), "vocabulary", cell("vocabulary")), {}}};
    if (has("tree")) return {{json, find_tree(json), {}}};
    if (has("kernel's rows")) return {{json, find_calibration(json), {}}};
    if (has("variant")) return {{json, find_variant(json), {}}};
    if (has("turn"))
      return {{json, json.at("points").at(0).at("turns").at(std::stoul(cell("turn")) - 1), {}}};
    if (has("clients")) return {{json, find_point(json), {}}};
    if (has("kernel")) return {{json, find_launch(json), {}}};
    const std::string peer = peer_file();
    const Json peer_json = peer.empty() ? Json() : read(peer);
    if (has("prompt")) {
      const std::string test = "pp" + cell("prompt");
      return {{json, find_test(json, test), peer.empty() ? Json() : find_test(peer_json, test)}};
    }
    if (has("attention")) {
      EXPECT_EQ(cell("attention"), peer_json.at("attention").get<std::string>());
    }
    std::vector<Source> sources;
    for (const std::string& context : split(cell("context"))) {
      const std::string test = " @ d" + context;
      sources.push_back({json, find_test(json, test), peer.empty() ? Json() : find_test(peer_json, test)});
    }
    return sources;
  }

  static Json find_named(const Json& entries, const char* key, const std::string& name) {
    for (const Json& entry : entries) {
      if (entry.at(key) == name) return entry;
    }
    throw std::runtime_error("no " + name);
  }

  Json find_tree(const Json& json) const { return find_named(json.at("trees"), "test", cell("tree")); }

  Json find_variant(const Json& json) const {
    const Json entry = find_named(json.at("variants"), "test", cell("cache"));
    EXPECT_EQ(entry.at("variant"), cell("variant"));
    EXPECT_EQ(fastest_way(entry), cell("way"));
    return entry;
  }

  Json find_calibration(const Json& json) const {
    for (const Json& kernel : json.at("calibration")) {
      if (kernel.at("rows") == std::stoi(cell("kernel's rows"))) return kernel;
    }
    throw std::runtime_error("no calibrated kernel of " + cell("kernel's rows") + " rows");
  }

  Json find_point(const Json& json) const {
    for (const Json& point : json.at("points")) {
      if (point.at("clients") == std::stoi(cell("clients"))) return point;
    }
    throw std::runtime_error("no point of " + cell("clients") + " clients");
  }

  Json find_launch(const Json& json) const {
    const Json& launch = json.at("launches").at(std::stoul(cell("launch")));
    EXPECT_EQ(launch.at("kernel"), cell("kernel"));
    return launch;
  }

  const Document& document_;
  const Table& table_;
  const std::vector<std::string>& cells_;
};

/// Compares the figures of a document. Returns their number; adds the files that its tables name.
int compare_figures(const Document& document, std::set<std::string>& files) {
  int num_figures = 0;
  for (const Table& table : document.tables) {
    for (size_t i = 0; i < table.rows.size(); ++i) {
      SCOPED_TRACE(document.at(table.line) + ", row " + std::to_string(i + 1));
      const RowOfFigures row(document, table, i);
      if (row.file("file").empty()) continue;
      files.insert({row.file("file"), row.peer_file()});
      try {
        num_figures += row.compare();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
  return num_figures;
}

/// The pages of results.
std::vector<Document> results() {
  std::vector<Document> pages;
  for (const Document& document : read_documents(kSourceRoot)) {
    if (document.folder() == kResults) pages.push_back(document);
  }
  EXPECT_GE(pages.size(), 2u);
  return pages;
}

TEST(Figures, OfTheReadmeAreTheRecordedOnes) {
  std::set<std::string> files;
  EXPECT_GE(compare_figures(read_document(kSourceRoot, "README.md"), files), 10);
}

TEST(Figures, OfTheResultsAreTheRecordedOnes) {
  std::set<std::string> files;
  int num_figures = 0;
  for (const Document& document : results()) num_figures += compare_figures(document, files);
  EXPECT_GE(num_figures, 200);
  for (const auto& entry : fs::directory_iterator(kSourceRoot / kResults)) {
    if (entry.path().extension() != ".json") continue;
    const std::string file = kResults / entry.path().filename();
    EXPECT_TRUE(files.contains(file)) << file << ": expected in a table of " << kResults;
  }
}

/// Of trees that a calibration has not seen, by costs that it has fitted.
TEST(Figures, MeasuredCostsPredictStepsOverTrees) {
  int trees = 0;
  for (const auto& entry : fs::directory_iterator(kSourceRoot / kResults / "calibration")) {
    std::ifstream file(entry.path());
    const Json json = Json::parse(file);
    for (const Json& tree : json.at("trees")) {
      EXPECT_NEAR(number(tree, "predicted_us") / number(tree, "step_us_p50"), 1, 0.1)
          << entry.path() << ": " << tree.at("test");
      ++trees;
    }
  }
  EXPECT_GE(trees, 60);
}

/// Tables of measurements without a file hold what checks print, on a page of its own; but for the list of pages.
TEST(Figures, HaveAFileButForThoseOfChecks) {
  for (const Document& document : results()) {
    if (document.path.filename() == "checks.md") continue;
    for (const Table& table : document.tables) {
      if (table.columns.at(0) == "page") continue;
      for (size_t i = 0; i < table.rows.size(); ++i)
        EXPECT_NE(RowOfFigures(document, table, i).file("file"), "") << document.at(table.line);
    }
  }
}

}  // namespace
}  // namespace soliton
