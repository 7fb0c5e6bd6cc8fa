#include "ir/target/numerics.h"

#include "ir/support/diag_codes.h"
#include "ir/target/target.h"

namespace lathe {

bool uses_tf32(const Target& target, Numerics numerics) {
  return target.uses_tf32 && numerics == Numerics::standard;
}

const Target& strict_target() { return *find_target("avx2"); }

Status check_numerics(Numerics numerics, const std::string& target,
                      const std::string& never_strict) {
  if (numerics != Numerics::strict || never_strict.empty()) return Ok{};
  return Diag{code::kUnsupported, Loc::unknown(),
              "numerics 'strict' is not there on target " + target + ", because " + never_strict +
                  "; expected 'default', or target cpu or wasm"};
}

}  // namespace lathe
