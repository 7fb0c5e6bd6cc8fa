// The registry of every row in this folder and of every composite.
#include "ir/op/all_ops.h"

namespace lathe {

const Registry& builtin_registry() {
  static const Registry registry(all_ops(), all_composites());
  return registry;
}

}  // namespace lathe
