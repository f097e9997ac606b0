// What every program exits with, so that scripts can tell errors apart. The generator and the runtime each have
// their own words for the same statuses.
#pragma once

namespace soliton {

enum class ExitCode : int {
  kSuccess = 0,
  kUsage = 2,                // a flag or its value
  kFile = 3,                 // a file or folder is missing, unreadable or not writable
  kNotFound = kFile,         // the same
  kContent = 4,              // a file was read, but says something that cannot be
  kBadFile = kContent,       // the same: malformed
  kPlanRefused = 5,          // all input is sound, but no kernel can be planned from it
  kMismatch = kPlanRefused,  // well formed, but kernel, model, card and layout do not fit one another
  kDevice = 6,               // a CUDA call or the kernel itself failed
  kOutOfMemory = 7,          // memory or another limit, such as a context longer than the cache
  kMakeFailed = 8,           // the compiler made no kernel of sound source
  kNotVerified = 9,          // the kernel's answers are not those of the reference
  kInternal = 70,            // a defect of ours
};

}  // namespace soliton
