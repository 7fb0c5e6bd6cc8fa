// A page's module runs on one thread.
#include "frontend/driver/machine.h"

namespace lathe {

int usable_cores() { return 1; }

}  // namespace lathe
