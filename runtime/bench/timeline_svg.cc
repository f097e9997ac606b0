// A timeline as a picture: what each CTA works on when, in two layers from the middle of the step.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/bench/timeline.h"
#include "runtime/program/svg.h"

namespace soliton {
namespace {

// Lengths are pixels.
constexpr int kWidth = 1100;
constexpr int kMargin = 28;
constexpr int kLeft = kMargin + 52;
constexpr int kChartWidth = kWidth - kMargin - kLeft;
constexpr int kMostHeight = 520;
constexpr int kMostLane = 24;
constexpr int kLabelSize = 12;
constexpr int kNumLayers = 2;
constexpr int kNumTicks = 5;

}  // namespace

/// The phases of kNumLayers layers from the middle on, as [first, end).
std::pair<int, int> Timeline::phases_in_the_middle() const {
  const int num_layers = descriptor_.plan->model.num_layers;
  const int layer = std::max(0, (num_layers - kNumLayers) / 2);
  const auto first = std::find(layers_.begin(), layers_.end(), layer);
  const auto end = std::find_if(first, layers_.end(), [&](int each) { return each >= layer + kNumLayers; });
  return {static_cast<int>(first - layers_.begin()), static_cast<int>(end - layers_.begin())};
}

std::string Timeline::svg() const {
  const bool is_one_row = descriptor_.rows == 1;
  const auto [first, end] = phases_in_the_middle();
  const auto end_of = [&](int phase) { return is_one_row ? published(phase) : ended(phase); };
  const double begin_us = end_of(first - 1);
  const double total_us = std::max(end_of(end - 1) - begin_us, 1e-3);
  const double lane = std::min<double>(kMostLane, static_cast<double>(kMostHeight) / num_ctas_);
  const double height = lane * num_ctas_;
  const auto x_of = [&](double us) {
    return kLeft + kChartWidth * std::clamp((us - begin_us) / total_us, 0.0, 1.0);
  };
  SvgPicture picture;
  int y = kMargin + 14;
  picture.text(kMargin, y,
               fmt::format("{}: {} behind {} tokens, {:.1f} us", descriptor_.model->name,
                           is_one_row ? "a token" : fmt::format("a step of {} rows", descriptor_.rows),
                           position_, end_of(num_phases_ - 1)),
               18, kSvgBlack, "font-weight=\"bold\"");
  y += 20;
  picture.text(
      kMargin, y,
      fmt::format(
          "{:.1f} us from its middle, of layers {} to {} of {}. Coloured is where the first {} of a CTA "
          "works, light where it waits for its input.",
          total_us, layers_[first], layers_[end - 1], descriptor_.plan->model.num_layers,
          is_one_row ? "consumer" : "worker"),
      kLabelSize, kSvgGrey);
  y += 24;
  double x = kMargin;
  for (int row = 0; row < descriptor_.plan->num_phases; ++row) {
    const std::string name = descriptor_.plan->phases[row].name;
    picture.rectangle(x, y - 10, 11, 11, svg_colour(row));
    picture.text(x + 16, y, name, kLabelSize, kSvgBlack);
    x += 34 + 8 * static_cast<double>(name.size());
  }
  y += 14;
  picture.rectangle(kLeft, y, kChartWidth, height, kSvgIdle);
  picture.text(kLeft - 8, y + 11, "CTA 0", kLabelSize, kSvgGrey, "text-anchor=\"end\"");
  if (num_ctas_ > 1)
    picture.text(kLeft - 8, y + height, fmt::format("{}", num_ctas_ - 1), kLabelSize, kSvgGrey,
                 "text-anchor=\"end\"");
  for (int cta = 0; cta < num_ctas_; ++cta) {
    for (int phase = first; phase < end; ++phase) {
      const PhaseRecord& record = at(phase, cta, 0);
      if (record.last == 0 || static_cast<int32_t>(record.last - record.input) <= 0)
        continue;  // it had no tiles
      const double left = x_of(us(record.input));
      picture.rectangle(left, y + lane * cta, x_of(us(record.last)) - left, std::max(lane * 0.9, 0.5),
                        svg_colour(row_of(phase)),
                        fmt::format("CTA {}, {}: {:.2f} to {:.2f} us", cta, name(phase), us(record.input),
                                    us(record.last)));
    }
  }
  for (int i = 0; i <= kNumTicks; ++i) {
    const double us = begin_us + total_us * i / kNumTicks;
    picture.line(x_of(us), y, x_of(us), y + height + 4, kSvgGrid);
    picture.text(x_of(us), y + height + 18, fmt::format("{:.1f} us", us), 11, kSvgGrey,
                 i == 0           ? "text-anchor=\"start\""
                 : i == kNumTicks ? "text-anchor=\"end\""
                                  : "text-anchor=\"middle\"");
  }
  return picture.finish(kWidth, y + static_cast<int>(height) + 18 + kMargin);
}

}  // namespace soliton
