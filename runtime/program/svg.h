// A picture as SVG: shapes one after another, of which each lies over those before. It needs no other file, and the same
// calls give the same picture, byte for byte.
#pragma once

#include <string>
#include <string_view>

namespace soliton {

// Colours, which are those of plot.py.
inline constexpr const char* kSvgBlue = "#1f77b4";
inline constexpr const char* kSvgOrange = "#ff7f0e";
inline constexpr const char* kSvgGrid = "#e6e6e6";
inline constexpr const char* kSvgBlack = "#000000";
inline constexpr const char* kSvgIdle = "#f3f3f3";  // of a CTA that does nothing
inline constexpr const char* kSvgGrey = "#666666";

/// The colour of one of many things; after ten the first one again.
const char* svg_colour(int index);

/// Lengths are pixels, from the upper left corner. `more` is further attributes, as they stand in the file.
class SvgPicture {
 public:
  void text(double x, double y, std::string_view text, int size, const char* colour, const char* more = "");
  void line(double x1, double y1, double x2, double y2, const char* colour, const char* more = "");
  /// `title` is what is shown under the mouse; empty: nothing.
  void rectangle(double x, double y, double width, double height, const char* colour,
                 std::string_view title = "");
  /// Elements as they stand in the file.
  void add(std::string_view elements) { body_ += elements; }

  /// The file.
  std::string finish(int width, int height) const;

 private:
  std::string body_;
};

/// Text that may stand between tags.
std::string svg_escaped(std::string_view text);

}  // namespace soliton
