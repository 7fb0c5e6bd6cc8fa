// What results say of the machine and the moment they were measured in.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lathe {

struct Machine {
  std::string cpu;     // "AMD EPYC"
  std::string system;  // "Linux 6.1.0 x86_64"
  int cores = 1;       // that this process may use
  int64_t memory_bytes = 0;
};
Machine this_machine();
int usable_cores();       // Machine::cores alone, at least 1
int64_t usable_memory();  // Machine::memory_bytes alone
// kTooLarge when `what` takes more than that. To be asked before memory is: what the system gives
// it does not always have.
Status check_fits(double num_bytes, std::string_view what);

// "2026-11-21T01:20:12Z".
std::string utc_now();

// Resident memory of this process, now and at its peak since the last reset; 0 when the system
// does not say. reset_peak_memory is false where the system cannot.
int64_t resident_bytes();
int64_t peak_resident_bytes();
bool reset_peak_memory();

}  // namespace lathe
