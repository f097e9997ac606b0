#include "runtime/hub/http_get.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "models/error.h"

namespace soliton::hub {
namespace {

constexpr int kMostRedirections = 10;
constexpr long kStalledBytesPerS = 1000;
constexpr long kReceiveBytes = 1 << 18;
constexpr size_t kMaxHeaderBytes = 300;  // of a value that is kept
constexpr size_t kMostPassedOver = 1 << 20;

template <class Value>
void set(CURL* curl, CURLoption option, Value value) {
  if (curl_easy_setopt(curl, option, value) != CURLE_OK)
    throw Error(ExitCode::kInternal,
                fmt::format("libcurl: option {} is not known", static_cast<int>(option)));
}

/// Scheme, host and port of an address, as which two are of one server; empty if it is none.
struct Origin {
  std::string scheme;
  std::string host;
  std::string port;
  bool operator==(const Origin&) const = default;
};

Origin origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (!parsed) throw std::bad_alloc();
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return {};
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return std::string();
    std::string copy = text;
    curl_free(text);
    std::transform(copy.begin(), copy.end(), copy.begin(), [](unsigned char c) { return std::tolower(c); });
    return copy;
  };
  return {part(CURLUPART_SCHEME), part(CURLUPART_HOST), part(CURLUPART_PORT)};
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

std::optional<uint64_t> read_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && end != text.data() ? std::optional(value) : std::nullopt;
}

bool is_transient(CURLcode code) {
  constexpr std::array kLasting = {
      CURLE_UNSUPPORTED_PROTOCOL,  CURLE_URL_MALFORMAT,   CURLE_COULDNT_RESOLVE_HOST,
      CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_PEER_FAILED_VERIFICATION,
      CURLE_SSL_CACERT_BADFILE,    CURLE_SSL_CERTPROBLEM, CURLE_OUT_OF_MEMORY};
  return std::find(kLasting.begin(), kLasting.end(), code) == kLasting.end();
}

}  // namespace

struct HttpGet::Curl {
  Curl() {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (ready == CURLE_OK) handle = curl_easy_init();
    if (handle == nullptr) throw Error(ExitCode::kInternal, "libcurl: expected to begin, got an error");
  }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;
  ~Curl() { curl_easy_cleanup(handle); }

  CURL* handle = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};
};

/// One request and its answer. libcurl calls back from C, through which no exception may go: it is kept, and ends the
/// transfer.
struct HttpGet::Exchange {
  const Receiver& receiver;
  const std::string host;
  AnswerHead head = {};
  bool has_begun = false;
  size_t num_passed_over = 0;  // bytes
  std::exception_ptr thrown = nullptr;

  bool counts() const { return head.status == 200 || head.status == 206; }
  void begin() {
    if (counts() && !std::exchange(has_begun, true)) receiver.begin(head);
  }

  template <class Work>
  size_t guarded(size_t size, Work&& work) noexcept {
    try {
      work();
      return size;
    } catch (...) {
      thrown = std::current_exception();
      return CURL_WRITEFUNC_ERROR;
    }
  }

  /// Of a page that says what the head says too, and need not end.
  size_t pass_over(size_t size) {
    num_passed_over += size;
    return num_passed_over <= kMostPassedOver ? size : CURL_WRITEFUNC_ERROR;
  }

  void read_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // another head, as after 100 Continue
      head = AnswerHead{.host = host};
      const size_t space = line.find(' ');
      if (space != std::string_view::npos)
        head.status = static_cast<int>(read_number(line.substr(space + 1)).value_or(0));
      return;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.remove_suffix(1);
    keep_header(name, value.substr(0, kMaxHeaderBytes));
  }
  void keep_header(std::string_view name, std::string_view value) {
    constexpr std::string_view kBytes = "bytes ";
    if (name == "content-range" && value.starts_with(kBytes))
      head.range_begin = read_number(value.substr(kBytes.size()));
    if (name == "retry-after") {
      const auto seconds = read_number(value);
      if (seconds) head.retry_after = std::chrono::seconds(std::min<uint64_t>(*seconds, 86'400));
    }
    if (name == "x-error-code") head.error_code = value;
    if (name == "x-error-message") head.error_message = value;
  }

  static size_t on_header(char* bytes, size_t, size_t size, void* self) noexcept {
    auto& exchange = *static_cast<Exchange*>(self);
    return exchange.guarded(size, [&] { exchange.read_header({bytes, size}); });
  }
  static size_t on_body(char* bytes, size_t, size_t size, void* self) noexcept {
    auto& exchange = *static_cast<Exchange*>(self);
    if (!exchange.counts()) return exchange.pass_over(size);
    return exchange.guarded(size, [&] {
      exchange.begin();
      exchange.receiver.add({bytes, size});
    });
  }
};

HttpGet::HttpGet(const std::string& endpoint, std::string token, Patience patience)
    : curl_(std::make_unique<Curl>()), endpoint_(endpoint), token_(std::move(token)) {
  CURL* const curl = curl_->handle;
  const Origin origin = origin_of(endpoint_);
  sends_token_ = !token_.empty() && (origin.scheme == "https" || is_this_machine(origin.host));
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  set(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(patience.connect.count()));
  set(curl, CURLOPT_LOW_SPEED_LIMIT, kStalledBytesPerS);
  set(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(patience.stall.count()));
  set(curl, CURLOPT_USERAGENT, "soliton/" SOLITON_VERSION);
  set(curl, CURLOPT_BUFFERSIZE, kReceiveBytes);
  set(curl, CURLOPT_ERRORBUFFER, curl_->error.data());
  set(curl, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  set(curl, CURLOPT_WRITEFUNCTION, &Exchange::on_body);
  // Certificates of a user's own, which programs know and the library does not ask for.
  for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const char* const file = std::getenv(variable); file != nullptr && *file != '\0') {
      set(curl, CURLOPT_CAINFO, file);
      break;
    }
  }
}

HttpGet::~HttpGet() = default;

AnswerHead HttpGet::perform(const std::string& url, uint64_t from, const Receiver& receiver,
                            std::string& location) {
  CURL* const curl = curl_->handle;
  Exchange exchange{.receiver = receiver, .host = origin_of(url).host};
  curl_->error[0] = '\0';
  const std::string range = fmt::format("{}-", from);
  const bool has_token = sends_token_ && origin_of(url) == origin_of(endpoint_);
  set(curl, CURLOPT_URL, url.c_str());
  set(curl, CURLOPT_HEADERDATA, &exchange);
  set(curl, CURLOPT_WRITEDATA, &exchange);
  set(curl, CURLOPT_RANGE, from == 0 ? static_cast<const char*>(nullptr) : range.c_str());
  set(curl, CURLOPT_HTTPAUTH, has_token ? CURLAUTH_BEARER : CURLAUTH_NONE);
  set(curl, CURLOPT_XOAUTH2_BEARER, has_token ? token_.c_str() : static_cast<const char*>(nullptr));
  const CURLcode code = curl_easy_perform(curl);
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  if (code != CURLE_OK && exchange.num_passed_over <= kMostPassedOver) {
    const std::string detail = curl_->error[0] != '\0' ? curl_->error.data() : curl_easy_strerror(code);
    throw ConnectionFailed(fmt::format("{}: {}", exchange.host.empty() ? url : exchange.host, detail),
                           is_transient(code));
  }
  exchange.begin();  // of an empty body
  char* next = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &next);
  location = next == nullptr ? "" : next;
  return exchange.head;
}

AnswerHead HttpGet::get(const std::string& url, uint64_t from, const Receiver& receiver) {
  std::string next = url;
  for (int i = 0; i <= kMostRedirections; ++i) {
    std::string location;
    AnswerHead head = perform(next, from, receiver, location);
    if (location.empty()) return head;
    if (origin_of(next).scheme == "https" && origin_of(location).scheme != "https") {
      throw ConnectionFailed(
          fmt::format("{}: expected to be sent on by https, got {}", head.host, in_quotes(location)), false);
    }
    next = std::move(location);
  }
  throw ConnectionFailed(
      fmt::format("{}: expected at most {} redirections, got more", origin_of(url).host, kMostRedirections),
      false);
}

std::string escaped(std::string_view text, bool keeps_slashes) {
  constexpr std::string_view kPlain = "-._~";
  std::string path;
  for (const unsigned char c : text) {
    const bool is_plain = std::isalnum(c) != 0 ||
                          kPlain.find(static_cast<char>(c)) != std::string_view::npos ||
                          (keeps_slashes && c == '/');
    path += is_plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return path;
}

}  // namespace soliton::hub
