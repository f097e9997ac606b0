// Kernels under test: an emulated library with random weights, and the reference with the same weights.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layout/e4m3.h"
#include "layout/f16.h"
#include "layout/random.h"
#include "long_tests.h"
#include "models/hf_config.h"
#include "primitives/emulation/emulator.h"
#include "reference_model.h"
#include "runtime/engine/engine.h"

namespace soliton {

constexpr uint64_t kWeightSeed = 7;
constexpr int kTestContext = 320;

/// A folder that goes away with the object.
class TemporaryModel {
 public:
  TemporaryModel(const ReferenceWeights& weights, const ModelFacts& facts)
      : path_(std::filesystem::temp_directory_path() / ("soliton-kernel-test-" + std::to_string(getpid()))) {
    write_hf_folder(weights, facts, path_);
  }
  ~TemporaryModel() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// An engine on an emulated kernel of SOLITON_TEST_KERNELS, and the reference model beside it.
class KernelUnderTest {
 public:
  /// Of layers with a window there are pages for one branch, or half as many as of the others.
  explicit KernelUnderTest(const std::string& name, int context = kTestContext, int64_t pool_tokens = 0) {
    open(name, {.context = context, .pool_tokens = pool_tokens, .window_tokens = pool_tokens / 2});
    auto weights = std::make_shared<ReferenceWeights>(random_weights(facts_, kWeightSeed));
    const TemporaryModel folder(*weights, facts_);
    load(folder.path(), weights);
  }

  /// With the checkpoint in `folder`, whose weights are `weights`.
  KernelUnderTest(const std::string& name, const std::filesystem::path& folder,
                  std::shared_ptr<const ReferenceWeights> weights) {
    open(name, {.context = kTestContext});
    load(folder, std::move(weights));
  }

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  EmulationOptions& emulation() { return control_->options; }
  EmulatedDevice& device() { return control_->device; }
  /// Of the launch that ended last.
  const std::vector<BarrierCount>& barrier_counts() const { return control_->barriers; }
  /// What the last launch was given, on card 0.
  const LaunchParams& launched() const { return control_->card_params.at(0); }
  const ModelFacts& facts() const { return facts_; }
  ReferenceModel& reference() { return *reference_; }

  /// A prompt that is a function of its length alone.
  std::vector<int32_t> prompt(int length) const {
    std::vector<int32_t> tokens;
    for (int i = 0; i < length; ++i) {
      tokens.push_back(
          static_cast<int32_t>(random_bits(i, length) % static_cast<uint32_t>(facts_.vocabulary)));
    }
    return tokens;
  }

  /// Decodes with logits from where the engine stands.
  DecodeResult decode(const std::vector<int32_t>& tokens, int count) {
    return engine_->decode({.tokens = tokens, .max_tokens = count, .want_logits = true});
  }

  /// The tokens are cached as if the engine had been fed them; the reference stands behind them too. Where they would
  /// take the engine more than `max_steps` it is the reference that makes their keys and values: a step in emulation
  /// costs as much as a thousand of the reference's. In long mode the engine feeds them all.
  void fill(const std::vector<int32_t>& tokens, int max_steps = 2) {
    if (tokens.empty()) return;
    const int begin = reference_->length();
    ASSERT_EQ(begin, engine_->position());
    for (const int32_t token : tokens) reference_->step(token, reference_->length());
    if (std::ssize(tokens) <= std::ptrdiff_t{max_steps} * engine_->max_rows() || long_tests()) {
      engine_->feed(engine_->main_branch(), tokens);
      return;
    }
    engine_->tree().append(engine_->main_branch(), static_cast<int>(tokens.size()));
    int position = 0;
    for (const PageTokens& page : engine_->tree().path(engine_->main_branch())) {
      for (int token = 0; token < page.num_tokens; ++token, ++position) {
        if (position >= begin) write_cache(page, token, position);
      }
    }
  }

  /// Fills the cache with all but the last `num_fed` of the tokens, which it returns. Kernels of several rows are fed what
  /// they take in a step.
  std::vector<int32_t> fill_all_but(const std::vector<int32_t>& tokens, int num_fed) {
    const auto fed = tokens.end() - std::min<ptrdiff_t>(num_fed, std::ssize(tokens));
    const int rows = engine_->max_rows();
    const auto last_step = rows == 1 ? fed : fed - std::min<ptrdiff_t>(rows, fed - tokens.begin());
    fill({tokens.begin(), last_step}, 0);
    fill({last_step, fed}, 1);
    return {fed, tokens.end()};
  }

  /// Goes back to `position` and decodes from there.
  DecodeResult decode_from(int position, const std::vector<int32_t>& tokens, int count) {
    engine_->set_position(position);
    return decode(tokens, count);
  }

  /// Feeds and generates on both sides, from where both stand, and compares: every token is the reference's
  /// choice for the same past, unless its best two logits are a tie, and every logit is near the reference's.
  /// The engine is fed the last `num_fed` tokens at least; see fill().
  void expect_like_reference(const std::vector<int32_t>& all, int count, int num_fed = INT_MAX) {
    const std::vector<int32_t> tokens = fill_all_but(all, num_fed);
    const DecodeResult result = decode(tokens, count);
    ASSERT_EQ(result.tokens.size(), static_cast<size_t>(count));
    for (size_t i = 0; i + 1 < tokens.size(); ++i) reference_->step(tokens[i], reference_->length());
    int next = tokens.back();
    for (size_t i = 0; i < result.tokens.size(); ++i) {
      const std::vector<float> expected = reference_->step(next, reference_->length());
      expect_near(expected, result.logits.data() + i * expected.size(), result.tokens[i], tolerance(),
                  reference_->length() - 1);
      next = result.tokens[i];
    }
  }

  /// Layers with a window have the keys and values of position `other` where those of `position` are.
  void overwrite_window(int position, int other) {
    const std::vector<PageTokens> path = engine_->tree().path(engine_->main_branch());
    PageTokens page = path.at(static_cast<size_t>(position / kKvPageTokens));
    page.page = path.front().page;  // of the others one that does not matter
    for (int layer = 0; layer < facts_.num_layers; ++layer) {
      if (window_of_layer(facts_, layer) != 0) write_layer(page, position % kKvPageTokens, other, layer);
    }
  }

  // Activations are exact to 2^-16, sums to about 2^-20; the coarsest difference is a key or value that falls
  // on the other side of a rounding to f16 (2^-12 of that value).
  static constexpr float kLogitTolerance = 1.0f / 512;
  // With more than 8 rows activations are bf16. Over a dozen other seeds the worst logit of a random tree was off by 1 / 22.
  static constexpr float kBf16Tolerance = 1.0f / 20;
  // There, of two experts that a router finds nearly alike the other one may be chosen.
  static constexpr float kOtherExpertTolerance = 1.0f / 8;
  // And of bytes one value in 32 falls on the other side of a rounding, which is an eighth of it at most.
  static constexpr float kByteTolerance = 1.0f / 8;
  // Of few rows it is one value in some thousand. Over a dozen other seeds the worst logit of a random tree was off by 1 / 190.
  static constexpr float kFewBytesTolerance = 1.0f / 128;
  float tolerance() const {
    if (engine_->max_prompt_rows() <= 8) return facts_.kv_bits == 8 ? kFewBytesTolerance : kLogitTolerance;
    if (facts_.kv_bits == 8) return kByteTolerance;
    return facts_.num_experts > 0 ? kOtherExpertTolerance : kBf16Tolerance;
  }

 protected:
  /// Every logit is near the reference's, and the token is its choice unless its best two are a tie.
  static void expect_near(const std::vector<float>& expected, const float* logits, int token, float tolerance,
                          int position) {
    float scale = 0;
    float worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(std::isfinite(logits[i])) << "position " << position << ", logit " << i;
      scale = std::max(scale, std::abs(expected[i]));
      worst = std::max(worst, std::abs(expected[i] - logits[i]));
    }
    EXPECT_LE(worst, scale * tolerance) << "position " << position;
    EXPECT_GE(expected[token], *std::max_element(expected.begin(), expected.end()) - scale * tolerance)
        << "position " << position;
  }

 private:
  void open(const std::string& name, EngineOptions options) {
    KernelLibrary library = KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so");
    facts_ = library.model().facts;
    const auto entry = reinterpret_cast<EmulationControl* (*)()>(library.symbol("soliton_emulation"));
    control_ = entry();
    control_->options = EmulationOptions{};
    control_->device = {};
    control_->card_params = {};
    options.window_slack = library.max_prompt_rows();  // so that pages are used again within a test's context
    engine_ = std::make_unique<Engine>(std::move(library), options);
  }

  void load(const std::filesystem::path& folder, std::shared_ptr<const ReferenceWeights> weights,
            const ReferenceOptions& options = {}) {
    reference_ = std::make_unique<ReferenceModel>(facts_, std::move(weights), options);
    const HfConfig config = HfConfig::open(folder);
    const TensorSource source = TensorSource::open(folder);
    engine_->load(find_tensors(source, config.quantization_or_null(), facts_, config.checkpoint), nullptr);
  }

  /// A launch says where everything lies on each card.
  const LaunchParams& card_params(int card) {
    if (control_->card_params.empty()) {
      const int position = engine_->position();
      engine_->decode({.tokens = std::vector<int32_t>{0}, .max_tokens = 1});
      engine_->set_position(position);
    }
    return control_->card_params[card];
  }

  /// The keys of a KV head in a page, in the layer's pool; null if that of a window is gone.
  unsigned char* cached_keys(const PageTokens& page, int layer, int head) {
    const KernelLibrary& library = engine_->library();
    const LaunchParams& params = card_params(head % library.num_cards());
    const bool has_window = window_of_layer(facts_, layer) != 0;
    int number = 0;  // among the layers of the pool
    for (int i = 0; i < layer; ++i) number += (window_of_layer(facts_, i) != 0) == has_window ? 1 : 0;
    const int slot = head / library.num_cards();
    if (!has_window) {
      return static_cast<unsigned char*>(params.kv_pool) +
             full_layers(library).page_offset(page.page, number, slot);
    }
    if (page.window_page < 0) return nullptr;
    return static_cast<unsigned char*>(params.window_pool) +
           window_layers(library).page_offset(page.window_page, number, slot);
  }

  /// Key and value of a position of the reference, into a slot of a page, for all layers and KV heads.
  void write_cache(const PageTokens& page, int token, int position) {
    for (int layer = 0; layer < facts_.num_layers; ++layer) write_layer(page, token, position, layer);
  }
  void write_layer(const PageTokens& page, int token, int position, int layer) {
    const KvShape shape = engine_->library().card_kv();
    const auto write = [&](unsigned char* half, bool is_value, int dim, double value) {
      for (int part = 0; part < shape.parts; ++part) {
        const auto rounded = static_cast<F16>(value);
        std::memcpy(
            half + (is_value ? shape.value_offset(token, dim, part) : shape.key_offset(token, dim, part)),
            &rounded, sizeof rounded);
        value -= static_cast<double>(rounded);
      }
    };
    const std::span<const double> keys = reference_->keys(layer, position);
    const std::span<const double> values = reference_->values(layer, position);
    for (int head = 0; head < facts_.num_kv_heads; ++head) {
      unsigned char* half = cached_keys(page, layer, head);
      if (half == nullptr) continue;
      if (shape.e4m3) {
        const auto of_head = [&](std::span<const double> heads) {
          return heads.subspan(static_cast<size_t>(head) * facts_.head_dim, facts_.head_dim);
        };
        write_bytes(half, token, of_head(keys), facts_.rope_dims, &KvShape::key_offset);
        write_bytes(half + shape.half_bytes(), token, of_head(values), 0, &KvShape::value_offset);
        continue;
      }
      for (int dim = 0; dim < facts_.head_dim; ++dim) {
        const int key_dim = model_dim(dim, facts_.head_dim, facts_.rope_dims);
        write(half, false, dim, keys[head * facts_.head_dim + key_dim]);
        write(half + shape.half_bytes(), true, dim, values[head * facts_.head_dim + dim]);
      }
    }
  }

  /// A key or value as bytes; the reference has rounded it.
  void write_bytes(unsigned char* half, int token, std::span<const double> head, int rope_dims,
                   int (KvShape::*offset)(int, int, int) const) {
    const KvShape shape = engine_->library().card_kv();
    double largest = 0;
    for (const double value : head) largest = std::max(largest, std::abs(value));
    const int exponent = e4m3_exponent(static_cast<float>(largest));
    half[shape.exponent_offset(token)] = static_cast<unsigned char>(exponent);
    for (int dim = 0; dim < facts_.head_dim; ++dim) {
      const int place = rope_dims > 0 ? model_dim(dim, facts_.head_dim, rope_dims) : dim;
      const auto value = static_cast<float>(head[static_cast<size_t>(place)]);
      half[(shape.*offset)(token, dim, 0)] =
          static_cast<unsigned char>(float_to_e4m3(value / e4m3_scale(exponent)));
    }
  }

  ModelFacts facts_;
  EmulationControl* control_ = nullptr;
  std::unique_ptr<ReferenceModel> reference_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace soliton
