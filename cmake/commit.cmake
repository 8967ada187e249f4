# Writes the commit being built to OUTPUT if it has changed. Run at every build.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude * OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define RONDO_COMMIT \"${commit}\"\n" @ONLY)
