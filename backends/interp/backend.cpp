// The interpreter as a backend.
#include "backends/interp/backend.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

class Interpreter final : public Backend {
 public:
  Interpreter(const Target& target, const InterpretLimits& limits)
      : target_(target), limits_(limits) {}
  const Target& target() const override { return target_; }
  Result<std::unique_ptr<Executable>> compile(const Program& program,
                                              const CompileOptions& options) override {
    return interpret(program, options, limits_);
  }
  std::vector<std::string> emits() const override { return {}; }
  Result<std::string> emit(const Program&, const std::string& what) override {
    return Diag{.code = code::kBadValue,
                .loc = Loc::unknown(),
                .message = fmt::format("the interpreter emits no '{}'", what)};
  }

 private:
  Target target_;
  InterpretLimits limits_;
};

}  // namespace

std::unique_ptr<Backend> make_interpreter(const Target& target, const InterpretLimits& limits) {
  return std::make_unique<Interpreter>(target, limits);
}

}  // namespace lathe
