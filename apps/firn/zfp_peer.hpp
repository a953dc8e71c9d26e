// zfp in fixed-accuracy mode (fixed precision for pwrel), as a yardstick for `firn bench`.
// Implemented by zfp_peer.cpp with FIRN_WITH_ZFP, else by zfp_peer_absent.cpp.
#pragma once

#include <cstddef>
#include <memory>

#include "firn/firn.hpp"

namespace firn_cli {

class ZfpPeer {
 public:
  static bool available();

  // For a contiguous array that outlives this. A bound of 0 means zfp's lossless mode. zfp has no
  // point-wise relative bound: for pwrel it keeps as many bit planes of each block as a value's
  // mantissa would need, and small values next to large ones are out of bound. More than one
  // thread helps compression only; zfp decompresses serially.
  ZfpPeer(const firn::ArrayView& array, const firn::Bound& bound, int threads);
  ~ZfpPeer();

  std::size_t compress();            // the stream's size; 0 on failure
  bool decompress(void* out) const;  // what compress() made

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firn_cli
