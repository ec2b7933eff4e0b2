#include "harness.h"

int main(int argc, char **argv) {
    return bht_main(argc, argv, NULL, 0);
}
