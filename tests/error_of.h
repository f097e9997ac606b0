// Helpers of the generator's tests: the error that a call ends with, and a folder that goes away.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "models/error.h"
#include "temporary_folder.h"

namespace soliton {

/// "4 message" for the Error that `call` throws, "no error" if it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "no error";
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// `text` with its only occurrence of `from` replaced; a test of a refusal starts from a file that is
/// accepted.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t position = text.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  EXPECT_EQ(text.find(from, position + 1), std::string::npos) << from;
  return text.replace(position, from.size(), to);
}

}  // namespace soliton
