#include "zfp_peer.hpp"

#include <zfp.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace firn_cli {

struct ZfpPeer::State {
  zfp_field* field = nullptr;
  zfp_stream* stream = nullptr;
  bitstream* bits = nullptr;
  std::vector<std::uint8_t> buffer;
  int threads = 1;

  ~State() {
    if (bits != nullptr) stream_close(bits);
    zfp_stream_close(stream);
    zfp_field_free(field);
  }
};

namespace {

zfp_field* make_field(const firn::ArrayView& array, void* data) {
  const zfp_type type = array.type == firn::Type::f32 ? zfp_type_float : zfp_type_double;
  // zfp names the fastest axis first.
  std::array<std::size_t, firn::kMaxRank> n{};
  for (int axis = 0; axis < array.shape.rank; ++axis) {
    n[axis] = array.shape.extents[array.shape.rank - 1 - axis];
  }
  switch (array.shape.rank) {
    case 1:
      return zfp_field_1d(data, type, n[0]);
    case 2:
      return zfp_field_2d(data, type, n[0], n[1]);
    case 3:
      return zfp_field_3d(data, type, n[0], n[1], n[2]);
    default:
      return zfp_field_4d(data, type, n[0], n[1], n[2], n[3]);
  }
}

}  // namespace

bool ZfpPeer::available() { return true; }

ZfpPeer::ZfpPeer(const firn::ArrayView& array, const firn::Bound& bound, int threads)
    : state_(std::make_unique<State>()) {
  state_->threads = threads;
  // zfp only reads it in compress(); decompress() points the field elsewhere.
  state_->field = make_field(array, const_cast<void*>(array.data));
  state_->stream = zfp_stream_open(nullptr);
  if (bound.kind == firn::BoundKind::pwrel && bound.value > 0) {
    // One bit for the leading one, one for the sign, and the transform's growth by 2 bits an axis.
    const int mantissa = static_cast<int>(std::ceil(-std::log2(bound.value)));
    zfp_stream_set_precision(state_->stream,
                             static_cast<unsigned>(mantissa + 2 + 2 * array.shape.rank));
  } else if (bound.value > 0) {
    zfp_stream_set_accuracy(state_->stream, bound.value);
  } else {
    zfp_stream_set_reversible(state_->stream);
  }
  state_->buffer.resize(zfp_stream_maximum_size(state_->stream, state_->field));
  state_->bits = stream_open(state_->buffer.data(), state_->buffer.size());
  zfp_stream_set_bit_stream(state_->stream, state_->bits);
}

ZfpPeer::~ZfpPeer() = default;

std::size_t ZfpPeer::compress() {
  zfp_stream_set_execution(state_->stream, zfp_exec_serial);
  if (state_->threads != 1 && zfp_stream_set_execution(state_->stream, zfp_exec_omp) != 0) {
    zfp_stream_set_omp_threads(state_->stream, static_cast<unsigned>(state_->threads));
  }
  zfp_stream_rewind(state_->stream);
  return zfp_compress(state_->stream, state_->field);
}

bool ZfpPeer::decompress(void* out) const {
  zfp_stream_set_execution(state_->stream, zfp_exec_serial);
  zfp_stream_rewind(state_->stream);
  void* original = zfp_field_pointer(state_->field);
  zfp_field_set_pointer(state_->field, out);
  const std::size_t read = zfp_decompress(state_->stream, state_->field);
  zfp_field_set_pointer(state_->field, original);
  return read != 0;
}

}  // namespace firn_cli
