// One word for each; a switch, so that the compiler asks for the word of a new kind.
#include "ir/program/buffer_kind.h"

namespace lathe {

std::string_view kind_name(BufferKind kind) {
  switch (kind) {
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::weight:
      return "weight";
    case BufferKind::constant:
      return "constant";
    case BufferKind::persistent:
      return "persistent";
    case BufferKind::temporary:
      return "temporary";
  }
  return "";
}

}  // namespace lathe
