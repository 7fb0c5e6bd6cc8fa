// Sizes that elements decide, for results as long as elements say.
#pragma once
#include "ir/op/import_call.h"
#include "ir/op/term.h"

namespace lathe {

// The count, i64[], as extent `dim` of the call's result `result`: what binds it ends the run where
// it is negative. The symbol is the file's, where it has a new one; where it says which known size
// the count is, that one, and the graph asserts that it is.
Dim bound_size(const ImportCall& call, Term count, size_t dim = 0, size_t result = 0);

}  // namespace lathe
