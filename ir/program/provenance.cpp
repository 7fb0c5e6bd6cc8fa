// Numbers for what init makes: see provenance.h.
#include "ir/program/provenance.h"

#include <string_view>
#include <utility>

#include "ir/loop/text.h"
#include "ir/support/canonical.h"

namespace lathe {
namespace {

enum class Tag : uint8_t { weight, constant, empty, kernel, kernel_text, copy, library };

CanonicalBytes tagged(Tag tag) {
  CanonicalBytes words;
  words.add(static_cast<int>(tag));
  return words;
}

// Of a buffer that nothing has written yet.
std::string words_of(const ProgramBuffer& buffer) {
  if (buffer.kind == BufferKind::weight)
    return tagged(Tag::weight).add(std::string_view(buffer.weight)).take();
  if (buffer.kind == BufferKind::constant)
    return tagged(Tag::constant)
        .add(std::string_view(reinterpret_cast<const char*>(buffer.bytes.data()),
                              buffer.bytes.size()))
        .take();
  return tagged(Tag::empty).add(buffer.num_bytes.is_const() ? buffer.num_bytes.value() : -1).take();
}

}  // namespace

std::string Provenances::words_of(const Source& source, BufferId written) const {
  if (const auto* kernel = std::get_if<KernelLaunch>(&source.launch.kind)) {
    CanonicalBytes words = tagged(Tag::kernel);
    words.add(source.kernel);
    for (size_t i = 0; i < kernel->buffers.size(); ++i) {
      const BufferId id = kernel->buffers[i];
      words.add(source.buffers[static_cast<size_t>(id)]).add(kernel->offset(i)).add(id == written);
    }
    return words.take();
  }
  if (const auto* copy = std::get_if<CopyLaunch>(&source.launch.kind))
    return tagged(Tag::copy).add(source.buffers[static_cast<size_t>(copy->source)]).take();
  return tagged(Tag::library).add(numbers_.size()).take();  // like no other
}

std::vector<int64_t> Provenances::of(const Program& program) {
  std::vector<int64_t> sources(program.buffers.size(), -1), kernels(program.kernels.size(), -1);
  for (const Launch& launch : program.init) {
    const std::vector<BufferUse> all = uses(program, launch);
    for (const BufferUse& use : all) {
      int64_t& source = sources[static_cast<size_t>(use.id)];
      if (source < 0)
        source = number_of(lathe::words_of(program.buffers[static_cast<size_t>(use.id)]));
    }
    int64_t code = -1;
    if (const auto* kernel = std::get_if<KernelLaunch>(&launch.kind)) {
      const auto index = static_cast<size_t>(kernel->kernel);
      if (kernels[index] < 0)
        kernels[index] =
            number_of(tagged(Tag::kernel_text)
                          .add(std::string_view(loop::canonical_form(program.kernels[index])))
                          .take());
      code = kernels[index];
    }
    std::vector<std::pair<BufferId, int64_t>> made;
    for (const BufferUse& use : all)
      if (use.is_written)
        made.emplace_back(use.id, number_of(words_of({launch, code, sources}, use.id)));
    for (const auto& [id, number] : made) sources[static_cast<size_t>(id)] = number;
  }
  for (size_t i = 0; i < sources.size(); ++i)
    if (program.buffers[i].kind != BufferKind::persistent) sources[i] = -1;
  return sources;
}

}  // namespace lathe
