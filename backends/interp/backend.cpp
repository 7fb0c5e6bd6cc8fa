// The interpreter as a backend.
#include "backends/interp/backend.h"

#include <fmt/format.h>

#include "backends/interp/run_program.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

class Interpreter final : public Backend {
 public:
  explicit Interpreter(const Target& target) : target_(target) {}
  const Target& target() const override { return target_; }
  Result<std::unique_ptr<Executable>> compile(const Program& program,
                                              const CompileOptions& options) override {
    return interpret(program, options);
  }
  std::vector<std::string> emits() const override { return {}; }
  Result<std::string> emit(const Program&, const std::string& what) override {
    return Diag{.code = code::kBadValue,
                .loc = Loc::unknown(),
                .message = fmt::format("the interpreter emits no '{}'", what)};
  }

 private:
  Target target_;
};

}  // namespace

std::unique_ptr<Backend> make_interpreter(const Target& target) {
  return std::make_unique<Interpreter>(target);
}

}  // namespace lathe
