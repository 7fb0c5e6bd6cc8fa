#include "frontend/python/call/tensors.h"

#include <cstring>
#include <iterator>

namespace lathe::python {

Frameworks frameworks;

namespace {

// DLPack's codes: int 0, uint 1, float 2, bfloat 4, bool 6. Numbered as lathe_dtype is.
constexpr DlType kDlTypes[] = {{6, 8, 1},  {1, 8, 1},  {0, 8, 1},  {0, 16, 1}, {0, 32, 1},
                               {0, 64, 1}, {2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1}};
// Likewise, as formats of buffers. NumPy has no bf16: its bits are u16. Its longer formats are for
// what is not in the machine's byte order, and other things.
constexpr char kFormats[] = "?BbhileHfd";
constexpr int kI64 = 5;

int dtype_of(DlType type) {
  for (int i = 0; i < int(std::size(kDlTypes)); ++i)
    if (kDlTypes[i] == type) return i;
  return -1;
}

int dtype_of(const char* format) {
  if (format == nullptr || format[0] == 0 || format[1] != 0) return -1;
  if (format[0] == 'q') return kI64;
  const char* at = std::strchr(kFormats, format[0]);
  return at == nullptr ? -1 : int(at - kFormats);
}

void raise_allocation(void* /*context*/, const char* /*kind*/, const char* message) {
  PyErr_SetString(PyExc_MemoryError, message);
}

Ref make_tensor(const Output& output, DlDevice device) {
  DlTensor prototype = {nullptr,
                        device,
                        int32_t(output.shape.size()),
                        kDlTypes[output.dtype],
                        const_cast<int64_t*>(output.shape.begin()),
                        const_cast<int64_t*>(output.strides.begin()),
                        0};
  void *managed = nullptr, *object = nullptr;
  const DlExchange& exchange = *frameworks.exchange;
  if (exchange.allocate(&prototype, &managed, nullptr, raise_allocation) != 0 ||
      exchange.object_of(managed, &object) != 0)
    return Ref();
  return Ref(static_cast<PyObject*>(object));
}

}  // namespace

Argument::~Argument() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

void Argument::read(PyObject* from) {
  object = from;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(from));
  if (type == frameworks.tensor_type || type == frameworks.parameter_type)
    read_tensor();
  else if (type == frameworks.array_type)
    read_array();
  else
    return;
  if (kind == Kind::other) PyErr_Clear();  // Python will meet it again
}

void Argument::read_array() {
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_RECORDS_RO) != 0) return;
  kind = Kind::array;
  data = buffer_.buf;
  dtype = dtype_of(buffer_.format);
  rank = buffer_.ndim;
  shape = reinterpret_cast<const int64_t*>(buffer_.shape);
  strides = reinterpret_cast<const int64_t*>(buffer_.strides);
  stride_unit = buffer_.itemsize;
  is_writable = buffer_.readonly == 0;
}

void Argument::read_tensor() {
  DlTensor found = {};
  if (frameworks.exchange->read(object, &found) != 0) return;
  // A view may stand for the negatives of its memory, which DLPack does not say. (Conjugates are
  // complex, and no dtype here is.)
  const Ref negated(PyObject_CallFunctionObjArgs(frameworks.is_negated, object, nullptr));
  if (negated.get() != Py_False) return;
  kind = Kind::tensor;
  data = found.address();
  dtype = dtype_of(found.dtype);
  rank = found.rank;
  shape = found.shape;
  strides = found.strides;
  device = found.device;
}

Ref make(const Output& output, const Argument* like, void*& data) {
  if (like == nullptr) {
    Ref array(PyObject_Call(frameworks.new_array, output.array_arguments.get(), nullptr));
    if (!array) return array;
    Argument made;
    made.read(array.get());
    data = made.data;
    return array;
  }
  Ref tensor = make_tensor(output, like->device);
  DlTensor made = {};
  if (!tensor || frameworks.exchange->read(tensor.get(), &made) != 0) return Ref();
  data = made.address();
  return tensor;
}

bool find_stream(const Argument* like, void*& stream) {
  stream = nullptr;
  if (like == nullptr || like->device.type == kDlCpu) return true;
  if (frameworks.exchange->current_stream(like->device.type, like->device.id, &stream) != 0)
    return false;
  // The default stream's handle is 0, but its name among CUDA's streams is 1.
  if (stream == nullptr) stream = reinterpret_cast<void*>(1);
  return true;
}

}  // namespace lathe::python
