// See package.h. The library is the kernels, the program as text, and the runtime, which lies in
// this program as an object that is linked already but for the C library.
#include "backends/cpu/package/package.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "backends/binding/weights_file.h"
#include "backends/cpu/codegen.h"
#include "backends/cpu/package/frozen.h"
#include "backends/cpu/package/header.h"
#include "backends/cpu/package/link.h"
#include "backends/cpu/package/package_abi.h"
#include "ir/loop/text.h"
#include "ir/program/overlap.h"
#include "ir/program/split.h"
#include "ir/support/diag_codes.h"

namespace lathe::cpu {

Result<PackageFiles> make_package(const Program& program, const Executable& executable,
                                  const PackageRequest& request) {
  LATHE_DO(check_is_one_piece(program));
  if (!is_c_name(request.name))
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("'{}' cannot begin the name of a C function, expected letters, digits "
                            "and '_'",
                            request.name)};
  LATHE_TRY(Frozen frozen, freeze(program, executable));
  const std::string text = print(frozen.program);
  const WeightsPlan plan = plan_weights(frozen.program, request.num_inputs);
  PackageFiles files;
  LATHE_TRY(files.weights, write_weights(plan, [&](const std::string& name) {
              const auto packed = frozen.packed.find(name);
              return packed == frozen.packed.end() ? request.weight(name)
                                                   : Result<BufferView>(packed->second);
            }));
  const uint64_t id = set_weights_id(files.weights, text);
  files.header = package_header(request.name, frozen.program, request.num_inputs,
                                request.num_outputs, std::string(isa_name(request.isa)));

  PackageCode code{.name = request.name,
                   .program = text,
                   .isa = std::string(isa_name(request.isa)),
                   .num_inputs = request.num_inputs,
                   .num_outputs = request.num_outputs,
                   .weights_id = id};
  for (const std::string_view function : kPackageFunctions)
    code.functions.emplace_back(fmt::format("{}_{}", request.name, function),
                                fmt::format("lathe_package_{}", function));
  const std::vector<bool> is_noalias = noalias_kernels(frozen.program);
  for (size_t i = 0; i < frozen.program.kernels.size(); ++i) {
    LATHE_DO(loop::verify(frozen.program.kernels[i], true));
    code.kernels.push_back({&frozen.program.kernels[i], {request.isa, is_noalias[i]}});
  }
  LATHE_TRY(const std::string object, generate_package(code));
  LATHE_TRY(files.library, link_library({object, std::string(package_runtime())}, request.name));
  return files;
}

}  // namespace lathe::cpu
