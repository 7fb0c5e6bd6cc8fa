// The words for what an op is, which a page turns into glyphs.
#pragma once
#include <string_view>

#include "ir/graph/op_def.h"

namespace lathe {

std::string_view op_class_name(OpClass op_class);

}  // namespace lathe
