// An engine of another version, for a test of the command.
extern "C" __attribute__((visibility("default"))) const char* rondo_engine_version() {
  return "0.0.1, interface 0";
}
