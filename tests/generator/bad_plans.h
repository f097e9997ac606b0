// Ways of breaking a sound plan, which verify() refuses for their own rules: what the tables of bad plans, one for each
// group of rules, are made of. verify_test.cc breaks plans with all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/plan/verify.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {

/// One thing that is done to a sound plan. `also`: rules that cannot help being broken with it.
struct BadPlan {
  std::string name;
  Rule rule;
  std::string
      message;  // exactly, for the tiny model on the CPU (on an H200 with num_ctas CTAs if that is not 0)
  std::function<void(Plan&)> damage;
  std::vector<Rule> also = {};
  PlanChoices choices = {};
};

// The tables, each of the file that is called after it.
const std::vector<BadPlan>& bad_structure();
const std::vector<BadPlan>& bad_work();
const std::vector<BadPlan>& bad_shapes();
const std::vector<BadPlan>& bad_waits();
const std::vector<BadPlan>& bad_places();
const std::vector<BadPlan>& bad_memory();
const std::vector<BadPlan>& bad_barriers();

inline PlanPhase& phase(Plan& plan, const std::string& name) {
  return named(plan.phases, name);
}
inline PlanVector& vector(Plan& plan, const std::string& name) {
  return named(plan.vectors, name);
}
inline PlanMatrix& matrix(Plan& plan, const std::string& name) {
  return named(plan.matrices, name);
}
inline PlanBarrier& barrier(Plan& plan, const std::string& name) {
  return named(plan.barriers, name);
}
inline PlanRegion& shared(Plan& plan, const std::string& name) {
  return named(plan.shared, name);
}
inline PlanRegion& workspace(Plan& plan, const std::string& name) {
  return named(plan.workspace, name);
}

/// Lets `phase` read another vector than the one it waits for.
inline void read_instead(Plan& plan, const std::string& reader, const std::string& other) {
  phase(plan, reader).reads = index_of(plan.vectors, other);
}
inline void read_and_await(Plan& plan, const std::string& reader, const std::string& other) {
  read_instead(plan, reader, other);
  phase(plan, reader).waits_for = index_of(plan.vectors, other);
}

/// Deals the tiles of a phase again, as the kernel would.
inline void deal_again(Plan& plan, const std::string& name) {
  PlanPhase& dealt = phase(plan, name);
  const int num_tiles = plan.matrices[dealt.matrix].num_tiles;
  for (int cta = 0; cta < plan.all_ctas(); ++cta) {
    dealt.runs[cta] = deal_tiles(num_tiles, dealt.first_cta, plan.all_ctas(), cta);
  }
}
/// Gives a matrix other rows, with the tiles that they need; everything else follows.
inline void set_rows(Plan& plan, const std::string& name, int rows) {
  matrix(plan, name).rows = rows;
  matrix(plan, name).num_tiles = ceil_divide(rows, kTileRows);
  matrix(plan, name).card_tiles = tiles_of_card(matrix(plan, name).num_tiles, plan.num_cards);
  deal_again(plan, name);
  place(plan, {});
}
/// Moves a vector together with its piece of the workspace.
inline void move_vector(Plan& plan, const std::string& name, int64_t offset) {
  vector(plan, name).offset = workspace(plan, name).offset = offset;
}

}  // namespace soliton
