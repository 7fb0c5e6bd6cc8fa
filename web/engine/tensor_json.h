// Tensors of a signature as JSON.
#pragma once
#include <string>

#include "ir/type/tensor_type.h"
#include "web/engine/request.h"

namespace lathe {

// {"name", "dtype", "shape": [numbers or "s0*2"], "type": "f32[s0*2]"}
Json tensor_json(const std::string& name, const TensorType& type);

}  // namespace lathe
