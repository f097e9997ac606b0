// The one check that facts of a model pass, whichever file they were read from.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "layout/model_facts.h"
#include "models/error.h"
#include "models/place.h"

namespace soliton {

/// Which fact is meant.
using Fact = std::variant<int32_t ModelFacts::*, double ModelFacts::*, RopeKind ModelFacts::*>;

/// Facts as a file states them, in its own words. Readers look at types and at what only their file can get wrong;
/// values are left to check().
struct StatedFacts {
  std::string file;  // for facts that no place is known of
  /// What a sound value is that no kernel can be generated for: a fault in a file that is written for the generator, no
  /// match in one that is written for others.
  ExitCode unsupported = ExitCode::kBadFile;
  ModelFacts facts = {};
  std::vector<std::pair<Fact, Place>> places = {};
  size_t listed_layers = 0;                  // for how many layers `ffn` was stated; 0: for all
  Place windows_place = {};                  // where windows of layers are stated,
  Place chunks_place = {};                   // their chunks,
  Place ropes_place = {};                    // and what rotates their heads
  std::array<Place, 2> factors_places = {};  // of longrope, of short contexts and of long ones

  /// What is stated last counts. Integers beyond 32 bits become the nearest that fits, which no limit allows.
  void state(int32_t ModelFacts::*fact, int64_t value, Place place);
  void state(double ModelFacts::*fact, double value, Place place);
  void state(RopeKind ModelFacts::*fact, RopeKind value, Place place);
  /// `ffn` of each layer.
  void state_layers(const std::vector<int64_t>& ffns, Place place);
  /// Which layers of a model with experts have none. Layers that there are not may be among them. Behind the other facts.
  void state_dense_layers(const std::vector<int64_t>& layers, Place place);

  /// Windows of the layers, which take turns. Behind num_layers.
  void state_windows(const std::vector<int64_t>& windows, Place place);

  /// Their chunks, likewise.
  void state_chunks(const std::vector<int64_t>& chunks, Place place);

  /// What rotates the heads of the layers, each a LayerRope; they take turns likewise.
  void state_ropes(const std::vector<int64_t>& ropes, Place place);

  /// Longrope's factors of each pair, of contexts that are longer than the original one or are not.
  void state_rope_factors(bool is_long, const std::vector<double>& factors, Place place);

  /// Experts of all layers are in MXFP4. Behind the other facts of layers.
  void state_mxfp4_experts(const Place& place);

  /// As stated; else the file, and key and value as they are known here.
  Place place(const Fact& fact) const;
};

/// The layers of a model with experts that have none.
std::vector<int> dense_layers(const ModelFacts& facts);

/// `ffn` as files have it: a number, or the list of those of the layers.
std::string show_ffn(const ModelFacts& facts);

/// Windows of the layers as models/*.yaml have them: as few as repeat themselves.
std::string show_windows(const ModelFacts& facts);
/// Their chunks, likewise.
std::string show_chunks(const ModelFacts& facts);

/// What rotates their heads, likewise.
std::string show_ropes(const ModelFacts& facts);

/// What the fact may be by itself: "a multiple of 64 from 64 to 65536".
std::string describe_limit(const Fact& fact);

/// Throws Error, which names key and place, for the first fact that is out of its limits (limits.h) or contradicts
/// another: `unsupported` where only our kernels cannot do it, else kBadFile.
void check(const StatedFacts& stated);

/// Throws Error (kMismatch), which names key and place, for the first fact that is not as in `expected`, which are those of
/// `whose`. Bits of the cache are no matter of a model's.
void check_same(const StatedFacts& stated, const ModelFacts& expected, const std::string& whose);

}  // namespace soliton
