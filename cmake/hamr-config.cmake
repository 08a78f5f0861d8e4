# What find_package(hamr CONFIG) and add_subdirectory() read, in the wheel, below a prefix, and in the sources. It sets
#   hamr::hamr     headers; the program finds the library when it runs, and shares Python's
#   hamr           the same for codes that were written for LBL's HAMR: with the macros of its build
#   hamr::linked   headers, and the program is linked with the library; not in sources that are not built
#   hamr::fortran  the module hamr and hamr::hamr; the project has the languages C and Fortran
#   hamr_INCLUDE_DIR, hamr_LIBRARY, hamr_FORTRAN_SOURCES, and those of hamr_SETTINGS
cmake_policy(VERSION 3.16)
set(_hamr_installed TRUE)
set(_hamr_libraries "lib/libhamr.so" "_gopy/_pyhamr.abi3.so")
get_filename_component(_hamr_file "${CMAKE_CURRENT_LIST_DIR}" REALPATH) # where a link to it is a folder of the project
foreach(_hamr_folder IN ITEMS "${CMAKE_CURRENT_LIST_DIR}/.." "${CMAKE_CURRENT_LIST_DIR}/../../.." "${_hamr_file}/../../..")
  get_filename_component(_hamr_prefix "${_hamr_folder}" ABSOLUTE)
  if(EXISTS "${_hamr_prefix}/include/hamr.h")
    break()
  endif()
endforeach()
if(EXISTS "${_hamr_prefix}/cmake/hamr-config.cmake")
  set(_hamr_installed FALSE)
  set(_hamr_libraries "python/hamr/_gopy/_pyhamr.abi3.so")
endif()
set(hamr_INCLUDE_DIR "${_hamr_prefix}/include")
set(hamr_FORTRAN_SOURCES "${hamr_INCLUDE_DIR}/hamr.f90" "${hamr_INCLUDE_DIR}/hamr_fortran.c")
foreach(_hamr_file IN LISTS _hamr_libraries)
  set(hamr_LIBRARY "${_hamr_prefix}/${_hamr_file}")
  if(EXISTS "${hamr_LIBRARY}")
    break()
  endif()
endforeach()
if(_hamr_installed)
  foreach(_hamr_file IN ITEMS "${hamr_INCLUDE_DIR}/hamr.h" "${hamr_LIBRARY}")
    if(NOT EXISTS "${_hamr_file}")
      set(hamr_FOUND FALSE)
      set(hamr_NOT_FOUND_MESSAGE "${_hamr_file} is missing")
            return()
    endif()
  endforeach()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/hamr_omp_offload.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/hamr_settings.cmake")

if(NOT TARGET hamr::hamr)
  add_library(hamr::hamr INTERFACE IMPORTED GLOBAL)
  set_target_properties(hamr::hamr PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${hamr_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS};pthread")

  if(EXISTS "${hamr_LIBRARY}")
    set(_hamr_by_name FALSE) # but by its path, as -l adds what the wheel's file does not begin with
    if(hamr_LIBRARY MATCHES "/libhamr\\.so$")
      set(_hamr_by_name TRUE)
    endif()
    add_library(hamr::linked SHARED IMPORTED GLOBAL)
    set_target_properties(hamr::linked PROPERTIES
      IMPORTED_LOCATION "${hamr_LIBRARY}"
      IMPORTED_NO_SONAME "${_hamr_by_name}"
      INTERFACE_COMPILE_DEFINITIONS HAMR_LINKED
      INTERFACE_LINK_LIBRARIES hamr::hamr)
  endif()

  add_library(hamr::fortran INTERFACE IMPORTED GLOBAL)
  set_target_properties(hamr::fortran PROPERTIES
    INTERFACE_SOURCES "${hamr_FORTRAN_SOURCES}"
    INTERFACE_LINK_LIBRARIES hamr::hamr)
endif()
if(NOT TARGET hamr)
  add_library(hamr INTERFACE IMPORTED GLOBAL)
  set_target_properties(hamr PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_hamr_vendor_includes}"
    INTERFACE_COMPILE_DEFINITIONS "${_hamr_definitions}"
    INTERFACE_LINK_LIBRARIES "hamr::hamr;${_hamr_vendor_libraries}")
endif()
unset(_hamr_by_name)
unset(_hamr_definitions)
unset(_hamr_file)
unset(_hamr_installed)
unset(_hamr_libraries)
unset(_hamr_prefix)
unset(_hamr_vendor_includes)
unset(_hamr_vendor_libraries)
