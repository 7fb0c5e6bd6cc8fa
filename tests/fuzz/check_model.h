// What holds of every file that is taken for a model.
#pragma once
#include "frontend/file/file_bytes.h"

namespace lathe::fuzz {

// It imports, verifies, and the bytes of its weights are there; or it is refused (false).
bool check_model(const FileBytes& bytes);

}  // namespace lathe::fuzz
