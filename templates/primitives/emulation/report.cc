#include "primitives/emulation/report.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

namespace soliton::emulation {

namespace {

bool waits(const Fiber& fiber) {
  return fiber.state != FiberState::kReady && fiber.state != FiberState::kReturned;
}

bool has_site(const Fiber& fiber) {
  return fiber.state == FiberState::kBarrier || fiber.state == FiberState::kCopies ||
         fiber.state == FiberState::kPolling;
}

std::string describe_site(const WaitSite& site) {
  return std::string(wait_name(site.kind)) + " (step " + std::to_string(site.step) + ", phase " +
         std::to_string(site.phase) + ", index " + std::to_string(site.index) + ", expected " +
         std::to_string(site.expected) + ", seen " + std::to_string(site.seen) + ")";
}

std::string describe_object(const Fiber& fiber) {
  if (has_site(fiber)) return describe_site(fiber.site);
  if (fiber.state == FiberState::kCtaSync) return "cta_sync";
  return std::string("the other lanes of its warp in ") + fiber.warp->name;
}

using Key = std::tuple<FiberState, WaitKind, uint32_t, uint32_t, std::string>;

Key key_of(const Fiber& fiber) {
  if (has_site(fiber)) return {FiberState::kBarrier, fiber.site.kind, fiber.site.step, fiber.site.phase, {}};
  const bool collective = fiber.state == FiberState::kCollective;
  return {fiber.state, WaitKind::kNone, 0, 0, collective ? fiber.warp->name : ""};
}

struct Group {
  Key key;
  const Fiber* longest = nullptr;
  int count = 0;
  std::set<int> ctas;
};

std::string describe_ctas(const std::set<int>& ctas) {
  const int first = *ctas.begin();
  const int last = *ctas.rbegin();
  if (first == last) return std::to_string(first);
  const bool dense = last - first + 1 == static_cast<int>(ctas.size());
  return std::to_string(first) + ".." + std::to_string(last) +
         (dense ? "" : " (" + std::to_string(ctas.size()) + " of them)");
}

std::string describe_group(const Group& group) {
  return std::to_string(group.count) + (group.count == 1 ? " thread of CTA " : " threads of CTA ") +
         describe_ctas(group.ctas) + (group.count == 1 ? " waits for " : " wait for ") +
         describe_object(*group.longest);
}

/// Waits that name their object come first: the others follow from them.
bool waits_longer(const Fiber& a, const Fiber& b) {
  return std::make_tuple(!has_site(a), a.waits_since, a.id) <
         std::make_tuple(!has_site(b), b.waits_since, b.id);
}

const char* access_name(Access access) {
  constexpr const char* names[] = {"load",
                                   "store",
                                   "load_constant",
                                   "load_relaxed",
                                   "store_relaxed",
                                   "load_acquire",
                                   "add_release",
                                   "add",
                                   "load_system",
                                   "store_system",
                                   "use of the barrier",
                                   "copy read",
                                   "copy write",
                                   "product read",
                                   "load_relaxed_system",
                                   "store_relaxed_system",
                                   "load_acquire_system",
                                   "add_release_system",
                                   "add_fenced_system",
                                   "add_relaxed_system"};
  return names[static_cast<int>(access)];
}

std::string describe_side(const RaceSide& side, const std::vector<Fiber>& fibers) {
  const int num_threads = static_cast<int>(fibers.size());
  std::string text = std::string(access_name(side.access)) + " by ";
  if (side.thread < num_threads) return text + describe_thread(fibers[side.thread]);
  return text + "the copy engine of CTA " + std::to_string((side.thread - num_threads) / kEnginesPerCta);
}

}  // namespace

std::string describe_thread(const Fiber& fiber) {
  return "CTA " + std::to_string(fiber.cta) + " thread " + std::to_string(fiber.thread) +
         (fiber.site.kind == WaitKind::kNone ? "" : ", last wait: " + describe_site(fiber.site));
}

const Fiber* longest_waiting(const std::vector<Fiber>& fibers) {
  const Fiber* longest = nullptr;
  for (const Fiber& fiber : fibers) {
    if (waits(fiber) && (longest == nullptr || waits_longer(fiber, *longest))) longest = &fiber;
  }
  return longest;
}

std::string describe_waits(const char* what, const std::vector<Fiber>& fibers) {
  std::vector<Group> groups;
  for (const Fiber& fiber : fibers) {
    if (!waits(fiber)) continue;
    const Key key = key_of(fiber);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.key == key; });
    if (group == groups.end()) group = groups.insert(groups.end(), {key, &fiber, 0, {}});
    ++group->count;
    group->ctas.insert(fiber.cta);
    if (waits_longer(fiber, *group->longest)) group->longest = &fiber;
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return waits_longer(*a.longest, *b.longest); });
  std::string text = std::string(what) + ":";
  for (const Group& group : groups) {
    text += (&group == &groups.front() ? " " : "\n  ") + describe_group(group);
    if (group.count > 1) {
      text += ", e.g. CTA " + std::to_string(group.longest->cta) + " thread " +
              std::to_string(group.longest->thread);
    }
  }
  const auto returned = std::count_if(fibers.begin(), fibers.end(),
                                      [](const Fiber& f) { return f.state == FiberState::kReturned; });
  if (returned > 0) text += "\n  " + std::to_string(returned) + " threads have returned";
  return text;
}

std::string describe_race(const Race& race, const std::vector<Fiber>& fibers) {
  return "race at " + *race.region + "+" + std::to_string(race.offset) + ": " + access_name(race.now.access) +
         " " + race.reason + " " + access_name(race.before.access) + "\n  " +
         describe_side(race.now, fibers) + "\n  " + describe_side(race.before, fibers);
}

}  // namespace soliton::emulation
