// The hub as a server: what it lists of a model, and the content of files. Failures that may pass are tried again.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "models/error.h"
#include "runtime/hub/http_get.h"
#include "runtime/hub/hub_settings.h"
#include "runtime/hub/listing.h"

namespace soliton::hub {

/// How often a request that failed is made again, and after what times: each is twice the one before.
struct Retries {
  int attempts = 6;  // without more than kProgressBytes in between
  std::chrono::milliseconds first_wait{1000};
  std::chrono::seconds longest_wait{60};  // that a server may ask for
};
inline constexpr uint64_t kProgressBytes = 1 << 20;

/// Told what failed and is tried again, a line.
using Notice = std::function<void(const std::string&)>;

/// Counts the attempts of one piece of work.
class Attempts {
 public:
  Attempts(const Retries& retries, const Notice& notice)
      : retries_(retries), notice_(notice), wait_(retries.first_wait) {}
  /// Work has got on: what failed before is forgotten.
  void forget();
  /// Waits, unless there were too many attempts or the server asks for too long: then throws `failure`.
  void wait_or_throw(const Error& failure, std::optional<std::chrono::seconds> asked = {});

 private:
  const Retries& retries_;
  const Notice& notice_;
  std::chrono::milliseconds wait_;
  int failures_ = 0;
};

class HubClient {
 public:
  HubClient(Settings settings, Patience patience, Retries retries, Notice notice);

  /// Throws Error: kNotFound if the hub cannot be reached, or refuses; kUsage for a revision that it does not know; what
  /// parse_listing() throws.
  Listing list(const std::string& name, const std::string& revision);

  /// The content of a file from byte `from()` on, as often as that takes: `receiver` is told the head before each part.
  /// Returns at the end of an answer. A 416 (no such range) is returned too. Throws Error (kNotFound) as above, and what
  /// the receiver throws.
  AnswerHead fetch(const std::string& name, const std::string& commit, const std::string& file,
                   const std::function<uint64_t()>& from, const HttpGet::Receiver& receiver);

  const Settings& settings() const { return settings_; }

 private:
  /// Asks until there is an answer that no other attempt would change.
  AnswerHead ask(const std::string& url, const std::function<uint64_t()>& from,
                 const HttpGet::Receiver& receiver);
  Error refusal(const AnswerHead& head, const std::string& name, const std::string& what) const;

  const Settings settings_;
  const Retries retries_;
  const Notice notice_;
  HttpGet http_;
};

}  // namespace soliton::hub
