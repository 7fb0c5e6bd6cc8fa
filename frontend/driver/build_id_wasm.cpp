// A page keeps nothing for other processes.
#include "frontend/driver/build_id.h"

namespace lathe {

std::string build_id() { return ""; }

}  // namespace lathe
