// The cores that the scheduler may give this process.
#include <sched.h>

#include <algorithm>

#include "frontend/driver/machine.h"

namespace lathe {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

}  // namespace lathe
