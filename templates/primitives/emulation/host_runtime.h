// The part of Library that does not depend on the kernel: memory, and the OS thread that a launch runs on.
#pragma once

#include "layout/library.h"
#include "primitives/emulation/emulator.h"

namespace soliton::emulation {

/// Of this library: options for its next launch, counts of its last.
EmulationControl& control();

const char* last_error();
int open_device(int device, const Descriptor& descriptor, DeviceInfo* info);
int enter_device(int device);
int reach_peers(const int* devices, int num_devices);
int allocate_memory(size_t bytes, void** memory);  // of the device that this thread has opened last
int allocate_shared(size_t bytes, void** memory);
int fill_memory(void* memory, int byte, size_t bytes);
int upload(void* device, const void* host, size_t bytes);
int download(void* host, const void* device, size_t bytes);
int fill_random(void* memory, size_t count, float bound, uint64_t seed, RandomShare share);
int fill_random_tiles(void* memory, const RandomTiles* tiles, uint64_t seed, RandomShare share);
int move_cached_tokens(void* kv_pool, const KvShape* shape, const TokenMove* moves, int num_moves);
/// With several cards the launch begins once each has started it, or when the host first asks what becomes of it: then
/// without those that have not.
int start(Kernel kernel, const Descriptor& descriptor, const LaunchParams* params, int num_ctas);
LaunchState poll();
int wait();
int measure_bandwidth(const void* memory, size_t bytes, int repeats, ReadRates* rates);

}  // namespace soliton::emulation
