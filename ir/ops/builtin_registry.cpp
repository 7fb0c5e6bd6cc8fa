// The registry of every row in this folder.
#include "ir/op/all_ops.h"

namespace lathe {

const Registry& builtin_registry() {
  static const Registry registry(all_ops());
  return registry;
}

}  // namespace lathe
