// A page's module runs on one thread, and its addresses have 32 bits.
#include "frontend/driver/machine.h"

namespace lathe {

int usable_cores() { return 1; }
int64_t usable_memory() { return int64_t{4} << 30; }

}  // namespace lathe
