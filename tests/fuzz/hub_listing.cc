// What a hub lists of a model, and after a line of dashes the index of its weights: whatever is chosen of it lies in the
// model's folder.
#include <filesystem>

#include "fuzz/expand.h"
#include "fuzz/fuzz_target.h"
#include "runtime/hub/listing.h"

namespace soliton {
namespace {

void check_inside(const std::vector<hub::HubFile>& files) {
  for (const hub::HubFile& file : files) {
    const std::filesystem::path path = std::filesystem::path("folder") / file.name;
    expect(path.lexically_normal() == path && path.string().starts_with("folder/"), "files of the folder");
    const size_t digits = file.kind == hub::Checksum::Kind::kSha256 ? 64 : 40;
    expect(file.hash.size() == digits && file.hash.find_first_not_of("0123456789abcdef") == std::string::npos,
           "hashes that can be names of files");
  }
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  const std::string_view text = as_text(data, size);
  constexpr std::string_view kCut = "\n----\n";
  const size_t cut = std::min(text.find(kCut), text.size());
  const std::string_view index = cut == text.size() ? "" : text.substr(cut + kCut.size());
  const TimeLimit limit;
  accepts([&] {
    const hub::Listing listing = hub::parse_listing(text.substr(0, cut), "org/name");
    expect(is_commit(listing.commit), "a commit");
    check_inside(listing.files);
    for (const bool wants_weights : {false, true}) {
      accepts([&] { check_inside(hub::choose_small_files(listing, {.weights = wants_weights})); });
    }
    if (listing.find("model.safetensors") != nullptr || hub::has_index(listing))
      check_inside(hub::choose_weights(listing, index));
  });
  return 0;
}
