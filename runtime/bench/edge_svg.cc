// An EdgeReport as one page of SVG: two charts on axes from 0, and the facts below. It needs no other file, and the same
// report gives the same page, byte for byte.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "runtime/bench/edge.h"
#include "runtime/program/svg.h"

namespace soliton {
namespace {

// Lengths are pixels.
constexpr int kPageWidth = 820;
constexpr int kMargin = 28;
constexpr int kLabelWidth = 110;  // left of a chart's axis
constexpr int kValueWidth = 210;  // right of it
constexpr int kChartWidth = kPageWidth - 2 * kMargin - kLabelWidth - kValueWidth;
constexpr int kChartLeft = kMargin + kLabelWidth;
constexpr int kEntryHeight = 34;
constexpr int kBarHeight = 14;
constexpr int kFactHeight = 20;
constexpr int kFactNameWidth = 170;
constexpr size_t kLineCharacters = 95;  // of 8 pixels, which few are wider than
constexpr size_t kFactCharacters = 74;

/// Lines of at most `width` characters, cut between words; a word that is longer has a line of its own.
std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (!lines.back().empty() && lines.back().size() + 1 + end > width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Distance of grid lines: 1, 2 or 5 times a power of ten, some five of them up to `most`.
double grid_step(double most) {
  const double rough = most / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double first = rough / power;
  return power * (first <= 1 ? 1 : first <= 2 ? 2 : first <= 5 ? 5 : 10);
}

/// "3.41 ms", "870 us": three digits.
std::string show_time(double us) {
  const double value = us < 1000 ? us : us < 1e6 ? us * 1e-3 : us * 1e-6;
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, us < 1000 ? "us" : us < 1e6 ? "ms" : "s");
}

struct Mark {
  double us = 0;
  std::string name;
  bool is_prediction = false;
};

/// One line of a chart: a bar and marks on it.
struct Entry {
  std::string label;
  double bar_us = 0;
  std::vector<Mark> marks = {};
  std::string value;  // right of the axis
};

/// Grows downwards.
class Page {
 public:
  void heading(const std::string& text) {
    y_ += 26;
    picture_.text(kMargin, y_, text, 20, kSvgBlack, "font-weight=\"bold\"");
    y_ += 4;
  }
  void paragraph(const std::string& text) {
    for (const std::string& line : wrapped(text, kLineCharacters)) {
      y_ += kFactHeight;
      picture_.text(kMargin, y_, line, 13, kSvgGrey);
    }
  }

  void chart(const std::string& title, const std::vector<Entry>& entries) {
    if (entries.empty()) return;
    y_ += 40;
    picture_.text(kMargin, y_, title, 15, kSvgBlack, "font-weight=\"bold\"");
    y_ += 10;
    double most = 0;
    for (const Entry& entry : entries) {
      most = std::max(most, entry.bar_us);
      for (const Mark& mark : entry.marks) most = std::max(most, mark.us);
    }
    const double step = grid_step(most);
    const double end = step * std::ceil(most / step);
    const auto x_of = [&](double us) { return kChartLeft + kChartWidth * us / end; };
    const int bottom = y_ + kEntryHeight * static_cast<int>(entries.size());
    for (int i = 0; i * step <= end * (1 + 1e-9); ++i) {
      picture_.line(x_of(i * step), y_, x_of(i * step), bottom, i == 0 ? kSvgBlack : kSvgGrid);
      picture_.text(x_of(i * step), bottom + 16, i == 0 ? "0" : show_time(i * step), 11, kSvgGrey,
                    "text-anchor=\"middle\"");
    }
    for (const Entry& entry : entries) add_entry(entry, x_of);
    y_ = bottom + 20;
  }

  void facts(const std::vector<std::pair<std::string, std::string>>& facts) {
    y_ += 14;
    for (const auto& [name, value] : facts) {
      picture_.text(kMargin, y_ + kFactHeight, name, 13, kSvgGrey);
      for (const std::string& line : wrapped(value, kFactCharacters)) {
        y_ += kFactHeight;
        picture_.text(kMargin + kFactNameWidth, y_, line, 13, kSvgBlack);
      }
    }
  }

  std::string finish() {
    y_ += kMargin;
    return picture_.finish(kPageWidth, y_);
  }

 private:
  void add_entry(const Entry& entry, const std::function<double(double)>& x_of) {
    const double middle = y_ + kEntryHeight / 2.0;
    picture_.text(kChartLeft - 8, middle + 4, entry.label, 12, kSvgBlack, "text-anchor=\"end\"");
    picture_.add(fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n",
                             kChartLeft, middle - kBarHeight / 2.0, x_of(entry.bar_us) - kChartLeft,
                             kBarHeight, kSvgBlue));
    for (const Mark& mark : entry.marks) add_mark(mark, x_of(mark.us), middle);
    picture_.text(kChartLeft + kChartWidth + 12, middle + 4, entry.value, 12, kSvgBlack);
    y_ += kEntryHeight;
  }

  void add_mark(const Mark& mark, double x, double middle) {
    picture_.add(fmt::format("<g><title>{}: {}</title>", svg_escaped(mark.name), show_time(mark.us)));
    if (mark.is_prediction) {
      picture_.line(x, middle - kBarHeight, x, middle + kBarHeight, kSvgOrange, "stroke-width=\"2.5\"");
    } else {
      picture_.add(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" stroke=\"{}\"/>\n",
                               x, middle,
                               mark.name == "p90"   ? "#ffffff"
                               : mark.name == "p99" ? kSvgGrey
                                                    : kSvgBlack,
                               kSvgBlack));
    }
    picture_.add("</g>\n");
  }

  SvgPicture picture_;
  int y_ = kMargin / 2;
};

std::vector<Entry> prompt_entries(const EdgeReport& report) {
  std::vector<Entry> entries;
  for (const EdgePrompt& prompt : report.prompts) {
    const double us = prompt.first_token_ms * 1e3;
    entries.push_back(
        {.label = fmt::format("{} tokens", prompt.tokens),
         .bar_us = us,
         .value = fmt::format("{}, {:.0f} tokens/s", show_time(us), prompt.tokens / (us * 1e-6))});
  }
  return entries;
}

std::vector<Entry> context_entries(const EdgeReport& report) {
  std::vector<Entry> entries;
  for (const EdgeContext& context : report.contexts) {
    const Row& row = context.row;
    Entry entry{.label = fmt::format("context {}", context.tokens),
                .bar_us = row.p50_us,
                .marks = {{row.max_us, "max"}, {row.p99_us, "p99"}, {row.p90_us, "p90"}},
                .value = fmt::format("{}, {:.1f} tokens/s", show_time(row.p50_us), row.rate)};
    if (const auto per_joule = context.tokens_per_joule())
      entry.value += fmt::format(", {:.2f}/J", *per_joule);
    if (context.predicted_us) entry.marks.push_back({*context.predicted_us, "predicted", true});
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::string edge_svg(const EdgeReport& report) {
  Page page;
  page.heading(fmt::format("{} on {}", report.model, report.device.name));
  std::string line = fmt::format("Soliton, kernel for {}, weights: {}", report.kernel_gpu, report.weights);
  if (report.device.driver_version > 0) line += fmt::format(", driver {}", report.device.driver_version);
  page.paragraph(line);
  page.chart("Time to the first token, by the prompt (median)", prompt_entries(report));
  page.chart("Time per token (bar: p50; dots: p90, p99, max; orange: predicted)", context_entries(report));
  page.facts(edge_facts(report));
  for (const std::string& left_out : report.test.left_out) page.paragraph("Left out: " + left_out);
  return page.finish();
}

}  // namespace soliton
