// From a request to a backend, whoever lists the backends.
#include <fmt/format.h>

#include "frontend/driver/backends.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

Diag placed(Diag diag, Loc loc) {
  if (diag.loc.is_unknown()) diag.loc = loc;
  return diag;
}

}  // namespace

Result<std::unique_ptr<Backend>> choose_backend(const CompileRequest& request) {
  Result<std::unique_ptr<Backend>> backend = make_backend(request.target, request.isa);
  if (!backend.ok()) {
    const bool is_about_isa = !request.isa.empty();
    return placed(std::move(backend).error(), request.place(is_about_isa ? "isa" : "target"));
  }
  Status runs = check_mode(request.mode, request.target, (*backend)->target().has_graphs);
  if (!runs.ok()) return placed(std::move(runs).error(), request.place("mode"));
  if (request.autotunes() && request.numerics == Numerics::strict)
    return Diag{code::kUnsupported, request.place("mode"),
                fmt::format("mode '{}' takes what is fastest here, numerics 'strict' the same sums "
                            "everywhere: expected one of them",
                            request.mode)};
  Status keeps =
      check_numerics(request.numerics, request.target, (*backend)->target().never_strict);
  if (!keeps.ok()) return placed(std::move(keeps).error(), request.place("numerics"));
  return backend;
}

}  // namespace lathe
