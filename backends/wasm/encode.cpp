// Module to bytes: sections, each with its length in front, and LEB128 numbers.
#include <cstring>
#include <map>

#include "backends/wasm/module.h"

namespace lathe::wasm {
namespace {

class Bytes {
 public:
  void byte(uint64_t value) { text_.push_back(static_cast<char>(value)); }
  void raw(const void* from, size_t count) { text_.append(static_cast<const char*>(from), count); }
  void u(uint64_t value) {
    do {
      uint64_t low = value & 0x7f;
      value >>= 7;
      byte(value == 0 ? low : low | 0x80);
    } while (value != 0);
  }
  void s(int64_t value) {
    for (;;) {
      int64_t low = value & 0x7f;
      value >>= 7;
      bool is_last = value == (low & 0x40 ? -1 : 0);
      byte(static_cast<uint64_t>(is_last ? low : low | 0x80));
      if (is_last) return;
    }
  }
  void fixed(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) byte(value >> (8 * i) & 0xff);
  }
  void name(const std::string& text) {
    u(text.size());
    text_ += text;
  }
  void sized(const Bytes& inside) { name(inside.text_); }
  void section(uint8_t id, const Bytes& inside) {
    byte(id);
    sized(inside);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

uint8_t code_of(Type type) {
  constexpr uint8_t kCodes[] = {0x40, 0x7f, 0x7e, 0x7d, 0x7c, 0x7b};
  return kCodes[static_cast<size_t>(type)];
}

void write(Bytes& out, const Instr& instr) {
  const OpInfo& op = info(instr.op);
  if (op.prefix == 0) {
    out.byte(op.code);
  } else {
    out.byte(op.prefix);
    out.u(op.code);
  }
  switch (op.immediate) {
    case Immediate::none:
      return;
    case Immediate::block:
      return out.byte(0x40);
    case Immediate::index:
      return out.u(instr.index);
    case Immediate::memory:
    case Immediate::memory_lane:
      out.u(op.align);
      out.u(instr.index);
      if (op.immediate == Immediate::memory_lane) out.byte(instr.lane);
      return;
    case Immediate::copy:
      return out.fixed(0, 2);
    case Immediate::lane:
      return out.byte(instr.lane);
    case Immediate::i32:
      return out.s(static_cast<int32_t>(instr.low));
    case Immediate::i64:
      return out.s(static_cast<int64_t>(instr.low));
    case Immediate::f32:
      return out.fixed(instr.low, 4);
    case Immediate::f64:
      return out.fixed(instr.low, 8);
    case Immediate::shuffle:
    case Immediate::v128:
      out.fixed(instr.low, 8);
      return out.fixed(instr.high, 8);
  }
}

// Locals are declared in runs of one type.
void write_locals(Bytes& out, const std::vector<Type>& locals) {
  std::vector<std::pair<uint64_t, Type>> runs;
  for (Type type : locals) {
    if (runs.empty() || runs.back().second != type) runs.emplace_back(0, type);
    ++runs.back().first;
  }
  out.u(runs.size());
  for (auto [count, type] : runs) {
    out.u(count);
    out.byte(code_of(type));
  }
}

Bytes code_section(const Module& module) {
  Bytes section;
  section.u(module.functions.size());
  for (const Function& function : module.functions) {
    Bytes body;
    write_locals(body, function.locals);
    for (const Instr& instr : function.body) write(body, instr);
    write(body, {Op::end});
    section.sized(body);
  }
  return section;
}

// No function returns anything, so its params are its type.
struct Types {
  std::vector<std::vector<Type>> list;
  std::vector<size_t> of_function;
};

Types types_of(const Module& module) {
  Types types;
  std::map<std::vector<Type>, size_t> known;
  for (const Function& function : module.functions) {
    auto [entry, is_new] = known.try_emplace(function.params, types.list.size());
    if (is_new) types.list.push_back(function.params);
    types.of_function.push_back(entry->second);
  }
  return types;
}

Bytes type_section(const Types& types) {
  Bytes section;
  section.u(types.list.size());
  for (const std::vector<Type>& params : types.list) {
    section.byte(0x60);
    section.u(params.size());
    for (Type param : params) section.byte(code_of(param));
    section.u(0);
  }
  return section;
}

Bytes import_section(const Module& module) {
  Bytes section;
  section.u(1);
  section.name("env");
  section.name("memory");
  section.byte(0x02);
  section.byte(0x00);  // a least size, no greatest
  section.u(module.num_pages);
  return section;
}

Bytes export_section(const Module& module) {
  Bytes section;
  section.u(module.functions.size());
  for (size_t i = 0; i < module.functions.size(); ++i) {
    section.name(module.functions[i].name);
    section.byte(0x00);
    section.u(i);
  }
  return section;
}

Bytes data_section(const Module& module) {
  Bytes section;
  section.u(module.segments.size());
  for (const Segment& segment : module.segments) {
    section.u(0);
    write(section, {.op = Op::i32_const, .low = segment.address});
    write(section, {Op::end});
    section.u(segment.bytes->size());
    section.raw(segment.bytes->data(), segment.bytes->size());
  }
  return section;
}

Bytes name_section(const Module& module) {
  Bytes section, name, functions;
  section.name("name");
  name.name(module.name);
  section.section(0, name);
  functions.u(module.functions.size());
  for (size_t i = 0; i < module.functions.size(); ++i) {
    functions.u(i);
    functions.name(module.functions[i].name);
  }
  section.section(1, functions);
  return section;
}

}  // namespace

std::string encode(const Module& module) {
  Bytes out;
  out.raw("\0asm\1\0\0\0", 8);
  Types types = types_of(module);
  out.section(1, type_section(types));
  out.section(2, import_section(module));
  Bytes functions;
  functions.u(types.of_function.size());
  for (size_t type : types.of_function) functions.u(type);
  out.section(3, functions);
  out.section(7, export_section(module));
  out.section(10, code_section(module));
  if (!module.segments.empty()) out.section(11, data_section(module));
  out.section(0, name_section(module));
  for (const auto& [name, bytes] : module.custom) {
    Bytes section;
    section.name(name);
    section.raw(bytes.data(), bytes.size());
    out.section(0, section);
  }
  return out.take();
}

}  // namespace lathe::wasm
