// See header.h.
#include "backends/cpu/package/header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

namespace lathe::cpu {
namespace {

std::string upper(const std::string& name) {
  std::string text = name;
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Names come from a model's file: nothing of them may end the comment.
std::string in_comment(std::string text) {
  for (size_t at; (at = text.find("*/")) != std::string::npos;) text.replace(at, 2, "*_");
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

std::string list(const char* what, const Program& program, const std::vector<BufferId>& ids,
                 size_t count) {
  std::string text = fmt::format(" * {}:\n", what);
  for (size_t i = 0; i < count; ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(ids[i])];
    text += fmt::format(" *   {}  {}  {} {}\n", i, in_comment(buffer.name),
                        dtype_name(buffer.type.dtype), to_string(buffer.type.shape));
  }
  return text;
}

std::string sizes(const Program& program) {
  if (program.symbols.empty()) return "";
  std::string text = " * Sizes, in the order of {0}_bind, which is called before the first run:\n";
  size_t i = 0;
  for (const auto& [symbol, range] : program.symbols)
    text += fmt::format(" *   {}  {}  {}\n", i++, symbol, to_string(range));
  for (const Guard& guard : program.guards)
    text += fmt::format(" *   and {}\n", in_comment(to_string(guard)));
  return text;
}

constexpr char kFunctions[] = R"(typedef struct {0} {0};

/* Reads the weights file, which is closed then. `threads`: 0 for every core. Null when memory is
 * out; else ask {0}_error. One thread at a time uses what comes out; several packages at once are
 * fine. */
{0}* {0}_load(const char* weights, int32_t threads);

/* Why the last call failed, or null when it worked; valid until the next call. */
const char* {0}_error(const {0}* model);
{1}
/* One pointer for each input and output; outputs overlap nothing. 0, or see {0}_error. */
int32_t {0}_run({0}* model, const void* const* inputs, void* const* outputs);

/* Bytes of one tensor, row-major; -1 for another number, and before sizes are bound. */
int64_t {0}_input_bytes(const {0}* model, int32_t index);
int64_t {0}_output_bytes(const {0}* model, int32_t index);
/* Its rank, with its extents in `shape` unless that is null. */
int32_t {0}_output_shape(const {0}* model, int32_t index, int64_t* shape);

void {0}_free({0}* model); /* null is fine */
)";

constexpr char kBind[] = R"(
/* The sizes of the runs that follow. 0, or see {0}_error; an error leaves them as they were. */
int32_t {0}_bind({0}* model, const int64_t* sizes);
)";

}  // namespace

bool is_c_name(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name)
    if (c != '_' && !(static_cast<unsigned char>(c) < 128 && std::isalnum(c))) return false;
  return true;
}

std::string package_header(const std::string& name, const Program& program, size_t num_inputs,
                           size_t num_outputs, const std::string& isa) {
  const std::string big = upper(name);
  std::string text = fmt::format(
      "/* A compiled model: {0}.so with its weights file, which need the C library alone and a\n"
      " * processor with {1}. Tensors are row-major, in memory of the caller.\n *\n",
      name, isa);
  text += list("Inputs", program, program.inputs, num_inputs);
  text += list("Outputs", program, program.outputs, num_outputs);
  text += fmt::format(fmt::runtime(sizes(program)), name);
  text += " */\n";
  text += fmt::format("#ifndef {0}_H\n#define {0}_H\n\n#include <stdint.h>\n\n", big);
  text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text += fmt::format("#define {0}_NUM_INPUTS {1}\n#define {0}_NUM_OUTPUTS {2}\n", big, num_inputs,
                      num_outputs);
  text += fmt::format("#define {0}_NUM_SIZES {1}\n\n", big, program.symbols.size());
  const std::string bind = program.symbols.empty() ? "" : fmt::format(kBind, name);
  text += fmt::format(kFunctions, name, bind);
  return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {0}_H */\n", big);
}

}  // namespace lathe::cpu
