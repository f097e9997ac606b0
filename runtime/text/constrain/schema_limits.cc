#include "runtime/text/constrain/schema_limits.h"

#include <array>

#include "models/error.h"
#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {
namespace {

struct Limit {
  const char* keyword;
  const char* what;
  size_t most;
};
constexpr std::array<Limit, 3> kLimits = {{{"enum", "values of enum", kMaxListedValues},
                                           {"properties", "members of properties", kMaxProperties},
                                           {"required", "names of required", kMaxProperties}}};

class Scale {
 public:
  explicit Scale(const std::string& name) : name_(name) {}

  void weigh(const Schema& value) {
    count(num_values_, 1, kMaxSchemaValues, "values");
    if (value.is_string()) count_text(value.get_ref<const std::string&>());
    if (value.is_array()) {
      for (const Schema& item : value) weigh(item);
    }
    if (!value.is_object()) return;
    for (const auto& [key, member] : value.get_ref<const Schema::object_t&>()) {
      count_text(key);
      for (size_t i = 0; i < kLimits.size(); ++i) {
        if (key == kLimits[i].keyword && member.is_structured())
          count(counts_[i], member.size(), kLimits[i].most, kLimits[i].what);
      }
      weigh(member);
    }
  }

 private:
  void count_text(const std::string& text) {
    count(num_bytes_, text.size(), kMaxSourceBytes, "bytes of text");
  }
  void count(size_t& sum, size_t more, size_t most, const char* what) const {
    sum += more;
    if (sum > most)
      throw file_error(ExitCode::kOutOfMemory, name_, "expected a schema of at most {} {}, got more", most,
                       what);
  }

  const std::string& name_;
  size_t num_values_ = 0;
  size_t num_bytes_ = 0;
  std::array<size_t, kLimits.size()> counts_ = {};
};

}  // namespace

void check_schema_size(const Schema& schema, const std::string& name) {
  Scale(name).weigh(schema);
}

}  // namespace soliton::constrain
