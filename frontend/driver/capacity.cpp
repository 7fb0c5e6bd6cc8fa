// The cores that the scheduler may give this process, and the machine's memory.
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "frontend/driver/machine.h"

namespace lathe {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

int64_t usable_memory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<int64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace lathe
