// An engine of another version, used by a test of the command.
extern "C" __attribute__((visibility("default"))) const char* rondo_engine_version() {
  return "0.0.1, interface 0";
}
