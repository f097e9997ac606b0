// Templates that many test programs use. Without optimisation a program takes the compiler as long on these as on what it
// tests, so instances.cc instantiates them for all.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

// `how` is extern, or empty where they are instantiated.
#define SOLITON_JSON_READER(how, Json, Input)              \
  how template class nlohmann::detail::lexer<Json, Input>; \
  how template class nlohmann::detail::parser<Json, Input>;
#define SOLITON_JSON_INSTANCES(how, Json)                                               \
  how template class nlohmann::detail::serializer<Json>;                                \
  how template class nlohmann::detail::json_sax_dom_parser<Json>;                       \
  how template class nlohmann::detail::json_sax_dom_callback_parser<Json>;              \
  SOLITON_JSON_READER(how, Json, nlohmann::detail::input_stream_adapter)                \
  SOLITON_JSON_READER(how, Json, nlohmann::detail::iterator_input_adapter<const char*>) \
  SOLITON_JSON_READER(how, Json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>)
#define SOLITON_TEST_INSTANCES(how)                                     \
  how template class std::basic_string<char>;                           \
  how template class std::vector<char>;                                 \
  how template class std::vector<double>;                               \
  how template class std::vector<float>;                                \
  how template class std::vector<int>;                                  \
  how template class std::vector<long>;                                 \
  how template class std::vector<std::string>;                          \
  how template class std::vector<std::pair<std::string, std::string>>;  \
  how template class std::vector<unsigned char>;                        \
  how template class std::map<std::string, std::string>;                \
  how template class std::set<int>;                                     \
  how template class std::set<std::string>;                             \
  how template class std::basic_regex<char>;                            \
  how template class std::__detail::_Compiler<std::regex_traits<char>>; \
  SOLITON_JSON_INSTANCES(how, nlohmann::json)                           \
  SOLITON_JSON_INSTANCES(how, nlohmann::ordered_json)

SOLITON_TEST_INSTANCES(extern)
