// What the host's memory has left, which is a device's too where it is unified.
#pragma once

#include <cstdint>

#include "layout/library.h"

namespace soliton {

/// Bytes that programs could take now, with what caches of files would give back.
int64_t available_host_bytes();

/// Where a device's memory is the host's, the driver counts as taken what caches of files hold, such as those of the
/// weights that were just downloaded: adds it to what is free.
void count_reclaimable(DeviceInfo& device);

}  // namespace soliton
