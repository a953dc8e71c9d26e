// The last stage of `contexts`, `interp` and `causal`: codes with their contexts are written, or
// only what they take is seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "encode/context_rans.hpp"
#include "pipelines/pipeline.hpp"
#include "pipelines/workspace.hpp"

namespace firn::pipelines {

// Behind the payload's head; `capacity` is the room there. Returns whether they are written: in a
// trial they are not, in a rehearsal only if the payload will be about as large as is wanted, else
// if it is small enough to be useful.
template <class Q>
bool write_codes(const Q* codes, const std::uint8_t* contexts, std::size_t count,
                 std::span<const std::size_t> segments, std::size_t capacity,
                 const Parameters& parameters, Workspace& workspace, ByteWriter& writer) {
  encode::ContextRansEncoder& encoder = workspace.rans_encoder;
  const std::size_t head = writer.size();
  if (parameters.size_only() && !parameters.wants_any()) {
    std::size_t size =
        encoder.estimate(codes, contexts, count, parameters.look_at_one_in, workspace.target);
    if (!parameters.trial) {
      // Without the coder's last states and all that describes distributions.
      constexpr std::size_t kUntold = 150, kOneMoreIn = 50;
      size += std::min(kUntold, (head + size) / kOneMoreIn);
    }
    writer.advance(size);
    return false;
  }
  const bool any = !parameters.rehearsal;
  const std::size_t least =
      any ? 0 : parameters.least_wanted - std::min(head, parameters.least_wanted);
  const std::size_t most_payload = any ? parameters.most_useful : parameters.most_wanted;
  const std::size_t most = std::min(capacity, most_payload - std::min(head, most_payload));
  const auto outcome = encoder.encode_if_within(codes, contexts, count, segments, workspace.target,
                                                writer.here(), capacity, least, most);
  writer.advance(outcome.size);
  return outcome.written;
}

}  // namespace firn::pipelines
