# What the library needs, by the names that Debian's packages give it. Also installed, for the
# package configuration of a static library.
include(CMakeFindDependencyMacro)
find_dependency(TBB)
find_dependency(PkgConfig)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
if(FIRN_BUILD_STORE)
  find_dependency(Threads)
endif()
if(FIRN_WITH_HWLOC)
  pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
endif()
