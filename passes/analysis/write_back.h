// The inverse of a view: a base with one of its views replaced.
#pragma once
#include "ir/graph/builder.h"
#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// `base` with `value` at the elements that result `index` of `view`, a view of such a base, is made
// of. kUnsupported, at the view's location, when it repeats or skips elements.
Result<Value> write_back(Builder& b, const Node& view, int index, Value base, Value value);

}  // namespace lathe
