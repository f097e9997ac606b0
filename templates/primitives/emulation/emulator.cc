// The functions of emulator.h: they hand over to the launch that runs.
#include "primitives/emulation/emulator.h"

#include <cstdlib>

#include "primitives/emulation/fibers.h"
#include "primitives/emulation/launch.h"

namespace soliton::emulation {

bool checking = false;
bool delaying = false;
uint64_t num_stores = 0;

namespace {

Launch* launch = nullptr;

void enter_fiber() {
  launch->run_fiber();
}

}  // namespace

std::string run_cards(Kernel kernel, const std::vector<CardLaunch>& cards, const LaunchShape& shape,
                      EmulationControl& control) {
  if (launch != nullptr) return "emulation: a launch is running already";
  if (shape.num_ctas < 1 || shape.threads_per_cta < kLanes || shape.threads_per_cta % kLanes != 0) {
    return "emulation: expected at least one CTA of whole warps, got " + std::to_string(shape.num_ctas) +
           " CTAs of " + std::to_string(shape.threads_per_cta) + " threads";
  }
  control.stats = {};
  control.barriers.clear();
  control.card_params.clear();
  for (const CardLaunch& card : cards) control.card_params.push_back(card.value_or(LaunchParams{}));
  Launch now(kernel, cards, shape, control);
  launch = &now;
  std::string error = now.run(stack_pool(), enter_fiber);
  launch = nullptr;
  return error;
}

void check_access(Access access, Space space, const void* address, size_t bytes) {
  launch->check_access(access, space, address, bytes);
}
void collective(Operation operation, const char* name, void* operand) {
  launch->collective(operation, name, operand);
}
MmaOperand* put_off(Operation operation, const char* name) {
  return launch->put_off(operation, name);
}
void begin_batch() {
  launch->begin_batch();
}
void end_batch() {
  launch->end_batch();
}
void synchronise_cta() {
  launch->synchronise_cta();
}
void fence_device() {
  launch->fence_device();
}
void fence_system() {
  launch->fence_system();
}
void fence_async_global() {
  launch->fence_async_global();
}
void fence_async_shared() {
  launch->fence_async_shared();
}
void load_wide(Access access, const void* address, void* value, size_t bytes) {
  launch->load_wide(access, address, value, bytes);
}
void store_wide(Access access, void* address, const void* value, size_t bytes) {
  launch->store_wide(access, address, value, bytes);
}
void land_stores_before() {
  launch->land_stores_before();
}
void init_barrier(Barrier* barrier, int arrivals) {
  launch->init_barrier(barrier, arrivals);
}
void fence_barrier_init() {
  launch->fence_barrier_init();
}
void arrive(Barrier* barrier, int bytes) {
  launch->arrive(barrier, bytes);
}
void release_by_warp(Barrier* barrier, int times) {
  launch->release_by_warp(barrier, times);
}
bool test_barrier(Barrier* barrier, uint32_t parity) {
  return launch->test_barrier(barrier, parity);
}
void wait_barrier(Barrier* barrier, uint32_t parity, const WaitSite& site) {
  launch->wait_barrier(barrier, parity, site);
}
bool skips_wait(WaitKind kind) {
  return launch->skips_wait(kind);
}
bool drops_hints() {
  return launch->drops_hints();
}
void copy_page(void* shared, const void* global, int bytes, Barrier* barrier) {
  launch->copy_page(shared, global, bytes, barrier);
}
void copy_piece(void* shared, const void* global) {
  launch->copy_piece(shared, global);
}
void commit_copies() {
  launch->commit_copies();
}
void wait_copies(int sets) {
  launch->wait_copies(sets);
}
void issue_product(const Product& product) {
  launch->issue_product(product);
}
void fence_products() {
  launch->fence_products();
}
void commit_products() {
  launch->commit_products();
}
void wait_products(int sets_left) {
  launch->wait_products(sets_left);
}
void pause(const WaitSite& site) {
  launch->pause(site);
}
void fail_demand(const char* what) {
  launch->fail_demand(what);
}
void note_host_load() {
  launch->note_host_load();
}

}  // namespace soliton::emulation

namespace soliton {

EmulationControl::EmulationControl() {
  if (const char* seed = std::getenv("SOLITON_EMULATION_SEED"))
    options.seed = std::strtoull(seed, nullptr, 0);
}

}  // namespace soliton
