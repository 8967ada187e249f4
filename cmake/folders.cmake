# Which folder of rondo/ belongs to which library: read from rondo/folders.txt.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS rondo/folders.txt)
file(STRINGS rondo/folders.txt RONDO_FOLDER_LINES REGEX "^[a-z]")

# The names of the folders of one library (base, kernels or torch).
function(rondo_folders result library)
  set(names "")
  foreach(line IN LISTS RONDO_FOLDER_LINES)
    if(line MATCHES "^([a-z_]+) +${library}$")
      list(APPEND names ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(${result} ${names} PARENT_SCOPE)
endfunction()

# Their sources. A folder that does not exist adds nothing.
function(rondo_sources result library)
  rondo_folders(names ${library})
  list(TRANSFORM names REPLACE "(.+)" "rondo/\\1/*.cpp" OUTPUT_VARIABLE patterns)
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(${result} ${sources} PARENT_SCOPE)
endfunction()
