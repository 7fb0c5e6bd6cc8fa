// A pipeline without what makes one of its guards.
#pragma once
#include <string>
#include <vector>

#include "ir/type/guard.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

struct DroppedGuard {
  Pipeline pipeline;
  std::string stays = {};  // why there is none; empty: `pipeline` makes all guards but this one
};
// `guards` are all that `pipeline` makes or keeps, `guard` one of them.
DroppedGuard drop_guard(const Pipeline& pipeline, const std::vector<Guard>& guards,
                        const Guard& guard);

}  // namespace lathe
