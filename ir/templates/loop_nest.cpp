// Which scheduler a loop nest gets: see loop_nest.h.
#include "ir/templates/loop_nest.h"

#include <utility>

#include "ir/templates/nest_scheduler.h"

namespace lathe {

loop::Kernel schedule(LoopNest nest, const Target& target) {
  return target.groups ? schedule_for_groups(std::move(nest), target)
                       : schedule_for_registers(std::move(nest), target);
}

int64_t size_at(const Dim& size, const std::map<std::string, int64_t>& hints) {
  const Result<int64_t> value = size.evaluate(hints);
  return value.ok() ? *value : 1;
}

}  // namespace lathe
