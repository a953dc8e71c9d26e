# Installation: headers, library, CMake package and pkg-config file.
install(TARGETS firn EXPORT firn-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/firn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(FIRN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/firn)
install(EXPORT firn-targets NAMESPACE firn:: DESTINATION ${FIRN_PACKAGE_DIR})
configure_package_config_file(cmake/firn-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/firn-config.cmake INSTALL_DESTINATION ${FIRN_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/firn-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/firn-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/firn-config-version.cmake
  cmake/FirnDependencies.cmake
  DESTINATION ${FIRN_PACKAGE_DIR})

# Relative to the file, so that the package may be installed and moved anywhere.
file(RELATIVE_PATH FIRN_PREFIX_FROM_PC
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/firn.pc.in firn.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/firn.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
