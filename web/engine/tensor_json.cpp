// Writes tensor types.
#include "web/engine/tensor_json.h"

namespace lathe {

Json tensor_json(const std::string& name, const TensorType& type) {
  Json shape = Json::array();
  for (const Dim& dim : type.shape)
    shape.push_back(dim.is_const() ? Json(dim.value()) : Json(dim.str()));
  return {{"name", name},
          {"dtype", dtype_name(type.dtype)},
          {"shape", std::move(shape)},
          {"type", to_string(type)}};
}

}  // namespace lathe
