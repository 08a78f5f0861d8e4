# What find_package(hamr CONFIG) reads, in the wheel and below a prefix alike. It sets
#   hamr::hamr     headers; the program finds the library when it runs, and shares Python's
#   hamr::linked   the same, and the program is linked with the library
#   hamr::fortran  the module hamr and hamr::hamr; the project has the languages C and Fortran
#   hamr_INCLUDE_DIR, hamr_LIBRARY, hamr_FORTRAN_SOURCES
get_filename_component(_hamr_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(hamr_INCLUDE_DIR "${_hamr_prefix}/include")
set(hamr_FORTRAN_SOURCES "${hamr_INCLUDE_DIR}/hamr.f90" "${hamr_INCLUDE_DIR}/hamr_fortran.c")
set(hamr_LIBRARY "${_hamr_prefix}/lib/libhamr.so")
set(_hamr_by_name TRUE) # else by its path, as -l adds what the wheel's file does not begin with
if(NOT EXISTS "${hamr_LIBRARY}")
  set(hamr_LIBRARY "${_hamr_prefix}/_gopy/_pyhamr.abi3.so")
  set(_hamr_by_name FALSE)
endif()
foreach(_hamr_file IN ITEMS "${hamr_INCLUDE_DIR}/hamr.h" "${hamr_LIBRARY}")
  if(NOT EXISTS "${_hamr_file}")
    set(hamr_FOUND FALSE)
    set(hamr_NOT_FOUND_MESSAGE "${_hamr_file} is missing")
    return()
  endif()
endforeach()

if(NOT TARGET hamr::hamr)
  add_library(hamr::hamr INTERFACE IMPORTED)
  set_target_properties(hamr::hamr PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${hamr_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS};-pthread")

  add_library(hamr::linked SHARED IMPORTED)
  set_target_properties(hamr::linked PROPERTIES
    IMPORTED_LOCATION "${hamr_LIBRARY}"
    IMPORTED_NO_SONAME "${_hamr_by_name}"
    INTERFACE_COMPILE_DEFINITIONS HAMR_LINKED
    INTERFACE_LINK_LIBRARIES hamr::hamr)

  add_library(hamr::fortran INTERFACE IMPORTED)
  set_target_properties(hamr::fortran PROPERTIES
    INTERFACE_SOURCES "${hamr_FORTRAN_SOURCES}"
    INTERFACE_LINK_LIBRARIES hamr::hamr)
endif()
unset(_hamr_by_name)
unset(_hamr_file)
unset(_hamr_prefix)
