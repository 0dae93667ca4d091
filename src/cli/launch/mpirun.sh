#!/bin/sh
# A training of @processes@ processes. Run again, it goes on from its last checkpoint.
set -eu
cd @directory@
exec mpirun -n @processes@@options@ @command@
