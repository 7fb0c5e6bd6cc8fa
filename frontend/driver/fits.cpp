// What no machine could hold (see machine.h).
#include <fmt/format.h>

#include "frontend/driver/machine.h"
#include "ir/support/diag_codes.h"

namespace lathe {

Status check_fits(double num_bytes, std::string_view what) {
  constexpr double kGiB = 1 << 30;
  const auto memory = static_cast<double>(usable_memory());
  if (num_bytes <= memory) return Ok{};
  return Diag{code::kTooLarge, Loc::unknown(),
              fmt::format("{} take {:.1f} GiB, this machine has {:.1f}", what, num_bytes / kGiB,
                          memory / kGiB)};
}

}  // namespace lathe
