#include "generator/draw_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/program/svg.h"

namespace soliton {
namespace {

// Lengths are pixels.
constexpr int kWidth = 1000;
constexpr int kMargin = 28;
constexpr int kChartLeft = kMargin + 52;
constexpr int kChartWidth = kWidth - kMargin - kChartLeft;
constexpr int kChartHeight = 192;
constexpr int kRowHeight = 19;
constexpr int kBarHeight = 26;
constexpr int kLabelSize = 12;
constexpr int kLetterWidth = 7;  // of a label, which few are wider than

constexpr const char* kRight = "text-anchor=\"end\"";
constexpr const char* kMiddle = "text-anchor=\"middle\"";
constexpr const char* kBold = "font-weight=\"bold\"";

std::string show_bytes(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} KB", bytes * 1e-3);
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes * 1e-6) : fmt::format("{:.2f} GB", bytes * 1e-9);
}

int busiest(const PlanPhase& phase) {
  int most = 0;
  for (const TileRun& run : phase.runs) most = std::max(most, run.count);
  return most;
}

int64_t bytes_of(const Plan& plan, const PlanPhase& phase) {
  return phase.matrix < 0 ? 0 : plan.matrices[phase.matrix].token_bytes();
}

/// Grows downwards.
class Drawing {
 public:
  explicit Drawing(const Plan& plan) : plan_(plan) {}

  std::string draw() {
    heading();
    for (int kind = 0; kind <= plan_.once(); ++kind) chart(kind);
    table();
    shared_memory();
    device_memory();
    return picture_.finish(kWidth, y_ + kMargin);
  }

 private:
  void title(const std::string& text) {
    y_ += 34;
    picture_.text(kMargin, y_, text, 15, kSvgBlack, kBold);
    y_ += 10;
  }

  void heading() {
    y_ += kMargin + 12;
    picture_.text(kMargin, y_,
                  fmt::format("{} on {}: {} in {:.1f} us", plan_.model, plan_.gpu,
                              plan_.rows == 1 ? "a token" : fmt::format("a step of {} rows", plan_.rows),
                              predicted_token_us(plan_, 0)),
                  20, kSvgBlack, kBold);
    y_ += 20;
    picture_.text(kMargin, y_,
                  fmt::format("As planned, without a cache: {} CTAs{} of {} threads. A bar is what a CTA "
                              "reads in a phase, which "
                              "takes as long as the bytes at {:.2f} TB/s, and a wait.",
                              plan_.num_ctas,
                              plan_.num_cards > 1 ? fmt::format(" on each of {} cards", plan_.num_cards) : "",
                              plan_.threads(), plan_.limits.read_bandwidth_bytes_per_s * 1e-12),
                  kLabelSize, kSvgGrey);
  }

  /// What CTAs do in a layer of a kind, or behind all of them: time to the right, a CTA below the other.
  void chart(int kind) {
    const auto count = std::count_if(plan_.layers.begin(), plan_.layers.end(),
                                     [&](const Layer& layer) { return layer.kind == kind; });
    double total_us = 0;
    for (const PlanPhase& phase : plan_.phases) total_us += phase.layer_kind == kind ? phase.predicted_us : 0;
    if (total_us == 0) return;
    title(kind == plan_.once() ? fmt::format("Once a token: {:.1f} us", total_us)
                               : fmt::format("A layer, of which there are {}: {:.1f} us", count, total_us));
    picture_.text(kChartLeft - 8, y_ + 11, "CTA 0", kLabelSize, kSvgGrey, kRight);
    picture_.text(kChartLeft - 8, y_ + kChartHeight, fmt::format("{}", num_lanes() - 1), kLabelSize, kSvgGrey,
                  kRight);
    double start_us = 0;
    for (size_t i = 0; i < plan_.phases.size(); ++i) {
      const PlanPhase& phase = plan_.phases[i];
      if (phase.layer_kind != kind) continue;
      const double left = kChartLeft + kChartWidth * start_us / total_us;
      const double width = kChartWidth * phase.predicted_us / total_us;
      column(i, left, width);
      start_us += phase.predicted_us;
    }
    y_ += kChartHeight + 18;
  }

  /// A phase: how many of the busiest CTA's tiles each has. Neighbours that have as many share a bar.
  void column(size_t index, double left, double width) {
    const PlanPhase& phase = plan_.phases[index];
    picture_.rectangle(left, y_, width, kChartHeight, kSvgIdle,
                       fmt::format("{}: {:.2f} us", phase.name, phase.predicted_us));
    const double lane = static_cast<double>(kChartHeight) / num_lanes();
    const int most = busiest(phase);
    const double read_us =
        static_cast<double>(bytes_of(plan_, phase)) / plan_.limits.read_bandwidth_bytes_per_s * 1e6;
    const double reads = width * std::min(read_us / phase.predicted_us, 1.0);  // the rest is the wait before
    const auto count_of = [&](size_t cta) { return phase.runs[cta].count; };
    for (size_t first = 0, end = 0; first < phase.runs.size(); first = end) {
      for (end = first + 1; end < phase.runs.size() && count_of(end) == count_of(first);) ++end;
      if (count_of(first) == 0) continue;
      picture_.rectangle(
          left + width - reads, y_ + lane * static_cast<double>(first), reads * count_of(first) / most,
          lane * static_cast<double>(end - first), svg_colour(static_cast<int>(index)),
          fmt::format("{}: CTA {} to {}, {} tiles each", phase.name, first, end - 1, count_of(first)));
    }
    if (width > kLetterWidth * static_cast<double>(phase.name.size()))
      picture_.text(left + width / 2, y_ + kChartHeight + 14, phase.name, kLabelSize, kSvgBlack, kMiddle);
  }

  int num_lanes() const {
    size_t most = 1;
    for (const PlanPhase& phase : plan_.phases) most = std::max(most, phase.runs.size());
    return static_cast<int>(most);
  }

  void table() {
    constexpr std::array kEnds = {330, 470, 620, 740};  // of the columns of numbers
    title("Phases");
    y_ += kRowHeight - 4;
    const auto cells = [&](const std::array<std::string, kEnds.size()>& texts, const char* colour) {
      for (size_t i = 0; i < kEnds.size(); ++i)
        picture_.text(kEnds[i], y_, texts[i], kLabelSize, colour, kRight);
    };
    cells({"tiles", "of the busiest CTA", "bytes a token", "us"}, kSvgGrey);
    for (size_t i = 0; i < plan_.phases.size(); ++i) {
      const PlanPhase& phase = plan_.phases[i];
      y_ += kRowHeight;
      picture_.rectangle(kMargin, y_ - 10, 11, 11, svg_colour(static_cast<int>(i)));
      picture_.text(kMargin + 20, y_, phase.name, kLabelSize, kSvgBlack);
      cells({fmt::format("{}", phase.matrix < 0 ? 0 : dealt_tiles(plan_, phase)),
             fmt::format("{}", busiest(phase)), show_bytes(static_cast<double>(bytes_of(plan_, phase))),
             fmt::format("{:.2f}", phase.predicted_us)},
            kSvgBlack);
    }
  }

  /// To scale; the ring's pages apart, of which those in flight are coloured.
  void shared_memory() {
    const auto total = static_cast<double>(plan_.shared_bytes());
    title(fmt::format("Shared memory of a CTA: {} of {}", show_bytes(total),
                      show_bytes(plan_.limits.max_shared_bytes_per_block)));
    const double scale = (kWidth - 2 * kMargin) / total;
    for (const PlanRegion& region : plan_.shared) {
      const double left = kMargin + scale * static_cast<double>(region.offset);
      const double width = scale * static_cast<double>(region.bytes);
      const std::string name =
          fmt::format("{}: {}", region.name, show_bytes(static_cast<double>(region.bytes)));
      picture_.rectangle(left, y_, width, kBarHeight, kSvgIdle, name);
      if (region.name == "pages") {
        ring(left, width);
      } else if (width > kLetterWidth * static_cast<double>(region.name.size())) {
        picture_.text(left + width / 2, y_ + 17, region.name, kLabelSize, kSvgBlack, kMiddle);
      }
    }
    y_ += kBarHeight + 16;
    picture_.text(
        kMargin, y_,
        fmt::format("A ring of {} pages, of which {} are in flight{}.", plan_.ring_slots, plan_.window,
                    plan_.prefetch_pages > 0
                        ? fmt::format("; {} more into L2 while it is full", plan_.prefetch_pages)
                        : ""),
        kLabelSize, kSvgGrey);
  }

  void ring(double left, double width) {
    const double page = width / std::max(plan_.ring_slots, 1);
    for (int i = 0; i < plan_.ring_slots; ++i)
      picture_.rectangle(left + i * page + 1, y_ + 1, page - 2, kBarHeight - 2,
                         i < plan_.window ? kSvgBlue : "#c9dff0", fmt::format("page {}", i));
  }

  /// With as much context as the model takes.
  void device_memory() {
    const auto fixed = static_cast<double>(device_bytes(plan_, 0));
    const auto weights = static_cast<double>(plan_.weight_bytes);
    const double context = static_cast<double>(device_bytes(plan_, plan_.facts.max_context)) - fixed;
    struct Part {
      std::string name;
      double bytes;
      const char* colour;
    };
    const std::array parts = {
        Part{"weights read by a token", weights, kSvgBlue},
        Part{"other weights, tables and workspace", std::max(fixed - weights, 0.0), "#c9dff0"},
        Part{fmt::format("keys and values of {} tokens", plan_.facts.max_context), context, kSvgOrange}};
    title(fmt::format("Memory of a card: {}, and {} a token of context", show_bytes(fixed),
                      show_bytes(context / plan_.facts.max_context)));
    const double scale = (kWidth - 2 * kMargin) / (parts[0].bytes + parts[1].bytes + context);
    double left = kMargin;
    for (const Part& part : parts) {
      picture_.rectangle(left, y_, scale * part.bytes, kBarHeight, part.colour, part.name);
      left += scale * part.bytes;
    }
    y_ += kBarHeight;
    for (const Part& part : parts) {
      y_ += kRowHeight;
      picture_.rectangle(kMargin, y_ - 10, 11, 11, part.colour);
      picture_.text(kMargin + 20, y_, fmt::format("{}: {}", part.name, show_bytes(part.bytes)), kLabelSize,
                    kSvgBlack);
    }
  }

  const Plan& plan_;
  SvgPicture picture_;
  int y_ = 0;
};

}  // namespace

std::string draw(const Plan& plan) {
  return Drawing(plan).draw();
}

}  // namespace soliton
