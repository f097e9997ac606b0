#include "runtime/program/svg.h"

#include <fmt/format.h>

#include <array>

namespace soliton {

const char* svg_colour(int index) {
  constexpr std::array kColours = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                   "#8c564b", "#e377c2", "#bcbd22", "#17becf", "#7f7f7f"};
  return kColours[static_cast<size_t>(index) % kColours.size()];
}

std::string svg_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        // Control characters are none in XML, not even escaped.
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

void SvgPicture::text(double x, double y, std::string_view text, int size, const char* colour,
                      const char* more) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"{}\" {}>{}</text>\n", x, y,
                       size, colour, more, svg_escaped(text));
}

void SvgPicture::line(double x1, double y1, double x2, double y2, const char* colour, const char* more) {
  body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" {}/>\n",
                       x1, y1, x2, y2, colour, more);
}

void SvgPicture::rectangle(double x, double y, double width, double height, const char* colour,
                           std::string_view title) {
  const std::string shape =
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"", x, y,
                  width, height, colour);
  body_ += title.empty() ? shape + "/>\n"
                         : fmt::format("{}><title>{}</title></rect>\n", shape, svg_escaped(title));
}

std::string SvgPicture::finish(int width, int height) const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{2}</svg>\n",
      width, height, body_);
}

}  // namespace soliton
