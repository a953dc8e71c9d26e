#include "zfp_peer.hpp"

namespace firn_cli {

struct ZfpPeer::State {};

bool ZfpPeer::available() { return false; }
ZfpPeer::ZfpPeer(const firn::ArrayView&, const firn::Bound&, int) {}
ZfpPeer::~ZfpPeer() = default;
std::size_t ZfpPeer::compress() { return 0; }
bool ZfpPeer::decompress(void*) const { return false; }

}  // namespace firn_cli
