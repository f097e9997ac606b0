// See command_line.h. SOLITON_VERSION is the version of the CMake project.
#include "runtime/command_line.h"

#include <algorithm>
#include <vector>

namespace soliton {
namespace {

/// `error` as an Error of the form "FLAG: expected X, got Y".
Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::string message = error.what();
  std::string flag = message.substr(0, message.find_first_of(": "));
  std::string complaint =
      "expected a value, got nothing";  // --model is required; --model: 1 required TEXT missing
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> rest = app.remaining();
    const auto unknown =
        std::find_if(rest.begin(), rest.end(), [](const auto& word) { return word[0] == '-'; });
    flag = unknown == rest.end() ? rest.front() : *unknown;
    complaint = "expected a flag that --help lists";
  } else if (message.find("received") != std::string::npos) {  // --model: At Most 1 required but received 2
    complaint =
        fmt::format("expected to be given once, got {} times", message.substr(message.rfind(' ') + 1));
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr &&
             dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) {
    return Error(ExitCode::kUsage, message);
  }
  return Error(ExitCode::kUsage, fmt::format("{}: {}", flag, complaint));
}

}  // namespace

bool parse_command_line(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), SOLITON_VERSION));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    app.exit(success);
    return false;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  return true;
}

}  // namespace soliton
