// Figures of measurements in running text. Behind a paragraph a comment that readers do not see says where each is from:
//
//   <!-- figure 1.36: A.json#/rows/3/tokens_per_s / B.json#/rows/0/tokens_per_s; 300: A.json#/rows/3/tokens_per_s -->
//
// Members of JSON files and numbers with + - * / between them, reckoned from left to right; or a test that knows the figure;
// or "aim", or "given" for what is a property of the thing that was measured.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "documents/document.h"

namespace soliton::prose {
namespace {

namespace fs = std::filesystem;

const fs::path kSourceRoot = SOLITON_SOURCE_DIR;

struct Figure {
  std::string text;
  std::string source;
};

/// Lines of text that follow one another, without those of tables and blocks of code.
struct Paragraph {
  int line = 0;
  std::string text;
  std::vector<Figure> figures;
};

std::vector<Figure> figures_in(const std::string& comment) {
  static const std::regex figure("([0-9.,]+): ([^;]+)(; |$)");
  std::vector<Figure> figures;
  for (auto match = std::sregex_iterator(comment.begin(), comment.end(), figure);
       match != std::sregex_iterator(); ++match)
    figures.push_back({(*match)[1], (*match)[2]});
  return figures;
}

std::vector<Paragraph> paragraphs_of(const fs::path& path) {
  const std::string begin = "<!-- figure ";
  std::vector<Paragraph> paragraphs(1);
  std::ifstream file(kSourceRoot / path);
  bool is_code = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("```")) is_code = !is_code;
    if (is_code || line.starts_with("|")) continue;
    if (line.starts_with(begin) && line.ends_with(" -->")) {
      paragraphs.back().figures = figures_in(line.substr(begin.size(), line.size() - begin.size() - 4));
      EXPECT_FALSE(paragraphs.back().figures.empty()) << path << ":" << number;
    } else if (line.empty()) {
      paragraphs.push_back({});
    } else {
      if (paragraphs.back().text.empty()) paragraphs.back().line = number;
      paragraphs.back().text += line + "\n";
    }
  }
  return paragraphs;
}

std::string without_commas(std::string text) {
  std::erase(text, ',');
  return text;
}

double operand(const std::string& text, const fs::path& folder) {
  const size_t hash = text.find('#');
  if (hash == std::string::npos) return std::stod(text);
  std::ifstream file(kSourceRoot / folder / text.substr(0, hash));
  return nlohmann::json::parse(file).at(nlohmann::json::json_pointer(text.substr(hash + 1))).get<double>();
}

double value_of(const std::string& source, const fs::path& folder) {
  std::istringstream words(source);
  std::string word;
  words >> word;
  double value = operand(word, folder);
  for (std::string sign; words >> sign >> word;) {
    const double other = operand(word, folder);
    if (sign == "+")
      value += other;
    else if (sign == "-")
      value -= other;
    else if (sign == "*")
      value *= other;
    else if (sign == "/")
      value /= other;
    else
      throw std::runtime_error("expected + - * or /, got " + sign);
  }
  return value;
}

bool has_number(const std::string& text, const std::string& number) {
  for (size_t at = text.find(number); at != std::string::npos; at = text.find(number, at + 1)) {
    const auto is_part = [&](size_t i) {
      return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]));
    };
    const size_t end = at + number.size();
    const bool goes_on = is_part(end) || (end < text.size() && text[end] == '.' && is_part(end + 1));
    if (!goes_on && !(at > 0 && (is_part(at - 1) || text[at - 1] == '.'))) return true;
  }
  return false;
}

void compare(const Figure& figure, const fs::path& folder) {
  if (figure.source == "aim" || figure.source == "given") return;
  if (figure.source.find(".json#") == std::string::npos) {
    EXPECT_TRUE(fs::exists(kSourceRoot / figure.source))
        << figure.source << ": expected a test, an aim or a file";
    return;
  }
  const std::string number = without_commas(figure.text);
  const size_t point = number.find('.');
  const size_t decimals = point == std::string::npos ? 0 : number.size() - point - 1;
  EXPECT_EQ(number, fmt::format("{:.{}f}", value_of(figure.source, folder), decimals)) << figure.source;
}

/// Numbers before a unit of measurement.
std::vector<std::string> measured(const std::string& text) {
  static const std::regex unit(R"((\d[\d,]*(\.\d+)?)\s(%|(us|ms|s|times|[GT]B/s|[GT]B|tokens/s|t/s|W)\b))");
  std::vector<std::string> numbers;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), unit); match != std::sregex_iterator();
       ++match)
    numbers.push_back((*match)[1]);
  return numbers;
}

TEST(Prose, FiguresAreWhatTheirSourcesSay) {
  int num_figures = 0;
  for (const Document& document : read_documents(kSourceRoot)) {
    for (const Paragraph& paragraph : paragraphs_of(document.path)) {
      SCOPED_TRACE(document.at(paragraph.line));
      for (const Figure& figure : paragraph.figures) {
        EXPECT_TRUE(has_number(paragraph.text, figure.text)) << figure.text;
        EXPECT_NO_THROW(compare(figure, document.folder())) << figure.source;
        ++num_figures;
      }
    }
  }
  EXPECT_GE(num_figures, 15);
}

/// Of the first page and all results but checks.md, which has what the checks of a card print.
TEST(Prose, MeasuredFiguresHaveASource) {
  const fs::path results = "runtime/bench/results";
  std::vector<fs::path> pages = {"README.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(kSourceRoot / results)) {
    const fs::path name = entry.path().filename();
    if (name.extension() == ".md" && name != "checks.md") pages.push_back(results / name);
  }
  EXPECT_GE(pages.size(), 6u);
  for (const fs::path& path : pages) {
    for (const Paragraph& paragraph : paragraphs_of(path)) {
      SCOPED_TRACE(fmt::format("{}:{}", path.string(), paragraph.line));
      for (const std::string& number : measured(paragraph.text)) {
        const bool is_known = std::any_of(paragraph.figures.begin(), paragraph.figures.end(),
                                          [&](const Figure& figure) { return figure.text == number; });
        EXPECT_TRUE(is_known) << number << ": expected a comment that says where it is from";
      }
    }
  }
}

TEST(Prose, FindsFiguresAndTheirUnits) {
  EXPECT_EQ(measured("takes 1.5 % of 3,000 us, 4 rows and 7\ntimes"),
            (std::vector<std::string>{"1.5", "3,000", "7"}));
  EXPECT_TRUE(has_number("1.36 times", "1.36"));
  EXPECT_TRUE(has_number("of 5.", "5"));
  EXPECT_FALSE(has_number("11.36 times", "1.36"));
  EXPECT_FALSE(has_number("1.365 times", "1.36"));
  EXPECT_FALSE(has_number("5.1", "5"));
  EXPECT_DOUBLE_EQ(value_of("3 / 2 - 1 * 100", {}), 50);
}

}  // namespace
}  // namespace soliton::prose
