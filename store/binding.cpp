// Threads bound to cores, by hwloc.
#include <firn/store.hpp>
#ifdef FIRN_WITH_HWLOC
#include <hwloc.h>

#include <cerrno>
#include <cstring>
#endif

namespace firn {

#ifdef FIRN_WITH_HWLOC

Status bind_thread(const std::vector<int>& cores) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    return Error{ErrorCode::out_of_memory, "no memory to describe the machine"};
  }
  hwloc_cpuset_t set = hwloc_bitmap_alloc();
  Status status = std::monostate{};
  if (set == nullptr || hwloc_topology_load(topology) != 0) {
    status = Error{ErrorCode::unsupported, "hwloc cannot describe this machine"};
  } else {
    for (const int core : cores) {
      if (core < 0 ||
          hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(core)) == nullptr) {
        status = Error{ErrorCode::invalid_argument,
                       "there is no core " + std::to_string(core) + " on this machine"};
        break;
      }
      hwloc_bitmap_set(set, static_cast<unsigned>(core));
    }
    if (status.ok() && cores.empty()) {
      status = Error{ErrorCode::invalid_argument, "a thread needs at least one core"};
    }
    if (status.ok() && hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_THREAD) != 0) {
      status = Error{ErrorCode::unsupported,
                     std::string("cannot bind a thread to cores: ") + std::strerror(errno)};
    }
  }
  hwloc_bitmap_free(set);
  hwloc_topology_destroy(topology);
  return status;
}

#else

Status bind_thread(const std::vector<int>&) {
  return Error{ErrorCode::unsupported,
               "this build cannot bind threads to cores: configure it with -DFIRN_WITH_HWLOC=ON"};
}

#endif

}  // namespace firn
