// Module to text, from the same instructions as the bytes.
#include <fmt/format.h>

#include <cstring>

#include "backends/wasm/module.h"

namespace lathe::wasm {
namespace {

template <class Float, class Bits>
std::string spell_float(Bits bits) {
  Float value;
  std::memcpy(&value, &bits, sizeof value);
  constexpr int kMantissa = sizeof(Float) == 4 ? 23 : 52;
  const Bits payload = bits & ((Bits{1} << kMantissa) - 1);
  if (value != value)
    return fmt::format("{}nan:0x{:x}", bits >> (8 * sizeof(Bits) - 1) ? "-" : "", payload);
  return fmt::format("{}", value);
}

// A quoted name: what is not plain ASCII becomes \hh.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\')
      result += c;
    else
      result += fmt::format("\\{:02x}", byte);
  }
  return result + "\"";
}

// An identifier of the text format from a name of ours.
std::string identifier(const std::string& name) {
  std::string result = "$";
  for (char c : name) {
    bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    result += is_plain || c == '_' || c == '.' ? c : '_';
  }
  return result;
}

std::string local_name(const Function& function, uint32_t index) {
  if (index < function.params.size()) return identifier(function.param_names[index]);
  return fmt::format("{}", index);
}

std::string spell(const Instr& instr, const Function& function, const Module& module) {
  const OpInfo& op = info(instr.op);
  std::string text(op.name);
  switch (op.immediate) {
    case Immediate::none:
    case Immediate::block:
    case Immediate::copy:
      return text;
    case Immediate::index:
      if (instr.op == Op::call) return text + " " + identifier(module.functions[instr.index].name);
      if (instr.op == Op::br_if) return text + fmt::format(" {}", instr.index);
      return text + " " + local_name(function, instr.index);
    case Immediate::memory:
    case Immediate::memory_lane:
      if (instr.index != 0) text += fmt::format(" offset={}", instr.index);
      if (op.immediate == Immediate::memory_lane) text += fmt::format(" {}", instr.lane);
      return text;
    case Immediate::lane:
      return text + fmt::format(" {}", instr.lane);
    case Immediate::i32:
      return text + fmt::format(" {}", static_cast<int32_t>(instr.low));
    case Immediate::i64:
      return text + fmt::format(" {}", static_cast<int64_t>(instr.low));
    case Immediate::f32:
      return text + " " + spell_float<float>(static_cast<uint32_t>(instr.low));
    case Immediate::f64:
      return text + " " + spell_float<double>(instr.low);
    case Immediate::shuffle:
      for (int i = 0; i < 16; ++i)
        text += fmt::format(" {}", (i < 8 ? instr.low : instr.high) >> (8 * (i % 8)) & 0xff);
      return text;
    case Immediate::v128:
      return text + fmt::format(" i32x4 0x{:08x} 0x{:08x} 0x{:08x} 0x{:08x}",
                                instr.low & 0xffffffff, instr.low >> 32, instr.high & 0xffffffff,
                                instr.high >> 32);
  }
  return text;
}

void print(std::string& out, const Function& function, const Module& module) {
  out += fmt::format("  (func {} (export {})", identifier(function.name), quoted(function.name));
  if (!function.params.empty()) out += "\n   ";
  for (size_t i = 0; i < function.params.size(); ++i)
    out += fmt::format(" (param {} {})", local_name(function, static_cast<uint32_t>(i)),
                       type_name(function.params[i]));
  out += '\n';
  for (size_t i = 0; i < function.locals.size();) {
    Type type = function.locals[i];
    size_t first = i;
    out += "    (local";
    for (; i < function.locals.size() && function.locals[i] == type && i < first + 16; ++i)
      out += fmt::format(" {}", type_name(type));
    size_t number = function.params.size() + first, last = function.params.size() + i - 1;
    out += number == last ? fmt::format(")  ;; {}\n", number)
                          : fmt::format(")  ;; {} to {}\n", number, last);
  }
  int depth = 2;
  size_t note = 0;
  for (size_t i = 0; i < function.body.size(); ++i) {
    const Instr& instr = function.body[i];
    if (instr.op == Op::end || instr.op == Op::else_) --depth;
    out.append(static_cast<size_t>(2 * depth), ' ');
    out += spell(instr, function, module);
    if (instr.op == Op::loop || instr.op == Op::if_ || instr.op == Op::else_) ++depth;
    for (; note < function.notes.size() && function.notes[note].first == i; ++note)
      out += "  ;; " + function.notes[note].second;
    out += '\n';
  }
  out += "  )\n";
}

}  // namespace

std::string to_wat(const Module& module) {
  std::string out = fmt::format("(module {}\n  (import \"env\" \"memory\" (memory {}))\n",
                                identifier(module.name), module.num_pages);
  for (const Function& function : module.functions) print(out, function, module);
  for (const Segment& segment : module.segments) {
    out += fmt::format("  (data (i32.const {}) \"", static_cast<int32_t>(segment.address));
    for (std::byte byte : *segment.bytes) out += fmt::format("\\{:02x}", static_cast<int>(byte));
    out += "\")\n";
  }
  return out + ")\n";
}

}  // namespace lathe::wasm
