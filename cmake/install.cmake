# cmake --install, and the Debian packages that cpack -G DEB makes of it.
#
#   bin/rondo                     the program                                          component runtime: package rondo
#   lib/librondo{,_base}.so.X.Y   the library
#   lib/rondo/                    modules: the command's engine, SentencePiece, Gloo
#   share/rondo/                  recipes/, tables/, bench/peers/; found relative to the library
#   include/rondo/, lib/librondo{,_base}.so, lib/cmake/Rondo/                          component dev: package librondo-dev
#
# Headers that others may include: all except *-inl.h and *_parts.h, which belong to single sources.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(RONDO_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Rondo)
set(RONDO_ABI ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

set_target_properties(rondo_base PROPERTIES EXPORT_NAME base)
set_target_properties(rondo_library PROPERTIES EXPORT_NAME rondo)
set_target_properties(rondo_base rondo_library PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${RONDO_ABI} INSTALL_RPATH "$ORIGIN")
set_target_properties(rondo_engine rondo_sentencepiece rondo_gloo PROPERTIES INSTALL_RPATH "$ORIGIN/..")
set_target_properties(rondo PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS rondo_base rondo_library EXPORT RondoTargets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS rondo RUNTIME COMPONENT runtime)
install(TARGETS rondo_engine rondo_sentencepiece rondo_gloo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rondo COMPONENT runtime)
install(DIRECTORY recipes tables DESTINATION ${CMAKE_INSTALL_DATADIR}/rondo COMPONENT runtime FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY bench/peers DESTINATION ${CMAKE_INSTALL_DATADIR}/rondo/bench COMPONENT runtime
        PATTERN "__pycache__" EXCLUDE)
# Man pages and completions are written by the program itself, from the descriptions of its verbs.
set(RONDO_HELP ${PROJECT_BINARY_DIR}/help)
add_custom_command(TARGET rondo POST_BUILD
                   COMMAND rondo man ${RONDO_HELP}/man1
                   COMMAND sh -c "$<TARGET_FILE:rondo> completion bash > ${RONDO_HELP}/rondo"
                   COMMAND sh -c "$<TARGET_FILE:rondo> completion zsh > ${RONDO_HELP}/_rondo"
                   COMMAND sh -c "$<TARGET_FILE:rondo> completion fish > ${RONDO_HELP}/rondo.fish"
                   VERBATIM)
install(DIRECTORY ${RONDO_HELP}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT runtime)
install(FILES ${RONDO_HELP}/rondo DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${RONDO_HELP}/_rondo DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT runtime)
install(FILES ${RONDO_HELP}/rondo.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime RENAME copyright)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY rondo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
        FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN "*_parts.h" EXCLUDE)

install(EXPORT RondoTargets NAMESPACE rondo:: DESTINATION ${RONDO_CMAKE_DIR} COMPONENT dev)
configure_package_config_file(cmake/RondoConfig.cmake.in ${PROJECT_BINARY_DIR}/RondoConfig.cmake
                              INSTALL_DESTINATION ${RONDO_CMAKE_DIR} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RondoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RondoConfig.cmake ${PROJECT_BINARY_DIR}/RondoConfigVersion.cmake
        DESTINATION ${RONDO_CMAKE_DIR} COMPONENT dev)

# ---- packages: into build/<preset>/packages -------------------------------------------------------------------------
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rondo)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_CONTACT "Rondo maintainers <maintainers@users.noreply.a-seed-afad1551.example>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # dpkg-shlibdeps finds the linked packages: libtorch1.13, libdnnl2, libfmt9, ...
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME rondo)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
# libtorch's BLAS: any works, but only this one is fast with OpenMP.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS libopenblas0-openmp)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS python3-torch)  # a peer of `rondo bench`
set(CPACK_DEBIAN_DEV_PACKAGE_NAME librondo-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "rondo (= ${PROJECT_VERSION}), libtorch-dev, libfmt-dev, nlohmann-json3-dev")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The command rondo, the library it is made of, recipes and tables of the papers.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers and CMake files for programs that use the library: find_package(Rondo).")
include(CPack)
