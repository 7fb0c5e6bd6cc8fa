// Reductions of losses (see loss.h).
#include "ir/op/loss.h"

namespace lathe {

Term reduced_loss(const Aten& aten, Term loss) {
  const int64_t reduction = aten.call().int_attr("reduction", 1);
  if (reduction == 0) return loss;
  return aten(reduction == 1 ? "mean" : "sum", {loss});
}

}  // namespace lathe
