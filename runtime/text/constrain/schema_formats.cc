#include "runtime/text/constrain/schema_formats.h"

namespace soliton::constrain {
namespace {

struct Format {
  std::string_view name;
  const char* pattern;
};
// Days that every year has, so that 29 February is not written.
#define SOLITON_DATE \
  "[1-9][0-9]{3}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
#define SOLITON_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define SOLITON_NUMBER "[1-9][0-9]{0,3}"
#define SOLITON_DATE_SPAN                                                                                \
  "(" SOLITON_NUMBER "Y(" SOLITON_NUMBER "M(" SOLITON_NUMBER "D)?)?|" SOLITON_NUMBER "M(" SOLITON_NUMBER \
  "D)?|" SOLITON_NUMBER "D)"
#define SOLITON_TIME_SPAN                                                                                 \
  "T(" SOLITON_NUMBER "H(" SOLITON_NUMBER "M(" SOLITON_NUMBER "S)?)?|" SOLITON_NUMBER "M(" SOLITON_NUMBER \
  "S)?|" SOLITON_NUMBER "S)"
#define SOLITON_EMAIL                                                                                       \
  "[A-Za-z0-9_+-]{1,16}(\\.[A-Za-z0-9_+-]{1,16}){0,3}@([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\\.){1,4}[a-z]{2," \
  "12}"
#define SOLITON_LABEL "[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}"
#define SOLITON_HOST "(" SOLITON_LABEL "\\.){0,3}[a-z][a-z0-9]{0,19}(-[a-z0-9]{1,20})?"
#define SOLITON_IPV4 \
  "((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define SOLITON_HEX "[0-9a-f]{1,4}"
// Of paths; with a colon it would be taken for a scheme in some places.
#define SOLITON_PART "([A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-F][0-9A-F])"
#define SOLITON_REST "(\\?(" SOLITON_PART "|[:/?])*)?(#(" SOLITON_PART "|[:/?])*)?"
#define SOLITON_URI                                                              \
  "([a-z][a-z0-9+-]{0,15}://" SOLITON_HOST "(:[1-9][0-9]{0,3})?(/(" SOLITON_PART \
  "|:)*)*|urn:[a-z0-9]{2,20}:(" SOLITON_PART "|:)+|mailto:" SOLITON_EMAIL ")" SOLITON_REST
#define SOLITON_RELATIVE "(/?" SOLITON_PART "+(/" SOLITON_PART "*)*)?" SOLITON_REST
#define SOLITON_POINTER "(/([^/~]|~[01])*)*"
#define SOLITON_ATOM \
  "([A-Za-z0-9_ ,:;/@#%&=<>!-]|\\\\[dDsSwW.\\\\()]|\\.|\\[\\^?([A-Za-z0-9_ .]|a-z|A-Z|0-9)+\\])[*+?]?"
constexpr std::array<Format, 19> kFormats = {
    {{"date", "^" SOLITON_DATE "$"},
     {"time", "^" SOLITON_TIME "$"},
     {"date-time", "^" SOLITON_DATE "T" SOLITON_TIME "$"},
     {"duration",
      "^P(" SOLITON_DATE_SPAN "(" SOLITON_TIME_SPAN ")?|" SOLITON_TIME_SPAN "|" SOLITON_NUMBER "W)$"},
     {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
     {"email", "^" SOLITON_EMAIL "$"},
     {"idn-email", "^" SOLITON_EMAIL "$"},
     {"hostname", "^" SOLITON_HOST "$"},
     {"idn-hostname", "^" SOLITON_HOST "$"},
     {"ipv4", "^" SOLITON_IPV4 "$"},
     {"ipv6", "^((" SOLITON_HEX ":){7}" SOLITON_HEX "|(" SOLITON_HEX ":){1,6}:" SOLITON_HEX "|(" SOLITON_HEX
              ":){1,7}:|::(" SOLITON_HEX ")?)$"},
     {"uri", "^" SOLITON_URI "$"},
     {"iri", "^" SOLITON_URI "$"},
     {"uri-reference", "^(" SOLITON_URI "|" SOLITON_RELATIVE ")$"},
     {"iri-reference", "^(" SOLITON_URI "|" SOLITON_RELATIVE ")$"},
     {"uri-template", "^(" SOLITON_URI "|(/(" SOLITON_PART "|\\{[a-z][a-z0-9_]*\\})*)*)$"},
     {"json-pointer", "^" SOLITON_POINTER "$"},
     {"relative-json-pointer", "^(0|" SOLITON_NUMBER ")(#|" SOLITON_POINTER ")$"},
     {"regex", "^\\^?(" SOLITON_ATOM "|\\((" SOLITON_ATOM ")+(\\|(" SOLITON_ATOM ")+)*\\)[*+?]?)*\\$?$"}}};

}  // namespace

const char* pattern_of_format(const Schema& format) {
  if (!format.is_string()) return nullptr;
  const auto* const found = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& known) {
    return known.name == format.get_ref<const std::string&>();
  });
  return found == kFormats.end() ? nullptr : found->pattern;
}

}  // namespace soliton::constrain
