#include "runtime/hub/hub_client.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace soliton::hub {
namespace {

constexpr int kUnauthorised = 401;
constexpr int kForbidden = 403;
constexpr int kNoSuchRange = 416;
constexpr int kTooMany = 429;

/// Of a server that may answer later.
bool may_pass(int status) {
  constexpr std::array kPassing = {408, kTooMany, 500, 502, 503, 504};
  return std::find(kPassing.begin(), kPassing.end(), status) != kPassing.end();
}

std::string described(int status) {
  return status == kTooMany ? fmt::format("{}, too many requests", status) : std::to_string(status);
}

}  // namespace

void Attempts::forget() {
  failures_ = 0;
  wait_ = retries_.first_wait;
}

void Attempts::wait_or_throw(const Error& failure, std::optional<std::chrono::seconds> asked) {
  if (++failures_ >= retries_.attempts) throw failure;
  if (asked && *asked > retries_.longest_wait)
    throw Error(failure.code(), fmt::format("{}; it asks for {} s", failure.what(), asked->count()));
  const std::chrono::milliseconds wait =
      std::max<std::chrono::milliseconds>(wait_, asked.value_or(std::chrono::seconds(0)));
  if (notice_)
    notice_(
        fmt::format("{}; trying again in {:.0f} s", failure.what(), static_cast<double>(wait.count()) / 1e3));
  std::this_thread::sleep_for(wait);
  wait_ *= 2;
}

HubClient::HubClient(Settings settings, Patience patience, Retries retries, Notice notice)
    : settings_(std::move(settings)),
      retries_(retries),
      notice_(std::move(notice)),
      http_(settings_.endpoint, settings_.token, patience) {}

AnswerHead HubClient::ask(const std::string& url, const std::function<uint64_t()>& from,
                          const HttpGet::Receiver& receiver) {
  Attempts attempts(retries_, notice_);
  bool has_answered = false;
  for (uint64_t begin = from();; begin = from()) {
    try {
      const AnswerHead head = http_.get(url, begin, receiver);
      has_answered = true;
      if (!may_pass(head.status)) return head;
      attempts.wait_or_throw(Error(ExitCode::kNotFound, fmt::format("{}: expected an answer, got {}",
                                                                    head.host, described(head.status))),
                             head.retry_after);
    } catch (const ConnectionFailed& failure) {
      const uint64_t end = from();
      has_answered = has_answered || end > begin;
      if (end > begin + kProgressBytes) attempts.forget();
      const Error error(ExitCode::kNotFound, failure.what());
      // A name or certificate that is wrong stays so; but in the middle of a download the network may only be away.
      if (!failure.is_transient() && !has_answered) throw error;
      attempts.wait_or_throw(error);
    }
  }
}

Error HubClient::refusal(const AnswerHead& head, const std::string& name, const std::string& what) const {
  const bool has_token = http_.sends_token();
  const std::string said = head.error_message.empty()
                               ? ""
                               : fmt::format(" ({} says: {})", head.host, in_quotes(head.error_message, 120));
  const bool is_denied = head.status == kUnauthorised || head.status == kForbidden;
  if (head.error_code == "GatedRepo" || (head.status == kForbidden && has_token)) {
    return file_error(
        ExitCode::kNotFound, name,
        "gated: expected HF_TOKEN of an account that has accepted the licence at {}/{}, got {}{}",
        settings_.endpoint, name, has_token ? "one that may not read it" : "none", said);
  }
  if (head.error_code == "RepoNotFound" || is_denied) {
    return file_error(ExitCode::kNotFound, name, "expected a folder, or a model at {}, got neither{}{}{}",
                      head.host,
                      has_token ? " that HF_TOKEN may read" : ", or a private one, which needs HF_TOKEN",
                      said, hint_of_model(name));
  }
  return file_error(ExitCode::kNotFound, name, "expected {} at {}, got {}{}", what, head.host,
                    described(head.status), said);
}

Listing HubClient::list(const std::string& name, const std::string& revision) {
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings_.endpoint,
                                      escaped(name, true), escaped(revision, false));
  std::string text;
  const AnswerHead head = ask(
      url,
      [&] {
        text.clear();
        return uint64_t{0};
      },
      {.add = [&](std::string_view bytes) {
        if (text.size() + bytes.size() > kMaxListingBytes)
          throw bad_file(name, "expected a list of files of at most {} bytes, got more", kMaxListingBytes);
        text += bytes;
      }});
  if (head.error_code == "RevisionNotFound") {
    throw file_error(ExitCode::kUsage, "--revision", "expected a branch, tag or commit of {}, got {}", name,
                     in_quotes(revision));
  }
  if (head.status != 200) throw refusal(head, name, "a model");
  return parse_listing(text, name);
}

AnswerHead HubClient::fetch(const std::string& name, const std::string& commit, const std::string& file,
                            const std::function<uint64_t()>& from, const HttpGet::Receiver& receiver) {
  const std::string url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, escaped(name, true), commit,
                                      escaped(file, true));
  AnswerHead head = ask(url, from, receiver);
  if (head.status != 200 && head.status != 206 && head.status != kNoSuchRange)
    throw refusal(head, name, file);
  return head;
}

}  // namespace soliton::hub
