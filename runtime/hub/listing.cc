#include "runtime/hub/listing.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/strict_json.h"

namespace soliton::hub {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr int64_t kMaxFileBytes = int64_t{1} << 50;
constexpr size_t kMaxNameBytes = 255;  // of a part of a path

constexpr std::array kConfigFiles = {"config.json", "generation_config.json", "quantize_config.json",
                                     "hf_quant_config.json"};
constexpr std::array kTextFiles = {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
                                   "chat_template.json", kTokenizer};

/// Whether a path stays below the folder that it begins in, and can be one on every system.
bool stays_inside(std::string_view path) {
  for (size_t at = 0;;) {
    const size_t slash = path.find('/', at);
    const std::string_view part = path.substr(at, slash == std::string_view::npos ? slash : slash - at);
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxNameBytes) return false;
    if (part.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos) return false;
    if (slash == std::string_view::npos) return true;
    at = slash + 1;
  }
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A hash of so many hexadecimal digits: it becomes the name of a file.
std::string read_hash(const JsonView& view, size_t digits) {
  const std::string& text = view.string();
  if (!is_hex(text, digits))
    throw view.error("expected {} hexadecimal digits, got {}", digits, in_quotes(text));
  return text;
}

HubFile read_file(const JsonView& view) {
  constexpr size_t kSha256Digits = 64;
  constexpr size_t kSha1Digits = 40;
  HubFile file;
  file.name = view["rfilename"].string();
  if (!stays_inside(file.name))
    throw view["rfilename"].error("expected a path within the model's folder, got {}", in_quotes(file.name));
  const JsonView lfs = view["lfs"];
  if (lfs.is_null()) {
    file.size = static_cast<uint64_t>(view["size"].integer(0, kMaxFileBytes));
    file.hash = read_hash(view["blobId"], kSha1Digits);
    return file;
  }
  file.size = static_cast<uint64_t>(lfs["size"].integer(0, kMaxFileBytes));
  file.hash = read_hash(lfs["sha256"], kSha256Digits);
  file.kind = Checksum::Kind::kSha256;
  return file;
}

/// What a model without safetensors has instead.
std::string other_weights(const Listing& listing) {
  for (const char* ending : {".gguf", ".bin", ".pth", ".safetensors"}) {
    for (const HubFile& file : listing.files) {
      if (file.name.ends_with(ending)) return file.name;
    }
  }
  return "none";
}

}  // namespace

const HubFile* Listing::find(std::string_view name) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const HubFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

Listing parse_listing(std::string_view text, const std::string& source) {
  const nlohmann::json document = parse_json(text, source, {.bytes = kMaxListingBytes});
  const JsonView root(document, source);
  Listing listing{.source = source, .commit = root["sha"].string(), .files = {}};
  if (!is_commit(listing.commit))
    throw root["sha"].error("expected a commit of 40 hexadecimal digits, got {}", in_quotes(listing.commit));
  const JsonView siblings = root["siblings"];
  const size_t num_files = siblings.array_size();
  if (num_files > kMaxFiles) throw siblings.error("expected at most {} files, got {}", kMaxFiles, num_files);
  for (size_t i = 0; i < num_files; ++i) listing.files.push_back(read_file(siblings[i]));
  return listing;
}

std::vector<HubFile> choose_small_files(const Listing& listing, const NeededFiles& needed) {
  const auto require = [&](const char* name, const std::string& instead) {
    if (listing.find(name) != nullptr) return;
    throw file_error(ExitCode::kMismatch, listing.source, "expected {} among its files, got {}", name,
                     instead);
  };
  if (needed.weights && !has_index(listing)) require(kSingleFile, other_weights(listing));
  require("config.json", "none");
  if (needed.text)
    require(kTokenizer, listing.find("tokenizer.model") != nullptr ? "tokenizer.model alone" : "none");
  std::vector<HubFile> files;
  const auto add = [&](const char* name) {
    const HubFile* const file = listing.find(name);
    if (file == nullptr) return;
    if (file->size > kMaxJsonBytes) {
      throw bad_file(listing.source, "{}: expected at most {} bytes, got {}", name, kMaxJsonBytes,
                     file->size);
    }
    files.push_back(*file);
  };
  std::for_each(kConfigFiles.begin(), kConfigFiles.end(), add);
  if (needed.weights && has_index(listing)) add(kWeightsIndex);
  if (needed.text) std::for_each(kTextFiles.begin(), kTextFiles.end(), add);
  return files;
}

bool has_index(const Listing& listing) {
  return listing.find(kSingleFile) == nullptr && listing.find(kWeightsIndex) != nullptr;
}

std::vector<HubFile> choose_weights(const Listing& listing, std::string_view index_text) {
  if (!has_index(listing)) return {*listing.find(kSingleFile)};
  const std::string name = fmt::format("{}: {}", listing.source, kWeightsIndex);
  const nlohmann::json document = parse_json(index_text, name);
  const JsonView weight_map = JsonView(document, name)["weight_map"];
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map.object().items()) {
    const std::string& shard_name = weight_map[tensor].string();
    if (!stays_inside(shard_name) || shard_name.find('/') != std::string::npos) {
      throw weight_map[tensor].error("expected the name of a file beside the index, got {}",
                                     in_quotes(shard_name));
    }
    shards.insert(shard_name);
  }
  std::map<std::string_view, const HubFile*> listed;
  for (const HubFile& file : listing.files) listed.emplace(file.name, &file);
  std::vector<HubFile> files;
  for (const std::string& shard : shards) {
    const auto file = listed.find(shard);
    if (file == listed.end())
      throw file_error(ExitCode::kNotFound, name, "expected {} among the model's files, got none", shard);
    files.push_back(*file->second);
  }
  return files;
}

}  // namespace soliton::hub
