// The public class: exceptions (of the standard library, when memory is short) become errors here.
#include <firn/store.hpp>
#include <new>

#include "copy.hpp"
#include "implementation.hpp"

namespace firn {
namespace {

constexpr std::array<const char*, 5> kPolicyNames{"memory", "disk", "compressed-memory",
                                                  "compressed-disk", "automatic"};

template <class Body>
auto guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory for a frame store"};
  } catch (const std::exception& problem) {
    return Error{ErrorCode::unsupported, problem.what()};
  }
}

}  // namespace

const char* name_of(StorePolicy policy) {
  const auto number = static_cast<std::size_t>(policy);
  return number < kPolicyNames.size() ? kPolicyNames[number] : "unknown";
}

Result<StorePolicy> parse_store_policy(const std::string& name) {
  if (name == "auto") return StorePolicy::automatic;
  for (std::size_t i = 0; i < kPolicyNames.size(); ++i) {
    if (name == kPolicyNames[i]) return static_cast<StorePolicy>(i);
  }
  return Error{ErrorCode::invalid_argument,
               "unknown policy '" + name +
                   "'; there are memory, disk, compressed-memory, compressed-disk, automatic"};
}

struct HeldFrame::State {
  std::shared_ptr<FrameStore::Implementation> store;
  std::uint64_t number;
  const std::uint8_t* values;

  ~State() { store->unpin(number); }
};

HeldFrame::HeldFrame(std::unique_ptr<State> state) : state_(std::move(state)) {
  view_ = {state_->values, state_->store->options().type, state_->store->options().shape, {}};
}
HeldFrame::HeldFrame(HeldFrame&&) noexcept = default;
HeldFrame& HeldFrame::operator=(HeldFrame&&) noexcept = default;
HeldFrame::~HeldFrame() = default;

FrameStore::FrameStore(std::shared_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
FrameStore::FrameStore(FrameStore&&) noexcept = default;
FrameStore& FrameStore::operator=(FrameStore&& other) noexcept {
  implementation_.swap(other.implementation_);
  return *this;
}
FrameStore::~FrameStore() = default;

Result<FrameStore> FrameStore::create(const StoreOptions& options) {
  return guarded([&]() -> Result<FrameStore> {
    auto implementation = std::make_shared<Implementation>(options);
    if (const Status begun = implementation->begin(false); !begun.ok()) return begun.error();
    return FrameStore(std::move(implementation));
  });
}

Result<FrameStore> FrameStore::open(const StoreOptions& options) {
  return guarded([&]() -> Result<FrameStore> {
    auto implementation = std::make_shared<Implementation>(options);
    if (const Status begun = implementation->begin(true); !begun.ok()) return begun.error();
    return FrameStore(std::move(implementation));
  });
}

Status FrameStore::put(std::uint64_t number, const ArrayView& frame) {
  return guarded([&] { return implementation_->put(number, frame); });
}

Status FrameStore::get(std::uint64_t number, const MutableArrayView& out) {
  return guarded([&]() -> Status {
    const StoreOptions& options = implementation_->options();
    if (out.data == nullptr || out.type != options.type || out.shape != options.shape) {
      return Error{ErrorCode::invalid_argument,
                   "the memory for frame " + std::to_string(number) +
                       " has not the type and shape of the store's frames"};
    }
    const auto values = implementation_->pin(number);
    if (!values) return values.error();
    store::copy_out(*values, out);
    implementation_->unpin(number);
    return std::monostate{};
  });
}

Result<HeldFrame> FrameStore::hold(std::uint64_t number) {
  return guarded([&]() -> Result<HeldFrame> {
    const auto values = implementation_->pin(number);
    if (!values) return values.error();
    return HeldFrame(
        std::unique_ptr<HeldFrame::State>(new HeldFrame::State{implementation_, number, *values}));
  });
}

bool FrameStore::contains(std::uint64_t number) const { return implementation_->contains(number); }
std::vector<std::uint64_t> FrameStore::numbers() const { return implementation_->numbers(); }
Type FrameStore::type() const { return implementation_->options().type; }
Shape FrameStore::shape() const { return implementation_->options().shape; }
StoreStats FrameStore::stats() const { return implementation_->stats(); }
Status FrameStore::flush() {
  return guarded([&] { return implementation_->flush(); });
}
Status FrameStore::close() {
  return guarded([&] { return implementation_->close(); });
}

}  // namespace firn
