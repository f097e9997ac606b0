// What a header has to be beyond its syntax, so that no proxy before the server reads another request in the same bytes
// (request smuggling); and the header of an answer as text.
#pragma once

#include <boost/beast/http.hpp>
#include <optional>
#include <string>

#include "runtime/server/http.h"

namespace soliton {

/// Why a header is refused (400), if it is: what must be there once comes again, or the body's length is said in two ways
/// or in one that is not taken.
std::optional<std::string> complaint_of_header(const boost::beast::http::fields& header);

/// How the end of an answer's body is told.
enum class Framing { kLength, kChunked, kClose };

/// How it goes on or ends.
struct HeadOptions {
  unsigned version = 11;
  bool keeps_alive = true;
  Framing framing = Framing::kLength;
};

/// The status line and the header with the empty line behind it.
std::string head_text(const HttpResponse& response, const HeadOptions& options);
/// What every answer to a request of this version begins with.
std::string_view head_beginning(unsigned version);

}  // namespace soliton
