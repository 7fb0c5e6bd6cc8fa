// Any bytes are a model that imports and verifies, or one error that renders.
//
// Seeds: archives (zip directory, payload configurations) and bare model JSON, which no checksum
// shields from mutation.
#include <string>

#include "tests/fuzz/check_model.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

bool check(std::string_view input) { return check_model(own_bytes(std::string(input))); }

}  // namespace

const Property kProperty = {check, 256};

}  // namespace lathe::fuzz
