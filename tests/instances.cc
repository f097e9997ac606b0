#include "tests/instances.h"

SOLITON_TEST_INSTANCES()
