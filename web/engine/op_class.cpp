// Spells the classes of ops.
#include "web/engine/op_class.h"

namespace lathe {

std::string_view op_class_name(OpClass op_class) {
  switch (op_class) {
    case OpClass::elementwise:
      return "elementwise";
    case OpClass::view:
      return "view";
    case OpClass::gather:
      return "gather";
    case OpClass::reduction:
      return "reduction";
    case OpClass::normalize:
      return "normalize";
    case OpClass::contraction:
      return "contraction";
    case OpClass::matrix:
      return "matrix";
    case OpClass::source:
      return "source";
    case OpClass::structure:
      return "structure";
    case OpClass::opaque:
      return "opaque";
  }
  return "opaque";
}

}  // namespace lathe
