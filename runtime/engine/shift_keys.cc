#include "runtime/engine/shift_keys.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "layout/e4m3.h"
#include "layout/f16.h"
#include "models/error.h"
#include "runtime/engine/rotary.h"

namespace soliton {
namespace {

constexpr size_t kMostHeadDim = 256;

/// A token's key, as floats.
void load_key(const unsigned char* keys, const KvShape& kv, int token, std::span<float> key) {
  for (int dim = 0; dim < kv.head_dim; ++dim) {
    float& sum = key[static_cast<size_t>(dim)] = 0;
    if (kv.e4m3) {
      sum = e4m3_to_float(keys[kv.key_offset(token, dim)]) * e4m3_scale(keys[kv.exponent_offset(token)]);
      continue;
    }
    for (int part = 0; part < kv.parts; ++part) {
      F16 value;
      std::memcpy(&value, keys + kv.key_offset(token, dim, part), sizeof(value));
      sum += static_cast<float>(value);
    }
  }
}

void store_key(unsigned char* keys, const KvShape& kv, int token, std::span<const float> key) {
  float largest = 0;
  for (const float value : key) largest = std::fmax(largest, std::abs(value));
  const int exponent = e4m3_exponent(largest);
  if (kv.e4m3) keys[kv.exponent_offset(token)] = static_cast<unsigned char>(exponent);
  for (int dim = 0; dim < kv.head_dim; ++dim) {
    float value = key[static_cast<size_t>(dim)];
    if (kv.e4m3) {
      keys[kv.key_offset(token, dim)] =
          static_cast<unsigned char>(float_to_e4m3(value / e4m3_scale(exponent)));
      continue;
    }
    for (int part = 0; part < kv.parts; ++part) {
      const auto rounded = static_cast<F16>(value);
      std::memcpy(keys + kv.key_offset(token, dim, part), &rounded, sizeof(rounded));
      value -= static_cast<float>(rounded);
    }
  }
}

}  // namespace

KeyShift::KeyShift(const ModelFacts& facts, int back, int context) : facts_(facts) {
  const std::vector<float> table = make_rotary_table(facts, back + 1, context);
  const auto position_words = static_cast<std::ptrdiff_t>(rope_tables(facts)) * facts.head_dim;
  rotations_.assign(table.end() - position_words, table.end());
  // A table may scale what it turns, which these keys have been already.
  for (size_t i = 0; i < rotations_.size(); i += 2) {
    const float length = std::hypot(rotations_[i], rotations_[i + 1]);
    rotations_[i] /= length;
    rotations_[i + 1] /= -length;  // the other way
  }
}

void KeyShift::check(const ModelFacts& facts, const char* flag) {
  if (facts.head_norm_last == 0) return;
  throw Error(
      ExitCode::kMismatch,
      fmt::format("{}: expected a model whose keys are rotated last, got one that multiplies them with the "
                  "weights of a norm behind that: not supported",
                  flag));
}

void KeyShift::turn(unsigned char* page, const KvShape& kv, bool have_windows, int first, int end) const {
  int number = 0;  // among the layers of the page
  for (int layer = 0; layer < facts_.num_layers; ++layer) {
    if ((window_of_layer(facts_, layer) != 0) != have_windows) continue;
    const int of_page = number++;
    const int32_t rope = rope_of_layer(facts_, layer);
    if (rope == kNoRope) continue;
    const float* rotations = rotations_.data() + (rope == kLocalRope ? kv.head_dim : 0);
    for (int head = 0; head < kv.num_kv_heads; ++head) {
      unsigned char* keys = page + kv.page_offset(0, of_page, head);
      for (int token = first; token < end; ++token) turn_key(keys, kv, token, rotations);
    }
  }
}

void KeyShift::turn_key(unsigned char* keys, const KvShape& kv, int token, const float* rotations) const {
  const auto half = static_cast<size_t>(kv.head_dim / 2);
  std::array<float, kMostHeadDim> values = {};
  const std::span<float> key(values.data(), 2 * half);
  load_key(keys, kv, token, key);
  for (size_t pair = 0; pair < half; ++pair) {
    const float cosine = rotations[2 * pair];
    const float sine = rotations[2 * pair + 1];
    const float a = key[pair];
    const float b = key[pair + half];
    key[pair] = a * cosine - b * sine;
    key[pair + half] = b * cosine + a * sine;
  }
  store_key(keys, kv, token, key);
}

}  // namespace soliton
